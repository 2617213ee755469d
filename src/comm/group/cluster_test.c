/* cluster_test.c: groups of processes that meet as a cluster, and what they learn when one of them
 * dies or stops. */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "base/pool.h"
#include "base/world.h"
#include "comm/group/testing.h"

enum { RANKS = 4 };

static int machines = 1; /* that ranks believe to be on */
static bool in_turn;     /* ranks 0, 2, … on the first, 1, 3, … on the second */
static bool bound;       /* each to one CPU, in turn */
static int first_alone;  /* rank 0 on the first, all others on the second */
static bool all_alone;   /* each on its own */

/* As a launcher does. */
static void bind_to_one(int rank)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int number = rank % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static tutti_status as_rank(int rank, const char *workers, const tutti_comm_options *options,
                            tutti_rank_work *work, void *context)
{
    tutti_cluster *cluster;
    tutti_comm *comm;
    bool second = first_alone ? rank > 0 : in_turn ? rank % 2 : rank * machines / RANKS;
    if (bound)
        bind_to_one(rank);
    static const char *const own[RANKS] = {"0", "1", "2", "3"};
    TUTTI_TRY(tutti__param_set("MACHINE", all_alone ? own[rank] : second ? "second" : "first"));
    TUTTI_TRY(tutti__param_set("SILENCE_MS", "1500"));
    TUTTI_TRY(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .role = "worker", .index = rank),
        &cluster));
    TUTTI_TRY(tutti_comm_open(cluster, options, &comm));
    tutti_status status = work(comm, context);
    tutti_error error = {0};
    if (status != TUTTI_OK)
        tutti__error_capture(status, &error);
    bool broken = atomic_load(&comm->fabric->broken);
    tutti_status closed = tutti_comm_close(comm);
    tutti_cluster_free(cluster);
    if (status != TUTTI_OK)
        return tutti__error_restore(&error);
    return broken ? TUTTI_OK : closed;
}

/* Runs every rank in a process; `lost` may end in any way. */
static void run_cluster(const tutti_comm_options *options, tutti_rank_work *work, void *context,
                        int lost)
{
    char workers[256];
    pid_t children[RANKS];
    tutti__test_addresses(RANKS, workers, sizeof workers);
    for (int rank = 0; rank < RANKS; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        tutti_status status = as_rank(rank, workers, options, work, context);
        if (status != TUTTI_OK)
            fprintf(stderr, "rank %d: %s\n", rank, tutti_error_message());
        _exit(status != TUTTI_OK);
    }
    bool good = true;
    for (int rank = 0; rank < RANKS; rank++) {
        int ending = -1;
        if (rank != lost)
            waitpid(children[rank], &ending, 0);
        good &= rank == lost || ending == 0;
    }
    if (lost >= 0) {
        kill(children[lost], SIGKILL);
        waitpid(children[lost], NULL, 0);
    }
    CHECK(good);
}

static tutti_status has_cpus(tutti_comm *comm, void *context)
{
    int cpus = *(const int *)context;
    EXPECT(tutti__cpu_count() == 1);
    EXPECT(comm->fabric->cpus == (cpus < RANKS ? cpus : RANKS));
    EXPECT(comm->fabric->crowded == (cpus < RANKS));
    return TUTTI_OK;
}

/* Ranks that are bound have the CPUs of all of them, and need not wait for each other. */
TUTTI_TEST(comm_cluster_counts_the_cpus_of_bound_ranks_together)
{
    int cpus = tutti__cpu_count();
    bound = true;
    run_cluster(NULL, has_cpus, &cpus, -1);
    bound = false;
}

static tutti_status meet_once(tutti_comm *comm, void *context)
{
    (void)context;
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_cluster_may_wait_for_ever)
{
    run_cluster(TUTTI_COMM_OPTIONS(.timeout = INFINITY, .join_timeout = INFINITY), meet_once, NULL,
                -1);
    run_cluster(TUTTI_COMM_OPTIONS(.timeout = 1e10, .join_timeout = 1e10), meet_once, NULL, -1);
}

/* Rank 0 is told of rank 2, the first that is elsewhere; nobody of itself. */
TUTTI_TEST(comm_cluster_shared_memory_is_not_between_machines)
{
    char workers[256];
    pid_t children[RANKS];
    tutti__test_addresses(RANKS, workers, sizeof workers);
    machines = 2;
    for (int rank = 0; rank < RANKS; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        tutti_status status =
            as_rank(rank, workers, TUTTI_COMM_OPTIONS(.engine = "shm"), meet_once, NULL);
        char other[64];
        snprintf(other, sizeof other, "'shm' was asked for, but rank %d (", rank < 2 ? 2 : 0);
        _exit(status != TUTTI_INVALID || !strstr(tutti_error_message(), other));
    }
    machines = 1;
    for (int rank = 0; rank < RANKS; rank++) {
        int ending = -1;
        waitpid(children[rank], &ending, 0);
        CHECK_INT(ending, 0);
    }
}

static tutti_status every_operation(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    float *x;
    int64_t count = 100000;
    EXPECT(size == RANKS);
    TUTTI_TRY(tutti_comm_allocate(comm, count * 4, (void **)&x));
    for (int round = 0; round < 20; round++) {
        for (int64_t i = 0; i < count; i++)
            x[i] = (float)(rank + i % 3);
        TUTTI_TRY(
            tutti_comm_all_reduce(comm, x, x, round % 2 ? count : 10, TUTTI_F32, TUTTI_SUM, NULL));
        for (int64_t i = 0; i < 10; i++)
            EXPECT(x[i] == (float)(6 + 4 * (i % 3)));
    }
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    tutti_comm_free(comm, x);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_of_processes_over_shared_memory_and_sockets)
{
    run_cluster(NULL, every_operation, NULL, -1);
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp", .streams = 2), every_operation, NULL, -1);
}

static tutti_status lose_rank_2(tutti_comm *comm, void *context)
{
    int signal_number = *(const int *)context;
    float x[1000] = {0};
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, 1000, TUTTI_F32, TUTTI_SUM, NULL));
    if (tutti_comm_rank(comm) == 2) {
        kill(getpid(), signal_number);
        _exit(0);
    }
    int64_t start = tutti__now_ns();
    tutti_status status = tutti_comm_all_reduce(comm, x, x, 1000, TUTTI_F32, TUTTI_SUM, NULL);
    double seconds = (double)(tutti__now_ns() - start) * 1e-9;
    EXPECT(status != TUTTI_OK);
    if (seconds > (signal_number == SIGKILL ? 1.5 : 4.0) ||
        !strstr(tutti_error_message(), "rank 2"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "after %.2f s", seconds);
    return TUTTI_OK;
}

/* Ranks 0 and 1 wait for rank 3, which waits for rank 2, and closes when that is dead. */
static tutti_status lose_rank_2_in_messages(tutti_comm *comm, void *context)
{
    bool asynchronous = *(const bool *)context;
    int rank = tutti_comm_rank(comm);
    char x[100];
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (rank == 2) {
        usleep(100000); /* until the others wait */
        kill(getpid(), SIGKILL);
    }
    tutti_request *request = NULL;
    tutti_status status =
        tutti_comm_recv(comm, rank == 3 ? 2 : 3, 5, x, sizeof x,
                        TUTTI_CALL(.request = asynchronous ? &request : NULL, .timeout = 10));
    if (asynchronous && status == TUTTI_OK)
        status = tutti_comm_wait(request);
    if (status != TUTTI_CLOSED || !strstr(tutti_error_message(), "rank 2 (host") ||
        !strstr(tutti_error_message(), "is gone"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

static tutti_status reduce_and_gather(tutti_comm *comm)
{
    int rank = tutti_comm_rank(comm);
    for (int root = 0; root < RANKS; root++) {
        double in[500], out[500] = {0};
        for (int i = 0; i < 500; i++)
            in[i] = rank * i;
        TUTTI_TRY(tutti_comm_reduce(comm, in, out, 500, TUTTI_F64, TUTTI_MEAN, root,
                                    TUTTI_CALL(.algorithm = "hierarchical")));
        EXPECT(rank != root || (out[1] == 1.5 && out[499] == 1.5 * 499));
    }
    for (int64_t count = 0; count <= 3000; count = count * 7 + 1) {
        int64_t in[3000], *out = calloc((size_t)(RANKS * count + 1), sizeof *out);
        for (int64_t i = 0; i < count; i++)
            in[i] = rank * 100000 + i;
        TUTTI_TRY(tutti_comm_all_gather(comm, in, out, count, TUTTI_I64,
                                        TUTTI_CALL(.algorithm = "hierarchical")));
        for (int64_t i = 0; i < RANKS * count; i++)
            EXPECT(out[i] == i / count * 100000 + i % count);
        free(out);
    }
    return TUTTI_OK;
}

/* Two machines, as far as the ranks know: shared memory within, sockets between. */
static tutti_status two_machines(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm);
    EXPECT(tutti_comm_hosts(comm) == 2);
    EXPECT(strcmp(tutti_comm_engine(comm, rank ^ 1), "shm") == 0);
    EXPECT(strcmp(tutti_comm_engine(comm, (rank + 2) % RANKS), "tcp") == 0);
    const char *const *names = tutti_comm_algorithms("all_reduce");
    for (; *names; names++) {
        if (!tutti__coll_possible(tutti__coll_find(*names), comm) ||
            strcmp(*names, "compressed") == 0)
            continue;
        static float x[30000];
        for (int count = 1; count <= 30000; count = count * 29 + 1) {
            for (int i = 0; i < count; i++)
                x[i] = (float)(rank + i % 7);
            TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, count, TUTTI_F32, TUTTI_MEAN,
                                            TUTTI_CALL(.algorithm = *names)));
            for (int i = 0; i < count; i++)
                EXPECT(x[i] == (float)(1.5 + i % 7));
        }
    }
    for (int root = 0; root < RANKS; root++) {
        int64_t value = rank;
        TUTTI_TRY(tutti_comm_broadcast(comm, &value, 1, TUTTI_I64, root,
                                       TUTTI_CALL(.algorithm = "hierarchical")));
        EXPECT(value == root);
    }
    TUTTI_TRY(reduce_and_gather(comm));
    TUTTI_TRY(tutti_comm_barrier(comm, TUTTI_CALL(.algorithm = "hierarchical")));
    float one = 1;
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.algorithm = "direct/ring#1")));
    EXPECT(one == RANKS);
    return every_operation(comm, NULL);
}

TUTTI_TEST(comm_cluster_of_two_machines_uses_both_engines)
{
    machines = 2;
    run_cluster(TUTTI_COMM_OPTIONS(.measure = true), two_machines, NULL, -1);
}

/* Rank 1 calls something else than rank 0, on its machine, and all others. */
static tutti_status misfit_on_one_machine(tutti_comm *comm, void *context)
{
    bool other = *(const bool *)context;
    float x[100] = {1};
    bool misfit = tutti_comm_rank(comm) == 1;
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = "hierarchical", .timeout = 20);
    tutti_status status = misfit && other ? tutti_comm_barrier(comm, call)
                                          : tutti_comm_all_reduce(comm, x, x, misfit ? 10 : 100,
                                                                  TUTTI_F32, TUTTI_SUM, call);
    if (status != TUTTI_INVALID ||
        !strstr(tutti_error_message(), "in all_reduce (sum) of 100 x f32") ||
        !strstr(tutti_error_message(), "rank 1 (host "))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_of_two_machines_sees_who_calls_something_else)
{
    machines = 2;
    for (int other = 0; other < 2; other++)
        run_cluster(NULL, misfit_on_one_machine, &(bool){other}, -1);
    machines = 1;
}

static tutti_status hierarchies(tutti_comm *comm, void *context)
{
    (void)context;
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = "hierarchical");
    int rank = tutti_comm_rank(comm);
    EXPECT(tutti_comm_hosts(comm) == 2);
    int64_t one = 1, before = tutti_comm_bytes_sent(comm); /* the first of a machine crosses */
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_I64, TUTTI_SUM, call));
    EXPECT(one == RANKS && (tutti_comm_bytes_sent(comm) > before) == (comm->between != NULL));
    for (int root = 0; root < RANKS; root++) {
        int64_t value = rank, sum = 0, all[RANKS];
        TUTTI_TRY(tutti_comm_all_gather(comm, &value, all, 1, TUTTI_I64, call));
        for (int r = 0; r < RANKS; r++)
            EXPECT(all[r] == r);
        TUTTI_TRY(tutti_comm_reduce(comm, &value, &sum, 1, TUTTI_I64, TUTTI_SUM, root, call));
        EXPECT(rank != root || sum == RANKS * (RANKS - 1) / 2);
        TUTTI_TRY(tutti_comm_broadcast(comm, &value, 1, TUTTI_I64, root, call));
        EXPECT(value == root);
    }
    return TUTTI_OK;
}

/* Between machines the first ranks of them go on lanes, as the model takes them to. */
static tutti_status hierarchy_on_lanes(tutti_comm *comm, void *context)
{
    enum { COUNT = 1 << 20 };
    (void)context;
    float *data = malloc(COUNT * sizeof *data);
    EXPECT(data);
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(i % 1000 + tutti_comm_rank(comm));
    tutti_status status = tutti_comm_all_reduce(comm, data, data, COUNT, TUTTI_F32, TUTTI_SUM,
                                                TUTTI_CALL(.algorithm = "hierarchical"));
    bool right = true;
    for (int i = 0; i < COUNT; i++)
        right &= data[i] == (float)(RANKS * (i % 1000) + RANKS * 0.5 * (RANKS - 1));
    free(data);
    TUTTI_TRY(status);
    EXPECT(right && !comm->lanes && !comm->within->lanes);
    EXPECT(!comm->between || comm->between->lanes);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_hierarchies_go_on_lanes_between_machines)
{
    machines = 2;
    CHECK_OK(tutti__param_set("LANES", "2"));
    run_cluster(NULL, hierarchy_on_lanes, NULL, -1);
    CHECK_OK(tutti__param_set("LANES", NULL));
    machines = 1;
}

TUTTI_TEST(comm_cluster_hierarchies_of_ranks_that_machines_have_in_turn)
{
    in_turn = true;
    run_cluster(NULL, hierarchies, NULL, -1);
    in_turn = false;
}

/* By an algorithm that the part, which is on one machine, does not have. */
static tutti_status part_of_a_hierarchy(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *part;
    float one = 1, all = 1;
    int members = RANKS / 2;
    EXPECT(tutti_comm_hosts(comm) == 2);
    TUTTI_TRY(tutti_comm_split(comm, tutti_comm_rank(comm) % 2, 0, &part));
    EXPECT(tutti_comm_hosts(part) == 1 && tutti_comm_size(part) == members);
    TUTTI_TRY(tutti_comm_all_reduce(part, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(one == (float)members);
    EXPECT(tutti_comm_all_reduce(part, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.algorithm = "hierarchical")) == TUTTI_INVALID);
    TUTTI_TRY(tutti_comm_close(part));
    TUTTI_TRY(tutti_comm_all_reduce(comm, &all, &all, 1, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(all == RANKS);
    return TUTTI_OK;
}

/* With one rank on each machine there is nothing within them: the choice by cost says what it does.
 */
static tutti_status a_rank_a_machine(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *three;
    float one = 1;
    TUTTI_TRY(tutti_comm_split(comm, tutti_comm_rank(comm) / 3, 0, &three));
    int size = tutti_comm_size(three);
    EXPECT(tutti_comm_hosts(comm) == RANKS && tutti_comm_hosts(three) == size);
    for (int op = 0; size > 1 && op < TUTTI_OPERATION_COUNT; op++)
        for (int64_t count = 1; count < INT64_C(1) << 28; count *= 8) {
            tutti_collective c = {.comm = three, .operation = op, .count = count, .element = 4};
            EXPECT(strcmp(tutti__coll_choose(&c)->name, "hierarchical") != 0);
        }
    if (size > 1) /* by name it may be asked for, in programs that do not know their machines */
        TUTTI_TRY(tutti_comm_all_reduce(three, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.algorithm = "hierarchical")));
    EXPECT(one == (float)size);
    return tutti_comm_close(three);
}

TUTTI_TEST(comm_cluster_a_rank_a_machine_is_no_hierarchy)
{
    all_alone = true;
    run_cluster(NULL, a_rank_a_machine, NULL, -1);
    all_alone = false;
}

static tutti_status no_hierarchy(tutti_comm *comm, void *context)
{
    (void)context;
    float one = 1;
    EXPECT(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL) == TUTTI_INVALID);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_a_part_need_not_do_what_its_whole_was_opened_with)
{
    in_turn = true;
    run_cluster(TUTTI_COMM_OPTIONS(.all_reduce = "hierarchical"), part_of_a_hierarchy, NULL, -1);
    in_turn = false;
    run_cluster(TUTTI_COMM_OPTIONS(.all_reduce = "hierarchical"), no_hierarchy, NULL, -1);
}

TUTTI_TEST(comm_cluster_a_killed_rank_is_everybodys_verdict)
{
    int signal_number = SIGKILL;
    run_cluster(NULL, lose_rank_2, &signal_number, 2);
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), lose_rank_2, &signal_number, 2);
}

TUTTI_TEST(comm_cluster_messages_to_a_killed_rank_end_with_the_verdict)
{
    bool asynchronous[] = {false, true};
    for (int i = 0; i < 4; i++)
        run_cluster(TUTTI_COMM_OPTIONS(.engine = i < 2 ? "tcp" : NULL), lose_rank_2_in_messages,
                    &asynchronous[i % 2], 2);
}

/* A receive that nobody sends to, and nobody waits for. */
static tutti_status leave_a_receive(tutti_comm *comm, void *context)
{
    static char room[100];
    tutti_request *request;
    float x[1000] = {0};
    (void)context;
    for (int r = 0; r < RANKS; r++)
        if (r != tutti_comm_rank(comm))
            TUTTI_TRY(
                tutti_comm_recv(comm, r, 77, room, sizeof room, TUTTI_CALL(.request = &request)));
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, 1000, TUTTI_F32, TUTTI_SUM, NULL));
    if (tutti_comm_rank(comm) == 1)
        usleep(200000); /* others have come to the end */
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_receives_that_nobody_waits_for_end_with_the_group)
{
    run_cluster(NULL, leave_a_receive, NULL, -1);
    for (int i = 0; i < 5; i++)
        run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), leave_a_receive, NULL, -1);
}

/* And closes at once, which must not be taken for the cause. */
static tutti_status rank_2_aborts(tutti_comm *comm, void *context)
{
    (void)context;
    float x[1000] = {0};
    tutti_status status = tutti_comm_all_reduce(comm, x, x, 1000, TUTTI_F32, TUTTI_SUM, NULL);
    if (tutti_comm_rank(comm) == 2) {
        tutti_comm_abort(comm, "loss is NaN");
        return status;
    }
    if (status == TUTTI_OK) /* else it was still in the first one when rank 2 had left that */
        status = tutti_comm_all_reduce(comm, x, x, 1000, TUTTI_F32, TUTTI_SUM, NULL);
    if (status != TUTTI_CANCELLED || !strstr(tutti_error_message(), "rank 2 aborted: loss is NaN"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_an_abort_is_everybodys_verdict)
{
    run_cluster(NULL, rank_2_aborts, NULL, -1);
    for (int i = 0; i < 5; i++)
        run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), rank_2_aborts, NULL, -1);
}

TUTTI_TEST(comm_cluster_a_stopped_rank_is_everybodys_verdict)
{
    int signal_number = SIGSTOP;
    run_cluster(NULL, lose_rank_2, &signal_number, 2);
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), lose_rank_2, &signal_number, 2);
}

static tutti_status reduce_small(tutti_comm *comm, void *context)
{
    (void)context;
    int sum = RANKS * (RANKS + 1) / 2;
    for (int64_t count = 1; count <= 4096; count *= 4) {
        double x[4096];
        for (int64_t i = 0; i < count; i++)
            x[i] = tutti_comm_rank(comm) + 1;
        TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, count, TUTTI_F64, TUTTI_SUM,
                                        TUTTI_CALL(.timeout = 5)));
        for (int64_t i = 0; i < count; i++)
            EXPECT(x[i] == sum);
    }
    return TUTTI_OK;
}

/* A rank that is alone on its machine knows nothing of shared memory: it chooses as rank 0 does. */
TUTTI_TEST(comm_cluster_a_rank_alone_on_its_machine_chooses_as_the_others)
{
    first_alone = 1;
    run_cluster(NULL, reduce_small, NULL, -1);
    run_cluster(TUTTI_COMM_OPTIONS(.measure = true), reduce_small, NULL, -1);
    first_alone = 0;
}

enum { GIVES_UP_MS = 400, LATE_MS = 1500 };

/* Rank 1 gives up on rank 3, which is late; the others would wait much longer. */
static tutti_status give_up_on_rank_3(tutti_comm *comm, void *context)
{
    (void)context;
    float x[100] = {0};
    int rank = tutti_comm_rank(comm);
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    int64_t start = tutti__now_ns();
    if (rank == 3)
        usleep(LATE_MS * 1000);
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM,
                              TUTTI_CALL(.timeout = rank == 1 ? GIVES_UP_MS / 1e3 : 30));
    double seconds = (double)(tutti__now_ns() - start) * 1e-9;
    if (status != TUTTI_DEADLINE || !strstr(tutti_error_message(), "waited too long for rank") ||
        !strstr(tutti_error_message(), "all_reduce number 2; arrived: 0-2; missing: 3") ||
        seconds > 10)
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d after %g s", (int)status,
                                   seconds);
    if (rank == 1)
        usleep(LATE_MS * 1000); /* it does not go yet: others hear of it all the same */
    EXPECT(tutti_comm_barrier(comm, NULL) == TUTTI_DEADLINE);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_all_ranks_return_the_first_failure)
{
    run_cluster(NULL, give_up_on_rank_3, NULL, -1);
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), give_up_on_rank_3, NULL, -1);
    machines = 2;
    run_cluster(NULL, give_up_on_rank_3, NULL, -1);
    machines = 1;
}

/* Rank 3 comes just when the others have given up, and could do its part alone. */
static tutti_status come_too_late(tutti_comm *comm, void *context)
{
    enum { JUST_MS = 150, LONGER_MS = 800 };
    bool barrier = *(const bool *)context;
    float x[100] = {0};
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (tutti_comm_rank(comm) == 3)
        usleep((GIVES_UP_MS + JUST_MS) * 1000);
    int64_t start = tutti__now_ns();
    const tutti_comm_call *call = TUTTI_CALL(.timeout = GIVES_UP_MS / 1e3);
    tutti_status status = barrier ? tutti_comm_barrier(comm, call)
                                  : tutti_comm_broadcast(comm, x, 100, TUTTI_F32, 3, call);
    double seconds = (double)(tutti__now_ns() - start) * 1e-9;
    if (status != TUTTI_DEADLINE || !strstr(tutti_error_message(), "waited too long for rank"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d after %g s", (int)status,
                                   seconds);
    usleep(LONGER_MS * 1000); /* it does not go yet: that is not how others hear of it */
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_who_comes_after_the_others_deadline_fails_too)
{
    for (int barrier = 0; barrier < 2; barrier++) {
        run_cluster(NULL, come_too_late, &(bool){barrier}, -1);
        run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), come_too_late, &(bool){barrier}, -1);
    }
    machines = 2;
    run_cluster(NULL, come_too_late, &(bool){false}, -1);
    machines = 1;
}

/* Rank 2 waits for rank 3 in a part of the group where rank 3 has another number: `context` says
 * whether that is a subgroup, or what `hierarchical` makes of a machine. */
static tutti_status wait_for_rank_3_in_a_part(tutti_comm *comm, void *context)
{
    float x[100] = {0};
    int rank = tutti_comm_rank(comm);
    tutti_comm *part = NULL;
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (context)
        TUTTI_TRY(tutti_comm_split(comm, rank >= 2, 0, &part));
    if (rank == 3)
        usleep(LATE_MS * 1000);
    tutti_status status = TUTTI_DEADLINE;
    if (!part || rank >= 2)
        status = tutti_comm_all_reduce(part ? part : comm, x, x, 100, TUTTI_F32, TUTTI_SUM,
                                       TUTTI_CALL(.algorithm = part ? NULL : "hierarchical",
                                                  .timeout = rank == 2 ? GIVES_UP_MS / 1e3 : 30));
    bool right = strstr(tutti_error_message(), "waited too long for rank ") &&
                 strstr(tutti_error_message(), "rank 3 (host ");
    (void)tutti_comm_close(part);
    if (rank == 2 && (status != TUTTI_DEADLINE || !right))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    if (rank == 2)
        usleep(LATE_MS * 1000); /* it does not go yet: others hear of it all the same */
    EXPECT(tutti_comm_barrier(comm, NULL) == TUTTI_DEADLINE);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_names_late_ranks_by_their_number_in_the_job)
{
    run_cluster(NULL, wait_for_rank_3_in_a_part, &machines, -1);
    first_alone = 1;
    run_cluster(NULL, wait_for_rank_3_in_a_part, NULL, -1);
    first_alone = 0;
}

/* Rank 2 was last heard of inside a barrier that is long over when it dies. */
static tutti_status die_between_operations(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm);
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (rank == 3)
        usleep(1200000); /* heartbeats tell where the others wait */
    for (int i = 0; i < 6; i++)
        TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (rank == 2)
        raise(SIGKILL);
    usleep(400000);
    tutti_status status = tutti_comm_barrier(comm, NULL);
    if (status != TUTTI_CLOSED || !strstr(tutti_error_message(), "rank 2") ||
        strstr(tutti_error_message(), "in barrier number 2"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_a_verdict_names_no_operation_that_is_over)
{
    run_cluster(NULL, die_between_operations, NULL, 2);
}

static tutti_status die_before_a_split(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *part;
    int rank = tutti_comm_rank(comm);
    if (rank == 2) {
        usleep(200000); /* the others wait for it */
        raise(SIGKILL);
    }
    tutti_status status = tutti_comm_split(comm, 0, rank, &part);
    if (status != TUTTI_CLOSED || !strstr(tutti_error_message(), "tutti_comm_split") ||
        !strstr(tutti_error_message(), "missing: 2"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_a_verdict_names_the_split_that_a_rank_missed)
{
    run_cluster(NULL, die_before_a_split, NULL, 2);
}

/* Rank 0 has voted, and then is late with what it must tell the others of the new group. Rank 3
 * waits for rank 2, which waits itself. */
static tutti_status hang_in_a_split(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *part;
    tutti_status status;
    if (tutti_comm_rank(comm) == 0) {
        int32_t ballot[4] = {0, 0, 0, 4000}, all[4 * RANKS];
        TUTTI_TRY(tutti_comm_all_gather(comm, ballot, all, sizeof ballot, TUTTI_U8,
                                        TUTTI_CALL(.label = "of tutti_comm_split")));
        usleep(LATE_MS * 1000);
    } else {
        status = tutti_comm_split(comm, 0, 0, &part);
        if (status != TUTTI_DEADLINE || !strstr(tutti_error_message(), "tutti_comm_split") ||
            !strstr(tutti_error_message(), "missing: 0"))
            return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    }
    status = tutti_comm_barrier(comm, NULL); /* it was all ranks' group that broke */
    if (status != TUTTI_DEADLINE || !strstr(tutti_error_message(), "tutti_comm_split"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "barrier: status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_a_split_that_fails_half_way_breaks_the_group)
{
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = GIVES_UP_MS / 1e3), hang_in_a_split,
                NULL, -1);
}

/* Whoever waits for one who waits himself learns who has not come. */
static tutti_status miss_rank_1(tutti_comm *comm, void *context)
{
    const char *algorithm = *(const char *const *)context;
    float x[100] = {0};
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (tutti_comm_rank(comm) == 1)
        usleep(LATE_MS * 1000);
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM,
                              TUTTI_CALL(.timeout = GIVES_UP_MS / 1e3, .algorithm = algorithm));
    if (status != TUTTI_DEADLINE || !strstr(tutti_error_message(), "all_reduce number 2") ||
        !strstr(tutti_error_message(), "arrived: 0, 2-3; missing: 1"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(comm_cluster_a_deadline_between_machines_says_who_is_missing)
{
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), miss_rank_1, &(const char *){"ring"}, -1);
    run_cluster(TUTTI_COMM_OPTIONS(.engine = "tcp"), miss_rank_1, &(const char *){"doubling"}, -1);
    machines = 2;
    run_cluster(NULL, miss_rank_1, &(const char *){"hierarchical"}, -1);
    machines = 1;
}
