/* driver.c: a driver whose GPU is this machine's CPU, for tests of everything of ours where no GPU
 * is: streams do at once what is put on them, kernels are those of compiler.c. Found as
 * libcuda.so.1 when TUTTI_CUDA names its folder. New memory is full of NaNs. TUTTI_EMULATED_MIB
 * says how much there is (1024), TUTTI_EMULATED_GPUS how many of them (1). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/driver/api.h"

enum { OUT_OF_MEMORY = 2, INVALID = 1, NOT_FOUND = 500, NOT_CAPTURING = 901, NOISE = 0xff };

typedef void launch_fn(unsigned x, unsigned y, unsigned z, unsigned threads, void **arguments);
typedef int sizes_fn(unsigned *ret_sizes);

struct tutti_cu_module_s {
    void *library;
};
struct tutti_cu_function_s {
    struct tutti_cu_function_s *next;
    launch_fn *launch;
    sizes_fn *sizes;
};

/* What a stream does, or a graph repeats. */
typedef struct action {
    struct action *next;
    tutti_cu_function function; /* NULL: a copy, or `from` 0: bytes that are set */
    unsigned grid[3], threads;
    char *arguments; /* one after the other, each at a multiple of 16 */
    tutti_cu_pointer to, from;
    unsigned char byte;
    size_t size;
} action;

struct tutti_cu_graph_s {
    action *first, *last;
};
struct tutti_cu_stream_s {
    tutti_cu_graph records; /* or NULL: it runs */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of kernels, whose state is static */
static tutti_cu_function functions;                      /* live as long as the process */

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

/* ---- memory ---- */

static struct {
    pthread_mutex_t lock;
    size_t used;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { HEAD = 256 }; /* before what is given: its size */

static tutti_cu_result allocate(tutti_cu_pointer *ret, size_t size)
{
    size_t whole = (size + HEAD - 1) / HEAD * HEAD;
    size_t most = (size_t)number_of("TUTTI_EMULATED_MIB", 1024) << 20;
    pthread_mutex_lock(&memory.lock);
    char *data = memory.used + whole <= most ? aligned_alloc(HEAD, whole + HEAD) : NULL;
    if (data)
        memory.used += whole;
    pthread_mutex_unlock(&memory.lock);
    if (!data)
        return OUT_OF_MEMORY;
    memcpy(data, &whole, sizeof whole);
    memset(data + HEAD, NOISE, whole);
    *ret = (tutti_cu_pointer)(uintptr_t)(data + HEAD);
    return 0;
}

static tutti_cu_result allocate_async(tutti_cu_pointer *ret, size_t size, tutti_cu_stream stream)
{
    (void)stream;
    return allocate(ret, size);
}

static tutti_cu_result release(tutti_cu_pointer at)
{
    size_t whole;
    char *data = (char *)(uintptr_t)at - HEAD;
    memcpy(&whole, data, sizeof whole);
    memset(data, NOISE, whole + HEAD);
    pthread_mutex_lock(&memory.lock);
    memory.used -= whole;
    pthread_mutex_unlock(&memory.lock);
    free(data);
    return 0;
}

static tutti_cu_result release_async(tutti_cu_pointer at, tutti_cu_stream stream)
{
    (void)stream;
    return release(at);
}

static tutti_cu_result memory_info(size_t *ret_free, size_t *ret_total)
{
    *ret_total = (size_t)number_of("TUTTI_EMULATED_MIB", 1024) << 20;
    *ret_free = *ret_total - memory.used;
    return 0;
}

static tutti_cu_result host_allocate(void **ret, size_t size, unsigned flags)
{
    (void)flags;
    *ret = malloc(size);
    return *ret ? 0 : OUT_OF_MEMORY;
}

static tutti_cu_result host_free(void *data)
{
    free(data);
    return 0;
}

/* ---- streams ---- */

static void do_action(const action *a)
{
    void *arguments[64];
    unsigned sizes[64];
    if (!a->function) {
        if (a->from)
            memmove((void *)(uintptr_t)a->to, (void *)(uintptr_t)a->from, a->size);
        else
            memset((void *)(uintptr_t)a->to, a->byte, a->size);
        return;
    }
    int count = a->function->sizes(sizes);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        arguments[i] = a->arguments + at;
        at += (sizes[i] + 15) / 16 * 16;
    }
    pthread_mutex_lock(&lock);
    a->function->launch(a->grid[0], a->grid[1], a->grid[2], a->threads, arguments);
    pthread_mutex_unlock(&lock);
}

static tutti_cu_result put(tutti_cu_stream stream, const action *a)
{
    if (!stream || !stream->records) {
        do_action(a);
        free(a->arguments);
        return 0;
    }
    action *kept = malloc(sizeof *kept);
    *kept = *a;
    kept->next = NULL;
    if (stream->records->last)
        stream->records->last->next = kept;
    else
        stream->records->first = kept;
    stream->records->last = kept;
    return 0;
}

static tutti_cu_result to_device(tutti_cu_pointer to, const void *from, size_t size,
                                 tutti_cu_stream stream)
{
    if (stream && stream->records)
        return NOT_CAPTURING;
    return put(stream,
               &(action){.to = to, .from = (tutti_cu_pointer)(uintptr_t)from, .size = size});
}

static tutti_cu_result to_host(void *to, tutti_cu_pointer from, size_t size, tutti_cu_stream stream)
{
    if (stream && stream->records)
        return NOT_CAPTURING;
    return put(stream,
               &(action){.to = (tutti_cu_pointer)(uintptr_t)to, .from = from, .size = size});
}

static tutti_cu_result within(tutti_cu_pointer to, tutti_cu_pointer from, size_t size,
                              tutti_cu_stream stream)
{
    return put(stream, &(action){.to = to, .from = from, .size = size});
}

static tutti_cu_result set_bytes(tutti_cu_pointer to, unsigned char byte, size_t size,
                                 tutti_cu_stream stream)
{
    return put(stream, &(action){.to = to, .byte = byte, .size = size});
}

static tutti_cu_result stream_create(tutti_cu_stream *ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : OUT_OF_MEMORY;
}

static tutti_cu_result stream_destroy(tutti_cu_stream stream)
{
    free(stream);
    return 0;
}

static tutti_cu_result stream_wait(tutti_cu_stream stream)
{
    return stream && stream->records ? NOT_CAPTURING : 0;
}

/* ---- graphs ---- */

static tutti_cu_result capture_begin(tutti_cu_stream stream, unsigned mode)
{
    (void)mode;
    if (!stream || stream->records)
        return NOT_CAPTURING;
    stream->records = calloc(1, sizeof *stream->records);
    return stream->records ? 0 : OUT_OF_MEMORY;
}

static tutti_cu_result capture_end(tutti_cu_stream stream, tutti_cu_graph *ret)
{
    *ret = stream->records;
    stream->records = NULL;
    return *ret ? 0 : NOT_CAPTURING;
}

static tutti_cu_result graph_destroy(tutti_cu_graph graph)
{
    for (action *a = graph->first, *next; a; a = next) {
        next = a->next;
        free(a->arguments);
        free(a);
    }
    free(graph);
    return 0;
}

/* The graph's actions move over. */
static tutti_cu_result graph_instantiate(tutti_cu_graph_exec *ret, tutti_cu_graph graph,
                                         unsigned long long flags)
{
    (void)flags;
    tutti_cu_graph moved = malloc(sizeof *moved);
    *moved = *graph;
    *graph = (struct tutti_cu_graph_s){0};
    *ret = (tutti_cu_graph_exec)(void *)moved;
    return 0;
}

static tutti_cu_result graph_nodes(tutti_cu_graph graph, tutti_cu_graph_node *nodes, size_t *count)
{
    (void)nodes;
    *count = 0;
    for (const action *a = graph->first; a; a = a->next)
        ++*count;
    return 0;
}

static tutti_cu_result graph_launch(tutti_cu_graph_exec exec, tutti_cu_stream stream)
{
    (void)stream;
    for (const action *a = ((tutti_cu_graph)(void *)exec)->first; a; a = a->next)
        do_action(a);
    return 0;
}

static tutti_cu_result graph_exec_destroy(tutti_cu_graph_exec exec)
{
    return graph_destroy((tutti_cu_graph)(void *)exec);
}

/* ---- kernels ---- */

/* Its text is a shared object behind its size: compiler.c. */
static tutti_cu_result module_load(tutti_cu_module *ret, const void *text)
{
    char path[] = "/tmp/tutti_emulated_XXXXXX";
    uint64_t size;
    int file = mkstemp(path);
    memcpy(&size, text, sizeof size);
    if (file < 0 || write(file, (const char *)text + sizeof size, size) != (ssize_t)size)
        return INVALID;
    close(file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (!library)
        return fprintf(stderr, "emulated: %s\n", dlerror()), INVALID;
    *ret = calloc(1, sizeof **ret);
    (*ret)->library = library;
    return 0;
}

static tutti_cu_result module_unload(tutti_cu_module module)
{
    free(module);
    return 0;
}

static tutti_cu_result module_function(tutti_cu_function *ret, tutti_cu_module module,
                                       const char *name)
{
    char symbol[160];
    snprintf(symbol, sizeof symbol, "launch_%s", name);
    launch_fn *launch;
    sizes_fn *sizes;
    *(void **)(&launch) = dlsym(module->library, symbol);
    snprintf(symbol, sizeof symbol, "sizes_%s", name);
    *(void **)(&sizes) = dlsym(module->library, symbol);
    if (!launch || !sizes)
        return NOT_FOUND;
    pthread_mutex_lock(&lock);
    tutti_cu_function f = functions;
    while (f && f->launch != launch)
        f = f->next;
    if (!f) {
        f = calloc(1, sizeof *f);
        *f = (struct tutti_cu_function_s){functions, launch, sizes};
        functions = f;
    }
    pthread_mutex_unlock(&lock);
    *ret = f;
    return 0;
}

static tutti_cu_result function_attribute(int *ret, unsigned attribute, tutti_cu_function function)
{
    (void)attribute, (void)function;
    *ret = 0;
    return 0;
}

static tutti_cu_result function_set(tutti_cu_function function, unsigned attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

static tutti_cu_result launch(tutti_cu_function function, unsigned x, unsigned y, unsigned z,
                              unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                              tutti_cu_stream stream, void **given, void **extra)
{
    (void)ty, (void)tz, (void)shared, (void)extra;
    unsigned sizes[64];
    int count = function->sizes(sizes);
    size_t size = 0, at = 0;
    for (int i = 0; i < count; i++)
        size += (sizes[i] + 15) / 16 * 16;
    action a = {.function = function, .grid = {x, y, z}, .threads = threads};
    a.arguments = aligned_alloc(16, size + 16);
    for (int i = 0; i < count; i++) {
        memcpy(a.arguments + at, given[i], sizes[i]);
        at += (sizes[i] + 15) / 16 * 16;
    }
    return put(stream, &a);
}

/* ---- events, contexts, devices ---- */

static tutti_cu_result event_create(tutti_cu_event *ret, unsigned flags)
{
    (void)flags;
    *ret = malloc(1);
    return 0;
}
static tutti_cu_result event_destroy(tutti_cu_event event)
{
    free(event);
    return 0;
}
static tutti_cu_result event_record(tutti_cu_event event, tutti_cu_stream stream)
{
    (void)event, (void)stream;
    return 0;
}
static tutti_cu_result event_wait(tutti_cu_event event)
{
    (void)event;
    return 0;
}
static tutti_cu_result event_elapsed(float *ret, tutti_cu_event from, tutti_cu_event to)
{
    (void)from, (void)to;
    *ret = 1;
    return 0;
}
static tutti_cu_result stream_wait_event(tutti_cu_stream stream, tutti_cu_event event,
                                         unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return 0;
}
static tutti_cu_result init(unsigned flags)
{
    (void)flags;
    return 0;
}
static tutti_cu_result version(int *ret)
{
    *ret = 13000;
    return 0;
}
static tutti_cu_result error_name(tutti_cu_result result, const char **ret)
{
    *ret = result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
    return 0;
}
static tutti_cu_result error_text(tutti_cu_result result, const char **ret)
{
    *ret = result == OUT_OF_MEMORY ? "out of memory" : "an error of the emulated driver";
    return 0;
}
static tutti_cu_result device_count(int *ret)
{
    *ret = number_of("TUTTI_EMULATED_GPUS", 1);
    return 0;
}
static tutti_cu_result device_get(tutti_cu_device *ret, int index)
{
    *ret = index;
    return 0;
}
static tutti_cu_result device_name(char *ret, int size, tutti_cu_device device)
{
    (void)device;
    snprintf(ret, (size_t)size, "emulated GPU");
    return 0;
}
static tutti_cu_result device_memory(size_t *ret, tutti_cu_device device)
{
    (void)device;
    *ret = (size_t)number_of("TUTTI_EMULATED_MIB", 1024) << 20;
    return 0;
}
static tutti_cu_result device_attribute(int *ret, unsigned attribute, tutti_cu_device device)
{
    (void)device;
    *ret = attribute == TUTTI_CU_CAPABILITY_MAJOR   ? 9
           : attribute == TUTTI_CU_CAPABILITY_MINOR ? 0
           : attribute == TUTTI_CU_MULTIPROCESSORS  ? 132
           : attribute == TUTTI_CU_L2_BYTES         ? 50 << 20
                                                    : 227 << 10;
    return 0;
}
static tutti_cu_result context_retain(tutti_cu_context *ret, tutti_cu_device device)
{
    *ret = (tutti_cu_context)(uintptr_t)(device + 1);
    return 0;
}
static tutti_cu_result context_release(tutti_cu_device device)
{
    (void)device;
    return 0;
}
static tutti_cu_result context_set(tutti_cu_context context)
{
    (void)context;
    return 0;
}
static tutti_cu_result pool_of(tutti_cu_pool *ret, tutti_cu_device device)
{
    (void)device;
    *ret = NULL;
    return 0;
}
static tutti_cu_result pool_set(tutti_cu_pool pool, unsigned attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return 0;
}
static tutti_cu_result pool_trim(tutti_cu_pool pool, size_t bytes)
{
    (void)pool, (void)bytes;
    return 0;
}

static const tutti_cu_driver driver = {
    .cuInit = init,
    .cuDriverGetVersion = version,
    .cuGetErrorName = error_name,
    .cuGetErrorString = error_text,
    .cuDeviceGetCount = device_count,
    .cuDeviceGet = device_get,
    .cuDeviceGetName = device_name,
    .cuDeviceTotalMem = device_memory,
    .cuDeviceGetAttribute = device_attribute,
    .cuDevicePrimaryCtxRetain = context_retain,
    .cuDevicePrimaryCtxRelease = context_release,
    .cuCtxSetCurrent = context_set,
    .cuMemGetInfo = memory_info,
    .cuMemAlloc = allocate,
    .cuMemFree = release,
    .cuMemAllocAsync = allocate_async,
    .cuMemFreeAsync = release_async,
    .cuDeviceGetDefaultMemPool = pool_of,
    .cuMemPoolSetAttribute = pool_set,
    .cuMemPoolTrimTo = pool_trim,
    .cuMemHostAlloc = host_allocate,
    .cuMemFreeHost = host_free,
    .cuMemcpyHtoDAsync = to_device,
    .cuMemcpyDtoHAsync = to_host,
    .cuMemcpyDtoDAsync = within,
    .cuMemsetD8Async = set_bytes,
    .cuStreamCreate = stream_create,
    .cuStreamDestroy = stream_destroy,
    .cuStreamSynchronize = stream_wait,
    .cuStreamWaitEvent = stream_wait_event,
    .cuStreamBeginCapture = capture_begin,
    .cuStreamEndCapture = capture_end,
    .cuEventCreate = event_create,
    .cuEventDestroy = event_destroy,
    .cuEventRecord = event_record,
    .cuEventSynchronize = event_wait,
    .cuEventElapsedTime = event_elapsed,
    .cuModuleLoadData = module_load,
    .cuModuleUnload = module_unload,
    .cuModuleGetFunction = module_function,
    .cuFuncGetAttribute = function_attribute,
    .cuFuncSetAttribute = function_set,
    .cuLaunchKernel = launch,
    .cuGraphInstantiateWithFlags = graph_instantiate,
    .cuGraphGetNodes = graph_nodes,
    .cuGraphLaunch = graph_launch,
    .cuGraphExecDestroy = graph_exec_destroy,
    .cuGraphDestroy = graph_destroy,
};

#define EMULATED __attribute__((visibility("default")))

EMULATED unsigned cuGetProcAddress_v2(const char *name, void **ret, int wanted, uint64_t flags,
                                      unsigned *ret_status);
EMULATED unsigned cuGetProcAddress_v2(const char *name, void **ret, int wanted, uint64_t flags,
                                      unsigned *ret_status)
{
    static const struct {
        const char *name;
        size_t offset;
    } all[] = {
#define EMULATED_SLOT(result, name_, parameters) {#name_, offsetof(tutti_cu_driver, name_)},
        TUTTI_CU_FUNCTIONS(EMULATED_SLOT)};
    (void)wanted, (void)flags, (void)ret_status;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            memcpy(ret, (const char *)&driver + all[i].offset, sizeof *ret);
    return *ret ? 0 : NOT_FOUND;
}
