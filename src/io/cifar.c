/* cifar.c: see cifar.h. */
#include "io/cifar.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define PLANE 1024 /* 32 x 32 */

static tutti_status check_size(const tutti_source *source)
{
    if (source->size <= 0 || source->size % TUTTI_CIFAR_RECORD != 0)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: %lld bytes are no whole number of CIFAR-10 records of 3073 bytes",
                          source->name, (long long)source->size);
    return TUTTI_OK;
}

static tutti_status create(int64_t count, tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    tutti_tensor *images;
    TUTTI_TRY(tutti_tensor_create(TUTTI_U8, 4, (int64_t[]){count, 32, 32, 3}, &images));
    tutti_status status = tutti_tensor_create(TUTTI_I64, 1, &count, ret_labels);
    if (status != TUTTI_OK)
        tutti_tensor_release(images);
    else
        *ret_images = images;
    return status;
}

/* Records of a source become rows from `first` on. */
static tutti_status read_into(tutti_source *source, int64_t first, tutti_tensor *images,
                              tutti_tensor *labels)
{
    uint8_t record[TUTTI_CIFAR_RECORD];
    for (int64_t i = 0; i < source->size / TUTTI_CIFAR_RECORD; i++) {
        int64_t at = i * TUTTI_CIFAR_RECORD;
        TUTTI_TRY(tutti__source_read(source, at, record, sizeof record, "a record"));
        if (record[0] > 9)
            return tutti_fail(TUTTI_CORRUPT, "%s: offset %lld: label %u, expected 0 to 9",
                              source->name, (long long)at, record[0]);
        uint8_t *to = (uint8_t *)tutti_tensor_data(images) + (first + i) * 3 * PLANE;
        for (int k = 0; k < PLANE; k++)
            for (int c = 0; c < 3; c++)
                to[3 * k + c] = record[1 + c * PLANE + k];
        ((int64_t *)tutti_tensor_data(labels))[first + i] = record[0];
    }
    return TUTTI_OK;
}

/* Releases both when it went wrong, else gives both. */
static tutti_status give(tutti_status status, tutti_tensor *images, tutti_tensor *labels,
                         tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
        return status;
    }
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

tutti_status tutti__cifar_read(tutti_source *source, tutti_tensor **ret_images,
                               tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels;
    TUTTI_TRY(check_size(source));
    TUTTI_TRY(create(source->size / TUTTI_CIFAR_RECORD, &images, &labels));
    return give(read_into(source, 0, images, labels), images, labels, ret_images, ret_labels);
}

tutti_status tutti__cifar_write(tutti_sink *sink, tutti_tensor *images, tutti_tensor *labels)
{
    const int64_t *dims = tutti_tensor_dims(images);
    if (tutti_tensor_dtype(images) != TUTTI_U8 || tutti_tensor_rank(images) != 4 || dims[1] != 32 ||
        dims[2] != 32 || dims[3] != 3 || !tutti_tensor_is_contiguous(images) ||
        tutti_tensor_count(labels) != dims[0] || !tutti_dtype_is_int(tutti_tensor_dtype(labels)))
        return tutti_fail(TUTTI_INVALID,
                          "%s: CIFAR-10 needs contiguous images u8[n,32,32,3] and n "
                          "integer labels",
                          sink->name);
    for (int64_t i = 0; i < dims[0]; i++) {
        const uint8_t *from = (const uint8_t *)tutti_tensor_data(images) + i * 3 * PLANE;
        uint8_t record[TUTTI_CIFAR_RECORD];
        int64_t label = tutti_tensor_get_int(labels, i);
        if (label < 0 || label > 9)
            return tutti_fail(TUTTI_INVALID, "%s: label %lld of image %lld, expected 0 to 9",
                              sink->name, (long long)label, (long long)i);
        record[0] = (uint8_t)label;
        for (int k = 0; k < PLANE; k++)
            for (int c = 0; c < 3; c++)
                record[1 + c * PLANE + k] = from[3 * k + c];
        TUTTI_TRY(tutti__sink_write(sink, record, sizeof record));
    }
    return TUTTI_OK;
}

/* Opens a file of the folder or of the one that the archive unpacks to. */
static tutti_status open_batch(const char *folder, const char *name, tutti_source **ret)
{
    tutti_text path = {0};
    tutti__text_add(&path, "%s/%s", folder, name);
    tutti_status status = path.failed ? TUTTI_NO_MEMORY : tutti__source_file(path.data, ret);
    if (status == TUTTI_NOT_FOUND) {
        path.size = 0;
        tutti__text_add(&path, "%s/cifar-10-batches-bin/%s", folder, name);
        status = path.failed ? TUTTI_NO_MEMORY : tutti__source_file(path.data, ret);
    }
    tutti__text_free(&path);
    if (status == TUTTI_NO_MEMORY)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to open '%s/%s'", folder, name);
    return status;
}

static tutti_status open_all(const char *folder, bool train, tutti_source *ret[5], int *ret_count,
                             int64_t *ret_records)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    for (int i = 1; i <= (train ? 5 : 1); i++) {
        char name[32];
        snprintf(name, sizeof name, train ? "data_batch_%d.bin" : "test_batch.bin", i);
        tutti_status status = open_batch(folder, name, &ret[*ret_count]);
        if (status == TUTTI_NOT_FOUND && *ret_count > 0) {
            tutti__error_restore(&before);
            continue;
        }
        TUTTI_TRY(status);
        (*ret_count)++;
        TUTTI_TRY(check_size(ret[*ret_count - 1]));
        *ret_records += ret[*ret_count - 1]->size / TUTTI_CIFAR_RECORD;
    }
    if (train && *ret_count < 5)
        tutti__log(TUTTI_LOG_WARNING, "%s holds %d of CIFAR-10's 5 files data_batch_1.bin, …",
                   folder, *ret_count);
    return TUTTI_OK;
}

tutti_status tutti__cifar_load(const char *folder, const char *split, tutti_tensor **ret_images,
                               tutti_tensor **ret_labels)
{
    tutti_source *sources[5] = {NULL};
    tutti_tensor *images = NULL, *labels = NULL;
    int count = 0;
    int64_t records = 0, at = 0;
    bool train = strcmp(split, "train") == 0;
    if (!train && strcmp(split, "test") != 0)
        return tutti_fail(TUTTI_INVALID, "CIFAR-10 has the splits train and test, not '%s'", split);
    tutti_status status = open_all(folder, train, sources, &count, &records);
    if (status == TUTTI_OK)
        status = create(records, &images, &labels);
    for (int i = 0; i < count; i++) {
        if (status == TUTTI_OK)
            status = read_into(sources[i], at, images, labels);
        at += sources[i]->size / TUTTI_CIFAR_RECORD;
        tutti__source_close(sources[i]);
    }
    return give(status, images, labels, ret_images, ret_labels);
}
