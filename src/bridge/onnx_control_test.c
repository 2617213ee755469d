/* onnx_control_test.c: branches and loops, in models made by hand. */
#include "bridge/onnx_hand_test.h"

/* ---- If ---- */

/* if sum(x) > 0: x * w else: x - w, with w from around the branches. */
TUTTI_TEST(onnx_if_takes_one_branch)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = hand_type(TUTTI_F32, 1, 2, 0);
    hand_port(onnx, g, true, "x", vector);
    hand_port(onnx, g, false, "y", vector);
    hand_constant(onnx, g, "w", TUTTI_F32, 1, 2, NUMBERS(2, 3));
    hand_constant(onnx, g, "zero", TUTTI_F32, 0, 0, NUMBERS(0));
    hand_attr(onnx, hand_node(onnx, g, "ReduceSum", "x", "sum"), "keepdims", ONNX_INT)->i = 0;
    hand_node(onnx, g, "Greater", "sum zero", "more");
    tutti_onnx_node *choice = hand_node(onnx, g, "If", "more", "y");
    tutti_onnx_graph *yes = hand_graph(onnx, choice, "then_branch");
    hand_node(onnx, yes, "Mul", "x w", "a");
    hand_port(onnx, yes, false, "a", vector);
    tutti_onnx_graph *no = hand_graph(onnx, choice, "else_branch");
    hand_node(onnx, no, "Sub", "x w", "b");
    hand_port(onnx, no, false, "b", vector);
    tutti_tensor *up = hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(1, 1));
    tutti_tensor *down = hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(-1, -1));
    hand_gives(onnx, 1, &up, 2, NUMBERS(2, 3));
    hand_gives(onnx, 1, &down, 2, NUMBERS(-3, -4));
    tutti_tensor_release(up);
    tutti_tensor_release(down);
    tutti__onnx_free(onnx);
}

/* ---- Loop ---- */

/* for i < n: total += x; gives total each round. n is an input, or a constant and unrolled. */
static tutti_onnx *make_loop(bool constant)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = hand_type(TUTTI_F32, 1, 2, 0), flag = hand_type(TUTTI_BOOL, 0, 0, 0);
    if (constant)
        hand_constant(onnx, g, "n", TUTTI_I64, 0, 0, NUMBERS(3));
    else
        hand_port(onnx, g, true, "n", hand_type(TUTTI_I64, 0, 0, 0));
    hand_port(onnx, g, true, "x", vector);
    hand_port(onnx, g, false, "all", hand_type(TUTTI_F32, 2, -1, 2));
    hand_constant(onnx, g, "start", TUTTI_F32, 1, 2, NUMBERS(0, 0));
    tutti_onnx_graph *body =
        hand_graph(onnx, hand_node(onnx, g, "Loop", "n - start", "last all"), "body");
    hand_port(onnx, body, true, "i", hand_type(TUTTI_I64, 0, 0, 0));
    hand_port(onnx, body, true, "go", flag);
    hand_port(onnx, body, true, "before", vector);
    hand_node(onnx, body, "Identity", "go", "on");
    hand_node(onnx, body, "Add", "before x", "after");
    hand_node(onnx, body, "Identity", "after", "given");
    hand_port(onnx, body, false, "on", flag);
    hand_port(onnx, body, false, "after", vector);
    hand_port(onnx, body, false, "given", vector);
    return onnx;
}

TUTTI_TEST(onnx_loop_goes_as_often_as_data_says)
{
    tutti_onnx *onnx = make_loop(false);
    tutti_tensor *inputs[2] = {hand_tensor(TUTTI_I64, 0, 0, 0, NUMBERS(4)),
                               hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(1, 2))};
    hand_gives(onnx, 2, inputs, 8, NUMBERS(1, 2, 2, 4, 3, 6, 4, 8));
    tutti_tensor_set_int(inputs[0], 0, 1);
    hand_gives(onnx, 2, inputs, 2, NUMBERS(1, 2));
    tutti_tensor_set_int(inputs[0], 0, 0);
    hand_gives(onnx, 2, inputs, 0, NULL);
    tutti_tensor_release(inputs[0]);
    tutti_tensor_release(inputs[1]);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_loop_of_known_rounds_is_built_in_place)
{
    tutti_onnx *onnx = make_loop(true);
    tutti_tensor *x = hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(1, 2));
    hand_gives(onnx, 1, &x, 6, NUMBERS(1, 2, 2, 4, 3, 6));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

/* ---- Scan ---- */

/* Running sums along axis 0 of [time, 2], whose time is known or not. */
static void check_scan(int64_t time)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = hand_type(TUTTI_F32, 1, 2, 0);
    hand_port(onnx, g, true, "x", hand_type(TUTTI_F32, 2, time, 2));
    hand_port(onnx, g, false, "sums", hand_type(TUTTI_F32, 2, time, 2));
    hand_constant(onnx, g, "start", TUTTI_F32, 1, 2, NUMBERS(10, 0));
    tutti_onnx_node *scan = hand_node(onnx, g, "Scan", "start x", "last sums");
    hand_attr(onnx, scan, "num_scan_inputs", ONNX_INT)->i = 1;
    tutti_onnx_graph *body = hand_graph(onnx, scan, "body");
    hand_port(onnx, body, true, "sum", vector);
    hand_port(onnx, body, true, "row", vector);
    hand_node(onnx, body, "Add", "sum row", "next");
    hand_node(onnx, body, "Identity", "next", "out");
    hand_port(onnx, body, false, "next", vector);
    hand_port(onnx, body, false, "out", vector);
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 3, 2, NUMBERS(1, 2, 3, 4, 5, 6));
    hand_gives(onnx, 1, &x, 6, NUMBERS(11, 2, 14, 6, 19, 12));
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_scan_runs_along_an_axis)
{
    check_scan(3);
    check_scan(-1);
}
