/* module.h: between the library and the module that holds the GPU's side: what the module offers,
 * and what it uses of the library. Code of the module calls the library's functions by their usual
 * names; host.c passes those calls on. */
#ifndef TUTTI_CUDA_MODULE_H
#define TUTTI_CUDA_MODULE_H

#include "base/container.h"
#include "base/params.h"
#include "base/world.h"
#include "tutti/op.h"

#define TUTTI_CUDA_MODULE_VERSION 2
#define TUTTI_CUDA_MODULE_FILE "tutti_cuda.so"
/* const tutti_cuda_module *get(const tutti_cuda_host *) */
#define TUTTI_CUDA_MODULE_SYMBOL "tutti_cuda_module_get"

typedef struct tutti_cuda_host {
    int version;
    tutti_status (*fail)(tutti_status status, const char *message);
    const char *(*error_message)(void);
    void (*error_capture)(tutti_status status, tutti_error *ret);
    tutti_status (*error_restore)(const tutti_error *error);
    const tutti_world *(*world)(void);
    const char *(*param_text)(const tutti_param *param);
    void (*text_bytes)(tutti_text *text, const void *data, size_t size);
    void (*text_free)(tutti_text *text);
    const tutti_attr *(*attr_find)(const tutti_attr *attrs, int count, const char *name);
    const char *(*dtype_name)(tutti_dtype dtype);
    size_t (*dtype_size)(tutti_dtype dtype);
    double (*tensor_get)(const tutti_tensor *tensor, int64_t index);
    int64_t (*tensor_get_int)(const tutti_tensor *tensor, int64_t index);
    void (*view_set)(const tutti_view *view, int64_t index, double value);
    uint64_t (*hash_bytes)(uint64_t seed, const void *data, size_t size);
    const char *cache; /* folder, or NULL */
} tutti_cuda_host;

typedef struct tutti_cuda_module {
    int version;
    /* For `tutti doctor`: lines about libraries and GPUs. Returns how many libraries are missing.
     */
    int (*report)(tutti_text *text);
} tutti_cuda_module;

/* Loads the module when it is first asked for, and keeps it. TUTTI_UNSUPPORTED when it is not
 * installed. Opens none of NVIDIA's libraries. */
tutti_status tutti__cuda_module(const tutti_cuda_module **ret);

#endif
