/* timing.c: how long a GPU takes for each instruction: what a trace shows, and what a rehearsal
 * finds before a step is run. Both stamp the stream before and after each. */
#include <math.h>
#include <stdlib.h>

#include "base/world.h"
#include "device/cuda/run.h"
#include "program/trace.h"

/* ---- stamps ---- */

static size_t stamp_count(const tutti_gpu_frame *f)
{
    return 2 * f->drive.program->instruction_count;
}

/* Room for two of each instruction, none of them taken. */
static tutti_status make_stamps(tutti_gpu_frame *f)
{
    if (!f->stamps)
        f->stamps = calloc(stamp_count(f) + 1, sizeof *f->stamps);
    if (!f->stamped)
        f->stamped = calloc(f->drive.program->instruction_count + 1, sizeof *f->stamped);
    return f->stamps && f->stamped ? TUTTI_OK
                                   : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run's times");
}

void tutti__gpu_free_stamps(tutti_gpu_frame *f)
{
    const tutti_gpu_device *device = f->executable->device;
    for (size_t i = 0; f->stamps && i <= stamp_count(f); i++)
        device->table->forget(f->stamps[i]);
    free(f->stamps);
    free(f->stamped);
}

tutti_status tutti__gpu_stamp(tutti_gpu_frame *f, size_t instruction, bool end)
{
    const tutti_gpu_device *device = f->executable->device;
    f->stamped[instruction] = end;
    return device->table->stamp(device->gpu, &f->stamps[2 * instruction + end]);
}

static tutti_status seconds_of(const tutti_gpu_frame *f, size_t from, size_t to, double *ret)
{
    const tutti_gpu_device *device = f->executable->device;
    return device->table->between(device->gpu, f->stamps[from], f->stamps[to], ret);
}

/* ---- traces ---- */

bool tutti__gpu_trace_begin(tutti_gpu_frame *f)
{
    const tutti_gpu_device *device = f->executable->device;
    f->tracing = false;
    if (!tutti__trace_path()[0] || !tutti__trace_mine() || make_stamps(f) != TUTTI_OK)
        return false;
    /* The last one, at a moment that the host knows. */
    if (device->table->stamp(device->gpu, &f->stamps[stamp_count(f)]) != TUTTI_OK ||
        device->table->finish(device->gpu) != TUTTI_OK)
        return false;
    f->began = tutti__ticks();
    for (size_t i = 0; i < f->drive.program->instruction_count; i++)
        f->stamped[i] = false;
    return f->tracing = true;
}

void tutti__gpu_trace_end(tutti_gpu_frame *f)
{
    const tutti_gpu_device *device = f->executable->device;
    const tutti_program *program = f->drive.program;
    tutti_trace *trace = tutti__trace_mine();
    tutti_error before;
    f->tracing = false;
    tutti__error_capture(TUTTI_OK, &before);
    bool done = device->table->finish(device->gpu) == TUTTI_OK;
    for (size_t i = 0; trace && done && i < program->instruction_count; i++) {
        double from, to, ticks = 1e9 / tutti__tick_ns();
        if (f->stamped[i] && seconds_of(f, stamp_count(f), 2 * i, &from) == TUTTI_OK &&
            seconds_of(f, stamp_count(f), 2 * i + 1, &to) == TUTTI_OK)
            tutti__trace_add(trace, program->instructions[i].traced, f->executable->lane,
                             f->began + (uint64_t)(from * ticks),
                             f->began + (uint64_t)(to * ticks));
    }
    tutti__error_restore(&before);
}

/* ---- rehearsals ---- */

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
    for (size_t i = 0; i < count; i++) {
        if (timed[i].skipped)
            continue;
        TUTTI_TRY(tutti__gpu_stamp(f, i, false));
        timed[i].skipped = f->drive.table->launch(&f->drive, i) != TUTTI_OK;
        TUTTI_TRY(tutti__gpu_stamp(f, i, true));
    }
    TUTTI_TRY(device->table->finish(device->gpu));
    for (size_t i = 0; i < count; i++) {
        double seconds;
        if (timed[i].skipped)
            continue;
        TUTTI_TRY(seconds_of(f, 2 * i, 2 * i + 1, &seconds));
        timed[i].seconds = fmin(timed[i].seconds, seconds);
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
    tutti_status status =
        timed && copies ? make_stamps(f) : tutti_fail(TUTTI_NO_MEMORY, "no memory to rehearse");
    if (status == TUTTI_OK)
        status = bind_copies(f, run, inputs, copies);
    if (status == TUTTI_OK)
        status = play_rounds(f, timed);
    if (status == TUTTI_OK)
        status = tutti__error_restore(&before);
    if (copies)
        tutti__tensors_drop(program->variable_count, copies);
    free(copies);
    tutti__gpu_frame_return(e, f);
    size_t count = program->instruction_count;
    *ret = (tutti_timed_list){.data = timed, .count = timed ? count : 0, .capacity = count + 1};
    return status;
}
