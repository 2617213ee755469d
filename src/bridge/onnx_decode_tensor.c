/* onnx_decode_tensor.c: TensorProto: elements as raw bytes or as lists of numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/onnx_decode.h"
#include "bridge/onnx_small.h"
#include "tensor/pending.h"
#include "tensor/type.h"

/* What a tensor's message holds, before it is a tensor. */
typedef struct parts {
    const char *name;
    int64_t number; /* data_type */
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    tutti_proto_field raw; /* number 0: none */
    tutti_proto values;    /* the message again, to walk its typed data */
    bool outside;
    tutti_onnx_outside where;
} parts;

static tutti_status read_number(const tutti_onnx_decoder *d, const char *key, const char *value,
                                int64_t *ret)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end || number < 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: the %s of data in another file is '%s', no number",
                          d->file, key, value);
    *ret = number;
    return TUTTI_OK;
}

/* StringStringEntryProto: key 1, value 2. */
static tutti_status read_entry(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_outside *where)
{
    tutti_proto_field f;
    const char *key = "", *value = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &key));
        if (f.number == 2)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &value));
    }
    if (strcmp(key, "location") == 0)
        where->location = value;
    if (strcmp(key, "offset") == 0)
        TUTTI_TRY(read_number(d, key, value, &where->offset));
    if (strcmp(key, "length") == 0)
        TUTTI_TRY(read_number(d, key, value, &where->length));
    return tutti__proto_end(&p);
}

static tutti_status read_dims(tutti_onnx_decoder *d, tutti_proto *p, const tutti_proto_field *f,
                              parts *t)
{
    int64_t dim;
    for (size_t at = 0; tutti__proto_each_int(p, f, &at, &dim);) {
        if (t->rank == TUTTI_MAX_RANK)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has more than %d dimensions",
                              d->file, t->name, TUTTI_MAX_RANK);
        if (dim < 0)
            return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has dimension %lld", d->file, t->name,
                              (long long)dim);
        t->dims[t->rank++] = dim;
    }
    return TUTTI_OK;
}

static tutti_status read_parts(tutti_onnx_decoder *d, tutti_proto p, parts *t)
{
    tutti_proto_field f;
    *t = (parts){.name = "", .values = p, .where = {.location = "", .length = -1}};
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(read_dims(d, &p, &f, t));
        if (f.number == 2)
            t->number = tutti__proto_int(&f);
        if (f.number == 8)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &t->name));
        if (f.number == 9 && f.kind == TUTTI_PROTO_BYTES)
            t->raw = f;
        if (f.number == 13)
            TUTTI_TRY(read_entry(d, tutti__proto_inside(&p, &f), &t->where));
        if (f.number == 14 && tutti__proto_int(&f) == 1)
            t->outside = true;
    }
    return tutti__proto_end(&p);
}

/* The field that holds elements of a type: float_data 4, int32_data 5, string_data 6, int64_data 7,
 * double_data 10, uint64_data 11. */
static uint32_t typed_field(int64_t number, tutti_dtype dtype)
{
    if (number == 12 || number == 13)
        return 11;
    switch (dtype) {
    case TUTTI_F32:
        return 4;
    case TUTTI_STRING:
        return 6;
    case TUTTI_I64:
        return 7;
    case TUTTI_F64:
        return 10;
    default:
        return 5;
    }
}

/* Element i; 16-bit floats stand as their bits. */
static void set_int(tutti_tensor *tensor, int64_t i, int64_t value)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    if (dtype == TUTTI_F16 || dtype == TUTTI_BF16)
        ((uint16_t *)tutti_tensor_data(tensor))[i] = (uint16_t)value;
    else
        tutti_tensor_set_int(tensor, i, value);
}

/* Puts the elements of one field into the tensor, from *done on (none without a tensor). */
static tutti_status take_elements(tutti_proto *p, const tutti_proto_field *f, tutti_dtype dtype,
                                  tutti_tensor *tensor, int64_t *done)
{
    int64_t whole;
    float single;
    double number;
    int64_t count = tensor ? tutti_tensor_count(tensor) : INT64_MAX;
    if (dtype == TUTTI_STRING) {
        if (tensor && *done < count)
            TUTTI_TRY(
                tutti_tensor_set_string(tensor, *done, (const char *)f->data, (int64_t)f->size));
        (*done)++;
        return TUTTI_OK;
    }
    for (size_t at = 0; *done < count; (*done)++) {
        if (dtype == TUTTI_F32) {
            if (!tutti__proto_each_float(p, f, &at, &single))
                break;
            if (tensor)
                tutti_tensor_set(tensor, *done, (double)single);
        } else if (dtype == TUTTI_F64) {
            if (!tutti__proto_each_double(p, f, &at, &number))
                break;
            if (tensor)
                tutti_tensor_set(tensor, *done, number);
        } else {
            if (!tutti__proto_each_int(p, f, &at, &whole))
                break;
            if (tensor)
                set_int(tensor, *done, whole);
        }
    }
    return TUTTI_OK;
}

/* Counts typed elements, or puts them into the tensor. */
static tutti_status walk_typed(const parts *t, tutti_dtype dtype, tutti_tensor *tensor,
                               int64_t *ret_count)
{
    tutti_proto p = t->values;
    tutti_proto_field f;
    int64_t done = 0;
    while (tutti__proto_next(&p, &f))
        if (f.number == typed_field(t->number, dtype) &&
            (dtype != TUTTI_STRING || f.kind == TUTTI_PROTO_BYTES))
            TUTTI_TRY(take_elements(&p, &f, dtype, tensor, &done));
    *ret_count = done;
    return tutti__proto_end(&p);
}

/* The bytes that the elements take are there, so that memory may be taken for them. */
static tutti_status check_tensor(tutti_onnx_decoder *d, const parts *t, tutti_dtype dtype)
{
    tutti_type type = tutti_type_make(dtype, t->rank, t->dims);
    int64_t count = tutti_type_count(&type), given = 0;
    size_t bytes = t->outside ? (size_t)t->where.length : t->raw.size;
    bool raw = dtype != TUTTI_STRING && (t->outside ? t->where.length >= 0 : t->raw.number != 0);
    if (t->outside && dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: the texts of tensor '%s' stand outside the file",
                          d->file, t->name);
    if (t->outside && !raw)
        given = count;
    else if (raw)
        given = (int64_t)(bytes / tutti__onnx_stored_bytes(t->number));
    else
        TUTTI_TRY(walk_typed(t, dtype, NULL, &given));
    int64_t wanted = 0, each = (int64_t)tutti__onnx_stored_bytes(t->number);
    if (count < 0 || count != given || !tutti__mul_size(count, each, &wanted) ||
        (raw && bytes % (size_t)each != 0))
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has %lld elements, its data holds %lld",
                          d->file, t->name, (long long)count, (long long)given);
    return t->outside ? tutti__onnx_find_outside(d, t->name, &t->where, (size_t)wanted) : TUTTI_OK;
}

static void fix_bools(tutti_tensor *tensor)
{
    uint8_t *bytes = tutti_tensor_data(tensor);
    for (int64_t i = 0; tutti_tensor_dtype(tensor) == TUTTI_BOOL && i < tutti_tensor_count(tensor);
         i++)
        bytes[i] = bytes[i] != 0;
}

/* Elements of `bytes` bytes stand at the beginning: each goes to its place, from the last on. */
static tutti_status widen(const tutti_onnx_decoder *d, const parts *t, tutti_tensor *tensor)
{
    const unsigned char *from = tutti_tensor_data(tensor);
    size_t bytes = tutti__onnx_stored_bytes(t->number);
    for (int64_t i = tutti_tensor_count(tensor) - 1; i >= 0; i--) {
        uint64_t value = 0;
        for (size_t k = bytes; k-- > 0;)
            value = value << 8 | from[(size_t)i * bytes + k];
        if (value > INT64_MAX)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has an element above 2^63",
                              d->file, t->name);
        bool negative = t->number == 5 && value > INT16_MAX;
        tutti_tensor_set_int(tensor, i, (int64_t)value - (negative ? 65536 : 0));
    }
    return TUTTI_OK;
}

static tutti_status onnx_decode_tensor_fill(tutti_onnx_decoder *d, const parts *t,
                                            tutti_dtype dtype, tutti_tensor *tensor)
{
    size_t size = (size_t)tutti_tensor_count(tensor) * tutti__onnx_stored_bytes(t->number);
    int64_t done = 0;
    if (t->outside)
        TUTTI_TRY(tutti__onnx_take_outside(d, t->name, &t->where, tutti_tensor_data(tensor), size));
    else if (t->raw.number == 0 || dtype == TUTTI_STRING)
        return walk_typed(t, dtype, tensor, &done);
    else if (size > 0)
        memcpy(tutti_tensor_data(tensor), t->raw.data, size);
    fix_bools(tensor);
    return tutti__onnx_is_widened(t->number) ? widen(d, t, tensor) : TUTTI_OK;
}

/* Whether a tensor may stay in the file's bytes until somebody asks for its data. */
static bool may_stay(const tutti_onnx_decoder *d, const parts *t, tutti_dtype dtype)
{
    enum { LARGE = 1 << 16 };
    return d->bytes && !t->outside && t->raw.number != 0 && t->raw.size >= LARGE &&
           dtype == TUTTI_F32;
}

static tutti_status leave(const tutti_onnx_decoder *d, const parts *t, const tutti_type *type,
                          tutti_tensor **ret)
{
    tutti_standing standing = {.holder = d->bytes, .bytes = (const char *)t->raw.data};
    tutti__row_major(type->rank, type->dims, standing.strides);
    return tutti__tensor_pending(type, &standing, ret);
}

/* ---- elements of less than a byte ---- */

/* The bytes, each a number of int32_data. */
static tutti_status walk_bytes(const parts *t, uint8_t *to, size_t size, size_t *ret_given)
{
    tutti_proto p = t->values;
    tutti_proto_field f;
    int64_t byte;
    *ret_given = 0;
    while (tutti__proto_next(&p, &f))
        for (size_t at = 0; f.number == 5 && tutti__proto_each_int(&p, &f, &at, &byte);
             (*ret_given)++)
            if (*ret_given < size)
                to[*ret_given] = (uint8_t)byte;
    return tutti__proto_end(&p);
}

static tutti_status take_bytes(tutti_onnx_decoder *d, const parts *t, uint8_t *to, size_t size)
{
    size_t given = t->raw.size;
    if (t->outside)
        return tutti__onnx_take_outside(d, t->name, &t->where, to, size);
    if (t->raw.number == 0)
        TUTTI_TRY(walk_bytes(t, to, size, &given));
    if (given != size)
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' takes %zu bytes, its data holds %zu",
                          d->file, t->name, size, given);
    if (t->raw.number != 0 && size > 0)
        memcpy(to, t->raw.data, size);
    return TUTTI_OK;
}

/* Elements take at most 16 times as much memory here as in the file. */
static tutti_status take_small(tutti_onnx_decoder *d, const parts *t, const tutti_onnx_small *small,
                               tutti_tensor **ret)
{
    tutti_type type = tutti_type_make(small->held, t->rank, t->dims);
    int64_t count = tutti_type_count(&type);
    if (count < 0 || count > (int64_t)(4 * ONNX_BYTES))
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has %lld elements", d->file, t->name,
                          (long long)count);
    size_t size = tutti__onnx_packed_bytes(small, count);
    bool here = !t->outside && t->raw.number != 0;
    if (here && t->raw.size != size)
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' takes %zu bytes, its data holds %zu",
                          d->file, t->name, size, t->raw.size);
    if (!here && !t->outside && size > ((size_t)1 << 24))
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has its %zu bytes as single numbers",
                          d->file, t->name, size);
    if (t->outside && t->where.length >= 0 && (size_t)t->where.length != size)
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' takes %zu bytes, its data holds %lld",
                          d->file, t->name, size, (long long)t->where.length);
    if (t->outside)
        TUTTI_TRY(tutti__onnx_find_outside(d, t->name, &t->where, size));
    uint8_t *bytes = malloc(size + 1);
    tutti_tensor *tensor = NULL;
    tutti_status status = bytes ? take_bytes(d, t, bytes, size) : tutti__onnx_no_memory(d);
    if (status == TUTTI_OK)
        status = tutti__tensor_in(tutti__host_memory(), &type, &tensor);
    if (status == TUTTI_OK)
        status = tutti__onnx_keep(d->onnx, tensor);
    if (status == TUTTI_OK)
        tutti__onnx_unpack(small, bytes, *ret = tensor);
    free(bytes);
    return status;
}

tutti_status tutti__onnx_take_tensor(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret)
{
    parts t;
    tutti_tensor *tensor;
    TUTTI_TRY(read_parts(d, p, &t));
    tutti_dtype dtype = tutti__onnx_dtype_of(t.number);
    *ret_name = t.name;
    d->element = t.number;
    if (dtype == TUTTI_NO_DTYPE) {
        *ret = NULL;
        return tutti__onnx_note_need(d, "elements of type %s (tensor '%s')",
                                     tutti__onnx_element(t.number), t.name);
    }
    const tutti_onnx_small *small = tutti__onnx_small(t.number);
    d->onnx->widened = d->onnx->widened || small || tutti__onnx_is_widened(t.number);
    if (small)
        return take_small(d, &t, small, ret);
    TUTTI_TRY(check_tensor(d, &t, dtype));
    tutti_type type = tutti_type_make(dtype, t.rank, t.dims); /* every element is written below */
    bool stays = may_stay(d, &t, dtype);
    TUTTI_TRY(stays ? leave(d, &t, &type, &tensor)
                    : tutti__tensor_in(tutti__host_memory(), &type, &tensor));
    TUTTI_TRY(tutti__onnx_keep(d->onnx, tensor));
    if (!stays)
        TUTTI_TRY(onnx_decode_tensor_fill(d, &t, dtype, tensor));
    *ret = tensor;
    return TUTTI_OK;
}
