/* together_test.c: variables that are the sum or the mean over replicas: what is saved of them, who
 * gets what is restored. */
#include <string.h>

#include "base/test.h"
#include "state/state.h"

/* Copies on two devices with these values. */
static tutti_state_variable *make(tutti_state *state, const char *name, bool averaged, double first,
                                  double second)
{
    tutti_state_variable *variable;
    tutti_type type = {.dtype = TUTTI_F32, .rank = 1, .dims = {1}};
    CHECK_OK(tutti__state_variable(state, name, &type, NULL, false, &variable));
    variable->partial = !averaged;
    variable->averaged = averaged;
    for (int i = 0; i < 2; i++) {
        tutti_piece *piece;
        tutti_tensor *to;
        CHECK_OK(tutti__state_piece(state, variable, i == 0 ? "cpu:0" : "cpu:1",
                                    tutti__host_memory(), &piece));
        tutti__state_commit_begin(state);
        CHECK_OK(tutti__piece_write(state, piece, false, &to));
        tutti_tensor_set(to, 0, i == 0 ? first : second);
        tutti__state_commit_end(state);
    }
    return variable;
}

static double copy_of(const tutti_state_variable *variable, int device)
{
    return tutti_tensor_get(variable->pieces.data[device]->value, 0);
}

/* A state with the values of a snapshot, which variables that are made then take. */
static tutti_state *restored(const tutti_snapshot *snapshot, bool first)
{
    tutti_state *state;
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    tutti__state_share(state, first);
    for (size_t i = 0; i < snapshot->count; i++)
        CHECK_OK(tutti__state_expect(state, snapshot->entries[i].name, snapshot->entries[i].value));
    return state;
}

static void check_restored(tutti_state *state, const char *name, bool averaged, double first,
                           double second)
{
    tutti_state_variable *variable;
    tutti_type type = {.dtype = TUTTI_F32, .rank = 1, .dims = {1}};
    CHECK_OK(tutti__state_variable(state, name, &type, NULL, false, &variable));
    variable->partial = !averaged;
    variable->averaged = averaged;
    tutti_piece *pieces[2];
    CHECK_OK(tutti__state_piece(state, variable, "cpu:0", tutti__host_memory(), &pieces[0]));
    CHECK_OK(tutti__state_piece(state, variable, "cpu:1", tutti__host_memory(), &pieces[1]));
    CHECK_NEAR(copy_of(variable, 0), first, 0);
    CHECK_NEAR(copy_of(variable, 1), second, 0);
}

TUTTI_TEST(a_snapshot_has_the_sum_and_the_mean_over_all_copies)
{
    tutti_state *state;
    tutti_snapshot snapshot;
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    make(state, "sum", false, 3, 4);
    make(state, "mean", true, 1, 2);
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    CHECK_INT(snapshot.count, 2);
    CHECK_NEAR(tutti_tensor_get(snapshot.entries[0].value, 0), 7, 0);
    CHECK_NEAR(tutti_tensor_get(snapshot.entries[1].value, 0), 1.5, 0);
    tutti_state *first = restored(&snapshot, true), *second = restored(&snapshot, false);
    check_restored(first, "sum", false, 7, 0);
    check_restored(first, "mean", true, 1.5, 1.5);
    check_restored(second, "sum", false, 0, 0);
    check_restored(second, "mean", true, 1.5, 1.5);
    tutti__state_destroy(first);
    tutti__state_destroy(second);
    tutti__snapshot_release(&snapshot);
    tutti__state_destroy(state);
}

/* What is set as a whole is the first process's, where it is a sum. */
TUTTI_TEST(a_sum_over_processes_is_set_in_the_first_one)
{
    tutti_tensor *five;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){1}, (float[]){5}, &five));
    for (int rank = 0; rank < 2; rank++) {
        tutti_state *state;
        CHECK_OK(tutti__state_create(&state));
        tutti__state_mirror(state, true);
        tutti__state_share(state, rank == 0);
        tutti_state_variable *sum = make(state, "sum", false, 3, 4);
        tutti_state_variable *mean = make(state, "mean", true, 1, 2);
        CHECK_OK(tutti__variable_set(state, sum, five));
        CHECK_OK(tutti__variable_set(state, mean, five));
        CHECK_NEAR(copy_of(sum, 0), rank == 0 ? 5 : 0, 0);
        CHECK_NEAR(copy_of(sum, 1), 0, 0);
        CHECK_NEAR(copy_of(mean, 0), 5, 0);
        CHECK_NEAR(copy_of(mean, 1), 5, 0);
        tutti__state_destroy(state);
    }
    tutti_tensor_release(five);
}

/* Another process, of as many replicas, has 10 times as much. */
static tutti_status eleven_times(void *context, void *data, int64_t count, tutti_dtype dtype)
{
    (void)context;
    CHECK_INT(dtype, TUTTI_F32);
    for (int64_t i = 0; i < count; i++)
        ((float *)data)[i] *= 11;
    return TUTTI_OK;
}

TUTTI_TEST(what_processes_have_of_a_sum_is_saved_when_it_was_put_together)
{
    tutti_state *state;
    tutti_snapshot snapshot;
    tutti_state_sum sum = {.sum = eleven_times, .replicas = 4};
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    tutti__state_share(state, true);
    tutti_state_variable *added = make(state, "sum", false, 3, 4);
    tutti_state_variable *mean = make(state, "mean", true, 1, 2);
    CHECK(tutti__state_apart(state, false));
    CHECK_STATUS(tutti__snapshot_take(state, &snapshot), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "variable 'sum' is each process's own");
    CHECK_OK(tutti__state_join(state, false, &sum));
    CHECK_NEAR(copy_of(added, 0), 77, 0);
    CHECK_NEAR(copy_of(added, 1), 0, 0);
    CHECK_NEAR(copy_of(mean, 0), 33.0 / 4, 0);
    CHECK_NEAR(copy_of(mean, 1), 33.0 / 4, 0);
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    CHECK_NEAR(tutti_tensor_get(snapshot.entries[0].value, 0), 77, 0);
    CHECK_NEAR(tutti_tensor_get(snapshot.entries[1].value, 0), 33.0 / 4, 0);
    tutti__snapshot_release(&snapshot);
    make(state, "mean", true, 5, 6); /* a step later the others have something again */
    CHECK_STATUS(tutti__snapshot_take(state, &snapshot), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "variable 'mean' is each process's own");
    tutti__state_destroy(state);
}
