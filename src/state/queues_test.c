/* queues_test.c: what queues hold goes through a checkpoint's tensors. */
#include <string.h>

#include "base/test.h"
#include "state/state.h"

enum { KINDS = 4, FIRST = 12, TAKEN = 5 };

static const tutti_queue_kind kinds[KINDS] = {TUTTI_QUEUE_FIFO, TUTTI_QUEUE_SHUFFLE,
                                              TUTTI_QUEUE_PRIORITY, TUTTI_QUEUE_PADDING};

/* A priority, a text, and a vector whose length is not always the same. */
static tutti_queue *find(tutti_state *state, tutti_queue_kind kind)
{
    const tutti_type types[] = {tutti_type_make(TUTTI_I64, 0, NULL),
                                tutti_type_make(TUTTI_STRING, 0, NULL),
                                tutti_type_make(TUTTI_F32, 1, (int64_t[]){TUTTI_ANY})};
    const tutti_queue_order order = {.kind = kind, .seed = 7};
    tutti_queue *queue = NULL;
    CHECK_OK(tutti__state_queue_ordered(state, "a/q", 100, 3, types, &order, &queue));
    return queue;
}

static void put(tutti_queue *queue, int64_t value)
{
    static const char *const texts[] = {"", "one", "zwei", "\xe4\xb8\x89"};
    int64_t priority = value * 7 % 5, length = value % 3;
    tutti_tensor *parts[3];
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 0, NULL, &priority, &parts[0]));
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 0, NULL, &parts[1]));
    const char *text = texts[value % 4];
    CHECK_OK(tutti_tensor_set_string(parts[1], 0, text, (int64_t)strlen(text)));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &length, &parts[2]));
    for (int64_t i = 0; i < length; i++)
        tutti_tensor_set(parts[2], i, (double)value);
    CHECK_OK(tutti__queue_enqueue(queue, parts, TUTTI_QUEUE_FOREVER));
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(parts[i]);
}

/* Both give the same element. */
static void check_same(tutti_queue *a, tutti_queue *b)
{
    tutti_tensor *left[3], *right[3];
    CHECK_OK(tutti__queue_dequeue(a, TUTTI_QUEUE_FOREVER, left));
    CHECK_OK(tutti__queue_dequeue(b, TUTTI_QUEUE_FOREVER, right));
    for (int i = 0; i < 3; i++) {
        CHECK(tutti_tensor_same(left[i], right[i]));
        tutti_tensor_release(left[i]);
        tutti_tensor_release(right[i]);
    }
}

static void give(const tutti_snapshot *snapshot, tutti_state *state)
{
    for (size_t i = 0; i < snapshot->count; i++)
        CHECK_OK(tutti__state_expect(state, snapshot->entries[i].name, snapshot->entries[i].value));
    CHECK_OK(tutti__state_fill_queues(state));
}

/* `made`: the queue is there, with something else in it, before it is restored. */
static void check_kind(tutti_queue_kind kind, bool made)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot, again;
    tutti_tensor *parts[3];
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    tutti_queue *queue = find(from, kind);
    for (int64_t i = 0; i < FIRST; i++)
        put(queue, i);
    for (int i = 0; i < TAKEN; i++) {
        CHECK_OK(tutti__queue_dequeue(queue, TUTTI_QUEUE_FOREVER, parts));
        for (int k = 0; k < 3; k++)
            tutti_tensor_release(parts[k]);
    }
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    if (made)
        put(find(to, kind), 99);
    give(&snapshot, to);
    if (!made) { /* what waits is not lost when it is saved again */
        CHECK_OK(tutti__snapshot_take(to, &again));
        CHECK_INT((int)again.count, (int)snapshot.count);
        tutti__snapshot_release(&again);
    }
    tutti_queue *restored = find(to, kind);
    CHECK_INT(tutti__queue_size(restored), FIRST - TAKEN);
    CHECK_INT(tutti__queue_arrived(restored), FIRST);
    put(queue, 50);
    put(restored, 50);
    for (int i = 0; i < FIRST - TAKEN + 1; i++)
        check_same(queue, restored);
    CHECK_INT(tutti__queue_size(restored), 0);
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}

TUTTI_TEST(queues_go_through_a_snapshot)
{
    for (int i = 0; i < KINDS; i++) {
        check_kind(kinds[i], false);
        check_kind(kinds[i], true);
    }
}

/* The queue's record in a snapshot. */
static tutti_snapshot_entry *record_of(tutti_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (strcmp(snapshot->entries[i].name, "tutti/queue/a/q/state") == 0)
            return &snapshot->entries[i];
    return NULL;
}

/* `made`: as above. What was closed gives what it has and takes nothing, what was open takes. */
static void check_closed(tutti_queue_kind kind, bool closed, bool made)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot;
    tutti_tensor *parts[3];
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    put(find(from, kind), 4);
    if (closed)
        tutti__queue_close(find(from, kind), false);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    if (made && !closed)
        tutti__queue_close(find(to, kind), true);
    else if (made)
        put(find(to, kind), 99);
    give(&snapshot, to);
    tutti_queue *restored = find(to, kind);
    CHECK_INT(tutti__queue_is_closed(restored), closed);
    if (!closed)
        put(restored, 5);
    for (int64_t left = tutti__queue_size(restored); left > 0; left--) {
        CHECK_OK(tutti__queue_dequeue(restored, TUTTI_QUEUE_FOREVER, parts));
        if (closed)
            CHECK_STATUS(tutti__queue_enqueue(restored, parts, TUTTI_QUEUE_FOREVER), TUTTI_CLOSED);
        for (int k = 0; k < 3; k++)
            tutti_tensor_release(parts[k]);
    }
    if (closed)
        CHECK_STATUS(tutti__queue_dequeue(restored, TUTTI_QUEUE_FOREVER, parts), TUTTI_CLOSED);
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}

TUTTI_TEST(a_queue_that_was_closed_stays_closed)
{
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < 4; k++)
            check_closed(kinds[i], k & 1, k & 2);
}

/* Checkpoints of earlier versions say four numbers of a queue, and not whether it was closed. */
TUTTI_TEST(a_queue_of_an_earlier_checkpoint_is_open)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot;
    tutti_tensor *first;
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    put(find(from, TUTTI_QUEUE_FIFO), 4);
    tutti__queue_close(find(from, TUTTI_QUEUE_FIFO), false);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    tutti_snapshot_entry *record = record_of(&snapshot);
    CHECK_OK(tutti_tensor_slice(record->value, 0, 0, 4, 1, &first));
    tutti_tensor_release(record->value);
    record->value = first;
    give(&snapshot, to);
    CHECK(!tutti__queue_is_closed(find(to, TUTTI_QUEUE_FIFO)));
    CHECK_INT(tutti__queue_size(find(to, TUTTI_QUEUE_FIFO)), 1);
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}

TUTTI_TEST(a_damaged_queue_is_an_error)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot;
    CHECK_OK(tutti__state_create(&from));
    put(find(from, TUTTI_QUEUE_FIFO), 3);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    for (size_t missing = 0; missing < snapshot.count; missing++) {
        CHECK_OK(tutti__state_create(&to));
        find(to, TUTTI_QUEUE_FIFO);
        for (size_t i = 0; i < snapshot.count; i++)
            if (i != missing)
                CHECK_OK(
                    tutti__state_expect(to, snapshot.entries[i].name, snapshot.entries[i].value));
        bool whole = strstr(snapshot.entries[missing].name, "/state") != NULL;
        CHECK_INT(tutti__state_fill_queues(to), whole ? TUTTI_OK : TUTTI_CORRUPT);
        tutti__state_destroy(to);
    }
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
}

/* A record's number that cannot be, at that place; -1: one number less. */
static void check_record(int at, int64_t number)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot;
    tutti_tensor *fewer;
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    put(find(from, TUTTI_QUEUE_FIFO), 3);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    tutti_snapshot_entry *record = record_of(&snapshot);
    if (at >= 0) {
        tutti_tensor_set_int(record->value, at, number);
    } else {
        CHECK_OK(tutti_tensor_slice(record->value, 0, 0, 5, 1, &fewer));
        tutti_tensor_release(record->value);
        record->value = fewer;
    }
    find(to, TUTTI_QUEUE_FIFO);
    for (size_t i = 0; i < snapshot.count; i++)
        CHECK_OK(tutti__state_expect_from(to, snapshot.entries[i].name, snapshot.entries[i].value,
                                          "x.safetensors"));
    CHECK_STATUS(tutti__state_fill_queues(to), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "x.safetensors: part '");
    CHECK_CONTAINS(tutti_error_message(), "queue 'a/q'");
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}

TUTTI_TEST(a_record_that_cannot_be_is_an_error)
{
    check_record(-1, 0);
    check_record(0, 0);
    check_record(0, (INT64_C(1) << 32) + 3); /* components */
    check_record(0, 65);
    check_record(3, -1); /* tuples */
    check_record(3, 2);
    check_record(3, INT64_MAX);
    check_record(4, 2); /* closed */
    check_record(4, -1);
    check_record(5, -2); /* capacity */
}

/* Of a process of several: they are neither kept nor restored, nor saved again. */
TUTTI_TEST(queues_of_one_process_of_several_are_left_out)
{
    tutti_state *from, *to;
    tutti_snapshot snapshot, again;
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    put(find(from, TUTTI_QUEUE_FIFO), 3);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    CHECK(snapshot.count > 0);
    tutti__state_leave_queues(to);
    give(&snapshot, to);
    CHECK_INT(tutti__queue_size(find(to, TUTTI_QUEUE_FIFO)), 0);
    put(find(to, TUTTI_QUEUE_FIFO), 3);
    CHECK_OK(tutti__snapshot_take(to, &again));
    CHECK_INT((int)again.count, 0);
    tutti__snapshot_release(&again);
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}
