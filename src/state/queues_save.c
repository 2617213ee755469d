/* queues_save.c: what queues hold, into a snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/queue_parts.h"
#include "state/state_inside.h"

/* Takes the value, also on failure. */
static tutti_status queues_save_add(tutti_snapshot *snapshot, tutti_tensor *value,
                                    const char *queue, const char *part)
{
    size_t size = sizeof TUTTI_QUEUE_PARTS + strlen(queue) + strlen(part) + 1;
    char *name = malloc(size);
    void *entries = realloc(snapshot->entries, (snapshot->count + 1) * sizeof *snapshot->entries);
    if (entries)
        snapshot->entries = entries;
    if (!name || !entries) {
        free(name);
        tutti_tensor_release(value);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a snapshot of queue '%s'", queue);
    }
    snprintf(name, size, TUTTI_QUEUE_PARTS "%s/%s", queue, part);
    snapshot->entries[snapshot->count++] = (tutti_snapshot_entry){name, value};
    return TUTTI_OK;
}

static tutti_status add_named(tutti_snapshot *snapshot, tutti_tensor *value, const char *queue,
                              const char *part, const char *ending)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", part, ending);
    return queues_save_add(snapshot, value, queue, name);
}

static tutti_status add_texts(tutti_snapshot *snapshot, const tutti_tensor *texts,
                              const char *queue, const char *part)
{
    tutti_tensor *bytes, *lengths;
    TUTTI_TRY(tutti__tensor_pack_strings(texts, &bytes, &lengths));
    tutti_status status = add_named(snapshot, lengths, queue, part, ".lengths");
    if (status != TUTTI_OK) {
        tutti_tensor_release(bytes);
        return status;
    }
    return add_named(snapshot, bytes, queue, part, ".bytes");
}

/* Takes the value, also on failure. */
static tutti_status add_any(tutti_snapshot *snapshot, tutti_tensor *value, const char *queue,
                            const char *part)
{
    if (tutti_tensor_dtype(value) != TUTTI_STRING)
        return queues_save_add(snapshot, value, queue, part);
    tutti_status status = add_texts(snapshot, value, queue, part);
    tutti_tensor_release(value);
    return status;
}

static tutti_status add_numbers(tutti_snapshot *snapshot, const char *queue, const char *part,
                                int64_t count, const int64_t *numbers)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, &count, numbers, &tensor));
    return queues_save_add(snapshot, tensor, queue, part);
}

static bool alike(const tutti_tuple_list *list, int component)
{
    const tutti_type *first = tutti_tensor_type(list->first->tensors[component]);
    for (const tutti_tuple *t = list->first; t; t = t->next)
        if (!tutti_type_equal(tutti_tensor_type(t->tensors[component]), first))
            return false;
    return tutti_tensor_rank(list->first->tensors[component]) < TUTTI_MAX_RANK;
}

static tutti_status add_component(tutti_snapshot *snapshot, const char *queue,
                                  const tutti_tuple_list *list, int component)
{
    char part[64];
    tutti_tensor *tensor;
    if (alike(list, component)) {
        snprintf(part, sizeof part, "%d", component);
        TUTTI_TRY(tutti__tuple_stack(list, component, false, &tensor));
        return add_any(snapshot, tensor, queue, part);
    }
    int64_t at = 0;
    for (const tutti_tuple *t = list->first; t; t = t->next, at++) {
        snprintf(part, sizeof part, "%d/%" PRId64, component, at);
        TUTTI_TRY(tutti_tensor_contiguous(t->tensors[component], &tensor));
        TUTTI_TRY(add_any(snapshot, tensor, queue, part));
    }
    return TUTTI_OK;
}

static tutti_status add_contents(tutti_snapshot *snapshot, const char *queue,
                                 const tutti_queue_contents *contents)
{
    const int64_t record[TUTTI_RECORD_SIZE] = {[TUTTI_RECORD_COMPONENTS] =
                                                   contents->component_count,
                                               [TUTTI_RECORD_ARRIVED] = (int64_t)contents->arrived,
                                               [TUTTI_RECORD_DRAWN] = (int64_t)contents->drawn,
                                               [TUTTI_RECORD_COUNT] = contents->elements.count,
                                               [TUTTI_RECORD_CLOSED] = contents->closed,
                                               [TUTTI_RECORD_CAPACITY] = contents->capacity};
    TUTTI_TRY(add_numbers(snapshot, queue, "state", TUTTI_RECORD_SIZE, record));
    if (!contents->elements.first)
        return TUTTI_OK;
    int64_t *numbers = calloc((size_t)contents->elements.count, sizeof *numbers), count = 0;
    if (!numbers)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a snapshot of queue '%s'", queue);
    for (const tutti_tuple *t = contents->elements.first; t; t = t->next)
        numbers[count++] = (int64_t)t->number;
    tutti_status status = add_numbers(snapshot, queue, "numbers", count, numbers);
    free(numbers);
    for (int c = 0; status == TUTTI_OK && c < contents->component_count; c++)
        status = add_component(snapshot, queue, &contents->elements, c);
    return status;
}

tutti_status tutti__snapshot_queues(tutti_state *state, tutti_snapshot *snapshot)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && !state->queues_apart; i++) {
        pthread_mutex_lock(&state->lock);
        bool there = i < state->queues.count;
        tutti_queue *queue = there ? tutti__queue_retain(state->queues.entries[i].value) : NULL;
        const char *name = there ? state->queues.entries[i].key : NULL; /* lives with the state */
        pthread_mutex_unlock(&state->lock);
        if (!queue)
            break;
        tutti_queue_contents contents;
        status = tutti__queue_save(queue, &contents);
        tutti__queue_release(queue);
        TUTTI_TRY(status);
        status = add_contents(snapshot, name, &contents);
        tutti__tuple_clear(&contents.elements);
    }
    return status;
}
