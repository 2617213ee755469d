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

/* An instruction that blocks has the run's deadline itself, and says what it waited for. Those who
 * wait for the instruction are more patient, so that its message comes first. */
static const int64_t grace_ns = 1000000000;

bool tutti__far_wait(tutti_far_frame *f)
{
    int64_t deadline = f->run->deadline;
    if (deadline > TUTTI_NO_DEADLINE - grace_ns) {
        pthread_cond_wait(&f->changed, &f->lock);
        return true;
    }
    deadline += grace_ns;
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    return pthread_cond_timedwait(&f->changed, &f->lock, &until) == 0;
}

void tutti__far_fail(tutti_far_frame *f, tutti_status status)
{
    pthread_mutex_lock(&f->lock);
    bool first = !f->failed, tell = first && !f->committing;
    f->failed = true;
    f->told = f->told || tell;
    if (first)
        tutti__error_capture(status, &f->error);
    pthread_mutex_unlock(&f->lock);
    if (tell)
        f->run->commit_begin(f->run, status);
}

/* ---- tokens ---- */

static void learn(int32_t *known, const int32_t *more)
{
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        known[s] = more[s] > known[s] ? more[s] : known[s];
}

/* Waits for what the instruction awaits; the stream then knows what those streams knew. */
static tutti_status await(tutti_far_frame *f, int32_t index, int32_t *known)
{
    const tutti_instruction *instructions = f->executable->program->instructions;
    bool in_time = true;
    int32_t late = -1;
    pthread_mutex_lock(&f->lock);
    for (int i = 0; in_time && i < instructions[index].await_count; i++) {
        int32_t before = instructions[index].awaits[i];
        while (in_time && !f->done[before])
            in_time = tutti__far_wait(f);
        late = in_time ? late : before;
    }
    pthread_mutex_unlock(&f->lock);
    if (!in_time)
        return tutti_fail(TUTTI_DEADLINE, "%s: '%s' waited for '%s' until the deadline",
                          f->context.device->name, instructions[index].node->name,
                          instructions[late].node->name);
    for (int i = 0; i < instructions[index].await_count; i++)
        learn(known, f->known[instructions[index].awaits[i]]);
    return TUTTI_OK;
}

static void signal_done(tutti_far_frame *f, int stream, int32_t index)
{
    f->now[stream][stream] = index + 1;
    memcpy(f->known[index], f->now[stream], sizeof f->known[index]);
    pthread_mutex_lock(&f->lock);
    f->done[index] = true;
    f->running--;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static bool given_up(tutti_far_frame *f)
{
    pthread_mutex_lock(&f->lock);
    bool failed = f->failed;
    pthread_mutex_unlock(&f->lock);
    return failed || (!f->committing && f->run->cancelled);
}

static void dawdle(const tutti_far_frame *f, int32_t index)
{
    if (f->delay_ns <= 0)
        return;
    tutti_random_key key = {.seed = f->seed, .stream = f->run->id};
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

/* Where the stream finds an operand. */
static char *locate(const tutti_far_frame *f, const tutti_far_operand *operand, int stream)
{
    const tutti_program_value *value = &f->executable->program->values[operand->value];
    if (operand->inside)
        return (operand->writes ? f->memory->stream_write : f->memory->stream_read)[stream] +
               operand->offset;
    switch (value->space) {
    case TUTTI_IN_CONSTANT:
        return (char *)f->constants[value->slot];
    case TUTTI_IN_VARIABLE:
        return operand->writes ? f->variables[value->slot].write
                               : (char *)f->variables[value->slot].read;
    case TUTTI_IN_QUEUE:
        return (char *)f->executable->program->queues[value->slot];
    case TUTTI_IN_DYNAMIC:
        return f->context.dynamic[value->slot] ? tutti_tensor_data(f->context.dynamic[value->slot])
                                               : NULL;
    default:
        return NULL;
    }
}

static int operand_count(const tutti_instruction *instruction)
{
    return instruction->input_count + instruction->output_count + (instruction->workspace >= 0);
}

/* Opens what may be touched. Pure outputs start as noise, so that an element that a kernel forgets
 * shows. */
static void open_operands(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_far_operand *operands = operands_of(f, index);
    for (int k = 0; k < operand_count(&f->executable->program->instructions[index]); k++) {
        const tutti_far_operand *operand = &operands[k];
        if (!operand->inside || !may_touch(operand, f->now[stream]))
            continue;
        char *at = locate(f, operand, stream);
        tutti__far_protect(at, operand->size, operand->writes ? TUTTI_FAR_WRITE : TUTTI_FAR_READ);
        if (operand->fresh && operand->size > 0)
            memset(at, 0xa5, operand->size);
    }
}

static void close_operands(const tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_far_operand *operands = operands_of(f, index);
    for (int k = 0; k < operand_count(&f->executable->program->instructions[index]); k++)
        if (operands[k].inside)
            tutti__far_protect(locate(f, &operands[k], stream), operands[k].size, TUTTI_FAR_CLOSED);
}

/* ---- kernels ---- */

static tutti_status call_on_device(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->calls[index];
    tutti_view *views = (tutti_view *)call->inputs; /* inputs, then outputs: the frame's own */
    for (int k = 0; k < call->input_count + call->output_count; k++)
        views[k].data = locate(f, &operands[k], stream);
    if (instruction->workspace >= 0)
        call->workspace = locate(f, &operands[operand_count(instruction) - 1], stream);
    return instruction->run(call);
}

/* Handles are given as they are: a queue, or a variable's address on the device, which says only
 * whether there is a value. Everything else as a copy. */
static tutti_status stage(tutti_far_frame *f, int32_t index, int stream, tutti_tensor **staged)
{
    const tutti_program *program = f->executable->program;
    const tutti_node *node = program->instructions[index].node;
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->calls[index];
    tutti_view *views = (tutti_view *)call->inputs;
    for (int k = 0; k < call->input_count + call->output_count; k++) {
        const tutti_program_value *value = &program->values[operands[k].value];
        bool input = k < call->input_count;
        if (input && tutti__edge_type(node->inputs[k])->handle) {
            views[k].data = value->space == TUTTI_IN_VARIABLE ? f->variables[value->slot].device
                                                              : locate(f, &operands[k], stream);
            continue;
        }
        if (value->space == TUTTI_IN_DYNAMIC)
            continue;
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &staged[k]));
        views[k].data = tutti_tensor_data(staged[k]);
        if (input && value->size > 0)
            memcpy(views[k].data, locate(f, &operands[k], stream), value->size);
    }
    return TUTTI_OK;
}

static tutti_status call_on_host(tutti_far_frame *f, int32_t index, int stream)
{
    const tutti_program *program = f->executable->program;
    const tutti_instruction *instruction = &program->instructions[index];
    const tutti_far_operand *operands = operands_of(f, index);
    tutti_kernel_call *call = &f->calls[index];
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
            memcpy(locate(f, &operands[k], stream), tutti_tensor_data(staged[k]), operands[k].size);
    if (staged)
        tutti__tensors_drop(count, staged);
    free(staged);
    free(call->workspace);
    call->workspace = NULL;
    return status;
}

static tutti_status call_kernel(tutti_far_frame *f, int32_t index, int stream)
{
    tutti_trace *trace = tutti__trace_mine();
    uint64_t start = trace ? tutti__ticks() : 0;
    const tutti_instruction *instruction = &f->executable->program->instructions[index];
    f->calls[index].deadline = f->run->deadline;
    open_operands(f, index, stream);
    tutti__error_forget();
    tutti_status status =
        instruction->host ? call_on_host(f, index, stream) : call_on_device(f, index, stream);
    close_operands(f, index, stream);
    if (trace)
        tutti__trace_add(trace, instruction->traced, f->executable->lanes[stream], start,
                         tutti__ticks());
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

void tutti__far_execute(void *context, int stream, size_t position)
{
    tutti_far_frame *f = context;
    int32_t index = f->executable->layout.queues[stream][position];
    if (!given_up(f)) {
        dawdle(f, index);
        tutti_status status = await(f, index, f->now[stream]);
        if (status == TUTTI_OK && !given_up(f))
            status = call_kernel(f, index, stream);
        if (status != TUTTI_OK)
            tutti__far_fail(f, status);
    }
    signal_done(f, stream, index);
}
