/* processes_test.c: strategy parameter_server in jobs of real processes: the same training as one
 * device's, and what becomes of it when a process is killed. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "comm/group/testing.h"
#include "tutti/tutti.h"

enum { MOST = 8, ROWS = 16, IN = 5, OUT = 3, STEPS = 12 };

/* What the processes of a test tell each other. */
typedef struct shared {
    _Atomic int steps[MOST]; /* of workers, done */
    pid_t pids[MOST];
    float weights[IN * OUT];
    char places[2][32 * MOST]; /* of workers and of servers */
} shared;

typedef struct job_setup {
    int workers, servers, steps;
    const char *consistency;
    int replicas, pause_ms;
    bool deterministic, atomic;
    const char *record, *replay, *devices;
    shared *all;
} job_setup;

/* ---- a small training ---- */

static float draw(int step, int i)
{
    return sinf((float)(step * 37 + i * 11)) / 2;
}

static tutti_tensor *rows_of(int step, int columns, int from)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, columns}, &t));
    for (int i = 0; i < ROWS * columns; i++)
        ((float *)tutti_tensor_data(t))[i] = draw(step + from, i);
    return t;
}

static void pause_for(int ms)
{
    if (ms > 0)
        usleep((useconds_t)ms * 1000);
}

static tutti_status train(tutti_strategy *s, const job_setup *setup, int rank, float *ret_weights)
{
    tutti_graph *g;
    tutti_session *session;
    TUTTI_TRY(tutti_graph_create(&g));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, IN)),
              y = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, OUT));
    tutti_sym w = tutti_variable(g, tutti_glorot_uniform(IN, OUT), .name = "w", .seed = 3);
    tutti_sym b = tutti_variable(g, tutti_zeros(OUT), .name = "b");
    tutti_sym away = tutti_sub(tutti_add(tutti_matmul(x, w), b), y);
    tutti_sym loss = tutti_mean(tutti_mul(away, away));
    tutti_sym step = tutti_minimize(tutti_adam(.learning_rate = 0.05), loss);
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s));
    tutti_status status = tutti_run(session, .target = tutti_initialize_variables(g));
    for (int i = 0; status == TUTTI_OK && i < setup->steps; i++) {
        tutti_tensor *bx = rows_of(i, IN, 0), *by = rows_of(i, OUT, 100);
        status = tutti_run(session, .feed = TUTTI_FEED({x, bx}, {y, by}), .target = step);
        tutti_tensor_release(bx);
        tutti_tensor_release(by);
        if (setup->all)
            setup->all->steps[rank] = i + 1;
        pause_for(setup->pause_ms);
    }
    tutti_tensor *value = NULL;
    if (status == TUTTI_OK)
        status = tutti_session_get(session, w, &value);
    if (status == TUTTI_OK && ret_weights)
        memcpy(ret_weights, tutti_tensor_data(value), sizeof(float) * IN * OUT);
    tutti_tensor_release(value);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return status;
}

static void train_alone(const char *name, bool deterministic, float *ret_weights)
{
    job_setup setup = {.steps = STEPS};
    tutti_strategy *s = tutti_strategy_create(
        name, TUTTI_OPTIONS(tutti_strategy_options, .deterministic = deterministic));
    CHECK_OK(tutti_strategy_check(s));
    CHECK_OK(train(s, &setup, 0, ret_weights));
    CHECK_OK(tutti_strategy_close(s));
}

/* ---- jobs ---- */

static tutti_status as_process(const job_setup *setup, const char *workers, const char *servers,
                               int rank)
{
    bool serves = rank >= setup->workers;
    tutti_cluster *cluster;
    TUTTI_TRY(tutti__param_set("THREADS", "1"));
    TUTTI_TRY(tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .workers = workers,
                                                  .ps = servers, .role = serves ? "ps" : "worker",
                                                  .index = serves ? rank - setup->workers : rank),
                                    &cluster));
    tutti_strategy *s =
        tutti_strategy_parameter_server(.cluster = cluster, .consistency = setup->consistency,
                                        .replicas = setup->replicas,
                                        .deterministic = setup->deterministic,
                                        .atomic = setup->atomic, .record = setup->record,
                                        .replay = setup->replay, .devices = setup->devices,
                                        .timeout = 20, .join_timeout = 30);
    tutti_status status = tutti_strategy_check(s);
    if (serves) /* it has served, and says so */
        return status == TUTTI_CANCELLED ? TUTTI_OK : status;
    TUTTI_TRY(status);
    status = train(s, setup, rank, rank == 0 ? setup->all->weights : NULL);
    if (status == TUTTI_OK)
        status = tutti_strategy_close(s);
    return status;
}

static shared *share(void)
{
    shared *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    return all;
}

static void start_rank(const job_setup *setup, int rank)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) {
        setup->all->pids[rank] = child;
        return;
    }
    tutti_status status = as_process(setup, setup->all->places[0], setup->all->places[1], rank);
    if (status != TUTTI_OK)
        fprintf(stderr, "rank %d: %s\n", rank, tutti_error_message());
    _exit(status != TUTTI_OK);
}

static void start(job_setup *setup)
{
    char all[32 * MOST];
    int count = setup->workers + setup->servers, rank = 0;
    setup->all = share();
    tutti__test_addresses(count, all, sizeof all);
    for (char *each = strtok(all, ","); each; each = strtok(NULL, ","), rank++) {
        char *list = setup->all->places[rank >= setup->workers];
        size_t used = strlen(list);
        snprintf(list + used, sizeof setup->all->places[0] - used, "%s%s", used > 0 ? "," : "",
                 each);
    }
    for (rank = 0; rank < count; rank++)
        start_rank(setup, rank);
}

/* All but `killed` end well; of `fails` (a bit each) the others end with an error. */
static void end(job_setup *setup, int killed, unsigned fails)
{
    for (int rank = 0; rank < setup->workers + setup->servers; rank++) {
        int ending = -1;
        waitpid(setup->all->pids[rank], &ending, 0);
        if (rank == killed)
            CHECK(WIFSIGNALED(ending));
        else
            CHECK_INT(WIFEXITED(ending) ? WEXITSTATUS(ending) : -1, (int)(fails >> rank & 1));
    }
    munmap(setup->all, sizeof *setup->all);
}

static void await_steps(const job_setup *setup, int rank, int steps)
{
    for (int i = 0; i < 4000 && setup->all->steps[rank] < steps; i++)
        usleep(5000);
    CHECK(setup->all->steps[rank] >= steps);
}

static void same(const float *a, const float *b, float tolerance)
{
    for (int i = 0; i < IN * OUT; i++)
        CHECK_NEAR(a[i], b[i], tolerance);
}

TUTTI_TEST(parameter_server_of_one_process_is_one_device)
{
    float one[IN * OUT], served[IN * OUT];
    train_alone("one_device", false, one);
    train_alone("parameter_server", false, served);
    CHECK(memcmp(one, served, sizeof one) == 0);
}

/* sync and ssp:0 are one device, in deterministic mode to the bit. */
static void compare_on(const char *devices, int workers, int servers, const char *consistency,
                       bool deterministic)
{
    float one[IN * OUT];
    job_setup setup = {.workers = workers,
                       .servers = servers,
                       .steps = STEPS,
                       .consistency = consistency,
                       .deterministic = deterministic,
                       .devices = devices};
    start(&setup);
    train_alone("one_device", deterministic, one);
    for (int rank = 0; rank < workers; rank++)
        await_steps(&setup, rank, STEPS);
    int ending;
    waitpid(setup.all->pids[0], &ending, 0);
    CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
    if (deterministic)
        CHECK(memcmp(one, setup.all->weights, sizeof one) == 0);
    else
        same(one, setup.all->weights, 1e-5f);
    for (int rank = 1; rank < workers + servers; rank++) {
        waitpid(setup.all->pids[rank], &ending, 0);
        CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
    }
    munmap(setup.all, sizeof *setup.all);
}

static void compare(int workers, int servers, const char *consistency, bool deterministic)
{
    compare_on(NULL, workers, servers, consistency, deterministic);
}

TUTTI_TEST(parameter_server_takes_workers_with_several_devices)
{
    compare_on("cpu:0,cpu:1", 2, 1, "sync", false);
    compare_on("cpu:0,far:0", 2, 1, "sync", true);
}

TUTTI_TEST(parameter_server_sync_is_one_device)
{
    compare(2, 1, "sync", false);
    compare(3, 2, "sync", false);
}

TUTTI_TEST(parameter_server_sync_and_ssp_0_are_one_device_to_the_bit)
{
    compare(2, 1, "sync", true);
    compare(2, 2, "ssp:0", true);
    compare(4, 1, "sync", true);
}

TUTTI_TEST(parameter_server_takes_every_consistency)
{
    static const char *const names[] = {"async", "ssp:3", "softsync:2", "sync:backup=1"};
    for (int i = 0; i < 4; i++) {
        job_setup setup = {.workers = 2, .servers = 1, .steps = STEPS, .consistency = names[i]};
        start(&setup);
        end(&setup, -1, 0);
    }
}

TUTTI_TEST(parameter_server_forgets_a_worker_that_dies)
{
    job_setup setup = {
        .workers = 2, .servers = 1, .steps = 60, .consistency = "sync", .pause_ms = 5};
    start(&setup);
    await_steps(&setup, 0, 10);
    kill(setup.all->pids[1], SIGKILL);
    int at = setup.all->steps[0];
    int64_t killed = tutti__now_ns();
    await_steps(&setup, 0, at + 3);
    CHECK(tutti__now_ns() - killed < INT64_C(5000000000)); /* 1 s, on a machine that is free */
    end(&setup, 1, 0);
}

TUTTI_TEST(parameter_server_goes_on_with_the_replica_of_a_server)
{
    float one[IN * OUT];
    job_setup setup = {.workers = 1,
                       .servers = 2,
                       .steps = 60,
                       .consistency = "async",
                       .replicas = 1,
                       .pause_ms = 5};
    start(&setup);
    await_steps(&setup, 0, 20);
    kill(setup.all->pids[2], SIGKILL);
    await_steps(&setup, 0, 60);
    int ending;
    waitpid(setup.all->pids[0], &ending, 0);
    CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
    job_setup alone = {.steps = 60};
    tutti_strategy *s = tutti_strategy_one_device();
    CHECK_OK(train(s, &alone, 0, one));
    CHECK_OK(tutti_strategy_close(s));
    CHECK(memcmp(one, setup.all->weights, sizeof one) == 0); /* nothing lost, nothing twice */
    waitpid(setup.all->pids[1], &ending, 0);
    CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
    waitpid(setup.all->pids[2], &ending, 0);
    CHECK(WIFSIGNALED(ending));
    munmap(setup.all, sizeof *setup.all);
}

TUTTI_TEST(parameter_server_without_a_replica_is_lost_in_words)
{
    job_setup setup = {
        .workers = 1, .servers = 1, .steps = 1000, .consistency = "async", .pause_ms = 5};
    start(&setup);
    await_steps(&setup, 0, 10);
    kill(setup.all->pids[1], SIGKILL);
    end(&setup, 1, 1);
}

TUTTI_TEST(parameter_server_refuses_what_cannot_be)
{
    tutti_strategy *s = tutti_strategy_parameter_server(.consistency = "sometimes");
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "there is no consistency 'sometimes'; there are: async");
    CHECK_OK(tutti_strategy_close(s));
    s = tutti_strategy_parameter_server(.placement = "anywhere");
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "there is no placement 'anywhere'");
    CHECK_OK(tutti_strategy_close(s));
}

/* Two workers at their own pace come to other bits each time; the recorded order makes them the
 * same.
 */
TUTTI_TEST(parameter_server_replays_a_recorded_order_to_the_bit)
{
    char path[100], file[120];
    float recorded[IN * OUT];
    snprintf(path, sizeof path, "/tmp/tutti-order-%d", (int)getpid());
    job_setup setup = {
        .workers = 2, .servers = 1, .steps = STEPS, .consistency = "async", .record = path};
    start(&setup);
    for (int rank = 0; rank < 3; rank++)
        waitpid(setup.all->pids[rank], NULL, 0);
    memcpy(recorded, setup.all->weights, sizeof recorded);
    munmap(setup.all, sizeof *setup.all);
    setup.record = NULL;
    setup.replay = path;
    start(&setup);
    for (int rank = 0; rank < 3; rank++)
        waitpid(setup.all->pids[rank], NULL, 0);
    CHECK(memcmp(recorded, setup.all->weights, sizeof recorded) == 0);
    CHECK(recorded[0] != 0);
    munmap(setup.all, sizeof *setup.all);
    snprintf(file, sizeof file, "%s.0", path);
    CHECK_INT(unlink(file), 0);
}

/* One worker: what is read and moved together is what is moved one by one. */
TUTTI_TEST(parameter_server_moves_all_variables_of_a_step_together)
{
    float one[IN * OUT];
    job_setup setup = {
        .workers = 1, .servers = 2, .steps = STEPS, .consistency = "async", .atomic = true};
    start(&setup);
    train_alone("one_device", false, one);
    for (int rank = 0; rank < 3; rank++) {
        int ending;
        waitpid(setup.all->pids[rank], &ending, 0);
        CHECK(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
    }
    CHECK(memcmp(one, setup.all->weights, sizeof one) == 0);
    munmap(setup.all, sizeof *setup.all);
}

TUTTI_TEST(parameter_server_gets_and_puts_by_name)
{
    job_setup setup = {.steps = 3};
    float weights[IN * OUT];
    tutti_tensor *w, *m, *zeros;
    tutti_strategy *s = tutti_strategy_parameter_server();
    CHECK_OK(train(s, &setup, 0, weights));
    CHECK_OK(tutti_get(s, "w", &w));
    CHECK(memcmp(tutti_tensor_data(w), weights, sizeof weights) == 0);
    CHECK_OK(tutti_get(s, "w/adam/m", &m));
    CHECK_INT(tutti_tensor_count(m), IN * OUT);
    CHECK(tutti_tensor_get(m, 0) != 0);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){IN, OUT}, &zeros));
    memset(tutti_tensor_data(zeros), 0, sizeof weights);
    CHECK_OK(tutti_put(s, "w/adam/m", zeros));
    CHECK_OK(tutti_put(s, "w", zeros));
    tutti_tensor_release(w);
    tutti_tensor_release(m);
    CHECK_OK(tutti_get(s, "w", &w));
    CHECK_OK(tutti_get(s, "w/adam/m", &m));
    CHECK(tutti_tensor_get(w, 4) == 0 && tutti_tensor_get(m, 4) == 0);
    CHECK_STATUS(tutti_get(s, "v", &w), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti_get(s, "w/adam/q", &w), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti_put(s, "b", zeros), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "there is no 'value' that is f32[5,3]");
    tutti_tensor_release(w);
    tutti_tensor_release(m);
    tutti_tensor_release(zeros);
    CHECK_OK(tutti_strategy_close(s));
}

TUTTI_TEST(parameter_server_is_full_in_words)
{
    job_setup setup = {.steps = 1};
    tutti_strategy *s = tutti_strategy_parameter_server(.server_limit = 40);
    CHECK_OK(tutti_strategy_check(s));
    CHECK_STATUS(train(s, &setup, 0, NULL), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "variable 'w': server 0 is full: it holds 0 of 40 bytes");
    CHECK_OK(tutti_strategy_close(s));
}

/* ---- kills at random: TUTTI_TEST_KILLS of them (make test-servers) ---- */

static int kills_wanted(void)
{
    const char *text = getenv("TUTTI_TEST_KILLS");
    return text ? atoi(text) : 2;
}

static void kill_and_begin_anew(const job_setup *setup, int rank)
{
    int ending;
    kill(setup->all->pids[rank], SIGKILL);
    waitpid(setup->all->pids[rank], &ending, 0);
    CHECK(WIFSIGNALED(ending));
    await_steps(setup, 0, setup->all->steps[0] + 10); /* the others go on */
    start_rank(setup, rank);
    await_steps(setup, 0, setup->all->steps[0] + 40); /* and it has everything again */
}

static void end_all(job_setup *setup)
{
    for (int rank = 0; rank < setup->workers + setup->servers; rank++) {
        int ending;
        waitpid(setup->all->pids[rank], &ending, 0);
        CHECK(rank > 0 || (WIFEXITED(ending) && WEXITSTATUS(ending) == 0));
    }
    munmap(setup->all, sizeof *setup->all);
}

/* Every gradient of the only worker moves its variables once, whoever has them: one device's bits.
 */
TUTTI_TEST(parameter_server_random_server_kills)
{
    float one[IN * OUT];
    int kills = kills_wanted();
    job_setup setup = {.workers = 1,
                       .servers = 3,
                       .steps = 60 * kills + 40,
                       .consistency = "async",
                       .replicas = 1,
                       .pause_ms = 5};
    start(&setup);
    await_steps(&setup, 0, 20);
    for (int i = 0; i < kills; i++) {
        usleep((useconds_t)(rand() % 5000));
        kill_and_begin_anew(&setup, 1 + rand() % 3);
    }
    await_steps(&setup, 0, setup.steps);
    job_setup alone = {.steps = setup.steps};
    tutti_strategy *s = tutti_strategy_one_device();
    CHECK_OK(train(s, &alone, 0, one));
    CHECK_OK(tutti_strategy_close(s));
    while (kill(setup.all->pids[0], 0) == 0 && waitpid(setup.all->pids[0], NULL, WNOHANG) == 0)
        usleep(1000);
    CHECK(memcmp(one, setup.all->weights, sizeof one) == 0);
    for (int rank = 1; rank < 4; rank++)
        waitpid(setup.all->pids[rank], NULL, 0);
    munmap(setup.all, sizeof *setup.all);
}

TUTTI_TEST(parameter_server_random_worker_kills)
{
    static const char *const names[] = {"async", "sync"};
    for (int c = 0; c < 2; c++) {
        int kills = kills_wanted();
        job_setup setup = {.workers = 3,
                           .servers = 1,
                           .steps = 60 * kills + 40,
                           .consistency = names[c],
                           .pause_ms = 5};
        start(&setup);
        await_steps(&setup, 0, 10);
        for (int i = 0; i < kills; i++) {
            usleep((useconds_t)(rand() % 5000));
            kill_and_begin_anew(&setup, 1 + rand() % 2);
        }
        await_steps(&setup, 0, setup.steps);
        for (int rank = 1; rank < 3; rank++) /* they have steps left */
            kill(setup.all->pids[rank], SIGKILL);
        end_all(&setup);
    }
}
