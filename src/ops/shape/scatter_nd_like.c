/* scatter_nd_like.c: sums of updates at positions along several axes, in the shape of another
 * tensor. */
#include "ops/shape/scatter.h"

static tutti_status scatter_nd_like_infer(tutti_infer *node)
{
    return tutti__scatter_nd_infer(node, &node->inputs[2]);
}

extern const tutti_op tutti_op_scatter_nd_like;
tutti_sym(tutti_scatter_nd_like)(tutti_sym indices, tutti_sym updates, tutti_sym like)
{
    return tutti__nary(&tutti_op_scatter_nd_like, 3, (tutti_sym[]){indices, updates, like}, 0,
                       NULL);
}

static const char *const samples[] = {
    "i32[3,2]{0:3} f32[3] f32[3,4]",
    "i64[5,1]{0:3} f32[5,4,2] f32[3,4,2]",
    "i32[2,2,2]{0:2} f32[2,2,3] i32[2,2,3]",
    "i32[2,0] f32[2,3] f32[3]",
    NULL,
};

const tutti_op tutti_op_scatter_nd_like = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_nd_like",
    .version = 1,
    .doc =
        "scatter_nd_like(indices, updates, like): y = 0 in like's shape, then y[indices[j, 0], .., indices[j, k - 1], :] += updates[j, :]",
    .category = "shape",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = scatter_nd_like_infer,
    .gradient = tutti__scatter_nd_gradient,
    .cost = tutti__scatter_nd_cost,
    .split = tutti__scatter_nd_split,
    .reference = tutti__scatter_nd_reference,
    .samples = samples,
};
