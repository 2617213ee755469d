/* copy.c: a node of the job in a replica's graph: cut attributes, places of random numbers, edges.
 */
#include <string.h>

#include "graph/attr.h"
#include "parallel/spmd/rewrite.h"

/* ---- new nodes ---- */

static tutti_status enter(tutti_spmd_rewrite *rewrite, const tutti_node *like, tutti_node *node)
{
    node->id = (uint32_t)rewrite->to->nodes.count;
    node->file = like->file;
    node->line = like->line;
    bool central =
        rewrite->spmd->central && (node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE));
    node->device = tutti__arena_string(&rewrite->to->arena,
                                       central ? rewrite->spmd->central : rewrite->device);
    return node->device && TUTTI_VEC_PUSH(&rewrite->to->nodes, node) ? TUTTI_OK
                                                                     : tutti__spmd_no_memory();
}

tutti_status tutti__spmd_add(tutti_spmd_rewrite *rewrite, const tutti_node *like, const char *op,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret)
{
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(rewrite->to, tutti_op_find(op), like->name, input_count, inputs,
                              attr_count, attrs, &node));
    node->file = like->file;
    node->line = like->line;
    tutti__node_mark_like(node, like);
    node->origin = tutti__arena_string(&rewrite->to->arena, like->origin);
    node->device = tutti__arena_string(&rewrite->to->arena, rewrite->device);
    if (!node->origin || !node->device)
        return tutti__spmd_no_memory();
    *ret = node;
    return TUTTI_OK;
}

tutti_attr *tutti__spmd_attr(tutti_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

/* A size along the cut is cut too. */
static tutti_status cut_attr(const tutti_spmd_rewrite *rewrite, const tutti_split *way,
                             tutti_node *copy)
{
    tutti_attr *attr = tutti__spmd_attr(copy, way->attr);
    if (attr->kind == TUTTI_ATTR_INT) {
        attr->value.i = attr->value.i < 0 ? -1 : tutti__placement_size(rewrite, attr->value.i);
        return TUTTI_OK;
    }
    int64_t *ints = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                               (size_t)attr->count * sizeof *ints);
    if (!ints)
        return tutti__spmd_no_memory();
    if (ints[way->attr_index] >= 0)
        ints[way->attr_index] = tutti__placement_size(rewrite, ints[way->attr_index]);
    attr->value.ints = ints;
    return TUTTI_OK;
}

/* A dimension that follows from the others (-1) cannot where a replica has no rows: it is given. */
static tutti_status give_dims(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                              const tutti_split *way, tutti_node *copy)
{
    tutti_attr *attr = tutti__spmd_attr(copy, "dims");
    const tutti_type *type = &node->types[0];
    bool open = false;
    for (int i = 0; attr && attr->kind == TUTTI_ATTR_INTS && i < attr->count; i++)
        open = open || attr->value.ints[i] == -1;
    if (!open || attr->count != type->rank)
        return TUTTI_OK;
    int64_t *dims = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                               (size_t)attr->count * sizeof *dims);
    if (!dims)
        return tutti__spmd_no_memory();
    for (int i = 0; i < attr->count; i++)
        if (dims[i] == -1)
            dims[i] = way->outputs[0] == i ? tutti__placement_size(rewrite, type->dims[i])
                                           : type->dims[i];
    attr->value.ints = dims;
    return TUTTI_OK;
}

/* A piece of random numbers knows its place in the whole. */
static tutti_status place_random(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                 int axis, tutti_node *copy)
{
    tutti_arena *arena = &copy->graph->arena;
    const tutti_type *type = &node->types[0];
    tutti_attr *whole = tutti__spmd_attr(copy, "global_dims"),
               *start = tutti__spmd_attr(copy, "start");
    int64_t zeros[TUTTI_MAX_RANK] = {0};
    if (!whole || !start || axis < 0)
        return TUTTI_OK;
    bool inside = whole->count > 0; /* a piece of a piece */
    int64_t *from = (void *)tutti__arena_bytes(arena, inside ? start->value.ints : zeros,
                                               (size_t)type->rank * sizeof *from);
    int64_t *dims = (void *)tutti__arena_bytes(arena, inside ? whole->value.ints : type->dims,
                                               (size_t)type->rank * sizeof *dims);
    if (!from || !dims)
        return tutti__spmd_no_memory();
    from[axis] += tutti__placement_start(rewrite, type->dims[axis]);
    whole->count = start->count = type->rank;
    whole->value.ints = dims;
    start->value.ints = from;
    return TUTTI_OK;
}

tutti_status tutti__spmd_copy_controls(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                       tutti_node *copy)
{
    copy->controls = tutti__arena_array(&rewrite->to->arena, (size_t)node->control_count + 1,
                                        sizeof *copy->controls);
    copy->control_count = 0;
    if (!copy->controls)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->control_count; i++) {
        const tutti_rewritten *before = node->controls[i]->scratch;
        if (before && before->node)
            copy->controls[copy->control_count++] = before->node;
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_copy(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                              const tutti_edge *inputs, const tutti_split *way, tutti_node **ret)
{
    tutti_node *copy;
    TUTTI_TRY(tutti__node_copy(rewrite->to, node, &copy));
    copy->shardings = NULL;
    copy->inputs = tutti__arena_array(&rewrite->to->arena, (size_t)node->input_count + 1,
                                      sizeof *copy->inputs);
    if (!copy->inputs)
        return tutti__spmd_no_memory();
    if (node->input_count > 0)
        memcpy(copy->inputs, inputs, (size_t)node->input_count * sizeof *inputs);
    TUTTI_TRY(tutti__spmd_copy_controls(rewrite, node, copy));
    if (way && way->attr)
        TUTTI_TRY(cut_attr(rewrite, way, copy));
    if (way && node->output_count > 0)
        TUTTI_TRY(give_dims(rewrite, node, way, copy));
    if (way && (node->op->flags & TUTTI_OP_RANDOM))
        TUTTI_TRY(place_random(rewrite, node, way->outputs[0], copy));
    if (way && node->output_count > 0)
        TUTTI_TRY(tutti__node_infer_known(copy, copy->types));
    TUTTI_TRY(enter(rewrite, node, copy));
    *ret = copy;
    return TUTTI_OK;
}
