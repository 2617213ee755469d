/* remat.c: forward values of regions that are to be recomputed (a layer with .remat, a scope
 * TUTTI_WITH_REMAT) are not kept until the gradients want them: these read a second computation.
 *
 * A value is kept when somebody outside its region reads it who is no gradient, when it is a
 * result, when its memory is that of a kept value, or when it cannot be had twice: state, queues,
 * what meets others, what waits. All else that gradients read is copied, down to what is kept. A
 * copy has the origin of what it copies, so random numbers are the same, and an update in the
 * region is never among the copies: so a step computes the same bits as without.
 *
 * Copies stand in the graph where their first reader asks for them, which is when the gradients
 * come to the region. It is the last pass: what is equal (cse.c) is merged no more, and a copy of a
 * fused node is run by the same kernel as the first time, which rounds the same. */
#include <stdlib.h>
#include <string.h>

#include "passes/remat.h"
#include "passes/rewrite.h"

typedef struct remat {
    tutti_graph *graph;
    size_t count;      /* nodes there were before */
    bool *again;       /* by id: of a region that is to be recomputed, and may be */
    bool *needed;      /* by id: gradients read it or what comes of it */
    tutti_node **copy; /* by id */
} remat;

bool tutti__remat_may(const tutti_node *node)
{
    const uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                           TUTTI_OP_DYNAMIC | TUTTI_OP_COLLECTIVE | TUTTI_OP_CONTROL |
                           TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE;
    if ((node->op->flags & never) || node->control_count > 0 || node->input_count == 0)
        return false;
    for (int i = 0; i < node->output_count; i++)
        if (!tutti_type_is_static(&node->types[i]) || node->types[i].dtype == TUTTI_STRING)
            return false;
    return node->output_count > 0;
}

/* Whether the value must be there until the gradients come, although its region is computed again.
 */
static bool is_kept_for(const tutti_node *reader, const tutti_node *node)
{
    return !reader->backward && reader->region != node->region;
}

static void remat_choose(remat *r)
{
    for (size_t n = 0; n < r->count; n++) {
        const tutti_node *node = r->graph->nodes.data[n];
        r->again[n] = node->remat && !node->backward && tutti__remat_may(node);
    }
    for (size_t i = 0; i < r->graph->results.count; i++)
        r->again[r->graph->results.data[i].node->id] = false;
    for (size_t i = 0; i < r->graph->targets.count; i++)
        r->again[r->graph->targets.data[i]->id] = false;
    for (size_t n = r->count; n-- > 0;) {
        const tutti_node *reader = r->graph->nodes.data[n];
        bool views_kept = (reader->op->flags & TUTTI_OP_VIEW) && !r->again[n] && !reader->backward;
        for (int i = 0; i < reader->input_count; i++)
            if (is_kept_for(reader, reader->inputs[i].node) || (views_kept && i == 0))
                r->again[reader->inputs[i].node->id] = false;
    }
}

static void mark_needed(remat *r)
{
    for (size_t n = r->count; n-- > 0;) {
        const tutti_node *reader = r->graph->nodes.data[n];
        for (int i = 0; (reader->backward || r->needed[n]) && i < reader->input_count; i++) {
            uint32_t from = reader->inputs[i].node->id;
            r->needed[from] = r->again[from];
        }
    }
}

static tutti_edge now(const remat *r, tutti_edge edge)
{
    tutti_node *copy = edge.node->id < r->count ? r->copy[edge.node->id] : NULL;
    return copy != NULL ? (tutti_edge){copy, edge.index} : edge;
}

static tutti_status copy_node(remat *r, const tutti_node *node)
{
    tutti_edge few[16], *inputs = few;
    tutti_node *copy;
    if (node->input_count > 16)
        inputs = malloc((size_t)node->input_count * sizeof *inputs);
    if (inputs == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compute '%s' again", node->name);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = now(r, node->inputs[i]);
    tutti_status status = tutti__node_add(r->graph, node->op, node->name, node->input_count, inputs,
                                          node->attr_count, node->attrs, &copy);
    if (inputs != few)
        free(inputs);
    TUTTI_TRY(status);
    memcpy(copy->types, node->types, (size_t)node->output_count * sizeof *copy->types);
    copy->shardings = node->shardings;
    copy->origin = node->origin;
    copy->device = node->device;
    copy->colocate = node->colocate;
    copy->file = node->file;
    copy->line = node->line;
    copy->recomputed = true;
    r->copy[node->id] = copy;
    return TUTTI_OK;
}

static tutti_status rewrite(remat *r, int *ret_copies)
{
    int copies = 0;
    remat_choose(r);
    mark_needed(r);
    for (size_t n = 0; n < r->count; n++)
        if (r->needed[n]) {
            TUTTI_TRY(copy_node(r, r->graph->nodes.data[n]));
            copies++;
        }
    for (size_t n = 0; n < r->count; n++) {
        tutti_node *reader = r->graph->nodes.data[n];
        for (int i = 0; reader->backward && i < reader->input_count; i++)
            reader->inputs[i] = now(r, reader->inputs[i]);
    }
    *ret_copies = copies;
    return copies > 0 ? tutti__graph_prune(r->graph) : TUTTI_OK;
}

static bool is_asked_for(const tutti_graph *graph)
{
    bool marked = false, backward = false;
    for (size_t n = 0; n < graph->nodes.count && !(marked && backward); n++) {
        marked = marked || graph->nodes.data[n]->remat;
        backward = backward || graph->nodes.data[n]->backward;
    }
    return marked && backward;
}

tutti_status tutti__remat(tutti_graph *graph, int *ret_copies)
{
    remat r = {.graph = graph, .count = graph->nodes.count};
    *ret_copies = 0;
    if (!is_asked_for(graph))
        return TUTTI_OK;
    r.again = calloc(r.count + 1, sizeof *r.again);
    r.needed = calloc(r.count + 1, sizeof *r.needed);
    r.copy = calloc(r.count + 1, sizeof(tutti_node *));
    tutti_status status = r.again != NULL && r.needed != NULL && r.copy != NULL
                              ? rewrite(&r, ret_copies)
                              : tutti_fail(TUTTI_NO_MEMORY,
                                           "no memory to choose what to compute "
                                           "again of %zu nodes",
                                           r.count);
    free(r.again);
    free(r.needed);
    free(r.copy);
    return status;
}

static tutti_status remat_run(tutti_graph *graph, const tutti_pass_context *context,
                              int *ret_changes)
{
    *ret_changes = 0;
    return context->keeps_all ? TUTTI_OK : tutti__remat(graph, ret_changes);
}

const tutti_pass tutti_pass_remat = {
    .name = "remat",
    .doc = "what is not to be kept for the gradients is computed again for them",
    .stage = TUTTI_PASS_PARTITION,
    .order = 70,
    .run = remat_run,
};
