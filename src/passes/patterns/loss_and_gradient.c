/* loss_and_gradient.c: the cross entropy of rows of logits beside its gradient: both need the same
 * softmax. The gradient from behind must not depend on the loss: it is a constant, or weights.
 * Logits of 16 bits that are widened for the loss, and their gradient that is rounded again, go
 * along, for kernels that read and write 16 bits. */
#include "passes/pattern.h"

enum { LOGITS, LABELS, GRAD, MAX_VISITS = 64 };

static bool same_edge(tutti_edge a, tutti_edge b)
{
    return a.node == b.node && a.index == b.index;
}

/* The loss of the same logits and labels. */
static tutti_node *find_loss(const tutti_node *backward, const tutti_uses *uses)
{
    const tutti_node *logits = backward->inputs[LOGITS].node;
    for (uint32_t u = uses->first[logits->id]; u < uses->first[logits->id + 1]; u++) {
        tutti_node *user = uses->users[u];
        if (tutti__is(user, "sparse_softmax_cross_entropy") &&
            same_edge(user->inputs[LOGITS], backward->inputs[LOGITS]) &&
            same_edge(user->inputs[LABELS], backward->inputs[LABELS]))
            return user;
    }
    return NULL;
}

/* Whether a value may depend on some loss of this kind. */
static bool may_depend(const tutti_node *node, int *visits)
{
    if (tutti__is(node, "sparse_softmax_cross_entropy") ||
        tutti__is(node, "sparse_softmax_cross_entropy_backward") || ++*visits > MAX_VISITS)
        return true;
    for (int i = 0; i < node->input_count; i++)
        if (may_depend(node->inputs[i].node, visits))
            return true;
    for (int i = 0; i < node->control_count; i++)
        if (may_depend(node->controls[i], visits))
            return true;
    return false;
}

static bool is_cast(const tutti_node *node, bool widening)
{
    if (!tutti__is(node, "cast"))
        return false;
    tutti_dtype from = tutti__edge_type(node->inputs[0])->dtype, to = node->types[0].dtype;
    tutti_dtype narrow = widening ? from : to, wide = widening ? to : from;
    return (narrow == TUTTI_BF16 || narrow == TUTTI_F16) && wide == TUTTI_F32;
}

static bool loss_and_gradient_match(tutti_node *node, const tutti_uses *uses,
                                    tutti_node_group *ret_group)
{
    int visits = 0, count = 0;
    tutti_node *rounding = is_cast(node, false) ? node : NULL;
    tutti_node *back = rounding ? rounding->inputs[0].node : node;
    if (!tutti__is(back, "sparse_softmax_cross_entropy_backward") || back->input_count <= GRAD)
        return false;
    tutti_node *loss = find_loss(back, uses), *logits = back->inputs[LOGITS].node;
    if (loss == NULL || may_depend(back->inputs[GRAD].node, &visits) ||
        (rounding && !is_cast(logits, true)))
        return false;
    if (rounding)
        ret_group->nodes[count++] = logits;
    ret_group->nodes[count++] = back;
    if (rounding)
        ret_group->nodes[count++] = rounding;
    ret_group->nodes[count++] = loss;
    ret_group->count = count;
    return true;
}

const tutti_pattern tutti_pattern_loss_and_gradient = {
    .name = "loss_and_gradient",
    .doc = "loss_and_gradient: dlogits = (softmax(logits) - one_hot(label)) grad beside loss = "
           "log(sum(e^logits)) - logits[label]",
    .order = 20,
    .match = loss_and_gradient_match,
    .side_by_side = true,
};
