/* cblas.c: whatever BLAS the system calls its own. */
#include <dlfcn.h>

#include "device/cpu/gemm/engine.h"
#include "device/cpu/gemm/library.h"

static tutti_cblas_sgemm *sgemm;

static tutti_status cblas_start(void *handle)
{
    void *found = dlsym(handle, "cblas_sgemm");
    if (found == NULL)
        return tutti_fail(TUTTI_UNSUPPORTED, "the system's BLAS has no CBLAS interface: install "
                                             "package libblas3, or set TUTTI_GEMM=plain");
    sgemm = (tutti_cblas_sgemm *)found;
    return TUTTI_OK;
}

static tutti_status cblas_load(void)
{
    static const char *const files[] = {"libcblas.so.3", "libblas.so.3", "libcblas.so",
                                        "libblas.so", NULL};
    static const tutti_library_variable variables[] = {
        {"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}, {"BLIS_NUM_THREADS", "1"}};
    void *handle;
    return tutti__library_open(files, "libblas3", (int)TUTTI_COUNT(variables), variables,
                               cblas_start, &handle);
}

static void cblas_multiply(const tutti_gemm *gemm)
{
    tutti__cblas_multiply(sgemm, gemm);
}

const tutti_gemm_engine tutti_gemm_engine_cblas = {
    .name = "cblas",
    .package = "libblas3",
    .load = cblas_load,
    .multiply = cblas_multiply,
};
