/* files.h: tensors in files: safetensors, NPY and NPZ, images. Files from anywhere may be given:
 * damaged and hostile ones are refused with a message that names the file, the place and what was
 * expected. Every file is written beside its place, synced and renamed, so that the old file or the
 * new one stands there, never a mixture. All functions may be called from any thread. */
#ifndef TUTTI_FILES_H
#define TUTTI_FILES_H

#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor with its name, as files hold them. Saving borrows both. */
typedef struct tutti_named_tensor {
    const char *name;
    tutti_tensor *tensor;
} tutti_named_tensor;

/* Two texts that belong together, such as metadata. */
typedef struct tutti_text_pair {
    const char *key, *value;
} tutti_text_pair;

/* Tensors that were read, in the file's order; one reference to each. Zeroed is empty. */
typedef struct tutti_named_tensors {
    size_t count;
    tutti_named_tensor *items;
} tutti_named_tensors;

/* Releases tensors and names; the list is empty then. */
TUTTI_API void tutti_named_tensors_clear(tutti_named_tensors *list);
/* The tensor of that name, NULL when there is none; the list keeps it. */
TUTTI_API tutti_tensor *tutti_named_tensors_find(const tutti_named_tensors *list, const char *name);

/* Safetensors. `path` is a file, or an index (x.safetensors.index.json) of files beside it; when
 * x.safetensors is not there, its index is taken. Checksums written by tutti_safetensors_save are
 * compared. */
TUTTI_API tutti_status tutti_safetensors_load(const char *path, tutti_named_tensors *ret_list);

typedef struct tutti_safetensors_options {
    size_t struct_size;
    int64_t shard_bytes; /* data of one file; more goes into several files and an index. 0: one */
    size_t metadata_count;
    const tutti_text_pair *metadata;
} tutti_safetensors_options;
/* Every type. Other programs read the files too, but see strings as the bytes of all of them (NAME)
 * and their lengths (tutti/lengths/NAME); checksums stand in the metadata. */
TUTTI_API tutti_status tutti_safetensors_save_with(const char *path, size_t count,
                                                   const tutti_named_tensor *tensors,
                                                   const tutti_safetensors_options *options);
#define tutti_safetensors_save(path, count, ...)                                                   \
    tutti_safetensors_save_with((path), (count),                                                   \
                                TUTTI_ONE_(tutti_safetensors_options, __VA_ARGS__, ))

/* A number in the outermost object of a JSON file, such as a model's config.json. NOT_FOUND when
 * the file or the key is not there. */
TUTTI_API tutti_status tutti_json_number(const char *path, const char *key, double *ret_value);

/* NumPy's files. Either byte order and either order of dimensions; i2, u2 become i32, u4, u8 become
 * i64, fixed-width texts become strings (UTF-8). Object arrays are refused. bf16 is saved as f4;
 * strings are saved as bytes (S), so none may end in NUL. */
TUTTI_API tutti_status tutti_npy_load(const char *path, tutti_tensor **ret_tensor);
TUTTI_API tutti_status tutti_npy_save(const char *path, tutti_tensor *tensor);
/* NPZ: a zip archive of arrays, stored or deflated. */
TUTTI_API tutti_status tutti_npz_load(const char *path, tutti_named_tensors *ret_list);
TUTTI_API tutti_status tutti_npz_save(const char *path, size_t count,
                                      const tutti_named_tensor *tensors, bool compress);

/* JPEG and PNG as u8[height, width, channels]. `channels` is 1 (grey: 0.299 R + 0.587 G + 0.114 B),
 * 3 (red, green, blue), 4 (with alpha, PNG only) or 0: as the file has them. Of 16 bits the upper 8
 * are taken; no gamma is applied; alpha not asked for is dropped; inks (CMYK) become colours. At
 * most 2^28 pixels. TUTTI_UNSUPPORTED names the package when the library was built without it. */
TUTTI_API tutti_status tutti_image_load(const char *path, int channels, tutti_tensor **ret_image);
/* The same from bytes in memory; `name` is for messages. */
TUTTI_API tutti_status tutti_image_decode(const char *name, const void *data, size_t size,
                                          int channels, tutti_tensor **ret_image);
/* Saves u8[height, width, 1, 3 or 4] as PNG. */
TUTTI_API tutti_status tutti_png_save(const char *path, tutti_tensor *image);

#ifdef __cplusplus
}
#endif
#endif
