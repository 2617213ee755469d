/* target.c: far devices: CPU kernels behind a memory that host code cannot touch, on asynchronous
 * streams with random delays. For tests: a real accelerator must need only its own folder.
 *
 * A run copies its inputs into the device's memory, launches everything up to the commit point, waits,
 * copies results out, launches the commit, waits, and copies the rest out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "device/far/frame.h"
#include "program/trace.h"

static const tutti_param seed_param = TUTTI_PARAM("FAR_SEED", "0", "seed of the delays on far devices");
static const tutti_param delay_param =
    TUTTI_PARAM("FAR_DELAY_US", "50", "longest delay before an instruction on far devices, in microseconds");

/* ---- a run ---- */

static tutti_status lease(tutti_far_executable *e, tutti_far_frame **ret)
{
    pthread_mutex_lock(&e->lock);
    tutti_far_frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return tutti__far_frame_create(e, ret);
    *ret = f;
    return TUTTI_OK;
}

static void give_back(tutti_far_executable *e, tutti_far_frame *f)
{
    pthread_mutex_lock(&e->lock);
    f->next = e->frames;
    e->frames = f;
    pthread_mutex_unlock(&e->lock);
}

static void reset(tutti_far_frame *f, tutti_run *run)
{
    f->run = f->context.run = run;
    f->seed = (uint64_t)tutti__param_int(&seed_param);
    f->delay_ns = tutti__param_int(&delay_param) * 1000;
    f->committing = f->failed = f->told = false;
    f->running = 0;
    memset(f->now, 0, sizeof f->now);
    memset(f->done, 0, f->executable->program->instruction_count * sizeof *f->done);
}

static tutti_status see_variable(tutti_far_frame *f, int v, const tutti_tensor *value, bool writable)
{
    const tutti_far_region *region;
    size_t offset;
    f->variables[v] = (tutti_far_variable){0};
    if (!value)
        return TUTTI_OK;
    void *device = tutti_tensor_data(value);
    TUTTI_TRY(tutti__far_find(f->executable->device->memory, device, 0, &region, &offset));
    f->variables[v] = (tutti_far_variable){
        .device = device, .read = region->read + offset, .write = writable ? region->write + offset : NULL};
    return TUTTI_OK;
}

static tutti_status copy_inputs(tutti_far_frame *f, tutti_tensor *const *inputs)
{
    const tutti_program *program = f->executable->program;
    const tutti_memory *memory = &f->executable->device->memory->memory;
    for (size_t v = 0; v < program->value_count; v++) {
        const tutti_program_value *value = &program->values[v];
        size_t offset;
        if (value->space == TUTTI_IN_INPUT && value->root == (int32_t)v && inputs[value->slot] &&
            tutti__far_layout_offset(&f->executable->layout, value, &offset))
            TUTTI_TRY(memory->copy_in(memory->self, f->memory->device + offset, tutti_tensor_data(inputs[value->slot]),
                                      value->size));
    }
    return TUTTI_OK;
}

static tutti_status bind(tutti_far_frame *f, tutti_tensor *const *inputs)
{
    const tutti_program *program = f->executable->program;
    TUTTI_TRY(tutti__program_snapshot(program, f->run->state, f->snapshots));
    for (int v = 0; v < program->variable_count; v++)
        TUTTI_TRY(see_variable(f, v, f->snapshots[v], false));
    return copy_inputs(f, inputs);
}

static void launch(tutti_far_frame *f, size_t from, size_t to)
{
    pthread_mutex_lock(&f->lock);
    f->running += to - from;
    pthread_mutex_unlock(&f->lock);
    for (size_t i = from; i < to; i++)
        tutti__far_streams_launch(f->streams, f->executable->program->instructions[i].stream);
}

/* Past the deadline the kernels that still run are waited for without one: their memory must not go
 * while they use it, and those that block have the same deadline. */
static tutti_status finish(tutti_far_frame *f)
{
    pthread_mutex_lock(&f->lock);
    bool in_time = true;
    while (f->running > 0 && in_time)
        in_time = tutti__far_wait(f);
    size_t left = f->running;
    pthread_mutex_unlock(&f->lock);
    if (left > 0)
        tutti__far_fail(f, tutti_fail(TUTTI_DEADLINE, "%s: %zu instructions had not finished at the deadline",
                                      f->context.device->name, left));
    pthread_mutex_lock(&f->lock);
    while (f->running > 0)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return f->failed ? tutti__error_restore(&f->error) : TUTTI_OK;
}

/* Inputs and constants are still on the host; everything else is copied out. */
static tutti_status copy_value(tutti_far_frame *f, const tutti_program_value *value, tutti_tensor *const *inputs, tutti_tensor *to)
{
    const tutti_memory *memory = &f->executable->device->memory->memory;
    size_t offset;
    if (value->space == TUTTI_IN_INPUT || value->space == TUTTI_IN_CONSTANT) {
        const tutti_tensor *from =
            value->space == TUTTI_IN_INPUT ? inputs[value->slot] : f->executable->program->constants[value->slot];
        if (value->size > 0)
            memcpy(tutti_tensor_data(to), tutti_tensor_data(from), value->size);
        return tutti__tensor_own_strings(to);
    }
    if (value->space == TUTTI_IN_VARIABLE)
        return memory->copy_out(memory->self, tutti_tensor_data(to), f->variables[value->slot].device, value->size);
    if (!tutti__far_layout_offset(&f->executable->layout, value, &offset))
        return tutti_fail(TUTTI_INTERNAL, "%s: a result lies in no memory of the run", f->context.device->name);
    return memory->copy_out(memory->self, tutti_tensor_data(to), f->memory->device + offset, value->size);
}

static tutti_status copy_results(tutti_far_frame *f, bool after_commit, tutti_tensor *const *inputs, tutti_tensor **results)
{
    const tutti_program *program = f->executable->program;
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (program->results[i].after_commit != after_commit)
            continue;
        if (value->space == TUTTI_IN_DYNAMIC) {
            results[i] = tutti_tensor_retain(f->context.dynamic[value->slot]);
            continue;
        }
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &results[i]));
        TUTTI_TRY(copy_value(f, value, inputs, results[i]));
    }
    return TUTTI_OK;
}

/* All streams have stopped and stream 0 goes on alone: it knows of everything. */
static tutti_status commit(tutti_far_frame *f)
{
    const tutti_program *program = f->executable->program;
    f->committing = true;
    for (int v = 0; v < program->variable_count; v++) {
        tutti_tensor *value;
        if (!program->variables[v].updated)
            continue;
        tutti_tensor_release(f->snapshots[v]);
        f->snapshots[v] = NULL;
        TUTTI_TRY(tutti__piece_write(f->run->state, program->variables[v].piece, program->variables[v].keep, &value));
        TUTTI_TRY(see_variable(f, v, value, true));
    }
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        f->now[0][s] = (int32_t)program->commit_at;
    launch(f, program->commit_at, program->instruction_count);
    return finish(f);
}

static tutti_status run_frame(tutti_far_frame *f, tutti_run *run, tutti_tensor *const *inputs, tutti_tensor **results)
{
    tutti_status status = bind(f, inputs);
    if (status == TUTTI_OK) {
        launch(f, 0, f->executable->program->commit_at);
        status = finish(f);
    }
    if (status == TUTTI_OK)
        status = copy_results(f, false, inputs, results);
    if (!f->told)
        status = run->commit_begin(run, status);
    if (status != TUTTI_OK)
        return status;
    status = commit(f);
    if (status == TUTTI_OK)
        status = copy_results(f, true, inputs, results);
    run->commit_end(run);
    return status;
}

static tutti_status run_leased(tutti_far_executable *e, tutti_far_frame *f, tutti_run *run, tutti_tensor *const *inputs,
                               tutti_tensor **results)
{
    reset(f, run);
    tutti_status status = tutti__far_streams_lease(&e->device->streams, tutti__far_execute, f, &f->streams);
    if (status != TUTTI_OK)
        return run->commit_begin(run, status);
    status = run_frame(f, run, inputs, results);
    tutti__far_streams_return(&e->device->streams, f->streams);
    tutti__tensors_drop(e->program->variable_count, f->snapshots);
    tutti__program_forget(e->program, f->calls, &f->context);
    return status;
}

static tutti_status far_run(tutti_executable *executable, tutti_run *run, tutti_tensor *const *inputs,
                            tutti_tensor **ret_results)
{
    tutti_far_executable *e = (tutti_far_executable *)executable;
    int count = e->program->result_count;
    tutti_tensor **results = calloc((size_t)count + 1, sizeof *results);
    tutti_far_frame *f;
    tutti_status status = results ? lease(e, &f) : tutti_fail(TUTTI_NO_MEMORY, "no memory for %d results", count);
    if (status == TUTTI_OK) {
        status = run_leased(e, f, run, inputs, results);
        give_back(e, f);
    } else {
        status = run->commit_begin(run, status);
    }
    if (status == TUTTI_OK)
        memcpy(ret_results, results, (size_t)count * sizeof *results);
    else if (results)
        tutti__tensors_drop(count, results);
    free(results);
    return status;
}

/* ---- executables ---- */

static void far_destroy(tutti_executable *executable)
{
    tutti_far_executable *e = (tutti_far_executable *)executable;
    while (e->frames) {
        tutti_far_frame *next = e->frames->next;
        tutti__far_frame_destroy(e->frames);
        e->frames = next;
    }
    if (e->constants)
        tutti__tensors_drop(e->program->constant_count, e->constants);
    tutti__program_destroy(e->program);
    tutti__far_layout_free(&e->layout);
    pthread_mutex_destroy(&e->lock);
    free(e->constants);
    free(e->names);
    free(e);
}

static size_t far_memory(const tutti_executable *executable)
{
    return ((const tutti_far_executable *)executable)->layout.size;
}

static void far_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const tutti_far_executable *)executable)->program, text);
}

static const tutti_executable_table far_table = {
    .run = far_run, .destroy = far_destroy, .memory = far_memory, .print = far_print};

tutti_program *tutti__far_program(tutti_executable *executable)
{
    return ((tutti_far_executable *)executable)->program;
}

/* Constants are copied once. */
static tutti_status copy_constants(tutti_far_executable *e)
{
    const tutti_memory *memory = &e->device->memory->memory;
    for (int i = 0; i < e->program->constant_count; i++) {
        const tutti_type *type = tutti_tensor_type(e->program->constants[i]);
        tutti_tensor *host;
        if (type->dtype == TUTTI_STRING)
            continue;
        TUTTI_TRY(tutti__tensor_in(memory, type, &e->constants[i]));
        TUTTI_TRY(tutti_tensor_contiguous(e->program->constants[i], &host));
        tutti_status status = memory->copy_in(memory->self, tutti_tensor_data(e->constants[i]), tutti_tensor_data(host),
                                              (size_t)tutti_tensor_count(host) * tutti_dtype_size(type->dtype));
        tutti_tensor_release(host);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_status fill_executable(tutti_far_executable *e, tutti_device *device, const tutti_partition *partition)
{
    TUTTI_TRY(tutti__program_create(device, partition, &e->program));
    e->executable.hash = e->program->hash;
    e->names = calloc(e->program->instruction_count + 1, sizeof *e->names);
    e->constants = calloc((size_t)e->program->constant_count + 1, sizeof *e->constants);
    if (!e->names || !e->constants)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    for (size_t i = 0; i < e->program->instruction_count; i++)
        e->names[i] = tutti__trace_name(e->program->instructions[i].node->name);
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++) {
        char lane[96];
        snprintf(lane, sizeof lane, "%s stream %d", device->name, s);
        e->lanes[s] = tutti__trace_name(lane);
    }
    TUTTI_TRY(tutti__far_layout_make(e->program, &e->layout));
    return copy_constants(e);
}

static tutti_status far_compile(tutti_device *device, const tutti_partition *partition, tutti_executable **ret)
{
    tutti_far_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    e->executable.table = &far_table;
    e->device = device->self;
    pthread_mutex_init(&e->lock, NULL);
    tutti_status status = fill_executable(e, device, partition);
    if (status != TUTTI_OK)
        far_destroy(&e->executable);
    else
        *ret = &e->executable;
    return status;
}

/* ---- devices ---- */

static int far_count(void)
{
    return -1;
}

static tutti_status far_open(tutti_device *device)
{
    tutti_far_device *self = calloc(1, sizeof *self);
    if (!self)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for device %s", device->name);
    tutti_status status = tutti__far_memory_create(device->name, &self->memory);
    if (status != TUTTI_OK) {
        free(self);
        return status;
    }
    pthread_mutex_init(&self->streams.lock, NULL);
    device->memory = &self->memory->memory;
    device->self = self;
    return TUTTI_OK;
}

static void far_close(tutti_device *device)
{
    tutti_far_device *self = device->self;
    tutti__far_streams_end(&self->streams);
    pthread_mutex_destroy(&self->streams.lock);
    tutti__far_memory_destroy(self->memory);
    free(self);
}

/* The bytes of strings lie on the host: whatever has to do with them stays there, queues of them too. */
static bool far_supports(const tutti_device *device, const tutti_node *node)
{
    TUTTI_UNUSED(device);
    for (int i = 0; i < node->input_count; i++)
        if (tutti__edge_type(node->inputs[i])->dtype == TUTTI_STRING)
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (node->types[i].dtype == TUTTI_STRING)
            return false;
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    for (int i = 0; types && types->kind == TUTTI_ATTR_TYPES && i < types->count; i++)
        if (types->value.types[i].dtype == TUTTI_STRING)
            return false;
    return true;
}

const tutti_target tutti_target_far = {
    .name = "far",
    .doc = "for tests: CPU kernels behind a separate memory, on asynchronous streams (TUTTI_FAR_SEED)",
    .kernels = "cpu",
    .streams = TUTTI_FAR_STREAMS,
    .alignment = TUTTI_FAR_ALIGNMENT,
    .count = far_count,
    .open = far_open,
    .close = far_close,
    .supports = far_supports,
    .compile = far_compile,
};
