/* scatter_nd.c: sums of updates at positions along several axes. */
#include "ops/shape/scatter.h"

static tutti_status scatter_nd_infer(tutti_infer *node)
{
    tutti_type like;
    TUTTI_TRY(tutti__shape_like(node, 2, &like));
    return tutti__scatter_nd_infer(node, &like);
}

extern const tutti_op tutti_op_scatter_nd;
tutti_sym(tutti_scatter_nd)(tutti_sym indices, tutti_sym updates, int rank, const int64_t *dims)
{
    return TUTTI_NARY(&tutti_op_scatter_nd, ((tutti_sym[]){indices, updates}),
                      TUTTI_INTS("dims", rank, dims));
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, NULL},
    {NULL},
};
static const char *const samples[] = {
    "i32[3,2]{0:3} f32[3] | dims=[3,4]",    "i64[5,1]{0:3} f32[5,4,2] | dims=[3,4,2]",
    "i32[4,1]{=1,1,1,0} i32[4] | dims=[2]", "i32[0,1] f32[0,2] | dims=[3,2]",
    "i32[6,1]{0:2} f16[6] | dims=[2]",      NULL,
};

const tutti_op tutti_op_scatter_nd = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_nd",
    .version = 1,
    .doc =
        "scatter_nd(indices, updates; dims): y = 0 in the shape dims, then y[indices[j, 0], .., indices[j, k - 1], :] += updates[j, :]",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = scatter_nd_infer,
    .gradient = tutti__scatter_nd_gradient,
    .cost = tutti__scatter_nd_cost,
    .split = tutti__scatter_nd_split,
    .reference = tutti__scatter_nd_reference,
    .samples = samples,
};
