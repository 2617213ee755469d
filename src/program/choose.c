/* choose.c: picks a kernel for every instruction and gives it its plan and workspace. */
#include <stdlib.h>
#include <string.h>

#include "program/dynamic.h"
#include "program/program.h"
#include "program/trace.h"
#include "program/tune.h"

/* A workspace is one more byte tensor at the end of the values, where tutti__program_kernels made
 * room. */
static tutti_status add_workspace(tutti_program *program, size_t size, int32_t *ret)
{
    tutti_type *type = tutti__arena_take(&program->arena, sizeof *type);
    if (!type)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    *type = (tutti_type){.dtype = TUTTI_U8, .rank = 1, .dims = {(int64_t)size}};
    int32_t index = (int32_t)program->value_count++;
    program->values[index] = (tutti_program_value){
        .space = TUTTI_IN_ARENA, .size = size, .type = type, .root = index, .maker = -1};
    *ret = index;
    return TUTTI_OK;
}

static tutti_status choose(tutti_program *program, tutti_instruction *instruction, size_t index,
                           bool deterministic)
{
    const tutti_node *node = instruction->node;
    size_t inputs = (size_t)node->input_count;
    tutti_type few[8], *types = few;
    tutti_tensor *few_values[8], **values = few_values; /* constants, for kernels to prepare */
    if (inputs > 8 && (!(types = tutti__arena_array(&program->arena, inputs, sizeof *types)) ||
                       !(values = tutti__arena_array(&program->arena, inputs, sizeof *values))))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    for (size_t i = 0; i < inputs; i++) {
        const tutti_node *from = node->inputs[i].node;
        types[i] = *tutti__edge_type(node->inputs[i]);
        values[i] = tutti__is(from, "constant")
                        ? tutti_attr_find(from->attrs, from->attr_count, "value")->value.tensor
                        : NULL;
    }
    tutti_kernel_query query = {.node = {.op = node->op,
                                         .name = node->name,
                                         .input_count = node->input_count,
                                         .output_count = node->output_count,
                                         .inputs = types,
                                         .attrs = node->attrs,
                                         .attr_count = node->attr_count,
                                         .values = values,
                                         .outputs = node->types},
                                .threads = tutti__pool_most(program->device->pool),
                                .deterministic = deterministic,
                                .pool = program->device->pool};
    const tutti_kernel *kernel = tutti__tune_pick(program->device, &query);
    instruction->host =
        (node->op->flags & (TUTTI_OP_HOST | TUTTI_OP_CONTROL | TUTTI_OP_COLLECTIVE)) != 0;
    if (!kernel && !instruction->run)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s '%s' has no kernel for %s", node->op->name,
                          node->name, program->device->name);
    if (!kernel)
        return TUTTI_OK;
    instruction->kernel = kernel;
    instruction->run = kernel->run;
    if (kernel->prepare)
        TUTTI_TRY(kernel->prepare(&query, &instruction->plan));
    size_t workspace = tutti__kernel_workspace(kernel, &query, instruction->plan);
    if (workspace) {
        TUTTI_TRY(add_workspace(program, workspace, &instruction->workspace));
        program->values[instruction->workspace].maker = (int32_t)index;
    }
    return TUTTI_OK;
}

tutti_status tutti__program_kernels(tutti_program *program, bool deterministic)
{
    TUTTI_TRY(tutti__isa_check_setting());
    TUTTI_TRY(tutti__tune_check_setting());
    TUTTI_TRY(tutti__dynamic_check_setting());
    TUTTI_TRY(tutti__trace_check_setting());
    size_t most = program->value_count + program->instruction_count;
    tutti_program_value *values = tutti__arena_array(&program->arena, most + 1, sizeof *values);
    if (!values)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    memcpy(values, program->values, program->value_count * sizeof *values);
    program->values = values;
    for (size_t i = 0; i < program->instruction_count; i++)
        if (program->instructions[i].run != tutti__copy_bytes)
            TUTTI_TRY(choose(program, &program->instructions[i], i, deterministic));
    tutti__tune_save();
    return TUTTI_OK;
}
