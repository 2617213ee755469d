/* attention_turns.c: where the device's attention also runs with the transposes round it, each
 * attention_backward gets transposes of its own:
 *
 *     q = turn(a); y, l = attention(q, ..); z = turn(y); attention_backward(q, .., y, ..)
 *     -> attention_backward(turn(a), .., turn(z), ..)
 *
 * so that both become one fused node each (patterns/attention_rows.c), nothing is turned in memory,
 * and what is kept for the gradients is a and z. */
#include "base/pool.h"
#include "passes/patterns/turn.h"
#include "program/kernel.h"

enum { Q, K, V, Y, MOST = 8 };

static bool is_wanted(const tutti_pass_context *context, const tutti_node *node)
{
    tutti_type inputs[MOST];
    if (!tutti__is(node, "attention_backward") || node->input_count > MOST ||
        tutti__rewrite_pinned(node))
        return false;
    tutti_kernel_query query = {.node = tutti__node_rule(node, inputs),
                                .threads = tutti__pool_most(context->device->pool),
                                .deterministic = context->deterministic};
    const tutti_kernel *kernel = tutti__device_kernel(context->device, &query);
    return kernel && (kernel->flags & TUTTI_KERNEL_TURNED);
}

/* The turn of an attention's y, or NULL. */
static tutti_node *turn_of(tutti_edge y, const tutti_uses *uses)
{
    for (uint32_t u = uses->first[y.node->id]; u < uses->first[y.node->id + 1]; u++) {
        tutti_node *user = uses->users[u];
        if (tutti__is_turn(user) && user->inputs[0].node == y.node &&
            user->inputs[0].index == y.index)
            return user;
    }
    return NULL;
}

static tutti_status turn_again(tutti_rewrite *rewrite, const tutti_uses *uses, tutti_node *node)
{
    tutti_edge *inputs =
        tutti__arena_array(&rewrite->graph->arena, (size_t)node->input_count, sizeof *inputs);
    tutti_node *turned = turn_of(node->inputs[Y], uses);
    bool turns = turned && !tutti__rewrite_pinned(turned);
    if (!inputs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to turn '%s'", node->name);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i];
    for (int i = Q; i <= V; i++)
        turns = turns && tutti__is_turn(inputs[i].node) && !tutti__rewrite_pinned(inputs[i].node);
    if (!turns)
        return TUTTI_OK;
    for (int i = Q; i <= Y; i++) {
        const tutti_node *like = i == Y ? turned : inputs[i].node;
        tutti_edge from = i == Y ? (tutti_edge){turned, 0} : like->inputs[0];
        TUTTI_TRY(tutti__rewrite_add(rewrite, node, "transpose", 1, &from, like->attr_count,
                                     like->attrs, &inputs[i]));
    }
    node->inputs = inputs;
    rewrite->changes++;
    return TUTTI_OK;
}

static tutti_status attention_turns_run(tutti_graph *graph, const tutti_pass_context *context,
                                        int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    if (!tutti__group_device_fuses(context)) {
        *ret_changes = 0;
        return TUTTI_OK;
    }
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    for (size_t n = 0; status == TUTTI_OK && n < rewrite.node_count; n++)
        if (is_wanted(context, graph->nodes.data[n]))
            status = turn_again(&rewrite, &uses, graph->nodes.data[n]);
    tutti__uses_free(&uses);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_attention_turns = {
    .name = "attention_turns",
    .doc = "attention's gradient turns its operands itself, where a kernel does that on its way",
    .stage = TUTTI_PASS_PARTITION,
    .order = 48,
    .run = attention_turns_run,
};
