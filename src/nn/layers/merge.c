/* merge.c: several inputs to one, with and without a layer to keep. */
#include "nn/layers/common.h"

tutti_sym tutti__merge_fold(int count, const tutti_sym *inputs,
                            tutti_sym (*of_two)(tutti_sym a, tutti_sym b))
{
    tutti_sym all = inputs[0];
    for (int i = 1; i < count; i++)
        all = of_two(all, inputs[i]);
    return count == 1 ? tutti_identity(all) : all;
}

tutti_sym tutti_merge(const char *kind, int count, const tutti_sym *inputs)
{
    tutti_graph *graph = count > 0 && inputs ? tutti_sym_graph(inputs[0]) : NULL;
    if (!graph)
        return TUTTI_NO_SYM;
    tutti_building *building = graph->building;
    tutti_layer *layer = (tutti_layer_make)(kind, NULL);
    if (!layer)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a layer");
    if (building && building->records)
        return tutti_layer_apply(layer, count, inputs);
    tutti_building alone = {.prefix = "", .compute = TUTTI_F32, .seed = 1};
    tutti_sym outputs[TUTTI_LAYER_OUTPUTS] = {TUTTI_NO_SYM};
    layer->name = tutti__arena_string(&layer->arena, kind);
    if (!building)
        graph->building = &alone;
    tutti__layer_build(layer, graph, count, inputs, outputs);
    graph->building = building;
    tutti__building_free(&alone);
    tutti_layer_release(layer);
    return outputs[0];
}
