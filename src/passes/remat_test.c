#include "base/test.h"
#include "passes/pass.h"
#include "tutti/gradients.h"
#include "tutti/ops.h"

extern const tutti_pass tutti_pass_remat;

/* y = sum(f(x)) and its gradient, f = sin(exp(x)) in a region of its own. */
typedef struct small {
    tutti_graph *graph;
    tutti_sym x, middle, inner, loss, grad;
} small;

static small make(bool remat)
{
    small s;
    CHECK_OK(tutti_graph_create(&s.graph));
    s.x = tutti_placeholder(s.graph, TUTTI_F32, 4, 8);
    tutti__region_push(s.graph, 0, remat);
    s.middle = tutti_exp(s.x);
    s.inner = tutti_sin(s.middle);
    tutti__region_pop(s.graph);
    s.loss = tutti_sum(tutti_square(s.inner));
    s.grad = tutti_gradient(s.loss, s.x);
    CHECK_OK(tutti__graph_result(s.graph, tutti__edge(s.loss)));
    CHECK_OK(tutti__graph_result(s.graph, tutti__edge(s.grad)));
    CHECK_OK(tutti_graph_check(s.graph));
    return s;
}

static int run(tutti_graph *graph, bool keeps_all)
{
    tutti_pass_context context = {.keeps_all = keeps_all};
    int changes = -1;
    CHECK_OK(tutti_pass_remat.run(graph, &context, &changes));
    CHECK_OK(tutti_graph_verify(graph));
    return changes;
}

static int count_again(const tutti_graph *graph, const char *op)
{
    int count = 0;
    for (size_t n = 0; n < graph->nodes.count; n++)
        count += graph->nodes.data[n]->recomputed && tutti__is(graph->nodes.data[n], op);
    return count;
}

TUTTI_TEST(remat_copies_what_gradients_read_and_keeps_what_others_read)
{
    small s = make(true);
    CHECK_INT(run(s.graph, false), 1); /* exp; what square reads is kept */
    CHECK_INT(count_again(s.graph, "exp"), 1);
    CHECK_INT(count_again(s.graph, "sin"), 0);
    for (size_t n = 0; n < s.graph->nodes.count; n++) {
        const tutti_node *node = s.graph->nodes.data[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i].node->recomputed) { /* read late, by gradients alone */
                CHECK(node->backward || node->recomputed);
                CHECK(node->inputs[i].node->id > s.loss.node->id);
                CHECK_STR(node->inputs[i].node->origin, s.middle.node->origin);
            }
    }
    CHECK_INT(run(s.graph, false), 0); /* what is copied once is not copied again */
    tutti_graph_destroy(s.graph);
}

TUTTI_TEST(remat_leaves_graphs_alone_that_do_not_ask_for_it)
{
    small s = make(false);
    size_t count = s.graph->nodes.count;
    CHECK_INT(run(s.graph, false), 0);
    CHECK_INT(s.graph->nodes.count, count);
    tutti_graph_destroy(s.graph);
    s = make(true);
    CHECK_INT(run(s.graph, true), 0);
    tutti_graph_destroy(s.graph);
}

TUTTI_TEST(remat_keeps_results_and_what_a_kept_view_shows)
{
    small s = make(true);
    CHECK_OK(tutti__graph_result(s.graph, tutti__edge(s.middle)));
    CHECK_INT(run(s.graph, false), 0);
    tutti_graph_destroy(s.graph);
    CHECK_OK(tutti_graph_create(&s.graph));
    s.x = tutti_placeholder(s.graph, TUTTI_F32, 4, 8);
    TUTTI_WITH_REMAT(s.graph)
    s.inner = tutti_reshape(tutti_exp(s.x), 32);
    s.loss = tutti_sum(tutti_square(s.inner));
    s.grad = tutti_gradient(s.loss, s.x);
    CHECK_OK(tutti__graph_result(s.graph, tutti__edge(s.grad)));
    CHECK_INT(run(s.graph, false), 0); /* exp's memory is that of what square reads */
    tutti_graph_destroy(s.graph);
}

/* Of scopes inside each other the outermost counts. */
TUTTI_TEST(remat_scopes_inside_each_other_are_one)
{
    tutti_graph *graph;
    tutti_sym a = TUTTI_NO_SYM, b = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 4);
    tutti__region_push(graph, 0, false);
    TUTTI_WITH_REMAT(graph)
    {
        a = tutti_exp(x);
        TUTTI_WITH_REMAT(graph)
        b = tutti_exp(a);
    }
    tutti_sym c = tutti_exp(b);
    tutti__region_pop(graph);
    CHECK(a.node->remat && b.node->remat && !c.node->remat);
    CHECK_INT(a.node->region, b.node->region);
    CHECK(c.node->region != a.node->region && c.node->region != 0);
    CHECK_INT(x.node->region, 0);
    CHECK(!x.node->backward);
    tutti_graph_destroy(graph);
}
