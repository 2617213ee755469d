#include <string.h>

#include "base/test.h"
#include "graph/graph.h"
#include "tutti/ops.h"

/* A good graph, in which each test breaks one promise: y = neg(x); z = x + y; u = v - z. */
static tutti_graph *graph;
static tutti_sym x, y, z, v, u;

static void build(void)
{
    CHECK_OK(tutti_graph_create(&graph));
    x = tutti_placeholder_named(graph, "x", TUTTI_F32, TUTTI_ANY, 3);
    y = tutti_apply_op_named(graph, "neg", "y", 1, &x, 0, NULL);
    z = tutti_apply_op_named(graph, "add", "z", 2, ((tutti_sym[]){x, y}), 0, NULL);
    v = tutti_variable(graph, tutti_zeros(2, 3), .name = "v");
    TUTTI_WITH_CONTROL(graph, y)
        u = tutti_assign_sub(v, z);
    CHECK_OK(tutti_graph_check(graph));
    CHECK_OK(tutti__graph_result(graph, tutti__edge(z)));
    CHECK_OK(tutti_graph_verify(graph));
}

static void broken(const char *node, const char *why)
{
    CHECK_STATUS(tutti_graph_verify(graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), node);
    CHECK_CONTAINS(tutti_error_message(), why);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(verify_compares_types_with_the_shape_rules)
{
    build();
    z.node->types[0].dims[1] = 4;
    broken("add 'z' (", "output 0 is f32[?,4], but the shape rule says f32[?,3]");
    build();
    z.node->types[0].dtype = TUTTI_F64;
    broken("add 'z' (", "f64[?,3]");
    build();
    z.node->types[0].dims[0] = 2; /* what was learnt from values is no lie */
    CHECK_OK(tutti_graph_verify(graph));
    tutti_graph_destroy(graph);
    build();
    y.node->types[0].rank = 9;
    broken("neg 'y' (", "no type that can be");
}

TUTTI_TEST(verify_names_the_users_place)
{
    build();
    y.node->types[0].dtype = TUTTI_I32;
    broken("neg 'y' (", "verify_test.c:");
}

TUTTI_TEST(verify_reports_what_a_shape_rule_refuses)
{
    build();
    tutti_sym wide = tutti_placeholder_named(graph, "wide", TUTTI_F32, 7);
    CHECK_OK(tutti__graph_sort(graph));
    z.node->inputs[1] = tutti__edge(wide);
    CHECK_OK(tutti__graph_sort(graph));
    broken("add 'z' (", "do not broadcast");
}

TUTTI_TEST(verify_wants_ids_in_order)
{
    build();
    y.node->id = 7;
    broken("'y'", "has id 7 at position 1");
    build();
    y.node->inputs[0] = tutti__edge(z);
    broken("neg 'y' (", "input 0 ('z') does not come before it");
    build();
    CHECK_OK(tutti__node_after(y.node, z.node));
    broken("neg 'y' (", "waits for 'z'");
}

TUTTI_TEST(verify_finds_dangling_edges)
{
    tutti_graph *other = NULL;
    CHECK_OK(tutti_graph_create(&other));
    tutti_sym foreign = tutti_placeholder_named(other, "foreign", TUTTI_F32, 2, 3);
    build();
    z.node->inputs[0] = tutti__edge(foreign);
    broken("add 'z' (", "input 0 is not a node of the graph");
    build();
    y.node->dead = true;
    broken("add 'z' (", "input 1 is not a node of the graph");
    build();
    z.node->inputs[0].index = 1;
    broken("add 'z' (", "input 0 is output 1 of 'x', which has 1");
    build();
    u.node->controls[0] = foreign.node;
    broken("assign_sub", "control edge 0");
    build();
    y.node->colocate = foreign.node;
    broken("neg 'y' (", "stands beside a node that is not in the graph");
    build();
    graph->results.data[0].node = foreign.node;
    broken("result 0", "not one of its nodes");
    build();
    graph->results.data[0].index = 3;
    broken("add 'z' (", "output 3 is a result");
    build();
    CHECK(TUTTI_VEC_PUSH(&graph->targets, foreign.node));
    broken("target 0", "not one of its nodes");
    tutti_graph_destroy(other);
}

TUTTI_TEST(verify_wants_handles_used_as_handles)
{
    build();
    tutti_node *read = tutti_neg(v).node->inputs[0].node;
    tutti_node *user = graph->nodes.data[graph->nodes.count - 1];
    CHECK_OK(tutti_graph_verify(graph));
    user->inputs[0] = read->inputs[0];
    broken("neg", "input 0 ('v') is a handle, needs a value");
}

TUTTI_TEST(verify_wants_unique_names)
{
    build();
    z.node->name = y.node->name;
    broken("add 'y' (", "has the name of 'y'");
    build();
    z.node->name = y.node->name;
    graph->trace = true; /* names of a trace are not looked up */
    CHECK_OK(tutti_graph_verify(graph));
    tutti_graph_destroy(graph);
    build();
    z.node->name = "";
    broken("add", "has no name");
}

TUTTI_TEST(verify_reads_devices_and_neighbours)
{
    build();
    y.node->device = "/cpu:x";
    broken("neg 'y' (", "cannot read 'cpu:x'");
    build();
    y.node->colocate = z.node;
    z.node->colocate = x.node;
    CHECK_OK(tutti_graph_verify(graph));
    x.node->colocate = y.node;
    broken("'", "stands beside itself");
}

TUTTI_TEST(verify_wants_the_operators_attributes)
{
    build();
    x.node->attr_count = 1;
    broken("placeholder 'x' (", "attribute 1 is not 'dims'");
    build();
    x.node->attrs[1].kind = TUTTI_ATTR_FLOATS;
    broken("placeholder 'x' (", "attribute 'dims' is not of kind ints");
    build();
    y.node->attr_count = 1;
    broken("neg 'y' (", "has 1 attributes, its operator 0");
    build();
    y.node->input_count = 0;
    broken("neg 'y' (", "has 0 inputs");
}

TUTTI_TEST(verify_checks_shardings)
{
    tutti_axis_shard shards[] = {{"data", TUTTI_SPLIT, 1}, {"model", TUTTI_PARTIAL, 0}};
    tutti_sharding sharding = {2, shards};
    const tutti_sharding *all[] = {&sharding};
    build();
    z.node->shardings = all;
    CHECK_OK(tutti_graph_verify(graph));
    shards[0].dimension = 2;
    broken("add 'z' (", "split along dimension 2, but has 2");
    build();
    z.node->shardings = all;
    shards[0] = (tutti_axis_shard){"model", TUTTI_REPLICATED, 0};
    broken("add 'z' (", "names mesh axis 'model' twice");
}

TUTTI_TEST(verify_wants_parameters_of_their_own)
{
    build();
    tutti_type type = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti_parameter(graph, 0, type);
    tutti_sym second = tutti_parameter(graph, 1, type);
    CHECK_OK(tutti_graph_verify(graph));
    second.node->attrs[0].value.i = 0;
    broken("parameter", "has the index of 'parameter'");
}

static void keep(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    *(tutti_sym *)context = ret[0] = tutti_neg(args[0]);
}

TUTTI_TEST(verify_goes_into_subgraphs)
{
    build();
    tutti_sym inside = TUTTI_NO_SYM;
    tutti_sym pred = tutti_placeholder_named(graph, "pred", TUTTI_BOOL);
    tutti_cond(pred, keep, keep, &inside, 1, &x, 1, NULL);
    CHECK_OK(tutti_graph_verify(graph));
    inside.node->types[0].dtype = TUTTI_I64;
    broken("in 'else_graph' of cond 'cond'", "the shape rule says f32");
}

static void give(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = args[0];
}

/* A cond in the else branch of a cond, `*context` times. */
static void nest(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    int deeper = *(int *)context - 1;
    TUTTI_UNUSED(body);
    if (deeper > 0)
        tutti_cond(args[0], give, nest, &deeper, count, args, 1, ret);
    else
        ret[0] = args[0];
}

TUTTI_TEST(verify_says_first_that_bodies_are_nested_too_deep)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym p = tutti_placeholder(g, TUTTI_BOOL), made = TUTTI_NO_SYM;
    int left = 30;
    tutti_cond(p, give, nest, &left, 1, &p, 1, &made);
    CHECK_OK(tutti_graph_check(g));
    CHECK_STATUS(tutti_graph_verify(g), TUTTI_TOO_LARGE);
    CHECK(strncmp(tutti_error_message(), "sub-graphs are nested more than 16 deep", 39) == 0);
    CHECK_CONTAINS(tutti_error_message(), ", in 'else_graph' of cond '");
    tutti_graph_destroy(g);
}

TUTTI_TEST(verify_reports_the_first_mistake_of_building)
{
    build();
    tutti_apply_op(graph, "nothing of the kind", 0, NULL, 0, NULL);
    CHECK_STATUS(tutti_graph_verify(graph), TUTTI_NOT_FOUND);
    tutti_graph_destroy(graph);
    CHECK_STATUS(tutti_graph_verify(NULL), TUTTI_INVALID);
}
