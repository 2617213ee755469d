/* term_by_term_test.c: convolutions without Winograd's tiles. */
#include <math.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { SIDE = 16, CHANNELS = 16 };

/* y and dy/dx of a convolution with ones, of zeros but for one corner. */
static void convolve(float corner, tutti_tensor **ret_y, tutti_tensor **ret_dx)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){1, SIDE, SIDE, CHANNELS}, &value));
    tutti_tensor_set(value, 0, corner);
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 1, SIDE, SIDE, CHANNELS);
    tutti_sym kernel = tutti_fill(g, TUTTI_F32, 1, 3, 3, CHANNELS, CHANNELS);
    tutti_sym y = tutti_nn_conv2d(x, kernel, .padding = "same");
    tutti_sym dx = tutti_gradient(tutti_mul(tutti_sum(tutti_square(y)), 0.5), x);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}),
                       .fetch = TUTTI_FETCH({y, ret_y}, {dx, ret_dx})));
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_tensor_release(value);
}

static double at(const tutti_tensor *tensor, int row, int column)
{
    return tutti_tensor_get(tensor, ((int64_t)row * SIDE + column) * CHANNELS);
}

TUTTI_TEST_ALONE(what_is_not_finite_stays_in_its_windows_without_tiles)
{
    tutti_tensor *y, *dx;
    CHECK_OK(tutti__param_set("WINOGRAD", "0"));
    convolve(INFINITY, &y, &dx);
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            CHECK_NEAR(at(y, row, column), row < 2 && column < 2 ? INFINITY : 0, 0);
            CHECK_NEAR(at(dx, row, column), row < 3 && column < 3 ? INFINITY : 0, 0);
        }
    tutti_tensor_release(y);
    tutti_tensor_release(dx);
    convolve(1, &y, &dx);
    CHECK_NEAR(at(y, 1, 1), 1, 0);
    CHECK_NEAR(at(dx, 1, 1), 4 * CHANNELS, 0);
    tutti_tensor_release(y);
    tutti_tensor_release(dx);
    CHECK_OK(tutti__param_set("WINOGRAD", NULL));
}
