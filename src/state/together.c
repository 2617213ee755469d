/* together.c: variables that are the sum or the mean over replicas, of this process and of others.
 */
#include <stdlib.h>
#include <string.h>

#include "state/state_inside.h"

static bool is_own(const tutti_state_variable *variable, bool slots)
{
    return (variable->partial || variable->averaged) && (slots || !variable->slot_of[0]);
}

bool tutti__state_apart(tutti_state *state, bool slots)
{
    bool apart = false;
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; !apart && i < state->variables.count; i++)
        apart = is_own(state->variables.entries[i].value, slots);
    pthread_mutex_unlock(&state->lock);
    return apart;
}

static void together_add(tutti_tensor *sum, const tutti_tensor *value)
{
    int64_t count = tutti_tensor_count(sum);
    if (tutti_tensor_dtype(sum) == TUTTI_F32) {
        float *to = tutti_tensor_data(sum);
        const float *from = tutti_tensor_data(value);
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
    } else if (tutti_tensor_dtype(sum) == TUTTI_I64) { /* some are no doubles */
        int64_t *to = tutti_tensor_data(sum);
        const int64_t *from = tutti_tensor_data(value);
        for (int64_t i = 0; i < count; i++)
            to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)from[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            tutti_tensor_set(sum, i, tutti_tensor_get(sum, i) + tutti_tensor_get(value, i));
    }
}

static void divide(tutti_tensor *sum, int64_t by)
{
    for (int64_t i = 0; i < tutti_tensor_count(sum); i++)
        tutti_tensor_set(sum, i, tutti_tensor_get(sum, i) / (double)by);
}

tutti_status tutti__values_join(const tutti_type *type, size_t count, tutti_tensor *const *values,
                                bool averaged, tutti_tensor **ret)
{
    tutti_tensor *sum;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), type, &sum));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        tutti_tensor *host;
        status = tutti__tensor_to_host(values[i], &host);
        if (status != TUTTI_OK)
            break;
        if (i == 0)
            status = tutti_tensor_copy(sum, host);
        else
            together_add(sum, host);
        tutti_tensor_release(host);
    }
    if (status == TUTTI_OK && averaged && count > 1)
        divide(sum, (int64_t)count);
    if (status == TUTTI_OK)
        *ret = sum;
    else
        tutti_tensor_release(sum);
    return status;
}

static bool all_zero(const tutti_tensor *value)
{
    const float *numbers = tutti_tensor_data(value);
    bool f32 = tutti_tensor_dtype(value) == TUTTI_F32;
    for (int64_t k = 0; k < tutti_tensor_count(value); k++)
        if (f32 ? numbers[k] != 0 : tutti_tensor_get(value, k) != 0)
            return false;
    return true;
}

/* Nothing in any piece that this process has: so it is where a sum was taken and begins anew. */
static bool is_zero(const tutti_state_variable *variable)
{
    for (size_t i = 0; i < variable->pieces.count; i++) {
        const tutti_piece *piece = variable->pieces.data[i];
        tutti_tensor *host;
        if (!piece->value)
            continue;
        if (tutti__tensor_to_host(piece->value, &host) != TUTTI_OK)
            return false;
        bool zero = all_zero(host);
        tutti_tensor_release(host);
        if (!zero)
            return false;
    }
    return true;
}

bool tutti__variable_lies_apart(const tutti_state *state, const tutti_state_variable *variable)
{
    return state->shared && is_own(variable, true) && variable->joined != variable->version &&
           !is_zero(variable);
}

/* The sum over the pieces of this process. */
static tutti_status local_sum(tutti_state *state, tutti_state_variable *variable, size_t *ret_found,
                              tutti_tensor **ret)
{
    bool averaged = variable->averaged;
    size_t found = 0;
    tutti__state_read_begin(state);
    for (size_t i = 0; i < variable->pieces.count; i++)
        found += variable->pieces.data[i]->value != NULL;
    tutti__state_read_end(state);
    *ret_found = found;
    if (found == 0)
        return TUTTI_OK;
    TUTTI_TRY(tutti__variable_get(state, variable, ret));
    for (int64_t i = 0; averaged && found > 1 && i < tutti_tensor_count(*ret); i++)
        tutti_tensor_set(*ret, i, tutti_tensor_get(*ret, i) * (double)found);
    return TUTTI_OK;
}

static tutti_status together_join(tutti_state *state, tutti_state_variable *variable,
                                  const tutti_state_sum *sum)
{
    size_t found;
    tutti_tensor *value = NULL;
    tutti_status status = local_sum(state, variable, &found, &value);
    if (status != TUTTI_OK || found == 0 || (!sum->sum && found == 1)) {
        tutti_tensor_release(value);
        return status;
    }
    if (sum->sum)
        status = sum->sum(sum->context, tutti_tensor_data(value), tutti_tensor_count(value),
                          variable->type.dtype);
    if (status == TUTTI_OK && variable->averaged)
        divide(value, sum->sum ? sum->replicas : (int64_t)found);
    if (status == TUTTI_OK)
        status = tutti__variable_set(state, variable, value);
    tutti_tensor_release(value);
    variable->joined = status == TUTTI_OK ? variable->version : variable->joined;
    return status;
}

tutti_status tutti__state_join(tutti_state *state, bool slots, const tutti_state_sum *sum)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++)
        if (is_own(variable, slots))
            TUTTI_TRY(together_join(state, variable, sum));
        else if (is_own(variable, true)) /* a slot, that holds nothing anywhere */
            variable->joined = variable->version;
    return TUTTI_OK;
}

/* ---- variables that are cut over processes ---- */

bool tutti__state_has_cut(tutti_state *state)
{
    tutti_state_variable *variable;
    bool cut = false;
    for (size_t i = 0; !cut && (variable = tutti__state_at(state, i)) != NULL; i++)
        cut = variable->cut && !tutti__variable_local(state, variable);
    return cut;
}

void tutti__state_drop_gathered(tutti_state *state)
{
    for (size_t i = 0; i < state->variables.count; i++) {
        tutti_state_variable *variable = state->variables.entries[i].value;
        tutti_tensor_release(variable->gathered);
        variable->gathered = NULL;
    }
    state->gathered = false;
}

tutti_status tutti__variable_gather(tutti_state *state, tutti_state_variable *variable,
                                    const tutti_state_sum *sum, tutti_tensor **ret)
{
    tutti_tensor *whole;
    TUTTI_TRY(tutti__variable_own(state, variable, &whole));
    int64_t bytes = tutti_tensor_count(whole) * (int64_t)tutti_dtype_size(variable->type.dtype);
    bool words = bytes % 4 == 0; /* of each byte one process has a value, the others zero */
    tutti_status status = sum->sum(sum->context, tutti_tensor_data(whole),
                                   words ? bytes / 4 : bytes, words ? TUTTI_I32 : TUTTI_U8);
    if (status == TUTTI_OK)
        *ret = whole;
    else
        tutti_tensor_release(whole);
    return status;
}

tutti_status tutti__state_gather(tutti_state *state, const tutti_state_sum *sum)
{
    tutti_state_variable *variable;
    tutti_tensor *whole;
    for (size_t i = 0; sum->sum && (variable = tutti__state_at(state, i)) != NULL; i++) {
        if (!variable->cut || tutti__variable_local(state, variable))
            continue;
        TUTTI_TRY(tutti__variable_gather(state, variable, sum, &whole));
        pthread_mutex_lock(&state->lock);
        tutti_tensor *before = variable->gathered;
        variable->gathered = state->follows ? NULL : whole;
        state->gathered = true;
        pthread_mutex_unlock(&state->lock);
        tutti_tensor_release(before);
        if (state->follows)
            tutti_tensor_release(whole);
    }
    return TUTTI_OK;
}
