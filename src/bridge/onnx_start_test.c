/* onnx_start_test.c: what stands between a file and its first answer: weights are packed from where
 * they stand in the file, once, and nothing else is made of them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/params.h"
#include "base/test.h"
#include "bridge/onnx_test.h"
#include "device/cpu/kept.h"
#include "graph/graph.h"
#include "tensor/pending.h"

/* Convolutions by transformed tiles, direct, and of one pixel, and a dense layer. */
static void export_network(const char *path)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m =
        tutti_sequential(job, tutti_conv2d(64, 3, .padding = "same", .activation = TUTTI_RELU),
                         tutti_conv2d(96, 3, .padding = "same", .activation = TUTTI_RELU),
                         tutti_conv2d(128, 3, .strides = {2, 2}, .activation = TUTTI_RELU),
                         tutti_conv2d(160, 1, .activation = TUTTI_RELU),
                         tutti_global_average_pool2d(), tutti_dense(200));
    tutti_build(m, TUTTI_F32, 16, 16, 32);
    CHECK_OK(tutti_export_onnx(m, path));
    CHECK_INT(tutti_close(job), 0);
}

/* Large constants of the graph, and how many of them nobody has asked for. */
static int count_large(const tutti_graph *graph, int *ret_pending)
{
    int large = 0;
    *ret_pending = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        if (!tutti__is(node, "constant"))
            continue;
        const tutti_tensor *value =
            tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor;
        if (tutti_tensor_count(value) * 4 < 1 << 16)
            continue;
        large++;
        *ret_pending += tutti__tensor_is_pending(value);
    }
    return large;
}

static tutti_tensor *answer(tutti_session *session, const tutti_onnx_ports *ports, tutti_tensor *x)
{
    tutti_tensor *y = NULL;
    tutti_feed feed = {ports->inputs[0].sym, x};
    tutti_fetch fetch = {ports->outputs[0].sym, &y};
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {1, &feed}, .fetch = {1, &fetch}};
    CHECK_OK(tutti_run_with(session, &options));
    return y;
}

static void check_start(const char *path)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    int pending, kept = tutti__kept_count();
    tutti_tensor *x = ONNX_FLOATS(1, 16, 16, 32);
    CHECK_OK(tutti_graph_create(&graph));
    int64_t before = tutti__memory_now();
    CHECK_OK(tutti_import_graph_onnx(graph, path, &ports, .constants = true));
    CHECK_INT(count_large(graph, &pending), 5);
    CHECK_INT(pending, 5);
    CHECK(tutti__memory_now() - before < 1 << 16); /* biases and the like */
    CHECK_OK(tutti_session_open(&session, graph));
    tutti_tensor *first = answer(session, &ports, x);
    CHECK_INT(count_large(graph, &pending), 5);
    CHECK_INT(pending, 5); /* still: kernels took them from the file */
    CHECK(tutti__kept_count() - kept >= 5);
    int made = tutti__kept_count();
    tutti_tensor *second = answer(session, &ports, x);
    CHECK_INT(tutti__kept_count(), made);
    CHECK(tutti_tensor_same(first, second));
    tutti_tensor_release(first);
    tutti_tensor_release(second);
    tutti_tensor_release(x);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    CHECK_INT(tutti__kept_count(), kept);
}

TUTTI_TEST(onnx_weights_are_packed_from_the_file)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/tutti_onnx_start_%d.onnx", (int)getpid());
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose kernels pack */
    export_network(path);
    check_start(path);
    CHECK_OK(tutti__param_set("MAP_MODELS", "0"));
    check_start(path);
    CHECK_OK(tutti__param_set("MAP_MODELS", NULL));
    CHECK_OK(tutti__param_set("DEVICE", NULL));
    unlink(path);
}
