/* streams.c: gives instructions their stream and the tokens between streams.
 *
 * An instruction goes to the stream of the last thing it waits for, so that chains stay together;
 * one that waits for nothing takes the next stream in turn. Clocks are vectors: clock[i][s] is one
 * more than the last instruction of stream s known to have finished before i starts.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

#define MAX_STREAMS 8

typedef TUTTI_VEC(int32_t) indices;

typedef struct streams {
    tutti_program *program;
    int count;
    int32_t (*clock)[MAX_STREAMS]; /* by instruction, before it starts */
    int32_t *node_instruction;     /* by node id: its last instruction, or -1 */
    indices waits;                 /* of the instruction at hand */
    uint32_t *seen;                /* by node id: number of the last search that came by */
    uint32_t search;
    const tutti_node **stack;
} streams;

static bool wait_for(streams *s, int32_t instruction)
{
    for (size_t i = 0; i < s->waits.count; i++)
        if (s->waits.data[i] == instruction)
            return true;
    return instruction < 0 || TUTTI_VEC_PUSH(&s->waits, instruction);
}

static void look_at(streams *s, size_t *depth, const tutti_node *node)
{
    if (s->seen[node->id] == s->search)
        return;
    s->seen[node->id] = s->search;
    s->stack[(*depth)++] = node;
}

/* Waits for what a node follows. Control edges lead through nodes without instructions. */
static bool wait_for_all_before(streams *s, const tutti_node *node, bool inputs)
{
    size_t depth = 0;
    s->search++;
    for (int i = 0; i < node->control_count; i++)
        look_at(s, &depth, node->controls[i]);
    for (int i = 0; inputs && i < node->input_count; i++)
        look_at(s, &depth, node->inputs[i].node);
    while (depth > 0) {
        const tutti_node *before = s->stack[--depth];
        if (s->node_instruction[before->id] >= 0) {
            if (!wait_for(s, s->node_instruction[before->id]))
                return false;
            continue;
        }
        for (int i = 0; i < before->input_count; i++)
            look_at(s, &depth, before->inputs[i].node);
        for (int i = 0; i < before->control_count; i++)
            look_at(s, &depth, before->controls[i]);
    }
    return true;
}

static bool same_memory(const tutti_program *program, int32_t a, int32_t b)
{
    const tutti_program_value *x = &program->values[a], *y = &program->values[b];
    if (x->space == TUTTI_IN_VARIABLE && y->space == TUTTI_IN_VARIABLE)
        return x->slot == y->slot;
    return x->root == y->root;
}

/* An update writes where its handles lead: the variable, or what stands in for it until the commit.
 */
static bool writes_input(const tutti_instruction *instruction, int input)
{
    const tutti_node *node = instruction->node;
    return node && instruction->run != tutti__copy_bytes && (node->op->flags & TUTTI_OP_UPDATES) &&
           input < node->input_count && tutti__edge_type(node->inputs[input])->handle;
}

/* Everything that touches memory which this instruction writes, and the makers of what it reads. */
static bool collect(streams *s, int32_t index)
{
    const tutti_instruction *me = &s->program->instructions[index];
    bool ok = true;
    for (int i = 0; i < me->input_count; i++)
        ok = ok && wait_for(s, s->program->values[s->program->values[me->inputs[i]].root].maker);
    if (me->node)
        ok = ok && wait_for_all_before(s, me->node, me->run != tutti__copy_bytes);
    for (int32_t before = 0; ok && before < index; before++) {
        const tutti_instruction *other = &s->program->instructions[before];
        bool touches = false;
        for (int o = 0; o < me->output_count; o++) {
            for (int i = 0; i < other->input_count; i++)
                touches = touches || same_memory(s->program, me->outputs[o], other->inputs[i]);
            for (int i = 0; i < other->output_count; i++)
                touches = touches || same_memory(s->program, me->outputs[o], other->outputs[i]);
        }
        for (int k = 0; k < me->input_count; k++) {
            for (int i = 0; i < other->output_count; i++)
                touches = touches || same_memory(s->program, me->inputs[k], other->outputs[i]);
            for (int i = 0; i < other->input_count; i++)
                touches = touches || ((writes_input(me, k) || writes_input(other, i)) &&
                                      same_memory(s->program, me->inputs[k], other->inputs[i]));
        }
        if (touches)
            ok = wait_for(s, before);
    }
    return ok;
}

static void join(streams *s, int32_t index, int32_t before)
{
    int stream = s->program->instructions[before].stream;
    for (int k = 0; k < s->count; k++)
        if (s->clock[before][k] > s->clock[index][k])
            s->clock[index][k] = s->clock[before][k];
    if (before + 1 > s->clock[index][stream])
        s->clock[index][stream] = before + 1;
}

static int32_t last_of_stream(const tutti_program *program, int stream, int32_t before)
{
    for (int32_t i = before - 1; i >= 0; i--)
        if (program->instructions[i].stream == stream)
            return i;
    return -1;
}

static tutti_status assign(streams *s, int32_t index, int *turn)
{
    tutti_instruction *me = &s->program->instructions[index];
    s->waits.count = 0;
    if (!collect(s, index))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    int32_t newest = -1;
    for (size_t i = 0; i < s->waits.count; i++)
        newest = s->waits.data[i] > newest ? s->waits.data[i] : newest;
    me->stream = newest >= 0 && index % 3 != 0 ? s->program->instructions[newest].stream
                                               : (*turn)++ % s->count;
    /* From the commit on there is one stream, and it begins when all others have finished. */
    if ((size_t)index >= s->program->commit_at)
        me->stream = 0;
    if ((size_t)index == s->program->commit_at)
        for (int k = 1; k < s->count; k++)
            if (!wait_for(s, last_of_stream(s->program, k, index)))
                return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    int32_t previous = last_of_stream(s->program, me->stream, index);
    if (previous >= 0)
        join(s, index, previous);
    me->awaits = tutti__arena_array(&s->program->arena, s->waits.count + 1, sizeof *me->awaits);
    if (!me->awaits)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    for (size_t i = 0; i < s->waits.count; i++) {
        tutti_instruction *before = &s->program->instructions[s->waits.data[i]];
        if (s->clock[index][before->stream] > s->waits.data[i])
            continue; /* known already */
        me->awaits[me->await_count++] = s->waits.data[i];
        before->signals = true;
        join(s, index, s->waits.data[i]);
    }
    return TUTTI_OK;
}

bool tutti__happens_before(const tutti_program *program, int32_t a, int32_t b)
{
    if (!program->clock)
        return a < b; /* one stream */
    return program->clock[b][program->instructions[a].stream] > a;
}

tutti_status tutti__program_streams(tutti_program *program)
{
    streams s = {.program = program, .count = program->device->target->streams};
    if (s.count <= 1 || program->instruction_count == 0)
        return TUTTI_OK;
    s.count = s.count > MAX_STREAMS ? MAX_STREAMS : s.count;
    size_t nodes = program->graph->nodes.count;
    s.clock = tutti__arena_array(&program->arena, program->instruction_count, sizeof *s.clock);
    s.node_instruction = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.node_instruction);
    s.seen = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.seen);
    s.stack = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.stack);
    if (!s.clock || !s.node_instruction || !s.seen || !s.stack)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    program->clock = s.clock;
    for (size_t i = 0; i < nodes; i++)
        s.node_instruction[i] = -1;
    int turn = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < program->instruction_count; i++) {
        status = assign(&s, (int32_t)i, &turn);
        if (program->instructions[i].run != tutti__copy_bytes)
            s.node_instruction[program->instructions[i].node->id] = (int32_t)i;
    }
    TUTTI_VEC_FREE(&s.waits);
    return status;
}
