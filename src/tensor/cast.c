/* cast.c: conversion between data types, and comparison bit by bit. */
#include "base/require.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

#include <string.h>

enum { BLOCK = 256 }; /* elements converted at a time, through the stack */

/* Integers and bools go through int64_t, floats through double, so that every conversion rounds at
 * most once. Both arrays are contiguous. */
static void cast_elements(tutti_dtype from, const char *source, tutti_dtype to, char *target,
                          int64_t count)
{
    size_t from_size = tutti_dtype_size(from), to_size = tutti_dtype_size(to);
    union {
        double doubles[BLOCK];
        int64_t ints[BLOCK];
    } block;
    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t size = count - done < BLOCK ? count - done : BLOCK;
        const char *in = source + (size_t)done * from_size;
        char *out = target + (size_t)done * to_size;
        if (tutti_dtype_is_float(from)) {
            tutti__elements_to_doubles(from, in, size, block.doubles);
            tutti__elements_from_doubles(to, out, size, block.doubles);
        } else {
            tutti__elements_to_ints(from, in, size, block.ints);
            tutti__elements_from_ints(to, out, size, block.ints);
        }
    }
}

/* A contiguous copy or the tensor itself, on the host. */
static tutti_status plain_on_host(tutti_tensor *tensor, tutti_tensor **ret)
{
    tutti_tensor *host = NULL;
    TUTTI_TRY(tutti__tensor_to_host(tensor, &host));
    tutti_status status = tutti_tensor_contiguous(host, ret);
    tutti_tensor_release(host);
    return status;
}

tutti_status tutti_tensor_cast(tutti_tensor *tensor, tutti_dtype dtype, tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_tensor);
    char text[TUTTI_TYPE_TEXT];
    tutti_dtype from = tensor->type.dtype;
    if (from != dtype && (from == TUTTI_STRING || dtype == TUTTI_STRING))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "cast: %s cannot become %s; strings are not parsed or printed here",
                          tutti_type_text(&tensor->type, text), tutti_dtype_name(dtype));
    tutti_tensor *result = NULL, *source = NULL;
    tutti_type type = tensor->type;
    type.dtype = dtype;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &result));
    tutti_status status;
    if (from == dtype) {
        status = tutti_tensor_copy(result, tensor);
    } else {
        status = plain_on_host(tensor, &source);
        if (status == TUTTI_OK) {
            cast_elements(from, tutti_tensor_data(source), dtype, tutti_tensor_data(result),
                          tensor->count);
            tutti_tensor_release(source);
        }
    }
    if (status != TUTTI_OK) {
        tutti_tensor_release(result);
        return status;
    }
    *ret_tensor = result;
    return TUTTI_OK;
}

static bool same_strings(const tutti_tensor *a, const tutti_tensor *b)
{
    for (int64_t i = 0; i < a->count; i++) {
        tutti_string x = tutti_tensor_get_string(a, i), y = tutti_tensor_get_string(b, i);
        if (x.size != y.size || memcmp(x.data, y.data, (size_t)x.size) != 0)
            return false;
    }
    return true;
}

/* A tensor that cannot be brought to the host is the same as nothing. */
bool tutti_tensor_same(const tutti_tensor *a, const tutti_tensor *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (!tutti_type_equal(&a->type, &b->type))
        return false;
    if (a->type.dtype == TUTTI_STRING)
        return same_strings(a, b);
    tutti_tensor *x = NULL, *y = NULL;
    /* Retained for a moment or copied; not changed. */
    bool same = plain_on_host((tutti_tensor *)a, &x) == TUTTI_OK &&
                plain_on_host((tutti_tensor *)b, &y) == TUTTI_OK &&
                (a->count == 0 || memcmp(tutti_tensor_data(x), tutti_tensor_data(y),
                                         (size_t)a->count * tutti_dtype_size(a->type.dtype)) == 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return same;
}
