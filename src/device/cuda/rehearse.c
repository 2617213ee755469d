/* rehearse.c: what a program will take on a GPU, before it runs: its instructions one after the
 * other, timed on the stream, on copies of the variables. */
#include <math.h>
#include <stdlib.h>

#include "base/world.h"
#include "device/cuda/run.h"

enum { MOST_ROUNDS = 20, LEAST_ROUNDS = 4 };
#define ENOUGH_NS 150000000

/* What meets others, waits, has effects or is the host's is left out, and what reads values whose
 * size nobody knows yet. */
static bool is_left_out(const tutti_program *program, const tutti_instruction *instruction)
{
    const uint32_t alone = TUTTI_OP_COLLECTIVE | TUTTI_OP_BLOCKING | TUTTI_OP_CONTROL;
    uint32_t flags = instruction->node->op->flags;
    if (instruction->run == tutti__copy_bytes)
        return false;
    for (int k = 0; k < instruction->input_count; k++)
        if (program->values[instruction->inputs[k]].space == TUTTI_IN_DYNAMIC)
            return true;
    return instruction->host || (flags & alone) ||
           ((flags & TUTTI_OP_STATEFUL) && !(flags & TUTTI_OP_UPDATES));
}

static tutti_status bind_copy(tutti_gpu_frame *f, tutti_state *state, int v, tutti_tensor **copy)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_piece *piece = f->drive.program->variables[v].piece;
    TUTTI_TRY(tutti__tensor_in(&device->memory, &piece->type, copy));
    size_t size = (size_t)tutti_tensor_count(*copy) * tutti_dtype_size(piece->type.dtype);
    tutti_tensor *value = tutti__piece_acquire(state, piece);
    tutti_status status = value
                              ? device->table->copy_within(device->gpu, tutti_tensor_data(*copy),
                                                           tutti_tensor_data(value), size)
                              : device->table->fill(device->gpu, tutti_tensor_data(*copy), 0, size);
    tutti_tensor_release(value);
    return status == TUTTI_OK ? f->drive.table->bind(&f->drive, v, *copy, false) : status;
}

static tutti_status bind_copies(tutti_gpu_frame *f, tutti_run *run, tutti_tensor *const *inputs,
                                tutti_tensor **copies)
{
    const tutti_gpu_executable *e = f->executable;
    const tutti_program *program = e->program;
    TUTTI_TRY(e->device->table->fill(e->device->gpu, f->memory, 0, program->arena_size));
    for (int v = 0; v < program->variable_count; v++)
        TUTTI_TRY(bind_copy(f, run->state, v, &copies[v]));
    for (int i = 0; i < program->input_count; i++)
        if (inputs[i])
            TUTTI_TRY(f->drive.table->feed(&f->drive, i, inputs[i]));
    return TUTTI_OK;
}

/* One that does not run is left out from then on. */
static tutti_status play(tutti_gpu_frame *f, tutti_timed *timed)
{
    const tutti_gpu_device *device = f->executable->device;
    const size_t count = f->drive.program->instruction_count;
    tutti__gpu_timing_hold(f, count);
    for (size_t i = 0; i < count; i++)
        timed[i].skipped = timed[i].skipped || f->drive.table->launch(&f->drive, i) != TUTTI_OK;
    TUTTI_TRY(device->table->finish(device->gpu));
    for (size_t i = 0; i < count; i++) {
        void **marks = &f->marks[2 * i];
        double seconds;
        if (!timed[i].skipped && marks[0] && marks[1] &&
            device->table->between(marks[0], marks[1], &seconds) == TUTTI_OK)
            timed[i].seconds = fmin(timed[i].seconds, seconds);
        device->table->forget(marks[0]);
        device->table->forget(marks[1]);
        marks[0] = marks[1] = NULL;
    }
    return TUTTI_OK;
}

static tutti_status play_rounds(tutti_gpu_frame *f, tutti_timed *timed)
{
    const tutti_gpu_executable *e = f->executable;
    const tutti_program *program = e->program;
    int64_t began = tutti__now_ns();
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        timed[i] =
            (tutti_timed){.node = instruction->run == tutti__copy_bytes ? NULL : instruction->node,
                          .seconds = INFINITY,
                          .skipped = is_left_out(program, instruction)};
    }
    for (int round = 0; round < MOST_ROUNDS; round++) {
        TUTTI_TRY(play(f, timed));
        if (round + 1 >= LEAST_ROUNDS && tutti__now_ns() - began > ENOUGH_NS)
            break;
    }
    for (size_t i = 0; i < program->instruction_count; i++)
        if (!isfinite(timed[i].seconds))
            timed[i].seconds = 0;
    /* What failed on zeros is no failure. */
    return e->fault_count > 0 ? e->device->table->fill(e->device->gpu, f->memory + e->faults, 0xff,
                                                       e->fault_count * sizeof *f->faults)
                              : TUTTI_OK;
}

tutti_status tutti__gpu_rehearse(tutti_executable *executable, tutti_run *run,
                                 tutti_tensor *const *inputs, tutti_timed_list *ret)
{
    tutti_gpu_executable *e = (tutti_gpu_executable *)executable;
    const tutti_program *program = e->program;
    tutti_gpu_frame *f;
    tutti_error before;
    TUTTI_TRY(tutti__gpu_frame_lease(e, &f));
    f->drive.run = f->drive.context.run = run;
    f->drive.context.host.cancelled = run->watched;
    tutti_timed *timed = calloc(program->instruction_count + 1, sizeof *timed);
    tutti_tensor **copies = calloc((size_t)program->variable_count + 1, sizeof *copies);
    tutti__error_capture(TUTTI_OK, &before);
    f->marks = calloc(2 * program->instruction_count + 1, sizeof *f->marks);
    tutti_status status = timed && copies && f->marks
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to rehearse");
    if (status == TUTTI_OK)
        status = bind_copies(f, run, inputs, copies);
    if (status == TUTTI_OK)
        status = play_rounds(f, timed);
    if (status == TUTTI_OK)
        status = tutti__error_restore(&before);
    if (copies)
        tutti__tensors_drop(program->variable_count, copies);
    free(copies);
    free(f->marks);
    f->marks = NULL;
    tutti__gpu_frame_return(e, f);
    size_t count = program->instruction_count;
    *ret = (tutti_timed_list){.data = timed, .count = timed ? count : 0, .capacity = count + 1};
    return status;
}
