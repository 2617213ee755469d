/* queues_restore.c: queues get what waits in the state for them. Bytes of a file are hostile: what
 * the record says is compared with the tensors that are there. Everything here runs under the
 * state's lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "state/queue_parts.h"
#include "state/state_inside.h"

enum { MOST_COMPONENTS = 64 };

/* One queue's parts, as they are looked at. They go on waiting until the queue has taken them. */
typedef struct reading {
    tutti_state *state;
    const char *queue;
    const char *from; /* the file of the parts */
    TUTTI_VEC(char *) names;
    bool failed; /* for want of memory */
} reading;

static void end_reading(reading *r, bool taken)
{
    for (size_t i = 0; i < r->names.count; i++) {
        if (taken)
            tutti__expected_drop(r->state, r->names.data[i]);
        free(r->names.data[i]);
    }
    TUTTI_VEC_FREE(&r->names);
}

/* Borrowed; NULL: there is none. */
static tutti_tensor *part_of(reading *r, const char *part, const char *ending)
{
    tutti_text name = {0};
    tutti__text_add(&name, TUTTI_QUEUE_PARTS "%s/%s%s", r->queue, part, ending);
    const tutti_expected *found = name.failed ? NULL : tutti__expected_find(r->state, name.data);
    r->failed |= name.failed;
    if (!found || !TUTTI_VEC_PUSH(&r->names, name.data)) {
        r->failed |= found != NULL;
        tutti__text_free(&name);
        return NULL;
    }
    r->from = found->from;
    return found->value;
}

static tutti_status lacks(const reading *r, const char *part)
{
    if (r->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to restore queue '%s'", r->queue);
    return tutti_fail(TUTTI_CORRUPT, "part '%s' of queue '%s' is missing or wrong", part, r->queue);
}

static bool is_numbers(const tutti_tensor *tensor, int64_t count)
{
    return tensor && tutti_tensor_dtype(tensor) == TUTTI_I64 && tutti_tensor_rank(tensor) == 1 &&
           tutti_tensor_dims(tensor)[0] == count;
}

/* Whatever a component is: the caller's. *ret is NULL where there is none. */
static tutti_status component(reading *r, const char *part, tutti_tensor **ret)
{
    tutti_tensor *value = part_of(r, part, "");
    *ret = value ? tutti_tensor_retain(value) : NULL;
    if (value)
        return TUTTI_OK;
    const tutti_tensor *bytes = part_of(r, part, ".bytes"), *lengths = part_of(r, part, ".lengths");
    if (!bytes || !lengths)
        return r->failed || bytes || lengths ? lacks(r, part) : TUTTI_OK;
    tutti_status status = tutti__tensor_unpack_strings(bytes, lengths, ret);
    return status == TUTTI_CORRUPT ? lacks(r, part) : status;
}

/* Component c of element i: a row of all of them, or its own. */
static tutti_status component_of(reading *r, tutti_tensor *all, int c, int64_t i,
                                 tutti_tensor **ret)
{
    char part[64];
    if (!all) {
        snprintf(part, sizeof part, "%d/%" PRId64, c, i);
        TUTTI_TRY(component(r, part, ret));
        return *ret ? TUTTI_OK : lacks(r, part);
    }
    tutti_tensor *row;
    int rank = tutti_tensor_rank(all);
    TUTTI_TRY(tutti_tensor_slice(all, 0, i, 1, 1, &row));
    tutti_status status = tutti_tensor_reshape(row, rank - 1, tutti_tensor_dims(all) + 1, ret);
    tutti_tensor_release(row);
    return status;
}

static tutti_status read_elements(reading *r, const tutti_tensor *numbers, tutti_tensor *const *all,
                                  tutti_queue_contents *contents)
{
    for (int64_t i = 0; i < tutti_tensor_count(numbers); i++) {
        tutti_tuple *tuple;
        TUTTI_TRY(tutti__tuple_empty(contents->component_count, &tuple));
        tuple->number = (uint64_t)tutti_tensor_get_int(numbers, i);
        tutti__tuple_append(&contents->elements, tuple);
        for (int c = 0; c < contents->component_count; c++) {
            TUTTI_TRY(component_of(r, all[c], c, i, &tuple->tensors[c]));
            tuple->count++;
        }
    }
    return TUTTI_OK;
}

static tutti_status read_contents(reading *r, int64_t count, tutti_queue_contents *contents)
{
    tutti_tensor *all[MOST_COMPONENTS] = {0};
    const tutti_tensor *numbers = part_of(r, "numbers", "");
    tutti_status status = is_numbers(numbers, count) ? TUTTI_OK : lacks(r, "numbers");
    for (int c = 0; status == TUTTI_OK && c < contents->component_count; c++) {
        char part[16];
        snprintf(part, sizeof part, "%d", c);
        status = component(r, part, &all[c]);
        if (all[c] && (tutti_tensor_rank(all[c]) < 1 || tutti_tensor_dims(all[c])[0] != count))
            status = lacks(r, part);
    }
    if (status == TUTTI_OK)
        status = read_elements(r, numbers, all, contents);
    for (int c = 0; c < MOST_COMPONENTS; c++)
        tutti_tensor_release(all[c]);
    return status;
}

/* Fields of a record that is shorter have the value that they had then. */
static int64_t field(const tutti_tensor *record, tutti_queue_record which, int64_t missing)
{
    return which < tutti_tensor_count(record) ? tutti_tensor_get_int(record, which) : missing;
}

static tutti_status read_record(const reading *r, const tutti_tensor *record,
                                tutti_queue_contents *contents, int64_t *ret_count)
{
    if (!is_numbers(record, TUTTI_RECORD_SIZE) && !is_numbers(record, TUTTI_RECORD_EARLIER_SIZE))
        return lacks(r, "state");
    int64_t components = field(record, TUTTI_RECORD_COMPONENTS, 0);
    int64_t closed = field(record, TUTTI_RECORD_CLOSED, 0);
    int64_t capacity = field(record, TUTTI_RECORD_CAPACITY, -1);
    int64_t count = field(record, TUTTI_RECORD_COUNT, 0);
    if (components < 1 || components > MOST_COMPONENTS || closed < 0 || closed > 1 ||
        capacity < -1 || count < 0)
        return lacks(r, "state");
    contents->component_count = (int)components;
    contents->capacity = capacity;
    contents->closed = closed != 0;
    contents->arrived = (uint64_t)field(record, TUTTI_RECORD_ARRIVED, 0);
    contents->drawn = (uint64_t)field(record, TUTTI_RECORD_DRAWN, 0);
    *ret_count = count;
    return TUTTI_OK;
}

/* With `restore` the queue takes them, else it is only found out that it could. */
static tutti_status take_up(tutti_state *state, const char *name, tutti_queue *queue, bool restore)
{
    reading r = {.state = state, .queue = name, .from = ""};
    tutti_queue_contents contents = {0};
    int64_t count = 0;
    const tutti_tensor *record = part_of(&r, "state", "");
    if (!record && !r.failed)
        return TUTTI_OK;
    tutti_status status = read_record(&r, record, &contents, &count);
    if (status == TUTTI_OK && count > 0)
        status = read_contents(&r, count, &contents);
    if (status == TUTTI_OK)
        status =
            restore ? tutti__queue_restore(queue, &contents) : tutti__queue_fits(queue, &contents);
    if (status != TUTTI_OK && r.from[0])
        status = tutti__error_prefix(status, "%s", r.from);
    tutti__tuple_clear(&contents.elements);
    end_reading(&r, restore && status == TUTTI_OK);
    return status;
}

tutti_status tutti__queue_expected(tutti_state *state, const char *name, tutti_queue *queue)
{
    return take_up(state, name, queue, true);
}

tutti_status tutti__state_fill_queues(tutti_state *state)
{
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&state->lock);
    for (int restore = 0; restore < 2; restore++) /* none of them, unless all of them */
        for (size_t i = 0; status == TUTTI_OK && i < state->queues.count; i++)
            status = take_up(state, state->queues.entries[i].key, state->queues.entries[i].value,
                             restore);
    pthread_mutex_unlock(&state->lock);
    return status;
}
