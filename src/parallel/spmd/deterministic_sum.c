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

/* The node alone, with parameters for its inputs, cut along other axes than the batch's. */
static tutti_status body_of(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            const tutti_edge *inputs, tutti_graph **ret)
{
    tutti_graph *body;
    tutti_edge arguments[TUTTI_SPLIT_SLOTS];
    TUTTI_TRY(tutti_graph_create(&body));
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(inputs[i]);
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", type->dtype),
                              TUTTI_INTS("dims", type->rank, type->dims)};
        status = tutti__node_add(body, tutti_op_find("parameter"), NULL, 0, NULL, 3, attrs,
                                 &arguments[i].node);
        arguments[i].index = 0;
    }
    tutti_node *copy = NULL;
    if (status == TUTTI_OK)
        status = tutti__node_copy(body, node, &copy);
    if (status == TUTTI_OK) {
        const tutti_split *ways[TUTTI_MESH_AXES];
        memcpy(ways, tutti__rewritten(node)->ways, sizeof ways);
        ways[rewrite->spmd->layout->batch] = NULL;
        status = tutti__spmd_cut_attrs(rewrite, node, ways, copy);
    }
    if (status == TUTTI_OK) {
        copy->inputs = (void *)tutti__arena_bytes(
            &body->arena, arguments, ((size_t)node->input_count + 1) * sizeof *arguments);
        copy->controls = NULL;
        copy->control_count = 0;
        copy->shardings = NULL;
        copy->id = (uint32_t)body->nodes.count;
        status =
            copy->inputs && TUTTI_VEC_PUSH(&body->nodes, copy) ? TUTTI_OK : tutti__spmd_no_memory();
    }
    for (int i = 0; status == TUTTI_OK && i < node->output_count; i++)
        status = tutti__graph_result(body, (tutti_edge){copy, (uint32_t)i});
    if (status != TUTTI_OK)
        tutti_graph_destroy(body);
    else
        *ret = body;
    return status;
}

static tutti_status add_segmented(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                  const tutti_edge *inputs, const tutti_split *way,
                                  tutti_node **ret, int *ret_blocks)
{
    const tutti_spmd *spmd = rewrite->spmd;
    int first, count = tutti__spmd_shards(spmd, rewrite->replica, &first);
    int64_t axes[TUTTI_SPLIT_SLOTS], kinds[TUTTI_SPLIT_SLOTS], bounds[1025];
    tutti_type types[TUTTI_SPLIT_SLOTS];
    tutti_graph *body;
    int blocks = tutti__segment_nodes(spmd->shards, first, first + count);
    for (int i = 0; i <= count; i++)
        bounds[i] = tutti__shard_bound(spmd->batch, spmd->shards, first + i) - rewrite->first;
    for (int i = 0; i < node->input_count; i++)
        axes[i] = way->inputs[i];
    for (int i = 0; i < node->output_count; i++) {
        kinds[i] = way->outputs[i];
        types[i] = node->types[i];
        int64_t begin[TUTTI_MAX_RANK];
        tutti_partition_spec spec = tutti__spmd_spec(spmd, tutti__rewritten(node), i);
        tutti__spmd_box(rewrite, &spec, &node->types[i], begin, types[i].dims);
        if (kinds[i] < 0 && blocks > 1) {
            int64_t dims[TUTTI_MAX_RANK + 1] = {blocks};
            if (types[i].rank == TUTTI_MAX_RANK)
                return tutti_fail(TUTTI_UNSUPPORTED,
                                  "%s '%s': a gradient of %d axes cannot be summed "
                                  "over shards",
                                  node->op->name, node->name, TUTTI_MAX_RANK);
            memcpy(dims + 1, types[i].dims, (size_t)types[i].rank * sizeof *dims);
            types[i] = tutti_type_make(types[i].dtype, types[i].rank + 1, dims);
        }
    }
    TUTTI_TRY(body_of(rewrite, node, inputs, &body));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body),
                          TUTTI_TYPES_ATTR("types", node->output_count, types),
                          TUTTI_INT("shards", spmd->shards),
                          TUTTI_INT("first", first),
                          TUTTI_INTS("bounds", count + 1, bounds),
                          TUTTI_INTS("axes", node->input_count, axes),
                          TUTTI_INTS("kinds", node->output_count, kinds)};
    tutti_status status =
        tutti__spmd_add(rewrite, node, "segmented", node->input_count, inputs, 7, attrs, ret);
    tutti_graph_destroy(body);
    *ret_blocks = blocks;
    return status;
}

tutti_status tutti__spmd_copy_deterministic_sum(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                                tutti_rewritten *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    int blocks;
    const tutti_split *way = mark->ways[rewrite->spmd->layout->batch];
    TUTTI_TRY(tutti__spmd_inputs(rewrite, node, inputs));
    TUTTI_TRY(add_segmented(rewrite, node, inputs, way, &mark->node, &blocks));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = {mark->node, (uint32_t)i};
        if (way->outputs[i] < 0 && tutti__spmd_batch_ranks(rewrite->spmd) > 1)
            TUTTI_TRY(tutti__reshard_reduce_shards(rewrite, node, blocks, edge, &edge));
        tutti_partition_spec spec = tutti__spmd_spec(rewrite->spmd, mark, i);
        tutti__spmd_made(mark, i, &spec, edge);
    }
    return TUTTI_OK;
}
