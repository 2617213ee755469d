/* rows_test.c: sparse pushes and pulls; tables whose rows exist where they were touched. */
#include <stdlib.h>

#include "graph/graph.h"
#include "service/store/testing.h"
#include "service/store/update_graph.h"
#include "tutti/ops_elementwise.h"
#include "tutti/ops_state.h"
#include "tutti/optimizer.h"

static tutti_status build_adagrad(void *context, const tutti_type *shard, void **ret_data,
                                  size_t *ret_size)
{
    tutti_graph *g = NULL;
    TUTTI_UNUSED(context);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym value = tutti_get_variable(
        g, "value", tutti_init_make(TUTTI_INIT_FULL, 0, 0, shard->rank, shard->dims),
        .dtype = shard->dtype);
    tutti_grad grad = {.value = (tutti_placeholder_named)(g, "gradient", *shard)};
    tutti_sym step = tutti_apply_gradients(tutti_adagrad(1), 1, &value, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(TUTTI_VEC_PUSH(&g->targets, step.node));
    tutti_status status = tutti_graph_serialize(g, ret_data, ret_size);
    tutti_graph_destroy(g);
    return status;
}

static tutti_tensor *rows_of(int64_t count, const int64_t *rows)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, &count, rows, &tensor));
    return tensor;
}

static tutti_tensor *ones(int64_t rows, int64_t columns)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &tensor));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(tensor, i, 1);
    return tensor;
}

static void push_ones(store_job *job, int worker, int table, int64_t count, const int64_t *rows)
{
    tutti_tensor *at = rows_of(count, rows), *gradient = ones(count, 2);
    CHECK_OK(tutti__store_worker_push_rows(job->worker[worker], table, at, gradient));
    tutti_tensor_release(at);
    tutti_tensor_release(gradient);
}

static double row_of(store_job *job, int worker, int table, int64_t row)
{
    tutti_tensor *at = rows_of(1, &row), *value = NULL;
    CHECK_OK(tutti__store_worker_pull_rows(job->worker[worker], table, at, &value));
    double x = tutti_tensor_get(value, 1);
    tutti_tensor_release(at);
    tutti_tensor_release(value);
    return x;
}

TUTTI_TEST(store_sums_duplicate_rows_and_takes_none)
{
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){5, 2}),
                                      .partitioner = "fixed_size(9)", /* more than rows */
                                      .rule = "plain"};
    tutti_tensor *value = NULL;
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int table = store_job_variable(&job, &spec, NULL);
    push_ones(&job, 0, table, 4, (int64_t[]){3, 1, 3, 3});
    push_ones(&job, 0, table, 0, NULL);
    CHECK_OK(tutti__store_worker_pull(job.worker[0], 1, &table, false, &value));
    static const double expected[] = {0, -1, 0, -3, 0};
    for (int i = 0; i < 5; i++)
        CHECK(tutti_tensor_get(value, 2 * i) == expected[i]);
    tutti_tensor_release(value);
    tutti_tensor *outside = rows_of(1, (int64_t[]){5});
    CHECK_STATUS(tutti__store_worker_pull_rows(job.worker[0], table, outside, &value),
                 TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "variable 'table' is f32[5,2] and has no row 5");
    tutti_tensor_release(outside);
    store_job_close(&job);
}

TUTTI_TEST(store_sync_means_rows_over_all_workers)
{
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){4, 2}),
                                      .consistency = "sync",
                                      .build = build_adagrad};
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int table = store_job_variable(&job, &spec, NULL);
    push_ones(&job, 0, table, 2, (int64_t[]){0, 1});
    push_ones(&job, 1, table, 2, (int64_t[]){1, 2});
    /* mean gradients 1/2, 1, 1/2, 0; Adagrad: w = -g / sqrt(0.1 + g^2) */
    CHECK_NEAR(row_of(&job, 0, table, 0), -0.5 / 0.591608, 1e-5);
    CHECK_NEAR(row_of(&job, 1, table, 1), -1 / 1.048809, 1e-5);
    CHECK_NEAR(row_of(&job, 1, table, 3), 0, 0);
    store_job_close(&job);
}

/* Gradient descent with momentum that moves only the rows of a push. */
static tutti_status build_rows(void *context, const tutti_type *shard, void **ret_data,
                               size_t *ret_size)
{
    tutti_graph *g = NULL;
    TUTTI_UNUSED(context);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym value = tutti_get_variable(
        g, "value", tutti_init_make(TUTTI_INIT_FULL, 0, 0, shard->rank, shard->dims));
    tutti_grad grad = {.value = tutti_placeholder_named(g, "rows", TUTTI_F32, TUTTI_ANY, 2),
                       .rows = tutti_placeholder_named(g, "indices", TUTTI_I64, TUTTI_ANY)};
    tutti_sym step = tutti_apply_gradients(tutti_sgd(1, .momentum = 0.9), 1, &value, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(TUTTI_VEC_PUSH(&g->targets, step.node));
    tutti_status status = tutti_graph_serialize(g, ret_data, ret_size);
    tutti_graph_destroy(g);
    return status;
}

TUTTI_TEST(store_rule_that_takes_rows_lets_others_rest)
{
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){4, 2}),
                                      .build = build_rows};
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 1});
    int table = store_job_variable(&job, &spec, NULL);
    push_ones(&job, 0, table, 2, (int64_t[]){2, 1});
    push_ones(&job, 0, table, 1, (int64_t[]){1});
    CHECK_NEAR(row_of(&job, 0, table, 0), 0, 0);
    CHECK_NEAR(row_of(&job, 0, table, 1), -2.9, 1e-6); /* its momentum went on */
    CHECK_NEAR(row_of(&job, 0, table, 2), -1, 1e-6);   /* the other's rests */
    store_job_close(&job);
}

/* A table of 10^15 rows, and one of keys without bound: memory is what was touched. */
static void check_hashed(int64_t rows, const char *partitioner)
{
    enum { TOUCHED = 40 }; /* more than one block */
    static const int64_t most = INT64_C(999999999999999);
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){rows, 2}),
                                      .partitioner = partitioner,
                                      .pieces = 3,
                                      .rule = "hashed",
                                      .initial = "constant:0.25",
                                      .build = build_adagrad};
    int64_t keys[TOUCHED];
    int64_t bytes = 0;
    for (int i = 0; i < TOUCHED; i++)
        keys[i] = most - i * INT64_C(24999999999999);
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int table = store_job_variable(&job, &spec, NULL);
    CHECK_INT(tutti__store_worker_shards(job.worker[0], table), 3);
    CHECK(row_of(&job, 0, table, most) == 0.25);
    push_ones(&job, 0, table, TOUCHED, keys);
    push_ones(&job, 0, table, 1, &most);
    double once = 0.25 - 1 / 1.048809, twice = once - 1 / 1.449138;
    CHECK_NEAR(row_of(&job, 0, table, most), twice, 1e-5);
    for (int i = 1; i < TOUCHED; i++)
        CHECK_NEAR(row_of(&job, 0, table, keys[i]), once, 1e-5);
    CHECK(row_of(&job, 0, table, 12345) == 0.25);
    for (int s = 0; s < 2; s++)
        bytes += tutti__store_server_bytes(tutti__store_local_server(job.local, s));
    CHECK(bytes < 16384);
    store_job_close(&job);
}

TUTTI_TEST(store_table_of_10_15_rows_exists_where_it_is_touched)
{
    check_hashed(INT64_C(1000000000000000), "fixed_size(3)");
}

TUTTI_TEST(store_table_of_keys_without_bound)
{
    check_hashed(TUTTI_ANY, NULL);
}

TUTTI_TEST(store_hashed_table_goes_on_with_its_replica)
{
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type =
                                          tutti_type_make(TUTTI_F32, 2, (int64_t[]){TUTTI_ANY, 2}),
                                      .rule = "hashed",
                                      .initial = "normal:0.1",
                                      .build = build_adagrad};
    store_job_open(&job,
                   &(tutti_store_local_options){.servers = 3, .workers = 1, .replicas = true});
    int table = store_job_variable(&job, &spec, NULL);
    double first = row_of(&job, 0, table, 77);
    push_ones(&job, 0, table, 3, (int64_t[]){77, 5, 77});
    double before = row_of(&job, 0, table, 77), untouched = row_of(&job, 0, table, 6);
    CHECK(first != 0 && before != first);
    CHECK_OK(tutti__store_local_kill_server(job.local, 0));
    CHECK(row_of(&job, 0, table, 77) == before);
    CHECK(row_of(&job, 0, table, 6) == untouched);
    CHECK_OK(tutti__store_local_kill_server(job.local, 1)); /* by then a new replica is complete */
    CHECK(row_of(&job, 0, table, 77) == before);
    push_ones(&job, 0, table, 1, (int64_t[]){77});
    CHECK(row_of(&job, 0, table, 77) < before);
    store_job_close(&job);
}

/* ---- rules of shards, cut out of the whole variable's ---- */

typedef struct whole_rule {
    tutti_type type;
    tutti_packed_data bytes;
    int64_t begin; /* of the next shard */
} whole_rule;

/* Gradient descent with momentum whose slot begins with 0, 1, 2, … in its rows. */
static void build_whole(whole_rule *w, bool rows)
{
    tutti_graph *g = NULL;
    tutti_tensor *first = NULL;
    void *data;
    size_t size;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, w->type.dims, &first));
    for (int64_t i = 0; i < tutti_tensor_count(first); i++)
        tutti_tensor_set(first, i, (double)(i / 2));
    tutti_sym value = tutti_variable(g, tutti_zeros(10, 2), .name = "value");
    tutti_sym slot =
        tutti_variable(g, rows ? tutti_zeros(10, 2) : tutti_tensor_init(first), .name = "slot");
    tutti_sym gradient =
        rows ? (tutti_placeholder_named)(g, "rows",
                                         tutti_type_make(TUTTI_F32, 2, (int64_t[]){TUTTI_ANY, 2}))
             : (tutti_placeholder_named)(g, "gradient", w->type);
    tutti_sym rate = tutti_variable(g, tutti_full(1.0), .name = "learning_rate");
    tutti_sym step;
    if (rows) {
        tutti_sym at =
            (tutti_placeholder_named)(g, "indices",
                                      tutti_type_make(TUTTI_I64, 1, (int64_t[]){TUTTI_ANY}));
        step = tutti_sgd_update_rows(value, at, gradient, rate);
    } else {
        step = tutti_sgd_update(value, tutti_add(gradient, slot), rate);
    }
    CHECK_OK(tutti_graph_check(g));
    CHECK(TUTTI_VEC_PUSH(&g->targets, step.node));
    CHECK_OK(tutti_graph_serialize(g, &data, &size));
    w->bytes = (tutti_packed_data){data, size};
    tutti_graph_destroy(g);
    tutti_tensor_release(first);
}

static tutti_status build_part(void *context, const tutti_type *shard, void **ret_data,
                               size_t *ret_size)
{
    whole_rule *w = context;
    tutti_status status =
        tutti__store_update_graph_cut(w->bytes, &w->type, shard, 0, w->begin, ret_data, ret_size);
    w->begin += shard->dims[0];
    return status;
}

TUTTI_TEST(store_cuts_the_rule_of_the_whole)
{
    store_job job;
    whole_rule w = {.type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){10, 2})};
    tutti_store_variable_spec spec = {.name = "w",
                                      .type = w.type,
                                      .partitioner = "fixed_size(3)",
                                      .build = build_part,
                                      .context = &w};
    tutti_tensor *gradient = ones(10, 2), *value = NULL;
    build_whole(&w, false);
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int v = store_job_variable(&job, &spec, NULL);
    CHECK_OK(tutti__store_worker_push(job.worker[0], 1, &v, &gradient, false, NULL));
    CHECK_OK(tutti__store_worker_pull(job.worker[0], 1, &v, false, &value));
    for (int row = 0; row < 10; row++)
        CHECK(tutti_tensor_get(value, 2 * row) == -1 - row);
    tutti_tensor_release(value);
    tutti_tensor_release(gradient);
    free((void *)(uintptr_t)w.bytes.bytes);
    store_job_close(&job);
}

TUTTI_TEST(store_hashed_tables_take_rules_of_rows)
{
    store_job job;
    whole_rule w = {.type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){10, 2})};
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = w.type,
                                      .partitioner = "fixed_size(2)",
                                      .rule = "hashed",
                                      .initial = "constant:2",
                                      .build = build_part,
                                      .context = &w};
    build_whole(&w, true);
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int table = store_job_variable(&job, &spec, NULL);
    push_ones(&job, 0, table, 3, (int64_t[]){7, 1, 7});
    CHECK(row_of(&job, 0, table, 7) == 0);
    CHECK(row_of(&job, 0, table, 1) == 1);
    CHECK(row_of(&job, 0, table, 8) == 2);
    free((void *)(uintptr_t)w.bytes.bytes);
    store_job_close(&job);
}
