#include "graph/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "graph/attr.h"
#include "tutti/ops.h"

/* The text of a graph without the places, which change with this file. */
static char *text_of(const tutti_graph *graph)
{
    char *text = NULL, *to, *from;
    CHECK_OK(tutti_graph_print(graph, &text));
    for (to = from = text; *from; from++) {
        if (strncmp(from, "  # ", 4) == 0)
            from += strcspn(from, "\n");
        *to++ = *from;
    }
    *to = 0;
    return text;
}

static void prints(tutti_graph *graph, const char *expected)
{
    CHECK_OK(tutti_graph_check(graph));
    char *text = text_of(graph);
    CHECK_STR(text, expected);
    free(text);
    tutti_graph_destroy(graph);
}

static tutti_graph *new_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

TUTTI_TEST(a_node_is_one_line)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 3);
    TUTTI_WITH_DEVICE(g, "/job:worker/cpu:0")
        TUTTI_WITH_CONTROL(g, x)
            TUTTI_WITH_NAME(g, "net")
                tutti_add(x, x);
    prints(g, "%x = placeholder() {dtype=f32, dims=[-1,3]} : f32[?,3]\n"
              "%net/add = add(%x, %x) : f32[?,3] @/job:worker/cpu:0 ^%x\n");
}

TUTTI_TEST(a_line_ends_with_the_users_place)
{
    tutti_graph *g = new_graph();
    char *text = NULL, place[64];
    snprintf(place, sizeof place, "print_test.c:%d\n", __LINE__ + 1);
    tutti_placeholder_named(g, "x", TUTTI_F32);
    CHECK_OK(tutti_graph_print(g, &text));
    CHECK_CONTAINS(text, "%x = placeholder() {dtype=f32} : f32[]  # ");
    CHECK_CONTAINS(text, place);
    free(text);
    tutti_graph_destroy(g);
}

TUTTI_TEST(outputs_variables_and_neighbours_are_shown)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3);
    tutti_sym inputs[] = {x};
    tutti_attr attrs[] = {TUTTI_INT("outputs", 2), TUTTI_INT("axis", 0)};
    tutti_sym rows = tutti_apply_op_named(g, "unstack", "rows", 1, inputs, 2, attrs);
    TUTTI_WITH_COLOCATION(g, x)
        tutti_add(tutti_sym_output(rows, 1), rows);
    CHECK_OK(tutti__graph_result(g, (tutti_edge){rows.node, 1}));
    CHECK_OK(tutti__graph_result(g, (tutti_edge){x.node, 0}));
    CHECK(TUTTI_VEC_PUSH(&g->targets, x.node) && TUTTI_VEC_PUSH(&g->targets, rows.node));
    char *text = text_of(g);
    CHECK_CONTAINS(text, " : f32[3], f32[3]\n%add = add(%rows:1, %rows:0) : f32[3] @%x\n");
    CHECK_CONTAINS(text, "return %rows:1, %x\nrun %x, %rows\n");
    free(text);
    tutti_graph_destroy(g);
}

static void constant(tutti_graph *g, tutti_dtype dtype, int rank, int64_t size, const void *data)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_from(dtype, rank, &size, data, &tensor));
    tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
}

TUTTI_TEST(tensors_are_abbreviated)
{
    tutti_graph *g = new_graph();
    char noise[100];
    memset(noise, 'z', sizeof noise);
    noise[0] = 'a';
    noise[1] = '"';
    noise[2] = '\n';
    constant(g, TUTTI_F32, 0, 0, (float[]){0.5F});
    constant(g, TUTTI_I32, 1, 9, (int32_t[]){1, 2, 3, 4, 5, 6, 7, 8, -9});
    constant(g, TUTTI_BOOL, 1, 2, (bool[]){true, false});
    constant(g, TUTTI_F64, 1, 0, NULL);
    constant(g, TUTTI_STRING, 1, 2, (tutti_string[]){{noise, sizeof noise}, {"", 0}});
    prints(g,
           "%constant = constant() {value=f32(0.5)} : f32[]\n"
           "%constant_1 = constant() {value=i32[9](1 2 3 4 5 6 7 8 …)} : i32[9]\n"
           "%constant_2 = constant() {value=bool[2](true false)} : bool[2]\n"
           "%constant_3 = constant() {value=f64[0]()} : f64[0]\n"
           "%constant_4 = constant() {value=string[2](\"a\\\"\\x0a"
           "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz…\" \"\")} : string[2]\n");
}

static void text_of_attr(const tutti_op *op, tutti_attr attr, const char *expected)
{
    tutti_text out = {0};
    tutti__print_attr(&out, op, &attr);
    CHECK_STR(out.data, expected);
    tutti__text_free(&out);
}

TUTTI_TEST(attributes_read_as_they_are_meant)
{
    static const tutti_attr_spec specs[] = {{"keep", TUTTI_ATTR_INT, "false"},
                                            {"as", TUTTI_ATTR_INT, "f32"},
                                            {"axis", TUTTI_ATTR_INT, "-1"},
                                            {0}};
    static const tutti_op op = {.name = "test.print", .attrs = specs};
    int64_t many[20] = {0};
    tutti_type types[] = {{.dtype = TUTTI_F32},
                          {.dtype = TUTTI_I8, .rank = 1, .dims = {TUTTI_ANY}}};
    text_of_attr(&op, TUTTI_INT("keep", 1), "keep=true");
    text_of_attr(&op, TUTTI_INT("keep", 3), "keep=3");
    text_of_attr(&op, TUTTI_INT("as", TUTTI_BF16), "as=bf16");
    text_of_attr(&op, TUTTI_INT("as", 99), "as=99");
    text_of_attr(&op, TUTTI_INT("axis", 2), "axis=2");
    text_of_attr(&op, TUTTI_FLOAT("rate", 0.1), "rate=0.1");
    text_of_attr(
        &op, (tutti_attr){.name = "s", .kind = TUTTI_ATTR_STRING, .count = 3, .value.s = "a\\b"},
        "s=\"a\\\\b\"");
    text_of_attr(&op, TUTTI_INTS("dims", 20, many), "dims=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,…]");
    text_of_attr(&op, TUTTI_FLOATS("f", 2, ((double[]){1.5, -2})), "f=[1.5,-2]");
    text_of_attr(&op, TUTTI_TYPES_ATTR("types", 2, types), "types=[f32[],i8[?]]");
}

static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 10));
}

static void twice(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], args[0]);
}

TUTTI_TEST(subgraphs_stand_below_their_node)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32);
    tutti_while(below, twice, NULL, 1, &x, 0, NULL, NULL);
    CHECK_OK(tutti_graph_check(g));
    char *text = text_of(g);
    CHECK_CONTAINS(
        text,
        "%while = while(%x) {cond_graph, body_graph, loop_count=1} : f32[]\n    cond_graph:\n        %");
    CHECK_CONTAINS(text, "    body_graph:\n        %");
    CHECK_CONTAINS(text, "\n        return %");
    free(text);
    tutti_graph_destroy(g);
}

TUTTI_TEST(shardings_are_shown)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3);
    static const tutti_axis_shard shards[] = {
        {"data", TUTTI_SPLIT, 1}, {"model", TUTTI_PARTIAL, 0}, {"pipe", TUTTI_REPLICATED, 0}};
    static const tutti_sharding sharding = {3, shards};
    static const tutti_sharding *all[] = {&sharding};
    x.node->shardings = all;
    prints(
        g,
        "%x = placeholder() {dtype=f32, dims=[2,3]} : f32[2,3] <data:split(1), model:partial, pipe:replicated>\n");
}

TUTTI_TEST(an_empty_graph_and_null_can_be_printed)
{
    char *text = NULL;
    prints(new_graph(), "");
    CHECK_STATUS(tutti_graph_print(NULL, &text), TUTTI_INVALID);
    CHECK_STATUS(tutti_graph_dot(NULL, &text), TUTTI_INVALID);
    CHECK(text == NULL);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

TUTTI_TEST(graphviz_shows_devices_edges_and_subgraphs)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32), y = TUTTI_NO_SYM, z = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "/far:0")
        y = tutti_neg(x);
    TUTTI_WITH_DEVICE(g, "/far:1")
        z = tutti_neg(y);
    TUTTI_WITH_DEVICE(g, "/far:0")
        TUTTI_WITH_CONTROL(g, z)
            tutti_while(below, twice, NULL, 1, &x, 0, NULL, NULL);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__graph_result(g, tutti__edge(z)));
    char *text = NULL;
    CHECK_OK(tutti_graph_dot(g, &text));
    CHECK_CONTAINS(text, "digraph tutti {");
    CHECK_CONTAINS(text, "g0_n0 [label=\"placeholder\\nx\\ndtype=f32\"];");
    CHECK_CONTAINS(text, "g0_n2 [label=\"neg\\nneg_1\", peripheries=2];");
    CHECK_CONTAINS(text, "g0_n0 -> g0_n1 [label=\"f32[]\"];");
    CHECK_CONTAINS(text, "g0_n2 -> g0_n3 [style=dashed];");
    CHECK_INT(count_of(text, "label=\"/far:0\""), 1); /* one cluster for both nodes */
    CHECK_INT(count_of(text, "label=\"/far:1\""), 1);
    CHECK_CONTAINS(text, "label=\"cond_graph of while\"");
    CHECK_CONTAINS(text, "label=\"body_graph of while\"");
    CHECK_INT(count_of(text, "{"), count_of(text, "}"));
    free(text);
    tutti_graph_destroy(g);
}
