/* partition.c: one graph per device. An edge between two devices becomes a send in the one piece
 * and a recv in the other, once per edge and receiving device; a control edge travels as an empty
 * value.
 *
 * What a recv gets may depend, by way of other devices, on what its own device sent before. Control
 * edges from those sends to the recv keep this known inside the piece: otherwise a pass could fuse
 * what is sent with what uses the answer, and both devices would wait for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "passes/meet.h"
#include "passes/pass.h"
#include "program/program.h"

typedef struct carried { /* an edge that arrived in a piece */
    tutti_edge edge;     /* of the job; node NULL ends */
    bool control;
    tutti_node *recv;
} carried;

typedef struct sent {         /* what other devices wait for: an edge that left a piece, a send, a
                                 collective */
    const tutti_node *source; /* of the job */
    int from;
    tutti_node *send;
} sent;

typedef struct builder {
    tutti_graph *job;
    int count;
    tutti_piece_graph *pieces;
    tutti_node ***maps;           /* by piece, by job id: the node's copy */
    TUTTI_VEC(carried) * arrived; /* by piece */
    int *home;                    /* by job id: piece, or -1 for constants and parameters */
    bool *late; /* by job id: follows an update, so it is known after the commit only */
    const tutti_node **order;     /* of the job's nodes, in which they are added */
    const tutti_node **partner;   /* by job id: see meet.h */
    int *number;                  /* by job id: of collectives without a channel */
    tutti_node **last_collective; /* by piece */
    TUTTI_VEC(sent) sends;
    bool *seen; /* by job id: scratch of find_causes */
    const tutti_node **stack;
} builder;

static bool floats(const tutti_node *node)
{
    return tutti__is(node, "constant") || tutti__is(node, "parameter");
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to partition a graph");
}

static int piece_of(builder *b, const char *device)
{
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->pieces[i].device, device) == 0)
            return i;
    tutti_piece_graph *pieces = realloc(b->pieces, (size_t)(b->count + 1) * sizeof *pieces);
    if (!pieces)
        return -1;
    b->pieces = pieces;
    pieces[b->count] = (tutti_piece_graph){0};
    snprintf(pieces[b->count].device, sizeof pieces[0].device, "%s", device);
    return b->count++;
}

/* Marks everything that a node of the job needs, through users' own pairs of send and recv and the
 * peers of collectives too. */
static void find_causes(builder *b, const tutti_node *node)
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

/* A recv or collective in a piece waits for what its piece sent towards it. `from`: the job's node
 * whose value comes. */
static tutti_status follow_sends(builder *b, int piece, const tutti_node *from, tutti_node *recv)
{
    find_causes(b, from);
    for (size_t i = 0; i < b->sends.count; i++)
        if (b->sends.data[i].from == piece && b->seen[b->sends.data[i].source->id])
            TUTTI_TRY(tutti__node_after(recv, b->sends.data[i].send));
    return TUTTI_OK;
}

/* What follows an update, through users' own pairs of send and recv too; until nothing changes,
 * because a recv may stand before its send. */
static void find_late(builder *b)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < b->job->nodes.count; n++) {
            const tutti_node *node = b->job->nodes.data[n];
            const tutti_node *sender =
                tutti__is(node, "recv") ? tutti__matching_send(b->job, node) : NULL;
            bool late = (node->op->flags & TUTTI_OP_UPDATES) || (sender && b->late[sender->id]);
            for (int i = 0; i < node->input_count; i++)
                late = late || b->late[node->inputs[i].node->id];
            for (int i = 0; i < node->control_count; i++)
                late = late || b->late[node->controls[i]->id];
            changed = changed || (late && !b->late[n]);
            b->late[n] = b->late[n] || late;
        }
    }
}

static tutti_status find_homes(builder *b)
{
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->job->nodes.data[n];
        b->home[n] = floats(node) ? -1 : piece_of(b, node->device);
        if (!floats(node) && b->home[n] < 0)
            return no_memory();
    }
    if (b->count == 0 && piece_of(b, "cpu:0") < 0)
        return no_memory();
    find_late(b);
    bool shadows = tutti__fails_late(b->job, b->late);
    for (int i = 0; i < b->count; i++)
        b->pieces[i].shadows = shadows;
    return TUTTI_OK;
}

static void set_int(tutti_node *copy, const char *name, int64_t value)
{
    for (int i = 0; i < copy->attr_count; i++)
        if (strcmp(copy->attrs[i].name, name) == 0)
            copy->attrs[i].value.i = value;
}

static tutti_status add_parameter(builder *b, int piece, const tutti_node *node, tutti_node *copy)
{
    tutti_piece_graph *p = &b->pieces[piece];
    int *parameters = realloc(p->parameters, (size_t)(p->parameter_count + 1) * sizeof *parameters);
    if (!parameters)
        return no_memory();
    p->parameters = parameters;
    parameters[p->parameter_count] = (int)tutti__int(node, "index");
    set_int(copy, "index", p->parameter_count++);
    return TUTTI_OK;
}

/* Collectives without a channel meet by their order along the axis on each device. They stay in the
 * order in which all devices have them. */
static tutti_status add_collective(builder *b, int piece, const tutti_node *node, tutti_node *copy)
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
    sent one = {node, piece, copy};
    tutti_node *last = b->last_collective[piece];
    b->last_collective[piece] = copy;
    if (!TUTTI_VEC_PUSH(&b->sends, one))
        return no_memory();
    return last ? tutti__node_after(copy, last) : TUTTI_OK;
}

/* A copy of a node in a piece; its inputs are there already. */
static tutti_status copy_node(builder *b, int piece, const tutti_node *node)
{
    tutti_graph *graph = b->pieces[piece].graph;
    tutti_node *copy;
    TUTTI_TRY(tutti__node_copy(graph, node, &copy));
    copy->inputs =
        tutti__arena_array(&graph->arena, (size_t)node->input_count + 1, sizeof *copy->inputs);
    copy->controls = NULL;
    copy->control_count = 0;
    copy->colocate = NULL;
    copy->id = (uint32_t)graph->nodes.count;
    if (!copy->inputs || !TUTTI_VEC_PUSH(&graph->nodes, copy))
        return no_memory();
    b->maps[piece][node->id] = copy;
    if (tutti__is(node, "recv"))
        set_int(copy, "late", b->late[node->id]);
    if (node->op->flags & TUTTI_OP_COLLECTIVE)
        TUTTI_TRY(add_collective(b, piece, node, copy));
    return tutti__is(node, "parameter") ? add_parameter(b, piece, node, copy) : TUTTI_OK;
}

static tutti_status send(builder *b, tutti_edge edge, bool control, int to, const char *channel)
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
    sent one = {edge.node, from, node};
    return TUTTI_VEC_PUSH(&graph->targets, node) && TUTTI_VEC_PUSH(&b->sends, one) ? TUTTI_OK
                                                                                   : no_memory();
}

/* The value of a foreign edge in a piece, received once. */
static tutti_status receive(builder *b, tutti_edge edge, bool control, int to, tutti_node **ret)
{
    for (size_t i = 0; i < b->arrived[to].count; i++) {
        carried *c = &b->arrived[to].data[i];
        if (c->edge.node == edge.node && c->edge.index == edge.index && c->control == control) {
            *ret = c->recv;
            return TUTTI_OK;
        }
    }
    char channel[64];
    snprintf(channel, sizeof channel, "cut.%u.%u.%d%s", edge.node->id, edge.index, to,
             control ? ".after" : "");
    TUTTI_TRY(send(b, edge, control, to, channel));
    tutti_type type = control ? (tutti_type){.dtype = TUTTI_U8} : *tutti__edge_type(edge);
    tutti_attr attrs[] = {TUTTI_STR("channel", channel), TUTTI_INT("dtype", type.dtype),
                          TUTTI_INTS("dims", type.rank, type.dims),
                          TUTTI_STR("from", b->pieces[b->home[edge.node->id]].device),
                          TUTTI_INT("late", b->late[edge.node->id])};
    carried c = {edge, control, NULL};
    TUTTI_TRY(tutti__node_add(b->pieces[to].graph, tutti_op_find("recv"), NULL, 0, NULL, 5, attrs,
                              &c.recv));
    c.recv->device = tutti__arena_string(&b->pieces[to].graph->arena, b->pieces[to].device);
    if (!c.recv->device || !TUTTI_VEC_PUSH(&b->arrived[to], c))
        return no_memory();
    TUTTI_TRY(follow_sends(b, to, edge.node, c.recv));
    *ret = c.recv;
    return TUTTI_OK;
}

static tutti_status local_edge(builder *b, tutti_edge edge, int piece, tutti_edge *ret)
{
    tutti_node *source = edge.node;
    if (floats(source) && !b->maps[piece][source->id])
        TUTTI_TRY(copy_node(b, piece, source));
    if (b->maps[piece][source->id]) {
        *ret = (tutti_edge){b->maps[piece][source->id], edge.index};
        return TUTTI_OK;
    }
    if (tutti__edge_type(edge)->handle)
        return tutti_fail(TUTTI_INVALID,
                          "variable '%s' on %s is used as a handle on %s; place its update with it",
                          source->name, source->device, b->pieces[piece].device);
    ret->index = 0;
    return receive(b, edge, false, piece, &ret->node);
}

static tutti_status local_control(builder *b, tutti_node *before, int piece, tutti_node **ret)
{
    if (b->home[before->id] != piece)
        return receive(b, (tutti_edge){before, 0}, true, piece, ret);
    *ret = b->maps[piece][before->id];
    return TUTTI_OK;
}

/* What a node needs from other devices, before anybody waits for it. */
static tutti_status fetch_inputs(builder *b, const tutti_node *node)
{
    tutti_edge edge;
    tutti_node *control;
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(local_edge(b, node->inputs[i], b->home[node->id], &edge));
    for (int i = 0; i < node->control_count; i++)
        if (!floats(node->controls[i]))
            TUTTI_TRY(local_control(b, node->controls[i], b->home[node->id], &control));
    return TUTTI_OK;
}

static tutti_status add_node(builder *b, const tutti_node *node)
{
    int piece = b->home[node->id];
    bool meets = (node->op->flags & TUTTI_OP_COLLECTIVE) && b->partner[node->id];
    TUTTI_TRY(fetch_inputs(b, node));
    for (const tutti_node *peer = meets ? b->partner[node->id] : node; peer != node;
         peer = b->partner[peer->id])
        TUTTI_TRY(fetch_inputs(b, peer));
    TUTTI_TRY(copy_node(b, piece, node));
    tutti_node *copy = b->maps[piece][node->id], *control;
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(local_edge(b, node->inputs[i], piece, &copy->inputs[i]));
    for (int i = 0; i < node->control_count; i++) {
        if (floats(node->controls[i]))
            continue;
        TUTTI_TRY(local_control(b, node->controls[i], piece, &control));
        TUTTI_TRY(tutti__node_after(copy, control));
    }
    return TUTTI_OK;
}

static tutti_status add_result(builder *b, int index)
{
    tutti_edge edge = b->job->results.data[index];
    int piece = b->home[edge.node->id] < 0 ? 0 : b->home[edge.node->id];
    tutti_piece_graph *p = &b->pieces[piece];
    tutti_edge local;
    TUTTI_TRY(local_edge(b, edge, piece, &local));
    TUTTI_TRY(tutti__graph_result(p->graph, local));
    int *results = realloc(p->results, (size_t)(p->result_count + 1) * sizeof *results);
    if (!results)
        return no_memory();
    p->results = results;
    results[p->result_count++] = index;
    return TUTTI_OK;
}

/* The same for users' own sends and recvs, in whatever order they were built. */
static tutti_status order_transfers(builder *b)
{
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->job->nodes.data[n];
        sent one = {node, b->home[n], b->home[n] < 0 ? NULL : b->maps[b->home[n]][n]};
        if (tutti__is(node, "send") && !TUTTI_VEC_PUSH(&b->sends, one))
            return no_memory();
    }
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->job->nodes.data[n];
        const tutti_node *from =
            tutti__is(node, "recv") ? tutti__matching_send(b->job, node) : NULL;
        int piece = b->home[n];
        if (!from)
            continue;
        TUTTI_TRY(follow_sends(b, piece, from, b->maps[piece][n]));
        TUTTI_TRY(tutti__graph_sort(b->pieces[piece].graph));
    }
    return TUTTI_OK;
}

static tutti_status build(builder *b)
{
    for (size_t n = 0; n < b->job->nodes.count; n++)
        if (b->home[b->order[n]->id] >= 0)
            TUTTI_TRY(add_node(b, b->order[n]));
    TUTTI_TRY(order_transfers(b));
    for (size_t i = 0; i < b->job->results.count; i++)
        TUTTI_TRY(add_result(b, (int)i));
    for (size_t i = 0; i < b->job->targets.count; i++) {
        const tutti_node *node = b->job->targets.data[i];
        if (b->home[node->id] >= 0 && !TUTTI_VEC_PUSH(&b->pieces[b->home[node->id]].graph->targets,
                                                      b->maps[b->home[node->id]][node->id]))
            return no_memory();
    }
    return TUTTI_OK;
}

void tutti__partition_free(int count, tutti_piece_graph *pieces)
{
    for (int i = 0; i < count; i++) {
        tutti_graph_destroy(pieces[i].graph);
        free(pieces[i].parameters);
        free(pieces[i].results);
    }
    free(pieces);
}

static tutti_status prepare(builder *b)
{
    TUTTI_TRY(find_homes(b));
    size_t count = b->count > 0 ? (size_t)b->count : 1;
    b->maps = calloc(count, sizeof *b->maps);
    b->arrived = calloc(count, sizeof *b->arrived);
    b->last_collective = calloc(count, sizeof *b->last_collective);
    if (!b->maps || !b->arrived || !b->last_collective)
        return no_memory();
    TUTTI_TRY(tutti__meeting_order(b->job, b->home, b->order, b->number, b->partner));
    for (int i = 0; i < b->count; i++) {
        b->maps[i] = calloc(b->job->nodes.count + 1, sizeof *b->maps[i]);
        TUTTI_TRY(tutti_graph_create(&b->pieces[i].graph));
        b->pieces[i].graph->trace = true; /* names are copies */
        if (!b->maps[i])
            return no_memory();
    }
    return TUTTI_OK;
}

static tutti_status run(builder *b)
{
    size_t count = b->job->nodes.count + 1;
    b->home = calloc(count, sizeof *b->home);
    b->late = calloc(count, sizeof *b->late);
    b->seen = calloc(count, sizeof *b->seen);
    b->stack = calloc(count, sizeof *b->stack);
    b->order = calloc(count, sizeof *b->order);
    b->number = calloc(count, sizeof *b->number);
    b->partner = calloc(count, sizeof *b->partner);
    if (!b->home || !b->late || !b->seen || !b->stack || !b->order || !b->number || !b->partner)
        return no_memory();
    TUTTI_TRY(prepare(b));
    return build(b);
}

static void forget(builder *b)
{
    for (int i = 0; i < b->count; i++) {
        if (b->maps)
            free(b->maps[i]);
        if (b->arrived)
            TUTTI_VEC_FREE(&b->arrived[i]);
    }
    free(b->maps);
    free(b->arrived);
    free(b->last_collective);
    free(b->home);
    free(b->late);
    free(b->seen);
    free(b->stack);
    free(b->order);
    free(b->number);
    free(b->partner);
    TUTTI_VEC_FREE(&b->sends);
}

tutti_status tutti__partition(tutti_graph *graph, int *ret_count, tutti_piece_graph **ret_pieces)
{
    builder b = {.job = graph};
    tutti_status status = run(&b);
    forget(&b);
    if (status != TUTTI_OK) {
        tutti__partition_free(b.count, b.pieces);
        return status;
    }
    *ret_count = b.count;
    *ret_pieces = b.pieces;
    return TUTTI_OK;
}
