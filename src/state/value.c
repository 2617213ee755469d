/* value.c: a variable's value as a whole, on the host: read from its pieces, written to them. */
#include "state/state_inside.h"

#include <string.h>

#include "base/recycle.h"

/* References to the values that its pieces have. Between read_begin and read_end. */
static size_t take_pieces(const tutti_state_variable *variable, size_t most, tutti_tensor **ret)
{
    size_t found = 0;
    for (size_t i = 0; i < variable->pieces.count && found < most; i++) {
        ret[found] = tutti__piece_take(variable->pieces.data[i]);
        found += ret[found] != NULL;
    }
    return found;
}

tutti_status tutti__variable_intact(const tutti_state_variable *variable)
{
    return variable->torn
               ? tutti_fail(TUTTI_CLOSED,
                            "variable '%s' is neither of one step nor of the next: an operator of "
                            "yours that updates failed while it was written, and does not say "
                            "TUTTI_OP_FALLIBLE; give it a value, or go on from a checkpoint",
                            variable->name)
               : TUTTI_OK;
}

/* ---- of a variable that is cut ---- */

/* Puts what a piece holds where it belongs in a whole value. */
static tutti_status put_box(const tutti_piece *piece, tutti_tensor *value, tutti_tensor *whole)
{
    tutti_tensor *host;
    int rank = piece->type.rank;
    tutti_box all = tutti__box_whole(tutti_tensor_type(whole));
    TUTTI_TRY(tutti__tensor_to_host(value, &host));
    tutti__box_copy(tutti_tensor_data(whole), &all, tutti_tensor_data(host), &piece->box,
                    &piece->box, rank, tutti_dtype_size(piece->type.dtype));
    tutti_tensor_release(host);
    return TUTTI_OK;
}

/* Between read_begin and read_end: whether an earlier piece here is the same box. */
static bool is_again(const tutti_state_variable *variable, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (tutti__box_equal(&variable->pieces.data[i]->box, &variable->pieces.data[index]->box,
                             variable->type.rank))
            return true;
    return false;
}

/* The pieces of this process, or those of them that no other process holds; *ret_count: elements.
 */
static tutti_status join_boxes(tutti_state *state, const tutti_state_variable *variable,
                               bool first_only, tutti_tensor *whole, int64_t *ret_count)
{
    tutti_status status = TUTTI_OK;
    *ret_count = 0;
    tutti__state_read_begin(state);
    for (size_t i = 0; status == TUTTI_OK && i < variable->pieces.count; i++) {
        const tutti_piece *piece = variable->pieces.data[i];
        if (!piece->value || is_again(variable, i) || (first_only && !piece->first))
            continue;
        status = put_box(piece, piece->value, whole);
        *ret_count += tutti__box_count(&piece->box, piece->type.rank);
    }
    tutti__state_read_end(state);
    return status;
}

bool tutti__pieces_cover(const tutti_state_variable *variable)
{
    int64_t count = 0;
    for (size_t i = 0; i < variable->pieces.count; i++)
        if (!is_again(variable, i))
            count += tutti__box_count(&variable->pieces.data[i]->box, variable->type.rank);
    return count == tutti_type_count(&variable->type);
}

bool tutti__variable_local(tutti_state *state, const tutti_state_variable *variable)
{
    if (!variable->cut)
        return true;
    tutti__state_read_begin(state);
    bool local = tutti__pieces_cover(variable);
    tutti__state_read_end(state);
    return local;
}

static tutti_status get_boxes(tutti_state *state, tutti_state_variable *variable, bool first_only,
                              tutti_tensor **ret)
{
    tutti_tensor *whole;
    int64_t count;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &variable->type, &whole));
    memset(tutti_tensor_data(whole), 0,
           (size_t)tutti_tensor_count(whole) * tutti_dtype_size(variable->type.dtype));
    tutti_status status = join_boxes(state, variable, first_only, whole, &count);
    if (status == TUTTI_OK && !first_only && count < tutti_tensor_count(whole))
        status = count == 0
                     ? tutti_fail(TUTTI_UNINITIALIZED,
                                  "variable '%s' has no value yet; run "
                                  "tutti_initialize_variables(graph) first",
                                  variable->name)
                     : tutti_fail(TUTTI_CLOSED,
                                  "variable '%s' is cut over several processes, and this one holds "
                                  "%lld of %lld elements; get it where all processes do",
                                  variable->name, (long long)count,
                                  (long long)tutti_tensor_count(whole));
    if (status == TUTTI_OK)
        *ret = whole;
    else
        tutti_tensor_release(whole);
    return status;
}

tutti_status tutti__variable_own(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor **ret)
{
    TUTTI_TRY(tutti__variable_intact(variable));
    return get_boxes(state, variable, true, ret);
}

tutti_status tutti__variable_get(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor **ret)
{
    tutti__state_read_begin(state);
    tutti_status status = tutti__variable_intact(variable);
    if (status != TUTTI_OK) {
        tutti__state_read_end(state);
        return status;
    }
    if (variable->cut && variable->pieces.count > 0) {
        tutti_tensor *gathered =
            variable->gathered ? tutti_tensor_retain(variable->gathered) : NULL;
        tutti__state_read_end(state);
        if (!gathered)
            return get_boxes(state, variable, false, ret);
        status = tutti_tensor_cast(gathered, variable->type.dtype, ret);
        tutti_tensor_release(gathered);
        return status;
    }
    bool joins = variable->partial || variable->averaged, averaged = variable->averaged;
    size_t most = joins && variable->pieces.count > 0 ? variable->pieces.count : 1;
    tutti_tensor **values = tutti__recycle_zeros(most, sizeof *values);
    size_t found = values ? take_pieces(variable, most, values) : 0;
    const tutti_expected *expected = tutti__expected_find(state, variable->name);
    if (values && found == 0 && expected) {
        values[found++] = tutti_tensor_retain(expected->value);
        status = tutti__saved_fits(expected->from, variable->name,
                                   tutti_tensor_type(expected->value), &variable->type);
    }
    tutti__state_read_end(state);
    if (!values)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", variable->name);
    else if (found == 0)
        status = tutti_fail(
            TUTTI_UNINITIALIZED,
            "variable '%s' has no value yet; run tutti_initialize_variables(graph) first",
            variable->name);
    else if (status == TUTTI_OK) /* a copy: the caller's tensor must not keep the next commit from
                                    writing in place */
        status = tutti__values_join(&variable->type, found, values, averaged, ret);
    for (size_t i = 0; i < found; i++)
        tutti_tensor_release(values[i]);
    tutti__recycle_free(values);
    return status;
}

static tutti_status set_piece(tutti_state *state, tutti_piece *piece, tutti_tensor *host)
{
    tutti_tensor *to;
    TUTTI_TRY(tutti__piece_write(state, piece, false, &to));
    piece->variable->torn = false;
    tutti_tensor *part = NULL;
    if (!tutti_type_equal(tutti_tensor_type(host), &piece->type)) {
        TUTTI_TRY(tutti__tensor_box(host, &piece->box, &part));
        host = part;
    }
    size_t size = (size_t)tutti_tensor_count(host) * tutti_dtype_size(tutti_tensor_dtype(host));
    tutti_status status = piece->memory->host_visible
                              ? tutti_tensor_copy(to, host)
                              : piece->memory->copy_in(piece->memory->self, tutti_tensor_data(to),
                                                       tutti_tensor_data(host), size);
    tutti_tensor_release(part);
    return status;
}

tutti_status tutti__variable_set_on(tutti_state *state, tutti_state_variable *variable,
                                    const char *device, tutti_tensor *value, bool *ret_set)
{
    tutti_tensor *host;
    TUTTI_TRY(tutti_tensor_contiguous(value, &host));
    tutti_status status = tutti__state_commit_begin_on(state, 1, &variable, TUTTI_NO_DEADLINE);
    if (status == TUTTI_OK) {
        pthread_mutex_lock(&state->lock);
        tutti_piece *piece = tutti__piece_find(variable, device);
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

/* No device holds it yet: the value waits for the first that does. As a copy, since the caller may
 * change what he gave. */
static tutti_status wait_for_piece(tutti_state *state, const tutti_state_variable *variable,
                                   tutti_tensor *host)
{
    tutti_tensor *copy;
    TUTTI_TRY(tutti_tensor_cast(host, tutti_tensor_dtype(host), &copy));
    tutti_status status = tutti__state_expect(state, variable->name, copy);
    tutti_tensor_release(copy);
    return status;
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
    for (; status == TUTTI_OK && (piece = tutti__piece_at(state, variable, set)) != NULL; set++)
        status = variable->partial && (set > 0 || state->follows) ? clear_piece(state, piece)
                                                                  : set_piece(state, piece, host);
    tutti__state_commit_end(state);
    if (status == TUTTI_OK && set == 0)
        status = wait_for_piece(state, variable, host);
    tutti_tensor_release(host);
    return status;
}

tutti_status tutti__variable_begin(tutti_state *state, tutti_state_variable *variable,
                                   tutti_tensor *value)
{
    pthread_mutex_lock(&state->begins);
    tutti_status status = tutti__state_has_value(state, variable->name)
                              ? TUTTI_OK
                              : tutti__variable_set(state, variable, value);
    pthread_mutex_unlock(&state->begins);
    return status;
}
