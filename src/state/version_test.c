/* version_test.c: commits are counted, and a version moves from one state to another as a whole. */
#include "base/test.h"
#include "state/state.h"

static tutti_piece *version_make(tutti_state *state, const char *name, const char *device)
{
    tutti_state_variable *variable;
    tutti_piece *piece;
    tutti_type type = {.dtype = TUTTI_F32, .rank = 1, .dims = {2}};
    CHECK_OK(tutti__state_variable(state, name, &type, NULL, true, &variable));
    CHECK_OK(tutti__state_piece(state, variable, device, tutti__host_memory(), &piece));
    return piece;
}

static void version_write(tutti_state *state, tutti_piece *piece, double value)
{
    tutti_tensor *to;
    tutti__state_commit_begin(state);
    CHECK_OK(tutti__piece_write(state, piece, false, &to));
    tutti_tensor_set(to, 0, value);
    tutti_tensor_set(to, 1, -value);
    tutti__state_count(state);
    tutti__state_commit_end(state);
}

TUTTI_TEST(version_moves_as_a_whole)
{
    tutti_state *from, *to;
    tutti_version_values values;
    CHECK_OK(tutti__state_create(&from));
    CHECK_OK(tutti__state_create(&to));
    tutti__state_mirror(to, true);
    tutti_piece *a = version_make(from, "a", "cpu:0"), *own = version_make(from, "own", "cpu:0");
    tutti_piece *near = version_make(to, "a", "cpu:0"), *far = version_make(to, "a", "cpu:1");
    own->variable->partial = true; /* each process has its own part */
    version_write(from, a, 1);
    version_write(from, own, 5);
    version_write(from, a, 2);
    version_write(to, near, 1);
    version_write(to, far, 1);
    CHECK_INT(tutti__state_version(from), 3);
    tutti_tensor *held = tutti__piece_acquire(to, near);
    CHECK_OK(tutti__version_take(from, &values));
    CHECK_INT(values.count, 1);
    values.list[0].variable = near->variable;
    CHECK_OK(tutti__version_put(to, &values));
    tutti__version_release(&values);
    CHECK_INT(tutti__state_version(to), 3);
    CHECK_NEAR(tutti_tensor_get(near->value, 0), 2, 0);
    CHECK_NEAR(tutti_tensor_get(far->value, 1), -2, 0);
    CHECK_NEAR(tutti_tensor_get(held, 0), 1, 0); /* a reader keeps what it took */
    tutti_tensor_release(held);
    tutti__state_destroy(from);
    tutti__state_destroy(to);
}
