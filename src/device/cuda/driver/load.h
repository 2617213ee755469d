/* load.h: NVIDIA's libraries, found and opened when they are first asked for, and kept until the
 * process ends. None is needed to build, and none is opened by a job that uses no GPU. */
#ifndef TUTTI_CUDA_LOAD_H
#define TUTTI_CUDA_LOAD_H

#include "base/container.h"
#include "device/cuda/driver/api.h"

/* Where a function of a table lies, and the name it has in the library. */
typedef struct tutti_cuda_symbol {
    const char *name;
    size_t offset;
} tutti_cuda_symbol;

typedef struct tutti_cuda_library {
    const char *name;    /* "NVRTC" */
    const char *stem;    /* "libnvrtc.so" */
    const int *versions; /* of its file name, the preferred one first; 0 after the last */
    const char *package; /* what brings it */
    bool of_the_system;  /* the driver: part of the system, not of the toolkit */
    const tutti_cuda_symbol *symbols;
    int symbol_count;
    /* (optional) How a function is looked up; NULL: dlsym. */
    void *(*find)(void *handle, const char *name);
} tutti_cuda_library;

extern const tutti_cuda_library tutti__cuda_library_driver, tutti__cuda_library_nvrtc,
    tutti__cuda_library_blas, tutti__cuda_library_dnn;

/* Opens a library and fills a table of functions. Looked for in the folders of TUTTI_CUDA, and only
 * there (the driver: there first), if that is set: each may be a folder of libraries, a toolkit, or
 * Python's site-packages.
 * Else in CUDA_HOME and CUDA_PATH, where the system looks, in /usr/local/cuda, and in PyPI's wheels
 * (VIRTUAL_ENV, CONDA_PREFIX, the user's and the system's Python). TUTTI_UNSUPPORTED, with one
 * message that says where was looked and what to install, when it is missing or too old.
 * ret_path: the file. */
tutti_status tutti__cuda_open(const tutti_cuda_library *library, void *ret_functions,
                              char *ret_path, size_t path_size);

/* The same, once in a process; a failure is remembered too. Threads may call these at once. */
tutti_status tutti__cuda_driver(const tutti_cu_driver **ret);
tutti_status tutti__cuda_nvrtc(const tutti_nvrtc **ret);
tutti_status tutti__cuda_blas(const tutti_blas **ret);
tutti_status tutti__cuda_dnn(const tutti_dnn **ret);

/* A line for each library and each GPU, for `tutti doctor`; one line where there is no driver.
 * Returns how many libraries are missing. */
int tutti__cuda_report(tutti_text *text);

#endif
