/* chaining.c: which steps form a chain, and running one. A step follows in a chain when one of its
 * operands is the value of the step before, which then stays in registers; it is written to its
 * place too when somebody else reads it later. */
#include "device/cpu/tile/chaining.h"

#include <string.h>

static bool same_place(tutti_tile_place a, tutti_tile_place b)
{
    return a.kind == b.kind && a.index == b.index;
}

/* The form of a step whose operand `in_registers` is in registers, or -1. */
static int form_of(const tutti_tile_step *step, int in_registers)
{
    if (step->inputs == 1)
        return TUTTI_CHAIN_ALONE;
    bool scalar[TUTTI_TILE_INPUTS] = {0};
    for (int i = 0; i < step->inputs; i++)
        scalar[i] = step->x[i].kind == TUTTI_PLACE_SCALAR;
    if (step->inputs == 2 && step->x[0].kind == TUTTI_PLACE_REGISTERS &&
        step->x[1].kind == TUTTI_PLACE_REGISTERS)
        return TUTTI_CHAIN_SELF;
    if (step->inputs == 2) {
        bool other = scalar[1 - in_registers];
        if (in_registers == 0)
            return other ? TUTTI_CHAIN_SCALAR : TUTTI_CHAIN_MEMORY;
        return other ? TUTTI_CHAIN_SCALAR_FIRST : TUTTI_CHAIN_MEMORY_FIRST;
    }
    if (in_registers != 0 || (scalar[1] && scalar[2]))
        return -1;
    return scalar[2]   ? TUTTI_CHAIN_SCALAR
           : scalar[1] ? TUTTI_CHAIN_SCALAR_FIRST
                       : TUTTI_CHAIN_MEMORY;
}

/* The operation for a step with that operand in registers, or NULL. */
static tutti_chain_function *operation(const tutti_tile_program *program,
                                       const tutti_tile_step *step, int in_registers)
{
    int form = form_of(step, in_registers);
    return form < 0 || step->name[0] == '.' || step->kind != TUTTI_STEP_ELEMENTS
               ? NULL
               : tutti__chain_find(program->chain, step->name, (tutti_chain_shape)form, NULL);
}

/* Gives `step` its operation with operand i in registers, if there is one. */
static bool join_at(const tutti_tile_program *program, tutti_tile_step *step, int i)
{
    tutti_chain_function *run = operation(program, step, i);
    if (run == NULL)
        return false;
    step->run = run;
    step->registers = i;
    return true;
}

/* The first step of a chain loads one of its operands. */
static bool chaining_start(const tutti_tile_program *program, tutti_tile_step *step)
{
    for (int i = 0; i < step->inputs; i++)
        if (step->x[i].kind != TUTTI_PLACE_SCALAR && join_at(program, step, i))
            return true;
    return false;
}

/* The others take the value of the step before, which stands in `place` too. */
static bool follow(const tutti_tile_program *program, tutti_tile_step *step, tutti_tile_place place)
{
    tutti_tile_step twice = *step;
    for (int i = 0; i < step->inputs; i++)
        if (same_place(step->x[i], place))
            twice.x[i].kind = TUTTI_PLACE_REGISTERS;
    if (form_of(&twice, 0) == TUTTI_CHAIN_SELF && join_at(program, &twice, 0)) {
        *step = twice;
        return true;
    }
    for (int i = 0; i < step->inputs; i++)
        if (same_place(step->x[i], place) && join_at(program, step, i)) {
            step->x[i].kind = TUTTI_PLACE_REGISTERS;
            return true;
        }
    return false;
}

/* Whether the value that step `index` puts into its place is read after it, as of registers apart.
 */
static bool read_later(const tutti_tile_program *program, int index)
{
    tutti_tile_place place = program->steps[index].y;
    if (place.kind == TUTTI_PLACE_OUTPUT)
        return true;
    for (int s = index + 1; s < program->step_count; s++) {
        const tutti_tile_step *step = &program->steps[s];
        for (int i = 0; i < step->inputs; i++)
            if (same_place(step->x[i], place))
                return true;
        if (same_place(step->y, place))
            return false;
    }
    return false;
}

/* Two steps of a chain in one operation, where there is one: the first has no operand but the value
 * in registers. */
static tutti_chain_function *joined_after(const tutti_tile_program *program,
                                          const tutti_tile_step *steps)
{
    int form = form_of(&steps[0], steps[0].registers),
        next = form_of(&steps[1], steps[1].registers);
    bool square = form == TUTTI_CHAIN_SELF && strcmp(steps[0].name, "mul") == 0;
    if (form != TUTTI_CHAIN_ALONE && !square)
        return NULL;
    return tutti__chain_find_after(program->chain, square ? "square" : steps[0].name, steps[1].name,
                                   (tutti_chain_shape)next);
}

/* The same, or the second has none. */
static void join_steps(const tutti_tile_program *program, tutti_tile_step *steps, int count)
{
    for (int s = 0; s + 1 < count; s++) {
        int form = form_of(&steps[s], steps[s].registers);
        if (steps[s].keep)
            continue;
        if (steps[s + 1].inputs == 1)
            steps[s].run_both = tutti__chain_find(program->chain, steps[s].name,
                                                  (tutti_chain_shape)form, steps[s + 1].name);
        else
            steps[s].run_both = joined_after(program, &steps[s]);
        if (steps[s].run_both != NULL)
            s++;
    }
}

void tutti__tile_make_chains(tutti_tile_program *program)
{
    for (int first = 0; first < program->step_count;) {
        int next = first + 1;
        bool joined = chaining_start(program, &program->steps[first]);
        while (joined && next < program->step_count && next - first < TUTTI_CHAIN_MOST &&
               follow(program, &program->steps[next], program->steps[next - 1].y))
            next++;
        if (next > first + 1)
            program->steps[first].chain = next - first;
        for (int s = first; s < next && next > first + 1; s++) {
            program->steps[s].keep = s == next - 1 || read_later(program, s);
            if (s > first)
                program->steps[s].chain = 0;
        }
        join_steps(program, &program->steps[first], next - first);
        first = next;
    }
}

typedef struct chain_run {
    const tutti_tile_program *program;
    void *(*pointer)(void *context, tutti_tile_place place);
    void *context;
} chain_run;

/* Operands beside the one in registers, in order. */
static void set_operands(const chain_run *r, const tutti_tile_step *step, tutti_chain_op *op)
{
    op->run = step->run;
    op->memory = NULL;
    op->params[0] = (float)step->params[0];
    op->params[1] = (float)step->params[1];
    for (int i = 0, found = 0; i < step->inputs; i++) {
        if (i == step->registers || step->x[i].kind == TUTTI_PLACE_REGISTERS)
            continue;
        float *memory = r->pointer(r->context, step->x[i]);
        if (found++ == 0)
            op->memory = memory;
        else
            op->second = memory;
    }
}

/* At most an operation and a store for each step. An operation looks at `memory` of the two that
 * follow it, whatever that is. */
static void run_blocks(const chain_run *r, const tutti_tile_step *steps, int count,
                       int64_t elements)
{
    const tutti_chain *chain = r->program->chain;
    tutti_chain_op ops[2 * TUTTI_CHAIN_MOST + 1]; /* fields that nobody reads stay open */
    int n = 0;
    for (int s = 0; s < count; s++) {
        bool both = steps[s].run_both != NULL;
        set_operands(r, &steps[both && steps[s + 1].inputs > 1 ? s + 1 : s], &ops[n++]);
        if (both)
            ops[n - 1].run = steps[s++].run_both;
        if (!steps[s].keep)
            continue;
        ops[n].run = chain->entries[s == count - 1 ? 1 : 0].run;
        ops[n++].memory = r->pointer(r->context, steps[s].y);
    }
    ops[n].memory = NULL;
    chain->run(r->pointer(r->context, steps[0].x[steps[0].registers]), ops, elements);
}

/* The elements from `start` on that fill no block, by the steps' own loops. */
static void run_rest(const chain_run *r, const tutti_tile_step *steps, int count, int64_t start,
                     int64_t elements)
{
    float value[2 * TUTTI_TILE_BYTES / sizeof(float) / 8]; /* more than any block */
    for (int s = 0; s < count; s++) {
        tutti_tile_args args = {.count = elements - start, .y = value, .params = steps[s].params};
        for (int i = 0; i < steps[s].inputs; i++) {
            tutti_tile_place place = steps[s].x[i];
            const float *memory =
                place.kind == TUTTI_PLACE_REGISTERS ? value : r->pointer(r->context, place);
            bool moves = place.kind != TUTTI_PLACE_REGISTERS && place.kind != TUTTI_PLACE_SCALAR;
            args.x[i] = moves ? memory + start : memory;
        }
        steps[s].loop(&args);
        float *kept = steps[s].keep ? (float *)r->pointer(r->context, steps[s].y) + start : value;
        for (int64_t i = 0; kept != value && i < elements - start; i++)
            kept[i] = value[i];
    }
}

void tutti__tile_run_chain(const tutti_tile_program *program, const tutti_tile_step *step,
                           int64_t count, void *(*pointer)(void *context, tutti_tile_place place),
                           void *context)
{
    chain_run r = {program, pointer, context};
    int64_t whole = count / program->chain->block * program->chain->block;
    if (whole > 0)
        run_blocks(&r, step, step->chain, whole);
    if (whole < count)
        run_rest(&r, step, step->chain, whole, count);
}
