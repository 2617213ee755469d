/* device.c: see device.h. */
#include "device/cuda/driver/device.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/compile/load.h"
#include "device/cuda/driver/load.h"

tutti_status tutti__cuda_check(const tutti_cu_driver *cu, tutti_cu_result result, const char *call)
{
    const char *name = "?", *text = "no words for it";
    if (result == 0)
        return TUTTI_OK;
    (void)cu->cuGetErrorName(result, &name);
    (void)cu->cuGetErrorString(result, &text);
    return tutti_fail(result == TUTTI_CU_OUT_OF_MEMORY ? TUTTI_NO_MEMORY : TUTTI_INTERNAL,
                      "%.*s: %s (%s)", (int)strcspn(call, "("), call, text, name);
}

static tutti_status read_attributes(tutti_cuda_device *device)
{
    int major, minor;
    const struct {
        unsigned attribute;
        int *value;
    } wanted[] = {{TUTTI_CU_CAPABILITY_MAJOR, &major},
                  {TUTTI_CU_CAPABILITY_MINOR, &minor},
                  {TUTTI_CU_MULTIPROCESSORS, &device->multiprocessors},
                  {TUTTI_CU_L2_BYTES, &device->l2_bytes},
                  {TUTTI_CU_SHARED_BYTES, &device->shared_bytes}};
    for (size_t i = 0; i < TUTTI_COUNT(wanted); i++)
        TUTTI_TRY(TUTTI_CU(device,
                           cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device->id)));
    device->capability = 10 * major + minor;
    TUTTI_TRY(TUTTI_CU(device, cuDeviceGetName(device->name, sizeof device->name, device->id)));
    return TUTTI_CU(device, cuDeviceTotalMem(&device->memory, device->id));
}

static tutti_status open_device(tutti_cuda_device *device)
{
    int count = 0;
    TUTTI_TRY(TUTTI_CU(device, cuInit(0)));
    TUTTI_TRY(TUTTI_CU(device, cuDeviceGetCount(&count)));
    if (device->index < 0 || device->index >= count)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "gpu:%d: this machine has %d", device->index, count);
    TUTTI_TRY(TUTTI_CU(device, cuDeviceGet(&device->id, device->index)));
    TUTTI_TRY(read_attributes(device));
    if (device->capability < 80)
        return tutti_fail(
            TUTTI_UNSUPPORTED, "gpu:%d (%s) has compute capability %d.%d, needs 8.0 or higher",
            device->index, device->name, device->capability / 10, device->capability % 10);
    TUTTI_TRY(TUTTI_CU(device, cuDevicePrimaryCtxRetain(&device->context, device->id)));
    return TUTTI_CU(device, cuCtxSetCurrent(device->context));
}

tutti_status tutti__cuda_device_open(int index, tutti_cuda_device **ret)
{
    const tutti_cu_driver *cu;
    TUTTI_TRY(tutti__cuda_driver(&cu));
    tutti_cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a device");
    device->cu = cu;
    device->index = index;
    pthread_mutex_init(&device->lock, NULL);
    tutti_status status = open_device(device);
    if (status == TUTTI_OK)
        *ret = device;
    else
        tutti__cuda_device_close(device);
    return status;
}

void tutti__cuda_device_close(tutti_cuda_device *device)
{
    if (!device)
        return;
    tutti__cuda_unload(device);
    if (device->context)
        (void)device->cu->cuDevicePrimaryCtxRelease(device->id);
    pthread_mutex_destroy(&device->lock);
    free(device);
}
