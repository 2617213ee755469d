/* mnist.c: MNIST from its files, or drawn digits in its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/random.h"
#include "base/require.h"
#include "data/bytes.h"
#include "data/digits.h"
#include "data/mnist.h"
#include "io/idx.h"
#include "tutti/data.h"

#define PIXELS (TUTTI_DIGIT_SIDE * TUTTI_DIGIT_SIDE)

tutti_status tutti_idx_load(const char *path, tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(ret_tensor);
    void *data;
    size_t size;
    TUTTI_TRY(tutti__bytes_read(path, &data, &size));
    tutti_status status = tutti__idx_parse(path, data, size, ret_tensor);
    free(data);
    return status;
}

static tutti_status read_either(const char *directory, const char *name, tutti_tensor **ret)
{
    char path[4096], packed[4100];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path - 4)
        return tutti_fail(TUTTI_INVALID, "the folder's name is too long");
    snprintf(packed, sizeof packed, "%s.gz", path);
    tutti_status status = tutti_idx_load(path, ret);
    if (status != TUTTI_NOT_FOUND)
        return status;
    status = tutti_idx_load(packed, ret);
    if (status != TUTTI_NOT_FOUND)
        return status;
    return tutti_fail(TUTTI_NOT_FOUND,
                      "neither %s nor %s.gz is there; the folder must hold MNIST's four files",
                      path, name);
}

/* Bytes to [0,1], or to labels. */
static tutti_status mnist_convert(const tutti_tensor *from, int64_t count, bool images,
                                  tutti_tensor **ret)
{
    int64_t dims[] = {count, TUTTI_DIGIT_SIDE, TUTTI_DIGIT_SIDE, 1};
    TUTTI_TRY(tutti_tensor_create(images ? TUTTI_F32 : TUTTI_I64, images ? 4 : 1, dims, ret));
    const uint8_t *bytes = tutti_tensor_data(from);
    void *to = tutti_tensor_data(*ret);
    for (int64_t i = 0; i < tutti_tensor_count(*ret); i++) {
        if (images)
            ((float *)to)[i] = (float)bytes[i] / 255;
        else
            ((int64_t *)to)[i] = bytes[i];
    }
    return TUTTI_OK;
}

static tutti_status mnist_check(const char *directory, const tutti_tensor *images,
                                const tutti_tensor *labels)
{
    char found[2][TUTTI_TYPE_TEXT];
    const int64_t *dims = tutti_tensor_dims(images);
    bool are_images = tutti_tensor_dtype(images) == TUTTI_U8 && tutti_tensor_rank(images) == 3 &&
                      dims[1] == TUTTI_DIGIT_SIDE && dims[2] == TUTTI_DIGIT_SIDE,
         are_labels = tutti_tensor_dtype(labels) == TUTTI_U8 && tutti_tensor_rank(labels) == 1;
    if (are_images && are_labels && dims[0] == tutti_tensor_count(labels))
        return TUTTI_OK;
    return tutti_fail(TUTTI_CORRUPT,
                      "%s: the file of images holds %s, that of labels %s; needed are u8[N,%d,%d] "
                      "and u8[N]%s",
                      directory, tutti_type_text(tutti_tensor_type(images), found[0]),
                      tutti_type_text(tutti_tensor_type(labels), found[1]), TUTTI_DIGIT_SIDE,
                      TUTTI_DIGIT_SIDE, are_images && are_labels ? " of one N" : "");
}

tutti_status tutti__mnist_files(const char *directory, bool train, tutti_tensor **ret_images,
                                tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels = NULL;
    TUTTI_TRY(read_either(directory, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte",
                          &images));
    tutti_status status = read_either(
        directory, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", &labels);
    if (status == TUTTI_OK)
        status = mnist_check(directory, images, labels);
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
        return status;
    }
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

static tutti_status load_files(const char *directory, bool train, int64_t limit,
                               tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels, *pixels = NULL, *classes = NULL;
    TUTTI_TRY(tutti__mnist_files(directory, train, &images, &labels));
    int64_t count = tutti_tensor_count(labels);
    count = limit > 0 && limit < count ? limit : count;
    tutti_status status = mnist_convert(images, count, true, &pixels);
    if (status == TUTTI_OK)
        status = mnist_convert(labels, count, false, &classes);
    tutti_tensor_release(labels);
    tutti_tensor_release(images);
    if (status != TUTTI_OK) {
        tutti_tensor_release(pixels);
        return status;
    }
    *ret_images = pixels;
    *ret_labels = classes;
    return TUTTI_OK;
}

typedef struct drawing {
    uint64_t seed, first;
    int64_t count;
    float *pixels;
    int64_t *labels;
} drawing;

#define PIECE 500

static void draw_piece(void *context, int64_t piece)
{
    drawing *d = context;
    for (int64_t i = piece * PIECE; i < (piece + 1) * PIECE && i < d->count; i++)
        d->labels[i] = tutti__digit_draw(d->seed, d->first + (uint64_t)i, d->pixels + i * PIXELS);
}

tutti_status tutti_digits_draw(uint64_t seed, int64_t first, int64_t count,
                               tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    TUTTI_REQUIRE(ret_images);
    TUTTI_REQUIRE(ret_labels);
    tutti_tensor *images, *labels;
    tutti_pool *pool;
    if (first < 0 || count < 0)
        return tutti_fail(TUTTI_INVALID, "digits: first and count must not be negative");
    TUTTI_TRY(tutti_tensor_create(
        TUTTI_F32, 4, (int64_t[]){count, TUTTI_DIGIT_SIDE, TUTTI_DIGIT_SIDE, 1}, &images));
    tutti_status status = tutti_tensor_create(TUTTI_I64, 1, &count, &labels);
    if (status == TUTTI_OK &&
        (status = tutti__pool_create(tutti__cpu_count(), -1, &pool)) != TUTTI_OK)
        tutti_tensor_release(labels);
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        return status;
    }
    drawing d = {seed, (uint64_t)first, count, tutti_tensor_data(images),
                 tutti_tensor_data(labels)};
    tutti__pool_run(pool, (count + PIECE - 1) / PIECE, draw_piece, &d);
    tutti__pool_destroy(pool);
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

tutti_status tutti_mnist_load(const char *directory, const char *split, int64_t limit,
                              tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    TUTTI_REQUIRE(ret_images);
    TUTTI_REQUIRE(ret_labels);
    bool train = split && strcmp(split, "train") == 0;
    if (!split || (!train && strcmp(split, "test") != 0))
        return tutti_fail(TUTTI_INVALID, "MNIST has the splits \"train\" and \"test\", not \"%s\"",
                          split ? split : "(null)");
    if (directory && directory[0])
        return load_files(directory, train, limit, ret_images, ret_labels);
    int64_t count = train ? 60000 : 10000;
    return tutti_digits_draw(TUTTI_DIGIT_SEED, train ? 0 : 60000,
                             limit > 0 && limit < count ? limit : count, ret_images, ret_labels);
}

tutti_status tutti_take_rows(const tutti_tensor *tensor, int64_t count, const int64_t *rows,
                             tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_tensor);
    if (count > 0)
        TUTTI_REQUIRE(rows);
    int rank = tutti_tensor_rank(tensor);
    int64_t dims[TUTTI_MAX_RANK], limit = rank > 0 ? tutti_tensor_dims(tensor)[0] : 0;
    char text[TUTTI_TYPE_TEXT];
    if (count < 0)
        return tutti_fail(TUTTI_INVALID, "%lld rows are asked for", (long long)count);
    if (rank == 0 || !tutti_tensor_is_contiguous(tensor) ||
        tutti_tensor_dtype(tensor) == TUTTI_STRING)
        return tutti_fail(
            TUTTI_INVALID,
            "the tensor is %s%s; rows are taken of numbers with at least one axis that "
            "lie one behind the other (tutti_tensor_contiguous)",
            tutti_type_text(tutti_tensor_type(tensor), text),
            tutti_tensor_is_contiguous(tensor) ? "" : ", a view with strides");
    memcpy(dims, tutti_tensor_dims(tensor), (size_t)rank * sizeof *dims);
    dims[0] = count;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= limit)
            return tutti_fail(TUTTI_OUT_OF_RANGE, "row %lld of %lld is asked for",
                              (long long)rows[i], (long long)limit);
    tutti_tensor *taken;
    TUTTI_TRY(tutti_tensor_create(tutti_tensor_dtype(tensor), rank, dims, &taken));
    size_t size = count > 0 ? (size_t)(tutti_tensor_count(taken) / count) *
                                  tutti_dtype_size(tutti_tensor_dtype(tensor))
                            : 0;
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)tutti_tensor_data(taken) + (size_t)i * size,
               (char *)tutti_tensor_data(tensor) + (size_t)rows[i] * size, size);
    *ret_tensor = taken;
    return TUTTI_OK;
}

void tutti_shuffled(uint64_t seed, uint64_t epoch, int64_t count, int64_t *ret_order)
{
    tutti_random_key key = {.seed = seed, .stream = epoch};
    for (int64_t i = 0; i < count; i++)
        ret_order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) { /* Fisher and Yates */
        int64_t k = (int64_t)tutti__random_below(key, (uint64_t)i, (uint64_t)i + 1),
                held = ret_order[i];
        ret_order[i] = ret_order[k];
        ret_order[k] = held;
    }
}
