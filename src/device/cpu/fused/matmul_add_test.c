/* A product that is added to what is there, against the reference of its body. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

/* x + a b over the inputs of a sample of matmul. */
static int check(const char *text, bool product_first)
{
    tutti_sample *product;
    tutti_graph *body;
    CHECK_OK(tutti__sample_parse(tutti_op_find("matmul"), text, 5, &product));
    CHECK_OK(tutti_graph_create(&body));
    tutti_sym operands[] = {(tutti_parameter)(body, 0, product->types[0]),
                            (tutti_parameter)(body, 1, product->types[1])};
    tutti_sym made = tutti__nary(product->op, 2, operands, product->attr_count, product->attrs);
    tutti_type type = tutti_sym_type(made);
    tutti_sym x = (tutti_parameter)(body, 2, type);
    tutti_sym sum = product_first ? tutti_add(made, x) : tutti_add(x, made);
    CHECK_OK(tutti__graph_result(body, tutti__edge(sum)));
    tutti_tensor *values[] = {product->values[0], product->values[1], NULL};
    CHECK_OK(tutti_tensor_create(type.dtype, type.rank, type.dims, &values[2]));
    for (int64_t i = 0; i < tutti_tensor_count(values[2]); i++)
        tutti_tensor_set(values[2], i, (double)(i % 13) / 4 - 1.5);
    int bids = tutti__kernel_check_fused("fused", "matmul_add", body, 3, values, -1);
    tutti_tensor_release(values[2]);
    tutti_graph_destroy(body);
    tutti__sample_free(product);
    return bids;
}

TUTTI_TEST(kernel_matmul_add)
{
    CHECK_INT(check("f32[64,100] f32[100,70]", false), 1);
    CHECK_INT(check("f32[100,64] f32[70,100] | transpose_a=true transpose_b=true", true), 1);
    CHECK_INT(check("f32[3,40,50] f32[50,33]", false), 1);
    CHECK_INT(check("f32[33,600] f32[40,600] | transpose_b=true", true), 1);
    /* Too small to pay, a product for each of a batch, other types. */
    CHECK_INT(check("f32[4,5] f32[5,6]", false), 0);
    CHECK_INT(check("f32[3,40,50] f32[3,50,40]", false), 0);
    CHECK_INT(check("f64[40,50] f64[50,40]", false), 0);
}
