/* rehearse.c: see rehearse.h. */
#include "exec/run/rehearse.h"

#include <math.h>
#include <stdlib.h>

#include "base/denormals.h"
#include "base/world.h"
#include "exec/plan/fed_rows.h"
#include "exec/run/rendezvous.h"
#include "exec/run/runner.h"
#include "program/program.h"

typedef struct part {
    const tutti_plan_piece *piece;
    tutti_run *run;
    tutti_tensor *const *values;
    tutti_timed_list *list;
    tutti_status status;
    tutti_driver_thread *thread; /* NULL: the caller's */
} part;

static void rehearse_piece(void *context)
{
    part *p = context;
    const tutti_plan_piece *piece = p->piece;
    tutti_tensor **inputs = calloc((size_t)piece->parameter_count + 1, sizeof *inputs);
    p->status = inputs ? tutti__fed_rows_take(piece, p->values, inputs)
                       : tutti_fail(TUTTI_NO_MEMORY, "no memory for a rehearsal");
    if (p->status == TUTTI_OK) {
        uint64_t before = tutti__denormals_to_zero();
        p->status = piece->executable->table->rehearse(piece->executable, p->run, inputs, p->list);
        tutti__denormals_set(before);
        tutti__tensors_drop(piece->parameter_count, inputs);
    }
    free(inputs);
}

static tutti_status rehearse_pieces(const tutti_plan *plan, tutti_run *run,
                                    tutti_tensor *const *values, tutti_rehearsal *r)
{
    part *parts = calloc((size_t)plan->piece_count + 1, sizeof *parts);
    tutti_status status = TUTTI_OK;
    if (!parts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a rehearsal");
    for (int i = plan->piece_count - 1; i >= 0; i--) {
        parts[i] = (part){&plan->pieces[i], run, values, &r->devices[i], TUTTI_OK, NULL};
        if (!plan->pieces[i].executable->table->rehearse)
            r->whole = false;
        else if (i == 0 || !(parts[i].thread = tutti__driver_start(rehearse_piece, &parts[i])))
            rehearse_piece(&parts[i]);
    }
    for (int i = 0; i < plan->piece_count; i++) {
        if (parts[i].thread)
            tutti__driver_wait(parts[i].thread);
        if (parts[i].status != TUTTI_OK)
            status = parts[i].status;
    }
    free(parts);
    return status;
}

/* Two devices that hand each other next to nothing. */
typedef struct hands {
    tutti_run *run;
    tutti_tensor *value;
} hands;
enum { HANDINGS = 32 };

static tutti_status take_one(const hands *h, const char *channel)
{
    tutti_tensor *taken;
    TUTTI_TRY(tutti__rendezvous_recv(h->run, channel, "here", "rehearsal", &taken));
    tutti_tensor_release(taken);
    return TUTTI_OK;
}

static void answer(void *context)
{
    const hands *h = context;
    for (int i = 0; i < HANDINGS; i++)
        if (take_one(h, "there") != TUTTI_OK ||
            tutti__rendezvous_send(h->run, "back", h->value) != TUTTI_OK)
            return; /* nobody answers any more: the first one's deadline */
}

/* There and back, which is given and taken twice: the least counts. */
static tutti_status time_hands(const hands *h, double *ret)
{
    double least = INFINITY;
    for (int i = 0; i < HANDINGS; i++) {
        int64_t start = tutti__now_ns();
        TUTTI_TRY(tutti__rendezvous_send(h->run, "there", h->value));
        TUTTI_TRY(take_one(h, "back"));
        least = fmin(least, 0.25e-9 * (double)(tutti__now_ns() - start));
    }
    *ret = least;
    return TUTTI_OK;
}

/* 0 where it could not be found out within a second. */
static double time_handing(tutti_run *run)
{
    int64_t before = run->deadline;
    tutti_rendezvous rendezvous;
    hands h = {.run = run};
    double handing = 0;
    if (tutti_tensor_create(TUTTI_U8, 0, NULL, &h.value) != TUTTI_OK)
        return 0;
    tutti__rendezvous_init(&rendezvous, 2);
    run->rendezvous = &rendezvous;
    run->deadline = tutti__now_ns() + 1000000000;
    tutti_driver_thread *other = tutti__driver_start(answer, &h);
    if (other && time_hands(&h, &handing) != TUTTI_OK)
        handing = 0;
    if (other)
        tutti__driver_wait(other);
    run->rendezvous = NULL;
    run->deadline = before;
    tutti__rendezvous_end(&rendezvous);
    tutti_tensor_release(h.value);
    return handing;
}

static void do_nothing(void *context)
{
    (void)context;
}

/* Another device's thread begins, does nothing, and is waited for: the least counts. */
static double time_starting(void)
{
    enum { ROUNDS = 32 };
    double least = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = tutti__now_ns();
        tutti_driver_thread *thread = tutti__driver_start(do_nothing, NULL);
        if (!thread)
            return 0;
        tutti__driver_wait(thread);
        least = fmin(least, 1e-9 * (double)(tutti__now_ns() - start));
    }
    return least;
}

tutti_usage tutti__plan_usage(const tutti_plan *plan)
{
    tutti_usage usage = {0};
    for (int i = 0; i < plan->piece_count; i++)
        if (plan->pieces[i].executable->table->usage)
            plan->pieces[i].executable->table->usage(plan->pieces[i].executable, &usage);
    return usage;
}

/* Feeds that devices share are there once. */
static size_t fed_bytes(const tutti_plan *plan, tutti_tensor *const *values)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->piece_count; i++)
        for (int k = 0; k < plan->pieces[i].parameter_count; k++) {
            const tutti_tensor *value = values[plan->pieces[i].parameters[k]];
            bool seen = false;
            for (int before = 0; before < i && !seen; before++)
                for (int m = 0; m < plan->pieces[before].parameter_count && !seen; m++)
                    seen = values[plan->pieces[before].parameters[m]] == value;
            if (!seen && value)
                bytes += ((size_t)tutti_tensor_count(value) *
                              tutti_dtype_size(tutti_tensor_dtype(value)) +
                          63) /
                         64 * 64;
        }
    return bytes;
}

tutti_status tutti__plan_rehearse(tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                                  tutti_rehearsal *ret)
{
    tutti_rehearsal r = {.count = plan->piece_count, .whole = !plan->rest};
    r.devices = calloc((size_t)plan->piece_count + 1, sizeof *r.devices);
    if (!r.devices)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a rehearsal");
    run->watched = &run->cancelled;
    r.plan = tutti__plan_retain(plan);
    r.usage = tutti__plan_usage(plan);
    r.usage.data += fed_bytes(plan, values);
    tutti_status status = rehearse_pieces(plan, run, values, &r);
    if (status == TUTTI_OK && plan->piece_count > 1) {
        r.starting = time_starting();
        r.handing = time_handing(run);
    }
    if (status == TUTTI_OK)
        *ret = r;
    else
        tutti__rehearsal_free(&r);
    return status;
}

void tutti__rehearsal_free(tutti_rehearsal *rehearsal)
{
    for (int i = 0; i < rehearsal->count; i++)
        TUTTI_VEC_FREE(&rehearsal->devices[i]);
    free(rehearsal->devices);
    tutti__plan_release(rehearsal->plan);
    *rehearsal = (tutti_rehearsal){0};
}
