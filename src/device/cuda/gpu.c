/* gpu.c: see gpu.h. */
#include "device/cuda/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "device/cuda/blas/product.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/operators/dnn.h"
#include "device/cuda/operators/operator.h"
#include "device/cuda/peaks.h"
#include "device/cuda/staging.h"

struct tutti_cuda_gpu {
    tutti_cuda_stream on;
    tutti_cuda_products *products; /* NULL: cuBLASLt is not installed */
    const tutti_cuda_dnn *dnn;     /* NULL: cuDNN is not */
    tutti_cuda_staging *staging;
    tutti_cu_stream recorder; /* on which a recording is made, beside what runs */
    pthread_mutex_t lock,
        recording;              /* of launches: libraries' handles serve one thread at a time */
    _Atomic size_t used, limit; /* bytes; limit 0: none */
};

/* On which the calling thread records, or NULL. */
static _Thread_local const tutti_cuda_gpu *records;

static tutti_cuda_stream stream_of(const tutti_cuda_gpu *gpu)
{
    return records == gpu ? (tutti_cuda_stream){gpu->on.device, gpu->recorder} : gpu->on;
}

#define GPU(gpu_, call_) TUTTI_CU((gpu_)->on.device, call_)

static tutti_cu_pointer address(const void *data)
{
    return (tutti_cu_pointer)(uintptr_t)data;
}

/* A context is current in a thread, and there may be several GPUs. */
static tutti_status enter(const tutti_cuda_gpu *gpu)
{
    static _Thread_local tutti_cu_context current;
    if (current == gpu->on.device->context)
        return TUTTI_OK;
    TUTTI_TRY(GPU(gpu, cuCtxSetCurrent(gpu->on.device->context)));
    current = gpu->on.device->context;
    return TUTTI_OK;
}

static int gpu_count(void)
{
    const tutti_cu_driver *cu;
    tutti_error before;
    int count = 0;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti__cuda_driver(&cu) != TUTTI_OK || cu->cuInit(0) != 0 ||
        cu->cuDeviceGetCount(&count) != 0)
        count = 0;
    tutti__error_restore(&before);
    return count;
}

static void gpu_close(tutti_cuda_gpu *gpu)
{
    tutti__cuda_dnn_close(gpu->dnn);
    tutti__cuda_products_close(gpu->products);
    tutti__cuda_staging_close(gpu->staging);
    if (gpu->recorder)
        (void)gpu->on.device->cu->cuStreamDestroy(gpu->recorder);
    if (gpu->on.stream)
        (void)gpu->on.device->cu->cuStreamDestroy(gpu->on.stream);
    tutti__cuda_device_close(gpu->on.device);
    pthread_mutex_destroy(&gpu->recording);
    pthread_mutex_destroy(&gpu->lock);
    free(gpu);
}

/* Memory that is let go stays in the pool. */
static tutti_status keep_pool(const tutti_cuda_gpu *gpu)
{
    tutti_cu_pool pool;
    uint64_t all = UINT64_MAX;
    TUTTI_TRY(GPU(gpu, cuDeviceGetDefaultMemPool(&pool, gpu->on.device->id)));
    return GPU(gpu, cuMemPoolSetAttribute(pool, TUTTI_CU_POOL_KEEPS, &all));
}

/* What is not installed is done without. */
static void open_libraries(tutti_cuda_gpu *gpu)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti__cuda_products_open(gpu->on.device, &gpu->products) != TUTTI_OK)
        gpu->products = NULL;
    if (tutti__cuda_dnn_open(gpu->on.device, &gpu->dnn) != TUTTI_OK)
        gpu->dnn = NULL;
    tutti__error_restore(&before);
}

static tutti_status gpu_open(int index, tutti_cuda_gpu **ret)
{
    tutti_cuda_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a device");
    pthread_mutex_init(&gpu->lock, NULL);
    pthread_mutex_init(&gpu->recording, NULL);
    tutti_status status = tutti__cuda_device_open(index, &gpu->on.device);
    if (status == TUTTI_OK)
        status = GPU(gpu, cuStreamCreate(&gpu->on.stream, TUTTI_CU_NON_BLOCKING));
    if (status == TUTTI_OK)
        status = GPU(gpu, cuStreamCreate(&gpu->recorder, TUTTI_CU_NON_BLOCKING));
    if (status == TUTTI_OK)
        status = keep_pool(gpu);
    if (status == TUTTI_OK)
        status = tutti__cuda_staging_open(gpu->on, &gpu->staging);
    if (status == TUTTI_OK)
        open_libraries(gpu);
    if (status == TUTTI_OK)
        *ret = gpu;
    else
        gpu_close(gpu);
    return status;
}

static tutti_status within_limit(tutti_cuda_gpu *gpu, size_t size)
{
    size_t limit = atomic_load(&gpu->limit), used = atomic_load(&gpu->used);
    if (limit == 0 || used + size + tutti__cuda_staging_bytes(gpu->staging) <= limit)
        return TUTTI_OK;
    tutti__cuda_staging_shrink(gpu->staging);
    if (used + size <= limit)
        return TUTTI_OK;
    return tutti_fail(TUTTI_NO_MEMORY, "%.1f MiB more than the %.1f MiB in use are over its limit",
                      (double)size / (1 << 20), (double)used / (1 << 20));
}

/* What is let go in the order of streams is there when they are done. */
static tutti_status from_pool(tutti_cuda_gpu *gpu, size_t size, tutti_cu_pointer *ret)
{
    tutti_cu_pool pool;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = GPU(gpu, cuMemAllocAsync(ret, size, gpu->on.stream));
    if (status != TUTTI_NO_MEMORY)
        return status;
    tutti__error_restore(&before);
    tutti__cuda_staging_shrink(gpu->staging);
    TUTTI_TRY(GPU(gpu, cuStreamSynchronize(gpu->on.stream)));
    TUTTI_TRY(GPU(gpu, cuDeviceGetDefaultMemPool(&pool, gpu->on.device->id)));
    TUTTI_TRY(GPU(gpu, cuMemPoolTrimTo(pool, 0)));
    return GPU(gpu, cuMemAllocAsync(ret, size, gpu->on.stream));
}

static tutti_status gpu_allocate(tutti_cuda_gpu *gpu, size_t size, void **ret)
{
    tutti_cu_pointer at;
    TUTTI_TRY(enter(gpu));
    TUTTI_TRY(within_limit(gpu, size));
    TUTTI_TRY(from_pool(gpu, size ? size : 1, &at));
    atomic_fetch_add(&gpu->used, size);
    *ret = (void *)(uintptr_t)at;
    return TUTTI_OK;
}

static void gpu_release(tutti_cuda_gpu *gpu, void *data, size_t size)
{
    if (enter(gpu) == TUTTI_OK)
        (void)gpu->on.device->cu->cuMemFreeAsync(address(data), gpu->on.stream);
    atomic_fetch_sub(&gpu->used, size);
}

static void gpu_limit(tutti_cuda_gpu *gpu, size_t bytes)
{
    enum { SHARE = 8 }; /* of the limit, for what waits to be taken in */
    atomic_store(&gpu->limit, bytes);
    tutti__cuda_staging_limit(gpu->staging, bytes ? bytes / SHARE : SIZE_MAX);
}

static tutti_status gpu_copy_in(tutti_cuda_gpu *gpu, void *to, const void *host, size_t size)
{
    if (size == 0)
        return TUTTI_OK;
    TUTTI_TRY(enter(gpu));
    return tutti__cuda_stage_in(gpu->staging, address(to), host, size);
}

static size_t gpu_used(tutti_cuda_gpu *gpu)
{
    return atomic_load(&gpu->used);
}

static tutti_status gpu_finish(tutti_cuda_gpu *gpu)
{
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuStreamSynchronize(gpu->on.stream));
}

static tutti_status gpu_copy_out(tutti_cuda_gpu *gpu, void *host, const void *from, size_t size)
{
    TUTTI_TRY(enter(gpu));
    return size > 0 ? tutti__cuda_stage_out(gpu->staging, host, address(from), size)
                    : gpu_finish(gpu);
}

static tutti_status gpu_copy_within(tutti_cuda_gpu *gpu, void *to, const void *from, size_t size)
{
    if (size == 0)
        return TUTTI_OK;
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuMemcpyDtoDAsync(address(to), address(from), size, stream_of(gpu).stream));
}

static tutti_status gpu_host_allocate(tutti_cuda_gpu *gpu, size_t size, void **ret)
{
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuMemHostAlloc(ret, size ? size : 1, 0));
}

static void gpu_host_release(tutti_cuda_gpu *gpu, void *data)
{
    if (data && enter(gpu) == TUTTI_OK)
        (void)gpu->on.device->cu->cuMemFreeHost(data);
}

static tutti_status gpu_copy_out_later(tutti_cuda_gpu *gpu, void *host, const void *from,
                                       size_t size)
{
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuMemcpyDtoHAsync(host, address(from), size, gpu->on.stream));
}

static tutti_status gpu_fill(tutti_cuda_gpu *gpu, void *at, unsigned char byte, size_t size)
{
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuMemsetD8Async(address(at), byte, size, stream_of(gpu).stream));
}

/* ---- events ---- */

typedef struct mark {
    tutti_cuda_gpu *gpu;
    tutti_cu_event event;
} mark;

static void gpu_forget(void *event)
{
    mark *m = event;
    if (!m)
        return;
    if (m->event && enter(m->gpu) == TUTTI_OK)
        (void)m->gpu->on.device->cu->cuEventDestroy(m->event);
    free(m);
}

static tutti_status make_mark(tutti_cuda_gpu *gpu, unsigned flags, mark **ret)
{
    mark *m = calloc(1, sizeof *m);
    if (!m)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an event");
    m->gpu = gpu;
    tutti_status status = GPU(gpu, cuEventCreate(&m->event, flags));
    if (status == TUTTI_OK)
        *ret = m;
    else
        gpu_forget(m);
    return status;
}

static tutti_status record_mark(tutti_cuda_gpu *gpu, unsigned flags, void **event)
{
    mark *m = *event;
    TUTTI_TRY(enter(gpu));
    if (!m)
        TUTTI_TRY(make_mark(gpu, flags, &m));
    *event = m;
    return GPU(gpu, cuEventRecord(m->event, gpu->on.stream));
}

static tutti_status gpu_record(tutti_cuda_gpu *gpu, void **event)
{
    return record_mark(gpu, TUTTI_CU_EVENT_NO_TIME, event);
}

static tutti_status gpu_mark(tutti_cuda_gpu *gpu, void **event)
{
    return record_mark(gpu, 0, event);
}

static tutti_status gpu_between(void *from, void *to, double *ret_seconds)
{
    const mark *a = from, *b = to;
    float milliseconds;
    TUTTI_TRY(enter(a->gpu));
    TUTTI_TRY(GPU(a->gpu, cuEventElapsedTime(&milliseconds, a->event, b->event)));
    *ret_seconds = (double)milliseconds * 1e-3;
    return TUTTI_OK;
}

static tutti_status gpu_hold(tutti_cuda_gpu *gpu, double seconds)
{
    TUTTI_TRY(enter(gpu));
    return tutti__cuda_hold(gpu->on, seconds);
}

static tutti_status gpu_peaks(tutti_cuda_gpu *gpu, double ret[3])
{
    TUTTI_TRY(enter(gpu));
    pthread_mutex_lock(&gpu->lock);
    tutti_status status = tutti__cuda_peaks(gpu->on, gpu->products, ret);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

static tutti_status gpu_await(tutti_cuda_gpu *gpu, void *event)
{
    mark *m = event;
    TUTTI_TRY(enter(gpu ? gpu : m->gpu));
    return gpu ? GPU(gpu, cuStreamWaitEvent(gpu->on.stream, m->event, 0))
               : GPU(m->gpu, cuEventSynchronize(m->event));
}

/* ---- recordings: CUDA graphs ---- */

static tutti_status gpu_record_begin(tutti_cuda_gpu *gpu)
{
    TUTTI_TRY(enter(gpu));
    pthread_mutex_lock(&gpu->recording);
    tutti_status status = GPU(gpu, cuStreamBeginCapture(gpu->recorder, TUTTI_CU_CAPTURE_THREAD));
    if (status == TUTTI_OK)
        records = gpu;
    else
        pthread_mutex_unlock(&gpu->recording);
    return status;
}

static tutti_status gpu_record_end(tutti_cuda_gpu *gpu, void **ret_recording, size_t *ret_launches)
{
    tutti_cu_graph graph = NULL;
    tutti_cu_graph_exec exec = NULL;
    records = NULL;
    *ret_launches = 0;
    tutti_status status = GPU(gpu, cuStreamEndCapture(gpu->recorder, &graph));
    if (status == TUTTI_OK)
        status = GPU(gpu, cuGraphInstantiateWithFlags(&exec, graph, 0));
    pthread_mutex_unlock(&gpu->recording);
    if (graph)
        (void)gpu->on.device->cu->cuGraphGetNodes(graph, NULL, ret_launches);
    if (graph)
        (void)gpu->on.device->cu->cuGraphDestroy(graph);
    *ret_recording = exec;
    return status;
}

static tutti_status gpu_replay(tutti_cuda_gpu *gpu, void *recording)
{
    TUTTI_TRY(enter(gpu));
    return GPU(gpu, cuGraphLaunch(recording, gpu->on.stream));
}

static void gpu_forget_recording(tutti_cuda_gpu *gpu, void *recording)
{
    if (recording && enter(gpu) == TUTTI_OK)
        (void)gpu->on.device->cu->cuGraphExecDestroy(recording);
}

/* ---- kernels ---- */

static tutti_cuda_entry *entries;
static pthread_once_t entries_made = PTHREAD_ONCE_INIT;

static tutti_status not_called(const tutti_kernel_call *call)
{
    return tutti_fail(TUTTI_INTERNAL, "'%s' is launched, not called", call->name);
}

static void make_entries(void)
{
    const tutti_cuda_kernel *const *kernels = tutti__cuda_kernels();
    size_t count = 0;
    while (kernels[count])
        count++;
    entries = calloc(count + 1, sizeof *entries);
    for (size_t i = 0; entries && i < count; i++)
        entries[i] = (tutti_cuda_entry){
            .own = kernels[i],
            .kernel = {.name = kernels[i]->name,
                       .version = kernels[i]->version,
                       .op = kernels[i]->op,
                       .target = "gpu",
                       .isa = "base",
                       .flags = (kernels[i]->each ? TUTTI_KERNEL_INPLACE_EACH : 0u) |
                                (kernels[i]->turned ? TUTTI_KERNEL_TURNED : 0u),
                       .inplace = kernels[i]->inplace,
                       .score = kernels[i]->score,
                       .workspace = kernels[i]->workspace,
                       .prepare = kernels[i]->prepare,
                       .discard = kernels[i]->discard,
                       .run = not_called}};
}

static const tutti_kernel *gpu_pick(const tutti_kernel_query *query)
{
    const tutti_cuda_kernel *best = tutti__cuda_kernel_pick(query);
    pthread_once(&entries_made, make_entries);
    for (const tutti_cuda_entry *entry = entries; best && entry && entry->own; entry++)
        if (entry->own == best)
            return &entry->kernel;
    return NULL;
}

static const tutti_param tf32_param = TUTTI_PARAM(
    "TF32", "0", "f32 products and convolutions on a GPU may round their factors to TF32");

static bool takes_tf32(bool deterministic)
{
    return !deterministic && strcmp(tutti__param_text(&tf32_param), "1") == 0;
}

static const tutti_cuda_kernel *own_of(const tutti_kernel *kernel)
{
    return ((const tutti_cuda_entry *)(const void *)kernel)->own;
}

static tutti_status gpu_launch(tutti_cuda_gpu *gpu, const tutti_kernel *kernel,
                               const tutti_kernel_call *call, void *fault, bool deterministic)
{
    const tutti_cuda_kernel *own = own_of(kernel);
    tutti_cuda_call c = {.on = stream_of(gpu),
                         .call = call,
                         .fault = address(fault),
                         .products = gpu->products,
                         .dnn = gpu->dnn,
                         .deterministic = deterministic,
                         .tf32 = takes_tf32(deterministic)};
    TUTTI_TRY(enter(gpu));
    pthread_mutex_lock(&gpu->lock);
    tutti_status status = own->run(&c);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

static bool gpu_joins(const tutti_kernel *kernel, const tutti_kernel_call *first,
                      const tutti_kernel_call *other)
{
    const tutti_cuda_kernel *own = own_of(kernel);
    tutti_cuda_call a = {.call = first}, b = {.call = other};
    return own->joins && own->joins(&a, &b);
}

static tutti_status gpu_launch_joined(tutti_cuda_gpu *gpu, const tutti_kernel *kernel, int count,
                                      const tutti_kernel_call *const *calls, bool deterministic)
{
    tutti_cuda_call *all = calloc((size_t)count, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a launch");
    for (int i = 0; i < count; i++)
        all[i] = (tutti_cuda_call){.on = stream_of(gpu),
                                   .call = calls[i],
                                   .products = gpu->products,
                                   .dnn = gpu->dnn,
                                   .deterministic = deterministic,
                                   .tf32 = takes_tf32(deterministic)};
    tutti_status status = enter(gpu);
    pthread_mutex_lock(&gpu->lock);
    if (status == TUTTI_OK)
        status = own_of(kernel)->run_many(all, count);
    pthread_mutex_unlock(&gpu->lock);
    free(all);
    return status;
}

const tutti_cuda_gpu_table tutti_cuda_gpus = {.count = gpu_count,
                                              .open = gpu_open,
                                              .close = gpu_close,
                                              .allocate = gpu_allocate,
                                              .release = gpu_release,
                                              .limit = gpu_limit,
                                              .used = gpu_used,
                                              .copy_in = gpu_copy_in,
                                              .copy_out = gpu_copy_out,
                                              .copy_within = gpu_copy_within,
                                              .fill = gpu_fill,
                                              .host_allocate = gpu_host_allocate,
                                              .host_release = gpu_host_release,
                                              .copy_out_later = gpu_copy_out_later,
                                              .finish = gpu_finish,
                                              .record = gpu_record,
                                              .mark = gpu_mark,
                                              .between = gpu_between,
                                              .hold = gpu_hold,
                                              .peaks = gpu_peaks,
                                              .await = gpu_await,
                                              .forget = gpu_forget,
                                              .record_begin = gpu_record_begin,
                                              .record_end = gpu_record_end,
                                              .replay = gpu_replay,
                                              .forget_recording = gpu_forget_recording,
                                              .pick = gpu_pick,
                                              .launch = gpu_launch,
                                              .joins = gpu_joins,
                                              .launch_joined = gpu_launch_joined};
