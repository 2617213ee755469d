/* coordinator_job_test.c: a coordinator, workers and a server as processes of one job; workers and
 * the coordinator are killed. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "tutti/tutti.h"

enum { CHIEF, WORKER_1, WORKER_2, SERVER, RANKS, CLOSURES = 60 };

typedef struct killed_job {
    int port;
    char journal[64];
    int worker_dies; /* after so many closures of worker 2; 0: it does not */
    int chief_dies;  /* after so many closures that are done; 0: it does not */
} killed_job;

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(s >= 0 && bind(s, (struct sockaddr *)&at, size) == 0);
    CHECK(getsockname(s, (struct sockaddr *)&at, &size) == 0);
    close(s);
    return ntohs(at.sin_port);
}

static int ran_here;

/* Adds one to "sum"; dies behind the push now and then, as nobody should. */
static tutti_status add_one(tutti_closure *closure, void *user)
{
    static const char *const name = "sum";
    const killed_job *k = user;
    double minus_one = -1;
    tutti_tensor *gradient = NULL;
    TUTTI_TRY(tutti_tensor_from(TUTTI_F64, 0, NULL, &minus_one, &gradient));
    tutti_status status = tutti_closure_push(closure, 1, &name, &gradient);
    tutti_tensor_release(gradient);
    if (k->worker_dies > 0 && tutti_closure_worker(closure) == 1 && ++ran_here == k->worker_dies)
        raise(SIGKILL);
    usleep(2000);
    return status;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static int run_chief(tutti_coordinator *c, tutti_job *job, const killed_job *k)
{
    tutti_future *futures[CLOSURES];
    tutti_tensor *sum = NULL;
    tutti_coordinator_report report;
    for (int i = 0; i < CLOSURES; i++)
        futures[i] = tutti_coordinator_schedule(c, "add_one");
    for (int i = 0; i < CLOSURES; i++) {
        if (tutti_coordinator_fetch(c, futures[i], 0, NULL) != TUTTI_OK)
            return 3;
        tutti_future_release(futures[i]);
        if (k->chief_dies > 0 && i == k->chief_dies)
            raise(SIGKILL);
    }
    if (tutti_coordinator_mark(c, 1) != TUTTI_OK ||
        tutti_coordinator_get(c, "sum", &sum) != TUTTI_OK)
        return 4;
    double got = tutti_tensor_get(sum, 0);
    tutti_tensor_release(sum);
    tutti_coordinator_tell(c, &report);
    if (k->worker_dies > 0 && report.retried == 0)
        return 5;
    int code = tutti_close(job);
    return got == CLOSURES ? code : 6;
}

static int run_rank(int rank, const killed_job *k)
{
    char meeting[40];
    double zero = 0;
    tutti_tensor *first = NULL;
    snprintf(meeting, sizeof meeting, "127.0.0.1:%d", k->port);
    setenv("TUTTI_MEETING", meeting, 1);
    set_number("TUTTI_RANK", rank);
    set_number("TUTTI_SIZE", RANKS);
    set_number("TUTTI_PS", 1);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .journal = k->journal, .timeout = 40);
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &zero, &first));
    tutti_coordinator_variable(c, "sum", first, .learning_rate = 1);
    tutti_tensor_release(first);
    tutti_coordinator_function(c, "add_one", add_one, (void *)(uintptr_t)k);
    if (tutti_job_check(job) == TUTTI_OK && !tutti_coordinator_serve(c))
        return run_chief(c, job, k);
    return tutti_close(job);
}

static pid_t start_rank(int rank, const killed_job *k)
{
    pid_t child = fork();
    if (child == 0)
        _exit(run_rank(rank, k));
    return child;
}

static void run_job(killed_job *k)
{
    pid_t ranks[RANKS];
    k->port = free_port();
    snprintf(k->journal, sizeof k->journal, "/tmp/tutti-coordinator-%d", (int)getpid());
    unlink(k->journal);
    for (int r = 0; r < RANKS; r++)
        ranks[r] = start_rank(r, k);
    for (int left = RANKS; left > 0;) {
        int status, rank = 0;
        pid_t ended = waitpid(-1, &status, 0);
        CHECK(ended > 0);
        while (rank < RANKS && ranks[rank] != ended)
            rank++;
        if (rank == RANKS)
            continue;
        if (rank == CHIEF && WIFSIGNALED(status) && k->chief_dies > 0) {
            k->chief_dies = 0;
            ranks[CHIEF] = start_rank(CHIEF, k);
            continue;
        }
        left--;
        if (rank == WORKER_2 && k->worker_dies > 0)
            CHECK(WIFSIGNALED(status));
        else if (rank == CHIEF)
            CHECK_INT(status, 0);
    }
    unlink(k->journal);
}

TUTTI_TEST_ALONE(coordinator_of_processes)
{
    run_job(&(killed_job){0});
}

TUTTI_TEST_ALONE(coordinator_of_processes_retries_what_a_killed_worker_had)
{
    run_job(&(killed_job){.worker_dies = 5});
}
