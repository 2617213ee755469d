/* feeds.c: nodes that are not simply cut: what is fed, groups, variables of one device, prints.
 */
#include <string.h>

#include "parallel/spmd/rewrite.h"

tutti_status tutti__spmd_take_rows(tutti_spmd_rewrite *rewrite, tutti_node *node, int output,
                                   tutti_edge own, tutti_rewritten *mark)
{
    const tutti_spmd *spmd = rewrite->spmd;
    const tutti_type *type = tutti__edge_type(own);
    int64_t first, rows;
    tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
    if (spmd->local > 1) {
        int64_t begin[TUTTI_MAX_RANK] = {rewrite->first - first}, end[TUTTI_MAX_RANK];
        memcpy(end, type->dims, sizeof end);
        end[0] = begin[0] + rewrite->rows;
        tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                              TUTTI_INTS("end", type->rank, end)};
        tutti_node *slice;
        TUTTI_TRY(tutti__spmd_add(rewrite, node, "slice", 1, &own, 2, attrs, &slice));
        own = (tutti_edge){slice, 0};
    }
    tutti__spmd_made(mark, output, (tutti_placement){TUTTI_PLACEMENT_SHARDED, 0, own});
    if (spmd->batch > 1)
        return TUTTI_OK;
    /* One row cannot be shared: every replica works on it. */
    TUTTI_TRY(tutti__placement_as(rewrite, (tutti_edge){node, (uint32_t)output},
                                  TUTTI_PLACEMENT_REPLICATED, 0, &own));
    tutti__spmd_made(mark, output, (tutti_placement){TUTTI_PLACEMENT_REPLICATED, 0, own});
    return TUTTI_OK;
}

tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark)
{
    const tutti_spmd *spmd = rewrite->spmd;
    tutti_node *fed;
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, NULL, NULL, &fed));
    fed->device = "";
    mark->node = fed;
    tutti__spmd_made(mark, 0, (tutti_placement){TUTTI_PLACEMENT_REPLICATED, 0, {fed, 0}});
    if (!tutti__is_batch(node, 0) || spmd->batch <= 0 || (spmd->replicas == 1 && spmd->shards == 0))
        return TUTTI_OK;
    int64_t first, rows;
    tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
    int64_t *dims = (void *)tutti__arena_bytes(&rewrite->to->arena, fed->types[0].dims,
                                               sizeof fed->types[0].dims);
    if (!dims)
        return tutti__spmd_no_memory();
    fed->types[0].dims[0] = dims[0] = rows;
    tutti__spmd_attr(fed, "dims")->value.ints = dims;
    return tutti__spmd_take_rows(rewrite, node, 0, (tutti_edge){fed, 0}, mark);
}

/* Takes values only to wait for them: in the form that they have. */
tutti_status tutti__spmd_take_group(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__placement_made(node->inputs[i])->edge;
    return tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node);
}

/* Central storage: variables, their reads and updates are those of the first replica. The others
 * bring what the updates take. False: the node is none of these. */
bool tutti__spmd_take_central(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark,
                              tutti_status *ret_status)
{
    *ret_status = TUTTI_OK;
    if (!mark->first || !(node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)))
        return false;
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        *ret_status =
            tutti__placement_as(rewrite, node->inputs[i], TUTTI_PLACEMENT_REPLICATED, 0, &edge);
        if (*ret_status == TUTTI_OK && !TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            *ret_status = tutti__spmd_no_memory();
        if (*ret_status != TUTTI_OK)
            return true;
    }
    mark->node = mark->first->node;
    for (int i = 0; i < node->output_count; i++)
        tutti__spmd_made(mark, i, mark->first->outputs[i].placements[0]);
    return true;
}

/* Printed once in a job; the others bring the value. */
tutti_status tutti__spmd_take_print(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge;
        TUTTI_TRY(
            tutti__placement_as(rewrite, node->inputs[i], TUTTI_PLACEMENT_REPLICATED, 0, &edge));
        if (!TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            return tutti__spmd_no_memory();
        if (i < node->output_count)
            tutti__spmd_made(mark, i, (tutti_placement){TUTTI_PLACEMENT_REPLICATED, 0, edge});
        mark->node = edge.node;
    }
    return TUTTI_OK;
}

bool tutti__spmd_is_group(const tutti_node *node)
{
    return tutti__is(node, "group") || (node->output_count == 0 && node->input_count == 0);
}
