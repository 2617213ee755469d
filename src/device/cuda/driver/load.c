/* load.c: see load.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dladdr */
#endif
#include "device/cuda/driver/load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/driver/folders.h"

#define SYMBOL(result, name, parameters) {#name, offsetof(TABLE, name)},
#define TABLE tutti_cu_driver
static const tutti_cuda_symbol driver_symbols[] = {TUTTI_CU_FUNCTIONS(SYMBOL)};
#undef TABLE
#define TABLE tutti_nvrtc
static const tutti_cuda_symbol nvrtc_symbols[] = {TUTTI_NVRTC_FUNCTIONS(SYMBOL)};
#undef TABLE
#define TABLE tutti_blas
static const tutti_cuda_symbol blas_symbols[] = {TUTTI_BLAS_FUNCTIONS(SYMBOL)};
#undef TABLE
#define TABLE tutti_dnn
static const tutti_cuda_symbol dnn_symbols[] = {TUTTI_DNN_FUNCTIONS(SYMBOL)};
#undef TABLE

/* The driver tells where its functions are, in the form of the version that is asked for: names
 * with _v2 and so on are its own business. */
static void *find_in_driver(void *handle, const char *name)
{
    unsigned (*get)(const char *, void **, int, uint64_t, unsigned *);
    void *found = NULL;
    *(void **)(&get) = dlsym(handle, "cuGetProcAddress_v2");
    if (!get || get(name, &found, TUTTI_CU_VERSION, TUTTI_CU_PROC_DEFAULT, NULL) != 0)
        return NULL;
    return found;
}

static const int driver_versions[] = {1, 0}, toolkit_versions[] = {13, 12, 0},
                 dnn_versions[] = {9, 0};

const tutti_cuda_library tutti__cuda_library_driver = {
    .name = "NVIDIA's driver",
    .stem = "libcuda.so",
    .versions = driver_versions,
    .package = "NVIDIA's driver, 525 or newer (apt install nvidia-driver-580)",
    .of_the_system = true,
    .symbols = driver_symbols,
    .symbol_count = TUTTI_COUNT(driver_symbols),
    .find = find_in_driver,
};
const tutti_cuda_library tutti__cuda_library_nvrtc = {
    .name = "NVRTC",
    .stem = "libnvrtc.so",
    .versions = toolkit_versions,
    .package = "pip install nvidia-cuda-nvrtc, or apt install cuda-nvrtc-13-0",
    .symbols = nvrtc_symbols,
    .symbol_count = TUTTI_COUNT(nvrtc_symbols),
};
const tutti_cuda_library tutti__cuda_library_blas = {
    .name = "cuBLASLt",
    .stem = "libcublasLt.so",
    .versions = toolkit_versions,
    .package = "pip install nvidia-cublas, or apt install libcublas-13-0",
    .symbols = blas_symbols,
    .symbol_count = TUTTI_COUNT(blas_symbols),
};
const tutti_cuda_library tutti__cuda_library_dnn = {
    .name = "cuDNN",
    .stem = "libcudnn.so",
    .versions = dnn_versions,
    .package = "pip install nvidia-cudnn-cu13, or apt install cudnn9-cuda-13",
    .symbols = dnn_symbols,
    .symbol_count = TUTTI_COUNT(dnn_symbols),
};

/* Opens `file` in `folder`; `fault` keeps the linker's words about the first that is there and
 * cannot be opened. */
static void *open_in(const char *folder, const char *file, char *fault, size_t fault_size,
                     char *path, size_t path_size)
{
    if (folder[0] && !tutti__cuda_folder_holds(folder, file))
        return NULL;
    snprintf(path, path_size, "%s%s%s", folder, folder[0] ? "/" : "", file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *said = handle ? NULL : dlerror();
    if (folder[0] && !fault[0] && said)
        snprintf(fault, fault_size, "; %s", said);
    return handle;
}

static tutti_status missing(const tutti_cuda_library *library, const char *fault)
{
    char names[128] = "", where[512];
    for (const int *version = library->versions; *version; version++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s.%d",
                 version == library->versions ? "" : " or ", library->stem, *version);
    tutti__cuda_folders_say(library->of_the_system, where, sizeof where);
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s (%s) was not found in %s%s; it comes with %s, and TUTTI_CUDA names "
                      "folders to look in instead",
                      library->name, names, where, fault, library->package);
}

static tutti_status load_fill(const tutti_cuda_library *library, void *handle, const char *path,
                              void *ret_functions)
{
    for (int i = 0; i < library->symbol_count; i++) {
        const tutti_cuda_symbol *symbol = &library->symbols[i];
        void *found =
            library->find ? library->find(handle, symbol->name) : dlsym(handle, symbol->name);
        if (!found)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s at %s has no %s: it is too old; install %s",
                              library->name, path, symbol->name, library->package);
        memcpy((char *)ret_functions + symbol->offset, &found, sizeof found);
    }
    return TUTTI_OK;
}

tutti_status tutti__cuda_open(const tutti_cuda_library *library, void *ret_functions,
                              char *ret_path, size_t path_size)
{
    char file[64], fault[512] = "", path[4096] = "";
    void *handle = NULL;
    tutti_cuda_folders folders;
    TUTTI_TRY(tutti__cuda_folders(library->of_the_system, &folders));
    for (const int *version = library->versions; *version && !handle; version++) {
        snprintf(file, sizeof file, "%s.%d", library->stem, *version);
        for (size_t i = 0; i < folders.count && !handle; i++)
            handle = open_in(folders.paths[i], file, fault, sizeof fault, path, sizeof path);
    }
    tutti__cuda_folders_free(&folders);
    if (!handle)
        return missing(library, fault);
    Dl_info about;
    void *first = dlsym(handle, library->find ? "cuGetProcAddress_v2" : library->symbols[0].name);
    if (first && dladdr(first, &about) && about.dli_fname)
        snprintf(path, sizeof path, "%s", about.dli_fname);
    tutti_status status = load_fill(library, handle, path, ret_functions);
    if (status != TUTTI_OK)
        dlclose(handle);
    else
        snprintf(ret_path, path_size, "%s", path);
    return status;
}

/* What a process has opened; each is tried once. */
typedef struct opened {
    const tutti_cuda_library *library;
    void *functions;
    bool tried;
    tutti_error error;
    char path[1024];
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_cu_driver driver;
static tutti_nvrtc nvrtc;
static tutti_blas blas;
static tutti_dnn dnn;
static opened opened_driver = {&tutti__cuda_library_driver, &driver},
              opened_nvrtc = {&tutti__cuda_library_nvrtc, &nvrtc},
              opened_blas = {&tutti__cuda_library_blas, &blas},
              opened_dnn = {&tutti__cuda_library_dnn, &dnn};

static tutti_status open_once(opened *each)
{
    tutti_status status;
    pthread_mutex_lock(&lock);
    if (!each->tried) {
        each->tried = true;
        status = tutti__cuda_open(each->library, each->functions, each->path, sizeof each->path);
        tutti__error_capture(status, &each->error);
    }
    status = each->error.status;
    pthread_mutex_unlock(&lock);
    return status == TUTTI_OK ? status : tutti__error_restore(&each->error);
}

tutti_status tutti__cuda_driver(const tutti_cu_driver **ret)
{
    TUTTI_TRY(open_once(&opened_driver));
    *ret = &driver;
    return TUTTI_OK;
}

tutti_status tutti__cuda_nvrtc(const tutti_nvrtc **ret)
{
    TUTTI_TRY(open_once(&opened_nvrtc));
    *ret = &nvrtc;
    return TUTTI_OK;
}

tutti_status tutti__cuda_blas(const tutti_blas **ret)
{
    TUTTI_TRY(open_once(&opened_blas));
    *ret = &blas;
    return TUTTI_OK;
}

/* It looks for the compiler and the products by name, and finds those that are open. */
tutti_status tutti__cuda_dnn(const tutti_dnn **ret)
{
    (void)open_once(&opened_nvrtc);
    (void)open_once(&opened_blas);
    TUTTI_TRY(open_once(&opened_dnn));
    *ret = &dnn;
    return TUTTI_OK;
}

static void version_of(const opened *each, char *text, size_t size)
{
    int major = 0, minor = 0;
    size_t number = 0;
    if (each == &opened_driver && driver.cuDriverGetVersion(&major) == 0)
        snprintf(text, size, "for CUDA %d.%d", major / 1000, major % 1000 / 10);
    else if (each == &opened_nvrtc && nvrtc.nvrtcVersion(&major, &minor) == 0)
        snprintf(text, size, "%d.%d", major, minor);
    else if (each == &opened_blas && (number = blas.cublasLtGetVersion()) > 0)
        snprintf(text, size, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    else if (each == &opened_dnn && (number = dnn.cudnnGetVersion()) > 0)
        snprintf(text, size, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    else
        snprintf(text, size, "of a version it does not tell");
}

static int load_report(opened *each, tutti_text *text)
{
    char version[64];
    if (open_once(each) != TUTTI_OK) {
        tutti__text_add(text, "  %-10s%s\n", each->library->name, tutti_error_message());
        return 1;
    }
    version_of(each, version, sizeof version);
    tutti__text_add(text, "  %-10s%s (%s)\n",
                    each == &opened_driver ? "driver" : each->library->name, version, each->path);
    return 0;
}

static void report_devices(tutti_text *text)
{
    int count = 0, major = 0, minor = 0;
    tutti_cu_result result = driver.cuInit(0);
    const char *why = "no reason told";
    if (result == 0)
        result = driver.cuDeviceGetCount(&count);
    if (result != 0) {
        (void)driver.cuGetErrorString(result, &why);
        tutti__text_add(text, "  no GPU: %s (cuInit: %u)\n", why, (unsigned)result);
    }
    for (int i = 0; i < count; i++) {
        tutti_cu_device device;
        char name[128] = "";
        size_t bytes = 0;
        if (driver.cuDeviceGet(&device, i) != 0)
            continue;
        (void)driver.cuDeviceGetName(name, sizeof name, device);
        (void)driver.cuDeviceTotalMem(&bytes, device);
        (void)driver.cuDeviceGetAttribute(&major, TUTTI_CU_CAPABILITY_MAJOR, device);
        (void)driver.cuDeviceGetAttribute(&minor, TUTTI_CU_CAPABILITY_MINOR, device);
        tutti__text_add(text, "  gpu:%-6d%s, %.0f GiB, compute capability %d.%d\n", i, name,
                        (double)bytes / (1 << 30), major, minor);
    }
}

int tutti__cuda_report(tutti_text *text)
{
    if (open_once(&opened_driver) != TUTTI_OK) {
        tutti__text_add(text, "gpu         none: no NVIDIA driver (%s.1)\n",
                        tutti__cuda_library_driver.stem);
        return 0;
    }
    opened *const all[] = {&opened_driver, &opened_nvrtc, &opened_blas, &opened_dnn};
    int missing_count = 0;
    tutti__text_add(text, "gpu\n");
    for (size_t i = 0; i < TUTTI_COUNT(all); i++)
        missing_count += load_report(all[i], text);
    report_devices(text);
    return missing_count;
}
