/* race.c: see race.h. A rival runs once to warm up, then until its time is known; one that is far
 * behind in its first two runs drops out. Those that are close to the best after that, with few
 * runs because each is long, run more often: one disturbed run must not decide for years. */
#include "program/race.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

enum {
    MOST_VIEWS = 16,
    RUNS = 6,
    CLOSE_RUNS = 15,
    FAR_BEHIND = 4,
};
#define ENOUGH_NS 8000000    /* a rival is not run again after this long */
#define CLOSE_NS 400000000   /* nor one that is close after this */
#define CLOSE 1.25           /* times the best */
#define MOST_BYTES (1 << 28) /* of a node that is tried: larger ones are decided by score */

typedef struct trial {
    tutti_call call;
    tutti_view inputs[MOST_VIEWS], outputs[MOST_VIEWS];
    tutti_tensor *tensors[2 * MOST_VIEWS];
    int tensor_count;
    int64_t bytes;
} trial;

/* Values between 0.5 and 1: no infinity, no number so small that it is slow. */
static void fill(tutti_tensor *tensor)
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
    fill(tensor);
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
    t->call = (tutti_call){.op = node->op,
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
    int runs;
    bool out;
} runner;

static runner runner_begin(const tutti_kernel *kernel, const tutti_kernel_query *query)
{
    runner r = {.kernel = kernel, .shortest = INT64_MAX, .least = INT64_MAX};
    size_t bytes = kernel->workspace == NULL ? 0 : kernel->workspace(query);
    r.workspace = tutti__aligned_alloc(64, (bytes + 127) / 64 * 64);
    r.out = r.workspace == NULL ||
            (kernel->prepare != NULL && kernel->prepare(query, &r.plan) != TUTTI_OK);
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
    r->runs++;
    r->least = time < r->least ? time : r->least;
    *least = !failed && time < *least ? time : *least;
    r->out = failed || (round == 1 && r->least / FAR_BEHIND > *least);
    if (failed)
        r->shortest = INT64_MAX;
    else if ((round > 0 || r->spent >= ENOUGH_NS) && time < r->shortest)
        r->shortest = time;
}

static bool is_close(const runner *r, int64_t least)
{
    return !r->out && (double)r->shortest < CLOSE * (double)least && r->spent < CLOSE_NS;
}

static void run_close(trial *t, int count, runner *runners, int64_t *least)
{
    for (int runs = 2; runs <= CLOSE_RUNS; runs++) {
        int close = 0;
        for (int i = 0; i < count; i++)
            close += is_close(&runners[i], *least);
        for (int i = 0; i < count && close > 1; i++)
            if (is_close(&runners[i], *least) && runners[i].runs < runs)
                run_once(t, &runners[i], runs, least);
    }
}

static void run_all(trial *t, int count, runner *runners)
{
    int64_t least = INT64_MAX;
    for (int round = 0; round <= RUNS; round++)
        for (int i = 0; i < count; i++)
            if (!runners[i].out && runners[i].spent < ENOUGH_NS)
                run_once(t, &runners[i], round, &least);
    run_close(t, count, runners, &least);
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
        for (int i = 0; i < count; i++) {
            if (runners[i].shortest < *ret_ns) {
                *ret_ns = runners[i].shortest;
                winner = rivals[i];
            }
            runner_end(&runners[i]);
        }
    }
    trial_end(&t);
    return winner;
}
