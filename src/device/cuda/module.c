/* module.c: the module's way in; see module.h. */
#include "device/cuda/compile/load.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/gpu.h"
#include "device/cuda/host.h"

/* Found by TUTTI_CUDA_MODULE_SYMBOL. */
TUTTI_API const tutti_cuda_module *tutti_cuda_module_get(const tutti_cuda_host *host);
const tutti_cuda_module *tutti_cuda_module_get(const tutti_cuda_host *host)
{
    static const tutti_cuda_module module = {
        .version = TUTTI_CUDA_MODULE_VERSION,
        .gpus = &tutti_cuda_gpus,
        .report = tutti__cuda_report,
    };
    if (host->version != TUTTI_CUDA_MODULE_VERSION)
        return NULL;
    tutti__cuda_host_set(host);
    tutti__cuda_cache_folder(host->cache);
    return &module;
}
