/* sharded_test.c: variables in blocks compute what one device computes: ZeRO, tensor parallelism,
 * both, on devices of one process. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "exec/engine.h"
#include "exec/plan/share.h"
#include "ops/update/update.h"
#include "parallel/strategies/workers.h"
#include "state/checkpoint.h"
#include "tutti/tutti.h"

enum { INPUTS = 6, HIDDEN = 12, CLASSES = 5, WEIGHTS = 4, ROWS = 8, STEPS = 12 };

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, loss, step, weights[WEIGHTS];
} net;

static tutti_tensor *numbers(int64_t rows, int64_t columns, unsigned seed)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(0.7 * (double)(i + 1) * (seed + 1)) * 0.8);
    return t;
}

static tutti_sym weight(net *n, int i, const char *name, int64_t rows, int64_t columns,
                        const char *sharding)
{
    tutti_tensor *start = numbers(rows, columns, (unsigned)i + 3);
    n->weights[i] = tutti_variable(n->graph, tutti_tensor_init(start), .name = name);
    tutti_tensor_release(start);
    if (sharding)
        n->weights[i] = tutti_sharded(n->weights[i], sharding);
    return n->weights[i];
}

/* Two dense layers with a penalty on the weights, gradients clipped by their norm, Adam. */
static net start(tutti_strategy *strategy, tutti_optimizer optimizer)
{
    net n = {0};
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    tutti_graph *g = n.graph;
    n.x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, INPUTS));
    n.y = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, CLASSES));
    tutti_sym w0 = weight(&n, 0, "w0", INPUTS, HIDDEN, "embed,hidden");
    tutti_sym b0 = weight(&n, 1, "b0", 1, HIDDEN, "-,hidden");
    tutti_sym h = tutti_tanh(tutti_add(tutti_matmul(n.x, w0), b0));
    tutti_sym w1 = weight(&n, 2, "w1", HIDDEN, CLASSES, "hidden,embed");
    tutti_sym b1 = weight(&n, 3, "b1", 1, CLASSES, NULL);
    tutti_sym out = tutti_add(tutti_matmul(h, w1), b1);
    n.loss = tutti_add(tutti_mean(tutti_square(tutti_sub(out, n.y))),
                       tutti_mul(tutti_sum(tutti_square(w0)), 0.01));
    n.step = tutti_minimize(optimizer, n.loss);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(g)));
    return n;
}

static void end(net *n, tutti_strategy *strategy)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
    CHECK_OK(tutti_strategy_close(strategy));
}

/* The losses of some steps, then all weights. */
typedef struct outcome {
    double losses[STEPS];
    tutti_tensor *weights[WEIGHTS];
} outcome;

static outcome train(net *n, int64_t rows)
{
    outcome o;
    tutti_tensor *x = numbers(rows, INPUTS, 0), *y = numbers(rows, CLASSES, 1), *loss;
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                           .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
        o.losses[i] = tutti_tensor_get(loss, 0);
        tutti_tensor_release(loss);
    }
    for (int i = 0; i < WEIGHTS; i++)
        CHECK_OK(tutti_session_get(n->session, n->weights[i], &o.weights[i]));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return o;
}

static void release(outcome *o)
{
    for (int i = 0; i < WEIGHTS; i++)
        tutti_tensor_release(o->weights[i]);
}

static void compare(const outcome *a, const outcome *b)
{
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(a->losses[i], b->losses[i], 1e-9);
    for (int i = 0; i < WEIGHTS; i++)
        for (int64_t k = 0; k < tutti_tensor_count(a->weights[i]); k++)
            CHECK_NEAR(tutti_tensor_get(a->weights[i], k), tutti_tensor_get(b->weights[i], k),
                       1e-9);
}

static void like_one_device(const char *name, tutti_strategy_options options,
                            tutti_optimizer optimizer, int64_t rows)
{
    tutti_strategy *one = tutti_strategy_create("one_device", NULL);
    options.struct_size = sizeof options;
    options.replicate_below = 1;
    tutti_strategy *many = tutti_strategy_create(name, &options);
    CHECK_OK(tutti_strategy_check(many));
    net alone = start(one, optimizer), shared = start(many, optimizer);
    outcome a = train(&alone, rows), b = train(&shared, rows);
    compare(&a, &b);
    release(&a);
    release(&b);
    end(&alone, one);
    end(&shared, many);
}

static tutti_optimizer clipped_adam(void)
{
    return tutti_adam(.learning_rate = 0.05, .global_clip_norm = 0.7);
}

TUTTI_TEST(sharded_zero_computes_what_one_device_does)
{
    for (int zero = 1; zero <= 3; zero++)
        for (int64_t rows = ROWS - 3; rows <= ROWS; rows += 3)
            like_one_device("fully_sharded",
                            (tutti_strategy_options){.devices = "cpu:0,cpu:1", .zero = zero},
                            clipped_adam(), rows);
    like_one_device("fully_sharded",
                    (tutti_strategy_options){
                        .devices = "cpu:0,cpu:1,cpu:2,cpu:3", .zero = 3, .mesh = "host=2,shard=2"},
                    clipped_adam(), ROWS);
}

TUTTI_TEST(sharded_tensor_computes_what_one_device_does)
{
    like_one_device("tensor", (tutti_strategy_options){.devices = "cpu:0,cpu:1"}, clipped_adam(),
                    ROWS);
    like_one_device(
        "tensor",
        (tutti_strategy_options){.devices = "cpu:0,cpu:1,cpu:2,cpu:3", .mesh = "data=2,model=2"},
        clipped_adam(), ROWS);
}

/* ---- that they are cut, and what is exchanged ---- */

/* How often a word stands in the program of the session's last run. */
static int count_in_program(const net *n, const char *word)
{
    char *text;
    int count = 0;
    CHECK_OK(tutti_session_print(n->session, &text));
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    free(text);
    return count;
}

static const tutti_state_variable *state_of(const net *n, const char *name)
{
    tutti_state *state = tutti__engine_state(tutti__session_engine(n->session));
    return tutti__state_find(state, name);
}

static void step_once(net *n)
{
    tutti_tensor *x = numbers(ROWS, INPUTS, 0), *y = numbers(ROWS, CLASSES, 1), *loss;
    CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                       .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
    tutti_tensor_release(loss);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

TUTTI_TEST(sharded_variables_and_slots_are_boxes)
{
    tutti_strategy *strategy = tutti_strategy_create(
        "fully_sharded", TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,cpu:1", .zero = 2,
                                       .replicate_below = 10));
    net n = start(strategy, tutti_adam(.learning_rate = 0.05));
    step_once(&n);
    const tutti_state_variable *w0 = state_of(&n, "w0"), *b1 = state_of(&n, "b1"),
                               *slot = state_of(&n, "w0/adam/m");
    CHECK(w0 && b1 && slot);
    CHECK_INT(w0->pieces.count, 2);
    CHECK_INT(w0->pieces.data[1]->type.dims[0], INPUTS / 2);
    CHECK_INT(w0->pieces.data[1]->box.offset[0], INPUTS / 2);
    CHECK_INT(slot->pieces.data[0]->type.dims[0], INPUTS / 2);
    CHECK_INT(b1->pieces.data[0]->type.dims[1], CLASSES); /* shorter than 10 */
    /* Each of two devices: w0, b0, w1 gathered once, their gradients scattered. */
    CHECK_INT(count_in_program(&n, "reduce_scatter"), 2 * 3);
    end(&n, strategy);
}

/* The last element of one of three values overflows: of two that are cut it lies on the last rank.
 * What the ranks found is exchanged once. */
TUTTI_TEST(sharded_values_that_are_not_finite_are_found_in_any_block)
{
    tutti_strategy *strategy = tutti_strategy_create(
        "tensor",
        TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,cpu:1", .replicate_below = 1));
    static const char *const shardings[] = {"-,hidden", NULL, "hidden,-"};
    net n = {0};
    tutti_sym factors = {0}, values[3];
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    factors = tutti_placeholder(n.graph, TUTTI_F64, 3);
    for (int i = 0; i < 3; i++) {
        tutti_tensor *start = numbers(4, 6, (unsigned)i);
        tutti_tensor_set(start, 23, 1e308);
        n.weights[i] = tutti_variable(n.graph, tutti_tensor_init(start));
        tutti_tensor_release(start);
        if (shardings[i])
            n.weights[i] = tutti_sharded(n.weights[i], shardings[i]);
        values[i] =
            tutti_mul(n.weights[i], tutti_gather(factors, tutti_scalar(n.graph, TUTTI_I32, i), 0));
    }
    tutti_sym finite = tutti__all_finite(3, values);
    CHECK_OK(tutti_graph_check(n.graph));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)));
    for (int bad = -1; bad < 3; bad++) {
        tutti_tensor *by, *found;
        CHECK_OK(tutti_tensor_create(TUTTI_F64, 1, (int64_t[]){3}, &by));
        for (int i = 0; i < 3; i++)
            tutti_tensor_set(by, i, i == bad ? 10 : 1);
        CHECK_OK(tutti_run(n.session, .feed = TUTTI_FEED({factors, by}),
                           .fetch = TUTTI_FETCH({finite, &found})));
        CHECK_INT((int)tutti_tensor_get(found, 0), bad < 0);
        tutti_tensor_release(found);
        tutti_tensor_release(by);
    }
    CHECK_INT(count_in_program(&n, "all_reduce"), 2);
    end(&n, strategy);
}

/* ---- over processes ---- */

typedef struct expected {
    outcome all;
    const char *mesh, *layout;
} expected;

static tutti_status work(tutti_strategy *strategy, void *context)
{
    const expected *e = context;
    net n = start(tutti__strategy_retain(strategy), clipped_adam());
    int64_t first, rows;
    tutti_tensor *x = numbers(ROWS, INPUTS, 0), *y = numbers(ROWS, CLASSES, 1), *loss, *own[2];
    tutti_strategy_own_rows(strategy, ROWS, &first, &rows);
    TUTTI_TRY(tutti_tensor_slice(x, 0, first, rows, 1, &own[0]));
    TUTTI_TRY(tutti_tensor_slice(y, 0, first, rows, 1, &own[1]));
    for (int i = 0; i < STEPS; i++) {
        TUTTI_TRY(tutti_run(n.session, .feed = TUTTI_FEED({n.x, own[0]}, {n.y, own[1]}),
                            .fetch = TUTTI_FETCH({n.loss, &loss}), .target = n.step,
                            .batch = ROWS));
        WORKER_NEAR(tutti_tensor_get(loss, 0), e->all.losses[i]);
        tutti_tensor_release(loss);
    }
    for (int i = 0; i < WEIGHTS; i++) {
        tutti_tensor *got;
        TUTTI_TRY(tutti_session_get(n.session, n.weights[i], &got));
        for (int64_t k = 0; k < tutti_tensor_count(got); k++)
            WORKER_NEAR(tutti_tensor_get(got, k), tutti_tensor_get(e->all.weights[i], k));
        tutti_tensor_release(got);
    }
    const tutti_state_variable *w0 = state_of(&n, "w0");
    WORKER_EXPECT(w0->cut &&
                  tutti_type_count(&w0->pieces.data[0]->type) * 2 <= tutti_type_count(&w0->type));
    tutti_tensor_release(own[0]);
    tutti_tensor_release(own[1]);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    end(&n, strategy);
    return TUTTI_OK;
}

TUTTI_TEST(sharded_processes_compute_what_one_device_does)
{
    static const struct {
        int processes;
        const char *devices, *mesh, *layout;
        int zero;
    } jobs[] = {
        {2, NULL, "shard=2", "batch:shard; weights:shard", 3},
        {2, "cpu:0,cpu:1", "host=2,shard=2", "batch:host*shard; weights:shard", 2},
        {2, NULL, "model=2", "hidden:model", 0},
        {2, "cpu:0,cpu:1", "data=2,model=2", "batch:data; weights:data; hidden:model", 3},
        {2, "cpu:0,cpu:1", "model=2,data=2", "batch:data; hidden:model", 0},
    };
    tutti_strategy *one = tutti_strategy_create("one_device", NULL);
    net alone = start(one, clipped_adam());
    expected e = {.all = train(&alone, ROWS)};
    end(&alone, one);
    for (size_t i = 0; i < TUTTI_COUNT(jobs); i++)
        tutti__test_workers(jobs[i].processes,
                            TUTTI_OPTIONS(tutti_strategy_options, .devices = jobs[i].devices,
                                          .mesh = jobs[i].mesh, .layout = jobs[i].layout,
                                          .zero = jobs[i].zero, .replicate_below = 1),
                            work, &e);
    release(&e.all);
}

/* ---- saved on one mesh, restored onto another ---- */

static void save(const net *n, const char *path, size_t leave_out)
{
    tutti_snapshot snapshot;
    tutti_state *state = tutti__engine_state(tutti__session_engine(n->session));
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    size_t count = snapshot.count;
    for (size_t i = 0; leave_out > 0 && i < count; i++)
        if (strcmp(snapshot.entries[i].name, "w0") == 0) { /* its first box */
            tutti_snapshot_entry first = snapshot.entries[i];
            snapshot.entries[i] = snapshot.entries[--snapshot.count];
            snapshot.entries[snapshot.count] = first;
            break;
        }
    CHECK_OK(tutti__checkpoint_write(path, &snapshot, 0, NULL, 0));
    snapshot.count = count;
    tutti__snapshot_release(&snapshot);
}

static void restore(const net *n, const char *path)
{
    tutti_safetensors *file;
    tutti_state *state = tutti__engine_state(tutti__session_engine(n->session));
    CHECK_OK(tutti__checkpoint_open(path, true, &file));
    CHECK_OK(tutti__checkpoint_restore(file, state));
    tutti__safetensors_close(file);
}

static tutti_strategy *strategy_like(int which)
{
    static const char *const devices[] = {"cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
                                          "cpu:0,cpu:1,cpu:2,cpu:3"};
    static const char *const names[] = {"one_device", "fully_sharded", "tensor", "fully_sharded"};
    return tutti_strategy_create(names[which],
                                 TUTTI_OPTIONS(tutti_strategy_options, .devices = devices[which],
                                               .replicate_below = 1,
                                               .mesh = which == 3 ? "host=2,shard=2" : NULL));
}

TUTTI_TEST(sharded_checkpoints_go_from_mesh_to_mesh)
{
    char path[200];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path - sizeof ".previous", "%s/tutti_sharded_%d.safetensors",
             folder ? folder : "/tmp", (int)getpid());
    static const int ways[][2] = {{0, 1}, {1, 0}, {1, 2}, {2, 3}, {3, 1}};
    for (size_t i = 0; i < TUTTI_COUNT(ways); i++) {
        tutti_strategy *from = strategy_like(ways[i][0]), *to = strategy_like(ways[i][1]);
        net a = start(from, clipped_adam()), b = start(to, clipped_adam());
        outcome before = train(&a, ROWS);
        save(&a, path, 0);
        restore(&b, path);
        outcome on = train(&a, ROWS), other = train(&b, ROWS);
        compare(&on, &other);
        release(&before);
        release(&on);
        release(&other);
        end(&a, from);
        end(&b, to);
    }
    CHECK_INT(remove(path), 0);
    strcat(path, ".previous");
    CHECK_INT(remove(path), 0);
}

TUTTI_TEST(sharded_checkpoint_without_a_box_is_refused)
{
    char path[200];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/tutti_boxes_%d.safetensors", folder ? folder : "/tmp",
             (int)getpid());
    tutti_strategy *strategy = strategy_like(1);
    net n = start(strategy, clipped_adam());
    tutti_safetensors *file;
    save(&n, path, 1);
    CHECK_STATUS(tutti__checkpoint_open(path, true, &file), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(),
                   "tensor 'w0' stands in boxes, and its box [0:3, 0:12] is missing");
    CHECK_INT(remove(path), 0);
    end(&n, strategy);
}

/* ---- what cannot be ---- */

static void refused(const char *name, tutti_strategy_options options, const char *part)
{
    options.struct_size = sizeof options;
    options.devices = "cpu:0,cpu:1";
    tutti_strategy *strategy = tutti_strategy_create(name, &options);
    CHECK(tutti_strategy_check(strategy) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(sharded_settings_that_cannot_be_are_refused)
{
    refused("fully_sharded", (tutti_strategy_options){.zero = 4}, "zero=4: there are stages 1");
    refused("mirrored", (tutti_strategy_options){.zero = 3},
            "zero=3, but strategy mirrored stores every variable whole");
    refused("fully_sharded", (tutti_strategy_options){.deterministic = true},
            "deterministic mode stores every variable whole; leave out --strategy fully_sharded");
    refused("tensor", (tutti_strategy_options){.mesh = "data=2"},
            "divides layers along the axis 'model', which the mesh data=2 lacks");
    refused(
        "mirrored",
        (tutti_strategy_options){.mesh = "data=1,model=2", .layout = "batch:data; weights:model"},
        "weights are stored along 'model', which does not cut the batch");
}

/* ---- a model that one device cannot hold ---- */

enum { WIDE = 512 };

/* Three layers of 512 x 512: with gradients and slots 12 MiB of f32 and more. */
static tutti_status fit_wide(const char *name, const char *devices, int *ret_exit)
{
    tutti_status status = TUTTI_OK;
    tutti_strategy *strategy =
        tutti_strategy_create(name, TUTTI_OPTIONS(tutti_strategy_options, .devices = devices));
    tutti_tensor *x, *y;
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_OK(tutti_strategy_check(strategy));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){16, WIDE}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){16, WIDE}, &y));
    for (int64_t i = 0; i < 16 * WIDE; i++) {
        tutti_tensor_set(x, i, sin((double)i));
        tutti_tensor_set(y, i, cos((double)i));
    }
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(
            job, tutti_dense(WIDE, .activation = TUTTI_RELU),
            tutti_dense(WIDE, .activation = TUTTI_RELU, .sharding = "hidden,embed"),
            tutti_dense(WIDE));
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.001), .loss = tutti_mse());
        tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), 16), .epochs = 2,
                  .quiet = true);
        status = tutti_job_check(job);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    *ret_exit = tutti_close(job);
    CHECK_OK(tutti_strategy_close(strategy));
    return status;
}

TUTTI_TEST(sharded_strategies_train_what_one_device_refuses)
{
    int exit;
    CHECK(fit_wide("one_device", "cpu:0=12MiB", &exit) != TUTTI_OK);
    CHECK(exit != 0);
    CHECK_OK(fit_wide("fully_sharded", "cpu:0=12MiB,cpu:1=12MiB", &exit));
    CHECK_INT(exit, 0);
    CHECK_OK(fit_wide("tensor", "cpu:0=12MiB,cpu:1=12MiB", &exit));
    CHECK_INT(exit, 0);
}
