/* shown.c: numbers of a step that its user may show after the update. A loop reads its losses and
 * its accuracy where it prints them, behind the optimizer; the weights that they came from are gone
 * by then. So a run that updates also gives the losses of the step's gradients, the numbers that
 * these are made of, and numbers that nothing else is made of. Each is one element. */
#include "exec/tape/eager.h"

enum { MAX_TERMS = 8 }; /* numbers of which a loss is made */

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
}

static bool is_number(tutti_edge edge)
{
    const tutti_type *type = tutti__edge_type(edge);
    return type->rank == 0 && !type->handle && type->dtype != TUTTI_STRING &&
           !tutti__is(edge.node, "constant") && !tutti__is(edge.node, "placeholder") &&
           !tutti__is(edge.node, "read");
}

tutti_status tutti__eager_note_loss(tutti_eager *eager, tutti_edge y)
{
    size_t first = eager->losses.count;
    if (!is_number(y))
        return TUTTI_OK;
    bool ok = tutti__eager_want(&eager->losses, y);
    for (size_t at = first; ok && at < eager->losses.count; at++) {
        const tutti_node *node = eager->losses.data[at].node;
        for (int i = 0; ok && i < node->input_count; i++)
            if (is_number(node->inputs[i]) && eager->losses.count <= first + MAX_TERMS)
                ok = tutti__eager_want(&eager->losses, node->inputs[i]);
    }
    return ok ? TUTTI_OK : no_memory();
}

/* Behind the last update that is queued; 0: there is none. */
static uint32_t updates_end(const tutti_eager *eager)
{
    uint32_t end = 0;
    for (size_t i = 0; i < eager->targets.count; i++) {
        const tutti_node *node = eager->targets.data[i];
        if ((node->op->flags & TUTTI_OP_UPDATES) && node->id >= end)
            end = node->id + 1;
    }
    return end;
}

/* Numbers that no queued node takes, but for those that differentiation made. */
static tutti_status keep_last(tutti_eager *eager, uint32_t end)
{
    tutti_graph *graph = eager->graph;
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    for (size_t n = eager->done; n < graph->nodes.count; n++)
        for (int i = 0; i < graph->nodes.data[n]->input_count; i++)
            eager->seen.data[graph->nodes.data[n]->inputs[i].node->id] = 1;
    for (uint32_t n = eager->done; n < end; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (!node->dead && !node->backward && !eager->seen.data[n] && node->output_count == 1 &&
            !tutti__eager_acts(node) && is_number((tutti_edge){node, 0}) &&
            !tutti__eager_want(&eager->fetches, (tutti_edge){node, 0}))
            return no_memory();
    }
    return TUTTI_OK;
}

tutti_status tutti__eager_keep_shown(tutti_eager *eager)
{
    uint32_t end = updates_end(eager);
    if (end == 0)
        return TUTTI_OK;
    for (size_t i = 0; i < eager->losses.count; i++) {
        tutti_edge loss = eager->losses.data[i];
        if (loss.node->id >= eager->done && loss.node->id < end &&
            !tutti__eager_want(&eager->fetches, loss))
            return no_memory();
    }
    return keep_last(eager, end);
}
