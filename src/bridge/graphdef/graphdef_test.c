/* graphdef_test.c: TensorFlow's graphs: written for TensorBoard, read when they are frozen. */
#include <unistd.h>

#include "base/world.h"
#include "bridge/graphdef/hand.h"

/* relu(x w + b), users before what they use. */
static void put_dense(tutti_text *text)
{
    put(text, "y", "Relu", "sum", "");
    put(text, "sum", "BiasAdd", "product:0 b", "");
    put(text, "product", "MatMul", "x w/read", "");
    put(text, "w/read", "Identity", "w ^x", "");
    put_const(text, "w", 1, 2, (int64_t[]){2, 2}, 4, (float[]){1, 2, 3, 4});
    put_const(text, "b", 1, 1, (int64_t[]){2}, 1, (float[]){-5});
    put_placeholder(text, "x", 2, (int64_t[]){-1, 2});
}

TUTTI_TEST(graphdef_frozen_graphs_run)
{
    tutti_text text = {0};
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    tutti_tensor *x, *y;
    put_dense(&text);
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(into_graph(&text, graph, &ports));
    CHECK_INT(ports.input_count, 1);
    CHECK_INT(ports.output_count, 1);
    CHECK_STR(ports.inputs[0].name, "x");
    CHECK_STR(ports.outputs[0].name, "y");
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){2, 2}, (float[]){1, 1, 0, 2}, &x));
    CHECK_OK(tutti_session_open(&session, graph));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({ports.inputs[0].sym, x}),
                       .fetch = TUTTI_FETCH({ports.outputs[0].sym, &y})));
    static const double expected[] = {0, 1, 1, 3};
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), expected[i], 1e-6);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    tutti__text_free(&text);
}

/* out0 = x0 + x1 of the next column + 10, out1 = x1 + 20; then the larger of two rows. */
TUTTI_TEST(graphdef_takes_images_with_channels_first)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 4, (int64_t[]){1, 2, 2, 3});
    put_const(&text, "w", 1, 4, (int64_t[]){1, 2, 2, 2}, 8, (float[]){1, 0, 0, 1, 0, 0, 1, 0});
    put_const(&text, "b", 1, 1, (int64_t[]){2}, 2, (float[]){10, 20});
    put(&text, "conv", "Conv2D", "x w", "s:data_format=NCHW s:padding=VALID l:strides=1,1,1,1");
    put(&text, "sum", "BiasAdd", "conv b", "s:data_format=NCHW");
    put(&text, "y", "MaxPool", "sum",
        "s:data_format=NCHW s:padding=VALID l:ksize=1,1,2,1 l:strides=1,1,2,1");
    const hand_input x = {"x", 4, {1, 2, 2, 3}, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
    check_runs(&text, 1, &x, "y", 4, (double[]){25, 27, 30, 31});
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_names_everything_that_is_missing)
{
    tutti_text text = {0};
    tutti_graph *graph;
    tutti_onnx_ports ports;
    put_placeholder(&text, "x", 1, (int64_t[]){2});
    put(&text, "a", "DecodeJpeg", "x", "");
    put(&text, "b", "LookupTableFind", "a", "");
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_STATUS(into_graph(&text, graph, &ports), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "DecodeJpeg ('a')");
    CHECK_CONTAINS(tutti_error_message(), "LookupTableFind ('b')");
    tutti_graph_destroy(graph);
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_refuses_cycles_and_unknown_names)
{
    static const char *const inputs[] = {"b", "nobody"};
    for (int i = 0; i < 2; i++) {
        tutti_text text = {0};
        tutti_graph *graph;
        tutti_onnx_ports ports;
        put(&text, "a", "Relu", inputs[i], "");
        put(&text, "b", "Relu", "a", "");
        CHECK_OK(tutti_graph_create(&graph));
        CHECK(into_graph(&text, graph, &ports) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), i == 0 ? "cycle" : "not there");
        tutti_graph_destroy(graph);
        tutti__text_free(&text);
    }
}

/* Few bytes may stand for many elements, in all constants together for 2^26. */
TUTTI_TEST(graphdef_refuses_constants_that_are_too_large)
{
    tutti_text text = {0};
    tutti_graphdef *def;
    put_const(&text, "a", 4, 1, (int64_t[]){GRAPHDEF_REPEATED}, 0, NULL);
    CHECK_OK(tutti__graphdef_decode("one", text.data, text.size, &def));
    tutti__graphdef_free(def);
    put_const(&text, "b", 4, 1, (int64_t[]){1}, 0, NULL);
    CHECK_STATUS(tutti__graphdef_decode("two", text.data, text.size, &def), TUTTI_CORRUPT);
    tutti__text_free(&text);
}

/* What is written is read again: names, inputs, operators. */
TUTTI_TEST(graphdef_shows_a_graph)
{
    char path[64];
    const tutti_world *world = tutti__world();
    tutti_graph *g;
    tutti_graphdef *def;
    void *data;
    size_t size;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 3);
    tutti_sym w = tutti_variable(g, tutti_normal_init(0, 1, 3, 2), .name = "dense/w");
    tutti_tanh(tutti_matmul(x, w));
    snprintf(path, sizeof path, "/tmp/tutti_graphdef_%d.pb", (int)getpid());
    CHECK_OK(tutti_export_graphdef(g, path));
    CHECK_OK(world->read_file(world->self, path, 1 << 20, &data, &size));
    CHECK_OK(tutti__graphdef_decode(path, data, size, &def));
    CHECK(def->graph.nodes.count >= 4);
    const tutti_graphdef_node *weight = tutti__map_get(&def->graph.by_name, "dense/w");
    CHECK(weight != NULL);
    CHECK_STR(weight->op, "variable");
    bool found = false;
    for (size_t i = 0; i < def->graph.nodes.count; i++)
        found = found || (strcmp(def->graph.nodes.items[i].op, "matmul") == 0 &&
                          strcmp(def->graph.nodes.items[i].inputs.items[0], "x") == 0);
    CHECK(found);
    tutti__graphdef_free(def);
    free(data);
    remove(path);
    tutti_graph_destroy(g);
}

/* Every cut and many changed bytes: an answer or an error, never more. */
TUTTI_TEST(graphdef_damaged_files_are_refused_or_read)
{
    tutti_text text = {0};
    put_dense(&text);
    for (size_t i = 0; i < text.size; i++) {
        tutti_graphdef *def;
        tutti_onnx_ports ports;
        if (tutti__graphdef_decode("cut", text.data, i, &def) == TUTTI_OK)
            tutti__graphdef_free(def);
        char kept = text.data[i];
        text.data[i] = (char)(kept ^ (1 << i % 8));
        if (tutti__graphdef_decode("changed", text.data, text.size, &def) == TUTTI_OK) {
            tutti_graph *graph;
            CHECK_OK(tutti_graph_create(&graph));
            (void)tutti__graphdef_into_graph(def, graph, &ports);
            tutti_graph_destroy(graph);
            tutti__graphdef_free(def);
        }
        text.data[i] = kept;
    }
    tutti__text_free(&text);
}
