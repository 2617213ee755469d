/* load.h: compiled kernels on a device, and starting them. */
#ifndef TUTTI_CUDA_COMPILE_LOAD_H
#define TUTTI_CUDA_COMPILE_LOAD_H

#include "device/cuda/compile/source.h"
#include "device/cuda/driver/device.h"

/* The kernel `entry` of a text in the variant that `options` make: compiled or taken from the
 * cache, loaded, remembered by the device. `shared` is the most bytes of dynamic shared memory it
 * will be started with. Threads may call this at once. */
tutti_status tutti__cuda_function(tutti_cuda_device *device, const char *name, const char *text,
                                  const char *options, const char *entry, int shared,
                                  tutti_cu_function *ret);
void tutti__cuda_unload(tutti_cuda_device *device);

/* How much a kernel takes of a multiprocessor: registers of a thread, bytes of spilled memory. */
tutti_status tutti__cuda_usage(tutti_cuda_device *device, tutti_cu_function function,
                               int *ret_registers, int *ret_local);

typedef struct tutti_cuda_launch {
    const tutti_cuda_source *source;
    const char *options, *entry;
    unsigned grid[3], threads; /* 0 counts as 1 */
    int shared;                /* bytes of dynamic shared memory */
} tutti_cuda_launch;

/* Starts a kernel on a stream; arguments are pointers to the values. */
tutti_status tutti__cuda_launch_on(tutti_cuda_device *device, tutti_cu_stream stream,
                                   const tutti_cuda_launch *launch, void **arguments);
#define TUTTI_CUDA_LAUNCH(device, stream, launch, ...)                                             \
    tutti__cuda_launch_on(device, stream, launch, (void *[]){__VA_ARGS__})

/* Where compiled kernels are kept, or NULL. Set once, before the first is asked for. */
void tutti__cuda_cache_folder(const char *folder);
const char *tutti__cuda_cache(void); /* "": none */

#endif
