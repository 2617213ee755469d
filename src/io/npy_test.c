/* npy_test.c: round trips, NumPy's own bytes, and hostile headers. */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"

static tutti_status read_bytes(const void *data, size_t size, tutti_tensor **ret)
{
    tutti_source *source;
    CHECK_OK(tutti__source_bytes("n", data, size, &source));
    tutti_status status = tutti__npy_read(source, ret);
    tutti__source_close(source);
    return status;
}

static void write_text(tutti_text *text, tutti_tensor *tensor)
{
    tutti_sink *sink;
    CHECK_OK(tutti__sink_text("n", text, &sink));
    CHECK_OK(tutti__npy_write(sink, tensor));
    CHECK_OK(tutti__sink_commit(sink));
}

/* A version 1.0 file with a header of ours. */
static tutti_status read_made(const char *header, const void *data, size_t size, tutti_tensor **ret)
{
    char file[600] = "\x93NUMPY\x01\x00";
    size_t n = strlen(header);
    CHECK(10 + n + size <= sizeof file);
    tutti__put_u16(file + 8, (uint16_t)n);
    memcpy(file + 10, header, n);
    if (size > 0)
        memcpy(file + 10 + n, data, size);
    return read_bytes(file, 10 + n + size, ret);
}

TUTTI_TEST(npy_round_trip)
{
    for (int d = TUTTI_F32; d < TUTTI_DTYPE_END; d++)
        for (int rank = 0; rank < 4; rank++) {
            tutti_tensor *tensor, *back, *same = NULL;
            tutti_text text = {0};
            CHECK_OK(tutti_tensor_create((tutti_dtype)d, rank, (int64_t[]){2, 3, 1}, &tensor));
            for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
                if (d == TUTTI_STRING)
                    CHECK_OK(tutti_tensor_set_string(tensor, i, "text", 1 + i % 4));
                else
                    tutti_tensor_set(tensor, i, (double)i + 0.5);
            write_text(&text, tensor);
            CHECK_OK(read_bytes(text.data, text.size, &back));
            CHECK_OK(
                tutti_tensor_cast(tensor, d == TUTTI_BF16 ? TUTTI_F32 : (tutti_dtype)d, &same));
            CHECK(tutti_tensor_same(back, same));
            for (size_t size = 0; size < text.size; size++)
                CHECK(read_bytes(text.data, size, &back) != TUTTI_OK);
            tutti_tensor_release(tensor);
            tutti_tensor_release(back);
            tutti_tensor_release(same);
            tutti__text_free(&text);
        }
}

TUTTI_TEST(npy_reads_either_order)
{
    static const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0xff, 0xfa};
    tutti_tensor *t;
    CHECK_OK(
        read_made("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", big, 12, &t));
    CHECK_INT(tutti_tensor_dtype(t), TUTTI_I32);
    CHECK_INT(tutti_tensor_dims(t)[0], 2);
    CHECK_INT(tutti_tensor_get_int(t, 1), 3); /* [0,1] is the third in column-major order */
    CHECK_INT(tutti_tensor_get_int(t, 5), -6);
    tutti_tensor_release(t);
    CHECK_OK(read_made("{'shape': (1,), 'fortran_order': False, 'descr': '<U2'}",
                       "\xe9\0\0\0\0\0\0\0", 8, &t));
    CHECK_INT(tutti_tensor_get_string(t, 0).size, 2);
    CHECK(memcmp(tutti_tensor_get_string(t, 0).data, "\xc3\xa9", 2) == 0);
    tutti_tensor_release(t);
    CHECK_OK(read_made("{'descr': '<u4', 'fortran_order': False, 'shape': ()}", "\xff\xff\xff\xff",
                       4, &t));
    CHECK_INT(tutti_tensor_get_int(t, 0), 4294967295);
    tutti_tensor_release(t);
}

TUTTI_TEST(npy_reads_every_width_and_order)
{
    static const struct {
        const char *descr;
        uint8_t bytes[16];
        int count;
        int64_t values[2];
    } cases[] = {{"<u2", {0xff, 0xff, 1, 0}, 2, {65535, 1}},
                 {">u2", {0xff, 0xfe, 0, 2}, 2, {65534, 2}},
                 {"<i2", {0xff, 0xff, 1, 0}, 2, {-1, 1}},
                 {"|u1", {255, 3}, 2, {255, 3}},
                 {">u4", {0xff, 0, 0, 1, 0, 0, 0, 7}, 2, {4278190081, 7}},
                 {">i4", {0xff, 0xff, 0xff, 0xfe, 0, 0, 1, 0}, 2, {-2, 256}},
                 {"<u8", {1, 2, 0, 0, 0, 0, 0, 0x7f}, 1, {0x7f00000000000201}},
                 {">i8", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd}, 1, {-3}}};
    char header[100];
    tutti_tensor *t;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = (size_t)(cases[i].descr[2] - '0') * (size_t)cases[i].count;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,)}",
                 cases[i].descr, cases[i].count);
        CHECK_OK(read_made(header, cases[i].bytes, size, &t));
        for (int k = 0; k < cases[i].count; k++)
            CHECK_INT(tutti_tensor_get_int(t, k), cases[i].values[k]);
        tutti_tensor_release(t);
    }
    CHECK_STATUS(read_made("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}",
                           "\0\0\0\0\0\0\0\x80", 8, &t),
                 TUTTI_OUT_OF_RANGE);
}

/* Seconds for 32 MiB of such elements. */
static double time_to_read(const char *descr, const char *data)
{
    static char file[(32 << 20) + 128] = "\x93NUMPY\x01\x00";
    char header[100];
    tutti_tensor *t;
    int n =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,)}",
                 descr, (32 << 20) / (descr[2] - '0'));
    tutti__put_u16(file + 8, (uint16_t)n);
    memcpy(file + 10, header, (size_t)n);
    memcpy(file + 10 + n, data, 32 << 20);
    int64_t began = tutti__now_ns();
    CHECK_OK(read_bytes(file, (size_t)n + 10 + (32 << 20), &t));
    double seconds = 1e-9 * (double)(tutti__now_ns() - began);
    tutti_tensor_release(t);
    return seconds;
}

TUTTI_TEST(npy_converts_many_elements_at_once)
{
    static char data[32 << 20];
    double plain = time_to_read("|i1", data);
    static const char *const kinds[] = {"|u1", "<u8"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        CHECK(time_to_read(kinds[i], data) < 10 * plain + 0.1);
}

static void refused(const char *header, size_t size, const char *part)
{
    tutti_tensor *t;
    const char data[64] = {2};
    CHECK(read_made(header, data, size, &t) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
}

TUTTI_TEST(npy_refuses_hostile_headers)
{
    refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, "objects");
    refused("{'descr': '|O8', 'fortran_order': False, 'shape': (1,)}", 8, "objects");
    refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "records");
    refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, "'<c8'");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
            "overflow");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", 0,
            "promises");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0,
            "63 bits");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "63 bits");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4,
            "dimensions");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 3, "promises");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 5, "promises");
    refused("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", 4, "each once");
    refused("{'descr': '<f4', 'shape': (1,)}", 4, "nothing after");
    refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "True or False");
    refused("{'descr': '<f4, 'fortran_order'", 4, "not read");
    refused("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", 1, "boolean");
    refused("{'descr': '|S0', 'fortran_order': False, 'shape': (99999999999,)}", 0, "empty texts");
    refused("x", 0, "dictionary");
    refused("", 0, "dictionary");
    tutti_tensor *t;
    CHECK_STATUS(read_bytes("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13, &t), TUTTI_CORRUPT);
    CHECK_STATUS(read_bytes("\x93NUMPY\x04\x00\x00\x00\x00\x00{", 13, &t), TUTTI_UNSUPPORTED);
    CHECK_STATUS(read_bytes("NUMPY     \0\0\0", 13, &t), TUTTI_CORRUPT);
    CHECK_STATUS(read_made("{'descr': '<u8', 'fortran_order': False, 'shape': ()}",
                           "\0\0\0\0\0\0\0\xff", 8, &t),
                 TUTTI_OUT_OF_RANGE);
}
