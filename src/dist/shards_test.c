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
    tutti_sym loss = tutti_mean(tutti_square(tutti_add_scalar(tutti_matmul(x, w), -1)));
    tutti_sym down = tutti_minimize(tutti_sgd(1e5), loss);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, FEATURES}, &batch));
    for (int64_t i = 0; i < rows * FEATURES; i++)
        tutti_tensor_set(batch, i, sin(0.37 * (double)(i * i % 10007)));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_all(g)));
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
