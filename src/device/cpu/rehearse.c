/* rehearse.c: what a program will take, before it runs: its instructions one after the other,
 * timed, on the frame that the first run will have and on copies of the variables. What meets
 * others, waits or has effects is left out, and so is what would read a value of unknown size that
 * was never made; what rehearse_aside.c knows of it is timed apart.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/world.h"
#include "device/cpu/frame.h"

enum { MOST_ROUNDS = 48, LEAST_ROUNDS = 3 };
#define ENOUGH_NS 120000000 /* a round that follows one without gain does not begin after this */
#define MOST_NS 2000000000  /* nor any after this: others disturb all of them */
#define GAIN 0.02

typedef struct rehearsal {
    const tutti_program *program;
    tutti_cpu_frame *frame;
    tutti_timed *timed;     /* by instruction */
    tutti_tensor **copies;  /* by variable */
    tutti_tensor **results; /* by result, or NULL */
    tutti_tensor *const *inputs;
} rehearsal;

static bool misses_input(const rehearsal *r, const tutti_instruction *instruction)
{
    const tutti_program_value *values = r->program->values;
    for (int i = 0; i < instruction->input_count; i++) {
        const tutti_program_value *value = &values[values[instruction->inputs[i]].root];
        if (value->space == TUTTI_IN_DYNAMIC && value->maker >= 0 &&
            r->timed[value->maker].skipped && !tutti_type_is_static(value->type))
            return true;
    }
    return false;
}

/* Values that are left out are zeros, where their size is known: others may read them. */
static void rehearse_choose(rehearsal *r)
{
    const uint32_t alone = TUTTI_OP_COLLECTIVE | TUTTI_OP_BLOCKING | TUTTI_OP_CONTROL;
    for (size_t i = 0; i < r->program->instruction_count; i++) {
        const tutti_instruction *instruction = &r->program->instructions[i];
        uint32_t flags = instruction->node->op->flags;
        bool effects = (flags & TUTTI_OP_STATEFUL) && !(flags & TUTTI_OP_UPDATES);
        bool copies = instruction->run == tutti__copy_bytes; /* whatever its node is */
        r->timed[i] = (tutti_timed){.node = copies ? NULL : instruction->node,
                                    .seconds = INFINITY,
                                    .skipped = !copies && ((flags & alone) || effects)};
        r->timed[i].skipped = r->timed[i].skipped || misses_input(r, instruction);
    }
}

/* The variable's value, or zeros while it has none. */
static tutti_status copy_variable(const rehearsal *r, tutti_state *state, int v)
{
    const tutti_piece *piece = r->program->variables[v].piece;
    if (piece->type.dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "variable '%s' holds strings", piece->variable->name);
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &piece->type, &r->copies[v]));
    tutti_tensor *value = tutti__piece_acquire(state, piece);
    size_t bytes = (size_t)tutti_tensor_count(r->copies[v]) * tutti_dtype_size(piece->type.dtype);
    if (value)
        memcpy(tutti_tensor_data(r->copies[v]), tutti_tensor_data(value), bytes);
    else
        memset(tutti_tensor_data(r->copies[v]), 0, bytes);
    tutti_tensor_release(value);
    return TUTTI_OK;
}

static tutti_status rehearse_bind(rehearsal *r, tutti_run *run)
{
    const tutti_program *program = r->program;
    tutti_cpu_frame *f = r->frame;
    f->context.run = run;
    f->context.host.cancelled = run->watched;
    memset(f->memory, 0, program->arena_size);
    for (int i = 0; i < program->input_count; i++)
        tutti__cpu_patch_set(&f->inputs[i], r->inputs[i] ? tutti_tensor_data(r->inputs[i]) : NULL);
    for (int v = 0; v < program->variable_count; v++) {
        TUTTI_TRY(copy_variable(r, run->state, v));
        tutti__cpu_patch_set(&f->variables[v], tutti_tensor_data(r->copies[v]));
    }
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (value->space == TUTTI_IN_DYNAMIC || program->results[i].copy ||
            value->slot != (uint32_t)i)
            continue;
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &r->results[i]));
        tutti__cpu_patch_set(&f->results[i], tutti_tensor_data(r->results[i]));
    }
    return TUTTI_OK;
}

/* A longer instruction of one thread is timed by the processor's time of the thread: in a few
 * rounds others would disturb it every time. */
#define LONG_SECONDS 5e-4

/* One that fails on what stands in for values that nobody made is left out from then on. */
static void play(rehearsal *r)
{
    tutti_kernel_call *calls = r->frame->calls;
    double tick = tutti__tick_ns() * 1e-9;
    bool alone = tutti__pool_threads(r->program->device->pool) == 1;
    uint64_t start = tutti__ticks();
    for (size_t i = 0; i < r->program->instruction_count; i++) {
        tutti_timed *timed = &r->timed[i];
        if (timed->skipped) {
            double aside = tutti__cpu_rehearse_aside(r->program->instructions[i].node, &calls[i]);
            timed->seconds = fmin(timed->seconds, aside);
            start = tutti__ticks();
            continue;
        }
        calls[i].deadline = INT64_MAX;
        bool is_long = alone && timed->seconds > LONG_SECONDS && isfinite(timed->seconds);
        int64_t used = is_long ? tutti__thread_ns() : 0;
        if (r->program->instructions[i].run(&calls[i]) != TUTTI_OK) {
            timed->skipped = true;
            for (size_t k = i + 1; k < r->program->instruction_count; k++)
                r->timed[k].skipped =
                    r->timed[k].skipped || misses_input(r, &r->program->instructions[k]);
        }
        uint64_t end = tutti__ticks();
        timed->seconds = fmin(timed->seconds, (double)(end - start) * tick);
        if (is_long)
            timed->seconds = fmin(timed->seconds, 1e-9 * (double)(tutti__thread_ns() - used));
        start = is_long ? tutti__ticks() : end;
    }
}

/* Bytes that push a program's values out of all caches of a machine. */
enum { MOST_WASHED = 64 << 20 };
#define MOST_PAUSE 4e-3 /* seconds */

/* Does to the caches what other programs do between two runs; while they run, other jobs of the
 * machine work on what its cores share. */
static void let_others(const tutti_between *between, unsigned char *bytes)
{
    double seconds = between->seconds < MOST_PAUSE ? between->seconds : MOST_PAUSE;
    int64_t until = tutti__now_ns() + (int64_t)(seconds * 1e9);
    for (size_t i = 0; bytes && i < between->bytes; i += 64)
        bytes[i]++;
    while (tutti__now_ns() < until)
        ;
}

/* Each instruction's least so far. */
static double total(const rehearsal *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->program->instruction_count; i++)
        sum += r->timed[i].skipped ? 0 : r->timed[i].seconds;
    return sum;
}

static tutti_status rehearse(rehearsal *r, tutti_run *run)
{
    tutti_error before;
    TUTTI_TRY(rehearse_bind(r, run));
    rehearse_choose(r);
    tutti__error_capture(TUTTI_OK, &before);
    int64_t began = tutti__now_ns();
    double sum = INFINITY;
    tutti_between between = run->between;
    between.bytes = between.bytes < MOST_WASHED ? between.bytes : MOST_WASHED;
    unsigned char *bytes = between.bytes > 0 ? calloc(1, between.bytes) : NULL;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        let_others(&between, bytes);
        play(r);
        tutti__program_forget(r->program, r->frame->calls, &r->frame->context);
        double now = total(r), spent = (double)(tutti__now_ns() - began);
        bool enough = round + 1 >= LEAST_ROUNDS && spent > ENOUGH_NS && now > sum * (1 - GAIN);
        if (enough || spent > MOST_NS)
            break;
        sum = now;
    }
    free(bytes);
    for (size_t i = 0; i < r->program->instruction_count; i++)
        if (r->timed[i].skipped && !isfinite(r->timed[i].seconds))
            r->timed[i].seconds = 0;
    return tutti__error_restore(&before);
}

tutti_status tutti__cpu_rehearse(tutti_executable *executable, tutti_run *run,
                                 tutti_tensor *const *inputs, tutti_timed_list *ret)
{
    tutti_cpu_executable *e = (tutti_cpu_executable *)executable;
    const tutti_program *program = e->program;
    size_t count = program->instruction_count;
    rehearsal r = {.program = program, .inputs = inputs};
    TUTTI_TRY(tutti__cpu_frame_lease(e, &r.frame));
    r.timed = calloc(count + 1, sizeof *r.timed);
    r.copies = calloc((size_t)program->variable_count + 1, sizeof *r.copies);
    r.results = calloc((size_t)program->result_count + 1, sizeof *r.results);
    tutti_status status = r.timed && r.copies && r.results
                              ? rehearse(&r, run)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a rehearsal");
    if (r.copies)
        tutti__tensors_drop(program->variable_count, r.copies);
    if (r.results)
        tutti__tensors_drop(program->result_count, r.results);
    tutti__cpu_frame_return(e, r.frame);
    free(r.copies);
    free(r.results);
    *ret = (tutti_timed_list){.data = r.timed, .count = r.timed ? count : 0, .capacity = count + 1};
    return status;
}

void tutti__cpu_usage(const tutti_executable *executable, tutti_usage *usage)
{
    tutti__program_usage(((const tutti_cpu_executable *)executable)->program, usage);
}
