/* compile.c: see compile.h. */
#include "device/cuda/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/compile/source.h"
#include "device/cuda/driver/load.h"

enum { MOST_OPTIONS = 32, MOST_OPTION_BYTES = 1024 };

/* Chips from 9.0 on have instructions that their successors lack; "a" is code for one chip. */
static const char *suffix(int capability)
{
    return capability >= 90 ? "a" : "";
}

/* Splits the job's options behind those every compilation has. */
static tutti_status compile_split(const char *options, char *text, const char **list, int *count)
{
    if (strlen(options) >= MOST_OPTION_BYTES)
        return tutti_fail(TUTTI_TOO_LARGE, "options of a kernel have more than %d characters",
                          (int)MOST_OPTION_BYTES);
    snprintf(text, MOST_OPTION_BYTES, "%s", options);
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (*count == MOST_OPTIONS)
            return tutti_fail(TUTTI_TOO_LARGE, "a kernel has more than %d options",
                              (int)MOST_OPTIONS);
        list[(*count)++] = word;
    }
    return TUTTI_OK;
}

static tutti_status nvrtc_check(const tutti_nvrtc *nvrtc, tutti_nvrtc_result result,
                                const char *what)
{
    if (result == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INTERNAL, "NVRTC, %s: %s", what, nvrtc->nvrtcGetErrorString(result));
}

/* The compiler's words; the first lines are those that count. */
static tutti_status wrong(const tutti_nvrtc *nvrtc, tutti_nvrtc_program program,
                          const tutti_cuda_job *job, tutti_nvrtc_result result)
{
    size_t size = 0;
    char *log = NULL;
    if (nvrtc->nvrtcGetProgramLogSize(program, &size) == 0 && (log = calloc(1, size + 1)) != NULL)
        (void)nvrtc->nvrtcGetProgramLog(program, log);
    tutti_status status =
        tutti_fail(result == TUTTI_NVRTC_WRONG_SOURCE ? TUTTI_INVALID : TUTTI_UNSUPPORTED,
                   "NVRTC cannot compile '%s' (%s) for sm_%d%s: %s: %.700s", job->name,
                   job->options, job->capability, suffix(job->capability),
                   nvrtc->nvrtcGetErrorString(result), log ? log : "");
    free(log);
    return status;
}

static tutti_status take_code(const tutti_nvrtc *nvrtc, tutti_nvrtc_program program,
                              void **ret_cubin, size_t *ret_size)
{
    size_t size;
    TUTTI_TRY(nvrtc_check(nvrtc, nvrtc->nvrtcGetCUBINSize(program, &size), "size of the code"));
    char *cubin = malloc(size);
    if (!cubin)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of machine code", size);
    tutti_status status = nvrtc_check(nvrtc, nvrtc->nvrtcGetCUBIN(program, cubin), "the code");
    if (status != TUTTI_OK) {
        free(cubin);
        return status;
    }
    *ret_cubin = cubin;
    *ret_size = size;
    return TUTTI_OK;
}

static tutti_status compile(const tutti_nvrtc *nvrtc, const tutti_cuda_job *job, void **ret_cubin,
                            size_t *ret_size)
{
    char architecture[64], words[MOST_OPTION_BYTES], name[256];
    const char *options[MOST_OPTIONS] = {architecture, "--std=c++17",
                                         "--device-as-default-execution-space", "-lineinfo",
                                         "--ftz=true"}; /* tiny numbers are zero, as on the CPU */
    int count = 5;
    const char *const headers[] = {tutti__cuda_text_common_cuh.text,
                                   tutti__cuda_text_elementwise_cuh.text};
    const char *const names[] = {"common.cuh", "elementwise.cuh"};
    tutti_nvrtc_program program;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%s", job->capability,
             suffix(job->capability));
    snprintf(name, sizeof name, "%s.cu", job->name);
    TUTTI_TRY(compile_split(job->options, words, options, &count));
    TUTTI_TRY(nvrtc_check(
        nvrtc,
        nvrtc->nvrtcCreateProgram(&program, job->text, name, TUTTI_COUNT(names), headers, names),
        "a program"));
    tutti_nvrtc_result result = nvrtc->nvrtcCompileProgram(program, count, options);
    tutti_status status = result == 0 ? take_code(nvrtc, program, ret_cubin, ret_size)
                                      : wrong(nvrtc, program, job, result);
    (void)nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

/* Reads the cache without leaving a message. */
static bool find_cached(const char *path, void **ret_cubin, size_t *ret_size)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    bool found = tutti__cuda_cache_read(path, ret_cubin, ret_size) == TUTTI_OK;
    tutti__error_restore(&before);
    return found;
}

static void compile_keep(const char *path, const void *cubin, size_t size)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    (void)tutti__cuda_cache_write(path, cubin, size);
    tutti__error_restore(&before);
}

tutti_status tutti__cuda_compile(const tutti_cuda_job *job, void **ret_cubin, size_t *ret_size,
                                 bool *ret_cached)
{
    const tutti_nvrtc *nvrtc;
    char path[4096] = "";
    int major = 0, minor = 0;
    bool cached = false;
    TUTTI_TRY(tutti__cuda_nvrtc(&nvrtc));
    TUTTI_TRY(nvrtc_check(nvrtc, nvrtc->nvrtcVersion(&major, &minor), "its version"));
    if (job->cache)
        TUTTI_TRY(tutti__cuda_cache_path(job, major, minor, path));
    if (job->cache)
        cached = find_cached(path, ret_cubin, ret_size);
    if (!cached)
        TUTTI_TRY(compile(nvrtc, job, ret_cubin, ret_size));
    if (!cached && job->cache)
        compile_keep(path, *ret_cubin, *ret_size);
    if (ret_cached)
        *ret_cached = cached;
    return TUTTI_OK;
}
