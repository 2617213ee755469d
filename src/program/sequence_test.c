/* sequence_test.c: what makes little out of much runs early, and only that. */
#include "base/test.h"
#include "program/program.h"
#include "tutti/ops.h"

static int no_devices(void)
{
    return 0;
}

static const tutti_target target = {
    .name = "test", .kernels = "cpu", .streams = 1, .alignment = 64, .count = no_devices};

/* The instruction that makes a node's value. */
static int made_at(const tutti_program *p, tutti_sym sym)
{
    for (size_t i = 0; i < p->instruction_count; i++)
        if (p->instructions[i].node == sym.node)
            return (int)i;
    CHECK(!"no such instruction");
    return -1;
}

static tutti_program *lowered(tutti_graph *graph, tutti_state *state)
{
    static const tutti_device device = {.target = &target, .name = "test:0"};
    tutti_program *program = NULL;
    tutti_partition partition = {.graph = graph, .state = state};
    CHECK_OK(tutti_graph_check(graph));
    CHECK_OK(tutti__program_create(&device, &partition, &program));
    return program;
}

static tutti_sym input(tutti_graph *graph)
{
    tutti_attr attrs[] = {TUTTI_INT("index", 0), TUTTI_INT("dtype", TUTTI_F32),
                          TUTTI_INTS("dims", 2, ((int64_t[]){64, 32}))};
    return tutti_apply_op(graph, "parameter", 0, NULL, 3, attrs);
}

TUTTI_TEST(sequence_runs_sums_as_soon_as_nobody_else_reads)
{
    tutti_graph *graph;
    tutti_state *state;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti__state_create(&state));
    tutti_sym a = tutti_exp(input(graph)), b = tutti_sin(a), c = tutti_tanh(b), d = tutti_exp(c);
    tutti_sym flat = tutti_reshape(a, 2048);
    tutti_sym sum = tutti_sum(flat), other = tutti_sum(a, .axes = {0}), late = tutti_abs(d);
    tutti_sym results[] = {late, sum, other};
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti__graph_result(graph, tutti__edge(results[i])));
    tutti_program *p = lowered(graph, state);
    CHECK(made_at(p, sum) > made_at(p, b)); /* `a` lives until then anyhow */
    CHECK(made_at(p, sum) < made_at(p, c));
    CHECK(made_at(p, other) < made_at(p, c));
    CHECK(made_at(p, d) < made_at(p, late));
    tutti__program_destroy(p);
    tutti__state_destroy(state);
    tutti_graph_destroy(graph);
}

/* What follows an update stays behind it, and so does what waits for something. */
TUTTI_TEST(sequence_leaves_what_waits_where_it_is)
{
    tutti_graph *graph;
    tutti_state *state;
    tutti_sym sum = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti__state_create(&state));
    tutti_sym a = tutti_exp(input(graph)), b = tutti_sin(a), c = tutti_tanh(b), d = tutti_exp(c);
    TUTTI_WITH_CONTROL(graph, d)
        sum = tutti_sum(a);
    CHECK_OK(tutti__graph_result(graph, tutti__edge(sum)));
    tutti_program *p = lowered(graph, state);
    CHECK(made_at(p, sum) > made_at(p, d));
    tutti__program_destroy(p);
    tutti__state_destroy(state);
    tutti_graph_destroy(graph);
}
