/* error_feedback.c: what compressed sums of gradients have left out so far, and will add later: a
 * compressor for each value and each replica of this process that compresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/state_inside.h"

#define PREFIX "left_out/"

typedef struct error_feedback {
    char *name; /* of what a checkpoint has of it */
    tutti_compressor *compressor;
    int64_t count; /* the value's numbers; what the compressor has besides is the same everywhere */
    int replica;
} error_feedback;

static void error_feedback_destroy(error_feedback *entry)
{
    tutti_compressor_free(entry->compressor);
    free(entry->name);
    free(entry);
}

void tutti__error_feedback_free(tutti_map *all)
{
    for (size_t i = 0; i < all->count; i++)
        error_feedback_destroy(all->entries[i].value);
    tutti__map_free(all);
    *all = (tutti_map){0};
}

static bool is_saved(const char *name)
{
    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
}

void tutti__error_feedback_restart(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    tutti__error_feedback_free(&state->error_feedback);
    for (size_t i = 0; i < state->expected.count; i++)
        if (is_saved(state->expected.entries[i].key))
            tutti__expected_drop(state, state->expected.entries[i].key);
    pthread_mutex_unlock(&state->lock);
}

void tutti__state_compress(tutti_state *state, int of, int at)
{
    state->compressors = of;
    state->compressor = at;
}

bool tutti__error_feedback_passes_over(const tutti_state *state, const char *name)
{
    return state->compressors == 0 && is_saved(name);
}

/* ---- going on ---- */

/* Adds what part `part` of a saved value has. */
static void add_part(const error_feedback *entry, const tutti_tensor *saved, int64_t part,
                     float *to)
{
    for (int64_t i = 0; i < entry->count; i++)
        to[i] += (float)tutti_tensor_get(saved, part * entry->count + i);
}

/* Takes up what a checkpoint has of it, if it was compressed in the same way. Under the lock. */
static void go_on(tutti_state *state, const error_feedback *entry)
{
    const tutti_expected *expected = tutti__expected_find(state, entry->name);
    const tutti_tensor *saved = expected ? expected->value : NULL;
    int64_t size, all = saved ? tutti_tensor_count(saved) : 0;
    float *to = tutti_compressor_state(entry->compressor, &size);
    int64_t alike = size - entry->count, parts = (all - alike) / entry->count;
    if (!saved || tutti_tensor_dtype(saved) != TUTTI_F32 || alike < 0 || parts < 1 ||
        parts * entry->count + alike != all)
        return;
    int at = state->compressor + entry->replica;
    if (parts == state->compressors)
        add_part(entry, saved, at, to);
    for (int64_t part = 0; parts != state->compressors && at == 0 && part < parts; part++)
        add_part(entry, saved, part, to);
    for (int64_t i = 0; i < alike; i++)
        to[entry->count + i] = (float)tutti_tensor_get(saved, parts * entry->count + i);
}

static tutti_status error_feedback_make(tutti_state *state, int replica, const char *name,
                                        const char *compression, const tutti_type *type,
                                        error_feedback **ret)
{
    size_t size = sizeof PREFIX + strlen(name);
    error_feedback *entry = calloc(1, sizeof *entry);
    char *full = malloc(size);
    if (!entry || !full) {
        free(entry);
        free(full);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compress '%s'", name);
    }
    snprintf(full, size, PREFIX "%s", name);
    *entry = (error_feedback){.name = full, .count = tutti_type_count(type), .replica = replica};
    tutti_status status =
        tutti_compressor_create(compression, type->rank, type->dims, &entry->compressor);
    if (status == TUTTI_OK) {
        *ret = entry;
        go_on(state, entry);
    } else {
        error_feedback_destroy(entry);
    }
    return status;
}

/* Under the lock. */
static tutti_status error_feedback_find(tutti_state *state, int replica, const char *name,
                                        const char *compression, const tutti_type *type,
                                        error_feedback **ret)
{
    tutti_text key = {0};
    tutti__text_add(&key, "%d %s", replica, name);
    if (!key.data)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compress '%s'", name);
    *ret = tutti__map_get(&state->error_feedback, key.data);
    tutti_status status = TUTTI_OK;
    if (!*ret) {
        status = error_feedback_make(state, replica, name, compression, type, ret);
        if (status == TUTTI_OK)
            status = tutti__map_set(&state->error_feedback, key.data, *ret);
        if (status != TUTTI_OK && *ret)
            error_feedback_destroy(*ret);
    }
    tutti__text_free(&key);
    return status;
}

tutti_status tutti__state_error_feedback(tutti_state *state, int replica, const char *name,
                                         const char *compression, const tutti_type *type,
                                         tutti_compressor **ret)
{
    error_feedback *entry;
    pthread_mutex_lock(&state->lock);
    size_t before = state->error_feedback.count;
    tutti_status status = error_feedback_find(state, replica, name, compression, type, &entry);
    /* Not when it is new: other replicas of this process may have yet to look at what was saved. */
    bool known = status == TUTTI_OK && state->error_feedback.count == before && replica == 0;
    pthread_mutex_unlock(&state->lock);
    TUTTI_TRY(status);
    if (known) /* from here on it is another than what was gathered */
        tutti__state_forget(state, entry->name);
    *ret = entry->compressor;
    return TUTTI_OK;
}

/* ---- for a snapshot ---- */

bool tutti__state_has_error_feedback(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    bool some = state->error_feedback.count > 0;
    pthread_mutex_unlock(&state->lock);
    return some;
}

/* Of the only process: what each replica left out of the value. */
static void collect(const tutti_state *state, const error_feedback *first, float *ret)
{
    for (size_t i = 0; i < state->error_feedback.count; i++) {
        const error_feedback *each = state->error_feedback.entries[i].value;
        int64_t size;
        if (strcmp(each->name, first->name) == 0 && each->replica < state->compressors)
            memcpy(ret + each->replica * each->count,
                   tutti_compressor_state(each->compressor, &size),
                   (size_t)each->count * sizeof *ret);
    }
}

static tutti_status gather_one(tutti_state *state, const error_feedback *entry,
                               const tutti_state_gather *gather)
{
    int64_t size, count = entry->count;
    const float *mine = tutti_compressor_state(entry->compressor, &size);
    if (size < count) /* it leaves nothing out */
        return TUTTI_OK;
    if (state->follows)
        return gather->gather(gather->context, mine, count, NULL);
    int64_t parts = gather->gather ? gather->processes : state->compressors;
    int64_t all = parts * count + size - count;
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &all, &tensor));
    float *to = tutti_tensor_data(tensor);
    memset(to, 0, (size_t)all * sizeof *to);
    tutti_status status = TUTTI_OK;
    if (gather->gather)
        status = gather->gather(gather->context, mine, count, to);
    else
        collect(state, entry, to);
    memcpy(to + parts * count, mine + count, (size_t)(size - count) * sizeof *to);
    if (status == TUTTI_OK)
        status = tutti__state_expect(state, entry->name, tensor);
    tutti_tensor_release(tensor);
    return status;
}

tutti_status tutti__state_gather_error_feedback(tutti_state *state,
                                                const tutti_state_gather *gather)
{
    for (size_t i = 0; i < state->error_feedback.count; i++) {
        const error_feedback *entry = state->error_feedback.entries[i].value;
        if (entry->replica == 0)
            TUTTI_TRY(gather_one(state, entry, gather));
    }
    return TUTTI_OK;
}
