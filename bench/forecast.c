/* forecast.c: what was predicted of a training step before it was taken, against what it took: time
 * and memory. Every example on one device of one and of two threads, mirrored on two, and on two
 * workers of one thread each; each in processes of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/params.h"
#include "base/pool.h"
#include "bench/examples.h"
#include "bench/roofline.h"
#include "device/cpu/frame.h"
#include "nn/training/forecast_model.h"

/* As long and as often as a rehearsal plays (device/cpu/rehearse.c): on a machine that is faster at
 * times, whoever looks longer finds less. */
#define MOST_SECONDS 0.3
#define TIME_LIMIT 15.0 /* percent */
#define MEMORY_LIMIT 5.0
enum { WARM_STEPS = 3, LEAST_STEPS = 4, MOST_STEPS = 48, MOST_ROUNDS = 100 };

static const char usage[] =
    "usage: tutti bench forecast [EXAMPLE] [--rounds N]\n"
    "       tutti bench forecast EXAMPLE --one [FLAGS]\n"
    "\n"
    "Predicted step time and memory against measured ones, as tutti bench step measures: each\n"
    "instruction's least over the steps. --one: in this process, as its flags and its job say.\n"
    "  --rounds N   each in so many processes, whose median counts, default 5; in three times\n"
    "               as many, at most 100, where that is off by more than 15 %\n"
    "  --steps N    with --one: so many are timed; else what fits into 0.3 s\n"
    "  --profile    with --one: instruction by instruction\n";

/* ---- in one process ---- */

enum { PROGRAMS = 4 };

/* A program that trains; an example may have several, which take turns. */
typedef struct program {
    tutti_plan *plan;
    tutti_forecast forecast;
    int64_t before, most;   /* bytes in use, without its variables before it ran, and with all */
    double fed;             /* bytes of a batch */
    tutti_timed_list timed; /* of the first device */
    tutti_roofline *roofline;
} program;

typedef struct measurement {
    const tutti_bench_example *example;
    program programs[PROGRAMS];
    int count, warm, threads;
    tutti_forecast_past past;
    bool profile;
    tutti_strategy *strategy; /* of the programs, or NULL */
    int done, steps;          /* steps: that are timed */
    int64_t given;            /* so many; 0: by the time that they take */
    double last, best;
} measurement;

/* Of the plan's variables, as they lie in memory. */
static int64_t state_bytes(const tutti_plan *plan)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->piece_count; i++) {
        if (strcmp(plan->pieces[i].device->target->name, "cpu") != 0)
            continue;
        const tutti_program *p = ((tutti_cpu_executable *)plan->pieces[i].executable)->program;
        for (int v = 0; v < p->variable_count; v++) {
            const tutti_piece *piece = p->variables[v].piece,
                              *first = piece->variable->pieces.data[0];
            if (piece->value && (piece == first || piece->value != first->value))
                bytes += (int64_t)piece->value->buffer->size;
        }
    }
    return bytes;
}

#define WAKING_SECONDS 0.25

static void spin(void *context, int64_t index)
{
    TUTTI_UNUSED(index);
    while (tutti__seconds() < *(const double *)context)
        ;
}

/* A virtual machine whose CPUs were idle runs them on halves of one core, until its host has moved
 * them apart; a rehearsal would be over by then, and the steps would be faster. */
static void wake_up(int threads)
{
    double until = tutti__seconds() + WAKING_SECONDS;
    tutti_pool *pool;
    tutti__bench_must(tutti__pool_create(threads, -1, &pool));
    tutti__pool_run(pool, threads, spin, &until);
    tutti__pool_destroy(pool);
}

/* Its forecast's seconds. */
static double add_program(measurement *m, const tutti_made *made)
{
    tutti_plan *plan = made->plan;
    int at = 0; /* the place of a program that this one replaces, or a new one */
    while (at < m->count && tutti__plan_updates(m->programs[at].plan) != tutti__plan_updates(plan))
        at++;
    if (at == PROGRAMS)
        return 0;
    program *p = &m->programs[at];
    m->count = at == m->count ? at + 1 : m->count;
    tutti__plan_release(p->plan);
    tutti_rehearsal rehearsal;
    tutti_forecast_reach reach;
    *p = (program){.plan = tutti__plan_retain(plan),
                   .before = tutti__memory_now() - state_bytes(plan)};
    m->strategy = tutti__engine_strategy(made->run->owner);
    made->run->between = tutti__forecast_between(&m->past, made);
    tutti__bench_must(tutti__reach_of(m->strategy, true, &reach));
    wake_up(m->threads);
    tutti__bench_must(tutti__plan_rehearse(plan, made->run, made->values, &rehearsal));
    tutti__bench_must(tutti__forecast(&rehearsal, &reach, 1, &p->forecast));
    tutti_usage planned = tutti__plan_usage(plan);
    p->fed = (double)(rehearsal.usage.data - planned.data);
    p->timed = rehearsal.devices[0];
    rehearsal.devices[0] = (tutti_timed_list){0};
    tutti__rehearsal_free(&rehearsal);
    tutti__bench_must(tutti__forecast_join(m->strategy, &p->forecast));
    double steps = p->forecast.step > 0 ? MOST_SECONDS / p->forecast.step : LEAST_STEPS;
    steps = fmin(fmax(steps, LEAST_STEPS), MOST_STEPS);
    m->steps = m->given > 0 ? (int)m->given : (int)fmax(steps, m->steps);
    tutti__memory_mark();
    return p->forecast.step;
}

/* A new plan's memory is none of those before it. */
static void plan_made(void *context, const tutti_made *made)
{
    measurement *m = context;
    if (m->done >= m->warm)
        return;
    for (int i = 0; i < m->count; i++)
        if (m->programs[i].most == 0)
            m->programs[i].most = tutti__memory_most();
    double step = tutti__plan_is_steady(made->run->state, made->plan) ? add_program(m, made) : 0;
    if (made->plan->trains)
        tutti__forecast_note(&m->past, made, step);
}

static void print_program(const measurement *m, int which)
{
    const program *p = &m->programs[which];
    int local = m->strategy ? tutti_strategy_local(m->strategy) : 1;
    int64_t most = p->most ? p->most : tutti__memory_most();
    double memory = (double)(most - p->before) + p->fed;
    bool known = !m->example->fed_aside; /* others' memory comes and goes meanwhile */
    char name[64];
    snprintf(name, sizeof name, which == 0 ? "%s" : "%s (program %d)", m->example->name, which + 1);
    printf("{\"bench\":\"forecast\",\"work\":\"%s\",\"predicted_ms\":%.6g,"
           "\"measured_ms\":%.6g,\"best_ms\":%.6g,\"exposed_ms\":%.6g,\"predicted_mib\":%.6g,"
           "\"measured_mib\":%.6g}\n",
           name, p->forecast.step * 1e3, tutti__roofline_total(p->roofline) * 1e3, m->best * 1e3,
           p->forecast.exposed * 1e3, p->forecast.total * local / 0x1p20,
           known ? memory / 0x1p20 : 0);
}

static void print_profile(const program *p)
{
    printf("%10s %10s us\n", "predicted", "measured");
    for (size_t i = 0; i < p->timed.count; i++) {
        const tutti_node *node = p->timed.data[i].node;
        printf("%10.2f %10.2f %s %s %s\n", 1e6 * p->timed.data[i].seconds,
               1e6 * tutti__roofline_instruction(p->roofline, i), node ? node->op->name : "copy",
               node ? node->name : "", p->timed.data[i].skipped ? "(left out)" : "");
    }
}

static void finish(const measurement *m)
{
    for (int i = 0; i < m->count && tutti_strategy_rank(m->strategy) == 0; i++) {
        if (m->profile)
            print_profile(&m->programs[i]);
        print_program(m, i);
    }
    fflush(stdout);
    if (m->strategy && m->strategy->axis_group->world) /* all of them have come so far */
        tutti__bench_must(tutti_comm_close(m->strategy->axis_group->world));
    exit(TUTTI_EXIT_OK); /* the example would go on to train */
}

static void step_done(void *context, tutti_engine *engine)
{
    measurement *m = context;
    double now = tutti__seconds();
    TUTTI_UNUSED(engine);
    m->done++;
    if (m->done == m->warm) {
        if (m->count == 0)
            tutti__bench_must(tutti_fail(TUTTI_INTERNAL, "a step ran that nobody saw compiled"));
        for (int i = 0; i < m->count; i++)
            m->programs[i].roofline = tutti__roofline_of(tutti__plan_retain(m->programs[i].plan));
        m->best = INFINITY;
        tutti__memory_mark();
    }
    for (int i = 0; m->done >= m->warm && i < m->count; i++)
        tutti__roofline_step(m->programs[i].roofline, m->done == m->warm    ? 0
                                                      : m->example->between ? -1
                                                                            : now - m->last);
    if (m->done > m->warm)
        m->best = fmin(m->best, now - m->last);
    if (m->done >= m->warm + m->steps)
        finish(m);
    m->last = tutti__seconds();
}

static int measure(const tutti_bench_example *example, int64_t steps, bool profile, int argc,
                   char **argv)
{
    measurement m = {.example = example,
                     .given = steps,
                     .profile = profile,
                     .threads = 1,
                     .warm = example->warm > 0 ? example->warm : WARM_STEPS};
    tutti_stand_in stand_in = {
        .batch = example->batch, .step_done = step_done, .context = &m, .plan_made = plan_made};
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--threads") == 0)
            m.threads = atoi(argv[i + 1]);
    int code = tutti__bench_example_run(example, NULL, &stand_in, 2, argc, argv);
    return code ? code : tutti__complain("%s ended before its steps were done", example->name);
}

/* ---- all of them, each in its own processes ---- */

static const struct form {
    const char *name, *before, *after;
} forms[] = {
    {"1 device, 1 thread", "", "--strategy one_device --threads 1"},
    {"1 device, 2 threads", "", "--strategy one_device --threads 2"},
    {"mirrored on 2", "", "--strategy mirrored --devices cpu:0,cpu:1 --threads 2"},
    {"central storage on 2", "", "--strategy central_storage --devices cpu:0,cpu:1 --threads 2"},
    {"2 workers, shm", "run -n 2 --engine shm ", "--threads 1"},
    {"2 workers, tcp", "run -n 2 --engine tcp ", "--threads 1"},
};
#define FORMS (sizeof forms / sizeof *forms)

/* Of one program: ms, MiB. */
typedef struct figures {
    char name[64];
    double predicted, measured, predicted_memory, measured_memory;
} figures;

static double number(const char *line, const char *name)
{
    char key[48];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

static void read_figures(const char *line, figures *ret)
{
    const char *work = strstr(line, "\"work\":\"");
    *ret = (figures){.predicted = number(line, "predicted_ms"),
                     .measured = number(line, "measured_ms"),
                     .predicted_memory = number(line, "predicted_mib"),
                     .measured_memory = number(line, "measured_mib")};
    if (work)
        snprintf(ret->name, sizeof ret->name, "%.*s", (int)strcspn(work + 8, "\""), work + 8);
}

/* How many programs it has; 0: it did not run. */
static int ask(const char *example, const struct form *form, figures ret[PROGRAMS])
{
    char self[1024], command[3000], line[1024];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    int found = 0;
    self[size > 0 ? size : 0] = 0;
    snprintf(command, sizeof command, "'%s' %s%s%s%s bench forecast %s --one %s", self,
             form->before, form->before[0] ? "'" : "", form->before[0] ? self : "",
             form->before[0] ? "'" : "", example, form->after);
    FILE *child = popen(command, "r");
    while (child && fgets(line, sizeof line, child))
        if (strstr(line, "\"bench\":\"forecast\"") && found < PROGRAMS)
            read_figures(line, &ret[found++]);
    return child && pclose(child) == 0 ? found : 0;
}

static void report(bool json, const char *example, const char *form, const char *what,
                   const char *unit, double predicted, double measured, double limit)
{
    char work[200];
    snprintf(work, sizeof work, "%.63s, %s: %s %.4g for %.4g %s", example, form, what, predicted,
             measured, unit);
    tutti__report(json, &(tutti_result){.bench = "forecast",
                                        .work = work,
                                        .value = 100 * fabs(predicted / measured - 1),
                                        .unit = "% off",
                                        .limit = limit});
}

/* The rounds of one example in one form. */
typedef struct comparison {
    const char *example;
    const struct form *form;
    figures all[PROGRAMS][MOST_ROUNDS];
    double ratios[PROGRAMS][MOST_ROUNDS];
    int programs;
    int64_t count;
} comparison;

/* A round predicts and measures at about the same time. */
static bool take_rounds(comparison *c, int64_t more)
{
    figures f[PROGRAMS];
    for (int64_t i = c->count; i < c->count + more; i++) {
        int found = ask(c->example, c->form, f);
        if (found == 0 || (i > 0 && found != c->programs))
            return tutti__complain("forecast: %s, %s did not run", c->example, c->form->name),
                   false;
        for (int k = 0; k < found; k++) {
            c->all[k][i] = f[k];
            c->ratios[k][i] = f[k].predicted / f[k].measured;
        }
        c->programs = found;
    }
    c->count += more;
    return true;
}

static const figures *middle_of(const comparison *c, int k)
{
    return &c->all[k][tutti__bench_middle(c->ratios[k], c->count)];
}

static bool within_limit(const comparison *c)
{
    for (int k = 0; k < c->programs; k++)
        if (fabs(middle_of(c, k)->predicted / middle_of(c, k)->measured - 1) > TIME_LIMIT / 100)
            return false;
    return true;
}

/* The median of the rounds counts; of three times as many where it is beyond the limit, since a
 * machine that others use too is slower for seconds at a time. */
static bool compare(const char *example, const struct form *form, int64_t count, bool json)
{
    comparison c = {.example = example, .form = form};
    if (!take_rounds(&c, count))
        return false;
    int64_t more = count * 3 <= MOST_ROUNDS ? count * 2 : MOST_ROUNDS - count;
    if (!within_limit(&c) && !take_rounds(&c, more))
        return false;
    for (int k = 0; k < c.programs; k++) {
        const figures *middle = middle_of(&c, k);
        report(json, middle->name, form->name, "time", "ms", middle->predicted, middle->measured,
               TIME_LIMIT);
        if (middle->measured_memory > 0)
            report(json, middle->name, form->name, "memory", "MiB", middle->predicted_memory,
                   middle->measured_memory, MEMORY_LIMIT);
    }
    return true;
}

static int run(int argc, char **argv, bool json)
{
    int64_t rounds = 5, steps = 0;
    bool one = tutti__flag(&argc, argv, "--one"), ok = true;
    bool profile = tutti__flag(&argc, argv, "--profile");
    if (tutti__flag(&argc, argv, "--help"))
        return printf("%s", usage), TUTTI_EXIT_OK;
    if (!tutti__option_int(&argc, argv, "--rounds", 1, MOST_ROUNDS, &rounds) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 100000, &steps))
        return TUTTI_EXIT_USAGE;
    const tutti_bench_example *example = argc > 1 ? tutti__bench_example(argv[1]) : NULL;
    if ((argc > 1 && !example) || (one && !example))
        return TUTTI_EXIT_USAGE;
    if (one) /* what a kernel took with another device's help says nothing of the kernel */
        tutti__bench_must(tutti__param_set("HELP", "0"));
    if (one)
        return measure(example, steps, profile, argc, argv);
    for (size_t i = 0; tutti__bench_example_at(i); i++)
        for (size_t f = 0; f < FORMS; f++)
            if (!example || tutti__bench_example_at(i) == example)
                ok &= compare(tutti__bench_example_at(i)->name, &forms[f], rounds, json);
    return ok ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

const tutti_bench tutti_bench_forecast = {
    .name = "forecast",
    .summary = "predicted step time and memory of every example, against measured",
    .run = run,
};
