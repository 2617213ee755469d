/* tape.c: operators from outside applied one after the other, with gradients. */
#include "acme/acme.h"
#include "check.h"

/* Gradients of both outputs at once, against sums written out: with p = 3,
 * L = sum_r y[r] k[r] + 2 total, so dL/dx[r,c] = (k[r] + 2) w[r] 3 x^2, dL/dw[r] = (k[r] + 2) sum_c
 * x^3. */
static void check_gradients(const char *device)
{
    tutti_eager *e = NULL;
    CHECK_OK(tutti_eager_open(&e, .device = device));
    tutti_tensor *x = check_tensor(2, (int64_t[]){2, 2}, 0.5, 0.25),
                 *w = check_tensor(1, (int64_t[]){2}, 1, 1);
    tutti_tensor *k = check_tensor(1, (int64_t[]){2}, 3, -1), *dx = NULL, *dw = NULL;
    TUTTI_STEP(e) {
        tutti_sym inputs[] = {tutti_eager_feed(e, x), tutti_eager_feed(e, w)}, loss;
        TUTTI_TAPE(tape, e) {
            tutti_tape_watch(&tape, inputs[0]);
            tutti_tape_watch(&tape, inputs[1]);
            tutti_sym y = acme_rows(inputs[0], inputs[1], 3), total = tutti_sym_output(y, 1);
            loss = tutti_add(tutti_sum(tutti_mul(y, tutti_eager_feed(e, k))), tutti_mul(total, 2));
        }
        tutti_grad grads[2];
        tutti_tape_gradients(&tape, loss, 2, inputs, grads);
        CHECK_OK(tutti_value(grads[0].value, &dx));
        CHECK_OK(tutti_value(grads[1].value, &dw));
    }
    for (int r = 0; dx && dw && r < 2; r++) {
        double weight = r + 1, outer = 3 - r + 2, a = 0.5 + 0.5 * r, b = a + 0.25;
        CHECK_NEAR(tutti_tensor_get(dx, 2 * r), outer * weight * 3 * a * a, 1e-6);
        CHECK_NEAR(tutti_tensor_get(dx, 2 * r + 1), outer * weight * 3 * b * b, 1e-6);
        CHECK_NEAR(tutti_tensor_get(dw, r), outer * (a * a * a + b * b * b), 1e-6);
    }
    tutti_tensor *all[] = {x, w, k, dx, dw};
    for (int i = 0; i < 5; i++)
        tutti_tensor_release(all[i]);
    tutti_eager_close(e);
}

/* A custom loop that learns; steps after the first two come from the cache. */
static double train(const char *device)
{
    tutti_eager *e = NULL;
    CHECK_OK(tutti_eager_open(&e, .device = device));
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_full(0.1, 3), .name = "v");
    tutti_tensor *goal = check_tensor(1, (int64_t[]){3}, 0.2, 0.4);
    double first = NAN, last = NAN;
    for (int i = 0; i < 80; i++) {
        tutti_sym wanted = tutti_eager_feed(e, goal), loss;
        TUTTI_TAPE(tape, e) {
            loss = tutti_mean(tutti_square(tutti_sub(acme_swish(v, 0.5), wanted)));
        }
        tutti_grad grad;
        tutti_tape_gradients(&tape, loss, 1, &v, &grad);
        tutti_apply_gradients(tutti_sgd(0.5), 1, &v, &grad);
        last = tutti_scalar_value(loss);
        first = i == 0 ? last : first;
        CHECK_OK(tutti_eager_step(e));
    }
    CHECK(last < first / 100);
    tutti_session_info info;
    tutti_eager_describe(e, &info);
    CHECK(info.compiles <= 6);
    tutti_tensor_release(goal);
    tutti_eager_close(e);
    return last;
}

/* A mistake ends its step, names the line, and the next step is clean. */
static void check_mistake(void)
{
    tutti_eager *e = NULL;
    char place[64];
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *x = check_tensor(1, (int64_t[]){3}, 1, 1), *value = NULL;
    snprintf(place, sizeof place, "(%s:%d)", __FILE__, __LINE__ + 1);
    tutti_sym y = acme_swish(tutti_eager_feed(e, x), -2);
    CHECK(tutti_value(y, &value) != TUTTI_OK);
    CHECK(tutti_eager_step(e) == TUTTI_INVALID);
    CHECK_SAYS("acme.cubic_swish");
    CHECK_SAYS("alpha is -2");
    CHECK_SAYS(place);
    y = acme_swish(tutti_eager_feed(e, x), 0);
    CHECK_NEAR(tutti_scalar_value(y), 1 / (1 + exp(-1)), 1e-6);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(x);
    tutti_eager_close(e);
}

int main(void)
{
    CHECK_OK(acme_register());
    for (int i = 0; i < CHECK_DEVICES; i++)
        check_gradients(check_devices[i]);
    double cpu = train("cpu:0");
    CHECK(train("far:0") == cpu);
    CHECK_NEAR(train("whole:0"), cpu, 1e-4);
    check_mistake();
    return check_end();
}
