/* snapshot.c: all values of one moment. */
#include <stdlib.h>
#include <string.h>

#include "state/state_inside.h"

static bool snapshot_note(tutti_snapshot *snapshot, const char *name, tutti_tensor *value,
                          const tutti_piece *piece)
{
    char *copy = strdup(name);
    if (!copy)
        return false;
    snapshot->entries[snapshot->count++] = (tutti_snapshot_entry){
        .name = copy,
        .value = tutti_tensor_retain(value),
        .type = piece ? piece->variable->type : *tutti_tensor_type(value),
        .cut = piece && piece->variable->cut,
        .box = piece ? piece->box : tutti__box_whole(tutti_tensor_type(value))};
    /* cppcheck-suppress memleak ; the snapshot holds it */
    return true;
}

/* A variable that has one value for each piece, until they can be put together. */
typedef struct apart {
    size_t entry; /* of the snapshot, which has the first of them */
    tutti_type type;
    bool averaged;
    size_t count;
    tutti_tensor **values;
} apart;
typedef TUTTI_VEC(apart) apart_list;

static void drop_apart(apart_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < list->data[i].count; k++)
            tutti_tensor_release(list->data[i].values[k]);
        free(list->data[i].values);
    }
    TUTTI_VEC_FREE(list);
}

static bool note_apart(const tutti_state_variable *variable, size_t entry, apart_list *list)
{
    apart a = {.entry = entry,
               .type = variable->type,
               .averaged = variable->averaged,
               .values = calloc(variable->pieces.count, sizeof *a.values)};
    if (!a.values)
        return false;
    for (size_t i = 0; i < variable->pieces.count; i++) {
        a.values[a.count] = tutti__piece_take(variable->pieces.data[i]);
        a.count += a.values[a.count] != NULL;
    }
    if (TUTTI_VEC_PUSH(list, a))
        return true;
    for (size_t i = 0; i < a.count; i++)
        tutti_tensor_release(a.values[i]);
    free(a.values);
    return false;
}

/* Every box that this process is the first to hold. */
static bool note_boxes(tutti_snapshot *snapshot, const tutti_state_variable *variable)
{
    if (variable->gathered)
        return snapshot_note(snapshot, variable->name, variable->gathered, NULL);
    for (size_t i = 0; i < variable->pieces.count; i++) {
        const tutti_piece *piece = variable->pieces.data[i];
        if (piece->value && piece->first &&
            !snapshot_note(snapshot, variable->name, piece->value, piece))
            return false;
    }
    return true;
}

static bool note_variable(tutti_snapshot *snapshot, const tutti_state_variable *variable,
                          apart_list *list)
{
    const tutti_piece *first = NULL;
    size_t found = 0;
    if (variable->cut)
        return note_boxes(snapshot, variable);
    for (size_t i = 0; i < variable->pieces.count; i++) {
        if (!variable->pieces.data[i]->value)
            continue;
        first = first ? first : variable->pieces.data[i];
        found++;
    }
    if (!first)
        return true;
    if (!snapshot_note(snapshot, variable->name, first->value, first))
        return false;
    bool joins = found > 1 && (variable->partial || variable->averaged);
    return !joins || note_apart(variable, snapshot->count - 1, list);
}

static tutti_status put_together(tutti_snapshot *snapshot, const apart_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const apart *a = &list->data[i];
        tutti_snapshot_entry *entry = &snapshot->entries[a->entry];
        tutti_tensor *value;
        TUTTI_TRY(tutti__values_join(&a->type, a->count, a->values, a->averaged, &value));
        tutti_tensor_release(entry->value);
        entry->value = value;
    }
    return TUTTI_OK;
}

static tutti_status lies_apart(const tutti_state_variable *variable)
{
    const char *of = variable->slot_of;
    return tutti_fail(TUTTI_INVALID,
                      "variable '%s' is each process's own%s%s%s, and this process alone cannot "
                      "save what it is over all of them; save where all processes do: outside of "
                      "tutti_fit, at the end of an epoch, or with tutti_checkpoint or --save, "
                      "which wait for a place",
                      variable->name, of[0] ? " (gradients of '" : "", of,
                      of[0] ? "', of batches that are not yet a step)" : "");
}

static tutti_status lies_cut(const tutti_state_variable *variable)
{
    return tutti_fail(TUTTI_INVALID,
                      "variable '%s' is cut over several processes, and this process alone cannot "
                      "save it; save where all processes do: outside of tutti_fit, at the end of "
                      "an epoch, or with tutti_checkpoint or --save, which wait for a place",
                      variable->name);
}

/* Between two commits, with all variables whole. */
static tutti_status begin_whole(tutti_state *state)
{
    tutti_status status = TUTTI_OK;
    tutti__state_read_begin(state);
    for (size_t i = 0; status == TUTTI_OK && i < state->variables.count; i++)
        status = tutti__variable_intact(state->variables.entries[i].value);
    if (status != TUTTI_OK)
        tutti__state_read_end(state);
    return status;
}

/* Under the lock. */
static tutti_status note_all(const tutti_state *state, tutti_snapshot *snapshot, apart_list *list)
{
    size_t most = state->variables.count + state->expected.count;
    for (size_t i = 0; i < state->variables.count; i++)
        most += ((tutti_state_variable *)state->variables.entries[i].value)->pieces.count;
    snapshot->entries = calloc(most + 1, sizeof *snapshot->entries);
    bool ok = snapshot->entries != NULL;
    for (size_t i = 0; ok && i < state->variables.count; i++) {
        const tutti_state_variable *variable = state->variables.entries[i].value;
        if (state->shared && variable->cut && !variable->gathered && !tutti__pieces_cover(variable))
            return lies_cut(variable);
        if (tutti__variable_lies_apart(state, variable))
            return lies_apart(variable);
        ok = note_variable(snapshot, variable, list);
    }
    for (size_t i = 0; ok && i < state->expected.count; i++) {
        const tutti_expected *expected = state->expected.entries[i].value;
        ok = !expected ||
             snapshot_note(snapshot, state->expected.entries[i].key, expected->value, NULL);
    }
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a snapshot of the state");
}

tutti_status tutti__snapshot_take(tutti_state *state, tutti_snapshot *ret)
{
    tutti_snapshot snapshot = {0};
    apart_list list = {0};
    TUTTI_TRY(begin_whole(state));
    tutti_status status = note_all(state, &snapshot, &list);
    tutti__state_read_end(state);
    if (status == TUTTI_OK)
        status = put_together(&snapshot, &list);
    drop_apart(&list);
    if (status == TUTTI_OK)
        status = tutti__snapshot_queues(state, &snapshot);
    if (status == TUTTI_OK)
        *ret = snapshot;
    else
        tutti__snapshot_release(&snapshot);
    return status;
}

void tutti__snapshot_release(tutti_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->entries[i].name);
        tutti_tensor_release(snapshot->entries[i].value);
    }
    free(snapshot->entries);
    *snapshot = (tutti_snapshot){0};
}
