/* reference.c: runs one operator, or a node, by its reference kernel; reference_run.c runs graphs.
 */
#include "ops/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "ops/build.h"
#include "ops/call.h"
#include "ops/reference_run.h"
#include "tensor/tensor.h"

/* How long a blocking kernel may wait. */
static const int64_t patience_ns = INT64_C(10) * 1000 * 1000 * 1000;

/* What one call holds. `host` comes first: call->context points here. */
typedef struct tutti_reference_frame {
    tutti_call_host host;
    tutti_kernel_call call;
    tutti_infer rule;
    tutti_arena arena;
    tutti_tensor **inputs, **outputs; /* one reference each */
} tutti_reference_frame;

/* What fills outputs before a kernel runs: other noise at every call, so that two runs of a kernel
 * that forgets an element differ. */
static _Thread_local uint8_t noise = 0xa5;

static tutti_status make_output(tutti_reference_frame *frame, int index, const tutti_type *type)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), type, &tensor));
    if (type->dtype != TUTTI_STRING)
        memset(tutti_tensor_data(tensor), noise += 37,
               (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(type->dtype));
    tutti_tensor_release(frame->outputs[index]);
    frame->outputs[index] = tensor;
    frame->call.outputs[index] = tutti__tensor_view_of(tensor);
    return TUTTI_OK;
}

static tutti_status reference_allocate(const tutti_kernel_call *call, int index, int rank,
                                       const int64_t *dims)
{
    tutti_type type = tutti_type_make(call->outputs[index].dtype, rank, dims);
    return make_output(call->context, index, &type);
}

static tutti_status give(const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    tutti_reference_frame *frame = call->context;
    tutti_tensor *contiguous;
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &contiguous));
    tutti_tensor_release(frame->outputs[index]);
    frame->outputs[index] = contiguous;
    frame->call.outputs[index] = tutti__tensor_view_of(contiguous);
    return TUTTI_OK;
}

static void close_frame(tutti_reference_frame *frame)
{
    for (int i = 0; frame->inputs != NULL && i < frame->rule.input_count; i++)
        tutti_tensor_release(frame->inputs[i]);
    for (int i = 0; frame->outputs != NULL && i < frame->rule.output_count; i++)
        tutti_tensor_release(frame->outputs[i]);
    tutti__arena_free(&frame->arena);
}

/* Kernels see contiguous inputs; a handle is seen in place, so it must be contiguous itself. */
static tutti_status bind_inputs(tutti_reference_frame *frame, tutti_tensor *const *inputs)
{
    tutti_view *views =
        tutti__arena_array(&frame->arena, (size_t)frame->rule.input_count, sizeof *views);
    tutti_tensor **values =
        tutti__arena_array(&frame->arena, (size_t)frame->rule.input_count, sizeof(tutti_tensor *));
    if (views == NULL || values == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a call");
    for (int i = 0; i < frame->rule.input_count; i++) {
        bool handle = frame->rule.inputs[i].handle;
        if (handle && !tutti_tensor_is_contiguous(inputs[i]))
            return RULE_FAIL(&frame->rule, TUTTI_INVALID,
                             "the handle at input %d is a strided view", i);
        TUTTI_TRY(tutti_tensor_contiguous(inputs[i], &frame->inputs[i]));
        views[i] = tutti__tensor_view_of(frame->inputs[i]);
        values[i] = handle ? NULL : frame->inputs[i];
    }
    frame->call.inputs = views;
    frame->rule.values = values;
    return TUTTI_OK;
}

static tutti_status bind_outputs(tutti_reference_frame *frame)
{
    for (int i = 0; i < frame->rule.output_count; i++) {
        tutti_type type = frame->rule.outputs[i];
        type.handle = false;
        if (tutti_type_is_static(&type))
            TUTTI_TRY(make_output(frame, i, &type));
        else
            frame->call.outputs[i] = (tutti_view){
                .dtype = type.dtype, .rank = type.rank, .dims = frame->rule.outputs[i].dims};
    }
    return TUTTI_OK;
}

static tutti_status open_frame(tutti_reference_frame *frame, const tutti_infer *rule)
{
    size_t inputs = (size_t)rule->input_count, outputs = (size_t)rule->output_count;
    frame->rule = *rule;
    frame->inputs = tutti__arena_array(&frame->arena, inputs, sizeof(tutti_tensor *));
    frame->outputs = tutti__arena_array(&frame->arena, outputs, sizeof(tutti_tensor *));
    frame->rule.outputs = tutti__arena_array(&frame->arena, outputs, sizeof(tutti_type));
    frame->call = (tutti_kernel_call){.op = rule->op,
                                      .name = rule->name,
                                      .attrs = rule->attrs,
                                      .attr_count = rule->attr_count,
                                      .input_count = rule->input_count,
                                      .output_count = rule->output_count,
                                      .context = frame,
                                      .deadline = tutti__now_ns() + patience_ns};
    frame->call.outputs = tutti__arena_array(&frame->arena, outputs, sizeof(tutti_view));
    frame->host.allocate = reference_allocate;
    frame->host.give = give;
    if (frame->inputs == NULL || frame->outputs == NULL || frame->rule.outputs == NULL ||
        frame->call.outputs == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a call");
    return TUTTI_OK;
}

/* A view without a kernel: the input's bytes under the output's shape. */
static tutti_status copy_bytes(const tutti_kernel_call *call)
{
    const tutti_view *from = &call->inputs[0], *to = &call->outputs[0];
    int64_t count = tutti_view_count(from);
    if (count != tutti_view_count(to) || from->dtype != to->dtype)
        return RULE_FAIL(call, TUTTI_INTERNAL,
                         "is a view, but its shape rule makes %lld elements of %lld",
                         (long long)tutti_view_count(to), (long long)count);
    if (count > 0)
        memcpy(to->data, from->data, (size_t)count * tutti_dtype_size(from->dtype));
    return TUTTI_OK;
}

static tutti_status run_kernel(const tutti_kernel_call *call)
{
    if (call->op->reference != NULL)
        return call->op->reference(call);
    if ((call->op->flags & TUTTI_OP_VIEW) && call->input_count >= 1 && call->output_count == 1)
        return copy_bytes(call);
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "has no reference kernel");
}

/* Kernels move string elements without their bytes; what is kept must own them. */
static tutti_status own_strings(tutti_reference_frame *frame)
{
    for (int i = 0; i < frame->rule.output_count; i++)
        TUTTI_TRY(tutti__tensor_own_strings(frame->outputs[i]));
    for (int i = 0; i < frame->rule.input_count; i++)
        if (frame->rule.inputs[i].handle && (frame->rule.op->flags & TUTTI_OP_UPDATES))
            TUTTI_TRY(tutti__tensor_own_strings(frame->inputs[i]));
    return TUTTI_OK;
}

static tutti_status run_frame(tutti_reference_frame *frame, tutti_tensor *const *inputs)
{
    TUTTI_TRY(bind_inputs(frame, inputs));
    if (frame->rule.op->infer != NULL)
        TUTTI_TRY(frame->rule.op->infer(&frame->rule));
    TUTTI_TRY(bind_outputs(frame));
    TUTTI_TRY(run_kernel(&frame->call));
    for (int i = 0; i < frame->rule.output_count; i++)
        if (frame->outputs[i] == NULL)
            return RULE_FAIL(&frame->rule, TUTTI_INTERNAL,
                             "its kernel gave output %d, whose shape depends on data, no memory",
                             i);
    return own_strings(frame);
}

tutti_status tutti__reference_op(const tutti_infer *rule, tutti_tensor *const *inputs,
                                 tutti_tensor **ret_outputs)
{
    tutti_reference_frame frame = {0};
    tutti_status status = open_frame(&frame, rule);
    if (status == TUTTI_OK)
        status = run_frame(&frame, inputs);
    for (int i = 0; status == TUTTI_OK && i < rule->output_count; i++)
        ret_outputs[i] = tutti_tensor_retain(frame.outputs[i]);
    close_frame(&frame);
    return status;
}

tutti_status tutti__reference_node(const tutti_node *node, tutti_tensor *const *inputs,
                                   tutti_tensor **ret_outputs)
{
    if (node->op->flags & TUTTI_OP_CONTROL)
        return tutti__reference_control(node, inputs, ret_outputs);
    tutti_type few[8], *types = few;
    if (node->input_count > 8 && !(types = malloc((size_t)node->input_count * sizeof *types)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for types of %d inputs", node->input_count);
    for (int i = 0; i < node->input_count; i++) {
        types[i] = *tutti_tensor_type(inputs[i]);
        types[i].handle = tutti__edge_type(node->inputs[i])->handle;
    }
    tutti_infer rule = {.op = node->op,
                        .name = node->name,
                        .input_count = node->input_count,
                        .output_count = node->output_count,
                        .inputs = types,
                        .attrs = node->attrs,
                        .attr_count = node->attr_count};
    tutti_status status = tutti__reference_op(&rule, inputs, ret_outputs);
    if (types != few)
        free(types);
    return status;
}
