/* error_feedback_test.c: what compressed sums left out: gathered, saved, taken up again, forgotten.
 */
#include <string.h>

#include "base/test.h"
#include "state/state.h"

enum { ROWS = 3, COLUMNS = 4, COUNT = ROWS * COLUMNS };

/* Of one among so many that compress. */
static tutti_state *make_state(int of, int at)
{
    tutti_state *state;
    CHECK_OK(tutti__state_create(&state));
    tutti__state_compress(state, of, at);
    return state;
}

/* The numbers of a replica's compressor. */
static float *numbers_of(tutti_state *state, int replica, const char *compression, int64_t *ret)
{
    tutti_type type = {.dtype = TUTTI_F32, .rank = 2, .dims = {ROWS, COLUMNS}};
    tutti_compressor *compressor;
    CHECK_OK(
        tutti__state_error_feedback(state, replica, "w/gradient", compression, &type, &compressor));
    return tutti_compressor_state(compressor, ret);
}

static void fill(tutti_state *state, int replica, const char *compression, float with)
{
    int64_t size;
    float *numbers = numbers_of(state, replica, compression, &size);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = with * (float)(i + 1);
    for (int64_t i = COUNT; i < size; i++)
        numbers[i] = 7;
}

static void check_numbers(tutti_state *state, int replica, const char *compression, float with,
                          float beyond)
{
    int64_t size;
    const float *numbers = numbers_of(state, replica, compression, &size);
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(numbers[i], with * (float)(i + 1), 0);
    for (int64_t i = COUNT; i < size; i++)
        CHECK_NEAR(numbers[i], beyond, 0);
}

/* Compressed in another way. */
static void check_nothing(tutti_state *state, const char *compression)
{
    int64_t size;
    const float *numbers = numbers_of(state, 0, compression, &size);
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(numbers[i], 0, 0);
}

static tutti_snapshot snapshot_of(tutti_state *state)
{
    tutti_snapshot snapshot;
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    return snapshot;
}

static tutti_state *restored(const tutti_snapshot *snapshot, int of, int at)
{
    tutti_state *state = make_state(of, at);
    for (size_t i = 0; i < snapshot->count; i++)
        CHECK_OK(tutti__state_expect(state, snapshot->entries[i].name, snapshot->entries[i].value));
    return state;
}

static size_t saved_by(tutti_state *state)
{
    tutti_snapshot snapshot = snapshot_of(state);
    size_t count = snapshot.count;
    tutti__snapshot_release(&snapshot);
    return count;
}

/* Two replicas that have left out 1 and 10 times the numbers. */
static tutti_snapshot gather_two(tutti_state *state, const char *compression)
{
    CHECK(!tutti__state_has_error_feedback(state));
    fill(state, 0, compression, 1);
    fill(state, 1, compression, 10);
    CHECK_INT(saved_by(state), 0); /* nobody has gathered them */
    CHECK(tutti__state_has_error_feedback(state));
    CHECK_OK(tutti__state_gather_error_feedback(state, &(tutti_state_gather){.processes = 1}));
    tutti_snapshot snapshot = snapshot_of(state);
    CHECK_INT(snapshot.count, 1);
    CHECK_STR(snapshot.entries[0].name, "left_out/w/gradient");
    return snapshot;
}

static void check_way(const char *compression)
{
    tutti_state *state = make_state(2, 0);
    tutti_snapshot snapshot = gather_two(state, compression);
    check_numbers(state, 0, compression, 1, 7); /* as before */
    check_numbers(state, 1, compression, 10, 7);
    CHECK_INT(saved_by(state), 0); /* it was used, so that it is another now */

    tutti_state *same = restored(&snapshot, 2, 0);
    CHECK_INT(saved_by(same), 1); /* nothing is lost before it is asked for */
    check_numbers(same, 0, compression, 1, 7);
    check_numbers(same, 1, compression, 10, 7);
    tutti_state *second = restored(&snapshot, 2, 1); /* a process each */
    check_numbers(second, 0, compression, 10, 7);
    tutti_state *first_of_three = restored(&snapshot, 3, 0), *last = restored(&snapshot, 3, 2);
    check_numbers(first_of_three, 0, compression, 11, 7);
    check_numbers(last, 0, compression, 0, 7);
    tutti_state *plain = restored(&snapshot, 0, 0);
    CHECK_INT(saved_by(plain), 0);
    tutti_state *other = restored(&snapshot, 2, 0);
    check_nothing(other, strcmp(compression, "topk:0.5") == 0 ? "powersgd:1" : "topk:0.5");

    tutti__snapshot_release(&snapshot);
    tutti_state *all[] = {state, same, second, first_of_three, last, plain, other};
    for (size_t i = 0; i < TUTTI_COUNT(all); i++)
        tutti__state_destroy(all[i]);
}

TUTTI_TEST(state_saves_what_compression_left_out)
{
    check_way("topk:0.5");
    check_way("powersgd:1");
}

/* As if three processes had 1, 2 and 3 times the first one's numbers. */
static tutti_status three_times(void *context, const float *mine, int64_t count, float *all)
{
    CHECK_INT(count, COUNT);
    for (int part = 0; all && part < 3; part++)
        for (int64_t i = 0; i < count; i++)
            all[part * count + i] = (float)(part + 1) * mine[i];
    ++*(int *)context;
    return TUTTI_OK;
}

/* Of several processes the first one has what all left out. */
TUTTI_TEST(state_gathers_what_processes_left_out)
{
    for (int rank = 0; rank < 2; rank++) {
        int calls = 0;
        tutti_state *state = make_state(3, rank);
        tutti__state_share(state, rank == 0);
        fill(state, 0, "topk:0.5", 3);
        CHECK_OK(tutti__state_gather_error_feedback(
            state,
            &(tutti_state_gather){.gather = three_times, .context = &calls, .processes = 3}));
        CHECK_INT(calls, 1);
        tutti_snapshot snapshot = snapshot_of(state);
        CHECK_INT(snapshot.count, rank == 0);
        if (rank == 0) {
            tutti_state *third = restored(&snapshot, 3, 2);
            check_numbers(third, 0, "topk:0.5", 9, 0);
            tutti__state_destroy(third);
        }
        tutti__snapshot_release(&snapshot);
        tutti__state_destroy(state);
    }
}
