/* testing_ranks.c: groups of threads and processes for tests. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/group/testing.h"

typedef struct rank_thread {
    pthread_t thread;
    tutti_comm *comm;
    tutti_rank_work *work;
    void *context;
    tutti_error error;
} rank_thread;

static void *run_rank(void *arg)
{
    rank_thread *rank = arg;
    tutti_status status = rank->work(rank->comm, rank->context);
    if (status != TUTTI_OK) {
        tutti__error_capture(status, &rank->error);
        tutti_comm_abort(rank->comm, tutti_error_message());
    }
    return NULL;
}

void tutti__test_ranks(int size, const tutti_comm_options *options, tutti_rank_work *work,
                       void *context)
{
    tutti_comm *comms[64];
    rank_thread ranks[64] = {0};
    tutti_comm_options small =
        options ? *options : (tutti_comm_options){.struct_size = sizeof small};
    small.arena_bytes =
        getenv("TUTTI_TEST_LARGE") ? 1 << 30 : 64 << 20; /* sanitizers have little */
    CHECK_OK(tutti_comm_local(size, &small, comms));
    for (int i = 0; i < size; i++) {
        ranks[i] = (rank_thread){.comm = comms[i], .work = work, .context = context};
        CHECK(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < size; i++)
        (void)tutti_comm_close(comms[i]);
    for (int i = 0; i < size; i++)
        if (ranks[i].error.status && ranks[i].error.status != TUTTI_CANCELLED)
            tutti__test_fail("rank", i, "%s (%s)", ranks[i].error.message,
                             options && options->engine ? options->engine : "local");
}

const char *const tutti__test_engine_names[TUTTI_TEST_ENGINES] = {"local", "shm", "tcp"};

void tutti__test_engines(int size, tutti_rank_work *work, void *context)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        tutti__test_ranks(size,
                          TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 60),
                          work, context);
}

void tutti__test_forked(int size, const tutti_comm_options *options, tutti_rank_work *work,
                        void *context)
{
    tutti_comm *comm;
    CHECK_OK(tutti_comm_fork(size, options, &comm));
    bool child = tutti_comm_rank(comm) > 0;
    tutti_status status = work(comm, context);
    tutti_error error = {0};
    if (status != TUTTI_OK)
        tutti__error_capture(status, &error);
    bool broken = atomic_load(&comm->fabric->broken); /* by `work` */
    tutti_status closed = tutti_comm_close(comm);
    if (child)
        _exit(status != TUTTI_OK || (closed != TUTTI_OK) != broken);
    if (status != TUTTI_OK)
        tutti__test_fail("rank", 0, "%s", error.message);
    if (broken)
        CHECK(closed != TUTTI_OK);
    else
        CHECK_OK(closed);
}

/* A socket at a port that was free. Not one of those that the system gives to connections: one of
 * another test would take it before the rank listens there. */
static int bind_somewhere(int *ret_port)
{
    enum { FIRST = 10000, COUNT = 20000 };
    static unsigned tried;
    int made = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(made >= 0);
    for (int i = 0; i < COUNT; i++) {
        *ret_port = FIRST + (int)(((unsigned)getpid() * 79 + tried++) % COUNT);
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)*ret_port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        if (bind(made, (struct sockaddr *)&address, sizeof address) == 0)
            return made;
    }
    CHECK(!"no port is free");
    return made;
}

void tutti__test_addresses(int count, char *ret_text, size_t size)
{
    int sockets[16], used = 0, port;
    CHECK(count <= 16);
    for (int i = 0; i < count; i++) {
        sockets[i] = bind_somewhere(&port);
        used +=
            snprintf(ret_text + used, size - (size_t)used, "%s127.0.0.1:%d", i ? "," : "", port);
    }
    for (int i = 0; i < count; i++)
        close(sockets[i]);
}
