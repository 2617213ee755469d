#include "base/test.h"
#include "graph/graph.h"
#include "tutti/ops.h"

#include <stdlib.h>
#include <string.h>

static tutti_graph *new_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

static tutti_sym input(tutti_graph *graph, const char *name)
{
    return tutti_placeholder_named(graph, name, TUTTI_F32, 2, 3);
}

static tutti_sym named(tutti_graph *g, const char *op, const char *name, tutti_sym x)
{
    return tutti_apply_op_named(g, op, name, 1, &x, 0, NULL);
}

/* The names of the nodes in their order, "x y z". */
static const char *order(const tutti_graph *graph)
{
    static char text[512];
    text[0] = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        CHECK_INT(graph->nodes.data[i]->id, i);
        strcat(strcat(text, i > 0 ? " " : ""), graph->nodes.data[i]->name);
    }
    return text;
}

TUTTI_TEST(a_graph_in_order_stays_as_it_is)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = named(g, "neg", "y", x), z = named(g, "exp", "z", x);
    named(g, "neg", "w", z);
    uint64_t hash = tutti__graph_hash(g), version = g->version;
    CHECK_OK(tutti__graph_sort(g));
    CHECK_STR(order(g), "x y z w");
    CHECK(tutti__graph_hash(g) == hash && g->version != version);
    CHECK_OK(tutti_graph_verify(g));
    TUTTI_UNUSED(y);
    tutti_graph_destroy(g);
}

TUTTI_TEST(an_empty_graph_is_in_order)
{
    tutti_graph *g = new_graph();
    CHECK_OK(tutti__graph_sort(g));
    CHECK_OK(tutti__graph_prune(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(sorting_moves_what_is_needed_to_the_front)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = named(g, "neg", "y", x), z = named(g, "exp", "z", x);
    tutti_sym late = named(g, "exp", "late", z), signal = input(g, "signal");
    y.node->inputs[0] = tutti__edge(late);
    CHECK_OK(tutti__node_after(late.node, signal.node));
    CHECK_STATUS(tutti_graph_verify(g), TUTTI_INVALID);
    CHECK_OK(tutti__graph_sort(g));
    CHECK_STR(order(g), "x z signal late y");
    CHECK_OK(tutti_graph_verify(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(sorting_finds_cycles)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = named(g, "neg", "y", x), z = named(g, "exp", "z", y);
    y.node->inputs[0] = tutti__edge(z);
    CHECK_STATUS(tutti__graph_sort(g), TUTTI_INTERNAL);
    CHECK_CONTAINS(tutti_error_message(), "cycle");
    y.node->inputs[0] = tutti__edge(x);
    CHECK_OK(tutti__graph_sort(g));
    CHECK_OK(tutti__node_after(y.node, y.node));
    CHECK_STATUS(tutti__graph_sort(g), TUTTI_INTERNAL);
    tutti_graph_destroy(g);
}

TUTTI_TEST(sorting_forgets_the_dead)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), gone = named(g, "neg", "gone", x), y = named(g, "exp", "y", x);
    CHECK_OK(tutti__node_after(y.node, gone.node));
    CHECK_OK(tutti__node_after(y.node, x.node));
    y.node->colocate = gone.node;
    gone.node->device = "/far:1";
    gone.node->colocate = x.node;
    gone.node->dead = true;
    CHECK_OK(tutti__graph_sort(g));
    CHECK_STR(order(g), "x y");
    CHECK_INT(y.node->control_count, 1);
    CHECK(y.node->controls[0] == x.node);
    CHECK(y.node->colocate == x.node);
    CHECK_STR(y.node->device, "/far:1"); /* where its neighbour stood */
    CHECK_OK(tutti_graph_verify(g));
    CHECK_OK(tutti__graph_sort(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(replace_rewires_every_use)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = named(g, "neg", "y", x), z = tutti_add(y, y),
              w = tutti_add(x, y);
    CHECK_OK(tutti__graph_result(g, tutti__edge(y)));
    CHECK_OK(tutti__graph_result(g, tutti__edge(w)));
    tutti__graph_replace(g, tutti__edge(y), tutti__edge(x));
    CHECK(z.node->inputs[0].node == x.node && z.node->inputs[1].node == x.node);
    CHECK(w.node->inputs[1].node == x.node);
    CHECK(g->results.data[0].node == x.node && g->results.data[1].node == w.node);
    CHECK(y.node->inputs[0].node == x.node);
    tutti_graph_destroy(g);
}

TUTTI_TEST(replace_tells_outputs_apart)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), rows = tutti_unstack(x, 0, 2), y = tutti_neg(rows);
    tutti_sym z = tutti_neg(tutti_sym_output(rows, 1)),
              other = tutti_placeholder_named(g, "o", TUTTI_F32, 3);
    CHECK_OK(tutti_graph_check(g));
    tutti__graph_replace(g, tutti__edge(rows), tutti__edge(other));
    CHECK(y.node->inputs[0].node == other.node);
    CHECK(z.node->inputs[0].node == rows.node && z.node->inputs[0].index == 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_copy_is_equal_and_independent)
{
    tutti_graph *g = new_graph(), *copy = NULL;
    tutti_node **map = NULL;
    tutti_sym x = TUTTI_NO_SYM, y = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "/far:0")
        x = input(g, "x");
    tutti_sym gone = tutti_exp(x);
    TUTTI_WITH_DEVICE(g, "/far:1")
        TUTTI_WITH_CONTROL(g, x)
            TUTTI_WITH_COLOCATION(g, x)
                y = named(g, "neg", "y", x);
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &tensor));
    tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    CHECK_OK(tutti__graph_result(g, tutti__edge(y)));
    CHECK(TUTTI_VEC_PUSH(&g->targets, y.node));
    gone.node->dead = true;
    CHECK_OK(tutti__graph_copy(g, &copy, &map));
    CHECK_OK(tutti_graph_verify(copy));
    CHECK(map[gone.node->id] == NULL);
    tutti_node *other = map[y.node->id];
    CHECK(other != y.node && other->graph == copy && other->op == y.node->op);
    CHECK_STR(other->device, "/far:0");
    CHECK(other->colocate == map[0] && other->controls[0] == map[0]);
    CHECK(other->file == y.node->file && other->line == y.node->line);
    CHECK(copy->results.data[0].node == other && copy->targets.data[0] == other);
    CHECK(tutti_graph_find(copy, "y") == other);
    CHECK_OK(tutti__graph_sort(g));
    CHECK(tutti__graph_hash(g) == tutti__graph_hash(copy));
    tutti_graph_destroy(g); /* the copy lives on */
    CHECK_OK(tutti_graph_verify(copy));
    CHECK_STR(order(copy), "x y constant");
    free(map);
    tutti_graph_destroy(copy);
}

TUTTI_TEST(a_copy_of_a_trace_is_a_trace)
{
    tutti_graph *g = new_graph(), *copy = NULL;
    g->trace = true;
    tutti_sym x = input(g, "x"), y = tutti_neg(x);
    y.node->name = x.node->name;
    CHECK_OK(tutti__graph_copy(g, &copy, NULL));
    CHECK_OK(tutti_graph_verify(copy));
    tutti_graph_destroy(g);
    tutti_graph_destroy(copy);
}

/* Sorting may put a node before its neighbour. */
TUTTI_TEST(a_copy_keeps_neighbours_that_come_later)
{
    tutti_graph *g = new_graph(), *copy = NULL;
    tutti_sym x = input(g, "x"), y = named(g, "neg", "y", x);
    x.node->colocate = y.node;
    CHECK_OK(tutti__graph_copy(g, &copy, NULL));
    CHECK(copy->nodes.data[0]->colocate == copy->nodes.data[1]);
    tutti_graph_destroy(g);
    tutti_graph_destroy(copy);
}

static tutti_graph *variant_of_a_graph(int variant)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), z = input(g, "z"), y = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, variant == 1 ? "/far:1" : "/far:0")
        y = tutti_apply_op_named(g, variant == 2 ? "exp" : "neg", variant == 3 ? "other" : "y", 1,
                                 variant == 4 ? &z : &x, 0, NULL);
    if (variant == 5)
        CHECK_OK(tutti__node_after(y.node, z.node));
    CHECK_OK(tutti__graph_result(g, tutti__edge(variant == 6 ? x : y)));
    if (variant == 7)
        CHECK(TUTTI_VEC_PUSH(&g->targets, z.node));
    return g;
}

TUTTI_TEST(sameness_and_hash_see_structure_but_not_names)
{
    tutti_graph *first = variant_of_a_graph(0);
    for (int variant = 0; variant < 8; variant++) {
        tutti_graph *g = variant_of_a_graph(variant);
        bool same = variant == 0 || variant == 3;
        CHECK(tutti__graph_same(g, first) == same);
        CHECK((tutti__graph_hash(g) == tutti__graph_hash(first)) == same);
        tutti_graph_destroy(g);
    }
    tutti_graph_destroy(first);
}

TUTTI_TEST(extract_takes_what_a_run_needs)
{
    tutti_graph *g = new_graph(), *part = NULL;
    tutti_sym x = input(g, "x"), a = named(g, "neg", "a", x), b = named(g, "exp", "b", a);
    tutti_sym unused = named(g, "square", "unused", b), side = named(g, "square", "side", x);
    tutti_sym c = named(g, "neg", "c", b);
    CHECK_OK(tutti__node_after(c.node, side.node));
    tutti_edge feeds[] = {tutti__edge(a), tutti__edge(x)},
               fetches[] = {tutti__edge(c), tutti__edge(a)};
    tutti_type types[] = {tutti_type_make(TUTTI_F32, 2, (int64_t[]){2, 3}),
                          tutti_type_make(TUTTI_F32, 2, (int64_t[]){2, 3})};
    tutti_extract wanted = {.feed_count = 2,
                            .feeds = feeds,
                            .feed_types = types,
                            .fetch_count = 2,
                            .fetches = fetches,
                            .target_count = 1,
                            .targets = &b.node};
    CHECK_OK(tutti__graph_extract(g, &wanted, &part));
    CHECK_OK(tutti_graph_verify(part));
    CHECK_INT(part->nodes.count, 5); /* two parameters, b, side, c */
    CHECK_STR(part->nodes.data[0]->op->name, "parameter");
    CHECK_STR(part->nodes.data[0]->origin, "a");
    CHECK_INT(tutti__int(part->nodes.data[1], "index"), 1);
    CHECK_STR(part->results.data[0].node->name, "c");
    CHECK(part->results.data[1].node == part->nodes.data[0]);
    CHECK_STR(part->targets.data[0]->name, "b");
    CHECK(part->targets.data[0]->inputs[0].node == part->nodes.data[0]);
    CHECK_STR(part->results.data[0].node->controls[0]->name, "side");
    TUTTI_UNUSED(unused);
    tutti_graph_destroy(g);
    tutti_graph_destroy(part);
}

TUTTI_TEST(extract_keeps_the_place_of_a_neighbour_that_is_left_out)
{
    tutti_graph *g = new_graph(), *part = NULL;
    tutti_sym x = input(g, "x"), left_out = TUTTI_NO_SYM, between = TUTTI_NO_SYM, y = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "/far:1")
        left_out = tutti_exp(x);
    TUTTI_WITH_COLOCATION(g, left_out)
        between = tutti_exp(x);
    TUTTI_WITH_COLOCATION(g, between)
        y = tutti_neg(x);
    tutti_edge fetch = tutti__edge(y);
    tutti_extract wanted = {.fetch_count = 1, .fetches = &fetch};
    CHECK_OK(tutti__graph_extract(g, &wanted, &part));
    CHECK_INT(part->nodes.count, 2);
    CHECK(part->nodes.data[1]->colocate == NULL);
    CHECK_STR(part->nodes.data[1]->device, "/far:1");
    tutti_graph_destroy(g);
    tutti_graph_destroy(part);
}

TUTTI_TEST(prune_keeps_results_targets_and_parameters)
{
    tutti_graph *g = new_graph();
    tutti_type type = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti_sym p = tutti_parameter(g, 0, type), q = tutti_parameter(g, 1, type);
    tutti_sym a = named(g, "neg", "a", p), b = named(g, "exp", "b", a), c = named(g, "exp", "c", a);
    tutti_sym d = named(g, "square", "d", p), e = named(g, "square", "e", d);
    CHECK_OK(tutti__graph_result(g, tutti__edge(b)));
    CHECK(TUTTI_VEC_PUSH(&g->targets, d.node));
    CHECK_OK(tutti__graph_prune(g));
    CHECK_STR(order(g), "parameter parameter_1 a b d");
    CHECK(c.node->dead && e.node->dead && !q.node->dead);
    CHECK_OK(tutti_graph_verify(g));
    tutti_graph_destroy(g);
}
