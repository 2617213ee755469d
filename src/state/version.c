/* version.c: commits are versions: their number, all values of one, and values of another
 * process's in the place of our own. */
#include <stdlib.h>

#include "state/state_inside.h"

uint64_t tutti__state_version(const tutti_state *state)
{
    return atomic_load(&state->version);
}

void tutti__state_count(tutti_state *state)
{
    atomic_fetch_add(&state->version, 1);
}

/* Under the lock: one that all processes hold alike, and which has a value. */
static const tutti_piece *version_piece(const tutti_state_variable *variable)
{
    if (variable->partial || variable->averaged || variable->cut)
        return NULL;
    for (size_t i = 0; i < variable->pieces.count; i++)
        if (variable->pieces.data[i]->value)
            return variable->pieces.data[i];
    return NULL;
}

/* References only, between read_begin and read_end. */
static tutti_status take_references(tutti_state *state, tutti_version_values *values)
{
    tutti__state_read_begin(state);
    values->number = atomic_load(&state->version);
    values->list = calloc(state->variables.count + 1, sizeof *values->list);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; values->list && status == TUTTI_OK && i < state->variables.count; i++) {
        tutti_state_variable *variable = state->variables.entries[i].value;
        const tutti_piece *piece = version_piece(variable);
        if (variable->cut && !tutti__pieces_cover(variable))
            status = tutti_fail(TUTTI_CLOSED,
                                "variable '%s' is cut over the processes: what one of them held is "
                                "lost with it; go on from a checkpoint",
                                variable->name);
        if (status != TUTTI_OK)
            break;
        status = piece ? tutti__variable_intact(variable) : TUTTI_OK;
        if (piece && status == TUTTI_OK)
            values->list[values->count++] =
                (tutti_version_value){variable, tutti__piece_take(piece)};
    }
    tutti__state_read_end(state);
    return values->list ? status : tutti_fail(TUTTI_NO_MEMORY, "no memory for a version");
}

tutti_status tutti__version_take(tutti_state *state, tutti_version_values *ret)
{
    tutti_version_values values = {0};
    tutti_status status = take_references(state, &values);
    for (size_t i = 0; status == TUTTI_OK && i < values.count; i++) {
        tutti_tensor *host;
        status = tutti__tensor_to_host(values.list[i].value, &host);
        if (status == TUTTI_OK) {
            tutti_tensor_release(values.list[i].value);
            values.list[i].value = host;
        }
    }
    if (status == TUTTI_OK)
        *ret = values;
    else
        tutti__version_release(&values);
    return status;
}

/* What a piece is to hold, in its memory. */
typedef struct version_fresh {
    tutti_piece *piece;
    tutti_tensor *value;
} version_fresh;
typedef TUTTI_VEC(version_fresh) version_list;

static tutti_status version_prepare(tutti_state *state, const tutti_version_values *values,
                                    version_list *fresh)
{
    for (size_t v = 0; v < values->count; v++) {
        tutti_piece *piece;
        for (size_t i = 0; (piece = tutti__piece_at(state, values->list[v].variable, i)) != NULL;
             i++) {
            version_fresh one = {piece, NULL};
            TUTTI_TRY(tutti__piece_copy(piece, values->list[v].value, true, &one.value));
            if (!TUTTI_VEC_PUSH(fresh, one)) {
                tutti_tensor_release(one.value);
                return tutti_fail(TUTTI_NO_MEMORY, "no memory for a version");
            }
        }
    }
    return TUTTI_OK;
}

tutti_status tutti__version_put(tutti_state *state, const tutti_version_values *values)
{
    version_list fresh = {0};
    tutti_status status = version_prepare(state, values, &fresh);
    if (status == TUTTI_OK)
        tutti__state_commit_begin(state);
    for (size_t i = 0; i < fresh.count; i++)
        if (status == TUTTI_OK)
            tutti__piece_replace(state, fresh.data[i].piece, fresh.data[i].value);
        else
            tutti_tensor_release(fresh.data[i].value);
    if (status == TUTTI_OK) {
        atomic_store(&state->version, values->number);
        tutti__state_commit_end(state);
    }
    TUTTI_VEC_FREE(&fresh);
    return status;
}

void tutti__version_release(tutti_version_values *values)
{
    for (size_t i = 0; i < values->count; i++)
        tutti_tensor_release(values->list[i].value);
    free(values->list);
    *values = (tutti_version_values){0};
}
