/* files.c: the library's side of tests/peers/files.py.
 *
 *     files write FOLDER    writes one file of each kind, for the peers to read
 *     files read FOLDER     reads what the peers wrote
 *
 * Element k of every tensor is k / 2 - 1 (floats), k - 1 (signed), k (unsigned), k odd (bool). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/events.h"
#include "io/example.h"
#include "io/image.h"
#include "io/tfrecord.h"
#include "tutti/files.h"

static const tutti_dtype dtypes[] = {TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16, TUTTI_I8,
                                     TUTTI_U8,  TUTTI_I32, TUTTI_I64, TUTTI_BOOL};
#define KINDS TUTTI_COUNT(dtypes)

static const char *folder;

static void must(tutti_status status)
{
    if (status == TUTTI_OK)
        return;
    fprintf(stderr, "files: %s\n", tutti_error_message());
    exit(1);
}

static char *in_folder(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static double element(tutti_dtype dtype, int64_t k)
{
    return dtype == TUTTI_BOOL           ? (double)(k % 2)
           : dtype == TUTTI_U8           ? (double)k
           : tutti_dtype_is_float(dtype) ? (double)k / 2 - 1
                                         : (double)k - 1;
}

static void make(tutti_named_tensor tensors[KINDS])
{
    for (size_t i = 0; i < KINDS; i++) {
        tensors[i].name = tutti_dtype_name(dtypes[i]);
        must(tutti_tensor_create(dtypes[i], 2, (int64_t[]){3, 5}, &tensors[i].tensor));
        for (int64_t k = 0; k < 15; k++)
            tutti_tensor_set(tensors[i].tensor, k, element(dtypes[i], k));
    }
}

static void write_records(const char *file, bool packed, size_t count,
                          const tutti_named_tensor *tensors)
{
    tutti_sink *sink;
    tutti_text example = {0};
    must(tutti__sink_file(in_folder(file), TUTTI_FILE_REPLACE, &sink));
    if (packed)
        must(tutti__sink_deflate(sink, TUTTI_PACKED_GZIP, &sink));
    for (int i = 0; i < 3; i++) {
        must(tutti__example_build(count, tensors, &example));
        must(tutti__tfrecord_put(sink, example.data, example.size));
        tutti__text_free(&example);
    }
    must(tutti__sink_commit(sink));
}

static void write_events(tutti_tensor *values)
{
    tutti_events events;
    must(tutti__events_create(in_folder("logs"), NULL, &events));
    for (int step = 0; step < 5; step++)
        must(tutti__events_scalar(&events, step, "loss", 1.0 / (step + 1)));
    must(tutti__events_values(&events, 4, "weights", values, 10));
    must(tutti__events_text(&events, 4, "note", "**bold**"));
    must(tutti__events_close(&events));
}

static void write_images(void)
{
    tutti_tensor *image;
    tutti_text jpeg = {0};
    const tutti_world *world = tutti__world();
    must(tutti_tensor_create(TUTTI_U8, 3, (int64_t[]){8, 16, 3}, &image));
    for (int64_t k = 0; k < 8 * 16 * 3; k++)
        tutti_tensor_set_int(image, k, k / 2);
    must(tutti_png_save(in_folder("ours.png"), image));
    must(tutti__jpeg_encode(image, 95, &jpeg));
    must(world->write_file(world->self, in_folder("ours.jpg"), jpeg.data, jpeg.size));
    tutti__text_free(&jpeg);
    tutti_tensor_release(image);
}

static void write_all(void)
{
    tutti_named_tensor tensors[KINDS];
    const tutti_text_pair note = {"note", "from Tutti"};
    make(tensors);
    must(tutti_safetensors_save(in_folder("ours.safetensors"), KINDS, tensors, .metadata_count = 1,
                                .metadata = &note));
    must(
        tutti_safetensors_save(in_folder("parts.safetensors"), KINDS, tensors, .shard_bytes = 100));
    must(tutti_npz_save(in_folder("ours.npz"), KINDS, tensors, false));
    must(tutti_npz_save(in_folder("packed.npz"), KINDS, tensors, true));
    must(tutti_npy_save(in_folder("ours.npy"), tensors[0].tensor));
    write_records("ours.tfrecord", false, KINDS, tensors);
    write_records("ours.tfrecord.gz", true, KINDS, tensors);
    write_events(tensors[0].tensor);
    write_images();
    for (size_t i = 0; i < KINDS; i++)
        tutti_tensor_release(tensors[i].tensor);
}

static void check(const char *file, const char *name, const tutti_tensor *tensor, int64_t count)
{
    if (tensor == NULL || tutti_tensor_count(tensor) != count) {
        fprintf(stderr, "files: %s: '%s' is missing or of another size\n", file, name);
        exit(1);
    }
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    for (int64_t k = 0; k < count; k++)
        if (tutti_tensor_get(tensor, k) != element(dtype, k)) {
            fprintf(stderr, "files: %s: element %lld of '%s' is %g, expected %g\n", file,
                    (long long)k, name, tutti_tensor_get(tensor, k), element(dtype, k));
            exit(1);
        }
}

static void check_list(const char *file, tutti_named_tensors *list, size_t count)
{
    if (list->count != count) {
        fprintf(stderr, "files: %s: %zu tensors, expected %zu\n", file, list->count, count);
        exit(1);
    }
    for (size_t i = 0; i < count; i++)
        check(file, list->items[i].name, list->items[i].tensor, 15);
    tutti_named_tensors_clear(list);
}

static void read_records(const char *file)
{
    tutti_source *source;
    tutti_tfrecord reader;
    const uint8_t *data;
    size_t size;
    int count = 0;
    must(tutti__source_file(in_folder(file), &source));
    must(tutti__tfrecord_open(source, 0, &reader));
    for (;; count++) {
        tutti_named_tensors features = {0};
        must(tutti__tfrecord_next(&reader, &data, &size));
        if (data == NULL)
            break;
        must(tutti__example_parse(file, data, size, &features));
        check(file, "reals", tutti_named_tensors_find(&features, "reals"), 15);
        check(file, "integers", tutti_named_tensors_find(&features, "integers"), 15);
        tutti_named_tensors_clear(&features);
    }
    tutti__tfrecord_close(&reader);
    if (count != 3)
        must(tutti_fail(TUTTI_CORRUPT, "%s: %d records, expected 3", file, count));
}

static void read_events(void)
{
    tutti_source *source;
    tutti_events_reader reader;
    tutti_event_value event;
    bool more;
    int scalars = 0;
    must(tutti__source_file(in_folder("theirs.tfevents"), &source));
    must(tutti__events_open(source, &reader));
    for (;;) {
        must(tutti__events_next(&reader, &event, &more));
        if (!more)
            break;
        scalars += strcmp(event.plugin, "scalars") == 0 && event.value == (double)event.step / 2;
    }
    tutti__events_reader_close(&reader);
    if (scalars != 4)
        must(tutti_fail(TUTTI_CORRUPT, "theirs.tfevents: %d scalars, expected 4", scalars));
}

static void read_all(void)
{
    tutti_named_tensors list = {0};
    tutti_tensor *tensor;
    must(tutti_safetensors_load(in_folder("theirs.safetensors"), &list));
    check_list("theirs.safetensors", &list, KINDS);
    must(tutti_npz_load(in_folder("theirs.npz"), &list));
    check_list("theirs.npz", &list, KINDS - 1);
    must(tutti_npz_load(in_folder("theirs_packed.npz"), &list));
    check_list("theirs_packed.npz", &list, KINDS - 1);
    must(tutti_npy_load(in_folder("theirs.npy"), &tensor));
    check("theirs.npy", "column-major, big-endian", tensor, 15);
    tutti_tensor_release(tensor);
    read_records("theirs.tfrecord");
    read_records("theirs.tfrecord.gz");
    read_events();
}

int main(int argc, char **argv)
{
    if (argc != 3 || (strcmp(argv[1], "write") != 0 && strcmp(argv[1], "read") != 0)) {
        fprintf(stderr, "usage: files write|read FOLDER\n");
        return 2;
    }
    folder = argv[2];
    if (strcmp(argv[1], "write") == 0)
        write_all();
    else
        read_all();
    return 0;
}
