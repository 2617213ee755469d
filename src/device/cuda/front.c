/* front.c: the library's side of the module, see module.h. */
#include <dlfcn.h>
#include <pthread.h>

#include "base/module.h"
#include "device/cuda/module.h"
#include "program/tune.h"

static tutti_status fail(tutti_status status, const char *message)
{
    return (tutti_fail)(status, "%s", message);
}

static const tutti_cuda_module *front_find(void)
{
    static tutti_cuda_host host = {
        .version = TUTTI_CUDA_MODULE_VERSION,
        .fail = fail,
        .error_message = tutti_error_message,
        .error_capture = tutti__error_capture,
        .error_restore = tutti__error_restore,
        .world = tutti__world,
        .param_text = tutti__param_text,
        .text_bytes = tutti__text_bytes,
        .text_free = tutti__text_free,
        .attr_find = tutti_attr_find,
        .dtype_name = tutti_dtype_name,
        .dtype_size = tutti_dtype_size,
        .tensor_get = tutti_tensor_get,
        .tensor_get_int = tutti_tensor_get_int,
        .view_set = tutti_view_set,
        .hash_bytes = tutti__hash_bytes,
    };
    void *library = tutti__module_open("src/device/cuda/", TUTTI_CUDA_MODULE_FILE);
    const tutti_cuda_module *(*get)(const tutti_cuda_host *) = NULL;
    if (library)
        *(void **)(&get) = dlsym(library, TUTTI_CUDA_MODULE_SYMBOL);
    if (!get)
        return NULL;
    host.cache = tutti__tune_folder();
    const tutti_cuda_module *found = get(&host);
    return found && found->version == TUTTI_CUDA_MODULE_VERSION ? found : NULL;
}

tutti_status tutti__cuda_module(const tutti_cuda_module **ret)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const tutti_cuda_module *found;
    pthread_mutex_lock(&lock);
    if (!found)
        found = front_find();
    pthread_mutex_unlock(&lock);
    if (!found)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "a GPU needs the module " TUTTI_CUDA_MODULE_FILE
                          ", which is installed in lib/tutti beside the library; TUTTI_MODULES "
                          "names another folder to look in");
    *ret = found;
    return TUTTI_OK;
}
