/* hostile_test.c: control flow in graphs that somebody has made to hurt, or damaged. */
#include "bridge/graphdef/hand.h"

static void put_small_loop(tutti_text *text)
{
    put_placeholder(text, "x", 1, (int64_t[]){2});
    put_function(text, "goes", "s", "go=less:z:0", "sum Sum s,axes;axes Range s,s,s;less Less s,s");
    put_function(text, "step", "s", "s2=twice:z:0", "twice AddV2 s,s");
    put(text, "loop", "While", "x", "f:cond=goes f:body=step");
    put(text, "y", "Identity", "loop", "");
}

static void put_lowered(tutti_text *text)
{
    put_placeholder(text, "x", 0, NULL);
    put_placeholder(text, "limit", 0, NULL);
    put(text, "enter", "Enter", "x", "s:frame_name=loop");
    put(text, "enter_l", "Enter", "limit", "s:frame_name=loop b:is_constant=1");
    put(text, "merge", "Merge", "enter next", "");
    put(text, "less", "Less", "merge enter_l", "");
    put(text, "go", "LoopCond", "less", "");
    put(text, "switch", "Switch", "merge go", "");
    put(text, "inner", "Switch", "switch:1 less", "");
    put(text, "yes", "AddV2", "inner:1 inner:1", "");
    put(text, "no", "Neg", "inner:0", "");
    put(text, "joined", "Merge", "no yes", "");
    put(text, "next", "NextIteration", "joined", "");
    put(text, "exit", "Exit", "switch", "");
    put(text, "y", "Identity", "exit", "");
}

TUTTI_TEST(graphdef_functions_that_call_themselves_are_refused)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 1, (int64_t[]){2});
    put_function(&text, "again", "a", "out=call:output:0", "call PartitionedCall a f:f=again");
    put(&text, "y", "PartitionedCall", "x", "f:f=again");
    check_refused(&text, "deep in each other");
    tutti__text_free(&text);
}

/* 2^22 nodes of 22 small functions. */
TUTTI_TEST(graphdef_functions_that_multiply_are_refused)
{
    tutti_text text = {0};
    char name[16], lines[128];
    put_placeholder(&text, "x", 1, (int64_t[]){2});
    put_function(&text, "f0", "a", "out=sum:z:0", "sum AddV2 a,a");
    for (int i = 1; i < 22; i++) {
        snprintf(name, sizeof name, "f%d", i);
        snprintf(lines, sizeof lines,
                 "one PartitionedCall a f:f=f%d;two PartitionedCall one:output:0 f:f=f%d", i - 1,
                 i - 1);
        put_function(&text, name, "a", "out=two:output:0", lines);
    }
    put(&text, "y", "PartitionedCall", "x", "f:f=f21");
    check_refused(&text, "nodes with all that is built again");
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_functions_that_are_missing_or_do_not_fit_are_named)
{
    static const char *const attrs[] = {"f:cond=goes f:body=nowhere", "f:cond=goes",
                                        "f:cond=step f:body=goes2"};
    static const char *const words[] = {"'nowhere' is not in the file", "is not in the file",
                                        "takes 2 and gives 1 values"};
    for (int i = 0; i < 3; i++) {
        tutti_text text = {0};
        put_placeholder(&text, "x", 0, NULL);
        put_function(&text, "goes", "s", "go=less:z:0", "less Less s,s");
        put_function(&text, "step", "s", "s2=twice:z:0", "twice AddV2 s,s");
        put_function(&text, "goes2", "a b", "out=sum:z:0", "sum AddV2 a,b");
        put(&text, "z", "While", "x", attrs[i]);
        check_refused(&text, words[i]);
        tutti__text_free(&text);
    }
}

/* A loop without a condition, an Exit without a loop, a Merge without a branch, a node of a loop
 * used outside of it, a cycle. */
TUTTI_TEST(graphdef_lowered_flow_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *op, *inputs, *words;
    } cases[] = {
        {"Exit", "x", "belongs to no loop"},
        {"Merge", "x x", "joins no two branches"},
        {"Neg", "other", "cycle"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_text text = {0};
        put_lowered(&text);
        put(&text, "odd", cases[i].op, cases[i].inputs, "");
        put(&text, "other", "Relu", "odd", "");
        put(&text, "z", "Relu", "other", "");
        check_refused(&text, cases[i].words);
        tutti__text_free(&text);
    }
}

TUTTI_TEST(graphdef_names_what_bodies_lack_all_at_once)
{
    tutti_text text = {0};
    tutti_graph *graph;
    tutti_onnx_ports ports;
    put_placeholder(&text, "x", 2, (int64_t[]){-1, 2});
    put_function(&text, "f", "a", "out=odd:y:0", "odd Lgamma a");
    put_function(&text, "unused", "a", "out=odd:y:0", "odd Betainc a");
    put(&text, "call", "PartitionedCall", "x", "f:f=f");
    put(&text, "y", "Digamma", "call", "");
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_STATUS(into_graph(&text, graph, &ports), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "Lgamma ('odd')");
    CHECK_CONTAINS(tutti_error_message(), "Digamma ('y')");
    CHECK(!strstr(tutti_error_message(), "Betainc"));
    tutti_graph_destroy(graph);
    tutti__text_free(&text);
}

/* What nodes ask for is named together too: two that want constants. */
TUTTI_TEST(graphdef_names_what_nodes_ask_for_all_at_once)
{
    tutti_text text = {0};
    tutti_graph *graph;
    tutti_onnx_ports ports;
    put_placeholder(&text, "x", 2, (int64_t[]){-1, 2});
    put_placeholder_of(&text, "order", 3, 1, (int64_t[]){2});
    put(&text, "a", "Transpose", "x order", "");
    put(&text, "b", "Sum", "x order", "");
    put(&text, "y", "AddV2", "a b", "");
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_STATUS(into_graph(&text, graph, &ports), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "Transpose 'a'");
    CHECK_CONTAINS(tutti_error_message(), "Sum 'b'");
    tutti_graph_destroy(graph);
    tutti__text_free(&text);
}

/* Every cut and many changed bytes: an answer or an error, never more. */
TUTTI_TEST(graphdef_damaged_flow_is_refused_or_read)
{
    for (int which = 0; which < 2; which++) {
        tutti_text text = {0};
        (which ? put_lowered : put_small_loop)(&text);
        for (size_t i = 0; i < text.size; i++) {
            tutti_graphdef *def;
            tutti_onnx_ports ports;
            tutti_graph *graph;
            char kept = text.data[i];
            text.data[i] = (char)(kept ^ (1 << i % 8));
            if (tutti__graphdef_decode("changed", text.data, text.size, &def) == TUTTI_OK) {
                CHECK_OK(tutti_graph_create(&graph));
                (void)tutti__graphdef_into_graph(def, graph, &ports);
                tutti_graph_destroy(graph);
                tutti__graphdef_free(def);
            }
            text.data[i] = kept;
            if (tutti__graphdef_decode("cut", text.data, i, &def) == TUTTI_OK)
                tutti__graphdef_free(def);
        }
        tutti__text_free(&text);
    }
}
