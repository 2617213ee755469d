/* staleness.c: what parameter servers make of the lecture's network when gradients are old, workers
 * slow or numerous. Shards and consistencies are the store's own, gradients are computed; only time
 * is imagined, so that the figures are those of the settings and not of this machine's load. Every
 * line is one run of one seed: bench/staleness.py draws them.
 *
 *  staleness     16 by turns: a gradient is as old as there are other workers; with and without
 * 1/tau backup        ten workers, of whom one in ten is ten times slower in each step: sync waits
 * for all, sync:backup=b drops the b last ones straggler     four workers, one always ten times
 * slower: async, ssp, sync; the pace until ssp's bound and after it */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/lecture.h"
#include "io/json.h"
#include "service/store/shard.h"
#include "tutti/data.h"

enum { BATCH = 32, IMAGES = 6000, TESTS = 1000, WORKERS = 32, PARTS = 6 };

typedef struct stale_network {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym flat, x, y, gradient, loss, right;
    int64_t count; /* of parameters */
    tutti_tensor *images, *labels, *test_images, *test_labels;
    float *first; /* values at the start of a seed */
} stale_network;

static const int64_t part_dims[PARTS][4] = {{3, 3, 1, 32}, {32}, {5408, 64}, {64}, {64, 10}, {10}};
static const int part_ranks[PARTS] = {4, 1, 2, 1, 2, 1};

static int64_t part_count(int i)
{
    int64_t count = 1;
    for (int d = 0; d < part_ranks[i]; d++)
        count *= part_dims[i][d];
    return count;
}

static tutti_sym part_of(tutti_sym flat, int i, int64_t begin)
{
    tutti_sym part = tutti_slice_axis(flat, 0, begin, begin + part_count(i));
    tutti_type type = tutti_type_make(TUTTI_F32, part_ranks[i], part_dims[i]);
    return (tutti_reshape)(part, type.rank, type.dims);
}

static void network_open(stale_network *n)
{
    *n = (stale_network){0};
    tutti__bench_must(tutti_digits_draw(1, 0, IMAGES, &n->images, &n->labels));
    tutti__bench_must(tutti_digits_draw(2, 0, TESTS, &n->test_images, &n->test_labels));
    for (int i = 0; i < PARTS; i++)
        n->count += part_count(i);
    n->first = malloc((size_t)n->count * sizeof *n->first);
    tutti__bench_must(tutti_graph_create(&n->graph));
    n->flat = tutti_placeholder(n->graph, TUTTI_F32, n->count);
    n->x = tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY, 28, 28, 1);
    n->y = tutti_placeholder(n->graph, TUTTI_I64, TUTTI_ANY);
    tutti_sym parts[PARTS];
    int64_t begin = 0;
    for (int i = 0; i < PARTS; i++, begin += part_count(i - 1))
        parts[i] = part_of(n->flat, i, begin);
    tutti_sym h = tutti_relu(tutti_add(tutti_nn_conv2d(n->x, parts[0]), parts[1]));
    h = tutti_nn_flatten(tutti_nn_max_pool2d(h, .pool_size = {2, 2}));
    h = tutti_relu(tutti_add(tutti_matmul(h, parts[2]), parts[3]));
    tutti_sym logits = tutti_add(tutti_matmul(h, parts[4]), parts[5]);
    n->loss = tutti_mean(tutti_nn_sparse_cross_entropy(n->y, logits));
    tutti_sym same = tutti_equal(tutti_argmax(logits, 1), n->y);
    n->right = tutti_mean(tutti_cast(same, TUTTI_F32));
    tutti_grad gradient;
    tutti_gradients(n->loss, 1, &n->flat, &gradient);
    n->gradient = gradient.value;
    tutti__bench_must(tutti_graph_check(n->graph));
    tutti__bench_must(tutti_session_open(&n->session, n->graph));
}

static void network_close(stale_network *n)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
    tutti_tensor_release(n->images);
    tutti_tensor_release(n->labels);
    tutti_tensor_release(n->test_images);
    tutti_tensor_release(n->test_labels);
    free(n->first);
}

/* Glorot's uniform weights, and zeros. */
static void network_begin(stale_network *n, uint64_t seed)
{
    int64_t at = 0;
    for (int i = 0; i < PARTS; i++) {
        int64_t count = part_count(i), fan = part_ranks[i] == 4 ? 9 * (1 + 32)
                                             : part_ranks[i] == 2
                                                 ? part_dims[i][0] + part_dims[i][1]
                                                 : 0;
        double limit = fan > 0 ? sqrt(6.0 / (double)fan) : 0;
        for (int64_t j = 0; j < count; j++, at++)
            n->first[at] =
                (float)(limit * (2 * (double)tutti__random_f32(
                                         (tutti_random_key){seed, (uint64_t)i}, (uint64_t)j) -
                                 1));
    }
}

/* The gradient of the batch with this number, a function of the seed, at `value`. */
static tutti_tensor *gradient_at(stale_network *n, tutti_tensor *value, uint64_t seed,
                                 uint64_t batch)
{
    int64_t first =
        (int64_t)tutti__random_below((tutti_random_key){.seed = seed}, batch, IMAGES - BATCH);
    tutti_tensor *x = NULL, *y = NULL, *gradient = NULL;
    tutti__bench_must(tutti_tensor_slice(n->images, 0, first, BATCH, 1, &x));
    tutti__bench_must(tutti_tensor_slice(n->labels, 0, first, BATCH, 1, &y));
    tutti__bench_must(tutti_run(n->session,
                                .feed = TUTTI_FEED({n->flat, value}, {n->x, x}, {n->y, y}),
                                .fetch = TUTTI_FETCH({n->gradient, &gradient})));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return gradient;
}

static double accuracy_at(stale_network *n, tutti_tensor *value)
{
    tutti_tensor *right = NULL;
    tutti__bench_must(tutti_run(
        n->session,
        .feed = TUTTI_FEED({n->flat, value}, {n->x, n->test_images}, {n->y, n->test_labels}),
        .fetch = TUTTI_FETCH({n->right, &right})));
    double accuracy = tutti_tensor_get(right, 0);
    tutti_tensor_release(right);
    return accuracy;
}

/* ---- a server's shard ---- */

/* v = v - rate * factor * gradient. */
typedef struct sgd_rule {
    tutti_store_rule rule;
    tutti_tensor *value; /* replaced, never written: readers hold it */
} sgd_rule;

static double learning_rate;

static tutti_status sgd_open(const tutti_store_message *create, const tutti_type *type,
                             tutti_store_rule **ret);

static tutti_status sgd_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    sgd_rule *r = (sgd_rule *)rule;
    tutti_tensor *next = NULL;
    int64_t count = tutti_tensor_count(r->value);
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &count, &next));
    const float *from = tutti_tensor_data(r->value), *by = (const void *)update->gradient->data;
    float *to = tutti_tensor_data(next), rate = (float)(learning_rate * update->factor);
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] - rate * by[i];
    tutti_tensor_release(r->value);
    r->value = next;
    return TUTTI_OK;
}

static tutti_status sgd_read(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                             tutti_tensor **ret)
{
    TUTTI_UNUSED(all);
    TUTTI_UNUSED(rows);
    *ret = tutti_tensor_retain(((sgd_rule *)rule)->value);
    return TUTTI_OK;
}

static int64_t sgd_bytes(const tutti_store_rule *rule)
{
    return 4 * tutti_tensor_count(((const sgd_rule *)rule)->value);
}

static void sgd_close(tutti_store_rule *rule)
{
    tutti_tensor_release(((sgd_rule *)rule)->value);
    free(rule);
}

static const tutti_store_rule_kind sgd_kind = {.name = "sgd",
                                               .doc = "plain gradient descent, for this benchmark",
                                               .open = sgd_open,
                                               .apply = sgd_apply,
                                               .read = sgd_read,
                                               .bytes = sgd_bytes,
                                               .close = sgd_close};

static tutti_status sgd_open(const tutti_store_message *create, const tutti_type *type,
                             tutti_store_rule **ret)
{
    sgd_rule *r = calloc(1, sizeof *r);
    if (!r)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a shard");
    r->rule.kind = &sgd_kind;
    tutti_status status =
        tutti_tensor_from(type->dtype, type->rank, type->dims, create->data.bytes, &r->value);
    if (status != TUTTI_OK) {
        free(r);
        return status;
    }
    *ret = &r->rule;
    return TUTTI_OK;
}

static const tutti_store_rule_kind *find_sgd(const char *name)
{
    return strcmp(name, "sgd") == 0 ? &sgd_kind : NULL;
}

static tutti_store_shard *shard_open(stale_network *n, int workers, const char *consistency,
                                     const char *rate)
{
    tutti_store_shard *shard = NULL;
    uint8_t dims[8];
    uint32_t numbers[WORKERS];
    tutti_store_message m = {.type = TUTTI_STORE_CREATE,
                             .dtype = TUTTI_F32,
                             .text = "weights",
                             .rule = "sgd",
                             .rows = {dims, 8},
                             .data = {(const void *)n->first, 4 * (size_t)n->count}};
    tutti__packed_put((uint64_t)n->count, 8, dims);
    snprintf(m.consistency, sizeof m.consistency, "%s", consistency);
    snprintf(m.rate, sizeof m.rate, "%s", rate);
    tutti__bench_must(tutti__store_shard_create(&m, find_sgd, &shard));
    for (int i = 0; i < workers; i++)
        numbers[i] = (uint32_t)i;
    tutti__bench_must(tutti__store_shard_members(shard, workers, numbers));
    return shard;
}

/* ---- workers, in imagined time ---- */

typedef struct stale_worker {
    tutti_tensor *value; /* that it read; NULL: it waits */
    uint64_t version, clock, steps;
    double done; /* when its gradient is there */
    double waited, since;
} stale_worker;

typedef struct stale_run {
    stale_network *network;
    tutti_store_shard *shard;
    int workers;
    uint64_t seed, drawn;
    double (*takes)(struct stale_run *run, int worker); /* a step's time */
    stale_worker worker[WORKERS];
    double now, bounded;          /* when a worker first had to wait */
    uint64_t pushes, free_pushes; /* until then */
} stale_run;

/* Those that may read begin their next step. */
static void let_read(stale_run *r)
{
    for (int i = 0; i < r->workers; i++) {
        stale_worker *w = &r->worker[i];
        if (w->value || !tutti__policy_may_read(&r->shard->policy, w->clock))
            continue;
        tutti_store_message m = {.form = TUTTI_STORE_DENSE, .clock = w->clock};
        tutti__bench_must(tutti__store_shard_read(r->shard, &m, &w->value, &w->version));
        w->waited += r->now - w->since;
        w->done = r->now + r->takes(r, i);
    }
}

static int first_done(const stale_run *r)
{
    int first = -1;
    for (int i = 0; i < r->workers; i++)
        if (r->worker[i].value && (first < 0 || r->worker[i].done < r->worker[first].done))
            first = i;
    return first;
}

static void push(stale_run *r, int i, tutti_tensor *gradient)
{
    stale_worker *w = &r->worker[i];
    uint32_t verdict;
    tutti_store_message m = {.type = TUTTI_STORE_PUSH,
                             .form = TUTTI_STORE_DENSE,
                             .step = w->clock,
                             .contribution = (uint32_t)i,
                             .version = w->version,
                             .factor = 1,
                             .data = {tutti_tensor_data(gradient), 4 * (size_t)r->network->count}};
    tutti__bench_must(tutti__store_shard_check(r->shard, &m) == 0 ? TUTTI_OK : TUTTI_INVALID);
    tutti__bench_must(tutti__store_shard_push(r->shard, &m, &verdict));
    uint64_t own = w->clock + 1, clock = tutti__policy_clock(&r->shard->policy, (uint32_t)i);
    w->clock = own > clock ? own : clock;
    w->steps++;
    tutti_tensor_release(w->value);
    w->value = NULL;
    w->since = r->now;
    r->pushes++;
}

/* One gradient arrives. `computes` false: only time matters. */
static void step(stale_run *r, bool computes, tutti_tensor *nothing)
{
    int i = first_done(r);
    stale_worker *w = &r->worker[i];
    r->now = w->done;
    tutti_tensor *gradient =
        computes ? gradient_at(r->network, w->value, r->seed, w->steps * WORKERS + (uint64_t)i)
                 : tutti_tensor_retain(nothing);
    push(r, i, gradient);
    tutti_tensor_release(gradient);
    let_read(r);
    if (r->bounded == 0) {
        r->free_pushes = r->pushes;
        r->bounded = r->worker[i].value ? 0 : r->now;
    }
}

static void run_begin(stale_run *r, stale_network *n, int workers, const char *consistency,
                      const char *rate, uint64_t seed,
                      double (*takes)(struct stale_run *run, int worker))
{
    *r = (stale_run){.network = n, .workers = workers, .seed = seed, .takes = takes};
    network_begin(n, seed);
    r->shard = shard_open(n, workers, consistency, rate);
    let_read(r);
}

static void run_end(stale_run *r)
{
    for (int i = 0; i < r->workers; i++)
        tutti_tensor_release(r->worker[i].value);
    tutti__store_shard_free(r->shard);
}

static double accuracy_of(stale_run *r)
{
    tutti_tensor *value = NULL;
    uint64_t version;
    tutti_store_message m = {.form = TUTTI_STORE_DENSE};
    tutti__bench_must(tutti__store_shard_read(r->shard, &m, &value, &version));
    double accuracy = accuracy_at(r->network, value);
    tutti_tensor_release(value);
    return accuracy;
}

/* ---- what is shown ---- */

static double by_turns(stale_run *r, int worker)
{
    TUTTI_UNUSED(worker);
    return 1 + (r->now == 0 ? worker * 1e-3 : 0);
}

static double one_in_ten_is_slow(stale_run *r, int worker)
{
    TUTTI_UNUSED(worker);
    double jitter = 0.1 * (double)tutti__random_f32((tutti_random_key){r->seed, 3}, r->drawn);
    return (tutti__random_below((tutti_random_key){r->seed, 2}, r->drawn++, 10) == 0 ? 10 : 1) +
           jitter;
}

static double the_first_is_slow(stale_run *r, int worker)
{
    return (worker == 0 ? 10 : 1) +
           0.1 * (double)tutti__random_f32((tutti_random_key){r->seed, 3}, r->drawn++);
}

static void say(const char *shape, const char *consistency, const char *rate, int workers,
                uint64_t seed, const char *value_name, double value)
{
    printf(
        "{\"bench\": \"staleness\", \"shape\": \"%s\", \"consistency\": \"%s\", \"rate\": \"%s\", "
        "\"workers\": %d, \"seed\": %d, \"%s\": %.6g}\n",
        shape, consistency, rate, workers, (int)seed, value_name, value);
    fflush(stdout);
}

static void show_staleness(stale_network *n, int seeds, int updates)
{
    static const int counts[] = {1, 4, 8, 16, 32};
    static const char *const rates[] = {"none", "inverse"};
    for (size_t c = 0; c < TUTTI_COUNT(counts); c++)
        for (int by = 0; by < (c == 0 ? 1 : 2); by++)
            for (int seed = 1; seed <= seeds; seed++) {
                stale_run r;
                learning_rate = 0.15;
                run_begin(&r, n, counts[c], "async", rates[by], (uint64_t)seed, by_turns);
                while (r.pushes < (uint64_t)updates)
                    step(&r, true, NULL);
                say("staleness", "async", rates[by], counts[c], (uint64_t)seed, "accuracy",
                    accuracy_of(&r));
                run_end(&r);
            }
}

/* Accuracy after so much time. */
static void show_backup(stale_network *n, int seeds, double time)
{
    static const char *const kinds[] = {"sync", "sync:backup=1", "sync:backup=2", "sync:backup=3"};
    for (size_t k = 0; k < TUTTI_COUNT(kinds); k++)
        for (int seed = 1; seed <= seeds; seed++) {
            stale_run r;
            learning_rate = 0.15;
            run_begin(&r, n, 10, kinds[k], "none", (uint64_t)seed, one_in_ten_is_slow);
            while (r.worker[first_done(&r)].done <= time)
                step(&r, true, NULL);
            say("backup", kinds[k], "none", 10, (uint64_t)seed, "accuracy", accuracy_of(&r));
            say("backup", kinds[k], "none", 10, (uint64_t)seed, "updates",
                (double)r.shard->policy.version);
            run_end(&r);
        }
}

/* Gradients in a unit of time, before and after the bound. */
static void show_straggler(stale_network *n, int seeds)
{
    static const char *const kinds[] = {"async", "ssp:40", "ssp:10", "ssp:3", "sync"};
    tutti_tensor *nothing = NULL;
    tutti__bench_must(tutti_tensor_create(TUTTI_F32, 1, &n->count, &nothing));
    memset(tutti_tensor_data(nothing), 0, 4 * (size_t)n->count);
    for (size_t k = 0; k < TUTTI_COUNT(kinds); k++)
        for (int seed = 1; seed <= seeds; seed++) {
            stale_run r;
            run_begin(&r, n, 4, kinds[k], "none", (uint64_t)seed, the_first_is_slow);
            while (r.now < 300)
                step(&r, false, nothing);
            bool met = r.bounded > 0;
            say("straggler", kinds[k], "none", 4, (uint64_t)seed, "pace_before",
                (double)r.free_pushes / (met ? r.bounded : r.now));
            say("straggler", kinds[k], "none", 4, (uint64_t)seed, "pace_after",
                met ? (double)(r.pushes - r.free_pushes) / (r.now - r.bounded)
                    : (double)r.pushes / r.now);
            run_end(&r);
        }
    tutti_tensor_release(nothing);
}

static int run(int argc, char **argv, bool json)
{
    stale_network n;
    int64_t seeds = 5, updates = 400;
    TUTTI_UNUSED(json);
    if (!tutti__option_int(&argc, argv, "--seeds", 1, 100, &seeds) ||
        !tutti__option_int(&argc, argv, "--updates", 1, 1000000, &updates))
        return TUTTI_EXIT_USAGE;
    network_open(&n);
    show_straggler(&n, (int)seeds);
    show_backup(&n, (int)seeds, (double)updates);
    show_staleness(&n, (int)seeds, (int)updates);
    network_close(&n);
    return 0;
}

const tutti_bench tutti_bench_staleness = {
    .name = "staleness",
    .summary = "old gradients, backup workers and stragglers: accuracy and pace by consistency",
    .usage =
        "usage: tutti bench staleness [--seeds 5] [--updates 400]\n\n"
        "One object a line, of the lecture's network on drawn digits; bench/staleness.py draws "
        "them.\n",
    .run = run,
};
