/* waiting_test.c: what waits for what, whatever passes make of a graph. */
#include <math.h>

#include "base/test.h"
#include "tutti/tutti.h"

typedef struct bench {
    tutti_graph *graph;
    tutti_session *session;
} bench;

static bench start(const char *device)
{
    bench b;
    CHECK_OK(tutti_graph_create(&b.graph));
    CHECK_OK(tutti_session_open(&b.session, b.graph, .deadline_seconds = 10, .device = device));
    return b;
}

static void end(bench b)
{
    tutti_session_close(b.session);
    tutti_graph_destroy(b.graph);
}

static double take(tutti_tensor *tensor)
{
    double value = tutti_tensor_get(tensor, 0);
    tutti_tensor_release(tensor);
    return value;
}

static const char *const devices[] = {"cpu:0", "far:0", "whole:0"};

/* A check that a value waits for counts for all that is made of it, however that is simplified. */
TUTTI_TEST(control_edges_outlast_simplification)
{
    bench b = start("cpu:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, 2, 2),
              one = tutti_scalar(b.graph, TUTTI_F32, 1);
    tutti_sym fits = tutti_assert(tutti_less(x, one), "too large"), same = x, minus = x, turned = x,
              known = x, constant = x;
    TUTTI_WITH_CONTROL(b.graph, fits) {
        same = tutti_identity(x);
        minus = tutti_neg(x);
        turned = tutti_transpose(x, 1, 0);
        known = tutti_fill(b.graph, TUTTI_F32, 3, 2, 2);
        constant = tutti_scalar(b.graph, TUTTI_F32, 3);
    }
    tutti_sym users[] = {tutti_reshape(same, 4),
                         tutti_mean(tutti_expand_dims(same, 0)),
                         tutti_neg(minus),
                         tutti_sub(x, minus),
                         tutti_transpose(turned, 1, 0),
                         tutti_matmul(turned, x),
                         tutti_add(known, one),
                         tutti_add(constant, one),
                         tutti_mul(x, constant),
                         tutti_add(tutti_broadcast_to(known, 3, 2, 2), one),
                         tutti_shape(minus),
                         tutti_size(tutti_exp(minus)),
                         tutti_reshape(tutti_reshape(same, 4), 2, 2)};
    tutti_tensor *in, *out;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){2, 2}, (float[]){5, 6, 7, 8}, &in));
    for (size_t i = 0; i < TUTTI_COUNT(users); i++) {
        CHECK_STATUS(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                               .fetch = TUTTI_FETCH({users[i], &out})),
                     TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "too large");
    }
    tutti_tensor_release(in);
    end(b);
}

/* A read waits for what does not follow the update, though others that use the same do: they are
 * not fused, or the read would have to follow it as well. */
TUTTI_TEST(reads_do_not_follow_updates_by_being_fused)
{
    bench b = start("cpu:0");
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(4)),
              w = tutti_variable(b.graph, tutti_zeros(4)),
              x = tutti_placeholder(b.graph, TUTTI_F32, 4), one = tutti_ones_like(x);
    tutti_sym updated = tutti_assign_add(v, one), read = x, later = x;
    tutti_sym shared = tutti_exp(x), before = tutti_add(shared, x),
              after = tutti_add(shared, updated);
    TUTTI_WITH_CONTROL(b.graph, tutti_neg(before))
        read = tutti_read(v);
    /* The same of one that follows the update of v, beside one that follows that of w as well. */
    tutti_sym both = tutti_add(after, tutti_assign_add(w, one));
    TUTTI_WITH_CONTROL(b.graph, tutti_neg(after))
        later = tutti_read(w);
    tutti_tensor *in, *old, *new, *other, *sum;
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){0, 0, 0, 0}, &in));
    CHECK_OK(tutti_run(
        b.session, .feed = TUTTI_FEED({x, in}),
        .fetch = TUTTI_FETCH({read, &old}, {after, &new}, {later, &other}, {both, &sum})));
    CHECK(tutti_tensor_get(old, 0) == 0 && tutti_tensor_get(new, 0) == 2);
    CHECK(tutti_tensor_get(other, 0) == 0 && tutti_tensor_get(sum, 0) == 3);
    tutti_tensor_release(in);
    tutti_tensor_release(old);
    tutti_tensor_release(new);
    tutti_tensor_release(other);
    tutti_tensor_release(sum);
    end(b);
}

/* Many reads behind one node, each of another variable that has been updated before it, or not. */
TUTTI_TEST(many_reads_follow_their_own_updates)
{
    enum { MANY = 40 };
    bench b = start("cpu:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, 1), variables[MANY], updates[MANY],
              reads[MANY], again[MANY];
    for (int i = 0; i < MANY; i++)
        variables[i] = tutti_variable(b.graph, tutti_full(i, 1));
    for (int i = 0; i < MANY; i++)
        updates[i] = tutti_assign_add(variables[i], x);
    tutti_control_push(b.graph, MANY / 2, updates);
    for (int i = 0; i < MANY; i++)
        reads[i] = tutti_read(variables[i]);
    tutti_control_pop(b.graph);
    tutti_control_push(b.graph, MANY, updates); /* so many are waited for by one node */
    for (int i = 0; i < MANY; i++)
        again[i] = tutti_read(variables[i]);
    tutti_control_pop(b.graph);
    tutti_sym some = tutti_concatenate(MANY, reads), all = tutti_concatenate(MANY, again);
    tutti_tensor *in, *first, *second;
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){1}, (float[]){100}, &in));
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({some, &first}, {all, &second})));
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(tutti_tensor_get(first, i), i + (i < MANY / 2 ? 100 : 0));
        CHECK_INT(tutti_tensor_get(second, i), i + 100);
    }
    tutti_tensor_release(in);
    tutti_tensor_release(first);
    tutti_tensor_release(second);
    end(b);
}

/* Views of views, as many as no stack holds, of a value that an update writes over. */
TUTTI_TEST(long_chains_of_views_are_saved_from_updates)
{
    enum { LONG = TUTTI_TEST_SANITIZED ? 20000 : 200000 };
    bench b = start("cpu:0");
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(4)), view = tutti_read(v), both = v,
              none = tutti_no_op(b.graph), one = tutti_placeholder(b.graph, TUTTI_F32, 4);
    for (int i = 0; i < LONG; i++)
        TUTTI_WITH_CONTROL(b.graph, none) /* else they are simplified */
            view = tutti_identity(view);
    TUTTI_WITH_CONTROL(b.graph, tutti_assign_add(v, one))
        both = tutti_add(view, tutti_read(v));
    tutti_tensor *in, *out;
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){1, 1, 1, 1}, &in));
    CHECK_OK(
        tutti_run(b.session, .feed = TUTTI_FEED({one, in}), .fetch = TUTTI_FETCH({both, &out})));
    CHECK(tutti_tensor_get(out, 3) == 1);
    tutti_tensor_release(in);
    tutti_tensor_release(out);
    end(b);
}

/* A third group would make the read follow the update by way of the first: exp(p) runs with what
 * follows it, and exp(q) with something that takes exp(p). */
static void fuse_by_another(const char *device, const char *other)
{
    bench b = start(device);
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(4)), w = v;
    TUTTI_WITH_DEVICE(b.graph, other)
        w = tutti_variable(b.graph, tutti_zeros(3, 4));
    tutti_sym p = tutti_placeholder(b.graph, TUTTI_F32, 4),
              q = tutti_placeholder(b.graph, TUTTI_F32, 3, 4), read = v, sent = v;
    tutti_sym shared = tutti_exp(p), after = tutti_add(shared, tutti_assign_add(v, shared));
    tutti_sym before = tutti_exp(q), both = tutti_add(shared, before);
    TUTTI_WITH_CONTROL(b.graph, tutti_neg(before))
        read = tutti_read(v);
    TUTTI_WITH_DEVICE(b.graph, other)
        sent = tutti_assign_add(w, tutti_neg(before));
    tutti_tensor *zeros, *more, *out[4];
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[4]){0}, &zeros));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){3, 4}, (float[12]){0}, &more));
    CHECK_OK(tutti_run(
        b.session, .feed = TUTTI_FEED({p, zeros}, {q, more}),
        .fetch = TUTTI_FETCH({read, &out[0]}, {after, &out[1]}, {both, &out[2]}, {sent, &out[3]})));
    const double expected[] = {0, 2, 2, -1};
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(take(out[i]), expected[i], 0);
    tutti_tensor_release(zeros);
    tutti_tensor_release(more);
    end(b);
}

TUTTI_TEST(reads_and_devices_do_not_follow_updates_by_way_of_others)
{
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++)
        fuse_by_another(devices[i], devices[i]);
    fuse_by_another("far:0", "far:1");
    fuse_by_another("cpu:0", "far:0");
}

static double run_once(const bench *b, tutti_sym fetched)
{
    tutti_tensor *out;
    CHECK_OK(tutti_run(b->session, .fetch = TUTTI_FETCH({fetched, &out})));
    return take(out);
}

/* A read that waits for something known at once sees the update that this waits for. */
static void wait_by_what_is_known(const char *device)
{
    bench b = start(device);
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(4)),
              one = tutti_fill(b.graph, TUTTI_F32, 1, 4), update = tutti_assign_add(v, one),
              constant = v, filled = v, sum = v;
    TUTTI_WITH_CONTROL(b.graph, update) {
        constant = tutti_scalar(b.graph, TUTTI_F32, 3);
        filled = tutti_fill(b.graph, TUTTI_F32, 3, 4);
        sum = tutti_add(one, one);
    }
    tutti_sym known[] = {constant,
                         tutti_add(constant, one),
                         tutti_neg(tutti_add(constant, one)),
                         filled,
                         tutti_neg(filled),
                         tutti_neg(tutti_shape(tutti_neg(filled))),
                         tutti_neg(sum),
                         tutti_neg(tutti_shape(update)),
                         tutti_add(tutti_zeros_like(tutti_exp(update)), one)};
    tutti_sym reads[TUTTI_COUNT(known)];
    for (size_t i = 0; i < TUTTI_COUNT(known); i++)
        TUTTI_WITH_CONTROL(b.graph, known[i])
            reads[i] = tutti_read(v);
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    for (size_t i = 0; i < TUTTI_COUNT(known); i++)
        CHECK_INT(run_once(&b, reads[i]), i + 1);
    end(b);
}

TUTTI_TEST(reads_follow_updates_by_way_of_what_is_known)
{
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++)
        wait_by_what_is_known(devices[i]);
}

/* What is only asked for its shape is computed nowhere, but what it does is done. */
TUTTI_TEST(updates_run_though_only_their_shape_is_asked_for)
{
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++) {
        bench b = start(devices[i]);
        tutti_sym v = tutti_variable(b.graph, tutti_zeros(4)),
                  shape = tutti_shape(tutti_assign_add(v, tutti_fill(b.graph, TUTTI_F32, 1, 4)));
        tutti_type number = tutti_type_make(TUTTI_F32, 0, NULL);
        tutti_sym queue = tutti_fifo_queue(b.graph, 4, number),
                  put = tutti_enqueue(queue, tutti_scalar(b.graph, TUTTI_F32, 1)),
                  size = tutti_size(tutti_dequeue(queue));
        CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
        CHECK_INT(run_once(&b, shape), 4);
        CHECK_INT(run_once(&b, v), 1);
        CHECK_OK(tutti_run(b.session, .target = put));
        CHECK_INT(run_once(&b, size), 1);
        CHECK_INT(run_once(&b, tutti_queue_size(queue)), 0);
        end(b);
    }
}

/* However many nodes without work lie between. */
TUTTI_TEST(streams_wait_through_many_nodes)
{
    enum { MANY = 100, SIDE = 128 };
    bench b = start("far:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, SIDE, SIDE), product = x;
    tutti_type number = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti_sym queue = tutti_fifo_queue(b.graph, 10, number);
    for (int i = 0; i < 4; i++)
        product = tutti_matmul(product, x);
    tutti_sym last[2] = {tutti_enqueue(queue, tutti_sum(product)), x}, size = x;
    last[1] = last[0];
    for (int i = 0; i < MANY; i++) { /* twice as many ways with each */
        tutti_sym next[2] = {x, x};
        tutti_control_push(b.graph, 2, last);
        next[0] = tutti_no_op(b.graph);
        next[1] = tutti_no_op(b.graph);
        tutti_control_pop(b.graph);
        last[0] = next[0], last[1] = next[1];
    }
    tutti_control_push(b.graph, 2, last);
    size = tutti_queue_size(queue);
    tutti_control_pop(b.graph);
    tutti_tensor *in, *out;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){SIDE, SIDE}, &in));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(
            tutti_run(b.session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({size, &out})));
        CHECK_INT(take(out), i + 1);
    }
    tutti_tensor_release(in);
    end(b);
}

/* On a tape nothing runs that nobody asks for, however many nodes a scope waits for. */
TUTTI_TEST(scopes_of_a_tape_ask_for_nothing)
{
    enum { MANY = 40 };
    tutti_eager *eager;
    tutti_tensor *in;
    CHECK_OK(tutti_eager_open(&eager));
    tutti_graph *graph = tutti_eager_graph(eager);
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){1}, (float[]){INFINITY}, &in));
    TUTTI_STEP(eager) {
        tutti_sym x = tutti_eager_feed(eager, in), checks[MANY];
        for (int i = 0; i < MANY; i++)
            checks[i] = tutti_check_numerics(x, "bad");
        tutti_control_push(graph, MANY, checks);
        (void)tutti_square(x);
        tutti_control_pop(graph);
        CHECK_NEAR(tutti_scalar_value(tutti_clip(x, 0, 1)), 1, 0);
    }
    CHECK_OK(tutti_eager_check(eager));
    tutti_tensor_release(in);
    tutti_eager_close(eager);
}
