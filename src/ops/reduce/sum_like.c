/* sum_like.c: the sum over what broadcasting repeats: the adjoint of broadcast_like. */
#include "ops/reduce/reduce.h"
#include "ops/shape/broadcast.h"

/* Axes of x that like lacks, or has with size 1 where x has more. */
static uint32_t repeated_axes(int rank, const int64_t *dims, int like_rank,
                              const int64_t *like_dims)
{
    uint32_t mask = 0;
    for (int i = 0; i < rank; i++) {
        int own = i - (rank - like_rank);
        if (own < 0 || (like_dims[own] == 1 && dims[i] != 1))
            mask |= 1u << i;
    }
    return mask;
}

static tutti_status sum_like_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *like = &node->inputs[1];
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__broadcast_check(node, like, x, dims));
    return tutti__shape_output(node, 0, x->dtype, like->rank, like->dims);
}

static tutti_status sum_like_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = tutti_broadcast_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static double sum_like_step(double so_far, double x)
{
    return so_far + x;
}

/* Integers wrap round. */
static int64_t sum_like_step_int(int64_t so_far, int64_t x)
{
    return (int64_t)((uint64_t)so_far + (uint64_t)x);
}

static tutti_status sum_like_reference(const tutti_kernel_call *call)
{
    static const tutti_reduce_fold fold = {0, sum_like_step, 0, sum_like_step_int};
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_reduce_plan plan =
        tutti__reduce_plan(x, repeated_axes(x->rank, x->dims, y->rank, y->dims));
    tutti__reduce_fold(x, y, &plan, &fold);
    return TUTTI_OK;
}

static int sum_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0], *like = &node->inputs[1];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < x->rank; i++) {
        int own = tutti__broadcast_axis(like, x, i);
        if (own == TUTTI_PARTIAL_SUM)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)i;
        way->inputs[1] = (int8_t)own;
        way->outputs[0] = (int8_t)(own == TUTTI_WHOLE ? TUTTI_PARTIAL_SUM : own);
    }
    return cuts.count;
}

extern const tutti_op tutti_op_sum_like;
tutti_sym(tutti_sum_like)(tutti_sym x, tutti_sym like)
{
    return tutti__binary(&tutti_op_sum_like, x, like);
}

static const char *const samples[] = {
    "f32[2,3,4] f32[3,1]",
    "f32[3,4] f32[]",
    "f32[4,3] i32[4,3]",
    "i32[2,3] f32[3]",
    "f32[0,3] f32[1,3]",
    "bf16[5,2] bf16[2]",
    NULL,
};

const tutti_op tutti_op_sum_like = {
    .struct_size = sizeof(tutti_op),
    .name = "sum_like",
    .version = 1,
    .doc =
        "sum_like(x, like): y has like's shape, the sum of x over the axes that broadcasting like to x repeats",
    .category = "reduction",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = sum_like_infer,
    .gradient = sum_like_gradient,
    .cost = tutti__reduce_cost,
    .split = sum_like_split,
    .reference = sum_like_reference,
    .samples = samples,
};
