/* nan.c: --debug-nan: after each instruction its outputs are looked at, and the first one that
 * makes a NaN or an infinity of inputs without any ends the run, with its inputs' ranges. They are
 * taken before the instruction runs, which may write over them. Infinities of constants (masks) and
 * of f16, where the loss scale looks for them, are none of its making. What the commit writes is
 * looked at when the next step reads it: then the weight is named. */
#include "device/cpu/nan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tutti/tensor.h"

enum { MOST_INPUTS = 16 };

typedef struct range {
    double low, high;
    int64_t nans, infinite;
    bool any; /* floats whose size is known */
} range;

static double nan_element(const tutti_view *view, int64_t i)
{
    if (view->dtype == TUTTI_F64)
        return ((const double *)view->data)[i];
    if (view->dtype == TUTTI_F32)
        return (double)((const float *)view->data)[i];
    uint16_t bits = ((const uint16_t *)view->data)[i];
    if (view->dtype == TUTTI_BF16) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, sizeof value);
        return (double)value;
    }
    int exponent = bits >> 10 & 31, rest = bits & 1023;
    double size = exponent == 31  ? (rest ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(rest, -24)
                                  : ldexp(1024 + rest, exponent - 25);
    return bits >> 15 ? -size : size;
}

static range look(const tutti_view *view)
{
    range r = {INFINITY, -INFINITY, 0, 0, false};
    bool floats = view->dtype == TUTTI_F32 || view->dtype == TUTTI_F64 ||
                  view->dtype == TUTTI_F16 || view->dtype == TUTTI_BF16;
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count = view->dims[i] < 0 || count < 0 ? -1 : count * view->dims[i];
    if (!floats || !view->data || count < 1 || view->strides)
        return r;
    r.any = true;
    for (int64_t i = 0; i < count; i++) {
        double x = nan_element(view, i);
        r.nans += isnan(x);
        r.infinite += isinf(x) != 0;
        r.low = x < r.low ? x : r.low;
        r.high = x > r.high ? x : r.high;
    }
    return r;
}

static size_t say_range(char *text, size_t size, int input, const range *r)
{
    if (!r->any)
        return (size_t)snprintf(text, size, "; input %d: no floats", input);
    return (size_t)snprintf(text, size, "; input %d: %g to %g%s", input, r->low, r->high,
                            r->nans ? ", with NaN" : "");
}

static tutti_status blame(const tutti_instruction *instruction, const tutti_kernel_call *call,
                          const char *what, const range *inputs)
{
    char text[400] = "";
    size_t used = 0;
    for (int i = 0; i < call->input_count && i < MOST_INPUTS && used < sizeof text; i++)
        used += say_range(text + used, sizeof text - used, i, &inputs[i]);
    const tutti_node *node = instruction->node;
    return tutti__node_failed(node, tutti_fail(TUTTI_INVALID, "%s '%s'%s %s%s", node->op->name,
                                               node->name, node->backward ? ", a gradient," : "",
                                               what, text));
}

/* Whether the value comes from outside: fed, or a variable. */
static bool is_given(const tutti_program *program, int32_t value)
{
    tutti_memory_space space = program->values[program->values[value].root].space;
    return program->values[value].maker < 0 &&
           (space == TUTTI_IN_INPUT || space == TUTTI_IN_VARIABLE);
}

tutti_status tutti__cpu_run_looking(const tutti_program *program, size_t index,
                                    tutti_kernel_call *call)
{
    const tutti_instruction *instruction = &program->instructions[index];
    range inputs[MOST_INPUTS] = {{0}};
    bool nan = false, infinite = false;
    if (!instruction->node || index >= program->commit_at)
        return instruction->run(call);
    for (int i = 0; i < call->input_count && i < MOST_INPUTS; i++) {
        inputs[i] = look(&call->inputs[i]);
        if (inputs[i].nans > 0 && is_given(program, instruction->inputs[i]))
            return blame(instruction, call, "is given NaN by the data or a variable", inputs);
        nan = nan || inputs[i].nans > 0;
        infinite = infinite || inputs[i].infinite > 0;
    }
    tutti_status status = instruction->run(call);
    for (int i = 0; status == TUTTI_OK && call->input_count > 0 && i < call->output_count; i++) {
        range made = look(&call->outputs[i]);
        if (made.nans > 0 && !nan)
            return blame(instruction, call, "makes NaN", inputs);
        if (made.infinite > 0 && !nan && !infinite && call->outputs[i].dtype != TUTTI_F16)
            return blame(instruction, call, "makes an infinity", inputs);
    }
    return status;
}
