#include "tutti/sparse.h"

#include "base/test.h"

#include <math.h>
#include <string.h>

/* Takes over nothing; the caller releases with tutti_sparse_release. */
static tutti_sparse make_sparse(tutti_dtype dtype, int64_t count, int64_t rank,
                                const int64_t *indices, const void *values, const int64_t *shape)
{
    tutti_sparse sparse = {0};
    int64_t dims[2] = {count, rank};
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 2, dims, indices, &sparse.indices));
    CHECK_OK(tutti_tensor_from(dtype, 1, dims, values, &sparse.values));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, dims + 1, shape, &sparse.dense_shape));
    return sparse;
}

TUTTI_TEST(sparse_to_dense_adds_duplicates_in_any_order)
{
    static const int64_t indices[] = {1, 2, 0, 0, 1, 2}, shape[] = {2, 3};
    static const float values[] = {1.5f, 4, 2};
    tutti_sparse sparse = make_sparse(TUTTI_F32, 3, 2, indices, values, shape);
    tutti_tensor *dense = NULL;
    bool canonical = true;
    CHECK_OK(tutti_sparse_check(&sparse, &canonical));
    CHECK(!canonical);
    CHECK_OK(tutti_sparse_check(&sparse, NULL));
    CHECK_OK(tutti_sparse_to_dense(&sparse, &dense));
    static const double expected[] = {4, 0, 0, 0, 0, 3.5};
    CHECK_INT(tutti_tensor_rank(dense), 2);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(tutti_tensor_get(dense, i), expected[i], 0);
    tutti_sparse_release(&sparse);
    tutti_sparse_release(&sparse);
    tutti_sparse_release(NULL);
    tutti_tensor_release(dense);
}

TUTTI_TEST(sparse_round_trips_through_dense)
{
    tutti_tensor *dense = NULL, *turned = NULL, *again = NULL;
    tutti_sparse sparse = {0};
    bool canonical = false;
    static const int64_t values[] = {0, 7, 0, 0, -1, 0};
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 2, (int64_t[]){2, 3}, values, &dense));
    CHECK_OK(tutti_tensor_permute(dense, (int[]){1, 0}, &turned));
    CHECK_OK(tutti_sparse_from_dense(turned, &sparse));
    CHECK_INT(tutti_tensor_count(sparse.values), 2);
    CHECK_INT(tutti_tensor_get_int(sparse.indices, 0), 1);
    CHECK_INT(tutti_tensor_get_int(sparse.indices, 1), 0);
    CHECK_INT(tutti_tensor_get_int(sparse.dense_shape, 0), 3);
    CHECK_OK(tutti_sparse_check(&sparse, &canonical));
    CHECK(canonical);
    CHECK_OK(tutti_sparse_to_dense(&sparse, &again));
    CHECK(tutti_tensor_same(again, turned));
    tutti_sparse_release(&sparse);
    tutti_tensor_release(dense);
    tutti_tensor_release(turned);
    tutti_tensor_release(again);
}

TUTTI_TEST(sparse_zero_is_what_equals_zero)
{
    tutti_tensor *dense = NULL, *scalar = NULL;
    tutti_sparse sparse = {0};
    float values[] = {-0.0f, NAN, 0, 1e-45f};
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, values, &dense));
    CHECK_OK(tutti_sparse_from_dense(dense, &sparse));
    CHECK_INT(tutti_tensor_count(sparse.values), 2);
    CHECK_INT(tutti_tensor_get_int(sparse.indices, 0), 1);
    CHECK_INT(tutti_tensor_get_int(sparse.indices, 1), 3);
    tutti_sparse_release(&sparse);
    tutti_tensor_release(dense);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &scalar));
    CHECK_OK(tutti_sparse_from_dense(scalar, &sparse)); /* no entries, rank 0 */
    CHECK_OK(tutti_sparse_to_dense(&sparse, &dense));
    CHECK(tutti_tensor_same(dense, scalar));
    tutti_sparse_release(&sparse);
    tutti_tensor_release(dense);
    tutti_tensor_release(scalar);
}

TUTTI_TEST(sparse_strings_and_bools)
{
    static const int64_t indices[] = {2, 0, 2}, shape[] = {3};
    static const tutti_string names[] = {{"old", 3}, {"x", 1}, {"new", 3}};
    static const bool flags[] = {true, false, true};
    tutti_tensor *dense = NULL;
    tutti_sparse sparse = make_sparse(TUTTI_STRING, 3, 1, indices, names, shape), back = {0};
    CHECK_OK(tutti_sparse_to_dense(&sparse, &dense));
    CHECK(memcmp(tutti_tensor_get_string(dense, 2).data, "new", 3) == 0);
    CHECK_INT(tutti_tensor_get_string(dense, 1).size, 0);
    CHECK_OK(tutti_sparse_from_dense(dense, &back));
    tutti_tensor_release(dense);
    CHECK_INT(tutti_tensor_count(back.values), 2);
    CHECK(memcmp(tutti_tensor_get_string(back.values, 1).data, "new", 3) == 0);
    tutti_sparse_release(&back);
    tutti_sparse_release(&sparse);
    sparse = make_sparse(TUTTI_BOOL, 3, 1, indices, flags, shape);
    CHECK_OK(tutti_sparse_to_dense(&sparse, &dense));
    CHECK_INT(tutti_tensor_get_int(dense, 2), 1);
    CHECK_INT(tutti_tensor_get_int(dense, 0), 0);
    tutti_tensor_release(dense);
    tutti_sparse_release(&sparse);
}

TUTTI_TEST(sparse_refuses_what_does_not_fit)
{
    static const int64_t indices[] = {0, 1, 1, 3}, shape[] = {2, 3};
    static const float values[] = {1, 2};
    tutti_sparse sparse = make_sparse(TUTTI_F32, 2, 2, indices, values, shape);
    tutti_tensor *none = NULL;
    bool untouched = true;
    CHECK_STATUS(tutti_sparse_check(&sparse, &untouched), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(),
                   "entry 1 has index 3 along axis 1, outside the dense shape [2,3]");
    CHECK_STATUS(tutti_sparse_to_dense(&sparse, &none), TUTTI_OUT_OF_RANGE);
    tutti_tensor_set_int(sparse.indices, 3, -1);
    CHECK_STATUS(tutti_sparse_check(&sparse, &untouched), TUTTI_OUT_OF_RANGE);
    tutti_tensor_set_int(sparse.indices, 3, 0);
    CHECK_OK(tutti_sparse_check(&sparse, NULL));
    tutti_tensor_set_int(sparse.dense_shape, 0, INT64_MAX);
    CHECK_STATUS(tutti_sparse_to_dense(&sparse, &none), TUTTI_TOO_LARGE);
    tutti_tensor_set_int(sparse.dense_shape, 0, -2);
    CHECK_STATUS(tutti_sparse_to_dense(&sparse, &none), TUTTI_INVALID);
    tutti_tensor *kept = sparse.values;
    sparse.values = sparse.indices;
    CHECK_STATUS(tutti_sparse_check(&sparse, NULL), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "values i64[2,2]");
    sparse.values = NULL;
    CHECK_STATUS(tutti_sparse_check(&sparse, NULL), TUTTI_INVALID);
    sparse.values = kept;
    CHECK(none == NULL && untouched);
    tutti_sparse_release(&sparse);
    sparse = make_sparse(TUTTI_F32, 0, 9, NULL, NULL, (int64_t[9]){0});
    CHECK_STATUS(tutti_sparse_check(&sparse, NULL), TUTTI_INVALID);
    tutti_sparse_release(&sparse);
}
