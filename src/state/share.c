/* share.c: one tensor for the pieces of a variable that lie in one memory. */
#include "state/state_inside.h"

/* How many of the pieces have that tensor. */
static int holders(int count, tutti_piece *const *pieces, const tutti_tensor *value)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += pieces[i]->value == value;
    return found;
}

tutti_status tutti__pieces_share(tutti_state *state, int count, tutti_piece *const *pieces)
{
    const tutti_piece *first = pieces[0];
    tutti_tensor *value = first->value, *fresh = NULL;
    if (!value)
        return tutti_fail(TUTTI_UNINITIALIZED,
                          "variable '%s' is updated before it was initialised; run "
                          "tutti_initialize_variables(graph) first",
                          first->variable->name);
    /* Only the committer changes values, and nobody takes one during a commit. */
    int held = holders(count, pieces, value);
    bool ours = tutti__tensor_held(value, held);
    if (!ours)
        TUTTI_TRY(tutti__piece_copy(first, value, true, &fresh));
    for (int i = 0; (held < count || fresh) && i < count; i++) {
        tutti_tensor *next = tutti_tensor_retain(fresh ? fresh : value);
        pthread_mutex_lock(&state->lock);
        tutti_tensor *old = pieces[i]->value;
        pieces[i]->value = next;
        pthread_mutex_unlock(&state->lock);
        tutti_tensor_release(old);
    }
    tutti_tensor_release(fresh);
    first->variable->version++;
    return TUTTI_OK;
}
