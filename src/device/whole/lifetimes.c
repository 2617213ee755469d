/* lifetimes.c: how long a run keeps its values, and the most bytes of them there are at once.
 *
 * A value goes when the last node that reads it has run. Results, what late nodes make and what
 * they read stay until the end of the run: late nodes may run twice. Not counted is what others
 * own (inputs, constants, variables and their new values) and what reference kernels work in. */
#include <stdlib.h>

#include "device/whole/whole.h"

static size_t value_bytes(const tutti_node *node)
{
    size_t bytes = 0;
    if (node->dead || (node->op->flags & TUTTI_OP_HANDLE) || tutti__is(node, "parameter") ||
        tutti__is(node, "constant") || tutti__is(node, "read"))
        return 0;
    for (int i = 0; i < node->output_count; i++)
        bytes += (size_t)tutti_type_count(&node->types[i]) * tutti_dtype_size(node->types[i].dtype);
    return bytes;
}

/* While a cond or a while runs: all values of its larger sub-graph. */
static size_t inner_bytes(const tutti_node *node)
{
    size_t most = 0;
    for (int i = 0; i < node->attr_count; i++) {
        const tutti_graph *body =
            node->attrs[i].kind == TUTTI_ATTR_GRAPH ? node->attrs[i].value.graph : NULL;
        size_t bytes = 0;
        for (size_t n = 0; body && n < body->nodes.count; n++)
            bytes += value_bytes(body->nodes.data[n]) + inner_bytes(body->nodes.data[n]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void find_last_readers(tutti_whole_executable *e)
{
    const tutti_graph *graph = e->graph;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        e->last_reader[n] = e->late[n] ? TUTTI_WHOLE_KEPT : (uint32_t)n;
        for (int i = 0; !node->dead && i < node->input_count; i++)
            if (e->last_reader[node->inputs[i].node->id] != TUTTI_WHOLE_KEPT)
                e->last_reader[node->inputs[i].node->id] = e->last_reader[n];
    }
    for (size_t i = 0; i < graph->results.count; i++)
        e->last_reader[graph->results.data[i].node->id] = TUTTI_WHOLE_KEPT;
}

tutti_status tutti__whole_lifetimes(tutti_whole_executable *e)
{
    size_t count = e->graph->nodes.count, now = 0;
    e->last_reader = tutti__arena_array(&e->arena, count + 1, sizeof *e->last_reader);
    size_t *ending = calloc(count + 1, sizeof *ending); /* by node: bytes that go when it has run */
    if (!e->last_reader || !ending) {
        free(ending);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compile a partition");
    }
    find_last_readers(e);
    for (size_t n = 0; n < count; n++)
        if (e->last_reader[n] != TUTTI_WHOLE_KEPT)
            ending[e->last_reader[n]] += value_bytes(e->graph->nodes.data[n]);
    for (int late = 0; late < 2; late++)
        for (size_t n = 0; n < count; n++) {
            const tutti_node *node = e->graph->nodes.data[n];
            if (e->late[n] != (late == 1))
                continue;
            now += value_bytes(node);
            size_t most = now + inner_bytes(node);
            e->most_bytes = most > e->most_bytes ? most : e->most_bytes;
            now -= ending[n];
        }
    free(ending);
    return TUTTI_OK;
}

void tutti__whole_let_go(tutti_whole_run *r, const tutti_node *reader)
{
    const uint32_t *last = r->executable->last_reader;
    for (int i = 0; i < reader->input_count; i++) {
        const tutti_node *node = reader->inputs[i].node;
        if (last[node->id] == reader->id && r->values[node->id])
            tutti__tensors_drop(node->output_count, r->values[node->id]);
    }
    if (last[reader->id] == reader->id)
        tutti__tensors_drop(reader->output_count, r->values[reader->id]);
}
