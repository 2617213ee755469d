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

/* The input whose place output 0 may take, or -1. */
static int32_t reusable(const planner *p, const tutti_instruction *instruction, int32_t index)
{
    const tutti_kernel *kernel = instruction->kernel;
    const tutti_program_value *values = p->program->values;
    if (!kernel || !kernel->inplace || instruction->output_count < 1)
        return -1;
    const tutti_program_value *output = &values[instruction->outputs[0]];
    for (int i = 0; i < instruction->input_count && i < 32; i++) {
        int32_t root = values[instruction->inputs[i]].root;
        if (!(kernel->inplace & (1u << i)) || values[root].space != TUTTI_IN_ARENA ||
            values[root].size != output->size || values[root].type->dtype != output->type->dtype)
            continue;
        bool free_after = true;
        for (const use *u = p->uses[root]; u && free_after; u = u->next)
            free_after = u->instruction == index ||
                         (u->instruction != INT32_MAX &&
                          tutti__happens_before(p->program, u->instruction, index));
        int times = 0;
        for (int k = 0; k < instruction->input_count; k++)
            times += values[instruction->inputs[k]].root == root;
        if (free_after && times == 1)
            return root;
    }
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
        int32_t input = k == 0 ? reusable(p, instruction, index) : -1;
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
    for (size_t i = 0; i < program->instruction_count; i++)
        place_outputs(&p, (int32_t)i);
    for (size_t i = 0; i < program->value_count; i++) { /* views lie where their root lies */
        tutti_program_value *value = &program->values[i], *root = &program->values[value->root];
        if (root->space == TUTTI_IN_ARENA) {
            value->space = TUTTI_IN_ARENA;
            value->offset = root->offset;
        }
    }
    return TUTTI_OK;
}
