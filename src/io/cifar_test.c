/* cifar_test.c: records round trip; folders; wrong sizes and labels. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "io/cifar.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"

static void write_batch(const char *path, int64_t count, int label)
{
    tutti_sink *sink;
    tutti_tensor *images, *labels;
    CHECK_OK(tutti_tensor_create(TUTTI_U8, 4, (int64_t[]){count, 32, 32, 3}, &images));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, &count, &labels));
    for (int64_t i = 0; i < count; i++) {
        tutti_tensor_set_int(labels, i, label);
        tutti_tensor_set_int(images, i * 3072 + 3 * 33 + 2, 77); /* blue of [1,1] */
    }
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    CHECK_OK(tutti__sink_end(sink, tutti__cifar_write(sink, images, labels)));
    tutti_tensor_set_int(labels, 0, 10);
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    CHECK_STATUS(tutti__sink_end(sink, tutti__cifar_write(sink, images, labels)), TUTTI_INVALID);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
}

TUTTI_TEST(cifar_loads_the_batches_of_a_folder)
{
    char folder[] = "/tmp/tutti-cifar-XXXXXX", paths[3][64];
    const tutti_world *w = tutti__world();
    tutti_tensor *images, *labels;
    CHECK(mkdtemp(folder) != NULL);
    CHECK_STATUS(tutti__cifar_load(folder, "train", &images, &labels), TUTTI_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/data_batch_%d.bin", folder, i + 1);
        write_batch(paths[i], i + 2, i + 3);
    }
    snprintf(paths[2], sizeof paths[2], "%s/test_batch.bin", folder);
    write_batch(paths[2], 1, 9);
    CHECK_OK(tutti__cifar_load(folder, "train", &images, &labels));
    CHECK_INT(tutti_tensor_dims(images)[0], 5);
    CHECK_INT(tutti_tensor_get_int(labels, 1), 3);
    CHECK_INT(tutti_tensor_get_int(labels, 2), 4);
    CHECK_INT(tutti_tensor_get_int(images, 4 * 3072 + 3 * 33 + 2), 77);
    CHECK_INT(tutti_tensor_get_int(images, 4 * 3072 + 3 * 33 + 1), 0);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    CHECK_OK(tutti__cifar_load(folder, "test", &images, &labels));
    CHECK_INT(tutti_tensor_count(labels), 1);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    CHECK_STATUS(tutti__cifar_load(folder, "valid", &images, &labels), TUTTI_INVALID);
    for (int i = 0; i < 3; i++)
        CHECK_OK(w->remove_file(w->self, paths[i]));
    CHECK_OK(w->remove_file(w->self, folder));
}

/* What cifar-10-binary.tar.gz unpacks to, with fewer records. */
static void unpack_archive(const char *folder)
{
    const tutti_world *w = tutti__world();
    char path[200];
    snprintf(path, sizeof path, "%s/cifar-10-batches-bin", folder);
    CHECK_OK(w->make_folder(w->self, path));
    for (int i = 0; i < 6; i++) {
        if (i < 5)
            snprintf(path, sizeof path, "%s/cifar-10-batches-bin/data_batch_%d.bin", folder, i + 1);
        else
            snprintf(path, sizeof path, "%s/cifar-10-batches-bin/test_batch.bin", folder);
        write_batch(path, 4, i);
    }
    snprintf(path, sizeof path, "%s/cifar-10-batches-bin/batches.meta.txt", folder);
    CHECK_OK(w->write_file(w->self, path, "airplane\nautomobile\n", 20));
    snprintf(path, sizeof path, "%s/cifar-10-batches-bin/readme.html", folder);
    CHECK_OK(w->write_file(w->self, path, "<html>", 6));
}

static void check_splits(const char *folder)
{
    tutti_tensor *images, *labels;
    for (int train = 0; train < 2; train++) {
        CHECK_OK(tutti__cifar_load(folder, train ? "train" : "test", &images, &labels));
        CHECK_INT(tutti_tensor_dims(images)[0], train ? 20 : 4);
        for (int64_t i = 0; i < tutti_tensor_count(labels); i++)
            CHECK_INT(tutti_tensor_get_int(labels, i), train ? i / 4 : 5);
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
    }
}

TUTTI_TEST(cifar_is_found_in_the_unpacked_archive)
{
    char folder[] = "/tmp/tutti-cifar-XXXXXX", inner[100], batch[200], command[200];
    const tutti_world *w = tutti__world();
    tutti_tensor *images, *labels;
    CHECK(mkdtemp(folder) != NULL);
    unpack_archive(folder);
    snprintf(inner, sizeof inner, "%s/cifar-10-batches-bin", folder);
    check_splits(folder);
    check_splits(inner);
    snprintf(batch, sizeof batch, "%s/data_batch_3.bin", inner);
    static const size_t wrong[] = {0, 1, TUTTI_CIFAR_RECORD - 1, TUTTI_CIFAR_RECORD + 1};
    static const uint8_t bytes[TUTTI_CIFAR_RECORD + 1];
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        CHECK_OK(w->write_file(w->self, batch, bytes, wrong[i]));
        CHECK_STATUS(tutti__cifar_load(folder, "train", &images, &labels), TUTTI_CORRUPT);
        CHECK_CONTAINS(tutti_error_message(), "data_batch_3.bin");
        CHECK_STATUS(tutti__cifar_load(inner, "train", &images, &labels), TUTTI_CORRUPT);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

TUTTI_TEST(cifar_refuses_wrong_sizes_and_labels)
{
    static uint8_t bytes[2 * TUTTI_CIFAR_RECORD] = {1};
    tutti_source *source;
    tutti_tensor *images, *labels;
    for (size_t size = 0; size < sizeof bytes; size += 512) {
        CHECK_OK(tutti__source_bytes("c", bytes, size, &source));
        CHECK_STATUS(tutti__cifar_read(source, &images, &labels), TUTTI_CORRUPT);
        tutti__source_close(source);
    }
    bytes[TUTTI_CIFAR_RECORD] = 10;
    CHECK_OK(tutti__source_bytes("c", bytes, sizeof bytes, &source));
    CHECK_STATUS(tutti__cifar_read(source, &images, &labels), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "offset 3073: label 10");
    tutti__source_close(source);
}
