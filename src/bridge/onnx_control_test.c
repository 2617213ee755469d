/* onnx_control_test.c: models made by hand: branches, loops, functions, computed shapes, data in
 * other files. */
#include "base/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "bridge/onnx.h"
#include "io/protobuf.h"

/* ---- making models ---- */

static tutti_onnx *begin(void)
{
    tutti_onnx *onnx;
    CHECK_OK(tutti__onnx_create(&onnx));
    onnx->ir_version = 8;
    onnx->opset = 17;
    onnx->graph.name = "hand";
    return onnx;
}

static void add_name(tutti_onnx *onnx, tutti_onnx_names *list, const char *name)
{
    const char **slot = ONNX_PUSH(&onnx->arena, list);
    CHECK(slot != NULL);
    *slot = name;
}

static void add_names(tutti_onnx *onnx, tutti_onnx_names *list, const char *names)
{
    char *copy = tutti__arena_take(&onnx->arena, strlen(names) + 1), *rest = NULL;
    CHECK(copy != NULL);
    memcpy(copy, names, strlen(names) + 1);
    for (char *part = strtok_r(copy, " ", &rest); part; part = strtok_r(NULL, " ", &rest))
        add_name(onnx, list, strcmp(part, "-") == 0 ? "" : part);
}

/* Names are separated by blanks; "-" is an input that is not given. */
static tutti_onnx_node *add_node(tutti_onnx *onnx, tutti_onnx_graph *graph, const char *type,
                                 const char *inputs, const char *outputs)
{
    tutti_onnx_node *node = ONNX_PUSH(&onnx->arena, &graph->nodes);
    CHECK(node != NULL);
    *node = (tutti_onnx_node){.name = "", .type = type, .domain = ""};
    add_names(onnx, &node->inputs, inputs);
    add_names(onnx, &node->outputs, outputs);
    return node;
}

static tutti_onnx_attr *add_attr(tutti_onnx *onnx, tutti_onnx_node *node, const char *name,
                                 tutti_onnx_attr_kind kind)
{
    tutti_onnx_attr *attr = ONNX_PUSH(&onnx->arena, &node->attrs);
    CHECK(attr != NULL);
    attr->name = name;
    attr->s = attr->refers = "";
    attr->kind = kind;
    return attr;
}

static tutti_onnx_graph *add_graph(tutti_onnx *onnx, tutti_onnx_node *node, const char *name)
{
    tutti_onnx_attr *attr = add_attr(onnx, node, name, ONNX_GRAPH);
    attr->graph = tutti__arena_take(&onnx->arena, sizeof *attr->graph);
    CHECK(attr->graph != NULL);
    attr->graph->name = name;
    return attr->graph;
}

/* A port of floats; dims -1 are open. */
static void add_port(tutti_onnx *onnx, tutti_onnx_graph *graph, bool input, const char *name,
                     tutti_type type)
{
    tutti_onnx_value *value =
        input ? ONNX_PUSH(&onnx->arena, &graph->inputs) : ONNX_PUSH(&onnx->arena, &graph->outputs);
    CHECK(value != NULL);
    *value = (tutti_onnx_value){.name = name, .type = type, .ranked = true};
}

static void add_constant(tutti_onnx *onnx, tutti_onnx_graph *graph, const char *name,
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
static tutti_type type_of(tutti_dtype dtype, int rank, int64_t a, int64_t b)
{
    return tutti_type_make(dtype, rank, (int64_t[]){a, b});
}

static tutti_tensor *tensor_of(tutti_dtype dtype, int rank, int64_t a, int64_t b,
                               const double *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(dtype, rank, (int64_t[]){a, b}, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tensor;
}

/* Writes, reads again, builds, runs with these inputs; output 0 is the caller's. */
static tutti_status run(const tutti_onnx *made, int count, tutti_tensor *const *inputs,
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
        CHECK_OK(tutti_run(session, .target = tutti_initialize_all(graph)));
        tutti_fetch fetch = {ports.outputs[0].sym, ret};
        tutti_run_options run_options = {
            .struct_size = sizeof run_options, .feed = {count, feeds}, .fetch = {1, &fetch}};
        status = tutti_session_run(session, &run_options);
        tutti_session_close(session);
    }
    tutti_graph_destroy(graph);
    return status;
}

static void check_run(const tutti_onnx *onnx, int count, tutti_tensor *const *inputs,
                      int64_t elements, const double *expected)
{
    tutti_tensor *y = NULL;
    CHECK_OK(run(onnx, count, inputs, &y));
    CHECK_INT(tutti_tensor_count(y), elements);
    for (int64_t i = 0; i < elements; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), expected[i], 1e-5);
    tutti_tensor_release(y);
}

/* ---- If ---- */

/* if sum(x) > 0: x * w else: x - w, with w from around the branches. */
TUTTI_TEST(onnx_if_takes_one_branch)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = type_of(TUTTI_F32, 1, 2, 0);
    add_port(onnx, g, true, "x", vector);
    add_port(onnx, g, false, "y", vector);
    add_constant(onnx, g, "w", TUTTI_F32, 1, 2, NUMBERS(2, 3));
    add_constant(onnx, g, "zero", TUTTI_F32, 0, 0, NUMBERS(0));
    add_attr(onnx, add_node(onnx, g, "ReduceSum", "x", "sum"), "keepdims", ONNX_INT)->i = 0;
    add_node(onnx, g, "Greater", "sum zero", "more");
    tutti_onnx_node *choice = add_node(onnx, g, "If", "more", "y");
    tutti_onnx_graph *yes = add_graph(onnx, choice, "then_branch");
    add_node(onnx, yes, "Mul", "x w", "a");
    add_port(onnx, yes, false, "a", vector);
    tutti_onnx_graph *no = add_graph(onnx, choice, "else_branch");
    add_node(onnx, no, "Sub", "x w", "b");
    add_port(onnx, no, false, "b", vector);
    tutti_tensor *up = tensor_of(TUTTI_F32, 1, 2, 0, NUMBERS(1, 1));
    tutti_tensor *down = tensor_of(TUTTI_F32, 1, 2, 0, NUMBERS(-1, -1));
    check_run(onnx, 1, &up, 2, NUMBERS(2, 3));
    check_run(onnx, 1, &down, 2, NUMBERS(-3, -4));
    tutti_tensor_release(up);
    tutti_tensor_release(down);
    tutti__onnx_free(onnx);
}

/* ---- Loop ---- */

/* for i < n: total += x; gives total each round. n is an input, or a constant and unrolled. */
static tutti_onnx *make_loop(bool constant)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = type_of(TUTTI_F32, 1, 2, 0), flag = type_of(TUTTI_BOOL, 0, 0, 0);
    if (constant)
        add_constant(onnx, g, "n", TUTTI_I64, 0, 0, NUMBERS(3));
    else
        add_port(onnx, g, true, "n", type_of(TUTTI_I64, 0, 0, 0));
    add_port(onnx, g, true, "x", vector);
    add_port(onnx, g, false, "all", type_of(TUTTI_F32, 2, -1, 2));
    add_constant(onnx, g, "start", TUTTI_F32, 1, 2, NUMBERS(0, 0));
    tutti_onnx_graph *body =
        add_graph(onnx, add_node(onnx, g, "Loop", "n - start", "last all"), "body");
    add_port(onnx, body, true, "i", type_of(TUTTI_I64, 0, 0, 0));
    add_port(onnx, body, true, "go", flag);
    add_port(onnx, body, true, "before", vector);
    add_node(onnx, body, "Identity", "go", "on");
    add_node(onnx, body, "Add", "before x", "after");
    add_node(onnx, body, "Identity", "after", "given");
    add_port(onnx, body, false, "on", flag);
    add_port(onnx, body, false, "after", vector);
    add_port(onnx, body, false, "given", vector);
    return onnx;
}

TUTTI_TEST(onnx_loop_goes_as_often_as_data_says)
{
    tutti_onnx *onnx = make_loop(false);
    tutti_tensor *inputs[2] = {tensor_of(TUTTI_I64, 0, 0, 0, NUMBERS(4)),
                               tensor_of(TUTTI_F32, 1, 2, 0, NUMBERS(1, 2))};
    check_run(onnx, 2, inputs, 8, NUMBERS(1, 2, 2, 4, 3, 6, 4, 8));
    tutti_tensor_set_int(inputs[0], 0, 1);
    check_run(onnx, 2, inputs, 2, NUMBERS(1, 2));
    tutti_tensor_set_int(inputs[0], 0, 0);
    check_run(onnx, 2, inputs, 0, NULL);
    tutti_tensor_release(inputs[0]);
    tutti_tensor_release(inputs[1]);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_loop_of_known_rounds_is_built_in_place)
{
    tutti_onnx *onnx = make_loop(true);
    tutti_tensor *x = tensor_of(TUTTI_F32, 1, 2, 0, NUMBERS(1, 2));
    check_run(onnx, 1, &x, 6, NUMBERS(1, 2, 2, 4, 3, 6));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

/* ---- Scan ---- */

/* Running sums along axis 0 of [time, 2], whose time is known or not. */
static void check_scan(int64_t time)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = type_of(TUTTI_F32, 1, 2, 0);
    add_port(onnx, g, true, "x", type_of(TUTTI_F32, 2, time, 2));
    add_port(onnx, g, false, "sums", type_of(TUTTI_F32, 2, time, 2));
    add_constant(onnx, g, "start", TUTTI_F32, 1, 2, NUMBERS(10, 0));
    tutti_onnx_node *scan = add_node(onnx, g, "Scan", "start x", "last sums");
    add_attr(onnx, scan, "num_scan_inputs", ONNX_INT)->i = 1;
    tutti_onnx_graph *body = add_graph(onnx, scan, "body");
    add_port(onnx, body, true, "sum", vector);
    add_port(onnx, body, true, "row", vector);
    add_node(onnx, body, "Add", "sum row", "next");
    add_node(onnx, body, "Identity", "next", "out");
    add_port(onnx, body, false, "next", vector);
    add_port(onnx, body, false, "out", vector);
    tutti_tensor *x = tensor_of(TUTTI_F32, 2, 3, 2, NUMBERS(1, 2, 3, 4, 5, 6));
    check_run(onnx, 1, &x, 6, NUMBERS(11, 2, 14, 6, 19, 12));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_scan_runs_along_an_axis)
{
    check_scan(3);
    check_scan(-1);
}

/* ---- functions ---- */

/* twice(x, k) = act(k x) + x, with an attribute that the call gives or leaves out. */
TUTTI_TEST(onnx_functions_of_the_model_are_called)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph, body = {0};
    tutti_type vector = type_of(TUTTI_F32, 1, 2, 0);
    add_port(onnx, g, true, "x", vector);
    add_port(onnx, g, false, "y", vector);
    add_node(onnx, g, "Bent", "x", "a")->domain = "mine";
    tutti_onnx_node *call = add_node(onnx, g, "Bent", "a", "y");
    call->domain = "mine";
    add_attr(onnx, call, "slope", ONNX_FLOAT)->f = 0.5f;
    add_name(onnx, &onnx->domains, "mine");
    tutti_onnx_attr *slope =
        add_attr(onnx, add_node(onnx, &body, "LeakyRelu", "in", "bent"), "alpha", ONNX_FLOAT);
    slope->refers = "slope";
    add_node(onnx, &body, "Add", "bent in", "out");
    tutti_onnx_function *f = ONNX_PUSH(&onnx->arena, &onnx->functions);
    CHECK(f != NULL);
    *f = (tutti_onnx_function){.name = "Bent", .domain = "mine", .opset = 17};
    add_names(onnx, &f->inputs, "in");
    add_names(onnx, &f->outputs, "out");
    f->nodes.items = body.nodes.items;
    f->nodes.count = f->nodes.capacity = body.nodes.count;
    tutti_onnx_attr *usual = ONNX_PUSH(&onnx->arena, &f->defaults);
    CHECK(usual != NULL);
    *usual =
        (tutti_onnx_attr){.name = "slope", .kind = ONNX_FLOAT, .f = 0.25f, .s = "", .refers = ""};
    tutti_tensor *x = tensor_of(TUTTI_F32, 1, 2, 0, NUMBERS(1, -2));
    /* bent by 0.25: (2, -2.5), then by 0.5: (4, -3.75) */
    check_run(onnx, 1, &x, 2, NUMBERS(4, -3.75));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_functions_that_call_themselves_are_refused)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph, body = {0};
    tutti_tensor *y;
    add_port(onnx, g, true, "x", type_of(TUTTI_F32, 1, 2, 0));
    add_port(onnx, g, false, "y", type_of(TUTTI_F32, 1, 2, 0));
    add_node(onnx, g, "Round", "x", "y")->domain = "mine";
    add_node(onnx, &body, "Round", "in", "out")->domain = "mine";
    tutti_onnx_function *f = ONNX_PUSH(&onnx->arena, &onnx->functions);
    CHECK(f != NULL);
    *f = (tutti_onnx_function){.name = "Round", .domain = "mine"};
    add_names(onnx, &f->inputs, "in");
    add_names(onnx, &f->outputs, "out");
    f->nodes.items = body.nodes.items;
    f->nodes.count = f->nodes.capacity = 1;
    CHECK_STATUS(run(onnx, 0, NULL, &y), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "nest deeper");
    tutti__onnx_free(onnx);
}

/* ---- computed shapes ---- */

/* reshape(x, [shape(x)[0], -1]) of [batch, 2, 2], and back to [shape(x)[0] * 2, 2]. */
TUTTI_TEST(onnx_shapes_are_computed_beside_an_open_batch)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    add_port(onnx, g, true, "x", tutti_type_make(TUTTI_F32, 3, (int64_t[]){-1, 2, 2}));
    add_port(onnx, g, false, "y", type_of(TUTTI_F32, 2, -1, 4));
    add_constant(onnx, g, "first", TUTTI_I64, 0, 0, NUMBERS(0));
    add_constant(onnx, g, "open", TUTTI_I64, 1, 1, NUMBERS(-1));
    add_constant(onnx, g, "axis", TUTTI_I64, 1, 1, NUMBERS(0));
    tutti_tensor *w = tensor_of(TUTTI_F32, 2, 4, 1, NUMBERS(1, 10, 100, 1000));
    CHECK_OK(tutti__onnx_keep(onnx, w));
    *ONNX_PUSH(&onnx->arena, &g->initializers) = (tutti_onnx_tensor){"w", w};
    add_node(onnx, g, "Shape", "x", "shape");
    add_attr(onnx, add_node(onnx, g, "Gather", "shape first", "batch"), "axis", ONNX_INT)->i = 0;
    add_node(onnx, g, "Unsqueeze", "batch axis", "list");
    add_attr(onnx, add_node(onnx, g, "Concat", "list open", "to"), "axis", ONNX_INT)->i = 0;
    add_node(onnx, g, "Reshape", "x to", "flat");
    add_node(onnx, g, "MatMul", "flat w", "y");
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){3, 2, 2}, &x));
    for (int i = 0; i < 12; i++)
        tutti_tensor_set(x, i, i);
    check_run(onnx, 1, &x, 3, NUMBERS(3210, 7654, 12098));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

/* Two open dimensions: expand to [n, m] of another input's shape, computed element by element. */
TUTTI_TEST(onnx_shapes_may_be_open_in_several_places)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    add_port(onnx, g, true, "x", type_of(TUTTI_F32, 2, -1, -1));
    add_port(onnx, g, false, "y", type_of(TUTTI_F32, 2, -1, -1));
    add_constant(onnx, g, "both", TUTTI_I64, 1, 2, NUMBERS(1, 0));
    add_constant(onnx, g, "two", TUTTI_I64, 1, 2, NUMBERS(1, 1));
    add_node(onnx, g, "Shape", "x", "shape");
    add_attr(onnx, add_node(onnx, g, "Gather", "shape both", "turned"), "axis", ONNX_INT)->i = 0;
    add_node(onnx, g, "Mul", "turned two", "to");
    add_node(onnx, g, "Reshape", "x to", "y");
    tutti_tensor *x = tensor_of(TUTTI_F32, 2, 2, 3, NUMBERS(1, 2, 3, 4, 5, 6)), *y;
    CHECK_OK(run(onnx, 1, &x, &y));
    CHECK_INT(tutti_tensor_dims(y)[0], 3);
    CHECK_INT(tutti_tensor_dims(y)[1], 2);
    CHECK_NEAR(tutti_tensor_get(y, 5), 6, 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti__onnx_free(onnx);
}

/* ---- places ---- */

/* The maximum of each window of x [1, 1, 4, 4], 15 to 0, goes back to where it was: MaxPool gives
 * the places, MaxUnpool takes them. */
TUTTI_TEST(onnx_maxima_go_back_to_their_places)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type image = tutti_type_make(TUTTI_F32, 4, (int64_t[]){1, 1, 4, 4});
    static const int64_t two[] = {2, 2};
    tutti_tensor *x, *y;
    add_port(onnx, g, true, "x", image);
    add_port(onnx, g, false, "z", image);
    for (int i = 0; i < 4; i++) {
        tutti_onnx_node *node = i == 0   ? add_node(onnx, g, "MaxPool", "x", "y at")
                                : i == 2 ? add_node(onnx, g, "MaxUnpool", "y at", "z")
                                         : &g->nodes.items[i / 2];
        tutti_onnx_attr *attr = add_attr(onnx, node, i % 2 ? "strides" : "kernel_shape", ONNX_INTS);
        attr->ints.items = (int64_t *)two;
        attr->ints.count = 2;
    }
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, image.dims, &x));
    for (int i = 0; i < 16; i++)
        tutti_tensor_set(x, i, 15 - i);
    CHECK_OK(run(onnx, 1, &x, &y));
    for (int i = 0; i < 16; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), i / 4 % 2 == 0 && i % 2 == 0 ? 15 - i : 0, 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti__onnx_free(onnx);
}

/* ---- what is missing ---- */

TUTTI_TEST(onnx_names_what_nodes_cannot_do_all_at_once)
{
    tutti_onnx *onnx = begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type image = tutti_type_make(TUTTI_F32, 4, (int64_t[]){1, 1, 4, 4});
    tutti_tensor *y;
    add_port(onnx, g, true, "x", image);
    add_port(onnx, g, false, "z", image);
    add_port(onnx, g, false, "s", image);
    static const int64_t four[] = {2, 2, 2, 2};
    for (int i = 0; i < 2; i++) { /* pooling over four axes */
        tutti_onnx_attr *attr =
            add_attr(onnx, add_node(onnx, g, "MaxPool", i ? "y" : "x", i ? "z b" : "y a"),
                     "kernel_shape", ONNX_INTS);
        attr->ints.items = (int64_t *)four;
        attr->ints.count = 4;
    }
    add_node(onnx, g, "StringNormalizer", "x", "s");
    tutti_onnx_attr *words = add_attr(onnx, &g->nodes.items[2], "stopwords", ONNX_STRINGS);
    static const char *const stop[] = {"the"};
    words->strings.items = (const char **)stop;
    words->strings.count = 1;
    CHECK_STATUS(run(onnx, 0, NULL, &y), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "is over 4 axes");
    CHECK_CONTAINS(tutti_error_message(), "stopwords");
    tutti__onnx_free(onnx);
}

/* ---- data outside the file ---- */

/* A model whose weight stands in `location`, y = x w. */
static void write_outside(const char *path, const char *location, int64_t offset)
{
    tutti_text graph = {0}, text = {0};
    char number[32];
    size_t node = tutti__proto_open(&graph, 1);
    tutti__proto_put_string(&graph, 1, "x");
    tutti__proto_put_string(&graph, 1, "w");
    tutti__proto_put_string(&graph, 2, "y");
    tutti__proto_put_string(&graph, 4, "Mul");
    tutti__proto_close(&graph, node);
    size_t tensor = tutti__proto_open(&graph, 5);
    tutti__proto_put_int(&graph, 1, 2);
    tutti__proto_put_int(&graph, 2, 1);
    tutti__proto_put_string(&graph, 8, "w");
    snprintf(number, sizeof number, "%lld", (long long)offset);
    const char *entries[][2] = {{"location", location}, {"offset", number}, {"length", "8"}};
    for (int i = 0; i < 3; i++) {
        size_t entry = tutti__proto_open(&graph, 13);
        tutti__proto_put_string(&graph, 1, entries[i][0]);
        tutti__proto_put_string(&graph, 2, entries[i][1]);
        tutti__proto_close(&graph, entry);
    }
    tutti__proto_put_int(&graph, 14, 1);
    tutti__proto_close(&graph, tensor);
    for (uint32_t port = 11; port < 13; port++) {
        size_t value = tutti__proto_open(&graph, port);
        tutti__proto_put_string(&graph, 1, port == 11 ? "x" : "y");
        size_t type = tutti__proto_open(&graph, 2), inner = tutti__proto_open(&graph, 1);
        tutti__proto_put_int(&graph, 1, 1);
        size_t shape = tutti__proto_open(&graph, 2), dim = tutti__proto_open(&graph, 1);
        tutti__proto_put_int(&graph, 1, 2);
        tutti__proto_close(&graph, dim);
        tutti__proto_close(&graph, shape);
        tutti__proto_close(&graph, inner);
        tutti__proto_close(&graph, type);
        tutti__proto_close(&graph, value);
    }
    tutti__proto_put_int(&text, 1, 8);
    tutti__proto_put_bytes(&text, 7, graph.data, graph.size);
    size_t opset = tutti__proto_open(&text, 8);
    tutti__proto_put_int(&text, 2, 17);
    tutti__proto_close(&text, opset);
    const tutti_world *world = tutti__world();
    CHECK_OK(world->write_file(world->self, path, text.data, text.size));
    tutti__text_free(&graph);
    tutti__text_free(&text);
}

TUTTI_TEST(onnx_reads_data_in_its_folder_and_nowhere_else)
{
    char folder[64], model[128], data[128], link_path[128];
    static const float weights[] = {0, 3, 4};
    const tutti_world *world = tutti__world();
    tutti_onnx *onnx;
    snprintf(folder, sizeof folder, "/tmp/tutti_outside_%d", (int)getpid());
    snprintf(model, sizeof model, "%s/m.onnx", folder);
    snprintf(data, sizeof data, "%s/w.bin", folder);
    snprintf(link_path, sizeof link_path, "%s/away.bin", folder);
    CHECK_OK(world->make_folder(world->self, folder));
    CHECK_OK(world->write_file(world->self, data, weights, sizeof weights));
    write_outside(model, "w.bin", 4);
    CHECK_OK(tutti__onnx_load(model, &onnx));
    CHECK_NEAR(tutti_tensor_get(onnx->graph.initializers.items[0].value, 0), 3, 0);
    CHECK_NEAR(tutti_tensor_get(onnx->graph.initializers.items[0].value, 1), 4, 0);
    tutti__onnx_free(onnx);
    CHECK(symlink("/etc/hostname", link_path) == 0);
    static const char *const wrong[] = {"../w.bin", "/etc/hostname", "a/../../w.bin", "",
                                        "away.bin"};
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        write_outside(model, wrong[i], 0);
        CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "folder");
    }
    write_outside(model, "w.bin", 8); /* runs over the end */
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_CORRUPT);
    write_outside(model, "w.bin", -4);
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_CORRUPT);
    write_outside(model, "none.bin", 0);
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_NOT_FOUND);
    remove(link_path);
    remove(model);
    remove(data);
    rmdir(folder);
}
