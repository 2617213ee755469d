/* onnx_sparse.c: SparseTensorProto as a dense tensor. Its zeros are not in the file, so all sparse
 * tensors of a file together have at most ONNX_DENSE elements. */
#include <string.h>

#include "bridge/onnx_decode.h"
#include "bridge/onnx_small.h"
#include "tensor/tensor.h"

typedef struct sparse {
    const char *name;
    tutti_tensor *values, *indices;
    int64_t element;
    tutti_type type;
} sparse;

/* values 1, indices 2, dims 3. */
static tutti_status read_parts(tutti_onnx_decoder *d, tutti_proto p, sparse *s)
{
    tutti_proto_field f;
    const char *unused;
    int64_t dim;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1) {
            TUTTI_TRY(
                tutti__onnx_take_tensor(d, tutti__proto_inside(&p, &f), &s->name, &s->values));
            s->element = d->element;
        }
        if (f.number == 2)
            TUTTI_TRY(
                tutti__onnx_take_tensor(d, tutti__proto_inside(&p, &f), &unused, &s->indices));
        for (size_t at = 0; f.number == 3 && tutti__proto_each_int(&p, &f, &at, &dim);) {
            if (s->type.rank == TUTTI_MAX_RANK || dim < 0)
                return tutti_fail(TUTTI_CORRUPT, "%s: a sparse tensor has a dimension of %lld",
                                  d->file, (long long)dim);
            s->type.dims[s->type.rank++] = dim;
        }
    }
    return tutti__proto_end(&p);
}

/* The flat place of value i: given as one number, or as one for each dimension; -1: outside. */
static int64_t place_of(const sparse *s, int64_t i, int64_t count)
{
    int64_t at = 0;
    if (tutti_tensor_rank(s->indices) == 1) {
        at = tutti_tensor_get_int(s->indices, i);
        return at >= 0 && at < count ? at : -1;
    }
    for (int k = 0; k < s->type.rank; k++) {
        int64_t index = tutti_tensor_get_int(s->indices, i * s->type.rank + k);
        if (index < 0 || index >= s->type.dims[k])
            return -1;
        at = at * s->type.dims[k] + index;
    }
    return at;
}

static tutti_status onnx_sparse_check(tutti_onnx_decoder *d, const sparse *s, int64_t count)
{
    int64_t given = s->values ? tutti_tensor_count(s->values) : 0;
    if (!s->values || !s->indices || tutti_tensor_dtype(s->indices) != TUTTI_I64 ||
        tutti_tensor_rank(s->indices) < 1 || tutti_tensor_rank(s->indices) > 2 ||
        tutti_tensor_count(s->indices) !=
            given * (tutti_tensor_rank(s->indices) == 1 ? 1 : s->type.rank))
        return tutti_fail(TUTTI_CORRUPT, "%s: values and indices of sparse tensor '%s' do not fit",
                          d->file, s->name);
    if (count < 0 || count > ONNX_DENSE - d->dense)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%s: sparse tensor '%s' would have more than %lld elements with all that "
                          "came before; store it dense",
                          d->file, s->name, (long long)ONNX_DENSE);
    if (s->type.dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: sparse tensor '%s' is of texts", d->file,
                          s->name);
    return TUTTI_OK;
}

tutti_status tutti__onnx_take_sparse(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret)
{
    sparse s = {.name = ""};
    TUTTI_TRY(read_parts(d, p, &s));
    *ret_name = s.name;
    *ret = NULL;
    if (!s.values && s.name[0]) /* elements that are among the needs */
        return TUTTI_OK;
    s.type.dtype = s.values ? tutti_tensor_dtype(s.values) : TUTTI_F32;
    int64_t count = tutti_type_count(&s.type);
    TUTTI_TRY(onnx_sparse_check(d, &s, count));
    tutti_tensor *dense;
    TUTTI_TRY(tutti_tensor_create(s.type.dtype, s.type.rank, s.type.dims, &dense));
    TUTTI_TRY(tutti__onnx_keep(d->onnx, dense));
    d->dense += count;
    d->element = s.element;
    size_t size = tutti_dtype_size(s.type.dtype);
    for (int64_t i = 0; i < tutti_tensor_count(s.values); i++) {
        int64_t at = place_of(&s, i, count);
        if (at < 0)
            return tutti_fail(TUTTI_CORRUPT, "%s: sparse tensor '%s' has a value outside", d->file,
                              s.name);
        memcpy((char *)tutti_tensor_data(dense) + (size_t)at * size,
               (char *)tutti_tensor_data(s.values) + (size_t)i * size, size);
    }
    *ret = dense;
    return TUTTI_OK;
}
