/* view.c: tensors that share another's buffer: slice, permute, broadcast, reshape. */
#include "base/container.h"
#include "base/require.h"
#include "tensor/tensor.h"
#include "tensor/type.h"

#include <inttypes.h>

static size_t moved(const tutti_tensor *tensor, int64_t elements)
{
    return tensor->offset + (size_t)(elements * (int64_t)tutti_dtype_size(tensor->type.dtype));
}

/* The last index start + (size - 1) step, when it can be computed and lies on the axis. */
static bool slice_fits(int64_t extent, int64_t start, int64_t size, int64_t step)
{
    int64_t reach, last;
    if (size == 0)
        return start >= 0 && start <= extent;
    return start >= 0 && start < extent && tutti__mul_size(size - 1, step, &reach) &&
           tutti__add_size(start, reach, &last) && last >= 0 && last < extent;
}

tutti_status tutti_tensor_slice(tutti_tensor *tensor, int axis, int64_t start, int64_t size,
                                int64_t step, tutti_tensor **ret_view)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_view);
    char text[TUTTI_TYPE_TEXT];
    tutti_type type = tensor->type;
    int at = axis < 0 ? axis + type.rank : axis;
    if (at < 0 || at >= type.rank)
        return tutti_fail(TUTTI_INVALID, "slice: axis %d of %s does not exist, needs %d to %d",
                          axis, tutti_type_text(&type, text), -type.rank, type.rank - 1);
    if (step == 0 || size < 0)
        return tutti_fail(TUTTI_INVALID,
                          "slice of %s: size %" PRId64 " and step %" PRId64
                          ", needs a size of 0 or more and a step other than 0",
                          tutti_type_text(&type, text), size, step);
    if (!slice_fits(type.dims[at], start, size, step))
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "slice of %s: %" PRId64 " elements from %" PRId64 " in steps of %" PRId64
                          " leave axis %d, whose indices are 0 to %" PRId64,
                          tutti_type_text(&type, text), size, start, step, at, type.dims[at] - 1);
    int64_t strides[TUTTI_MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        strides[i] = size == 0 ? 0 : tensor->strides[i];
    size_t offset = size == 0 ? tensor->offset : moved(tensor, start * strides[at]);
    if (size > 1)
        strides[at] *= step;
    type.dims[at] = size;
    return tutti__tensor_strided(tensor, &type, strides, offset, ret_view);
}

tutti_status tutti_tensor_permute(tutti_tensor *tensor, const int *order, tutti_tensor **ret_view)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(order);
    TUTTI_REQUIRE(ret_view);
    char text[TUTTI_TYPE_TEXT];
    tutti_type type = tensor->type;
    int64_t strides[TUTTI_MAX_RANK];
    unsigned seen = 0;
    for (int i = 0; i < type.rank; i++) {
        if (order[i] < 0 || order[i] >= type.rank || (seen >> order[i] & 1u))
            return tutti_fail(TUTTI_INVALID,
                              "permute of %s: order[%d] is %d; the order must name each axis from "
                              "0 to %d once",
                              tutti_type_text(&tensor->type, text), i, order[i], type.rank - 1);
        seen |= 1u << order[i];
        type.dims[i] = tensor->type.dims[order[i]];
        strides[i] = tensor->strides[order[i]];
    }
    return tutti__tensor_strided(tensor, &type, strides, tensor->offset, ret_view);
}

tutti_status tutti_tensor_broadcast(tutti_tensor *tensor, int rank, const int64_t *dims,
                                    tutti_tensor **ret_view)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_view);
    char text[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    tutti_type type;
    int64_t strides[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__type_check(tensor->type.dtype, rank, dims, &type));
    int lead = rank - tensor->type.rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < rank; i++) {
        int64_t from = i < lead ? 1 : tensor->type.dims[i - lead];
        strides[i] = i < lead || from != dims[i] ? 0 : tensor->strides[i - lead];
        fits = from == dims[i] || from == 1;
    }
    if (!fits)
        return tutti_fail(TUTTI_INVALID,
                          "broadcast: %s cannot become %s; aligned at the last axis, each size "
                          "must be equal or 1",
                          tutti_type_text(&tensor->type, text),
                          tutti__dims_text(rank, dims, wanted));
    return tutti__tensor_strided(tensor, &type, strides, tensor->offset, ret_view);
}

/* Fills in the one TUTTI_ANY and checks that the number of elements stays. */
static tutti_status reshape_type(const tutti_tensor *tensor, int rank, const int64_t *dims,
                                 tutti_type *ret_type)
{
    char text[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_type_make(tensor->type.dtype, rank, dims);
    if (type.dtype == TUTTI_NO_DTYPE)
        return tutti_fail(TUTTI_INVALID, "reshape of %s: rank %d is not supported, needs 0 to %d",
                          tutti_type_text(&tensor->type, text), rank, TUTTI_MAX_RANK);
    int any = -1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < TUTTI_ANY || (dims[i] == TUTTI_ANY && any >= 0))
            return tutti_fail(TUTTI_INVALID,
                              "reshape of %s to %s: at most one dimension may be unknown and none "
                              "negative",
                              tutti_type_text(&tensor->type, text),
                              tutti__dims_text(rank, dims, wanted));
        if (dims[i] == TUTTI_ANY)
            any = i;
    }
    if (any >= 0) {
        type.dims[any] = 1;
        int64_t rest = tutti_type_count(&type);
        type.dims[any] = rest > 0 ? tensor->count / rest : 0;
        if (rest == 0 && tensor->count == 0)
            return tutti_fail(TUTTI_INVALID,
                              "reshape of %s to %s: with no elements the unknown dimension could "
                              "be anything; give it a size",
                              tutti_type_text(&tensor->type, text),
                              tutti__dims_text(rank, dims, wanted));
    }
    if (tutti_type_count(&type) != tensor->count)
        return tutti_fail(TUTTI_INVALID,
                          "reshape: %s has %" PRId64 " elements, which do not fill %s",
                          tutti_type_text(&tensor->type, text), tensor->count,
                          tutti__dims_text(rank, dims, wanted));
    *ret_type = type;
    return TUTTI_OK;
}

/* Strides of the new shape over the old memory, when there are such: old and new axes are matched
 * in groups of equal products, and the old axes of a group must step as one. No element count is 0.
 */
static bool reshape_strides(const tutti_tensor *tensor, const tutti_type *to, int64_t *ret_strides)
{
    int64_t old_dims[TUTTI_MAX_RANK] = {0}, old_strides[TUTTI_MAX_RANK] = {0};
    int old_rank = 0, old = 0, new = 0;
    for (int i = 0; i < tensor->type.rank; i++) {
        if (tensor->type.dims[i] == 1)
            continue;
        old_dims[old_rank] = tensor->type.dims[i];
        old_strides[old_rank++] = tensor->strides[i];
    }
    while (old < old_rank && new < to->rank) {
        int64_t old_product = old_dims[old], new_product = to->dims[new];
        int old_end = old + 1, new_end = new + 1;
        while (old_product != new_product) {
            if (old_product < new_product)
                old_product *= old_dims[old_end++];
            else
                new_product *= to->dims[new_end++];
        }
        for (int i = old; i + 1 < old_end; i++)
            if (old_strides[i] != old_strides[i + 1] * old_dims[i + 1])
                return false;
        int64_t stride = old_strides[old_end - 1];
        for (int i = new_end - 1; i >= new; i--) {
            ret_strides[i] = stride;
            stride *= to->dims[i];
        }
        old = old_end;
        new = new_end;
    }
    for (; new < to->rank; new ++)
        ret_strides[new] = 1; /* axes of size 1 that are left */
    return true;
}

tutti_status tutti_tensor_reshape(tutti_tensor *tensor, int rank, const int64_t *dims,
                                  tutti_tensor **ret_view)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_view);
    tutti_type type;
    int64_t strides[TUTTI_MAX_RANK];
    TUTTI_TRY(reshape_type(tensor, rank, dims, &type));
    if (tensor->contiguous)
        return tutti__tensor_strided(tensor, &type, NULL, tensor->offset, ret_view);
    if (reshape_strides(tensor, &type, strides))
        return tutti__tensor_strided(tensor, &type, strides, tensor->offset, ret_view);
    tutti_tensor *copy = NULL;
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &copy));
    tutti_status status = tutti__tensor_strided(copy, &type, NULL, 0, ret_view);
    tutti_tensor_release(copy);
    return status;
}
