/* simulate.c: a schedule on paper, event by event.
 *
 * Each device does its actions in order, one at a time. SEND takes no time of the device: the value
 * is on its way for the stage's `send`, and RECV waits for it. What is on its way from one device
 * to another goes one by one, as a link does. The activations of a micro-batch are held from its F
 * to its B, or to its W where that is apart. */
#include <stdlib.h>

#include "parallel/pipeline/schedule.h"

static const tutti_stage_cost equal = {1, 1, 1, 0, 0};

/* What has been done for a stage and micro-batch, and since when. */
typedef struct progress {
    bool forward, backward, weight;
    bool sent, sent_gradient; /* by this stage, to the next and to the one before */
    bool received, received_gradient;
    double forward_end, backward_end;
    double arrival, arrival_gradient; /* of what this stage sent */
} progress;

typedef struct simulation {
    const tutti_pipeline_schedule *s;
    const tutti_stage_cost *costs;
    progress *done; /* [stages][micro] */
    size_t *next;   /* [devices] */
    double *free_at;
    double *link; /* [devices][2]: when the link to the next and the one before is free */
    int *held;
    tutti_pipeline_times *times;
} simulation;

static progress *progress_of(const simulation *m, int stage, int micro)
{
    return &m->done[(size_t)stage * (size_t)m->s->micro + (size_t)micro];
}

static const tutti_stage_cost *cost_of(const simulation *m, int stage)
{
    return m->costs ? &m->costs[stage] : &equal;
}

/* Whether the neighbour's value is here, and since when. */
static bool input_is_here(const simulation *m, const tutti_pipeline_action *a, bool back,
                          double *ret_when)
{
    int from = a->stage + (back ? 1 : -1);
    if (from < 0 || from >= m->s->stages)
        return true;
    const progress *own = progress_of(m, a->stage, a->micro), *p = progress_of(m, from, a->micro);
    bool same = tutti__stage_device(m->s, from) == tutti__stage_device(m->s, a->stage);
    *ret_when = back ? p->backward_end : p->forward_end;
    if (same)
        return back ? p->backward : p->forward;
    *ret_when = 0; /* RECV has waited */
    return back ? own->received_gradient : own->received;
}

/* Whether an action can begin; from when on. */
static bool can_begin(const simulation *m, const tutti_pipeline_action *a, double *ret_when)
{
    const progress *p = progress_of(m, a->stage, a->micro);
    *ret_when = 0;
    if (a->kind == TUTTI_FORWARD)
        return input_is_here(m, a, false, ret_when);
    if (a->kind == TUTTI_BACKWARD)
        return p->forward && input_is_here(m, a, true, ret_when);
    if (a->kind == TUTTI_WEIGHT)
        return p->backward;
    if (a->kind == TUTTI_SEND)
        return a->gradient ? p->backward : p->forward;
    const progress *peer = progress_of(m, a->peer, a->micro);
    *ret_when = a->gradient ? peer->arrival_gradient : peer->arrival;
    return a->gradient ? peer->sent_gradient : peer->sent;
}

static double action_seconds(const simulation *m, const tutti_pipeline_action *a)
{
    const tutti_stage_cost *cost = cost_of(m, a->stage);
    if (a->kind == TUTTI_FORWARD)
        return cost->forward;
    if (a->kind == TUTTI_BACKWARD)
        return cost->backward + (m->s->kind->weights ? 0 : cost->weight);
    return a->kind == TUTTI_WEIGHT ? cost->weight : 0;
}

static tutti_status done_twice(const tutti_pipeline_action *a)
{
    static const char *const names[] = {"forward", "backward", "weight", "send", "recv"};
    return tutti_fail(TUTTI_INVALID,
                      "the schedule has two actions %s of stage %d and micro-batch %d",
                      names[a->kind], a->stage, a->micro);
}

static tutti_status mark(bool *flag, const tutti_pipeline_action *a)
{
    if (*flag)
        return done_twice(a);
    *flag = true;
    return TUTTI_OK;
}

static tutti_status send_value(simulation *m, const tutti_pipeline_action *a, int device,
                               double now)
{
    progress *p = progress_of(m, a->stage, a->micro);
    const tutti_stage_cost *cost = cost_of(m, a->stage);
    double *link = &m->link[2 * device + a->gradient];
    double arrival = (now > *link ? now : *link) + (a->gradient ? cost->send_gradient : cost->send);
    *link = arrival;
    *(a->gradient ? &p->arrival_gradient : &p->arrival) = arrival;
    return mark(a->gradient ? &p->sent_gradient : &p->sent, a);
}

static void hold(simulation *m, int device, int by)
{
    m->held[device] += by;
    if (m->held[device] > m->times->peak[device])
        m->times->peak[device] = m->held[device];
}

static tutti_status perform(simulation *m, const tutti_pipeline_action *a, int device, double begin)
{
    progress *p = progress_of(m, a->stage, a->micro);
    double end = begin + action_seconds(m, a);
    m->times->times[device][m->next[device]] = (tutti_pipeline_action_time){begin, end};
    m->times->busy[device] += end - begin;
    m->free_at[device] = end;
    m->times->end = end > m->times->end ? end : m->times->end;
    switch (a->kind) {
    case TUTTI_FORWARD:
        hold(m, device, 1);
        p->forward_end = end;
        return mark(&p->forward, a);
    case TUTTI_BACKWARD:
        if (!m->s->kind->weights)
            hold(m, device, -1);
        p->backward_end = end;
        return mark(&p->backward, a);
    case TUTTI_WEIGHT:
        hold(m, device, -1);
        return mark(&p->weight, a);
    case TUTTI_SEND:
        return send_value(m, a, device, begin);
    case TUTTI_RECV:
        break;
    }
    return mark(a->gradient ? &p->received_gradient : &p->received, a);
}

/* Goes as far as a device can; *ret_any: it went somewhere. */
static tutti_status advance(simulation *m, int device, bool *ret_any)
{
    const tutti_pipeline_actions *of = &m->s->of[device];
    double when;
    while (m->next[device] < of->list.count &&
           can_begin(m, &of->list.data[m->next[device]], &when)) {
        double now = m->free_at[device];
        TUTTI_TRY(perform(m, &of->list.data[m->next[device]], device, when > now ? when : now));
        m->next[device]++;
        *ret_any = true;
    }
    return TUTTI_OK;
}

static tutti_status stuck(const simulation *m)
{
    static const char letters[] = "FBWSR";
    const tutti_pipeline_schedule *s = m->s;
    for (int d = 0; d < s->devices; d++) {
        if (m->next[d] == s->of[d].list.count)
            continue;
        const tutti_pipeline_action *a = &s->of[d].list.data[m->next[d]];
        return tutti_fail(TUTTI_INVALID,
                          "schedule %s does not end: device %d waits for ever before %c%d of stage "
                          "%d, because what that needs comes later, or never",
                          s->kind->name, d, letters[a->kind], a->micro, a->stage);
    }
    return TUTTI_OK;
}

static tutti_status is_complete(const simulation *m)
{
    for (int stage = 0; stage < m->s->stages; stage++)
        for (int i = 0; i < m->s->micro; i++) {
            const progress *p = progress_of(m, stage, i);
            if (!p->forward || !p->backward || p->weight != m->s->kind->weights)
                return tutti_fail(TUTTI_INVALID,
                                  "schedule %s leaves %s of stage %d and micro-batch %d out",
                                  m->s->kind->name,
                                  !p->forward    ? "the forward pass"
                                  : !p->backward ? "the backward pass"
                                                 : "the gradients of the weights",
                                  stage, i);
        }
    return TUTTI_OK;
}

static tutti_status run_on_paper(simulation *m)
{
    for (bool any = true; any;) {
        any = false;
        for (int d = 0; d < m->s->devices; d++)
            TUTTI_TRY(advance(m, d, &any));
    }
    TUTTI_TRY(stuck(m));
    TUTTI_TRY(is_complete(m));
    double busy = 0;
    for (int d = 0; d < m->s->devices; d++)
        busy += m->times->busy[d];
    m->times->idle = m->times->end > 0 ? 1 - busy / (m->times->end * m->s->devices) : 0;
    return TUTTI_OK;
}

static bool make_room(simulation *m)
{
    const tutti_pipeline_schedule *s = m->s;
    size_t devices = (size_t)s->devices;
    tutti_pipeline_times *t = m->times;
    m->done = calloc((size_t)s->stages * (size_t)s->micro, sizeof *m->done);
    m->next = calloc(devices, sizeof *m->next);
    m->free_at = calloc(devices, sizeof *m->free_at);
    m->link = calloc(devices * 2, sizeof *m->link);
    m->held = calloc(devices, sizeof *m->held);
    t->busy = calloc(devices, sizeof *t->busy);
    t->peak = calloc(devices, sizeof *t->peak);
    t->times = calloc(devices, sizeof *t->times);
    bool good =
        m->done && m->next && m->free_at && m->link && m->held && t->busy && t->peak && t->times;
    for (size_t d = 0; good && d < devices; d++)
        good = (t->times[d] = calloc(s->of[d].list.count + 1, sizeof **t->times)) != NULL;
    return good;
}

tutti_status tutti__pipeline_schedule_simulate(const tutti_pipeline_schedule *s,
                                               const tutti_stage_cost *costs,
                                               tutti_pipeline_times *ret)
{
    tutti_pipeline_times times = {0};
    simulation m = {.s = s, .costs = costs, .times = &times};
    tutti_status status = make_room(&m)
                              ? run_on_paper(&m)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to simulate a schedule");
    free(m.done);
    free(m.next);
    free(m.free_at);
    free(m.link);
    free(m.held);
    if (status == TUTTI_OK)
        *ret = times;
    else
        tutti__pipeline_times_free(s, &times);
    return status;
}

void tutti__pipeline_times_free(const tutti_pipeline_schedule *s, tutti_pipeline_times *times)
{
    for (int d = 0; times->times && d < s->devices; d++)
        free(times->times[d]);
    free(times->times);
    free(times->busy);
    free(times->peak);
    *times = (tutti_pipeline_times){0};
}
