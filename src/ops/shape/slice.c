/* slice.c: takes every step-th element from begin to end along each axis. */
#include "ops/shape/slice.h"

/* As NumPy does: negative indices count from the end, then both stop at the ends. */
static tutti_slice_run run_of(int64_t dim, int64_t begin, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    begin += begin < 0 ? dim : 0;
    end += end < 0 ? dim : 0;
    begin = begin < low ? low : begin > high ? high : begin;
    end = end < low ? low : end > high ? high : end;
    uint64_t way = step > 0 ? (uint64_t)end - (uint64_t)begin : (uint64_t)begin - (uint64_t)end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 ? begin >= end : begin <= end)
        return (tutti_slice_run){.start = 0, .step = 1, .count = 0};
    int64_t count = (int64_t)((way - 1) / size + 1);
    return (tutti_slice_run){.start = begin, .step = count > 1 ? step : 1, .count = count};
}

void tutti__slice_runs(const tutti_attr *given, int attr_count, int rank, const int64_t *dims,
                       tutti_slice_run *ret_runs)
{
    const int64_t *begins, *ends, *steps;
    int begin_count = tutti_attr_ints(given, attr_count, "begin", &begins);
    int end_count = tutti_attr_ints(given, attr_count, "end", &ends);
    int step_count = tutti_attr_ints(given, attr_count, "step", &steps);
    for (int i = 0; i < rank; i++) {
        int64_t step = i < step_count ? steps[i] : 1;
        int64_t begin = i < begin_count ? begins[i] : step > 0 ? TUTTI_FIRST : TUTTI_LAST;
        int64_t end = i < end_count ? ends[i] : step > 0 ? TUTTI_LAST : TUTTI_FIRST;
        if (dims[i] == TUTTI_ANY)
            ret_runs[i] = (tutti_slice_run){.step = step, .count = TUTTI_ANY};
        else
            ret_runs[i] = run_of(dims[i], begin, end, step);
    }
}

tutti_status tutti__slice_check(const tutti_infer *node, const tutti_type *x)
{
    static const char *const names[] = {"begin", "end", "step"};
    char text[TUTTI_TYPE_TEXT];
    for (int n = 0; n < 3; n++) {
        const int64_t *values;
        int count = RULE_INTS(node, names[n], &values);
        if (count > x->rank)
            return RULE_FAIL(node, TUTTI_INVALID, "%s has %d entries, but %s has only %d axes",
                             names[n], count, tutti_type_text(x, text), x->rank);
        for (int i = 0; n == 2 && i < count; i++)
            if (values[i] == 0)
                return RULE_FAIL(node, TUTTI_INVALID,
                                 "step %d is 0; it must go forwards or backwards", i);
    }
    return TUTTI_OK;
}

static tutti_status slice_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    tutti_slice_run runs[TUTTI_MAX_RANK];
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__slice_check(node, x));
    tutti__slice_runs(node->attrs, node->attr_count, x->rank, x->dims, runs);
    for (int i = 0; i < x->rank; i++)
        dims[i] = runs[i].count;
    return tutti__shape_output(node, 0, x->dtype, x->rank, dims);
}

static tutti_status slice_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_slice_grad;
    node->input_grads[0] =
        TUTTI_NARY(&tutti_op_slice_grad, ((tutti_sym[]){node->output_grads[0], node->inputs[0]}),
                   RULE_ATTR(node, "begin"), RULE_ATTR(node, "end"), RULE_ATTR(node, "step"));
    return TUTTI_OK;
}

static tutti_status slice_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_slice_run runs[TUTTI_MAX_RANK];
    tutti_move move = {.rank = x->rank, .size = tutti_dtype_size(x->dtype)};
    int64_t start = 0;
    tutti__slice_runs(call->attrs, call->attr_count, x->rank, x->dims, runs);
    tutti__strides_of(x->rank, x->dims, move.from);
    tutti__strides_of(y->rank, y->dims, move.to);
    for (int i = 0; i < x->rank; i++) {
        move.dims[i] = runs[i].count;
        start += runs[i].start * move.from[i];
        move.from[i] *= runs[i].step;
    }
    tutti__move(call, &move, tutti__element(x, start), y->data);
    return TUTTI_OK;
}

/* Axes that are taken whole: pieces of them are taken whole too, since indices stop at the ends. */
static int slice_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    tutti_slice_run runs[TUTTI_MAX_RANK];
    tutti__slice_runs(node->attrs, node->attr_count, x->rank, x->dims, runs);
    for (int i = 0; i < x->rank; i++)
        if (tutti__slice_is_whole(&runs[i], x->dims[i]))
            tutti__cut_pair(&cuts, i, i);
    return cuts.count;
}

extern const tutti_op tutti_op_slice;
tutti_sym tutti_slice_with(tutti_sym x, const tutti_slice_options *options)
{
    RULE_OPTIONS(tutti_slice_options, o, options);
    return TUTTI_NARY(&tutti_op_slice, ((tutti_sym[]){x}), TUTTI_SLICE_ATTRS(o));
}

tutti_sym(tutti_slice_axis)(tutti_sym x, int axis, int64_t begin, int64_t end)
{
    tutti_slice_options options = {.struct_size = sizeof options};
    if (!tutti__usable("slice", x))
        return TUTTI_POISON;
    int rank = tutti_sym_type(x).rank;
    if (axis < -rank || axis >= rank)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "slice: axis %d is outside [%d, %d) for an input of %d dimensions",
                             axis, -rank, rank, rank);
    axis = tutti__axis_of(axis, rank);
    options.begin.count = options.end.count = axis + 1;
    for (int i = 0; i < axis; i++) {
        options.begin.values[i] = 0;
        options.end.values[i] = TUTTI_LAST;
    }
    options.begin.values[axis] = begin;
    options.end.values[axis] = end;
    return tutti_slice_with(x, &options);
}

static const tutti_attr_spec attrs[] = {
    {"begin", TUTTI_ATTR_INTS, "[]"},
    {"end", TUTTI_ATTR_INTS, "[]"},
    {"step", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[5,4] | begin=[1,0] end=[4,3]",
    "f32[3,7] | begin=[0,-1] end=[9,-8] step=[1,-2]",
    "f32[4,6,3] | begin=[0,1] end=[4,6] step=[1,2]",
    "i32[6] | begin=[4] end=[1] step=[-1]",
    "f32[4,3] | begin=[2] end=[2]",
    NULL,
};

const tutti_op tutti_op_slice = {
    .struct_size = sizeof(tutti_op),
    .name = "slice",
    .version = 1,
    .doc =
        "slice(x; begin, end, step): y[i, j, ..] = x[begin0 + i step0, begin1 + j step1, ..], up to end, negatives as in NumPy",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = slice_infer,
    .gradient = slice_gradient,
    .cost = tutti__cost_move,
    .split = slice_split,
    .reference = slice_reference,
    .samples = samples,
};
