/* reshard.c: a value in the sharding that is asked for, axis by axis:
 *
 *     partial    -> replicated  all_reduce
 *     partial    -> split       reduce_scatter; of uneven blocks an all_reduce and a slice; from
 * the batch's axes to the weights' the same, and the rest an all_reduce split      -> replicated
 * all_gather split(d)   -> split(e)    all_to_all; of uneven blocks an all_gather and a slice
 *     replicated -> split       a slice, or light operators computed for the own block only
 *     replicated -> partial     zero on all ranks but the first
 *
 * Of axes that split one dimension the inner ones are gathered first and sliced last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

/* ---- blocks ---- */

/* The block of one dimension that rank `rank` along `axes` has. (Where other axes cut it, too, all
 * blocks are of one size.) */
static void dimension_block(const tutti_spmd *spmd, const tutti_partition_spec *spec, int dimension,
                            int axes, int rank, int64_t *begin, int64_t *size)
{
    *begin = 0;
    for (int a = 0; a < spmd->layout->count; a++)
        if (spec->along[a].kind == TUTTI_SPLIT && spec->along[a].dimension == dimension)
            tutti__spmd_block(spmd, a, a == axes ? rank : 0, begin, size);
}

static bool is_even(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                    const tutti_partition_spec *spec, int axes, int dimension)
{
    int64_t begin, size, first;
    for (int r = 0; r < rewrite->spmd->layout->axes[axes].size; r++) {
        size = tutti__edge_type(edge)->dims[dimension];
        dimension_block(rewrite->spmd, spec, dimension, axes, r, &begin, &size);
        first = r == 0 ? size : first;
        if (size != first || size == 0)
            return false;
    }
    return true;
}

/* ---- a value's placements ---- */

static tutti_value_placements *forms_of(tutti_edge edge)
{
    return &tutti__rewritten(edge.node)->outputs[edge.index];
}

tutti_edge tutti__placement_made(tutti_edge edge)
{
    return forms_of(edge)->placements[0].edge;
}

static const tutti_partition_spec *made_spec(tutti_edge edge)
{
    return &forms_of(edge)->placements[0].spec;
}

/* ZeRO-3: whole weights are dropped when the forward pass is done with them, and gathered again for
 * the backward pass; but for the region that comes last there and first here. */
static bool is_dropped(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                       const tutti_placement *placement)
{
    int weights = rewrite->spmd->layout->weights;
    return rewrite->spmd->zero == 3 && weights >= 0 && rewrite->backward && !placement->backward &&
           made_spec(edge)->along[weights].kind == TUTTI_SPLIT &&
           placement->spec.along[weights].kind == TUTTI_REPLICATED &&
           edge.node->region != rewrite->region;
}

static const tutti_placement *placement_find(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                                             const tutti_partition_spec *spec)
{
    const tutti_value_placements *all = forms_of(edge);
    for (int i = 0; i < all->count; i++)
        if (memcmp(&all->placements[i].spec, spec, sizeof *spec) == 0 &&
            !is_dropped(rewrite, edge, &all->placements[i]))
            return &all->placements[i];
    return NULL;
}

/* ---- collectives ---- */

int tutti__spmd_axes_of(const tutti_spmd *spmd, const tutti_node *node)
{
    const tutti_layout *layout = spmd->layout;
    const char *axis = tutti__str(node, "axis");
    for (int a = 0; a < layout->count; a++)
        if (strcmp(layout->axes[a].key, axis) == 0)
            return a;
    for (int a = 0; a < layout->count; a++)
        if (strcmp(layout->axes[a].name, axis) == 0)
            return a;
    return -1;
}

static const char *next_channel(tutti_spmd_rewrite *rewrite, int axes, char text[128])
{
    snprintf(text, 128, "%s%d", rewrite->spmd->layout->axes[axes].name, rewrite->channel++);
    return text;
}

/* A collective along axes, with two attributes more. */
static tutti_status add_collective(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                   const char *op, int axes, tutti_edge from, tutti_attr more,
                                   tutti_attr other, tutti_edge *ret)
{
    char channel[128];
    tutti_node *node;
    const tutti_axis_set *along = &rewrite->spmd->layout->axes[axes];
    tutti_attr attrs[] = {TUTTI_STR("axis", along->name), TUTTI_INT("size", along->size),
                          TUTTI_STR("channel", next_channel(rewrite, axes, channel)), more, other};
    TUTTI_TRY(tutti__spmd_add(rewrite, like, op, 1, &from, other.name ? 5 : 4, attrs, &node));
    node->types[0] = *tutti__edge_type(from); /* that of the whole, which stays */
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
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

tutti_status tutti__reshard_reduce(tutti_spmd_rewrite *rewrite, const tutti_node *like, int axes,
                                   const char *how, tutti_edge from, tutti_edge *ret)
{
    bool truth = tutti__edge_type(from)->dtype == TUTTI_BOOL; /* travels as 0 and 1 */
    if (truth)
        TUTTI_TRY(cast(rewrite, like, TUTTI_U8, &from));
    TUTTI_TRY(add_collective(rewrite, like, "all_reduce", axes, from,
                             (tutti_attr)TUTTI_STR("op", how), (tutti_attr){0}, ret));
    return truth ? cast(rewrite, like, TUTTI_BOOL, ret) : TUTTI_OK;
}

tutti_status tutti__reshard_reduce_shards(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                          tutti_edge from, tutti_edge *ret)
{
    char channel[128];
    tutti_node *node;
    int batch = rewrite->spmd->layout->batch;
    tutti_attr attrs[] = {TUTTI_STR("axis", rewrite->spmd->layout->axes[batch].name),
                          TUTTI_INT("size", rewrite->spmd->layout->axes[batch].size),
                          TUTTI_STR("channel", next_channel(rewrite, batch, channel)),
                          TUTTI_INT("shards", rewrite->spmd->shards),
                          TUTTI_INT("blocks", 1),
                          TUTTI_INT("outputs", 1)};
    TUTTI_TRY(tutti__spmd_add(rewrite, like, "all_reduce_shards", 1, &from, 6, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* `spec`: of what is gathered. */
static tutti_status gather(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                           const tutti_partition_spec *spec, int axes, tutti_edge from,
                           tutti_edge *ret)
{
    int dimension = spec->along[axes].dimension, ranks = rewrite->spmd->layout->axes[axes].size;
    tutti_attr dim = TUTTI_INT("dim", dimension);
    TUTTI_TRY(
        add_collective(rewrite, edge.node, "all_gather", axes, from, dim, (tutti_attr){0}, ret));
    if (is_even(rewrite, edge, spec, axes, dimension))
        return TUTTI_OK;
    int64_t *counts = tutti__arena_array(&rewrite->to->arena, (size_t)ranks, sizeof *counts), begin;
    if (!counts)
        return tutti__spmd_no_memory();
    for (int r = 0; r < ranks; r++) {
        counts[r] = tutti__edge_type(edge)->dims[dimension];
        dimension_block(rewrite->spmd, spec, dimension, axes, r, &begin, &counts[r]);
    }
    tutti_attr *attr = tutti__spmd_attr(ret->node, "counts");
    attr->value.ints = counts;
    attr->count = ranks;
    return TUTTI_OK;
}

/* ---- from whole to split, and to partial ---- */

/* The rank along axes, which all that follows from it takes. */
static tutti_status axis_index(tutti_spmd_rewrite *rewrite, const tutti_node *like, int axes,
                               tutti_edge *ret)
{
    const tutti_axis_set *along = &rewrite->spmd->layout->axes[axes];
    tutti_edge *index = &rewrite->index[axes];
    tutti_attr attrs[] = {TUTTI_STR("axis", along->key), TUTTI_INT("size", along->size)};
    if (!index->node)
        TUTTI_TRY(tutti__spmd_add(rewrite, like, "axis_index", 0, NULL, 2, attrs, &index->node));
    *ret = *index;
    return TUTTI_OK;
}

tutti_status tutti__reshard_slice(tutti_spmd_rewrite *rewrite, tutti_edge like, int axes,
                                  int dimension, bool process, tutti_edge from, tutti_edge *ret)
{
    const tutti_axis_set *along = &rewrite->spmd->layout->axes[axes];
    tutti_attr attrs[] = {TUTTI_STR("axis", along->key), TUTTI_INT("size", along->size),
                          TUTTI_INT("dim", dimension)};
    tutti_edge inputs[] = {from, {0}};
    tutti_node *node;
    TUTTI_TRY(axis_index(rewrite, like.node, axes, &inputs[1]));
    TUTTI_TRY(tutti__spmd_add(rewrite, like.node, "axis_slice", 2, inputs, 3, attrs, &node));
    node->types[0] = *tutti__edge_type(from);
    ((tutti_claim *)node->scratch)->process = process;
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

tutti_status tutti__reshard_first_only(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                       int axes, tutti_edge from, tutti_edge *ret)
{
    tutti_edge inputs[] = {from, {0}};
    tutti_node *node;
    TUTTI_TRY(axis_index(rewrite, like, axes, &inputs[1]));
    TUTTI_TRY(tutti__spmd_add(rewrite, like, "first_rank_only", 2, inputs, 0, NULL, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* Operators that are cheaper to compute for the own block than to compute whole and slice. */
static bool is_light(const tutti_node *node)
{
    if ((node->op->flags & TUTTI_OP_TAKES_HANDLE) || tutti__rewritten(node)->constraints)
        return false;
    return (node->op->flags & (TUTTI_OP_ELEMENTWISE | TUTTI_OP_VIEW | TUTTI_OP_RANDOM)) != 0 ||
           tutti__is(node, "broadcast_to") || tutti__is(node, "fill");
}

static bool is_whole(const tutti_partition_spec *spec)
{
    static const tutti_partition_spec whole = {0};
    return memcmp(spec, &whole, sizeof whole) == 0;
}

/* The way to compute output `edge`, which is whole, split along `axes` from inputs that are whole
 * anyway or can be split the same way; false: there is none. */
static bool light_way(const tutti_spmd_rewrite *rewrite, tutti_edge edge, int axes, int dimension,
                      tutti_split *ret)
{
    tutti_split ways[64];
    const tutti_node *node = edge.node;
    if (!is_light(node) || node->input_count > TUTTI_SPLIT_SLOTS || node->output_count != 1 ||
        node->control_count > 0)
        return false;
    int count = tutti__spmd_ways(node, 64, ways);
    for (int w = 0; w < count && w < 64; w++) {
        bool fits = ways[w].outputs[edge.index] == dimension;
        for (int i = 0; fits && i < node->input_count; i++) {
            int d = ways[w].inputs[i];
            int64_t size = d < 0 ? 0 : tutti__edge_type(node->inputs[i])->dims[d];
            fits = is_whole(made_spec(node->inputs[i])) &&
                   (d < 0 || tutti__spmd_divides(rewrite->spmd, axes, size)) &&
                   (d < 0 || axes == rewrite->spmd->layout->batch ||
                    size == tutti__edge_type(edge)->dims[dimension]);
        }
        if (fits) {
            *ret = ways[w];
            return true;
        }
    }
    return false;
}

static tutti_status cut_light(tutti_spmd_rewrite *rewrite, tutti_edge edge, int axes,
                              const tutti_split *way, tutti_edge *ret)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    const tutti_split *ways[TUTTI_LAYOUT_AXES] = {0};
    tutti_node *node;
    ways[axes] = way;
    for (int i = 0; i < edge.node->input_count; i++) {
        tutti_partition_spec spec = {0};
        if (way->inputs[i] >= 0) {
            spec.along[axes].kind = TUTTI_SPLIT;
            spec.along[axes].dimension = way->inputs[i];
        }
        TUTTI_TRY(tutti__reshard(rewrite, edge.node->inputs[i], &spec, &inputs[i]));
    }
    TUTTI_TRY(tutti__spmd_copy(rewrite, edge.node, inputs, ways, &node));
    *ret = (tutti_edge){node, edge.index};
    return TUTTI_OK;
}

/* ---- one step ---- */

typedef enum reshard_kind {
    NOTHING,
    SLICE,
    SCATTER,
    SCATTER_WEIGHTS,
    EXCHANGE,
    ZERO,
    GATHER,
    REDUCE
} reshard_kind;

/* Another axis outside of these, on the same dimension, changes: the inner one has to be cut anew.
 */
static bool outer_changes(const tutti_spmd *spmd, const tutti_partition_spec *made,
                          const tutti_partition_spec *spec, int axes)
{
    int d = spec->along[axes].dimension;
    for (int a = 0; a < axes && a < spmd->layout->count; a++) {
        bool was = made->along[a].kind == TUTTI_SPLIT && made->along[a].dimension == d;
        bool is = spec->along[a].kind == TUTTI_SPLIT && spec->along[a].dimension == d;
        if (was != is)
            return true;
    }
    return false;
}

static bool same_along(const tutti_partition_spec *a, const tutti_partition_spec *b, int axes)
{
    return a->along[axes].kind == b->along[axes].kind &&
           a->along[axes].dimension == b->along[axes].dimension;
}

static bool shares_dimension(const tutti_spmd *spmd, const tutti_partition_spec *spec, int axes,
                             int dimension)
{
    for (int a = 0; a < spmd->layout->count; a++)
        if (a != axes && spec->along[a].kind == TUTTI_SPLIT &&
            spec->along[a].dimension == dimension)
            return true;
    return false;
}

/* A sum over the batch that is wanted in blocks of weights, even ones. */
static bool scatters_weights(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                             const tutti_partition_spec *made, const tutti_partition_spec *spec,
                             int axes)
{
    const tutti_spmd *spmd = rewrite->spmd;
    int batch = spmd->layout->batch, d = spec->along[axes].dimension;
    return axes == spmd->layout->weights && made->along[batch].kind == TUTTI_PARTIAL &&
           spec->along[batch].kind == TUTTI_REPLICATED && !outer_changes(spmd, made, spec, axes) &&
           is_even(rewrite, edge, spec, axes, d);
}

/* How what is to be split along axes comes to be so, last of all. */
static reshard_kind to_split(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                             const tutti_partition_spec *made, const tutti_partition_spec *spec,
                             int axes, tutti_partition_spec *before)
{
    const tutti_spmd *spmd = rewrite->spmd;
    int d = spec->along[axes].dimension, from = made->along[axes].kind;
    before->along[axes].kind = TUTTI_REPLICATED;
    before->along[axes].dimension = 0;
    if (scatters_weights(rewrite, edge, made, spec, axes)) {
        before->along[spmd->layout->batch] = made->along[spmd->layout->batch];
        return SCATTER_WEIGHTS;
    }
    if (axes == spmd->layout->batch || shares_dimension(spmd, spec, axes, d) ||
        shares_dimension(spmd, made, axes, made->along[axes].dimension) ||
        shares_dimension(spmd, spec, axes, made->along[axes].dimension) ||
        outer_changes(spmd, made, spec, axes) || !is_even(rewrite, edge, spec, axes, d))
        return SLICE;
    if (from == TUTTI_PARTIAL || from == TUTTI_SPLIT)
        before->along[axes] = made->along[axes];
    if (from == TUTTI_SPLIT && !is_even(rewrite, edge, made, axes, made->along[axes].dimension))
        before->along[axes].kind = TUTTI_REPLICATED, before->along[axes].dimension = 0;
    return before->along[axes].kind == TUTTI_PARTIAL ? SCATTER
           : before->along[axes].kind == TUTTI_SPLIT ? EXCHANGE
                                                     : SLICE;
}

/* The last step on the way from `made` to `spec`, and what it starts from. */
static reshard_kind last_step(const tutti_spmd_rewrite *rewrite, tutti_edge edge,
                              const tutti_partition_spec *spec, int *ret_axes,
                              tutti_partition_spec *before)
{
    const tutti_spmd *spmd = rewrite->spmd;
    const tutti_partition_spec *made = made_spec(edge);
    *before = *spec;
    for (int a = spmd->layout->count; a-- > 0;)
        if (spec->along[a].kind == TUTTI_SPLIT &&
            (!same_along(made, spec, a) || outer_changes(spmd, made, spec, a))) {
            *ret_axes = a;
            return to_split(rewrite, edge, made, spec, a, before);
        }
    for (int a = 0; a < spmd->layout->count; a++)
        if (spec->along[a].kind == TUTTI_PARTIAL && made->along[a].kind != TUTTI_PARTIAL) {
            *ret_axes = a;
            before->along[a].kind = TUTTI_REPLICATED;
            return ZERO;
        }
    for (int pass = TUTTI_SPLIT; pass <= TUTTI_PARTIAL; pass++)
        for (int a = 0; a < spmd->layout->count; a++)
            if (spec->along[a].kind == TUTTI_REPLICATED && (int)made->along[a].kind == pass) {
                *ret_axes = a;
                before->along[a] = made->along[a];
                return pass == TUTTI_SPLIT ? GATHER : REDUCE;
            }
    return NOTHING;
}

static tutti_status step(tutti_spmd_rewrite *rewrite, tutti_edge edge, reshard_kind kind, int axes,
                         const tutti_partition_spec *before, const tutti_partition_spec *spec,
                         tutti_edge *ret)
{
    tutti_edge from;
    tutti_split way;
    if (kind == SLICE && is_whole(before) && is_whole(made_spec(edge)) &&
        light_way(rewrite, edge, axes, spec->along[axes].dimension, &way))
        return cut_light(rewrite, edge, axes, &way, ret);
    TUTTI_TRY(tutti__reshard(rewrite, edge, before, &from));
    tutti_attr dim = TUTTI_INT("dim", spec->along[axes].dimension);
    if (kind == SLICE)
        return tutti__reshard_slice(rewrite, edge, axes, spec->along[axes].dimension, false, from,
                                    ret);
    if (kind == ZERO)
        return tutti__reshard_first_only(rewrite, edge.node, axes, from, ret);
    *ret = from;
    if (rewrite->spmd->layout->axes[axes].size == 1) /* its block is all */
        return TUTTI_OK;
    if (kind == REDUCE) {
        TUTTI_TRY(tutti__reshard_reduce(rewrite, edge.node, axes, "sum", from, ret));
        ((tutti_claim *)ret->node->scratch)->spec = *spec;
        return TUTTI_OK;
    }
    if (kind == GATHER)
        return gather(rewrite, edge, before, axes, from, ret);
    if (kind == SCATTER || kind == SCATTER_WEIGHTS)
        TUTTI_TRY(add_collective(rewrite, edge.node, "reduce_scatter", axes, from,
                                 (tutti_attr)TUTTI_STR("op", "sum"), dim, ret));
    if (kind == SCATTER)
        return TUTTI_OK;
    int others = rewrite->spmd->layout->others;
    if (kind == SCATTER_WEIGHTS)
        return others < 0 ? TUTTI_OK
                          : tutti__reshard_reduce(rewrite, edge.node, others, "sum", *ret, ret);
    return add_collective(rewrite, edge.node, "all_to_all", axes, from,
                          (tutti_attr)TUTTI_INT("split_dim", spec->along[axes].dimension),
                          (tutti_attr)TUTTI_INT("concat_dim", before->along[axes].dimension), ret);
}

tutti_status tutti__reshard(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                            const tutti_partition_spec *spec, tutti_edge *ret)
{
    tutti_value_placements *all = forms_of(edge);
    const tutti_placement *found = placement_find(rewrite, edge, spec);
    tutti_partition_spec before;
    int axes = 0;
    if (found) {
        *ret = found->edge;
        return TUTTI_OK;
    }
    reshard_kind kind = last_step(rewrite, edge, spec, &axes, &before);
    if (kind == NOTHING || memcmp(&before, spec, sizeof before) == 0)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' cannot be resharded", edge.node->op->name,
                          edge.node->name);
    TUTTI_TRY(step(rewrite, edge, kind, axes, &before, spec, ret));
    if (all->count < TUTTI_PLACEMENTS_MOST) /* else it is made again when it is asked for again */
        all->placements[all->count++] = (tutti_placement){*spec, *ret, rewrite->backward};
    int weights = rewrite->spmd->layout->weights;
    if (kind == GATHER && axes == weights && !rewrite->backward)
        rewrite->region = edge.node->region;
    return TUTTI_OK;
}

tutti_status tutti__reshard_whole(tutti_spmd_rewrite *rewrite, tutti_edge edge, tutti_edge *ret)
{
    return tutti__reshard(rewrite, edge, &(tutti_partition_spec){0}, ret);
}
