/* openblas.c: OpenBLAS. It picks its kernels when it is loaded, by a list of models; one that it
 * does not know runs the oldest. OPENBLAS_CORETYPE overrules the list. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "device/cpu/gemm/engine.h"
#include "device/cpu/gemm/library.h"

static tutti_cblas_sgemm *sgemm;
static const char *(*get_config)(void), *(*get_core)(void);

static tutti_status openblas_start(void *handle)
{
    void *found = dlsym(handle, "cblas_sgemm"),
         *threads = dlsym(handle, "openblas_set_num_threads");
    if (found == NULL)
        return tutti_fail(TUTTI_UNSUPPORTED, "libopenblas has no CBLAS interface: install package "
                                             "libopenblas0, or set TUTTI_GEMM=plain");
    if (threads != NULL)
        ((void (*)(int))threads)(1);
    sgemm = (tutti_cblas_sgemm *)found;
    get_config = (const char *(*)(void))dlsym(handle, "openblas_get_config");
    get_core = (const char *(*)(void))dlsym(handle, "openblas_get_corename");
    return TUTTI_OK;
}

/* NULL leaves the choice to the library. */
static const char *core_type(const tutti_cpu *cpu)
{
    if (cpu->avx512)
        return cpu->avx512_bf16 ? "COOPERLAKE" : "SKYLAKEX";
    if (cpu->avx2)
        return "HASWELL";
    if (!cpu->neon)
        return NULL;
    return cpu->sve ? "NEOVERSEV1" : strncmp(cpu->model, "Neoverse", 8) == 0 ? "NEOVERSEN1" : NULL;
}

static tutti_status openblas_load(void)
{
    static const char *const files[] = {"libopenblas.so.0", "libopenblas.so", NULL};
    tutti_library_variable variables[] = {
        {"OPENBLAS_CORETYPE", core_type(tutti__cpu())},
        {"OPENBLAS_NUM_THREADS", "1"},
        {"OMP_NUM_THREADS", "1"},
    };
    void *handle;
    return tutti__library_open(files, "libopenblas0", (int)TUTTI_COUNT(variables), variables,
                               openblas_start, &handle);
}

static void openblas_describe(char *ret_text, size_t size)
{
    const char *told = core_type(tutti__cpu()), *config = get_config ? get_config() : "OpenBLAS";
    const char *version = strncmp(config, "OpenBLAS ", 9) == 0 ? config + 9 : config;
    snprintf(ret_text, size, "version %.*s, told core type %s, runs %s", (int)strcspn(version, " "),
             version, told ? told : "nothing", get_core ? get_core() : "?");
}

static void openblas_multiply(const tutti_gemm *gemm)
{
    tutti__cblas_multiply(sgemm, gemm);
}

const tutti_gemm_engine tutti_gemm_engine_openblas = {
    .name = "openblas",
    .package = "libopenblas0",
    .row_invariant = tutti__library_keeps_rows,
    .load = openblas_load,
    .describe = openblas_describe,
    .multiply = openblas_multiply,
};
