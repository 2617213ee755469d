/* piece.c: what one device holds of a variable. */
#include "state/state_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tutti_piece *tutti__piece_find(const tutti_state_variable *variable, const char *device)
{
    for (size_t i = 0; i < variable->pieces.count; i++)
        if (strcmp(variable->pieces.data[i]->device, device) == 0)
            return variable->pieces.data[i];
    return NULL;
}

tutti_piece *tutti__piece_at(tutti_state *state, const tutti_state_variable *variable, size_t index)
{
    pthread_mutex_lock(&state->lock);
    tutti_piece *piece = index < variable->pieces.count ? variable->pieces.data[index] : NULL;
    pthread_mutex_unlock(&state->lock);
    return piece;
}

/* Under the lock. */
static tutti_status make_piece(const tutti_state *state, tutti_state_variable *variable,
                               const tutti_piece_box *box, const char *device,
                               const tutti_memory *memory, tutti_piece **ret)
{
    if (!state->mirrored && variable->pieces.count > 0)
        return tutti_fail(TUTTI_INVALID,
                          "variable '%s' lies on %s and is wanted on %s too, where it would have "
                          "another value; make everything of that name on one device, or give "
                          "the variables names of their own",
                          variable->name, variable->pieces.data[0]->device, device);
    if (tutti__box_count(&box->box, variable->type.rank) != tutti_type_count(&variable->type) &&
        (variable->partial || variable->averaged || variable->type.dtype == TUTTI_STRING))
        return tutti_fail(TUTTI_INVALID,
                          "variable '%s' has a value of each replica's own and "
                          "cannot be cut; leave its sharding out",
                          variable->name);
    tutti_piece *piece = calloc(1, sizeof *piece);
    if (!piece || !TUTTI_VEC_PUSH(&variable->pieces, piece)) {
        free(piece);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", variable->name);
    }
    piece->variable = variable;
    snprintf(piece->device, sizeof piece->device, "%s", device);
    piece->memory = memory;
    piece->type = tutti_type_make(variable->type.dtype, variable->type.rank, box->box.dims);
    piece->box = box->box;
    piece->first = box->first;
    variable->cut = variable->cut || !tutti_type_equal(&piece->type, &variable->type);
    *ret = piece;
    return TUTTI_OK;
}

/* A piece that comes later begins with the value that the variable has elsewhere, if any. */
static tutti_status copy_other(tutti_piece *piece)
{
    const tutti_piece *from = NULL;
    tutti_tensor *host = NULL, *copy = NULL;
    for (size_t i = 0; i < piece->variable->pieces.count && !from; i++)
        if (piece->variable->pieces.data[i]->value &&
            tutti__box_equal(&piece->variable->pieces.data[i]->box, &piece->box, piece->type.rank))
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

static tutti_status another_box(const tutti_piece *piece, const tutti_box *wanted)
{
    char have[TUTTI_BOX_TEXT], want[TUTTI_BOX_TEXT];
    int rank = piece->type.rank;
    return tutti_fail(TUTTI_INVALID,
                      "variable '%s': device %s holds the box %s of it, and %s is asked for; one "
                      "session cuts a variable in one way",
                      piece->variable->name, piece->device,
                      tutti__box_text(&piece->box, rank, have),
                      tutti__box_text(wanted, rank, want));
}

tutti_status tutti__state_piece(tutti_state *state, tutti_state_variable *variable,
                                const char *device, const tutti_memory *memory, tutti_piece **ret)
{
    tutti_piece_box whole = {.box = tutti__box_whole(&variable->type), .first = true, .local = 1};
    return tutti__state_piece_box(state, variable, &whole, device, memory, ret);
}

/* When all devices of this process have theirs, nothing waits any more. Under the lock. */
static void drop_expected(tutti_state *state, const tutti_state_variable *variable, int local)
{
    int have = 0;
    for (size_t i = 0; i < variable->pieces.count; i++)
        have += variable->pieces.data[i]->value != NULL;
    if (have >= local)
        tutti__expected_drop(state, variable->name);
}

tutti_status tutti__state_piece_box(tutti_state *state, tutti_state_variable *variable,
                                    const tutti_piece_box *box, const char *device,
                                    const tutti_memory *memory, tutti_piece **ret)
{
    pthread_mutex_lock(&state->lock);
    tutti_piece *piece = tutti__piece_find(variable, device);
    pthread_mutex_unlock(&state->lock);
    if (!piece)
        TUTTI_TRY(tutti__variable_intact(variable));
    pthread_mutex_lock(&state->lock);
    piece = tutti__piece_find(variable, device);
    tutti_status status = TUTTI_OK;
    if (!piece)
        status = make_piece(state, variable, box, device, memory, &piece);
    else if (!tutti__box_equal(&piece->box, &box->box, variable->type.rank))
        status = another_box(piece, &box->box);
    if (status == TUTTI_OK && !piece->value)
        status = tutti__piece_expected(state, piece);
    if (status == TUTTI_OK && !piece->value)
        status = copy_other(piece);
    if (status == TUTTI_OK && piece->value)
        drop_expected(state, variable, variable->cut ? box->local : 1);
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
    variable->cut = variable->cut && kept > 0;
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

tutti_status tutti__piece_copy(const tutti_piece *piece, tutti_tensor *from, bool keep,
                               tutti_tensor **ret)
{
    tutti_tensor *copy, *host = NULL;
    TUTTI_TRY(tutti__tensor_in(piece->memory, &piece->type, &copy));
    tutti_status status = TUTTI_OK;
    size_t size = (size_t)tutti_type_count(&piece->type) * tutti_dtype_size(piece->type.dtype);
    if (keep && piece->memory->host_visible)
        status = tutti_tensor_copy(copy, from);
    else if (keep && piece->memory->copy_within && from->buffer->memory == piece->memory)
        status = piece->memory->copy_within(piece->memory->self, tutti_tensor_data(copy),
                                            tutti_tensor_data(from), size);
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

tutti_status tutti__piece_of_whole(const tutti_piece *piece, tutti_tensor *whole,
                                   tutti_tensor **ret)
{
    tutti_tensor *part = NULL;
    if (tutti_type_equal(&piece->type, tutti_tensor_type(whole)))
        return tutti__piece_copy(piece, whole, true, ret);
    TUTTI_TRY(tutti__tensor_box(whole, &piece->box, &part));
    tutti_status status = tutti__piece_copy(piece, part, true, ret);
    tutti_tensor_release(part);
    return status;
}

tutti_status tutti__piece_write(tutti_state *state, tutti_piece *piece, bool keep,
                                tutti_tensor **ret)
{
    if (keep && !piece->value)
        return tutti_fail(
            TUTTI_UNINITIALIZED,
            "variable '%s' is updated before it was initialised; run tutti_initialize_variables(graph) first",
            piece->variable->name);
    /* Only the committer changes piece->value, and nobody takes one during a commit. Without the
     * lock, since devices that commit together would wait for each other at every variable. */
    bool in_place = piece->value && tutti__tensor_unique(piece->value);
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

void tutti__piece_replace(tutti_state *state, tutti_piece *piece, tutti_tensor *value)
{
    pthread_mutex_lock(&state->lock);
    tutti_tensor *old = piece->value;
    piece->value = value;
    pthread_mutex_unlock(&state->lock);
    piece->variable->version++;
    piece->variable->torn = false;
    tutti_tensor_release(old);
}
