/* patterns.c: sub-graphs for which a kernel of their own exists become fused nodes.
 *
 * Only the last node of a match may be used outside. Every path out of the match then starts at its
 * last node, so no path can leave it and come back, and any number of matches may be fused at once.
 * Nodes side by side see to that themselves: see pattern.h. */
#include <stdlib.h>

#include "passes/pattern.h"
#include "tables/pattern.h"

enum { MAX_PATTERNS = 64 };

static int sorted_patterns(const tutti_pattern **ret)
{
    int count = 0;
    for (const tutti_pattern *const *p = tutti__pattern_table; *p != NULL; p++) {
        if (count == MAX_PATTERNS)
            break;
        int at = count++;
        for (; at > 0 && ret[at - 1]->order > (*p)->order; at--)
            ret[at] = ret[at - 1];
        ret[at] = *p;
    }
    return count;
}

static bool used_only_inside(const tutti_node_group *group, const tutti_uses *uses, uint32_t id)
{
    if (uses->wanted[id])
        return false;
    for (uint32_t u = uses->first[id]; u < uses->first[id + 1]; u++)
        if (!tutti__group_has(group, uses->users[u]))
            return false;
    return true;
}

static bool may_be_part(const tutti_node *node, const tutti_pattern *pattern)
{
    const uint32_t fallible = TUTTI_OP_FALLIBLE;
    const uint32_t kind = node->op->flags & (fallible | TUTTI_OP_STATEFUL | TUTTI_OP_RANDOM);
    bool pure = tutti__is_pure(node) || (pattern->side_by_side && kind == fallible) ||
                (pattern->draws && kind == TUTTI_OP_RANDOM);
    return pure && !tutti__rewrite_pinned(node) &&
           (node->output_count == 1 || pattern->side_by_side) &&
           tutti_type_is_static(&node->types[0]);
}

static bool is_legal(const tutti_pattern *pattern, const tutti_node_group *group,
                     const tutti_uses *uses, const bool *claimed)
{
    for (int i = 0; i < group->count; i++) {
        const tutti_node *node = group->nodes[i];
        bool last = i == group->count - 1;
        if (claimed[node->id] || !may_be_part(node, pattern) ||
            (!last && !pattern->side_by_side && !used_only_inside(group, uses, node->id)))
            return false;
    }
    return group->count >= 2;
}

/* From the end, so that a match is found at its last node before its inner nodes are looked at. */
static tutti_status claim(tutti_rewrite *rewrite, const tutti_uses *uses, bool *claimed)
{
    const tutti_pattern *patterns[MAX_PATTERNS] = {0};
    int pattern_count = sorted_patterns(patterns);
    for (size_t n = rewrite->node_count; n-- > 0;) {
        tutti_node *node = rewrite->graph->nodes.data[n];
        for (int p = 0; p < pattern_count && !claimed[n]; p++) {
            tutti_node_group group = {0};
            bool fused;
            if (!patterns[p]->match(node, uses, &group) ||
                !is_legal(patterns[p], &group, uses, claimed))
                continue;
            TUTTI_TRY(tutti__group_fuse(rewrite, uses, &group, patterns[p]->name, &fused));
            for (int i = 0; fused && i < group.count; i++)
                claimed[group.nodes[i]->id] = true;
        }
    }
    return TUTTI_OK;
}

static tutti_status patterns_run(tutti_graph *graph, const tutti_pass_context *context,
                                 int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    if (!tutti__group_device_fuses(context)) {
        *ret_changes = 0;
        return TUTTI_OK;
    }
    bool *claimed = calloc(graph->nodes.count + 1, sizeof *claimed);
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK && claimed == NULL)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to match %zu nodes", graph->nodes.count);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    if (status == TUTTI_OK)
        status = claim(&rewrite, &uses, claimed);
    tutti__uses_free(&uses);
    free(claimed);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_patterns = {
    .name = "patterns",
    .doc = "sub-graphs for which a kernel of their own exists become one node",
    .stage = TUTTI_PASS_PARTITION,
    .order = 50,
    .run = patterns_run,
};
