/* fed_rows_test.c: a device that reads some rows of what is fed is fed these, and nothing is
 * copied. */
#include "exec/plan/fed_rows.h"

#include <string.h>

#include "passes/testing.h"
#include "tutti/tutti.h"

enum { ROWS = 10, COLUMNS = 3 };

/* Rows that are taken of the only parameter, and how many slices are left. */
typedef struct found {
    tutti_fed_rows rows;
    int slices;
    int64_t fed; /* rows of the parameter */
} found;

static found look(tutti_graph *g)
{
    int count;
    tutti_piece_graph *pieces;
    found f = {0};
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__graph_prune(g));
    CHECK_OK(tutti__place(g, "cpu:0"));
    CHECK_OK(tutti__partition(g, &count, &pieces));
    CHECK_INT(count, 1);
    CHECK_OK(tutti__fed_rows_find(&pieces[0]));
    CHECK_OK(tutti_graph_verify(pieces[0].graph));
    f.rows = pieces[0].rows[0];
    for (size_t n = 0; n < pieces[0].graph->nodes.count; n++) {
        const tutti_node *node = pieces[0].graph->nodes.data[n];
        f.slices += tutti__is(node, "slice");
        if (tutti__is(node, "parameter"))
            f.fed = node->types[0].dims[0];
    }
    tutti__partition_free(count, pieces);
    tutti_graph_destroy(g);
    return f;
}

static tutti_sym input(tutti_graph *g)
{
    return tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, ROWS, COLUMNS));
}

static void check_whole(tutti_graph *g, int slices)
{
    found f = look(g);
    CHECK_INT(f.rows.count, 0);
    CHECK_INT(f.fed, ROWS);
    CHECK_INT(f.slices, slices);
}

TUTTI_TEST(rows_side_by_side_are_fed)
{
    tutti_graph *g = tutti__test_graph();
    tutti__test_result(
        tutti_exp(tutti_slice(input(g), .begin = TUTTI_INDEX(4), .end = TUTTI_INDEX(7))));
    found f = look(g);
    CHECK_INT(f.rows.first, 4);
    CHECK_INT(f.rows.count, 3);
    CHECK_INT(f.fed, 3);
    CHECK_INT(f.slices, 0);
}

TUTTI_TEST(what_is_not_rows_side_by_side_is_sliced)
{
    tutti_graph *g = tutti__test_graph();
    tutti__test_result(tutti_slice(input(g), .begin = TUTTI_INDEX(4, 1), .end = TUTTI_INDEX(7, 3)));
    check_whole(g, 1);
    g = tutti__test_graph();
    tutti__test_result(tutti_slice(input(g), .begin = TUTTI_INDEX(0), .end = TUTTI_INDEX(8),
                                   .step = TUTTI_INDEX(2)));
    check_whole(g, 1);
    g = tutti__test_graph();
    tutti__test_result(tutti_slice(input(g), .begin = TUTTI_INDEX(4), .end = TUTTI_INDEX(4)));
    check_whole(g, 1);
}

TUTTI_TEST(a_value_that_others_read_is_fed_whole)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = input(g);
    tutti__test_result(tutti_slice(x, .begin = TUTTI_INDEX(0), .end = TUTTI_INDEX(5)));
    tutti__test_result(tutti_slice(x, .begin = TUTTI_INDEX(5), .end = TUTTI_INDEX(9)));
    check_whole(g, 2);
    g = tutti__test_graph();
    x = input(g);
    tutti__test_result(tutti_slice(x, .begin = TUTTI_INDEX(0), .end = TUTTI_INDEX(5)));
    tutti__test_result(x);
    check_whole(g, 1);
}

static void check_values(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed, *taken, *twice;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, COLUMNS}, &fed));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        tutti_tensor_set(fed, i, i);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, COLUMNS);
    tutti_sym rows = tutti_slice(x, .begin = TUTTI_INDEX(3), .end = TUTTI_INDEX(8)),
              doubled = tutti_mul(rows, 2);
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}),
                       .fetch = TUTTI_FETCH({rows, &taken}, {doubled, &twice})));
    CHECK_INT(tutti_tensor_dims(taken)[0], 5);
    tutti_tensor_set(fed, 3 * COLUMNS, -1); /* what was fetched is the caller's own */
    for (int i = 0; i < 5 * COLUMNS; i++) {
        CHECK_NEAR(tutti_tensor_get(taken, i), 3 * COLUMNS + i, 0);
        CHECK_NEAR(tutti_tensor_get(twice, i), 2 * (3 * COLUMNS + i), 0);
    }
    tutti_tensor_release(fed);
    tutti_tensor_release(taken);
    tutti_tensor_release(twice);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(rows_that_are_fed_have_their_values)
{
    check_values("cpu:0");
    check_values("far:0");
    check_values("whole:0");
}
