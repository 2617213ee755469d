/* tape.c: what was recorded, and gradients through it. */
#include <string.h>

#include "exec/eager.h"
#include "graph/autodiff.h"
#include "graph/scope.h"

tutti_tape tutti_tape_begin(tutti_eager *eager)
{
    if (!eager)
        return (tutti_tape){0};
    /* What was read before is no part of the recording: it reads anew. */
    for (size_t n = 0; n < eager->graph->nodes.count; n++)
        eager->graph->nodes.data[n]->current = (tutti_edge){0};
    return (tutti_tape){.graph = eager->graph,
                        .first = (uint32_t)eager->graph->nodes.count,
                        .generation = eager->graph->generation};
}

void tutti_tape_end(tutti_tape *tape)
{
    if (!tape || !tape->graph)
        return;
    tape->last = (uint32_t)tape->graph->nodes.count;
}

/* What a tape watches, the latest first; in the memory of its step. */
struct tutti_watched {
    tutti_sym sym;
    const struct tutti_watched *before;
};

static bool watches(const tutti_tape *tape, tutti_sym x)
{
    for (const struct tutti_watched *w = tape->watched; w; w = w->before)
        if (w->sym.node == x.node && w->sym.index == x.index)
            return true;
    return false;
}

static bool is_of_this_step(const tutti_tape *tape)
{
    if (tape->generation == tape->graph->generation)
        return true;
    tutti__poison(tape->graph, TUTTI_INVALID, "the tape is of an earlier step; record it anew");
    return false;
}

void tutti_watch(tutti_tape *tape, tutti_sym sym)
{
    if (!sym.node || !tape || !tape->graph || !is_of_this_step(tape) || watches(tape, sym))
        return;
    if (tutti__sym_usable(tape->graph, sym, "tutti_watch: the symbol", -1) != TUTTI_OK) {
        tutti__poison(tape->graph, TUTTI_INVALID, "%s", tutti_error_message());
        return;
    }
    struct tutti_watched *watched = tutti__arena_take(&tape->graph->arena, sizeof *watched);
    if (!watched) {
        tutti__poison(tape->graph, TUTTI_NO_MEMORY, "no memory to watch a value");
        return;
    }
    *watched = (struct tutti_watched){sym, tape->watched};
    tape->watched = watched;
}

static bool reaches(const tutti_tape *tape, uint32_t last, tutti_sym x)
{
    if (!x.node || x.node->graph != tape->graph)
        return false;
    if ((x.node->op->flags & TUTTI_OP_HANDLE) || (x.node->id >= tape->first && x.node->id < last))
        return true;
    return watches(tape, x);
}

void(tutti_gradients)(tutti_tape *tape, tutti_sym y, int count, const tutti_sym *xs,
                      tutti_grad *ret_grads)
{
    memset(ret_grads, 0, (size_t)(count > 0 ? count : 0) * sizeof *ret_grads);
    if (!y.node || !tape || !tape->graph || tutti_graph_check(tape->graph) != TUTTI_OK)
        return;
    if (!is_of_this_step(tape))
        return;
    uint32_t first = tape->graph->recorded.first, last = tape->graph->recorded.last;
    /* Asked while recording, as nested tapes do: what there is so far. */
    uint32_t end = tape->last ? tape->last : (uint32_t)tape->graph->nodes.count;
    tape->graph->recorded.first = tape->first;
    tape->graph->recorded.last = end;
    (tutti_differentiate)(y, count, xs, ret_grads);
    tape->graph->recorded.first = first;
    tape->graph->recorded.last = last;
    for (int i = 0; xs && i < count; i++)
        if (!reaches(tape, end, xs[i]))
            ret_grads[i] = (tutti_grad){0};
}
