/* onnx_decode_tensor.c: TensorProto: elements as raw bytes or as lists of numbers. */
#include <string.h>

#include "bridge/onnx_decode.h"

/* What a tensor's message holds, before it is a tensor. */
typedef struct parts {
    const char *name;
    int64_t number; /* data_type */
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    tutti_proto_field raw; /* number 0: none */
    tutti_proto values;    /* the message again, to walk its typed data */
    bool outside;
} parts;

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
    *t = (parts){.name = "", .values = p};
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(read_dims(d, &p, &f, t));
        if (f.number == 2)
            t->number = tutti__proto_int(&f);
        if (f.number == 8)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &t->name));
        if (f.number == 9 && f.kind == TUTTI_PROTO_BYTES)
            t->raw = f;
        if (f.number == 13 || (f.number == 14 && tutti__proto_int(&f) == 1))
            t->outside = true;
    }
    return tutti__proto_end(&p);
}

/* The field that holds elements of a type: float_data 4, int32_data 5, string_data 6, int64_data 7,
 * double_data 10. */
static uint32_t typed_field(tutti_dtype dtype)
{
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
        if (f.number == typed_field(dtype) &&
            (dtype != TUTTI_STRING || f.kind == TUTTI_PROTO_BYTES))
            TUTTI_TRY(take_elements(&p, &f, dtype, tensor, &done));
    *ret_count = done;
    return tutti__proto_end(&p);
}

static tutti_status check_tensor(const tutti_onnx_decoder *d, const parts *t, tutti_dtype dtype,
                                 int64_t *ret_count)
{
    tutti_type type = tutti_type_make(dtype, t->rank, t->dims);
    int64_t count = tutti_type_count(&type), given = 0;
    if (t->outside)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: the data of tensor '%s' stands outside the file; save the model as "
                          "one file",
                          d->file, t->name);
    if (dtype == TUTTI_NO_DTYPE)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has elements of ONNX type %lld",
                          d->file, t->name, (long long)t->number);
    if (t->raw.number != 0 && dtype != TUTTI_STRING)
        given = (int64_t)(t->raw.size / tutti_dtype_size(dtype));
    else
        TUTTI_TRY(walk_typed(t, dtype, NULL, &given));
    bool odd =
        t->raw.number != 0 && dtype != TUTTI_STRING && t->raw.size % tutti_dtype_size(dtype) != 0;
    if (count < 0 || count != given || odd)
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has %lld elements, its data holds %lld",
                          d->file, t->name, (long long)count, (long long)given);
    *ret_count = count;
    return TUTTI_OK;
}

static void fix_bools(tutti_tensor *tensor)
{
    uint8_t *bytes = tutti_tensor_data(tensor);
    for (int64_t i = 0; tutti_tensor_dtype(tensor) == TUTTI_BOOL && i < tutti_tensor_count(tensor);
         i++)
        bytes[i] = bytes[i] != 0;
}

tutti_status tutti__onnx_take_tensor(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret)
{
    parts t;
    int64_t count = 0, done = 0;
    tutti_tensor *tensor;
    TUTTI_TRY(read_parts(d, p, &t));
    tutti_dtype dtype = tutti__onnx_dtype_of(t.number);
    TUTTI_TRY(check_tensor(d, &t, dtype, &count));
    TUTTI_TRY(tutti_tensor_create(dtype, t.rank, t.dims, &tensor));
    tutti_status status = tutti__onnx_keep(d->onnx, tensor);
    TUTTI_TRY(status);
    if (t.raw.number != 0 && dtype != TUTTI_STRING) {
        if (count > 0)
            memcpy(tutti_tensor_data(tensor), t.raw.data, t.raw.size);
        fix_bools(tensor);
    } else {
        TUTTI_TRY(walk_typed(&t, dtype, tensor, &done));
    }
    *ret_name = t.name;
    *ret = tensor;
    return TUTTI_OK;
}
