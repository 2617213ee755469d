/* control_test.c: loops, branches, functions and lists of tensors in frozen graphs, in
 * both forms, with as many rounds as are known beforehand and as are not. */
#include "bridge/graphdef/hand.h"
#include "tutti/gradients.h"

static const float pair[] = {1, -3};
static const float three[] = {3};

/* x [?, 2]; "n", an integer: 3, or what the input `limit` says; 0 and 1. */
static void put_ends(tutti_text *text, bool known)
{
    put_placeholder(text, "x", 2, (int64_t[]){-1, 2});
    put_whole(text, "zero", 0);
    put_whole(text, "one", 1);
    if (known) {
        put_whole(text, "n", 3);
        return;
    }
    put_placeholder(text, "limit", 0, NULL);
    put(text, "n", "Cast", "limit", "t:DstT=3");
}

static void check_pair(const tutti_text *text, bool known, int count, const double *expected)
{
    hand_input inputs[] = {{"x", 2, {1, 2}, pair}, {"limit", 0, {0}, three}};
    check_runs(text, known ? 1 : 2, inputs, "y", count, expected);
}

/* i < n: s = s + s, three times. */
static void put_while(tutti_text *text, bool known)
{
    put_ends(text, known);
    put_function(text, "goes", "i n s one", "go=less:z:0", "less Less i,n");
    put_function(text, "step", "i n s one", "i2=next:z:0 n2=stays:output:0 s2=twice:z:0 one2=one",
                 "next AddV2 i,one;stays Identity n;twice AddV2 s,s");
    put(text, "loop", "StatelessWhile", "zero n x one", "f:cond=goes f:body=step");
    put(text, "y", "Identity", "loop:2", "");
}

/* The same as nodes of the graph. */
static void put_lowered_while(tutti_text *text, bool known)
{
    put_ends(text, known);
    put(text, "enter_i", "Enter", "zero", "s:frame_name=loop");
    put(text, "enter_s", "Enter", "x", "s:frame_name=loop");
    put(text, "enter_n", "Enter", "n", "s:frame_name=loop b:is_constant=1");
    put(text, "enter_one", "Enter", "one", "s:frame_name=loop b:is_constant=1");
    put(text, "merge_i", "Merge", "enter_i next_i", "");
    put(text, "merge_s", "Merge", "enter_s next_s", "");
    put(text, "less", "Less", "merge_i enter_n", "");
    put(text, "go", "LoopCond", "less", "");
    put(text, "switch_i", "Switch", "merge_i go", "");
    put(text, "switch_s", "Switch", "merge_s go", "");
    put(text, "more", "AddV2", "switch_i:1 enter_one", "");
    put(text, "twice", "AddV2", "switch_s:1 switch_s:1", "");
    put(text, "next_i", "NextIteration", "more", "");
    put(text, "next_s", "NextIteration", "twice", "");
    put(text, "exit_i", "Exit", "switch_i", "");
    put(text, "exit", "Exit", "switch_s", "");
    put(text, "y", "Identity", "exit", "");
}

TUTTI_TEST(graphdef_loops_go_round)
{
    static const double expected[] = {8, -24};
    for (int known = 0; known < 2; known++)
        for (int lowered = 0; lowered < 2; lowered++) {
            tutti_text text = {0};
            (lowered ? put_lowered_while : put_while)(&text, known);
            check_pair(&text, known, 2, expected);
            tutti__text_free(&text);
        }
}

/* d sum(y) / dx = 8, through rounds built one after the other and through a while. */
TUTTI_TEST(graphdef_loops_have_gradients)
{
    for (int known = 0; known < 2; known++) {
        tutti_text text = {0};
        tutti_graph *graph;
        tutti_onnx_ports ports;
        tutti_session *session;
        tutti_tensor *x, *limit, *slope;
        put_while(&text, known);
        CHECK_OK(tutti_graph_create(&graph));
        CHECK_OK(into_graph(&text, graph, &ports));
        tutti_sym in = ports.inputs[0].sym;
        tutti_sym grad = tutti_gradient(tutti_sum(ports.outputs[0].sym), in);
        CHECK_OK(tutti_graph_check(graph));
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 2}, pair, &x));
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, three, &limit));
        CHECK_OK(tutti_session_open(&session, graph));
        tutti_feed feeds[] = {{in, x}, {known ? in : ports.inputs[1].sym, limit}};
        tutti_fetch want = {grad, &slope};
        tutti_run_options o = {
            .struct_size = sizeof o, .feed = {known ? 1 : 2, feeds}, .fetch = {1, &want}};
        CHECK_OK(tutti_run_with(session, &o));
        CHECK_NEAR(tutti_tensor_get(slope, 0), 8, 1e-6);
        CHECK_NEAR(tutti_tensor_get(slope, 1), 8, 1e-6);
        tutti_tensor_release(x);
        tutti_tensor_release(limit);
        tutti_tensor_release(slope);
        tutti_session_close(session);
        tutti_graph_destroy(graph);
        tutti__text_free(&text);
    }
}

/* ---- branches ---- */

/* n > 2: relu(x) + relu(x), where a function is called; else -x. */
static void put_if(tutti_text *text, bool known)
{
    put_ends(text, known);
    put_whole(text, "two", 2);
    put(text, "more", "Greater", "n two", "");
    put_function(text, "both", "a", "out=sum:z:0", "sum AddV2 a,a");
    put_function(text, "yes", "a", "out=call:output:0",
                 "call PartitionedCall relu:activations:0 f:f=both;relu Relu a");
    put_function(text, "no", "a", "out=neg:y:0", "neg Neg a");
    put(text, "if", "StatelessIf", "more x", "f:then_branch=yes f:else_branch=no");
    put(text, "y", "Identity", "if", "");
}

/* The same with Switch and Merge; inside, another one that decides what is added. */
static void put_lowered_if(tutti_text *text, bool known)
{
    put_ends(text, known);
    put_whole(text, "two", 2);
    put(text, "more", "Greater", "n two", "");
    put(text, "less", "Less", "n two", "");
    put(text, "pred", "Identity", "more", "");
    put(text, "switch", "Switch", "x pred", "");
    put(text, "relu", "Relu", "switch:1", "");
    put(text, "switch_less", "Switch", "less pred", "");
    put(text, "inner", "Switch", "relu switch_less:1", "");
    put(text, "never", "Neg", "inner:1", "");
    put(text, "always", "Identity", "inner:0", "");
    put(text, "merge_inner", "Merge", "always never", "");
    put(text, "sum", "AddV2", "merge_inner relu", "");
    put(text, "neg", "Neg", "switch:0", "");
    put(text, "merge", "Merge", "neg sum", "");
    put(text, "y", "Identity", "merge", "");
}

TUTTI_TEST(graphdef_branches_are_taken)
{
    static const double expected[] = {2, 0};
    for (int known = 0; known < 2; known++)
        for (int lowered = 0; lowered < 2; lowered++) {
            tutti_text text = {0};
            (lowered ? put_lowered_if : put_if)(&text, known);
            check_pair(&text, known, 2, expected);
            tutti__text_free(&text);
        }
}

/* ---- lists ---- */

/* A loop that keeps s + s of each round in a list: what is stacked is [3, 1, 2]. */
static void put_list(tutti_text *text, bool known)
{
    put_ends(text, known);
    put_const(text, "shape", 3, 1, (int64_t[]){2}, 2, (float[]){-1, 2});
    put(text, "list", "TensorListReserve", "shape n", "t:element_dtype=1");
    put_function(text, "goes", "i n s one l", "go=less:z:0", "less Less i,n");
    put_function(text, "step", "i n s one l",
                 "i2=next:z:0 n2=n s2=twice:z:0 one2=one l2=set:output_handle:0",
                 "next AddV2 i,one;twice AddV2 s,s;set TensorListSetItem l,i,twice:z:0");
    put(text, "loop", "While", "zero n x one list", "f:cond=goes f:body=step");
    put(text, "y", "TensorListStack", "loop:4 shape", "t:element_dtype=1");
}

/* The same with a TensorArray in a lowered loop. */
static void put_array(tutti_text *text, bool known)
{
    put_lowered_while(text, known);
    put(text, "array", "TensorArrayV3", "n", "t:dtype=1");
    put(text, "enter_a", "Enter", "array:1", "s:frame_name=loop");
    put(text, "enter_h", "Enter", "array", "s:frame_name=loop b:is_constant=1");
    put(text, "merge_a", "Merge", "enter_a next_a", "");
    put(text, "switch_a", "Switch", "merge_a go", "");
    put(text, "write", "TensorArrayWriteV3", "enter_h switch_i:1 twice switch_a:1", "");
    put(text, "next_a", "NextIteration", "write", "");
    put(text, "exit_a", "Exit", "switch_a", "");
    put(text, "places", "Range", "zero n one", "");
    put(text, "stacked", "TensorArrayGatherV3", "array places exit_a", "");
    put(text, "z", "Identity", "stacked", "");
}

TUTTI_TEST(graphdef_lists_are_filled_by_loops)
{
    static const double expected[] = {2, -6, 4, -12, 8, -24};
    hand_input inputs[] = {{"x", 2, {1, 2}, pair}, {"limit", 0, {0}, three}};
    for (int known = 0; known < 2; known++) {
        tutti_text text = {0}, other = {0};
        put_list(&text, known);
        check_pair(&text, known, 6, expected);
        put_array(&other, known);
        check_runs(&other, known ? 1 : 2, inputs, "z", 6, expected);
        tutti__text_free(&text);
        tutti__text_free(&other);
    }
}

/* Sum of the rows of a tensor, taken out of a list one by one; how many there are is not known. */
TUTTI_TEST(graphdef_lists_are_read_by_loops)
{
    static const float rows[] = {1, 2, 3, 4, 5, 6};
    static const double expected[] = {9, 12};
    tutti_text text = {0};
    hand_input inputs[] = {{"x", 2, {3, 2}, rows}};
    put_placeholder(&text, "x", 2, (int64_t[]){-1, 2});
    put_whole(&text, "zero", 0);
    put_whole(&text, "one", 1);
    put_const(&text, "shape", 3, 1, (int64_t[]){1}, 1, (float[]){2});
    put_const(&text, "start", 1, 1, (int64_t[]){2}, 1, (float[]){0});
    put(&text, "list", "TensorListFromTensor", "x shape", "t:element_dtype=1");
    put(&text, "n", "TensorListLength", "list", "");
    put_function(&text, "goes", "i n s one l shape", "go=less:z:0", "less Less i,n");
    put_function(&text, "step", "i n s one l shape",
                 "i2=next:z:0 n2=n s2=sum:z:0 one2=one l2=l shape2=shape",
                 "next AddV2 i,one;row TensorListGetItem l,i,shape;sum AddV2 s,row:item:0");
    put(&text, "loop", "While", "zero n start one list shape", "f:cond=goes f:body=step");
    put(&text, "y", "Identity", "loop:2", "");
    check_runs(&text, 1, inputs, "y", 2, expected);
    tutti__text_free(&text);
}
