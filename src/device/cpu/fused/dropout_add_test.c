/* A residual and a dropout, against the reference of their body. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

static int check(tutti_dtype dtype, bool first)
{
    tutti_graph *body;
    tutti_type wide = TUTTI_TYPE(dtype, 3, 7001);
    tutti_type types[] = {wide, {.dtype = TUTTI_I64}, wide};
    tutti_tensor *values[3];
    tutti_sym inputs[3];
    CHECK_OK(tutti_graph_create(&body));
    for (int i = 0; i < 3; i++) {
        inputs[i] = (tutti_parameter)(body, i, types[i]);
        CHECK_OK(tutti_tensor_create(types[i].dtype, types[i].rank, types[i].dims, &values[i]));
        for (int64_t e = 0; e < tutti_tensor_count(values[i]); e++)
            tutti_tensor_set(values[i], e, i == 1 ? 11 : (double)(e % 13) / 4 - 1.5);
    }
    tutti_sym drop = tutti_nn_dropout(inputs[0], 0.4, .counter = inputs[1], .seed = 3, .salt = 9);
    tutti_sym sum = first ? tutti_add(drop, inputs[2]) : tutti_add(inputs[2], drop);
    CHECK_OK(tutti__graph_result(body, tutti__edge(sum)));
    int bids = tutti__kernel_check_fused("fused", "dropout_add", body, 3, values, -1);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(values[i]);
    tutti_graph_destroy(body);
    return bids;
}

TUTTI_TEST(kernel_dropout_add)
{
    CHECK_INT(check(TUTTI_F32, true), 1);
    CHECK_INT(check(TUTTI_F32, false), 1);
    CHECK_INT(check(TUTTI_F64, true), 0);
}
