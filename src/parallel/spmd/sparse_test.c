/* sparse_test.c: gradients of embeddings under strategies: rows or tables, the same training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { WIDTH = 3, WORDS = 4, MOST_ROWS = 40 };

typedef struct trained {
    double loss;
    double table[MOST_ROWS * WIDTH];
    bool gathers; /* the step exchanges rows of the table's width */
    bool copies;  /* it copies the table, to be able to undo its update */
} trained;

/* Five steps on batches of 7 and 2 texts of 4 words, of which some are the same. */
static tutti_status train(tutti_strategy *s, int64_t rows, bool adam, trained *ret)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_grad grad;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 60));
    tutti_sym words = tutti_split_batch(tutti_placeholder(g, TUTTI_I64, TUTTI_ANY, WORDS));
    tutti_sym table =
        tutti_variable(g, tutti_glorot_uniform(rows, WIDTH), .name = "table", .seed = 3);
    tutti_sym loss = tutti_mean(tutti_square(tutti_add(tutti_gather(table, words, 0), -1)));
    tutti_gradients(loss, 1, &table, &grad);
    WORKER_EXPECT(tutti_sym_ok(grad.rows));
    tutti_sym step = tutti_apply_gradients(adam ? tutti_adam(.learning_rate = 0.1) : tutti_sgd(2.0),
                                           1, &table, &grad);
    TUTTI_TRY(tutti_run(session, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 5; i++) {
        int64_t dims[] = {i == 3 ? 2 : 7, WORDS};
        tutti_tensor *in, *out;
        TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 2, dims, &in));
        for (int64_t k = 0; k < dims[0] * WORDS; k++)
            tutti_tensor_set(in, k, (double)((k * k + i) % (rows - 1)));
        TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({words, in}),
                            .fetch = TUTTI_FETCH({loss, &out}), .target = step));
        ret->loss = tutti_tensor_get(out, 0);
        tutti_tensor_release(in);
        tutti_tensor_release(out);
    }
    tutti_tensor *value;
    char *text;
    TUTTI_TRY(tutti_session_get(session, table, &value));
    for (int64_t k = 0; k < rows * WIDTH; k++)
        ret->table[k] = tutti_tensor_get(value, k);
    tutti_tensor_release(value);
    TUTTI_TRY(tutti_session_print(session, &text));
    ret->gathers = ret->copies = false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        ret->gathers |= strstr(line, "all_gather") && strstr(line, "f32");
        ret->copies |= strstr(line, " copy") != NULL;
    }
    free(text);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

static tutti_status compare(tutti_strategy *s, int64_t rows, bool adam, bool gathers)
{
    trained one, other;
    TUTTI_TRY(tutti_strategy_check(s));
    TUTTI_TRY(train(NULL, rows, adam, &one));
    TUTTI_TRY(train(s, rows, adam, &other));
    WORKER_NEAR(other.loss, one.loss);
    for (int64_t k = 0; k < rows * WIDTH; k++)
        WORKER_NEAR(other.table[k], one.table[k]);
    WORKER_EXPECT(other.gathers == gathers);
    WORKER_EXPECT(!other.copies); /* what was looked up can be updated */
    return TUTTI_OK;
}

/* 28 or 8 words of a batch: twice a table of 3 rows is less than they are, one of 40 is not. */
static void check_ways(int64_t rows, const char *sparse, bool gathers)
{
    for (int adam = 0; adam < 2; adam++) {
        tutti_strategy *s =
            tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2", .sparse = sparse);
        CHECK_OK(compare(s, rows, adam, gathers));
        CHECK_OK(tutti_strategy_close(s));
    }
}

TUTTI_TEST(gradients_of_rows_are_gathered_or_dense)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    check_ways(5, "gather", true);
    check_ways(5, "dense", false);
    check_ways(40, "gather", true);
    check_ways(40, "dense", false);
}

TUTTI_TEST(gradients_of_rows_take_the_smaller_way)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    check_ways(3, NULL, false);
    check_ways(40, "auto", true);
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .sparse = "some");
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "auto, gather, dense");
    tutti_strategy_close(s);
}

static tutti_status of_workers(tutti_strategy *s, void *context)
{
    bool dense = strcmp(s->options.sparse, "dense") == 0;
    (void)context;
    return compare(s, 5, true, !dense);
}

TUTTI_TEST(workers_bring_rows_together)
{
    tutti_strategy_options options = {.struct_size = sizeof options, .sparse = "dense"};
    tutti__test_workers(2, &options, of_workers, NULL);
    options.sparse = "gather";
    tutti__test_workers(2, &options, of_workers, NULL);
}

/* The last word of the last replica's rows is not in the table: the replica that looks it up says
 * so, at once; none has updated anything, and the next step goes on. */
TUTTI_TEST(a_bad_word_of_one_replica_changes_no_table)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2", .sparse = "gather");
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *in, *before, *after;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 60));
    tutti_sym words = tutti_split_batch(tutti_placeholder(g, TUTTI_I64, TUTTI_ANY, WORDS));
    tutti_sym table = tutti_variable(g, tutti_glorot_uniform(MOST_ROWS, WIDTH), .name = "table");
    tutti_sym step = tutti_minimize(tutti_adam(.clip_norm = 1.0),
                                    tutti_mean(tutti_square(tutti_gather(table, words, 0))));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){6, WORDS}, &in));
    for (int64_t k = 0; k < 6 * WORDS; k++)
        tutti_tensor_set(in, k, (double)k);
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({words, in}), .target = step));
    CHECK_OK(tutti_session_get(session, table, &before));
    tutti_tensor_set(in, 6 * WORDS - 1, MOST_ROWS);
    int64_t start = tutti__now_ns();
    CHECK_STATUS(tutti_run(session, .feed = TUTTI_FEED({words, in}), .target = step),
                 TUTTI_OUT_OF_RANGE);
    CHECK(tutti__now_ns() - start < 10000000000);
    for (int replica = 0; replica < 3; replica++) {
        CHECK_OK(tutti_mirrored_get(session, table, replica, &after));
        for (int64_t k = 0; k < MOST_ROWS * WIDTH; k++)
            CHECK(tutti_tensor_get(after, k) == tutti_tensor_get(before, k));
        tutti_tensor_release(after);
    }
    tutti_tensor_set(in, 6 * WORDS - 1, 1);
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({words, in}), .target = step));
    CHECK_OK(tutti_mirrored_get(session, table, 2, &after));
    CHECK(tutti_tensor_get(after, WIDTH) != tutti_tensor_get(before, WIDTH));
    tutti_tensor_release(after);
    tutti_tensor_release(in);
    tutti_tensor_release(before);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_strategy_close(s));
}
