/* onnx_hand_test.c: models made by hand: functions, computed shapes, what nodes cannot do. */
#include "bridge/onnx_hand_test.h"

/* ---- functions ---- */

/* twice(x, k) = act(k x) + x, with an attribute that the call gives or leaves out. */
TUTTI_TEST(onnx_functions_of_the_model_are_called)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph, body = {0};
    tutti_type vector = hand_type(TUTTI_F32, 1, 2, 0);
    hand_port(onnx, g, true, "x", vector);
    hand_port(onnx, g, false, "y", vector);
    hand_node(onnx, g, "Bent", "x", "a")->domain = "mine";
    tutti_onnx_node *call = hand_node(onnx, g, "Bent", "a", "y");
    call->domain = "mine";
    hand_attr(onnx, call, "slope", ONNX_FLOAT)->f = 0.5f;
    hand_name(onnx, &onnx->domains, "mine");
    tutti_onnx_attr *slope =
        hand_attr(onnx, hand_node(onnx, &body, "LeakyRelu", "in", "bent"), "alpha", ONNX_FLOAT);
    slope->refers = "slope";
    hand_node(onnx, &body, "Add", "bent in", "out");
    tutti_onnx_function *f = ONNX_PUSH(&onnx->arena, &onnx->functions);
    CHECK(f != NULL);
    *f = (tutti_onnx_function){.name = "Bent", .domain = "mine", .opset = 17};
    hand_names(onnx, &f->inputs, "in");
    hand_names(onnx, &f->outputs, "out");
    f->nodes.items = body.nodes.items;
    f->nodes.count = f->nodes.capacity = body.nodes.count;
    tutti_onnx_attr *usual = ONNX_PUSH(&onnx->arena, &f->defaults);
    CHECK(usual != NULL);
    *usual =
        (tutti_onnx_attr){.name = "slope", .kind = ONNX_FLOAT, .f = 0.25f, .s = "", .refers = ""};
    tutti_tensor *x = hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(1, -2));
    /* bent by 0.25: (2, -2.5), then by 0.5: (4, -3.75) */
    hand_gives(onnx, 1, &x, 2, NUMBERS(4, -3.75));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_functions_that_call_themselves_are_refused)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph, body = {0};
    tutti_tensor *y;
    hand_port(onnx, g, true, "x", hand_type(TUTTI_F32, 1, 2, 0));
    hand_port(onnx, g, false, "y", hand_type(TUTTI_F32, 1, 2, 0));
    hand_node(onnx, g, "Round", "x", "y")->domain = "mine";
    hand_node(onnx, &body, "Round", "in", "out")->domain = "mine";
    tutti_onnx_function *f = ONNX_PUSH(&onnx->arena, &onnx->functions);
    CHECK(f != NULL);
    *f = (tutti_onnx_function){.name = "Round", .domain = "mine"};
    hand_names(onnx, &f->inputs, "in");
    hand_names(onnx, &f->outputs, "out");
    f->nodes.items = body.nodes.items;
    f->nodes.count = f->nodes.capacity = 1;
    CHECK_STATUS(hand_run(onnx, 0, NULL, &y), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "nest deeper");
    tutti__onnx_free(onnx);
}

/* ---- computed shapes ---- */

/* reshape(x, [shape(x)[0], -1]) of [batch, 2, 2], and back to [shape(x)[0] * 2, 2]. */
TUTTI_TEST(onnx_shapes_are_computed_beside_an_open_batch)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    hand_port(onnx, g, true, "x", tutti_type_make(TUTTI_F32, 3, (int64_t[]){-1, 2, 2}));
    hand_port(onnx, g, false, "y", hand_type(TUTTI_F32, 2, -1, 4));
    hand_constant(onnx, g, "first", TUTTI_I64, 0, 0, NUMBERS(0));
    hand_constant(onnx, g, "open", TUTTI_I64, 1, 1, NUMBERS(-1));
    hand_constant(onnx, g, "axis", TUTTI_I64, 1, 1, NUMBERS(0));
    tutti_tensor *w = hand_tensor(TUTTI_F32, 2, 4, 1, NUMBERS(1, 10, 100, 1000));
    CHECK_OK(tutti__onnx_keep(onnx, w));
    *ONNX_PUSH(&onnx->arena, &g->initializers) = (tutti_onnx_tensor){"w", w};
    hand_node(onnx, g, "Shape", "x", "shape");
    hand_attr(onnx, hand_node(onnx, g, "Gather", "shape first", "batch"), "axis", ONNX_INT)->i = 0;
    hand_node(onnx, g, "Unsqueeze", "batch axis", "list");
    hand_attr(onnx, hand_node(onnx, g, "Concat", "list open", "to"), "axis", ONNX_INT)->i = 0;
    hand_node(onnx, g, "Reshape", "x to", "flat");
    hand_node(onnx, g, "MatMul", "flat w", "y");
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){3, 2, 2}, &x));
    for (int i = 0; i < 12; i++)
        tutti_tensor_set(x, i, i);
    hand_gives(onnx, 1, &x, 3, NUMBERS(3210, 7654, 12098));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

/* Two open dimensions: expand to [n, m] of another input's shape, computed element by element. */
TUTTI_TEST(onnx_shapes_may_be_open_in_several_places)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    hand_port(onnx, g, true, "x", hand_type(TUTTI_F32, 2, -1, -1));
    hand_port(onnx, g, false, "y", hand_type(TUTTI_F32, 2, -1, -1));
    hand_constant(onnx, g, "both", TUTTI_I64, 1, 2, NUMBERS(1, 0));
    hand_constant(onnx, g, "two", TUTTI_I64, 1, 2, NUMBERS(1, 1));
    hand_node(onnx, g, "Shape", "x", "shape");
    hand_attr(onnx, hand_node(onnx, g, "Gather", "shape both", "turned"), "axis", ONNX_INT)->i = 0;
    hand_node(onnx, g, "Mul", "turned two", "to");
    hand_node(onnx, g, "Reshape", "x to", "y");
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 2, 3, NUMBERS(1, 2, 3, 4, 5, 6)), *y;
    CHECK_OK(hand_run(onnx, 1, &x, &y));
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
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type image = tutti_type_make(TUTTI_F32, 4, (int64_t[]){1, 1, 4, 4});
    static const int64_t two[] = {2, 2};
    tutti_tensor *x, *y;
    hand_port(onnx, g, true, "x", image);
    hand_port(onnx, g, false, "z", image);
    for (int i = 0; i < 4; i++) {
        tutti_onnx_node *node = i == 0   ? hand_node(onnx, g, "MaxPool", "x", "y at")
                                : i == 2 ? hand_node(onnx, g, "MaxUnpool", "y at", "z")
                                         : &g->nodes.items[i / 2];
        tutti_onnx_attr *attr =
            hand_attr(onnx, node, i % 2 ? "strides" : "kernel_shape", ONNX_INTS);
        attr->ints.items = (int64_t *)two;
        attr->ints.count = 2;
    }
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, image.dims, &x));
    for (int i = 0; i < 16; i++)
        tutti_tensor_set(x, i, 15 - i);
    CHECK_OK(hand_run(onnx, 1, &x, &y));
    for (int i = 0; i < 16; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), i / 4 % 2 == 0 && i % 2 == 0 ? 15 - i : 0, 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti__onnx_free(onnx);
}

/* ---- what is missing ---- */

TUTTI_TEST(onnx_names_what_nodes_cannot_do_all_at_once)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type image = tutti_type_make(TUTTI_F32, 4, (int64_t[]){1, 1, 4, 4});
    tutti_tensor *y;
    hand_port(onnx, g, true, "x", image);
    hand_port(onnx, g, false, "z", image);
    hand_port(onnx, g, false, "s", image);
    static const int64_t four[] = {2, 2, 2, 2};
    for (int i = 0; i < 2; i++) { /* pooling over four axes */
        tutti_onnx_attr *attr =
            hand_attr(onnx, hand_node(onnx, g, "MaxPool", i ? "y" : "x", i ? "z b" : "y a"),
                      "kernel_shape", ONNX_INTS);
        attr->ints.items = (int64_t *)four;
        attr->ints.count = 4;
    }
    hand_node(onnx, g, "StringNormalizer", "x", "s");
    tutti_onnx_attr *words = hand_attr(onnx, &g->nodes.items[2], "stopwords", ONNX_STRINGS);
    static const char *const stop[] = {"the"};
    words->strings.items = (const char **)stop;
    words->strings.count = 1;
    CHECK_STATUS(hand_run(onnx, 0, NULL, &y), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "is over 4 axes");
    CHECK_CONTAINS(tutti_error_message(), "stopwords");
    tutti__onnx_free(onnx);
}
