/* meet.c: see meet.h. A node is ready when what it needs stands in the order; a recv needs its send
 * too, and a collective what any of its peers needs.
 *
 * A collective that devices of this process wait in comes when there is nothing else to do: one
 * that stood before work of its device that another device does first would have them take turns.
 *
 * Collectives of one device keep the graph's order where that is possible: devices of other
 * processes, whose peers are elsewhere, keep it too.
 *
 * Peers are nodes of one operator, axis and channel (or number) on different devices. A mesh of
 * several axes has several groups of such peers, which this file cannot tell apart and which may
 * need each other: when nothing is ready, peers are allowed to stand apart. */
#include "passes/meet.h"

#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"

typedef struct meeting {
    const tutti_graph *job;
    const int *home;
    int *number;
    const tutti_node *
        *partner; /* by id: of a recv its send, of a collective the next peer of a ring */
    const tutti_node **previous; /* by id: the last collective before it on its device, or NULL */
    bool unordered;              /* devices have them in different orders */
    bool *placed;                /* by id */
    bool *apart; /* by id: a collective whose peers do not wait for each other here */
    const tutti_node **order;
    size_t count;
} meeting;

static bool is_collective(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_COLLECTIVE) != 0;
}

const tutti_node *tutti__matching_send(const tutti_graph *job, const tutti_node *recv)
{
    for (size_t n = 0; n < job->nodes.count; n++)
        if (tutti__is(job->nodes.data[n], "send") &&
            strcmp(tutti__str(job->nodes.data[n], "channel"), tutti__str(recv, "channel")) == 0)
            return job->nodes.data[n];
    return NULL;
}

static bool are_peers(const meeting *m, const tutti_node *a, const tutti_node *b)
{
    const char *channel = tutti__str(a, "channel");
    return a->op == b->op && strcmp(tutti__str(a, "axis"), tutti__str(b, "axis")) == 0 &&
           strcmp(channel, tutti__str(b, "channel")) == 0 &&
           (channel[0] || m->number[a->id] == m->number[b->id]) && m->home[a->id] != m->home[b->id];
}

/* Joins a collective to the ring of the first peer before it, and counts it along its axis. */
static void meet_join(meeting *m, const tutti_node *node)
{
    m->partner[node->id] = node;
    for (size_t n = 0; n < node->id; n++) {
        const tutti_node *before = m->job->nodes.data[n];
        if (is_collective(before) && m->home[n] == m->home[node->id] &&
            !tutti__is(before, "all_reduce_wait") && !tutti__is(node, "all_reduce_wait"))
            m->previous[node->id] = before;
        if (is_collective(before) && m->home[n] == m->home[node->id] &&
            strcmp(tutti__str(before, "axis"), tutti__str(node, "axis")) == 0)
            m->number[node->id]++;
    }
    for (size_t n = 0; n < node->id; n++) {
        const tutti_node *before = m->job->nodes.data[n];
        if (!is_collective(before) || !are_peers(m, before, node))
            continue;
        m->partner[node->id] = m->partner[n];
        m->partner[n] = node;
        return;
    }
}

static bool has_what_it_needs(const meeting *m, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!m->placed[node->inputs[i].node->id])
            return false;
    for (int i = 0; i < node->control_count; i++)
        if (!m->placed[node->controls[i]->id])
            return false;
    return true;
}

static bool is_next(const meeting *m, const tutti_node *node)
{
    const tutti_node *previous = m->unordered ? NULL : m->previous[node->id];
    return !previous || m->placed[previous->id];
}

static bool is_ready(const meeting *m, const tutti_node *node)
{
    const tutti_node *partner = m->partner[node->id];
    if (!has_what_it_needs(m, node) ||
        (tutti__is(node, "recv") && partner && !m->placed[partner->id]))
        return false;
    if (!is_collective(node) || m->apart[node->id])
        return true;
    for (; partner && partner != node; partner = m->partner[partner->id])
        if (!has_what_it_needs(m, partner) || !is_next(m, partner))
            return false;
    return is_next(m, node);
}

static void meet_put(meeting *m, const tutti_node *node)
{
    m->placed[node->id] = true;
    m->order[m->count++] = node;
    if (!is_collective(node) || m->apart[node->id])
        return;
    for (const tutti_node *peer = m->partner[node->id]; peer != node; peer = m->partner[peer->id]) {
        m->placed[peer->id] = true;
        m->order[m->count++] = peer;
    }
}

/* Nothing is ready: the peers of the first collective that only lacks them stand apart. Without one
 * it is sends and recvs that wait for each other, as they would when they run. */
static tutti_status go_apart(meeting *m)
{
    const tutti_node *recv = NULL;
    for (size_t n = 0; n < m->job->nodes.count; n++) {
        const tutti_node *node = m->job->nodes.data[n];
        if (m->placed[n] || !has_what_it_needs(m, node))
            continue;
        if (!is_collective(node)) {
            recv = recv ? recv : node;
            continue;
        }
        do {
            m->apart[node->id] = true;
            node = m->partner[node->id];
        } while (!m->apart[node->id]);
        return TUTTI_OK;
    }
    if (!recv)
        return tutti_fail(TUTTI_INTERNAL, "the nodes of a job need each other in a circle");
    return tutti_fail(TUTTI_INVALID,
                      "%s '%s': what is sent on its channel '%s' follows what it receives, so both "
                      "devices would wait for ever; send before the recv, or on another channel",
                      recv->op->name, recv->name, tutti__str(recv, "channel"));
}

/* A collective that is started and waited for later holds up nobody. */
static bool can_wait(const meeting *m, const tutti_node *node)
{
    const tutti_attr *starts = tutti_attr_find(node->attrs, node->attr_count, "starts");
    const tutti_node *partner = m->partner[node->id];
    return is_collective(node) && partner && partner != node && !(starts && starts->value.i);
}

/* Puts what is ready, in the graph's order; false when that is nothing. */
static bool put_others(meeting *m)
{
    size_t before = m->count;
    for (size_t n = 0; n < m->job->nodes.count; n++) {
        const tutti_node *node = m->job->nodes.data[n];
        if (!m->placed[n] && !can_wait(m, node) && is_ready(m, node))
            meet_put(m, node);
    }
    return m->count > before;
}

static bool put_first_collective(meeting *m)
{
    for (size_t n = 0; n < m->job->nodes.count; n++) {
        const tutti_node *node = m->job->nodes.data[n];
        if (m->placed[n] || !can_wait(m, node) || !is_ready(m, node))
            continue;
        meet_put(m, node);
        return true;
    }
    return false;
}

static tutti_status arrange(meeting *m)
{
    size_t total = m->job->nodes.count;
    for (size_t n = 0; n < total; n++) {
        const tutti_node *node = m->job->nodes.data[n];
        if (is_collective(node))
            meet_join(m, node);
        else if (tutti__is(node, "recv"))
            m->partner[n] = tutti__matching_send(m->job, node);
    }
    while (m->count < total) {
        if (put_others(m) || put_first_collective(m))
            continue;
        if (m->unordered)
            TUTTI_TRY(go_apart(m));
        m->unordered = true;
    }
    return TUTTI_OK;
}

tutti_status tutti__meeting_order(const tutti_graph *job, const int *home,
                                  const tutti_node **ret_order, int *ret_number,
                                  const tutti_node **ret_partner)
{
    size_t count = job->nodes.count + 1;
    meeting m = {
        .job = job, .home = home, .number = ret_number, .order = ret_order, .partner = ret_partner};
    m.placed = calloc(count, sizeof *m.placed);
    m.apart = calloc(count, sizeof *m.apart);
    m.previous = calloc(count, sizeof *m.previous);
    tutti_status status = m.placed && m.apart && m.previous
                              ? arrange(&m)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to partition a graph");
    for (size_t n = 0; n < job->nodes.count; n++)
        if (m.apart && m.apart[n])
            ret_partner[n] = NULL;
    free(m.placed);
    free(m.apart);
    free(m.previous);
    return status;
}

/* A number for each device, the first node's that is there. */
static void number_devices(const tutti_graph *job, int *home)
{
    for (size_t n = 0; n < job->nodes.count; n++) {
        home[n] = (int)n;
        for (size_t before = 0; before < n && home[n] == (int)n; before++)
            if (strcmp(job->nodes.data[before]->device, job->nodes.data[n]->device) == 0)
                home[n] = home[before];
    }
}

static tutti_status find_partners(tutti_graph *job, const char *fallback, const char **devices,
                                  int *home, const tutti_node **order, int *number,
                                  const tutti_node **partner)
{
    size_t count = job->nodes.count;
    for (size_t n = 0; n < count; n++)
        devices[n] = job->nodes.data[n]->device;
    tutti_status status = tutti__place_unasked(job, fallback);
    if (status == TUTTI_OK) {
        number_devices(job, home);
        status = tutti__meeting_order(job, home, order, number, partner);
    }
    for (size_t n = 0; n < count; n++)
        job->nodes.data[n]->device = devices[n];
    for (size_t n = 0; status == TUTTI_OK && n < count; n++)
        if (tutti__is(job->nodes.data[n], "recv") && partner[n])
            partner[partner[n]->id] = job->nodes.data[n];
    return status;
}

tutti_status tutti__meeting_partners(tutti_graph *job, const char *fallback,
                                     const tutti_node **ret_partner)
{
    size_t count = job->nodes.count + 1;
    const char **devices = calloc(count, sizeof *devices);
    int *home = calloc(count, sizeof *home), *number = calloc(count, sizeof *number);
    const tutti_node **order = calloc(count, sizeof *order);
    tutti_status status =
        devices && home && number && order
            ? find_partners(job, fallback, devices, home, order, number, ret_partner)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a graph");
    free(devices);
    free(home);
    free(number);
    free(order);
    return status;
}
