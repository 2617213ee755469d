/* owned.c: variables whose elements lie with the processes that update them. Each holds all of the
 * memory; of it only the own elements are those of the last step. Whoever wants the others asks for
 * them (fetch), at any time between two steps: nobody can update before all have met again. */
#include <string.h>

#include "base/world.h"
#include "state/state_inside.h"

void tutti__state_set_fetch(tutti_state *state, const tutti_state_fetch *fetch)
{
    pthread_mutex_lock(&state->lock);
    state->fetch = *fetch;
    pthread_mutex_unlock(&state->lock);
}

void tutti__piece_own(tutti_state *state, tutti_piece *piece, const tutti_own_part *owned)
{
    tutti_state_variable *variable = piece->variable;
    pthread_mutex_lock(&state->lock);
    variable->owned = *owned;
    variable->owned_piece = piece;
    atomic_fetch_add(&variable->owned_commits, 1);
    pthread_mutex_unlock(&state->lock);
}

static bool same(const tutti_own_part *a, const tutti_own_part *b)
{
    return a->bucket == b->bucket && a->offset == b->offset && a->part == b->part &&
           a->parts == b->parts;
}

bool tutti__variable_is_owned(const tutti_state_variable *variable, const tutti_own_part *owned)
{
    return variable->held == TUTTI_HELD_IN_PARTS && same(&variable->owned, owned);
}

static tutti_status torn(const tutti_state_variable *variable)
{
    return tutti_fail(TUTTI_CLOSED,
                      "variable '%s' is neither of one step nor of the next: a step failed while "
                      "it was written (the job ended while its processes exchanged what they had "
                      "updated, or an operator of yours that updates failed and does not say "
                      "TUTTI_OP_FALLIBLE); give it a value, or go on from a checkpoint",
                      variable->name);
}

/* Elements that are not the own ones go into the piece, if nobody has updated meanwhile. Whoever
 * claims the variable does not mind: it is the value that it has anyway. */
static tutti_status owned_keep(tutti_state *state, tutti_state_variable *variable, uint64_t stamp,
                               const float *all, const tutti_own_range *own, bool *ret_done)
{
    tutti__state_commit_begin(state);
    tutti_tensor *value;
    tutti_status status = TUTTI_OK;
    *ret_done = variable->held == TUTTI_HELD_IN_PARTS && variable->owned_commits == stamp;
    if (*ret_done)
        status = tutti__piece_write(state, variable->owned_piece, true, &value);
    if (*ret_done && status == TUTTI_OK) {
        float *to = tutti_tensor_data(value);
        int64_t count = tutti_type_count(&variable->type);
        memcpy(to, all, (size_t)own->first * sizeof *to);
        memcpy(to + own->end, all + own->end, (size_t)(count - own->end) * sizeof *to);
        variable->held = TUTTI_HELD_WHOLE;
    }
    tutti__state_commit_end(state);
    return status;
}

/* One try; *ret_done is false where a step came between. */
static tutti_status make_whole(tutti_state *state, tutti_state_variable *variable, bool *ret_done)
{
    tutti_tensor *all;
    tutti_own_range own;
    tutti__state_read_begin(state); /* no commit is under way */
    tutti_own_part owned = variable->owned;
    uint64_t stamp = variable->owned_commits;
    tutti_state_fetch fetch = state->fetch;
    bool in_parts = variable->held == TUTTI_HELD_IN_PARTS;
    tutti__state_read_end(state);
    if (!in_parts) {
        *ret_done = true;
        return TUTTI_OK;
    }
    if (!fetch.fetch)
        return tutti_fail(TUTTI_CLOSED, "variable '%s' lies with processes that are gone",
                          variable->name);
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &variable->type, &all));
    tutti_status status =
        fetch.fetch(fetch.context, variable, &owned, stamp, tutti_tensor_data(all), &own, ret_done);
    if (status == TUTTI_OK && *ret_done)
        status = owned_keep(state, variable, stamp, tutti_tensor_data(all), &own, ret_done);
    tutti_tensor_release(all);
    return status;
}

tutti_status tutti__variable_whole(tutti_state *state, tutti_state_variable *variable)
{
    enum { TRIES = 1000, BETWEEN_NS = 1000000 };
    bool done = false;
    if (variable->held == TUTTI_HELD_WHOLE)
        return TUTTI_OK;
    if (variable->held == TUTTI_HELD_TORN)
        return torn(variable);
    for (int i = 0; i < TRIES && !done; i++) {
        TUTTI_TRY(make_whole(state, variable, &done));
        if (!done)
            tutti__world()->sleep_ns(tutti__world()->self, BETWEEN_NS);
    }
    return done ? TUTTI_OK
                : tutti_fail(TUTTI_DEADLINE,
                             "variable '%s' lies in parts with the processes of the job and is "
                             "updated all the time; read it between two steps",
                             variable->name);
}

tutti_status tutti__variable_read_begin(tutti_state *state, tutti_state_variable *variable)
{
    for (;;) { /* a step of another thread may come between */
        TUTTI_TRY(tutti__variable_whole(state, variable));
        tutti__state_read_begin(state);
        if (variable->held == TUTTI_HELD_WHOLE)
            return TUTTI_OK;
        tutti__state_read_end(state);
    }
}

tutti_status tutti__state_whole(tutti_state *state)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++)
        TUTTI_TRY(tutti__variable_whole(state, variable));
    return TUTTI_OK;
}

void tutti__state_gathered(tutti_state *state)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++)
        variable->owned_commits = 0;
}

bool tutti__variable_give(tutti_state *state, uint64_t name, uint64_t stamp, int64_t offset,
                          int64_t bytes, void *to, bool *ret_found)
{
    tutti_tensor *value = NULL;
    tutti_state_variable *found = NULL;
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; i < state->variables.count && !found; i++) {
        tutti_state_variable *variable = state->variables.entries[i].value;
        if (variable->owned_commits > 0 && tutti__hash_string(0, variable->name) == name)
            found = variable;
    }
    if (found && found->owned_commits == stamp)
        value = tutti__piece_take(found->owned_piece);
    pthread_mutex_unlock(&state->lock);
    *ret_found = found != NULL;
    int64_t size = found ? tutti_type_count(&found->type) * (int64_t)sizeof(float) : 0;
    bool fits = value && offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset;
    if (fits)
        memcpy(to, (const char *)tutti_tensor_data(value) + offset, (size_t)bytes);
    tutti_tensor_release(value);
    atomic_thread_fence(memory_order_acquire);
    return fits && found->owned_commits == stamp;
}
