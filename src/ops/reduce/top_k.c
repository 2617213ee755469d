/* top_k.c: the k largest elements along the last axis, and where they were. */
#include "ops/reduce/reduce.h"

#include <math.h>

static tutti_status top_k_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_type y = node->inputs[0];
    int64_t k = RULE_INT(node, "k");
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    if (y.rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "input is a scalar, needs at least 1 dimension");
    int64_t size = y.dims[y.rank - 1];
    if (k < 0 || (size != TUTTI_ANY && k > size))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "k is %lld, needs 0 to the size of the last axis of %s", (long long)k,
                         tutti_type_text(&node->inputs[0], text));
    if (k > INT32_MAX || size > INT32_MAX)
        return RULE_FAIL(node, TUTTI_TOO_LARGE,
                         "positions along the last axis of %s do not fit i32",
                         tutti_type_text(&node->inputs[0], text));
    y.dims[y.rank - 1] = k;
    TUTTI_TRY(tutti__shape_output(node, 0, y.dtype, y.rank, y.dims));
    return tutti__shape_output(node, 1, TUTTI_I32, y.rank, y.dims);
}

/* Each value's gradient goes back to where the value came from. */
static tutti_status top_k_gradient(tutti_gradient_call *node)
{
    if (tutti_sym_ok(node->output_grads[0]))
        node->input_grads[0] =
            tutti_put_along(node->outputs[1], node->output_grads[0], node->inputs[0], -1);
    return TUTTI_OK;
}

/* Whether element a of x is strictly larger than element b; a NaN is larger than any number. */
static bool larger(const tutti_view *x, int64_t a, int64_t b)
{
    if (tutti_dtype_is_int(x->dtype))
        return tutti_view_get_int(x, a) > tutti_view_get_int(x, b);
    double first = tutti_view_get(x, a), second = tutti_view_get(x, b);
    return first > second || (isnan(first) && !isnan(second));
}

/* `best` holds the positions of the largest so far, largest first; a new one goes behind its
 * equals. */
static void top_of_row(const tutti_view *x, int64_t base, int64_t size, int64_t k, int32_t *best)
{
    int64_t held = 0;
    for (int64_t i = 0; i < size; i++) {
        if (held == k && !larger(x, base + i, base + best[k - 1]))
            continue;
        int64_t low = 0, high = held;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (larger(x, base + i, base + best[middle]))
                high = middle;
            else
                low = middle + 1;
        }
        held += held < k;
        memmove(best + low + 1, best + low, (size_t)(held - 1 - low) * sizeof *best);
        best[low] = (int32_t)i;
    }
}

static tutti_status top_k_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t size = x->dims[x->rank - 1], k = RULE_INT(call, "k");
    int64_t rows = tutti__blocks(x, x->rank - 1).outer;
    size_t bytes = tutti_dtype_size(x->dtype);
    for (int64_t row = 0; k > 0 && row < rows; row++) {
        int32_t *best = (int32_t *)call->outputs[1].data + row * k;
        top_of_row(x, row * size, size, k, best);
        for (int64_t j = 0; j < k; j++)
            memcpy((char *)call->outputs[0].data + (size_t)(row * k + j) * bytes,
                   (const char *)x->data + (size_t)(row * size + best[j]) * bytes, bytes);
    }
    return TUTTI_OK;
}

static int top_k_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, node->inputs[0].rank - 1, capacity, ret);
}

/* About log2(k) comparisons an element. */
static void top_k_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[0]) * log2((double)RULE_INT(node, "k") + 2);
}

extern const tutti_op tutti_op_top_k;
tutti_sym(tutti_top_k)(tutti_sym x, int64_t k)
{
    return TUTTI_NARY(&tutti_op_top_k, ((tutti_sym[]){x}), TUTTI_INT("k", k));
}

static const tutti_attr_spec attrs[] = {
    {"k", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,5] | k=2", "f32[2,3,4] | k=4", "i32[3,6]{0:9} | k=3",
    "f32[4] | k=1",   "f32[2,3] | k=0",   NULL,
};

const tutti_op tutti_op_top_k = {
    .struct_size = sizeof(tutti_op),
    .name = "top_k",
    .version = 1,
    .doc =
        "top_k(x; k): y0 = the k largest along the last axis, largest first, y1 = their positions as i32",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .attrs = attrs,
    .infer = top_k_infer,
    .gradient = top_k_gradient,
    .cost = top_k_cost,
    .split = top_k_split,
    .expand_on = tutti__top_k_expand_on,
    .reference = top_k_reference,
    .samples = samples,
};
