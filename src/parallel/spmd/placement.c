/* placement.c: a value in the form that is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

bool tutti__placement_divides(const tutti_spmd_rewrite *rewrite, int64_t size)
{
    return rewrite->spmd->batch > 0 && size > 0 && size % rewrite->spmd->batch == 0;
}

int64_t tutti__placement_size(const tutti_spmd_rewrite *rewrite, int64_t size)
{
    return size / rewrite->spmd->batch * rewrite->rows;
}

int64_t tutti__placement_start(const tutti_spmd_rewrite *rewrite, int64_t size)
{
    return size / rewrite->spmd->batch * rewrite->first;
}

static tutti_value_placements *forms_of(tutti_edge edge)
{
    return &((tutti_rewritten *)edge.node->scratch)->outputs[edge.index];
}

const tutti_placement *tutti__placement_made(tutti_edge edge)
{
    return &forms_of(edge)->placements[0];
}

static const tutti_placement *placement_find(tutti_edge edge, tutti_placement_kind kind, int dim)
{
    tutti_value_placements *all = forms_of(edge);
    for (int i = 0; i < all->count; i++)
        if (all->placements[i].kind == kind &&
            (kind != TUTTI_PLACEMENT_SHARDED || all->placements[i].dim == dim))
            return &all->placements[i];
    return NULL;
}

bool tutti__placement_is_known(tutti_edge edge)
{
    return placement_find(edge, TUTTI_PLACEMENT_REPLICATED, 0) != NULL;
}

static void placement_keep(tutti_edge edge, tutti_placement placement)
{
    tutti_value_placements *all = forms_of(edge);
    if (all->count < TUTTI_PLACEMENTS_MOST) /* else it is made again when it is asked for again */
        all->placements[all->count++] = placement;
}

/* ---- collectives ---- */

static void next_channel(tutti_spmd_rewrite *rewrite, char text[24])
{
    snprintf(text, 24, "%s%d", TUTTI_BATCH_AXIS, rewrite->channel++);
}

static tutti_status cast(tutti_spmd_rewrite *rewrite, const tutti_node *like, tutti_dtype to,
                         tutti_edge *edge)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", to)};
    tutti_node *node;
    TUTTI_TRY(tutti__spmd_add(rewrite, like, "cast", 1, edge, 1, attrs, &node));
    *edge = (tutti_edge){node, 0};
    return TUTTI_OK;
}

tutti_status tutti__placement_reduce(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                     const char *how, tutti_edge from, tutti_edge *ret)
{
    char channel[24];
    tutti_node *node;
    bool truth = tutti__edge_type(from)->dtype == TUTTI_BOOL; /* travels as 0 and 1 */
    if (truth)
        TUTTI_TRY(cast(rewrite, like, TUTTI_U8, &from));
    next_channel(rewrite, channel);
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS),
                          TUTTI_INT("size", rewrite->spmd->replicas), TUTTI_STR("op", how),
                          TUTTI_STR("channel", channel)};
    TUTTI_TRY(tutti__spmd_add(rewrite, like, "all_reduce", 1, &from, 4, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return truth ? cast(rewrite, like, TUTTI_BOOL, ret) : TUTTI_OK;
}

tutti_status tutti__placement_reduce_shards(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                            int blocks, tutti_edge from, tutti_edge *ret)
{
    char channel[24];
    tutti_node *node;
    next_channel(rewrite, channel);
    tutti_attr attrs[] = {
        TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", rewrite->spmd->replicas),
        TUTTI_STR("channel", channel),       TUTTI_INT("shards", rewrite->spmd->shards),
        TUTTI_INT("blocks", blocks),         TUTTI_INT("outputs", 1)};
    TUTTI_TRY(tutti__spmd_add(rewrite, like, "all_reduce_shards", 1, &from, 6, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

static tutti_status placement_all_gather(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                                         const tutti_placement *cut, tutti_edge *ret)
{
    const tutti_spmd *spmd = rewrite->spmd;
    int64_t total = tutti__edge_type(edge)->dims[cut->dim];
    int64_t *counts = tutti__arena_array(rewrite->scratch, (size_t)spmd->replicas, sizeof *counts);
    if (!counts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    for (int r = 0; r < spmd->replicas; r++) {
        int64_t first, rows;
        tutti__spmd_rows(spmd, spmd->batch, r, &first, &rows);
        counts[r] = total / spmd->batch * rows;
    }
    char channel[24];
    tutti_node *node;
    next_channel(rewrite, channel);
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", spmd->replicas),
                          TUTTI_STR("channel", channel), TUTTI_INT("dim", cut->dim),
                          TUTTI_INTS("counts", spmd->replicas, counts)};
    TUTTI_TRY(
        tutti__spmd_add(rewrite, edge.node, "all_gather_uneven", 1, &cut->edge, 5, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* ---- from whole to cut ---- */

static tutti_status slice(tutti_spmd_rewrite *rewrite, tutti_edge edge, tutti_edge whole, int dim,
                          tutti_edge *ret)
{
    const tutti_type *type = tutti__edge_type(edge);
    int64_t begin[TUTTI_MAX_RANK] = {0}, end[TUTTI_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        end[i] = type->dims[i] < 0 ? INT64_MAX : type->dims[i]; /* all that there are */
    begin[dim] = tutti__placement_start(rewrite, type->dims[dim]);
    end[dim] = begin[dim] + tutti__placement_size(rewrite, type->dims[dim]);
    tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                          TUTTI_INTS("end", type->rank, end)};
    tutti_node *node;
    TUTTI_TRY(tutti__spmd_add(rewrite, edge.node, "slice", 1, &whole, 2, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* Operators that are cheaper to compute for the own rows than to compute whole and slice. */
static bool is_light(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_TAKES_HANDLE)
        return false;
    return (node->op->flags & (TUTTI_OP_ELEMENTWISE | TUTTI_OP_VIEW | TUTTI_OP_RANDOM)) != 0 ||
           tutti__is(node, "broadcast_to") || tutti__is(node, "fill");
}

/* The way to compute output `edge` cut along `dim` from inputs that are whole anyway or can be cut
 * the same way; false: there is none. */
static bool light_way(const tutti_spmd_rewrite *rewrite, tutti_edge edge, int dim, tutti_split *ret,
                      int depth)
{
    tutti_split ways[64];
    const tutti_node *node = edge.node;
    if (depth > 16 || !is_light(node) || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count != 1 || node->control_count > 0)
        return false;
    int count = tutti__spmd_ways(node, 64, ways);
    for (int w = 0; w < count && w < 64; w++) {
        bool fits = ways[w].outputs[edge.index] == dim;
        for (int i = 0; fits && i < node->input_count; i++) {
            int axis = ways[w].inputs[i];
            fits = tutti__placement_made(node->inputs[i])->kind == TUTTI_PLACEMENT_REPLICATED &&
                   (axis < 0 || tutti__placement_divides(
                                    rewrite, tutti__edge_type(node->inputs[i])->dims[axis]));
        }
        if (fits) {
            *ret = ways[w];
            return true;
        }
    }
    return false;
}

static tutti_status cut_light(tutti_spmd_rewrite *rewrite, tutti_edge edge, const tutti_split *way,
                              tutti_edge *ret)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    tutti_node *node;
    for (int i = 0; i < edge.node->input_count; i++) {
        int axis = way->inputs[i];
        TUTTI_TRY(tutti__placement_as(
            rewrite, edge.node->inputs[i],
            axis < 0 ? TUTTI_PLACEMENT_REPLICATED : TUTTI_PLACEMENT_SHARDED, axis, &inputs[i]));
    }
    TUTTI_TRY(tutti__spmd_copy(rewrite, edge.node, inputs, way, &node));
    *ret = (tutti_edge){node, edge.index};
    return TUTTI_OK;
}

static tutti_status placement_cut(tutti_spmd_rewrite *rewrite, tutti_edge edge, int dim,
                                  tutti_edge *ret)
{
    tutti_split way;
    tutti_edge whole;
    if (placement_find(edge, TUTTI_PLACEMENT_REPLICATED, 0) &&
        light_way(rewrite, edge, dim, &way, 0))
        return cut_light(rewrite, edge, &way, ret);
    TUTTI_TRY(tutti__placement_as(rewrite, edge, TUTTI_PLACEMENT_REPLICATED, 0, &whole));
    return slice(rewrite, edge, whole, dim, ret);
}

static tutti_status make_whole(tutti_spmd_rewrite *rewrite, tutti_edge edge, tutti_edge *ret)
{
    const tutti_placement *made = tutti__placement_made(edge);
    if (rewrite->spmd->replicas == 1) { /* its rows are all */
        *ret = made->edge;
        return TUTTI_OK;
    }
    if (made->kind == TUTTI_PLACEMENT_PARTIAL)
        return tutti__placement_reduce(rewrite, edge.node, "sum", made->edge, ret);
    return placement_all_gather(rewrite, edge, made, ret);
}

tutti_status tutti__placement_as(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                                 tutti_placement_kind kind, int dim, tutti_edge *ret)
{
    const tutti_placement *found = placement_find(edge, kind, dim);
    if (found) {
        *ret = found->edge;
        return TUTTI_OK;
    }
    if (kind == TUTTI_PLACEMENT_PARTIAL)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' cannot be made partial", edge.node->op->name,
                          edge.node->name);
    TUTTI_TRY(kind == TUTTI_PLACEMENT_SHARDED ? placement_cut(rewrite, edge, dim, ret)
                                              : make_whole(rewrite, edge, ret));
    placement_keep(edge, (tutti_placement){kind, dim, *ret});
    return TUTTI_OK;
}
