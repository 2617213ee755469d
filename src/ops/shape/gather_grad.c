/* gather_grad.c: adds rows at the places that indices name: the adjoint of gather. */
#include "ops/shape/scatter.h"

static tutti_status gather_grad_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT], c[TUTTI_TYPE_TEXT];
    const tutti_type *rows = &node->inputs[0], *indices = &node->inputs[1];
    tutti_type like;
    int axis;
    int64_t merged;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__shape_indices(node, 1));
    TUTTI_TRY(tutti__shape_like(node, 2, &like));
    if (RULE_INT(node, "axis") < -like.rank || RULE_INT(node, "axis") >= like.rank)
        return RULE_FAIL(node, TUTTI_INVALID, "axis %lld is outside [%d, %d) for %s",
                         (long long)RULE_INT(node, "axis"), -like.rank, like.rank,
                         tutti_type_text(&like, a));
    axis = tutti__axis_of(RULE_INT(node, "axis"), like.rank);
    bool agree = rows->rank == like.rank - 1 + indices->rank;
    for (int i = 0; agree && i < rows->rank; i++) {
        int64_t dim = i < axis                   ? like.dims[i]
                      : i < axis + indices->rank ? indices->dims[i - axis]
                                                 : like.dims[i - indices->rank + 1];
        agree = tutti__shape_merge(rows->dims[i], dim, &merged);
    }
    if (!agree)
        return RULE_FAIL(
            node, TUTTI_INVALID, "input 0 is %s, which is not %s with axis %d replaced by %s",
            tutti_type_text(rows, a), tutti_type_text(&like, b), axis, tutti_type_text(indices, c));
    return tutti__shape_output(node, 0, rows->dtype, like.rank, like.dims);
}

static tutti_status gather_grad_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_gather(node->output_grads[0], node->inputs[1], (int)RULE_INT(node, "axis"));
    return TUTTI_OK;
}

typedef struct {
    const tutti_view *indices;
    int64_t count, size, inner;
} rows_state;

static void starts_of(const void *context, int64_t first, int64_t count, int64_t *ret_starts)
{
    const rows_state *s = context;
    int64_t outer = first / s->count, at = first % s->count;
    for (int64_t n = 0; n < count; n++) {
        ret_starts[n] = (outer * s->size + tutti__index_at(s->indices, at)) * s->inner;
        if (++at == s->count) {
            at = 0;
            outer++;
        }
    }
}

static tutti_status gather_grad_reference(const tutti_kernel_call *call)
{
    const tutti_view *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), y->rank);
    tutti_blocks blocks = tutti__blocks(y, axis);
    TUTTI_TRY(tutti__indices_check(call, 1, axis, 1, y->dims));
    rows_state s = {&call->inputs[1], tutti_view_count(&call->inputs[1]), blocks.size,
                    blocks.inner};
    tutti_scatter scatter = {blocks.outer * s.count, blocks.inner, starts_of, &s};
    return tutti__scatter_add(call, &scatter, &call->inputs[0], y);
}

/* Beside the axis, or the indices: each piece of them adds its part. */
static int gather_grad_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *indices = &node->inputs[1], *y = &node->outputs[0];
    int axis = tutti__axis_of(RULE_INT(node, "axis"), y->rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < y->rank; i++) {
        if (i == axis)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)(i < axis ? i : i + indices->rank - 1);
        way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 2, i);
    }
    for (int i = 0; i < indices->rank; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)(axis + i);
        way->inputs[1] = (int8_t)i;
        way->outputs[0] = TUTTI_PARTIAL_SUM;
    }
    return cuts.count;
}

static void gather_grad_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[0]);
}

extern const tutti_op tutti_op_gather_grad;
tutti_sym(tutti_gather_grad)(tutti_sym rows, tutti_sym indices, tutti_sym like, int axis)
{
    return TUTTI_NARY(&tutti_op_gather_grad, ((tutti_sym[]){rows, indices, like}),
                      TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[4,3] i32[4]{0:5} f32[5,3]",
    "f32[2,3,2] i64[2,3]{0:4} f32[4,2]",
    "f32[3,5,2] i32[5]{0:4} i32[3,4,2] | axis=1",
    "i32[6] i32[6]{0:3} f32[3]",
    "bf16[7,2] i32[7]{0:3} bf16[3,2]",
    "f32[3,4,2] i32[4]{0:5} | axis=1 dims=[3,5,2]",
    NULL,
};

const tutti_op tutti_op_gather_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "gather_grad",
    .version = 1,
    .doc =
        "gather_grad(rows, indices, like; axis, dims): y = 0 in the shape of like, or dims without it, then y[.., indices[j], ..] += rows[.., j, ..]",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = gather_grad_infer,
    .gradient = gather_grad_gradient,
    .cost = gather_grad_cost,
    .split = gather_grad_split,
    .reference = gather_grad_reference,
    .samples = samples,
};
