/* transport_test.c: members of open jobs as threads of one process, over real sockets on loopback.
 */
#include "comm/transport/transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "base/world.h"
#include "cluster/cluster.h"

#define SECOND INT64_C(1000000000)
enum { LARGE = 3 << 20, ECHO = 1, STOP = 2 };

static int64_t soon(void)
{
    return tutti__now_ns() + 20 * SECOND;
}

/* One of two workers and a server, at `port` and the two behind it. */
static tutti_cluster *resolve(int port, tutti_role role, int index)
{
    char workers[100], ps[40];
    tutti_cluster *cluster = NULL;
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d", port, port + 1);
    snprintf(ps, sizeof ps, "localhost:%d", port + 2);
    CHECK_OK(
        tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .ps = ps,
                                            .role = tutti_role_text(role), .index = index),
                              &cluster));
    return cluster;
}

static int next_port(void)
{
    static int jobs;
    return 30000 + (int)(getpid() * 16 + jobs++ * 4) % 2000;
}

typedef struct member {
    tutti_cluster *cluster;
    tutti_membership *members;
    tutti_transport *transport;
    int came, lost, gone, done, views;
    uint64_t tag, from;
    size_t size;
    char *data, *room;
    char why[400];
    tutti_status finished;
    bool stop;
} member;

static void *place(void *context, int rank, uint64_t tag, size_t size)
{
    member *m = context;
    TUTTI_UNUSED(rank);
    TUTTI_UNUSED(tag);
    return size == LARGE ? m->room : NULL;
}

static void deliver(void *context, int rank, uint64_t incarnation, uint64_t tag, void *data,
                    size_t size)
{
    member *m = context;
    m->came++;
    m->from = incarnation;
    m->tag = tag;
    m->size = size;
    if (tag == STOP)
        m->stop = true;
    else if (tag == ECHO) {
        struct iovec part = {data, size};
        CHECK_OK(tutti__transport_send(
            m->transport,
            &(tutti_transport_message){.rank = rank, .tag = 100, .parts = &part, .count = 1}));
    } else {
        free(m->data);
        m->data = malloc(size + 1);
        memcpy(m->data, data, size);
    }
}

static void note_lost(void *context, int rank, uint64_t incarnation, bool gone, const char *why)
{
    member *m = context;
    TUTTI_UNUSED(rank);
    TUTTI_UNUSED(incarnation);
    m->lost++;
    m->gone += gone;
    snprintf(m->why, sizeof m->why, "%s", why);
}

static void note_view(void *context, const tutti_member_view *view)
{
    TUTTI_UNUSED(view);
    ((member *)context)->views++;
}

static void note_done(void *context, tutti_status status)
{
    member *m = context;
    m->done++;
    m->finished = status;
}

static void join(member *m, int port, tutti_role role, int index, bool no_sharing)
{
    memset(m, 0, sizeof *m);
    m->room = malloc(LARGE);
    m->cluster = resolve(port, role, index);
    tutti_transport_options options = {.no_sharing = no_sharing};
    tutti_transport_calls calls = {m, place, deliver, note_lost, note_view};
    CHECK_OK(tutti__membership_join_open(m->cluster, soon(), &m->members));
    CHECK_OK(tutti__transport_open(m->members, &options, &calls, &m->transport));
}

static void part(member *m, bool well)
{
    tutti__transport_close(m->transport);
    if (well)
        CHECK_OK(tutti__membership_leave(m->members, soon()));
    else
        tutti__membership_abandon(m->members);
    tutti_cluster_free(m->cluster);
    free(m->room);
    free(m->data);
}

static void *serve(void *context)
{
    member *m = context;
    while (!m->stop && tutti__transport_poll(m->transport, soon()) == TUTTI_OK)
        ;
    return NULL;
}

static void say(member *m, int rank, uint64_t tag, const void *data, size_t size)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)data, size / 2},
                             {(char *)(uintptr_t)data + size / 2, size - size / 2}};
    CHECK_OK(tutti__transport_send(
        m->transport,
        &(tutti_transport_message){.rank = rank, .tag = tag, .parts = parts, .count = 2}));
}

static void await(member *m, const int *counter, int count)
{
    while (*counter < count)
        CHECK_OK(tutti__transport_poll(m->transport, soon()));
}

static void echo(bool no_sharing, const char *way)
{
    member worker, server;
    pthread_t thread;
    int port = next_port();
    char *large = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 1000);
    join(&worker, port, TUTTI_ROLE_WORKER, 0, no_sharing);
    join(&server, port, TUTTI_ROLE_PS, 0, no_sharing);
    CHECK_OK(tutti__membership_await_members(worker.members, TUTTI_ROLE_PS, 1, soon()));
    CHECK_INT(pthread_create(&thread, NULL, serve, &server), 0);
    say(&worker, 2, ECHO, "hello", 5);
    await(&worker, &worker.came, 1);
    CHECK(worker.size == 5 && memcmp(worker.data, "hello", 5) == 0 && worker.tag == 100);
    CHECK_STR(tutti__transport_way(worker.transport, 2), way);
    say(&worker, 2, ECHO, large, LARGE);
    say(&worker, 2, ECHO, "", 0);
    await(&worker, &worker.came, 3);
    CHECK(memcmp(worker.room, large, LARGE) == 0 && worker.size == 0);
    struct iovec whole = {large, LARGE};
    tutti_transport_message message = {.rank = 2,
                                       .tag = ECHO,
                                       .parts = &whole,
                                       .count = 1,
                                       .done = note_done,
                                       .context = &worker,
                                       .deadline_ns = soon()};
    CHECK_OK(tutti__transport_send(worker.transport, &message));
    await(&worker, &worker.done, 1);
    await(&worker, &worker.came, 4);
    CHECK_INT(worker.finished, TUTTI_OK);
    say(&worker, 2, STOP, "", 0);
    await(&worker, &worker.done, 1);
    while (!server.stop)
        (void)tutti__transport_poll(worker.transport, tutti__now_ns() + SECOND / 100);
    pthread_join(thread, NULL);
    part(&worker, true);
    part(&server, true);
    free(large);
}

TUTTI_TEST(transport_echoes_through_shared_memory)
{
    echo(false, "shared memory");
}

TUTTI_TEST(transport_echoes_over_tcp)
{
    echo(true, "tcp");
}

/* A connection that is made before the peer listens for messages. */
TUTTI_TEST(transport_hears_who_called_before_it_was_open)
{
    member worker, server = {0};
    int port = next_port();
    join(&worker, port, TUTTI_ROLE_WORKER, 0, false);
    server.cluster = resolve(port, TUTTI_ROLE_PS, 0);
    CHECK_OK(tutti__membership_join_open(server.cluster, soon(), &server.members));
    CHECK_OK(tutti__membership_await_members(worker.members, TUTTI_ROLE_PS, 1, soon()));
    say(&worker, 2, 100, "early", 5);
    for (int64_t until = tutti__now_ns() + SECOND / 4; tutti__now_ns() < until;)
        (void)tutti__transport_poll(worker.transport, tutti__now_ns() + SECOND / 100);
    tutti_transport_calls calls = {&server, place, deliver, note_lost, note_view};
    CHECK_OK(tutti__transport_open(server.members, NULL, &calls, &server.transport));
    for (int64_t until = soon(); server.came == 0 && tutti__now_ns() < until;) {
        (void)tutti__transport_poll(server.transport, tutti__now_ns() + SECOND / 100);
        (void)tutti__transport_poll(worker.transport, tutti__now_ns() + SECOND / 100);
    }
    CHECK_INT(server.came, 1);
    part(&worker, true);
    part(&server, true);
}

/* The lower rank greets as soon as it has admitted the call. */
TUTTI_TEST(transport_carries_what_the_higher_rank_begins)
{
    for (int round = 0; round < 8; round++) {
        member worker, server;
        int port = next_port();
        join(&worker, port, TUTTI_ROLE_WORKER, 0, round % 2 == 1);
        join(&server, port, TUTTI_ROLE_PS, 0, round % 2 == 1);
        CHECK_OK(tutti__membership_await_members(server.members, TUTTI_ROLE_WORKER, 1, soon()));
        say(&server, 0, 100, "hello", 5);
        for (int64_t until = soon(); worker.came == 0 && tutti__now_ns() < until;) {
            (void)tutti__transport_poll(worker.transport, tutti__now_ns() + SECOND / 1000);
            (void)tutti__transport_poll(server.transport, tutti__now_ns() + SECOND / 1000);
        }
        CHECK_INT(worker.came, 1);
        part(&worker, true);
        part(&server, true);
    }
}

/* A peer that ends is told, at once, with all that was meant for it; the next of its rank is
 * reached like any other, and others' connections stay. */
TUTTI_TEST(transport_outlives_its_peers)
{
    member a, b, server;
    int port = next_port();
    join(&a, port, TUTTI_ROLE_WORKER, 0, false);
    join(&b, port, TUTTI_ROLE_WORKER, 1, false);
    join(&server, port, TUTTI_ROLE_PS, 0, false);
    CHECK_OK(tutti__membership_await_members(a.members, TUTTI_ROLE_PS, 1, soon()));
    CHECK_OK(tutti__membership_await_members(b.members, TUTTI_ROLE_PS, 1, soon()));
    say(&a, 2, 7, "one", 3);
    say(&b, 2, 8, "two", 3);
    int64_t until = soon();
    while (server.came < 2 && tutti__now_ns() < until) { /* all three take their turn */
        (void)tutti__transport_poll(server.transport, tutti__now_ns() + SECOND / 1000);
        (void)tutti__transport_poll(a.transport, tutti__now_ns() + SECOND / 1000);
        (void)tutti__transport_poll(b.transport, tutti__now_ns() + SECOND / 1000);
    }
    CHECK_INT(server.came, 2);
    uint64_t first = server.from;
    int64_t begun = tutti__now_ns();
    part(&b, false);
    await(&server, &server.gone, 1);
    CHECK(tutti__now_ns() - begun < SECOND);
    CHECK_CONTAINS(server.why, "rank 1");
    char byte = 0;
    struct iovec none = {&byte, 1};
    CHECK_STATUS(
        tutti__transport_send(server.transport,
                              &(tutti_transport_message){.rank = 1, .parts = &none, .count = 1}),
        TUTTI_CLOSED);
    join(&b, port, TUTTI_ROLE_WORKER, 1, false);
    CHECK_OK(tutti__membership_await_members(b.members, TUTTI_ROLE_PS, 1, soon()));
    say(&b, 2, 9, "three", 5);
    until = soon();
    while (server.came < 3 && tutti__now_ns() < until) {
        (void)tutti__transport_poll(server.transport, tutti__now_ns() + SECOND / 1000);
        (void)tutti__transport_poll(b.transport, tutti__now_ns() + SECOND / 1000);
    }
    CHECK(server.came == 3 && server.from > first && server.tag == 9);
    say(&a, 2, 10, "four", 4);
    await(&server, &server.came, 4);
    CHECK(server.tag == 10 && server.gone == 1);
    /* The keeper of the roster ends, too. */
    part(&a, false);
    await(&server, &server.gone, 2);
    const tutti_member_view *view = tutti__membership_view(server.members);
    while (view->count != 2) {
        uint64_t number = view->number;
        tutti__member_view_release(view);
        view = tutti__membership_await_view(server.members, number, soon());
        CHECK(view != NULL);
    }
    CHECK_INT(view->keeper, 1);
    tutti__member_view_release(view);
    say(&b, 2, 11, "five", 4);
    await(&server, &server.came, 5);
    part(&b, true);
    part(&server, true);
}

TUTTI_TEST(transport_bounds_what_waits)
{
    member a, b;
    int port = next_port();
    join(&a, port, TUTTI_ROLE_WORKER, 0, true);
    join(&b, port, TUTTI_ROLE_WORKER, 1, true);
    while (tutti__membership_view(a.members)->count < 2)
        usleep(1000);
    char *large = calloc(1, LARGE);
    struct iovec whole = {large, LARGE};
    tutti_transport_message message = {.rank = 1, .tag = 5, .parts = &whole, .count = 1};
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < 100 && status == TUTTI_OK; i++) /* b does not poll */
        status = tutti__transport_send(a.transport, &message);
    CHECK_INT(status, TUTTI_TOO_LARGE);
    message.done = note_done;
    message.context = &a;
    message.deadline_ns = tutti__now_ns() + SECOND / 50;
    CHECK_OK(tutti__transport_send(a.transport, &message));
    await(&a, &a.done, 1);
    CHECK_INT(a.finished, TUTTI_DEADLINE);
    message.rank = 2; /* has never been there */
    CHECK_STATUS(tutti__transport_send(a.transport, &message), TUTTI_CLOSED);
    free(large);
    part(&a, false);
    part(&b, false);
}
