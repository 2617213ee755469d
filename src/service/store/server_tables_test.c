/* server_tables_test.c: variables that are cut over servers, and tables of which only some rows are
 * read and moved, through the graph API under the strategy parameter_server. */
#include <stdlib.h>

#include "base/test.h"
#include "graph/graph.h"
#include "tutti/tutti.h"

typedef struct table_graph {
    tutti_graph *graph;
    tutti_sym table, dense, ids, loss, step;
} table_graph;

static void in_three(const tutti_type *type, int64_t ret_pieces[TUTTI_MAX_RANK])
{
    for (int d = 0; d < type->rank; d++)
        ret_pieces[d] = d == 0 ? 3 : 1;
}

/* loss = sum (table[ids] . dense): the table's gradient is rows. */
static void graph_open(table_graph *t, int64_t rows, tutti_optimizer optimizer)
{
    CHECK_OK(tutti_graph_create(&t->graph));
    t->ids = tutti_placeholder(t->graph, TUTTI_I64, 4);
    t->table = tutti_get_variable(t->graph, "table", tutti_full(0.5, rows, 2),
                                  .partition = "fixed_size(4)");
    t->dense = tutti_get_variable(t->graph, "dense", tutti_ones(5, 2), .partitioner = in_three);
    tutti_sym found = tutti_gather(t->table, t->ids, 0);
    t->loss =
        tutti_add(tutti_sum(tutti_mul(found, found)), tutti_sum(tutti_mul(t->dense, t->dense)));
    t->step = tutti_minimize(optimizer, t->loss);
    CHECK_OK(tutti_graph_check(t->graph));
}

static const int64_t steps_of_ids[3][4] = {{7, 1, 7, 3}, {0, 0, 0, 8}, {1, 3, 5, 7}};

/* Three steps; the losses, and a row afterwards. */
static void train(int64_t rows, int64_t far, tutti_optimizer optimizer, tutti_strategy *s,
                  double losses[3], double row[2])
{
    table_graph t;
    tutti_session *session = NULL;
    graph_open(&t, rows, optimizer);
    CHECK_OK(tutti_session_open(&session, t.graph, .strategy = s));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(t.graph)));
    for (int i = 0; i < 3; i++) {
        tutti_tensor *ids = NULL, *loss = NULL;
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){4}, &ids));
        for (int j = 0; j < 4; j++)
            tutti_tensor_set_int(ids, j, steps_of_ids[i][j] + far);
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({t.ids, ids}),
                           .fetch = TUTTI_FETCH({t.loss, &loss}), .target = t.step));
        losses[i] = tutti_tensor_get(loss, 0);
        tutti_tensor_release(loss);
        tutti_tensor_release(ids);
    }
    tutti_sym one = tutti_ints(t.graph, far + 7);
    tutti_tensor *value = NULL;
    CHECK_OK(tutti_run(session, .fetch = TUTTI_FETCH({tutti_gather(t.table, one, 0), &value})));
    row[0] = tutti_tensor_get(value, 0);
    row[1] = tutti_tensor_get(value, 1);
    tutti_tensor_release(value);
    tutti_session_close(session);
    tutti_graph_destroy(t.graph);
}

static void compare(int64_t rows, int64_t far, tutti_optimizer optimizer)
{
    double here[3], there[3], row[2], row_there[2];
    tutti_strategy *servers = tutti_strategy_parameter_server();
    CHECK_OK(tutti_strategy_check(servers));
    train(10, 0, optimizer, NULL, here, row);
    train(rows, far, optimizer, servers, there, row_there);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(here[i], there[i], 1e-5);
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(row[i], row_there[i], 1e-6);
    tutti_strategy_close(servers);
}

TUTTI_TEST(server_tables_are_cut_and_trained_as_on_one_device)
{
    compare(10, 0, tutti_sgd(0.1));
    compare(10, 0, tutti_adagrad(0.1));
}

TUTTI_TEST(server_tables_of_many_rows_exist_where_they_are_touched)
{
    compare(INT64_C(1000000000000000), INT64_C(987654321098700), tutti_sgd(0.1));
    compare(INT64_C(1000000000000000), INT64_C(987654321098700), tutti_adagrad(0.1));
}
