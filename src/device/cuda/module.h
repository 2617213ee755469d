/* module.h: between the library and the module that holds the GPU's side: what the module offers,
 * and what it uses of the library. Code of the module calls the library's functions by their usual
 * names; host.c passes those calls on. */
#ifndef TUTTI_CUDA_MODULE_H
#define TUTTI_CUDA_MODULE_H

#include "base/container.h"
#include "base/params.h"
#include "base/world.h"
#include "tutti/op.h"

#define TUTTI_CUDA_MODULE_VERSION 3
#define TUTTI_CUDA_MODULE_FILE "tutti_cuda.so"
/* const tutti_cuda_module *get(const tutti_cuda_host *) */
#define TUTTI_CUDA_MODULE_SYMBOL "tutti_cuda_module_get"

/* Functions of the library that the module calls besides: what they give, name, parameters,
 * arguments. */
#define TUTTI_CUDA_HOST_FUNCTIONS(X)                                                               \
    X(const tutti_attr *, tutti_attr_find, (const tutti_attr *a, int n, const char *s), (a, n, s)) \
    X(int64_t, tutti_attr_int, (const tutti_attr *a, int n, const char *s), (a, n, s))             \
    X(double, tutti_attr_float, (const tutti_attr *a, int n, const char *s), (a, n, s))            \
    X(const char *, tutti_attr_string, (const tutti_attr *a, int n, const char *s), (a, n, s))     \
    X(int, tutti_attr_ints, (const tutti_attr *a, int n, const char *s, const int64_t **ret),      \
      (a, n, s, ret))                                                                              \
    X(bool, tutti_dtype_is_float, (tutti_dtype dtype), (dtype))                                    \
    X(bool, tutti_dtype_is_int, (tutti_dtype dtype), (dtype))                                      \
    X(const char *, tutti_dtype_name, (tutti_dtype dtype), (dtype))                                \
    X(size_t, tutti_dtype_size, (tutti_dtype dtype), (dtype))                                      \
    X(double, tutti_tensor_get, (const tutti_tensor *t, int64_t i), (t, i))                        \
    X(int64_t, tutti_tensor_get_int, (const tutti_tensor *t, int64_t i), (t, i))

typedef struct tutti_cuda_host {
    int version;
#define TUTTI_CUDA_HOST_SLOT(type, name, parameters, arguments) type(*name) parameters;
    TUTTI_CUDA_HOST_FUNCTIONS(TUTTI_CUDA_HOST_SLOT)
#undef TUTTI_CUDA_HOST_SLOT
    void (*view_set)(const tutti_view *view, int64_t index, double value);
    void (*text_free)(tutti_text *text);
    tutti_status (*fail)(tutti_status status, const char *message);
    const char *(*error_message)(void);
    void (*error_capture)(tutti_status status, tutti_error *ret);
    tutti_status (*error_restore)(const tutti_error *error);
    const tutti_world *(*world)(void);
    const char *(*param_text)(const tutti_param *param);
    void (*text_bytes)(tutti_text *text, const void *data, size_t size);
    uint64_t (*hash_bytes)(uint64_t seed, const void *data, size_t size);
    const char *cache; /* folder, or NULL */
} tutti_cuda_host;

struct tutti_cuda_gpu_table; /* gpu.h */

typedef struct tutti_cuda_module {
    int version;
    const struct tutti_cuda_gpu_table *gpus;
    /* For `tutti doctor`: lines about libraries and GPUs. Returns how many libraries are missing.
     */
    int (*report)(tutti_text *text);
} tutti_cuda_module;

/* Loads the module when it is first asked for, and keeps it. TUTTI_UNSUPPORTED when it is not
 * installed. Opens none of NVIDIA's libraries. */
tutti_status tutti__cuda_module(const tutti_cuda_module **ret);

#endif
