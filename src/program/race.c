/* race.c: see race.h. A rival runs once to warm up, then until its time is known; one that is far
 * behind in its first two runs drops out. Those that are close to the best after that run again,
 * side by side, round by round: the winner is who is ahead in most rounds, and not who ran in the
 * one moment in which the machine was fast, since the choice is kept for years. */
#include "program/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

enum {
    MOST_VIEWS = 16,
    RUNS = 6,
    MOST_ROUNDS = 15, /* of those that are close */
    LEAST_ROUNDS = 3,
    FAR_BEHIND = 4,
};
#define ENOUGH_NS 8000000  /* a rival is not run again after this long */
#define CLOSE_NS 400000000 /* for each that is close: no round begins after this */
#define CLOSE 1.4          /* times the best: a machine's speed may change by as much */
#define CLEARLY 1.03
#define MOST_BYTES (1 << 28) /* of a node that is tried: larger ones are decided by score */

typedef struct trial {
    tutti_kernel_call call;
    tutti_view inputs[MOST_VIEWS], outputs[MOST_VIEWS];
    tutti_tensor *tensors[2 * MOST_VIEWS];
    int tensor_count;
    int64_t bytes;
} trial;

/* Values between 0.5 and 1: no infinity, no number so small that it is slow. */
static void race_fill(tutti_tensor *tensor)
{
    size_t bytes =
        (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(tutti_tensor_dtype(tensor));
    memset(tutti_tensor_data(tensor), 0, bytes);
    if (tutti_tensor_dtype(tensor) == TUTTI_F32) {
        float *x = tutti_tensor_data(tensor);
        for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
            x[i] = 0.5f + (float)(i * 37 % 101) / 202.0f;
    }
}

static bool add_view(trial *t, const tutti_type *type, tutti_view *ret)
{
    tutti_tensor *tensor;
    int64_t count = tutti_type_count(type);
    if (count < 0 || count > MOST_BYTES / 8)
        return false;
    t->bytes += count * (int64_t)tutti_dtype_size(type->dtype);
    if (t->bytes > MOST_BYTES || type->handle || type->dtype == TUTTI_STRING ||
        tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor) != TUTTI_OK)
        return false;
    t->tensors[t->tensor_count++] = tensor;
    race_fill(tensor);
    *ret = (tutti_view){tutti_tensor_data(tensor), type->dtype, type->rank,
                        tutti_tensor_dims(tensor), NULL};
    return true;
}

static void trial_end(trial *t)
{
    for (int i = 0; i < t->tensor_count; i++)
        tutti_tensor_release(t->tensors[i]);
}

/* False when the node is of a kind that cannot be tried. */
static bool trial_begin(const tutti_device *device, const tutti_kernel_query *query, trial *t)
{
    const tutti_infer *node = &query->node;
    if (node->input_count > MOST_VIEWS || node->output_count > MOST_VIEWS)
        return false;
    bool ok = true;
    for (int i = 0; i < node->input_count && ok; i++)
        ok = add_view(t, &node->inputs[i], &t->inputs[i]);
    for (int i = 0; i < node->output_count && ok; i++)
        ok = add_view(t, &node->outputs[i], &t->outputs[i]);
    t->call = (tutti_kernel_call){.op = node->op,
                                  .name = node->name,
                                  .attrs = node->attrs,
                                  .attr_count = node->attr_count,
                                  .input_count = node->input_count,
                                  .output_count = node->output_count,
                                  .inputs = t->inputs,
                                  .outputs = t->outputs,
                                  .pool = device->pool,
                                  .deadline = INT64_MAX};
    return ok;
}

typedef struct runner {
    const tutti_kernel *kernel;
    void *plan, *workspace;
    int64_t shortest, spent; /* ns; shortest INT64_MAX: not known */
    int64_t least;           /* the first run counted */
    bool out, close;
    double behind[MOST_ROUNDS]; /* its time, times that of the fastest in the round */
} runner;

static runner runner_begin(const tutti_kernel *kernel, const tutti_kernel_query *query)
{
    runner r = {.kernel = kernel, .shortest = INT64_MAX, .least = INT64_MAX};
    r.out = kernel->prepare != NULL && kernel->prepare(query, &r.plan) != TUTTI_OK;
    size_t bytes = r.out ? 0 : tutti__kernel_workspace(kernel, query, r.plan);
    r.workspace = tutti__aligned_alloc(64, (bytes + 127) / 64 * 64);
    r.out = r.out || r.workspace == NULL;
    return r;
}

static void runner_end(runner *r)
{
    if (r->plan != NULL && r->kernel->discard != NULL)
        r->kernel->discard(r->plan);
    free(r->workspace);
}

/* The first run only warms up, unless it takes so long that there is no other. `least`: the least
 * time of any run so far. */
static void run_once(trial *t, runner *r, int round, int64_t *least)
{
    t->call.plan = r->plan;
    t->call.workspace = r->workspace;
    int64_t start = tutti__now_ns();
    bool failed = r->kernel->run(&t->call) != TUTTI_OK;
    int64_t time = tutti__now_ns() - start;
    r->spent += time;
    r->least = time < r->least ? time : r->least;
    *least = !failed && time < *least ? time : *least;
    r->out = failed || (round == 1 && r->least / FAR_BEHIND > *least);
    if (failed)
        r->shortest = INT64_MAX;
    else if ((round > 0 || r->spent >= ENOUGH_NS) && time < r->shortest)
        r->shortest = time;
}

static void run_all(trial *t, int count, runner *runners)
{
    int64_t least = INT64_MAX;
    for (int round = 0; round <= RUNS; round++)
        for (int i = 0; i < count; i++)
            if (!runners[i].out && runners[i].spent < ENOUGH_NS)
                run_once(t, &runners[i], round, &least);
    for (int i = 0; i < count; i++)
        runners[i].close = !runners[i].out && (double)runners[i].shortest < CLOSE * (double)least;
}

static int count_close(int count, const runner *runners)
{
    int close = 0;
    for (int i = 0; i < count; i++)
        close += runners[i].close && !runners[i].out;
    return close;
}

static void run_round(trial *t, int count, runner *runners, int round)
{
    int64_t fastest = INT64_MAX, times[TUTTI_RACE_RIVALS] = {0};
    for (int k = 0; k < count; k++) {
        int i = round % 2 ? count - 1 - k : k; /* who follows whom changes */
        runner *r = &runners[i];
        int64_t before = r->spent, ignored = INT64_MAX;
        if (!r->close || r->out)
            continue;
        run_once(t, r, RUNS + 1, &ignored);
        times[i] = r->spent - before;
        fastest = times[i] < fastest ? times[i] : fastest;
    }
    for (int i = 0; i < count; i++)
        if (runners[i].close && !runners[i].out)
            runners[i].behind[round] = (double)times[i] / (double)(fastest > 0 ? fastest : 1);
}

/* Returns how many rounds there were. */
static int run_close(trial *t, int count, runner *runners)
{
    int64_t until = tutti__now_ns() + CLOSE_NS * count_close(count, runners);
    int round = 0;
    while (count_close(count, runners) > 1 && round < MOST_ROUNDS &&
           (round < LEAST_ROUNDS || tutti__now_ns() < until))
        run_round(t, count, runners, round++);
    return round;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double typically_behind(runner *r, int rounds)
{
    qsort(r->behind, (size_t)rounds, sizeof *r->behind, by_size);
    return rounds > 0 ? r->behind[(rounds - 1) / 2] : 1;
}

/* Of those that are close, who is least behind; -1 when none could be run. Whoever bids less than
 * the first must be clearly ahead of him. */
static int find_winner(int count, runner *runners, int rounds)
{
    int winner = -1;
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        double behind =
            runners[i].close && !runners[i].out ? typically_behind(&runners[i], rounds) : INFINITY;
        if (behind < (winner == 0 ? least / CLEARLY : least)) {
            winner = i;
            least = behind;
        }
    }
    return winner;
}

const tutti_kernel *tutti__race(const tutti_device *device, const tutti_kernel_query *query,
                                const tutti_kernel *const *rivals, int count, int64_t *ret_ns)
{
    runner runners[TUTTI_RACE_RIVALS];
    const tutti_kernel *winner = NULL;
    trial t = {0};
    *ret_ns = INT64_MAX;
    if (trial_begin(device, query, &t)) {
        for (int i = 0; i < count; i++)
            runners[i] = runner_begin(rivals[i], query);
        run_all(&t, count, runners);
        int best = find_winner(count, runners, run_close(&t, count, runners));
        if (best >= 0) {
            winner = rivals[best];
            *ret_ns = runners[best].shortest;
        }
        for (int i = 0; i < count; i++)
            runner_end(&runners[i]);
    }
    trial_end(&t);
    return winner;
}
