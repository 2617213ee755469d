/* run.c: what tutti__drive asks of a GPU. Everything of a device goes to one stream, in order. */
#include "device/cuda/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/world.h"
#include "program/trace.h"
#include "tensor/pending.h"

static tutti_gpu_frame *frame_of(tutti_drive *drive)
{
    return (tutti_gpu_frame *)drive;
}

static tutti_gpu_frame *frame_of_call(const tutti_kernel_call *call)
{
    return (tutti_gpu_frame *)((char *)call->context - offsetof(tutti_gpu_frame, drive.context));
}

const tutti_gpu_device *tutti__gpu_device_of(const tutti_kernel_call *call)
{
    return frame_of_call(call)->executable->device;
}

static void *locate(const tutti_gpu_frame *f, int32_t index)
{
    const tutti_gpu_executable *e = f->executable;
    const tutti_program_value *value = &e->program->values[index];
    switch (value->space) {
    case TUTTI_IN_ARENA:
        return f->memory + value->offset;
    case TUTTI_IN_INPUT:
        return f->fed[value->slot] ? (void *)(uintptr_t)f->fed[value->slot]
                                   : f->memory + e->inputs[value->slot];
    case TUTTI_IN_RESULT:
        return f->memory + e->results[value->slot];
    case TUTTI_IN_CONSTANT:
        return e->constants[value->slot] ? tutti_tensor_data(e->constants[value->slot]) : NULL;
    case TUTTI_IN_VARIABLE:
        return f->variables[value->slot];
    case TUTTI_IN_QUEUE:
        return e->program->queues[value->slot];
    case TUTTI_IN_DYNAMIC:
        return f->drive.context.dynamic[value->slot]
                   ? tutti_tensor_data(f->drive.context.dynamic[value->slot])
                   : NULL;
    default:
        return NULL;
    }
}

/* ---- what the drive asks for ---- */

static void gpu_fence(tutti_drive *drive)
{
    TUTTI_UNUSED(drive); /* one stream */
}

static tutti_status gpu_bind(tutti_drive *drive, int v, tutti_tensor *value, bool written)
{
    TUTTI_UNUSED(written); /* whoever is enqueued later is who sees it */
    frame_of(drive)->variables[v] = value ? tutti_tensor_data(value) : NULL;
    return TUTTI_OK;
}

static tutti_status gpu_feed(tutti_drive *drive, int input, tutti_tensor *value)
{
    enum { ALIGNMENT = 16 }; /* kernels count on it */
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_gpu_device *device = f->executable->device;
    size_t offset = 0, size = (size_t)tutti_tensor_count(value) *
                              tutti_dtype_size(tutti_tensor_type(value)->dtype);
    char *to = f->memory + f->executable->inputs[input];
    tutti_tensor *source = tutti__tensor_source(value, &offset, NULL);
    f->fed[input] = NULL;
    if (!source || source->buffer->memory != &device->memory) {
        tutti_tensor_release(source);
        return device->table->copy_in(device->gpu, to, tutti_tensor_data(value), size);
    }
    f->sources[input] = source;
    const char *from = (const char *)tutti_tensor_data(source) + offset;
    if ((uintptr_t)from % ALIGNMENT != 0)
        return device->table->copy_within(device->gpu, to, from, size);
    f->fed[input] = from;
    return TUTTI_OK;
}

static int operand_count(const tutti_instruction *instruction)
{
    return instruction->input_count + instruction->output_count;
}

static int32_t operand(const tutti_instruction *instruction, int k)
{
    return k < instruction->input_count ? instruction->inputs[k]
                                        : instruction->outputs[k - instruction->input_count];
}

static void *fault_of(const tutti_gpu_frame *f, size_t i)
{
    const tutti_gpu_executable *e = f->executable;
    for (size_t k = 0; k < e->fault_count; k++)
        if (e->failing[k] == i)
            return f->memory + e->faults + k * sizeof(uint64_t);
    return NULL;
}

static void place_operands(tutti_gpu_frame *f, size_t i)
{
    const tutti_instruction *instruction = &f->drive.program->instructions[i];
    tutti_kernel_call *call = &f->drive.calls[i];
    tutti_view *views = (tutti_view *)call->inputs;
    for (int k = 0; k < operand_count(instruction); k++)
        views[k].data = locate(f, operand(instruction, k));
    call->workspace = instruction->workspace >= 0 ? locate(f, instruction->workspace) : NULL;
}

static tutti_status launch_one(tutti_drive *drive, size_t i)
{
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_gpu_device *device = f->executable->device;
    const tutti_instruction *instruction = &drive->program->instructions[i];
    tutti_kernel_call *call = &drive->calls[i];
    const tutti_view *views = call->inputs;
    place_operands(f, i);
    if (instruction->run == tutti__copy_bytes)
        return device->table->copy_within(device->gpu, views[1].data, views[0].data,
                                          drive->program->values[instruction->inputs[0]].size);
    tutti_status status = instruction->kernel == &tutti_kernel_segmented_gpu
                              ? instruction->run(call)
                              : device->table->launch(device->gpu, instruction->kernel, call,
                                                      fault_of(f, i), f->executable->deterministic);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

static tutti_status gpu_launch(tutti_drive *drive, size_t i)
{
    tutti_gpu_frame *f = frame_of(drive);
    tutti__gpu_timing_mark(f, i, false);
    tutti_status status = launch_one(drive, i);
    tutti__gpu_timing_mark(f, i, true);
    return status;
}

/* ---- launches that are joined ---- */

static bool overlap(const tutti_gpu_frame *f, int32_t a, int32_t b)
{
    const tutti_program_value *values = f->drive.program->values;
    const char *at = locate(f, a), *other = locate(f, b);
    return at && other && at < other + values[b].size && other < at + values[a].size;
}

/* Whether what one instruction writes is read or written by another. Of work space only that of the
 * first of several is used. */
static bool writes_into(const tutti_gpu_frame *f, const tutti_instruction *a, bool first,
                        const tutti_instruction *b)
{
    for (int k = 0; k < a->output_count + (first && a->workspace >= 0); k++) {
        int32_t written = k < a->output_count ? a->outputs[k] : a->workspace;
        for (int m = 0; m < operand_count(b); m++)
            if (overlap(f, written, operand(b, m)))
                return true;
    }
    return false;
}

/* How many instructions from `i` on may be one launch: of one kernel that joins them, none of which
 * needs that another comes first. */
static size_t joined(tutti_gpu_frame *f, size_t i, size_t to)
{
    const tutti_program *program = f->drive.program;
    const tutti_instruction *all = program->instructions;
    const tutti_cuda_gpu_table *table = f->executable->device->table;
    size_t count = 1;
    place_operands(f, i);
    if (!all[i].kernel || all[i].kernel == &tutti_kernel_segmented_gpu ||
        all[i].run == tutti__copy_bytes || fault_of(f, i))
        return 1;
    for (; i + count < to; count++) {
        size_t next = i + count;
        if (all[next].kernel != all[i].kernel || fault_of(f, next))
            break;
        place_operands(f, next);
        if (!table->joins(all[i].kernel, &f->drive.calls[i], &f->drive.calls[next]))
            break;
        bool apart = true;
        for (size_t k = i; k < next && apart; k++)
            apart = !writes_into(f, &all[k], k == i, &all[next]) &&
                    !writes_into(f, &all[next], false, &all[k]);
        if (!apart)
            break;
    }
    return count;
}

static tutti_status launch_some(tutti_gpu_frame *f, size_t i, size_t count)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_instruction *instruction = &f->drive.program->instructions[i];
    if (count == 1)
        return launch_one(&f->drive, i);
    const tutti_kernel_call **calls = calloc(count, sizeof *calls);
    if (!calls)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a launch");
    for (size_t k = 0; k < count; k++)
        calls[k] = &f->drive.calls[i + k];
    tutti_status status = device->table->launch_joined(device->gpu, instruction->kernel, (int)count,
                                                       calls, f->executable->deterministic);
    free(calls);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

/* Addresses that may differ from run to run. */
static uint64_t addresses(const tutti_gpu_frame *f)
{
    const tutti_program *program = f->drive.program;
    uint64_t key =
        tutti__hash_bytes(0, f->variables, (size_t)program->variable_count * sizeof *f->variables);
    return tutti__hash_bytes(key, f->fed, (size_t)program->input_count * sizeof *f->fed);
}

static int stretch_of(const tutti_program *program, size_t from)
{
    return from >= program->commit_at ? 2 : from >= program->checked_at ? 1 : 0;
}

static tutti_status record(tutti_gpu_frame *f, size_t from, size_t to, tutti_gpu_recording *r)
{
    const tutti_gpu_device *device = f->executable->device;
    tutti_error before;
    TUTTI_TRY(device->table->record_begin(device->gpu));
    tutti_status status = TUTTI_OK;
    for (size_t i = from, count; status == TUTTI_OK && i < to; i += count) {
        count = joined(f, i, to);
        status = launch_some(f, i, count);
    }
    tutti__error_capture(status, &before);
    tutti_status ended = device->table->record_end(
        device->gpu, &r->own, &f->executable->launches[stretch_of(f->drive.program, from)]);
    return status == TUTTI_OK ? ended : tutti__error_restore(&before);
}

/* The one for these addresses, or the one that was not used for longest. */
static tutti_gpu_recording *find_recording(tutti_gpu_frame *f, int stretch, uint64_t key)
{
    tutti_gpu_recording *best = &f->recordings[stretch][0];
    for (int i = 0; i < TUTTI_GPU_RECORDINGS; i++) {
        tutti_gpu_recording *r = &f->recordings[stretch][i];
        if (r->launched && r->key == key)
            return r;
        if (r->used < best->used)
            best = r;
    }
    return best;
}

/* The first time one by one, the second time recorded, from then on replayed, as long as it lies
 * where it did one of the last times. What cannot be recorded is launched one by one for ever. */
static tutti_status gpu_launch_all(tutti_drive *drive, size_t from, size_t to, bool *ret)
{
    enum { FEW = 3 }; /* a graph's launch costs as much as these */
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_gpu_device *device = f->executable->device;
    int stretch = stretch_of(drive->program, from);
    uint64_t key = addresses(f);
    if (f->marks)
        tutti__gpu_timing_hold(f, to - from);
    if (to - from < FEW || f->refused[stretch] || f->marks)
        return TUTTI_OK;
    tutti_gpu_recording *r = find_recording(f, stretch, key);
    r->used = ++f->launches;
    if (key != r->key || !r->launched) {
        r->launched = true;
        r->key = key;
        device->table->forget_recording(device->gpu, r->own);
        r->own = NULL;
        return TUTTI_OK;
    }
    if (!r->own && record(f, from, to, r) != TUTTI_OK) {
        f->refused[stretch] = true;
        r->own = NULL;
        tutti__log(TUTTI_LOG_INFO, "%s: a step is launched one kernel after the other: %s",
                   drive->context.device->name, tutti_error_message());
        tutti__error_forget();
        return TUTTI_OK;
    }
    *ret = true;
    return device->table->replay(device->gpu, r->own);
}

/* ---- on the host ---- */

static tutti_status stage(tutti_gpu_frame *f, size_t i, tutti_tensor **staged)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_program *program = f->drive.program;
    const tutti_instruction *instruction = &program->instructions[i];
    tutti_view *views = (tutti_view *)f->drive.calls[i].inputs;
    for (int k = 0; k < operand_count(instruction); k++) {
        const tutti_program_value *value = &program->values[operand(instruction, k)];
        bool input = k < instruction->input_count;
        void *at = locate(f, operand(instruction, k));
        if (input && tutti__edge_type(instruction->node->inputs[k])->handle) {
            views[k].data = at; /* a queue, or says whether a variable has a value */
            if (!(instruction->node->op->flags & TUTTI_OP_UPDATES) || !at)
                continue;
        } else if (value->space == TUTTI_IN_DYNAMIC) {
            views[k].data = at;
            continue;
        }
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &staged[k]));
        views[k].data = tutti_tensor_data(staged[k]);
        if (input && at)
            TUTTI_TRY(device->table->copy_out(device->gpu, views[k].data, at, value->size));
    }
    return TUTTI_OK;
}

/* Outputs, and variables that an update has written. */
static tutti_status unstage(tutti_gpu_frame *f, size_t i, tutti_tensor **staged)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_program *program = f->drive.program;
    const tutti_instruction *instruction = &program->instructions[i];
    for (int k = 0; k < operand_count(instruction); k++) {
        bool written =
            k >= instruction->input_count || tutti__edge_type(instruction->node->inputs[k])->handle;
        if (staged[k] && written)
            TUTTI_TRY(device->table->copy_in(device->gpu, locate(f, operand(instruction, k)),
                                             tutti_tensor_data(staged[k]),
                                             program->values[operand(instruction, k)].size));
    }
    return TUTTI_OK;
}

static tutti_status gpu_call_on_host(tutti_drive *drive, size_t i)
{
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_instruction *instruction = &drive->program->instructions[i];
    tutti_kernel_call *call = &drive->calls[i];
    size_t scratch =
        instruction->workspace >= 0 ? drive->program->values[instruction->workspace].size : 0;
    tutti_tensor **staged = calloc((size_t)operand_count(instruction) + 1, sizeof *staged);
    call->workspace = tutti__aligned_alloc(64, scratch / 64 * 64 + 64);
    call->deadline = drive->run->deadline;
    tutti__error_forget();
    tutti_status status =
        staged && call->workspace
            ? stage(f, i, staged)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory to copy operands of '%s'", call->name);
    if (status == TUTTI_OK)
        status = instruction->run(call);
    if (status == TUTTI_OK)
        status = unstage(f, i, staged);
    if (staged)
        tutti__tensors_drop(operand_count(instruction), staged);
    free(staged);
    free(call->workspace);
    call->workspace = NULL;
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

/* ---- failures that kernels note ---- */

/* In the words of the reference, on what the instruction was given, which may have been written
 * over since: then it has none. */
static tutti_status as_reference(tutti_gpu_frame *f, size_t i)
{
    const tutti_instruction *instruction = &f->drive.program->instructions[i];
    tutti_kernel_call *call = &f->drive.calls[i];
    tutti_tensor **staged = calloc((size_t)operand_count(instruction) + 1, sizeof *staged);
    void *plan = call->plan;
    tutti_status status = TUTTI_OK;
    if (staged && instruction->node->op->reference && stage(f, i, staged) == TUTTI_OK) {
        call->plan = NULL;
        tutti__error_forget();
        status = instruction->node->op->reference(call);
        call->plan = plan;
    }
    if (staged)
        tutti__tensors_drop(operand_count(instruction), staged);
    free(staged);
    return status;
}

/* As far as a place tells. */
static tutti_status bad_value(const tutti_node *node, const char *device, uint64_t place)
{
    if (strcmp(node->op->name, "check_numerics") == 0)
        return tutti_fail(TUTTI_CHECK_FAILED, "%s: element %llu is not finite (on %s)",
                          tutti__str(node, "message"), (unsigned long long)place, device);
    return tutti_fail(TUTTI_OUT_OF_RANGE,
                      "%s '%s' on %s: element %llu names a place that is not there", node->op->name,
                      node->name, device, (unsigned long long)place);
}

/* What they noted comes to the host as soon as it is there, beside what follows. */
static tutti_status gpu_checked(tutti_drive *drive)
{
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_gpu_executable *e = f->executable;
    const tutti_cuda_gpu_table *table = e->device->table;
    TUTTI_TRY(table->copy_out_later(e->device->gpu, f->faults, f->memory + e->faults,
                                    e->fault_count * sizeof *f->faults));
    return table->record(e->device->gpu, &f->noted);
}

static tutti_status look_at_faults(tutti_gpu_frame *f)
{
    const tutti_gpu_executable *e = f->executable;
    const tutti_program *program = f->drive.program;
    TUTTI_TRY(e->device->table->await(NULL, f->noted));
    for (size_t k = 0; k < e->fault_count; k++) {
        const tutti_node *node = program->instructions[e->failing[k]].node;
        if (f->faults[k] == UINT64_MAX)
            continue;
        tutti_status status = as_reference(f, e->failing[k]);
        if (status == TUTTI_OK)
            status = bad_value(node, program->device->name, f->faults[k]);
        status = tutti__node_failed(node, status);
        tutti_error failed;
        tutti__error_capture(status, &failed);
        TUTTI_TRY(e->device->table->fill(e->device->gpu, f->memory + e->faults, 0xff,
                                         e->fault_count * sizeof *f->faults));
        return tutti__error_restore(&failed);
    }
    return TUTTI_OK;
}

static tutti_status gpu_settle(tutti_drive *drive)
{
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_gpu_device *device = f->executable->device;
    TUTTI_TRY(drive->program->dynamic_count > 0 ? device->table->finish(device->gpu) : TUTTI_OK);
    return drive->program->fallible ? look_at_faults(f) : TUTTI_OK;
}

/* ---- values that leave the run, and come into it ---- */

typedef struct moment {
    tutti_device_event event;
    const tutti_cuda_gpu_table *table;
    void *own;
} moment;

static tutti_status moment_wait(tutti_device_event *event)
{
    moment *m = (moment *)event;
    return m->table->await(NULL, m->own);
}

static void moment_destroy(tutti_device_event *event)
{
    moment *m = (moment *)event;
    if (m->own)
        m->table->forget(m->own);
    free(m);
}

static const tutti_device_event_table moment_table = {moment_wait, moment_destroy};

/* A copy, in memory of its own. With an event other devices need not wait for all that follows. */
static tutti_status copy_value(const tutti_gpu_frame *f, int32_t index, bool event,
                               tutti_tensor **ret)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_program_value *value = &f->drive.program->values[index];
    tutti_tensor *copy;
    moment *m = event ? calloc(1, sizeof *m) : NULL;
    if (event && !m)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an event");
    tutti_status status = tutti__tensor_in(&device->memory, value->type, &copy);
    if (status == TUTTI_OK)
        status = device->table->copy_within(device->gpu, tutti_tensor_data(copy), locate(f, index),
                                            value->size);
    if (m) {
        m->event.table = &moment_table;
        m->table = device->table;
        atomic_init(&m->event.references, 1);
        if (status == TUTTI_OK)
            status = device->table->record(device->gpu, &m->own);
    }
    if (status == TUTTI_OK)
        status = tutti__tensor_awaited(copy, m ? &m->event : NULL, ret);
    tutti_tensor_release(copy);
    tutti__device_event_release(m ? &m->event : NULL);
    return status;
}

static tutti_status gpu_take_result(tutti_drive *drive, int result, tutti_tensor **ret)
{
    return copy_value(frame_of(drive), drive->program->results[result].value, false, ret);
}

static tutti_status gpu_pass(tutti_drive *drive, size_t i)
{
    tutti_gpu_frame *f = frame_of(drive);
    const tutti_instruction *instruction = &drive->program->instructions[i];
    drive->calls[i].deadline = drive->run->deadline;
    f->passing = true;
    tutti__error_forget();
    tutti_status status = instruction->run(&drive->calls[i]);
    f->passing = false;
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

static tutti_status call_take(const tutti_kernel_call *call, int index, tutti_tensor **ret)
{
    tutti_gpu_frame *f = frame_of_call(call);
    const tutti_view *view = &call->inputs[index];
    const tutti_instruction *instruction = &f->drive.program->instructions[call - f->drive.calls];
    if (!f->passing)
        return tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, ret);
    return copy_value(f, instruction->inputs[index], true, ret);
}

static tutti_status call_give(const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    tutti_gpu_frame *f = frame_of_call(call);
    const tutti_gpu_device *device = f->executable->device;
    size_t at = (size_t)(call - f->drive.calls), offset;
    const tutti_instruction *instruction = &f->drive.program->instructions[at];
    if (!f->passing)
        return tutti__program_give(f->drive.program, at, call, index, tensor);
    int32_t value = instruction->outputs[index];
    size_t size = f->drive.program->values[value].size;
    tutti_device_event *event = NULL;
    tutti_tensor *source = tutti__tensor_source(tensor, &offset, &event);
    tutti_status status = TUTTI_OK;
    if (source && source->buffer->memory->copy_out == device->memory.copy_out) {
        if (event)
            status = device->table->await(device->gpu, ((moment *)event)->own);
        if (status == TUTTI_OK)
            status = device->table->copy_within(device->gpu, locate(f, value),
                                                (char *)tutti_tensor_data(source) + offset, size);
        /* The sender's stream may give the memory to somebody else when it is let go. */
        if (status == TUTTI_OK && source->buffer->memory != &device->memory)
            status = device->table->finish(device->gpu);
    } else {
        status =
            device->table->copy_in(device->gpu, locate(f, value), tutti_tensor_data(tensor), size);
    }
    tutti_tensor_release(source);
    tutti__device_event_release(event);
    return status;
}

/* ---- frames ---- */

static tutti_status allocate_dynamic(const tutti_kernel_call *call, int index, int rank,
                                     const int64_t *dims)
{
    tutti_gpu_frame *f = frame_of_call(call);
    return tutti__program_allocate(f->drive.program, (size_t)(call - f->drive.calls), call, index,
                                   rank, dims);
}

static const tutti_drive_table gpu_drive = {.fence = gpu_fence,
                                            .bind = gpu_bind,
                                            .feed = gpu_feed,
                                            .launch = gpu_launch,
                                            .launch_all = gpu_launch_all,
                                            .call_on_host = gpu_call_on_host,
                                            .pass = gpu_pass,
                                            .checked = gpu_checked,
                                            .settle = gpu_settle,
                                            .take = gpu_take_result};

void tutti__gpu_frame_destroy(tutti_gpu_frame *f)
{
    if (!f)
        return;
    const tutti_gpu_device *device = f->executable->device;
    if (f->memory)
        device->table->release(device->gpu, f->memory, f->executable->size);
    for (int s = 0; s < TUTTI_GPU_STRETCHES; s++)
        for (int i = 0; i < TUTTI_GPU_RECORDINGS; i++)
            device->table->forget_recording(device->gpu, f->recordings[s][i].own);
    device->table->forget(f->noted);
    device->table->host_release(device->gpu, f->faults);
    free(f->drive.calls);
    free(f->drive.snapshots);
    free(f->drive.context.dynamic);
    free(f->views);
    free(f->variables);
    free(f->fed);
    free(f->sources);
    free(f);
}

static void fill_calls(tutti_gpu_frame *f)
{
    const tutti_program *program = f->drive.program;
    tutti_view *view = f->views;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        f->drive.calls[i] = tutti__instruction_call(program, instruction, view, &f->drive.context);
        for (int k = 0; k < operand_count(instruction); k++) {
            const tutti_type *type = program->values[operand(instruction, k)].type;
            *view++ = (tutti_view){.dtype = type->dtype, .rank = type->rank, .dims = type->dims};
        }
    }
}

/* Frames that wait for a run give their memory. */
static bool reclaim(tutti_gpu_device *device)
{
    bool any = false;
    pthread_mutex_lock(&device->lock);
    for (tutti_gpu_executable *e = device->executables; e; e = e->next) {
        pthread_mutex_lock(&e->lock);
        tutti_gpu_frame *idle = e->frames;
        e->frames = NULL;
        pthread_mutex_unlock(&e->lock);
        while (idle) {
            tutti_gpu_frame *next = idle->next;
            tutti__gpu_frame_destroy(idle);
            idle = next;
            any = true;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return any;
}

tutti_status tutti__gpu_allocate(tutti_gpu_device *device, size_t size, void **ret)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = device->table->allocate(device->gpu, size, ret);
    if (status == TUTTI_NO_MEMORY && reclaim(device)) {
        tutti__error_restore(&before);
        status = device->table->allocate(device->gpu, size, ret);
    }
    return status == TUTTI_OK ? status
                              : tutti__error_prefix(status, "%s has no room for %.1f MiB",
                                                    device->memory.name, (double)size / (1 << 20));
}

/* With what a run takes, by purpose. */
static tutti_status no_room(const tutti_gpu_executable *e, tutti_status status)
{
    tutti_usage u = {0};
    const double mib = 1 << 20;
    if (status != TUTTI_NO_MEMORY)
        return status;
    tutti__program_usage(e->program, &u);
    return tutti__error_prefix(
        status,
        "no memory for a run: weights %.1f MiB, slots of the optimizer %.1f, values between "
        "instructions %.1f, gradients %.1f, constants %.1f, data %.1f; take a smaller batch, "
        "--precision bf16, recomputation (remat=1, memory=…) or more devices",
        (double)u.weights / mib, (double)u.slots / mib, (double)u.arena / mib,
        (double)u.shared / mib, (double)u.constants / mib, (double)u.data / mib);
}

static tutti_status take_memory(tutti_gpu_frame *f)
{
    const tutti_gpu_executable *e = f->executable;
    const tutti_gpu_device *device = e->device;
    void *memory = NULL, *faults = NULL;
    size_t size = e->fault_count * sizeof *f->faults;
    tutti_status status = tutti__gpu_allocate(e->device, e->size, &memory);
    f->memory = memory;
    if (status != TUTTI_OK || size == 0)
        return no_room(e, status);
    TUTTI_TRY(device->table->host_allocate(device->gpu, size, &faults));
    f->faults = faults;
    return device->table->fill(device->gpu, f->memory + e->faults, 0xff, size);
}

static tutti_status frame_create(tutti_gpu_executable *e, tutti_gpu_frame **ret)
{
    const tutti_program *program = e->program;
    size_t views = 1;
    for (size_t i = 0; i < program->instruction_count; i++)
        views += (size_t)operand_count(&program->instructions[i]);
    tutti_gpu_frame *f = calloc(1, sizeof *f);
    if (!f)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    f->executable = e;
    f->drive = (tutti_drive){.table = &gpu_drive, .program = program};
    f->drive.context.device = program->device;
    f->drive.context.host.allocate = allocate_dynamic;
    f->drive.context.host.take = call_take;
    f->drive.context.host.give = call_give;
    f->drive.calls = calloc(program->instruction_count + 1, sizeof *f->drive.calls);
    f->drive.snapshots = calloc((size_t)program->variable_count + 1, sizeof(tutti_tensor *));
    f->drive.context.dynamic = calloc((size_t)program->dynamic_count + 1, sizeof(tutti_tensor *));
    f->views = calloc(views, sizeof *f->views);
    f->variables = calloc((size_t)program->variable_count + 1, sizeof *f->variables);
    f->fed = calloc((size_t)program->input_count + 1, sizeof *f->fed);
    f->sources = calloc((size_t)program->input_count + 1, sizeof *f->sources);
    tutti_status status = f->drive.calls && f->drive.snapshots && f->drive.context.dynamic &&
                                  f->views && f->variables && f->fed && f->sources
                              ? take_memory(f)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    if (status != TUTTI_OK) {
        tutti__gpu_frame_destroy(f);
        return status;
    }
    fill_calls(f);
    *ret = f;
    return TUTTI_OK;
}

tutti_status tutti__gpu_frame_lease(tutti_gpu_executable *e, tutti_gpu_frame **ret)
{
    pthread_mutex_lock(&e->lock);
    tutti_gpu_frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return frame_create(e, ret);
    *ret = f;
    return TUTTI_OK;
}

void tutti__gpu_frame_return(tutti_gpu_executable *e, tutti_gpu_frame *f)
{
    tutti__tensors_drop(e->program->input_count, f->sources);
    tutti__program_forget(e->program, f->drive.calls, &f->drive.context);
    pthread_mutex_lock(&e->lock);
    f->next = e->frames;
    e->frames = f;
    pthread_mutex_unlock(&e->lock);
}

tutti_status tutti__gpu_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    tutti_gpu_executable *e = (tutti_gpu_executable *)executable;
    tutti_gpu_frame *f;
    tutti_status status = tutti__gpu_frame_lease(e, &f);
    if (status != TUTTI_OK)
        return run->commit_begin(run, status);
    f->drive.run = f->drive.context.run = run;
    f->drive.context.host.cancelled = run->watched;
    status = tutti__gpu_timing_start(f);
    status = status == TUTTI_OK ? tutti__drive(&f->drive, run, inputs, ret_results)
                                : run->commit_begin(run, status);
    tutti__gpu_timing_end(f);
    tutti__gpu_frame_return(e, f);
    return status;
}
