/* step.c: one training step. With an example's name: its own model, optimizer and compiled step, as
 * fit runs it, on a synthetic batch; from process start to the first one's end, and steady.
 * Without: the lecture's network as a session and as a tape. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/examples.h"
#include "bench/lecture.h"
#include "bench/process.h"
#include "bench/roofline.h"

#define WARM_STEPS 2
#define MOST_STEPS 100
#define MOST_SECONDS 5.0
#define GROUPS 20         /* of steps on a device that enqueues, of which the median counts */
#define GROUP_SECONDS 0.1 /* of one, about */
#define TIMED_STEPS 4     /* whose instructions are timed one by one */
#define TURNS 5           /* of session and tape */

typedef struct measurement {
    const tutti_bench_example *example;
    int64_t batch, steps; /* steps 0: as many as fit into MOST_SECONDS, at most MOST_STEPS */
    const char *precision;
    bool json, profiled;
    bool cold; /* the first step is all that is asked for, nothing tuned */
    int64_t done, timed;
    int64_t group, groups, left; /* steps of a group; groups done; steps left of the present one */
    double seconds[GROUPS];      /* of a step, by group */
    double first, memory, compiled; /* seconds, MiB, seconds */
    double planned, bound;          /* bytes of the steady step's arena */
    double began, last;             /* of the timed steps; of the present step */
    double best, sum;
    tutti_roofline *roofline;
    tutti_peak peak;
} measurement;

/* ---- the lecture's network by hand ---- */

typedef struct taped {
    tutti_tensor *images, *labels;
    tutti_eager *eager;
    tutti_lecture net;
} taped;

static void tape_step(void *context)
{
    taped *w = context;
    tutti_sym x = tutti_eager_feed(w->eager, w->images), y = tutti_eager_feed(w->eager, w->labels),
              loss;
    TUTTI_TAPE(tape, w->eager)
        loss = tutti__lecture_loss(&w->net, x, y);
    tutti_sym weights[] = {w->net.kernel, w->net.bias, w->net.w1, w->net.b1, w->net.w2, w->net.b2};
    tutti_grad grads[6];
    tutti_tape_gradients(&tape, loss, 6, weights, grads);
    tutti_apply_gradients(tutti_adam(), 6, weights, grads);
    tutti__bench_must(tutti_eager_step(w->eager));
}

/* The best step of each, in turns of some steps: a machine's slow moments fall on both. */
static void time_both(tutti_lecture_session *lecture, taped *w, int steps, double *ret_session,
                      double *ret_tape)
{
    int each = steps > TURNS ? steps / TURNS : 1;
    *ret_session = *ret_tape = INFINITY;
    for (int turn = 0; turn < TURNS; turn++) {
        *ret_session =
            fmin(*ret_session, tutti__best_seconds(each, 1, tutti__lecture_step, lecture));
        *ret_tape = fmin(*ret_tape, tutti__best_seconds(each, 1, tape_step, w));
    }
}

static void lecture_lines(int64_t batch, int steps, bool json)
{
    tutti_lecture_session lecture;
    tutti_session_info info;
    double session, tape;
    tutti__lecture_open(batch, NULL, &lecture);
    tutti__lecture_step(&lecture);
    tutti_session_describe(lecture.session, &info);
    tutti__report(json, &(tutti_result){"step", "compiling the training step",
                                        info.last_compile_seconds * 1e3, "ms", 5});
    taped w = {.images = lecture.images, .labels = lecture.labels};
    tutti__bench_must(tutti_eager_open(&w.eager));
    w.net = tutti__lecture_variables(tutti_eager_graph(w.eager));
    time_both(&lecture, &w, steps, &session, &tape);
    tutti__report(json, &(tutti_result){"step", "lecture network, session", session * 1e3, "ms"});
    tutti__report(json, &(tutti_result){"step", "lecture network, session", (double)batch / session,
                                        "samples/s"});
    tutti__report(json, &(tutti_result){"step", "the same with the tape, against the session",
                                        tape / session, "x", 1.15});
    tutti_eager_close(w.eager);
    tutti__lecture_close(&lecture);
}

/* ---- an example's step ---- */

static void report_example(const measurement *m)
{
    const char *name = m->example->name, *precision = m->precision ? m->precision : "f32";
    double flops = tutti__roofline_flops(m->roofline);
    double most = strcmp(precision, "bf16") == 0 ? m->peak.bf16_flops : m->peak.flops;
    double share = flops / m->best / most, speed = (double)m->batch / m->best;
    int64_t timed = m->timed;
    bool enqueues = tutti__roofline_enqueues(m->roofline);
    double mean = m->sum / (double)timed;
    double total = enqueues ? m->best : tutti__roofline_total(m->roofline);
    if (m->json)
        printf("{\"bench\":\"step\",\"work\":\"%s\",\"value\":%.6g,\"unit\":\"ms\",\"limit\":0,"
               "\"ok\":true,\"name\":\"%s\",\"batch\":%lld,\"precision\":\"%s\",\"threads\":%d,"
               "\"steps\":%lld,\"ms\":%.6g,\"mean_ms\":%.6g,\"undisturbed_ms\":%.6g,"
               "\"samples_per_second\":%.6g,"
               "\"share_of_peak\":%.4g,\"gflop\":%.6g,\"peak_gflops\":%.5g,\"peak_gbytes\":%.4g,"
               "\"compile_ms\":%.5g,\"first_step_ms\":%.5g,\"resident_mib\":%.5g,"
               "\"planned_bytes\":%.0f,\"bound_bytes\":%.0f,\"cpu\":\"%s\"}\n",
               name, m->best * 1e3, name, (long long)m->batch, precision, tutti__bench_threads(),
               (long long)timed, m->best * 1e3, mean * 1e3, total * 1e3, speed, share, flops * 1e-9,
               most * 1e-9, m->peak.bytes * 1e-9, m->compiled * 1e3, m->first * 1e3, m->memory,
               m->planned, m->bound, tutti__bench_cpu());
    else
        printf("step       %s, batch %lld, %s: %.4g ms (mean %.4g of %lld, undisturbed %.4g), "
               "%.5g samples/s, %.3g GFLOP, %.1f%% of %.4g GFLOP/s\n",
               name, (long long)m->batch, precision, m->best * 1e3, mean * 1e3, (long long)timed,
               total * 1e3, speed, flops * 1e-9, 100 * share, most * 1e-9);
}

/* What the step's values take beside the weights, against the most that is in use at once. */
static void report_memory(const measurement *m)
{
    char work[80];
    double mib = 1 << 20, ratio = m->bound > 0 ? m->planned / m->bound : 1;
    snprintf(work, sizeof work, "%s: planned for activations", m->example->name);
    tutti__report(m->json, &(tutti_result){"step", work, m->planned / mib, "MiB"});
    snprintf(work, sizeof work, "%s: most in use at once", m->example->name);
    tutti__report(m->json, &(tutti_result){"step", work, m->bound / mib, "MiB"});
    snprintf(work, sizeof work, "%s: planned against that", m->example->name);
    tutti__report(m->json, &(tutti_result){"step", work, ratio, "x", 1.1});
}

/* What is promised of the first step is promised of the lecture's. */
static void finish(measurement *m)
{
    const char *name = m->example->name;
    bool lecture = strcmp(name, "mnist") == 0;
    tutti__stand_in_set(NULL);
    if (tutti__roofline_enqueues(m->roofline))
        tutti__roofline_peak(m->roofline, &m->peak);
    else
        tutti__peak_raise(&m->peak, tutti__bench_threads());
    char first[80] = "process start to first finished step", memory[80] = "resident memory";
    if (!lecture) {
        snprintf(first, sizeof first, "%s: process start to first finished step", name);
        snprintf(memory, sizeof memory, "%s: resident memory", name);
    }
    tutti__report(m->json, &(tutti_result){"step", first, m->first * 1e3, "ms", lecture ? 60 : 0});
    tutti__report(m->json, &(tutti_result){"step", memory, m->memory, "MiB", lecture ? 64 : 0});
    report_memory(m);
    if (lecture && !m->profiled && !tutti__roofline_enqueues(m->roofline))
        lecture_lines(m->batch, (int)m->timed, m->json);
    if (m->profiled)
        tutti__roofline_report(m->roofline, name, &m->peak, m->json);
    report_example(m);
    tutti__roofline_close(m->roofline);
    fflush(stdout);
    exit(TUTTI_EXIT_OK); /* the example would go on to train and to evaluate */
}

/* What was tuned in earlier runs is in the folder TUTTI_CACHE; the caller names an empty one. */
static void finish_cold(const measurement *m)
{
    char work[80];
    snprintf(work, sizeof work, "%s: first run ever, process start to first finished step",
             m->example->name);
    tutti__report(m->json, &(tutti_result){"step", work, m->first * 1e3, "ms", 500});
    exit(TUTTI_EXIT_OK);
}

static void first_step_done(measurement *m, tutti_engine *engine)
{
    tutti_engine_stats stats;
    m->roofline = tutti__roofline_open(engine);
    tutti__roofline_wait(m->roofline);
    m->first = tutti__seconds_since_start();
    m->memory = tutti__resident_mib();
    if (m->cold)
        finish_cold(m);
    tutti__engine_stats(engine, &stats);
    m->compiled = stats.compile_seconds;
    m->best = INFINITY;
    if (!tutti__roofline_enqueues(m->roofline))
        tutti__peak_raise(&m->peak, tutti__bench_threads());
}

static void open_steady(measurement *m, tutti_engine *engine)
{
    tutti_engine_stats stats;
    tutti__engine_stats(engine, &stats);
    m->planned = (double)stats.arena_bytes;
    m->bound = (double)stats.arena_bound;
    tutti__roofline_close(m->roofline);
    m->roofline = tutti__roofline_open(engine);
}

static int by_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A device that enqueues: a step's return says nothing. Steps go in groups, each to the end of its
 * last one; the median of groups counts. Then, for a profile, some are timed instruction by
 * instruction. */
static void enqueued_step_done(measurement *m, tutti_engine *engine)
{
    int64_t warm = 4 * WARM_STEPS; /* compiled, tuned, recorded */
    if (m->done < warm || --m->left > 0)
        return;
    if (m->done == warm)
        open_steady(m, engine);
    tutti__roofline_wait(m->roofline);
    double now = tutti__seconds(), each = (now - m->began) / (double)(m->group ? m->group : 1);
    if (m->groups == GROUPS)
        finish(m);
    if (m->done > warm && m->group == 0) { /* one step, to know how many make a group */
        each = now - m->began;
        m->group = each < GROUP_SECONDS ? (int64_t)(GROUP_SECONDS / each) : 1;
        m->group = m->steps && m->steps < m->group * GROUPS ? 1 + m->steps / GROUPS : m->group;
    } else if (m->done > warm) {
        m->seconds[m->groups++] = each;
        m->timed += m->group;
        m->sum += each * (double)m->group;
    }
    m->left = m->group ? m->group : 1;
    if (m->groups == GROUPS) {
        qsort(m->seconds, GROUPS, sizeof *m->seconds, by_seconds);
        m->best = m->seconds[GROUPS / 2];
        if (!m->profiled)
            finish(m);
        tutti__roofline_time(m->roofline);
        m->left = TIMED_STEPS;
    }
    m->began = tutti__seconds();
}

static void step_done(void *context, tutti_engine *engine)
{
    measurement *m = context;
    double now = tutti__seconds();
    if (m->done++ == 0)
        first_step_done(m, engine);
    if (tutti__roofline_enqueues(m->roofline)) {
        enqueued_step_done(m, engine);
        return;
    }
    double seconds = m->done > 1 ? now - m->last : 0;
    int64_t timed = m->done - 1 - WARM_STEPS;
    if (timed == 0) { /* the program that runs from now on is compiled */
        open_steady(m, engine);
        m->began = tutti__seconds();
    }
    if (timed >= 0)
        tutti__roofline_step(m->roofline, seconds);
    if (timed > 0) {
        m->timed = timed;
        m->best = seconds < m->best ? seconds : m->best;
        m->sum += seconds;
        if (timed >= (m->steps ? m->steps : MOST_STEPS) ||
            (!m->steps && timed >= 3 && now - m->began > MOST_SECONDS))
            finish(m);
    }
    m->last = tutti__seconds();
}

/* The example runs with its flags; what is left of argv goes to it too. */
static int run_example(measurement *m, int argc, char **argv)
{
    tutti_stand_in stand_in = {.batch = m->batch, .step_done = step_done, .context = m};
    int code = tutti__bench_example_run(m->example, m->precision, &stand_in, 2, argc, argv);
    return code ? code : tutti__complain("%s ended before its steps were done", m->example->name);
}

static int run(int argc, char **argv, bool json)
{
    int64_t batch = 0;
    measurement m = {.json = json};
    if (!tutti__option_int(&argc, argv, "--batch", 1, 1 << 20, &batch) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 1 << 20, &m.steps))
        return TUTTI_EXIT_USAGE;
    if (argc < 2) {
        lecture_lines(batch ? batch : 64, m.steps ? (int)m.steps : MOST_STEPS, json);
        return TUTTI_EXIT_OK;
    }
    m.profiled = tutti__flag(&argc, argv, "--profile");
    m.cold = tutti__flag(&argc, argv, "--cold");
    tutti__option(&argc, argv, "--precision", &m.precision);
    if (!(m.example = tutti__bench_example(argv[1])))
        return TUTTI_EXIT_USAGE;
    m.batch = batch ? batch : m.example->batch;
    return run_example(&m, argc, argv);
}

const tutti_bench tutti_bench_step = {
    .name = "step",
    .summary = "one training step of an example, first and steady",
    .run = run,
};
