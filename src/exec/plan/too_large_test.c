/* too_large_test.c: values that no memory holds are refused before a run, by their node's name,
 * also where sizes are known only when a session knows what it is fed. */
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

static const char *const devices[] = {"cpu:0", "far:0", "whole:0"};

/* A run that feeds `x` zeros of a shape and wants `y` fails. */
static void refuse(const char *device, tutti_sym x, int rank, const int64_t *dims, tutti_sym y,
                   const char *message)
{
    tutti_session *s;
    tutti_tensor *in, *out = NULL;
    CHECK_OK(tutti_graph_check(tutti_sym_graph(x)));
    CHECK_OK(tutti_session_open(&s, tutti_sym_graph(x), .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(tutti_sym_graph(x))));
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

TUTTI_TEST(sizes_are_checked_again_when_shapes_are_known)
{
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2);
        tutti_sym y = tutti_random_categorical(x, (int64_t)1 << 61);
        refuse(devices[d], x, 2, (int64_t[]){1, 2}, tutti_slice_axis(y, 1, 0, 2),
               "random_categorical 'random_categorical': output 0 would be "
               "i64[1,2305843009213693952], whose size overflows 64 bits");
        tutti_graph_destroy(g);
    }
}

static tutti_status grow(tutti_infer *node)
{
    int64_t dim = node->inputs[0].dims[0];
    node->outputs[0] = node->inputs[0];
    node->outputs[0].dims[0] = dim == TUTTI_ANY ? dim : INT64_MAX / 2;
    return TUTTI_OK;
}

static tutti_status do_nothing(const tutti_kernel_call *call)
{
    (void)call;
    return TUTTI_OK;
}

static const tutti_op growing_op = {.struct_size = sizeof(tutti_op),
                                    .name = "test.growing",
                                    .version = 1,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .outputs = 1,
                                    .infer = grow,
                                    .reference = do_nothing};

TUTTI_TEST(what_a_users_rule_says_late_is_checked)
{
    (void)tutti_op_register(&growing_op);
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
        tutti_sym y = tutti_apply_op(g, "test.growing", 1, &x, 0, NULL);
        refuse(devices[d], x, 1, (int64_t[]){3}, tutti_slice_axis(y, 0, 0, 2),
               "test.growing 'test.growing': output 0 would be f32[");
        tutti_graph_destroy(g);
    }
}

static void draw(tutti_graph *g, int count, const tutti_sym *args, tutti_sym *results,
                 void *context)
{
    (void)g, (void)count, (void)context;
    results[0] = tutti_slice_axis(tutti_random_categorical(args[0], (int64_t)1 << 61), 1, 0, 2);
}

TUTTI_TEST(sizes_in_bodies_are_checked_too)
{
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2);
        tutti_sym yes = tutti_greater(tutti_sum(x), tutti_scalar(g, TUTTI_F32, -1));
        tutti_sym y = tutti_cond(yes, draw, draw, NULL, TUTTI_SYMS(x), 1, NULL);
        refuse(devices[d], x, 2, (int64_t[]){1, 2}, y, "random_categorical");
        tutti_graph_destroy(g);
    }
}

/* What a window reaches is larger than what was checked. */
TUTTI_TEST(convolutions_whose_windows_cannot_be_counted_find_a_kernel)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in[] = {tutti_placeholder(g, TUTTI_F32, 64, 4, 4, TUTTI_ANY),
                      tutti_placeholder(g, TUTTI_F32, 64, 4, 4, 1)};
    tutti_attr attrs[] = {TUTTI_STR("padding", "same"),
                          TUTTI_INTS("size", 2, ((int64_t[]){1 << 29, 1 << 29}))};
    tutti_sym y = tutti_apply_op(g, "conv2d_backward_kernel", 2, in, 2, attrs);
    CHECK_OK(tutti_graph_check(g));
    tutti_session *s;
    tutti_tensor *t, *out;
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){64, 4, 4, 1}, &t));
    tutti_status status =
        tutti_run(s, .feed = TUTTI_FEED({in[0], t}, {in[1], t}), .fetch = TUTTI_FETCH({y, &out}));
    CHECK(status == TUTTI_NO_MEMORY || status == TUTTI_TOO_LARGE);
    tutti_tensor_release(t);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
