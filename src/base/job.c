/* job.c: flags, the first error, and what the job owns. */
#include "base/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"

/* What every program understands. `argument` NULL: a flag without value. */
static const struct flag {
    const char *name, *argument, *help;
} flags[] = {
    {"data", "DIR", "files to train on; without it the data is made by the program"},
    {"epochs", "N", "passes over the data"},
    {"steps-per-epoch", "N", "ends an epoch after N steps"},
    {"batch", "N", "examples in a step, over all replicas"},
    {"lr", "RATE", "learning rate"},
    {"seed", "N", "of weights, order and every random number; default 1"},
    {"threads", "N", "CPU threads; default all that are granted"},
    {"device", "NAME", "where to compute: cpu:0"},
    {"strategy", "NAME",
     "one_device, mirrored, multi_worker_mirrored, central_storage; default auto"},
    {"devices", "LIST", "devices of the strategy: cpu:0,cpu:1"},
    {"precision", "P", "f32, bf16 or f16; default f32"},
    {"deterministic", NULL, "the same bits for any cut of the batch; slower on some machines"},
    {"save", "FILE", "writes the trained model there"},
    {"logs", "DIR", "writes event files for TensorBoard there"},
    {"resume", NULL, "goes on from the newest checkpoint"},
    {"quiet", NULL, "prints nothing but errors"},
    {"json", NULL, "prints one JSON object per epoch instead of the progress bar"},
    {"set", "KEY=VALUE", "any other setting; may be repeated"},
    {"help", NULL, "prints this"},
};

static const struct flag *find_flag(const char *text, size_t size)
{
    for (size_t i = 0; i < TUTTI_COUNT(flags); i++)
        if (strlen(flags[i].name) == size && memcmp(flags[i].name, text, size) == 0)
            return &flags[i];
    return NULL;
}

/* Prints the flags: the one thing a program's --help asks of the library. */
static void print_help(tutti_job *job)
{
    printf("usage: %s [FLAGS]\n\n", job->program);
    for (size_t i = 0; i < TUTTI_COUNT(flags); i++) {
        char left[40];
        snprintf(left, sizeof left, "--%s %s", flags[i].name,
                 flags[i].argument ? flags[i].argument : "");
        printf("  %-22s %s\n", left, flags[i].help);
    }
    printf("\nexit codes: 0 success, 1 the program failed, 2 wrong flags\n");
    job->helped = true;
}

static void usage_error(tutti_job *job, const char *flag, const char *expected)
{
    if (job->error.status != TUTTI_OK)
        return;
    tutti_job_fail(job,
                   tutti_fail(TUTTI_INVALID, "--%s %s; --help lists the flags", flag, expected));
    job->exit_code = 2;
}

static void set_flag(tutti_job *job, const char *name, const char *value)
{
    char *kept = tutti__arena_string(&job->arena, value);
    if (!kept || tutti__map_set(&job->flags, name, kept) != TUTTI_OK)
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for the flags"));
}

static void set_pair(tutti_job *job, const char *pair)
{
    const char *equals = strchr(pair, '=');
    char key[128];
    if (!equals || equals == pair || (size_t)(equals - pair) >= sizeof key) {
        usage_error(job, "set", "takes KEY=VALUE");
        return;
    }
    memcpy(key, pair, (size_t)(equals - pair));
    key[equals - pair] = 0;
    set_flag(job, key, equals + 1);
}

/* One argument of ours at argv[i]; returns how many were used, 0 when it is not ours. */
static int read_flag(tutti_job *job, int argc, char **argv, int i)
{
    const char *text = argv[i];
    if (strncmp(text, "--", 2) != 0)
        return 0;
    const char *equals = strchr(text, '=');
    const struct flag *flag =
        find_flag(text + 2, equals ? (size_t)(equals - text - 2) : strlen(text + 2));
    if (!flag)
        return 0;
    if (!flag->argument) {
        if (equals)
            usage_error(job, flag->name, "takes no value");
        else if (strcmp(flag->name, "help") == 0)
            print_help(job);
        else
            set_flag(job, flag->name, "");
        return 1;
    }
    if (!equals && i + 1 >= argc) {
        usage_error(job, flag->name, "takes a value");
        return 1;
    }
    const char *value = equals ? equals + 1 : argv[i + 1];
    if (strcmp(flag->name, "set") == 0)
        set_pair(job, value);
    else
        set_flag(job, flag->name, value);
    return equals ? 1 : 2;
}

static void read_flags(tutti_job *job, int *argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < *argc && argv[i];) {
        int used = read_flag(job, *argc, argv, i);
        if (used == 0)
            argv[kept++] = argv[i++];
        i += used;
    }
    argv[kept < *argc ? kept : *argc] = NULL;
    *argc = kept;
}

/* What a job is when there is no memory for one: an error, and nothing to free. */
static tutti_job nothing = {.error = {TUTTI_NO_MEMORY, "no memory for a job"}, .exit_code = 1};

static void apply(tutti_job *job)
{
    static const struct {
        const char *flag, *param;
    } params[] = {{"threads", "THREADS"}, {"device", "DEVICE"}};
    for (size_t i = 0; i < TUTTI_COUNT(params); i++) {
        const char *text = tutti__map_get(&job->flags, params[i].flag);
        if (text)
            tutti__param_set(params[i].param, text);
    }
    tutti_flag_int(job, "threads", 0);
    job->seed = (uint64_t)tutti_flag_int(job, "seed", 1);
    if (job->error.status != TUTTI_OK)
        job->exit_code = 2;
}

tutti_job *tutti_open(int *argc, char ***argv)
{
    tutti_job *job = calloc(1, sizeof *job);
    if (!job)
        return &nothing;
    job->exit_code = 1;
    const char *name = argc && argv && *argc > 0 && (*argv)[0] ? (*argv)[0] : "tutti";
    const char *slash = strrchr(name, '/');
    snprintf(job->program, sizeof job->program, "%s", slash ? slash + 1 : name);
    if (argc && argv && *argc > 0)
        read_flags(job, argc, *argv);
    apply(job);
    return job;
}

int tutti_close(tutti_job *job)
{
    if (!job)
        return 0;
    int code = job->error.status == TUTTI_OK ? 0 : job->exit_code;
    if (code != 0)
        fprintf(stderr, "tutti: %s\n", job->error.message);
    tutti__job_discard(job);
    return code == 0 && tutti__preempted() ? TUTTI_EXIT_PREEMPTED : code;
}

void tutti__job_discard(tutti_job *job)
{
    if (!job || job == &nothing)
        return;
    while (job->owned.count > 0) {
        tutti_owned *last = &job->owned.data[--job->owned.count];
        last->destroy(last->object);
    }
    TUTTI_VEC_FREE(&job->owned);
    tutti__map_free(&job->flags);
    tutti__arena_free(&job->arena);
    free(job);
}

tutti_status tutti_job_check(const tutti_job *job)
{
    if (!job)
        return tutti_fail(TUTTI_INVALID, "there is no job; make one with tutti_open");
    return job->error.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&job->error);
}

bool tutti_job_ok(const tutti_job *job)
{
    return tutti__job_able(job) && !tutti_interrupted();
}

tutti_status tutti_job_fail(tutti_job *job, tutti_status status)
{
    if (job && status != TUTTI_OK && job->error.status == TUTTI_OK)
        tutti__error_capture(status, &job->error);
    return status;
}

const char *tutti_flag_text(tutti_job *job, const char *name, const char *fallback)
{
    char variable[128] = "TUTTI_";
    const char *text = job ? tutti__map_get(&job->flags, name) : NULL;
    if (text)
        return text;
    size_t n = strlen(variable);
    for (const char *c = name; *c && n + 1 < sizeof variable; c++)
        variable[n++] = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    text = getenv(variable);
    return text ? text : fallback;
}

/* A flag that cannot be read is wrong usage, whenever it is asked for. */
static void flag_error(tutti_job *job, tutti_status status)
{
    if (job && job->error.status == TUTTI_OK)
        job->exit_code = 2;
    tutti_job_fail(job, status);
}

int64_t tutti_flag_int(tutti_job *job, const char *name, int64_t fallback)
{
    const char *text = tutti_flag_text(job, name, NULL);
    char *end;
    if (!text)
        return fallback;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && !*end && value >= 0)
        return value;
    flag_error(job, tutti_fail(TUTTI_INVALID, "--%s takes a whole number, not '%s'", name, text));
    return fallback;
}

double tutti_flag_number(tutti_job *job, const char *name, double fallback)
{
    const char *text = tutti_flag_text(job, name, NULL);
    char *end;
    if (!text)
        return fallback;
    double value = strtod(text, &end);
    if (end != text && !*end)
        return value;
    flag_error(job, tutti_fail(TUTTI_INVALID, "--%s takes a number, not '%s'", name, text));
    return fallback;
}

bool tutti_flag_on(tutti_job *job, const char *name)
{
    const char *text = tutti_flag_text(job, name, NULL);
    return text && strcmp(text, "0") != 0 && strcmp(text, "false") != 0 && strcmp(text, "no") != 0;
}

void tutti_no_other_flags(tutti_job *job, int argc, char **argv)
{
    if (argc < 2 || job->error.status != TUTTI_OK)
        return;
    tutti_job_fail(job, tutti_fail(TUTTI_INVALID, "'%s' is no flag of %s; --help lists them",
                                   argv[1], job->program));
    job->exit_code = 2;
}

bool tutti_job_quiet(tutti_job *job)
{
    return tutti_flag_on(job, "quiet") || tutti_flag_on(job, "json") || (job && job->silent);
}

void tutti_expect(tutti_job *job, const char *name, double value, double at_least)
{
    bool changed = tutti_flag_text(job, "epochs", NULL) != NULL ||
                   tutti_flag_text(job, "steps-per-epoch", NULL) != NULL;
    bool given = tutti_flag_text(job, "expect", NULL) != NULL;
    double limit = tutti_flag_number(job, "expect", at_least);
    if (!job || job->helped || tutti_interrupted() || (changed && !given) || value >= limit)
        return;
    tutti_job_fail(job, tutti_fail(TUTTI_CHECK_FAILED,
                                   "%s is %.4f, at least %g is expected; --set expect=V asks for "
                                   "another value",
                                   name, value, limit));
}

bool tutti_job_own(tutti_job *job, void *object, void (*destroy)(void *object))
{
    if (TUTTI_VEC_PUSH(&job->owned, ((tutti_owned){object, destroy})))
        return true;
    destroy(object);
    tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for an object of the job"));
    return false;
}

uint64_t tutti_job_seed(const tutti_job *job)
{
    return job ? job->seed : 1;
}
