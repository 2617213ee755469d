/* lower.c: from a partition to a program: creates the arrays, runs the parts of lowering in order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "program/debug.h"
#include "program/dynamic.h"
#include "program/program.h"
#include "program/trace.h"
#include "program/tune.h"

static const tutti_param nan_param = TUTTI_PARAM(
    "DEBUG_NAN", "0", "an operator that makes a NaN or an infinity ends the run and is named");

bool tutti__debug_nan(void)
{
    return tutti__param_flag(&nan_param);
}

tutti_status tutti__copy_bytes(const tutti_kernel_call *call)
{
    size_t size =
        (size_t)tutti_view_count(&call->inputs[0]) * tutti_dtype_size(call->inputs[0].dtype);
    if (size)
        memcpy(call->outputs[0].data, call->inputs[0].data, size);
    return TUTTI_OK;
}

uint64_t tutti__program_hash(const tutti_program *program)
{
    uint64_t h = tutti__graph_hash(program->graph);
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_kernel *kernel = program->instructions[i].kernel;
        h = tutti__hash_string(h, kernel ? kernel->name : "reference");
        h = tutti__hash_mix(h, kernel ? (uint64_t)kernel->version : 0);
        h = tutti__hash_string(h, kernel && kernel->isa ? kernel->isa : "");
    }
    return h;
}

static void name_for_trace(tutti_program *program)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        tutti_instruction *each = &program->instructions[i];
        double flops = each->run == tutti__copy_bytes ? 0 : tutti__node_flops(each->node);
        each->traced = tutti__trace_operator(each->node->name, each->node->op->name, flops);
    }
}

static tutti_status lower(tutti_program *program, const tutti_partition *partition)
{
    TUTTI_TRY(tutti__program_order(program, partition));
    TUTTI_TRY(tutti__program_kernels(program, partition->deterministic));
    TUTTI_TRY(tutti__program_streams(program));
    name_for_trace(program);
    return tutti__program_memory(program);
}

tutti_status tutti__program_create(const tutti_device *device, const tutti_partition *partition,
                                   tutti_program **ret)
{
    if (!device->target->kernels)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s compiles whole partitions; it takes no kernel calls at arena offsets",
                          device->name);
    tutti_program *program = calloc(1, sizeof *program);
    if (!program)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    program->graph = tutti__graph_retain(partition->graph);
    program->device = device;
    program->shared = partition->shared;
    program->shares = device->target->shares;
    tutti_status status = lower(program, partition);
    if (status != TUTTI_OK)
        tutti__program_destroy(program);
    else
        *ret = program;
    return status;
}

void tutti__program_destroy(tutti_program *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->instruction_count; i++) {
        tutti_instruction *instruction = &program->instructions[i];
        if (instruction->kernel && instruction->kernel->discard && instruction->plan)
            instruction->kernel->discard(instruction->plan);
    }
    tutti_graph_destroy(program->graph);
    tutti__arena_free(&program->arena);
    free(program);
}

static void print_value(const tutti_program *program, int32_t index, tutti_text *text)
{
    static const char *const spaces[] = {"arena",    "constant", "input",  "result",
                                         "variable", "queue",    "shared", "dynamic"};
    const tutti_program_value *value = &program->values[index];
    char type[TUTTI_TYPE_TEXT];
    if (value->space == TUTTI_IN_ARENA || value->space == TUTTI_IN_SHARED)
        tutti__text_add(text, "%s @%zu", tutti_type_text(value->type, type), value->offset);
    else
        tutti__text_add(text, "%s %s.%u", tutti_type_text(value->type, type), spaces[value->space],
                        value->slot);
}

void tutti__program_print(const tutti_program *program, tutti_text *text)
{
    tutti__text_add(text,
                    "program on %s: %zu instructions, arena %zu bytes (bound %zu), hash %016llx\n",
                    program->device->name, program->instruction_count, program->arena_size,
                    program->arena_bound, (unsigned long long)tutti__program_hash(program));
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        if (i == program->commit_at && program->updates)
            tutti__text_add(text, "  -- commit --\n");
        tutti__text_add(text, "  %3zu stream %d  %-28s %s  (", i, instruction->stream,
                        instruction->kernel
                            ? instruction->kernel->name
                            : (instruction->run == tutti__copy_bytes ? "copy" : "reference"),
                        instruction->node->name);
        for (int k = 0; k < instruction->input_count; k++) {
            tutti__text_add(text, "%s", k ? ", " : "");
            print_value(program, instruction->inputs[k], text);
        }
        tutti__text_add(text, ") -> ");
        for (int k = 0; k < instruction->output_count; k++) {
            tutti__text_add(text, "%s", k ? ", " : "");
            print_value(program, instruction->outputs[k], text);
        }
        for (int k = 0; k < instruction->await_count; k++)
            tutti__text_add(text, " await %d", instruction->awaits[k]);
        tutti__text_add(text, "\n");
    }
}

/* ---- kernels, plans, workspaces ---- */

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
    bool host_code = !kernel && strcmp(program->device->target->kernels, "cpu") != 0;
    if (host_code) /* what the device has no kernel for runs on the host */
        kernel = tutti__kernel_pick("cpu", &query);
    instruction->host = host_code || (node->op->flags & TUTTI_OP_HOST) ||
                        (kernel && (kernel->flags & TUTTI_KERNEL_HOST));
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

/* Whether the gradient `node` looks at the same places as `before` has: gather and gather_grad by
 * the same indices, in as many rows. */
static bool looks_again(const tutti_node *before, const tutti_node *node)
{
    size_t length = strlen(before->op->name);
    if (strncmp(before->op->name, node->op->name, length) != 0 || node->op->name[length] != '_' ||
        before->input_count < 1 || node->output_count < 1 ||
        !tutti_type_equal(tutti__edge_type(before->inputs[0]), &node->types[0]))
        return false;
    int places = 0;
    for (int i = 0; i < node->input_count; i++) {
        bool shared = false;
        if (tutti_dtype_is_float(tutti__edge_type(node->inputs[i])->dtype))
            continue;
        for (int k = 0; k < before->input_count; k++)
            shared |= before->inputs[k].node == node->inputs[i].node &&
                      before->inputs[k].index == node->inputs[i].index;
        if (!shared)
            return false;
        places++;
    }
    return places > 0;
}

bool tutti__may_fail_on_stream(const tutti_program *program, size_t index)
{
    const tutti_instruction *instruction = &program->instructions[index];
    if (index >= program->commit_at || instruction->host || instruction->run == tutti__copy_bytes ||
        !tutti__node_may_fail(instruction->node))
        return false;
    for (size_t i = 0; i < index; i++) {
        const tutti_node *before = program->instructions[i].node;
        if (before && tutti__node_may_fail(before) && looks_again(before, instruction->node))
            return false;
    }
    return true;
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
    for (size_t i = 0; i < program->commit_at; i++)
        if (tutti__may_fail_on_stream(program, i))
            program->checked_at = i + 1;
    program->fallible = program->checked_at > 0;
    tutti__tune_save();
    return TUTTI_OK;
}
