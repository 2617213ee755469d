/* dispatcher.c: see dispatcher.h. */
#include "service/coordinator/dispatcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000000)
enum { ATTEMPTS = 10 };

tutti_status tutti__dispatcher_init(tutti_dispatcher *d, const tutti_dispatcher_options *options)
{
    *d = (tutti_dispatcher){.options = *options, .first = 1, .next = 1};
    if (d->options.retry_ns <= 0)
        d->options.retry_ns = 100 * MS;
    if (d->options.attempts <= 0)
        d->options.attempts = ATTEMPTS;
    if (d->options.journal) {
        d->first = d->next = d->options.journal->next;
        d->next_key = d->options.journal->next_key;
    }
    d->below = d->first;
    d->below_key = d->finished_key = d->next_key;
    return TUTTI_OK;
}

static void entry_free(tutti_closure_entry *e)
{
    free(e->arguments);
    tutti__closure_outcome_free(&e->outcome);
    free(e);
}

void tutti__dispatcher_free(tutti_dispatcher *d)
{
    for (size_t i = 0; i < d->entries.count; i++)
        entry_free(d->entries.data[i]);
    TUTTI_VEC_FREE(&d->entries);
    tutti__store_view_free(&d->view);
    *d = (tutti_dispatcher){0};
}

tutti_closure_entry *tutti__dispatcher_find(const tutti_dispatcher *d, uint64_t number)
{
    return number >= d->first && number < d->next ? d->entries.data[number - d->first] : NULL;
}

/* What is done, and nobody asks about, goes; `below` moves on. */
static void forget(tutti_dispatcher *d)
{
    size_t gone = 0;
    const tutti_closure_entry *e;
    while ((e = tutti__dispatcher_find(d, d->below)) && e->state == TUTTI_CLOSURE_DONE) {
        d->below++;
        d->below_key = e->first_key + e->keys;
    }
    while (gone < d->entries.count && d->first + gone < d->below && !d->entries.data[gone]->held)
        entry_free(d->entries.data[gone++]);
    if (gone == 0)
        return;
    d->entries.count -= gone;
    d->first += gone;
    memmove(d->entries.data, d->entries.data + gone, d->entries.count * sizeof *d->entries.data);
}

void tutti__dispatcher_release(tutti_dispatcher *d, uint64_t number)
{
    tutti_closure_entry *e = tutti__dispatcher_find(d, number);
    if (e)
        e->held = false;
    forget(d);
}

/* ---- giving closures to workers ---- */

static void send_run(tutti_dispatcher *d, tutti_closure_entry *e, int64_t now_ns)
{
    tutti_store_message m = {.type = TUTTI_STORE_RUN,
                             .view = d->view.number,
                             .node = d->options.node,
                             .incarnation = d->options.incarnation,
                             .step = e->number,
                             .number = e->first_key,
                             .version = e->keys,
                             .after = d->below,
                             .data = {e->arguments, e->argument_bytes}};
    snprintf(m.text, sizeof m.text, "%s", e->function);
    e->sent_ns = now_ns;
    tutti__store_send(&d->options.transport, e->node, &m);
}

static bool is_busy(const tutti_dispatcher *d, uint32_t node)
{
    for (uint64_t n = d->below; n < d->next; n++) {
        const tutti_closure_entry *e = tutti__dispatcher_find(d, n);
        if (e->state == TUTTI_CLOSURE_RUNS && e->node == node)
            return true;
        if (e->first_key - d->finished_key >= TUTTI_STORE_CLOSURE_WINDOW)
            break;
    }
    return false;
}

/* The first closure that waits and lies within the window of keys. */
static tutti_closure_entry *next_waiting(const tutti_dispatcher *d)
{
    for (uint64_t n = d->below; n < d->next; n++) {
        tutti_closure_entry *e = tutti__dispatcher_find(d, n);
        if (e->first_key + e->keys - d->finished_key > TUTTI_STORE_CLOSURE_WINDOW)
            return NULL;
        if (e->state == TUTTI_CLOSURE_WAITS)
            return e;
    }
    return NULL;
}

static void give_out(tutti_dispatcher *d, int64_t now_ns)
{
    tutti_closure_entry *e = next_waiting(d);
    for (size_t i = 0; e && i < d->view.worker_count; i++) {
        const tutti_store_process *w = &d->view.workers[i];
        if ((w->node == d->options.node && !d->options.works) || is_busy(d, w->node))
            continue;
        e->state = TUTTI_CLOSURE_RUNS;
        e->node = w->node;
        e->incarnation = w->incarnation;
        e->retry_ns = d->options.retry_ns;
        send_run(d, e, now_ns);
        e = next_waiting(d);
    }
}

/* ---- outcomes ---- */

static uint64_t entry_hash(const tutti_closure_entry *e)
{
    uint64_t hash =
        tutti__hash_bytes(tutti__hash_string(0, e->function), e->arguments, e->argument_bytes);
    return tutti__hash_mix(tutti__hash_mix(hash, e->first_key), e->keys);
}

/* Takes the outcome over. */
static tutti_status settle(tutti_dispatcher *d, tutti_closure_entry *e,
                           tutti_closure_outcome *outcome, uint64_t hash, bool is_new)
{
    if (is_new && d->options.journal) {
        tutti_status status = tutti__journal_done(d->options.journal, e->number, hash, outcome);
        if (status != TUTTI_OK) {
            tutti__closure_outcome_free(outcome);
            return tutti__error_prefix(status, "closure %" PRIu64 " '%s'", e->number, e->function);
        }
    }
    e->state = TUTTI_CLOSURE_DONE;
    e->outcome = *outcome;
    free(e->arguments);
    e->arguments = NULL;
    d->open--;
    if (outcome->status != TUTTI_OK && d->failure.status == TUTTI_OK) {
        tutti_fail(outcome->status, "closure %" PRIu64 " '%s': %s", e->number, e->function,
                   outcome->text);
        tutti__error_capture(outcome->status, &d->failure);
    }
    return TUTTI_OK;
}

static tutti_status settle_with(tutti_dispatcher *d, tutti_closure_entry *e, tutti_status outcome,
                                const char *text, tutti_packed_data results, bool is_new)
{
    tutti_closure_outcome made;
    uint64_t hash = entry_hash(e);
    TUTTI_TRY(tutti__closure_outcome_make(outcome, text, results.bytes, results.size, &made));
    return settle(d, e, &made, hash, is_new);
}

/* What an earlier coordinator knew of this closure. */
static tutti_status recall(tutti_dispatcher *d, tutti_closure_entry *e)
{
    const tutti_journal_entry *known =
        d->options.journal ? tutti__journal_find(d->options.journal, e->number) : NULL;
    if (!known)
        return TUTTI_OK;
    if (known->hash != entry_hash(e))
        return tutti_fail(TUTTI_INVALID,
                          "closure %" PRIu64 " '%s' is another one than in the journal%s%s; go on "
                          "with the program that wrote it, or name another journal",
                          e->number, e->function, d->options.journal->path ? " " : "",
                          d->options.journal->path ? d->options.journal->path : "");
    return settle_with(d, e, known->outcome.status, known->outcome.text,
                       (tutti_packed_data){known->outcome.results, known->outcome.size}, false);
}

tutti_status tutti__dispatcher_schedule(tutti_dispatcher *d, const char *function,
                                        const void *arguments, size_t size, uint64_t keys,
                                        uint64_t *ret_number, int64_t now_ns)
{
    if (keys < 1 || keys > TUTTI_STORE_CLOSURE_WINDOW)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "closure '%s': %" PRIu64 " pushes; 1 to %d are possible", function, keys,
                          TUTTI_STORE_CLOSURE_WINDOW);
    if (strlen(function) >= TUTTI_STORE_WORD)
        return tutti_fail(TUTTI_TOO_LARGE, "closure '%s': a name has at most %d bytes", function,
                          TUTTI_STORE_WORD - 1);
    tutti_closure_entry *e = calloc(1, sizeof *e);
    uint8_t *copy = malloc(size + 1);
    if (!e || !copy || !TUTTI_VEC_PUSH(&d->entries, e)) {
        free(e);
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for closure '%s'", function);
    }
    if (size > 0)
        memcpy(copy, arguments, size);
    *e = (tutti_closure_entry){.number = d->next++,
                               .first_key = d->next_key,
                               .keys = keys,
                               .arguments = copy,
                               .argument_bytes = size,
                               .held = true};
    snprintf(e->function, sizeof e->function, "%s", function);
    d->next_key += keys;
    d->open++;
    tutti_status status = recall(d, e);
    if (status != TUTTI_OK) { /* it never was */
        d->entries.count--;
        d->next--;
        d->next_key -= keys;
        d->open--;
        entry_free(e);
        return status;
    }
    *ret_number = e->number;
    forget(d);
    give_out(d, now_ns);
    return TUTTI_OK;
}

void tutti__dispatcher_cancel(tutti_dispatcher *d)
{
    for (uint64_t n = d->below; n < d->next; n++) {
        tutti_closure_entry *e = tutti__dispatcher_find(d, n);
        if (e->state == TUTTI_CLOSURE_WAITS)
            settle_with(d, e, TUTTI_CANCELLED, "cancelled, since another closure failed",
                        (tutti_packed_data){0}, false);
    }
    forget(d);
}

/* Its worker is lost. */
static tutti_status take_back(tutti_dispatcher *d, tutti_closure_entry *e, const char *why)
{
    char text[TUTTI_STORE_TEXT];
    e->state = TUTTI_CLOSURE_WAITS;
    d->retried++;
    if (++e->attempts < d->options.attempts)
        return TUTTI_OK;
    snprintf(text, sizeof text, "%d workers were lost with it, one after the other: %.200s",
             e->attempts, why);
    return settle_with(d, e, TUTTI_CLOSED, text, (tutti_packed_data){0}, true);
}

tutti_status tutti__dispatcher_receive(tutti_dispatcher *d, const tutti_store_message *m,
                                       int64_t now_ns)
{
    tutti_closure_entry *e = m->type == TUTTI_STORE_RAN ? tutti__dispatcher_find(d, m->step) : NULL;
    if (!e || e->state == TUTTI_CLOSURE_DONE || m->clock != d->options.incarnation)
        return TUTTI_OK;
    tutti_status outcome = m->verdict == 0 ? TUTTI_OK : (tutti_status) - (int)m->verdict;
    if (outcome != TUTTI_CLOSED) /* a worker without servers: another one may have some */
        TUTTI_TRY(settle_with(d, e, outcome, m->text, m->data, true));
    else if (e->state == TUTTI_CLOSURE_RUNS && e->node == m->node &&
             e->incarnation == m->incarnation)
        TUTTI_TRY(take_back(d, e, m->text));
    forget(d);
    give_out(d, now_ns);
    return TUTTI_OK;
}

/* ---- workers come and go ---- */

static bool is_alive(const tutti_dispatcher *d, const tutti_closure_entry *e)
{
    const tutti_store_process *p = tutti__store_view_find(&d->view, e->node);
    return p && p->incarnation == e->incarnation;
}

tutti_status tutti__dispatcher_view(tutti_dispatcher *d, const tutti_store_view *view,
                                    int64_t now_ns)
{
    tutti_store_view copy;
    if (view->number <= d->view.number)
        return TUTTI_OK;
    TUTTI_TRY(tutti__store_view_copy(view, &copy));
    tutti__store_view_free(&d->view);
    d->view = copy;
    for (uint64_t n = d->below; n < d->next; n++) {
        tutti_closure_entry *e = tutti__dispatcher_find(d, n);
        if (e->state == TUTTI_CLOSURE_RUNS && !is_alive(d, e))
            TUTTI_TRY(take_back(d, e, "the last one is gone"));
    }
    forget(d);
    give_out(d, now_ns);
    return TUTTI_OK;
}

void tutti__dispatcher_finished(tutti_dispatcher *d, uint64_t key, int64_t now_ns)
{
    d->finished_key = key > d->finished_key ? key : d->finished_key;
    give_out(d, now_ns);
}

tutti_status tutti__dispatcher_tick(tutti_dispatcher *d, int64_t now_ns)
{
    for (uint64_t n = d->below; n < d->next; n++) {
        tutti_closure_entry *e = tutti__dispatcher_find(d, n);
        if (e->first_key - d->finished_key >= TUTTI_STORE_CLOSURE_WINDOW)
            break;
        if (e->state != TUTTI_CLOSURE_RUNS || now_ns - e->sent_ns < e->retry_ns)
            continue;
        e->retry_ns = 2 * e->retry_ns < 2000 * MS ? 2 * e->retry_ns : 2000 * MS;
        send_run(d, e, now_ns);
    }
    give_out(d, now_ns);
    return TUTTI_OK;
}
