/* layout_turn.c: what turning a region costs, and doing it; see layout.h. */
#include <string.h>

#include "passes/layout.h"

/* Sums along an axis have other bits where it lies elsewhere, and what a turn gains depends on how
 * many rows a replica has. */
static bool keeps_bits(const tutti_region *r, const tutti_node *node)
{
    return !r->rewrite->context->deterministic || !tutti_dtype_is_float(node->types[0].dtype) ||
           tutti__is(node, "max") || tutti__is(node, "min");
}

/* Operators that name one axis, and work in any order of the others. */
static bool names_axis(const tutti_region *r, const tutti_node *node)
{
    return tutti__is(node, "concat") ||
           ((tutti__is(node, "softmax") || tutti__is(node, "log_softmax")) && keeps_bits(r, node));
}

bool tutti__layout_is_free(const tutti_region *r, const tutti_node *node)
{
    int rank = r->rank;
    if (!(node->op->flags & TUTTI_OP_ELEMENTWISE) && !names_axis(r, node))
        return false;
    if (!tutti__is_pure(node) || tutti__rewrite_pinned(node) || node->output_count != 1 ||
        node->input_count > TUTTI_GROUP_INPUTS || node->types[0].rank != rank ||
        !tutti_type_is_static(&node->types[0]) || tutti_op_find(node->op->name) != node->op)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (type->rank > rank || type->handle || !tutti_type_is_static(type))
            return false;
    }
    return true;
}

bool tutti__layout_is_order(const tutti_region *r, const tutti_node *node)
{
    int order[TUTTI_MAX_RANK];
    if (!tutti__is(node, "transpose") || node->types[0].rank != r->rank)
        return false;
    tutti__transpose_order(node, order);
    return memcmp(order, r->order, (size_t)r->rank * sizeof order[0]) == 0;
}

bool tutti__layout_is_inverse(const tutti_region *r, const tutti_node *node)
{
    int order[TUTTI_MAX_RANK];
    if (!tutti__is(node, "transpose") || node->types[0].rank != r->rank)
        return false;
    tutti__transpose_order(node, order);
    for (int i = 0; i < r->rank; i++)
        if (order[r->order[i]] != i)
            return false;
    return true;
}

void tutti__layout_padded(const tutti_region *r, const tutti_type *type, int64_t *ret_dims)
{
    int lead = r->rank - type->rank;
    for (int i = 0; i < r->rank; i++)
        ret_dims[i] = i < lead ? 1 : type->dims[i - lead];
}

static bool is_kept(const tutti_node *reduction, int axis)
{
    const int64_t *axes;
    int count = tutti_attr_ints(reduction->attrs, reduction->attr_count, "axes", &axes);
    int rank = tutti__edge_type(reduction->inputs[0])->rank;
    for (int i = 0; i < count; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == axis)
            return false;
    return count > 0;
}

bool tutti__layout_absorbs(const tutti_region *r, const tutti_node *node)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "prod", NULL};
    int last = -1;
    bool known = false;
    for (int i = 0; names[i] != NULL; i++)
        known = known || tutti__is(node, names[i]);
    if (!known || tutti__rewrite_pinned(node) || tutti__int(node, "keepdims") != 0 ||
        !keeps_bits(r, node))
        return false;
    for (int i = 0; i < r->rank; i++) /* kept axes stay in order */
        if (is_kept(node, r->order[i])) {
            if (r->order[i] < last)
                return false;
            last = r->order[i];
        }
    return true;
}

/* ---- the price ---- */

/* Whether all users of a value are members, which do without it when they are turned. */
static bool only_for_members(const tutti_region *r, const tutti_node *node)
{
    if (node->scratch == NULL || r->uses->wanted[node->id] || tutti__rewrite_pinned(node))
        return false;
    for (uint32_t u = r->uses->first[node->id]; u < r->uses->first[node->id + 1]; u++)
        if (!r->member[r->uses->users[u]->id])
            return false;
    return true;
}

/* Whether an earlier operand of the region's nodes is the same value. */
static bool seen_before(const tutti_region *r, int n, int input)
{
    tutti_edge edge = r->nodes[n]->inputs[input];
    for (int m = 0; m <= n; m++) {
        if (!r->member[r->nodes[m]->id])
            continue;
        for (int i = 0; i < (m == n ? input : r->nodes[m]->input_count); i++)
            if (r->nodes[m]->inputs[i].node == edge.node &&
                r->nodes[m]->inputs[i].index == edge.index)
                return true;
    }
    return false;
}

/* Whether an earlier region has been turned, so that a transpose out of it or into it is gone. */
static bool is_out_of_turned(const tutti_region *r, const tutti_node *transpose)
{
    const tutti_node *from = transpose->inputs[0].node;
    return from->scratch != NULL && r->turned[from->id].node != NULL;
}

static bool is_into_turned(const tutti_region *r, const tutti_node *transpose)
{
    uint32_t first = r->uses->first[transpose->id], end = r->uses->first[transpose->id + 1];
    for (uint32_t u = first; u < end; u++)
        if (r->turned[r->uses->users[u]->id].node == NULL)
            return false;
    return first < end && !r->uses->wanted[transpose->id];
}

static int64_t operand_gain(const tutti_region *r, int n, int input)
{
    tutti_edge edge = r->nodes[n]->inputs[input];
    const tutti_type *type = tutti__edge_type(edge);
    int64_t dims[TUTTI_MAX_RANK];
    bool member = edge.node->scratch != NULL && r->member[edge.node->id];
    if (member || tutti__constant_of(edge) != NULL || tutti_type_count(type) == 1)
        return 0;
    tutti__layout_padded(r, type, dims);
    if (tutti__order_moves_nothing(r->rank, dims, r->order))
        return 0;
    bool inverse = tutti__layout_is_inverse(r, edge.node) && !is_out_of_turned(r, edge.node);
    if ((inverse && !only_for_members(r, edge.node)) || seen_before(r, n, input))
        return 0;
    return inverse ? tutti__known_bytes(type) : -tutti__known_bytes(type);
}

/* What is gained behind a member: transposes that go, less one back if anybody needs the value. */
static int64_t result_gain(const tutti_region *r, const tutti_node *node)
{
    int64_t bytes = tutti__known_bytes(&node->types[0]), gain = 0;
    bool needed = r->uses->wanted[node->id];
    for (uint32_t u = r->uses->first[node->id]; u < r->uses->first[node->id + 1]; u++) {
        const tutti_node *user = r->uses->users[u];
        if (r->member[user->id] || tutti__layout_absorbs(r, user))
            continue;
        if (tutti__layout_is_order(r, user) && !tutti__rewrite_pinned(user) &&
            !is_into_turned(r, user))
            gain += bytes;
        else
            needed = true;
    }
    return needed && !tutti__order_moves_nothing(r->rank, node->types[0].dims, r->order)
               ? gain - bytes
               : gain;
}

int64_t tutti__layout_gain(const tutti_region *r)
{
    int64_t gain = 0;
    for (int n = 0; n < r->count; n++) {
        if (!r->member[r->nodes[n]->id])
            continue;
        gain += result_gain(r, r->nodes[n]);
        for (int i = 0; i < r->nodes[n]->input_count; i++)
            gain += operand_gain(r, n, i);
    }
    return gain;
}

/* ---- turning ---- */

static tutti_status transposed(tutti_region *r, const tutti_node *like, tutti_edge x,
                               const int *order, tutti_edge *ret)
{
    int64_t wide[TUTTI_MAX_RANK];
    for (int i = 0; i < r->rank; i++)
        wide[i] = order[i];
    return tutti__rewrite_add(r->rewrite, like, "transpose", 1, &x, 1,
                              &TUTTI_INTS("order", r->rank, wide), ret);
}

/* A constant in the other order: another constant. */
static tutti_status turn_constant(tutti_region *r, const tutti_node *like, tutti_tensor *value,
                                  const int64_t *dims, tutti_edge *ret)
{
    tutti_tensor *wide = NULL, *view = NULL, *copy = NULL;
    tutti_status status = tutti_tensor_reshape(value, r->rank, dims, &wide);
    if (status == TUTTI_OK)
        status = tutti_tensor_permute(wide, r->order, &view);
    if (status == TUTTI_OK)
        status = tutti_tensor_contiguous(view, &copy);
    if (status == TUTTI_OK)
        status = tutti__rewrite_constant(r->rewrite, like, copy, ret);
    tutti_tensor_release(wide);
    tutti_tensor_release(view);
    tutti_tensor_release(copy);
    return status;
}

/* A value from outside is transposed once, however many members take it. */
static tutti_status turn_other(tutti_region *r, const tutti_node *like, tutti_edge edge,
                               const int64_t *dims, tutti_edge *ret)
{
    tutti_edge wide;
    for (int i = 0; i < r->rim_count; i++)
        if (r->rim[i].from.node == edge.node && r->rim[i].from.index == edge.index) {
            *ret = r->rim[i].to;
            return TUTTI_OK;
        }
    TUTTI_TRY(tutti__rewrite_reshape(r->rewrite, like, edge, r->rank, dims, &wide));
    TUTTI_TRY(transposed(r, like, wide, r->order, ret));
    if (r->rim_count < TUTTI_LAYOUT_RIM) {
        r->rim[r->rim_count].from = edge;
        r->rim[r->rim_count++].to = *ret;
    }
    return TUTTI_OK;
}

/* A value from outside, as members that are turned take it. */
static tutti_status turn_operand(tutti_region *r, const tutti_node *like, tutti_edge edge,
                                 tutti_edge *ret)
{
    int64_t dims[TUTTI_MAX_RANK], turned[TUTTI_MAX_RANK];
    const tutti_type *type = tutti__edge_type(edge);
    *ret = edge;
    if (edge.node->scratch != NULL && r->member[edge.node->id]) {
        *ret = r->turned[edge.node->id];
        return TUTTI_OK;
    }
    if (tutti_type_count(type) == 1) /* broadcasts in any order */
        return TUTTI_OK;
    if (tutti__layout_is_inverse(r, edge.node)) {
        *ret = edge.node->inputs[0];
        return TUTTI_OK;
    }
    tutti__layout_padded(r, type, dims);
    for (int i = 0; i < r->rank; i++)
        turned[i] = dims[r->order[i]];
    if (tutti__order_moves_nothing(r->rank, dims, r->order))
        return tutti__rewrite_reshape(r->rewrite, like, edge, r->rank, turned, ret);
    if (tutti__constant_of(edge) != NULL)
        return turn_constant(r, like, tutti__constant_of(edge), dims, ret);
    return turn_other(r, like, edge, dims, ret);
}

/* The place of an old axis in the new order. */
static int64_t new_axis(const tutti_region *r, int64_t axis)
{
    axis = axis < 0 ? axis + r->rank : axis;
    for (int i = 0; i < r->rank; i++)
        if (r->order[i] == axis)
            return i;
    return axis;
}

static tutti_status turn_member(tutti_region *r, const tutti_node *node)
{
    tutti_edge inputs[TUTTI_GROUP_INPUTS];
    tutti_attr attrs[TUTTI_GROUP_INPUTS];
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(turn_operand(r, node, node->inputs[i], &inputs[i]));
    for (int i = 0; i < node->attr_count && i < TUTTI_GROUP_INPUTS; i++) {
        attrs[i] = node->attrs[i];
        if (names_axis(r, node) && strcmp(attrs[i].name, "axis") == 0)
            attrs[i].value.i = new_axis(r, attrs[i].value.i);
    }
    bool fits = node->attr_count <= TUTTI_GROUP_INPUTS;
    return tutti__rewrite_add(r->rewrite, node, node->op->name, node->input_count, inputs,
                              node->attr_count, fits ? attrs : node->attrs, &r->turned[node->id]);
}

/* A reduction of the reordered value. */
static tutti_status turn_reduction(tutti_region *r, tutti_node *node, tutti_edge x)
{
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0;
    tutti_edge made;
    for (int i = 0; i < r->rank; i++)
        if (!is_kept(node, r->order[i]))
            axes[count++] = i;
    TUTTI_TRY(tutti__rewrite_add(r->rewrite, node, node->op->name, 1, &x, 1,
                                 &TUTTI_INTS("axes", count, axes), &made));
    return tutti__rewrite_replace(r->rewrite, node, 0, made);
}

/* What outside takes a member's value, and the value itself, transposed back. */
static tutti_status replace(tutti_region *r, tutti_node *node)
{
    tutti_edge turned = r->turned[node->id], back = turned;
    int inverse[TUTTI_MAX_RANK];
    for (int i = 0; i < r->rank; i++)
        inverse[r->order[i]] = i;
    for (uint32_t u = r->uses->first[node->id]; u < r->uses->first[node->id + 1]; u++) {
        tutti_node *user = r->uses->users[u];
        if (r->member[user->id])
            continue;
        if (tutti__layout_is_order(r, user) && !tutti__rewrite_pinned(user))
            TUTTI_TRY(tutti__rewrite_replace(r->rewrite, user, 0, turned));
        else if (tutti__layout_absorbs(r, user))
            TUTTI_TRY(turn_reduction(r, user, turned));
    }
    if (tutti__order_moves_nothing(r->rank, node->types[0].dims, r->order))
        TUTTI_TRY(
            tutti__rewrite_reshape(r->rewrite, node, turned, r->rank, node->types[0].dims, &back));
    else
        TUTTI_TRY(transposed(r, node, turned, inverse, &back));
    return tutti__rewrite_replace(r->rewrite, node, 0, back);
}

tutti_status tutti__layout_turn(tutti_region *r)
{
    int changes = r->rewrite->changes;
    r->rim_count = 0;
    for (int i = 0; i < r->count; i++)
        TUTTI_TRY(turn_member(r, r->nodes[i]));
    for (int i = 0; i < r->count; i++)
        TUTTI_TRY(replace(r, r->nodes[i]));
    r->rewrite->changes = changes + 1; /* one region */
    return TUTTI_OK;
}
