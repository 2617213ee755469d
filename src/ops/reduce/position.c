/* position.c: what argmax and argmin share; see reduce.h. */
#include <math.h>

#include "ops/reduce/reduce.h"

tutti_status tutti__reduce_position_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK];
    int axis, rank = 0;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    if (x->dims[axis] == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "axis %d of input %s is empty: it has no extreme element", axis,
                         tutti_type_text(x, text));
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
    return tutti__shape_output(node, 0, TUTTI_I64, rank, dims);
}

/* The first best element; the first NaN is better than any number. */
static int64_t best_float(const tutti_view *x, int64_t base, int64_t step, int64_t count,
                          bool (*better)(double a, double b))
{
    int64_t best = 0;
    double value = tutti_view_get(x, base);
    for (int64_t i = 1; i < count && !isnan(value); i++) {
        double next = tutti_view_get(x, base + i * step);
        if (better(next, value) || isnan(next)) {
            value = next;
            best = i;
        }
    }
    return best;
}

static int64_t best_int(const tutti_view *x, int64_t base, int64_t step, int64_t count,
                        bool (*better)(int64_t a, int64_t b))
{
    int64_t best = 0, value = tutti_view_get_int(x, base);
    for (int64_t i = 1; i < count; i++) {
        int64_t next = tutti_view_get_int(x, base + i * step);
        if (better(next, value)) {
            value = next;
            best = i;
        }
    }
    return best;
}

tutti_status tutti__reduce_position(const tutti_kernel_call *call,
                                    bool (*better)(double a, double b),
                                    bool (*better_int)(int64_t a, int64_t b))
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    bool whole = tutti_dtype_is_int(x->dtype);
    for (int64_t outer = 0, n = 0; outer < blocks.outer; outer++)
        for (int64_t i = 0; i < blocks.inner; i++, n++) {
            int64_t base = outer * blocks.size * blocks.inner + i;
            tutti_view_set_int(&call->outputs[0], n,
                               whole ? best_int(x, base, blocks.inner, blocks.size, better_int)
                                     : best_float(x, base, blocks.inner, blocks.size, better));
        }
    return TUTTI_OK;
}

int tutti__reduce_position_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank; i++)
        if (i != axis)
            tutti__cut_pair(&cuts, i, i - (i > axis));
    return cuts.count;
}
