/* filled_shapes_test.c: a shape that is given as data and contradicts what was said of it. */
#include "base/test.h"
#include "tutti/tutti.h"

static void check(const char *device, bool fed, bool known)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *shape, *value = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){3, 4}, &shape));
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym from = fed ? tutti_placeholder(g, TUTTI_I64, 2) : tutti_constant(g, shape);
    tutti_sym y = tutti_fill_dynamic(from, TUTTI_F32, 1, TUTTI_ANY, known ? 4 : 2);
    tutti_status status = tutti_graph_check(g);
    if (status == TUTTI_OK) {
        CHECK_OK(tutti_session_open(&s, g, .device = device));
        status =
            fed ? tutti_run(s, .feed = TUTTI_FEED({from, shape}), .fetch = TUTTI_FETCH({y, &value}))
                : tutti_run(s, .fetch = TUTTI_FETCH({y, &value}));
        tutti_session_close(s);
    }
    CHECK_INT(status, known ? TUTTI_OK : TUTTI_INVALID);
    if (!known) {
        CHECK_CONTAINS(tutti_error_message(), "fill_dynamic 'fill_dynamic'");
        CHECK_CONTAINS(tutti_error_message(), "[3,4]");
        CHECK_CONTAINS(tutti_error_message(), "[?,2]");
        CHECK_CONTAINS(tutti_error_message(), "filled_shapes_test.c:");
    }
    tutti_tensor_release(value);
    tutti_tensor_release(shape);
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_shape_that_is_not_as_was_said_is_refused)
{
    const char *devices[] = {"cpu:0", "far:0", "whole:0"};
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++)
        for (int i = 0; i < 4; i++)
            check(devices[d], i % 2 == 0, i / 2 == 0);
}
