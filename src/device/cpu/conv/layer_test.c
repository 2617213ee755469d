/* layer_test.c: convolutions with what follows them, fused, against the references of the bodies.
 */
#include <string.h>

#include "base/test.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

enum { MOST_INPUTS = 4 };

/* A body with its parameters, and values for them. */
typedef struct body {
    tutti_graph *graph;
    int count;
    tutti_type types[MOST_INPUTS];
    tutti_tensor *values[MOST_INPUTS];
} body;

static body start(void)
{
    body b = {0};
    CHECK_OK(tutti_graph_create(&b.graph));
    return b;
}

/* The next parameter; values in [-1, 1), no two neighbours alike. */
static tutti_sym input(body *b, int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)((i * 7919 + 13 * b->count) % 1009) / 504.5 - 1);
    b->types[b->count] = tutti_type_make(TUTTI_F32, rank, dims);
    b->values[b->count] = tensor;
    return tutti_parameter(b->graph, b->count++, tutti_type_make(TUTTI_F32, rank, dims));
}

static void result(body *b, tutti_sym y)
{
    CHECK(tutti_sym_ok(y));
    CHECK_OK(tutti__graph_result(b->graph, tutti__edge(y)));
}

/* How many kernels bid for the body under the pattern; checks them. */
static int check(body *b, const char *pattern, int outputs)
{
    tutti_graph *graph;
    tutti_sym inputs[MOST_INPUTS];
    CHECK_OK(tutti_graph_create(&graph));
    for (int i = 0; i < b->count; i++)
        inputs[i] = (tutti_placeholder)(graph, b->types[i]);
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", b->graph), TUTTI_STR("pattern", pattern)};
    tutti_sym fused = tutti_apply_op(graph, "fused", b->count, inputs, 2, attrs);
    CHECK(tutti_sym_ok(fused));
    tutti_sample sample = {.op = fused.node->op,
                           .input_count = b->count,
                           .output_count = outputs,
                           .attr_count = fused.node->attr_count,
                           .types = b->types,
                           .values = b->values,
                           .attrs = fused.node->attrs,
                           .graph = graph,
                           .node = fused.node};
    int bids = tutti__kernel_check_sample(&sample, 1e-4);
    for (int i = 0; i < b->count; i++)
        tutti_tensor_release(b->values[i]);
    tutti_graph_destroy(graph);
    tutti_graph_destroy(b->graph);
    return bids;
}

typedef struct layer_case {
    int64_t x[4], kernel[4];
    const char *padding;
    bool relu, bias_first;
} layer_case;

static tutti_sym layer(body *b, const layer_case *c)
{
    tutti_sym x = input(b, 4, c->x), kernel = input(b, 4, c->kernel),
              bias = input(b, 1, &c->kernel[3]);
    tutti_sym y = tutti_nn_conv2d(x, kernel, .padding = c->padding);
    y = c->bias_first ? tutti_add(bias, y) : tutti_add(y, bias);
    return c->relu ? tutti_relu(y) : y;
}

TUTTI_TEST(kernel_conv2d_bias_activation)
{
    static const layer_case cases[] = {
        {{3, 9, 8, 1}, {3, 3, 1, 32}, "valid", true, false},
        {{2, 9, 8, 3}, {5, 5, 3, 6}, "same", true, true},
        {{2, 9, 8, 3}, {5, 5, 3, 6}, "same", false, false},
        {{2, 12, 12, 16}, {3, 3, 16, 21}, "same", true, false}, /* by transformed tiles */
        {{2, 12, 12, 16}, {3, 3, 16, 16}, "valid", false, false},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        body b = start();
        result(&b, layer(&b, &cases[i]));
        CHECK_INT(check(&b, "conv2d_bias_activation", 1), 1);
    }
}

/* Numbers of bf16, so that rounding them changes nothing. */
static void round_values(body *b)
{
    for (int i = 0; i < b->count; i++) {
        uint32_t *bits = tutti_tensor_data(b->values[i]);
        for (int64_t j = 0; j < tutti_tensor_count(b->values[i]); j++)
            bits[j] &= 0xffff0000;
    }
}

TUTTI_TEST(kernel_conv2d_bias_activation_bf16)
{
    static const layer_case cases[] = {
        {{2, 12, 12, 16}, {3, 3, 16, 21}, "same", true, false},
        {{2, 9, 8, 16}, {3, 3, 16, 16}, "same", true, false},
        {{2, 12, 13, 9}, {3, 2, 9, 16}, "valid", false, true},
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("this CPU multiplies no bf16");
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        body b = start();
        tutti_sym y = layer(&b, &cases[i]);
        tutti_node *conv = (cases[i].relu ? y.node->inputs[0].node : y.node);
        conv = conv->inputs[cases[i].bias_first ? 1 : 0].node;
        for (int a = 0; a < conv->attr_count; a++)
            if (strcmp(conv->attrs[a].name, "products") == 0)
                conv->attrs[a] = TUTTI_STR("products", "bf16");
        result(&b, y);
        round_values(&b);
        CHECK_INT(check(&b, "conv2d_bias_activation", 1), 2);
    }
}

/* y = g(f(conv2d(x, kernel) + bias) + residual) in all its forms. */
typedef struct chain_case {
    int64_t x[4], kernel[4], groups, stride, dilation;
    const char *padding, *inner, *outer; /* activations; NULL: none */
    bool bias, residual;
} chain_case;

static tutti_sym activated(tutti_sym y, const char *name)
{
    if (name == NULL)
        return y;
    if (strcmp(name, "clip") == 0)
        return tutti_clip(y, -0.5, 0.75);
    return tutti_apply_op(tutti_sym_graph(y), name, 1, &y, 0, NULL);
}

static void check_chain(const chain_case *c)
{
    body b = start();
    int64_t s = c->stride, d = c->dilation;
    tutti_sym x = input(&b, 4, c->x), kernel = input(&b, 4, c->kernel);
    tutti_sym y = tutti_nn_conv2d(x, kernel, .padding = c->padding, .strides = {s, s},
                                  .dilations = {d, d}, .groups = c->groups);
    tutti_type type = tutti_sym_type(y);
    if (c->bias)
        y = tutti_add(y, input(&b, 1, &c->kernel[3]));
    y = activated(y, c->inner);
    if (c->residual)
        y = tutti_add(input(&b, 4, type.dims), y);
    result(&b, activated(y, c->outer));
    CHECK_INT(check(&b, "conv2d_chain", 1), 1);
}

TUTTI_TEST(kernel_conv2d_chain)
{
    static const chain_case cases[] = {
        {{2, 9, 8, 3}, {5, 5, 3, 6}, 1, 1, 1, "same", NULL, "relu", true, false},
        {{2, 9, 8, 3}, {3, 3, 3, 6}, 1, 2, 1, "same", NULL, "relu6", false, false},
        {{1, 7, 7, 33}, {1, 1, 33, 70}, 1, 1, 1, "valid", NULL, "relu", true, true},
        {{1, 7, 7, 33}, {1, 1, 33, 70}, 1, 1, 1, "valid", "relu6", NULL, true, true},
        {{1, 7, 7, 33}, {1, 1, 33, 72}, 1, 1, 1, "valid", NULL, "clip", false, true},
        {{1, 7, 7, 20}, {1, 1, 20, 19}, 1, 1, 1, "valid", "clip", "silu", true, true},
        {{1, 9, 9, 64}, {3, 3, 64, 97}, 1, 2, 1, "same", NULL, "hard_swish", true, false},
        {{1, 6, 6, 96}, {3, 3, 96, 96}, 1, 1, 2, "same", NULL, "relu", true, true},   /* filters cut
                                                                                       */
        {{2, 12, 12, 16}, {3, 3, 16, 21}, 1, 1, 1, "same", NULL, "relu", true, true}, /* tiles */
        {{2, 12, 12, 16}, {3, 3, 16, 21}, 1, 1, 1, "same", "relu", "sigmoid", true, true},
        {{1, 13, 12, 96}, {3, 3, 96, 83}, 1, 1, 1, "same", NULL, "relu", true, true}, /* whole */
        {{1, 13, 12, 96}, {3, 3, 96, 88}, 1, 1, 1, "same", NULL, "tanh", false, false},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        check_chain(&cases[i]);
}

/* A kernel that is added to the result too is read though its panels are kept. */
TUTTI_TEST(kernel_conv2d_chain_of_a_kernel_that_is_added_too)
{
    for (int examples = 1; examples <= 3; examples += 2) {
        body b = start();
        tutti_sym x = input(&b, 4, (int64_t[]){examples, 1, 1, 1});
        tutti_sym kernel = input(&b, 4, (int64_t[]){1, 1, 1, 16});
        result(&b, tutti_add(tutti_nn_conv2d(x, kernel), kernel));
        CHECK_INT(check(&b, "conv2d_chain", 1), 1);
    }
}

TUTTI_TEST(kernel_depthwise_chain)
{
    static const chain_case cases[] = {
        {{2, 9, 11, 16}, {3, 3, 1, 16}, 16, 1, 1, "same", NULL, "relu6", true, false},
        {{2, 9, 11, 21}, {3, 3, 1, 21}, 21, 1, 1, "same", NULL, "relu", true, true},
        {{1, 12, 13, 37}, {3, 3, 1, 37}, 37, 2, 1, "same", "relu", "clip", true, true},
        {{1, 12, 13, 8}, {5, 5, 1, 8}, 8, 1, 1, "same", NULL, "silu", true, false},
        {{1, 14, 13, 35}, {3, 3, 1, 35}, 35, 1, 2, "same", NULL, "relu", false, false},
        {{1, 3, 3, 70}, {7, 7, 1, 70}, 70, 1, 1, "same", NULL, "relu", true, false},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        check_chain(&cases[i]);
}

typedef struct pool_case {
    layer_case layer;
    int64_t window[2];
    bool map; /* is a result too */
} pool_case;

static const pool_case pool_cases[] = {
    {{{3, 28, 28, 1}, {3, 3, 1, 32}, "valid", true, false}, {2, 2}, false},
    {{{3, 28, 28, 1}, {3, 3, 1, 32}, "valid", true, false}, {2, 2}, true},
    {{{2, 32, 32, 3}, {5, 5, 3, 6}, "valid", true, true}, {2, 2}, true},
    {{{2, 11, 13, 2}, {3, 3, 2, 7}, "same", true, false}, {3, 2}, true}, /* rows that none sees */
    {{{2, 11, 13, 2}, {3, 3, 2, 7}, "same", true, false}, {3, 2}, false},
    {{{1, 20, 20, 3}, {7, 5, 3, 3}, "same", true, false}, {2, 2}, false},
    {{{2, 40, 18, 2}, {4, 2, 2, 17}, "valid", true, false}, {2, 3}, true},
};

TUTTI_TEST(kernel_conv2d_relu_pool)
{
    for (size_t i = 0; i < TUTTI_COUNT(pool_cases); i++) {
        const pool_case *c = &pool_cases[i];
        body b = start();
        tutti_sym y = layer(&b, &c->layer);
        if (c->map)
            result(&b, y);
        result(&b, tutti_nn_max_pool2d(y, .pool_size = {c->window[0], c->window[1]}));
        CHECK(check(&b, "conv2d_relu_pool", c->map ? 2 : 1) >= 1);
    }
}

/* Only some of the gradients may be wanted, in any order. */
TUTTI_TEST(kernel_conv2d_pool_gradient)
{
    for (size_t i = 0; i < 2 * TUTTI_COUNT(pool_cases); i++) {
        const pool_case *c = &pool_cases[i / 2];
        const int64_t *x = c->layer.x, *k = c->layer.kernel, *w = c->window;
        bool same = c->layer.padding[0] == 's';
        int64_t h = same ? x[1] : x[1] - k[0] + 1, v = same ? x[2] : x[2] - k[1] + 1;
        body b = start();
        tutti_sym y = input(&b, 4, (int64_t[]){x[0], h, v, k[3]});
        tutti_sym grad = input(&b, 4, (int64_t[]){x[0], h / w[0], v / w[1], k[3]});
        tutti_sym images = input(&b, 4, x), none = tutti__scalar_like(y, 0);
        tutti_sym pool = tutti_apply_op(b.graph, "max_pool2d_backward", 2, (tutti_sym[]){y, grad},
                                        1, (tutti_attr[]){TUTTI_INTS("window", 2, w)});
        tutti_sym g = tutti_where(tutti_greater(y, none), pool, none);
        if (i % 2 == 0)
            result(&b, tutti_sum(g, .axes = TUTTI_AXES(0, 1, 2)));
        result(&b, tutti_apply_op(b.graph, "conv2d_backward_kernel", 2, (tutti_sym[]){images, g}, 2,
                                  (tutti_attr[]){TUTTI_INTS("size", 2, k),
                                                 TUTTI_STR("padding", c->layer.padding)}));
        CHECK(check(&b, "conv2d_pool_gradient", i % 2 == 0 ? 2 : 1) >= 1);
    }
}
