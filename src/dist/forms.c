/* forms.c: a value in the form that is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/walk.h"

bool tutti__form_divides(const tutti_walk *walk, int64_t size)
{
    return walk->spread->batch > 0 && size > 0 && size % walk->spread->batch == 0;
}

int64_t tutti__form_size(const tutti_walk *walk, int64_t size)
{
    return size / walk->spread->batch * walk->rows;
}

int64_t tutti__form_start(const tutti_walk *walk, int64_t size)
{
    return size / walk->spread->batch * walk->first;
}

static tutti_value_forms *forms_of(tutti_edge edge)
{
    return &((tutti_walked *)edge.node->scratch)->outputs[edge.index];
}

const tutti_form *tutti__form_made(tutti_edge edge)
{
    return &forms_of(edge)->forms[0];
}

static const tutti_form *find(tutti_edge edge, tutti_form_kind kind, int dim)
{
    tutti_value_forms *all = forms_of(edge);
    for (int i = 0; i < all->count; i++)
        if (all->forms[i].kind == kind && (kind != TUTTI_FORM_CUT || all->forms[i].dim == dim))
            return &all->forms[i];
    return NULL;
}

bool tutti__form_is_known(tutti_edge edge)
{
    return find(edge, TUTTI_FORM_WHOLE, 0) != NULL;
}

static void keep(tutti_edge edge, tutti_form form)
{
    tutti_value_forms *all = forms_of(edge);
    if (all->count < TUTTI_FORMS_MOST) /* else it is made again when it is asked for again */
        all->forms[all->count++] = form;
}

/* ---- collectives ---- */

static void next_channel(tutti_walk *walk, char text[24])
{
    snprintf(text, 24, "%s%d", TUTTI_BATCH_AXIS, walk->channel++);
}

static tutti_status cast(tutti_walk *walk, const tutti_node *like, tutti_dtype to, tutti_edge *edge)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", to)};
    tutti_node *node;
    TUTTI_TRY(tutti__walk_add(walk, like, "cast", 1, edge, 1, attrs, &node));
    *edge = (tutti_edge){node, 0};
    return TUTTI_OK;
}

tutti_status tutti__form_reduce(tutti_walk *walk, const tutti_node *like, const char *how,
                                tutti_edge from, tutti_edge *ret)
{
    char channel[24];
    tutti_node *node;
    bool truth = tutti__edge_type(from)->dtype == TUTTI_BOOL; /* travels as 0 and 1 */
    if (truth)
        TUTTI_TRY(cast(walk, like, TUTTI_U8, &from));
    next_channel(walk, channel);
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS),
                          TUTTI_INT("size", walk->spread->replicas), TUTTI_STR("op", how),
                          TUTTI_STR("channel", channel)};
    TUTTI_TRY(tutti__walk_add(walk, like, "all_reduce", 1, &from, 4, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return truth ? cast(walk, like, TUTTI_BOOL, ret) : TUTTI_OK;
}

tutti_status tutti__form_reduce_shards(tutti_walk *walk, const tutti_node *like, int blocks,
                                       tutti_edge from, tutti_edge *ret)
{
    char channel[24];
    tutti_node *node;
    next_channel(walk, channel);
    tutti_attr attrs[] = {
        TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", walk->spread->replicas),
        TUTTI_STR("channel", channel),       TUTTI_INT("shards", walk->spread->shards),
        TUTTI_INT("blocks", blocks),         TUTTI_INT("outputs", 1)};
    TUTTI_TRY(tutti__walk_add(walk, like, "all_reduce_shards", 1, &from, 6, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

static tutti_status all_gather(tutti_walk *walk, tutti_edge edge, const tutti_form *cut,
                               tutti_edge *ret)
{
    const tutti_spread *spread = walk->spread;
    int64_t total = tutti__edge_type(edge)->dims[cut->dim];
    int64_t *counts = tutti__arena_array(walk->scratch, (size_t)spread->replicas, sizeof *counts);
    if (!counts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    for (int r = 0; r < spread->replicas; r++) {
        int64_t first, rows;
        tutti__spread_rows(spread, spread->batch, r, &first, &rows);
        counts[r] = total / spread->batch * rows;
    }
    char channel[24];
    tutti_node *node;
    next_channel(walk, channel);
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", spread->replicas),
                          TUTTI_STR("channel", channel), TUTTI_INT("dim", cut->dim),
                          TUTTI_INTS("counts", spread->replicas, counts)};
    TUTTI_TRY(
        tutti__walk_add(walk, edge.node, "all_gather_uneven", 1, &cut->edge, 5, attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* ---- from whole to cut ---- */

static tutti_status slice(tutti_walk *walk, tutti_edge edge, tutti_edge whole, int dim,
                          tutti_edge *ret)
{
    const tutti_type *type = tutti__edge_type(edge);
    int64_t begin[TUTTI_MAX_RANK] = {0}, end[TUTTI_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        end[i] = type->dims[i] < 0 ? INT64_MAX : type->dims[i]; /* all that there are */
    begin[dim] = tutti__form_start(walk, type->dims[dim]);
    end[dim] = begin[dim] + tutti__form_size(walk, type->dims[dim]);
    tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                          TUTTI_INTS("end", type->rank, end)};
    tutti_node *node;
    TUTTI_TRY(tutti__walk_add(walk, edge.node, "slice", 1, &whole, 2, attrs, &node));
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
static bool light_way(const tutti_walk *walk, tutti_edge edge, int dim, tutti_split *ret, int depth)
{
    tutti_split ways[64];
    const tutti_node *node = edge.node;
    if (depth > 16 || !is_light(node) || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count != 1 || node->control_count > 0)
        return false;
    int count = tutti__walk_ways(node, 64, ways);
    for (int w = 0; w < count && w < 64; w++) {
        bool fits = ways[w].outputs[edge.index] == dim;
        for (int i = 0; fits && i < node->input_count; i++) {
            int axis = ways[w].inputs[i];
            fits = tutti__form_made(node->inputs[i])->kind == TUTTI_FORM_WHOLE &&
                   (axis < 0 ||
                    tutti__form_divides(walk, tutti__edge_type(node->inputs[i])->dims[axis]));
        }
        if (fits) {
            *ret = ways[w];
            return true;
        }
    }
    return false;
}

static tutti_status cut_light(tutti_walk *walk, tutti_edge edge, const tutti_split *way,
                              tutti_edge *ret)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    tutti_node *node;
    for (int i = 0; i < edge.node->input_count; i++) {
        int axis = way->inputs[i];
        TUTTI_TRY(tutti__form_as(walk, edge.node->inputs[i],
                                 axis < 0 ? TUTTI_FORM_WHOLE : TUTTI_FORM_CUT, axis, &inputs[i]));
    }
    TUTTI_TRY(tutti__walk_copy(walk, edge.node, inputs, way, &node));
    *ret = (tutti_edge){node, edge.index};
    return TUTTI_OK;
}

static tutti_status cut(tutti_walk *walk, tutti_edge edge, int dim, tutti_edge *ret)
{
    tutti_split way;
    tutti_edge whole;
    if (find(edge, TUTTI_FORM_WHOLE, 0) && light_way(walk, edge, dim, &way, 0))
        return cut_light(walk, edge, &way, ret);
    TUTTI_TRY(tutti__form_as(walk, edge, TUTTI_FORM_WHOLE, 0, &whole));
    return slice(walk, edge, whole, dim, ret);
}

static tutti_status make_whole(tutti_walk *walk, tutti_edge edge, tutti_edge *ret)
{
    const tutti_form *made = tutti__form_made(edge);
    if (walk->spread->replicas == 1) { /* its rows are all */
        *ret = made->edge;
        return TUTTI_OK;
    }
    if (made->kind == TUTTI_FORM_PARTIAL)
        return tutti__form_reduce(walk, edge.node, "sum", made->edge, ret);
    return all_gather(walk, edge, made, ret);
}

tutti_status tutti__form_as(tutti_walk *walk, tutti_edge edge, tutti_form_kind kind, int dim,
                            tutti_edge *ret)
{
    const tutti_form *found = find(edge, kind, dim);
    if (found) {
        *ret = found->edge;
        return TUTTI_OK;
    }
    if (kind == TUTTI_FORM_PARTIAL)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' cannot be made partial", edge.node->op->name,
                          edge.node->name);
    TUTTI_TRY(kind == TUTTI_FORM_CUT ? cut(walk, edge, dim, ret) : make_whole(walk, edge, ret));
    keep(edge, (tutti_form){kind, dim, *ret});
    return TUTTI_OK;
}
