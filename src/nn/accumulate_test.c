/* accumulate_test.c: batches gathered into one step against the big batch. */
#include "nn/accumulate.h"

#include "base/test.h"
#include "nn/optimizer.h"
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
        tutti_sum(tutti_embedding_lookup(r.table, r.ids), .axes = TUTTI_AXES(1), .keep_dims = true);
    tutti_sym error = tutti_add_scalar(tutti_add(tutti_matmul(r.x, r.w), word), -1);
    tutti_sym variables[] = {r.w, r.table}, targets[2];
    tutti_grad grads[2];
    tutti_differentiate(tutti_mean(tutti_square(error)), 2, variables, grads);
    if (gathered) {
        r.add = tutti__accumulate_add(2, variables, grads);
        targets[0] = tutti__accumulate_take(2, variables, grads, 1.0 / PARTS, grads);
    }
    targets[gathered] = tutti_apply_gradients(tutti_sgd(0.1), 2, variables, grads);
    r.step = (tutti_group)(r.graph, NULL, 1 + gathered, targets);
    CHECK_OK(tutti_run(r.session, .target = tutti_initialize_all(r.graph)));
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
