/* usage.c: bytes that a run of a program has in use, by purpose. */
#include "program/program.h"

static size_t padded(size_t bytes)
{
    return (bytes + TUTTI_HOST_ALIGNMENT - 1) / TUTTI_HOST_ALIGNMENT * TUTTI_HOST_ALIGNMENT;
}

static size_t bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 0 : padded((size_t)count * tutti_dtype_size(type->dtype));
}

void tutti__program_usage(const tutti_program *program, tutti_usage *usage)
{
    for (int v = 0; v < program->variable_count; v++) {
        const tutti_piece *piece = program->variables[v].piece;
        *(piece->variable->slot_of[0] ? &usage->slots : &usage->weights) += bytes_of(&piece->type);
    }
    usage->arena += program->arena_size;
    for (size_t i = 0; i < program->value_count; i++) /* sizes depend on data, but are known */
        if (program->values[i].space == TUTTI_IN_DYNAMIC && program->values[i].root == (int32_t)i)
            usage->arena += bytes_of(program->values[i].type);
    usage->shared += program->shared_size;
    for (int i = 0; i < program->constant_count; i++)
        usage->constants += bytes_of(tutti_tensor_type(program->constants[i]));
    for (int i = 0; i < program->result_count; i++)
        usage->data += bytes_of(program->values[program->results[i].value].type);
    size_t sent = 0;
    for (size_t i = 0; i < program->instruction_count; i++)
        if (tutti__is(program->instructions[i].node, "send"))
            sent += bytes_of(program->values[program->instructions[i].inputs[0]].type);
    usage->sent = sent > usage->sent ? sent : usage->sent;
}
