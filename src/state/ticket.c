/* ticket.c: runs that draw from one counter at once, each a number of its own.
 *
 * Numbers are relative: `done` stands for the value that the counter has, `next` for the first one
 * that no run has taken; so nobody reads the counter from a device to hand out a ticket. A run sees
 *
 *     value + (number - done)
 *
 * and the counter is max(done, number + 1) after its commit: it never goes back, and where all
 * runs commit it has advanced by as many as there were. A run that fails leaves its number out,
 * unless it was the only one under way: then the next run draws what it drew. */
#include "state/state_inside.h"

tutti_ticket tutti__ticket_take(tutti_state *state, tutti_state_variable *counter)
{
    pthread_mutex_lock(&state->lock);
    tutti_tickets *tickets = &counter->tickets;
    if (tickets->out++ == 0)
        tickets->next = tickets->done;
    tutti_ticket ticket = {counter, tickets->next++};
    pthread_mutex_unlock(&state->lock);
    return ticket;
}

void tutti__ticket_return(tutti_state *state, const tutti_ticket *ticket)
{
    if (!ticket->counter)
        return;
    pthread_mutex_lock(&state->lock);
    ticket->counter->tickets.out--;
    pthread_mutex_unlock(&state->lock);
}

int64_t tutti__ticket_ahead(const tutti_ticket *ticket, const tutti_state_variable *variable)
{
    if (!ticket->counter || ticket->counter != variable)
        return 0;
    int64_t done = variable->tickets.done;
    return ticket->seen && done > ticket->number ? -1 : ticket->number - done;
}

/* A new tensor beside this one, which holds so much more. */
static tutti_status ticket_add(const tutti_piece *piece, tutti_tensor *value, int64_t ahead,
                               tutti_tensor **ret)
{
    const tutti_memory *memory = piece->memory;
    tutti_tensor *host, *sum;
    TUTTI_TRY(tutti__tensor_to_host(value, &host));
    int64_t number = tutti_tensor_get_int(host, 0) + ahead;
    tutti_tensor_release(host);
    TUTTI_TRY(tutti__tensor_in(memory, &piece->type, &sum));
    tutti_status status = TUTTI_OK;
    if (memory->host_visible)
        tutti_tensor_set_int(sum, 0, number);
    else
        status = memory->copy_in(memory->self, tutti_tensor_data(sum), &number, sizeof number);
    if (status == TUTTI_OK)
        *ret = sum;
    else
        tutti_tensor_release(sum);
    return status;
}

tutti_status tutti__ticket_apply(const tutti_piece *piece, int64_t ahead, tutti_tensor **value)
{
    tutti_tensor *own;
    if (ahead == 0 || !*value)
        return TUTTI_OK;
    TUTTI_TRY(ticket_add(piece, *value, ahead, &own));
    tutti_tensor_release(*value);
    *value = own;
    return TUTTI_OK;
}

tutti_status tutti__ticket_commit(tutti_state *state, const tutti_ticket *ticket)
{
    tutti_state_variable *counter = ticket->counter;
    tutti_tickets *tickets = &counter->tickets;
    int64_t after = tickets->done > ticket->number ? tickets->done : ticket->number + 1;
    int64_t ahead = after - 1 - tickets->done;
    tutti_piece *piece;
    for (size_t i = 0; ahead != 0 && (piece = tutti__piece_at(state, counter, i)) != NULL; i++) {
        tutti_tensor *own;
        if (!piece->value)
            continue;
        TUTTI_TRY(ticket_add(piece, piece->value, ahead, &own));
        tutti__piece_replace(state, piece, own);
    }
    pthread_mutex_lock(&state->lock);
    tickets->done = after;
    pthread_mutex_unlock(&state->lock);
    return TUTTI_OK;
}
