/* layout.c: see layout.h. */
#include "device/far/layout.h"

#include <string.h>

#include "device/far/memory.h"

/* What was done to the memory of one value (a root) so far: one more than the last instruction of
 * each stream that wrote it, or touched it at all. */
typedef struct cell {
    int32_t value;
    size_t offset, size;
    int32_t last_write; /* of any stream */
    int32_t wrote[TUTTI_FAR_STREAMS], touched[TUTTI_FAR_STREAMS];
} cell;

typedef struct maker {
    const tutti_program *program;
    tutti_far_layout *layout;
    cell *cells;
    size_t cell_count;
    int32_t *cell_of; /* by root value: index of its cell, or -1 */
} maker;

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to lay out a program");
}

static size_t page_end(size_t offset, size_t size)
{
    return (offset + size + TUTTI_FAR_ALIGNMENT - 1) / TUTTI_FAR_ALIGNMENT * TUTTI_FAR_ALIGNMENT;
}

bool tutti__far_layout_offset(const tutti_far_layout *layout, const tutti_program_value *value,
                              size_t *ret_offset)
{
    if (value->type->dtype == TUTTI_STRING)
        return false; /* strings stay on the host */
    switch (value->space) {
    case TUTTI_IN_ARENA:
        *ret_offset = value->offset;
        return true;
    case TUTTI_IN_INPUT:
        *ret_offset = layout->inputs[value->slot];
        return true;
    case TUTTI_IN_RESULT:
        *ret_offset = layout->results[value->slot];
        return true;
    default:
        return false;
    }
}

/* Inputs and results lie behind the arena. */
static tutti_status layout_place(maker *m)
{
    const tutti_program *program = m->program;
    tutti_far_layout *layout = m->layout;
    layout->inputs = tutti__arena_array(&layout->arena, (size_t)program->input_count + 1,
                                        sizeof *layout->inputs);
    layout->results = tutti__arena_array(&layout->arena, (size_t)program->result_count + 1,
                                         sizeof *layout->results);
    if (!layout->inputs || !layout->results)
        return no_memory();
    layout->size = page_end(0, program->arena_size);
    for (int pass = 0; pass < 2; pass++)
        for (size_t v = 0; v < program->value_count; v++) {
            const tutti_program_value *value = &program->values[v];
            size_t *offsets = pass == 0 ? layout->inputs : layout->results;
            if (value->space != (pass == 0 ? TUTTI_IN_INPUT : TUTTI_IN_RESULT) ||
                value->root != (int32_t)v)
                continue;
            offsets[value->slot] = layout->size;
            layout->size = page_end(layout->size, value->size ? value->size : 1);
        }
    return TUTTI_OK;
}

static tutti_status make_cells(maker *m)
{
    size_t count = m->program->value_count;
    m->cells = tutti__arena_array(&m->layout->arena, count + 1, sizeof *m->cells);
    m->cell_of = tutti__arena_array(&m->layout->arena, count + 1, sizeof *m->cell_of);
    if (!m->cells || !m->cell_of)
        return no_memory();
    for (size_t v = 0; v < count; v++) {
        const tutti_program_value *value = &m->program->values[v];
        size_t offset;
        m->cell_of[v] = -1;
        if (value->root != (int32_t)v || !tutti__far_layout_offset(m->layout, value, &offset))
            continue;
        m->cell_of[v] = (int32_t)m->cell_count;
        m->cells[m->cell_count++] =
            (cell){.value = (int32_t)v, .offset = offset, .size = value->size ? value->size : 1};
    }
    return TUTTI_OK;
}

static bool overlap(const cell *c, const tutti_far_operand *operand)
{
    return c->offset < operand->offset + operand->size && operand->offset < c->offset + c->size;
}

/* An operand is fit to be read when all who wrote its bytes have finished, to be written when all
 * who touched them have. The last to have written what is read must be its own maker. */
static tutti_status find_needs(maker *m, const tutti_instruction *instruction,
                               tutti_far_operand *operand)
{
    const cell *own = &m->cells[m->cell_of[m->program->values[operand->value].root]];
    for (size_t i = 0; i < m->cell_count; i++) {
        const cell *c = &m->cells[i];
        if (!overlap(c, operand))
            continue;
        if (!operand->fresh && c->last_write > own->last_write)
            return tutti_fail(
                TUTTI_INTERNAL,
                "%s '%s' reads memory that '%s' has written over; the memory plan is wrong",
                instruction->node->op->name, instruction->node->name,
                m->program->instructions[c->last_write - 1].node->name);
        for (int s = 0; s < TUTTI_FAR_STREAMS; s++) {
            int32_t last = operand->writes ? c->touched[s] : c->wrote[s];
            operand->need[s] = last > operand->need[s] ? last : operand->need[s];
        }
    }
    return TUTTI_OK;
}

static void note_touch(maker *m, const tutti_far_operand *operand, int stream, int32_t index)
{
    cell *own = &m->cells[m->cell_of[m->program->values[operand->value].root]];
    own->touched[stream] = index + 1;
    if (operand->writes) {
        own->wrote[stream] = index + 1;
        own->last_write = index + 1;
    }
}

static bool updates_input(const tutti_instruction *instruction, int k)
{
    return instruction->run != tutti__copy_bytes &&
           (instruction->node->op->flags & TUTTI_OP_UPDATES) &&
           tutti__edge_type(instruction->node->inputs[k])->handle;
}

static void set_operand(maker *m, tutti_far_operand *operand, int32_t value, bool writes)
{
    const tutti_program_value *v = &m->program->values[value];
    *operand = (tutti_far_operand){.value = value, .writes = writes, .size = v->size};
    operand->inside = tutti__far_layout_offset(m->layout, v, &operand->offset);
}

static bool shares(const tutti_far_operand *a, const tutti_far_operand *b)
{
    return a->inside && b->inside && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

static int operand_count(const tutti_instruction *instruction)
{
    return instruction->input_count + instruction->output_count + (instruction->workspace >= 0);
}

static tutti_status add_instruction(maker *m, int32_t index)
{
    const tutti_instruction *instruction = &m->program->instructions[index];
    tutti_far_operand *operands = &m->layout->operands[m->layout->first[index]];
    int inputs = instruction->input_count, count = operand_count(instruction);
    bool overwrites = (instruction->node->op->flags & TUTTI_OP_OVERWRITES) != 0;
    for (int k = 0; k < inputs; k++) {
        set_operand(m, &operands[k], instruction->inputs[k], updates_input(instruction, k));
        operands[k].fresh = operands[k].writes && overwrites;
    }
    for (int k = 0; k < instruction->output_count; k++)
        set_operand(m, &operands[inputs + k], instruction->outputs[k], true);
    if (instruction->workspace >= 0)
        set_operand(m, &operands[count - 1], instruction->workspace, true);
    for (int k = inputs; k < count; k++) {
        operands[k].fresh = true;
        for (int i = 0; i < inputs; i++)
            operands[k].fresh =
                operands[k].fresh && (operands[i].fresh || !shares(&operands[k], &operands[i]));
    }
    for (int k = 0; k < count; k++)
        if (operands[k].inside)
            TUTTI_TRY(find_needs(m, instruction, &operands[k]));
    for (int k = 0; k < count; k++)
        if (operands[k].inside)
            note_touch(m, &operands[k], instruction->stream, index);
    return TUTTI_OK;
}

static tutti_status make_arrays(maker *m)
{
    const tutti_program *program = m->program;
    tutti_far_layout *layout = m->layout;
    size_t count = program->instruction_count, operands = 0;
    layout->first = tutti__arena_array(&layout->arena, count + 1, sizeof *layout->first);
    bool ok = layout->first != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        layout->first[i] = operands;
        operands += (size_t)operand_count(&program->instructions[i]);
    }
    layout->operands = tutti__arena_array(&layout->arena, operands + 1, sizeof *layout->operands);
    ok = ok && layout->operands;
    return ok ? TUTTI_OK : no_memory();
}

tutti_status tutti__far_layout_make(const tutti_program *program, tutti_far_layout *ret)
{
    maker m = {.program = program, .layout = ret};
    TUTTI_TRY(layout_place(&m));
    TUTTI_TRY(make_cells(&m));
    TUTTI_TRY(make_arrays(&m));
    for (size_t i = 0; i < program->instruction_count; i++)
        TUTTI_TRY(add_instruction(&m, (int32_t)i));
    return TUTTI_OK;
}

void tutti__far_layout_free(tutti_far_layout *layout)
{
    tutti__arena_free(&layout->arena);
}
