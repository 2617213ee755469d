/* variables.c: how variables are stored: whole, or in blocks of which every rank has its own.
 *
 * A user's sharding ("embed,hidden", with a rule for hidden) cuts a variable for good: what reads
 * it has its block and goes on with that. The rule for weights ("weights:shard") stores variables,
 * and so optimizer slots, in blocks along axes that cut the batch: what reads them gathers the
 * whole, gradients are summed and scattered in one, and updates see blocks (ZeRO). Which dimension
 * is cut follows from the variable alone, since all programs of a session have to agree. */
#include <string.h>

#include "parallel/spmd/rewrite.h"

/* Whether it has one value for the whole job, of numbers. */
static bool can_be_cut(const tutti_spmd *spmd, const tutti_node *variable)
{
    return !spmd->central && variable->types[0].rank > 0 &&
           variable->types[0].dtype != TUTTI_STRING && !tutti__int(variable, "on_read") &&
           tutti__int(variable, "partial") == 0;
}

/* Rows of tables move one by one (updates by rows), so that tables are stored whole or cut by
 * columns; a rule for their rows cuts what is read of them. */
static bool is_table(const tutti_node *variable)
{
    const tutti_sharding *sharding = variable->shardings ? variable->shardings[0] : NULL;
    for (int i = 0; sharding && variable->types[0].rank > 1 && i < sharding->count; i++)
        if (sharding->shards[i].dimension == 0 && strcmp(sharding->shards[i].axis, "vocab") == 0)
            return true;
    return false;
}

static bool is_split(const tutti_spmd *spmd, const tutti_partition_spec *spec, int dimension)
{
    for (int a = 0; a < spmd->layout->count; a++)
        if (spec->along[a].kind == TUTTI_SPLIT && spec->along[a].dimension == dimension)
            return true;
    return false;
}

/* The first dimension that divides into equal blocks, else the longest; -1: none has a row for
 * every rank, or the variable is too small to be worth a message. */
static int weights_dimension(const tutti_spmd *spmd, const tutti_node *variable,
                             const tutti_partition_spec *spec)
{
    const tutti_type *type = &variable->types[0];
    int64_t ranks = spmd->layout->axes[spmd->layout->weights].size;
    int best = -1;
    if (ranks == 1 || tutti_type_count(type) < spmd->weights_least)
        return -1;
    for (int d = is_table(variable) ? 1 : 0; d < type->rank; d++) {
        if (type->dims[d] < ranks || is_split(spmd, spec, d))
            continue;
        if (type->dims[d] % ranks == 0)
            return d;
        best = best < 0 || type->dims[d] > type->dims[best] ? d : best;
    }
    return best;
}

tutti_status tutti__spmd_variable_spec(const tutti_spmd *spmd, const tutti_node *variable,
                                       tutti_partition_spec *ret)
{
    const tutti_sharding *sharding = variable->shardings ? variable->shardings[0] : NULL;
    const tutti_layout *layout = spmd->layout;
    int8_t given[TUTTI_LAYOUT_AXES] = {0};
    *ret = (tutti_partition_spec){0};
    if (!can_be_cut(spmd, variable))
        return TUTTI_OK;
    for (int i = 0; sharding && i < sharding->count; i++) {
        int axes = tutti__layout_find(layout, sharding->shards[i].axis);
        if (is_table(variable) && sharding->shards[i].dimension == 0)
            continue;
        if (axes != layout->batch || axes < 0)
            TUTTI_TRY(
                tutti__spmd_constrain_axis(spmd, variable, 0, &sharding->shards[i], ret, given));
    }
    int dimension = layout->weights < 0 ? -1 : weights_dimension(spmd, variable, ret);
    if (dimension >= 0) {
        ret->along[layout->weights].kind = TUTTI_SPLIT;
        ret->along[layout->weights].dimension = (int8_t)dimension;
    }
    return TUTTI_OK;
}

/* Whether no place of the mesh before the replica's has the same block: along all axes of the mesh
 * that do not cut the variable it is the first. */
static bool is_first(const tutti_spmd_rank *rank, const tutti_partition_spec *spec)
{
    const tutti_layout *layout = rank->spmd->layout;
    int first;
    for (int axis = 0; axis < layout->mesh->axis_count; axis++) {
        bool cuts = false;
        for (int a = 0; a < layout->count; a++)
            for (int i = 0; spec->along[a].kind == TUTTI_SPLIT && i < layout->axes[a].count; i++)
                cuts = cuts || layout->axes[a].axes[i] == axis;
        if (!cuts && tutti__mesh_rank(layout->mesh, rank->replica, axis, &first) != 0)
            return false;
    }
    return true;
}

tutti_status tutti__spmd_place_piece(const tutti_spmd_rank *rank, const tutti_type *type,
                                     const tutti_partition_spec *spec, tutti_node *node)
{
    tutti_arena *arena = &node->graph->arena;
    int64_t begin[TUTTI_MAX_RANK], size[TUTTI_MAX_RANK];
    tutti__spmd_box(rank, spec, type, begin, size);
    size_t bytes = (size_t)type->rank * sizeof *begin;
    tutti_attr *whole = tutti__spmd_attr(node, "global_dims"),
               *start = tutti__spmd_attr(node, "start");
    int64_t *dims = (void *)tutti__arena_bytes(arena, type->dims, bytes);
    int64_t *from = (void *)tutti__arena_bytes(arena, begin, bytes);
    if (!dims || !from)
        return tutti__spmd_no_memory();
    whole->count = start->count = type->rank;
    whole->value.ints = dims;
    start->value.ints = from;
    tutti__spmd_attr(node, "first")->value.i = is_first(rank, spec);
    tutti__spmd_attr(node, "local")->value.i = rank->spmd->local;
    return TUTTI_OK;
}
