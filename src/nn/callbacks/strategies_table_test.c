/* strategies_table_test.c: the table "strategies x ways to train" of
 * docs/guide/strategies-compared: every cell is tried, in one process. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_dataset *line_data(tutti_job *job)
{
    tutti_tensor *x = NULL, *y = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){64, 2}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){64, 1}, &y));
    for (int i = 0; i < 64; i++) {
        tutti_tensor_set(x, 2 * i, i % 7 / 7.0);
        tutti_tensor_set(x, 2 * i + 1, i % 5 / 5.0);
        tutti_tensor_set(y, i, 3 * (i % 7 / 7.0) - i % 5 / 5.0 + 1);
    }
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 16);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

/* Each gives the loss at the end. */
static double by_fit(tutti_model *m, tutti_dataset *data)
{
    const tutti_history *h = tutti_fit(m, data, .epochs = 10, .quiet = true);
    return tutti_history_get(h, "loss", -1);
}

static double by_loop(tutti_model *m, tutti_dataset *data)
{
    double last = NAN;
    tutti_optimizer adam = tutti_adam(.learning_rate = 0.05);
    tutti_build(m, TUTTI_F32, 2);
    tutti_eager *e = tutti_model_eager(m);
    for (int epoch = 0; epoch < 10; epoch++) {
        TUTTI_EACH_BATCH(data, bx, by) {
            TUTTI_STEP(e) {
                tutti_sym x = tutti_eager_feed(e, bx), y = tutti_eager_feed(e, by), loss;
                TUTTI_TAPE(tape, e)
                    loss = tutti_mean(tutti_square(tutti_sub(tutti_apply(m, x), y)));
                tutti_tape_minimize(&tape, adam, loss, m);
                last = tutti_scalar_value(loss);
            }
        }
    }
    CHECK_OK(tutti_eager_check(e));
    return last;
}

static double by_specs(tutti_model *m, tutti_dataset *data)
{
    char folder[] = "/tmp/tutti-table-XXXXXX";
    tutti_logs logs = {0};
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(tutti_train_and_evaluate(
        m, folder, TUTTI_TRAIN_SPEC(.data = data, .max_steps = 40, .save_steps = 20, .quiet = true),
        TUTTI_EVAL_SPEC(.data = data)));
    CHECK_OK(tutti_evaluate(m, data, &logs, .quiet = true));
    return tutti_logs_get(&logs, "loss");
}

TUTTI_TEST(strategies_and_ways_to_train_all_fit_together)
{
    static const char *const strategies[] = {"one_device", "mirrored", "multi_worker_mirrored",
                                             "central_storage", "parameter_server"};
    static double (*const ways[])(tutti_model *, tutti_dataset *) = {by_fit, by_loop, by_specs};
    for (size_t s = 0; s < TUTTI_COUNT(strategies); s++)
        for (size_t w = 0; w < TUTTI_COUNT(ways); w++) {
            tutti_job *job = tutti_open(NULL, NULL);
            tutti_strategy *strategy = tutti_strategy_create(
                strategies[s], TUTTI_OPTIONS(tutti_strategy_options, .devices = NULL));
            double loss = NAN;
            TUTTI_WITH_STRATEGY(strategy)
            {
                tutti_model *m = tutti_sequential(job, tutti_dense(1));
                tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.05),
                              .loss = tutti_mse());
                loss = ways[w](m, line_data(job));
            }
            if (!(loss < 1.5))
                tutti__test_fail(__FILE__, __LINE__, "%s, way %zu: loss %g: %s", strategies[s], w,
                                 loss, tutti_error_message());
            CHECK_INT(tutti_close(job), 0);
            CHECK_OK(tutti_strategy_close(strategy));
        }
}
