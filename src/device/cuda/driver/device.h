/* device.h: one GPU of this process, its compiled kernels, and calls of the driver that say what
 * went wrong. */
#ifndef TUTTI_CUDA_DEVICE_H
#define TUTTI_CUDA_DEVICE_H

#include <pthread.h>

#include "base/status.h"
#include "device/cuda/driver/api.h"

typedef struct tutti_cuda_loaded tutti_cuda_loaded;

typedef struct tutti_cuda_device {
    const tutti_cu_driver *cu;
    int index;
    tutti_cu_device id;
    tutti_cu_context context; /* the primary one, which libraries use too */
    char name[128];
    int capability; /* 90: 9.0 */
    int multiprocessors;
    int shared_bytes; /* most that one block may have */
    int l2_bytes;
    size_t memory;
    pthread_mutex_t lock;
    tutti_cuda_loaded *loaded; /* under the lock: cubins by source and options */
} tutti_cuda_device;

/* Opens GPU `index` and makes its context the calling thread's. */
tutti_status tutti__cuda_device_open(int index, tutti_cuda_device **ret);
/* Takes what kernels are loaded with it. NULL is accepted. */
void tutti__cuda_device_close(tutti_cuda_device *device);

/* Turns a result of the driver into a status; `call` is what was called. */
tutti_status tutti__cuda_check(const tutti_cu_driver *cu, tutti_cu_result result, const char *call);
/* TUTTI_CU(device, cuMemAlloc(&address, size)) */
#define TUTTI_CU(device_, call_) tutti__cuda_check((device_)->cu, (device_)->cu->call_, #call_)

#endif
