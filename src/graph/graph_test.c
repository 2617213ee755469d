#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortage.h"
#include "graph/attr.h"
#include "graph/scope.h"
#include "tutti/ops.h"

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

TUTTI_TEST(nodes_have_types_and_stand_in_order)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = tutti_neg(x), z = tutti_add(x, y);
    tutti_type type = tutti_sym_type(z);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_graph_node_count(g), 3);
    CHECK(tutti_graph_find(g, "x") == x.node);
    CHECK(tutti_graph_find(g, "nobody") == NULL);
    CHECK(tutti_graph_find(g, NULL) == NULL);
    CHECK_STR(tutti_node_op(z.node), "add");
    CHECK_STR(tutti_node_device(z.node), "");
    CHECK(tutti_sym_graph(z) == g);
    CHECK_INT(tutti_sym_output_count(z), 1);
    CHECK_INT(type.dtype, TUTTI_F32);
    CHECK_INT(type.rank, 2);
    CHECK(x.node->id < y.node->id && y.node->id < z.node->id);
    CHECK_INT(tutti_sym_type(TUTTI_NO_SYM).dtype, TUTTI_NO_DTYPE);
    tutti_graph_destroy(g);
    tutti_graph_destroy(NULL);
}

TUTTI_TEST(the_first_mistake_is_kept_with_its_place)
{
    tutti_graph *g = new_graph();
    char place[64];
    tutti_sym x = input(g, "x");
    tutti_sym wide = tutti_placeholder_named(g, "wide", TUTTI_F32, 7);
    snprintf(place, sizeof place, "graph_test.c:%d)", __LINE__ + 1);
    tutti_sym bad = tutti_add(x, wide);
    tutti_sym worse = tutti_neg(bad);
    tutti_sym other = tutti_apply_op(g, "no such operator", 1, &x, 0, NULL);
    size_t nodes = tutti_graph_node_count(g);
    CHECK(!tutti_sym_ok(bad) && !tutti_sym_ok(worse) && !tutti_sym_ok(other));
    CHECK(!tutti_sym_ok(tutti_neg(x))); /* nothing more is built */
    CHECK_INT(tutti_graph_node_count(g), nodes);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "add 'add' (");
    CHECK_CONTAINS(tutti_error_message(), place);
    CHECK_CONTAINS(tutti_error_message(), "f32[2,3]");
    CHECK_CONTAINS(tutti_error_message(), "f32[7]");
    tutti_graph_destroy(g);
}

TUTTI_TEST(mistakes_of_building_name_what_was_wrong)
{
    static const char *const parts[] = {"there is no operator 'swish'",
                                        "no operator is named",
                                        "has 1 inputs, needs 2",
                                        "input 0 is not a symbol",
                                        "has no attribute 'axis'; it takes none",
                                        "neg: 1 inputs are announced, and the array is NULL",
                                        "clip: 2 attributes are announced, and the array is NULL",
                                        "there is no output 1"};
    for (size_t i = 0; i < TUTTI_COUNT(parts); i++) {
        tutti_graph *g = new_graph();
        tutti_sym x = input(g, "x"), none = TUTTI_NO_SYM;
        switch (i) {
        case 0:
            tutti_apply_op(g, "swish", 1, &x, 0, NULL);
            break;
        case 1:
            tutti_apply_op(g, NULL, 1, &x, 0, NULL);
            break;
        case 2:
            tutti_apply_op(g, "add", 1, &x, 0, NULL);
            break;
        case 3:
            tutti_apply_op(g, "neg", 1, &none, 0, NULL);
            break;
        case 4:
            tutti_apply_op(g, "neg", 1, &x, 1, &TUTTI_INT("axis", 0));
            break;
        case 5:
            tutti_apply_op(g, "neg", 1, NULL, 0, NULL);
            break;
        case 6:
            tutti_apply_op(g, "clip", 1, &x, 2, NULL);
            break;
        default:
            tutti_sym_output(x, 1);
            break;
        }
        CHECK(tutti_graph_check(g) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), parts[i]);
        CHECK_CONTAINS(tutti_error_message(), i == 7 ? "x" : "graph_test.c:");
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(lists_to_wait_for_that_are_not_there_are_refused)
{
    for (int i = 0; i < 4; i++) {
        tutti_graph *g = new_graph();
        tutti_sym x = input(g, "x"), *list = i % 2 ? &x : NULL;
        int count = i % 2 ? -2 : 2;
        if (i < 2) {
            tutti_control_push(g, count, list);
            tutti_neg(x);
            tutti_control_pop(g);
        } else
            (tutti_group)(g, NULL, count, list);
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), i % 2 ? "-2 are announced, and the array cannot have"
                                                    : "2 are announced, and the array is NULL");
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(functions_that_are_not_given_are_refused)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x");
    TUTTI_WITH_DEVICE_FN(g, NULL, NULL)
        CHECK(!tutti_sym_ok(tutti_neg(x)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no function is given that names devices (");
    tutti_graph_destroy(g);
    g = new_graph();
    x = input(g, "x");
    tutti_on_gradient(x, NULL, NULL);
    CHECK(!tutti_sym_ok(tutti_gradient(tutti_exp(x), x)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "tutti_on_gradient: no function is given");
    tutti_graph_destroy(g);
}

TUTTI_TEST(symbols_of_another_graph_are_refused)
{
    tutti_graph *g = new_graph(), *h = new_graph();
    tutti_sym x = input(g, "x"), foreign = input(h, "foreign");
    CHECK(!tutti_sym_ok(tutti_add(x, foreign)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "input 1 ('foreign') belongs to another graph");
    CHECK_OK(tutti_graph_check(h));
    CHECK_STATUS(tutti_graph_check(NULL), TUTTI_INVALID);
    tutti_graph_destroy(g);
    tutti_graph_destroy(h);
}

TUTTI_TEST(a_reset_graph_refuses_old_symbols)
{
    tutti_graph *g = new_graph();
    g->trace = true;
    tutti_sym x = input(g, "x");
    tutti__graph_reset(g);
    CHECK_INT(tutti_graph_node_count(g), 0);
    tutti_sym y = input(g, "y");
    CHECK_OK(tutti_graph_check(g));
    if (x.node == y.node) /* the arena gave the same place again */
        CHECK_INT(tutti_sym_type(x).dtype, TUTTI_NO_DTYPE);
    CHECK(!tutti_sym_ok(tutti_neg(x)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "earlier step of the tape");
    tutti_graph_destroy(g);
}

/* Also right after the reset, and where the step was so large that its memory was given back. */
TUTTI_TEST(a_tape_refuses_old_symbols_whatever_was_built_since)
{
    tutti_arena lasting = {0};
    tutti_graph *g = new_graph();
    g->trace = true;
    g->lasting = &lasting;
    for (int size = 1; size < 3000; size *= 14) {
        tutti_sym x = input(g, "x"), y = x;
        for (int i = 0; i < size; i++)
            y = tutti_neg(y);
        CHECK_OK(tutti_graph_check(g));
        tutti__graph_reset(g);
        CHECK_INT(tutti_sym_type(x).dtype, TUTTI_NO_DTYPE);
        CHECK_INT(tutti_sym_type(y).dtype, TUTTI_NO_DTYPE);
        CHECK(!tutti_sym_ok(tutti_neg(y)));
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "earlier step of the tape");
        tutti__graph_reset(g);
    }
    tutti_graph_destroy(g);
    tutti__arena_free(&lasting);
}

TUTTI_TEST(names_are_made_unique)
{
    tutti_graph *g = new_graph();
    tutti_sym syms[40];
    for (int i = 0; i < 40; i++)
        syms[i] = input(g, i % 2 ? "x" : "x_1");
    CHECK_OK(tutti_graph_check(g));
    CHECK_STR(tutti_node_name(syms[0].node), "x_1");
    CHECK_STR(tutti_node_name(syms[1].node), "x");
    CHECK_STR(tutti_node_name(syms[2].node), "x_1_1");
    CHECK_STR(tutti_node_name(syms[3].node), "x_2"); /* x_1 was there */
    CHECK_STR(tutti_node_name(syms[39].node), "x_20");
    for (int i = 0; i < 40; i++) {
        CHECK(tutti_graph_find(g, tutti_node_name(syms[i].node)) == syms[i].node);
        CHECK_CONTAINS(tutti_node_name(syms[i].node), "x");
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(name_scopes_nest)
{
    tutti_graph *g = new_graph();
    tutti_sym inner = TUTTI_NO_SYM, outer = TUTTI_NO_SYM;
    TUTTI_WITH_NAME(g, "net") {
        TUTTI_WITH_NAME(g, "layer1")
            inner = input(g, "w");
        outer = input(g, "w");
    }
    tutti_sym free_sym = input(g, "w");
    CHECK_STR(tutti_node_name(inner.node), "net/layer1/w");
    CHECK_STR(tutti_node_name(outer.node), "net/w");
    CHECK_STR(tutti_node_name(free_sym.node), "w");
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(bad_names_and_scopes_are_mistakes)
{
    static const char *const bad[] = {"", "a b", "/a", "a/", "a//b", "\xc3\xa4", "%"};
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        tutti_graph *g = new_graph();
        tutti_name_push(g, bad[i]);
        tutti_name_pop(g);
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "letters, digits");
        tutti_graph_destroy(g);
        g = new_graph();
        input(g, bad[i]);
        if (bad[i][0]) /* the empty name means none */
            CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        tutti_graph_destroy(g);
    }
    tutti_graph *g = new_graph();
    tutti_name_push(g, NULL);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "name scope: the name is NULL");
    tutti_graph_destroy(g);
    g = new_graph();
    tutti_name_push(g, "a");
    tutti_device_push(g, "/cpu:0");
    tutti_name_pop(g);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a name scope is closed");
    tutti_graph_destroy(g);
    g = new_graph();
    tutti_control_pop(g);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    tutti_graph_destroy(g);
}

/* Scopes that found no memory end as they began: those around them stay as they are. */
static void check_name_fault(const char *name, const char *fault)
{
    tutti_graph *g = new_graph();
    input(g, name);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), fault);
    CHECK_CONTAINS(tutti_error_message(), "; names have letters, digits and _ . - + : @, and a /");
    CHECK_CONTAINS(tutti_error_message(), "graph_test.c:");
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_bad_name_is_told_what_is_bad)
{
    static char long_one[70001];
    memset(long_one, 'n', sizeof long_one - 1);
    check_name_fault("a//b", "name 'a//b' has nothing between two /");
    check_name_fault("/a", "name '/a' begins with a /");
    check_name_fault("a/", "name 'a/' ends with a /");
    check_name_fault("a b", "name 'a b' has ' ' at 1");
    check_name_fault("\xc3\xa4", "has byte 0xc3 at 0");
    check_name_fault(long_one, "nnn\u2026' has 70000 characters, at most 512 are read");
}

/* Names that could not be written are not built. */
TUTTI_TEST(a_name_is_not_too_long_with_its_scopes)
{
    char part[512] = {0};
    memset(part, 'n', sizeof part - 1);
    for (int more = 0; more < 2; more++) {
        tutti_graph *g = new_graph();
        void *data = NULL;
        size_t size;
        tutti_name_push(g, part);
        input(g, part); /* 1023 */
        if (more) {
            tutti_sym y = input(g, part);
            CHECK(!tutti_sym_ok(y));
            CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
            CHECK_CONTAINS(tutti_error_message(),
                           "nnn\u2026' has 1025 characters, at most 1024 are possible");
            CHECK_CONTAINS(tutti_error_message(), "graph_test.c:");
        } else {
            tutti_name_pop(g);
            CHECK_OK(tutti_graph_serialize(g, &data, &size));
        }
        free(data);
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(scopes_without_memory_say_so)
{
    tutti__shortage_or_skip();
    tutti_graph *g = new_graph();
    for (int i = 0; i < 8; i++)
        tutti_name_push(g, "outer");
    CHECK_INT(g->scopes.count, g->scopes.capacity);
    tutti_shortage shortage = tutti__shortage_begin();
    tutti_name_push(g, "lost");
    tutti_device_push(g, "/cpu:0");
    tutti_device_pop(g);
    tutti_name_pop(g);
    tutti__shortage_end(&shortage);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(), "no memory for a scope");
    CHECK_INT(g->scopes.count, 8);
    CHECK_INT(g->lost_scopes, 0);
    tutti_graph_destroy(g);
}

/* Each attempt comes further than the one before, until one succeeds. */
TUTTI_TEST(what_finds_no_memory_says_memory)
{
    enum { GRAPHS = 64 };
    tutti__shortage_or_skip();
    tutti_graph *graphs[GRAPHS];
    tutti_sym xs[GRAPHS], ys[GRAPHS];
    for (int i = 0; i < GRAPHS; i++) {
        graphs[i] = new_graph();
        xs[i] = input(graphs[i], "x");
        ys[i] = tutti_sum(tutti_mul(xs[i], 2));
    }
    char silent[256] = "";
    int failed = 0;
    tutti_shortage shortage = tutti__shortage_begin();
    tutti_status status = TUTTI_NO_MEMORY;
    for (bool eased = true; eased && status != TUTTI_OK; failed++) {
        void *data = NULL;
        size_t size;
        status = tutti_graph_serialize(graphs[0], &data, &size);
        if (status != TUTTI_OK && !strstr(tutti_error_message(), "memory"))
            snprintf(silent, sizeof silent, "%s", tutti_error_message());
        free(data);
        eased = tutti__shortage_ease(&shortage);
    }
    for (int i = 1; i < GRAPHS; i++) {
        tutti_gradient(ys[i], xs[i]);
        if (tutti_graph_check(graphs[i]) != TUTTI_OK && !strstr(tutti_error_message(), "memory"))
            snprintf(silent, sizeof silent, "%s", tutti_error_message());
        failed += tutti_graph_check(graphs[i]) != TUTTI_OK;
        tutti__shortage_ease(&shortage);
    }
    tutti__shortage_end(&shortage);
    CHECK_STR(silent, "");
    CHECK(failed > 1);
    for (int i = 0; i < GRAPHS; i++)
        tutti_graph_destroy(graphs[i]);
}

TUTTI_TEST(scopes_without_memory_for_their_text_say_so)
{
    tutti__shortage_or_skip();
    char name[501];
    tutti_graph *g = new_graph();
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 32; i++)
        tutti_control_push(g, 0, NULL);
    for (int i = 0; i < 32; i++)
        tutti_control_pop(g);
    CHECK_OK(tutti_graph_check(g));
    tutti_shortage shortage = tutti__shortage_begin();
    for (int i = 0; i < 31; i++)
        tutti_name_push(g, name);
    tutti__shortage_end(&shortage);
    CHECK_INT(g->scopes.count, 31);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(), "no memory for a scope");
    tutti_graph_destroy(g);
}

static const char *by_op(const tutti_node *node, void *context)
{
    ++*(int *)context;
    return strcmp(tutti_node_op(node), "neg") == 0 ? "/job:ps/task:3" : NULL;
}

TUTTI_TEST(device_scopes_merge_and_functions_are_asked)
{
    tutti_graph *g = new_graph();
    tutti_sym x = TUTTI_NO_SYM, y = TUTTI_NO_SYM, z = TUTTI_NO_SYM, w = TUTTI_NO_SYM;
    int asked = 0;
    TUTTI_WITH_DEVICE(g, "/job:worker/task:1") {
        TUTTI_WITH_DEVICE(g, "/device:GPU:0")
            x = input(g, "x");
        TUTTI_WITH_DEVICE_FN(g, by_op, &asked) {
            y = tutti_neg(x);
            TUTTI_WITH_DEVICE(g, "cpu:1")
                z = tutti_neg(x);
            w = tutti_exp(x);
        }
    }
    tutti_sym v = tutti_exp(x);
    CHECK_OK(tutti_graph_check(g));
    CHECK_STR(tutti_node_device(x.node), "/job:worker/task:1/gpu:0");
    CHECK_STR(tutti_node_device(y.node), "/job:ps/task:3");
    CHECK_STR(tutti_node_device(z.node),
              "/job:ps/task:3/cpu:1"); /* the inner scope gave a kind only */
    CHECK_STR(tutti_node_device(w.node), "/job:worker/task:1");
    CHECK_STR(tutti_node_device(v.node), "");
    CHECK_INT(asked, 3);
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_bad_device_is_a_mistake)
{
    tutti_graph *g = new_graph();
    TUTTI_WITH_DEVICE(g, "/cpu:zero")
        input(g, "x");
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "/cpu:zero");
    tutti_graph_destroy(g);
}

/* However many there are, each once, in their order; a copy's are its own. */
TUTTI_TEST(nodes_wait_for_many)
{
    enum { MANY = 100 };
    tutti_graph *g = new_graph(), *other = new_graph();
    tutti_sym x = input(g, "x"), before[MANY], last;
    for (int i = 0; i < MANY; i++)
        before[i] = tutti_neg(x);
    last = tutti_no_op(g);
    for (int i = 0; i < 2 * MANY; i++)
        CHECK_OK(tutti__node_after(last.node, before[i / 2].node));
    CHECK_INT(last.node->control_count, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(last.node->controls[i] == before[i].node);
    tutti_node *copy, *more = input(other, "y").node;
    CHECK_OK(tutti__node_copy(other, last.node, &copy));
    copy->control_count = MANY - 1;
    CHECK_OK(tutti__node_after(copy, more));
    CHECK(copy->controls[MANY - 1] == more &&
          last.node->controls[MANY - 1] == before[MANY - 1].node);
    CHECK_INT(last.node->control_count, MANY);
    before[0].node->dead = before[1].node->dead = true; /* what is gone leaves the list */
    CHECK_OK(tutti__graph_sort(g));
    CHECK_INT(last.node->control_count, MANY - 2);
    for (int i = 2; i < MANY; i++)
        CHECK_OK(tutti__node_after(last.node, before[i].node));
    CHECK_INT(last.node->control_count, MANY - 2);
    CHECK_OK(tutti__node_after(last.node, x.node));
    CHECK(last.node->controls[0] == before[2].node && last.node->controls[MANY - 2] == x.node);
    tutti_graph_destroy(g);
    tutti_graph_destroy(other);
}

TUTTI_TEST(control_scopes_make_nodes_wait)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), a = tutti_neg(x), b = tutti_exp(x), c = TUTTI_NO_SYM,
              d = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, a) {
        TUTTI_WITH_CONTROL(g, b, a)
            c = tutti_square(x);
        d = tutti_square(x);
    }
    tutti_sym e = tutti_square(x);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(c.node->control_count, 2); /* once each */
    CHECK(c.node->controls[0] == a.node && c.node->controls[1] == b.node);
    CHECK_INT(d.node->control_count, 1);
    CHECK_INT(e.node->control_count, 0);
    tutti_graph *h = new_graph();
    tutti_control_push(h, 1, &a);
    CHECK_STATUS(tutti_graph_check(h), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "belongs to another graph");
    tutti_graph_destroy(g);
    tutti_graph_destroy(h);
}

/* As many edges as nodes that wait and nodes that are waited for, not as many as pairs of them. */
TUTTI_TEST(control_scopes_of_many_nodes_wait_for_one)
{
    enum { MANY = 40 };
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), before[MANY], after = x;
    for (int i = 0; i < MANY; i++)
        before[i] = tutti_neg(x);
    tutti_control_push(g, MANY, before);
    after = tutti_square(x);
    tutti_control_pop(g);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(after.node->control_count, 1);
    CHECK_INT(after.node->controls[0]->control_count, MANY);
    tutti_sym group = (tutti_group)(g, NULL, MANY, before);
    CHECK_INT(group.node->control_count, MANY);
    tutti_graph_destroy(g);
}

TUTTI_TEST(colocation_scopes_name_a_neighbour)
{
    tutti_graph *g = new_graph(), *h = new_graph();
    tutti_sym x = input(g, "x"), y = TUTTI_NO_SYM, z = TUTTI_NO_SYM;
    TUTTI_WITH_COLOCATION(g, x) {
        y = tutti_neg(x);
        TUTTI_WITH_COLOCATION(g, y)
            z = tutti_neg(x);
    }
    CHECK(y.node->colocate == x.node);
    CHECK(z.node->colocate == y.node);
    CHECK(tutti_neg(x).node->colocate == NULL);
    TUTTI_WITH_COLOCATION(h, x)
        input(h, "y");
    CHECK_STATUS(tutti_graph_check(h), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "neighbour ('x') belongs to another graph");
    tutti_graph_destroy(g);
    tutti_graph_destroy(h);
}

/* Without a word the order, or the neighbour, would be lost. */
TUTTI_TEST(scopes_refuse_what_is_no_symbol)
{
    tutti_graph *g = new_graph(), *h = new_graph();
    tutti_sym x = input(g, "x"), none = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, x, none)
        CHECK(!tutti_sym_ok(tutti_neg(x)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "control dependency 1 is not a symbol");
    CHECK_CONTAINS(tutti_error_message(), "graph_test.c:");
    TUTTI_WITH_COLOCATION(h, none)
        input(h, "x");
    CHECK_STATUS(tutti_graph_check(h), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "colocation: the neighbour is not a symbol");
    tutti_graph_destroy(g);
    tutti_graph_destroy(h);
}

TUTTI_TEST(colocation_counts_before_device_scopes)
{
    tutti_graph *g = new_graph();
    tutti_sym far_one = TUTTI_NO_SYM, y = TUTTI_NO_SYM, v = TUTTI_NO_SYM, w = TUTTI_NO_SYM;
    tutti_sym x = input(g, "x");
    TUTTI_WITH_DEVICE(g, "far:1")
        far_one = tutti_neg(x);
    tutti_sym sum = tutti_add(x, tutti_neg(far_one)); /* goes where its input is */
    TUTTI_WITH_DEVICE(g, "cpu:1") {
        TUTTI_WITH_COLOCATION(g, sum) {
            y = tutti_neg(x);
            v = tutti_variable(g, tutti_zeros(2), .name = "v");
        }
        TUTTI_WITH_COLOCATION(g, x)
            w = tutti_variable(g, tutti_zeros(2), .name = "w");
    }
    CHECK_STR(y.node->device, far_one.node->device);
    CHECK(y.node->colocate == sum.node);
    CHECK_STR(v.node->device, far_one.node->device);
    CHECK(v.node->colocate == NULL); /* settled: runs may leave the neighbour out */
    CHECK_STR(w.node->device, "");
    tutti_graph_destroy(g);
}

/* Reads that nobody asked for are shared, but not across a control scope. */
TUTTI_TEST(variables_are_read_where_values_are_wanted)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(2, 3), .name = "v");
    tutti_sym a = tutti_neg(v), b = tutti_add(v, v), c = TUTTI_NO_SYM, d = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_check(g));
    CHECK(tutti_sym_type(v).handle);
    CHECK_STR(tutti_node_op(a.node->inputs[0].node), "read");
    CHECK(b.node->inputs[0].node == a.node->inputs[0].node);
    CHECK(b.node->inputs[1].node == a.node->inputs[0].node);
    TUTTI_WITH_CONTROL(g, a)
        c = tutti_neg(v);
    CHECK(c.node->inputs[0].node != a.node->inputs[0].node);
    CHECK(c.node->inputs[0].node->controls[0] == a.node);
    d = tutti_assign_add(v, a);
    CHECK(d.node->inputs[0].node == v.node); /* an update takes the handle itself */
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

/* In a trace later reads and updates follow earlier updates. */
TUTTI_TEST(a_trace_orders_updates_and_reads)
{
    tutti_graph *g = new_graph();
    g->trace = true;
    tutti_sym v = tutti_variable(g, tutti_zeros(2, 3), .name = "v"), x = input(g, "x");
    v.node->current = (tutti_edge){0};
    v.node->updated = NULL;
    tutti_sym before = tutti_neg(v), first = tutti_assign_add(v, x), after = tutti_neg(v);
    tutti_sym second = tutti_assign_sub(v, x);
    CHECK_OK(tutti_graph_check(g));
    const tutti_node *read = after.node->inputs[0].node;
    CHECK(before.node->inputs[0].node != read);
    CHECK_INT(read->control_count, 1);
    CHECK(read->controls[0] == first.node);
    CHECK_INT(second.node->control_count, 1);
    CHECK(second.node->controls[0] == first.node);
    tutti_graph_destroy(g);
}

TUTTI_TEST(sizes_that_overflow_are_mistakes)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, INT64_C(1) << 40, 1);
    tutti_sym y = tutti_placeholder_named(g, "y", TUTTI_F32, 1, INT64_C(1) << 40);
    CHECK(!tutti_sym_ok(tutti_add(x, y)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "overflows 64 bits");
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_graph_cannot_be_its_own_subgraph)
{
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x");
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("cond_graph", g), TUTTI_GRAPH_ATTR("body_graph", g),
                          TUTTI_INT("loop_count", 1)};
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "while", 1, &x, 3, attrs)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the graph that the node stands in");
    tutti_graph_destroy(g);
}

/* A user's operator stands beside ours. */
static tutti_status same(tutti_infer *node)
{
    return tutti_infer_same(node);
}
static tutti_status refuse_to_run(const tutti_kernel_call *call)
{
    return tutti_fail(TUTTI_UNSUPPORTED, "%s is never run", call->op->name);
}

static tutti_op operator_of(const char *name)
{
    return (tutti_op){.struct_size = sizeof(tutti_op),
                      .name = name,
                      .version = 1,
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .outputs = 1,
                      .infer = same,
                      .reference = refuse_to_run};
}

/* Without memory in the midst of it: not there by any of its names. */
TUTTI_TEST(operators_that_find_no_memory_are_not_registered)
{
    tutti__shortage_or_skip();
    static char names[64][32]; /* maps grow now and then: one of these is in the midst of it */
    static tutti_op ops[64];
    for (int i = 0; i < 64; i++) {
        snprintf(names[i], sizeof names[i], "test.short%d", i);
        ops[i] = operator_of(names[i]);
        bool found = false;
        tutti_shortage shortage = tutti__shortage_begin();
        tutti_shortage_piece *reserved = shortage.reserved;
        shortage.reserved = NULL; /* the smallest pieces first, of which one holds a name */
        tutti_status status;
        while ((status = tutti_op_register(&ops[i])) == TUTTI_NO_MEMORY) {
            found |= tutti_op_find(names[i]) != NULL;
            if (!tutti__shortage_ease(&shortage))
                break;
        }
        shortage.reserved = reserved;
        tutti__shortage_end(&shortage);
        CHECK_OK(status);
        CHECK(!found);
        CHECK(tutti_op_find(names[i]) == &ops[i]);
    }
}

TUTTI_TEST(operators_are_registered_by_name_and_version)
{
    static tutti_op first, second, bad;
    first = second = bad = operator_of("test.registered");
    second.version = 2;
    CHECK_OK(tutti_op_register(&second));
    CHECK_OK(tutti_op_register(&first));
    CHECK_STATUS(tutti_op_register(&first), TUTTI_EXISTS);
    CHECK(tutti_op_find("test.registered") == &second); /* the newest, whatever the order */
    CHECK(tutti_op_find("test.registered@1") == &first);
    CHECK(tutti_op_find("test.registered@3") == NULL);
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x"), y = tutti_apply_op(g, "test.registered@1", 1, &x, 0, NULL);
    CHECK(y.node->op == &first);
    tutti_graph_destroy(g);
    bad.name = "test. space";
    CHECK_STATUS(tutti_op_register(&bad), TUTTI_INVALID);
    bad.name = "test.without.rule";
    bad.infer = NULL;
    CHECK_STATUS(tutti_op_register(&bad), TUTTI_INVALID);
    CHECK_STATUS(tutti_op_register(NULL), TUTTI_INVALID);
}

TUTTI_TEST(operators_are_listed_in_order)
{
    const tutti_op *ops[4096];
    size_t count = tutti_op_list(0, NULL);
    CHECK(count > 0 && count <= TUTTI_COUNT(ops));
    CHECK_INT(tutti_op_list(TUTTI_COUNT(ops), ops), count);
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(ops[i - 1]->name, ops[i]->name) <= 0);
}

static tutti_status infer_below_zero(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    node->outputs[0].dims[0] -= 10;
    return TUTTI_OK;
}

static tutti_status do_nothing(const tutti_kernel_call *call)
{
    (void)call;
    return TUTTI_OK;
}

TUTTI_TEST(operators_of_users_are_checked)
{
    static tutti_op op = {.struct_size = sizeof op,
                          .name = "test.below_zero",
                          .version = 1,
                          .doc = "test.below_zero(x): a rule that forgets small inputs",
                          .category = "test",
                          .min_inputs = 2,
                          .max_inputs = 1,
                          .outputs = 1,
                          .infer = infer_below_zero,
                          .reference = do_nothing};
    CHECK_STATUS(tutti_op_register(&op), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "at least 2 inputs and at most 1");
    op.min_inputs = 1;
    CHECK_OK(tutti_op_register(&op));
    tutti_graph *g = new_graph();
    tutti_sym x = input(g, "x");
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "test.below_zero", 1, &x, 0, NULL)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the dimension -8 (axis 0)");
    tutti_graph_destroy(g);
}

/* Copies the type of a variable's handle, and with it that it is one. */
static tutti_status infer_first(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    return TUTTI_OK;
}

TUTTI_TEST(a_rule_that_makes_a_handle_is_refused)
{
    static const tutti_op op = {.struct_size = sizeof op,
                                .name = "test.makes_a_handle",
                                .version = 1,
                                .doc = "test.makes_a_handle(v): a rule that forgets .handle",
                                .category = "test",
                                .flags =
                                    TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .outputs = 1,
                                .infer = infer_first,
                                .reference = do_nothing};
    CHECK_OK(tutti_op_register(&op));
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_ones(2));
    CHECK(!tutti_sym_ok(tutti_apply_op(g, op.name, 1, &v, 0, NULL)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INTERNAL);
    CHECK_CONTAINS(tutti_error_message(), "made output 0 a handle");
    CHECK_CONTAINS(tutti_error_message(), "graph_test.c");
    tutti_graph_destroy(g);
}
