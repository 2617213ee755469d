/* flags.c: what a program is told on its command line and by its environment. */
#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/job.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/params.h"

#define MOST 9.2e18 /* about INT64_MAX: no bound */

typedef enum flag_kind { TEXT, WHOLE, NUMBER } flag_kind;

/* What every program understands. `argument` NULL: a flag without value. Numbers lie between `low`
 * and `high`; a text is one of `choices` where those are given, parted by '|'. */
static const struct flag {
    const char *name, *argument, *help;
    flag_kind kind;
    double low, high;
    const char *choices;
} flags[] = {
    {"data", "DIR", "files to train on; without it the data is made by the program"},
    {"epochs", "N", "passes over the data", WHOLE, 0, INT32_MAX},
    {"steps-per-epoch", "N", "ends an epoch after N steps", WHOLE, 1, MOST},
    {"batch", "N", "examples in a step, over all replicas", WHOLE, 1, 1 << 24},
    {"lr", "RATE", "learning rate", NUMBER, 0, DBL_MAX},
    {"seed", "N", "of weights, order and every random number; default 1", WHOLE, 0, MOST},
    {"threads", "N", "CPU threads; default all that are granted", WHOLE, 0, 4096},
    {"device", "NAME", "where to compute: cpu:0"},
    {"strategy", "NAME",
     "one_device, mirrored, multi_worker_mirrored, central_storage,\n"
     "                         pipeline, fully_sharded, tensor, parameter_server; by\n"
     "                         default by the devices and the job's workers; auto: by a forecast"},
    {"devices", "LIST", "devices of the strategy: cpu:0,cpu:1"},
    {"mesh", "AXES", "the job's devices in a grid with named axes: host=2,data=4"},
    {"layout", "RULES", "which axes cut which dimensions: batch:host*data; default all the batch"},
    {"precision", "P", "f32, bf16 or f16; default f32", TEXT, 0, 0, "f32|bf16|f16"},
    {"deterministic", NULL, "the same bits for any cut of the batch; slower on some machines"},
    {"inspect", "NAMES", "prints values of a step and outputs of layers; patterns: 'body/*,h?'"},
    {"inspect-every", "N", "at the first and each N-th step; default 100", WHOLE, 1, MOST},
    {"debug-nan", NULL, "ends with the first operator that makes a NaN or an infinity; slower"},
    {"save", "FILE", "writes the trained model there"},
    {"logs", "DIR", "writes event files for TensorBoard there"},
    {"resume", NULL, "goes on from the newest checkpoint"},
    {"quiet", NULL, "prints warnings and errors only"},
    {"json", NULL, "prints one JSON object per epoch instead of the progress bar"},
    {"set", "KEY=VALUE", "any other setting; may be repeated"},
    {"help", NULL, "prints this"},
};

/* Settings of the library's that --set gives. */
static const struct flag settings[] = {
    {"expect", NULL, NULL, NUMBER, -DBL_MAX, DBL_MAX},
    {"save_every", NULL, NULL, WHOLE, 0, MOST},
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
    printf(
        "\nexit codes: 0 success, 1 the program failed, 2 wrong flags, 75 it was asked to end by\n"
        "SIGTERM and has saved\n");
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

/* A flag or setting as given. */
typedef struct given {
    atomic_bool asked; /* somebody wanted to know it */
    bool pair;         /* by --set */
    int distance;      /* of the name that was asked for and is most like its own, */
    char meant[40];    /* under `guessing`; "": none */
    char text[];
} given;

static void set_flag(tutti_job *job, const char *name, const char *value, bool pair)
{
    size_t size = strlen(value) + 1;
    given *kept = tutti__arena_take(&job->arena, sizeof *kept + size);
    if (!kept || tutti__map_set(&job->flags, name, kept) != TUTTI_OK) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for the flags"));
        return;
    }
    atomic_init(&kept->asked, false);
    kept->pair = pair;
    kept->meant[0] = 0;
    memcpy(kept->text, value, size);
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
    set_flag(job, key, equals + 1, true);
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
            set_flag(job, flag->name, "", false);
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
        set_flag(job, flag->name, value, false);
    return equals ? 1 : 2;
}

/* -1 and - are no flags. */
static bool looks_like_flag(const char *text)
{
    size_t dashes = strspn(text, "-");
    char first = (char)(text[dashes] | 32);
    return (dashes == 1 || dashes == 2) && first >= 'a' && first <= 'z';
}

static bool nothing_else; /* programs take no arguments but flags */

void tutti__flags_alone(void)
{
    nothing_else = true;
}

static void note_unknown(tutti_job *job, const char *text)
{
    if (!job->unknown && !(job->unknown = tutti__arena_string(&job->arena, text)))
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for the flags"));
}

void tutti__flags_read(tutti_job *job, int *argc, char **argv)
{
    int kept = 1;
    bool ours = true; /* what stands behind "--" is not */
    for (int i = 1; i < *argc && argv[i];) {
        ours = ours && strcmp(argv[i], "--") != 0;
        int used = ours ? read_flag(job, *argc, argv, i) : 0;
        bool wrong = nothing_else ? strcmp(argv[i], "--") != 0 : ours && looks_like_flag(argv[i]);
        if (used == 0 && wrong)
            note_unknown(job, argv[i]);
        if (used == 0)
            argv[kept++] = argv[i++];
        i += used;
    }
    argv[kept < *argc ? kept : *argc] = NULL;
    *argc = kept;
}

/* TUTTI_STEPS_PER_EPOCH for "steps-per-epoch". */
static void variable_of(const char *name, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "TUTTI_");
    for (const char *c = name; *c && n + 1 < size; c++)
        text[n++] = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    text[n] = '\0';
}

static const char *from_environment(const char *name)
{
    char variable[128];
    variable_of(name, variable, sizeof variable);
    return getenv(variable);
}

/* A setting that is asked for and was not given may be what a misspelt one means. */
static void guess(tutti_job *job, const char *name)
{
    static pthread_mutex_t guessing = PTHREAD_MUTEX_INITIALIZER;
    for (size_t i = 0; i < job->flags.count; i++) {
        given *other = job->flags.entries[i].value;
        if (!other->pair || atomic_load_explicit(&other->asked, memory_order_relaxed) ||
            strlen(name) >= sizeof other->meant)
            continue;
        int distance = tutti__word_distance(job->flags.entries[i].key, name);
        pthread_mutex_lock(&guessing);
        if (tutti__word_near(job->flags.entries[i].key, distance) &&
            (!other->meant[0] || distance < other->distance)) {
            strcpy(other->meant, name);
            other->distance = distance;
        }
        pthread_mutex_unlock(&guessing);
    }
}

const char *tutti_flag_text(tutti_job *job, const char *name, const char *fallback)
{
    if (!name)
        return fallback;
    given *found = job ? tutti__map_get(&job->flags, name) : NULL;
    if (found)
        atomic_store_explicit(&found->asked, true, memory_order_relaxed);
    else if (job && job->flags.count > 0)
        guess(job, name);
    const char *text = found ? found->text : from_environment(name);
    return text ? text : fallback;
}

enum { SPELT = 160 };

/* How a flag was given, for messages: --name, --set name or TUTTI_NAME. */
static const char *spelt(const tutti_job *job, const char *name, char text[SPELT])
{
    const given *found = job ? tutti__map_get(&job->flags, name) : NULL;
    if (found)
        snprintf(text, SPELT, "--%s%s", found->pair ? "set " : "", name);
    else
        variable_of(name, text, SPELT);
    return text;
}

/* A flag that cannot be read is wrong usage, whenever it is asked for. */
static void flag_error(tutti_job *job, tutti_status status)
{
    if (status != TUTTI_OK && job && job->error.status == TUTTI_OK)
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
    char label[SPELT];
    flag_error(job, tutti_fail(TUTTI_INVALID, "%s takes a whole number from 0 up, not '%s'",
                               spelt(job, name, label), text));
    return fallback;
}

double tutti_flag_number(tutti_job *job, const char *name, double fallback)
{
    const char *text = tutti_flag_text(job, name, NULL);
    char *end;
    if (!text)
        return fallback;
    double value = tutti__strtod(text, &end);
    if (end != text && !*end)
        return value;
    char label[SPELT];
    flag_error(job, tutti_fail(TUTTI_INVALID, "%s takes a number, not '%s'",
                               spelt(job, name, label), text));
    return fallback;
}

bool tutti_flag_on(tutti_job *job, const char *name)
{
    const char *text = tutti_flag_text(job, name, NULL);
    const given *found = job && name ? tutti__map_get(&job->flags, name) : NULL;
    char label[SPELT];
    bool on;
    if (!text || (found && !found->pair && !*text)) /* --resume has no value */
        return text != NULL;
    if (tutti__switch_read(text, &on))
        return on;
    flag_error(job, tutti_fail(TUTTI_INVALID, "%s takes " TUTTI_SWITCH_WORDS ", not '%s'",
                               spelt(job, name, label), text));
    return false;
}

void tutti_own_flags(tutti_job *job)
{
    if (job)
        job->unknown = NULL;
}

void tutti__flags_refuse(tutti_job *job)
{
    char name[64];
    if (!job->unknown || job->helped || job->error.status != TUTTI_OK)
        return;
    snprintf(name, sizeof name, "%s", job->unknown + strspn(job->unknown, "-"));
    name[strcspn(name, "=")] = 0;
    tutti_nearest nearest = {.word = name};
    for (size_t i = 0; i < TUTTI_COUNT(flags); i++)
        tutti__nearest_try(&nearest, flags[i].name);
    job->exit_code = 2;
    tutti_job_fail(job,
                   tutti_fail(TUTTI_INVALID,
                              "'%s' is no flag of %s%s%s%s; --help lists them (a program that "
                              "reads others itself calls tutti_own_flags)",
                              job->unknown, job->program, nearest.found ? "; is --" : "",
                              nearest.found ? nearest.found : "", nearest.found ? " meant?" : ""));
}

/* ---- what was given ---- */

static bool is_choice(const char *choices, const char *text)
{
    size_t size = strlen(text);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (size > 0 && strncmp(at, text, size) == 0 && (at[size] == '|' || !at[size]))
            return true;
    return false;
}

/* TUTTI_OK, or what is wrong with a value. Also of those that nobody will ask for. */
static tutti_status check_flag(const struct flag *flag, const char *name, const char *text)
{
    char *end;
    if (flag->choices && !is_choice(flag->choices, text))
        return tutti_fail(TUTTI_INVALID, "%s takes %s, not '%s'", name, flag->choices, text);
    if (flag->kind == TEXT)
        return TUTTI_OK;
    errno = 0;
    double value =
        flag->kind == WHOLE ? (double)strtoll(text, &end, 10) : tutti__strtod(text, &end);
    if (end != text && !*end && errno == 0 && value >= flag->low && value <= flag->high)
        return TUTTI_OK;
    const char *what = flag->kind == WHOLE ? "whole number" : "number";
    if (flag->high >= MOST)
        return tutti_fail(TUTTI_INVALID, "%s takes a %s from %.0f up, not '%s'", name, what,
                          flag->low, text);
    return tutti_fail(TUTTI_INVALID, "%s takes a %s from %.0f to %.0f, not '%s'", name, what,
                      flag->low, flag->high, text);
}

static tutti_status check_setting(const tutti_job *job, const struct flag *setting)
{
    const given *found = tutti__map_get(&job->flags, setting->name);
    char *end;
    errno = 0;
    double value = tutti__strtod(found->text, &end);
    bool inside = end != found->text && !*end && errno == 0 && value >= setting->low &&
                  value <= setting->high;
    if (inside && (setting->kind != WHOLE || value == (double)(int64_t)value))
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "--set %s takes a %s, not '%s'", setting->name,
                      setting->kind == WHOLE ? "whole number from 0 up" : "number", found->text);
}

void tutti__flags_apply(tutti_job *job)
{
    char label[SPELT];
    for (size_t i = 0; i < TUTTI_COUNT(flags); i++) {
        const given *found = tutti__map_get(&job->flags, flags[i].name);
        const char *text = found ? found->text : from_environment(flags[i].name);
        if (!text)
            continue;
        if (flags[i].argument)
            flag_error(job, check_flag(&flags[i], spelt(job, flags[i].name, label), text));
        else if (strcmp(flags[i].name, "help") != 0)
            tutti_flag_on(job, flags[i].name);
    }
    for (size_t i = 0; i < TUTTI_COUNT(settings); i++)
        if (tutti__map_get(&job->flags, settings[i].name))
            flag_error(job, check_setting(job, &settings[i]));
    static const struct {
        const char *flag, *param;
    } params[] = {{"threads", "THREADS"},
                  {"device", "DEVICE"},
                  {"debug-nan", "DEBUG_NAN"},
                  {"inspect", "INSPECT"},
                  {"inspect-every", "INSPECT_EVERY"}};
    for (size_t i = 0; i < TUTTI_COUNT(params); i++) {
        /* What stands in the environment, parameters find themselves. */
        if (tutti__map_get(&job->flags, params[i].flag))
            tutti__param_set(params[i].param, strcmp(params[i].flag, "debug-nan") == 0
                                                  ? "1"
                                                  : tutti_flag_text(job, params[i].flag, NULL));
    }
    job->seed = (uint64_t)tutti_flag_int(job, "seed", 1);
    tutti__log_quieten(tutti_flag_on(job, "quiet"));
}

void tutti__flags_unread(tutti_job *job)
{
    bool say = !job->helped && !job->silent && !tutti_interrupted();
    for (size_t i = 0; i < job->flags.count && say; i++) {
        const given *found = job->flags.entries[i].value;
        const char *name = job->flags.entries[i].key;
        bool shows = strcmp(name, "quiet") == 0 || strcmp(name, "json") == 0;
        if (shows || atomic_load(&found->asked))
            continue;
        tutti_nearest nearest = {.word = name};
        if (found->meant[0])
            tutti__nearest_try(&nearest, found->meant);
        bool known = false; /* only not by this program, or not without another flag */
        for (size_t k = 0; found->pair && k < TUTTI_COUNT(settings); k++)
            known = known || strcmp(settings[k].name, name) == 0;
        for (size_t k = 0; found->pair && !known && k < TUTTI_COUNT(settings); k++)
            tutti__nearest_try(&nearest, settings[k].name);
        fprintf(stderr, "tutti: note: nothing has read --%s%s%s%s%s\n", found->pair ? "set " : "",
                name, nearest.found ? "; is '" : "", nearest.found ? nearest.found : "",
                nearest.found ? "' meant?" : "");
    }
}
