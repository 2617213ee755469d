/* bind.c: what every runner of programs does around a run: calls of instructions, snapshots of
 * variables, outputs whose size depends on data, outputs that come as finished tensors. */
#include <string.h>

#include "program/dynamic.h"
#include "program/program.h"

tutti_kernel_call tutti__instruction_call(const tutti_program *program,
                                          const tutti_instruction *instruction, tutti_view *views,
                                          void *context)
{
    const tutti_node *node = instruction->node;
    return (tutti_kernel_call){.op = node->op,
                               .name = node->name,
                               .attrs = node->attrs,
                               .attr_count = node->attr_count,
                               .input_count = instruction->input_count,
                               .output_count = instruction->output_count,
                               .inputs = views,
                               .outputs = views + instruction->input_count,
                               .plan = instruction->plan,
                               .pool = program->device->pool,
                               .context = context};
}

static tutti_status named(tutti_status status, const tutti_node *node)
{
    char place[TUTTI_PLACE_TEXT];
    if (status != TUTTI_INVALID)
        return status;
    return tutti__error_prefix(status, "%s '%s'%s", node->op->name, node->name,
                               tutti__node_place(node, place));
}

/* The variable's own type: that of its piece, or what the piece is of. */
static tutti_type whole_type(const tutti_node *node)
{
    const int64_t *dims;
    int rank = tutti_attr_ints(node->attrs, node->attr_count, "global_dims", &dims);
    return rank > 0 ? tutti_type_make(node->types[0].dtype, rank, dims) : node->types[0];
}

tutti_status tutti__node_variable(tutti_state *state, const tutti_node *node,
                                  tutti_state_variable **ret)
{
    tutti_type type = whole_type(node);
    return named(tutti__state_variable(state, tutti__state_name(node), &type,
                                       tutti__str(node, "slot_of"),
                                       tutti__int(node, "trainable") != 0, ret),
                 node);
}

tutti_status tutti__bind_variable(tutti_state *state, const tutti_device *device,
                                  const tutti_node *node, tutti_piece **ret)
{
    tutti_state_variable *variable;
    TUTTI_TRY(tutti__node_variable(state, node, &variable));
    variable->partial = tutti__int(node, "partial") == 1;
    variable->averaged = tutti__int(node, "partial") == 2;
    tutti_piece_box box = {.box = tutti__box_whole(&node->types[0]),
                           .first = tutti__int(node, "first") != 0,
                           .local = (int)tutti__int(node, "local")};
    const int64_t *start;
    int rank = tutti_attr_ints(node->attrs, node->attr_count, "start", &start);
    for (int d = 0; d < rank; d++)
        box.box.offset[d] = start[d];
    return named(tutti__state_piece_box(state, variable, &box, device->name, device->memory, ret),
                 node);
}

void tutti__run_taken(tutti_run *run)
{
    int before = run->taking;
    while (before > 0 && !atomic_compare_exchange_weak(&run->taking, &before, before - 1))
        ;
    if (before == 1)
        tutti__state_unhold(run->state);
}

void tutti__run_let_go(tutti_run *run)
{
    if (atomic_exchange(&run->taking, 0) > 0)
        tutti__state_unhold(run->state);
}

/* Values may be taken; no variable is torn that the program reads. */
static tutti_status read_begin(const tutti_program *program, tutti_run *run)
{
    tutti_status status = TUTTI_OK;
    tutti__state_read_begin(run->state);
    for (int v = 0; status == TUTTI_OK && v < program->variable_count; v++) {
        const tutti_program_variable *variable = &program->variables[v];
        if (variable->read || (variable->updated && variable->keep))
            status = tutti__variable_intact(variable->piece->variable);
    }
    if (status != TUTTI_OK)
        tutti__state_read_end(run->state);
    return status;
}

static tutti_status take_all(const tutti_program *program, tutti_run *run,
                             tutti_tensor **ret_snapshots)
{
    if (program->variable_count == 0)
        return TUTTI_OK;
    int counter = -1;
    int64_t ahead = 0;
    TUTTI_TRY(read_begin(program, run));
    for (int v = 0; v < program->variable_count; v++) {
        const tutti_piece *piece = program->variables[v].piece;
        ret_snapshots[v] = tutti__piece_take(piece);
        if (piece->variable == run->ticket.counter) {
            counter = v;
            ahead = tutti__ticket_ahead(&run->ticket, piece->variable);
        }
    }
    tutti__state_read_end(run->state);
    return counter < 0 ? TUTTI_OK
                       : tutti__ticket_apply(program->variables[counter].piece, ahead,
                                             &ret_snapshots[counter]);
}

tutti_status tutti__variable_missing(const tutti_graph *graph, const char *name)
{
    char place[TUTTI_PLACE_TEXT] = "";
    for (size_t n = 0; n < graph->nodes.count && place[0] == '\0'; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (tutti__is(node, "variable") && strcmp(tutti__state_name(node), name) == 0)
            tutti__node_place(node, place);
    }
    return tutti_fail(
        TUTTI_UNINITIALIZED,
        "variable '%s'%s is used before it was initialised; run "
        "tutti_initialize_variables(graph) first; made since that ran, it can be given its "
        "value alone by tutti_session_set",
        name, place);
}

tutti_status tutti__program_snapshot(const tutti_program *program, tutti_run *run,
                                     tutti_tensor **ret_snapshots)
{
    TUTTI_TRY(take_all(program, run, ret_snapshots));
    tutti__run_taken(run);
    for (int v = 0; v < program->variable_count; v++) {
        const tutti_program_variable *variable = &program->variables[v];
        if (!ret_snapshots[v] && (variable->read || (variable->updated && variable->keep)))
            return tutti__variable_missing(program->graph, variable->piece->variable->name);
    }
    return TUTTI_OK;
}

void tutti__program_committed(const tutti_program *program, tutti_status status)
{
    for (int v = 0; v < program->variable_count; v++) {
        const tutti_program_variable *variable = &program->variables[v];
        if (variable->updated)
            variable->piece->variable->torn = status != TUTTI_OK;
    }
}

void tutti__tensors_drop(int count, tutti_tensor **tensors)
{
    for (int i = 0; i < count; i++) {
        tutti_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

/* Of an output whose shape depends on data the rank and some dimensions may be known. */
static tutti_status check_shape(const tutti_kernel_call *call, int index, const tutti_type *type,
                                const tutti_type *said)
{
    char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
    bool fits = type->rank == said->rank;
    for (int d = 0; fits && d < said->rank; d++)
        fits = said->dims[d] < 0 || said->dims[d] == type->dims[d];
    return fits ? TUTTI_OK
                : tutti_fail(TUTTI_INVALID, "%s '%s': output %d is %s, its shape rule said %s",
                             call->op->name, call->name, index, tutti_type_text(type, have),
                             tutti_type_text(said, want));
}

tutti_status tutti__program_dynamic(const tutti_program *program, const tutti_context *context,
                                    int result, tutti_tensor **ret)
{
    int32_t at = program->results[result].value;
    tutti_tensor *tensor = context->dynamic[program->values[at].slot];
    if (tensor) {
        *ret = tutti_tensor_retain(tensor);
        return TUTTI_OK;
    }
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        for (int k = 0; k < instruction->output_count; k++)
            if (instruction->outputs[k] == at)
                return tutti__node_failed(
                    instruction->node,
                    tutti_fail(TUTTI_INVALID,
                               "%s '%s': its kernel has not asked for the memory of output %d "
                               "(tutti_kernel_call_allocate)",
                               instruction->node->op->name, instruction->node->name, k));
    }
    return tutti_fail(TUTTI_INTERNAL, "result %d has no memory", result);
}

tutti_status tutti__program_allocate(const tutti_program *program, size_t instruction,
                                     const tutti_kernel_call *call, int index, int rank,
                                     const int64_t *dims)
{
    tutti_context *context = call->context;
    const tutti_program_value *value =
        &program->values[program->instructions[instruction].outputs[index]];
    if (value->space != TUTTI_IN_DYNAMIC) { /* its shape was known after all */
        if (rank == value->type->rank &&
            memcmp(dims, value->type->dims, (size_t)rank * sizeof *dims) == 0)
            return TUTTI_OK;
        return tutti_fail(TUTTI_INTERNAL,
                          "%s '%s' asks for memory of output %d in another shape than it said",
                          call->op->name, call->name, index);
    }
    tutti_tensor *tensor;
    tutti_type type = tutti_type_make(value->type->dtype, rank, dims);
    TUTTI_TRY(check_shape(call, index, &type, value->type));
    tutti_status status = tutti__tensor_in(tutti__dynamic_memory(), &type, &tensor);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s '%s'", call->op->name, call->name);
    tutti_tensor_release(context->dynamic[value->slot]);
    context->dynamic[value->slot] = tensor;
    call->outputs[index].data = tutti_tensor_data(tensor);
    call->outputs[index].rank = rank;
    call->outputs[index].dims = tutti_tensor_dims(tensor);
    return TUTTI_OK;
}

tutti_status tutti__program_give(const tutti_program *program, size_t instruction,
                                 const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    tutti_context *context = call->context;
    const tutti_program_value *value =
        &program->values[program->instructions[instruction].outputs[index]];
    const tutti_type *type = tutti_tensor_type(tensor);
    tutti_tensor *whole;
    if (value->space == TUTTI_IN_DYNAMIC)
        TUTTI_TRY(
            tutti__program_allocate(program, instruction, call, index, type->rank, type->dims));
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &whole));
    size_t size = (size_t)tutti_tensor_count(whole) * tutti_dtype_size(type->dtype);
    if (size)
        memcpy(call->outputs[index].data, tutti_tensor_data(whole), size);
    if (type->dtype != TUTTI_STRING) {
        tutti_tensor_release(whole);
    } else if (!TUTTI_VEC_PUSH(&context->kept, whole)) {
        tutti_tensor_release(whole);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the strings of '%s'", call->name);
    }
    return TUTTI_OK;
}

void tutti__program_forget(const tutti_program *program, const tutti_kernel_call *calls,
                           tutti_context *context)
{
    tutti__tensors_drop((int)context->kept.count, context->kept.data);
    context->kept.count = 0;
    if (program->dynamic_count == 0)
        return;
    for (size_t i = 0; i < program->instruction_count; i++)
        for (int k = 0; k < program->instructions[i].output_count; k++) {
            const tutti_program_value *value =
                &program->values[program->instructions[i].outputs[k]];
            if (value->space == TUTTI_IN_DYNAMIC)
                calls[i].outputs[k] = (tutti_view){.dtype = value->type->dtype,
                                                   .rank = value->type->rank,
                                                   .dims = value->type->dims};
        }
    tutti__tensors_drop(program->dynamic_count, context->dynamic);
}
