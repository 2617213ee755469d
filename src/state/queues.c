/* queues.c: queues by name, and what they hold as tensors of a checkpoint.
 *
 * Of queue Q:
 *     tutti/queue/Q/state      i64[4]: components, elements that ever came, random numbers drawn, n
 *     tutti/queue/Q/numbers    i64[n]: the elements' numbers, in order of arrival
 *     tutti/queue/Q/0          [n, …]: component 0 of all of them, and so on; where their shapes
 *     tutti/queue/Q/0/17       differ, of each
 * The last three are there when n > 0. Texts are two tensors, "….bytes" u8 and "….lengths" i64. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/state_inside.h"

#define PREFIX "tutti/queue/"
enum { STATE_SIZE = 4, NAME_SIZE = 512 };

tutti_status tutti__state_queue(tutti_state *state, const char *name, int64_t capacity,
                                int type_count, const tutti_type *types, tutti_queue **ret)
{
    return tutti__state_queue_ordered(state, name, capacity, type_count, types,
                                      &(tutti_queue_order){.kind = TUTTI_QUEUE_FIFO}, ret);
}

void tutti__state_leave_queues(tutti_state *state)
{
    state->queues_apart = true;
}

bool tutti__state_passes_over(const tutti_state *state, const char *name)
{
    return state->queues_apart && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
}

void tutti__state_wake(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; i < state->queues.count; i++)
        tutti__queue_wake(state->queues.entries[i].value);
    pthread_mutex_unlock(&state->lock);
}

/* ---- into a snapshot ---- */

/* Takes the value, also on failure. */
static tutti_status add(tutti_snapshot *snapshot, tutti_tensor *value, const char *queue,
                        const char *part)
{
    size_t size = sizeof PREFIX + strlen(queue) + strlen(part) + 1;
    char *name = malloc(size);
    void *entries = realloc(snapshot->entries, (snapshot->count + 1) * sizeof *snapshot->entries);
    if (entries)
        snapshot->entries = entries;
    if (!name || !entries) {
        free(name);
        tutti_tensor_release(value);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a snapshot of queue '%s'", queue);
    }
    snprintf(name, size, PREFIX "%s/%s", queue, part);
    snapshot->entries[snapshot->count++] = (tutti_snapshot_entry){name, value};
    return TUTTI_OK;
}

static tutti_status add_named(tutti_snapshot *snapshot, tutti_tensor *value, const char *queue,
                              const char *part, const char *ending)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", part, ending);
    return add(snapshot, value, queue, name);
}

/* Texts as their bytes, one after the other, and their lengths. */
static tutti_status add_texts(tutti_snapshot *snapshot, const tutti_tensor *texts,
                              const char *queue, const char *part)
{
    int64_t bytes = 0, count = tutti_tensor_count(texts);
    tutti_tensor *all, *lengths;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, tutti_tensor_rank(texts), tutti_tensor_dims(texts),
                                  &lengths));
    for (int64_t i = 0; i < count; i++) {
        int64_t length = tutti_tensor_get_string(texts, i).size;
        tutti_tensor_set_int(lengths, i, length);
        bytes += length;
    }
    TUTTI_TRY(add_named(snapshot, lengths, queue, part, ".lengths"));
    TUTTI_TRY(tutti_tensor_create(TUTTI_U8, 1, &bytes, &all));
    char *to = tutti_tensor_data(all);
    for (int64_t i = 0; i < count; i++) {
        tutti_string text = tutti_tensor_get_string(texts, i);
        if (text.size > 0)
            memcpy(to, text.data, (size_t)text.size);
        to += text.size;
    }
    return add_named(snapshot, all, queue, part, ".bytes");
}

/* Takes the value, also on failure. */
static tutti_status add_any(tutti_snapshot *snapshot, tutti_tensor *value, const char *queue,
                            const char *part)
{
    if (tutti_tensor_dtype(value) != TUTTI_STRING)
        return add(snapshot, value, queue, part);
    tutti_status status = add_texts(snapshot, value, queue, part);
    tutti_tensor_release(value);
    return status;
}

static tutti_status add_numbers(tutti_snapshot *snapshot, const char *queue, const char *part,
                                int64_t count, const int64_t *numbers)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, &count, numbers, &tensor));
    return add(snapshot, tensor, queue, part);
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
    const int64_t state[STATE_SIZE] = {contents->component_count, (int64_t)contents->arrived,
                                       (int64_t)contents->drawn, contents->elements.count};
    TUTTI_TRY(add_numbers(snapshot, queue, "state", STATE_SIZE, state));
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

/* ---- out of what waits in the state; under its lock ---- */

/* Taken out of what waits: the caller's. NULL: there is none. */
static tutti_tensor *taken(tutti_state *state, const char *queue, const char *part)
{
    char name[NAME_SIZE];
    if (snprintf(name, sizeof name, PREFIX "%s/%s", queue, part) >= (int)sizeof name)
        return NULL;
    tutti_tensor *value = tutti__map_get(&state->expected, name);
    if (value)
        (void)tutti__map_set(&state->expected, name, NULL); /* is there: needs no memory */
    return value;
}

static bool is_numbers(const tutti_tensor *tensor, int64_t count)
{
    return tensor && tutti_tensor_dtype(tensor) == TUTTI_I64 && tutti_tensor_rank(tensor) == 1 &&
           tutti_tensor_dims(tensor)[0] == count;
}

static tutti_status lacks(const char *queue, const char *part)
{
    return tutti_fail(TUTTI_CORRUPT, "a checkpoint's part '%s' of queue '%s' is missing or wrong",
                      part, queue);
}

/* Texts from their bytes and lengths; NULL where they do not fit each other. */
static tutti_tensor *make_texts(const tutti_tensor *bytes, const tutti_tensor *lengths)
{
    tutti_tensor *texts;
    if (tutti_tensor_dtype(bytes) != TUTTI_U8 || tutti_tensor_dtype(lengths) != TUTTI_I64 ||
        tutti_tensor_create(TUTTI_STRING, tutti_tensor_rank(lengths), tutti_tensor_dims(lengths),
                            &texts) != TUTTI_OK)
        return NULL;
    const char *from = tutti_tensor_data(bytes);
    int64_t left = tutti_tensor_count(bytes);
    for (int64_t i = 0; i < tutti_tensor_count(lengths); i++) {
        int64_t length = tutti_tensor_get_int(lengths, i);
        if (length < 0 || length > left ||
            tutti_tensor_set_string(texts, i, from, length) != TUTTI_OK) {
            tutti_tensor_release(texts);
            return NULL;
        }
        from += length;
        left -= length;
    }
    return texts;
}

/* Whatever a component is. */
static tutti_tensor *taken_any(tutti_state *state, const char *queue, const char *part)
{
    char name[80];
    tutti_tensor *value = taken(state, queue, part);
    if (value)
        return value;
    snprintf(name, sizeof name, "%s.bytes", part);
    tutti_tensor *bytes = taken(state, queue, name);
    snprintf(name, sizeof name, "%s.lengths", part);
    tutti_tensor *lengths = taken(state, queue, name);
    if (bytes && lengths)
        value = make_texts(bytes, lengths);
    tutti_tensor_release(bytes);
    tutti_tensor_release(lengths);
    return value;
}

/* Component c of element i: a row of all of them, or its own. */
static tutti_status component_of(tutti_state *state, const char *queue, tutti_tensor *all, int c,
                                 int64_t i, tutti_tensor **ret)
{
    char part[64];
    if (!all) {
        snprintf(part, sizeof part, "%d/%" PRId64, c, i);
        *ret = taken_any(state, queue, part);
        return *ret ? TUTTI_OK : lacks(queue, part);
    }
    tutti_tensor *row;
    int rank = tutti_tensor_rank(all);
    TUTTI_TRY(tutti_tensor_slice(all, 0, i, 1, 1, &row));
    tutti_status status = tutti_tensor_reshape(row, rank - 1, tutti_tensor_dims(all) + 1, ret);
    tutti_tensor_release(row);
    return status;
}

static tutti_status read_elements(tutti_state *state, const char *queue, tutti_tensor *numbers,
                                  tutti_tensor *const *all, tutti_queue_contents *contents)
{
    for (int64_t i = 0; i < tutti_tensor_count(numbers); i++) {
        tutti_tuple *tuple;
        TUTTI_TRY(tutti__tuple_empty(contents->component_count, &tuple));
        tuple->number = (uint64_t)tutti_tensor_get_int(numbers, i);
        tutti__tuple_append(&contents->elements, tuple);
        for (int c = 0; c < contents->component_count; c++) {
            TUTTI_TRY(component_of(state, queue, all[c], c, i, &tuple->tensors[c]));
            tuple->count++;
        }
    }
    return TUTTI_OK;
}

enum { MOST_COMPONENTS = 64 };

static tutti_status read_contents(tutti_state *state, const char *queue, int64_t count,
                                  tutti_queue_contents *contents)
{
    tutti_tensor *all[MOST_COMPONENTS] = {0}, *numbers = taken(state, queue, "numbers");
    tutti_status status = TUTTI_OK;
    if (count != 0 && !is_numbers(numbers, count))
        status = lacks(queue, "numbers");
    for (int c = 0; numbers && status == TUTTI_OK && c < contents->component_count; c++) {
        char part[16];
        snprintf(part, sizeof part, "%d", c);
        all[c] = taken_any(state, queue, part);
        if (all[c] && (tutti_tensor_rank(all[c]) < 1 || tutti_tensor_dims(all[c])[0] != count))
            status = lacks(queue, part);
    }
    if (numbers && status == TUTTI_OK)
        status = read_elements(state, queue, numbers, all, contents);
    for (int c = 0; c < MOST_COMPONENTS; c++)
        tutti_tensor_release(all[c]);
    tutti_tensor_release(numbers);
    return status;
}

static tutti_status fill(tutti_state *state, const char *name, tutti_queue *queue)
{
    tutti_tensor *numbers = taken(state, name, "state");
    if (!numbers)
        return TUTTI_OK;
    tutti_queue_contents contents = {0};
    tutti_status status = TUTTI_OK;
    if (is_numbers(numbers, STATE_SIZE)) {
        contents.component_count = (int)tutti_tensor_get_int(numbers, 0);
        contents.arrived = (uint64_t)tutti_tensor_get_int(numbers, 1);
        contents.drawn = (uint64_t)tutti_tensor_get_int(numbers, 2);
    }
    if (contents.component_count < 1 || contents.component_count > MOST_COMPONENTS)
        status = lacks(name, "state");
    if (status == TUTTI_OK)
        status = read_contents(state, name, tutti_tensor_get_int(numbers, 3), &contents);
    if (status == TUTTI_OK)
        status = tutti__queue_restore(queue, &contents);
    tutti__tuple_clear(&contents.elements);
    tutti_tensor_release(numbers);
    return status;
}

tutti_status tutti__state_fill_queues(tutti_state *state)
{
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; status == TUTTI_OK && i < state->queues.count; i++)
        status = fill(state, state->queues.entries[i].key, state->queues.entries[i].value);
    pthread_mutex_unlock(&state->lock);
    return status;
}

static tutti_status make(tutti_state *state, const char *name, int64_t capacity, int type_count,
                         const tutti_type *types, const tutti_queue_order *order, tutti_queue **ret)
{
    tutti_queue *queue;
    TUTTI_TRY(tutti__queue_create_ordered(name, capacity, type_count, types, order, &queue));
    tutti_status status = fill(state, name, queue);
    if (status == TUTTI_OK)
        status = tutti__map_set(&state->queues, name, queue);
    if (status == TUTTI_OK)
        *ret = queue;
    else
        tutti__queue_release(queue);
    return status;
}

tutti_status tutti__state_queue_ordered(tutti_state *state, const char *name, int64_t capacity,
                                        int type_count, const tutti_type *types,
                                        const tutti_queue_order *order, tutti_queue **ret)
{
    pthread_mutex_lock(&state->lock);
    tutti_queue *queue = tutti__map_get(&state->queues, name);
    tutti_status status = TUTTI_OK;
    if (!queue)
        status = make(state, name, capacity, type_count, types, order, &queue);
    else if (tutti__queue_order_of(queue)->kind != order->kind)
        status = tutti_fail(TUTTI_INVALID,
                            "queue '%s' is there already, but of another kind; give one of them "
                            "another name",
                            name);
    pthread_mutex_unlock(&state->lock);
    if (status == TUTTI_OK)
        *ret = queue;
    return status;
}
