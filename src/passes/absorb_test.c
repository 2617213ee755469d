/* Batch norm and other scales of channels behind constant weights. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_absorb, tutti_pass_fold;

static tutti_sym numbers(tutti_graph *g, int rank, const int64_t *dims, double from)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, from + (double)(i * 37 % 17) / 8);
    tutti_sym sym = tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

#define NUMBERS(g, from, ...)                                                                      \
    numbers((g), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                        \
            (const int64_t[]){__VA_ARGS__}, (from))

static int check(tutti_graph *g, const char *after)
{
    const tutti_pass *passes[] = {&tutti_pass_fold, &tutti_pass_absorb};
    int changes = tutti__test_passes(2, passes, NULL, g, NULL, NULL, 1e-5);
    const char *text = tutti__test_text(g);
    if (after != NULL)
        CHECK_STR(text, after);
    tutti_graph_destroy(g);
    return changes;
}

static int count(const tutti_graph *g, const char *op)
{
    int found = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        found += tutti__is(g->nodes.data[n], op);
    return found;
}

TUTTI_TEST(absorb_batch_norm_into_a_convolution)
{
    const tutti_pass *passes[] = {&tutti_pass_fold, &tutti_pass_absorb};
    for (int groups = 1; groups <= 4; groups += 3)
        for (int biased = 0; biased < 2; biased++) {
            tutti_graph *g = tutti__test_graph();
            tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 5, 5, 4));
            tutti_sym y = tutti_nn_conv2d(x, NUMBERS(g, -1, 3, 3, 4 / groups, 4), .groups = groups);
            if (biased)
                y = tutti_add(y, NUMBERS(g, 0.5, 4));
            y = tutti_nn_batch_norm_inference(y, NUMBERS(g, 0.3, 4), NUMBERS(g, -0.2, 4),
                                              NUMBERS(g, 0.1, 4), NUMBERS(g, 0.7, 4));
            tutti__test_result(tutti_relu(y));
            tutti__test_passes(2, passes, NULL, g, NULL, NULL, 1e-5);
            CHECK_INT(count(g, "mul"), 0);
            CHECK_INT(count(g, "add"), 1);
            CHECK_INT(count(g, "conv2d"), 1);
            tutti_graph_destroy(g);
        }
}

TUTTI_TEST(absorb_into_a_product)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 2));
    tutti_sym y = tutti_matmul(x, NUMBERS(g, 1, 2, 2));
    y = tutti_div(tutti_add(y, tutti_scalar(g, TUTTI_F32, 3)), tutti_scalar(g, TUTTI_F32, 2));
    tutti__test_result(tutti_sub(y, tutti_scalar(g, TUTTI_F32, 1)));
    CHECK_INT(check(g,
                    "return add(matmul(p0, constant(){value=f32[2,2](0.5 0.6875 0.875 1.0625)}), "
                    "constant(){value=f32[2](0.5 0.5)})"),
              1);
}

/* A plain bias, values that somebody else wants, and weights that are no constants stay. */
TUTTI_TEST(absorb_leaves_others)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 2));
    tutti_sym w = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 2, 2));
    tutti__test_result(tutti_add(tutti_matmul(x, NUMBERS(g, 1, 2, 2)), NUMBERS(g, 1, 2)));
    tutti__test_result(tutti_mul(tutti_matmul(x, w), NUMBERS(g, 1, 2)));
    tutti_sym y = tutti_matmul(x, NUMBERS(g, 2, 2, 2));
    tutti__test_result(y);
    tutti__test_result(tutti_mul(y, NUMBERS(g, 1, 2)));
    tutti__test_result(
        tutti_div(tutti_matmul(x, NUMBERS(g, 4, 2, 2)), tutti_scalar(g, TUTTI_F32, 0)));
    tutti_sym z = tutti_matmul(x, NUMBERS(g, 3, 2, 2)); /* rows, not channels */
    tutti__test_result(tutti_mul(z, NUMBERS(g, 1, 3, 1)));
    CHECK_INT(check(g, NULL), 0);
}
