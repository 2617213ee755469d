/* execute.c: one instruction on the thread of its stream.
 *
 * A kernel that runs on the device gets pointers into the stream's own mappings: those of its
 * operands are open while it runs, but only as far as the stream knows that whoever must come
 * before has finished. A kernel that runs on the host gets copies of its inputs, and its outputs
 * are copied back. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/world.h"
#include "device/far/frame.h"
#include "program/trace.h"

/* An instruction that blocks has the run's deadline itself, and says what it waited for. Whoever
 * waits for the instruction is more patient, so that its message comes first. */
static const int64_t grace_ns = 1000000000;

/* How often the host looks whether the run has failed elsewhere. */
static const int64_t look_ns = 5000000;

bool tutti__far_wait(tutti_far_frame *f)
{
    int64_t now = tutti__now_ns(), deadline = f->run->deadline, until = now + look_ns;
    if (f->run->cancelled || (f->run->watched && *f->run->watched))
        f->stop = true;
    if (deadline < TUTTI_NO_DEADLINE - grace_ns && now >= deadline + grace_ns)
        return false;
    struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    pthread_cond_timedwait(&f->changed, &f->lock, &time);
    return true;
}

/* Its run may have returned: who waits for the device hears of it. */
static void note_torn(const tutti_far_frame *f)
{
    tutti_far_device *device = f->executable->device;
    tutti__program_committed(f->executable->program, f->error.status);
    pthread_mutex_lock(&device->lock);
    if (device->failed.status == TUTTI_OK)
        device->failed = f->error;
    pthread_mutex_unlock(&device->lock);
}

void tutti__far_fail(tutti_far_frame *f, tutti_status status)
{
    pthread_mutex_lock(&f->lock);
    bool first = !f->failed, tell = first && f->run && !f->committing;
    bool torn = first && f->committing;
    f->failed = true;
    f->telling += tell;
    if (first)
        tutti__error_capture(status, &f->error);
    pthread_mutex_unlock(&f->lock);
    if (torn)
        note_torn(f);
    if (!tell)
        return;
    f->drive.told = true;
    f->run->commit_begin(f->run, status);
    pthread_mutex_lock(&f->lock);
    f->telling--;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* ---- tokens ---- */

static void learn(int32_t *known, const int32_t *more)
{
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        known[s] = more[s] > known[s] ? more[s] : known[s];
}

/* What the stream knows when what the instruction awaits is done. */
static void learn_awaited(tutti_far_frame *f, int32_t index, int32_t *known)
{
    const tutti_program *program = f->executable->program;
    const tutti_instruction *instruction = &program->instructions[index];
    for (int i = 0; i < instruction->await_count; i++)
        learn(known, f->known[instruction->awaits[i]]);
    for (int s = 0; (size_t)index >= program->commit_at && s < TUTTI_FAR_STREAMS; s++)
        known[s] = known[s] > (int32_t)program->commit_at ? known[s] : (int32_t)program->commit_at;
}

/* Every token comes: instructions are put on streams in an order in which they can run. */
static void await(tutti_far_frame *f, int32_t index, int32_t *known)
{
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < instruction->await_count; i++)
        while (!f->done[instruction->awaits[i]])
            pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    learn_awaited(f, index, known);
}

/* The host does, until what the run comes after is done, and all that stands before the instruction
 * on its stream is done too. */
static tutti_status await_on_host(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_instruction *instructions = f->executable->program->instructions;
    int32_t late = -1;
    bool in_time = true;
    tutti__far_streams_wait(&f->executable->device->streams, &f->fence);
    pthread_mutex_lock(&f->lock);
    for (int i = -1; in_time && i < instructions[index].await_count; i++) {
        int32_t before = i < 0 ? f->last[stream] : instructions[index].awaits[i];
        while (in_time && before >= 0 && !f->done[before])
            in_time = tutti__far_wait(f);
        late = in_time ? late : before;
    }
    pthread_mutex_unlock(&f->lock);
    if (!in_time)
        return tutti_fail(TUTTI_DEADLINE, "%s: '%s' waited for '%s' until the deadline",
                          f->drive.context.device->name, instructions[index].node->name,
                          instructions[late].node->name);
    learn_awaited(f, index, f->now[stream]);
    return TUTTI_OK;
}

static void signal_done(tutti_far_frame *f, int stream, int32_t index)
{
    f->now[stream][stream] = index + 1;
    memcpy(f->known[index], f->now[stream], sizeof f->known[index]);
    pthread_mutex_lock(&f->lock);
    f->done[index] = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static bool given_up(tutti_far_frame *f)
{
    pthread_mutex_lock(&f->lock);
    bool given_up = f->failed || (f->stop && !f->committing);
    pthread_mutex_unlock(&f->lock);
    return given_up;
}

static void dawdle(const tutti_far_frame *f, int32_t index)
{
    if (f->delay_ns <= 0)
        return;
    tutti_random_key key = {.seed = f->seed, .stream = f->id};
    const tutti_world *world = tutti__world();
    world->sleep_ns(world->self,
                    (int64_t)tutti__random_below(key, (uint64_t)index, (uint64_t)f->delay_ns + 1));
}

/* ---- operands ---- */

static const tutti_far_operand *operands_of(const tutti_far_frame *f, int32_t index)
{
    return &f->executable->layout.operands[f->executable->layout.first[index]];
}

static bool may_touch(const tutti_far_operand *operand, const int32_t *known)
{
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        if (known[s] < operand->need[s])
            return false;
    return true;
}

/* A variable's memory as an instruction sees it. */
static const tutti_far_place *variable_of(const tutti_far_frame *f, int32_t index, uint32_t slot)
{
    bool committing = (size_t)index >= f->executable->program->commit_at;
    return &(committing ? f->written : f->variables)[slot];
}

/* Where the stream finds an operand. */
static char *locate(const tutti_far_frame *f, const tutti_far_operand *operand, int32_t index,
                    int stream)
{
    const tutti_program_value *value = &f->executable->program->values[operand->value];
    if (value->space == TUTTI_IN_INPUT && f->fed[value->slot])
        return (char *)(uintptr_t)f->fed[value->slot];
    if (operand->inside)
        return (operand->writes ? f->memory->stream_write : f->memory->stream_read)[stream] +
               operand->offset;
    switch (value->space) {
    case TUTTI_IN_CONSTANT:
        return (char *)f->constants[value->slot];
    case TUTTI_IN_VARIABLE:
        return operand->writes ? variable_of(f, index, value->slot)->write
                               : (char *)variable_of(f, index, value->slot)->read;
    case TUTTI_IN_QUEUE:
        return (char *)f->executable->program->queues[value->slot];
    case TUTTI_IN_DYNAMIC:
        return f->drive.context.dynamic[value->slot]
                   ? tutti_tensor_data(f->drive.context.dynamic[value->slot])
                   : NULL;
    default:
        return NULL;
    }
}

static int operand_count(const tutti_instruction *instruction)
{
    return instruction->input_count + instruction->output_count + (instruction->workspace >= 0);
}

/* Whether an operand lies where streams open what they touch. */
static bool is_closed(const tutti_far_frame *f, const tutti_far_operand *operand)
{
    const tutti_program_value *value = &f->executable->program->values[operand->value];
    return operand->inside && !(value->space == TUTTI_IN_INPUT && f->fed[value->slot]);
}

/* Opens what may be touched. Pure outputs start as noise, so that an element that a kernel forgets
 * shows. */
static void open_operands(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_far_operand *operands = operands_of(f, index);
    for (int k = 0; k < operand_count(&f->executable->program->instructions[index]); k++) {
        const tutti_far_operand *operand = &operands[k];
        if (!is_closed(f, operand) || !may_touch(operand, f->now[stream]))
            continue;
        char *at = locate(f, operand, index, stream);
        tutti__far_protect(at, operand->size, operand->writes ? TUTTI_FAR_WRITE : TUTTI_FAR_READ);
        if (operand->fresh && operand->size > 0)
            memset(at, 0xa5, operand->size);
    }
}

static void close_operands(const tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_far_operand *operands = operands_of(f, index);
    for (int k = 0; k < operand_count(&f->executable->program->instructions[index]); k++)
        if (is_closed(f, &operands[k]))
            tutti__far_protect(locate(f, &operands[k], index, stream), operands[k].size,
                               TUTTI_FAR_CLOSED);
}

/* ---- kernels ---- */

static tutti_status call_on_device(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->drive.calls[index];
    tutti_view *views = (tutti_view *)call->inputs; /* inputs, then outputs: the frame's own */
    for (int k = 0; k < call->input_count + call->output_count; k++)
        views[k].data = locate(f, &operands[k], index, stream);
    if (instruction->workspace >= 0)
        call->workspace = locate(f, &operands[operand_count(instruction) - 1], index, stream);
    return instruction->run(call);
}

/* Handles are given as they are: a queue, or a variable's address on the device, which says only
 * whether there is a value. Everything else as a copy. */
static tutti_status stage(tutti_far_frame *f, int32_t index, int stream, tutti_tensor **staged)
{
    const tutti_program *program = f->executable->program;
    const tutti_node *node = program->instructions[index].node;
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->drive.calls[index];
    tutti_view *views = (tutti_view *)call->inputs;
    for (int k = 0; k < call->input_count + call->output_count; k++) {
        const tutti_program_value *value = &program->values[operands[k].value];
        bool input = k < call->input_count;
        if (input && tutti__edge_type(node->inputs[k])->handle) {
            views[k].data = value->space == TUTTI_IN_VARIABLE
                                ? variable_of(f, index, value->slot)->device
                                : locate(f, &operands[k], index, stream);
            continue;
        }
        if (value->space == TUTTI_IN_DYNAMIC)
            continue;
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &staged[k]));
        views[k].data = tutti_tensor_data(staged[k]);
        if (input && value->size > 0)
            memcpy(views[k].data, locate(f, &operands[k], index, stream), value->size);
    }
    return TUTTI_OK;
}

static tutti_status call_with_copies(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_program *program = f->executable->program;
    const tutti_instruction *instruction = &program->instructions[index];
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->drive.calls[index];
    int count = call->input_count + call->output_count;
    size_t scratch = instruction->workspace >= 0 ? operands[count].size : 0;
    tutti_tensor **staged = calloc((size_t)count + 1, sizeof *staged);
    call->workspace = tutti__aligned_alloc(64, scratch / 64 * 64 + 64);
    tutti_status status =
        staged && call->workspace
            ? stage(f, index, stream, staged)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory to copy operands of '%s' to the host",
                         call->name);
    if (status == TUTTI_OK)
        status = instruction->run(call);
    for (int k = call->input_count; status == TUTTI_OK && k < count; k++)
        if (staged[k] && operands[k].size > 0)
            memcpy(locate(f, &operands[k], index, stream), tutti_tensor_data(staged[k]),
                   operands[k].size);
    if (staged)
        tutti__tensors_drop(count, staged);
    free(staged);
    free(call->workspace);
    call->workspace = NULL;
    return status;
}

static bool passes_on(const tutti_instruction *instruction)
{
    return instruction->kernel && (instruction->kernel->flags & TUTTI_KERNEL_TENSORS);
}

static tutti_status call_pass(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_far_operand *operands = operands_of(f, index);
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    char *at = locate(f, &operands[0], index, stream); /* its input, or its output */
    return tutti__far_pass_on(&f->passes[index], instruction->input_count ? at : NULL, at,
                              operands[0].size);
}

static tutti_status call_kernel(tutti_far_frame *f, int32_t index, int stream)
{
    tutti_trace *trace = tutti__trace_mine();
    uint64_t start = trace ? tutti__ticks() : 0;
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    open_operands(f, index, stream);
    tutti__error_forget();
    tutti_status status = passes_on(instruction) ? call_pass(f, index, stream)
                          : instruction->host    ? call_with_copies(f, index, stream)
                                                 : call_on_device(f, index, stream);
    close_operands(f, index, stream);
    if (trace)
        tutti__trace_add(trace, instruction->traced, f->executable->lanes[stream], start,
                         tutti__ticks());
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

void tutti__far_execute(void *context, int stream, int64_t instruction)
{
    tutti_far_frame *f = context;
    int32_t index = (int32_t)instruction;
    if (!given_up(f)) {
        dawdle(f, index);
        await(f, index, f->now[stream]);
        tutti_status status = given_up(f) ? TUTTI_OK : call_kernel(f, index, stream);
        if (status != TUTTI_OK)
            tutti__far_fail(f, status);
    }
    if (passes_on(&f->executable->program->instructions[index]))
        tutti__far_pass_end(&f->passes[index]);
    signal_done(f, stream, index);
    tutti__far_done(f);
}

tutti_status tutti__far_call_on_host(tutti_drive *drive, size_t instruction)
{
    tutti_far_frame *f = (tutti_far_frame *)drive;
    int32_t index = (int32_t)instruction;
    int stream = f->executable->program->instructions[index].stream;
    tutti_status status = TUTTI_OK;
    drive->calls[index].deadline = drive->run->deadline;
    if (!given_up(f)) {
        dawdle(f, index);
        status = await_on_host(f, index, stream);
        if (status == TUTTI_OK && !given_up(f))
            status = call_kernel(f, index, stream);
        if (status != TUTTI_OK)
            tutti__far_fail(f, status);
    }
    f->last[stream] = index;
    signal_done(f, stream, index);
    return status;
}
