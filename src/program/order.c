/* order.c: which nodes become instructions, in which order, and which values share memory.
 *
 * A variable's memory is written only in the commit, which comes after everything that can fail.
 * What reads a variable without following an update of it sees the value of before the step. Such a
 * value is copied out where somebody wants it after the memory has been written.
 * When something that can fail follows an update, the program updates copies ("shadows") and moves
 * them into the variables at the very end.
 */
#include "program/order.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
}

/* Nodes that need no instruction: their value is somebody else's memory, or they have none. */
static bool is_silent(const tutti_node *node)
{
    return (node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_VIEW)) || tutti__is(node, "parameter") ||
           tutti__is(node, "constant") ||
           (!node->op->reference && !(node->op->flags & TUTTI_OP_CONTROL)) ||
           (node->output_count == 0 && node->input_count == 0);
}

static void classify(tutti_order *o)
{
    for (size_t n = 0; n < o->node_count; n++)
        o->runs[n] = !is_silent(o->graph->nodes.data[n]);
    tutti__find_after_update(o->graph, o->commits);
}

int32_t tutti__order_value(tutti_order *o, tutti_program_value value)
{
    int32_t index = (int32_t)o->values.count;
    if (value.root < 0)
        value.root = index;
    value.maker = -1;
    int64_t count = tutti_type_count(value.type), bytes = 0;
    bool fits =
        count <= 0 || tutti__mul_size(count, (int64_t)tutti_dtype_size(value.type->dtype), &bytes);
    value.size = fits && count != -2 ? (size_t)bytes : SIZE_MAX; /* memory.c refuses that */
    return TUTTI_VEC_PUSH(&o->values, value) ? index : -1;
}

static tutti_status bind_variable(tutti_order *o, const tutti_partition *partition,
                                  const tutti_node *node, uint32_t *ret_slot)
{
    tutti_program *program = o->program;
    tutti_piece *piece;
    TUTTI_TRY(tutti__bind_variable(partition->state, program->device, node, &piece));
    int64_t slot = tutti__pointers_get(&o->slots, piece);
    if (slot >= 0) {
        *ret_slot = (uint32_t)slot;
        return TUTTI_OK;
    }
    if (!tutti__pointers_add(&o->slots, piece, program->variable_count))
        return no_memory();
    *ret_slot = (uint32_t)program->variable_count;
    program->variables[program->variable_count++] = (tutti_program_variable){.piece = piece};
    return TUTTI_OK;
}

static tutti_status bind_queue(tutti_order *o, const tutti_partition *partition,
                               const tutti_node *node, uint32_t *ret_slot)
{
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    tutti_queue *queue;
    tutti_queue_order order = {.kind = (tutti_queue_kind)tutti__int(node, "kind"),
                               .min_after_dequeue = tutti__int(node, "min_after_dequeue"),
                               .seed = (uint64_t)tutti__int(node, "seed")};
    TUTTI_TRY(tutti__state_queue_ordered(partition->state, tutti__state_name(node),
                                         tutti__int(node, "capacity"), types ? types->count : 0,
                                         types ? types->value.types : NULL, &order, &queue));
    *ret_slot = (uint32_t)o->program->queue_count;
    o->program->queues[o->program->queue_count++] = queue;
    return TUTTI_OK;
}

/* Where a node's first output lives. */
static tutti_status order_place(tutti_order *o, const tutti_partition *partition,
                                const tutti_node *node, tutti_program_value *ret)
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
        program->constants[program->constant_count++] =
            tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor;
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

static tutti_status make_values(tutti_order *o, const tutti_partition *partition)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        o->base[n] = (int32_t)o->values.count;
        for (int i = 0; i < node->output_count; i++) {
            tutti_program_value value = {
                .space = TUTTI_IN_ARENA, .root = -1, .type = &node->types[i]};
            if (i == 0)
                TUTTI_TRY(order_place(o, partition, node, &value));
            if (value.space == TUTTI_IN_ARENA && value.root < 0 &&
                !tutti_type_is_static(value.type)) {
                value.space = TUTTI_IN_DYNAMIC;
                value.slot = (uint32_t)o->program->dynamic_count++;
            }
            if (tutti__order_value(o, value) < 0)
                return no_memory();
        }
    }
    return TUTTI_OK;
}

int32_t tutti__order_value_of(const tutti_order *o, tutti_edge edge)
{
    if (edge.index == 0 && o->moved[edge.node->id] >= 0)
        return o->moved[edge.node->id];
    return o->base[edge.node->id] + (int32_t)edge.index;
}

tutti_status tutti__order_instruction(tutti_order *o, const tutti_node *node, tutti_kernel_fn *run,
                                      int input_count, const int32_t *inputs, int output_count,
                                      const int32_t *outputs)
{
    tutti_instruction instruction = {.node = node,
                                     .run = run,
                                     .input_count = input_count,
                                     .output_count = output_count,
                                     .workspace = -1};
    instruction.inputs =
        (void *)tutti__arena_bytes(o->arena, inputs, (size_t)input_count * sizeof *inputs);
    instruction.outputs =
        (void *)tutti__arena_bytes(o->arena, outputs, (size_t)output_count * sizeof *outputs);
    if (!instruction.inputs || !instruction.outputs ||
        !TUTTI_VEC_PUSH(&o->instructions, instruction))
        return no_memory();
    for (int i = 0; i < output_count; i++)
        o->values.data[outputs[i]].maker = (int32_t)o->instructions.count - 1;
    return TUTTI_OK;
}

static tutti_status emit(tutti_order *o, const tutti_node *node)
{
    int32_t few_in[16], few_out[16], *inputs = few_in, *outputs = few_out;
    if (node->input_count > 16)
        inputs = tutti__arena_array(o->arena, (size_t)node->input_count, sizeof *inputs);
    if (node->output_count > 16)
        outputs = tutti__arena_array(o->arena, (size_t)node->output_count, sizeof *outputs);
    if (!inputs || !outputs)
        return no_memory();
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = tutti__order_value_of(o, node->inputs[i]);
        const tutti_program_value *value = &o->values.data[inputs[i]];
        if (value->type->handle && value->space == TUTTI_IN_VARIABLE && o->shadow &&
            o->shadow[value->slot] >= 0 && o->commits[node->id])
            inputs[i] = o->shadow[value->slot];
    }
    for (int i = 0; i < node->output_count; i++)
        outputs[i] = o->base[node->id] + i;
    return tutti__order_instruction(o, node, node->op->reference, node->input_count, inputs,
                                    node->output_count, outputs);
}

static tutti_status make_instructions(tutti_order *o, const tutti_partition *partition)
{
    bool shadows = partition->shadows || tutti__fails_after_update(o->graph, o->commits);
    bool committing = false;
    o->program->shadows = shadows && o->program->updates;
    for (size_t p = 0; p <= o->sequence_count; p++) {
        bool at_commit = p == o->sequence_count || o->commits[o->sequence[p]->id];
        if (at_commit && !committing) {
            committing = true;
            TUTTI_TRY(tutti__order_save(o, -1));
            if (shadows)
                TUTTI_TRY(tutti__order_shadows(o));
            else
                o->program->commit_at = o->instructions.count;
        }
        if (p == o->sequence_count)
            break;
        const tutti_node *node = o->sequence[p];
        if (o->runs[node->id])
            TUTTI_TRY(emit(o, node));
        if (node->op->flags & TUTTI_OP_UPDATES)
            TUTTI_TRY(tutti__order_save(o, (int32_t)p));
    }
    if (shadows) {
        o->program->commit_at = o->instructions.count;
        TUTTI_TRY(tutti__order_move_shadows(o));
    }
    return TUTTI_OK;
}

static tutti_status make_results(tutti_order *o)
{
    tutti_program *program = o->program;
    program->result_count = (int)o->graph->results.count;
    program->results =
        tutti__arena_array(o->arena, (size_t)program->result_count + 1, sizeof *program->results);
    if (!program->results)
        return no_memory();
    for (int i = 0; i < program->result_count; i++) {
        tutti_edge edge = o->graph->results.data[i];
        int32_t index = tutti__order_value_of(o, edge);
        if ((int)edge.index >= edge.node->output_count || edge.node->types[edge.index].handle)
            return tutti_fail(TUTTI_INVALID,
                              "'%s' has no value to fetch; name it as a target instead",
                              edge.node->name);
        tutti_program_value *root = &o->values.data[o->values.data[index].root];
        tutti_program_result *result = &program->results[i];
        *result = (tutti_program_result){
            .value = index, .copy = true, .after_commit = o->commits[edge.node->id]};
        tutti_program_variable *variable = &program->variables[o->values.data[index].slot];
        if (o->values.data[index].space == TUTTI_IN_VARIABLE &&
            (!result->after_commit || !variable->updated))
            variable->read = true;
        if (root->space == TUTTI_IN_ARENA && root->maker >= 0 &&
            root->type->dtype != TUTTI_STRING &&
            !(edge.node->op->flags & TUTTI_OP_COLLECTIVE)) { /* those lie alike on all devices */
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

static tutti_status order_run(tutti_order *o, const tutti_partition *partition)
{
    classify(o);
    TUTTI_TRY(tutti__order_sequence(o));
    TUTTI_TRY(make_values(o, partition));
    TUTTI_TRY(tutti__order_mark_updates(o));
    TUTTI_TRY(make_instructions(o, partition));
    TUTTI_TRY(tutti__order_mark_reads(o));
    return make_results(o);
}

tutti_status tutti__program_order(tutti_program *program, const tutti_partition *partition)
{
    tutti_order o = {.program = program,
                     .graph = program->graph,
                     .arena = &program->arena,
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
    if (!o.commits || !o.runs || !o.base || !o.moved || !o.position || !o.sequence ||
        !program->constants || !program->variables || !program->queues)
        return no_memory();
    for (size_t i = 0; i < count; i++)
        o.moved[i] = -1;
    tutti_status status = order_run(&o, partition);
    if (status == TUTTI_OK) {
        program->value_count = o.values.count;
        program->instruction_count = o.instructions.count;
        program->values = (void *)tutti__arena_bytes(o.arena, o.values.data,
                                                     o.values.count * sizeof *o.values.data);
        program->instructions = (void *)tutti__arena_bytes(
            o.arena, o.instructions.data, o.instructions.count * sizeof *o.instructions.data);
        if (!program->values || !program->instructions)
            status = no_memory();
        if (status != TUTTI_OK)
            program->instruction_count = 0;
    }
    tutti__pointers_free(&o.slots);
    TUTTI_VEC_FREE(&o.values);
    TUTTI_VEC_FREE(&o.instructions);
    return status;
}
