/* copy.c: nodes of the text: copies of the job's, and those that are put in; what of their
 * attributes a rank has. */
#include <string.h>

#include "graph/attr.h"
#include "parallel/spmd/rewrite.h"

/* ---- new nodes ---- */

/* `ways` may be NULL. */
static tutti_status claim(tutti_spmd_rewrite *rewrite, tutti_node *node, const tutti_node *job,
                          bool copy, const tutti_split *const *ways)
{
    tutti_claim *made = tutti__arena_take(rewrite->scratch, sizeof *made);
    if (!made)
        return tutti__spmd_no_memory();
    *made = (tutti_claim){.job = job, .copy = copy, .rule = tutti__rewritten(job)->rule};
    for (int a = 0; ways && a < rewrite->spmd->layout->count; a++) {
        tutti_split *way = ways[a] ? tutti__arena_take(rewrite->scratch, sizeof *way) : NULL;
        if (ways[a] && !way)
            return tutti__spmd_no_memory();
        if (way)
            *way = *ways[a];
        made->ways[a] = way;
    }
    node->scratch = made;
    return TUTTI_OK;
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
    node->device = "";
    if (!node->origin)
        return tutti__spmd_no_memory();
    *ret = node;
    return claim(rewrite, node, like, false, NULL);
}

tutti_attr *tutti__spmd_attr(tutti_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

/* A size along the cut is cut too. */
static tutti_status cut_attr(const tutti_spmd_rank *rank, const tutti_split *way, int axes,
                             tutti_node *copy)
{
    tutti_attr *attr = tutti__spmd_attr(copy, way->attr);
    int64_t begin = 0, *size = &attr->value.i;
    if (attr->kind == TUTTI_ATTR_INTS) {
        int64_t *ints = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                                   (size_t)attr->count * sizeof *ints);
        if (!ints)
            return tutti__spmd_no_memory();
        attr->value.ints = ints;
        size = &ints[way->attr_index];
    }
    if (*size >= 0)
        tutti__spmd_block(rank->spmd, axes, rank->rank[axes], &begin, size);
    return TUTTI_OK;
}

/* The sharding of output 0 that ways give. */
static tutti_partition_spec spec_of_ways(const tutti_spmd *spmd, const tutti_split *const *ways)
{
    tutti_partition_spec spec = {0};
    for (int a = 0; a < spmd->layout->count; a++)
        if (ways[a] && ways[a]->outputs[0] >= 0) {
            spec.along[a].kind = TUTTI_SPLIT;
            spec.along[a].dimension = ways[a]->outputs[0];
        }
    return spec;
}

/* A dimension that follows from the others (-1) cannot where a rank has no rows: it is set. */
static tutti_status set_dims(const tutti_spmd_rank *rank, const tutti_type *type,
                             const tutti_partition_spec *spec, tutti_node *copy)
{
    tutti_attr *attr = tutti__spmd_attr(copy, "dims");
    int64_t begin[TUTTI_MAX_RANK], size[TUTTI_MAX_RANK];
    bool open = false;
    for (int i = 0; attr && attr->kind == TUTTI_ATTR_INTS && i < attr->count; i++)
        open = open || attr->value.ints[i] == -1;
    if (!open || attr->count != type->rank)
        return TUTTI_OK;
    int64_t *dims = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                               (size_t)attr->count * sizeof *dims);
    if (!dims)
        return tutti__spmd_no_memory();
    tutti__spmd_box(rank, spec, type, begin, size);
    for (int i = 0; i < attr->count; i++)
        if (dims[i] == -1)
            dims[i] = size[i];
    attr->value.ints = dims;
    return TUTTI_OK;
}

/* A piece of random numbers knows its place in the whole. */
static tutti_status place_random(const tutti_spmd_rank *rank, const tutti_type *type,
                                 const tutti_partition_spec *spec, tutti_node *copy)
{
    static const tutti_partition_spec uncut = {0};
    tutti_arena *arena = &copy->graph->arena;
    tutti_attr *whole = tutti__spmd_attr(copy, "global_dims"),
               *start = tutti__spmd_attr(copy, "start");
    int64_t begin[TUTTI_MAX_RANK], size[TUTTI_MAX_RANK], zeros[TUTTI_MAX_RANK] = {0};
    if (!whole || !start || memcmp(spec, &uncut, sizeof uncut) == 0)
        return TUTTI_OK;
    bool inside = whole->count > 0; /* a piece of a piece */
    int64_t *from = (void *)tutti__arena_bytes(arena, inside ? start->value.ints : zeros,
                                               (size_t)type->rank * sizeof *from);
    int64_t *dims = (void *)tutti__arena_bytes(arena, inside ? whole->value.ints : type->dims,
                                               (size_t)type->rank * sizeof *dims);
    if (!from || !dims)
        return tutti__spmd_no_memory();
    tutti__spmd_box(rank, spec, type, begin, size);
    for (int i = 0; i < type->rank; i++)
        from[i] += begin[i];
    whole->count = start->count = type->rank;
    whole->value.ints = dims;
    start->value.ints = from;
    return TUTTI_OK;
}

/* The dimension that a way cuts of the first input that it cuts, else of the first output. */
static int cut_slot(const tutti_node *text, const tutti_split *way, int *ret_slot)
{
    for (int i = 0; i < text->input_count + text->output_count; i++) {
        int d = i < text->input_count ? way->inputs[i] : way->outputs[i - text->input_count];
        *ret_slot = i;
        if (d >= 0)
            return d;
    }
    return -1;
}

static void move_offset(const tutti_spmd_rank *rank, const tutti_node *text,
                        const tutti_split *const *ways, const tutti_split *way, tutti_node *node)
{
    int slot, other, d = cut_slot(text, way, &slot);
    if (d < 0)
        return;
    bool in = slot < text->input_count;
    const tutti_type *type =
        in ? tutti__edge_type(text->inputs[slot]) : &text->types[slot - text->input_count];
    int64_t begin = 0, size = type->dims[d];
    for (int a = 0; a < rank->spmd->layout->count; a++)
        if (ways[a] && cut_slot(text, ways[a], &other) == d && other == slot)
            tutti__spmd_block(rank->spmd, a, rank->rank[a], &begin, &size);
    tutti__spmd_attr(node, way->offset)->value.i += begin;
}

tutti_status tutti__spmd_cut_attrs(const tutti_spmd_rank *rank, const tutti_node *text,
                                   const tutti_split *const *ways, tutti_node *node)
{
    const tutti_split *placed = NULL;
    bool any = false;
    for (int a = 0; a < rank->spmd->layout->count; a++) {
        any = any || ways[a];
        placed = ways[a] && ways[a]->offset ? ways[a] : placed;
        if (ways[a] && ways[a]->attr)
            TUTTI_TRY(cut_attr(rank, ways[a], a, node));
    }
    if (placed)
        move_offset(rank, text, ways, placed, node);
    if (!any || node->output_count == 0)
        return TUTTI_OK;
    tutti_partition_spec spec = spec_of_ways(rank->spmd, ways);
    TUTTI_TRY(set_dims(rank, text->types, &spec, node));
    if (tutti__is(node, "variable"))
        return tutti__spmd_place_piece(rank, text->types, &spec, node);
    return node->op->flags & TUTTI_OP_RANDOM ? place_random(rank, text->types, &spec, node)
                                             : TUTTI_OK;
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
        const tutti_rewritten *before = tutti__rewritten(node->controls[i]);
        if (before && before->node)
            copy->controls[copy->control_count++] = before->node;
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_copy(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                              const tutti_edge *inputs, const tutti_split *const *ways,
                              tutti_node **ret)
{
    tutti_node *copy;
    TUTTI_TRY(tutti__node_copy(rewrite->to, node, &copy));
    copy->shardings = NULL;
    copy->device = "";
    copy->inputs = tutti__arena_array(&rewrite->to->arena, (size_t)node->input_count + 1,
                                      sizeof *copy->inputs);
    if (!copy->inputs)
        return tutti__spmd_no_memory();
    if (node->input_count > 0)
        memcpy(copy->inputs, inputs, (size_t)node->input_count * sizeof *inputs);
    TUTTI_TRY(tutti__spmd_copy_controls(rewrite, node, copy));
    copy->id = (uint32_t)rewrite->to->nodes.count;
    if (!TUTTI_VEC_PUSH(&rewrite->to->nodes, copy))
        return tutti__spmd_no_memory();
    *ret = copy;
    return claim(rewrite, copy, node, true, ways);
}
