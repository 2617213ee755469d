/* axis_group_owned.c: variables of which each process has a part: others ask for it; see
 * state/owned.c.
 *
 * A state is known to other processes by the number under which it was registered: all register
 * theirs in the same order, when they compile the same programs. Of a state that goes, what others
 * may still want stays until the axis group closes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/fabric/serve.h"
#include "ops/comm/comm.h"
#include "parallel/collectives/axis_group.h"

typedef struct left {
    uint64_t name, stamp;
    tutti_tensor *value;
} left;

typedef struct shown {
    tutti_axis_group *axis_group;
    tutti_state *state; /* NULL: it is gone, and left this: */
    TUTTI_VEC(left) left;
    uint64_t number;
} shown;

struct tutti_axis_group_shown {
    pthread_mutex_t lock;
    TUTTI_VEC(shown *) states;
};

static tutti_fetch_answer give_left(const shown *s, const tutti_wanted *w, void *to)
{
    for (size_t i = 0; i < s->left.count; i++) {
        const left *l = &s->left.data[i];
        int64_t size = tutti_tensor_count(l->value) * (int64_t)sizeof(float);
        if (l->name != w->what[1])
            continue;
        if (l->stamp != w->stamp || w->offset > size || w->bytes > size - w->offset)
            return TUTTI_FETCH_STALE;
        memcpy(to, (const char *)tutti_tensor_data(l->value) + w->offset, (size_t)w->bytes);
        return TUTTI_FETCH_ALL;
    }
    return TUTTI_FETCH_NONE;
}

static int give(void *context, const tutti_wanted *w, void *to)
{
    struct tutti_axis_group_shown *all = context;
    tutti_fetch_answer given = TUTTI_FETCH_NONE;
    bool found;
    pthread_mutex_lock(&all->lock);
    const shown *s = w->what[0] < all->states.count ? all->states.data[w->what[0]] : NULL;
    if (s && s->state)
        given =
            tutti__variable_give(s->state, w->what[1], w->stamp, w->offset, w->bytes, to, &found)
                ? TUTTI_FETCH_ALL
            : found ? TUTTI_FETCH_STALE
                    : TUTTI_FETCH_NONE;
    else if (s)
        given = give_left(s, w, to);
    pthread_mutex_unlock(&all->lock);
    return given;
}

/* The elements of one rank. */
static tutti_status fetch_from(const shown *s, int rank, const tutti_state_variable *variable,
                               const tutti_own_part *owned, uint64_t stamp, float *elements,
                               tutti_fetch_answer *ret)
{
    int64_t first, end, count = tutti_type_count(&variable->type);
    tutti__owned_elements(owned->bucket, owned->parts, rank, owned->offset, count, &first, &end);
    tutti_wanted wanted = {.what = {s->number, tutti__hash_string(0, variable->name)},
                           .stamp = stamp,
                           .offset = first * (int64_t)sizeof *elements,
                           .bytes = (end - first) * (int64_t)sizeof *elements};
    *ret = TUTTI_FETCH_ALL;
    if (first == end)
        return TUTTI_OK;
    TUTTI_TRY(tutti__comm_fetch(s->axis_group->world, rank, &wanted, elements + first, ret));
    return *ret == TUTTI_FETCH_NONE
               ? tutti_fail(TUTTI_CLOSED, "rank %d, which updates a part of it, has none of it",
                            rank)
               : TUTTI_OK;
}

static tutti_status fetch(void *context, const tutti_state_variable *variable,
                          const tutti_own_part *owned, uint64_t stamp, float *ret_elements,
                          tutti_own_range *ret_own, bool *ret_done)
{
    const shown *s = context;
    tutti_fetch_answer given = TUTTI_FETCH_ALL;
    tutti__owned_elements(owned->bucket, owned->parts, owned->part, owned->offset,
                          tutti_type_count(&variable->type), &ret_own->first, &ret_own->end);
    for (int r = 0; r < owned->parts && given == TUTTI_FETCH_ALL; r++) {
        if (r == owned->part)
            continue;
        tutti_status status = fetch_from(s, r, variable, owned, stamp, ret_elements, &given);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "variable '%s' lies in parts with %d processes",
                                       variable->name, owned->parts);
    }
    *ret_done = given == TUTTI_FETCH_ALL;
    return TUTTI_OK;
}

static tutti_status open_shown(tutti_axis_group *axis_group)
{
    if (axis_group->shown)
        return TUTTI_OK;
    struct tutti_axis_group_shown *all = calloc(1, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    pthread_mutex_init(&all->lock, NULL);
    axis_group->shown = all;
    tutti__comm_serve(axis_group->world, &(tutti_server){.give = give, .context = all});
    return TUTTI_OK;
}

tutti_status tutti__axis_group_show(tutti_axis_group *axis_group, tutti_state *state)
{
    if (!axis_group->world) /* imagined */
        return TUTTI_OK;
    TUTTI_TRY(open_shown(axis_group));
    struct tutti_axis_group_shown *all = axis_group->shown;
    shown *one = calloc(1, sizeof *one);
    bool known = false, ok = one != NULL;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->states.count; i++)
        known = known || all->states.data[i]->state == state;
    if (ok && !known) {
        *one = (shown){.axis_group = axis_group, .state = state, .number = all->states.count};
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

void tutti__axis_group_hide(tutti_axis_group *axis_group, tutti_state *state)
{
    struct tutti_axis_group_shown *all = axis_group ? axis_group->shown : NULL;
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

void tutti__axis_group_unshow(tutti_axis_group *axis_group)
{
    tutti_error before;
    if (!axis_group->shown)
        return;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti_comm_barrier(axis_group->world, NULL) != TUTTI_OK)
        tutti__error_restore(&before); /* it is broken, as closing it will say */
    tutti__comm_serve(axis_group->world, &(tutti_server){0});
}

void tutti__axis_group_shown_free(struct tutti_axis_group_shown *all)
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
