/* rewrite.c: the text of all ranks, node by node, as propagate.c decided. */
#include "parallel/spmd/rewrite.h"

#include <string.h>

tutti_status tutti__spmd_no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to rewrite a job");
}

static tutti_status rewrite_begin(tutti_spmd_rewrite *rewrite, tutti_node *node)
{
    tutti_rewritten *mark = tutti__rewritten(node);
    size_t outputs = (size_t)node->output_count + 1;
    mark->node = NULL;
    mark->outputs = tutti__arena_array(rewrite->scratch, outputs, sizeof *mark->outputs);
    if (!mark->outputs)
        return tutti__spmd_no_memory();
    for (size_t i = 0; i < outputs; i++)
        mark->outputs[i].count = 0;
    return TUTTI_OK;
}

void tutti__spmd_made(tutti_rewritten *mark, int output, const tutti_partition_spec *spec,
                      tutti_edge edge)
{
    mark->outputs[output].count = 1;
    mark->outputs[output].placements[0] = (tutti_placement){*spec, edge};
}

tutti_status tutti__spmd_inputs(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                tutti_edge *ret)
{
    const tutti_rewritten *mark = tutti__rewritten(node);
    for (int i = 0; i < node->input_count; i++) {
        tutti_partition_spec spec = {0};
        const tutti_partition_spec *made = tutti__spec_of(node->inputs[i]);
        for (int a = 0; a < rewrite->spmd->layout->count; a++) {
            if (mark->passes[a] &&
                (made->along[a].kind == TUTTI_PARTIAL || i == tutti__spmd_whole_summand(node, a)))
                spec.along[a].kind = TUTTI_PARTIAL;
            if (!mark->ways[a] || mark->ways[a]->inputs[i] < 0)
                continue;
            spec.along[a].kind = TUTTI_SPLIT;
            spec.along[a].dimension = mark->ways[a]->inputs[i];
        }
        TUTTI_TRY(tutti__reshard(rewrite, node->inputs[i], &spec, &ret[i]));
    }
    return TUTTI_OK;
}

static const char *combination(int way)
{
    return way == TUTTI_PARTIAL_MAX ? "max" : way == TUTTI_PARTIAL_MIN ? "min" : "prod";
}

static tutti_status rewrite_copy(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                 tutti_rewritten *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    TUTTI_TRY(tutti__spmd_inputs(rewrite, node, inputs));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, mark->ways, &mark->node));
    tutti__spmd_keep_whole(rewrite, node, mark->node);
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = {mark->node, (uint32_t)i};
        tutti_partition_spec spec = tutti__spmd_spec(rewrite->spmd, mark, i);
        for (int a = 0; a < rewrite->spmd->layout->count; a++) {
            int way = mark->ways[a] ? mark->ways[a]->outputs[i] : TUTTI_WHOLE;
            if (way < TUTTI_PARTIAL_SUM)
                TUTTI_TRY(tutti__reshard_reduce(rewrite, node, a, combination(way), edge, &edge));
        }
        tutti__spmd_made(mark, i, &spec, edge);
    }
    return TUTTI_OK;
}

static tutti_status rewrite_expanded(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                     tutti_rewritten *mark)
{
    TUTTI_TRY(tutti__spmd_nodes(rewrite, mark->first, mark->end));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = tutti__placement_made(mark->expanded[i]);
        tutti__spmd_made(mark, i, tutti__spec_of(mark->expanded[i]), edge);
        mark->node = edge.node;
    }
    return TUTTI_OK;
}

static tutti_status rewrite_rule(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                 tutti_rewritten *mark)
{
    switch (mark->rule) {
    case TUTTI_REWRITE_PARAMETER:
        return tutti__spmd_take_parameter(rewrite, node, mark);
    case TUTTI_REWRITE_GROUP:
        return tutti__spmd_take_group(rewrite, node, mark);
    case TUTTI_REWRITE_QUEUE:
        return tutti__spmd_take_queue(rewrite, node, mark);
    case TUTTI_REWRITE_ACCUMULATED:
        return tutti__spmd_copy_accumulated(rewrite, node, mark);
    case TUTTI_REWRITE_DENSE:
        return tutti__spmd_copy_dense(rewrite, node, mark);
    case TUTTI_REWRITE_EXPANDED:
        return rewrite_expanded(rewrite, node, mark);
    default:
        break;
    }
    if (tutti__spmd_is_deterministic_sum(rewrite->spmd, node))
        return tutti__spmd_copy_deterministic_sum(rewrite, node, mark);
    return rewrite_copy(rewrite, node, mark);
}

/* What a constraint asks for is how the value was made, for all who use it. Who needs it as it was
 * before finds that behind. */
static void make_first(tutti_value_placements *all, const tutti_partition_spec *spec)
{
    for (int i = 0; i < all->count; i++) {
        tutti_placement wanted = all->placements[i];
        if (memcmp(&wanted.spec, spec, sizeof *spec) != 0)
            continue;
        all->placements[i] = all->placements[0];
        all->placements[0] = wanted;
    }
}

static tutti_status rewrite_node(tutti_spmd_rewrite *rewrite, tutti_node *node)
{
    tutti_rewritten *mark = tutti__rewritten(node);
    TUTTI_TRY(rewrite_begin(rewrite, node));
    rewrite->backward = node->backward;
    TUTTI_TRY(rewrite_rule(rewrite, node, mark));
    for (int i = 0; mark->constraints && i < node->output_count; i++) {
        tutti_edge edge;
        if (!mark->constraints[i])
            continue;
        TUTTI_TRY(
            tutti__reshard(rewrite, (tutti_edge){node, (uint32_t)i}, mark->constraints[i], &edge));
        make_first(&mark->outputs[i], mark->constraints[i]);
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_nodes(tutti_spmd_rewrite *rewrite, size_t first, size_t end)
{
    for (size_t n = first; n < end; n++)
        TUTTI_TRY(rewrite_node(rewrite, rewrite->from->nodes.data[n]));
    return TUTTI_OK;
}
