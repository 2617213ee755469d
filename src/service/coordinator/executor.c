/* executor.c: see executor.h. */
#include "service/coordinator/executor.h"

#include <stdio.h>
#include <stdlib.h>

void tutti__executor_init(tutti_executor *x, uint32_t node, uint32_t incarnation,
                          const tutti_store_transport *transport)
{
    *x = (tutti_executor){.node = node, .incarnation = incarnation, .transport = *transport};
}

static void forget_below(tutti_executor *x, uint64_t below)
{
    size_t left = 0;
    for (size_t i = 0; i < x->kept.count; i++) {
        if (x->kept.data[i].number < below)
            tutti__closure_outcome_free(&x->kept.data[i].outcome);
        else
            x->kept.data[left++] = x->kept.data[i];
    }
    x->kept.count = left;
}

void tutti__executor_free(tutti_executor *x)
{
    forget_below(x, UINT64_MAX);
    TUTTI_VEC_FREE(&x->kept);
    free(x->run.arguments);
    *x = (tutti_executor){0};
}

static void send_ran(const tutti_executor *x, uint64_t number, const tutti_closure_outcome *outcome)
{
    tutti_store_message m = {.type = TUTTI_STORE_RAN,
                             .node = x->node,
                             .incarnation = x->incarnation,
                             .step = number,
                             .clock = x->coordinator_incarnation,
                             .verdict = (uint32_t)-outcome->status,
                             .data = {outcome->results, outcome->size}};
    snprintf(m.text, sizeof m.text, "%s", outcome->text ? outcome->text : "");
    tutti__store_send(&x->transport, x->coordinator, &m);
}

/* A coordinator that was replaced no longer gives work. */
static bool is_fenced(tutti_executor *x, const tutti_store_message *m)
{
    if (m->incarnation < x->coordinator_incarnation)
        return true;
    if (m->incarnation > x->coordinator_incarnation)
        forget_below(x, UINT64_MAX); /* it may have other servers */
    x->coordinator = m->node;
    x->coordinator_incarnation = m->incarnation;
    return false;
}

void tutti__executor_receive(tutti_executor *x, const tutti_store_message *m)
{
    if (m->type != TUTTI_STORE_RUN || is_fenced(x, m))
        return;
    forget_below(x, m->after);
    for (size_t i = 0; i < x->kept.count; i++)
        if (x->kept.data[i].number == m->step) {
            send_ran(x, m->step, &x->kept.data[i].outcome);
            return;
        }
    if (x->state != TUTTI_EXECUTOR_FREE || m->step < m->after)
        return; /* repeated; or of another coordinator: it is repeated until this one is done */
    tutti_closure_run run = {.number = m->step,
                             .first_key = m->number,
                             .keys = m->version,
                             .arguments = malloc(m->data.size + 1),
                             .argument_bytes = m->data.size,
                             .given_by = m->incarnation};
    if (!run.arguments)
        return; /* it is repeated */
    if (m->data.size > 0)
        memcpy(run.arguments, m->data.bytes, m->data.size);
    snprintf(run.function, sizeof run.function, "%.*s", TUTTI_STORE_WORD - 1, m->text);
    x->run = run;
    x->state = TUTTI_EXECUTOR_GIVEN;
}

const tutti_closure_run *tutti__executor_take(tutti_executor *x)
{
    if (x->state != TUTTI_EXECUTOR_GIVEN)
        return NULL;
    x->state = TUTTI_EXECUTOR_RUNS;
    return &x->run;
}

void tutti__executor_finish(tutti_executor *x, tutti_closure_outcome *outcome)
{
    tutti_closure_ran ran = {x->run.number, *outcome};
    bool current = x->run.given_by == x->coordinator_incarnation;
    *outcome = (tutti_closure_outcome){0};
    if (current)
        send_ran(x, ran.number, &ran.outcome);
    /* What is not kept runs again when it is asked for again. */
    if (!current || ran.outcome.status == TUTTI_CLOSED || !TUTTI_VEC_PUSH(&x->kept, ran))
        tutti__closure_outcome_free(&ran.outcome);
    free(x->run.arguments);
    x->run = (tutti_closure_run){0};
    x->state = TUTTI_EXECUTOR_FREE;
}
