/* streams.c: gives instructions their stream and the tokens between streams.
 *
 * An instruction goes to the stream of the last thing it waits for, so that chains stay together;
 * one that waits for nothing takes the next stream in turn. Clocks are vectors: clock[i][s] is one
 * more than the last instruction of stream s known to have finished before i starts.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

typedef TUTTI_VEC(int32_t) indices;

/* What was done to some memory since it was last written. What came before, its writer has waited
 * for. */
typedef struct memory {
    int32_t writer; /* or -1 */
    struct reader {
        int32_t instruction;
        struct reader *next;
    } * readers;
} memory;

typedef struct streams {
    tutti_program *program;
    int count;
    int32_t (*clock)[TUTTI_MAX_STREAMS]; /* by instruction, before it starts */
    int32_t last[TUTTI_MAX_STREAMS];     /* instruction of each stream so far, or -1 */
    memory *memories;                    /* by variable's slot, then by root value */
    int32_t *node_instruction;           /* by node id: its last instruction, or -1 */
    indices waits;                       /* of the instruction at hand */
    int32_t *waiting;                    /* by instruction: who waited for it last */
    int32_t at;                          /* the instruction at hand */
    uint32_t *seen;                      /* by node id: number of the last search that came by */
    uint32_t search;
    const tutti_node **stack;
} streams;

static bool wait_for(streams *s, int32_t instruction)
{
    if (instruction < 0 || s->waiting[instruction] == s->at)
        return true;
    s->waiting[instruction] = s->at;
    return TUTTI_VEC_PUSH(&s->waits, instruction);
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

static memory *memory_of(streams *s, int32_t value)
{
    size_t root = (size_t)s->program->values[value].root;
    const tutti_program_value *whole = &s->program->values[root];
    return &s->memories[whole->space == TUTTI_IN_VARIABLE
                            ? whole->slot
                            : (size_t)s->program->variable_count + root];
}

/* An update writes where its handles lead: the variable, or what stands in for it until the commit.
 */
static bool writes_input(const tutti_instruction *instruction, int input)
{
    const tutti_node *node = instruction->node;
    return node && instruction->run != tutti__copy_bytes && (node->op->flags & TUTTI_OP_UPDATES) &&
           input < node->input_count && tutti__edge_type(node->inputs[input])->handle;
}

static bool wait_for_users(streams *s, int32_t value, bool writes)
{
    const memory *m = memory_of(s, value);
    bool ok = wait_for(s, m->writer);
    for (const struct reader *r = writes ? m->readers : NULL; r && ok; r = r->next)
        ok = wait_for(s, r->instruction);
    return ok;
}

static bool note_use(streams *s, int32_t value, bool writes)
{
    memory *m = memory_of(s, value);
    if (writes) {
        *m = (memory){.writer = s->at};
    } else if (m->writer != s->at) {
        struct reader *one = tutti__arena_take(&s->program->arena, sizeof *one);
        if (!one)
            return false;
        *one = (struct reader){s->at, m->readers};
        m->readers = one;
    }
    return true;
}

/* Everything that touches memory which this instruction writes, and the makers of what it reads. */
static bool collect(streams *s)
{
    const tutti_instruction *me = &s->program->instructions[s->at];
    bool ok = true;
    for (int i = 0; i < me->input_count; i++)
        ok = ok && wait_for(s, s->program->values[s->program->values[me->inputs[i]].root].maker);
    if (me->node)
        ok = ok && wait_for_all_before(s, me->node, me->run != tutti__copy_bytes);
    for (int i = 0; i < me->input_count; i++)
        ok = ok && wait_for_users(s, me->inputs[i], writes_input(me, i));
    for (int o = 0; o < me->output_count; o++)
        ok = ok && wait_for_users(s, me->outputs[o], true);
    for (int o = 0; o < me->output_count; o++)
        ok = ok && note_use(s, me->outputs[o], true);
    for (int i = 0; i < me->input_count; i++)
        ok = ok && note_use(s, me->inputs[i], writes_input(me, i));
    return ok;
}

static void streams_join(streams *s, int32_t index, int32_t before)
{
    int stream = s->program->instructions[before].stream;
    for (int k = 0; k < s->count; k++)
        if (s->clock[before][k] > s->clock[index][k])
            s->clock[index][k] = s->clock[before][k];
    if (before + 1 > s->clock[index][stream])
        s->clock[index][stream] = before + 1;
}

static tutti_status assign(streams *s, int *turn)
{
    int32_t index = s->at;
    tutti_instruction *me = &s->program->instructions[index];
    s->waits.count = 0;
    if (!collect(s))
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
            if (!wait_for(s, s->last[k]))
                return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    if (s->last[me->stream] >= 0)
        streams_join(s, index, s->last[me->stream]);
    me->awaits = tutti__arena_array(&s->program->arena, s->waits.count + 1, sizeof *me->awaits);
    if (!me->awaits)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    for (size_t i = 0; i < s->waits.count; i++) {
        tutti_instruction *before = &s->program->instructions[s->waits.data[i]];
        if (s->clock[index][before->stream] > s->waits.data[i])
            continue; /* known already */
        me->awaits[me->await_count++] = s->waits.data[i];
        before->signals = true;
        streams_join(s, index, s->waits.data[i]);
    }
    s->last[me->stream] = index;
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
    s.count = s.count > TUTTI_MAX_STREAMS ? TUTTI_MAX_STREAMS : s.count;
    size_t nodes = program->graph->nodes.count;
    size_t memories = (size_t)program->variable_count + program->value_count;
    s.clock = tutti__arena_array(&program->arena, program->instruction_count, sizeof *s.clock);
    s.waiting = tutti__arena_array(&program->arena, program->instruction_count, sizeof *s.waiting);
    s.memories = tutti__arena_array(&program->arena, memories + 1, sizeof *s.memories);
    s.node_instruction = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.node_instruction);
    s.seen = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.seen);
    s.stack = tutti__arena_array(&program->arena, nodes + 1, sizeof *s.stack);
    if (!s.clock || !s.waiting || !s.memories || !s.node_instruction || !s.seen || !s.stack)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    program->clock = s.clock;
    for (size_t i = 0; i < nodes; i++)
        s.node_instruction[i] = -1;
    for (size_t i = 0; i < memories; i++)
        s.memories[i].writer = -1;
    for (int k = 0; k < s.count; k++)
        s.last[k] = -1;
    int turn = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < program->instruction_count; i++) {
        s.at = (int32_t)i;
        status = assign(&s, &turn);
        if (program->instructions[i].run != tutti__copy_bytes)
            s.node_instruction[program->instructions[i].node->id] = (int32_t)i;
    }
    TUTTI_VEC_FREE(&s.waits);
    return status;
}
