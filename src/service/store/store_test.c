/* store_test.c: workers and servers of one process: pull, push, and what is refused. */
#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "service/store/testing.h"
#include "tutti/ops_state.h"
#include "tutti/optimizer.h"

static tutti_store_variable_spec scalar_spec(const char *consistency)
{
    return (tutti_store_variable_spec){.name = "w",
                                       .type = tutti_type_make(TUTTI_F64, 1, (int64_t[]){1}),
                                       .consistency = consistency,
                                       .rule = "plain"};
}

static tutti_store_shard *shard_of(store_job *job, int server, uint32_t slot, uint32_t id)
{
    return tutti__store_slot_shard(
        tutti__store_server_slot(tutti__store_local_server(job->local, server), slot), id);
}

TUTTI_TEST(store_async_applies_each_gradient_and_measures_its_age)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async");
    tutti_text text = {0};
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int w = store_job_variable(&job, &spec, NULL);
    CHECK(store_get(&job, 0, w, 0) == 0);
    CHECK(store_get(&job, 1, w, 0) == 0);
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK_OK(store_push(&job, 1, w, 2)); /* one update old */
    CHECK(store_get(&job, 0, w, 0) == -3);
    tutti_store_staleness s;
    tutti__store_server_staleness(tutti__store_local_server(job.local, 0), &s);
    CHECK_INT(s.counts[0], 1);
    CHECK_INT(s.counts[1], 1);
    tutti__store_staleness_print(&s, &text);
    CHECK_STR(text.data, "staleness of 2 gradients: mean 0.5, largest 1; 0: 1 1: 1");
    tutti__text_free(&text);
    store_job_close(&job);
}

/* Steps of two workers; what both see after each. */
static void run_steps(const char *consistency, int steps, double *ret)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec(consistency);
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 3});
    int w = store_job_variable(&job, &spec, NULL);
    for (int i = 0; i < steps; i++) {
        double x[3];
        for (int n = 0; n < 3; n++)
            x[n] = store_get(&job, n, w, 0);
        CHECK(x[0] == x[1] && x[1] == x[2]);
        ret[i] = x[0];
        for (int n = 0; n < 3; n++) /* of other workers first in every other step */
            CHECK_OK(store_push(&job, (n + i) % 3, w, 0.1 * (1 + (n + i) % 3) + x[0] / 3));
    }
    store_job_close(&job);
}

TUTTI_TEST(store_ssp_0_is_sync_to_the_bit)
{
    double sync[20], ssp[20];
    run_steps("sync", 20, sync);
    run_steps("ssp:0", 20, ssp);
    CHECK(memcmp(sync, ssp, sizeof sync) == 0);
    CHECK_NEAR(sync[1], -0.2, 1e-15);
    CHECK(sync[19] != sync[18]);
}

TUTTI_TEST(store_sync_drops_the_late_gradient_of_a_backup_worker)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("sync:backup=1");
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 3});
    int w = store_job_variable(&job, &spec, NULL), late = 0;
    for (int n = 0; n < 3; n++)
        CHECK(store_get(&job, n, w, 0) == 0);
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK_OK(store_push(&job, 2, w, 3));
    CHECK(store_get(&job, 0, w, 0) == -2);
    double hundred = 100;
    tutti_tensor *g = store_vector(TUTTI_F64, 1, &hundred);
    CHECK_OK(tutti__store_worker_push(job.worker[1], 1, &w, &g, false, &late));
    tutti_tensor_release(g);
    CHECK_INT(late, 1);
    CHECK(store_get(&job, 1, w, 0) == -2);
    CHECK_INT(shard_of(&job, 0, 0, 0)->late, 1);
    CHECK_OK(store_push(&job, 1, w, 1)); /* and it goes on with the present step */
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK(store_get(&job, 1, w, 0) == -3);
    store_job_close(&job);
}

TUTTI_TEST(store_ssp_applies_on_arrival_and_shows_own_writes)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("ssp:2");
    store_job_open(
        &job, &(tutti_store_local_options){.servers = 1, .workers = 2, .deadline_ns = 100000000});
    int w = store_job_variable(&job, &spec, NULL);
    tutti_tensor *value = NULL;
    for (int clock = 0; clock < 3; clock++) {
        CHECK(store_get(&job, 0, w, 0) == -0.5 * clock);
        CHECK_OK(store_push(&job, 0, w, 1));
    }
    CHECK_STATUS(tutti__store_worker_pull(job.worker[0], 1, &w, false, &value), TUTTI_DEADLINE);
    CHECK(store_get(&job, 1, w, 0) == -1.5);
    CHECK_OK(store_push(&job, 1, w, 1));
    CHECK(store_get(&job, 0, w, 0) == -2);
    store_job_close(&job);
}

TUTTI_TEST(store_softsync_updates_by_the_mean_of_a_share)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("softsync:2");
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 4});
    int w = store_job_variable(&job, &spec, NULL);
    CHECK_OK(store_push(&job, 3, w, 1));
    CHECK(store_get(&job, 0, w, 0) == 0);
    CHECK_OK(store_push(&job, 3, w, 3)); /* whoever sent them */
    CHECK(store_get(&job, 0, w, 0) == -2);
    store_job_close(&job);
}

static double choose(int n, int k)
{
    double c = 1;
    for (int i = 0; i < k; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

/* w(t+1) = w(t) - lr w(t-k), w = 1 until 0:  w(t) = sum over j of (-lr)^j C(t - (j-1) k, j). */
static double closed_form(int t, int k, double lr)
{
    double w = 0, power = 1;
    for (int j = 0; t - (j - 1) * k >= j; j++, power *= -lr)
        w += power * choose(t - (j - 1) * k, j);
    return w;
}

TUTTI_TEST(store_of_gradients_k_steps_old_follows_the_closed_form)
{
    enum { K = 3, STEPS = 60 };
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async");
    double one = 1, rate = 0.2, read[K + 1];
    tutti_tensor *first = store_vector(TUTTI_F64, 1, &one);
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = K + 1});
    int v = store_job_variable(&job, &spec, first);
    for (int n = 0; n <= K; n++)
        read[n] = store_get(&job, n, v, 0);
    for (int t = 0; t < STEPS; t++) { /* by turns: each has read just after its last push */
        int n = t % (K + 1);
        CHECK_OK(store_push(&job, n, v, rate * read[n]));
        read[n] = store_get(&job, n, v, 0);
        CHECK_NEAR(read[n], closed_form(t + 1, K, rate), 1e-9);
    }
    CHECK_INT(shard_of(&job, 0, 0, 0)->staleness.counts[K], STEPS - K);
    tutti_tensor_release(first);
    store_job_close(&job);
}

TUTTI_TEST(store_rate_by_staleness_divides_by_it)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async");
    spec.rate = "inverse";
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 3});
    int w = store_job_variable(&job, &spec, NULL);
    for (int n = 0; n < 3; n++)
        CHECK(store_get(&job, n, w, 0) == 0);
    for (int n = 0; n < 3; n++)
        CHECK_OK(store_push(&job, n, w, 1)); /* 0, 1 and 2 old: 1 + 1 + 1/2 */
    CHECK(store_get(&job, 0, w, 0) == -2.5);
    store_job_close(&job);
}

TUTTI_TEST(store_rate_by_distance_counts_what_moved)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async");
    spec.rate = "distance";
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int w = store_job_variable(&job, &spec, NULL);
    for (int n = 0; n < 2; n++)
        store_get(&job, n, w, 0);
    CHECK_OK(store_push(&job, 0, w, 4)); /* moved by 4, as far as an update is: */
    CHECK_OK(store_push(&job, 1, w, 1)); /* factor 1 / (1 + 4/4) */
    CHECK_NEAR(store_get(&job, 0, w, 0), -4.5, 1e-12);
    CHECK_OK(store_push(&job, 0, w, 1)); /* nothing moved since: 1 */
    CHECK_NEAR(store_get(&job, 0, w, 0), -5.5, 1e-12);
    store_job_close(&job);
}

/* Pushed twice from 0 ... 9: what is there then is -value. */
static void check_cut(const char *partitioner, int shards)
{
    store_job job;
    tutti_store_variable_spec spec = {.name = "table",
                                      .type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){5, 2}),
                                      .partitioner = partitioner,
                                      .rule = "plain"};
    tutti_tensor *value = NULL, *got = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, spec.type.dims, &value));
    for (int i = 0; i < 10; i++)
        tutti_tensor_set(value, i, i);
    store_job_open(&job, &(tutti_store_local_options){.servers = 3, .workers = 1});
    int w = store_job_variable(&job, &spec, value);
    CHECK_INT(tutti__store_worker_shards(job.worker[0], w), shards);
    CHECK_OK(tutti__store_worker_push(job.worker[0], 1, &w, &value, false, NULL));
    CHECK_OK(tutti__store_worker_push(job.worker[0], 1, &w, &value, false, NULL));
    CHECK_OK(tutti__store_worker_pull(job.worker[0], 1, &w, false, &got));
    for (int i = 0; i < 10; i++)
        CHECK(tutti_tensor_get(got, i) == -i);
    tutti_tensor_release(value);
    tutti_tensor_release(got);
    store_job_close(&job);
}

TUTTI_TEST(store_cuts_a_variable_and_puts_it_together)
{
    check_cut("", 1);
    check_cut("fixed_size(2)", 2);
    check_cut("fixed_size(9)", 5);
    check_cut("max_size(16)", 3);
    check_cut("4,1", 4); /* what a variable's .partitioner gives */
    check_cut("1,2", 2);
}

/* A serialised optimizer: context is a const tutti_optimizer *. */
static tutti_status build_optimizer(void *context, const tutti_type *shard, void **ret_data,
                                    size_t *ret_size)
{
    const tutti_optimizer *optimizer = context;
    tutti_graph *g = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym value = tutti_get_variable(
        g, "value", tutti_init_make(TUTTI_INIT_FULL, 0, 0, shard->rank, shard->dims),
        .dtype = shard->dtype);
    tutti_sym gradient = (tutti_placeholder_named)(g, "gradient", *shard);
    tutti_grad grad = {.value = gradient};
    tutti_sym step = tutti_apply_gradients(*optimizer, 1, &value, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(TUTTI_VEC_PUSH(&g->targets, step.node));
    tutti_status status = tutti_graph_serialize(g, ret_data, ret_size);
    tutti_graph_destroy(g);
    return status;
}

TUTTI_TEST(store_any_optimizer_runs_on_the_server_as_a_graph)
{
    store_job job;
    tutti_optimizer adam = tutti_adam(0.1);
    tutti_store_variable_spec spec = {.name = "w",
                                      .type = tutti_type_make(TUTTI_F32, 1, (int64_t[]){3}),
                                      .partitioner = "fixed_size(2)",
                                      .build = build_optimizer,
                                      .context = &adam};
    tutti_tensor *first = store_vector(TUTTI_F32, 3, (double[]){1, 2, 3}), *got = NULL;
    tutti_tensor *gradient = store_vector(TUTTI_F32, 3, (double[]){1, -2, 0.5});
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int w = store_job_variable(&job, &spec, first);
    double m[3] = {0}, v[3] = {0}, x[3] = {1, 2, 3};
    for (int t = 1; t <= 4; t++) {
        CHECK_OK(tutti__store_worker_push(job.worker[0], 1, &w, &gradient, false, NULL));
        CHECK_OK(tutti__store_worker_pull(job.worker[0], 1, &w, false, &got));
        for (int i = 0; i < 3; i++) {
            double g = tutti_tensor_get(gradient, i);
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            x[i] -= 0.1 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * m[i] / (sqrt(v[i]) + 1e-7);
            CHECK_NEAR(tutti_tensor_get(got, i), x[i], 1e-5);
        }
        tutti_tensor_release(got);
    }
    tutti_tensor_release(first);
    tutti_tensor_release(gradient);
    store_job_close(&job);
}

/* ---- what is refused, in words ---- */

static void push_refused(store_job *job, int w, double gradient, tutti_status status,
                         const char *words)
{
    CHECK_STATUS(store_push(job, 0, w, gradient), status);
    CHECK_CONTAINS(tutti_error_message(), words);
}

TUTTI_TEST(store_nan_is_refused_skipped_or_accepted)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async");
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 1});
    int refuse = store_job_variable(&job, &spec, NULL);
    spec.nan = "skip";
    int skip = store_job_variable(&job, &spec, NULL);
    spec.nan = "accept";
    int accept = store_job_variable(&job, &spec, NULL);
    push_refused(&job, refuse, NAN, TUTTI_INVALID, "holds NaN or infinity; it was refused");
    CHECK_OK(store_push(&job, 0, refuse, 1)); /* the same step anew */
    CHECK(store_get(&job, 0, refuse, 0) == -1);
    CHECK_OK(store_push(&job, 0, skip, INFINITY));
    CHECK(store_get(&job, 0, skip, 0) == 0);
    CHECK_INT(shard_of(&job, 0, 0, 1)->skipped, 1);
    CHECK_OK(store_push(&job, 0, accept, NAN));
    CHECK(isnan(store_get(&job, 0, accept, 0)));
    store_job_close(&job);
}

TUTTI_TEST(store_full_server_says_so_and_goes_on)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async"), large = spec;
    large.name = "large";
    large.type.dims[0] = 1000;
    tutti_tensor *value = NULL;
    int index;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, 1, large.type.dims, &value));
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 1, .limit = 4000});
    int w = store_job_variable(&job, &spec, NULL);
    CHECK_STATUS(tutti__store_worker_variable(job.worker[0], &large, value, &index),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(),
                   "server 0 is full: it holds 8 of 4000 bytes, and a create of shard 1 takes");
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK(store_get(&job, 0, w, 0) == -1);
    tutti_tensor_release(value);
    store_job_close(&job);
}

TUTTI_TEST(store_workers_that_differ_are_told)
{
    store_job job;
    tutti_store_variable_spec spec = scalar_spec("async"), other = scalar_spec("sync");
    int index;
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    CHECK_OK(tutti__store_worker_variable(job.worker[0], &spec, NULL, &index));
    CHECK_STATUS(tutti__store_worker_variable(job.worker[1], &other, NULL, &index), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "was made with another consistency (async)");
    store_job_close(&job);
}
