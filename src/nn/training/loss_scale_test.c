/* loss_scale_test.c: the scale over finite and broken steps. */
#include "nn/training/loss_scale.h"

#include <math.h>

#include "base/test.h"
#include "nn/optimizers/optimizer.h"
#include "nn/training/accumulate.h"
#include "tutti/tutti.h"

typedef struct rig {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym w, other, x, step, gather;
    tutti_loss_scale scale;
} rig;

/* loss = sum(w x) + sum(other), so dw = x. `gathered`: r.gather only adds, r.step takes the sum. */
static rig open_rig(bool gathered)
{
    rig r = {0};
    CHECK_OK(tutti_graph_create(&r.graph));
    CHECK_OK(tutti_session_open(&r.session, r.graph));
    r.w = tutti_variable(r.graph, tutti_full(4, 3), .name = "w");
    r.other = tutti_variable(r.graph, tutti_full(4, 2), .name = "other");
    tutti_sym variables[] = {r.w, r.other,
                             tutti_variable(r.graph, tutti_zeros(2), .name = "unused")};
    r.x = tutti_placeholder(r.graph, TUTTI_F32, 3);
    r.scale = tutti__loss_scale_open(r.graph);
    tutti_sym loss = tutti_add(tutti_sum(tutti_mul(r.w, r.x)), tutti_sum(r.other));
    tutti_grad grads[3];
    tutti_optimizer adam = tutti_adam(.learning_rate = 0.5);
    tutti_gradients(tutti__loss_scale_up(&r.scale, loss), 3, variables, grads);
    tutti_sym targets[3] = {0};
    int count = 0;
    if (gathered) {
        r.gather = tutti__accumulate_add(3, variables, grads);
        targets[count++] = tutti__accumulate_take(3, variables, grads, 1, grads);
    }
    targets[count++] = tutti__loss_scale_build(&r.scale, 3, grads, grads);
    targets[count++] = tutti__optimizer_apply(&(tutti_updates){.optimizer = &adam,
                                                               .count = 3,
                                                               .variables = variables,
                                                               .grads = grads,
                                                               .apply = r.scale.finite});
    r.step = (tutti_group)(r.graph, NULL, count, targets);
    CHECK_OK(tutti_run(r.session, .target = tutti_initialize_variables(r.graph)));
    return r;
}

static double value_of(const rig *r, tutti_sym variable)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(r->session, variable, &value));
    double number = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return number;
}

static void set(const rig *r, tutti_sym variable, tutti_dtype dtype, double number)
{
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_create(dtype, 0, NULL, &value));
    tutti_tensor_set(value, 0, number);
    CHECK_OK(tutti_session_set(r->session, variable, value));
    tutti_tensor_release(value);
}

static void run_target(const rig *r, tutti_sym target, float x)
{
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){3}, (float[]){1, x, -1}, &value));
    CHECK_OK(tutti_run(r->session, .feed = TUTTI_FEED({r->x, value}), .target = target));
    tutti_tensor_release(value);
}

static void run_step(const rig *r, float x)
{
    run_target(r, r->step, x);
}

static void check_state(const rig *r, double scale, double good, double w)
{
    CHECK_NEAR(value_of(r, r->scale.scale), scale, 0);
    CHECK_NEAR(value_of(r, r->scale.good_steps), good, 0);
    CHECK_NEAR(value_of(r, r->w), w, 1e-5);
    CHECK_NEAR(value_of(r, r->other), w, 1e-5);
}

/* Adam with a constant gradient moves by the rate, whatever the scale was. */
TUTTI_TEST(loss_scale_halves_and_skips_what_is_not_finite)
{
    rig r = open_rig(false);
    check_state(&r, 32768, 0, 4);
    run_step(&r, 2);
    check_state(&r, 32768, 1, 3.5);
    run_step(&r, INFINITY);
    check_state(&r, 16384, 0, 3.5);
    run_step(&r, NAN);
    check_state(&r, 8192, 0, 3.5);
    run_step(&r, 2);
    check_state(&r, 8192, 1, 3);
    set(&r, r.scale.scale, TUTTI_F32, 1);
    run_step(&r, -INFINITY);
    check_state(&r, 1, 0, 3);
    run_step(&r, 3e38f);
    CHECK_NEAR(value_of(&r, r.scale.good_steps), 1, 0);
    tutti_session_close(r.session);
    tutti_graph_destroy(r.graph);
}

TUTTI_TEST(loss_scale_doubles_after_many_good_steps)
{
    rig r = open_rig(false);
    set(&r, r.scale.good_steps, TUTTI_I64, 1998);
    run_step(&r, 2);
    check_state(&r, 32768, 1999, 3.5);
    run_step(&r, 2);
    check_state(&r, 65536, 0, 3);
    run_step(&r, 2);
    check_state(&r, 65536, 1, 2.5);
    set(&r, r.scale.good_steps, TUTTI_I64, 1999);
    run_step(&r, NAN);
    check_state(&r, 32768, 0, 2.5);
    tutti_session_close(r.session);
    tutti_graph_destroy(r.graph);
}

/* Gradients are gathered as they are, and looked at when they are taken: a batch that was not
 * finite spoils its step and no other. */
TUTTI_TEST(loss_scale_sees_what_was_gathered)
{
    rig r = open_rig(true);
    run_target(&r, r.gather, 2);
    check_state(&r, 32768, 0, 4);
    run_step(&r, 2);
    check_state(&r, 32768, 1, 3.5);
    run_target(&r, r.gather, NAN);
    run_step(&r, 2);
    check_state(&r, 16384, 0, 3.5);
    run_target(&r, r.gather, 2);
    run_step(&r, 2);
    check_state(&r, 16384, 1, 3);
    tutti_session_close(r.session);
    tutti_graph_destroy(r.graph);
}
