/* The fused dense layer against the reference of its body. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

typedef struct layer_case {
    const char *samples; /* the product's, in the form of ops/sample.h */
    bool bias_first, relu;
    int bias_rank;
} layer_case;

/* f(a b + bias) over the inputs of a sample of matmul. */
static tutti_graph *make_body(const tutti_sample *product, const layer_case *c,
                              tutti_type *ret_bias)
{
    tutti_graph *body;
    CHECK_OK(tutti_graph_create(&body));
    tutti_sym a = tutti_parameter(body, 0, product->types[0]),
              b = tutti_parameter(body, 1, product->types[1]);
    tutti_sym y =
        tutti__nary(product->op, 2, (tutti_sym[]){a, b}, product->attr_count, product->attrs);
    tutti_type type = tutti_sym_type(y);
    int64_t dims[TUTTI_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dims[c->bias_rank - 1] = type.dims[type.rank - 1];
    *ret_bias = tutti_type_make(type.dtype, c->bias_rank, dims);
    tutti_sym bias = tutti_parameter(body, 2, *ret_bias);
    y = c->bias_first ? tutti_add(bias, y) : tutti_add(y, bias);
    y = c->relu ? tutti_relu(y) : y;
    CHECK(tutti_sym_ok(y));
    CHECK_OK(tutti__graph_result(body, tutti__edge(y)));
    return body;
}

static tutti_tensor *ramp(const tutti_type *type)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)(i % 7) / 4 - 0.75);
    return tensor;
}

static int check(const layer_case *c)
{
    tutti_sample *product;
    tutti_type bias;
    CHECK_OK(tutti__sample_parse(tutti_op_find("matmul"), c->samples, 5, &product));
    tutti_graph *body = make_body(product, c, &bias);
    tutti_tensor *values[] = {product->values[0], product->values[1], ramp(&bias)};
    int bids = tutti__kernel_check_fused("fused", "matmul_bias_activation", body, 3, values, -1);
    tutti_tensor_release(values[2]);
    tutti_graph_destroy(body);
    tutti__sample_free(product);
    return bids;
}

TUTTI_TEST(kernel_matmul_bias_activation)
{
    static const layer_case cases[] = {
        {"f32[64,100] f32[100,70]", false, true, 1},
        {"f32[64,100] f32[100,70]", true, false, 2},
        {"f32[100,64] f32[70,100] | transpose_a=true transpose_b=true", false, true, 1},
        {"f32[3,17,19] f32[3,19,23]", false, true, 1},
        {"f32[300,20] f32[20,150]", false, true, 1},
        {"f32[2,20] f32[20,20000]", true, true, 1},
        {"f32[0,5] f32[5,3]", false, true, 1},
        {"f32[5,0] f32[0,3]", false, true, 1},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        CHECK_INT(check(&cases[i]), 1);
}

/* a b + b, which is one constant: it is read though b is kept as panels. */
TUTTI_TEST(kernel_matmul_bias_activation_of_a_constant_that_is_the_bias_too)
{
    tutti_type a = TUTTI_TYPE(TUTTI_F32, 3, 1), b = TUTTI_TYPE(TUTTI_F32, 1, 16);
    tutti_tensor *values[] = {ramp(&a), ramp(&b)};
    tutti_graph *body;
    CHECK_OK(tutti_graph_create(&body));
    tutti_sym v = tutti_parameter(body, 1, b);
    tutti_sym y = tutti_add(tutti_matmul(tutti_parameter(body, 0, a), v), v);
    CHECK_OK(tutti__graph_result(body, tutti__edge(y)));
    CHECK_INT(tutti__kernel_check_fused("fused", "matmul_bias_activation", body, 2, values, -1), 1);
    tutti_tensor_release(values[0]);
    tutti_tensor_release(values[1]);
    tutti_graph_destroy(body);
}

/* One kernel on CPUs that do not multiply bf16, two on those that do. */
TUTTI_TEST(kernel_matmul_bias_activation_in_bf16)
{
    static const layer_case cases[] = {
        {"bf16[64,100] bf16[100,70]", false, true, 1},
        {"bf16[64,100] bf16[100,70]", true, false, 2},
        {"bf16[100,64] bf16[70,100] | transpose_a=true transpose_b=true", false, true, 1},
        {"bf16[5,0] bf16[0,3]", false, true, 1},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        CHECK(check(&cases[i]) >= 1);
}

TUTTI_TEST(kernel_matmul_bias_activation_leaves_other_types)
{
    CHECK_INT(check(&(layer_case){"f64[4,5] f64[5,6]", false, true, 1}), 0);
    CHECK_INT(check(&(layer_case){"f16[4,5] f16[5,6]", false, true, 1}), 0);
}
