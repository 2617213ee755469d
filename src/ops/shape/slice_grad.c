/* slice_grad.c: puts x where a slice took from, zeros elsewhere: the adjoint of slice. */
#include "ops/shape/slice.h"

static tutti_status slice_grad_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_type like;
    tutti_slice_run runs[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__shape_like(node, 1, &like));
    TUTTI_TRY(tutti__slice_check(node, &like));
    bool agree = x->rank == like.rank;
    tutti__slice_runs(node->attrs, node->attr_count, like.rank, like.dims, runs);
    for (int i = 0; agree && i < x->rank; i++) {
        int64_t merged;
        agree = tutti__shape_merge(x->dims[i], runs[i].count, &merged);
    }
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID, "input %s is not what this slice takes from %s",
                         tutti_type_text(x, a), tutti_type_text(&like, b));
    return tutti__shape_output(node, 0, x->dtype, like.rank, like.dims);
}

static tutti_status slice_grad_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_slice;
    if (node->wanted[0])
        node->input_grads[0] =
            TUTTI_NARY(&tutti_op_slice, ((tutti_sym[]){node->output_grads[0]}),
                       RULE_ATTR(node, "begin"), RULE_ATTR(node, "end"), RULE_ATTR(node, "step"));
    return TUTTI_OK;
}

static tutti_status slice_grad_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_slice_run runs[TUTTI_MAX_RANK];
    tutti_move move = {.rank = y->rank, .size = tutti_dtype_size(x->dtype)};
    int64_t start = 0;
    tutti__fill_view(y, 0);
    tutti__slice_runs(call->attrs, call->attr_count, y->rank, y->dims, runs);
    tutti__strides_of(x->rank, x->dims, move.from);
    tutti__strides_of(y->rank, y->dims, move.to);
    for (int i = 0; i < y->rank; i++) {
        move.dims[i] = runs[i].count;
        start += runs[i].start * move.to[i];
        move.to[i] *= runs[i].step;
    }
    tutti__move(call, &move, x->data, tutti__element(y, start));
    return TUTTI_OK;
}

static int slice_grad_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *y = &node->outputs[0];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    tutti_slice_run runs[TUTTI_MAX_RANK];
    tutti__slice_runs(node->attrs, node->attr_count, y->rank, y->dims, runs);
    for (int i = 0; i < y->rank; i++) {
        if (!tutti__slice_is_whole(&runs[i], y->dims[i]))
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 1, i);
    }
    return cuts.count;
}

extern const tutti_op tutti_op_slice_grad;
tutti_sym tutti_slice_grad_with(tutti_sym x, tutti_sym like, const tutti_slice_options *options)
{
    RULE_OPTIONS(tutti_slice_options, o, options);
    return TUTTI_NARY(&tutti_op_slice_grad, ((tutti_sym[]){x, like}), TUTTI_SLICE_ATTRS(o));
}

static const tutti_attr_spec attrs[] = {
    {"begin", TUTTI_ATTR_INTS, "[]"},
    {"end", TUTTI_ATTR_INTS, "[]"},
    {"step", TUTTI_ATTR_INTS, "[]"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,3] f32[5,4] | begin=[1,0] end=[4,3]",
    "f32[4,3,3] i32[4,6,3] | begin=[0,1] end=[4,6] step=[1,2]",
    "f32[3] f32[6] | begin=[4] end=[1] step=[-1]",
    "f32[0,3] f32[4,3] | begin=[2] end=[2]",
    "f32[3,3] | begin=[1,0] end=[4,3] dims=[5,3]",
    NULL,
};

const tutti_op tutti_op_slice_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "slice_grad",
    .version = 1,
    .doc =
        "slice_grad(x, like; begin, end, step, dims): y = 0 in the shape of like, or dims without it, but slice(y; begin, end, step) = x",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = slice_grad_infer,
    .gradient = slice_grad_gradient,
    .cost = tutti__cost_move,
    .split = slice_grad_split,
    .reference = slice_grad_reference,
    .samples = samples,
};
