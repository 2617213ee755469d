/* expected.c: values that came before their variables, most of them out of a checkpoint. */
#include <stdlib.h>
#include <string.h>

#include "state/state_inside.h"

static void expected_destroy(tutti_expected *expected)
{
    if (!expected)
        return;
    tutti_tensor_release(expected->value);
    free(expected);
}

const tutti_expected *tutti__expected_find(const tutti_state *state, const char *name)
{
    return tutti__map_get(&state->expected, name);
}

void tutti__expected_drop(tutti_state *state, const char *name)
{
    tutti_expected *expected = tutti__map_get(&state->expected, name);
    if (expected)
        (void)tutti__map_set(&state->expected, name, NULL); /* is there: needs no memory */
    expected_destroy(expected);
}

void tutti__expected_free(tutti_map *all)
{
    for (size_t i = 0; i < all->count; i++)
        expected_destroy(all->entries[i].value);
    tutti__map_free(all);
}

tutti_status tutti__saved_fits(const char *from, const char *name, const tutti_type *saved,
                               const tutti_type *has)
{
    char saved_text[TUTTI_TYPE_TEXT], has_text[TUTTI_TYPE_TEXT];
    if (tutti_type_equal(saved, has))
        return TUTTI_OK;
    tutti_type_text(saved, saved_text);
    tutti_type_text(has, has_text);
    if (from[0] == 0)
        return tutti_fail(TUTTI_INVALID, "variable '%s' is %s, the value it was given before is %s",
                          name, has_text, saved_text);
    return tutti_fail(TUTTI_INVALID,
                      "%s: variable '%s' is saved as %s, the program has %s; make it as it was "
                      "saved, or give it another name to begin with a new one",
                      from, name, saved_text, has_text);
}

tutti_tensor *tutti__state_expected(tutti_state *state, const char *name)
{
    pthread_mutex_lock(&state->lock);
    const tutti_expected *expected = tutti__expected_find(state, name);
    pthread_mutex_unlock(&state->lock);
    return expected ? expected->value : NULL;
}

/* Under the lock. */
static tutti_status wait_for(tutti_state *state, const char *name, tutti_tensor *value,
                             const char *from)
{
    tutti_expected *before = tutti__map_get(&state->expected, name);
    tutti_expected *expected = malloc(sizeof *expected + strlen(from) + 1);
    if (!expected)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the value of '%s'", name);
    expected->value = tutti_tensor_retain(value);
    strcpy(expected->from, from);
    tutti_status status = tutti__map_set(&state->expected, name, expected);
    expected_destroy(status == TUTTI_OK ? before : expected);
    return status;
}

tutti_status tutti__state_expect_from(tutti_state *state, const char *name, tutti_tensor *value,
                                      const char *from)
{
    if (tutti__state_passes_over(state, name) || tutti__error_feedback_passes_over(state, name))
        return TUTTI_OK;
    pthread_mutex_lock(&state->lock);
    tutti_state_variable *variable = tutti__map_get(&state->variables, name);
    if (variable && variable->pieces.count > 0) {
        pthread_mutex_unlock(&state->lock);
        return tutti__variable_set(state, variable, value);
    }
    tutti_status status = wait_for(state, name, value, from);
    pthread_mutex_unlock(&state->lock);
    return status;
}

tutti_status tutti__state_expect(tutti_state *state, const char *name, tutti_tensor *value)
{
    return tutti__state_expect_from(state, name, value, "");
}

void tutti__state_forget(tutti_state *state, const char *name)
{
    pthread_mutex_lock(&state->lock);
    tutti__expected_drop(state, name);
    pthread_mutex_unlock(&state->lock);
}

tutti_status tutti__piece_expected(tutti_state *state, tutti_piece *piece)
{
    const char *name = piece->variable->name;
    const tutti_expected *expected = tutti__expected_find(state, name);
    tutti_tensor *host;
    if (!expected)
        return TUTTI_OK;
    TUTTI_TRY(tutti__saved_fits(expected->from, name, tutti_tensor_type(expected->value),
                                &piece->variable->type));
    if (piece->variable->partial && state->follows) { /* the first process has all of the sum */
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &piece->type, &host));
        memset(tutti_tensor_data(host), 0,
               (size_t)tutti_tensor_count(host) * tutti_dtype_size(piece->type.dtype));
    } else {
        TUTTI_TRY(tutti_tensor_contiguous(expected->value, &host));
    }
    tutti_status status = tutti__piece_of_whole(piece, host, &piece->value);
    tutti_tensor_release(host);
    return status;
}
