/* restore_test.c: what goes through a checkpoint's files, and what does not fit any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "state/checkpoint.h"

static char folder[64], path[96];
static tutti_state *from, *to;

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/tutti-restore-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
}

static void finish(void)
{
    char command[128];
    tutti__state_destroy(from);
    tutti__state_destroy(to);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

static void save(int64_t shard_bytes)
{
    tutti_snapshot snapshot;
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    CHECK_OK(tutti__checkpoint_write(path, &snapshot, 0, NULL, shard_bytes));
    tutti__snapshot_release(&snapshot);
}

static tutti_status restore(void)
{
    tutti_safetensors *file;
    CHECK_OK(tutti__checkpoint_open(path, true, &file));
    tutti_status status = tutti__checkpoint_restore(file, to);
    tutti__safetensors_close(file);
    return status;
}

/* Makes the variable, with the value that waits for it. */
static tutti_status make(tutti_state *state, const char *name, tutti_type type,
                         tutti_state_variable **ret)
{
    tutti_piece *piece;
    TUTTI_TRY(tutti__state_variable(state, name, &type, NULL, true, ret));
    return tutti__state_piece(state, *ret, "cpu:0", tutti__host_memory(), &piece);
}

static tutti_state_variable *set(tutti_state *state, const char *name, tutti_tensor *value)
{
    tutti_state_variable *variable;
    CHECK_OK(make(state, name, *tutti_tensor_type(value), &variable));
    CHECK_OK(tutti__variable_set(state, variable, value));
    return variable;
}

static tutti_state_variable *set_number(tutti_state *state, const char *name, double number)
{
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &value));
    tutti_tensor_set(value, 0, number);
    tutti_state_variable *variable = set(state, name, value);
    tutti_tensor_release(value);
    return variable;
}

static double number_of(tutti_state *state, tutti_state_variable *variable)
{
    tutti_tensor *value;
    CHECK_OK(tutti__variable_get(state, variable, &value));
    double number = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return number;
}

/* ---- strings ---- */

enum { SHAPES = 4 };

static tutti_tensor *strings(int shape)
{
    static const char bytes[] = "\0\xff\xc3(zwei\0\n drei";
    const int ranks[SHAPES] = {0, 1, 2, 3};
    const int64_t dims[SHAPES][3] = {{0}, {5}, {0, 4}, {2, 1, 3}};
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, ranks[shape], dims[shape], &value));
    for (int64_t i = 0; i < tutti_tensor_count(value); i++)
        CHECK_OK(tutti_tensor_set_string(value, i, bytes + i, 9 * i % 13));
    return value;
}

/* `made`: the variables are there, with other values, before they are restored. */
static void check_strings(int64_t shard_bytes, bool made)
{
    char name[16];
    tutti_state_variable *variable;
    tutti_snapshot again;
    begin();
    for (int i = 0; i < SHAPES; i++) {
        tutti_tensor *value = strings(i), *empty;
        snprintf(name, sizeof name, "words/%d", i);
        set(from, name, value);
        CHECK_OK(tutti_tensor_create(TUTTI_STRING, tutti_tensor_rank(value),
                                     tutti_tensor_dims(value), &empty));
        if (made)
            set(to, name, empty);
        tutti_tensor_release(value);
        tutti_tensor_release(empty);
    }
    set_number(from, "number", 3);
    save(shard_bytes);
    CHECK_OK(restore());
    CHECK_OK(tutti__snapshot_take(to, &again)); /* also of those that wait */
    CHECK_INT((int)again.count, SHAPES + 1);
    tutti__snapshot_release(&again);
    for (int i = 0; i < SHAPES; i++) {
        tutti_tensor *value = strings(i), *restored;
        snprintf(name, sizeof name, "words/%d", i);
        CHECK_OK(make(to, name, *tutti_tensor_type(value), &variable));
        CHECK_OK(tutti__variable_get(to, variable, &restored));
        CHECK(tutti_tensor_same(value, restored));
        tutti_tensor_release(value);
        tutti_tensor_release(restored);
    }
    finish();
}

TUTTI_TEST(strings_go_through_a_checkpoint)
{
    for (int i = 0; i < 4; i++)
        check_strings(i & 1 ? 1 : 0, i & 2);
}

/* A thread may write it down later: by then the variable is another. */
TUTTI_TEST(strings_of_a_snapshot_stay_as_they_were)
{
    tutti_snapshot snapshot;
    tutti_state_variable *variable;
    tutti_tensor *words = strings(1), *later = strings(1), *restored;
    begin();
    set(from, "words", words);
    CHECK_OK(tutti__snapshot_take(from, &snapshot));
    CHECK_OK(tutti_tensor_set_string(later, 0, "later", 5));
    set(from, "words", later);
    CHECK_OK(tutti__checkpoint_write(path, &snapshot, 0, NULL, 0));
    tutti__snapshot_release(&snapshot);
    CHECK_OK(restore());
    CHECK_OK(make(to, "words", *tutti_tensor_type(words), &variable));
    CHECK_OK(tutti__variable_get(to, variable, &restored));
    CHECK(tutti_tensor_same(restored, words));
    tutti_tensor_release(words);
    tutti_tensor_release(later);
    tutti_tensor_release(restored);
    finish();
}

/* ---- variables that are others now ---- */

static void check_told(tutti_status status, const char *saved, const char *has)
{
    CHECK_INT(status, TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), path);
    CHECK_CONTAINS(tutti_error_message(), saved);
    CHECK_CONTAINS(tutti_error_message(), has);
}

TUTTI_TEST(a_variable_of_another_type_is_named_with_its_checkpoint)
{
    static const tutti_type others[] = {{.dtype = TUTTI_F32, .rank = 1, .dims = {3}},
                                        {.dtype = TUTTI_I64, .rank = 1, .dims = {2}},
                                        {.dtype = TUTTI_STRING, .rank = 1, .dims = {2}}};
    static const char *const has[] = {"the program has f32[3]", "the program has i64[2]",
                                      "the program has string[2]"};
    for (size_t i = 0; i < TUTTI_COUNT(others); i++) {
        tutti_state_variable *variable;
        tutti_snapshot again;
        tutti_tensor *none;
        begin();
        set_number(from, "a/w", 3);
        set_number(from, "b", 4);
        save(0);
        /* Those that are there: nothing is changed. */
        tutti_state_variable *b = set_number(to, "b", 7);
        CHECK_OK(make(to, "a/w", others[i], &variable));
        check_told(restore(), "variable 'a/w' is saved as f32[2]", has[i]);
        CHECK_NEAR(number_of(to, b), 7, 0);
        tutti__state_destroy(to);
        /* Those that come later: the value goes on waiting, and is not lost by saving. */
        CHECK_OK(tutti__state_create(&to));
        CHECK_OK(restore());
        for (int k = 0; k < 2; k++)
            check_told(make(to, "a/w", others[i], &variable), "variable 'a/w' is saved as f32[2]",
                       has[i]);
        check_told(tutti__variable_get(to, variable, &none), "variable 'a/w'", has[i]);
        CHECK_OK(tutti__snapshot_take(to, &again));
        CHECK_INT((int)again.count, 2);
        tutti__snapshot_release(&again);
        finish();
    }
}

/* ---- queues that are others now ---- */

enum { TUPLES = 6 };

typedef struct shape {
    tutti_queue_kind kind;
    int64_t capacity, width; /* of component 1, TUTTI_ANY too */
    int components;
    tutti_dtype dtype; /* of component 1 */
} shape;

static tutti_status find_named(tutti_state *state, const char *name, shape s, tutti_queue **ret)
{
    const tutti_type types[] = {tutti_type_make(TUTTI_I64, 0, NULL),
                                tutti_type_make(s.dtype, 1, &s.width),
                                tutti_type_make(TUTTI_F32, 0, NULL)};
    const tutti_queue_order order = {.kind = s.kind, .seed = 3};
    return tutti__state_queue_ordered(state, name, s.capacity, s.components, types, &order, ret);
}

static tutti_status find(tutti_state *state, shape s, tutti_queue **ret)
{
    return find_named(state, "a/q", s, ret);
}

/* Numbered from `first`. */
static void put(tutti_queue *queue, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) {
        tutti_tensor *parts[2];
        CHECK_OK(tutti_tensor_from(TUTTI_I64, 0, NULL, &i, &parts[0]));
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &parts[1]));
        CHECK_OK(tutti__queue_enqueue(queue, parts, TUTTI_QUEUE_FOREVER));
        tutti_tensor_release(parts[0]);
        tutti_tensor_release(parts[1]);
    }
}

/* The sum of the numbers inside, which are taken out. */
static int64_t drain(tutti_queue *queue)
{
    int64_t sum = 0;
    while (tutti__queue_size(queue) > 0) {
        tutti_tensor *parts[2];
        CHECK_OK(tutti__queue_dequeue(queue, TUTTI_QUEUE_FOREVER, parts));
        sum += tutti_tensor_get_int(parts[0], 0);
        tutti_tensor_release(parts[0]);
        tutti_tensor_release(parts[1]);
    }
    return sum;
}

static void check_unfit(shape good, shape bad, const char *saved, const char *has)
{
    tutti_queue *queue;
    tutti_snapshot again;
    begin();
    CHECK_OK(find(from, good, &queue));
    put(queue, 0, TUPLES);
    set_number(from, "w", 3);
    save(0);
    /* One that is there keeps what it holds; so does everything else. */
    tutti_state_variable *w = set_number(to, "w", 7);
    CHECK_OK(find(to, bad, &queue));
    if (bad.components == 2 && bad.width == 2 && bad.dtype == TUTTI_F32)
        put(queue, 40, 1);
    int64_t before = tutti__queue_size(queue);
    check_told(restore(), saved, has);
    CHECK_CONTAINS(tutti_error_message(), "queue 'a/q'");
    CHECK_INT(tutti__queue_size(queue), before);
    CHECK_NEAR(number_of(to, w), 7, 0);
    CHECK_OK(tutti__snapshot_take(to, &again));
    tutti__snapshot_release(&again);
    tutti__state_destroy(to);
    /* What waits for one that comes later goes on waiting, for one that fits. */
    CHECK_OK(tutti__state_create(&to));
    CHECK_OK(restore());
    for (int k = 0; k < 2; k++) {
        check_told(find(to, bad, &queue), saved, has);
        CHECK_OK(tutti__snapshot_take(to, &again));
        CHECK_INT((int)again.count, 5); /* w, state, numbers, two components */
        tutti__snapshot_release(&again);
    }
    CHECK_OK(find(to, good, &queue));
    CHECK_INT(drain(queue), TUPLES * (TUPLES - 1) / 2);
    finish();
}

TUTTI_TEST(a_queue_that_does_not_fit_is_named_with_its_checkpoint)
{
    static const tutti_queue_kind kinds[] = {TUTTI_QUEUE_FIFO, TUTTI_QUEUE_SHUFFLE,
                                             TUTTI_QUEUE_PRIORITY, TUTTI_QUEUE_PADDING};
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++) {
        const shape good = {kinds[i], 8, 2, 2, TUTTI_F32};
        shape bad = good;
        bad.capacity = TUPLES - 1;
        check_unfit(good, bad, "saved with 6 tuples", "has a capacity of 5; make it at least 6");
        bad = good, bad.width = 3;
        check_unfit(good, bad, "saved with 6 tuples, of which component 1 is f32[2]",
                    "the program's takes f32[3]");
        bad = good, bad.dtype = TUTTI_STRING;
        check_unfit(good, bad, "component 1 is f32[2]", "the program's takes string[2]");
        bad = good, bad.components = 3;
        check_unfit(good, bad, "tuples of 2 components", "the program's has 3");
    }
}

/* Two queues: where one does not fit, the other is not changed either. */
TUTTI_TEST(queues_are_restored_together_or_not_at_all)
{
    const shape good = {TUTTI_QUEUE_FIFO, 8, 2, 2, TUTTI_F32};
    shape bad = good;
    tutti_queue *first, *second;
    begin();
    CHECK_OK(find_named(from, "first", good, &first));
    CHECK_OK(find_named(from, "second", good, &second));
    put(first, 1, 2);
    put(second, 1, TUPLES);
    save(0);
    bad.capacity = 2;
    CHECK_OK(find_named(to, "first", good, &first));
    CHECK_OK(find_named(to, "second", bad, &second));
    put(first, 40, 1);
    check_told(restore(), "queue 'second' is saved with 6 tuples", "capacity of 2");
    CHECK_INT(drain(first), 40);
    finish();
}

/* A batch that was put back may make a queue fuller than it is; so it may go on. */
TUTTI_TEST(a_queue_that_is_too_full_goes_on)
{
    const shape good = {TUTTI_QUEUE_FIFO, 2, 2, 2, TUTTI_F32};
    tutti_queue *queue;
    tutti_tensor *parts[2];
    begin();
    CHECK_OK(find(from, good, &queue));
    put(queue, 1, 1);
    CHECK_OK(tutti__queue_dequeue(queue, TUTTI_QUEUE_FOREVER, parts));
    put(queue, 2, 2);
    CHECK_OK(tutti__queue_push_front(queue, parts));
    tutti_tensor_release(parts[0]);
    tutti_tensor_release(parts[1]);
    save(0);
    CHECK_OK(restore());
    CHECK_OK(find(to, good, &queue));
    CHECK_INT(drain(queue), 6);
    finish();
}

TUTTI_TEST(a_queue_with_a_long_name_is_restored)
{
    const shape good = {TUTTI_QUEUE_FIFO, 8, 2, 2, TUTTI_F32};
    char name[700];
    tutti_queue *queue;
    begin();
    memset(name, 'q', sizeof name - 1);
    name[sizeof name - 1] = 0;
    CHECK_OK(find_named(from, name, good, &queue));
    put(queue, 1, 3);
    save(0);
    CHECK_OK(restore());
    CHECK_OK(find_named(to, name, good, &queue));
    CHECK_INT(drain(queue), 6);
    finish();
}
