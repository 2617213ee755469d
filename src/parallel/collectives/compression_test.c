/* compression_test.c: compressed gradients in processes of several devices each: what a process
 * tells the others is the sum of its devices, so it makes no difference how many it has. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { IN = 12, OUT = 9, BATCH = 8, STEPS = 6 };

/* Memory that all processes of the test share. */
typedef struct outcome {
    bool known;
    float weights[IN * OUT];
} outcome;

static tutti_tensor *rows_of(const tutti_strategy *s, int64_t width, double pace)
{
    int local = tutti_strategy_local(s);
    int64_t first, rows, begin = 0, count = 0;
    tutti_tensor *t;
    for (int i = 0; i < local; i++) {
        tutti_strategy_rows(s, BATCH, tutti_strategy_rank(s) * local + i, &first, &rows);
        begin = i == 0 ? first : begin;
        count += rows;
    }
    if (tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){count, width}, &t) != TUTTI_OK)
        return NULL;
    for (int64_t i = 0; i < count * width; i++)
        tutti_tensor_set(t, i, sin(pace * (double)(begin * width + i + 1)));
    return t;
}

static tutti_status weights_of(tutti_session *session, tutti_sym w, float *ret)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti_session_get(session, w, &value));
    for (int i = 0; i < IN * OUT; i++)
        ret[i] = (float)tutti_tensor_get(value, i);
    tutti_tensor_release(value);
    return TUTTI_OK;
}

/* The first job of a test leaves its weights, the others must come to the same. */
static tutti_status compare(const tutti_strategy *s, outcome *all, const float *weights)
{
    if (!all->known) {
        if (tutti_strategy_rank(s) == 0)
            memcpy(all->weights, weights, sizeof all->weights);
        return TUTTI_OK;
    }
    for (int i = 0; i < IN * OUT; i++)
        WORKER_NEAR(weights[i], all->weights[i]);
    return TUTTI_OK;
}

static tutti_status train(tutti_strategy *s, void *context)
{
    float weights[IN * OUT];
    tutti_graph *g;
    tutti_session *session;
    TUTTI_TRY(tutti_graph_create(&g));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, IN));
    tutti_sym y = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, OUT));
    tutti_sym w = tutti_variable(g, tutti_full(0.1, IN, OUT), .name = "w");
    tutti_sym error = tutti_sub(tutti_matmul(x, w), y);
    tutti_sym step = tutti_minimize(tutti_sgd(0.3), tutti_mean(tutti_square(error)));
    TUTTI_TRY(tutti_graph_check(g));
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 60));
    TUTTI_TRY(tutti_run(session, .target = tutti_initialize_variables(g)));
    tutti_tensor *inputs = rows_of(s, IN, 1.7), *targets = rows_of(s, OUT, 0.9);
    for (int i = 0; i < STEPS; i++)
        TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, inputs}, {y, targets}), .target = step,
                            .batch = BATCH));
    TUTTI_TRY(weights_of(session, w, weights));
    tutti_tensor_release(inputs);
    tutti_tensor_release(targets);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return compare(s, context, weights);
}

static void run(outcome *all, const char *devices, const char *compression)
{
    tutti_strategy_options options = {
        .struct_size = sizeof options, .devices = devices, .compression = compression};
    tutti__test_workers(2, &options, train, all);
    all->known = true;
}

static outcome *shared(void)
{
    outcome *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return all == MAP_FAILED ? NULL : all;
}

TUTTI_TEST(compression_sees_the_sum_of_a_process)
{
    static const char *const names[] = {"topk:0.25", "powersgd:2"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        outcome *all = shared();
        CHECK(all != NULL);
        run(all, "cpu:0", names[i]);
        float once[IN * OUT];
        memcpy(once, all->weights, sizeof once);
        run(all, "cpu:0,far:0", names[i]);
        run(all, "cpu:0,cpu:1,far:0", names[i]);
        munmap(all, sizeof *all);
        all = shared(); /* and it is not what it would be without */
        run(all, "cpu:0,far:0", NULL);
        CHECK(memcmp(once, all->weights, sizeof once) != 0);
        munmap(all, sizeof *all);
    }
}

TUTTI_TEST(compression_that_leaves_nothing_out_is_exact_with_several_devices)
{
    outcome *all = shared();
    CHECK(all != NULL);
    run(all, "cpu:0", NULL);
    run(all, "cpu:0,far:0", "topk:1");
    munmap(all, sizeof *all);
}

/* What users sum besides gradients is exact: fetched, assigned, and over the same elements as a
 * variable that is trained. */
static tutti_status sum_besides(tutti_strategy *s, void *context)
{
    (void)context;
    enum { WIDE = 80 };
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *value;
    TUTTI_TRY(tutti_graph_create(&g));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, WIDE));
    tutti_sym w = tutti_variable(g, tutti_full(0.1, WIDE), .name = "w");
    tutti_sym total =
        tutti_variable(g, tutti_full(0, WIDE), .name = "total", .not_trainable = true);
    tutti_sym sums = tutti_sum(x, .axes = TUTTI_AXES(0));
    tutti_sym counted = tutti_assign_add(total, sums);
    tutti_sym step = tutti_minimize(tutti_sgd(0.01), tutti_mean(tutti_square(tutti_mul(x, w))));
    TUTTI_TRY(tutti_graph_check(g));
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 60));
    TUTTI_TRY(tutti_run(session, .target = tutti_initialize_variables(g)));
    tutti_tensor *inputs = rows_of(s, WIDE, 1.3);
    TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, inputs}),
                        .fetch = TUTTI_FETCH({sums, &value}),
                        .targets = TUTTI_TARGETS(step, counted), .batch = BATCH));
    for (int i = 0; i < WIDE; i++) {
        double sum = 0;
        for (int row = 0; row < BATCH; row++)
            sum += (float)sin(1.3 * (double)(row * WIDE + i + 1));
        WORKER_NEAR(tutti_tensor_get(value, i), sum);
    }
    tutti_tensor_release(value);
    TUTTI_TRY(tutti_session_get(session, total, &value));
    WORKER_EXPECT(tutti_tensor_get(value, 3) != 0 && tutti_tensor_get(value, WIDE - 1) != 0);
    tutti_tensor_release(value);
    tutti_tensor_release(inputs);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

TUTTI_TEST(compression_leaves_sums_alone_that_are_no_gradients)
{
    static const char *const names[] = {"topk:0.02", "powersgd:1"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        tutti_strategy_options options = {.struct_size = sizeof options, .compression = names[i]};
        tutti__test_workers(2, &options, sum_besides, NULL);
    }
}

/* Under central storage the update stands on one device; all take the same form all the same. */
TUTTI_TEST(compression_with_central_storage)
{
    static const struct {
        const char *compression;
        tutti_dtype wire;
    } forms[] = {
        {"topk:0.5", TUTTI_F32}, {"powersgd:2", TUTTI_F32}, {NULL, TUTTI_F16}, {NULL, TUTTI_BF16}};
    for (size_t i = 0; i < TUTTI_COUNT(forms); i++) {
        outcome all = {0};
        for (int central = 0; central < 2; central++) {
            const char *form = forms[i].compression;
            tutti_strategy *s =
                central ? tutti_strategy_central_storage(.devices = "cpu:0,cpu:1",
                                                         .compression = form, .wire = forms[i].wire)
                        : tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .compression = form,
                                                  .wire = forms[i].wire);
            CHECK_OK(train(s, &all));
            CHECK_OK(tutti_strategy_close(s));
            all.known = true;
        }
    }
}
