/* library.c: functions of TensorFlow's graphs. In them an input is written "argument" or
 * "node:output name:place"; here both become as they are in the graph itself. */
#include "bridge/graphdef/graphdef.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operators with several outputs of names of their own, in their order; those of one name (a list)
 * are counted by the place alone. */
static const char *const outputs[][8] = {
    {"TopKV2", "values", "indices"},
    {"TopK", "values", "indices"},
    {"FusedBatchNorm", "y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"},
    {"FusedBatchNormV2", "y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"},
    {"FusedBatchNormV3", "y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2",
     "reserve_space_3"},
    {"Unique", "y", "idx"},
    {"UniqueV2", "y", "idx"},
    {"TensorArrayV3", "handle", "flow"},
    {"TensorListPopBack", "output_handle", "tensor"},
    {"TensorListConcatV2", "tensor", "lengths"},
    {"Switch", "output_false", "output_true"},
    {"Merge", "output", "value_index"},
    {"SoftmaxCrossEntropyWithLogits", "loss", "backprop"},
    {"SparseSoftmaxCrossEntropyWithLogits", "loss", "backprop"},
};

static int output_place(const char *op, const char *name, size_t size)
{
    for (size_t i = 0; i < TUTTI_COUNT(outputs); i++)
        for (int k = 1; strcmp(outputs[i][0], op) == 0 && k < 8 && outputs[i][k]; k++)
            if (strlen(outputs[i][k]) == size && memcmp(outputs[i][k], name, size) == 0)
                return k - 1;
    return 0;
}

/* "node:output name:2" as "node:2". */
static tutti_status rewrite(tutti_graphdef *def, tutti_graphdef_graph *graph, const char **input)
{
    const char *text = *input, *colon = strchr(text, ':'), *second;
    char name[512];
    if (text[0] == '^' || !colon || !(second = strchr(colon + 1, ':')))
        return TUTTI_OK;
    snprintf(name, sizeof name, "%.*s", (int)(colon - text < 511 ? colon - text : 511), text);
    const tutti_graphdef_node *node = tutti__map_get(&graph->by_name, name);
    int place = node ? output_place(node->op, colon + 1, (size_t)(second - colon - 1)) : 0;
    long index = strtol(second + 1, NULL, 10);
    *input = tutti__arena_format(&def->arena, "%s:%ld", name, place + index);
    return *input ? TUTTI_OK : tutti__graphdef_no_memory(def);
}

static tutti_status rewrite_all(tutti_graphdef *def, tutti_graphdef_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t k = 0; k < graph->nodes.items[i].inputs.count; k++)
            TUTTI_TRY(rewrite(def, graph, &graph->nodes.items[i].inputs.items[k]));
    for (size_t i = 0; i < graph->results.count; i++)
        TUTTI_TRY(rewrite(def, graph, &graph->results.items[i]));
    return TUTTI_OK;
}

/* ArgDef: name 1. */
static tutti_status read_arg(tutti_graphdef *def, tutti_proto p, const char **ret)
{
    tutti_proto_field f;
    *ret = "";
    while (tutti__proto_next(&p, &f))
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, ret));
    return tutti__proto_end(&p);
}

/* OpDef: name 1, input_arg 2, output_arg 3. Arguments become nodes, results their names. */
static tutti_status read_signature(tutti_graphdef *def, tutti_proto p, tutti_graphdef_graph *graph)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &graph->name));
        if (f.number == 2) {
            if (def->node_count++ == GRAPHDEF_NODES)
                return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d nodes", def->file,
                                  GRAPHDEF_NODES);
            tutti_graphdef_node *arg = ONNX_PUSH(&def->arena, &graph->nodes);
            if (!arg)
                return tutti__graphdef_no_memory(def);
            arg->op = "_Arg";
            arg->name = "";
            graph->arg_count++;
            TUTTI_TRY(read_arg(def, tutti__proto_inside(&p, &f), &arg->name));
        }
        if (f.number == 3) {
            const char **result = ONNX_PUSH(&def->arena, &graph->results);
            if (!result)
                return tutti__graphdef_no_memory(def);
            TUTTI_TRY(read_arg(def, tutti__proto_inside(&p, &f), result));
        }
    }
    return tutti__proto_end(&p);
}

/* Which output of a node result `key` is. */
static tutti_status read_ret(tutti_graphdef *def, tutti_proto p, tutti_map *ret)
{
    tutti_proto_field f;
    const char *key = "", *value = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &key));
        if (f.number == 2)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &value));
    }
    TUTTI_TRY(tutti__proto_end(&p));
    return tutti__map_set(ret, key, (void *)value);
}

/* FunctionDef: signature 1, node_def 3, ret 4. */
static tutti_status read_parts(tutti_graphdef *def, tutti_proto p, tutti_graphdef_graph *graph,
                               tutti_map *ret)
{
    tutti_proto again = p;
    tutti_proto_field f;
    while (tutti__proto_next(&again, &f))
        if (f.number == 1)
            TUTTI_TRY(read_signature(def, tutti__proto_inside(&again, &f), graph));
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 3)
            TUTTI_TRY(tutti__graphdef_read_node(def, tutti__proto_inside(&p, &f), graph));
        if (f.number == 4)
            TUTTI_TRY(read_ret(def, tutti__proto_inside(&p, &f), ret));
    }
    TUTTI_TRY(tutti__proto_end(&p));
    for (size_t i = 0; i < graph->results.count; i++) {
        const char *from = tutti__map_get(ret, graph->results.items[i]);
        if (!from)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s: function '%s' does not say what its result '%s' is", def->file,
                              graph->name, graph->results.items[i]);
        graph->results.items[i] = from;
    }
    return TUTTI_OK;
}

static tutti_status read_function(tutti_graphdef *def, tutti_proto p)
{
    tutti_map ret = {0};
    if (def->functions.count == GRAPHDEF_FUNCTIONS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d functions", def->file,
                          GRAPHDEF_FUNCTIONS);
    tutti_graphdef_graph *graph = ONNX_PUSH(&def->arena, &def->functions);
    if (!graph)
        return tutti__graphdef_no_memory(def);
    graph->name = "";
    tutti_status status = read_parts(def, p, graph, &ret);
    tutti__map_free(&ret);
    TUTTI_TRY(status);
    TUTTI_TRY(tutti__graphdef_index(def, graph));
    return rewrite_all(def, graph);
}

/* FunctionDefLibrary: function 1. Functions are found by name once all stand still. */
tutti_status tutti__graphdef_read_library(tutti_graphdef *def, tutti_proto p)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f))
        if (f.number == 1)
            TUTTI_TRY(read_function(def, tutti__proto_inside(&p, &f)));
    TUTTI_TRY(tutti__proto_end(&p));
    for (size_t i = 0; i < def->functions.count; i++)
        TUTTI_TRY(
            tutti__map_set(&def->by_name, def->functions.items[i].name, &def->functions.items[i]));
    return TUTTI_OK;
}
