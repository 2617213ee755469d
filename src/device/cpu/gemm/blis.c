/* blis.c: BLIS. It reads BLIS_ARCH_TYPE at its first product, and takes CPUs it does not know for
 * older ones. */
#include <dlfcn.h>
#include <stdio.h>

#include "base/cpu.h"
#include "device/cpu/gemm/engine.h"
#include "device/cpu/gemm/library.h"

static tutti_cblas_sgemm *sgemm;
static const char *(*get_version)(void);

/* Number of BLIS's arch_t: 0 is skx, 3 is haswell. NULL leaves the choice to the library. */
static const char *arch_type(void)
{
    const tutti_cpu *cpu = tutti__cpu();
    return cpu->avx512 ? "0" : cpu->avx2 ? "3" : NULL;
}

/* A first product, so that BLIS decides while its variables are set. */
static tutti_status blis_start(void *handle)
{
    void *found = dlsym(handle, "cblas_sgemm");
    if (found == NULL)
        return tutti_fail(TUTTI_UNSUPPORTED, "libblis has no CBLAS interface: install package "
                                             "libblis4-serial, or set TUTTI_GEMM=plain");
    sgemm = (tutti_cblas_sgemm *)found;
    get_version = (const char *(*)(void))dlsym(handle, "bli_info_get_version_str");
    float one = 1, result;
    tutti__cblas_multiply(sgemm, &(tutti_gemm){.m = 1,
                                               .n = 1,
                                               .k = 1,
                                               .a = &one,
                                               .b = &one,
                                               .c = &result,
                                               .lda = 1,
                                               .ldb = 1,
                                               .ldc = 1});
    return TUTTI_OK;
}

static tutti_status blis_load(void)
{
    static const char *const files[] = {"libblis.so.4", "libblis.so", NULL};
    tutti_library_variable variables[] = {
        {"BLIS_ARCH_TYPE", arch_type()},
        {"BLIS_NUM_THREADS", "1"},
        {"OMP_NUM_THREADS", "1"},
    };
    void *handle;
    return tutti__library_open(files, "libblis4-serial", (int)TUTTI_COUNT(variables), variables,
                               blis_start, &handle);
}

static void blis_describe(char *ret_text, size_t size)
{
    const char *told = arch_type();
    snprintf(ret_text, size, "version %s, told core type %s", get_version ? get_version() : "?",
             !told            ? "nothing"
             : told[0] == '0' ? "skx"
                              : "haswell");
}

static void blis_multiply(const tutti_gemm *gemm)
{
    tutti__cblas_multiply(sgemm, gemm);
}

const tutti_gemm_engine tutti_gemm_engine_blis = {
    .name = "blis",
    .package = "libblis4-serial",
    .load = blis_load,
    .describe = blis_describe,
    .multiply = blis_multiply,
};
