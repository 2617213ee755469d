/* state_test.c: variables, pieces, snapshots and commits. */
#include "state/state.h"

#include "base/test.h"

static tutti_piece *make(tutti_state *state, const char *name, int64_t count)
{
    tutti_state_variable *variable;
    tutti_piece *piece;
    tutti_type type = {.dtype = TUTTI_F32, .rank = 1, .dims = {count}};
    CHECK_OK(tutti__state_variable(state, name, &type, NULL, true, &variable));
    CHECK_OK(tutti__state_piece(state, variable, "cpu:0", tutti__host_memory(), &piece));
    return piece;
}

static tutti_tensor *write(tutti_state *state, tutti_piece *piece, bool keep, double value)
{
    tutti_tensor *to;
    tutti__state_commit_begin(state);
    CHECK_OK(tutti__piece_write(state, piece, keep, &to));
    tutti_tensor_set(to, 0, value);
    tutti__state_commit_end(state);
    return to;
}

TUTTI_TEST(state_writes_in_place_unless_somebody_holds_the_value)
{
    tutti_state *state;
    CHECK_OK(tutti__state_create(&state));
    tutti_piece *piece = make(state, "v", 2);
    CHECK(tutti__piece_acquire(state, piece) == NULL);
    tutti_tensor *first = write(state, piece, false, 1);
    tutti_tensor_set(first, 1, 7);
    CHECK(write(state, piece, true, 2) == first);
    tutti_tensor *held = tutti__piece_acquire(state, piece);
    tutti_tensor *second = write(state, piece, true, 3);
    CHECK(second != first);
    CHECK_NEAR(tutti_tensor_get(held, 0), 2, 0); /* the snapshot stays as it was */
    CHECK_NEAR(tutti_tensor_get(second, 1), 7, 0);
    tutti_tensor_release(held);
    CHECK(write(state, piece, true, 4) == second);
    CHECK_INT(piece->variable->version, 4);
    tutti__state_destroy(state);
}

/* Another process's elements, as often as they are asked for; `late` times a step comes between. */
typedef struct peers {
    int asked, late;
    bool gone;
} peers;

static tutti_status fetch(void *context, const tutti_state_variable *variable,
                          const tutti_own_part *owned, uint64_t stamp, float *ret_elements,
                          tutti_own_range *ret_own, bool *ret_done)
{
    peers *o = context;
    CHECK_INT(owned->part, 1);
    CHECK_INT(stamp, 1);
    *ret_own = (tutti_own_range){2, 3};
    if (o->gone)
        return tutti_fail(TUTTI_CLOSED, "%s: nobody is there", variable->name);
    for (int i = 0; i < 4; i++)
        ret_elements[i] = (float)(10 + i);
    *ret_done = ++o->asked > o->late;
    return TUTTI_OK;
}

TUTTI_TEST(state_asks_others_for_what_they_updated)
{
    tutti_state *state;
    tutti_tensor *value;
    tutti_snapshot snapshot;
    peers others = {.late = 2};
    CHECK_OK(tutti__state_create(&state));
    tutti_piece *piece = make(state, "m", 4);
    write(state, piece, false, 1);
    tutti_state_variable *variable = piece->variable;
    tutti__state_commit_begin(state);
    tutti__piece_own(state, piece, &(tutti_own_part){.bucket = 64, .part = 1, .parts = 2});
    CHECK_OK(tutti__piece_write(state, piece, true, &value));
    for (int i = 0; i < 4; i++)
        tutti_tensor_set(value, i, i);
    variable->held = TUTTI_HELD_IN_PARTS;
    tutti__state_commit_end(state);
    CHECK_STATUS(tutti__variable_get(state, variable, &value), TUTTI_CLOSED);
    tutti__state_set_fetch(state, &(tutti_state_fetch){fetch, &others});
    others.gone = true;
    CHECK_STATUS(tutti__snapshot_take(state, &snapshot), TUTTI_CLOSED);
    others.gone = false;
    CHECK_OK(tutti__state_claim(state, 1, &variable, TUTTI_NO_DEADLINE)); /* no reason to wait */
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    tutti__state_unclaim(state, 1, &variable);
    CHECK_INT(others.asked, 3);
    CHECK_OK(tutti__variable_get(state, variable, &value)); /* it is whole now */
    CHECK_INT(others.asked, 3);
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(tutti_tensor_get(value, i), i == 2 ? 2 : 10 + i, 0);
        CHECK_NEAR(tutti_tensor_get(snapshot.entries[0].value, i), i == 2 ? 2 : 10 + i, 0);
    }
    tutti__snapshot_release(&snapshot);
    variable->held = TUTTI_HELD_TORN;
    tutti_tensor *none;
    CHECK_STATUS(tutti__variable_get(state, variable, &none), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "checkpoint");
    CHECK_OK(tutti__variable_set(state, variable, value)); /* as a checkpoint does */
    tutti_tensor_release(value);
    CHECK_OK(tutti__variable_get(state, variable, &value));
    tutti_tensor_release(value);
    tutti__state_destroy(state);
}

/* What others get: bytes of a step that all have made, or nothing. */
TUTTI_TEST(state_gives_its_part_as_of_a_step)
{
    tutti_state *state;
    float two[2];
    bool found;
    CHECK_OK(tutti__state_create(&state));
    tutti_piece *piece = make(state, "m", 4);
    tutti_tensor *value = write(state, piece, false, 1);
    uint64_t name = tutti__hash_string(0, "m");
    for (int i = 0; i < 4; i++)
        tutti_tensor_set(value, i, i);
    CHECK(!tutti__variable_give(state, name, 0, 0, 8, two, &found) && !found);
    tutti__state_commit_begin(state);
    tutti__piece_own(state, piece, &(tutti_own_part){.bucket = 64, .part = 1, .parts = 2});
    tutti__state_commit_end(state);
    CHECK(tutti__variable_give(state, name, 1, 8, 8, two, &found) && found);
    CHECK_NEAR(two[0], 2, 0);
    CHECK_NEAR(two[1], 3, 0);
    CHECK(!tutti__variable_give(state, name, 2, 8, 8, two, &found) && found);
    CHECK(!tutti__variable_give(state, name, 1, 12, 8, two, &found) && found);
    CHECK(!tutti__variable_give(state, name + 1, 1, 0, 8, two, &found) && !found);
    tutti__state_destroy(state);
}

TUTTI_TEST(state_says_what_does_not_fit)
{
    tutti_state *state;
    tutti_state_variable *variable;
    tutti_tensor *value;
    CHECK_OK(tutti__state_create(&state));
    tutti_piece *piece = make(state, "weights", 2);
    CHECK(make(state, "weights", 2) == piece);
    tutti_type other = {.dtype = TUTTI_F32, .rank = 1, .dims = {3}};
    CHECK_STATUS(tutti__state_variable(state, "weights", &other, NULL, true, &variable),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "f32[2]");
    CHECK_CONTAINS(tutti_error_message(), "f32[3]");
    CHECK_STATUS(tutti__variable_get(state, piece->variable, &value), TUTTI_UNINITIALIZED);
    CHECK_CONTAINS(tutti_error_message(), "weights");
    tutti__state_commit_begin(state);
    CHECK_STATUS(tutti__piece_write(state, piece, true, &value), TUTTI_UNINITIALIZED);
    tutti__state_commit_end(state);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){3}, &value));
    CHECK_STATUS(tutti__variable_set(state, piece->variable, value), TUTTI_INVALID);
    tutti_tensor_release(value);
    tutti__state_destroy(state);
}

TUTTI_TEST(state_gives_the_piece_that_has_a_value_and_sets_all)
{
    tutti_state *state;
    tutti_piece *second;
    tutti_tensor *value, *copy;
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    tutti_piece *first = make(state, "v", 1);
    CHECK_OK(tutti__state_piece(state, first->variable, "cpu:1", tutti__host_memory(), &second));
    write(state, second, false, 5);
    CHECK_OK(tutti__variable_get(state, first->variable, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 5, 0);
    tutti_tensor_set(value, 0, 6);
    CHECK_OK(tutti__variable_set(state, first->variable, value));
    CHECK_NEAR(tutti_tensor_get(first->value, 0), 6, 0);
    CHECK_NEAR(tutti_tensor_get(second->value, 0), 6, 0);
    CHECK_OK(tutti__variable_get(state, first->variable, &copy));
    CHECK(tutti_tensor_data(copy) != tutti_tensor_data(first->value));
    CHECK(tutti__state_at(state, 0) == first->variable && tutti__state_at(state, 1) == NULL);
    tutti_tensor_release(value);
    tutti_tensor_release(copy);
    tutti__state_destroy(state);
}

TUTTI_TEST(state_has_a_variable_on_one_device_unless_it_is_mirrored)
{
    tutti_state *state;
    tutti_piece *again = NULL;
    CHECK_OK(tutti__state_create(&state));
    tutti_piece *first = make(state, "v", 1);
    CHECK_STATUS(tutti__state_piece(state, first->variable, "cpu:1", tutti__host_memory(), &again),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'v' lies on cpu:0 and is wanted on cpu:1 too");
    CHECK_OK(tutti__state_piece(state, first->variable, "cpu:0", tutti__host_memory(), &again));
    CHECK(again == first && first->variable->pieces.count == 1);
    tutti__state_mirror(state, true);
    CHECK_OK(tutti__state_piece(state, first->variable, "cpu:1", tutti__host_memory(), &again));
    CHECK_INT(first->variable->pieces.count, 2);
    tutti__state_destroy(state);
}

/* One tensor for both, until somebody writes for one of them; never one that others hold. */
TUTTI_TEST(state_pieces_share_a_tensor_until_one_is_written)
{
    tutti_state *state;
    tutti_piece *both[2];
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    both[0] = make(state, "v", 1);
    CHECK_OK(tutti__state_piece(state, both[0]->variable, "cpu:1", tutti__host_memory(), &both[1]));
    tutti__state_commit_begin(state);
    CHECK_STATUS(tutti__pieces_share(state, 2, both), TUTTI_UNINITIALIZED);
    tutti__state_commit_end(state);
    write(state, both[0], false, 1);
    write(state, both[1], false, 1);
    CHECK(both[0]->value != both[1]->value);
    tutti_tensor *first = both[0]->value;
    tutti__state_commit_begin(state);
    CHECK_OK(tutti__pieces_share(state, 2, both));
    CHECK(both[0]->value == first && both[1]->value == first);
    tutti_tensor_set(first, 0, 2);
    tutti__state_commit_end(state);
    tutti_tensor *held = tutti__piece_acquire(state, both[1]);
    tutti__state_commit_begin(state);
    CHECK_OK(tutti__pieces_share(state, 2, both));
    CHECK(both[0]->value != held && both[1]->value == both[0]->value);
    tutti_tensor_set(both[0]->value, 0, 3);
    tutti__state_commit_end(state);
    CHECK_NEAR(tutti_tensor_get(held, 0), 2, 0);
    tutti_tensor_release(held);
    write(state, both[0], true, 4);
    CHECK_NEAR(tutti_tensor_get(both[0]->value, 0), 4, 0);
    CHECK_NEAR(tutti_tensor_get(both[1]->value, 0), 3, 0);
    tutti__state_destroy(state);
}
