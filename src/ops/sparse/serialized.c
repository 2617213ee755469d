/* serialized.c: see serialized.h. */
#include "ops/sparse/serialized.h"

#include "io/protobuf.h"

/* Numbers of TensorFlow's DataType. */
static const struct {
    tutti_dtype dtype;
    int number;
} types[] = {
    {TUTTI_F32, 1}, {TUTTI_F64, 2},    {TUTTI_I32, 3},  {TUTTI_U8, 4},    {TUTTI_I8, 6},
    {TUTTI_I64, 9}, {TUTTI_STRING, 7}, {TUTTI_F16, 19}, {TUTTI_BF16, 14}, {TUTTI_BOOL, 10},
};

static int number_of(tutti_dtype dtype)
{
    for (size_t i = 0; i < TUTTI_COUNT(types); i++)
        if (types[i].dtype == dtype)
            return types[i].number;
    return 0;
}

static void put_strings(tutti_text *text, const tutti_string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tutti__proto_put_varint(text, (uint64_t)strings[i].size);
    for (int64_t i = 0; i < count; i++)
        tutti__text_bytes(text, strings[i].data, (size_t)strings[i].size);
}

void tutti__serialize(tutti_text *text, tutti_dtype dtype, int rank, const int64_t *dims,
                      const void *elements, int64_t count)
{
    tutti__proto_put_int(text, 1, number_of(dtype));
    size_t shape = tutti__proto_open(text, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = tutti__proto_open(text, 2);
        tutti__proto_put_int(text, 1, dims[i]);
        tutti__proto_close(text, dim);
    }
    tutti__proto_close(text, shape);
    size_t content = tutti__proto_open(text, 4);
    if (dtype == TUTTI_STRING)
        put_strings(text, elements, count);
    else
        tutti__text_bytes(text, elements, (size_t)count * tutti_dtype_size(dtype));
    tutti__proto_close(text, content);
}

typedef struct parsed {
    int64_t type;
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    const uint8_t *content;
    size_t size;
} parsed;

static void parse_shape(tutti_proto shape, parsed *ret)
{
    tutti_proto_field f, size;
    while (tutti__proto_next(&shape, &f)) {
        if (f.number != 2)
            continue;
        tutti_proto dim = tutti__proto_inside(&shape, &f);
        int64_t value = 0;
        while (tutti__proto_next(&dim, &size))
            if (size.number == 1)
                value = tutti__proto_int(&size);
        if (ret->rank < TUTTI_MAX_RANK)
            ret->dims[ret->rank] = value;
        ret->rank++;
    }
}

static bool parse(tutti_string bytes, parsed *ret)
{
    tutti_proto p = tutti__proto("a serialised tensor", bytes.data, (size_t)bytes.size);
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            ret->type = tutti__proto_int(&f);
        else if (f.number == 2)
            parse_shape(tutti__proto_inside(&p, &f), ret);
        else if (f.number == 4 && f.kind == TUTTI_PROTO_BYTES) {
            ret->content = f.data;
            ret->size = f.size;
        }
    }
    return tutti__proto_end(&p) == TUTTI_OK;
}

static bool take_size(const parsed *p, size_t *at, uint64_t *ret)
{
    *ret = 0;
    for (int shift = 0; shift < 63 && *at < p->size; shift += 7) {
        uint8_t byte = p->content[(*at)++];
        *ret |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* Sizes, then bytes; all must be there and nothing else. */
static bool take_strings(const parsed *p, tutti_tensor *tensor, tutti_status *ret_status)
{
    int64_t count = tutti_tensor_count(tensor);
    size_t at = 0, from = 0;
    uint64_t size;
    for (int64_t i = 0; i < count; i++)
        if (!take_size(p, &from, &size))
            return false;
    for (int64_t i = 0; i < count && *ret_status == TUTTI_OK; i++) {
        if (!take_size(p, &at, &size) || size > p->size - from)
            return false;
        *ret_status =
            tutti_tensor_set_string(tensor, i, (const char *)p->content + from, (int64_t)size);
        from += (size_t)size;
    }
    return from == p->size;
}

static bool take_numbers(const parsed *p, tutti_tensor *tensor)
{
    size_t size = (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(tutti_tensor_dtype(tensor));
    if (size != p->size)
        return false;
    if (size > 0)
        memcpy(tutti_tensor_data(tensor), p->content, size);
    return true;
}

static tutti_status damaged(const tutti_kernel_call *call, const char *what)
{
    return RULE_FAIL(call, TUTTI_CORRUPT, "a string is no serialised tensor: %s", what);
}

tutti_status tutti__deserialize(const tutti_kernel_call *call, tutti_string bytes,
                                tutti_dtype dtype, int rank, tutti_tensor **ret)
{
    parsed p = {0};
    int64_t count = 1;
    if (!parse(bytes, &p))
        return damaged(call, tutti_error_message());
    if (p.type != number_of(dtype) || p.rank != rank)
        return damaged(call, "its type or rank is another");
    for (int i = 0; i < rank; i++)
        if (p.dims[i] < 0 || !tutti__mul_size(count, p.dims[i], &count))
            return damaged(call, "its shape is too large");
    if ((uint64_t)count > p.size) /* every element has a byte */
        return damaged(call, "elements are missing");
    tutti_tensor *tensor;
    tutti_status status = TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(dtype, rank, p.dims, &tensor));
    bool good =
        dtype == TUTTI_STRING ? take_strings(&p, tensor, &status) : take_numbers(&p, tensor);
    if (status == TUTTI_OK && !good)
        status = damaged(call, "its elements do not fit its shape");
    if (status != TUTTI_OK) {
        tutti_tensor_release(tensor);
        return status;
    }
    *ret = tensor;
    return TUTTI_OK;
}

tutti_status tutti__deserialize_sparse(const tutti_kernel_call *call, const tutti_string *row,
                                       tutti_dtype dtype, int rank, tutti_sparse *ret)
{
    tutti_sparse sparse = {0};
    tutti_status status = tutti__deserialize(call, row[0], TUTTI_I64, 2, &sparse.indices);
    if (status == TUTTI_OK)
        status = tutti__deserialize(call, row[1], dtype, 1, &sparse.values);
    if (status == TUTTI_OK)
        status = tutti__deserialize(call, row[2], TUTTI_I64, 1, &sparse.dense_shape);
    if (status == TUTTI_OK && tutti_tensor_count(sparse.dense_shape) != rank)
        status = RULE_FAIL(call, TUTTI_INVALID, "a sparse tensor has %lld dimensions, needs %d",
                           (long long)tutti_tensor_count(sparse.dense_shape), rank);
    if (status == TUTTI_OK && tutti_sparse_check(&sparse, NULL) != TUTTI_OK)
        status = RULE_FAIL(call, TUTTI_CORRUPT, "a sparse tensor is not sound: %s",
                           tutti_error_message());
    if (status != TUTTI_OK) {
        tutti_sparse_release(&sparse);
        return status;
    }
    *ret = sparse;
    return TUTTI_OK;
}
