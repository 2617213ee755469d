/* library.c: dlopen with the right environment. */
#include "device/cpu/gemm/library.h"
#include "base/cpu.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { MOST_VARIABLES = 8 };

static tutti_status open_first(const char *const *files, const char *package,
                               tutti_status (*start)(void *handle), void **ret_handle)
{
    for (const char *const *file = files; *file != NULL; file++) {
        void *handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL)
            continue;
        tutti_status status = start == NULL ? TUTTI_OK : start(handle);
        if (status != TUTTI_OK) {
            dlclose(handle);
            return status;
        }
        *ret_handle = handle;
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_NOT_FOUND,
                      "matrix library %s is not there: install package %s, or set TUTTI_GEMM=plain",
                      files[0], package);
}

tutti_status tutti__library_open(const char *const *files, const char *package, int variable_count,
                                 const tutti_library_variable *variables,
                                 tutti_status (*start)(void *handle), void **ret_handle)
{
    bool set[MOST_VARIABLES] = {false};
    for (int i = 0; i < variable_count && i < MOST_VARIABLES; i++)
        if (variables[i].value != NULL && getenv(variables[i].name) == NULL)
            set[i] = setenv(variables[i].name, variables[i].value, 0) == 0;
    tutti_status status = open_first(files, package, start, ret_handle);
    for (int i = 0; i < variable_count && i < MOST_VARIABLES; i++)
        if (set[i])
            unsetenv(variables[i].name);
    return status;
}

void tutti__cblas_multiply(tutti_cblas_sgemm *sgemm, const tutti_gemm *g)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    sgemm(ROW_MAJOR, g->trans_a ? TRANSPOSED : PLAIN, g->trans_b ? TRANSPOSED : PLAIN, (int)g->m,
          (int)g->n, (int)g->k, 1, g->a, (int)g->lda, g->b, (int)g->ldb, g->add ? 1 : 0, g->c,
          (int)g->ldc);
}

bool tutti__library_keeps_rows(void)
{
    return tutti__cpu()->avx512;
}
