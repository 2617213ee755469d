/* shown_test.c: what a loop on the tape shows behind its updates. */
#include <math.h>

#include "base/test.h"
#include "tutti/ops.h"
#include "tutti/optimizer.h"
#include "tutti/tape.h"

enum { LARGE = 3000 }; /* elements: more than what is kept of variables by themselves */

/* Two losses by turns, as adversaries have them: a = mean (w - v)^2 + penalty, b = mean (w v), with
 * w = 2, v = 1 and so a = 1 + 0.5, b = 2, and what is left when w has moved by -1. */
static void show(const char *device)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e, .device = device));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym w = tutti_variable(g, tutti_full(2, LARGE), .name = "w");
    tutti_sym v = tutti_variable(g, tutti_full(1, LARGE), .name = "v");
    for (int step = 0; step < 3; step++) {
        double gap = 1 - step;
        TUTTI_STEP(e) {
            tutti_sym distance, penalty, a, b;
            tutti_grad dw;
            TUTTI_TAPE(tape, e) {
                distance = tutti_mean(tutti_square(tutti_sub(w, v)));
                penalty = tutti_mul(tutti_mean(v), 0.5);
                a = tutti_add(distance, penalty);
                b = tutti_mean(tutti_mul(w, v));
            }
            tutti_tape_gradients(&tape, a, 1, &w, &dw);
            tutti_sym largest = tutti_max(w);
            tutti_assign_sub(w, tutti_ones_like(w));
            CHECK_NEAR(tutti_scalar_value(a), gap * gap + 0.5, 1e-6);
            CHECK_NEAR(tutti_scalar_value(distance), gap * gap, 1e-6);
            CHECK_NEAR(tutti_scalar_value(penalty), 0.5, 1e-6);
            CHECK_NEAR(tutti_scalar_value(b), 2 - step, 1e-6);
            CHECK_NEAR(tutti_scalar_value(largest), 2 - step, 1e-6);
            CHECK_NEAR(tutti_scalar_value(tutti_max(w)), 1 - step, 1e-6); /* anew */
        }
    }
    CHECK_OK(tutti_eager_check(e));
    tutti_session_info info;
    tutti_eager_describe(e, &info);
    CHECK(info.runs < 10); /* one for the step, one for what is read of the new weights */
    tutti_eager_close(e);
}

TUTTI_TEST(losses_can_be_read_behind_the_update)
{
    show("cpu:0");
    show("far:0");
    show("whole:0");
}

/* What is too much to be kept is a NaN that tutti_eager_check explains. */
TUTTI_TEST(a_number_that_cannot_be_read_counts_as_a_failure)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_ones(LARGE), .name = "w");
    TUTTI_STEP(e) {
        tutti_sym twice = tutti_mul(w, 2);
        tutti_sym sum = tutti_sum(twice);
        tutti_assign(w, twice);
        CHECK_NEAR(tutti_scalar_value(sum), 2 * LARGE, 1e-3);
        CHECK(isnan(tutti_scalar_value(twice)));
    }
    CHECK_STATUS(tutti_eager_check(e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "before the update runs");
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}

TUTTI_TEST(a_loss_that_is_made_behind_the_tape_is_named)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_ones(3), .name = "w"), a, b;
    TUTTI_STEP(e) {
        tutti_grad grad;
        TUTTI_TAPE(tape, e) {
            a = tutti_sum(w);
            b = tutti_mean(w);
        }
        tutti_tape_gradients(&tape, tutti_add(a, b), 1, &w, &grad);
        CHECK(!tutti_grad_ok(grad));
    }
    CHECK_STATUS(tutti_eager_check(e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "behind the tape's block");
    CHECK_CONTAINS(tutti_error_message(), "shown_test.c:");
    tutti_eager_close(e);
}
