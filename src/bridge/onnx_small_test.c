/* onnx_small_test.c: elements of less than a byte, small floats, sparse tensors. */
#include "base/test.h"

#include <math.h>
#include <string.h>

#include "bridge/onnx.h"
#include "io/protobuf.h"

/* A TensorProto of one dimension with these bytes. */
static tutti_status decode(int number, int64_t dim, const void *bytes, size_t size, bool typed,
                           tutti_tensor **ret)
{
    tutti_text text = {0};
    char name[128];
    tutti__proto_put_int(&text, 1, dim);
    tutti__proto_put_int(&text, 2, number);
    for (size_t i = 0; typed && i < size; i++)
        tutti__proto_put_int(&text, 5, ((const uint8_t *)bytes)[i]);
    tutti__proto_put_string(&text, 8, "w");
    if (!typed)
        tutti__proto_put_bytes(&text, 9, bytes, size);
    tutti_status status = tutti__onnx_decode_tensor("w.pb", text.data, text.size, name, ret);
    tutti__text_free(&text);
    return status;
}

TUTTI_TEST(onnx_reads_integers_of_four_and_two_bits)
{
    tutti_tensor *t;
    for (int typed = 0; typed < 2; typed++) {
        CHECK_OK(decode(22, 3, "\xf8\x07", 2, typed, &t)); /* int4: -8, -1, 7 */
        CHECK_INT(tutti_tensor_dtype(t), TUTTI_I8);
        CHECK_INT(tutti_tensor_get_int(t, 0), -8);
        CHECK_INT(tutti_tensor_get_int(t, 1), -1);
        CHECK_INT(tutti_tensor_get_int(t, 2), 7);
        tutti_tensor_release(t);
    }
    CHECK_OK(decode(25, 4, "\xe4", 1, false, &t)); /* uint2: 0, 1, 2, 3 */
    for (int i = 0; i < 4; i++)
        CHECK_INT(tutti_tensor_get_int(t, i), i);
    tutti_tensor_release(t);
    CHECK_STATUS(decode(21, 3, "\x21", 1, false, &t), TUTTI_CORRUPT);
    CHECK_STATUS(decode(21, 3, "\x21", 1, true, &t), TUTTI_CORRUPT);
    CHECK_STATUS(decode(21, INT64_MAX / 2, "\x21", 1, true, &t), TUTTI_CORRUPT);
}

TUTTI_TEST(onnx_reads_floats_of_eight_and_four_bits)
{
    static const struct {
        int number;
        const char *bytes;
        double values[3];
    } cases[] = {
        {17, "\x7e\x01\xff", {448, 0x1p-9, NAN}},
        {18, "\x7f\x81\x80", {240, -0x1p-10, NAN}},
        {19, "\x7b\xfc\x7d", {57344, -INFINITY, NAN}},
        {20, "\xff\x01\x80", {-57344, 0x1p-17, NAN}},
        {24, "\x7f\x80\xff", {1, 2, NAN}},
    };
    tutti_tensor *t;
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        CHECK_OK(decode(cases[i].number, 3, cases[i].bytes, 3, false, &t));
        for (int k = 0; k < 3; k++) {
            double got = tutti_tensor_get(t, k), wanted = cases[i].values[k];
            CHECK(got == wanted || (isnan(got) && isnan(wanted)));
        }
        tutti_tensor_release(t);
    }
    CHECK_OK(decode(23, 2, "\xf1", 1, false, &t)); /* float4e2m1: 0.5, -6 */
    CHECK_NEAR(tutti_tensor_get(t, 0), 0.5, 0);
    CHECK_NEAR(tutti_tensor_get(t, 1), -6, 0);
    tutti_tensor_release(t);
}

/* A model with a sparse initializer 's' of these dimensions, with 2 at `at`. */
static tutti_status load_sparse(int64_t rows, int64_t columns, int64_t at, tutti_onnx **ret)
{
    tutti_text text = {0};
    float two = 2;
    tutti__proto_put_int(&text, 1, 8);
    size_t graph = tutti__proto_open(&text, 7), sparse = tutti__proto_open(&text, 15);
    size_t values = tutti__proto_open(&text, 1);
    tutti__proto_put_int(&text, 1, 1);
    tutti__proto_put_int(&text, 2, 1);
    tutti__proto_put_string(&text, 8, "s");
    tutti__proto_put_bytes(&text, 9, &two, sizeof two);
    tutti__proto_close(&text, values);
    size_t indices = tutti__proto_open(&text, 2);
    tutti__proto_put_int(&text, 1, 1);
    tutti__proto_put_int(&text, 2, 7);
    tutti__proto_put_int(&text, 7, at);
    tutti__proto_close(&text, indices);
    tutti__proto_put_int(&text, 3, rows);
    tutti__proto_put_int(&text, 3, columns);
    tutti__proto_close(&text, sparse);
    tutti__proto_close(&text, graph);
    tutti_status status = tutti__onnx_decode("s.onnx", text.data, text.size, ret);
    tutti__text_free(&text);
    return status;
}

TUTTI_TEST(onnx_reads_sparse_initializers)
{
    tutti_onnx *onnx;
    CHECK_OK(load_sparse(2, 3, 4, &onnx));
    const tutti_onnx_tensor *t = &onnx->graph.initializers.items[0];
    CHECK_STR(t->name, "s");
    CHECK_INT(tutti_tensor_count(t->value), 6);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(tutti_tensor_get(t->value, i), i == 4 ? 2 : 0, 0);
    tutti__onnx_free(onnx);
    CHECK_STATUS(load_sparse(2, 3, 6, &onnx), TUTTI_CORRUPT);
    CHECK_STATUS(load_sparse(2, 3, -1, &onnx), TUTTI_CORRUPT);
    CHECK_STATUS(load_sparse(1 << 20, 1 << 20, 0, &onnx), TUTTI_TOO_LARGE);
}
