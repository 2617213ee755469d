/* transfer.c: what travels between the pieces of a job. A control edge travels as an empty value.
 *
 * What a recv gets may depend, by way of other devices, on what its own device sent before. Control
 * edges from those sends to the recv keep this known inside the piece: otherwise a pass could fuse
 * what is sent with what uses the answer, and both devices would wait for ever.
 *
 * Nor may devices disagree on what travels first, also where one does not depend on the other: each
 * would wait for what the other sends afterwards. So a recv waits for everything that its piece
 * sends before it in the order of the job: of all that devices wait for, what stands first in that
 * order has been sent. Passes keep the edges, whatever they do to the order of a piece.
 *
 * The commit, at which all devices wait for each other, is a point in that order: everything that
 * is known before it, and travels, stands before everything that follows an update. Nobody waits
 * before it for what is known after it only; passes fuse nothing that another device awaits before
 * the commit with what runs after it (group.c).
 *
 * The same holds for collectives: what stands before one in the order of the job is sent before it,
 * and what stands after it is received after it. */
#include <stdio.h>
#include <string.h>

#include "graph/attr.h"
#include "passes/meet.h"
#include "passes/partition_inside.h"
#include "program/program.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to partition a graph");
}

/* Marks everything that a node of the job needs, through users' own pairs of send and recv and the
 * peers of collectives too. */
static void find_causes(tutti_partitioner *b, const tutti_node *node)
{
    size_t depth = 0;
    memset(b->seen, 0, b->job->nodes.count * sizeof *b->seen);
    b->seen[node->id] = true;
    b->stack[depth++] = node;
    while (depth > 0) {
        const tutti_node *at = b->stack[--depth], *partner = b->partner[at->id];
        for (int i = 0; i < at->input_count + at->control_count + 1; i++) {
            const tutti_node *before = i < at->input_count ? at->inputs[i].node
                                       : i < at->input_count + at->control_count
                                           ? at->controls[i - at->input_count]
                                           : partner;
            if (!before || b->seen[before->id])
                continue;
            b->seen[before->id] = true;
            b->stack[depth++] = before;
        }
    }
}

tutti_status tutti__partition_follow(tutti_node *node, const tutti_node *before)
{
    for (int i = 0; i < before->input_count; i++) {
        tutti_node *input = before->inputs[i].node;
        if (tutti__keeps_order(node, input))
            TUTTI_TRY(tutti__partition_follow(node, input));
        else if (!tutti__floats(input))
            TUTTI_TRY(tutti__node_after(node, input));
    }
    for (int i = 0; i < before->control_count; i++)
        if (!tutti__keeps_order(before, before->controls[i]))
            TUTTI_TRY(tutti__node_after(node, before->controls[i]));
    return TUTTI_OK;
}

/* A recv or collective in a piece waits for what its piece sent towards it. `from`: the job's node
 * whose value comes. */
static tutti_status follow_sends(tutti_partitioner *b, int piece, const tutti_node *from,
                                 tutti_node *recv)
{
    find_causes(b, from);
    for (size_t i = 0; i < b->sends.count; i++)
        if (b->sends.data[i].from == piece && b->seen[b->sends.data[i].source->id]) {
            TUTTI_TRY(tutti__node_after(recv, b->sends.data[i].send));
            if (b->late[b->sends.data[i].source->id])
                TUTTI_TRY(tutti__partition_follow(recv, b->sends.data[i].send));
        }
    return TUTTI_OK;
}

/* Collectives without a channel meet by their order along the axis on each device. They stay in the
 * order in which all devices have them. */
tutti_status tutti__partition_collective(tutti_partitioner *b, int piece, const tutti_node *node,
                                         tutti_node *copy)
{
    tutti_graph *graph = b->pieces[piece].graph;
    char *text = tutti__arena_format(&graph->arena, "#%d", b->number[node->id]);
    if (!text)
        return no_memory();
    for (int i = 0; i < copy->attr_count && !tutti__str(node, "channel")[0]; i++)
        if (strcmp(copy->attrs[i].name, "channel") == 0) {
            copy->attrs[i].value.s = text;
            copy->attrs[i].count = (int32_t)strlen(text);
        }
    TUTTI_TRY(follow_sends(b, piece, node, copy));
    for (size_t i = b->last_collective[piece].sends; i < b->sends.count; i++)
        if (b->sends.data[i].from == piece)
            TUTTI_TRY(tutti__node_after(copy, b->sends.data[i].send));
    tutti_sent one = {node, piece, copy};
    tutti_node *last = b->last_collective[piece].node;
    b->last_collective[piece] = (tutti_last_collective){copy, b->sends.count};
    if (!TUTTI_VEC_PUSH(&b->sends, one))
        return no_memory();
    return last ? tutti__node_after(copy, last) : TUTTI_OK;
}

/* A send of a piece, the newest: they keep their order, so that whoever waits for the last one
 * waits for all. `source`: the job's node whose value goes. */
static tutti_status note_send(tutti_partitioner *b, int from, const tutti_node *source,
                              tutti_node *send)
{
    tutti_sent one = {source, from, send};
    tutti_node **last = &b->last_send[from];
    if (*last)
        TUTTI_TRY(tutti__node_after(send, *last));
    *last = send;
    return TUTTI_VEC_PUSH(&b->sends, one) ? TUTTI_OK : no_memory();
}

static tutti_status transfer_send(tutti_partitioner *b, tutti_edge edge, bool control, int to,
                                  const char *channel)
{
    int from = b->home[edge.node->id];
    tutti_graph *graph = b->pieces[from].graph;
    tutti_edge value = {b->maps[from][edge.node->id], edge.index};
    tutti_node *source = value.node, *node;
    if (control) { /* nothing to carry but that it happened */
        tutti_attr fill[] = {TUTTI_INTS("dims", 0, NULL), TUTTI_INT("dtype", TUTTI_U8)};
        TUTTI_TRY(
            tutti__node_add(graph, tutti_op_find("fill"), NULL, 0, NULL, 2, fill, &value.node));
        value.index = 0;
        TUTTI_TRY(tutti__node_after(value.node, source));
    }
    tutti_attr attrs[] = {TUTTI_STR("channel", channel), TUTTI_STR("to", b->pieces[to].device)};
    TUTTI_TRY(tutti__node_add(graph, tutti_op_find("send"), NULL, 1, &value, 2, attrs, &node));
    node->device = source->device;
    value.node->device = source->device;
    return TUTTI_VEC_PUSH(&graph->targets, node) ? note_send(b, from, edge.node, node)
                                                 : no_memory();
}

/* A recv stands behind the collectives and sends of its piece that were added before it. */
static tutti_status keep_order(tutti_partitioner *b, int piece, tutti_node *recv)
{
    tutti_node *met = b->last_collective[piece].node, *sent = b->last_send[piece];
    if (met)
        TUTTI_TRY(tutti__node_after(recv, met));
    return sent ? tutti__node_after(recv, sent) : TUTTI_OK;
}

/* The value of a foreign edge in a piece, received once. */
static tutti_status transfer_receive(tutti_partitioner *b, tutti_edge edge, bool control, int to,
                                     tutti_node **ret)
{
    for (size_t i = 0; i < b->arrived[to].count; i++) {
        tutti_carried *c = &b->arrived[to].data[i];
        if (c->edge.node == edge.node && c->edge.index == edge.index && c->control == control) {
            *ret = c->recv;
            return TUTTI_OK;
        }
    }
    char channel[64];
    snprintf(channel, sizeof channel, "cut.%u.%u.%d%s", edge.node->id, edge.index, to,
             control ? ".after" : "");
    TUTTI_TRY(transfer_send(b, edge, control, to, channel));
    tutti_type type = control ? (tutti_type){.dtype = TUTTI_U8} : *tutti__edge_type(edge);
    tutti_attr attrs[] = {TUTTI_STR("channel", channel), TUTTI_INT("dtype", type.dtype),
                          TUTTI_INTS("dims", type.rank, type.dims),
                          TUTTI_STR("from", b->pieces[b->home[edge.node->id]].device),
                          TUTTI_INT("late", b->late[edge.node->id])};
    tutti_carried c = {edge, control, NULL};
    TUTTI_TRY(tutti__node_add(b->pieces[to].graph, tutti_op_find("recv"), NULL, 0, NULL, 5, attrs,
                              &c.recv));
    c.recv->device = tutti__arena_string(&b->pieces[to].graph->arena, b->pieces[to].device);
    if (!c.recv->device || !TUTTI_VEC_PUSH(&b->arrived[to], c))
        return no_memory();
    TUTTI_TRY(follow_sends(b, to, edge.node, c.recv));
    *ret = c.recv;
    return keep_order(b, to, c.recv);
}

tutti_status tutti__partition_edge(tutti_partitioner *b, tutti_edge edge, int piece,
                                   tutti_edge *ret)
{
    tutti_node *source = edge.node;
    if (tutti__floats(source) && !b->maps[piece][source->id])
        TUTTI_TRY(tutti__partition_copy(b, piece, source));
    if (b->maps[piece][source->id]) {
        *ret = (tutti_edge){b->maps[piece][source->id], edge.index};
        return TUTTI_OK;
    }
    if (tutti__edge_type(edge)->handle)
        return tutti_fail(TUTTI_INVALID,
                          "variable '%s' on %s is used as a handle on %s; place its update with it",
                          source->name, source->device, b->pieces[piece].device);
    ret->index = 0;
    return transfer_receive(b, edge, false, piece, &ret->node);
}

tutti_status tutti__partition_control(tutti_partitioner *b, tutti_node *before, int piece,
                                      tutti_node **ret)
{
    if (b->home[before->id] != piece)
        return transfer_receive(b, (tutti_edge){before, 0}, true, piece, ret);
    *ret = b->maps[piece][before->id];
    return TUTTI_OK;
}

tutti_status tutti__partition_own(tutti_partitioner *b, const tutti_node *node)
{
    int piece = b->home[node->id];
    tutti_node *copy = b->maps[piece][node->id];
    if (tutti__is(node, "send"))
        return note_send(b, piece, node, copy);
    if (!tutti__is(node, "recv") || !b->partner[node->id])
        return TUTTI_OK;
    TUTTI_TRY(follow_sends(b, piece, b->partner[node->id], copy));
    return keep_order(b, piece, copy);
}
