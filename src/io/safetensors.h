/* safetensors.h: tensors with names in one file, or in several with an index.
 *
 *     u64 n | n bytes of JSON, padded with blanks so that 8 + n is a multiple of 8 | data
 *     {"__metadata__": {"key": "text", …},
 *      "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}
 *
 * Invariants:
 *  1. Tensors fill the data in order of their offsets: no overlap, no hole, nothing behind.
 *  2. Files written here carry two texts in their metadata. "tutti.crc32c" holds eight hexadecimal
 *     digits for each tensor in order of offsets; "tutti.header.crc32c" holds those of the first
 *     8 + n bytes with its own digits taken as zeros. One without the other is damage, so every
 *     flipped bit of a file is noticed.
 *  3. Strings are two tensors in a file, their bytes and their lengths (safetensors_strings.c), and
 *     one item here.
 *  4. A tensor may stand in boxes (safetensors_boxes.c), and is one item here, too.
 *  5. An index maps each tensor to the file that holds it, and holds each file's header checksum,
 *     which covers the tensors' own: files of different savings are never mixed. */
#ifndef TUTTI_IO_SAFETENSORS_H
#define TUTTI_IO_SAFETENSORS_H

#include "base/arena.h"
#include "io/json.h"
#include "io/stream.h"
#include "tensor/block.h"
#include "tensor/tensor.h"
#include "tutti/files.h"

typedef struct tutti_safetensor {
    const char *name;
    const char *dtype;    /* as it stands in the file: "F32" */
    tutti_type type;      /* dtype is TUTTI_NO_DTYPE when there is none here */
    int64_t offset, size; /* bytes, in its file */
    int file;
    bool checked; /* crc is known */
    uint32_t crc;
    const struct tutti_safetensor *lengths; /* of strings, of which this is the bytes; else NULL */
    int box_count;                          /* it stands in so many boxes; 0: as a whole */
    struct tutti_safetensor_part *boxes;
} tutti_safetensor;

typedef struct tutti_safetensor_part {
    tutti_box box;
    const tutti_safetensor *item;
} tutti_safetensor_part;

typedef struct tutti_safetensors_file {
    tutti_source *source;
    const tutti_json *metadata; /* object of strings, or NULL */
    bool checked;               /* carries checksums, and the header's was right */
    uint32_t header_crc;
} tutti_safetensors_file;

typedef struct tutti_safetensors {
    char *name;
    size_t count;
    tutti_safetensor *items; /* by file, then offset */
    tutti_safetensor **by_name;
    int file_count;
    tutti_safetensors_file *files;
    tutti_arena arena;
} tutti_safetensors;

/* One file, from a source that must outlive the result. */
tutti_status tutti__safetensors_read(tutti_source *source, tutti_safetensors **ret);
/* A file, an index (…index.json, …index.json.previous), or, when `path` is not there, its index
 * beside it. With
 * `checked`, files without checksums are refused as damaged. */
tutti_status tutti__safetensors_open(const char *path, bool checked, tutti_safetensors **ret);
void tutti__safetensors_close(tutti_safetensors *file); /* NULL is fine */

/* NULL when there is none. */
const tutti_safetensor *tutti__safetensors_find(const tutti_safetensors *file, const char *name);
/* A text of the metadata, of the first file that has it; NULL when there is none. */
const char *tutti__safetensors_metadata(const tutti_safetensors *file, const char *key);

/* Reads the bytes of one tensor into memory of its size (item->size bytes), and compares its
 * checksum when it has one. Threads may read different tensors at the same time. */
tutti_status tutti__safetensors_fetch(const tutti_safetensors *file, const tutti_safetensor *item,
                                      void *ret_data);
/* As a new tensor in host memory; strings with their lengths. */
tutti_status tutti__safetensors_tensor(const tutti_safetensors *file, const tutti_safetensor *item,
                                       tutti_tensor **ret_tensor);

/* What will be written, in order; names differ. */
typedef struct tutti_safetensors_plan {
    const char *name;
    tutti_type type;
} tutti_safetensors_plan;

typedef struct tutti_safetensors_writer {
    tutti_sink *sink;
    size_t count;
    int64_t *sizes; /* bytes of each tensor */
    uint32_t *crcs;
    size_t current;  /* tensor being written */
    int64_t written; /* bytes of it */
    tutti_text header;
    size_t crcs_at, header_crc_at; /* where the digits stand in `header` */
    uint32_t header_crc;           /* after finish */
} tutti_safetensors_writer;

/* Streaming: begin, then the bytes of all tensors in order and in pieces of any size, then finish,
 * which fills in the checksums. The sink stays the caller's. A writer that began must be freed. */
tutti_status tutti__safetensors_begin(tutti_sink *sink, size_t count,
                                      const tutti_safetensors_plan *plan, size_t metadata_count,
                                      const tutti_text_pair *metadata,
                                      tutti_safetensors_writer *ret_writer);
tutti_status tutti__safetensors_write(tutti_safetensors_writer *writer, const void *data,
                                      size_t size);
/* Any strides, host or device memory. */
tutti_status tutti__safetensors_write_tensor(tutti_safetensors_writer *writer,
                                             tutti_tensor *tensor);
tutti_status tutti__safetensors_finish(tutti_safetensors_writer *writer);
void tutti__safetensors_free(tutti_safetensors_writer *writer); /* zeroed is fine */

/* All tensors into `path` (…safetensors), or, when they exceed `shard_bytes` (0: no limit), into
 * files of at most that many bytes of data, or one tensor each, with an index. Each file is written
 * beside its place, synced and renamed; the index comes last, and until then the saving before it
 * is whole (safetensors_files.h). With `keep_previous` that one stays as the generation before.
 * Largest elements come first, so that everything is aligned; within that the given order is kept.
 */
tutti_status tutti__safetensors_save(const char *path, size_t count,
                                     const tutti_named_tensor *tensors, size_t metadata_count,
                                     const tutti_text_pair *metadata, int64_t shard_bytes,
                                     bool keep_previous);

/* "F32"; NULL for a dtype that the format does not know. */
const char *tutti__safetensors_dtype_text(tutti_dtype dtype);

/* For the index: safetensors_index.c. Takes the path of the index. */
tutti_status tutti__safetensors_open_index(const char *path, tutti_safetensors **ret);
/* Adds a file's tensors to `file`; takes the source over, also on failure. */
tutti_status tutti__safetensors_add(tutti_safetensors *file, tutti_source *source);
/* When all files are added: joins strings, puts the names in order, refuses those that stand twice.
 */
tutti_status tutti__safetensors_sort(tutti_safetensors *file);
tutti_status tutti__safetensors_new(const char *name, tutti_safetensors **ret);

/* ---- safetensors_boxes.c ---- */
/* A box that is to be written, of a tensor of that name and type. */
typedef struct tutti_safetensors_box {
    const char *name;
    tutti_type type;
    tutti_box box;
} tutti_safetensors_box;
/* The names of boxes in a file, and the text of its metadata that says what they are of; both lie
 * in the arena. */
tutti_status tutti__safetensors_name_boxes(tutti_arena *arena, size_t count,
                                           const tutti_safetensors_box *boxes,
                                           const char **ret_names, tutti_text_pair *ret_pair);
/* Makes one item of all boxes of a tensor, `ret_joined` times; CORRUPT names a box that is missing.
 */
tutti_status tutti__safetensors_join_boxes(tutti_safetensors *file, size_t *ret_joined);
tutti_status tutti__safetensors_whole(const tutti_safetensors *file, const tutti_safetensor *item,
                                      tutti_tensor **ret_tensor);

/* ---- safetensors_strings.c ---- */
/* What is written for a list of tensors: for each of strings two, first, then the others. */
typedef struct tutti_safetensors_list {
    size_t count;
    tutti_named_tensor *tensors;
    size_t made; /* pairs for strings: the first 2 * made tensors are the list's own */
} tutti_safetensors_list;
tutti_status tutti__safetensors_list_all(const char *path, size_t count,
                                         const tutti_named_tensor *tensors,
                                         tutti_safetensors_list *ret);
void tutti__safetensors_drop_list(tutti_safetensors_list *list);
/* Makes one item of the two of strings, `ret_joined` times. Names must be in order, and are not any
 * more where there were some. */
tutti_status tutti__safetensors_join_strings(tutti_safetensors *file, size_t *ret_joined);
tutti_status tutti__safetensors_strings(const tutti_safetensors *file, const tutti_safetensor *item,
                                        tutti_tensor **ret_tensor);

#endif
