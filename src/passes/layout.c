/* layout.c: transposes that meet their inverse across element-wise operators are removed.
 *
 * Element-wise work does not care about the order of axes, so transpose(f(transpose(x; p), y); q)
 * with q the inverse of p is f(x, y transposed by q). A region is what a transpose q ends: the
 * element-wise nodes above it that are used nowhere else. Along its rim stand its inputs:
 *     a transpose by q's inverse   its own input is taken instead, which saves a transpose if
 * nobody else uses it a value whose axes of more   a reshape, which costs nothing than 1 keep their
 * order anything else                has to be transposed, which costs one The region is turned
 * when the bytes that transposes move get fewer.
 *
 * This is the place where layouts are chosen. Kernels take [batch, height, width, channels] only,
 * so there is nothing to choose for them yet; a kernel that prefers another order will say so, this
 * pass will put transposes round its node, and cancel them between neighbours by the rule above. */
#include "passes/group.h"

typedef struct region {
    tutti_rewrite *rewrite;
    const tutti_uses *uses;
    const tutti_node *last;    /* the transpose at its end */
    int order[TUTTI_MAX_RANK]; /* of that */
    tutti_node_group inner;    /* element-wise nodes, in topological order */
    tutti_edge turned[TUTTI_GROUP_NODES];
    int64_t saved, added; /* bytes that transposes move */
} region;

/* Of nodes that were there at the start; others may be used anywhere. */
static uint32_t user_count(const tutti_uses *uses, const tutti_node *node)
{
    if (node->scratch == NULL)
        return UINT32_MAX;
    return uses->first[node->id + 1] - uses->first[node->id] + uses->wanted[node->id];
}

static bool is_inner(const region *r, const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_ELEMENTWISE) && tutti__is_pure(node) &&
           !tutti__rewrite_pinned(node) && node->output_count == 1 &&
           tutti__same_dims(&node->types[0], tutti__edge_type(r->last->inputs[0])) &&
           user_count(r->uses, node) == 1;
}

/* Nodes above the transpose, each after those it uses. Every one has one user, so it is a tree. */
static bool collect(region *r, tutti_node *node)
{
    if (!is_inner(r, node))
        return true; /* part of the rim */
    for (int i = 0; i < node->input_count; i++)
        if (!collect(r, node->inputs[i].node))
            return false;
    if (r->inner.count == TUTTI_GROUP_NODES)
        return false;
    r->inner.nodes[r->inner.count++] = node;
    return true;
}

/* Whether a node transposes by the inverse of the region's order: q[p[i]] = i. */
static bool is_inverse(const region *r, const tutti_node *node)
{
    int order[TUTTI_MAX_RANK];
    if (!tutti__is(node, "transpose") || node->types[0].rank != r->last->types[0].rank)
        return false;
    tutti__transpose_order(node, order);
    for (int i = 0; i < node->types[0].rank; i++)
        if (order[r->order[i]] != i)
            return false;
    return true;
}

/* An input's dimensions with the axes of 1 that broadcasting puts before them. */
static void padded_dims(const region *r, const tutti_type *type, int64_t *ret_dims)
{
    int rank = r->last->types[0].rank, lead = rank - type->rank;
    for (int i = 0; i < rank; i++)
        ret_dims[i] = i < lead ? 1 : type->dims[i - lead];
}

static bool keeps_order(const region *r, const int64_t *dims)
{
    return tutti__order_moves_nothing(r->last->types[0].rank, dims, r->order);
}

static void price_rim(region *r, tutti_edge edge)
{
    int64_t dims[TUTTI_MAX_RANK], bytes = tutti__known_bytes(tutti__edge_type(edge));
    if (is_inverse(r, edge.node)) {
        r->saved += user_count(r->uses, edge.node) == 1 ? bytes : 0;
        return;
    }
    padded_dims(r, tutti__edge_type(edge), dims);
    r->added += keeps_order(r, dims) ? 0 : bytes;
}

static bool is_worth_it(region *r)
{
    r->saved = tutti__known_bytes(&r->last->types[0]);
    for (int n = 0; n < r->inner.count; n++) {
        const tutti_node *node = r->inner.nodes[n];
        for (int i = 0; i < node->input_count; i++)
            if (!tutti__group_has(&r->inner, node->inputs[i].node))
                price_rim(r, node->inputs[i]);
    }
    return r->inner.count > 0 && r->saved > r->added;
}

/* A value from the rim in the region's new order. */
static tutti_status turn_rim(region *r, tutti_edge edge, tutti_edge *ret)
{
    int64_t dims[TUTTI_MAX_RANK], turned[TUTTI_MAX_RANK], order[TUTTI_MAX_RANK];
    int rank = r->last->types[0].rank;
    const tutti_type *type = tutti__edge_type(edge);
    if (is_inverse(r, edge.node)) {
        *ret = edge.node->inputs[0];
        return TUTTI_OK;
    }
    if (tutti_type_count(type) == 1) { /* broadcasts in any order */
        *ret = edge;
        return TUTTI_OK;
    }
    padded_dims(r, type, dims);
    for (int i = 0; i < rank; i++) {
        order[i] = r->order[i];
        turned[i] = dims[r->order[i]];
    }
    if (keeps_order(r, dims))
        return tutti__rewrite_reshape(r->rewrite, r->last, edge, rank, turned, ret);
    TUTTI_TRY(tutti__rewrite_reshape(r->rewrite, r->last, edge, rank, dims, ret));
    return tutti__rewrite_add(r->rewrite, r->last, "transpose", 1, ret, 1,
                              &TUTTI_INTS("order", rank, order), ret);
}

static tutti_status turn_edge(region *r, tutti_edge edge, tutti_edge *ret)
{
    for (int n = 0; n < r->inner.count; n++)
        if (r->inner.nodes[n] == edge.node) {
            *ret = r->turned[n];
            return TUTTI_OK;
        }
    return turn_rim(r, edge, ret);
}

static tutti_status turn(region *r)
{
    tutti_edge inputs[TUTTI_GROUP_INPUTS];
    for (int n = 0; n < r->inner.count; n++) {
        const tutti_node *node = r->inner.nodes[n];
        for (int i = 0; i < node->input_count; i++)
            TUTTI_TRY(turn_edge(r, node->inputs[i], &inputs[i]));
        TUTTI_TRY(tutti__rewrite_add(r->rewrite, node, node->op->name, node->input_count, inputs,
                                     node->attr_count, node->attrs, &r->turned[n]));
    }
    return TUTTI_OK;
}

/* An operator that does not broadcast as its inputs would ask for is left alone. */
static bool can_be_turned(const region *r)
{
    for (int n = 0; n < r->inner.count; n++) {
        const tutti_node *node = r->inner.nodes[n];
        if (node->input_count > TUTTI_GROUP_INPUTS || tutti_op_find(node->op->name) != node->op)
            return false;
        for (int i = 0; i < node->input_count; i++)
            if (tutti__edge_type(node->inputs[i])->rank > node->types[0].rank)
                return false;
    }
    return true;
}

static tutti_status look_at(tutti_rewrite *rewrite, const tutti_uses *uses, tutti_node *node)
{
    region r = {.rewrite = rewrite, .uses = uses, .last = node};
    if (!tutti__is(node, "transpose") || tutti__rewrite_pinned(node) ||
        !tutti_type_is_static(&node->types[0]) || tutti_type_count(&node->types[0]) < 2)
        return TUTTI_OK;
    tutti__transpose_order(node, r.order);
    if (!collect(&r, node->inputs[0].node) || !can_be_turned(&r) || !is_worth_it(&r))
        return TUTTI_OK;
    TUTTI_TRY(turn(&r));
    return tutti__rewrite_replace(rewrite, node, 0, r.turned[r.inner.count - 1]);
}

static tutti_status run(tutti_graph *graph, const tutti_pass_context *context, int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    for (size_t n = 0; status == TUTTI_OK && n < rewrite.node_count; n++) {
        tutti__rewrite_visit(graph->nodes.data[n]);
        status = look_at(&rewrite, &uses, graph->nodes.data[n]);
    }
    tutti__uses_free(&uses);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_layout = {
    .name = "layout",
    .doc = "transposes that meet their inverse across element-wise operators are removed",
    .stage = TUTTI_PASS_PARTITION,
    .order = 55,
    .run = run,
};
