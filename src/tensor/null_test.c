/* null_test.c: what tensors that are not there do, as after a call that failed: no crash. */
#include <math.h>

#include "base/test.h"
#include "tutti/sparse.h"

TUTTI_TEST(given_no_tensor_reads_as_one_of_nothing)
{
    CHECK_INT(tutti_tensor_dtype(NULL), TUTTI_NO_DTYPE);
    CHECK_INT(tutti_tensor_rank(NULL), 0);
    CHECK_INT(tutti_tensor_count(NULL), 0);
    CHECK(tutti_tensor_data(NULL) == NULL);
    CHECK(tutti_tensor_dims(NULL) && tutti_tensor_strides(NULL) && tutti_tensor_type(NULL));
    CHECK(isnan(tutti_tensor_get(NULL, 0)));
    CHECK_INT(tutti_tensor_get_int(NULL, 0), 0);
    CHECK_INT(tutti_tensor_get_string(NULL, 0).size, 0);
    tutti_tensor_set(NULL, 0, 1);
    tutti_tensor_set_int(NULL, 0, 1);
    CHECK(tutti_tensor_retain(NULL) == NULL);
}

TUTTI_TEST(given_no_tensor_is_an_error_that_names_it)
{
    tutti_tensor *there, *made = NULL;
    tutti_sparse sparse = {0};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &there));
    CHECK_STATUS(tutti_tensor_slice(NULL, 0, 0, 1, 1, &made), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "tutti_tensor_slice: tensor is NULL");
    CHECK_STATUS(tutti_tensor_permute(NULL, (int[]){0}, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_permute(there, NULL, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_broadcast(NULL, 1, (int64_t[]){2}, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(NULL, 1, (int64_t[]){2}, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_contiguous(NULL, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_cast(NULL, TUTTI_F64, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_copy(NULL, there), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_copy(there, NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_set_string(NULL, 0, "", 0), TUTTI_INVALID);
    CHECK_STATUS(tutti_sparse_from_dense(NULL, &sparse), TUTTI_INVALID);
    CHECK_STATUS(tutti_sparse_to_dense(NULL, &made), TUTTI_INVALID);
    CHECK_STATUS(tutti_sparse_check(NULL, NULL), TUTTI_INVALID);
    CHECK(!tutti_tensor_same(NULL, there) && !tutti_tensor_same(there, NULL));
    CHECK(tutti_tensor_same(NULL, NULL));
    CHECK(!tutti_type_equal(NULL, tutti_tensor_type(there)));
    CHECK(made == NULL);
    tutti_tensor_release(there);
}
