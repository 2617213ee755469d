/* type.c: types, their text, and the broadcasting rule. */
#include "tensor/type.h"

#include "base/container.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool rank_ok(int rank)
{
    return rank >= 0 && rank <= TUTTI_MAX_RANK;
}

tutti_type tutti_type_make(tutti_dtype dtype, int rank, const int64_t *dims)
{
    tutti_type type = {.dtype = TUTTI_NO_DTYPE};
    if (!rank_ok(rank) || (rank > 0 && dims == NULL))
        return type;
    type.dtype = dtype;
    type.rank = rank;
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    return type;
}

bool tutti_type_is_static(const tutti_type *type)
{
    for (int i = 0; type != NULL && i < type->rank; i++)
        if (type->dims[i] < 0)
            return false;
    return true;
}

/* A dimension of 0 decides: there are no elements, however large or unknown the others are. */
int64_t tutti_type_count(const tutti_type *type)
{
    int64_t count = 1;
    bool unknown = false, overflow = false;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] == 0)
            return 0;
        if (type->dims[i] < 0)
            unknown = true;
        else if (!overflow && !tutti__mul_size(count, type->dims[i], &count))
            overflow = true;
    }
    return overflow ? -2 : unknown ? TUTTI_ANY : count;
}

bool tutti_type_equal(const tutti_type *a, const tutti_type *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->dtype == b->dtype && a->rank == b->rank && a->handle == b->handle &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

bool tutti__type_fits(const tutti_type *actual, const tutti_type *expected)
{
    if (actual->dtype != expected->dtype || actual->rank != expected->rank ||
        actual->handle != expected->handle)
        return false;
    for (int i = 0; i < actual->rank; i++)
        if (expected->dims[i] != TUTTI_ANY && actual->dims[i] != expected->dims[i])
            return false;
    return true;
}

/* Both texts: a rank that is none shows as "[rank 9]". */
static void put_dims(int rank, const int64_t *dims, char *text, size_t size)
{
    if (!rank_ok(rank)) {
        snprintf(text, size, "[rank %d]", rank);
        return;
    }
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank; i++) {
        const char *comma = i > 0 ? "," : "";
        used += (size_t)(dims[i] == TUTTI_ANY
                             ? snprintf(text + used, size - used, "%s?", comma)
                             : snprintf(text + used, size - used, "%s%" PRId64, comma, dims[i]));
    }
    snprintf(text + used, size - used, "]");
}

const char *tutti__dims_text(int rank, const int64_t *dims, char ret_text[TUTTI_TYPE_TEXT])
{
    put_dims(rank, dims, ret_text, TUTTI_TYPE_TEXT);
    return ret_text;
}

const char *tutti_type_text(const tutti_type *type, char ret_text[TUTTI_TYPE_TEXT])
{
    int used = snprintf(ret_text, TUTTI_TYPE_TEXT, "%s%s", type->handle ? "handle " : "",
                        tutti_dtype_name(type->dtype));
    put_dims(type->rank, type->dims, ret_text + used, TUTTI_TYPE_TEXT - (size_t)used);
    return ret_text;
}

tutti_status tutti__type_bytes(const tutti_type *type, int64_t *ret_bytes)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t count = tutti_type_count(type), bytes;
    if (count == TUTTI_ANY)
        return tutti_fail(TUTTI_INVALID, "%s has dimensions that are not known; give each a size",
                          tutti_type_text(type, text));
    if (count < 0 || !tutti__mul_size(count, (int64_t)tutti_dtype_size(type->dtype), &bytes))
        return tutti_fail(TUTTI_TOO_LARGE, "%s is too large: its size in bytes overflows 64 bits",
                          tutti_type_text(type, text));
    *ret_bytes = bytes;
    return TUTTI_OK;
}

tutti_status tutti__type_check(tutti_dtype dtype, int rank, const int64_t *dims,
                               tutti_type *ret_type)
{
    char text[TUTTI_TYPE_TEXT];
    if (tutti_dtype_size(dtype) == 0)
        return tutti_fail(TUTTI_INVALID, "tensor: %d is not a data type; use TUTTI_F32 or the like",
                          (int)dtype);
    if (!rank_ok(rank))
        return tutti_fail(TUTTI_INVALID, "tensor: rank %d is not supported, needs 0 to %d", rank,
                          TUTTI_MAX_RANK);
    if (rank > 0 && dims == NULL)
        return tutti_fail(TUTTI_INVALID, "tensor: rank is %d but dims is NULL", rank);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return tutti_fail(TUTTI_INVALID,
                              "tensor: dimension %d of %s is negative or unknown; every dimension "
                              "of a tensor needs a size of 0 or more",
                              i, tutti__dims_text(rank, dims, text));
    tutti_type type = tutti_type_make(dtype, rank, dims);
    int64_t bytes = 0;
    TUTTI_TRY(tutti__type_bytes(&type, &bytes));
    *ret_type = type;
    return TUTTI_OK;
}

void tutti__row_major(int rank, const int64_t *dims, int64_t ret_strides[TUTTI_MAX_RANK])
{
    bool empty = false;
    for (int i = 0; i < rank; i++)
        empty |= dims[i] == 0;
    int64_t stride = empty ? 0 : 1;
    for (int i = rank - 1; i >= 0; i--) {
        ret_strides[i] = stride;
        if (!empty)
            stride *= dims[i];
    }
}

/* One axis: equal sizes, or one of them 1. An unknown size is 1 or whatever the other asks for. */
static bool broadcast_axis(int64_t a, int64_t b, int64_t *ret)
{
    if (a == b || b == 1)
        *ret = a;
    else if (a == 1 || a == TUTTI_ANY)
        *ret = b;
    else if (b == TUTTI_ANY)
        *ret = a;
    else
        return false;
    return true;
}

tutti_status tutti_broadcast_dims(int rank_a, const int64_t *a, int rank_b, const int64_t *b,
                                  int *ret_rank, int64_t *ret_dims)
{
    char text_a[TUTTI_TYPE_TEXT], text_b[TUTTI_TYPE_TEXT];
    if (!rank_ok(rank_a) || !rank_ok(rank_b))
        return tutti_fail(TUTTI_INVALID, "broadcast: ranks %d and %d, both need 0 to %d", rank_a,
                          rank_b, TUTTI_MAX_RANK);
    if ((rank_a > 0 && !a) || (rank_b > 0 && !b))
        return tutti_fail(TUTTI_INVALID, "broadcast: ranks %d and %d, but the dims are NULL",
                          rank_a, rank_b);
    int rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[TUTTI_MAX_RANK];
    for (int back = 1; back <= rank; back++) {
        int64_t size_a = back <= rank_a ? a[rank_a - back] : 1;
        int64_t size_b = back <= rank_b ? b[rank_b - back] : 1;
        if (!broadcast_axis(size_a, size_b, &dims[rank - back]))
            return tutti_fail(TUTTI_INVALID,
                              "shapes %s and %s do not broadcast: axis -%d has %" PRId64
                              " and %" PRId64 ", needs equal sizes or a 1",
                              tutti__dims_text(rank_a, a, text_a),
                              tutti__dims_text(rank_b, b, text_b), back, size_a, size_b);
    }
    *ret_rank = rank;
    for (int i = 0; i < rank; i++)
        ret_dims[i] = dims[i];
    return TUTTI_OK;
}
