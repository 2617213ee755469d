/* onnx_hand_test.h: models of ONNX's made by hand, node by node, and what they give. */
#ifndef TUTTI_BRIDGE_ONNX_HAND_TEST_H
#define TUTTI_BRIDGE_ONNX_HAND_TEST_H

#include <math.h>
#include <string.h>

#include "base/test.h"
#include "bridge/onnx.h"

static inline tutti_onnx *hand_begin(void)
{
    tutti_onnx *onnx;
    CHECK_OK(tutti__onnx_create(&onnx));
    onnx->ir_version = 8;
    onnx->opset = 17;
    onnx->graph.name = "hand";
    return onnx;
}

static inline void hand_name(tutti_onnx *onnx, tutti_onnx_names *list, const char *name)
{
    const char **slot = ONNX_PUSH(&onnx->arena, list);
    CHECK(slot != NULL);
    *slot = name;
}

static inline void hand_names(tutti_onnx *onnx, tutti_onnx_names *list, const char *names)
{
    char *copy = tutti__arena_take(&onnx->arena, strlen(names) + 1), *rest = NULL;
    CHECK(copy != NULL);
    memcpy(copy, names, strlen(names) + 1);
    for (char *part = strtok_r(copy, " ", &rest); part; part = strtok_r(NULL, " ", &rest))
        hand_name(onnx, list, strcmp(part, "-") == 0 ? "" : part);
}

/* Names are separated by blanks; "-" is an input that is not given. */
static inline tutti_onnx_node *hand_node(tutti_onnx *onnx, tutti_onnx_graph *graph,
                                         const char *type, const char *inputs, const char *outputs)
{
    tutti_onnx_node *node = ONNX_PUSH(&onnx->arena, &graph->nodes);
    CHECK(node != NULL);
    *node = (tutti_onnx_node){.name = "", .type = type, .domain = ""};
    hand_names(onnx, &node->inputs, inputs);
    hand_names(onnx, &node->outputs, outputs);
    return node;
}

static inline tutti_onnx_attr *hand_attr(tutti_onnx *onnx, tutti_onnx_node *node, const char *name,
                                         tutti_onnx_attr_kind kind)
{
    tutti_onnx_attr *attr = ONNX_PUSH(&onnx->arena, &node->attrs);
    CHECK(attr != NULL);
    attr->name = name;
    attr->s = attr->refers = "";
    attr->kind = kind;
    return attr;
}

static inline tutti_onnx_graph *hand_graph(tutti_onnx *onnx, tutti_onnx_node *node,
                                           const char *name)
{
    tutti_onnx_attr *attr = hand_attr(onnx, node, name, ONNX_GRAPH);
    attr->graph = tutti__arena_take(&onnx->arena, sizeof *attr->graph);
    CHECK(attr->graph != NULL);
    attr->graph->name = name;
    return attr->graph;
}

/* A port of floats; dims -1 are open. */
static inline void hand_port(tutti_onnx *onnx, tutti_onnx_graph *graph, bool input,
                             const char *name, tutti_type type)
{
    tutti_onnx_value *value =
        input ? ONNX_PUSH(&onnx->arena, &graph->inputs) : ONNX_PUSH(&onnx->arena, &graph->outputs);
    CHECK(value != NULL);
    *value = (tutti_onnx_value){.name = name, .type = type, .ranked = true};
}

static inline void hand_constant(tutti_onnx *onnx, tutti_onnx_graph *graph, const char *name,
                                 tutti_dtype dtype, int rank, int64_t dim, const double *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(dtype, rank, &dim, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, values[i]);
    CHECK_OK(tutti__onnx_keep(onnx, tensor));
    tutti_onnx_tensor *t = ONNX_PUSH(&onnx->arena, &graph->initializers);
    CHECK(t != NULL);
    *t = (tutti_onnx_tensor){name, tensor};
}

#define NUMBERS(...) ((const double[]){__VA_ARGS__})
static inline tutti_type hand_type(tutti_dtype dtype, int rank, int64_t a, int64_t b)
{
    return tutti_type_make(dtype, rank, (int64_t[]){a, b});
}

static inline tutti_tensor *hand_tensor(tutti_dtype dtype, int rank, int64_t a, int64_t b,
                                        const double *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(dtype, rank, (int64_t[]){a, b}, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tensor;
}

/* Writes, reads again, builds, runs with these inputs; output 0 is the caller's. */
static inline tutti_status hand_run(const tutti_onnx *made, int count, tutti_tensor *const *inputs,
                                    tutti_tensor **ret)
{
    tutti_text text = {0};
    tutti_onnx *onnx;
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    tutti_feed feeds[4];
    CHECK_OK(tutti__onnx_encode(made, &text));
    CHECK_OK(tutti__onnx_decode("hand", text.data, text.size, &onnx));
    tutti__text_free(&text);
    CHECK_OK(tutti_graph_create(&graph));
    tutti_onnx_graph_options options = {.struct_size = sizeof options};
    tutti_status status = tutti__onnx_into_graph(onnx, "hand", graph, &options, &ports);
    tutti__onnx_free(onnx);
    if (status == TUTTI_OK) {
        CHECK_INT(ports.input_count, count);
        for (int i = 0; i < count; i++)
            feeds[i] = (tutti_feed){ports.inputs[i].sym, inputs[i]};
        CHECK_OK(tutti_session_open(&session, graph));
        CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(graph)));
        tutti_fetch fetch = {ports.outputs[0].sym, ret};
        tutti_run_options run_options = {
            .struct_size = sizeof run_options, .feed = {count, feeds}, .fetch = {1, &fetch}};
        status = tutti_run_with(session, &run_options);
        tutti_session_close(session);
    }
    tutti_graph_destroy(graph);
    return status;
}

static inline void hand_gives(const tutti_onnx *onnx, int count, tutti_tensor *const *inputs,
                              int64_t elements, const double *expected)
{
    tutti_tensor *y = NULL;
    CHECK_OK(hand_run(onnx, count, inputs, &y));
    CHECK_INT(tutti_tensor_count(y), elements);
    for (int64_t i = 0; i < elements; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), expected[i], 1e-5);
    tutti_tensor_release(y);
}

#endif
