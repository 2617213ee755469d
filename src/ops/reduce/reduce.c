/* reduce.c: what the reductions share; see reduce.h. */
#include "ops/reduce/reduce.h"

#include <math.h>

/* Shape rules. -------------------------------------------------------------------------------- */

static tutti_status reduce_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    bool keep = RULE_INT(node, "keepdims") != 0;
    int64_t dims[TUTTI_MAX_RANK];
    uint32_t mask;
    int rank = 0;
    TUTTI_TRY(tutti__shape_axes(node, "axes", x->rank, &mask));
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1))
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    return tutti__shape_output(node, 0, x->dtype, rank, dims);
}

tutti_status tutti__reduce_numbers(tutti_infer *node)
{
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    return reduce_infer(node);
}

tutti_status tutti__reduce_floats(tutti_infer *node)
{
    TUTTI_TRY(tutti__shape_floats(node, 0));
    return reduce_infer(node);
}

tutti_status tutti__reduce_bools(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[0].dtype != TUTTI_BOOL)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input is %s, needs bools; compare it with something, or convert it with tutti_cast",
            tutti_type_text(&node->inputs[0], text));
    return reduce_infer(node);
}

void tutti__reduce_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[0]);
}

int tutti__reduce_split(const tutti_infer *node, int partial, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0];
    bool keep = RULE_INT(node, "keepdims") != 0;
    uint32_t mask = tutti__axes_mask(x->rank, node->attrs, node->attr_count, "axes");
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0, result = 0; i < x->rank; i++) {
        bool reduced = mask >> i & 1;
        if (!reduced)
            tutti__cut_pair(&cuts, i, result);
        else if (partial != TUTTI_WHOLE)
            tutti__cut_pair(&cuts, i, partial);
        result += !reduced || keep;
    }
    return cuts.count;
}

int tutti__reduce_split_kept(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_WHOLE, capacity, ret);
}

/* Builders and gradient rules. ---------------------------------------------------------------- */

tutti_sym tutti__reduce_build(const tutti_op *op, tutti_sym x, const tutti_reduce_options *options)
{
    RULE_OPTIONS(tutti_reduce_options, o, options);
    return TUTTI_NARY(op, ((tutti_sym[]){x}), tutti__axes_attr("axes", &o.axes),
                      TUTTI_INT("keepdims", o.keepdims));
}

tutti_reduce_options tutti__reduce_keeping(const tutti_gradient_call *node)
{
    int rank = tutti_sym_type(node->inputs[0]).rank;
    uint32_t mask = tutti__axes_mask(rank, node->attrs, node->attr_count, "axes");
    tutti_reduce_options options = {.struct_size = sizeof options, .keepdims = true};
    for (int i = 0; i < rank; i++)
        if (mask >> i & 1)
            options.axes.values[options.axes.count++] = i;
    return options;
}

tutti_sym tutti__reduce_keep(const tutti_gradient_call *node, tutti_sym reduced)
{
    tutti_type x = tutti_sym_type(node->inputs[0]), small = tutti_sym_type(reduced);
    uint32_t mask = tutti__axes_mask(x.rank, node->attrs, node->attr_count, "axes");
    int unknown = 0, zeros = 0;
    if (RULE_INT(node, "keepdims") || small.rank == 0 || small.rank == x.rank)
        return reduced; /* a scalar broadcasts as it is */
    for (int i = 0, from = 0; i < x.rank; i++) {
        x.dims[i] = mask >> i & 1 ? 1 : small.dims[from++];
        unknown += x.dims[i] == TUTTI_ANY;
        zeros += x.dims[i] == 0;
    }
    if (unknown == 0 || (unknown == 1 && zeros == 0))
        return (tutti_reshape)(reduced, x.rank, x.dims);
    for (int i = 0; i < x.rank; i++)
        if (mask >> i & 1)
            reduced = tutti_expand_dims(reduced, i);
    return reduced;
}

tutti_sym tutti__reduce_divide(const tutti_gradient_call *node, tutti_sym grad)
{
    tutti_type x = tutti_sym_type(node->inputs[0]);
    tutti_reduce_options keeping = tutti__reduce_keeping(node);
    int64_t dims[TUTTI_MAX_RANK], count = 1;
    for (int i = 0; i < keeping.axes.count; i++) {
        dims[i] = x.dims[keeping.axes.values[i]];
        count = dims[i] == TUTTI_ANY ? TUTTI_ANY : count;
    }
    if (count != TUTTI_ANY)
        count = tutti__dims_product(keeping.axes.count, dims);
    if (count > 0 && x.dtype == TUTTI_F16) /* which holds no count beyond 65504 */
        return tutti_mul(grad, 1 / (double)count);
    if (count != TUTTI_ANY)
        return tutti_div(grad, tutti_fill(node->graph, x.dtype, (double)count));
    tutti_sym size = (tutti_size)(node->inputs[0], keeping.axes.count, keeping.axes.values);
    return tutti_div(grad, tutti_cast(size, x.dtype));
}

tutti_sym tutti__reduce_expand_mean(const tutti_expansion *node, tutti_sym values, bool keepdims)
{
    tutti_type x = tutti_sym_type(values);
    tutti_gradient_call as = {
        .inputs = &values, .attrs = node->attrs, .attr_count = node->attr_count};
    tutti_reduce_options keeping = tutti__reduce_keeping(&as);
    int64_t count = 1;
    for (int i = 0; i < keeping.axes.count; i++)
        count *= x.dims[keeping.axes.values[i]];
    keeping.keepdims = keepdims;
    if (keeping.axes.count == 0) /* none, where an empty list would mean all */
        return values;
    return tutti_div(tutti_sum_with(values, &keeping),
                     tutti_fill(node->graph, x.dtype, (double)count));
}

/* dx = dy [x = y] / (number of x that are equal to y). */
tutti_status tutti__reduce_extreme_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0];
    tutti_reduce_options keeping = tutti__reduce_keeping(node);
    tutti_sym y = tutti__reduce_keep(node, node->outputs[0]);
    tutti_sym grad = tutti__reduce_keep(node, node->output_grads[0]);
    tutti_sym hit = tutti_cast(tutti_equal(x, y), tutti_sym_type(x).dtype);
    node->input_grads[0] = tutti_mul(hit, tutti_div(grad, tutti_sum_with(hit, &keeping)));
    return TUTTI_OK;
}

/* Kernels. ------------------------------------------------------------------------------------ */

/* Adds an axis, merged with the one before it where both step as one. Without elements all strides
 * are 0 and nothing but the count matters. */
static void add_axis(tutti_reduce_axes *axes, int64_t dim, int64_t stride)
{
    int last = axes->rank - 1;
    axes->count = tutti__dims_product(2, (int64_t[]){axes->count, dim});
    if (dim == 1 || stride == 0)
        return;
    if (last >= 0 && axes->strides[last] == stride * dim) {
        axes->dims[last] *= dim;
        axes->strides[last] = stride;
        return;
    }
    axes->dims[axes->rank] = dim;
    axes->strides[axes->rank++] = stride;
}

tutti_reduce_plan tutti__reduce_plan(const tutti_view *x, uint32_t mask)
{
    tutti_reduce_plan plan = {.kept.count = 1, .reduced.count = 1};
    int64_t strides[TUTTI_MAX_RANK];
    tutti__strides_of(x->rank, x->dims, strides);
    for (int i = 0; i < x->rank; i++)
        add_axis(mask >> i & 1 ? &plan.reduced : &plan.kept, x->dims[i], strides[i]);
    return plan;
}

tutti_reduce_plan tutti__reduce_plan_of(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    return tutti__reduce_plan(x, tutti__axes_mask(x->rank, call->attrs, call->attr_count, "axes"));
}

int64_t tutti__reduce_at(const tutti_reduce_axes *axes, int64_t flat)
{
    int64_t at = 0;
    for (int i = axes->rank - 1; i > 0; i--) {
        at += flat % axes->dims[i] * axes->strides[i];
        flat /= axes->dims[i];
    }
    return axes->rank == 0 ? 0 : at + flat * axes->strides[0];
}

void tutti__reduce_fold(const tutti_view *x, const tutti_view *y, const tutti_reduce_plan *plan,
                        const tutti_reduce_fold *fold)
{
    bool whole = !tutti_dtype_is_float(x->dtype);
    for (int64_t k = 0; k < plan->kept.count; k++) {
        int64_t base = tutti__reduce_at(&plan->kept, k), sum_int = fold->start_int;
        double sum = fold->start;
        for (int64_t r = 0; r < plan->reduced.count; r++) {
            int64_t at = base + tutti__reduce_at(&plan->reduced, r);
            if (whole)
                sum_int = fold->step_int(sum_int, tutti_view_get_int(x, at));
            else
                sum = fold->step(sum, tutti_view_get(x, at));
        }
        if (whole)
            tutti_view_set_int(y, k, sum_int);
        else
            tutti_view_set(y, k, sum);
    }
}

/* Running folds. ------------------------------------------------------------------------------ */

typedef struct line {
    const tutti_view *x, *y;
    int64_t base, step, count; /* elements base, base + step, … */
    bool exclusive;
} line;

static void run_floats(const line *l, const tutti_reduce_fold *fold)
{
    double so_far = fold->start;
    for (int64_t i = 0, at = l->base; i < l->count; i++, at += l->step) {
        double with = fold->step(so_far, tutti_view_get(l->x, at));
        tutti_view_set(l->y, at, l->exclusive ? so_far : with);
        so_far = with;
    }
}

static void run_ints(const line *l, const tutti_reduce_fold *fold)
{
    int64_t so_far = fold->start_int;
    for (int64_t i = 0, at = l->base; i < l->count; i++, at += l->step) {
        int64_t with = fold->step_int(so_far, tutti_view_get_int(l->x, at));
        tutti_view_set_int(l->y, at, l->exclusive ? so_far : with);
        so_far = with;
    }
}

tutti_status tutti__reduce_running(const tutti_kernel_call *call, const tutti_reduce_fold *fold)
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    bool reverse = RULE_INT(call, "reverse") != 0;
    int64_t first = reverse ? (blocks.size - 1) * blocks.inner : 0;
    line l = {.x = x,
              .y = &call->outputs[0],
              .step = reverse ? -blocks.inner : blocks.inner,
              .count = blocks.size,
              .exclusive = RULE_INT(call, "exclusive") != 0};
    for (int64_t outer = 0; outer < blocks.outer; outer++)
        for (int64_t i = 0; i < blocks.inner; i++) {
            l.base = outer * blocks.size * blocks.inner + i + first;
            (tutti_dtype_is_int(x->dtype) ? run_ints : run_floats)(&l, fold);
        }
    return TUTTI_OK;
}

int tutti__running_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}
