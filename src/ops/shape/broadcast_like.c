/* broadcast_like.c: repeats x until it has the shape of another tensor. */
#include "ops/shape/broadcast.h"

static tutti_status broadcast_like_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *like = &node->inputs[1];
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__broadcast_check(node, x, like, dims));
    return tutti__shape_output(node, 0, x->dtype, like->rank, dims);
}

static tutti_status broadcast_like_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = tutti_unbroadcast(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static int broadcast_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->outputs[0].rank; i++) {
        int own = tutti__broadcast_axis(&node->inputs[0], &node->outputs[0], i);
        if (own == TUTTI_PARTIAL_SUM)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)own;
        way->inputs[1] = way->outputs[0] = (int8_t)i;
    }
    return cuts.count;
}

extern const tutti_op tutti_op_broadcast_like;
tutti_sym(tutti_broadcast_like)(tutti_sym x, tutti_sym like)
{
    return tutti__binary(&tutti_op_broadcast_like, x, like);
}

static const char *const samples[] = {
    "f32[3,1] f32[2,3,4]", "f32[] f32[3,2]", "f32[4,3] i32[4,3]", "f32[1,3] f32[0,3]", NULL,
};

const tutti_op tutti_op_broadcast_like = {
    .struct_size = sizeof(tutti_op),
    .name = "broadcast_like",
    .version = 1,
    .doc =
        "broadcast_like(x, like): y has like's shape, x repeated along axes of size 1 and new leading axes",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = broadcast_like_infer,
    .gradient = broadcast_like_gradient,
    .cost = tutti__cost_move,
    .split = broadcast_like_split,
    .reference = tutti__broadcast_reference,
    .samples = samples,
};
