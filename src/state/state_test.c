/* state_test.c: variables, pieces, snapshots and commits. */
#include "state/state.h"

#include "base/test.h"

#include <stdio.h>

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

/* Two devices hold half of a variable's columns each. */
static tutti_piece *make_half(tutti_state *state, tutti_state_variable *variable, int half,
                              bool first)
{
    char device[16];
    tutti_piece *piece;
    tutti_piece_box box = {.box = tutti__box_whole(&variable->type), .first = first, .local = 2};
    box.box.offset[1] = half * 2;
    box.box.dims[1] = half ? variable->type.dims[1] - 2 : 2;
    snprintf(device, sizeof device, "cpu:%d", half);
    CHECK_OK(tutti__state_piece_box(state, variable, &box, device, tutti__host_memory(), &piece));
    return piece;
}

TUTTI_TEST(state_pieces_are_boxes_of_a_variable)
{
    tutti_state *state;
    tutti_state_variable *variable;
    tutti_tensor *value, *got;
    tutti_snapshot snapshot;
    tutti_type type = {.dtype = TUTTI_F32, .rank = 2, .dims = {2, 5}};
    CHECK_OK(tutti__state_create(&state));
    tutti__state_mirror(state, true);
    CHECK_OK(tutti__tensor_in(tutti__host_memory(), &type, &value));
    for (int64_t i = 0; i < 10; i++)
        tutti_tensor_set(value, i, (double)i);
    CHECK_OK(tutti__state_expect(state, "w", value));
    CHECK_OK(tutti__state_variable(state, "w", &type, NULL, true, &variable));
    tutti_piece *left = make_half(state, variable, 0, true);
    CHECK(!tutti__variable_local(state, variable));
    CHECK_STATUS(tutti__variable_get(state, variable, &got), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "holds 4 of 10 elements");
    tutti_piece *right = make_half(state, variable, 1, true);
    CHECK_NEAR(tutti_tensor_get(left->value, 3), 6, 0);
    CHECK_NEAR(tutti_tensor_get(right->value, 5), 9, 0);
    CHECK(tutti__state_expected(state, "w") == NULL);
    for (int64_t i = 0; i < 10; i++)
        tutti_tensor_set(value, i, (double)(10 * i));
    CHECK_OK(tutti__variable_set(state, variable, value));
    CHECK_OK(tutti__variable_get(state, variable, &got));
    for (int64_t i = 0; i < 10; i++)
        CHECK_NEAR(tutti_tensor_get(got, i), 10.0 * (double)i, 0);
    CHECK_OK(tutti__snapshot_take(state, &snapshot));
    CHECK_INT(snapshot.count, 2);
    CHECK_INT(snapshot.entries[1].box.offset[1], 2);
    tutti__snapshot_release(&snapshot);
    tutti_piece *whole;
    CHECK_STATUS(tutti__state_piece(state, variable, "cpu:0", tutti__host_memory(), &whole),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "holds the box [0:2, 0:2]");
    tutti_tensor_release(got);
    tutti_tensor_release(value);
    tutti__state_destroy(state);
}
