/* target.c: GPUs as devices: gpu:0, gpu:1, … The module with NVIDIA's side of it is loaded when one
 * is first asked for. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "device/cuda/module.h"
#include "device/cuda/run.h"
#include "program/trace.h"

enum { ALIGNMENT = 256 };

/* ---- executables ---- */

/* Among the device's, whose idle runs give their memory when there is too little. */
static void join_device(tutti_gpu_executable *e)
{
    pthread_mutex_lock(&e->device->lock);
    e->next = e->device->executables;
    if (e->next)
        e->next->previous = e;
    e->device->executables = e;
    pthread_mutex_unlock(&e->device->lock);
}

static void leave_device(tutti_gpu_executable *e)
{
    pthread_mutex_lock(&e->device->lock);
    if (e->next)
        e->next->previous = e->previous;
    if (e->previous)
        e->previous->next = e->next;
    else if (e->device->executables == e)
        e->device->executables = e->next;
    pthread_mutex_unlock(&e->device->lock);
}

static void gpu_destroy(tutti_executable *executable)
{
    tutti_gpu_executable *e = (tutti_gpu_executable *)executable;
    leave_device(e);
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
    free(e->failing);
    free(e->seconds);
    free(e);
}

static size_t gpu_memory(const tutti_executable *executable)
{
    return ((const tutti_gpu_executable *)executable)->size;
}

static void gpu_usage(const tutti_executable *executable, tutti_usage *usage)
{
    tutti__program_usage(((const tutti_gpu_executable *)executable)->program, usage);
}

static void gpu_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const tutti_gpu_executable *)executable)->program, text);
}

static const tutti_executable_table gpu_table = {.enqueue = tutti__gpu_enqueue,
                                                 .destroy = gpu_destroy,
                                                 .memory = gpu_memory,
                                                 .usage = gpu_usage,
                                                 .rehearse = tutti__gpu_rehearse,
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
    e->faults = place(e, e->fault_count * sizeof(uint64_t));
}

static tutti_status find_failing(tutti_gpu_executable *e)
{
    const tutti_program *program = e->program;
    e->failing = calloc(program->checked_at + 1, sizeof *e->failing);
    if (!e->failing)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    for (size_t i = 0; i < program->checked_at; i++)
        if (tutti__may_fail_on_stream(program, i))
            e->failing[e->fault_count++] = i;
    return TUTTI_OK;
}

/* What has no kernel here runs on the host: said once for each operator. */
static void say_what_runs_on_host(const tutti_gpu_executable *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static tutti_map said;
    const uint32_t elsewhere = TUTTI_OP_CONTROL | TUTTI_OP_COLLECTIVE | TUTTI_OP_BLOCKING |
                               TUTTI_OP_HANDLE | TUTTI_OP_HOST | TUTTI_OP_DYNAMIC;
    tutti_text names = {0};
    int count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < e->program->instruction_count; i++) {
        const tutti_instruction *instruction = &e->program->instructions[i];
        const char *name = instruction->node->op->name;
        if (!instruction->host || (instruction->node->op->flags & elsewhere))
            continue;
        count++;
        if (!tutti__map_get(&said, name) && tutti__map_set(&said, name, &said) == TUTTI_OK)
            tutti__text_add(&names, "%s%s", names.size ? ", " : "", name);
    }
    pthread_mutex_unlock(&lock);
    if (names.size > 0)
        tutti__log(TUTTI_LOG_WARNING,
                   "%s: %d of %zu instructions of a program run on the host, for want of a kernel: "
                   "%s",
                   e->program->device->name, count, e->program->instruction_count, names.data);
    tutti__text_free(&names);
}

static tutti_status fill_executable(tutti_gpu_executable *e, tutti_device *device,
                                    const tutti_partition *partition)
{
    TUTTI_TRY(tutti__program_create(device, partition, &e->program));
    e->executable.shadows = e->program->shadows;
    e->deterministic = partition->deterministic;
    char lane[96];
    snprintf(lane, sizeof lane, "%s stream", device->name);
    e->lane = tutti__trace_name(lane);
    e->inputs = calloc((size_t)e->program->input_count + 1, sizeof *e->inputs);
    e->results = calloc((size_t)e->program->result_count + 1, sizeof *e->results);
    if (!e->inputs || !e->results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    TUTTI_TRY(find_failing(e));
    lay_out(e);
    say_what_runs_on_host(e);
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
    join_device(e);
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
    return tutti__gpu_allocate(self, size, ret);
}

static void memory_release(void *self, void *data, size_t size)
{
    tutti_gpu_device *d = self;
    d->table->release(d->gpu, data, size);
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

/* A machine without GPUs, or without the module, has none. */
static int gpu_count(void)
{
    const tutti_cuda_module *module;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    int count = tutti__cuda_module(&module) == TUTTI_OK ? module->gpus->count() : 0;
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
    tutti_status status = module->gpus->open(device->index, &self->gpu);
    if (status != TUTTI_OK) {
        free(self);
        return status;
    }
    pthread_mutex_init(&self->lock, NULL);
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
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void gpu_limit(tutti_device *device, size_t bytes)
{
    tutti_gpu_device *self = device->self;
    self->table->limit(self->gpu, bytes);
}

static tutti_status gpu_finish(tutti_device *device)
{
    tutti_gpu_device *self = device->self;
    return self->table->finish(self->gpu);
}

static const tutti_kernel *gpu_pick(const tutti_kernel_query *query)
{
    const tutti_cuda_module *module;
    if (tutti__cuda_module(&module) != TUTTI_OK)
        return NULL;
    const tutti_kernel *kernel = module->gpus->pick(query);
    return kernel ? kernel : tutti__kernel_pick("gpu", query);
}

const tutti_target tutti_target_gpu = {
    .name = "gpu",
    .doc = "NVIDIA's GPUs, compute capability 8.0 or higher (tutti doctor says what they need)",
    .kernels = "gpu",
    .streams = 1,
    .alignment = ALIGNMENT,
    .parts = true,
    .count = gpu_count,
    .open = gpu_open,
    .close = gpu_close,
    .finish = gpu_finish,
    .limit = gpu_limit,
    .supports = tutti__without_strings,
    .pick = gpu_pick,
    .compile = gpu_compile,
};
