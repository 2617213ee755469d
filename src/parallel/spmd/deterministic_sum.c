/* deterministic_sum.c: in deterministic mode sums over the batch are made shard by shard: see
 * ops/comm/segmented.h. */
#include <string.h>

#include "graph/attr.h"
#include "ops/build.h"
#include "ops/comm/segmented.h"
#include "parallel/spmd/rewrite.h"

bool tutti__spmd_is_deterministic_sum(const tutti_spmd *spmd, const tutti_node *node)
{
    int batch = spmd->layout->batch;
    const tutti_split *way = batch < 0 ? NULL : tutti__rewritten(node)->ways[batch];
    if (spmd->shards == 0 || !way)
        return false;
    for (int i = 0; i < node->output_count; i++)
        if (way->outputs[i] == TUTTI_PARTIAL_SUM)
            return true;
    return false;
}

tutti_status tutti__spmd_copy_deterministic_sum(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                                tutti_rewritten *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    const tutti_split *way = mark->ways[rewrite->spmd->layout->batch];
    TUTTI_TRY(tutti__spmd_inputs(rewrite, node, inputs));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, mark->ways, &mark->node));
    ((tutti_claim *)mark->node->scratch)->shard_by_shard = true;
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = {mark->node, (uint32_t)i};
        if (way->outputs[i] < 0 && tutti__spmd_batch_ranks(rewrite->spmd) > 1)
            TUTTI_TRY(tutti__reshard_reduce_shards(rewrite, node, edge, &edge));
        tutti_partition_spec spec = tutti__spmd_spec(rewrite->spmd, mark, i);
        tutti__spmd_made(mark, i, &spec, edge);
    }
    return TUTTI_OK;
}

/* ---- on a rank ---- */

int tutti__spmd_tree_nodes(const tutti_spmd_rank *rank)
{
    int first, count = tutti__spmd_shards(rank->spmd, rank->replica, &first);
    return tutti__segment_nodes(rank->spmd->shards, first, first + count);
}

/* Into a body with parameters for its inputs; cut along other axes than the batch's. */
static tutti_status fill_body(const tutti_spmd_rank *rank, const tutti_node *text,
                              const tutti_edge *inputs, tutti_graph *body)
{
    const tutti_claim *claim = text->scratch;
    const tutti_split *ways[TUTTI_LAYOUT_AXES];
    tutti_edge *arguments =
        tutti__arena_array(&body->arena, (size_t)text->input_count + 1, sizeof *arguments);
    tutti_node *copy;
    if (!arguments)
        return tutti__spmd_no_memory();
    for (int i = 0; i < text->input_count; i++) {
        const tutti_type *type = tutti__edge_type(inputs[i]);
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", type->dtype),
                              TUTTI_INTS("dims", type->rank, type->dims)};
        TUTTI_TRY(tutti__node_add(body, tutti_op_find("parameter"), NULL, 0, NULL, 3, attrs,
                                  &arguments[i].node));
        arguments[i].index = 0;
    }
    TUTTI_TRY(tutti__node_copy(body, text, &copy));
    memcpy(ways, claim->ways, sizeof ways);
    ways[rank->spmd->layout->batch] = NULL;
    TUTTI_TRY(tutti__spmd_cut_attrs(rank, text, ways, copy));
    copy->inputs = arguments;
    copy->controls = NULL;
    copy->control_count = 0;
    copy->id = (uint32_t)body->nodes.count;
    if (!TUTTI_VEC_PUSH(&body->nodes, copy))
        return tutti__spmd_no_memory();
    for (int i = 0; i < text->output_count; i++)
        TUTTI_TRY(tutti__graph_result(body, (tutti_edge){copy, (uint32_t)i}));
    return TUTTI_OK;
}

/* The outputs of a rank: blocks of those that are cut; of sums the nodes of the tree. */
static tutti_status segment_types(const tutti_spmd_rank *rank, const tutti_node *text, int blocks,
                                  tutti_type *ret)
{
    const tutti_claim *claim = text->scratch;
    const tutti_spmd *spmd = rank->spmd;
    for (int i = 0; i < text->output_count; i++) {
        int64_t begin[TUTTI_MAX_RANK];
        tutti_partition_spec spec = {0};
        for (int a = 0; a < spmd->layout->count; a++)
            if (claim->ways[a] && claim->ways[a]->outputs[i] >= 0) {
                spec.along[a].kind = TUTTI_SPLIT;
                spec.along[a].dimension = claim->ways[a]->outputs[i];
            }
        ret[i] = text->types[i];
        tutti__spmd_box(rank, &spec, &text->types[i], begin, ret[i].dims);
        if (claim->ways[spmd->layout->batch]->outputs[i] >= 0 || blocks == 1)
            continue;
        int64_t dims[TUTTI_MAX_RANK + 1] = {blocks};
        if (ret[i].rank == TUTTI_MAX_RANK)
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "%s '%s': a gradient of %d axes cannot be summed over shards",
                              text->op->name, text->name, TUTTI_MAX_RANK);
        memcpy(dims + 1, ret[i].dims, (size_t)ret[i].rank * sizeof *dims);
        ret[i] = tutti_type_make(ret[i].dtype, ret[i].rank + 1, dims);
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_segmented(const tutti_spmd_rank *rank, const tutti_node *text,
                                   const tutti_edge *inputs, tutti_graph *to, tutti_node **ret)
{
    const tutti_spmd *spmd = rank->spmd;
    const tutti_split *way = ((tutti_claim *)text->scratch)->ways[spmd->layout->batch];
    int first, count = tutti__spmd_shards(spmd, rank->replica, &first);
    int64_t axes[TUTTI_SPLIT_SLOTS], kinds[TUTTI_SPLIT_SLOTS], bounds[1025];
    tutti_type types[TUTTI_SPLIT_SLOTS];
    tutti_graph *body;
    for (int i = 0; i <= count; i++)
        bounds[i] = tutti__shard_bound(spmd->batch, spmd->shards, first + i) - rank->first;
    for (int i = 0; i < text->input_count; i++)
        axes[i] = way->inputs[i];
    for (int i = 0; i < text->output_count; i++)
        kinds[i] = way->outputs[i];
    TUTTI_TRY(segment_types(rank, text, tutti__spmd_tree_nodes(rank), types));
    TUTTI_TRY(tutti_graph_create(&body));
    tutti_status status = fill_body(rank, text, inputs, body);
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body),
                          TUTTI_TYPES_ATTR("types", text->output_count, types),
                          TUTTI_INT("shards", spmd->shards),
                          TUTTI_INT("first", first),
                          TUTTI_INTS("bounds", count + 1, bounds),
                          TUTTI_INTS("axes", text->input_count, axes),
                          TUTTI_INTS("kinds", text->output_count, kinds)};
    if (status == TUTTI_OK)
        status = tutti__node_add(to, tutti_op_find("segmented"), text->name, text->input_count,
                                 inputs, 7, attrs, ret);
    tutti_graph_destroy(body);
    return status;
}
