/* fork_test.c: ranks as processes: shared memory between them, and what happens when one dies. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/world.h"
#include "comm/group/testing.h"

static tutti_status sum(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t count = 300000;
    for (int arena = 0; arena < 2; arena++) {
        float *data = NULL;
        if (arena)
            TUTTI_TRY(tutti_comm_allocate(comm, count * 4, (void **)&data));
        else
            EXPECT((data = malloc((size_t)count * 4)) != NULL);
        for (int64_t i = 0; i < count; i++)
            data[i] = (float)(tutti_comm_rank(comm) + i % 10);
        TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, count, TUTTI_F32, TUTTI_SUM, NULL));
        for (int64_t i = 0; i < count; i++)
            EXPECT(data[i] == (float)(6 + 4 * (i % 10)));
        if (arena)
            tutti_comm_free(comm, data);
        else
            free(data);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_forked_processes_sum)
{
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "shm"), sum, NULL);
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "tcp", .streams = 3), sum, NULL);
}

/* Ranks that bind themselves to a CPU each after the group was opened do not share them. */
static tutti_status measure_bound(tutti_comm *comm, void *context)
{
    int cpus = *(const int *)context, others = tutti_comm_size(comm) - 1;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    EXPECT(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int cpu = 0, number = tutti_comm_rank(comm) % CPU_COUNT(&all); cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0)
            CPU_SET(cpu, &one);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
    tutti_status status = tutti__cost_measure(comm, NULL);
    EXPECT(sched_setaffinity(0, sizeof all, &all) == 0); /* rank 0 is the test's own process */
    TUTTI_TRY(status);
    EXPECT(comm->cost.alone == (others > cpus ? (double)cpus / others : 1));
    return TUTTI_OK;
}

TUTTI_TEST(comm_forked_processes_may_bind_themselves)
{
    int cpus = tutti__cpu_count();
    tutti__test_forked(3, TUTTI_COMM_OPTIONS(.engine = "shm"), measure_bound, &cpus);
}

/* The system has no shared memory left, on every second rank: its file takes no more pages. */
static tutti_status sum_without_memory(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_segment *segment = comm->fabric->segment;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", segment->file);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0);
    if (tutti_comm_rank(comm) % 2)
        EXPECT(dup3(file, segment->file, O_CLOEXEC) == segment->file);
    close(file);
    float *data = NULL;
    TUTTI_TRY(tutti_comm_allocate(comm, 1 << 20, (void **)&data));
    EXPECT(tutti__arena_owns(segment, data) == !(tutti_comm_rank(comm) % 2));
    for (int i = 0; i < 1 << 18; i++)
        EXPECT(data[i] == 0);
    tutti_comm_free(comm, data);
    return sum(comm, NULL);
}

TUTTI_TEST(comm_private_memory_where_shared_memory_is_spent)
{
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "shm"), sum_without_memory, NULL);
}

/* Programs close what they did not open, and the number becomes another file's. */
static tutti_status sum_with_another_file(tutti_comm *comm, void *context)
{
    (void)context;
    int number = comm->fabric->segment->file;
    FILE *other = tmpfile();
    EXPECT(other != NULL && dup2(fileno(other), number) == number);
    TUTTI_TRY(sum(comm, NULL));
    EXPECT(fseek(other, 0, SEEK_END) == 0 && ftell(other) == 0);
    fclose(other);
    return TUTTI_OK;
}

TUTTI_TEST(comm_descriptor_of_shared_memory_may_be_closed)
{
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "shm"), sum_with_another_file, NULL);
}

/* Rank 2 dies, or stops, while the others wait for it in an all-reduce. All must learn of it. */
static tutti_status lose_one(tutti_comm *comm, void *context)
{
    int signal_number = *(const int *)context;
    float x[100] = {0};
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM, NULL));
    if (tutti_comm_rank(comm) == 2) {
        usleep(100000); /* until the others are through the first one */
        kill(getpid(), signal_number);
        _exit(0);
    }
    int64_t start = tutti__now_ns();
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM, TUTTI_CALL(.timeout = 2));
    double seconds = (double)(tutti__now_ns() - start) * 1e-9;
    EXPECT(status != TUTTI_OK);
    EXPECT(seconds < (signal_number == SIGKILL ? 1.0 : 4.0));
    EXPECT(strstr(tutti_error_message(), "rank 2 (host ") &&
           strstr(tutti_error_message(), "all_reduce number 2"));
    EXPECT(signal_number != SIGKILL ||
           (strstr(tutti_error_message(), "killed by signal 9") &&
            strstr(tutti_error_message(), ", to which ranks 0, 1, 3 had come")));
    EXPECT(signal_number == SIGKILL || strstr(tutti_error_message(), " is stopped"));
    return TUTTI_OK;
}

/* Closing gives the failure as every call since has. */
static tutti_status close_broken(tutti_comm *comm)
{
    tutti_error failure;
    tutti__error_capture(tutti_comm_barrier(comm, NULL), &failure);
    tutti_status closed = tutti_comm_close(comm);
    EXPECT(closed != TUTTI_OK && closed == failure.status);
    EXPECT(strcmp(tutti_error_message(), failure.message) == 0);
    return TUTTI_OK;
}

/* Not through tutti__test_forked: nobody sees how ranks of a broken group end. Rank 0 leaves none
 * of them behind, not even one that is stopped. */
static void check_loss(const char *engine, int signal_number)
{
    enum { RANKS = 4 };
    tutti_comm *comm;
    int *failed = mmap(NULL, RANKS * sizeof *failed, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[RANKS];
    CHECK(failed != MAP_FAILED);
    CHECK_OK(tutti_comm_fork(RANKS, TUTTI_COMM_OPTIONS(.engine = engine, .timeout = 3), &comm));
    int rank = tutti_comm_rank(comm);
    for (int i = 0; i < RANKS; i++)
        children[i] = atomic_load(&comm->fabric->family[i].id);
    tutti_status status = lose_one(comm, &signal_number);
    tutti_error error = {0};
    if (status != TUTTI_OK) {
        tutti__error_capture(status, &error);
        (void)tutti_comm_close(comm);
    } else if ((status = close_broken(comm)) != TUTTI_OK)
        tutti__error_capture(status, &error);
    failed[rank] = status != TUTTI_OK;
    if (rank > 0 && status != TUTTI_OK)
        fprintf(stderr, "%s\n", error.message);
    if (rank > 0) {
        usleep(100000); /* it ends a while after it has closed the group */
        _exit(status != TUTTI_OK);
    }
    for (int i = 1; i < RANKS; i++) {
        CHECK_INT(waitpid(children[i], NULL, WNOHANG), -1);
        CHECK_INT(failed[i], 0);
    }
    munmap(failed, RANKS * sizeof *failed);
    if (status != TUTTI_OK)
        tutti__test_fail(engine, signal_number, "%s", error.message);
}

TUTTI_TEST(comm_a_killed_process_is_seen_by_all)
{
    check_loss("shm", SIGKILL);
    check_loss("tcp", SIGKILL);
}

TUTTI_TEST(comm_a_stopped_process_is_seen_at_the_deadline)
{
    check_loss("shm", SIGSTOP);
    check_loss("tcp", SIGSTOP);
}

/* Rank 1 dies, with which rank 0 has nothing to do any more: each is a group of its own. */
static tutti_status lose_the_other(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *own;
    int rank = tutti_comm_rank(comm);
    TUTTI_TRY(tutti_comm_split(comm, rank, 0, &own));
    if (rank == 1) {
        usleep(100000); /* until rank 0 is through the split */
        _exit(0);
    }
    tutti_status status = TUTTI_OK;
    for (int64_t end = tutti__now_ns() + 1000000000; !status && tutti__now_ns() < end; usleep(1000))
        status = tutti_comm_barrier(own, NULL);
    EXPECT(status == TUTTI_CLOSED && strstr(tutti_error_message(), "rank 1 (host "));
    (void)tutti_comm_close(own);
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_killed_process_is_seen_by_groups_of_one)
{
    tutti__test_forked(2, TUTTI_COMM_OPTIONS(.engine = "shm"), lose_the_other, NULL);
    tutti__test_forked(2, TUTTI_COMM_OPTIONS(.engine = "tcp"), lose_the_other, NULL);
}
