/* order.c: which nodes become instructions, in which order, and which values share memory.
 *
 * A variable's memory is written only in the commit, which comes after everything that can fail.
 * What reads a variable without following an update of it sees the value of before the step. Such a
 * value is copied out where somebody wants it after the memory has been written.
 * When something that can fail follows an update, the program updates copies ("shadows") and moves
 * them into the variables at the very end.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

typedef struct order {
    tutti_program *program;
    tutti_graph *graph;
    tutti_arena *arena;
    size_t node_count;
    bool *commits;      /* by node id: an update or something that follows one */
    bool *runs;         /* by node id: becomes an instruction */
    int32_t *base;      /* by node id: index of its first value */
    int32_t *moved;     /* by node id: the copy that its first value is read from now, or -1 */
    int32_t *position;  /* by node id: its place in the sequence */
    tutti_node **sequence;
    size_t sequence_count;
    TUTTI_VEC(tutti_program_value) values;
    TUTTI_VEC(tutti_instruction) instructions;
    int32_t *shadow;    /* by variable: value that stands in for it, or -1 */
} order;

static tutti_status no_memory(void) { return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph"); }

/* Nodes that need no instruction: their value is somebody else's memory, or they have none. */
static bool is_silent(const tutti_node *node)
{
    return (node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_VIEW)) || tutti__is(node, "parameter") ||
           tutti__is(node, "constant") || (!node->op->reference && !(node->op->flags & TUTTI_OP_CONTROL)) ||
           (node->output_count == 0 && node->input_count == 0);
}

static void classify(order *o)
{
    for (size_t n = 0; n < o->node_count; n++) {
        tutti_node *node = o->graph->nodes.data[n];
        o->runs[n] = !is_silent(node);
        o->commits[n] = (node->op->flags & TUTTI_OP_UPDATES) || (tutti__is(node, "recv") && tutti__int(node, "late"));
        for (int i = 0; i < node->input_count; i++)
            o->commits[n] = o->commits[n] || o->commits[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            o->commits[n] = o->commits[n] || o->commits[node->controls[i]->id];
    }
}

/* What does not follow an update first, then the rest; both in the order of the graph. */
static void sequence(order *o)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t n = 0; n < o->node_count; n++)
            if (o->commits[n] == (pass == 1)) {
                o->position[n] = (int32_t)o->sequence_count;
                o->sequence[o->sequence_count++] = o->graph->nodes.data[n];
            }
}

static int32_t add_value(order *o, tutti_program_value value)
{
    int32_t index = (int32_t)o->values.count;
    if (value.root < 0)
        value.root = index;
    value.maker = -1;
    int64_t count = tutti_type_count(value.type);
    value.size = count > 0 ? (size_t)count * tutti_dtype_size(value.type->dtype) : 0;
    return TUTTI_VEC_PUSH(&o->values, value) ? index : -1;
}

static tutti_status bind_variable(order *o, const tutti_partition *partition, const tutti_node *node, uint32_t *ret_slot)
{
    tutti_program *program = o->program;
    tutti_piece *piece;
    TUTTI_TRY(tutti__bind_variable(partition->state, program->device, node, &piece));
    for (int i = 0; i < program->variable_count; i++)
        if (program->variables[i].piece == piece) {
            *ret_slot = (uint32_t)i;
            return TUTTI_OK;
        }
    *ret_slot = (uint32_t)program->variable_count;
    program->variables[program->variable_count++] = (tutti_program_variable){.piece = piece};
    return TUTTI_OK;
}

static tutti_status bind_queue(order *o, const tutti_partition *partition, const tutti_node *node, uint32_t *ret_slot)
{
    const char *name = tutti__str(node, "shared_name");
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    tutti_queue *queue;
    TUTTI_TRY(tutti__state_queue(partition->state, name[0] ? name : node->name, tutti__int(node, "capacity"),
                                 types ? types->count : 0, types ? types->value.types : NULL, &queue));
    *ret_slot = (uint32_t)o->program->queue_count;
    o->program->queues[o->program->queue_count++] = queue;
    return TUTTI_OK;
}

/* Where a node's first output lives. */
static tutti_status place(order *o, const tutti_partition *partition, const tutti_node *node, tutti_program_value *ret)
{
    tutti_program *program = o->program;
    tutti_program_value value = {.space = TUTTI_IN_ARENA, .root = -1, .type = &node->types[0]};
    if (tutti__is(node, "parameter")) {
        value.space = TUTTI_IN_INPUT;
        value.slot = (uint32_t)tutti__int(node, "index");
        if ((int)value.slot >= program->input_count)
            program->input_count = (int)value.slot + 1;
    } else if (tutti__is(node, "constant")) {
        value.space = TUTTI_IN_CONSTANT;
        value.slot = (uint32_t)program->constant_count;
        program->constants[program->constant_count++] = tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor;
    } else if (tutti__is(node, "variable")) {
        value.space = TUTTI_IN_VARIABLE;
        TUTTI_TRY(bind_variable(o, partition, node, &value.slot));
    } else if (node->op->flags & TUTTI_OP_HANDLE) {
        value.space = TUTTI_IN_QUEUE;
        TUTTI_TRY(bind_queue(o, partition, node, &value.slot));
    } else if (node->op->flags & (TUTTI_OP_VIEW | TUTTI_OP_UPDATES)) {
        tutti_edge from = node->inputs[0];
        value = o->values.data[o->base[from.node->id] + (int32_t)from.index];
        value.root = o->base[from.node->id] + (int32_t)from.index;
        value.root = o->values.data[value.root].root;
        value.type = &node->types[0];
    }
    *ret = value;
    return TUTTI_OK;
}

static tutti_status make_values(order *o, const tutti_partition *partition)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        o->base[n] = (int32_t)o->values.count;
        for (int i = 0; i < node->output_count; i++) {
            tutti_program_value value = {.space = TUTTI_IN_ARENA, .root = -1, .type = &node->types[i]};
            if (i == 0)
                TUTTI_TRY(place(o, partition, node, &value));
            if (value.space == TUTTI_IN_ARENA && value.root < 0 && !tutti_type_is_static(value.type)) {
                value.space = TUTTI_IN_DYNAMIC;
                value.slot = (uint32_t)o->program->dynamic_count++;
            }
            if (add_value(o, value) < 0)
                return no_memory();
        }
    }
    return TUTTI_OK;
}

static int32_t value_of(const order *o, tutti_edge edge)
{
    if (edge.index == 0 && o->moved[edge.node->id] >= 0)
        return o->moved[edge.node->id];
    return o->base[edge.node->id] + (int32_t)edge.index;
}

/* Every variable that an update node writes. */
static void mark_updates(order *o)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        if (!(node->op->flags & TUTTI_OP_UPDATES))
            continue;
        for (int i = 0; i < node->input_count; i++) {
            const tutti_program_value *value = &o->values.data[value_of(o, node->inputs[i])];
            if (!value->type->handle || value->space != TUTTI_IN_VARIABLE)
                continue;
            tutti_program_variable *variable = &o->program->variables[value->slot];
            if (!variable->updated) /* what the first update does not need, nobody sees */
                variable->keep = !(node->op->flags & TUTTI_OP_OVERWRITES);
            variable->updated = true;
            o->program->updates = true;
        }
    }
}

/* The last position up to which the memory of `variable` holds what `node` (a read or an update) gave:
 * the next update after it. */
static int32_t valid_until(const order *o, uint32_t slot, int32_t from)
{
    for (size_t p = (size_t)(from + 1); p < o->sequence_count; p++) {
        const tutti_node *node = o->sequence[p];
        if (!(node->op->flags & TUTTI_OP_UPDATES))
            continue;
        for (int i = 0; i < node->input_count; i++) {
            const tutti_program_value *value = &o->values.data[value_of(o, node->inputs[i])];
            if (value->type->handle && value->space == TUTTI_IN_VARIABLE && value->slot == slot)
                return (int32_t)p;
        }
    }
    return INT32_MAX;
}

/* Position of the last use of a node's value, through views; results count as the end. */
static int32_t last_use(const order *o, const tutti_node *node)
{
    int32_t last = -1;
    for (size_t n = node->id + 1; n < o->node_count; n++) {
        const tutti_node *user = o->graph->nodes.data[n];
        for (int i = 0; i < user->input_count; i++) {
            if (user->inputs[i].node != node || user->inputs[i].index != 0)
                continue;
            int32_t at = (user->op->flags & TUTTI_OP_VIEW) ? last_use(o, user) : o->position[n];
            last = at > last ? at : last;
        }
    }
    for (size_t i = 0; i < o->graph->results.count; i++)
        if (o->graph->results.data[i].node == node)
            last = INT32_MAX - 1;
    return last;
}

/* Where the value a read gives was made: -1 before the step, else the position of the update it follows. */
static int32_t read_position(const order *o, const tutti_node *read, uint32_t slot)
{
    if (!o->commits[read->id])
        return -1;
    int32_t latest = -1;
    bool *seen = calloc(o->node_count, 1);
    const tutti_node **stack = calloc(o->node_count + 1, sizeof *stack);
    size_t depth = 0;
    if (seen && stack)
        stack[depth++] = read;
    while (depth > 0) {
        const tutti_node *node = stack[--depth];
        for (int i = 0; i < node->input_count + node->control_count; i++) {
            const tutti_node *before = i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
            if (seen[before->id] || !o->commits[before->id])
                continue;
            seen[before->id] = true;
            stack[depth++] = before;
            for (int k = 0; (before->op->flags & TUTTI_OP_UPDATES) && k < before->input_count; k++) {
                const tutti_program_value *value = &o->values.data[value_of(o, before->inputs[k])];
                if (value->type->handle && value->slot == slot && o->position[before->id] > latest)
                    latest = o->position[before->id];
            }
        }
    }
    free(seen);
    free(stack);
    return latest;
}

static tutti_status add_instruction(order *o, const tutti_node *node, tutti_kernel_fn *run, int input_count,
                                    const int32_t *inputs, int output_count, const int32_t *outputs)
{
    tutti_instruction instruction = {.node = node, .run = run, .input_count = input_count,
                                     .output_count = output_count, .workspace = -1};
    instruction.inputs = (void *)tutti__arena_bytes(o->arena, inputs, (size_t)input_count * sizeof *inputs);
    instruction.outputs = (void *)tutti__arena_bytes(o->arena, outputs, (size_t)output_count * sizeof *outputs);
    if (!instruction.inputs || !instruction.outputs || !TUTTI_VEC_PUSH(&o->instructions, instruction))
        return no_memory();
    for (int i = 0; i < output_count; i++)
        o->values.data[outputs[i]].maker = (int32_t)o->instructions.count - 1;
    return TUTTI_OK;
}

/* From here on the node's value, and views of it, are read from a copy made at this point. What was
 * emitted before has read the variable itself. */
static tutti_status materialize(order *o, const tutti_node *node)
{
    int32_t source = o->base[node->id];
    tutti_program_value copy = {.space = TUTTI_IN_ARENA, .root = -1, .type = &node->types[0]};
    int32_t index = add_value(o, copy);
    if (index < 0)
        return no_memory();
    TUTTI_TRY(add_instruction(o, node, tutti__copy_bytes, 1, &source, 1, &index));
    o->moved[node->id] = index;
    for (size_t n = node->id + 1; n < o->node_count; n++) {
        const tutti_node *user = o->graph->nodes.data[n];
        if (!(user->op->flags & TUTTI_OP_VIEW) || tutti__is(user, "read") || user->inputs[0].index != 0 ||
            o->moved[user->inputs[0].node->id] < 0)
            continue;
        tutti_program_value view = o->values.data[o->moved[user->inputs[0].node->id]];
        view.type = &user->types[0];
        if ((o->moved[n] = add_value(o, view)) < 0)
            return no_memory();
    }
    return TUTTI_OK;
}

/* Copies the values of variables that somebody wants after the memory has been written again; called
 * with the position that is about to be reached, -1 for before the commit. */
static tutti_status save_old_values(order *o, int32_t made_at)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        bool update = (node->op->flags & TUTTI_OP_UPDATES) && node->output_count > 0;
        if (!update && !tutti__is(node, "read"))
            continue;
        const tutti_program_value *value = &o->values.data[o->base[n]];
        if (value->space != TUTTI_IN_VARIABLE || !o->program->variables[value->slot].updated)
            continue;
        int32_t made = update ? o->position[n] : read_position(o, node, value->slot);
        if (made != made_at)
            continue;
        /* An update itself may use the old value of its own variable; it does so before it writes. */
        if (last_use(o, node) > valid_until(o, value->slot, made))
            TUTTI_TRY(materialize(o, node));
    }
    return TUTTI_OK;
}

static tutti_status emit(order *o, const tutti_node *node)
{
    int32_t few_in[16], few_out[16], *inputs = few_in, *outputs = few_out;
    if (node->input_count > 16)
        inputs = tutti__arena_array(o->arena, (size_t)node->input_count, sizeof *inputs);
    if (node->output_count > 16)
        outputs = tutti__arena_array(o->arena, (size_t)node->output_count, sizeof *outputs);
    if (!inputs || !outputs)
        return no_memory();
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = value_of(o, node->inputs[i]);
        const tutti_program_value *value = &o->values.data[inputs[i]];
        if (value->space == TUTTI_IN_VARIABLE && o->shadow && o->shadow[value->slot] >= 0 && o->commits[node->id])
            inputs[i] = o->shadow[value->slot];
    }
    for (int i = 0; i < node->output_count; i++)
        outputs[i] = o->base[node->id] + i;
    return add_instruction(o, node, node->op->reference, node->input_count, inputs, node->output_count, outputs);
}

static bool something_can_fail(const order *o)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        uint32_t risky = TUTTI_OP_FALLIBLE | TUTTI_OP_BLOCKING | TUTTI_OP_CONTROL | TUTTI_OP_COLLECTIVE | TUTTI_OP_DYNAMIC;
        bool transfer = tutti__is(node, "send") || tutti__is(node, "recv");
        if (o->commits[n] && o->runs[n] && !transfer && (node->op->flags & risky) && !(node->op->flags & TUTTI_OP_UPDATES))
            return true;
    }
    return false;
}

/* Updated variables get stand-ins, filled before the first update; values after it move there too. */
static tutti_status make_shadows(order *o)
{
    o->shadow = tutti__arena_array(o->arena, (size_t)o->program->variable_count + 1, sizeof *o->shadow);
    if (!o->shadow)
        return no_memory();
    for (int v = 0; v < o->program->variable_count; v++) {
        o->shadow[v] = -1;
        tutti_program_variable *variable = &o->program->variables[v];
        if (!variable->updated)
            continue;
        tutti_program_value stand_in = {.space = TUTTI_IN_ARENA, .root = -1, .type = &variable->piece->type};
        tutti_program_value source = {.space = TUTTI_IN_VARIABLE, .slot = (uint32_t)v, .root = -1, .type = &variable->piece->type};
        int32_t from = add_value(o, source), to = add_value(o, stand_in);
        if (from < 0 || to < 0)
            return no_memory();
        o->shadow[v] = to;
        if (variable->keep) {
            variable->read = true;
            TUTTI_TRY(add_instruction(o, o->graph->nodes.data[0], tutti__copy_bytes, 1, &from, 1, &to));
        }
    }
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        if (node->output_count == 0 || !o->commits[n])
            continue;
        tutti_program_value *value = &o->values.data[o->base[n]];
        if (value->space == TUTTI_IN_VARIABLE && o->shadow[value->slot] >= 0 && !value->type->handle &&
            ((node->op->flags & TUTTI_OP_UPDATES) || read_position(o, node, value->slot) >= 0 ||
             ((node->op->flags & TUTTI_OP_VIEW) && !tutti__is(node, "read")))) {
            value->root = o->shadow[value->slot];
            value->space = TUTTI_IN_ARENA;
        }
    }
    return TUTTI_OK;
}

/* The commit of a program with shadows: they move into the variables. */
static tutti_status move_shadows(order *o)
{
    for (int v = 0; v < o->program->variable_count; v++) {
        if (o->shadow[v] < 0)
            continue;
        tutti_program_value target = {.space = TUTTI_IN_VARIABLE, .slot = (uint32_t)v, .root = -1,
                              .type = &o->program->variables[v].piece->type};
        int32_t to = add_value(o, target);
        if (to < 0)
            return no_memory();
        TUTTI_TRY(add_instruction(o, o->graph->nodes.data[0], tutti__copy_bytes, 1, &o->shadow[v], 1, &to));
        o->program->variables[v].keep = false;
    }
    return TUTTI_OK;
}

static tutti_status make_instructions(order *o)
{
    bool shadows = o->program->updates && something_can_fail(o);
    bool committing = false;
    for (size_t p = 0; p <= o->sequence_count; p++) {
        bool at_commit = p == o->sequence_count || o->commits[o->sequence[p]->id];
        if (at_commit && !committing) {
            committing = true;
            TUTTI_TRY(save_old_values(o, -1));
            if (shadows)
                TUTTI_TRY(make_shadows(o));
            else
                o->program->commit_at = o->instructions.count;
        }
        if (p == o->sequence_count)
            break;
        const tutti_node *node = o->sequence[p];
        if (o->runs[node->id])
            TUTTI_TRY(emit(o, node));
        if ((node->op->flags & TUTTI_OP_UPDATES) && !shadows)
            TUTTI_TRY(save_old_values(o, (int32_t)p));
    }
    if (shadows) {
        o->program->commit_at = o->instructions.count;
        TUTTI_TRY(move_shadows(o));
    }
    return TUTTI_OK;
}

/* A variable is read when its memory is used before the commit. */
static void mark_reads(order *o)
{
    for (size_t i = 0; i < o->instructions.count; i++) {
        const tutti_instruction *instruction = &o->instructions.data[i];
        for (int k = 0; k < instruction->input_count; k++) {
            const tutti_program_value *value = &o->values.data[instruction->inputs[k]];
            bool asks = instruction->node && tutti__is(instruction->node, "is_initialized");
            if (value->space == TUTTI_IN_VARIABLE && i < o->program->commit_at && !asks)
                o->program->variables[value->slot].read = true;
        }
    }
}

static tutti_status make_results(order *o)
{
    tutti_program *program = o->program;
    program->result_count = (int)o->graph->results.count;
    program->results = tutti__arena_array(o->arena, (size_t)program->result_count + 1, sizeof *program->results);
    if (!program->results)
        return no_memory();
    for (int i = 0; i < program->result_count; i++) {
        tutti_edge edge = o->graph->results.data[i];
        int32_t index = value_of(o, edge);
        if ((int)edge.index >= edge.node->output_count || edge.node->types[edge.index].handle)
            return tutti_fail(TUTTI_INVALID, "'%s' has no value to fetch; name it as a target instead", edge.node->name);
        tutti_program_value *root = &o->values.data[o->values.data[index].root];
        tutti_program_result *result = &program->results[i];
        *result = (tutti_program_result){.value = index, .copy = true, .after_commit = o->commits[edge.node->id]};
        if (o->values.data[index].space == TUTTI_IN_VARIABLE && !result->after_commit)
            program->variables[o->values.data[index].slot].read = true;
        if (root->space == TUTTI_IN_ARENA && root->maker >= 0 && root->type->dtype != TUTTI_STRING) {
            root->space = TUTTI_IN_RESULT; /* its kernel writes straight into the result */
            root->slot = (uint32_t)i;
            result->copy = false;
        } else if (root->space == TUTTI_IN_DYNAMIC) {
            result->copy = false;
        }
    }
    for (size_t i = 0; i < o->values.count; i++) { /* views follow their root */
        tutti_program_value *value = &o->values.data[i], *root = &o->values.data[value->root];
        if (root->space == TUTTI_IN_RESULT) {
            value->space = root->space;
            value->slot = root->slot;
        }
    }
    return TUTTI_OK;
}

static tutti_status run(order *o, const tutti_partition *partition)
{
    classify(o);
    sequence(o);
    TUTTI_TRY(make_values(o, partition));
    mark_updates(o);
    TUTTI_TRY(make_instructions(o));
    mark_reads(o);
    return make_results(o);
}

tutti_status tutti__program_order(tutti_program *program, const tutti_partition *partition)
{
    order o = {.program = program, .graph = program->graph, .arena = &program->arena,
               .node_count = program->graph->nodes.count};
    size_t count = o.node_count + 1;
    o.commits = tutti__arena_array(o.arena, count, sizeof *o.commits);
    o.runs = tutti__arena_array(o.arena, count, sizeof *o.runs);
    o.base = tutti__arena_array(o.arena, count, sizeof *o.base);
    o.moved = tutti__arena_array(o.arena, count, sizeof *o.moved);
    o.position = tutti__arena_array(o.arena, count, sizeof *o.position);
    o.sequence = tutti__arena_array(o.arena, count, sizeof *o.sequence);
    program->constants = tutti__arena_array(o.arena, count, sizeof *program->constants);
    program->variables = tutti__arena_array(o.arena, count, sizeof *program->variables);
    program->queues = tutti__arena_array(o.arena, count, sizeof *program->queues);
    if (!o.commits || !o.runs || !o.base || !o.moved || !o.position || !o.sequence || !program->constants || !program->variables ||
        !program->queues)
        return no_memory();
    for (size_t i = 0; i < count; i++)
        o.moved[i] = -1;
    tutti_status status = run(&o, partition);
    if (status == TUTTI_OK) {
        program->value_count = o.values.count;
        program->instruction_count = o.instructions.count;
        program->values = (void *)tutti__arena_bytes(o.arena, o.values.data, o.values.count * sizeof *o.values.data);
        program->instructions =
            (void *)tutti__arena_bytes(o.arena, o.instructions.data, o.instructions.count * sizeof *o.instructions.data);
        if (!program->values || !program->instructions)
            status = no_memory();
        if (status != TUTTI_OK)
            program->instruction_count = 0;
    }
    TUTTI_VEC_FREE(&o.values);
    TUTTI_VEC_FREE(&o.instructions);
    return status;
}
