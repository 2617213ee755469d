/* sparse.c: what the sparse operators share; see sparse.h. */
#include "ops/sparse/sparse.h"

#include <stdlib.h>

#include "ops/shape/move.h"
#include "tensor/dtype.h"

enum { BLOCK = 64 }; /* elements that are converted at once */

tutti_status tutti__need_positions(const tutti_infer *node, int i, int64_t rank)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i];
    bool good = type->dtype == TUTTI_I64 && type->rank == 2;
    if (good && rank >= 0 && type->dims[1] != TUTTI_ANY)
        good = type->dims[1] == rank;
    if (good)
        return TUTTI_OK;
    if (rank >= 0)
        return RULE_FAIL(node, TUTTI_INVALID, "indices are %s, need i64[n,%lld]",
                         tutti_type_text(type, text), (long long)rank);
    return RULE_FAIL(node, TUTTI_INVALID, "indices are %s, need i64[n,rank]",
                     tutti_type_text(type, text));
}

tutti_status tutti__need_values(const tutti_infer *node, int i, int positions)
{
    char text[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i], *at = &node->inputs[positions];
    if (!tutti_dtype_is_float(type->dtype) && !tutti_dtype_is_int(type->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "values are %s, need numbers",
                         tutti_type_text(type, text));
    if (type->rank != 1 ||
        (type->dims[0] != TUTTI_ANY && at->dims[0] != TUTTI_ANY && type->dims[0] != at->dims[0]))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "values are %s for indices %s; need one value per row",
                         tutti_type_text(type, text), tutti_type_text(at, other));
    return TUTTI_OK;
}

tutti_status tutti__need_dense_shape(const tutti_infer *node, int i, int64_t rank,
                                     int64_t ret_dims[TUTTI_MAX_RANK])
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i];
    tutti_tensor *value = node->values ? node->values[i] : NULL;
    if (type->dtype != TUTTI_I64 || type->rank != 1 || type->dims[0] == TUTTI_ANY ||
        type->dims[0] > TUTTI_MAX_RANK || (rank >= 0 && type->dims[0] != rank))
        return RULE_FAIL(node, TUTTI_INVALID, "the dense shape is %s, needs i64[rank], rank known",
                         tutti_type_text(type, text));
    for (int axis = 0; axis < type->dims[0]; axis++) {
        ret_dims[axis] = value ? tutti_tensor_get_int(value, axis) : TUTTI_ANY;
        if (value && ret_dims[axis] < 0)
            return RULE_FAIL(node, TUTTI_INVALID, "the dense shape's dimension %d is %lld", axis,
                             (long long)ret_dims[axis]);
    }
    return TUTTI_OK;
}

tutti_status tutti__dense_shape(const tutti_kernel_call *call, const tutti_view *shape,
                                int64_t ret_dims[TUTTI_MAX_RANK])
{
    int64_t product = 8, rank = tutti_view_count(shape);
    for (int64_t axis = 0; axis < rank; axis++) {
        int64_t dim = tutti_view_get_int(shape, axis);
        if (dim < 0)
            return RULE_FAIL(call, TUTTI_OUT_OF_RANGE, "the dense shape's dimension %lld is %lld",
                             (long long)axis, (long long)dim);
        if (!tutti__mul_size(product, dim > 0 ? dim : 1, &product))
            return RULE_FAIL(call, TUTTI_TOO_LARGE, "the dense shape's size overflows 64 bits");
        ret_dims[axis] = dim;
    }
    return TUTTI_OK;
}

tutti_status tutti__check_positions(const tutti_kernel_call *call, const tutti_view *positions,
                                    const int64_t *dims)
{
    int64_t count = positions->dims[0], rank = positions->dims[1];
    for (int64_t i = 0; i < count; i++)
        for (int64_t axis = 0; axis < rank; axis++) {
            int64_t at = tutti_view_get_int(positions, i * rank + axis);
            if (at < 0 || at >= dims[axis])
                return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                                 "indices[%lld,%lld] is %lld, outside [0, %lld)", (long long)i,
                                 (long long)axis, (long long)at, (long long)dims[axis]);
        }
    return TUTTI_OK;
}

tutti_status tutti__sums_begin(const tutti_kernel_call *call, const tutti_view *out,
                               tutti_sums *ret)
{
    tutti_sums sums = {.out = out, .floats = tutti_dtype_is_float(out->dtype)};
    sums.at = calloc((size_t)tutti_view_count(out) + 1, sizeof *sums.at);
    if (!sums.at)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld sums",
                         (long long)tutti_view_count(out));
    *ret = sums;
    return TUTTI_OK;
}

void tutti__sums_add(tutti_sums *sums, int64_t to, const tutti_view *x, int64_t i, int64_t count)
{
    double row[BLOCK];
    int64_t whole[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int n = (int)(count - first < BLOCK ? count - first : BLOCK);
        union tutti_sum_with *at = sums->at + to + first;
        if (sums->floats)
            tutti__elements_to_doubles(x->dtype, tutti__element(x, i + first), n, row);
        else
            tutti__elements_to_ints(x->dtype, tutti__element(x, i + first), n, whole);
        for (int k = 0; k < n; k++) {
            if (sums->floats)
                at[k].f += row[k];
            else
                at[k].i += (uint64_t)whole[k];
        }
    }
}

static void add_float_products(union tutti_sum_with *to, double factor, const tutti_view *y,
                               int64_t j, int count)
{
    double row[BLOCK];
    if (y->dtype == TUTTI_F32) {
        const float *from = (const float *)y->data + j;
        for (int k = 0; k < count; k++)
            to[k].f += factor * (double)from[k];
        return;
    }
    tutti__elements_to_doubles(y->dtype, tutti__element(y, j), count, row);
    for (int k = 0; k < count; k++)
        to[k].f += factor * row[k];
}

static void add_int_products(union tutti_sum_with *to, int64_t factor, const tutti_view *y,
                             int64_t j, int count)
{
    int64_t row[BLOCK];
    tutti__elements_to_ints(y->dtype, tutti__element(y, j), count, row);
    for (int k = 0; k < count; k++)
        to[k].i += (uint64_t)factor * (uint64_t)row[k];
}

void tutti__sums_add_products(tutti_sums *sums, int64_t to, const tutti_view *x, int64_t i,
                              const tutti_view *y, int64_t j, int64_t count)
{
    for (int64_t k = 0; k < count; k += BLOCK) {
        int n = (int)(count - k < BLOCK ? count - k : BLOCK);
        if (sums->floats)
            add_float_products(sums->at + to + k, tutti_view_get(x, i), y, j + k, n);
        else
            add_int_products(sums->at + to + k, tutti_view_get_int(x, i), y, j + k, n);
    }
}

void tutti__sums_end(tutti_sums *sums)
{
    double row[BLOCK];
    int64_t whole[BLOCK], count = tutti_view_count(sums->out);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int n = (int)(count - first < BLOCK ? count - first : BLOCK);
        for (int k = 0; sums->floats && k < n; k++)
            row[k] = sums->at[first + k].f;
        for (int k = 0; !sums->floats && k < n; k++)
            whole[k] = (int64_t)sums->at[first + k].i;
        if (sums->floats)
            tutti__elements_from_doubles(sums->out->dtype, tutti__element(sums->out, first), n,
                                         row);
        else
            tutti__elements_from_ints(sums->out->dtype, tutti__element(sums->out, first), n, whole);
    }
    free(sums->at);
}
