/* workers_test.c: what users of strategies rely on, in jobs of several processes. */
#include "parallel/strategies/workers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "comm/group/testing.h"
#include "tutti/tutti.h"

enum { MOST = 8 };

static tutti_status as_worker(int rank, const char *workers, const tutti_strategy_options *given,
                              tutti_worker_work *work, void *context)
{
    tutti_cluster *cluster;
    tutti_strategy_options options = {.struct_size = sizeof options};
    if (given)
        options = *given;
    TUTTI_TRY(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .role = "worker", .index = rank),
        &cluster));
    options.cluster = cluster;
    options.timeout = 60;
    TUTTI_TRY(tutti__param_set("THREADS", "1"));
    tutti_strategy *strategy = tutti_strategy_create(
        options.micro_batches > 0 ? "pipeline" : "multi_worker_mirrored", &options);
    TUTTI_TRY(tutti_strategy_check(strategy));
    tutti_status status = work(strategy, context);
    if (status != TUTTI_OK)
        return status;
    status = tutti_strategy_close(strategy);
    tutti_cluster_free(cluster);
    return status;
}

void tutti__test_workers(int count, const tutti_strategy_options *options, tutti_worker_work *work,
                         void *context)
{
    tutti__test_workers_but(count, -1, options, work, context);
}

void tutti__test_workers_but(int count, int lost, const tutti_strategy_options *options,
                             tutti_worker_work *work, void *context)
{
    char workers[32 * MOST];
    pid_t children[MOST];
    bool good = true;
    tutti__test_addresses(count, workers, sizeof workers);
    for (int rank = 0; rank < count; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        tutti_status status = as_worker(rank, workers, options, work, context);
        if (status != TUTTI_OK)
            fprintf(stderr, "worker %d: %s\n", rank, tutti_error_message());
        _exit(status != TUTTI_OK);
    }
    for (int rank = 0; rank < count; rank++) {
        int ending = -1;
        waitpid(children[rank], &ending, 0);
        good &= rank == lost ? WIFSIGNALED(ending) : ending == 0;
    }
    CHECK(good);
}

/* ---- rows ---- */

static tutti_status check_rows(tutti_strategy *s, void *context)
{
    int workers = tutti_strategy_workers(s), rank = tutti_strategy_rank(s);
    int64_t first, rows;
    (void)context;
    if (workers == 2) { /* range(6) in batches of 4: [0,1] and [2,3], then [4] and [5] */
        tutti_strategy_rows(s, 4, rank, &first, &rows);
        WORKER_EXPECT(first == 2 * rank && rows == 2);
        tutti_strategy_rows(s, 2, rank, &first, &rows);
        WORKER_EXPECT(first == rank && rows == 1);
    } else { /* range(4) in a batch of 4 leaves the fifth empty */
        tutti_strategy_rows(s, 4, rank, &first, &rows);
        WORKER_EXPECT(rows == (rank < 4) && (rank == 4 || first == rank));
    }
    return TUTTI_OK;
}

/* The same by what a dataset gives to the process. */
static tutti_status check_elements(tutti_strategy *s, void *context)
{
    int workers = tutti_strategy_workers(s), rank = tutti_strategy_rank(s), batches = 0;
    (void)context;
    tutti_job *job = tutti_open(NULL, NULL);
    int64_t count = workers == 2 ? 6 : 4;
    tutti_dataset *data = tutti_batch(tutti_range_dataset(job, 0, count, 1), 4);
    WORKER_EXPECT(tutti__share_begin(data, tutti__strategy_share(s, TUTTI_SHARD_ELEMENT)));
    tutti_iterator *iterator = tutti_iterate(data, 0);
    tutti__share_end(data);
    for (tutti_element e;; batches++) {
        TUTTI_TRY(tutti_next_element(iterator, &e));
        if (e.count == 0)
            break;
        int64_t rows = tutti_tensor_dims(e.tensors[0])[0];
        int64_t wanted = workers == 5 ? rank < 4 : batches == 0 ? 2 : 1;
        WORKER_EXPECT(rows == wanted && e.rows == (batches == 0 ? 4 : 2));
        for (int64_t i = 0; i < rows; i++) {
            double value = tutti_tensor_get(e.tensors[0], i);
            WORKER_NEAR(value, workers == 5   ? rank
                               : batches == 0 ? 2.0 * rank + (double)i
                                              : 4.0 + rank);
        }
        tutti_element_release(&e);
    }
    WORKER_EXPECT(batches == (workers == 2 ? 2 : 1));
    return tutti_close(job) == 0 ? TUTTI_OK : TUTTI_CHECK_FAILED;
}

TUTTI_TEST(workers_have_rows_in_order)
{
    tutti__test_workers(2, NULL, check_rows, NULL);
    tutti__test_workers(5, NULL, check_rows, NULL);
    tutti__test_workers(2, NULL, check_elements, NULL);
    tutti__test_workers(5, NULL, check_elements, NULL);
}

/* ---- losses ---- */

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, w, mean, step;
} net;

/* loss = mean(w x); a step takes its gradient off w. */
static tutti_status open_net(tutti_strategy *s, net *ret)
{
    net n = {0};
    tutti_grad grad;
    TUTTI_TRY(tutti_graph_create(&n.graph));
    TUTTI_TRY(tutti_session_open(&n.session, n.graph, .strategy = s, .deadline_seconds = 20));
    n.x = tutti_split_batch(tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY));
    n.w = tutti_variable(n.graph, tutti_full(1), .name = "w");
    n.mean = tutti_mean(tutti_mul(n.w, n.x));
    tutti_gradients(n.mean, 1, &n.w, &grad);
    n.step = tutti_assign_sub(n.w, grad.value);
    TUTTI_TRY(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)));
    *ret = n;
    return TUTTI_OK;
}

static void close_net(net *n)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
}

static tutti_status values(int64_t count, double first, tutti_tensor **ret)
{
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &count, ret));
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set(*ret, i, first + (double)i);
    return TUTTI_OK;
}

static tutti_status take(tutti_tensor *t, double *ret)
{
    *ret = tutti_tensor_get(t, 0);
    tutti_tensor_release(t);
    return TUTTI_OK;
}

/* Losses [2, 3] and [4, 5] are 3.5; fed whole, by the own rows, and as rows of the process's own.
 */
static tutti_status check_loss(tutti_strategy *s, void *context)
{
    int rank = tutti_strategy_rank(s);
    (void)context;
    for (int way = 0; way < 3; way++) {
        net n;
        tutti_tensor *x, *mean, *w;
        double loss, weight;
        int64_t batch = 4;
        TUTTI_TRY(open_net(s, &n));
        TUTTI_TRY(way == 0 ? values(4, 2, &x) : values(2, rank == 0 ? 2 : 4, &x));
        if (way == 2)
            TUTTI_TRY(tutti_strategy_agree(s, 2, &batch));
        WORKER_EXPECT(batch == 4);
        TUTTI_TRY(tutti_run(n.session, .feed = TUTTI_FEED({n.x, x}),
                            .fetch = TUTTI_FETCH({n.mean, &mean}), .target = n.step,
                            .batch = way == 1 ? 4 : 0, .own_rows = way == 2));
        TUTTI_TRY(take(mean, &loss));
        WORKER_NEAR(loss, 3.5);
        TUTTI_TRY(tutti_session_get(n.session, n.w, &w));
        TUTTI_TRY(take(w, &weight));
        WORKER_NEAR(weight, 1 - 3.5);
        tutti_tensor_release(x);
        close_net(&n);
    }
    return TUTTI_OK;
}

TUTTI_TEST(workers_report_the_loss_of_the_batch)
{
    tutti__test_workers(2, NULL, check_loss, NULL);
}

/* ---- rows of their own ---- */

/* Worker r has r + 1 rows in the first step, 1 or 0 in the second, none in the third but the last
 * worker: denominators are those of all. */
static tutti_status check_uneven(tutti_strategy *s, void *context)
{
    int rank = tutti_strategy_rank(s), workers = tutti_strategy_workers(s), steps = 0;
    double w = 1;
    net n;
    (void)context;
    TUTTI_TRY(open_net(s, &n));
    for (;; steps++) {
        int64_t batch, rows = steps == 0   ? rank + 1
                              : steps == 1 ? rank % 2
                              : steps == 2 ? rank == workers - 1
                                           : 0;
        double sum = 0, count = 0, loss;
        for (int r = 0; r < workers; r++) {
            int has = steps == 0 ? r + 1 : steps == 1 ? r % 2 : steps == 2 ? r == workers - 1 : 0;
            for (int i = 0; i < has; i++, count++)
                sum += 10 * r + i;
        }
        TUTTI_TRY(tutti_strategy_agree(s, rows, &batch));
        WORKER_NEAR((double)batch, count);
        if (batch == 0)
            break;
        tutti_tensor *x, *mean;
        TUTTI_TRY(values(rows, 10 * rank, &x));
        TUTTI_TRY(tutti_run(n.session, .feed = TUTTI_FEED({n.x, x}),
                            .fetch = TUTTI_FETCH({n.mean, &mean}), .target = n.step,
                            .own_rows = true));
        TUTTI_TRY(take(mean, &loss));
        WORKER_NEAR(loss, w * sum / count);
        w -= sum / count;
        tutti_tensor_release(x);
    }
    WORKER_EXPECT(steps == 3);
    close_net(&n);
    return TUTTI_OK;
}

TUTTI_TEST(workers_may_have_any_number_of_rows)
{
    tutti__test_workers(3, NULL, check_uneven, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,far:0"),
                        check_uneven, NULL);
}

/* ---- parts of a loss that one worker adds ---- */

/* A loss of the rows x and the variable w. */
typedef tutti_sym build_loss(tutti_sym x, tutti_sym w);

/* One step of gradient descent from w = 1, by `rate`: the loss before it, and w behind it. */
static tutti_status step_once(tutti_strategy *s, build_loss *build, int64_t rows, tutti_init ones,
                              double rate, double *ret_loss, tutti_tensor **ret_w)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *batch, *value;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY));
    tutti_sym w = tutti_variable(g, ones, .name = "w"), loss = build(x, w);
    tutti_sym step = tutti_minimize(tutti_sgd(rate), loss);
    TUTTI_TRY(tutti_run(session, .target = tutti_initialize_variables(g)));
    TUTTI_TRY(values(rows, 0, &batch));
    TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, batch}),
                        .fetch = TUTTI_FETCH({loss, &value}), .target = step));
    TUTTI_TRY(take(value, ret_loss));
    TUTTI_TRY(tutti_session_get(session, w, ret_w));
    tutti_tensor_release(batch);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

/* A penalty on the rows of `w` that `chosen` names, which all workers know: one of them adds it,
 * and the programs of all are cut where its shape becomes known. */
static tutti_sym with_penalty(tutti_sym x, tutti_sym w)
{
    tutti_sym chosen = tutti_variable(tutti_sym_graph(x), tutti_ones(3), .name = "chosen");
    tutti_sym which = tutti_reshape(tutti_nonzero(tutti_read(chosen)), -1);
    tutti_sym penalty = tutti_sum(tutti_square(tutti_gather(tutti_read(w), which, 0)));
    return tutti_add(tutti_mean(tutti_mul(x, tutti_sum(tutti_read(w)))), penalty);
}

static tutti_status check_shapes(tutti_strategy *s, void *context)
{
    tutti_tensor *w;
    double loss;
    (void)context;
    TUTTI_TRY(step_once(s, with_penalty, 5, tutti_ones(4, 3), 0.125, &loss, &w));
    WORKER_NEAR(loss, 2 * 12 + 9);
    WORKER_NEAR(tutti_tensor_get(w, 0), 1 - 0.125 * (2 + 2));
    WORKER_NEAR(tutti_tensor_get(w, 11), 1 - 0.125 * 2);
    tutti_tensor_release(w);
    return TUTTI_OK;
}

TUTTI_TEST(workers_add_what_has_a_shape_that_depends_on_data)
{
    tutti__test_workers(2, NULL, check_shapes, NULL);
    tutti__test_workers(3, TUTTI_OPTIONS(tutti_strategy_options, .deterministic = true),
                        check_shapes, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,far:0"),
                        check_shapes, NULL);
}

/* A sum over the batch that one worker alone goes on from, and a value for which all rows are
 * gathered: the worker that needs less meets the others in the same order. */
static tutti_sym of_sum_and_turned_rows(tutti_sym x, tutti_sym w)
{
    tutti_sym turned = tutti_mean(tutti_mul(tutti_reverse(x, 0), tutti_read(w)));
    return tutti_add(turned, tutti_sqrt(tutti_sum(tutti_square(x))));
}

static tutti_status check_order(tutti_strategy *s, void *context)
{
    tutti_tensor *w;
    double loss;
    (void)context;
    TUTTI_TRY(step_once(s, of_sum_and_turned_rows, 4, tutti_ones(4), 0.5, &loss, &w));
    WORKER_NEAR(loss, 1.5 + sqrt(14));
    for (int i = 0; i < 4; i++)
        WORKER_NEAR(tutti_tensor_get(w, i), 1 - 0.5 * (3 - i) / 4);
    tutti_tensor_release(w);
    return TUTTI_OK;
}

TUTTI_TEST(workers_meet_in_one_order_whatever_they_need)
{
    tutti__test_workers(2, NULL, check_order, NULL);
    tutti__test_workers(3, NULL, check_order, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .overlap = 1), check_order, NULL);
}

/* ---- what is refused ---- */

static tutti_status check_deterministic(tutti_strategy *s, void *context)
{
    int64_t batch;
    (void)context;
    WORKER_EXPECT(tutti_strategy_agree(s, 2, &batch) == TUTTI_UNSUPPORTED);
    WORKER_EXPECT(strstr(tutti_error_message(), "deterministic mode cuts batches itself"));
    return TUTTI_OK;
}

TUTTI_TEST(deterministic_mode_shares_by_element)
{
    tutti_strategy_options options = {.struct_size = sizeof options, .deterministic = true};
    tutti__test_workers(2, &options, check_deterministic, NULL);
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0", .deterministic = true,
                                                .shard = TUTTI_SHARD_FILE);
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "use shard=element");
    tutti_strategy_close(s);
}

/* Both processes hear it, when the strategy is made. */
static void check_refused(const tutti_strategy_options options[2], const char *message)
{
    char workers[64];
    pid_t children[2];
    tutti__test_addresses(2, workers, sizeof workers);
    for (int rank = 0; rank < 2; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        tutti_status status = as_worker(rank, workers, &options[rank], NULL, NULL);
        bool told = status == TUTTI_INVALID && strstr(tutti_error_message(), message) != NULL;
        if (!told)
            fprintf(stderr, "rank %d: %s\n", rank, tutti_error_message());
        _exit(!told);
    }
    for (int rank = 0; rank < 2; rank++) {
        int ending = -1;
        waitpid(children[rank], &ending, 0);
        CHECK_INT(ending, 0);
    }
}

TUTTI_TEST(what_travels_in_16_bits_takes_no_named_reduction)
{
    tutti_strategy_options options = {
        .struct_size = sizeof options, .wire = TUTTI_BF16, .reduction = "ring"};
    check_refused((tutti_strategy_options[]){options, options}, "wire=bf16 has a way of its own");
}

TUTTI_TEST(processes_that_sum_in_different_ways_are_found_out)
{
    static const struct {
        tutti_strategy_options options[2];
        const char *message;
    } cases[] = {
        {{{.wire = TUTTI_BF16}, {.wire = TUTTI_F16}}, "'wire=f16' there and 'wire=bf16' on rank 0"},
        {{{.wire = TUTTI_BF16}, {.compression = "topk:0.1"}}, "'wire=topk:0.1' there"},
        {{{.compression = "topk:0.1"}, {.compression = "topk:0.3"}}, "'wire=topk:0.3' there"},
        {{{.deterministic = true}, {.deterministic = true, .shards = 4}}, "shards=4' there"},
        {{{.reduction = "ring"}, {.reduction = "tree"}}, "'reduction=tree' there"},
        {{{.overlap = 1}, {.overlap = -1}}, "overlap=off' there"},
        {{{.sparse = "dense"}, {0}}, "'sparse=auto' there and 'sparse=dense' on rank 0"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_strategy_options options[] = {cases[i].options[0], cases[i].options[1]};
        for (int rank = 0; rank < 2; rank++)
            options[rank].struct_size = sizeof options[rank];
        check_refused(options, cases[i].message);
    }
}
