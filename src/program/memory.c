/* memory.c: where values lie in the arena.
 *
 * Values are placed in the order of their makers, each at the lowest offset that no value which is
 * still wanted covers. A value is no longer wanted by instruction i when all its uses happen before
 * i. An output takes its input's place where the kernel allows it and nothing else wants the input.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

typedef struct use {
    int32_t instruction;
    struct use *next;
} use;

typedef struct planner {
    tutti_program *program;
    use **uses;      /* by root value: makers and readers of it and of its views */
    int32_t *placed; /* roots that have a place, by offset */
    bool *has_place; /* by value */
    size_t placed_count;
} planner;

static size_t align(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static bool note_use(planner *p, int32_t value, int32_t instruction)
{
    int32_t root = p->program->values[value].root;
    use *one = tutti__arena_take(&p->program->arena, sizeof *one);
    if (!one)
        return false;
    *one = (use){instruction, p->uses[root]};
    p->uses[root] = one;
    return true;
}

static bool collect_uses(planner *p)
{
    tutti_program *program = p->program;
    bool ok = true;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        for (int k = 0; k < instruction->input_count; k++)
            ok = ok && note_use(p, instruction->inputs[k], (int32_t)i);
        for (int k = 0; k < instruction->output_count; k++)
            ok = ok && note_use(p, instruction->outputs[k], (int32_t)i);
        if (instruction->workspace >= 0)
            ok = ok && note_use(p, instruction->workspace, (int32_t)i);
    }
    for (int i = 0; i < program->result_count; i++)
        if (program->results[i].copy) /* copied at the end: nothing may take its place */
            ok = ok && note_use(p, program->results[i].value, INT32_MAX);
    return ok;
}

static bool wanted(const planner *p, int32_t root, int32_t instruction)
{
    for (const use *u = p->uses[root]; u; u = u->next)
        if (u->instruction == INT32_MAX ||
            !tutti__happens_before(p->program, u->instruction, instruction))
            return true;
    return false;
}

/* Inserts by offset, so that gaps can be found in one walk. */
static void insert(planner *p, int32_t root)
{
    size_t at = p->placed_count++;
    const tutti_program_value *values = p->program->values;
    while (at > 0 && values[p->placed[at - 1]].offset > values[root].offset) {
        p->placed[at] = p->placed[at - 1];
        at--;
    }
    p->placed[at] = root;
}

static void place(planner *p, int32_t root, int32_t instruction)
{
    tutti_program_value *values = p->program->values;
    size_t alignment = p->program->device->target->alignment;
    size_t size = align(values[root].size ? values[root].size : 1, alignment);
    size_t offset = 0;
    for (size_t i = 0; i < p->placed_count; i++) {
        int32_t other = p->placed[i];
        if (!wanted(p, other, instruction))
            continue;
        if (values[other].offset >= offset + size)
            break;
        size_t end =
            values[other].offset + align(values[other].size ? values[other].size : 1, alignment);
        offset = end > offset ? end : offset;
    }
    values[root].offset = offset;
    p->has_place[root] = true;
    if (offset + size > p->program->arena_size)
        p->program->arena_size = offset + size;
    insert(p, root);
}

/* Whether output `k` may lie where input `i` lies: same size and type, and nobody else wants it. */
static bool may_take(const planner *p, const tutti_instruction *instruction, int32_t index, int k,
                     int i)
{
    const tutti_program_value *values = p->program->values;
    const tutti_program_value *output = &values[instruction->outputs[k]];
    int32_t root = values[instruction->inputs[i]].root;
    if (values[root].space != TUTTI_IN_ARENA || values[root].size != output->size ||
        values[root].type->dtype != output->type->dtype)
        return false;
    for (const use *u = p->uses[root]; u; u = u->next)
        if (u->instruction != index && (u->instruction == INT32_MAX ||
                                        !tutti__happens_before(p->program, u->instruction, index)))
            return false;
    int times = 0;
    for (int other = 0; other < instruction->input_count; other++)
        times += values[instruction->inputs[other]].root == root;
    return times == 1;
}

/* The root whose place output `k` may take, or -1. */
static int32_t reusable(const planner *p, const tutti_instruction *instruction, int32_t index,
                        int k)
{
    const tutti_kernel *kernel = instruction->kernel;
    if (!kernel)
        return -1;
    bool each = (kernel->flags & TUTTI_KERNEL_INPLACE_EACH) != 0;
    for (int i = 0; i < instruction->input_count && (each || i < 32); i++)
        if ((each ? i == k : k == 0 && (kernel->inplace >> i & 1)) &&
            may_take(p, instruction, index, k, i))
            return p->program->values[instruction->inputs[i]].root;
    return -1;
}

/* Two roots become one: views of the output are views of the input's place. */
static void merge(planner *p, int32_t from, int32_t into)
{
    for (size_t i = 0; i < p->program->value_count; i++)
        if (p->program->values[i].root == from)
            p->program->values[i].root = into;
    use **last = &p->uses[into];
    while (*last)
        last = &(*last)->next;
    *last = p->uses[from];
    p->uses[from] = NULL;
}

/* What a bucket exchanges is born where it is sent from: its inputs lie side by side in memory of
 * their own, and so do its outputs, in their place. An input that somebody else wants too is
 * copied; the outputs lie alike on all devices. */
static void share_bucket(planner *p, int32_t index)
{
    tutti_program *program = p->program;
    tutti_instruction *instruction = &program->instructions[index];
    tutti_program_value *values = program->values;
    for (int k = 0; k < instruction->output_count; k++) {
        int32_t output = instruction->outputs[k], root = values[instruction->inputs[k]].root;
        if (values[output].root != output || values[output].space != TUTTI_IN_ARENA ||
            values[output].maker != index || values[output].size == 0)
            continue;
        bool born_there = values[root].maker >= 0 && may_take(p, instruction, index, k, k);
        int32_t shared = born_there ? root : output;
        values[shared].space = TUTTI_IN_SHARED;
        values[shared].offset = program->shared_size;
        program->shared_size += align(values[shared].size, program->device->target->alignment);
        if (born_there)
            merge(p, output, root);
    }
}

static void place_outputs(planner *p, int32_t index)
{
    tutti_instruction *instruction = &p->program->instructions[index];
    tutti_program_value *values = p->program->values;
    for (int k = 0; k < instruction->input_count; k++) { /* written through its handle: no maker */
        int32_t root = values[instruction->inputs[k]].root;
        if (values[root].space == TUTTI_IN_ARENA && values[root].maker < 0 && !p->has_place[root])
            place(p, root, index);
    }
    for (int k = 0; k < instruction->output_count; k++) {
        int32_t value = instruction->outputs[k];
        if (values[value].root != value || values[value].space != TUTTI_IN_ARENA ||
            values[value].maker != index)
            continue;
        int32_t input = reusable(p, instruction, index, k);
        if (input >= 0)
            merge(p, value, input);
        else
            place(p, value, index);
    }
    if (instruction->workspace >= 0)
        place(p, instruction->workspace, index);
}

tutti_status tutti__program_memory(tutti_program *program)
{
    planner p = {.program = program};
    p.uses = tutti__arena_array(&program->arena, program->value_count + 1, sizeof *p.uses);
    p.placed = tutti__arena_array(&program->arena, program->value_count + 1, sizeof *p.placed);
    p.has_place =
        tutti__arena_array(&program->arena, program->value_count + 1, sizeof *p.has_place);
    if (!p.uses || !p.placed || !p.has_place || !collect_uses(&p))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    for (size_t i = 0; program->shares && i < program->instruction_count; i++)
        if (program->instructions[i].kernel &&
            (program->instructions[i].kernel->flags & TUTTI_KERNEL_INPLACE_EACH))
            share_bucket(&p, (int32_t)i);
    for (size_t i = 0; i < program->instruction_count; i++)
        place_outputs(&p, (int32_t)i);
    for (size_t i = 0; i < program->value_count; i++) { /* views lie where their root lies */
        tutti_program_value *value = &program->values[i], *root = &program->values[value->root];
        if (root->space == TUTTI_IN_ARENA || root->space == TUTTI_IN_SHARED) {
            value->space = root->space;
            value->offset = root->offset;
        }
    }
    return TUTTI_OK;
}
