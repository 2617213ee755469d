/* while_history.c: a loop that keeps what its variables were at the start of each round; made by
 * the gradient of while. */
#include "ops/control/control.h"
#include "ops/control/history.h"

/* Outputs: last values, rounds (i64), and by history.h histories and shapes. What is known of a
 * variable's type is so in every round. */
static tutti_status while_history_infer(tutti_infer *node)
{
    int64_t loop_count = RULE_INT(node, "loop_count");
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__infer_loop(node));
    if (node->output_count != 3 * loop_count + 1)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d outputs for %lld loop variables, needs %lld",
                         node->output_count, (long long)loop_count,
                         (long long)(3 * loop_count + 1));
    node->outputs[loop_count] = tutti_type_make(TUTTI_I64, 0, NULL);
    for (int64_t i = 0; i < loop_count; i++) {
        const tutti_type *last = &node->outputs[i];
        if (last->rank == TUTTI_MAX_RANK)
            return RULE_FAIL(
                node, TUTTI_UNSUPPORTED,
                "loop variable %lld is %s; its history would have more than %d dimensions",
                (long long)i, tutti_type_text(last, text), TUTTI_MAX_RANK);
        tutti_type stacked = {.dtype = last->dtype, .rank = last->rank + 1, .dims = {TUTTI_ANY}};
        memcpy(stacked.dims + 1, last->dims, (size_t)last->rank * sizeof *last->dims);
        node->outputs[loop_count + 1 + i] = stacked;
        node->outputs[2 * loop_count + 1 + i] = tutti_type_make(
            TUTTI_I64, 2, (int64_t[]){tutti__history_fixed(last) ? 1 : TUTTI_ANY, last->rank});
    }
    return TUTTI_OK;
}

static tutti_status while_history_gradient(tutti_gradient_call *node)
{
    int loop_count = (int)RULE_INT(node, "loop_count");
    tutti_loop_gradient loop = {.trips = node->outputs[loop_count],
                                .history = node->outputs + loop_count + 1,
                                .shapes = node->outputs + 2 * loop_count + 1,
                                .history_grads = node->output_grads + loop_count + 1};
    return tutti__gradient_loop(node, &loop);
}

static const tutti_attr_spec attrs[] = {
    {"cond_graph", TUTTI_ATTR_GRAPH, NULL},
    {"body_graph", TUTTI_ATTR_GRAPH, NULL},
    {"loop_count", TUTTI_ATTR_INT, NULL},
    {"outputs", TUTTI_ATTR_INT, NULL}, /* 3 loop_count + 1 */
    {0},
};

const tutti_op tutti_op_while_history = {
    .struct_size = sizeof(tutti_op),
    .name = "while_history",
    .version = 2,
    .doc =
        "while_history(xs..., captures...): as while; also the number of rounds, and xs at the start of each, stacked, with their shapes",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_CONTROL | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = while_history_infer,
    .gradient = while_history_gradient,
};
