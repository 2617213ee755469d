/* state.c: variables by name; when they are read, when they change. */
#include "state/state_inside.h"

#include <stdlib.h>
#include <string.h>

tutti_status tutti__state_create(tutti_state **ret)
{
    tutti_state *state = calloc(1, sizeof *state);
    if (!state)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for state");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&state->lock, NULL);
    pthread_mutex_init(&state->begins, NULL);
    pthread_cond_init(&state->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret = state;
    return TUTTI_OK;
}

void tutti__state_mirror(tutti_state *state, bool mirrored)
{
    pthread_mutex_lock(&state->lock);
    state->mirrored = mirrored;
    pthread_mutex_unlock(&state->lock);
}

void tutti__state_share(tutti_state *state, bool first)
{
    state->shared = true;
    state->follows = !first;
}

static void variable_destroy(tutti_state_variable *variable)
{
    for (size_t i = 0; i < variable->pieces.count; i++) {
        tutti_tensor_release(variable->pieces.data[i]->value);
        free(variable->pieces.data[i]);
    }
    TUTTI_VEC_FREE(&variable->pieces);
    free(variable->name);
    free(variable->slot_of);
    tutti_tensor_release(variable->gathered);
    free(variable);
}

void tutti__state_destroy(tutti_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->variables.count; i++)
        variable_destroy(state->variables.entries[i].value);
    for (size_t i = 0; i < state->queues.count; i++)
        tutti__queue_release(state->queues.entries[i].value);
    tutti__map_free(&state->variables);
    tutti__map_free(&state->queues);
    tutti__expected_free(&state->expected);
    tutti__error_feedback_free(&state->error_feedback);
    pthread_mutex_destroy(&state->lock);
    pthread_mutex_destroy(&state->begins);
    pthread_cond_destroy(&state->idle);
    free(state);
}

static tutti_status make_variable(tutti_state *state, const char *name, const tutti_type *type,
                                  const char *slot_of, bool trainable, tutti_state_variable **ret)
{
    tutti_state_variable *variable = calloc(1, sizeof *variable);
    if (!variable)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", name);
    variable->name = strdup(name);
    variable->slot_of = strdup(slot_of ? slot_of : "");
    variable->type = *type;
    variable->type.handle = false;
    variable->trainable = trainable;
    if (!variable->name || !variable->slot_of ||
        tutti__map_set(&state->variables, name, variable) != TUTTI_OK) {
        variable_destroy(variable);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", name);
    }
    *ret = variable;
    return TUTTI_OK;
}

tutti_status tutti__state_variable(tutti_state *state, const char *name, const tutti_type *type,
                                   const char *slot_of, bool trainable, tutti_state_variable **ret)
{
    tutti_type plain = *type;
    plain.handle = false;
    pthread_mutex_lock(&state->lock);
    tutti_state_variable *variable = tutti__map_get(&state->variables, name);
    tutti_status status = TUTTI_OK;
    if (!variable) {
        status = make_variable(state, name, type, slot_of, trainable, &variable);
    } else if (!tutti_type_equal(&variable->type, &plain)) {
        char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
        status = tutti_fail(
            TUTTI_INVALID,
            "variable '%s' is %s in this session, the graph wants %s; give it another name", name,
            tutti_type_text(&variable->type, have), tutti_type_text(&plain, want));
    }
    pthread_mutex_unlock(&state->lock);
    if (status == TUTTI_OK)
        *ret = variable;
    return status;
}

tutti_state_variable *tutti__state_find(tutti_state *state, const char *name)
{
    pthread_mutex_lock(&state->lock);
    tutti_state_variable *variable = tutti__map_get(&state->variables, name);
    pthread_mutex_unlock(&state->lock);
    return variable;
}

bool tutti__state_has_value(tutti_state *state, const char *name)
{
    bool has = false;
    pthread_mutex_lock(&state->lock);
    tutti_state_variable *variable = tutti__map_get(&state->variables, name);
    for (size_t i = 0; variable && !has && i < variable->pieces.count; i++)
        has = variable->pieces.data[i]->value != NULL;
    has = has || tutti__expected_find(state, name) != NULL;
    pthread_mutex_unlock(&state->lock);
    return has;
}

tutti_state_variable *tutti__state_at(tutti_state *state, size_t index)
{
    pthread_mutex_lock(&state->lock);
    tutti_state_variable *variable =
        index < state->variables.count ? state->variables.entries[index].value : NULL;
    pthread_mutex_unlock(&state->lock);
    return variable;
}

/* A commit computes and never blocks on others, so waiting for one needs no deadline. */
void tutti__state_read_begin(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    while (state->committing)
        pthread_cond_wait(&state->idle, &state->lock);
}

void tutti__state_read_end(tutti_state *state)
{
    pthread_mutex_unlock(&state->lock);
}

uint64_t tutti__state_changes(tutti_state *state, const char *but)
{
    uint64_t changes = 0;
    tutti__state_read_begin(state);
    for (size_t i = 0; i < state->variables.count; i++)
        if (strcmp(state->variables.entries[i].key, but) != 0)
            changes += ((tutti_state_variable *)state->variables.entries[i].value)->version;
    tutti__state_read_end(state);
    return changes;
}

void tutti__state_commit_begin(tutti_state *state)
{
    (void)tutti__state_commit_begin_on(state, 0, NULL, TUTTI_NO_DEADLINE);
}

void tutti__state_commit_end(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    state->committing = false;
    pthread_cond_broadcast(&state->idle);
    pthread_mutex_unlock(&state->lock);
}
