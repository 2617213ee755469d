/* load.c: see load.h. */
#include "device/cuda/compile/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "device/cuda/compile/compile.h"

/* A cubin on the device. The key is a hash of text and options; the list is short, and a plan looks
 * its kernels up once. */
struct tutti_cuda_loaded {
    struct tutti_cuda_loaded *next;
    uint64_t key;
    tutti_cu_module module;
};

static char cache_folder[4096];

void tutti__cuda_cache_folder(const char *folder)
{
    snprintf(cache_folder, sizeof cache_folder, "%s", folder ? folder : "");
}

const char *tutti__cuda_cache(void)
{
    return cache_folder;
}

static tutti_status load(tutti_cuda_device *device, const char *name, const char *text,
                         const char *options, uint64_t key)
{
    void *cubin;
    size_t size;
    const tutti_cuda_job job = {name, text, options, device->capability,
                                cache_folder[0] ? cache_folder : NULL};
    TUTTI_TRY(tutti__cuda_compile(&job, &cubin, &size, NULL));
    tutti_cuda_loaded *loaded = malloc(sizeof *loaded);
    tutti_status status = loaded ? TUTTI_CU(device, cuModuleLoadData(&loaded->module, cubin))
                                 : tutti_fail(TUTTI_NO_MEMORY, "no memory for a kernel");
    free(cubin);
    if (status != TUTTI_OK) {
        free(loaded);
        return tutti__error_prefix(status, "kernel '%s' (%s)", name, options);
    }
    loaded->key = key;
    loaded->next = device->loaded;
    device->loaded = loaded;
    return TUTTI_OK;
}

static tutti_cuda_loaded *find(tutti_cuda_device *device, uint64_t key)
{
    tutti_cuda_loaded *at = device->loaded;
    while (at && at->key != key)
        at = at->next;
    return at;
}

tutti_status tutti__cuda_function(tutti_cuda_device *device, const char *name, const char *text,
                                  const char *options, const char *entry, int shared,
                                  tutti_cu_function *ret)
{
    tutti_cu_function function;
    uint64_t key = tutti__hash_string(tutti__hash_string(7, text), options);
    pthread_mutex_lock(&device->lock);
    tutti_status status = TUTTI_OK;
    if (!find(device, key))
        status = load(device, name, text, options, key);
    if (status == TUTTI_OK)
        status = TUTTI_CU(device, cuModuleGetFunction(&function, find(device, key)->module, entry));
    pthread_mutex_unlock(&device->lock);
    if (status == TUTTI_OK && shared > 48 << 10)
        status = TUTTI_CU(device, cuFuncSetAttribute(function, TUTTI_CU_DYNAMIC_SHARED, shared));
    if (status == TUTTI_OK)
        *ret = function;
    return status;
}

void tutti__cuda_unload(tutti_cuda_device *device)
{
    for (tutti_cuda_loaded *at = device->loaded, *next; at; at = next) {
        next = at->next;
        (void)device->cu->cuModuleUnload(at->module);
        free(at);
    }
    device->loaded = NULL;
}

tutti_status tutti__cuda_usage(tutti_cuda_device *device, tutti_cu_function function,
                               int *ret_registers, int *ret_local)
{
    TUTTI_TRY(TUTTI_CU(device, cuFuncGetAttribute(ret_registers, TUTTI_CU_REGISTERS, function)));
    return TUTTI_CU(device, cuFuncGetAttribute(ret_local, TUTTI_CU_LOCAL_BYTES, function));
}

static unsigned at_least_one(unsigned n)
{
    return n ? n : 1;
}

tutti_status tutti__cuda_launch_on(tutti_cuda_device *device, tutti_cu_stream stream,
                                   const tutti_cuda_launch *launch, void **arguments)
{
    tutti_cu_function function;
    TUTTI_TRY(tutti__cuda_function(device, launch->source->name, launch->source->text->text,
                                   launch->options, launch->entry, launch->shared, &function));
    tutti_status status =
        TUTTI_CU(device, cuLaunchKernel(function, at_least_one(launch->grid[0]),
                                        at_least_one(launch->grid[1]),
                                        at_least_one(launch->grid[2]), launch->threads, 1, 1,
                                        (unsigned)launch->shared, stream, arguments, NULL));
    return status == TUTTI_OK
               ? status
               : tutti__error_prefix(status, "kernel '%s' (%s)", launch->entry, launch->options);
}
