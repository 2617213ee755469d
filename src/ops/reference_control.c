/* reference_control.c: runs cond, while and while_history in the reference interpreter. */
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"
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
        node->output_count != (loop->keep ? 2 * count + 1 : count) || loop->condition == NULL ||
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

/* Loop variable i at the start of each round, along a new first axis. */
static tutti_status stack(const tutti_reference_loop *loop, int i, tutti_tensor **ret)
{
    const tutti_type *one = tutti_tensor_type(loop->values[i]);
    int64_t dims[TUTTI_MAX_RANK] = {loop->rounds};
    tutti_tensor *all;
    if (one->rank == TUTTI_MAX_RANK)
        return RULE_FAIL(loop->node, TUTTI_UNSUPPORTED,
                         "loop variable %d has %d dimensions already", i, one->rank);
    memcpy(dims + 1, one->dims, (size_t)one->rank * sizeof *dims);
    TUTTI_TRY(tutti_tensor_create(one->dtype, one->rank + 1, dims, &all));
    tutti_status status = TUTTI_OK;
    for (int64_t r = 0; status == TUTTI_OK && r < loop->rounds; r++) {
        tutti_tensor *slice = NULL, *row = NULL;
        status = tutti_tensor_slice(all, 0, r, 1, 1, &slice);
        if (status == TUTTI_OK)
            status = tutti_tensor_reshape(slice, one->rank, one->dims, &row);
        if (status == TUTTI_OK)
            status = tutti_tensor_copy(row, loop->history.data[r * loop->count + i]);
        tutti_tensor_release(row);
        tutti_tensor_release(slice);
    }
    if (status == TUTTI_OK)
        *ret = all;
    else
        tutti_tensor_release(all);
    return status;
}

/* The number of rounds and the histories; on failure nothing of them is left. */
static tutti_status give_history(const tutti_reference_loop *loop, tutti_tensor **ret)
{
    tutti_status status = tutti_tensor_from(TUTTI_I64, 0, NULL, &loop->rounds, &ret[0]);
    int made = status == TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < loop->count; i++) {
        status = stack(loop, i, &ret[1 + i]);
        made += status == TUTTI_OK;
    }
    for (int i = 0; status != TUTTI_OK && i < made; i++)
        tutti_tensor_release(ret[i]);
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
