/* reference_run.c: runs graphs by reference kernels.
 *
 * A node runs at most once, in the order of the node array, which is topological. */
#include <stdlib.h>

#include "ops/reference.h"

typedef struct tutti_reference_state {
    const tutti_graph *graph;
    bool *needed;           /* by node id */
    tutti_tensor ***values; /* by node id: NULL, or one entry per output, NULL until known */
} tutti_reference_state;

/* The values of a node's outputs, all NULL at first. */
static tutti_tensor **values_of(tutti_reference_state *state, const tutti_node *node)
{
    tutti_tensor ***values = &state->values[node->id];
    if (*values == NULL)
        *values = calloc((size_t)node->output_count + 1, sizeof **values);
    return *values;
}

static tutti_tensor *known(const tutti_reference_state *state, tutti_edge edge)
{
    tutti_tensor **values = state->values[edge.node->id];
    return values == NULL ? NULL : values[edge.index];
}

static void release_state(tutti_reference_state *state)
{
    for (size_t n = 0; state->values != NULL && n < state->graph->nodes.count; n++) {
        for (int i = 0; state->values[n] != NULL && i < state->graph->nodes.data[n]->output_count;
             i++)
            tutti_tensor_release(state->values[n][i]);
        free(state->values[n]);
    }
    free(state->values);
    free(state->needed);
}

static tutti_status take_feeds(tutti_reference_state *state, int count,
                               const tutti_reference_feed *feeds)
{
    for (int i = 0; i < count; i++) {
        const tutti_node *node = feeds[i].edge.node;
        if (node->graph != state->graph || (int)feeds[i].edge.index >= node->output_count)
            return tutti_fail(TUTTI_INVALID, "reference: feed %d ('%s') is no edge of this graph",
                              i, node->name);
        tutti_tensor **values = values_of(state, node);
        if (values == NULL)
            return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for values");
        if (values[feeds[i].edge.index] != NULL)
            return tutti_fail(TUTTI_INVALID, "reference: '%s' is fed twice", node->name);
        values[feeds[i].edge.index] = tutti_tensor_retain(feeds[i].value);
    }
    return TUTTI_OK;
}

/* Whether every output is fed, so that the node need not run. */
static bool is_fed(const tutti_reference_state *state, const tutti_node *node)
{
    tutti_tensor **values = state->values[node->id];
    for (int i = 0; i < node->output_count; i++)
        if (values == NULL || values[i] == NULL)
            return false;
    return node->output_count > 0;
}

/* Walks from users to inputs, so one pass from the end is enough. */
static void mark_needed(tutti_reference_state *state, int fetch_count, const tutti_edge *fetches,
                        size_t target_count, tutti_node *const *targets)
{
    for (int i = 0; i < fetch_count; i++)
        if (known(state, fetches[i]) == NULL)
            state->needed[fetches[i].node->id] = true;
    for (size_t i = 0; i < target_count; i++)
        state->needed[targets[i]->id] = true;
    for (size_t n = state->graph->nodes.count; n-- > 0;) {
        const tutti_node *node = state->graph->nodes.data[n];
        state->needed[n] = state->needed[n] && !is_fed(state, node);
        if (!state->needed[n])
            continue;
        for (int i = 0; i < node->input_count; i++)
            if (known(state, node->inputs[i]) == NULL)
                state->needed[node->inputs[i].node->id] = true;
        for (int i = 0; i < node->control_count; i++)
            state->needed[node->controls[i]->id] = true;
    }
}

static tutti_status run_node(tutti_reference_state *state, const tutti_node *node)
{
    size_t in = (size_t)node->input_count, out = (size_t)node->output_count;
    tutti_tensor **values = values_of(state, node);
    tutti_tensor **scratch = calloc(in + out + 1, sizeof *scratch); /* inputs, then outputs */
    tutti_status status = TUTTI_OK;
    if (values == NULL || scratch == NULL)
        status =
            tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for the values of '%s'", node->name);
    for (size_t i = 0; status == TUTTI_OK && i < in; i++)
        scratch[i] = known(state, node->inputs[i]);
    if (status == TUTTI_OK)
        status = tutti__reference_node(node, scratch, scratch + in);
    for (size_t i = 0; status == TUTTI_OK && i < out; i++) {
        if (values[i] == NULL)
            values[i] = scratch[in + i];
        else
            tutti_tensor_release(scratch[in + i]); /* this output is fed */
    }
    free(scratch);
    return status;
}

/* The whole of a run; targets are nodes run for their effect. */
static tutti_status reference_run_run(const tutti_graph *graph, int feed_count,
                                      const tutti_reference_feed *feeds, int fetch_count,
                                      const tutti_edge *fetches, size_t target_count,
                                      tutti_node *const *targets, tutti_tensor **ret_values)
{
    tutti_reference_state state = {.graph = graph};
    tutti_status status = tutti_graph_check(graph);
    state.needed = calloc(graph->nodes.count + 1, sizeof *state.needed);
    state.values = calloc(graph->nodes.count + 1, sizeof *state.values);
    if (state.needed == NULL || state.values == NULL)
        status = tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a run");
    if (status == TUTTI_OK)
        status = take_feeds(&state, feed_count, feeds);
    if (status == TUTTI_OK)
        mark_needed(&state, fetch_count, fetches, target_count, targets);
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++)
        if (state.needed[n])
            status = run_node(&state, graph->nodes.data[n]);
    for (int i = 0; status == TUTTI_OK && i < fetch_count; i++)
        ret_values[i] = tutti_tensor_retain(known(&state, fetches[i]));
    release_state(&state);
    return status;
}

tutti_status tutti__reference_run(const tutti_graph *graph, int feed_count,
                                  const tutti_reference_feed *feeds, int fetch_count,
                                  const tutti_edge *fetches, tutti_tensor **ret_values)
{
    return reference_run_run(graph, feed_count, feeds, fetch_count, fetches, 0, NULL, ret_values);
}

tutti_status tutti__reference_subgraph(const tutti_graph *graph, int count,
                                       tutti_tensor *const *arguments, tutti_tensor **ret_results)
{
    int feed_count = 0;
    tutti_reference_feed *feeds = calloc(graph->nodes.count + 1, sizeof *feeds);
    if (feeds == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "reference: no memory for a sub-graph's arguments");
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->dead || !tutti__is(node, "parameter"))
            continue;
        int64_t index = tutti__int(node, "index");
        if (index >= 0 && index < count)
            feeds[feed_count++] = (tutti_reference_feed){{node, 0}, arguments[index]};
    }
    tutti_status status =
        reference_run_run(graph, feed_count, feeds, (int)graph->results.count, graph->results.data,
                          graph->targets.count, graph->targets.data, ret_results);
    free(feeds);
    return status;
}
