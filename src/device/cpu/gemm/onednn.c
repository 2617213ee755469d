/* onednn.c: oneDNN's dnnl_sgemm, the same in versions 2 and 3. Its OpenMP threads are turned off
 * for the length of a product: the number of threads is a setting of the calling thread. */
#include <dlfcn.h>
#include <stdio.h>

#include "device/cpu/gemm/engine.h"
#include "device/cpu/gemm/library.h"

typedef int dnnl_sgemm_function(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                float alpha, const float *a, int64_t lda, const float *b,
                                int64_t ldb, float beta, float *c, int64_t ldc);
static dnnl_sgemm_function *sgemm;
static int (*get_threads)(void);
static void (*set_threads)(int);
typedef struct dnnl_version { /* as oneDNN's header has it, up to what is read here */
    int major, minor, patch;
} dnnl_version;
static const dnnl_version *(*get_version)(void);

static tutti_status onednn_start(void *handle)
{
    void *found = dlsym(handle, "dnnl_sgemm");
    void *get = dlsym(handle, "omp_get_max_threads"), *set = dlsym(handle, "omp_set_num_threads");
    if (found == NULL)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "libdnnl has no dnnl_sgemm: install package libdnnl2 or libdnnl3, or set "
                          "TUTTI_GEMM=plain");
    sgemm = (dnnl_sgemm_function *)found;
    get_version = (const dnnl_version *(*)(void))dlsym(handle, "dnnl_version");
    if (get != NULL && set != NULL) {
        get_threads = (int (*)(void))get;
        set_threads = (void (*)(int))set;
    }
    return TUTTI_OK;
}

static tutti_status onednn_load(void)
{
    static const char *const files[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", NULL};
    void *handle;
    return tutti__library_open(files, "libdnnl2", 0, NULL, onednn_start, &handle);
}

static void onednn_describe(char *ret_text, size_t size)
{
    const dnnl_version *version = get_version ? get_version() : NULL;
    if (version)
        snprintf(ret_text, size, "version %d.%d.%d, reads the CPU itself", version->major,
                 version->minor, version->patch);
}

static void onednn_multiply(const tutti_gemm *g)
{
    int threads = get_threads == NULL ? 1 : get_threads();
    if (threads > 1)
        set_threads(1);
    sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, 1, g->a, g->lda, g->b,
          g->ldb, g->add ? 1 : 0, g->c, g->ldc);
    if (threads > 1)
        set_threads(threads);
}

const tutti_gemm_engine tutti_gemm_engine_onednn = {
    .name = "onednn",
    .package = "libdnnl2",
    .row_invariant = tutti__library_keeps_rows,
    .load = onednn_load,
    .describe = onednn_describe,
    .multiply = onednn_multiply,
};
