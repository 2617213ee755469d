/* state.c: variables by name, their pieces, commits. */
#include "state/state_inside.h"

#include <stdio.h>
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
    pthread_cond_init(&state->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret = state;
    return TUTTI_OK;
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
    for (size_t i = 0; i < state->expected.count; i++)
        tutti_tensor_release(state->expected.entries[i].value);
    tutti__map_free(&state->variables);
    tutti__map_free(&state->queues);
    tutti__map_free(&state->expected);
    pthread_mutex_destroy(&state->lock);
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
    has = has || tutti__map_get(&state->expected, name) != NULL;
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

static tutti_piece *find_piece(const tutti_state_variable *variable, const char *device)
{
    for (size_t i = 0; i < variable->pieces.count; i++)
        if (strcmp(variable->pieces.data[i]->device, device) == 0)
            return variable->pieces.data[i];
    return NULL;
}

static tutti_status make_piece(tutti_state_variable *variable, const char *device,
                               const tutti_memory *memory, tutti_piece **ret)
{
    tutti_piece *piece = calloc(1, sizeof *piece);
    if (!piece || !TUTTI_VEC_PUSH(&variable->pieces, piece)) {
        free(piece);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", variable->name);
    }
    piece->variable = variable;
    snprintf(piece->device, sizeof piece->device, "%s", device);
    piece->memory = memory;
    piece->type = variable->type;
    *ret = piece;
    return TUTTI_OK;
}

/* A piece that comes later begins with the value that the variable has elsewhere, if any. */
static tutti_status copy_other(tutti_piece *piece)
{
    const tutti_piece *from = NULL;
    tutti_tensor *host = NULL, *copy = NULL;
    for (size_t i = 0; i < piece->variable->pieces.count && !from; i++)
        if (piece->variable->pieces.data[i]->value)
            from = piece->variable->pieces.data[i];
    if (!from)
        return TUTTI_OK;
    if (piece->variable->partial) /* the others' sum is the value: this one begins with nothing */
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &piece->type, &host));
    else
        TUTTI_TRY(tutti__tensor_to_host(from->value, &host));
    if (piece->variable->partial)
        memset(tutti_tensor_data(host), 0,
               (size_t)tutti_tensor_count(host) * tutti_dtype_size(piece->type.dtype));
    tutti_status status = tutti__tensor_in(piece->memory, &piece->type, &copy);
    size_t size = (size_t)tutti_tensor_count(host) * tutti_dtype_size(piece->type.dtype);
    if (status == TUTTI_OK && piece->memory->host_visible)
        status = tutti_tensor_copy(copy, host);
    else if (status == TUTTI_OK)
        status = piece->memory->copy_in(piece->memory->self, tutti_tensor_data(copy),
                                        tutti_tensor_data(host), size);
    tutti_tensor_release(host);
    if (status == TUTTI_OK)
        piece->value = copy;
    else
        tutti_tensor_release(copy);
    return status;
}

tutti_status tutti__state_piece(tutti_state *state, tutti_state_variable *variable,
                                const char *device, const tutti_memory *memory, tutti_piece **ret)
{
    pthread_mutex_lock(&state->lock);
    tutti_piece *piece = find_piece(variable, device);
    tutti_status status = piece ? TUTTI_OK : make_piece(variable, device, memory, &piece);
    if (status == TUTTI_OK && !piece->value)
        status = tutti__piece_expected(state, piece);
    if (status == TUTTI_OK && !piece->value)
        status = copy_other(piece);
    pthread_mutex_unlock(&state->lock);
    if (status == TUTTI_OK)
        *ret = piece;
    return status;
}

void tutti__state_keep(tutti_state *state, tutti_state_variable *variable, int count,
                       const char *const *devices)
{
    size_t kept = 0;
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; i < variable->pieces.count; i++) {
        tutti_piece *piece = variable->pieces.data[i];
        bool keep = false;
        for (int k = 0; k < count; k++)
            keep = keep || strcmp(piece->device, devices[k]) == 0;
        if (keep) {
            variable->pieces.data[kept++] = piece;
            continue;
        }
        tutti_tensor_release(piece->value);
        free(piece);
    }
    variable->pieces.count = kept;
    pthread_mutex_unlock(&state->lock);
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

tutti_tensor *tutti__piece_take(const tutti_piece *piece)
{
    return piece->value ? tutti_tensor_retain(piece->value) : NULL;
}

tutti_tensor *tutti__piece_acquire(tutti_state *state, const tutti_piece *piece)
{
    tutti__state_read_begin(state);
    tutti_tensor *value = tutti__piece_take(piece);
    tutti__state_read_end(state);
    return value;
}

uint64_t tutti__state_changes(tutti_state *state)
{
    uint64_t changes = 0;
    tutti__state_read_begin(state);
    for (size_t i = 0; i < state->variables.count; i++)
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

tutti_status tutti__piece_copy(const tutti_piece *piece, tutti_tensor *from, bool keep,
                               tutti_tensor **ret)
{
    tutti_tensor *copy, *host = NULL;
    TUTTI_TRY(tutti__tensor_in(piece->memory, &piece->type, &copy));
    tutti_status status = TUTTI_OK;
    size_t size = (size_t)tutti_type_count(&piece->type) * tutti_dtype_size(piece->type.dtype);
    if (keep && piece->memory->host_visible)
        status = tutti_tensor_copy(copy, from);
    else if (keep) {
        status = tutti__tensor_to_host(from, &host);
        if (status == TUTTI_OK)
            status = piece->memory->copy_in(piece->memory->self, tutti_tensor_data(copy),
                                            tutti_tensor_data(host), size);
        tutti_tensor_release(host);
    }
    if (status == TUTTI_OK)
        *ret = copy;
    else
        tutti_tensor_release(copy);
    return status;
}

tutti_status tutti__piece_write(tutti_state *state, tutti_piece *piece, bool keep,
                                tutti_tensor **ret)
{
    if (keep && !piece->value)
        return tutti_fail(
            TUTTI_UNINITIALIZED,
            "variable '%s' is updated before it was initialised; run tutti_initialize_all(graph) first",
            piece->variable->name);
    pthread_mutex_lock(&state->lock);
    bool in_place = piece->value && tutti__tensor_unique(piece->value);
    pthread_mutex_unlock(&state->lock);
    /* Only the committer changes piece->value, so it may be read here without the lock. */
    if (!in_place) {
        tutti_tensor *fresh;
        /* The value goes along whatever `keep` says: memory for the next variable may be missing,
         * and then this one has not changed. */
        TUTTI_TRY(tutti__piece_copy(piece, piece->value, piece->value != NULL, &fresh));
        pthread_mutex_lock(&state->lock);
        tutti_tensor *old = piece->value;
        piece->value = fresh;
        pthread_mutex_unlock(&state->lock);
        tutti_tensor_release(old);
    }
    piece->variable->version++;
    *ret = piece->value;
    return TUTTI_OK;
}

void tutti__piece_replace(tutti_piece *piece, tutti_tensor *value)
{
    tutti_tensor *old = piece->value;
    piece->value = value;
    piece->variable->version++;
    tutti_tensor_release(old);
}

/* Adds the values of the second piece on: of a variable that is the sum or mean over its pieces. */
static tutti_status add_pieces(tutti_state *state, tutti_state_variable *variable,
                               tutti_tensor *sum)
{
    int found = 1;
    for (size_t i = 1; i < variable->pieces.count; i++) {
        tutti_tensor *value = tutti__piece_acquire(state, variable->pieces.data[i]), *host;
        if (!value)
            continue;
        tutti_status status = tutti__tensor_to_host(value, &host);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
        for (int64_t k = 0; k < tutti_tensor_count(sum); k++)
            tutti_tensor_set(sum, k, tutti_tensor_get(sum, k) + tutti_tensor_get(host, k));
        tutti_tensor_release(host);
        found++;
    }
    for (int64_t k = 0; variable->averaged && k < tutti_tensor_count(sum); k++)
        tutti_tensor_set(sum, k, tutti_tensor_get(sum, k) / found);
    return TUTTI_OK;
}

tutti_status tutti__variable_get(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor **ret)
{
    tutti_tensor *value = NULL;
    tutti__state_read_begin(state);
    for (size_t i = 0; i < variable->pieces.count && !value; i++)
        value = tutti__piece_take(variable->pieces.data[i]);
    tutti_tensor *expected = tutti__map_get(&state->expected, variable->name);
    if (!value && expected)
        value = tutti_tensor_retain(expected);
    tutti__state_read_end(state);
    if (!value)
        return tutti_fail(TUTTI_UNINITIALIZED,
                          "variable '%s' has no value yet; run tutti_initialize_all(graph) first",
                          variable->name);
    /* A copy: the caller's tensor must not keep the next commit from writing in place. */
    tutti_tensor *host = NULL, *copy = NULL;
    tutti_status status = tutti__tensor_to_host(value, &host);
    if (status == TUTTI_OK)
        status = tutti__tensor_in(tutti__host_memory(), &variable->type, &copy);
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(copy, host);
    tutti_tensor_release(host);
    tutti_tensor_release(value);
    if (status == TUTTI_OK && (variable->partial || variable->averaged))
        status = add_pieces(state, variable, copy);
    if (status == TUTTI_OK)
        *ret = copy;
    else
        tutti_tensor_release(copy);
    return status;
}

static tutti_status set_piece(tutti_state *state, tutti_piece *piece, tutti_tensor *host)
{
    tutti_tensor *to;
    TUTTI_TRY(tutti__piece_write(state, piece, false, &to));
    if (piece->memory->host_visible)
        return tutti_tensor_copy(to, host);
    size_t size = (size_t)tutti_tensor_count(host) * tutti_dtype_size(tutti_tensor_dtype(host));
    return piece->memory->copy_in(piece->memory->self, tutti_tensor_data(to),
                                  tutti_tensor_data(host), size);
}

tutti_status tutti__variable_set_on(tutti_state *state, tutti_state_variable *variable,
                                    const char *device, tutti_tensor *value, bool *ret_set)
{
    tutti_tensor *host;
    TUTTI_TRY(tutti_tensor_contiguous(value, &host));
    tutti_status status = tutti__state_commit_begin_on(state, 1, &variable, TUTTI_NO_DEADLINE);
    if (status == TUTTI_OK) {
        pthread_mutex_lock(&state->lock);
        tutti_piece *piece = find_piece(variable, device);
        pthread_mutex_unlock(&state->lock);
        *ret_set = piece != NULL;
        if (piece)
            status = set_piece(state, piece, host);
        tutti__state_commit_end(state);
    }
    tutti_tensor_release(host);
    return status;
}

static tutti_status clear_piece(tutti_state *state, tutti_piece *piece)
{
    tutti_tensor *zeros;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &piece->type, &zeros));
    memset(tutti_tensor_data(zeros), 0,
           (size_t)tutti_tensor_count(zeros) * tutti_dtype_size(piece->type.dtype));
    tutti_status status = set_piece(state, piece, zeros);
    tutti_tensor_release(zeros);
    return status;
}

/* NULL past the end. Others may be adding pieces. */
static tutti_piece *piece_at(tutti_state *state, const tutti_state_variable *variable, size_t index)
{
    pthread_mutex_lock(&state->lock);
    tutti_piece *piece = index < variable->pieces.count ? variable->pieces.data[index] : NULL;
    pthread_mutex_unlock(&state->lock);
    return piece;
}

tutti_status tutti__variable_set(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor *value)
{
    if (!tutti_type_equal(tutti_tensor_type(value), &variable->type)) {
        char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
        return tutti_fail(TUTTI_INVALID, "variable '%s' is %s, the value is %s", variable->name,
                          tutti_type_text(&variable->type, want),
                          tutti_type_text(tutti_tensor_type(value), have));
    }
    tutti_tensor *host;
    TUTTI_TRY(tutti_tensor_contiguous(value, &host));
    /* Without a deadline: whoever claims the variable is a run, which has one. */
    tutti_status status = tutti__state_commit_begin_on(state, 1, &variable, TUTTI_NO_DEADLINE);
    tutti_piece *piece;
    size_t set = 0;
    for (; status == TUTTI_OK && (piece = piece_at(state, variable, set)) != NULL; set++)
        status = variable->partial && set > 0 ? clear_piece(state, piece)
                                              : set_piece(state, piece, host);
    tutti__state_commit_end(state);
    if (status == TUTTI_OK && set == 0)
        status = tutti__state_expect(state, variable->name, host);
    tutti_tensor_release(host);
    return status;
}
