/* partition.c: one graph per device. An edge between two devices becomes a send in the one piece
 * and a recv in the other, once per edge and receiving device (transfer.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "passes/meet.h"
#include "passes/partition_inside.h"
#include "program/program.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to partition a graph");
}

static int piece_of(tutti_partitioner *b, const char *device)
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

/* What a node follows that is known after the commit only, or NULL. */
static tutti_node *late_cause(const tutti_partitioner *b, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (b->late[node->inputs[i].node->id])
            return node->inputs[i].node;
    for (int i = 0; i < node->control_count; i++)
        if (b->late[node->controls[i]->id])
            return node->controls[i];
    return NULL;
}

/* What follows an update, through users' own pairs of send and recv and the peers of collectives
 * too; until nothing changes, because a recv may stand before its send. */
static void find_late(tutti_partitioner *b)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < b->job->nodes.count; n++) {
            const tutti_node *node = b->job->nodes.data[n], *partner = b->partner[n];
            bool late = (node->op->flags & TUTTI_OP_UPDATES) || late_cause(b, node) ||
                        (partner && b->late[partner->id]);
            changed = changed || (late && !b->late[n]);
            b->late[n] = b->late[n] || late;
        }
    }
}

/* A collective that is late because a peer is waits for what the peer follows: its own piece would
 * not know otherwise. NULL: it knows. */
static tutti_node *late_cause_of_peers(const tutti_partitioner *b, const tutti_node *node)
{
    const tutti_node *peer = b->partner[node->id];
    tutti_node *cause = NULL;
    if (!(node->op->flags & TUTTI_OP_COLLECTIVE) || !b->late[node->id] || late_cause(b, node))
        return NULL;
    for (; peer && peer != node && !cause; peer = b->partner[peer->id])
        cause = late_cause(b, peer);
    return cause;
}

/* Whether anything travels, or meets, that follows an update. */
static bool travels_late(const tutti_partitioner *b)
{
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->job->nodes.data[n];
        if (!b->late[n])
            continue;
        if ((node->op->flags & TUTTI_OP_COLLECTIVE) || tutti__is(node, "send") ||
            tutti__is(node, "recv"))
            return true;
        for (int i = 0; i < node->input_count; i++)
            if (b->late[node->inputs[i].node->id] &&
                b->home[node->inputs[i].node->id] != b->home[n])
                return true;
        for (int i = 0; i < node->control_count; i++)
            if (b->late[node->controls[i]->id] && b->home[node->controls[i]->id] != b->home[n])
                return true;
    }
    return false;
}

/* The commit is a point in the order in which devices meet: what is known before it stands before
 * what is not. Where all that travels is known before it, any order of the job has that. */
static tutti_status order_around_commit(tutti_partitioner *b)
{
    size_t count = b->job->nodes.count, at = 0;
    const tutti_node **order = calloc(count + 1, sizeof *order);
    if (!order)
        return no_memory();
    for (int late = 0; late < 2; late++)
        for (size_t n = 0; n < count; n++)
            if (b->late[b->order[n]->id] == (late == 1))
                order[at++] = b->order[n];
    free(b->order);
    b->order = order;
    return TUTTI_OK;
}

static tutti_status find_homes(tutti_partitioner *b)
{
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->job->nodes.data[n];
        b->home[n] = tutti__floats(node) ? -1 : piece_of(b, node->device);
        if (!tutti__floats(node) && b->home[n] < 0)
            return no_memory();
    }
    for (int i = 0; b->job->results.count > 0 && i < b->front_count; i++)
        if (piece_of(b, b->fronts[i]) < 0)
            return no_memory();
    if (b->count == 0 && piece_of(b, "cpu:0") < 0)
        return no_memory();
    return TUTTI_OK;
}

static tutti_status find_order(tutti_partitioner *b)
{
    TUTTI_TRY(tutti__meeting_order(b->job, b->home, b->order, b->number, b->partner));
    find_late(b);
    bool shadows = tutti__fails_after_update(b->job, b->late);
    for (int i = 0; i < b->count; i++)
        b->pieces[i].shadows = shadows;
    b->around_commit = b->count > 1 && travels_late(b);
    return b->around_commit ? order_around_commit(b) : TUTTI_OK;
}

static void set_int(tutti_node *copy, const char *name, int64_t value)
{
    for (int i = 0; i < copy->attr_count; i++)
        if (strcmp(copy->attrs[i].name, name) == 0)
            copy->attrs[i].value.i = value;
}

static tutti_status add_parameter(tutti_partitioner *b, int piece, const tutti_node *node,
                                  tutti_node *copy)
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

/* A copy of a node in a piece; its inputs are there already. */
tutti_status tutti__partition_copy(tutti_partitioner *b, int piece, const tutti_node *node)
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
        TUTTI_TRY(tutti__partition_collective(b, piece, node, copy));
    return tutti__is(node, "parameter") ? add_parameter(b, piece, node, copy) : TUTTI_OK;
}

/* What a node needs from other devices, before anybody waits for it. */
static tutti_status fetch_inputs(tutti_partitioner *b, const tutti_node *node)
{
    tutti_edge edge;
    tutti_node *control, *cause = late_cause_of_peers(b, node);
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__partition_edge(b, node->inputs[i], b->home[node->id], &edge));
    for (int i = 0; i < node->control_count; i++)
        if (!tutti__floats(node->controls[i]))
            TUTTI_TRY(tutti__partition_control(b, node->controls[i], b->home[node->id], &control));
    return cause ? tutti__partition_control(b, cause, b->home[node->id], &control) : TUTTI_OK;
}

/* What is known before the commit travels before it, also to nodes that run after it. */
static tutti_status fetch_early_inputs(tutti_partitioner *b)
{
    tutti_edge edge;
    tutti_node *control;
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->order[n];
        int piece = b->home[node->id];
        for (int i = 0; piece >= 0 && b->late[node->id] && i < node->input_count; i++)
            if (!b->late[node->inputs[i].node->id])
                TUTTI_TRY(tutti__partition_edge(b, node->inputs[i], piece, &edge));
        for (int i = 0; piece >= 0 && b->late[node->id] && i < node->control_count; i++)
            if (!b->late[node->controls[i]->id] && !tutti__floats(node->controls[i]))
                TUTTI_TRY(tutti__partition_control(b, node->controls[i], piece, &control));
    }
    return TUTTI_OK;
}

static tutti_status add_node(tutti_partitioner *b, const tutti_node *node)
{
    int piece = b->home[node->id];
    bool meets = (node->op->flags & TUTTI_OP_COLLECTIVE) && b->partner[node->id];
    TUTTI_TRY(fetch_inputs(b, node));
    for (const tutti_node *peer = meets ? b->partner[node->id] : node; peer != node;
         peer = b->partner[peer->id])
        TUTTI_TRY(fetch_inputs(b, peer));
    TUTTI_TRY(tutti__partition_copy(b, piece, node));
    tutti_node *copy = b->maps[piece][node->id], *control, *cause = late_cause_of_peers(b, node);
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__partition_edge(b, node->inputs[i], piece, &copy->inputs[i]));
    for (int i = 0; i < node->control_count; i++) {
        if (tutti__floats(node->controls[i]))
            continue;
        TUTTI_TRY(tutti__partition_control(b, node->controls[i], piece, &control));
        TUTTI_TRY(tutti__node_after(copy, control));
        if (b->late[node->controls[i]->id] && tutti__keeps_order(copy, control))
            TUTTI_TRY(tutti__partition_follow(copy, control));
    }
    if (cause) {
        TUTTI_TRY(tutti__partition_control(b, cause, piece, &control));
        TUTTI_TRY(tutti__node_after(copy, control));
    }
    return tutti__partition_own(b, node);
}

static tutti_status add_result_to(tutti_partitioner *b, int index, int piece)
{
    tutti_edge edge = b->job->results.data[index];
    tutti_piece_graph *p = &b->pieces[piece];
    tutti_edge local;
    TUTTI_TRY(tutti__partition_edge(b, edge, piece, &local));
    TUTTI_TRY(tutti__graph_result(p->graph, local));
    int *results = realloc(p->results, (size_t)(p->result_count + 1) * sizeof *results);
    if (!results)
        return no_memory();
    p->results = results;
    results[p->result_count++] = index;
    return TUTTI_OK;
}

static bool same_process(const char *device, const char *other)
{
    tutti_device_name a, b;
    return tutti_device_parse(device, &a) == TUTTI_OK &&
           tutti_device_parse(other, &b) == TUTTI_OK && a.task == b.task &&
           strcmp(a.job, b.job) == 0;
}

/* Every process gets it: from its own device that makes it, or sent to its front. */
static tutti_status add_result(tutti_partitioner *b, int index)
{
    int home = b->home[b->job->results.data[index].node->id];
    if (b->front_count == 0)
        return add_result_to(b, index, home < 0 ? 0 : home);
    for (int i = 0; i < b->front_count; i++) {
        bool own = home >= 0 && same_process(b->pieces[home].device, b->fronts[i]);
        TUTTI_TRY(add_result_to(b, index, own ? home : piece_of(b, b->fronts[i])));
    }
    return TUTTI_OK;
}

static tutti_status partition_build(tutti_partitioner *b)
{
    bool committing = false;
    for (size_t n = 0; n < b->job->nodes.count; n++) {
        const tutti_node *node = b->order[n];
        if (b->around_commit && b->late[node->id] && !committing)
            TUTTI_TRY(fetch_early_inputs(b));
        committing = committing || b->late[node->id];
        if (b->home[node->id] >= 0)
            TUTTI_TRY(add_node(b, node));
    }
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

static void free_piece(tutti_piece_graph *piece)
{
    tutti_graph_destroy(piece->graph);
    free(piece->parameters);
    free(piece->results);
    free(piece->rows);
}

void tutti__partition_free(int count, tutti_piece_graph *pieces)
{
    for (int i = 0; i < count; i++)
        free_piece(&pieces[i]);
    free(pieces);
}

static tutti_status partition_prepare(tutti_partitioner *b)
{
    TUTTI_TRY(find_homes(b));
    size_t count = b->count > 0 ? (size_t)b->count : 1;
    b->maps = calloc(count, sizeof *b->maps);
    b->arrived = calloc(count, sizeof *b->arrived);
    b->last_collective = calloc(count, sizeof *b->last_collective);
    b->last_send = calloc(count, sizeof *b->last_send);
    if (!b->maps || !b->arrived || !b->last_collective || !b->last_send)
        return no_memory();
    TUTTI_TRY(find_order(b));
    for (int i = 0; i < b->count; i++) {
        b->maps[i] = calloc(b->job->nodes.count + 1, sizeof *b->maps[i]);
        TUTTI_TRY(tutti_graph_create(&b->pieces[i].graph));
        b->pieces[i].graph->trace = true; /* names are copies */
        if (!b->maps[i])
            return no_memory();
    }
    return TUTTI_OK;
}

static tutti_status partition_run(tutti_partitioner *b)
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
    TUTTI_TRY(partition_prepare(b));
    return partition_build(b);
}

static void forget(tutti_partitioner *b)
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
    free(b->last_send);
    free(b->home);
    free(b->late);
    free(b->seen);
    free(b->stack);
    free(b->order);
    free(b->number);
    free(b->partner);
    TUTTI_VEC_FREE(&b->sends);
}

static bool is_elsewhere(const char *device)
{
    tutti_device_name name;
    return tutti_device_parse(device, &name) == TUTTI_OK && (name.job[0] || name.task >= 0);
}

static void keep_own(tutti_partitioner *b)
{
    int kept = 0;
    for (int i = 0; i < b->count; i++)
        if (is_elsewhere(b->pieces[i].device))
            free_piece(&b->pieces[i]);
        else
            b->pieces[kept++] = b->pieces[i];
    b->count = kept;
}

tutti_status tutti__partition_between(tutti_graph *graph, int front_count,
                                      const char *const *fronts, int *ret_count,
                                      tutti_piece_graph **ret_pieces)
{
    tutti_partitioner b = {.job = graph, .front_count = front_count, .fronts = fronts};
    tutti_status status = partition_run(&b);
    forget(&b);
    if (status != TUTTI_OK) {
        tutti__partition_free(b.count, b.pieces);
        return status;
    }
    if (front_count > 0)
        keep_own(&b);
    *ret_count = b.count;
    *ret_pieces = b.pieces;
    return TUTTI_OK;
}

tutti_status tutti__partition(tutti_graph *graph, int *ret_count, tutti_piece_graph **ret_pieces)
{
    return tutti__partition_between(graph, 0, NULL, ret_count, ret_pieces);
}

tutti_status tutti__partition_agree(int count, tutti_piece_graph *pieces)
{
    bool shadows = false;
    for (int i = 0; count > 1 && !shadows && i < count; i++) {
        bool *late = calloc(pieces[i].graph->nodes.count + 1, sizeof *late);
        if (!late)
            return no_memory();
        tutti__find_after_update(pieces[i].graph, late);
        shadows = pieces[i].shadows || tutti__fails_after_update(pieces[i].graph, late);
        free(late);
    }
    for (int i = 0; shadows && i < count; i++)
        pieces[i].shadows = true;
    return TUTTI_OK;
}
