/* forecast.c: what was predicted of a training step before it was taken, against what it took: time
 * and memory. Every example on one device of one and of two threads, mirrored on two, and on two
 * workers of one thread each; each in processes of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "bench/examples.h"
#include "bench/roofline.h"
#include "nn/forecast.h"

#define MOST_SECONDS 3.0
enum { WARM_STEPS = 3, LEAST_STEPS = 8, MOST_STEPS = 200 };

static const char usage[] =
    "usage: tutti bench forecast [EXAMPLE] [--rounds N]\n"
    "       tutti bench forecast EXAMPLE --one [FLAGS]\n"
    "\n"
    "Predicted step time and memory against measured ones, as tutti bench step measures: each\n"
    "instruction's least over the steps. --one: in this process, as its flags and its job say.\n"
    "  --rounds N   each in so many processes; the best of them counts; default 3\n"
    "  --steps N    with --one: so many are timed; else what fits into 3 s\n";

/* ---- in one process ---- */

typedef struct measurement {
    const tutti_bench_example *example;
    tutti_plan *plan;         /* of the step */
    tutti_strategy *strategy; /* of the program that is measured, or NULL */
    tutti_forecast forecast;
    bool known;
    int64_t before;  /* bytes in use before the plan had run, without its variables */
    double fed;      /* bytes of a batch */
    int done, steps; /* steps: that are timed */
    int64_t given;   /* so many; 0: by the time that they take */
    double last, best;
    tutti_roofline *roofline;
} measurement;

/* The last plan before the measurement that is fed and updates something is the training step: in a
 * loop of one's own the first one also makes the variables. */
static void plan_made(void *context, tutti_plan *plan, tutti_run *run, tutti_tensor *const *values)
{
    measurement *m = context;
    tutti_rehearsal rehearsal;
    tutti_reach reach;
    bool fed = plan->piece_count > 0 && plan->pieces[0].parameter_count > 0;
    if (m->done >= WARM_STEPS || !fed || plan->updated.count == 0)
        return;
    tutti__plan_release(m->plan);
    m->plan = tutti__plan_retain(plan);
    m->known = true;
    m->before = tutti__memory_now();
    m->strategy = tutti__engine_strategy(run->owner);
    tutti__bench_must(tutti__reach_of(m->strategy, true, &reach));
    tutti__bench_must(tutti__plan_rehearse(plan, run, values, &rehearsal));
    tutti__bench_must(tutti__forecast(&rehearsal, &reach, 1, &m->forecast));
    tutti_usage planned = tutti__plan_usage(plan);
    m->fed = (double)(rehearsal.usage.data - planned.data);
    tutti__rehearsal_free(&rehearsal);
    tutti__bench_must(tutti__forecast_join(m->strategy, &m->forecast));
    double steps = m->forecast.step > 0 ? MOST_SECONDS / m->forecast.step : LEAST_STEPS;
    m->steps = m->given > 0 ? (int)m->given : (int)fmin(fmax(steps, LEAST_STEPS), MOST_STEPS);
}

/* Variables as they lie in memory. */
static double state_bytes(tutti_engine *engine)
{
    double bytes = 0;
    tutti_state *state = tutti__engine_state(engine);
    for (size_t i = 0; tutti__state_at(state, i); i++) {
        const tutti_state_variable *variable = tutti__state_at(state, i);
        for (size_t k = 0; k < variable->pieces.count; k++)
            if (variable->pieces.data[k]->value)
                bytes += (double)variable->pieces.data[k]->value->buffer->size;
    }
    return bytes;
}

static void finish(const measurement *m, tutti_engine *engine)
{
    int local = m->strategy ? tutti_strategy_local(m->strategy) : 1;
    double memory = (double)(tutti__memory_most() - m->before) + state_bytes(engine) + m->fed;
    double measured = tutti__roofline_total(m->roofline);
    if (tutti_strategy_rank(m->strategy) == 0)
        printf("{\"bench\":\"forecast\",\"work\":\"%s\",\"predicted_ms\":%.6g,"
               "\"measured_ms\":%.6g,\"best_ms\":%.6g,\"exposed_ms\":%.6g,\"predicted_mib\":%.6g,"
               "\"measured_mib\":%.6g}\n",
               m->example->name, m->forecast.step * 1e3, measured * 1e3, m->best * 1e3,
               m->forecast.exposed * 1e3, m->forecast.total * local / 0x1p20, memory / 0x1p20);
    fflush(stdout);
    if (m->strategy && m->strategy->team->world) /* all of them have come so far */
        tutti__bench_must(tutti_comm_close(m->strategy->team->world));
    exit(TUTTI_EXIT_OK); /* the example would go on to train */
}

static void step_done(void *context, tutti_engine *engine)
{
    measurement *m = context;
    double now = tutti__seconds();
    m->done++;
    if (!m->known)
        tutti__bench_must(tutti_fail(TUTTI_INTERNAL, "a step ran that nobody saw compiled"));
    if (m->done == WARM_STEPS) {
        m->roofline = tutti__roofline_of(tutti__plan_retain(m->plan));
        m->best = INFINITY;
        tutti__memory_mark();
    }
    if (m->done >= WARM_STEPS)
        tutti__roofline_step(m->roofline, m->done == WARM_STEPS ? 0
                                          : m->example->between ? -1
                                                                : now - m->last);
    if (m->done > WARM_STEPS)
        m->best = fmin(m->best, now - m->last);
    if (m->done >= WARM_STEPS + m->steps)
        finish(m, engine);
    m->last = tutti__seconds();
}

static int measure(const tutti_bench_example *example, int64_t steps, int argc, char **argv)
{
    measurement m = {.example = example, .given = steps};
    tutti_stand_in stand_in = {
        .batch = example->batch, .step_done = step_done, .context = &m, .plan_made = plan_made};
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
};
#define FORMS (sizeof forms / sizeof *forms)
/* The first forms, of one device: where other work stands between two steps, further devices sleep
 * meanwhile, and their waking is no part of a step. */
enum { ALONE = 2 };

typedef struct figures {
    double predicted, measured, predicted_memory, measured_memory; /* ms, MiB */
} figures;

static double number(const char *line, const char *name)
{
    char key[48];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

static bool ask(const char *example, const struct form *form, figures *ret)
{
    char self[1024], command[3000], line[1024];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    bool found = false;
    self[size > 0 ? size : 0] = 0;
    snprintf(command, sizeof command, "'%s' %s%s%s%s bench forecast %s --one %s", self,
             form->before, form->before[0] ? "'" : "", form->before[0] ? self : "",
             form->before[0] ? "'" : "", example, form->after);
    FILE *child = popen(command, "r");
    while (child && fgets(line, sizeof line, child))
        if (strstr(line, "\"bench\":\"forecast\"")) {
            *ret = (figures){number(line, "predicted_ms"), number(line, "measured_ms"),
                             number(line, "predicted_mib"), number(line, "measured_mib")};
            found = true;
        }
    return child && pclose(child) == 0 && found;
}

static void report(bool json, const char *example, const char *form, const char *what,
                   const char *unit, double predicted, double measured, double limit)
{
    char work[120];
    snprintf(work, sizeof work, "%s, %s: %s %.4g for %.4g %s", example, form, what, predicted,
             measured, unit);
    tutti__report(json, &(tutti_result){.bench = "forecast",
                                        .work = work,
                                        .value = 100 * fabs(predicted / measured - 1),
                                        .unit = "% off",
                                        .limit = limit});
}

/* The least disturbed rounds of both sides count. */
static bool compare(const char *example, const struct form *form, int64_t rounds, bool json)
{
    figures best = {INFINITY, INFINITY, 0, 0};
    for (int64_t i = 0; i < rounds; i++) {
        figures f;
        if (!ask(example, form, &f)) {
            tutti__complain("forecast: %s, %s did not run", example, form->name);
            return false;
        }
        best = (figures){fmin(best.predicted, f.predicted), fmin(best.measured, f.measured),
                         f.predicted_memory, f.measured_memory};
    }
    report(json, example, form->name, "time", "ms", best.predicted, best.measured, 15);
    report(json, example, form->name, "memory", "MiB", best.predicted_memory, best.measured_memory,
           5);
    return true;
}

static int run(int argc, char **argv, bool json)
{
    int64_t rounds = 3, steps = 0;
    bool one = tutti__flag(&argc, argv, "--one"), ok = true;
    if (tutti__flag(&argc, argv, "--help"))
        return printf("%s", usage), TUTTI_EXIT_OK;
    if (!tutti__option_int(&argc, argv, "--rounds", 1, 100, &rounds) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 100000, &steps))
        return TUTTI_EXIT_USAGE;
    const tutti_bench_example *example = argc > 1 ? tutti__bench_example(argv[1]) : NULL;
    if ((argc > 1 && !example) || (one && !example))
        return TUTTI_EXIT_USAGE;
    if (one)
        return measure(example, steps, argc, argv);
    for (size_t i = 0; tutti__bench_example_at(i); i++)
        for (size_t f = 0; f < FORMS; f++)
            if ((!example || tutti__bench_example_at(i) == example) &&
                (f < ALONE || !tutti__bench_example_at(i)->between))
                ok &= compare(tutti__bench_example_at(i)->name, &forms[f], rounds, json);
    return ok ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

const tutti_bench tutti_bench_forecast = {
    .name = "forecast",
    .summary = "predicted step time and memory of every example, against measured",
    .run = run,
};
