/* compile.h: CUDA C++ into machine code for one chip, by NVRTC, kept in the cache folder. */
#ifndef TUTTI_CUDA_COMPILE_H
#define TUTTI_CUDA_COMPILE_H

#include "base/status.h"

typedef struct tutti_cuda_job {
    const char *name;    /* for messages and the file's name: "layer_norm" */
    const char *text;    /* CUDA C++; may include the texts of source.h and nothing else */
    const char *options; /* separated by blanks: "-DT=bf16 -DWIDTH=768" */
    int capability;      /* 80, 90, …; where a chip has instructions of its own (90) these too */
    const char *cache;   /* folder; NULL: nothing is kept */
} tutti_cuda_job;

/* Machine code, from malloc. It comes from the cache when that holds it whole; a damaged or foreign
 * entry is compiled again and replaced. A cache that cannot be written is no error. Threads and
 * processes may compile the same at once. ret_cached may be NULL. TUTTI_INVALID with the compiler's
 * words when the text is wrong. */
tutti_status tutti__cuda_compile(const tutti_cuda_job *job, void **ret_cubin, size_t *ret_size,
                                 bool *ret_cached);

/* The cache's entry of a job under a compiler of this version; ret_path [4096]. */
tutti_status tutti__cuda_cache_path(const tutti_cuda_job *job, int major, int minor,
                                    char *ret_path);
tutti_status tutti__cuda_cache_read(const char *path, void **ret_cubin, size_t *ret_size);
tutti_status tutti__cuda_cache_write(const char *path, const void *cubin, size_t size);

#endif
