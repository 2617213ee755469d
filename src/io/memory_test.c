/* memory_test.c: wherever memory ends, it is not the file that is blamed. */
#include <malloc.h>
#include <stdlib.h>

#include "base/shortage.h"
#include "base/test.h"
#include "io/gzip.h"
#include "io/image.h"
#include "io/inflate.h"
#include "io/npz.h"

enum { BYTES = 60000 };

typedef struct attempt {
    tutti_text packed;
    tutti_tensor *tensor; /* what stands in it */
} attempt;

/* Each attempt comes further than the one before, until one succeeds. */
static void try_with_more(tutti_status (*call)(const attempt *a), const attempt *a)
{
    int failures = 0;
    tutti_status status;
    /* Large blocks are cut from the heap: those that were mapped would not come back. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    CHECK_OK(call(a)); /* the heap is as large as it needs */
    tutti_shortage shortage = tutti__shortage_begin();
    do {
        status = call(a);
        failures += status != TUTTI_OK;
    } while (status == TUTTI_NO_MEMORY && tutti__shortage_ease(&shortage));
    tutti__shortage_end(&shortage);
    if (status != TUTTI_NO_MEMORY) /* pieces that lie apart may be too small to the end */
        CHECK_OK(status);
    CHECK_OK(call(a));
    CHECK(failures > 1);
}

static tutti_tensor *noise(int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_U8, rank, dims, &tensor));
    uint8_t *to = tutti_tensor_data(tensor);
    uint32_t state = 1;
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        to[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 29);
    return tensor;
}

static void end(attempt *a)
{
    tutti_tensor_release(a->tensor);
    tutti__text_free(&a->packed);
}

/* ---- gzip ---- */

static attempt pack(void)
{
    attempt a = {.tensor = noise(1, (int64_t[]){BYTES})};
    tutti_sink *text, *packed;
    CHECK_OK(tutti__sink_text("x", &a.packed, &text));
    CHECK_OK(tutti__sink_deflate(text, TUTTI_PACKED_GZIP, &packed));
    CHECK_OK(
        tutti__sink_end(packed, tutti__sink_write(packed, tutti_tensor_data(a.tensor), BYTES)));
    return a;
}

static tutti_status unpack_at_once(const attempt *a)
{
    void *data;
    size_t size;
    TUTTI_TRY(tutti__gzip_unpack("x", a->packed.data, a->packed.size, BYTES, &data, &size));
    free(data);
    return TUTTI_OK;
}

static tutti_status unpack_by_pieces(const attempt *a)
{
    static uint8_t room[BYTES];
    tutti_source *bytes, *unpacked;
    size_t got;
    TUTTI_TRY(tutti__source_bytes("x", a->packed.data, a->packed.size, &bytes));
    TUTTI_TRY(tutti__source_inflate(bytes, 0, (int64_t)a->packed.size, TUTTI_PACKED_GZIP, -1, true,
                                    &unpacked));
    tutti_status status = tutti__source_some(unpacked, 0, room, BYTES, &got);
    tutti__source_close(unpacked);
    return status;
}

TUTTI_TEST(unpacking_without_memory_says_so)
{
    tutti__shortage_or_skip();
    attempt a = pack();
    try_with_more(unpack_at_once, &a);
    try_with_more(unpack_by_pieces, &a);
    end(&a);
}

/* ---- zip ---- */

static tutti_status read_arrays(const attempt *a)
{
    tutti_source *source;
    tutti_named_tensors list = {0};
    TUTTI_TRY(tutti__source_bytes("x", a->packed.data, a->packed.size, &source));
    tutti_status status = tutti__npz_read(source, &list);
    tutti_named_tensors_clear(&list);
    tutti__source_close(source);
    return status;
}

TUTTI_TEST(archives_without_memory_say_so)
{
    tutti__shortage_or_skip();
    attempt a = {.tensor = noise(1, (int64_t[]){BYTES})};
    tutti_sink *sink;
    CHECK_OK(tutti__sink_text("x", &a.packed, &sink));
    tutti_status status =
        tutti__npz_write(sink, 1, &(tutti_named_tensor){.name = "x", .tensor = a.tensor}, true);
    CHECK_OK(tutti__sink_end(sink, status));
    try_with_more(read_arrays, &a);
    end(&a);
}

/* ---- images ---- */

static tutti_status decode(const attempt *a)
{
    tutti_tensor *image;
    TUTTI_TRY(tutti__image_decode("x", a->packed.data, a->packed.size, 0, 0, &image));
    tutti_tensor_release(image);
    return TUTTI_OK;
}

static tutti_status encode(const attempt *a, bool png)
{
    tutti_text text = {0};
    tutti_status status =
        png ? tutti__png_encode(a->tensor, &text) : tutti__jpeg_encode(a->tensor, 90, &text);
    tutti__text_free(&text);
    return status;
}

static tutti_status encode_png(const attempt *a)
{
    return encode(a, true);
}

static tutti_status encode_jpeg(const attempt *a)
{
    return encode(a, false);
}

static void check_image(bool png)
{
    tutti__shortage_or_skip();
    attempt a = {.tensor = noise(3, (int64_t[]){90, 110, 3})};
    tutti_status status =
        png ? tutti__png_encode(a.tensor, &a.packed) : tutti__jpeg_encode(a.tensor, 90, &a.packed);
    if (status == TUTTI_OK) {
        try_with_more(decode, &a);
        try_with_more(png ? encode_png : encode_jpeg, &a);
    }
    end(&a);
    if (status == TUTTI_UNSUPPORTED)
        SKIP("%s", tutti_error_message());
    CHECK_OK(status);
}

TUTTI_TEST(png_without_memory_says_so)
{
    check_image(true);
}

TUTTI_TEST(jpeg_without_memory_says_so)
{
    check_image(false);
}
