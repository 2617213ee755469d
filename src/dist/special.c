/* special.c: nodes that are not simply cut: what is fed, groups, variables of one device, prints.
 */
#include <string.h>

#include "dist/walk.h"

tutti_status tutti__walk_take_rows(tutti_walk *walk, tutti_node *node, int output, tutti_edge own,
                                   tutti_walked *mark)
{
    const tutti_spread *spread = walk->spread;
    const tutti_type *type = tutti__edge_type(own);
    int64_t first, rows;
    tutti__spread_own(spread, spread->batch, &first, &rows);
    if (spread->local > 1) {
        int64_t begin[TUTTI_MAX_RANK] = {walk->first - first}, end[TUTTI_MAX_RANK];
        memcpy(end, type->dims, sizeof end);
        end[0] = begin[0] + walk->rows;
        tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                              TUTTI_INTS("end", type->rank, end)};
        tutti_node *slice;
        TUTTI_TRY(tutti__walk_add(walk, node, "slice", 1, &own, 2, attrs, &slice));
        own = (tutti_edge){slice, 0};
    }
    tutti__walk_made(mark, output, (tutti_form){TUTTI_FORM_CUT, 0, own});
    if (spread->batch > 1)
        return TUTTI_OK;
    /* One row cannot be shared: every replica works on it. */
    TUTTI_TRY(
        tutti__form_as(walk, (tutti_edge){node, (uint32_t)output}, TUTTI_FORM_WHOLE, 0, &own));
    tutti__walk_made(mark, output, (tutti_form){TUTTI_FORM_WHOLE, 0, own});
    return TUTTI_OK;
}

tutti_status tutti__walk_take_parameter(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    const tutti_spread *spread = walk->spread;
    tutti_node *fed;
    TUTTI_TRY(tutti__walk_copy(walk, node, NULL, NULL, &fed));
    fed->device = "";
    mark->node = fed;
    tutti__walk_made(mark, 0, (tutti_form){TUTTI_FORM_WHOLE, 0, {fed, 0}});
    if (!tutti__is_batch(node, 0) || spread->batch <= 0 ||
        (spread->replicas == 1 && spread->shards == 0))
        return TUTTI_OK;
    int64_t first, rows;
    tutti__spread_own(spread, spread->batch, &first, &rows);
    int64_t *dims =
        (void *)tutti__arena_bytes(&walk->to->arena, fed->types[0].dims, sizeof fed->types[0].dims);
    if (!dims)
        return tutti__walk_no_memory();
    fed->types[0].dims[0] = dims[0] = rows;
    tutti__walk_attr(fed, "dims")->value.ints = dims;
    return tutti__walk_take_rows(walk, node, 0, (tutti_edge){fed, 0}, mark);
}

/* Takes values only to wait for them: in the form that they have. */
tutti_status tutti__walk_take_group(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(walk->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__walk_no_memory();
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__form_made(node->inputs[i])->edge;
    return tutti__walk_copy(walk, node, inputs, NULL, &mark->node);
}

/* Central storage: variables, their reads and updates are those of the first replica. The others
 * bring what the updates take. False: the node is none of these. */
bool tutti__walk_take_central(tutti_walk *walk, tutti_node *node, tutti_walked *mark,
                              tutti_status *ret_status)
{
    *ret_status = TUTTI_OK;
    if (!mark->first || !(node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)))
        return false;
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        *ret_status = tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &edge);
        if (*ret_status == TUTTI_OK && !TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            *ret_status = tutti__walk_no_memory();
        if (*ret_status != TUTTI_OK)
            return true;
    }
    mark->node = mark->first->node;
    for (int i = 0; i < node->output_count; i++)
        tutti__walk_made(mark, i, mark->first->outputs[i].forms[0]);
    return true;
}

/* Printed once in a job; the others bring the value. */
tutti_status tutti__walk_take_print(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &edge));
        if (!TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            return tutti__walk_no_memory();
        if (i < node->output_count)
            tutti__walk_made(mark, i, (tutti_form){TUTTI_FORM_WHOLE, 0, edge});
        mark->node = edge.node;
    }
    return TUTTI_OK;
}

bool tutti__walk_is_group(const tutti_node *node)
{
    return tutti__is(node, "group") || (node->output_count == 0 && node->input_count == 0);
}
