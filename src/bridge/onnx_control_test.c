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

/* ---- lists ---- */

static void hand_list(tutti_onnx *onnx, tutti_onnx_graph *graph, bool input, const char *name)
{
    tutti_onnx_value *value =
        input ? ONNX_PUSH(&onnx->arena, &graph->inputs) : ONNX_PUSH(&onnx->arena, &graph->outputs);
    CHECK(value != NULL);
    *value = (tutti_onnx_value){.name = name, .other = true};
}

/* for i < n: after = body of (i, before); the list that the loop begins with is `start`. Nodes of
 * the body are to be added. */
static tutti_onnx_graph *list_loop(tutti_onnx *onnx, const char *inputs)
{
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type flag = hand_type(TUTTI_BOOL, 0, 0, 0);
    hand_port(onnx, g, true, "n", hand_type(TUTTI_I64, 0, 0, 0));
    hand_port(onnx, g, true, "x", hand_type(TUTTI_F32, 2, -1, 2));
    tutti_onnx_graph *body = hand_graph(onnx, hand_node(onnx, g, "Loop", inputs, "list"), "body");
    hand_port(onnx, body, true, "i", hand_type(TUTTI_I64, 0, 0, 0));
    hand_port(onnx, body, true, "go", flag);
    hand_list(onnx, body, true, "before");
    hand_node(onnx, body, "Identity", "go", "on");
    hand_port(onnx, body, false, "on", flag);
    hand_list(onnx, body, false, "after");
    return body;
}

static tutti_onnx_node *with_int(tutti_onnx *onnx, tutti_onnx_node *node, const char *name,
                                 int64_t value)
{
    hand_attr(onnx, node, name, ONNX_INT)->i = value;
    return node;
}

/* Runs the loop for n rounds over x = [[1, 2], [3, 4], [5, 6]]. */
static void check_list(tutti_onnx *onnx, int64_t n, int64_t count, const double *expected)
{
    hand_port(onnx, &onnx->graph, false, "y", hand_type(TUTTI_F32, 2, -1, -1));
    tutti_tensor *inputs[2] = {hand_tensor(TUTTI_I64, 0, 0, 0, NUMBERS((double)n)),
                               hand_tensor(TUTTI_F32, 2, 3, 2, NUMBERS(1, 2, 3, 4, 5, 6))};
    hand_gives(onnx, 2, inputs, count, expected);
    tutti_tensor_release(inputs[0]);
    tutti_tensor_release(inputs[1]);
    tutti__onnx_free(onnx);
}

/* Appends x[i]; the tensors are stacked along a new axis, or joined along the last one. */
TUTTI_TEST(onnx_loop_fills_a_list)
{
    for (int stack = 0; stack < 2; stack++) {
        tutti_onnx *onnx = hand_begin();
        hand_node(onnx, &onnx->graph, "SequenceEmpty", "", "start");
        tutti_onnx_graph *body = list_loop(onnx, "n - start");
        with_int(onnx, hand_node(onnx, body, "Gather", "x i", "row"), "axis", 0);
        hand_node(onnx, body, "SequenceInsert", "before row", "after");
        tutti_onnx_node *all = hand_node(onnx, &onnx->graph, "ConcatFromSequence", "list", "y");
        with_int(onnx, with_int(onnx, all, "axis", stack ? 1 : 0), "new_axis", stack);
        check_list(onnx, 3, 6, stack ? NUMBERS(1, 3, 5, 2, 4, 6) : NUMBERS(1, 2, 3, 4, 5, 6));
    }
}

/* Tensors of different sizes, [i + 1, 2], one before the other from the second on. */
TUTTI_TEST(onnx_list_of_tensors_of_different_sizes)
{
    tutti_onnx *onnx = hand_begin();
    hand_constant(onnx, &onnx->graph, "one", TUTTI_I64, 1, 1, NUMBERS(1));
    hand_constant(onnx, &onnx->graph, "zero", TUTTI_I64, 1, 1, NUMBERS(0));
    hand_constant(onnx, &onnx->graph, "first", TUTTI_I64, 0, 0, NUMBERS(0));
    hand_node(onnx, &onnx->graph, "SequenceEmpty", "", "start");
    tutti_onnx_graph *body = list_loop(onnx, "n - start");
    hand_node(onnx, body, "Add", "i one", "end");
    hand_node(onnx, body, "Slice", "x zero end zero", "rows");
    hand_node(onnx, body, "SequenceInsert", "before rows first", "after");
    tutti_onnx_node *all = hand_node(onnx, &onnx->graph, "ConcatFromSequence", "list", "y");
    with_int(onnx, all, "axis", 0);
    check_list(onnx, 2, 6, NUMBERS(1, 2, 3, 4, 1, 2));
}

/* A list that begins with x; each round puts twice its last tensor behind it, and takes the first
 * away in the end. */
TUTTI_TEST(onnx_list_gives_and_loses_tensors)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    hand_constant(onnx, g, "last", TUTTI_I64, 0, 0, NUMBERS(-1));
    hand_constant(onnx, g, "first", TUTTI_I64, 0, 0, NUMBERS(0));
    hand_node(onnx, g, "SequenceConstruct", "x", "start");
    tutti_onnx_graph *body = list_loop(onnx, "n - start");
    hand_node(onnx, body, "SequenceAt", "before last", "one");
    hand_node(onnx, body, "Add", "one one", "two");
    hand_node(onnx, body, "SequenceInsert", "before two", "after");
    hand_node(onnx, g, "SequenceErase", "list first", "less");
    hand_node(onnx, g, "SequenceLength", "less", "length");
    with_int(onnx, hand_node(onnx, g, "Cast", "length", "scale"), "to", 1);
    hand_node(onnx, g, "SequenceAt", "less first", "left");
    hand_node(onnx, g, "Mul", "left scale", "y");
    check_list(onnx, 2, 6, NUMBERS(4, 8, 12, 16, 20, 24));
}

/* Rows whose first element is above a limit: a branch adds, the other does not. */
TUTTI_TEST(onnx_branch_fills_a_list)
{
    tutti_onnx *onnx = hand_begin();
    hand_constant(onnx, &onnx->graph, "limit", TUTTI_F32, 0, 0, NUMBERS(7));
    hand_node(onnx, &onnx->graph, "SequenceEmpty", "", "start");
    tutti_onnx_graph *body = list_loop(onnx, "n - start");
    with_int(onnx, hand_node(onnx, body, "Gather", "x i", "row"), "axis", 0);
    with_int(onnx, hand_node(onnx, body, "ReduceSum", "row", "sum"), "keepdims", 0);
    hand_node(onnx, body, "GreaterOrEqual", "sum limit", "high");
    tutti_onnx_node *choice = hand_node(onnx, body, "If", "high", "after");
    tutti_onnx_graph *yes = hand_graph(onnx, choice, "then_branch");
    hand_node(onnx, yes, "SequenceInsert", "before row", "more");
    hand_list(onnx, yes, false, "more");
    tutti_onnx_graph *no = hand_graph(onnx, choice, "else_branch");
    hand_node(onnx, no, "Identity", "before", "same");
    hand_list(onnx, no, false, "same");
    tutti_onnx_node *all = hand_node(onnx, &onnx->graph, "ConcatFromSequence", "list", "y");
    with_int(onnx, with_int(onnx, all, "axis", 0), "new_axis", 1);
    check_list(onnx, 3, 4, NUMBERS(3, 4, 5, 6));
}

/* What cannot be one list is named: ranks that differ, a list as an output. */
TUTTI_TEST(onnx_names_lists_that_cannot_be)
{
    for (int output = 0; output < 2; output++) {
        tutti_onnx *onnx = hand_begin();
        tutti_tensor *y;
        hand_node(onnx, &onnx->graph, "SequenceConstruct", "x", "start");
        tutti_onnx_graph *body = list_loop(onnx, "n - start");
        with_int(onnx, hand_node(onnx, body, "Gather", "x i", "row"), "axis", 0);
        hand_node(onnx, body, "SequenceInsert", output ? "before x" : "before row", "after");
        hand_list(onnx, &onnx->graph, false, "list");
        CHECK_STATUS(hand_run(onnx, 0, NULL, &y), TUTTI_UNSUPPORTED);
        CHECK_CONTAINS(tutti_error_message(), output ? "ConcatFromSequence" : "ranks");
        tutti__onnx_free(onnx);
    }
}

/* Loops in loops in loops are built as often as their rounds say, up to a limit. */
TUTTI_TEST(onnx_refuses_loops_that_grow_without_end)
{
    tutti_onnx *onnx = hand_begin();
    tutti_onnx_graph *g = &onnx->graph;
    tutti_type vector = hand_type(TUTTI_F32, 1, 2, 0), flag = hand_type(TUTTI_BOOL, 0, 0, 0);
    tutti_tensor *y;
    hand_port(onnx, g, true, "x", vector);
    hand_port(onnx, g, false, "x0", vector);
    hand_constant(onnx, g, "n", TUTTI_I64, 0, 0, NUMBERS(64));
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4"};
    for (int depth = 0; depth < 4; depth++) {
        const char *inputs = depth == 0 ? "n - x" : "n - v";
        tutti_onnx_graph *body =
            hand_graph(onnx, hand_node(onnx, g, "Loop", inputs, names[depth]), "body");
        hand_port(onnx, body, true, "i", hand_type(TUTTI_I64, 0, 0, 0));
        hand_port(onnx, body, true, "go", flag);
        hand_port(onnx, body, true, "v", vector);
        hand_node(onnx, body, "Identity", "go", "on");
        hand_port(onnx, body, false, "on", flag);
        hand_port(onnx, body, false, names[depth + 1], vector);
        g = body;
    }
    hand_node(onnx, g, "Identity", "v", "x4");
    CHECK_STATUS(hand_run(onnx, 0, NULL, &y), TUTTI_TOO_LARGE);
    tutti__onnx_free(onnx);
}
