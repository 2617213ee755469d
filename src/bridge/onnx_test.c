/* onnx_test.c: models to ONNX and back. That onnxruntime gives the same outputs is shown by
 * tests/peers/onnx_check.py. */
#include "base/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/onnx.h"
#include "bridge/onnx_test.h"

static void path_of(char path[64])
{
    snprintf(path, 64, "/tmp/tutti_onnx_%d.onnx", (int)getpid());
}

static void check_near(const tutti_tensor *actual, const tutti_tensor *expected)
{
    CHECK(tutti_type_equal(tutti_tensor_type(actual), tutti_tensor_type(expected)));
    for (int64_t i = 0; i < tutti_tensor_count(expected); i++) {
        double wanted = tutti_tensor_get(expected, i);
        CHECK_NEAR(tutti_tensor_get(actual, i), wanted, 1e-5 * (1 + fabs(wanted)));
    }
}

/* The outputs of two models of the same inputs are the same. */
static void check_same(const onnx_case *c, tutti_model *again)
{
    tutti_tensor *expected[8] = {0}, *actual[8] = {0};
    CHECK_OK(tutti_predict_on_batch(c->model, c->inputs, c->tensors, c->outputs, expected));
    CHECK_OK(tutti_predict_on_batch(again, c->inputs, c->tensors, c->outputs, actual));
    for (int i = 0; i < c->outputs; i++) {
        check_near(actual[i], expected[i]);
        tutti_tensor_release(expected[i]);
        tutti_tensor_release(actual[i]);
    }
}

static void build(const onnx_case *c)
{
    tutti_tensor *outputs[8];
    CHECK_OK(tutti_predict_on_batch(c->model, c->inputs, c->tensors, c->outputs, outputs));
    for (int i = 0; i < c->outputs; i++)
        tutti_tensor_release(outputs[i]);
    CHECK_OK(onnx_vary(c->model));
}

static void release(const onnx_case *c)
{
    for (int i = 0; i < c->inputs; i++)
        tutti_tensor_release(c->tensors[i]);
}

static void round_trip(const onnx_network *network, int opset)
{
    char path[64];
    onnx_case c;
    tutti_job *job = tutti_open(NULL, NULL);
    network->make(job, &c);
    build(&c);
    path_of(path);
    CHECK_OK(tutti_export_onnx(c.model, path, .opset = opset));
    tutti_model *again = tutti_import_onnx(job, path);
    CHECK_OK(tutti_job_check(job));
    check_same(&c, again);
    /* What was imported is exported again as well. */
    CHECK_OK(tutti_export_onnx(again, path, .opset = opset));
    check_same(&c, tutti_import_onnx(job, path));
    remove(path);
    release(&c);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_models_come_back_with_the_same_outputs)
{
    for (size_t i = 0; i < ONNX_NETWORKS; i++)
        round_trip(&onnx_networks[i], 17);
}

TUTTI_TEST(onnx_models_come_back_in_the_newest_opset)
{
    for (size_t i = 0; i < ONNX_NETWORKS; i++)
        round_trip(&onnx_networks[i], 21);
}

/* Weights keep names, order of dimensions and values. */
TUTTI_TEST(onnx_weights_keep_their_names_and_forms)
{
    static const char *const names[] = {"mnist", "tickets", "resnet", "recurrent", "shared"};
    char path[64];
    path_of(path);
    for (size_t n = 0; n < ONNX_NETWORKS; n++) {
        bool chosen = false;
        for (size_t i = 0; i < TUTTI_COUNT(names); i++)
            chosen = chosen || strcmp(names[i], onnx_networks[n].name) == 0;
        if (!chosen)
            continue;
        onnx_case c;
        tutti_job *job = tutti_open(NULL, NULL);
        onnx_networks[n].make(job, &c);
        build(&c);
        CHECK_OK(tutti_export_onnx(c.model, path));
        tutti_model *again = tutti_import_onnx(job, path);
        CHECK_INT(tutti_weight_count(again), tutti_weight_count(c.model));
        for (int i = 0; i < tutti_weight_count(c.model); i++) {
            tutti_weight_info info, other;
            tutti_tensor *a, *b;
            CHECK_OK(tutti_weight_at(c.model, i, &info));
            CHECK_OK(tutti_get_weight(c.model, info.name, &a));
            CHECK_OK(tutti_get_weight(again, info.name, &b));
            CHECK(tutti_tensor_same(a, b));
            tutti_tensor_release(a);
            tutti_tensor_release(b);
            for (int k = 0; k < tutti_weight_count(again); k++) {
                CHECK_OK(tutti_weight_at(again, k, &other));
                if (strcmp(other.name, info.name) == 0)
                    CHECK_INT(other.trainable, info.trainable);
            }
        }
        remove(path);
        release(&c);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(an_imported_model_learns)
{
    char path[64];
    onnx_case c;
    double first = 0, last = 0;
    int64_t labels[3] = {1, 5, 9};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *target;
    path_of(path);
    onnx_mnist(job, &c);
    build(&c);
    CHECK_OK(tutti_export_onnx(c.model, path));
    tutti_model *m = tutti_import_onnx(job, path);
    CHECK_OK(tutti_compile(m, .optimizer = tutti_adam(),
                           .loss = tutti_sparse_cross_entropy(.from_logits = true)));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){3}, labels, &target));
    for (int step = 0; step < 15; step++) {
        tutti_logs logs;
        CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){c.tensors[0], target}, &logs));
        last = tutti_logs_get(&logs, "loss");
        first = step == 0 ? last : first;
    }
    CHECK(last < 0.3 * first);
    tutti_tensor_release(target);
    remove(path);
    release(&c);
    CHECK_INT(tutti_close(job), 0);
}

/* Convolutions, activations, batch norm and additions share one order of dimensions. */
TUTTI_TEST(onnx_turns_images_only_at_the_ends)
{
    onnx_case c;
    tutti_onnx *onnx;
    int turned = 0, norms = 0, others = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    onnx_resnet(job, &c);
    build(&c);
    tutti_onnx_port in = {"x", c.model->fed.data[0]}, out = {"y", c.model->answers.data[0]};
    CHECK_OK(
        tutti__onnx_from_graph(c.model->graph, c.model->session, "g", 17, 1, &in, 1, &out, &onnx));
    for (size_t i = 0; i < onnx->graph.nodes.count; i++) {
        turned += strcmp(onnx->graph.nodes.items[i].type, "Transpose") == 0;
        norms += strcmp(onnx->graph.nodes.items[i].type, "BatchNormalization") == 0;
        others += strcmp(onnx->graph.nodes.items[i].type, "Mul") == 0;
    }
    CHECK_INT(turned, 1);
    CHECK_INT(norms, 7);
    CHECK_INT(others, 0);
    tutti__onnx_free(onnx);
    release(&c);
    CHECK_INT(tutti_close(job), 0);
}

/* bf16 is written as f32, f16 as it is. */
TUTTI_TEST(onnx_models_of_mixed_precision_come_back)
{
    static const char *const precisions[] = {"f16", "bf16"};
    for (size_t i = 0; i < TUTTI_COUNT(precisions); i++) {
        char path[64];
        tutti_tensor *expected, *actual;
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = tutti_functional(job, .precision = precisions[i]);
        tutti_sym x = tutti_input(m, "x", TUTTI_F32, 8, 8, 1);
        x = tutti_call(tutti_batch_norm(), tutti_call(tutti_conv2d(4, 3), x));
        x = tutti_call(tutti_lstm(5), tutti_call(tutti_reshape_layer(36, 4), x));
        tutti_output(m, "y", tutti_call(tutti_dense(3), x));
        onnx_case c = {.model = m, .inputs = 1, .outputs = 1, .tensors = {ONNX_FLOATS(2, 8, 8, 1)}};
        build(&c);
        path_of(path);
        CHECK_OK(tutti_export_onnx(m, path));
        tutti_model *again = tutti_import_onnx(job, path);
        CHECK_OK(tutti_predict_on_batch(m, 1, c.tensors, 1, &expected));
        CHECK_OK(tutti_predict_on_batch(again, 1, c.tensors, 1, &actual));
        for (int64_t k = 0; k < 6; k++)
            CHECK_NEAR(tutti_tensor_get(actual, k), tutti_tensor_get(expected, k), 0.02);
        tutti_tensor_release(expected);
        tutti_tensor_release(actual);
        remove(path);
        release(&c);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(a_graph_is_exported_with_its_session)
{
    char path[64];
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *x, *y, *z;
    path_of(path);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in = tutti_placeholder_named(g, "in", TUTTI_F32, TUTTI_ANY, 3);
    tutti_sym w = tutti_variable(g, tutti_normal_init(0, 1, 3, 2), .name = "w");
    tutti_sym out = tutti_tanh(tutti_matmul(in, w));
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_export_graph_onnx(s, path, 1, &in, 1, &out));
    x = ONNX_FLOATS(4, 3);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({out, &y})));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_import_onnx(job, path);
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &z));
    check_near(z, y);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(z);
    CHECK_INT(tutti_close(job), 0);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    remove(path);
}

/* An input may be an output, and one value two outputs. */
TUTTI_TEST(onnx_outputs_may_be_inputs_and_equal)
{
    char path[64];
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 4, 4, 2);
    tutti_sym y = tutti_call(tutti_conv2d(2, 3, .padding = "same"), x);
    tutti_output(m, "same", x);
    tutti_output(m, "y", y);
    tutti_output(m, "again", y);
    tutti_output(m, "sum", tutti_add(x, y));
    onnx_case c = {.model = m, .inputs = 1, .outputs = 4, .tensors = {ONNX_FLOATS(2, 4, 4, 2)}};
    build(&c);
    path_of(path);
    CHECK_OK(tutti_export_onnx(m, path));
    check_same(&c, tutti_import_onnx(job, path));
    remove(path);
    release(&c);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_names_every_operator_without_a_form)
{
    char path[64];
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 4);
    tutti_sym y = tutti_check_numerics(tutti_prod_except(x, 1), "x");
    tutti_output(m, "y", y);
    CHECK_OK(tutti_build(m, TUTTI_F32, 4));
    path_of(path);
    CHECK_STATUS(tutti_export_onnx(m, path), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "prod_except");
    CHECK_CONTAINS(tutti_error_message(), "check_numerics");
    CHECK(access(path, F_OK) != 0);
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(onnx_refuses_opsets_and_models_it_cannot_write)
{
    char path[64];
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_dense(2));
    path_of(path);
    CHECK_STATUS(tutti_export_onnx(m, path), TUTTI_UNINITIALIZED);
    CHECK_CONTAINS(tutti_error_message(), "tutti_build");
    CHECK_INT(tutti_close(job), 1);
    job = tutti_open(NULL, NULL);
    m = tutti_sequential(job, tutti_input_shape(3), tutti_dense(2));
    CHECK_OK(tutti_build(m, TUTTI_F32, 3));
    CHECK_STATUS(tutti_export_onnx(m, path, .opset = 16), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "17 to 21");
    CHECK_INT(tutti_close(job), 1);
}

/* What a graph of constants, imported from a file, makes of a model's input. */
static void check_constants(const onnx_case *c, const char *path)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    tutti_tensor *expected, *actual;
    CHECK_OK(tutti_predict_on_batch(c->model, 1, c->tensors, 1, &expected));
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_import_graph_onnx(graph, path, &ports, .constants = true));
    CHECK_OK(tutti_session_open(&session, graph));
    tutti_feed feed = {ports.inputs[0].sym, c->tensors[0]};
    tutti_fetch fetch = {ports.outputs[0].sym, &actual};
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {1, &feed}, .fetch = {1, &fetch}};
    CHECK_OK(tutti_run_with(session, &options));
    check_near(actual, expected);
    tutti_tensor_release(actual);
    tutti_tensor_release(expected);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

/* x sigmoid(x), as silu stands in files, is one node again. */
TUTTI_TEST(onnx_gates_of_a_value_by_itself_are_read_as_silu)
{
    char path[64];
    tutti_graph *graph;
    tutti_onnx_ports ports;
    tutti_job *job = tutti_open(NULL, NULL);
    onnx_case c = {.inputs = 1, .outputs = 1, .tensors = {ONNX_FLOATS(2, 6, 6, 3)}};
    c.model = tutti_sequential(job, tutti_conv2d(5, 3, .activation = TUTTI_SILU));
    build(&c);
    path_of(path);
    CHECK_OK(tutti_export_onnx(c.model, path));
    check_constants(&c, path);
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_import_graph_onnx(graph, path, &ports, .constants = true));
    int found = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        found += tutti__is(graph->nodes.data[i], "silu");
    CHECK_INT(found, 1);
    tutti_graph_destroy(graph);
    remove(path);
    release(&c);
    CHECK_INT(tutti_close(job), 0);
}

/* Large weights stay in the file's bytes while it is read, wherever they begin there. */
TUTTI_TEST(onnx_large_weights_begin_anywhere)
{
    static const char *const names[] = {"a", "ab", "abc", "abcd"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        char path[64];
        tutti_job *job = tutti_open(NULL, NULL);
        onnx_case c = {.inputs = 1, .outputs = 1, .tensors = {ONNX_FLOATS(2, 12, 12, 32)}};
        c.model = tutti_sequential(
            job, tutti_conv2d(64, 3, .activation = TUTTI_RELU, .name = names[i]),
            tutti_batch_norm(), tutti_conv2d(36, 3, .padding = "same", .name = "b"),
            tutti_flatten(), tutti_dense(12, .activation = TUTTI_RELU), tutti_dense(3));
        build(&c);
        path_of(path);
        CHECK_OK(tutti_export_onnx(c.model, path));
        check_same(&c, tutti_import_onnx(job, path));
        check_constants(&c, path);
        remove(path);
        release(&c);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(onnx_describe_says_what_is_in_a_file)
{
    char path[64];
    onnx_case c;
    tutti_text text = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    path_of(path);
    onnx_tickets(job, &c);
    build(&c);
    CHECK_OK(tutti_export_onnx(c.model, path, .opset = 18));
    CHECK_OK(tutti__onnx_describe(path, false, &text));
    CHECK_CONTAINS(text.data, "ONNX model 'tickets', opset 18, IR version 8, by tutti");
    CHECK_CONTAINS(text.data, "title: i32[batch,title_1]");
    CHECK_CONTAINS(text.data, "department: f32[batch,4]");
    CHECK_CONTAINS(text.data, "LSTM 2");
    CHECK_CONTAINS(text.data, "weight   dense/kernel: f32[172,1]");
    tutti__text_free(&text);
    CHECK_OK(tutti__onnx_describe(path, true, &text));
    CHECK_CONTAINS(text.data, "{\"model\": \"tickets\", \"opset\": 18, \"ir_version\": 8,");
    CHECK_CONTAINS(text.data, "{\"input\": \"title\", \"type\": \"i32[batch,title_1]\"}\n");
    CHECK_CONTAINS(text.data, "\"LSTM\": 2");
    CHECK_CONTAINS(text.data, "{\"weight\": \"dense/kernel\", \"type\": \"f32[172,1]\"}\n");
    tutti__text_free(&text);
    remove(path);
    release(&c);
    CHECK_STATUS(tutti__onnx_describe("/no/such.onnx", false, &text), TUTTI_NOT_FOUND);
    CHECK_INT(tutti_close(job), 0);
}
