/* reference_control.c: runs cond, while and while_history in the reference interpreter. */
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"
#include "ops/control/history.h"
#include "ops/reference.h"
#include "ops/reference_run.h"

static tutti_graph *subgraph(const tutti_node *node, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, name);
    return attr == NULL ? NULL : attr->value.graph;
}

static tutti_status run_cond(const tutti_node *node, tutti_tensor *const *inputs,
                             tutti_tensor **ret_outputs)
{
    bool yes = tutti_tensor_get_int(inputs[0], 0) != 0;
    const tutti_graph *branch = subgraph(node, yes ? "then_graph" : "else_graph");
    if (branch == NULL || (int)branch->results.count != node->output_count)
        return RULE_FAIL(node, TUTTI_INTERNAL, "its branch is missing or has other results");
    return tutti__reference_subgraph(branch, node->input_count - 1, inputs + 1, ret_outputs);
}

/* A loop while it runs. */
typedef struct tutti_reference_loop {
    const tutti_node *node;
    const tutti_graph *condition, *body;
    int count; /* of loop variables */
    int64_t rounds;
    tutti_tensor **values; /* loop variables, one reference each; then captures, borrowed */
    tutti_tensor **next;   /* what the body gave */
    TUTTI_VEC(tutti_tensor *) history; /* loop variables at the start of each round, when kept */
    bool keep;
} tutti_reference_loop;

static tutti_status open_loop(const tutti_node *node, tutti_tensor *const *inputs,
                              tutti_reference_loop *loop)
{
    *loop = (tutti_reference_loop){.node = node,
                                   .condition = subgraph(node, "cond_graph"),
                                   .body = subgraph(node, "body_graph"),
                                   .keep = tutti__is(node, "while_history")};
    int64_t count = tutti__int(node, "loop_count");
    if (count < 0 || count > node->input_count ||
        node->output_count != (loop->keep ? 3 * count + 1 : count) || loop->condition == NULL ||
        loop->body == NULL || loop->condition->results.count != 1 ||
        (int64_t)loop->body->results.count != count)
        return RULE_FAIL(node, TUTTI_INTERNAL, "its sub-graphs do not fit its inputs and outputs");
    loop->values = calloc((size_t)node->input_count + 1, sizeof *loop->values);
    loop->next = calloc((size_t)count + 1, sizeof *loop->next);
    if (loop->values == NULL || loop->next == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a loop");
    loop->count = (int)count;
    for (int i = 0; i < node->input_count; i++)
        loop->values[i] = i < count ? tutti_tensor_retain(inputs[i]) : inputs[i];
    return TUTTI_OK;
}

static void close_loop(tutti_reference_loop *loop)
{
    for (int i = 0; i < loop->count; i++)
        tutti_tensor_release(loop->values[i]);
    for (size_t i = 0; i < loop->history.count; i++)
        tutti_tensor_release(loop->history.data[i]);
    TUTTI_VEC_FREE(&loop->history);
    free(loop->values);
    free(loop->next);
}

/* Asks the condition. */
static tutti_status goes_on(const tutti_reference_loop *loop, bool *ret_yes)
{
    tutti_tensor *answer;
    TUTTI_TRY(
        tutti__reference_subgraph(loop->condition, loop->node->input_count, loop->values, &answer));
    *ret_yes = tutti_tensor_get_int(answer, 0) != 0;
    tutti_tensor_release(answer);
    return TUTTI_OK;
}

static tutti_status one_round(tutti_reference_loop *loop)
{
    for (int i = 0; loop->keep && i < loop->count; i++) {
        if (!TUTTI_VEC_PUSH(&loop->history, loop->values[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a loop's history");
        tutti_tensor_retain(loop->values[i]);
    }
    TUTTI_TRY(
        tutti__reference_subgraph(loop->body, loop->node->input_count, loop->values, loop->next));
    for (int i = 0; i < loop->count; i++) {
        tutti_tensor_release(loop->values[i]);
        loop->values[i] = loop->next[i];
    }
    loop->rounds++;
    return TUTTI_OK;
}

/* The number of rounds and the histories; on failure nothing of them is left. */
static tutti_status give_history(const tutti_reference_loop *loop, tutti_tensor **ret)
{
    int made = 0;
    tutti_tensor **history = ret + 1, **shapes = history + loop->count;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 0, NULL, &loop->rounds, &ret[0]));
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < loop->count; i++) {
        status = tutti__history_stack(loop->rounds, loop->count, loop->history.data + i,
                                      loop->values[i], &history[i], &shapes[i]);
        made += status == TUTTI_OK;
    }
    if (status == TUTTI_OK)
        return TUTTI_OK;
    for (int i = 0; i < made; i++) {
        tutti_tensor_release(history[i]);
        tutti_tensor_release(shapes[i]);
    }
    tutti_tensor_release(ret[0]);
    return status;
}

static tutti_status run_while(const tutti_node *node, tutti_tensor *const *inputs,
                              tutti_tensor **ret_outputs)
{
    tutti_reference_loop loop;
    tutti_status status = open_loop(node, inputs, &loop);
    for (bool yes = true; status == TUTTI_OK;) {
        status = goes_on(&loop, &yes);
        if (status != TUTTI_OK || !yes)
            break;
        status = one_round(&loop);
    }
    if (status == TUTTI_OK && loop.keep)
        status = give_history(&loop, ret_outputs + loop.count);
    for (int i = 0; status == TUTTI_OK && i < loop.count; i++)
        ret_outputs[i] = tutti_tensor_retain(loop.values[i]);
    close_loop(&loop);
    return status;
}

tutti_status tutti__reference_control(const tutti_node *node, tutti_tensor *const *inputs,
                                      tutti_tensor **ret_outputs)
{
    if (tutti__is(node, "cond"))
        return run_cond(node, inputs, ret_outputs);
    if (tutti__is(node, "while") || tutti__is(node, "while_history"))
        return run_while(node, inputs, ret_outputs);
    return RULE_FAIL(node, TUTTI_UNSUPPORTED,
                     "the reference interpreter runs cond, while and while_history only");
}
