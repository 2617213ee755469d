/* shards_test.c: in deterministic mode a step's bits do not depend on who has which shards, however
 * many rows these have. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { FEATURES = 6, OUTPUTS = 7, WEIGHTS = FEATURES * OUTPUTS };

/* One step down from w = 0.1 on mean (x w - 1)^2, so long that the weights after it show every bit
 * of the gradient. */
static void step(int64_t rows, tutti_strategy *strategy, float *ret_weights)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *batch, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_strategy_check(strategy));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, FEATURES));
    tutti_sym w = tutti_variable(g, tutti_full(0.1, FEATURES, OUTPUTS), .name = "w");
    tutti_sym loss = tutti_mean(tutti_square(tutti_add(tutti_matmul(x, w), -1)));
    tutti_sym down = tutti_minimize(tutti_sgd(1e5), loss);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, FEATURES}, &batch));
    for (int64_t i = 0; i < rows * FEATURES; i++)
        tutti_tensor_set(batch, i, sin(0.37 * (double)(i * i % 10007)));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, batch}), .target = down));
    CHECK_OK(tutti_run(session, .fetch = TUTTI_FETCH({w, &value})));
    memcpy(ret_weights, tutti_tensor_data(value), WEIGHTS * sizeof(float));
    tutti_tensor_release(value);
    tutti_tensor_release(batch);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    tutti_strategy_close(strategy);
}

/* 8 shards: of 3 and 4 rows, of 48 and 49, where another way to multiply begins, and of more than a
 * product sums up at once. */
TUTTI_TEST(shards_of_any_depth_give_the_same_bits_on_any_number_of_replicas)
{
    static const int64_t sizes[] = {27, 8 * 48 + 3, 8 * 300 + 5, 8 * 1300};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "8"));
    for (size_t i = 0; i < TUTTI_COUNT(sizes); i++) {
        float one[WEIGHTS], many[WEIGHTS];
        char devices[64] = "cpu:0";
        step(sizes[i], tutti_strategy_one_device(.devices = devices, .deterministic = true), one);
        CHECK(one[0] != 0.1f);
        for (int count = 2; count <= 8; count++) {
            snprintf(devices + strlen(devices), 8, ",cpu:%d", count - 1);
            step(sizes[i], tutti_strategy_mirrored(.devices = devices, .deterministic = true),
                 many);
            CHECK(memcmp(one, many, sizeof one) == 0);
        }
    }
}

/* ---- values ---- */

typedef tutti_sym value_function(tutti_sym x);

static tutti_sym mean_of_batch(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(0), .keepdims = true);
}

static tutti_sym centred(tutti_sym x)
{
    return tutti_sub(x, mean_of_batch(x));
}

static tutti_sym centred_softmax(tutti_sym x)
{
    return tutti_softmax(tutti_sub(mean_of_batch(x), x));
}

static tutti_sym product(tutti_sym x)
{
    return tutti_prod(x, .axes = TUTTI_AXES(0));
}

static tutti_sym product_of_all(tutti_sym x)
{
    return tutti_prod(x);
}

static tutti_sym greatest_and_least(tutti_sym x)
{
    return tutti_sub(tutti_max(x, .axes = TUTTI_AXES(0)), tutti_min(x, .axes = TUTTI_AXES(0)));
}

static tutti_sym spread_of_batch(tutti_sym x)
{
    return tutti_add(tutti_variance(x, .axes = TUTTI_AXES(0)),
                     tutti_norm(x, .axes = TUTTI_AXES(0)));
}

static tutti_sym log_of_sum(tutti_sym x)
{
    return tutti_logsumexp(x, .axes = TUTTI_AXES(0));
}

/* The batch behind another axis: turning it back gains nothing where it is one row. */
static tutti_sym behind(tutti_sym x)
{
    tutti_sym pieces =
        tutti_concatenate(TUTTI_SYMS(x, tutti_mul(x, 0.7), tutti_square(x)), .axis = 1);
    return tutti_transpose(tutti_reshape(pieces, -1, 3, 4), 1, 0, 2);
}

static tutti_sym mean_before_batch(tutti_sym x)
{
    return tutti_mean(tutti_square(behind(x)), .axes = TUTTI_AXES(0));
}

static tutti_sym softmax_before_batch(tutti_sym x)
{
    return tutti_softmax(behind(x), .axes = TUTTI_AXES(0));
}

static tutti_sym softmax_over_likeness(tutti_sym x)
{
    return tutti_softmax(tutti_matmul(x, x, .transpose_b = true), .axes = TUTTI_AXES(0));
}

/* Its shape depends on data: what is fetched comes from the rest of the graph, run as a second. */
static tutti_sym places_above_zero(tutti_sym x)
{
    return tutti_nonzero(tutti_greater(x, tutti_mul(x, 0)));
}

static tutti_tensor *value_on(tutti_strategy *strategy, tutti_dtype dtype, int64_t rows,
                              value_function *function)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *batch, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 4));
    tutti_sym y = tutti_cast(function(tutti_cast(tutti_mul(x, 1.1), dtype)), TUTTI_F32);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, 4}, &batch));
    for (int64_t i = 0; i < rows * 4; i++)
        tutti_tensor_set(batch, i, (double)(i * 7919 % 1009) / 500 - 1);
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, batch}), .fetch = TUTTI_FETCH({y, &value})));
    tutti_tensor_release(batch);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    tutti_strategy_close(strategy);
    return value;
}

/* Of 13 rows on 5 replicas some have one: its shape is that of a mean over the batch, and more can
 * be fused. */
TUTTI_TEST(values_of_a_batch_have_the_same_bits_where_a_replica_has_one_row)
{
    static value_function *const functions[] = {centred,
                                                centred_softmax,
                                                product,
                                                mean_of_batch,
                                                product_of_all,
                                                greatest_and_least,
                                                spread_of_batch,
                                                log_of_sum,
                                                mean_before_batch,
                                                softmax_before_batch,
                                                softmax_over_likeness,
                                                places_above_zero};
    static const tutti_dtype dtypes[] = {TUTTI_F32, TUTTI_BF16, TUTTI_F16};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "8"));
    for (size_t i = 0; i < TUTTI_COUNT(functions); i++)
        for (size_t d = 0; d < TUTTI_COUNT(dtypes); d++) {
            tutti_tensor *one =
                value_on(tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true),
                         dtypes[d], 13, functions[i]);
            tutti_tensor *five =
                value_on(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4",
                                                 .deterministic = true),
                         dtypes[d], 13, functions[i]);
            CHECK(tutti_tensor_same(one, five));
            tutti_tensor_release(one);
            tutti_tensor_release(five);
        }
}

/* Two steps on one row, whose gradient is fetched, then 13 rows through the weights: y. */
static tutti_tensor *after_steps_on_one_row(tutti_strategy *strategy)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *batches[2], *slope, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 5, 2));
    tutti_sym w = tutti_variable(g, tutti_uniform_init(-1, 1, 2, 3, 5), .name = "w");
    tutti_sym y = tutti_einsum("bij,jkl->bikl", x, w);
    tutti_sym loss = tutti_mean(tutti_square(tutti_add(y, -1)));
    tutti_grad gradient;
    tutti_gradients(loss, 1, &w, &gradient);
    tutti_sym down = tutti_assign_sub(w, gradient.value);
    for (int b = 0; b < 2; b++) {
        int64_t rows = b == 0 ? 1 : 13;
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){rows, 5, 2}, &batches[b]));
        for (int64_t i = 0; i < rows * 10; i++)
            tutti_tensor_set(batches[b], i, sin(0.37 * (double)(i * i + b)));
    }
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, batches[0]}),
                           .fetch = TUTTI_FETCH({gradient.value, &slope}), .target = down));
        tutti_tensor_release(slope);
    }
    CHECK_OK(
        tutti_run(session, .feed = TUTTI_FEED({x, batches[1]}), .fetch = TUTTI_FETCH({y, &value})));
    tutti_tensor_release(batches[0]);
    tutti_tensor_release(batches[1]);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    tutti_strategy_close(strategy);
    return value;
}

/* Each replica computes the one row's gradient, and lowers it as the first does, which returns it.
 */
TUTTI_TEST(replicas_stay_alike_where_what_all_compute_is_fetched)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_tensor *one = after_steps_on_one_row(
        tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true));
    tutti_tensor *two = after_steps_on_one_row(
        tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .deterministic = true));
    CHECK(tutti_tensor_same(one, two));
    tutti_tensor_release(one);
    tutti_tensor_release(two);
}
