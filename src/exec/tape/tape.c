/* tape.c: what was recorded, and gradients through it. */
#include <string.h>

#include "exec/tape/eager.h"
#include "graph/autodiff.h"
#include "graph/scope.h"

/* The context of the step in which this thread began a tape. */
static _Thread_local tutti_eager *recording;

tutti_graph *tutti__eager_recording(void)
{
    return recording ? recording->graph : NULL;
}

void tutti__eager_recorded(const tutti_eager *eager)
{
    if (recording == eager)
        recording = NULL;
}

tutti_tape tutti_tape_begin(tutti_eager *eager)
{
    if (!eager)
        return (tutti_tape){0};
    recording = eager;
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

/* A tape of a context that could not be opened is zero: its mistake is the tape's user's, if what
 * is asked for is of any graph. */
static bool is_begun(const tutti_tape *tape, tutti_sym y)
{
    if (tape && tape->graph)
        return true;
    if (y.node)
        tutti__poison(y.node->graph, TUTTI_INVALID,
                      "gradients: the tape is %s; begin one with TUTTI_TAPE",
                      tape ? "of no eager context" : "NULL");
    return false;
}

static bool is_of_this_step(const tutti_tape *tape)
{
    if (tape->generation == tape->graph->generation)
        return true;
    tutti__poison(tape->graph, TUTTI_INVALID, "the tape is of an earlier step; record it anew");
    return false;
}

void(tutti_tape_watch)(tutti_tape *tape, tutti_sym sym)
{
    if (!sym.node || !tape || !tape->graph || !is_of_this_step(tape) || watches(tape, sym))
        return;
    if (tutti__sym_usable(tape->graph, sym, "tutti_tape_watch: the symbol", -1) != TUTTI_OK) {
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

/* Made behind the tape's block: no gradient would come of it, and the message of what takes the
 * gradients would be about something else. */
static bool is_late(const tutti_tape *tape, tutti_sym y)
{
    char place[TUTTI_PLACE_TEXT];
    if (tape->last == 0 || y.node->id < tape->last || (y.node->op->flags & TUTTI_OP_HANDLE))
        return false;
    tutti__poison(
        tape->graph, TUTTI_INVALID,
        "gradients: y, %s '%s'%s, was computed behind the tape's block; compute it inside",
        y.node->op->name, y.node->name, tutti__node_place(y.node, place));
    return true;
}

void(tutti_tape_gradients)(tutti_tape *tape, tutti_sym y, int count, const tutti_sym *xs,
                           tutti_grad *ret_grads)
{
    if (ret_grads && count > 0)
        memset(ret_grads, 0, (size_t)count * sizeof *ret_grads);
    if (!is_begun(tape, y) || tutti_graph_check(tape->graph) != TUTTI_OK || !is_of_this_step(tape))
        return;
    if (tutti__sym_usable(tape->graph, y, "gradients: y", -1) != TUTTI_OK) {
        tutti__poison(tape->graph, TUTTI_INVALID, "%s", tutti_error_message());
        return;
    }
    if (is_late(tape, y))
        return;
    if (count == 0) {
        tutti__poison(tape->graph, TUTTI_INVALID,
                      "gradients: they are asked of 0 variables, so that nothing would be trained; "
                      "a model has its weights after tutti_build, unless all are frozen");
        return;
    }
    tutti_status status = tutti__eager_note_loss(tape->graph->owner, tutti__edge(y));
    if (status != TUTTI_OK) {
        tutti__poison(tape->graph, status, "%s", tutti_error_message());
        return;
    }
    uint32_t first = tape->graph->recorded.first, last = tape->graph->recorded.last;
    /* Asked while recording, as nested tapes do: what there is so far. */
    uint32_t end = tape->last ? tape->last : (uint32_t)tape->graph->nodes.count;
    tape->graph->recorded.first = tape->first;
    tape->graph->recorded.last = end;
    (tutti_gradients)(y, count, xs, ret_grads);
    tape->graph->recorded.first = first;
    tape->graph->recorded.last = last;
    for (int i = 0; xs && ret_grads && i < count; i++)
        if (!reaches(tape, end, xs[i]))
            ret_grads[i] = (tutti_grad){0};
}
