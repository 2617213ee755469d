/* course.c: the course of a step: the devices of a process side by side, each instruction
 * after instruction, and waiting for each other where they meet. Devices that are not rehearsed
 * (other processes, imagined ones) arrive when the first one does. */
#include <math.h>
#include <string.h>

#include "base/container.h"
#include "forecast/forecast.h"

/* ---- prices ---- */

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 0 : ceil((double)count * (double)tutti_dtype_size(type->dtype) / 64) * 64;
}

/* "" for values as they are. */
static const char *form_of(const tutti_node *node)
{
    return tutti_attr_find(node->attrs, node->attr_count, "wire") ? tutti__str(node, "wire") : "";
}

/* What a collective carries: of a bucket all values, in the form that they travel in. */
static double carried(const tutti_node *node)
{
    double bytes = 0;
    const char *function = form_of(node);
    for (int i = 0; i < node->output_count; i++)
        bytes += bytes_of(&node->types[i]);
    return strcmp(function, "bf16") == 0 || strcmp(function, "f16") == 0 ? bytes / 2 : bytes;
}

static bool chosen_by_cost(const char *name, bool memory)
{
    if (memory)
        return strcmp(name, "direct") == 0;
    return strcmp(name, "direct") != 0 && strcmp(name, "fixed") != 0 &&
           strcmp(name, "compressed") != 0 && strcmp(name, "native") != 0;
}

static double cheapest(const tutti_comm_cost *cost, bool memory, const char *operation, int ranks,
                       double bytes)
{
    double best = INFINITY;
    for (const char *const *name = tutti_comm_algorithms(operation); *name; name++)
        if (chosen_by_cost(*name, memory))
            best = fmin(best, tutti_comm_predict(cost, operation, *name, ranks, (int64_t)bytes));
    return isfinite(best) ? best : 0;
}

/* The own operation where an algorithm was asked for that has it; else by cost. */
static double price_of(const tutti_forecast_reach *reach, const char *operation, double bytes)
{
    int ranks = reach->processes > 1 ? reach->processes : reach->local;
    double given = reach->algorithm ? tutti_comm_predict(&reach->cost, operation, reach->algorithm,
                                                         ranks, (int64_t)bytes)
                                    : INFINITY;
    double all =
        isfinite(given) ? given : cheapest(&reach->cost, reach->memory, operation, ranks, bytes);
    if (reach->processes > 1 && reach->local > 1) /* two levels: axis group.c */
        all += cheapest(&reach->inner, true, "reduce", reach->local, bytes) +
               cheapest(&reach->inner, true, "broadcast", reach->local, bytes);
    return all;
}

/* What stands for a value on the wire; all of it where nobody knows. */
static double compressed_bytes(const char *function, const tutti_type *type)
{
    tutti_compressor *compressor;
    if (tutti_compressor_create(function, type->rank, type->dims, &compressor) != TUTTI_OK)
        return bytes_of(type);
    double bytes = (double)tutti_compressor_bytes(compressor);
    tutti_compressor_free(compressor);
    return bytes;
}

/* Value by value: the largest numbers of each rank are gathered by all, of two thin matrices one is
 * summed after the other. The work of compressing is not known here. */
static double price_compressed(const tutti_forecast_reach *reach, const tutti_node *node,
                               const char *function, double *ret_sent)
{
    double seconds = 0;
    int ranks = reach->processes > 1 ? reach->processes : reach->local;
    bool gathers = strncmp(function, "topk", 4) == 0;
    for (int i = 0; i < node->output_count; i++) {
        double bytes = compressed_bytes(function, &node->types[i]);
        int parts = bytes < bytes_of(&node->types[i]) ? 2 : 1;
        if (bytes == 0)
            continue;
        *ret_sent += gathers ? bytes * (ranks - 1) : 2 * bytes * (ranks - 1) / ranks;
        seconds += gathers ? price_of(reach, "all_gather", bytes)
                           : parts * price_of(reach, "all_reduce", bytes / parts);
    }
    return seconds;
}

/* Seconds; *ret_sent: bytes that leave a replica. 0 for what meets nobody. */
static double price(const tutti_forecast_reach *reach, const tutti_node *node, double *ret_sent)
{
    int replicas = reach->processes * reach->local;
    double bytes = carried(node);
    const char *name = node->op->name;
    *ret_sent = 0;
    if (replicas < 2 || bytes == 0)
        return 0;
    if (strchr(form_of(node), ':'))
        return price_compressed(reach, node, form_of(node), ret_sent);
    if (strcmp(name, "all_reduce") == 0 || strcmp(name, "all_reduce_many") == 0) {
        *ret_sent = 2 * bytes * (replicas - 1) / replicas;
        return price_of(reach, "all_reduce", bytes);
    }
    if (strcmp(name, "all_reduce_shards") == 0) {
        *ret_sent = 2 * bytes * (replicas - 1) / replicas;
        return tutti_comm_predict(&reach->cost, "all_reduce", "fixed", replicas, (int64_t)bytes);
    }
    if (strcmp(name, "all_gather") == 0) {
        *ret_sent = bytes * (replicas - 1) / replicas;
        return price_of(reach, "all_gather", bytes / replicas);
    }
    if (strcmp(name, "reduce_scatter") == 0) { /* what it carries is a block */
        *ret_sent = bytes * (replicas - 1);
        return price_of(reach, "reduce_scatter", bytes * replicas);
    }
    if (strcmp(name, "recv") == 0) /* from another device of the process: a copy, rehearsed */
        *ret_sent = bytes;
    return 0;
}

/* ---- where devices meet ---- */

/* A collective, or a value on its way, by channel. */
typedef struct meeting {
    int expected, came; /* devices that were rehearsed; of a value the one that sends it */
    double ready;       /* when the last of them came */
    double end;         /* once all have come */
} meeting;

typedef struct lane {
    const tutti_timed_list *list;
    size_t at;
    bool arrived; /* at the collective that it waits in */
    double now;
    tutti_course sums;
} lane;

typedef struct step {
    const tutti_rehearsal *rehearsal;
    const tutti_forecast_reach *reach;
    double slowdown;
    double link; /* when it is free again */
    tutti_arena arena;
    tutti_map meetings; /* by channel */
} step;

static bool is_meeting(const tutti_timed *timed)
{
    return timed->node && timed->skipped &&
           tutti_attr_find(timed->node->attrs, timed->node->attr_count, "channel");
}

static meeting *meeting_of(const step *s, const tutti_node *node)
{
    return tutti__map_get(&s->meetings, tutti__str(node, "channel"));
}

static tutti_status expect(step *s, const tutti_node *node)
{
    meeting *m = meeting_of(s, node);
    if (!m) {
        m = tutti__arena_array(&s->arena, 1, sizeof *m);
        if (!m)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
        *m = (meeting){0};
        TUTTI_TRY(tutti__map_set(&s->meetings, tutti__str(node, "channel"), m));
    }
    m->expected += !tutti__is(node, "recv") && !tutti__is(node, "all_reduce_wait");
    return TUTTI_OK;
}

static tutti_status expect_all(step *s)
{
    for (int d = 0; d < s->rehearsal->count; d++)
        for (size_t i = 0; i < s->rehearsal->devices[d].count; i++) {
            const tutti_timed *timed = &s->rehearsal->devices[d].data[i];
            if (is_meeting(timed))
                TUTTI_TRY(expect(s, timed->node));
        }
    return TUTTI_OK;
}

/* ---- the course ---- */

static void wait_until(lane *l, double time)
{
    if (time <= l->now)
        return;
    l->sums.exposed += time - l->now;
    l->now = time;
}

/* Comes to a collective, once; the last to come begins it. */
static void arrive(step *s, lane *l, meeting *m, const tutti_node *node)
{
    double sent, seconds = price(s->reach, node, &sent);
    if (l->arrived)
        return;
    l->arrived = true;
    l->sums.sent += sent;
    l->sums.summed += strncmp(node->op->name, "all_reduce", 10) == 0 ? carried(node) : 0;
    l->sums.communication += seconds;
    m->ready = fmax(m->ready, l->now);
    if (++m->came < m->expected)
        return;
    m->end = s->link = fmax(m->ready, s->link) + seconds;
}

/* A copy: rehearsed, and handing it over takes what it takes without any bytes. */
static void transfer(step *s, lane *l, const tutti_timed *timed)
{
    double sent;
    (void)price(s->reach, timed->node, &sent);
    l->sums.sent += sent;
    l->sums.communication += timed->seconds + s->rehearsal->handing;
    wait_until(l, l->now + timed->seconds + s->rehearsal->handing);
}

/* False: it has to wait for a device that has not come so far. */
static bool meet(step *s, lane *l, const tutti_timed *timed)
{
    const tutti_node *node = timed->node;
    meeting *m = meeting_of(s, node);
    const tutti_attr *starts = tutti_attr_find(node->attrs, node->attr_count, "starts");
    bool sends = tutti__is(node, "send"), receives = tutti__is(node, "recv");
    if (!sends && !receives && !tutti__is(node, "all_reduce_wait"))
        arrive(s, l, m, node);
    if (!sends && m->came < m->expected && !(starts && starts->value.i))
        return false;
    if (sends || receives) {
        wait_until(l, receives ? m->end : l->now);
        transfer(s, l, timed);
    } else if (!starts || !starts->value.i) {
        wait_until(l, m->end);
    }
    if (sends) {
        m->came++;
        m->end = l->now;
    }
    return true;
}

static bool forecast_course_advance(step *s, lane *l)
{
    const tutti_timed *timed = &l->list->data[l->at];
    double seconds = timed->seconds * s->slowdown;
    if (is_meeting(timed)) {
        if (!meet(s, l, timed))
            return false;
    } else {
        l->sums.compute += seconds;
        l->now += seconds;
    }
    l->sums.flops += timed->node ? tutti__node_flops(timed->node) : 0;
    l->arrived = false;
    l->at++;
    return true;
}

/* Nobody can go on: what the first one waits for never comes. */
static void give_up_one(const step *s, lane *lanes)
{
    for (int d = 0; d < s->rehearsal->count; d++)
        if (lanes[d].at < lanes[d].list->count) {
            meeting *m = meeting_of(s, lanes[d].list->data[lanes[d].at].node);
            m->expected = m->came;
            m->end = fmax(m->end, m->ready);
            return;
        }
}

static void follow(step *s, lane *lanes)
{
    bool left = true;
    while (left) {
        bool moved = false;
        left = false;
        for (int d = 0; d < s->rehearsal->count; d++) {
            lane *l = &lanes[d];
            while (l->at < l->list->count && forecast_course_advance(s, l))
                moved = true;
            left = left || l->at < l->list->count;
        }
        if (left && !moved)
            give_up_one(s, lanes);
    }
}

tutti_status tutti__forecast_courses(const tutti_rehearsal *rehearsal,
                                     const tutti_forecast_reach *reach, double slowdown,
                                     tutti_course *ret)
{
    step s = {.rehearsal = rehearsal, .reach = reach, .slowdown = slowdown};
    lane *lanes = tutti__arena_array(&s.arena, (size_t)rehearsal->count + 1, sizeof *lanes);
    tutti_status status =
        lanes ? expect_all(&s) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    for (int d = 0; status == TUTTI_OK && d < rehearsal->count; d++) {
        lanes[d] = (lane){.list = &rehearsal->devices[d]};
        wait_until(&lanes[d], d > 0 ? rehearsal->starting : 0);
    }
    if (status == TUTTI_OK)
        follow(&s, lanes);
    for (int d = 0; status == TUTTI_OK && d < rehearsal->count; d++) {
        if (rehearsal->count > 1) /* all come to the commit, and hear that all have */
            wait_until(&lanes[d], lanes[d].now + 2 * rehearsal->handing);
        ret[d] = lanes[d].sums;
        ret[d].step = lanes[d].now;
    }
    tutti__map_free(&s.meetings);
    tutti__arena_free(&s.arena);
    return status;
}
