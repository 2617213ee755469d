/* fuse.c: element-wise operators that work on one shape become one fused node, which a kernel runs
 * tile by tile instead of array by array. Reductions of rows take part where a tile holds whole
 * rows, and with them element-wise work on what is there once for each row.
 *
 * Nodes are looked at in topological order; each joins the groups of its inputs, if
 *  1. both work on the same dimensions (inputs from outside may be smaller and broadcast);
 *  2. the group keeps the limits of group.h;
 *  3. no path leads from one to the other through a node outside: the fused node would have to run
 *     before and after it. Groups count as single nodes here, since that is what they become;
 *  4. nobody outside would follow an update that it does not follow, if reads or other devices wait
 *     for anything.
 * At last sums over other axes join the group of what they sum: it is then read while it is in the
 * tile, and not written if nobody else wants it. A sum has no other input, so no path can lead to
 * it but from its group.
 *
 * Nodes that wait for control edges, or are waited for, take no part. A group for which no kernel
 * bids, or with too many outputs, is cut in two in topological order, and so on; both halves are
 * legal groups because the whole was. */
#include <stdlib.h>
#include <string.h>

#include "passes/rows.h"

/* How many nodes a search for a path may visit before it gives up and forbids the merge. */
enum { MAX_VISITS = 4096 };

typedef struct fuser {
    tutti_rewrite rewrite;
    tutti_uses uses;
    tutti_arena arena;         /* of the groups */
    tutti_node_group **groups; /* by id: the node's group, or NULL for nodes that take no part */
    uint32_t *visited;         /* by id: number of the last search that came by */
    uint32_t search;
    tutti_node **stack;
} fuser;

/* Whether a node may be part of any group. */
static bool is_free(const tutti_node *node)
{
    if (!tutti__is_pure(node) || tutti__rewrite_pinned(node) || node->output_count != 1 ||
        node->input_count < 1 || !tutti_type_is_static(&node->types[0]) ||
        node->types[0].dtype == TUTTI_STRING)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (type->handle || type->dtype == TUTTI_STRING || !tutti_type_is_static(type))
            return false;
    }
    return true;
}

static bool is_fusable(const tutti_node *node)
{
    return ((node->op->flags & TUTTI_OP_ELEMENTWISE) || tutti__works_on_rows(node, NULL)) &&
           is_free(node);
}

/* ---- paths ---- */

/* Puts the users of a node, or of all nodes of its group, on the stack; returns the new depth.
 * Users after `last` cannot lead back. */
static size_t push_users(fuser *f, const tutti_node *node, uint32_t last, size_t depth)
{
    const tutti_node_group *group = f->groups[node->id];
    int count = group != NULL ? group->count : 1;
    for (int i = 0; i < count; i++) {
        uint32_t id = group != NULL ? group->nodes[i]->id : node->id;
        for (uint32_t u = f->uses.first[id]; u < f->uses.first[id + 1]; u++) {
            tutti_node *user = f->uses.users[u];
            if (user->id > last || f->visited[user->id] == f->search)
                continue;
            f->visited[user->id] = f->search;
            f->stack[depth++] = user;
        }
    }
    return depth;
}

/* Marks a whole group as seen, so that it is entered once. */
static void mark_group(fuser *f, const tutti_node_group *group)
{
    for (int i = 0; group != NULL && i < group->count; i++)
        f->visited[group->nodes[i]->id] = f->search;
}

static bool is_source(const tutti_node *node)
{
    return node->input_count + node->control_count == 0;
}

/* Whether no path leads to a node: it is of no group, and what it takes has no inputs. */
static bool follows_nothing(const fuser *f, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!is_source(node->inputs[i].node))
            return false;
    return node->control_count == 0 && f->groups[node->id] == NULL;
}

/* Whether a path to a group from another may come in by a node outside both. */
static bool may_come_by(const fuser *f, const tutti_node_group *from, const tutti_node_group *to)
{
    for (int n = 0; n < to->count; n++) {
        const tutti_node *node = to->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            const tutti_node_group *group = f->groups[node->inputs[i].node->id];
            if ((group == NULL || (group != from && group != to)) &&
                !follows_nothing(f, node->inputs[i].node))
                return true;
        }
    }
    return false; /* nodes of groups wait for none */
}

/* Whether a path leads from one group to another through at least one node outside both. What need
 * not be searched for is not: from an activation to its gradient the way is long. */
static bool leads_outside(fuser *f, const tutti_node_group *from, const tutti_node_group *to,
                          uint32_t last)
{
    size_t depth;
    int visits = 0;
    if (!may_come_by(f, from, to))
        return false;
    f->search++;
    mark_group(f, from);
    depth = push_users(f, from->nodes[0], last, 0);
    size_t direct = 0; /* users in `to` itself are no detour */
    for (size_t i = 0; i < depth; i++)
        if (f->groups[f->stack[i]->id] != to)
            f->stack[direct++] = f->stack[i];
        else
            f->visited[f->stack[i]->id] = 0;
    depth = direct;
    while (depth > 0) {
        const tutti_node *node = f->stack[--depth];
        const tutti_node_group *group = f->groups[node->id];
        if (group == to || ++visits > MAX_VISITS)
            return true;
        mark_group(f, group);
        depth = push_users(f, node, last, depth);
    }
    return false;
}

/* ---- groups ---- */

/* `a` holds an input of the node `last`, which `b` holds. Whether a detour leads back from `b` to
 * `a` need not be asked: it would end in `last` by way of `a`, so what it starts from would not
 * have been merged with `last`. */
static bool merges(fuser *f, const tutti_node_group *a, const tutti_node_group *b, uint32_t last,
                   tutti_node_group *ret)
{
    tutti_edge inputs[TUTTI_GROUP_INPUTS];
    if (a->count + b->count > TUTTI_GROUP_NODES || !tutti__rows_agree(a, b))
        return false;
    *ret = *a;
    memcpy(ret->nodes + a->count, b->nodes, (size_t)b->count * sizeof *b->nodes);
    ret->count += b->count;
    return tutti__group_inputs(ret, TUTTI_GROUP_INPUTS, inputs) <= TUTTI_GROUP_INPUTS &&
           !tutti__group_straddles(ret, &f->uses) && !leads_outside(f, a, b, last);
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = (*(tutti_node *const *)a)->id, y = (*(tutti_node *const *)b)->id;
    return (x > y) - (x < y);
}

/* `kept` gets all nodes; the other group is empty then and belongs to nobody. */
static void merge(fuser *f, tutti_node_group *kept, const tutti_node_group *merged)
{
    *kept = *merged;
    qsort(kept->nodes, (size_t)kept->count, sizeof(tutti_node *), by_id);
    for (int i = 0; i < kept->count; i++)
        f->groups[kept->nodes[i]->id] = kept;
}

/* The nearest producer first: what it leads to, the others lead to as well. */
static void join_inputs(fuser *f, tutti_node *node)
{
    tutti_node_group *tried[TUTTI_GROUP_INPUTS], merged;
    int tries = 0;
    for (; tries < node->input_count && tries < TUTTI_GROUP_INPUTS; tries++) {
        tutti_node_group *best = NULL;
        for (int i = 0; i < node->input_count; i++) {
            tutti_node_group *group = f->groups[node->inputs[i].node->id];
            bool known = group == NULL || group == f->groups[node->id];
            for (int t = 0; t < tries && !known; t++)
                known = tried[t] == group;
            if (!known && (best == NULL || by_id(&group->nodes[group->count - 1],
                                                 &best->nodes[best->count - 1]) > 0))
                best = group;
        }
        if (best == NULL)
            return;
        tried[tries] = best;
        if (merges(f, best, f->groups[node->id], node->id, &merged))
            merge(f, best, &merged);
    }
}

static tutti_status find_groups(fuser *f)
{
    tutti_graph *graph = f->rewrite.graph;
    for (size_t n = 0; n < f->rewrite.node_count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (!is_fusable(node))
            continue;
        tutti_node_group *group = tutti__arena_take(&f->arena, sizeof *group);
        if (group == NULL)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for groups of nodes");
        group->count = 1;
        group->nodes[0] = node;
        f->groups[n] = group;
        join_inputs(f, node);
    }
    return TUTTI_OK;
}

/* Sums over rows join the group of what they sum. */
static void join_totals(fuser *f)
{
    for (size_t n = 0; n < f->rewrite.node_count; n++) {
        tutti_node *node = f->rewrite.graph->nodes.data[n];
        if (f->groups[n] != NULL || !tutti__is_total(node) || !is_free(node))
            continue;
        tutti_node_group *group = f->groups[node->inputs[0].node->id];
        if (group == NULL || group->count == TUTTI_GROUP_NODES ||
            !tutti__same_dims(tutti__edge_type(node->inputs[0]), tutti__rows_full(group->nodes[0])))
            continue;
        group->nodes[group->count++] =
            node; /* after what it sums: bodies are built in this order */
    }
}

static tutti_status emit(fuser *f, const tutti_node_group *group)
{
    bool fused;
    tutti_node_group plain;
    if (group->count < 2)
        return TUTTI_OK;
    bool totals = tutti__rows_drop_totals(group, &plain);
    TUTTI_TRY(tutti__group_fuse(&f->rewrite, &f->uses, group,
                                totals || tutti__group_has_rows(group) ? "reduce" : "elementwise",
                                &fused));
    if (fused)
        return TUTTI_OK;
    if (totals)
        return emit(f, &plain);
    if (group->count < 3)
        return TUTTI_OK;
    int half = group->count / 2;
    tutti_node_group part = {.count = half};
    memcpy(part.nodes, group->nodes, (size_t)half * sizeof *part.nodes);
    TUTTI_TRY(emit(f, &part));
    part.count = group->count - half;
    memcpy(part.nodes, group->nodes + half, (size_t)part.count * sizeof *part.nodes);
    return emit(f, &part);
}

static tutti_status fuse(fuser *f)
{
    size_t count = f->rewrite.node_count;
    f->groups = calloc(count + 1, sizeof(tutti_node_group *));
    f->visited = calloc(count + 1, sizeof *f->visited);
    f->stack = calloc(count + 1, sizeof(tutti_node *));
    if (f->groups == NULL || f->visited == NULL || f->stack == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to fuse %zu nodes", count);
    TUTTI_TRY(tutti__uses_create(f->rewrite.graph, &f->uses));
    TUTTI_TRY(find_groups(f));
    join_totals(f);
    for (size_t n = 0; n < count; n++)
        if (f->groups[n] != NULL && f->groups[n]->nodes[0]->id == n)
            TUTTI_TRY(emit(f, f->groups[n]));
    return TUTTI_OK;
}

static tutti_status fuse_run(tutti_graph *graph, const tutti_pass_context *context,
                             int *ret_changes)
{
    fuser f = {0};
    if (!tutti__group_device_fuses(context)) {
        *ret_changes = 0;
        return TUTTI_OK;
    }
    tutti_status status = tutti__rewrite_begin(&f.rewrite, graph, context);
    if (status == TUTTI_OK)
        status = fuse(&f);
    tutti__uses_free(&f.uses);
    tutti__arena_free(&f.arena);
    free(f.groups);
    free(f.visited);
    free(f.stack);
    return tutti__rewrite_end(&f.rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_fuse = {
    .name = "fuse",
    .doc =
        "element-wise operators, and reductions of them, become one kernel that works tile by tile",
    .stage = TUTTI_PASS_PARTITION,
    .order = 60,
    .run = fuse_run,
};
