/* emulated.c: in place of compile/load.c and a driver: kernels as C++ for the CPU, compiled by the
 * machine's compiler, for tests of what kernels compute where no GPU is. See emulated.hpp. */
#include "device/cuda/lab/emulated.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "device/cuda/compile/load.h"

typedef void launch_fn(unsigned x, unsigned y, unsigned z, unsigned threads, void **arguments);

static char folder[512];

void tutti__cuda_cache_folder(const char *given)
{
    (void)given;
}

const char *tutti__cuda_cache(void)
{
    return "";
}

void tutti__cuda_unload(tutti_cuda_device *device)
{
    (void)device;
}

tutti_status tutti__cuda_usage(tutti_cuda_device *device, tutti_cu_function function,
                               int *registers, int *local)
{
    (void)device, (void)function;
    *registers = *local = 0;
    return TUTTI_OK;
}

/* The name of the kernel whose definition begins at `at`. */
static const char *name_of(const char *at, int *ret_size)
{
    const char *open = strchr(at, '('), *name;
    if (strncmp(open - 17, "__launch_bounds__", 17) == 0)
        open = strchr(strchr(open, ')'), '(');
    for (name = open; name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
                      (name[-1] >= 'a' && name[-1] <= 'z');
         name--)
        ;
    *ret_size = (int)(open - name);
    return name;
}

/* Text with conversions that are PTX replaced, and behind each kernel NAME launch_NAME. */
static void write_text(FILE *file, const char *text)
{
    static const struct {
        const char *ptx, *plain;
    } pairs[] = {
        {"asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x.bits));",
         "y = emulated_from_half(x.bits);"},
        {"asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));",
         "y.bits = emulated_to_bf16(x);"},
        {"asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));",
         "y.bits = emulated_to_half(x);"},
    };
    const char *name = NULL;
    int size = 0;
    while (*text) {
        size_t i = 0;
        while (i < TUTTI_COUNT(pairs) && strncmp(text, pairs[i].ptx, strlen(pairs[i].ptx)) != 0)
            i++;
        if (i < TUTTI_COUNT(pairs)) {
            fputs(pairs[i].plain, file);
            text += strlen(pairs[i].ptx);
            continue;
        }
        if (strncmp(text, "extern \"C\" __global__", 21) == 0)
            name = name_of(text, &size);
        fputc(*text++, file);
        if (name && text[-1] == '}' && text[-2] == '\n') {
            fprintf(file,
                    "\nstatic void call_%.*s(void **p) { emulated::call(&%.*s, p); }\n"
                    "extern \"C\" void launch_%.*s(unsigned x, unsigned y, unsigned z, unsigned t, "
                    "void **p) { emulated::run(call_%.*s, x, y, z, t, p); }\n",
                    size, name, size, name, size, name, size, name);
            name = NULL;
        }
    }
}

static void write_file(const char *name, const char *text)
{
    char path[1024], whole[1024]; /* several may run at once */
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, (int)getpid());
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    write_text(file, text);
    fclose(file);
    (void)rename(path, whole);
}

static tutti_status build(const char *path, const char *name, const char *text, const char *options)
{
    char source[1024], command[4096];
    int own = (int)getpid();
    snprintf(source, sizeof source, "%s.%d.cc", path, own);
    FILE *file = fopen(source, "w");
    if (!file)
        return tutti_fail(TUTTI_INTERNAL, "%s cannot be written", source);
    fprintf(file, "#include \"emulated.hpp\"\n");
    write_text(file, text);
    fclose(file);
    snprintf(command, sizeof command,
             "g++ -std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -w -fPIC -shared -I%s "
             "-Isrc/device/cuda/lab %s -o %s.%d %s 2>&1 | grep error | head -4 >&2; mv %s.%d %s",
             folder, strncmp(options, "--fmad=false", 12) == 0 ? "" : options, path, own, source, path,
             own, path);
    if (system(command) != 0)
        return tutti_fail(TUTTI_INVALID, "kernel '%s' (%s) does not compile", name, options);
    return TUTTI_OK;
}

tutti_status tutti__cuda_function(tutti_cuda_device *device, const char *name, const char *text,
                                  const char *options, const char *entry, int shared,
                                  tutti_cu_function *ret)
{
    char path[700], symbol[128];
    uint64_t key = tutti__hash_string(tutti__hash_string(7, text), options);
    (void)device, (void)shared;
    key = tutti__hash_string(key, tutti__cuda_text_common_cuh.text);
    key = tutti__hash_string(key, tutti__cuda_text_elementwise_cuh.text);
    snprintf(path, sizeof path, "%s/%s_%016llx.so", folder, name, (unsigned long long)key);
    if (access(path, R_OK) != 0)
        TUTTI_TRY(build(path, name, text, options));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(symbol, sizeof symbol, "launch_%s", entry);
    void *found = library ? dlsym(library, symbol) : NULL;
    if (!found)
        return tutti_fail(TUTTI_INTERNAL, "kernel '%s' of '%s': %s", entry, name, dlerror());
    *ret = found;
    return TUTTI_OK;
}

static tutti_cu_result launch(tutti_cu_function function, unsigned x, unsigned y, unsigned z,
                              unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                              tutti_cu_stream stream, void **arguments, void **extra)
{
    launch_fn *run;
    (void)ty, (void)tz, (void)shared, (void)stream, (void)extra;
    memcpy(&run, &function, sizeof run);
    run(x, y, z, threads, arguments);
    return 0;
}

tutti_status tutti__cuda_launch_on(tutti_cuda_device *device, tutti_cu_stream stream,
                                   const tutti_cuda_launch *l, void **arguments)
{
    tutti_cu_function function;
    TUTTI_TRY(tutti__cuda_function(device, l->source->name, l->source->text->text, l->options,
                                   l->entry, l->shared, &function));
    (void)launch(function, l->grid[0] ? l->grid[0] : 1, l->grid[1] ? l->grid[1] : 1,
                 l->grid[2] ? l->grid[2] : 1, l->threads ? l->threads : 1, 1, 1, 0, stream,
                 arguments, NULL);
    return TUTTI_OK;
}

static tutti_cu_result to_device(tutti_cu_pointer to, const void *from, size_t size,
                                 tutti_cu_stream stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}
static tutti_cu_result to_host(void *to, tutti_cu_pointer from, size_t size, tutti_cu_stream stream)
{
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
static tutti_cu_result on_device(tutti_cu_pointer to, tutti_cu_pointer from, size_t size,
                                 tutti_cu_stream stream)
{
    (void)stream;
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}
static tutti_cu_result set_bytes(tutti_cu_pointer to, unsigned char value, size_t size,
                                 tutti_cu_stream stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, value, size);
    return 0;
}
static tutti_cu_result allocate(tutti_cu_pointer *ret, size_t size)
{
    *ret = (tutti_cu_pointer)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
    return 0;
}
static tutti_cu_result wait_for(tutti_cu_stream stream)
{
    (void)stream;
    return 0;
}

tutti_status lab_emulated_device(const char *given, tutti_cuda_device *ret)
{
    static tutti_cu_driver driver;
    driver.cuLaunchKernel = launch;
    driver.cuMemcpyHtoDAsync = to_device;
    driver.cuMemcpyDtoHAsync = to_host;
    driver.cuMemcpyDtoDAsync = on_device;
    driver.cuMemsetD8Async = set_bytes;
    driver.cuMemAlloc = allocate;
    driver.cuStreamSynchronize = wait_for;
    *ret = (tutti_cuda_device){.cu = &driver, .capability = 90, .multiprocessors = 132};
    snprintf(folder, sizeof folder, "%s", given);
    write_file("common.cuh", tutti__cuda_text_common_cuh.text);
    write_file("elementwise.cuh", tutti__cuda_text_elementwise_cuh.text);
    return TUTTI_OK;
}
