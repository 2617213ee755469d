/* team_owned.c: variables of which each process has a part: others ask for it; see state/owned.c.
 *
 * A state is known to other processes by the number under which it was registered: all register
 * theirs in the same order, when they compile the same programs. Of a state that goes, what others
 * may still want stays until the team closes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/serve.h"
#include "dist/team.h"
#include "ops/comm/comm.h"

typedef struct left {
    uint64_t name, stamp;
    tutti_tensor *value;
} left;

typedef struct shown {
    tutti_team *team;
    tutti_state *state; /* NULL: it is gone, and left this: */
    TUTTI_VEC(left) left;
    uint64_t number;
} shown;

struct tutti_team_shown {
    pthread_mutex_t lock;
    TUTTI_VEC(shown *) states;
};

static tutti_given give_left(const shown *s, const tutti_wanted *w, void *to)
{
    for (size_t i = 0; i < s->left.count; i++) {
        const left *l = &s->left.data[i];
        int64_t size = tutti_tensor_count(l->value) * (int64_t)sizeof(float);
        if (l->name != w->what[1])
            continue;
        if (l->stamp != w->stamp || w->offset > size || w->bytes > size - w->offset)
            return TUTTI_GIVEN_LATE;
        memcpy(to, (const char *)tutti_tensor_data(l->value) + w->offset, (size_t)w->bytes);
        return TUTTI_GIVEN_ALL;
    }
    return TUTTI_GIVEN_NONE;
}

static int give(void *context, const tutti_wanted *w, void *to)
{
    struct tutti_team_shown *all = context;
    tutti_given given = TUTTI_GIVEN_NONE;
    bool found;
    pthread_mutex_lock(&all->lock);
    const shown *s = w->what[0] < all->states.count ? all->states.data[w->what[0]] : NULL;
    if (s && s->state)
        given =
            tutti__variable_give(s->state, w->what[1], w->stamp, w->offset, w->bytes, to, &found)
                ? TUTTI_GIVEN_ALL
            : found ? TUTTI_GIVEN_LATE
                    : TUTTI_GIVEN_NONE;
    else if (s)
        given = give_left(s, w, to);
    pthread_mutex_unlock(&all->lock);
    return given;
}

/* The elements of one rank. */
static tutti_status fetch_from(const shown *s, int rank, const tutti_state_variable *variable,
                               const tutti_own_part *owned, uint64_t stamp, float *elements,
                               tutti_given *ret)
{
    int64_t first, end, count = tutti_type_count(&variable->type);
    tutti__owned_elements(owned->bucket, owned->parts, rank, owned->offset, count, &first, &end);
    tutti_wanted wanted = {.what = {s->number, tutti__hash_string(0, variable->name)},
                           .stamp = stamp,
                           .offset = first * (int64_t)sizeof *elements,
                           .bytes = (end - first) * (int64_t)sizeof *elements};
    *ret = TUTTI_GIVEN_ALL;
    if (first == end)
        return TUTTI_OK;
    TUTTI_TRY(tutti__comm_fetch(s->team->world, rank, &wanted, elements + first, ret));
    return *ret == TUTTI_GIVEN_NONE
               ? tutti_fail(TUTTI_CLOSED, "rank %d, which updates a part of it, has none of it",
                            rank)
               : TUTTI_OK;
}

static tutti_status fetch(void *context, const tutti_state_variable *variable,
                          const tutti_own_part *owned, uint64_t stamp, float *ret_elements,
                          tutti_own_range *ret_own, bool *ret_done)
{
    const shown *s = context;
    tutti_given given = TUTTI_GIVEN_ALL;
    tutti__owned_elements(owned->bucket, owned->parts, owned->part, owned->offset,
                          tutti_type_count(&variable->type), &ret_own->first, &ret_own->end);
    for (int r = 0; r < owned->parts && given == TUTTI_GIVEN_ALL; r++) {
        if (r == owned->part)
            continue;
        tutti_status status = fetch_from(s, r, variable, owned, stamp, ret_elements, &given);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "variable '%s' lies in parts with %d processes",
                                       variable->name, owned->parts);
    }
    *ret_done = given == TUTTI_GIVEN_ALL;
    return TUTTI_OK;
}

static tutti_status open_shown(tutti_team *team)
{
    if (team->shown)
        return TUTTI_OK;
    struct tutti_team_shown *all = calloc(1, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    pthread_mutex_init(&all->lock, NULL);
    team->shown = all;
    tutti__comm_serve(team->world, &(tutti_server){.give = give, .context = all});
    return TUTTI_OK;
}

tutti_status tutti__team_show(tutti_team *team, tutti_state *state)
{
    if (!team->world) /* imagined */
        return TUTTI_OK;
    TUTTI_TRY(open_shown(team));
    struct tutti_team_shown *all = team->shown;
    shown *one = calloc(1, sizeof *one);
    bool known = false, ok = one != NULL;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->states.count; i++)
        known = known || all->states.data[i]->state == state;
    if (ok && !known) {
        *one = (shown){.team = team, .state = state, .number = all->states.count};
        ok = TUTTI_VEC_PUSH(&all->states, one);
    }
    pthread_mutex_unlock(&all->lock);
    if (ok && !known)
        tutti__state_set_fetch(state, &(tutti_state_fetch){fetch, one});
    else
        free(one);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
}

/* What lies in parts; without memory others will hear that it is gone. */
static void leave(shown *s)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(s->state, i)) != NULL; i++) {
        if (variable->owned_commits == 0 || !variable->slot_of[0])
            continue;
        left l = {.name = tutti__hash_string(0, variable->name),
                  .stamp = variable->owned_commits,
                  .value = tutti__piece_acquire(s->state, variable->owned_piece)};
        if (l.value && !TUTTI_VEC_PUSH(&s->left, l))
            tutti_tensor_release(l.value);
    }
}

void tutti__team_hide(tutti_team *team, tutti_state *state)
{
    struct tutti_team_shown *all = team ? team->shown : NULL;
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->states.count; i++)
        if (all->states.data[i]->state == state) {
            leave(all->states.data[i]);
            all->states.data[i]->state = NULL;
        }
    pthread_mutex_unlock(&all->lock);
}

void tutti__team_unshow(tutti_team *team)
{
    tutti_error before;
    if (!team->shown)
        return;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti_comm_barrier(team->world, NULL) != TUTTI_OK)
        tutti__error_restore(&before); /* it is broken, as closing it will say */
    tutti__comm_serve(team->world, &(tutti_server){0});
}

void tutti__team_shown_free(struct tutti_team_shown *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->states.count; i++) {
        shown *s = all->states.data[i];
        for (size_t k = 0; k < s->left.count; k++)
            tutti_tensor_release(s->left.data[k].value);
        TUTTI_VEC_FREE(&s->left);
        free(s);
    }
    TUTTI_VEC_FREE(&all->states);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
