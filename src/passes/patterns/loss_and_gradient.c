/* loss_and_gradient.c: the cross entropy of rows of logits beside its gradient: both need the same
 * softmax. The gradient from behind must not depend on the loss: it is a constant, or weights. */
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

static bool loss_and_gradient_match(tutti_node *node, const tutti_uses *uses,
                                    tutti_node_group *ret_group)
{
    int visits = 0;
    if (!tutti__is(node, "sparse_softmax_cross_entropy_backward") || node->input_count <= GRAD)
        return false;
    tutti_node *loss = find_loss(node, uses);
    if (loss == NULL || may_depend(node->inputs[GRAD].node, &visits))
        return false;
    ret_group->count = 2;
    ret_group->nodes[0] = node;
    ret_group->nodes[1] = loss;
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
