/* verify_test.c: rewritten steps of a dense, a convolutional and a transformer network are proved,
 * and are not once a collective is left out, made twice or moved. */
#include <string.h>

#include "parallel/spmd/verify_networks_test.h"

static void check(void (*build)(network *n), const char *mesh, const char *layout)
{
    int tried[MUTATIONS] = {0};
    trial t;
    begin(build, mesh, layout, &t);
    CHECK_OK(tutti__spmd_verify(t.text, &t.spmd));
    int count = 0;
    while (collective(t.text, count))
        count++;
    CHECK(count >= 1);
    finish(&t);
    for (int c = 0; c < count; c++)
        for (int how = 0; how < MUTATIONS; how++) {
            begin(build, mesh, layout, &t);
            tutti_node *node = collective(t.text, c);
            if (mutate(t.text, node, how, c % node->output_count)) {
                CHECK_OK(tutti__graph_sort(t.text));
                tutti_status status = tutti__spmd_verify(t.text, &t.spmd);
                /* A sum that is moved behind a linear operator is the same sum. */
                if (how != MOVE || status != TUTTI_OK) {
                    CHECK_INT(status, TUTTI_INTERNAL);
                    CHECK_CONTAINS(tutti_error_message(), "on a rank of the mesh");
                }
                tried[how]++;
            }
            finish(&t);
        }
    CHECK(tried[DROP] > 0 && tried[DOUBLE] > 0);
}

TUTTI_TEST(rewritten_dense_step_is_proved)
{
    check(dense, "batch=4", "batch:batch");
    check(dense, "data=2,model=2", "batch:data;hidden:model");
}

TUTTI_TEST(rewritten_convolutional_step_is_proved)
{
    check(convolution, "batch=4", "batch:batch");
    check(convolution, "data=2,model=2", "batch:data;hidden:model");
}

TUTTI_TEST(rewritten_transformer_step_is_proved)
{
    check(transformer, "batch=4", "batch:batch");
    check(transformer, "data=2,model=2", "batch:data;hidden:model");
}

/* The text is right, and one rank is not what it says: none sees it in what the others do. */
static tutti_graph *ranks_of(trial *t)
{
    tutti_graph *graph;
    CHECK_OK(tutti__spmd_verify(t->text, &t->spmd));
    CHECK_OK(tutti__spmd_specialize(t->text, &t->spmd, &t->scratch, &graph));
    CHECK_OK(tutti__spmd_verify_ranks(graph, t->text, &t->spmd));
    return graph;
}

static void refuse_ranks(tutti_graph *graph, trial *t)
{
    CHECK_OK(tutti__graph_sort(graph));
    CHECK_INT(tutti__spmd_verify_ranks(graph, t->text, &t->spmd), TUTTI_INTERNAL);
    CHECK_CONTAINS(tutti_error_message(), "rank");
}

TUTTI_TEST(one_rank_that_leaves_a_collective_out_is_found)
{
    trial t;
    begin(transformer, "data=2,model=2", "batch:data;hidden:model", &t);
    tutti_graph *graph = ranks_of(&t);
    int count = 0, tried[MUTATIONS] = {0};
    while (collective(graph, count))
        count++;
    tutti_graph_destroy(graph);
    for (int c = 0; c < count; c++)
        for (int how = 0; how < MUTATIONS; how++) {
            graph = ranks_of(&t);
            tutti_node *node = collective(graph, c);
            if (mutate(graph, node, how, c % node->output_count)) {
                refuse_ranks(graph, &t);
                tried[how]++;
            }
            tutti_graph_destroy(graph);
        }
    CHECK(tried[DROP] > 0 && tried[DOUBLE] > 0);
    finish(&t);
}

TUTTI_TEST(rank_that_takes_the_block_of_another_is_found)
{
    trial t;
    begin(dense, "data=2,model=2", "batch:data;hidden:model", &t);
    tutti_graph *graph = ranks_of(&t);
    tutti_node *slice = NULL;
    for (size_t n = 0; n < graph->nodes.count; n++)
        slice = tutti__is(graph->nodes.data[n], "slice") ? graph->nodes.data[n] : slice;
    CHECK(slice);
    int64_t *begin_at = (void *)(uintptr_t)tutti__spmd_attr(slice, "begin")->value.ints,
            *end_at = (void *)(uintptr_t)tutti__spmd_attr(slice, "end")->value.ints;
    for (int i = 0; i < slice->types[0].rank; i++)
        if (begin_at[i] > 0) {
            end_at[i] -= begin_at[i];
            begin_at[i] = 0;
        }
    refuse_ranks(graph, &t);
    tutti_graph_destroy(graph);
    finish(&t);
}

/* A user reads where the model went wrong, not the strategy. */
TUTTI_TEST(verifier_names_the_users_line)
{
    trial t;
    begin(dense, "batch=4", "batch:batch", &t);
    tutti_node *node = collective(t.text, 0);
    CHECK(mutate(t.text, node, DROP, 0));
    CHECK_OK(tutti__graph_sort(t.text));
    CHECK_INT(tutti__spmd_verify(t.text, &t.spmd), TUTTI_INTERNAL);
    CHECK_CONTAINS(tutti_error_message(), "verify_networks_test.h:");
    CHECK_CONTAINS(tutti_error_message(), "partial(sum: batch)");
    finish(&t);
}
