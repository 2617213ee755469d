/* accumulate_test.c: batches gathered into one step against the big batch. */
#include "nn/training/accumulate.h"

#include "base/test.h"
#include "nn/optimizers/optimizer.h"
#include "tutti/tutti.h"

enum { BATCH = 4, PARTS = 3, FEATURES = 5, WORDS = 6 };

typedef struct rig {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym w, table, x, ids, add, step;
} rig;

/* loss = mean over the batch of (x w + sum of the looked-up row - 1)^2. */
static rig open_rig(int64_t batch, bool gathered)
{
    rig r = {0};
    CHECK_OK(tutti_graph_create(&r.graph));
    CHECK_OK(tutti_session_open(&r.session, r.graph));
    r.w = tutti_variable(r.graph, tutti_full(0.5, FEATURES, 1), .name = "w");
    r.table = tutti_variable(r.graph, tutti_full(0.25, WORDS, 2), .name = "table");
    r.x = tutti_placeholder(r.graph, TUTTI_F32, batch, FEATURES);
    r.ids = tutti_placeholder(r.graph, TUTTI_I64, batch);
    tutti_sym word =
        tutti_sum(tutti_embedding_lookup(r.table, r.ids), .axes = TUTTI_AXES(1), .keepdims = true);
    tutti_sym error = tutti_add(tutti_add(tutti_matmul(r.x, r.w), word), -1);
    tutti_sym variables[] = {r.w, r.table}, targets[2];
    tutti_grad grads[2];
    tutti_gradients(tutti_mean(tutti_square(error)), 2, variables, grads);
    if (gathered) {
        r.add = tutti__accumulate_add(2, variables, grads);
        targets[0] = tutti__accumulate_take(2, variables, grads, 1.0 / PARTS, grads);
    }
    targets[gathered] = tutti_apply_gradients(tutti_sgd(0.1), 2, variables, grads);
    r.step = (tutti_group)(r.graph, NULL, 1 + gathered, targets);
    CHECK_OK(tutti_run(r.session, .target = tutti_initialize_variables(r.graph)));
    return r;
}

/* Examples [first, first + count) of step `step`. */
static void run_batch(const rig *r, tutti_sym target, int step, int first, int count)
{
    tutti_tensor *x, *ids;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){count, FEATURES}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){count}, &ids));
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < FEATURES; k++)
            tutti_tensor_set(x, i * FEATURES + k,
                             ((first + i) * 7 + k * 5 + step * 3) % 11 / 10.0 - 0.5);
        tutti_tensor_set(ids, i, ((first + i) * 3 + step) % 4); /* the last two words never */
    }
    CHECK_OK(tutti_run(r->session, .feed = TUTTI_FEED({r->x, x}, {r->ids, ids}), .target = target));
    tutti_tensor_release(x);
    tutti_tensor_release(ids);
}

static void check_equal(const rig *a, tutti_sym x, const rig *b, tutti_sym y)
{
    tutti_tensor *p, *q;
    CHECK_OK(tutti_session_get(a->session, x, &p));
    CHECK_OK(tutti_session_get(b->session, y, &q));
    for (int64_t i = 0; i < tutti_tensor_count(p); i++)
        CHECK_NEAR(tutti_tensor_get(p, i), tutti_tensor_get(q, i), 1e-6);
    tutti_tensor_release(p);
    tutti_tensor_release(q);
}

TUTTI_TEST(accumulated_batches_equal_the_big_batch)
{
    rig small = open_rig(BATCH, true), big = open_rig(BATCH * PARTS, false);
    for (int step = 0; step < 4; step++) {
        run_batch(&big, big.step, step, 0, BATCH * PARTS);
        for (int part = 0; part < PARTS; part++)
            run_batch(&small, part < PARTS - 1 ? small.add : small.step, step, part * BATCH, BATCH);
        check_equal(&small, small.w, &big, big.w);
        check_equal(&small, small.table, &big, big.table);
    }
    tutti_tensor *gathered;
    tutti_sym slot = {.node = tutti_graph_find(small.graph, "table/accumulated"),
                      .generation = small.w.generation};
    CHECK_OK(tutti_session_get(small.session, slot, &gathered));
    for (int i = 0; i < WORDS * 2; i++)
        CHECK_NEAR(tutti_tensor_get(gathered, i), 0, 0);
    tutti_tensor_release(gathered);
    tutti_session_close(small.session);
    tutti_session_close(big.session);
    tutti_graph_destroy(small.graph);
    tutti_graph_destroy(big.graph);
}

/* 20 examples with weights of their own, as one batch or several of different sizes. */
static tutti_model *trained(tutti_job *job, tutti_loss loss, const char *regularizer, int64_t batch,
                            int accumulate)
{
    tutti_tensor *rows[3];
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){20, 2}, &rows[0]));
    for (int i = 1; i < 3; i++)
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){20, 1}, &rows[i]));
    for (int i = 0; i < 20; i++) {
        tutti_tensor_set(rows[0], 2 * i, (i * 7 % 11 - 5) / 5.0);
        tutti_tensor_set(rows[0], 2 * i + 1, (i * 3 % 13 - 6) / 6.0);
        tutti_tensor_set(rows[1], i, (i * 5 % 7 - 3) / 3.0);
        tutti_tensor_set(rows[2], i, i % 5 * 0.5);
    }
    tutti_tensor *weights;
    CHECK_OK(tutti_tensor_reshape(rows[2], 1, (int64_t[]){20}, &weights));
    tutti_dataset *data =
        tutti_batch(tutti_from_tensor_slices(job, rows[0], rows[1], weights), batch);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(2),
                                      tutti_dense(3, .activation = TUTTI_TANH, .name = "first",
                                                  .kernel_regularizer = regularizer),
                                      tutti_dense(1));
    tutti_compile(m, .optimizer = tutti_sgd(0.02), .loss = loss, .accumulate = accumulate);
    tutti_fit(m, data, .epochs = 3, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(rows[i]);
    tutti_tensor_release(weights);
    return m;
}

TUTTI_TEST(accumulated_fits_equal_the_big_batch_for_every_reduction)
{
    static const tutti_loss_reduction reductions[] = {TUTTI_LOSS_MEAN, TUTTI_LOSS_SUM,
                                                      TUTTI_LOSS_WEIGHTED_MEAN};
    for (int k = 0; k < 6; k++) {
        const char *regularizer = k < 3 ? NULL : "l2(0.3)";
        tutti_loss loss = tutti_mse(.reduction = reductions[k % 3]);
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_tensor *big, *small;
        CHECK_OK(tutti_get_weight(trained(job, loss, regularizer, 20, 1), "first/kernel", &big));
        for (int64_t batch = 7; batch <= 9; batch += 2) { /* 7, 7, 6 and 9, 9, 2 */
            CHECK_OK(tutti_get_weight(trained(job, loss, regularizer, batch, 3), "first/kernel",
                                      &small));
            for (int64_t i = 0; i < 6; i++)
                CHECK_NEAR(tutti_tensor_get(small, i), tutti_tensor_get(big, i), 2e-6);
            tutti_tensor_release(small);
        }
        tutti_tensor_release(big);
        CHECK_INT(tutti_close(job), 0);
    }
}

/* A weighted mean over a dataset does not depend on how it is batched. */
TUTTI_TEST(weighted_means_are_those_of_all_examples)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y, *w;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, 1}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, 1}, &y));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &w));
    for (int i = 0; i < 4; i++) {
        tutti_tensor_set(x, i, 1);
        tutti_tensor_set(y, i, i);
        tutti_tensor_set(w, i, i == 3 ? 10 : 1);
    }
    tutti_model *m = tutti_sequential(job, tutti_dense(1, .kernel_initializer = "zeros"));
    tutti_compile(m, .loss = tutti_mse(.reduction = TUTTI_LOSS_WEIGHTED_MEAN));
    for (int batch = 1; batch <= 4; batch++) {
        tutti_logs logs;
        CHECK_OK(
            tutti_evaluate(m, tutti_batch(tutti_from_tensor_slices(job, x, y, w), batch), &logs));
        CHECK_NEAR(tutti_logs_get(&logs, "loss"), 95.0 / 13, 1e-5);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(w);
    CHECK_INT(tutti_close(job), 0);
}
