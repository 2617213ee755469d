/* Batch norm with residual and activation, forward and backward, against the reference of its body.
 */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

enum { MOST = 8 };

static tutti_graph *body;
static tutti_type types[MOST];
static int count;

static tutti_sym input(tutti_type type)
{
    types[count] = type;
    return (tutti_parameter)(body, count++, type);
}

static void result(tutti_sym sym)
{
    CHECK_OK(tutti__graph_result(body, tutti__edge(sym)));
}

/* Of the body at hand; returns how many kernels bid. */
static int check(const char *pattern)
{
    tutti_tensor *values[MOST];
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_tensor_create(types[i].dtype, types[i].rank, types[i].dims, &values[i]));
        for (int64_t e = 0; e < tutti_tensor_count(values[i]); e++)
            tutti_tensor_set(values[i], e, (double)((e * 7 + i * 5) % 23) / 11 - (i == 3 ? 0 : 1));
    }
    int bids = tutti__kernel_check_fused("fused", pattern, body, count, values, 1e-4);
    for (int i = 0; i < count; i++)
        tutti_tensor_release(values[i]);
    tutti_graph_destroy(body);
    return bids;
}

static void start(void)
{
    CHECK_OK(tutti_graph_create(&body));
    count = 0;
}

TUTTI_TEST(kernel_batch_norm_activation)
{
    for (int way = 0; way < 8; way++) {
        start();
        int64_t columns = way < 4 ? 37 : 16;
        tutti_type wide = TUTTI_TYPE(TUTTI_F32, 50, 7, columns);
        tutti_type row = TUTTI_TYPE(TUTTI_F32, columns);
        tutti_sym x = input(wide), scale = input(row), offset = input(row);
        tutti_sym norm = tutti_nn_batch_norm(x, scale, offset);
        tutti_sym y = way & 1 ? tutti_add(input(wide), norm) : norm;
        for (uint32_t i = 1; way & 2 && i < 3; i++)
            result(tutti_sym_output(norm, (int)i));
        result(tutti_relu(y));
        CHECK_INT(check("batch_norm_activation"), 1);
    }
}

TUTTI_TEST(kernel_batch_norm_gradient)
{
    for (int way = 0; way < 8; way++) {
        start();
        int64_t columns = way < 4 ? 21 : 32;
        tutti_type wide = TUTTI_TYPE(TUTTI_F32, 300, columns);
        tutti_type row = TUTTI_TYPE(TUTTI_F32, columns);
        tutti_sym x = input(wide), scale = input(row), mean = input(row), variance = input(row);
        tutti_sym given = input(wide), y = input(wide), none = tutti__scalar_like(y, 0);
        given = way & 1 ? tutti_add(given, input(wide)) : given;
        tutti_sym g = tutti_where(tutti_greater(y, none), given, none);
        tutti_sym inputs[] = {x, scale, mean, variance, g};
        tutti_sym back = tutti_apply_op(body, "batch_norm_backward", 5, inputs, 1,
                                        (tutti_attr[]){TUTTI_FLOAT("epsilon", 0.01)});
        if (way & 2)
            result(g);
        for (int i = 0; i < (way == 1 ? 1 : 3); i++)
            result(tutti_sym_output(back, i));
        CHECK_INT(check("batch_norm_gradient"), 1);
    }
}
