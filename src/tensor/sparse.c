/* sparse.c: checking sparse tensors and turning them into dense ones and back, on the host. */
#include "tutti/sparse.h"

#include "base/require.h"
#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/type.h"

#include <inttypes.h>
#include <string.h>

/* The contents at hand: contiguous in host memory. */
typedef struct plain_sparse {
    tutti_sparse held;
    int64_t count;          /* entries */
    tutti_type dense;       /* type of the dense tensor */
    const int64_t *indices; /* [count, dense.rank] */
} plain_sparse;

void tutti_sparse_release(tutti_sparse *sparse)
{
    if (sparse == NULL)
        return;
    tutti_tensor_release(sparse->indices);
    tutti_tensor_release(sparse->values);
    tutti_tensor_release(sparse->dense_shape);
    *sparse = (tutti_sparse){0};
}

static tutti_status check_types(const tutti_sparse *sparse)
{
    if (sparse->indices == NULL || sparse->values == NULL || sparse->dense_shape == NULL)
        return tutti_fail(TUTTI_INVALID,
                          "sparse tensor: indices, values and dense_shape are all needed, one is "
                          "NULL");
    const tutti_type *indices = &sparse->indices->type, *values = &sparse->values->type;
    const tutti_type *shape = &sparse->dense_shape->type;
    bool fits = indices->dtype == TUTTI_I64 && indices->rank == 2 && values->rank == 1 &&
                shape->dtype == TUTTI_I64 && shape->rank == 1 &&
                values->dims[0] == indices->dims[0] && shape->dims[0] == indices->dims[1];
    char text[3][TUTTI_TYPE_TEXT];
    if (!fits)
        return tutti_fail(TUTTI_INVALID,
                          "sparse tensor: indices %s, values %s, dense_shape %s do not fit; needs "
                          "i64[n,rank], n values and i64[rank]",
                          tutti_type_text(indices, text[0]), tutti_type_text(values, text[1]),
                          tutti_type_text(shape, text[2]));
    return TUTTI_OK;
}

static tutti_status plain(tutti_tensor *tensor, tutti_tensor **ret)
{
    tutti_tensor *host = NULL;
    TUTTI_TRY(tutti__tensor_to_host(tensor, &host));
    tutti_status status = tutti_tensor_contiguous(host, ret);
    tutti_tensor_release(host);
    return status;
}

/* *ret is to be released also after a failure. */
static tutti_status open_sparse(const tutti_sparse *sparse, plain_sparse *ret)
{
    TUTTI_TRY(check_types(sparse));
    TUTTI_TRY(plain(sparse->indices, &ret->held.indices));
    TUTTI_TRY(plain(sparse->values, &ret->held.values));
    TUTTI_TRY(plain(sparse->dense_shape, &ret->held.dense_shape));
    ret->count = sparse->values->count;
    ret->indices = tutti_tensor_data(ret->held.indices);
    int64_t rank = sparse->dense_shape->type.dims[0];
    if (rank > TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_INVALID,
                          "dense shape of a sparse tensor: %" PRId64 " dimensions, at most %d",
                          rank, TUTTI_MAX_RANK);
    tutti_status status = tutti__type_check(sparse->values->type.dtype, (int)rank,
                                            tutti_tensor_data(ret->held.dense_shape), &ret->dense);
    return status == TUTTI_OK ? TUTTI_OK : tutti__error_prefix(status, "dense shape of a sparse");
}

static tutti_status check_entry(const plain_sparse *sparse, int64_t entry)
{
    char shape[TUTTI_TYPE_TEXT];
    int rank = sparse->dense.rank;
    const int64_t *index = sparse->indices + entry * rank;
    for (int axis = 0; axis < rank; axis++)
        if (index[axis] < 0 || index[axis] >= sparse->dense.dims[axis])
            return tutti_fail(TUTTI_OUT_OF_RANGE,
                              "sparse tensor: entry %" PRId64 " has index %" PRId64
                              " along axis %d, outside the dense shape %s",
                              entry, index[axis], axis,
                              tutti__dims_text(rank, sparse->dense.dims, shape));
    return TUTTI_OK;
}

/* Row-major position of an entry's element. */
static int64_t position(const plain_sparse *sparse, int64_t entry)
{
    const int64_t *index = sparse->indices + entry * sparse->dense.rank;
    int64_t at = 0;
    for (int axis = 0; axis < sparse->dense.rank; axis++)
        at = at * sparse->dense.dims[axis] + index[axis];
    return at;
}

static tutti_status check_entries(const plain_sparse *sparse, bool *ret_canonical)
{
    bool canonical = true;
    int64_t before = -1;
    for (int64_t i = 0; i < sparse->count; i++) {
        TUTTI_TRY(check_entry(sparse, i));
        int64_t at = position(sparse, i);
        canonical &= at > before;
        before = at;
    }
    *ret_canonical = canonical;
    return TUTTI_OK;
}

tutti_status tutti_sparse_check(const tutti_sparse *sparse, bool *ret_canonical)
{
    TUTTI_REQUIRE(sparse);
    plain_sparse opened = {0};
    bool canonical = false;
    tutti_status status = open_sparse(sparse, &opened);
    if (status == TUTTI_OK)
        status = check_entries(&opened, &canonical);
    tutti_sparse_release(&opened.held);
    if (status == TUTTI_OK && ret_canonical != NULL)
        *ret_canonical = canonical;
    return status;
}

/* dense[at] += values[i] */
static tutti_status add_entry(tutti_tensor *dense, int64_t at, const tutti_tensor *values,
                              int64_t i)
{
    tutti_dtype dtype = dense->type.dtype;
    if (dtype == TUTTI_STRING) {
        tutti_string value = tutti_tensor_get_string(values, i);
        return tutti_tensor_set_string(dense, at, value.data, value.size);
    }
    if (tutti_dtype_is_float(dtype)) {
        tutti_tensor_set(dense, at, tutti_tensor_get(dense, at) + tutti_tensor_get(values, i));
    } else {
        uint64_t sum =
            (uint64_t)tutti_tensor_get_int(dense, at) + (uint64_t)tutti_tensor_get_int(values, i);
        tutti_tensor_set_int(dense, at, (int64_t)sum);
    }
    return TUTTI_OK;
}

static tutti_status fill_dense(const plain_sparse *sparse, tutti_tensor **ret_dense)
{
    tutti_tensor *dense = NULL;
    bool canonical;
    TUTTI_TRY(check_entries(sparse, &canonical));
    TUTTI_TRY(
        tutti_tensor_create(sparse->dense.dtype, sparse->dense.rank, sparse->dense.dims, &dense));
    for (int64_t i = 0; i < sparse->count; i++) {
        tutti_status status = add_entry(dense, position(sparse, i), sparse->held.values, i);
        if (status != TUTTI_OK) {
            tutti_tensor_release(dense);
            return status;
        }
    }
    *ret_dense = dense;
    return TUTTI_OK;
}

tutti_status tutti_sparse_to_dense(const tutti_sparse *sparse, tutti_tensor **ret_dense)
{
    TUTTI_REQUIRE(sparse);
    plain_sparse opened = {0};
    tutti_status status = open_sparse(sparse, &opened);
    if (status == TUTTI_OK)
        status = fill_dense(&opened, ret_dense);
    tutti_sparse_release(&opened.held);
    return status;
}

static bool is_zero(const tutti_tensor *dense, int64_t i)
{
    if (dense->type.dtype == TUTTI_STRING)
        return tutti_tensor_get_string(dense, i).size == 0;
    if (tutti_dtype_is_float(dense->type.dtype))
        return tutti_tensor_get(dense, i) == 0;
    return tutti_tensor_get_int(dense, i) == 0;
}

/* Entry `entry` takes element `at` of the dense tensor. */
static tutti_status write_entry(const tutti_tensor *dense, int64_t at, const tutti_sparse *sparse,
                                int64_t entry)
{
    int rank = dense->type.rank;
    size_t size = tutti_dtype_size(dense->type.dtype);
    int64_t *index = (int64_t *)tutti_tensor_data(sparse->indices) + entry * rank, rest = at;
    for (int axis = rank - 1; axis >= 0; axis--) {
        index[axis] = rest % dense->type.dims[axis];
        rest /= dense->type.dims[axis];
    }
    if (dense->type.dtype == TUTTI_STRING) {
        tutti_string value = tutti_tensor_get_string(dense, at);
        return tutti_tensor_set_string(sparse->values, entry, value.data, value.size);
    }
    memcpy((char *)tutti_tensor_data(sparse->values) + (size_t)entry * size,
           (const char *)tutti_tensor_data(dense) + (size_t)at * size, size);
    return TUTTI_OK;
}

static tutti_status gather_entries(const tutti_tensor *dense, tutti_sparse *sparse)
{
    int rank = dense->type.rank;
    int64_t count = 0, entry = 0;
    for (int64_t i = 0; i < dense->count; i++)
        count += !is_zero(dense, i);
    int64_t shape_dims[1] = {rank}, dims[2] = {count, rank};
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, shape_dims, dense->type.dims, &sparse->dense_shape));
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 2, dims, &sparse->indices));
    TUTTI_TRY(tutti_tensor_create(dense->type.dtype, 1, dims, &sparse->values));
    for (int64_t i = 0; i < dense->count; i++)
        if (!is_zero(dense, i))
            TUTTI_TRY(write_entry(dense, i, sparse, entry++));
    return TUTTI_OK;
}

tutti_status tutti_sparse_from_dense(tutti_tensor *dense, tutti_sparse *ret_sparse)
{
    TUTTI_REQUIRE(dense);
    TUTTI_REQUIRE(ret_sparse);
    tutti_tensor *at_hand = NULL;
    tutti_sparse sparse = {0};
    TUTTI_TRY(plain(dense, &at_hand));
    tutti_status status = gather_entries(at_hand, &sparse);
    tutti_tensor_release(at_hand);
    if (status != TUTTI_OK) {
        tutti_sparse_release(&sparse);
        return status;
    }
    *ret_sparse = sparse;
    return TUTTI_OK;
}
