/* target.c: GPUs as devices: gpu:0, gpu:1, … The module with NVIDIA's side of it is loaded when one
 * is first asked for. */
#include <stdlib.h>

#include "device/cuda/module.h"
#include "device/cuda/run.h"
#include "program/trace.h"

enum { ALIGNMENT = 256 };

/* ---- executables ---- */

static void gpu_destroy(tutti_executable *executable)
{
    tutti_gpu_executable *e = (tutti_gpu_executable *)executable;
    while (e->frames) {
        tutti_gpu_frame *next = e->frames->next;
        tutti__gpu_frame_destroy(e->frames);
        e->frames = next;
    }
    if (e->constants)
        tutti__tensors_drop(e->program->constant_count, e->constants);
    tutti__program_destroy(e->program);
    pthread_mutex_destroy(&e->lock);
    free(e->constants);
    free(e->inputs);
    free(e->results);
    free(e->seconds);
    free(e);
}

static size_t gpu_memory(const tutti_executable *executable)
{
    return ((const tutti_gpu_executable *)executable)->size;
}

static void gpu_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const tutti_gpu_executable *)executable)->program, text);
}

static const tutti_executable_table gpu_table = {.enqueue = tutti__gpu_enqueue,
                                                 .destroy = gpu_destroy,
                                                 .memory = gpu_memory,
                                                 .print = gpu_print};

static size_t place(tutti_gpu_executable *e, size_t size)
{
    size_t at = e->size;
    e->size += (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    return at;
}

static void lay_out(tutti_gpu_executable *e)
{
    const tutti_program *program = e->program;
    place(e, program->arena_size);
    for (size_t v = 0; v < program->value_count; v++) {
        const tutti_program_value *value = &program->values[v];
        if (value->root == (int32_t)v && value->space == TUTTI_IN_INPUT)
            e->inputs[value->slot] = place(e, value->size);
        else if (value->root == (int32_t)v && value->space == TUTTI_IN_RESULT)
            e->results[value->slot] = place(e, value->size);
    }
    e->faults = place(e, program->commit_at * sizeof(uint64_t));
}

static tutti_status fill_executable(tutti_gpu_executable *e, tutti_device *device,
                                    const tutti_partition *partition)
{
    TUTTI_TRY(tutti__program_create(device, partition, &e->program));
    e->executable.shadows = e->program->shadows;
    e->deterministic = partition->deterministic;
    e->lane = tutti__trace_name(device->name);
    e->inputs = calloc((size_t)e->program->input_count + 1, sizeof *e->inputs);
    e->results = calloc((size_t)e->program->result_count + 1, sizeof *e->results);
    if (!e->inputs || !e->results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    lay_out(e);
    return tutti__drive_constants(e->program, &e->device->memory, &e->constants);
}

static tutti_status gpu_compile(tutti_device *device, const tutti_partition *partition,
                                tutti_executable **ret)
{
    tutti_gpu_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    e->executable.table = &gpu_table;
    e->device = device->self;
    pthread_mutex_init(&e->lock, NULL);
    tutti_status status = fill_executable(e, device, partition);
    if (status != TUTTI_OK)
        gpu_destroy(&e->executable);
    else
        *ret = &e->executable;
    return status;
}

/* ---- memory ---- */

static tutti_status memory_allocate(void *self, size_t size, void **ret)
{
    tutti_gpu_device *d = self;
    return d->table->allocate(d->gpu, size, ret);
}

static void memory_release(void *self, void *data, size_t size)
{
    tutti_gpu_device *d = self;
    TUTTI_UNUSED(size);
    d->table->release(d->gpu, data);
}

static tutti_status memory_copy_in(void *self, void *to, const void *host, size_t size)
{
    tutti_gpu_device *d = self;
    return d->table->copy_in(d->gpu, to, host, size);
}

static tutti_status memory_copy_out(void *self, void *host, const void *from, size_t size)
{
    tutti_gpu_device *d = self;
    return d->table->copy_out(d->gpu, host, from, size);
}

static tutti_status memory_copy_within(void *self, void *to, const void *from, size_t size)
{
    tutti_gpu_device *d = self;
    return d->table->copy_within(d->gpu, to, from, size);
}

/* ---- devices ---- */

static const tutti_param devices_param =
    TUTTI_PARAM("GPU_DEVICES", "1", "logical devices on each GPU, which share it");

static int per_gpu(void)
{
    enum { MOST = 64 };
    int64_t count;
    return tutti__param_in(&devices_param, 1, MOST, &count) == TUTTI_OK ? (int)count : 1;
}

/* A machine without GPUs, or without the module, has none. */
static int gpu_count(void)
{
    const tutti_cuda_module *module;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    int count = tutti__cuda_module(&module) == TUTTI_OK ? module->gpus->count() * per_gpu() : 0;
    tutti__error_restore(&before);
    return count;
}

static tutti_status gpu_open(tutti_device *device)
{
    const tutti_cuda_module *module;
    TUTTI_TRY(tutti__cuda_module(&module));
    tutti_gpu_device *self = calloc(1, sizeof *self);
    if (!self)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for device %s", device->name);
    tutti_status status = module->gpus->open(device->index / per_gpu(), &self->gpu);
    if (status != TUTTI_OK) {
        free(self);
        return status;
    }
    self->table = module->gpus;
    self->memory = (tutti_memory){.name = device->name,
                                  .allocate = memory_allocate,
                                  .release = memory_release,
                                  .copy_in = memory_copy_in,
                                  .copy_out = memory_copy_out,
                                  .copy_within = memory_copy_within,
                                  .alignment = ALIGNMENT,
                                  .self = self};
    device->memory = &self->memory;
    device->self = self;
    return TUTTI_OK;
}

static void gpu_close(tutti_device *device)
{
    tutti_gpu_device *self = device->self;
    self->table->close(self->gpu);
    free(self);
}

static tutti_status gpu_finish(tutti_device *device)
{
    tutti_gpu_device *self = device->self;
    return self->table->finish(self->gpu);
}

static const tutti_kernel *gpu_pick(const tutti_kernel_query *query)
{
    const tutti_cuda_module *module;
    return tutti__cuda_module(&module) == TUTTI_OK ? module->gpus->pick(query) : NULL;
}

const tutti_target tutti_target_gpu = {
    .name = "gpu",
    .doc = "NVIDIA's GPUs, compute capability 8.0 or higher (tutti doctor says what they need)",
    .kernels = "gpu",
    .streams = 1,
    .alignment = ALIGNMENT,
    .count = gpu_count,
    .open = gpu_open,
    .close = gpu_close,
    .finish = gpu_finish,
    .supports = tutti__without_strings,
    .pick = gpu_pick,
    .compile = gpu_compile,
};
