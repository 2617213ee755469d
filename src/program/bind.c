/* bind.c: what every runner of programs does around a run: snapshots of variables, outputs whose size
 * depends on data. */
#include "program/program.h"

tutti_status tutti__program_snapshot(const tutti_program *program, tutti_state *state, tutti_tensor **ret_snapshots)
{
    if (program->variable_count == 0)
        return TUTTI_OK;
    tutti__state_read_begin(state);
    for (int v = 0; v < program->variable_count; v++)
        ret_snapshots[v] = tutti__piece_take(program->variables[v].piece);
    tutti__state_read_end(state);
    for (int v = 0; v < program->variable_count; v++) {
        const tutti_program_variable *variable = &program->variables[v];
        if (!ret_snapshots[v] && (variable->read || (variable->updated && variable->keep)))
            return tutti_fail(TUTTI_UNINITIALIZED,
                              "variable '%s' is used before it was initialised; run tutti_initialize_all(graph) first",
                              variable->piece->variable->name);
    }
    return TUTTI_OK;
}

void tutti__tensors_drop(int count, tutti_tensor **tensors)
{
    for (int i = 0; i < count; i++) {
        tutti_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

tutti_status tutti__program_allocate(const tutti_program *program, size_t instruction, const tutti_call *call, int index,
                                     int rank, const int64_t *dims)
{
    tutti_context *context = call->context;
    const tutti_program_value *value = &program->values[program->instructions[instruction].outputs[index]];
    if (value->space != TUTTI_IN_DYNAMIC)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' asks for memory of output %d, whose shape was known", call->op->name,
                          call->name, index);
    tutti_tensor *tensor;
    tutti_type type = tutti_type_make(call->outputs[index].dtype, rank, dims);
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &tensor));
    tutti_tensor_release(context->dynamic[value->slot]);
    context->dynamic[value->slot] = tensor;
    call->outputs[index].data = tutti_tensor_data(tensor);
    call->outputs[index].rank = rank;
    call->outputs[index].dims = tutti_tensor_dims(tensor);
    return TUTTI_OK;
}

void tutti__program_forget(const tutti_program *program, const tutti_call *calls, tutti_context *context)
{
    if (program->dynamic_count == 0)
        return;
    for (size_t i = 0; i < program->instruction_count; i++)
        for (int k = 0; k < program->instructions[i].output_count; k++) {
            const tutti_program_value *value = &program->values[program->instructions[i].outputs[k]];
            if (value->space == TUTTI_IN_DYNAMIC)
                calls[i].outputs[k] = (tutti_view){
                    .dtype = value->type->dtype, .rank = value->type->rank, .dims = value->type->dims};
        }
    tutti__tensors_drop(program->dynamic_count, context->dynamic);
}
