/* too_large_test.c: values that no memory holds are refused before a run, by their node's name. */
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

static const char *const devices[] = {"cpu:0", "far:0"};

/* A run that feeds `x` zeros of a shape and wants `y` fails. */
static void refuse(const char *device, tutti_sym x, int rank, const int64_t *dims, tutti_sym y,
                   const char *message)
{
    tutti_session *s;
    tutti_tensor *in, *out = NULL;
    CHECK_OK(tutti_graph_check(tutti_sym_graph(x)));
    CHECK_OK(tutti_session_open(&s, tutti_sym_graph(x), .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_all(tutti_sym_graph(x))));
    CHECK_OK(tutti_tensor_create(tutti_sym_type(x).dtype, rank, dims, &in));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out})),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), message);
    CHECK_CONTAINS(tutti_error_message(), "too_large_test.c:");
    CHECK(out == NULL);
    tutti_tensor_release(in);
    tutti_session_close(s);
}

/* Each value's size can be told in 64 bits, and two of them wrap to a few bytes. */
TUTTI_TEST(values_that_fit_64_bits_only_one_by_one_are_refused)
{
    for (int d = 0; d < 2; d++)
        for (int64_t less = 8; less <= 16; less += 8) {
            tutti_graph *g;
            CHECK_OK(tutti_graph_create(&g));
            tutti_sym x = tutti_placeholder(g, TUTTI_F64, 1);
            tutti_sym y = tutti_tile(x, ((int64_t)1 << 60) - less), z = tutti_roll(y, 1, 0);
            z = tutti_add(tutti_slice_axis(y, 0, 0, 2), tutti_slice_axis(tutti_mul(z, z), 0, 0, 2));
            refuse(devices[d], x, 1, (int64_t[]){1}, z, "more bytes than can be addressed");
            CHECK_CONTAINS(tutti_error_message(), "tile 'tile' (");
            tutti_graph_destroy(g);
        }
}

TUTTI_TEST(values_that_fit_64_bits_only_alone_are_refused_as_results)
{
    for (int d = 0; d < 2; d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F64, 1);
        refuse(devices[d], x, 1, (int64_t[]){1}, tutti_tile(x, ((int64_t)1 << 60) - 8),
               "more bytes than can be addressed");
        tutti_graph_destroy(g);
    }
}
