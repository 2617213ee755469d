/* rows.c: see rows.h. */
#include "passes/rows.h"

enum {
    LONGEST_ROW = 1024, /* elements; a tile does not hold a longer one */
    /* Elements of a sum over rows. Of wider ones a tile holds a row or two, and adding it up costs
     * about as much as reading the array again. */
    WIDEST_TOTAL = 256
};

static bool is_one_of(const tutti_node *node, const char *const *names)
{
    for (; *names != NULL; names++)
        if (tutti__is(node, *names))
            return true;
    return false;
}

static bool is_reduction(const tutti_node *node)
{
    static const char *const names[] = {"sum", "mean", "max", "min", NULL};
    return is_one_of(node, names);
}

/* The operand's type with 1 along the axes that the node works along. */
static tutti_type kept_of(const tutti_node *node)
{
    tutti_type kept = *tutti__edge_type(node->inputs[0]);
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes), rank = kept.rank;
    for (int i = 0; i < (count > 0 ? count : rank); i++)
        kept.dims[count == 0 ? i : axes[i] < 0 ? axes[i] + rank : axes[i]] = 1;
    return kept;
}

bool tutti__works_on_rows(const tutti_node *node, tutti_type *ret_kept)
{
    if (!is_reduction(node))
        return false;
    const tutti_type *full = tutti__edge_type(node->inputs[0]);
    if (!tutti_dtype_is_float(full->dtype) || !tutti_type_is_static(full) || full->rank < 1)
        return false;
    tutti_type kept = kept_of(node);
    int64_t columns = 1, rows = 1;
    int axis = full->rank - 1;
    for (; axis >= 0 && kept.dims[axis] == 1; axis--)
        columns *= full->dims[axis];
    for (; axis >= 0; axis--) {
        if (kept.dims[axis] != full->dims[axis])
            return false;
        rows *= full->dims[axis];
    }
    /* A batch of one row is treated as one of more: in deterministic mode bits may not differ. */
    if (columns < 2 || columns > LONGEST_ROW || (rows < 2 && full->dims[0] != 1))
        return false;
    if (ret_kept != NULL)
        *ret_kept = kept;
    return true;
}

bool tutti__is_total(const tutti_node *node)
{
    static const char *const names[] = {"sum", "mean", NULL};
    return is_one_of(node, names) && tutti_dtype_is_float(node->types[0].dtype) &&
           tutti_type_count(&node->types[0]) <= WIDEST_TOTAL;
}

const tutti_type *tutti__rows_full(const tutti_node *node)
{
    return is_reduction(node) ? tutti__edge_type(node->inputs[0]) : &node->types[0];
}

static bool group_kept(const tutti_node_group *group, tutti_type *ret_kept)
{
    for (int i = 0; i < group->count; i++)
        if (!(group->nodes[i]->op->flags & TUTTI_OP_ELEMENTWISE) &&
            tutti__works_on_rows(group->nodes[i], ret_kept))
            return true;
    return false;
}

bool tutti__group_has_rows(const tutti_node_group *group)
{
    return group_kept(group, NULL);
}

/* Whether a node takes nothing but values of `group` that have the dimensions of `kept`, and
 * numbers. */
static bool takes_rows_only(const tutti_node *node, const tutti_node_group *group,
                            const tutti_type *kept)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge = node->inputs[i];
        tutti_tensor *constant = tutti__constant_of(edge);
        if (!(constant != NULL && tutti_tensor_rank(constant) == 0) &&
            (!tutti__group_has(group, edge.node) ||
             !tutti__same_dims(tutti__edge_type(edge), kept)))
            return false;
    }
    return true;
}

bool tutti__rows_agree(const tutti_node_group *a, const tutti_node_group *b)
{
    tutti_type of_a, of_b;
    bool rows_a = group_kept(a, &of_a), rows_b = group_kept(b, &of_b);
    if (tutti__same_dims(tutti__rows_full(a->nodes[0]), tutti__rows_full(b->nodes[0])))
        return !rows_a || !rows_b || tutti__same_dims(&of_a, &of_b);
    return rows_a && b->count == 1 && (b->nodes[0]->op->flags & TUTTI_OP_ELEMENTWISE) &&
           tutti__same_dims(&b->nodes[0]->types[0], &of_a) &&
           takes_rows_only(b->nodes[0], a, &of_a);
}

bool tutti__rows_drop_totals(const tutti_node_group *group, tutti_node_group *ret)
{
    ret->count = 0;
    for (int i = 0; i < group->count; i++) {
        tutti_node *node = group->nodes[i];
        if (!is_reduction(node) || tutti__works_on_rows(node, NULL))
            ret->nodes[ret->count++] = node;
    }
    return ret->count < group->count;
}
