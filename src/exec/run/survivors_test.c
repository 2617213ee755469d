/* survivors_test.c: a process of a job is killed at every boundary between two instructions from
 * the first update on; those that are left hold one version, bit by bit. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill.h"
#include "base/params.h"
#include "base/world.h"
#include "comm/group/testing.h"
#include "exec/engine.h"
#include "exec/plan/share.h"
#include "tutti/tutti.h"

enum { MOST = 4, STEPS = 3, ROWS = 8, PORT_TAKEN = 77, TRIES = 5 };

typedef struct kill_job {
    int workers, victim;
    int64_t kill_at;  /* -1: at no boundary */
    unsigned kill_us; /* > 0: so long after its variables are there */
    const char *engine, *devices, *reduction;
    int ahead; /* > 0: this rank has committed a step more when the victim is killed */
} kill_job;

/* What a process holds in the end. */
typedef struct held {
    int64_t version, boundaries;
    uint64_t values;
    int variables;
    bool failed;
    char message[700];
} held;

typedef struct kill_net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, step;
} kill_net;

/* Two dense layers, dropout between them, Adam: weights, slots, counters, random state. */
static tutti_status kill_open(tutti_strategy *s, kill_net *n)
{
    TUTTI_TRY(tutti_graph_create(&n->graph));
    TUTTI_TRY(tutti_session_open(&n->session, n->graph, .strategy = s, .deadline_seconds = 20));
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY, 6));
    n->y = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY, 2));
    tutti_sym w = tutti_variable(n->graph, tutti_full(0.1, 6, 40), .name = "w");
    tutti_sym b = tutti_variable(n->graph, tutti_full(0.2, 40), .name = "b");
    tutti_sym v = tutti_variable(n->graph, tutti_full(0.3, 40, 2), .name = "v");
    tutti_sym h = tutti_relu(tutti_add(tutti_matmul(n->x, w), b));
    h = tutti_nn_dropout(h, 0.3);
    tutti_sym e = tutti_sub(tutti_matmul(h, v), n->y);
    n->step = tutti_minimize(tutti_adam(0.01), tutti_mean(tutti_mul(e, e)));
    return tutti_run(n->session, .target = tutti_initialize_variables(n->graph));
}

static tutti_status kill_values(int64_t columns, int step, tutti_tensor **ret)
{
    int64_t dims[2] = {ROWS, columns};
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, dims, ret));
    for (int64_t i = 0; i < ROWS * columns; i++)
        tutti_tensor_set(*ret, i, (double)((i * 7 + step * 5 + columns) % 11) / 11);
    return TUTTI_OK;
}

static tutti_status kill_steps(kill_net *n)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < STEPS; i++) {
        tutti_tensor *x, *y;
        TUTTI_TRY(kill_values(6, i, &x));
        TUTTI_TRY(kill_values(2, i, &y));
        status = tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}), .target = n->step);
        tutti_tensor_release(x);
        tutti_tensor_release(y);
    }
    return status;
}

/* Every piece of every variable, also those of optimizers and of random operators. */
static void kill_hold(const kill_net *n, held *ret)
{
    tutti_state *state = tutti__engine_state(tutti__session_engine(n->session));
    tutti_state_variable *variable;
    ret->version = tutti_session_version(n->session);
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++, ret->variables++)
        for (size_t p = 0; p < variable->pieces.count; p++) {
            tutti_tensor *value = variable->pieces.data[p]->value;
            ret->values = tutti__hash_string(ret->values, variable->name);
            if (!value)
                continue;
            CHECK_OK(tutti__tensor_to_host(value, &value));
            ret->values = tutti__hash_bytes(ret->values, tutti_tensor_data(value),
                                            (size_t)tutti_tensor_count(value) *
                                                tutti_dtype_size(tutti_tensor_dtype(value)));
            tutti_tensor_release(value);
        }
}

/* A commit that the others have missed. */
static tutti_status kill_run_ahead(const kill_net *n)
{
    tutti_state *state = tutti__engine_state(tutti__session_engine(n->session));
    tutti_piece *piece = tutti__state_find(state, "w")->pieces.data[0];
    tutti_tensor *value;
    tutti__state_commit_begin(state);
    TUTTI_TRY(tutti__piece_write(state, piece, true, &value));
    tutti_tensor_set(value, 7, 42);
    tutti__state_count(state);
    tutti__state_commit_end(state);
    return TUTTI_OK;
}

/* Others may still have to fetch what this process holds, and its state goes with the session. */
static tutti_status kill_worker(const kill_job *job, const char *workers, int rank, held *ret)
{
    tutti_cluster *cluster;
    kill_net n = {0};
    int64_t batch;
    char at[32];
    snprintf(at, sizeof at, "%" PRId64, rank == job->victim ? job->kill_at : -1);
    TUTTI_TRY(tutti__param_set("KILL_AT", at));
    TUTTI_TRY(tutti__param_set("THREADS", "2"));
    TUTTI_TRY(tutti__param_set("CPU_DEVICES", "2"));
    TUTTI_TRY(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .role = "worker", .index = rank),
        &cluster));
    tutti_strategy *s = tutti_strategy_create(
        "multi_worker_mirrored",
        TUTTI_OPTIONS(tutti_strategy_options, .cluster = cluster, .engine = job->engine,
                      .devices = job->devices, .reduction = job->reduction, .timeout = 20));
    if (tutti_strategy_check(s) != TUTTI_OK) /* another test has taken its port */
        _exit(PORT_TAKEN);
    TUTTI_TRY(kill_open(s, &n));
    if (rank == job->victim && job->kill_us > 0)
        ualarm(job->kill_us, 0);
    tutti_status status = kill_steps(&n);
    if (status == TUTTI_OK && job->ahead > 0) {
        if (rank == job->victim)
            raise(SIGKILL);
        if (rank == job->ahead)
            TUTTI_TRY(kill_run_ahead(&n));
        status = kill_steps(&n);
    }
    if (status == TUTTI_OK) /* all end together, as a program does that goes on to evaluate */
        status = tutti_strategy_agree(s, 1, &batch);
    ret->failed = status != TUTTI_OK;
    ret->boundaries = tutti__kill_count();
    snprintf(ret->message, sizeof ret->message, "%s", ret->failed ? tutti_error_message() : "");
    kill_hold(&n, ret);
    return TUTTI_OK;
}

static void kill_child(const kill_job *job, const char *workers, int rank, int out)
{
    held mine = {0};
    tutti_status status = kill_worker(job, workers, rank, &mine);
    if (status != TUTTI_OK)
        fprintf(stderr, "worker %d: %s\n", rank, tutti_error_message());
    bool written = status == TUTTI_OK && write(out, &mine, sizeof mine) == (ssize_t)sizeof mine;
    _exit(!written);
}

/* *ret_killed: the victim was. False: a port was taken, so that the job did not begin. */
static bool kill_try(const kill_job *job, held *ret, bool *ret_killed)
{
    char workers[32 * MOST], what[200];
    pid_t children[MOST];
    int pipes[MOST][2], first = -1;
    bool taken = false;
    *ret_killed = false;
    snprintf(what, sizeof what,
             "%d workers over %s, %s%s%s: rank %d killed at boundary %" PRId64 " after %u us",
             job->workers, job->engine, job->devices ? job->devices : "cpu:0",
             job->reduction ? ", " : "", job->reduction ? job->reduction : "", job->victim,
             job->kill_at, job->kill_us);
    tutti__test_addresses(job->workers, workers, sizeof workers);
    for (int r = 0; r < job->workers; r++) {
        CHECK(pipe(pipes[r]) == 0);
        children[r] = fork();
        CHECK(children[r] >= 0);
        if (children[r] == 0)
            kill_child(job, workers, r, pipes[r][1]);
        close(pipes[r][1]);
    }
    for (int r = 0; r < job->workers; r++) {
        int ending;
        memset(&ret[r], 0, sizeof ret[r]);
        ssize_t got = read(pipes[r][0], &ret[r], sizeof ret[r]);
        waitpid(children[r], &ending, 0);
        close(pipes[r][0]);
        if (WIFSIGNALED(ending) && r == job->victim) {
            *ret_killed = true;
            continue;
        }
        taken = taken || (WIFEXITED(ending) && WEXITSTATUS(ending) == PORT_TAKEN);
        if (taken)
            continue;
        if (got != (ssize_t)sizeof ret[r])
            tutti__test_fail("survivors_test.c", r, "%s: rank %d ended with %#x", what, r, ending);
        first = first < 0 ? r : first;
        if (ret[r].version != ret[first].version || ret[r].values != ret[first].values)
            tutti__test_fail("survivors_test.c", r,
                             "%s: rank %d holds version %" PRId64 " (%016" PRIx64
                             "), rank %d version %" PRId64 " (%016" PRIx64 ")\n%s\n%s",
                             what, first, ret[first].version, ret[first].values, r, ret[r].version,
                             ret[r].values, ret[first].message, ret[r].message);
    }
    return !taken;
}

/* True when the victim was killed. */
static bool kill_run(const kill_job *job, held *ret)
{
    bool killed = false;
    int tries = 0;
    while (!kill_try(job, ret, &killed))
        CHECK(++tries < TRIES);
    return killed;
}

static void kill_sweep(kill_job job, int samples)
{
    held ret[MOST];
    bool all = getenv("TUTTI_TEST_KILLS") != NULL;
    const char *device = getenv("TUTTI_DEVICE");
    if (device && strncmp(device, "whole", 5) == 0)
        SKIP("a whole partition has no boundaries inside");
    job.kill_at = -1;
    CHECK(!kill_run(&job, ret));
    CHECK(!ret[0].failed);
    CHECK_INT(ret[0].version, STEPS);
    CHECK(ret[0].variables > 6);
    int64_t total = ret[job.victim].boundaries;
    CHECK(total > 10);
    for (int64_t i = 1; i <= (all ? total : samples); i++) {
        job.kill_at = all ? i : 1 + (i - 1) * (total - 1) / (samples > 1 ? samples - 1 : 1);
        bool killed = kill_run(&job, ret);
        int other = job.victim == 0;
        /* Boundaries are not always as many, and the others may need nothing of it any more. */
        if (killed && ret[other].failed)
            CHECK_CONTAINS(ret[other].message, " version ");
    }
    job.kill_at = -1;
    for (int i = 0; i < (all ? 100 : 1); i++) {
        job.kill_us = 100 + (unsigned)(i * 7919 + job.workers * 331) % 4000;
        kill_run(&job, ret);
    }
}

/* The chief, rank 0, fetches from rank 2 and gives to rank 3. */
TUTTI_TEST(survivors_fetch_the_commit_that_they_missed)
{
    held ret[MOST];
    kill_job job = {.workers = 4, .victim = 1, .kill_at = -1, .engine = "tcp", .ahead = 2};
    CHECK(kill_run(&job, ret));
    CHECK_INT(ret[0].version, STEPS + 1);
    CHECK_CONTAINS(ret[3].message, "ranks 0, 2, 3 hold version 4");
    job = (kill_job){.workers = 3, .victim = 0, .kill_at = -1, .engine = "shm", .ahead = 1};
    CHECK(kill_run(&job, ret));
    CHECK_INT(ret[2].version, STEPS + 1);
}

TUTTI_TEST(survivors_hold_one_version_over_shared_memory)
{
    kill_sweep((kill_job){.workers = 3, .victim = 1, .engine = "shm"}, 6);
    kill_sweep((kill_job){.workers = 2, .victim = 0, .engine = "shm", .devices = "cpu:0,cpu:1"}, 3);
}

TUTTI_TEST(survivors_hold_one_version_over_sockets)
{
    kill_sweep((kill_job){.workers = 3, .victim = 0, .engine = "tcp", .reduction = "ring"}, 5);
    kill_sweep((kill_job){.workers = 4, .victim = 2, .engine = "tcp", .reduction = "tree"}, 4);
}
