/* rule.c: what the shape, reduction and linear operators share; see rule.h. */
#include <math.h>

#include "ops/shape/rule.h"

tutti_status tutti__shape_output(tutti_infer *node, int index, tutti_dtype dtype, int rank,
                                 const int64_t *dims)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t bytes;
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the result would have %d dimensions, at most %d are possible", rank,
                         TUTTI_MAX_RANK);
    tutti_type type = tutti_type_make(dtype, rank, dims);
    int64_t count = tutti_type_count(&type);
    if (count == -2 ||
        (count > 0 && !tutti__mul_size(count, (int64_t)tutti_dtype_size(dtype), &bytes)))
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "the size of the result %s overflows 64 bits",
                         tutti_type_text(&type, text));
    node->outputs[index] = type;
    return TUTTI_OK;
}

tutti_status tutti__shape_like(const tutti_infer *node, int input, tutti_type *ret_like)
{
    const int64_t *dims;
    int rank = RULE_INTS(node, "dims", &dims);
    if (node->input_count > input) {
        *ret_like = node->inputs[input];
        return TUTTI_OK;
    }
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "%d dimensions are given, at most %d are possible",
                         rank, TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld, needs 0 or more", i,
                             (long long)dims[i]);
    *ret_like = tutti_type_make(node->inputs[0].dtype, rank, dims);
    return TUTTI_OK;
}

tutti_status tutti__shape_floats(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (tutti_dtype_is_float(node->inputs[i].dtype))
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input %d is %s, needs f32, f64, f16 or bf16; convert it with tutti_cast", i,
                     tutti_type_text(&node->inputs[i], text));
}

tutti_status tutti__shape_numbers(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (tutti_dtype_is_float(node->inputs[i].dtype) || tutti_dtype_is_int(node->inputs[i].dtype))
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input %d is %s, needs floats or integers; convert it with tutti_cast", i,
                     tutti_type_text(&node->inputs[i], text));
}

tutti_status tutti__shape_indices(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[i].dtype == TUTTI_I32 || node->inputs[i].dtype == TUTTI_I64)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input %d (indices) is %s, needs i32 or i64; convert it with tutti_cast", i,
                     tutti_type_text(&node->inputs[i], text));
}

tutti_status tutti__shape_same_dtype(const tutti_infer *node, int i)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    if (node->inputs[i].dtype == node->inputs[0].dtype)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input 0 is %s, input %d is %s; element types must agree: convert one of them "
                     "with tutti_cast",
                     tutti_type_text(&node->inputs[0], a), i, tutti_type_text(&node->inputs[i], b));
}

tutti_status tutti__shape_axes(const tutti_infer *node, const char *name, int rank,
                               uint32_t *ret_mask)
{
    char text[TUTTI_TYPE_TEXT];
    const int64_t *axes;
    int count = RULE_INTS(node, name, &axes);
    uint32_t mask = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        TUTTI_TRY(tutti__rule_axis(node, axes[i], rank, &axis));
        if (mask & 1u << axis)
            return RULE_FAIL(node, TUTTI_INVALID, "axis %lld of input %s is named twice in %s",
                             (long long)axes[i], tutti_type_text(&node->inputs[0], text), name);
        mask |= 1u << axis;
    }
    *ret_mask = count == 0 ? (1u << rank) - 1 : mask;
    return TUTTI_OK;
}

uint32_t tutti__axes_mask(int rank, const tutti_attr *attrs, int attr_count, const char *name)
{
    const int64_t *axes;
    int count = tutti_attr_ints(attrs, attr_count, name, &axes);
    uint32_t mask = 0;
    for (int i = 0; i < count; i++)
        mask |= 1u << tutti__axis_of(axes[i], rank);
    return count == 0 ? (1u << rank) - 1 : mask;
}

double tutti__shape_elements(const tutti_type *type)
{
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i] < 0 ? 1.0 : (double)type->dims[i];
    return count;
}

tutti_split *tutti__cut(tutti_cuts *cuts)
{
    tutti_split *way = cuts->count < cuts->capacity ? &cuts->ret[cuts->count] : &cuts->spare;
    cuts->count++;
    *way = (tutti_split){0};
    memset(way->inputs, TUTTI_WHOLE, sizeof way->inputs);
    memset(way->outputs, TUTTI_WHOLE, sizeof way->outputs);
    return way;
}

void tutti__cut_like(const tutti_infer *node, tutti_split *way, int input, int axis)
{
    if (node->input_count > input) {
        way->inputs[input] = (int8_t)axis;
        return;
    }
    way->attr = "dims";
    way->attr_index = axis;
}

void tutti__cut_pair(tutti_cuts *cuts, int input_axis, int output_axis)
{
    tutti_split *way = tutti__cut(cuts);
    way->inputs[0] = (int8_t)input_axis;
    way->outputs[0] = (int8_t)output_axis;
}

int tutti__split_other_axes(const tutti_infer *node, int except, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    if (node->input_count > TUTTI_SPLIT_SLOTS || node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int axis = 0; axis < node->outputs[0].rank; axis++) {
        if (axis == except)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        for (int i = 0; i < node->input_count; i++)
            way->inputs[i] = (int8_t)axis;
        for (int i = 0; i < node->output_count; i++)
            way->outputs[i] = (int8_t)axis;
    }
    return cuts.count;
}

/* Axis i of one shape and axis j of the other are cut alike when as many elements lie before them
 * and the size of one is a multiple of the other's: the finer is cut at multiples. */
void tutti__split_reshaped(const tutti_type *from, const tutti_type *to, void *context,
                           void (*found)(void *context, int from_axis, int to_axis))
{
    int64_t before_from = 1, before_to = 1;
    int j = 0;
    if (!tutti_type_is_static(from) || !tutti_type_is_static(to) || tutti_type_count(from) == 0)
        return;
    for (int i = 0; i < from->rank; before_from *= from->dims[i++]) {
        while (j < to->rank && (before_to < before_from || to->dims[j] == 1))
            before_to *= to->dims[j++];
        if (j < to->rank && before_to == before_from && from->dims[i] > 1 && to->dims[j] > 1 &&
            (from->dims[i] % to->dims[j] == 0 || to->dims[j] % from->dims[i] == 0))
            found(context, i, j);
    }
}

int64_t tutti__dims_product(int rank, const int64_t *dims)
{
    int64_t product = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return 0;
    for (int i = 0; i < rank; i++)
        if (!tutti__mul_size(product, dims[i], &product))
            return INT64_MAX;
    return product;
}

tutti_blocks tutti__blocks(const tutti_view *view, int axis)
{
    if (tutti__dims_product(view->rank, view->dims) == 0)
        return (tutti_blocks){.size = view->dims[axis]};
    return (tutti_blocks){
        .outer = tutti__dims_product(axis, view->dims),
        .size = view->dims[axis],
        .inner = tutti__dims_product(view->rank - axis - 1, view->dims + axis + 1),
    };
}

void tutti__strides_of(int rank, const int64_t *dims, int64_t *ret_strides)
{
    int64_t stride = tutti__dims_product(rank, dims) == 0 ? 0 : 1;
    for (int i = rank - 1; i >= 0; i--) {
        ret_strides[i] = stride;
        if (stride != 0)
            stride *= dims[i];
    }
}

tutti_status tutti__reference_view(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    size_t bytes = (size_t)tutti__dims_product(x->rank, x->dims) * tutti_dtype_size(x->dtype);
    if (bytes > 0 && x->data != y->data)
        memcpy(y->data, x->data, bytes);
    return TUTTI_OK;
}

void tutti__fill_view(const tutti_view *view, double value)
{
    size_t size = tutti_dtype_size(view->dtype);
    size_t total = (size_t)tutti__dims_product(view->rank, view->dims) * size;
    if (total == 0)
        return;
    if ((value == 0 && !signbit(value)) || view->dtype == TUTTI_STRING) {
        memset(view->data, 0, total);
        return;
    }
    tutti_view_set(view, 0, value);
    for (size_t done = size; done < total; done *= 2)
        memcpy((char *)view->data + done, view->data, done < total - done ? done : total - done);
}
