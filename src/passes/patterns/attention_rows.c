/* attention_rows.c: attention between the transposes that bring heads forward and back, and its
 * gradient likewise: kernels that take strides turn nothing. */
#include "passes/patterns/turn.h"

enum { Q, K, V, Y, L, DY };

static bool is_used_once(const tutti_node *node, const tutti_uses *uses)
{
    return !uses->wanted[node->id] && uses->first[node->id + 1] - uses->first[node->id] == 1;
}

/* Adds the turn that an input comes from; false when it is none, or somebody else wants it. */
static bool add_turn(tutti_edge edge, const tutti_uses *uses, tutti_node_group *group)
{
    if (!tutti__is_turn(edge.node) || edge.node->scratch == NULL || !is_used_once(edge.node, uses))
        return false;
    group->nodes[group->count++] = edge.node;
    return true;
}

static bool match_forward(tutti_node *node, const tutti_uses *uses, tutti_node_group *group)
{
    tutti_node *attention = node->inputs[0].node;
    if (attention->input_count != 3 || node->inputs[0].index != 0)
        return false;
    for (int i = Q; i <= V; i++)
        if (!add_turn(attention->inputs[i], uses, group))
            return false;
    group->nodes[group->count++] = attention;
    group->nodes[group->count++] = node;
    return true;
}

/* Of three turns behind it the last one matches. */
static bool match_backward(tutti_node *node, const tutti_uses *uses, tutti_node_group *group)
{
    tutti_node *back = node->inputs[0].node, *turned[3] = {NULL};
    if (back->input_count != DY + 1 || uses->first[back->id + 1] - uses->first[back->id] != 3 ||
        uses->wanted[back->id])
        return false;
    for (uint32_t u = uses->first[back->id]; u < uses->first[back->id + 1]; u++) {
        tutti_node *user = uses->users[u];
        if (!tutti__is_turn(user) || user->id > node->id)
            return false;
        turned[user->inputs[0].index] = user;
    }
    for (int i = Q; i <= DY; i++)
        if (i != L && !add_turn(back->inputs[i], uses, group))
            return false;
    group->nodes[group->count++] = back;
    for (int i = 0; i < 3; i++) {
        if (!turned[i])
            return false;
        if (turned[i] != node)
            group->nodes[group->count++] = turned[i];
    }
    group->nodes[group->count++] = node;
    return true;
}

static bool attention_rows_match(tutti_node *node, const tutti_uses *uses,
                                 tutti_node_group *ret_group)
{
    if (!tutti__is_turn(node))
        return false;
    const tutti_node *of = node->inputs[0].node;
    return tutti__is(of, "attention")            ? match_forward(node, uses, ret_group)
           : tutti__is(of, "attention_backward") ? match_backward(node, uses, ret_group)
                                                 : false;
}

const tutti_pattern tutti_pattern_attention_rows = {
    .name = "attention_rows",
    .doc = "attention_rows: turn(attention(turn(q), turn(k), turn(v))), and its gradient, of "
           "[batch, steps, heads, size]",
    .order = 5,
    .match = attention_rows_match,
    .side_by_side = true,
};
