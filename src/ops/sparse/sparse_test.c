/* sparse_test.c: sparse tensors whose shapes are known only when they run; bad positions. */
#include "ops/state/testing.h"

TUTTI_TEST(to_sparse_finds_what_is_not_zero_and_back)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2, 3);
    tutti_sparse_sym sparse = tutti_to_sparse(x);
    tutti_tensor *given = MATRIX(TUTTI_F32, 2, 3, 0, 1.5, 0, -2, 0, 3);
    tutti_tensor *value = fetch(sparse.indices, FEEDS(FEED(x, given)));
    CHECK_VALUES(value, 0, 0, 1, 1, 0, 1, 2);
    tutti_tensor_release(value);
    value = fetch(sparse.values, FEEDS(FEED(x, given)));
    CHECK_VALUES(value, 0, 1.5, -2, 3);
    tutti_tensor_release(value);
    value = fetch(tutti_to_dense(sparse), FEEDS(FEED(x, given)));
    CHECK_VALUES(value, 0, 0, 1.5, 0, -2, 0, 3);
    tutti_tensor_release(value);
    tutti_sym loss = tutti_sum(tutti_square(tutti_to_dense(sparse)));
    value = fetch(tutti_gradient(loss, x), FEEDS(FEED(x, given)));
    CHECK_VALUES(value, 1e-6, 0, 3, 0, -4, 0, 6);
    tutti_tensor_release(value);
    tutti_tensor_release(given);
    tutti_graph_destroy(g);
}

TUTTI_TEST(sparse_matmul_takes_its_shape_from_data)
{
    tutti_graph *g = new_graph();
    tutti_sparse_sym a = {tutti_placeholder(g, TUTTI_I64, TUTTI_ANY, 2),
                          tutti_placeholder(g, TUTTI_F32, TUTTI_ANY),
                          tutti_placeholder(g, TUTTI_I64, 2)};
    tutti_sym b = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2), y = tutti_sparse_matmul(a, b);
    CHECK_INT(tutti_sym_type(y).dims[0], TUTTI_ANY);
    CHECK_INT(tutti_sym_type(y).dims[1], 2);
    tutti_tensor *at = MATRIX(TUTTI_I64, 2, 2, 0, 1, 2, 0), *values = VECTOR(TUTTI_F32, 10, 100),
                 *shape = VECTOR(TUTTI_I64, 3, 2), *dense = MATRIX(TUTTI_F32, 2, 2, 1, 2, 3, 4),
                 *none = NULL;
    tutti_tensor *out = fetch(y, FEEDS(FEED(a.indices, at), FEED(a.values, values),
                                       FEED(a.dense_shape, shape), FEED(b, dense)));
    CHECK_VALUES(out, 0, 30, 40, 0, 0, 100, 200);
    tutti_tensor_release(out);
    tutti_tensor_set_int(at, 3, 2);
    CHECK_STATUS(try_fetch(y,
                           FEEDS(FEED(a.indices, at), FEED(a.values, values),
                                 FEED(a.dense_shape, shape), FEED(b, dense)),
                           &none),
                 TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "indices[1,1] is 2, outside [0, 2)");
    tutti_tensor_set_int(at, 3, 0);
    tutti_tensor_set_int(shape, 0, INT64_MAX);
    CHECK_STATUS(try_fetch(y,
                           FEEDS(FEED(a.indices, at), FEED(a.values, values),
                                 FEED(a.dense_shape, shape), FEED(b, dense)),
                           &none),
                 TUTTI_TOO_LARGE);
    tutti_tensor_release(at);
    tutti_tensor_release(values);
    tutti_tensor_release(shape);
    tutti_tensor_release(dense);
    tutti_graph_destroy(g);
}

TUTTI_TEST(sparse_operators_refuse_what_does_not_fit)
{
    tutti_graph *g = new_graph();
    tutti_sparse_sym a = {tutti_placeholder(g, TUTTI_I64, 4, 3), tutti_placeholder(g, TUTTI_F32, 4),
                          tutti_ints(g, 5, 6)};
    CHECK(!tutti_sym_ok(tutti_sparse_matmul(a, tutti_placeholder(g, TUTTI_F32, 6, 2))));
    check_mistake(g, TUTTI_INVALID, "indices are i64[4,3], need i64[n,2]");
    g = new_graph();
    a = (tutti_sparse_sym){tutti_placeholder(g, TUTTI_I64, 4, 2),
                           tutti_placeholder(g, TUTTI_F32, 5), tutti_ints(g, 5, 6)};
    CHECK(!tutti_sym_ok(tutti_to_dense(a)));
    check_mistake(g, TUTTI_INVALID, "need one value per row");
}

/* To strings and back, whole and row by row; what is not sound is refused. */
TUTTI_TEST(sparse_tensors_become_strings_and_back)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3, 4);
    tutti_tensor *given = MATRIX(TUTTI_F32, 3, 4, 0, 1.5, 0, -2, 0, 0, 0, 0, 7, 0, 8, 0);
    tutti_sparse_sym sparse = tutti_to_sparse(x);
    tutti_sym whole = tutti_serialize_sparse(sparse), rows = tutti_serialize_sparse_rows(sparse);
    CHECK_INT(tutti_sym_type(whole).dims[0], 3);
    tutti_tensor *value =
        fetch(tutti_to_dense(tutti_deserialize_sparse(whole, TUTTI_F32, 2)), FEEDS(FEED(x, given)));
    CHECK(tutti_tensor_same(value, given));
    tutti_tensor_release(value);
    value =
        fetch(tutti_to_dense(tutti_deserialize_sparse(rows, TUTTI_F32, 1)), FEEDS(FEED(x, given)));
    CHECK(tutti_tensor_same(value, given));
    tutti_tensor_release(value);
    tutti_tensor *none = NULL;
    tutti_sym wrong = tutti_deserialize_sparse(whole, TUTTI_I32, 2).values;
    CHECK_STATUS(try_fetch(wrong, FEEDS(FEED(x, given)), &none), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "its type or rank is another");
    wrong = tutti_deserialize_sparse(whole, TUTTI_F32, 1).values;
    CHECK_STATUS(try_fetch(wrong, FEEDS(FEED(x, given)), &none), TUTTI_INVALID);
    tutti_tensor_release(given);
    tutti_graph_destroy(g);
}

/* The bytes are TensorFlow's: of values [1.5], dtype 1, shape {dim {size 1}}, tensor_content. */
TUTTI_TEST(sparse_tensors_are_serialised_as_tensorflow_does)
{
    static const char expected[] = "\x08\x01\x12\x04\x12\x02\x08\x01\x22\x04\x00\x00\xc0\x3f";
    tutti_graph *g = new_graph();
    tutti_sparse_sym sparse = {tutti_reshape(tutti_ints(g, 2), 1, 1),
                               tutti_fill(g, TUTTI_F32, 1.5, 1), tutti_ints(g, 5)};
    tutti_tensor *value = fetch(tutti_serialize_sparse(sparse), 0, NULL);
    tutti_string bytes = tutti_tensor_get_string(value, 1);
    CHECK_INT(bytes.size, (int64_t)sizeof expected - 1);
    CHECK(memcmp(bytes.data, expected, sizeof expected - 1) == 0);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}
