/* pipeline.c: see pipeline.h. */
#include "parallel/pipeline/inside.h"

static tutti_status rewrite(tutti_graph *job, const tutti_spmd *spmd,
                            const tutti_pipeline *pipeline, tutti_arena *arena, tutti_graph **ret)
{
    tutti_graph *graph;
    int micro = spmd->batch < pipeline->micro ? (int)spmd->batch : pipeline->micro;
    micro = micro < 1 ? 1 : micro;
    if (pipeline->kind->chunks && micro > pipeline->device_count) /* in whole groups */
        micro -= micro % pipeline->device_count;
    TUTTI_TRY(tutti__pipeline_micro(job, spmd, micro, arena, &graph));
    tutti_status status = tutti__pipeline_place(graph, pipeline);
    if (status == TUTTI_OK)
        status = tutti__pipeline_share(graph, pipeline, arena);
    if (status == TUTTI_OK)
        status = tutti__pipeline_order(graph, pipeline, micro);
    for (size_t n = 0; n < graph->nodes.count; n++)
        graph->nodes.data[n]->scratch = NULL;
    if (status == TUTTI_OK)
        *ret = graph;
    else
        tutti_graph_destroy(graph);
    return status;
}

tutti_status tutti__pipeline_rewrite(tutti_graph *job, const tutti_spmd *spmd,
                                     const tutti_pipeline *pipeline, tutti_graph **ret)
{
    tutti_arena arena = {0};
    tutti_status status = rewrite(job, spmd, pipeline, &arena, ret);
    tutti__arena_free(&arena);
    return status;
}
