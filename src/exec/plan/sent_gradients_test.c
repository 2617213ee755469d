/* sent_gradients_test.c: gradients through a user's own send and recv. */
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *numbers(void)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){3}, (double[]){1, 2, -3}, &x));
    return x;
}

/* y = (x^2)^2 + x^2, of which one x^2 is sent: 4 x^3 + 2 x. */
TUTTI_TEST(gradients_flow_back_through_send_and_recv)
{
    const char *devices[][2] = {{"far:0", "far:1"}, {"cpu:0", "far:0"}, {"whole:0", "whole:1"}};
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        tutti_session *s;
        tutti_tensor *x_value = numbers(), *dx;
        tutti_sym sent, sending, came, y;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F64, 3);
        TUTTI_WITH_DEVICE(g, devices[d][0]) {
            sent = tutti_square(x);
            sending = tutti_send(sent, "squares", devices[d][1]);
        }
        TUTTI_WITH_DEVICE(g, devices[d][1]) {
            came = tutti_recv(g, "squares", devices[d][0], TUTTI_TYPE(TUTTI_F64, 3));
            y = tutti_add(tutti_square(came), sent);
        }
        tutti_sym gradient = tutti_gradient(y, x);
        CHECK_OK(tutti_graph_check(g));
        CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 20));
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, x_value}),
                           .fetch = TUTTI_FETCH({gradient, &dx}), .target = sending));
        for (int i = 0; i < 3; i++) {
            double at = tutti_tensor_get(x_value, i);
            CHECK_NEAR(tutti_tensor_get(dx, i), 4 * at * at * at + 2 * at, 1e-12);
        }
        tutti_tensor_release(dx);
        tutti_tensor_release(x_value);
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
}

/* What comes is of another type than what was sent, or was built first. */
TUTTI_TEST(gradients_that_find_no_way_back_are_refused)
{
    for (int first = 0; first < 2; first++) {
        tutti_graph *g;
        tutti_sym came = TUTTI_NO_SYM;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F64, 3);
        if (first)
            came = tutti_recv(g, "squares", "far:0", TUTTI_TYPE(TUTTI_F64, 3));
        tutti_send(tutti_square(x), "squares", "far:1");
        if (!first)
            came = tutti_recv(g, "squares", "far:0", TUTTI_TYPE(TUTTI_F64, 4));
        tutti_gradient(tutti_square(came), x);
        CHECK(tutti_graph_check(g) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), "recv");
        CHECK_CONTAINS(tutti_error_message(), first ? "on channel 'squares'" : "f64[4]");
        if (first)
            CHECK_CONTAINS(tutti_error_message(), "sent_gradients_test.c:");
        tutti_graph_destroy(g);
    }
}
