/* membership_test.c: real sockets on loopback, ranks as threads of one process. */
#include "cluster/membership.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test.h"
#include "base/world.h"
#include "cluster/channel.h"
#include "cluster/cluster.h"
#include "cluster/heartbeat.h"

#define SECOND INT64_C(1000000000)
enum { RANKS = 4 };

typedef struct seat {
    pthread_t thread;
    int rank, port;
    bool deserts; /* abandons instead of leaving */
    bool aborts;  /* before that */
    tutti_status joined, exchanged, streamed, ended;
    tutti_verdict verdict;
    char banner[300], message[500];
} seat;

static int64_t soon(void)
{
    return tutti__now_ns() + 20 * SECOND;
}

static tutti_status swap(tutti_membership *m)
{
    int32_t mine = m->rank * 10, all[RANKS];
    for (int round = 0; round < 20; round++) {
        TUTTI_TRY(tutti__membership_exchange(m, &mine, sizeof mine, soon(), all));
        for (int r = 0; r < m->size; r++)
            if (all[r] != r * 10)
                return TUTTI_INTERNAL;
    }
    return tutti__membership_agree(m, "plan", 5, soon());
}

/* A ring: everybody opens a channel to both neighbours and sends a megabyte through it. */
static tutti_status stream(tutti_membership *m)
{
    tutti_channel *near = NULL, *far = NULL;
    int next = (m->rank + 1) % m->size, last = (m->rank + m->size - 1) % m->size;
    char *out = calloc(1, 1 << 20), *in = calloc(1, 1 << 20);
    size_t sent = 0, got = 0, done, size = 1 << 20;
    memset(out, 'a' + m->rank, size);
    tutti_status status = tutti__channel_open(m, next, 1 + (uint32_t)m->rank, soon(), &near);
    if (status == TUTTI_OK)
        status = tutti__channel_open(m, last, 1 + (uint32_t)last, soon(), &far);
    while (status == TUTTI_OK && (sent < size || got < size)) {
        status = tutti__channel_send(near, out + sent, size - sent, &done);
        sent += status == TUTTI_OK ? done : 0;
        if (status == TUTTI_OK && got < size) {
            status = tutti__channel_recv(far, in + got, size - got, &done);
            got += status == TUTTI_OK ? done : 0;
        }
    }
    if (status == TUTTI_OK && (in[0] != 'a' + last || in[size - 1] != 'a' + last))
        status = TUTTI_INTERNAL;
    tutti__channel_close(near);
    tutti__channel_close(far);
    free(out);
    free(in);
    return status;
}

static void *sit(void *context)
{
    seat *s = context;
    tutti_cluster *cluster;
    tutti_membership *m;
    char workers[200] = "";
    for (int r = 0; r < RANKS; r++)
        snprintf(workers + strlen(workers), sizeof workers - strlen(workers), "%slocalhost:%d",
                 r > 0 ? "," : "", s->port + r);
    s->joined = tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = s->rank), &cluster);
    if (s->joined == TUTTI_OK)
        s->joined = tutti__membership_join(cluster, soon(), &m);
    if (s->joined != TUTTI_OK)
        return NULL;
    tutti__membership_describe(m, s->banner, sizeof s->banner);
    s->exchanged = swap(m);
    s->streamed = stream(m);
    if (s->streamed == TUTTI_OK)
        s->streamed = swap(m); /* all have come so far */
    if (s->aborts || !s->deserts)
        tutti__membership_note(m, (tutti_rank_group){0}, "barrier", 7, true);
    if (s->aborts)
        tutti__membership_abort(m, "loss is NaN");
    if (s->deserts)
        tutti__membership_abandon(m);
    else {
        s->ended = tutti__membership_leave(m, soon());
        snprintf(s->message, sizeof s->message, "%s", tutti_error_message());
    }
    tutti_cluster_free(cluster);
    return NULL;
}

/* The first of RANKS ports that no other test uses. */
static int next_ports(void)
{
    static int jobs;
    return 21000 + (int)(getpid() * 16 + jobs++ * RANKS) % 8000;
}

static void run_job(seat seats[RANKS], int deserter, bool aborts)
{
    int port = next_ports();
    for (int r = 0; r < RANKS; r++) {
        seats[r] = (seat){
            .rank = r, .port = port, .deserts = r == deserter, .aborts = aborts && r == deserter};
        CHECK_INT(pthread_create(&seats[r].thread, NULL, sit, &seats[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(seats[r].thread, NULL);
}

TUTTI_TEST(membership_joins_exchanges_streams_and_leaves)
{
    seat seats[RANKS];
    run_job(seats, -1, false);
    for (int r = 0; r < RANKS; r++) {
        CHECK_INT(seats[r].joined, TUTTI_OK);
        CHECK_INT(seats[r].exchanged, TUTTI_OK);
        CHECK_INT(seats[r].streamed, TUTTI_OK);
        CHECK_INT(seats[r].ended, TUTTI_OK);
        CHECK_CONTAINS(seats[r].banner, "4 ranks on 1 host");
    }
}

TUTTI_TEST(membership_sees_a_rank_that_goes_without_leaving)
{
    seat seats[RANKS];
    run_job(seats, 2, false);
    for (int r = 0; r < RANKS; r++) {
        CHECK_INT(seats[r].streamed, TUTTI_OK);
        if (r != 2)
            CHECK_INT(seats[r].ended, TUTTI_CLOSED);
    }
}

/* Where it is rank 0 that goes, rank 1 asks the others. */
TUTTI_TEST(membership_has_one_verdict_without_rank_0)
{
    seat seats[RANKS];
    run_job(seats, 0, false);
    for (int r = 1; r < RANKS; r++) {
        CHECK_INT(seats[r].ended, TUTTI_CLOSED);
        CHECK_CONTAINS(seats[r].message, "rank 0 ");
        CHECK_STR(seats[r].message, seats[1].message);
    }
}

/* The reason arrives, though who gave it goes at once; rank 0, which must be asked, as well. So
 * does the operation that it had come to. */
TUTTI_TEST(membership_hears_why_a_rank_has_aborted)
{
    for (int aborting = 0; aborting <= 2; aborting += 2) {
        char start[64];
        seat seats[RANKS];
        snprintf(start, sizeof start, "rank %d aborted: loss is NaN; it was process ", aborting);
        run_job(seats, aborting, true);
        for (int r = 0; r < RANKS; r++)
            if (r != aborting) {
                CHECK_INT(seats[r].ended, TUTTI_CANCELLED);
                CHECK_CONTAINS(seats[r].message, start);
                CHECK_CONTAINS(seats[r].message, "; in barrier number 7; arrived: ");
                const char *missing = strstr(seats[r].message, "missing: ");
                CHECK(missing && strchr(missing, '0' + aborting) == NULL);
            }
    }
}

enum { TIMES = 30 };

/* Joins and leaves many times; `listener`: what a launcher has bound for rank 0. */
typedef struct comer {
    pthread_t thread;
    int rank, port, others, listener; /* others: the ports of ranks 1 and 2 */
    int times;                        /* that it was there */
    char message[500];
} comer;

static void *come_again(void *context)
{
    comer *c = context;
    tutti_cluster *cluster = NULL;
    tutti_membership *m;
    tutti_status status = TUTTI_OK;
    char workers[100];
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d,localhost:%d", c->port, c->others,
             c->others + 1);
    while (c->times < TIMES && status == TUTTI_OK) {
        if (c->times % 2 == 0) { /* resolved anew, as strategies do */
            tutti_cluster_free(cluster);
            cluster = NULL;
            status = tutti_cluster_resolve(
                TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = c->rank),
                &cluster);
        }
        if (status == TUTTI_OK) {
            cluster->listen_fd = c->listener;
            status = tutti__membership_join(cluster, soon(), &m);
        }
        if (status == TUTTI_OK)
            status = tutti__membership_agree(m, "plan", 5, soon());
        if (status == TUTTI_OK && c->times % 3 == 2) { /* one that fails can be followed, too */
            if (c->rank == 2)
                tutti__membership_abort(m, "enough");
            tutti__membership_await_verdict(m, soon());
            tutti__membership_abandon(m);
        } else if (status == TUTTI_OK)
            status = tutti__membership_leave(m, soon());
        c->times += status == TUTTI_OK;
    }
    if (status != TUTTI_OK)
        snprintf(c->message, sizeof c->message, "%s", tutti_error_message());
    tutti_cluster_free(cluster);
    return NULL;
}

static void come_together(int port, int listener)
{
    comer comers[3];
    int others = next_ports(); /* a port that the system gave has neighbours that it gives away */
    for (int r = 0; r < 3; r++) {
        comers[r] =
            (comer){.rank = r, .port = port, .others = others, .listener = r == 0 ? listener : -1};
        CHECK_INT(pthread_create(&comers[r].thread, NULL, come_again, &comers[r]), 0);
    }
    for (int r = 0; r < 3; r++)
        pthread_join(comers[r].thread, NULL);
    for (int r = 0; r < 3; r++) {
        CHECK_STR(comers[r].message, "");
        CHECK_INT(comers[r].times, TIMES);
    }
}

/* The quick ones meet rank 0's job of before while it still ends. */
TUTTI_TEST(membership_joins_again_and_again)
{
    come_together(next_ports(), -1);
}

TUTTI_TEST(membership_joins_again_at_the_launchers_port)
{
    const tutti_world *world = tutti__world();
    tutti_address address;
    size_t count;
    int listener, port;
    CHECK_OK(world->resolve(world->self, "127.0.0.1", 0, 1, &address, &count));
    CHECK_OK(world->listen(world->self, &address, &listener, &port));
    come_together(port, listener);
    world->close_socket(world->self, listener);
}

/* Two groups of one job that are open at once, without a launcher: rank 0 listens for both at its
 * port, rank 1 at another one for the second. */
static void *join_twice(void *context)
{
    comer *c = context;
    tutti_cluster *cluster;
    tutti_membership *m[2];
    char workers[100];
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d", c->port, c->port + 1);
    tutti_status status = tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = c->rank), &cluster);
    for (; c->times < 2 && status == TUTTI_OK; c->times += status == TUTTI_OK)
        status = tutti__membership_join(cluster, soon(), &m[c->times]);
    for (int i = 0; i < c->times && status == TUTTI_OK; i++) {
        tutti_channel *channel;
        status = tutti__channel_open(m[i], 1 - c->rank, 7, soon(), &channel);
        if (status == TUTTI_OK)
            tutti__channel_close(channel);
    }
    for (int i = 0; i < c->times && status == TUTTI_OK; i++) /* the first one ends first */
        status = tutti__membership_agree(m[i], "plan", 5, soon());
    for (int i = 0; i < c->times && status == TUTTI_OK; i++)
        status = tutti__membership_leave(m[i], soon());
    if (status != TUTTI_OK)
        snprintf(c->message, sizeof c->message, "%s", tutti_error_message());
    tutti_cluster_free(cluster);
    return NULL;
}

TUTTI_TEST(membership_of_two_groups_at_once)
{
    comer comers[2];
    int port = next_ports();
    for (int r = 0; r < 2; r++) {
        comers[r] = (comer){.rank = r, .port = port};
        CHECK_INT(pthread_create(&comers[r].thread, NULL, join_twice, &comers[r]), 0);
    }
    for (int r = 0; r < 2; r++) {
        pthread_join(comers[r].thread, NULL);
        CHECK_STR(comers[r].message, "");
        CHECK_INT(comers[r].times, 2);
    }
}

/* Somebody who knows the secret calls rank 2 in the name of rank 1, which is there. `token`: of the
 * ranks that have met, NULL without. */
static void pose(tutti_heartbeat *posed, const uint8_t *token, int port, uint32_t purpose,
                 uint32_t number, const char *why)
{
    tutti_wire wire;
    char reached[64];
    posed->me.token = token;
    CHECK_STATUS(tutti__dial(posed, "127.0.0.1", port, purpose, 2, number, soon(), &wire, reached),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), why);
}

typedef struct victim {
    pthread_t thread;
    int rank, port;
    pthread_barrier_t *met, *posed;
    tutti_membership *membership;
    tutti_status status;
} victim;

static void *be_posed_as(void *context)
{
    victim *v = context;
    tutti_cluster *cluster;
    tutti_channel *channel = NULL;
    char workers[100];
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d,localhost:%d", v->port,
             v->port + 1, v->port + 2);
    v->status = tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = v->rank), &cluster);
    if (v->status == TUTTI_OK)
        v->status = tutti__membership_join(cluster, soon(), &v->membership);
    if (v->status == TUTTI_OK && v->rank > 0)
        v->status = tutti__channel_open(v->membership, 3 - v->rank, 5, soon(), &channel);
    pthread_barrier_wait(v->met);
    pthread_barrier_wait(v->posed);
    tutti__channel_close(channel);
    if (v->status == TUTTI_OK)
        v->status = tutti__membership_agree(v->membership, "plan", 5, soon());
    if (v->status == TUTTI_OK)
        v->status = tutti__membership_leave(v->membership, soon());
    tutti_cluster_free(cluster);
    return NULL;
}

static char warned[300];

static void keep_warning(void *context, tutti_log_level level, const char *line)
{
    (void)context;
    if (level == TUTTI_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", line);
}

/* Neither as a channel that is there, nor as one that may still come, nor as a rank that has lost
 * rank 0; the rank itself is not blamed. */
TUTTI_TEST(membership_refuses_who_poses_as_a_rank_that_is_there)
{
    static const char unmet[] = "refused: it knows the job's secret, but is none of the ranks";
    victim victims[3];
    pthread_barrier_t met, posed;
    tutti_cluster *cluster;
    tutti_heartbeat *heartbeat;
    int port = next_ports();
    char workers[100];
    pthread_barrier_init(&met, NULL, 4);
    pthread_barrier_init(&posed, NULL, 4);
    tutti_log_install(keep_warning, NULL);
    for (int r = 0; r < 3; r++) {
        victims[r] = (victim){.rank = r, .port = port, .met = &met, .posed = &posed};
        CHECK_INT(pthread_create(&victims[r].thread, NULL, be_posed_as, &victims[r]), 0);
    }
    pthread_barrier_wait(&met);
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d,localhost:%d", port, port + 1,
             port + 2);
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = 1), &cluster));
    CHECK_OK(tutti__heartbeat_create(cluster, &heartbeat));
    int at = victims[0].membership->peers[2].port;
    tutti_wire wire;
    char reached[64], first[400];
    snprintf(first, sizeof first, "that rank is here already (host %s, process %d)",
             victims[0].membership->peers[1].host, (int)getpid());
    CHECK_STATUS(tutti__dial(heartbeat, "127.0.0.1", port, TUTTI_PURPOSE_MEMBER, 0, 0,
                             tutti__now_ns() + SECOND / 2, &wire, reached),
                 TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), first);
    pose(heartbeat, NULL, at, TUTTI_PURPOSE_CHANNEL, 0, unmet);
    pose(heartbeat, NULL, at, TUTTI_PURPOSE_CHANNEL, 5, unmet);
    pose(heartbeat, NULL, at, TUTTI_PURPOSE_STAND_IN, 0, unmet);
    pose(heartbeat, victims[1].membership->heartbeat->roster.token, at, TUTTI_PURPOSE_CHANNEL, 5,
         "refused: channel 5 of rank 1 is here already");
    usleep(100000);
    CHECK_CONTAINS(warned, "rank 2: a process at 127.0.0.1 that calls itself rank 1 was refused: ");
    pthread_barrier_wait(&posed);
    for (int r = 0; r < 3; r++) {
        pthread_join(victims[r].thread, NULL);
        CHECK_OK(victims[r].status);
    }
    tutti__heartbeat_free(heartbeat);
    tutti_cluster_free(cluster);
}

/* One that takes a connection, closes it without a word and is gone, as a rank 0 with TLS does that
 * gives up a moment before the others. */
static void *answer_once(void *context)
{
    const int *listener = context;
    int taken = accept(*listener, NULL, NULL);
    close(*listener);
    if (taken >= 0)
        close(taken);
    return NULL;
}

TUTTI_TEST(membership_says_what_came_of_an_attempt_that_reached_somebody)
{
    int port = next_ports(), listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char workers[64];
    pthread_t other;
    tutti_cluster *cluster;
    tutti_membership *m;
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, 1) == 0);
    CHECK_INT(pthread_create(&other, NULL, answer_once, &listener), 0);
    snprintf(workers, sizeof workers, "127.0.0.1:%d,127.0.0.1:%d", port, port + 1);
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = 1), &cluster));
    CHECK_STATUS(tutti__membership_join(cluster, tutti__now_ns() + SECOND / 2, &m), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "closed without a word; if it uses TLS");
    CHECK_CONTAINS(tutti_error_message(), "then nobody was there: Connection refused");
    pthread_join(other, NULL);
    tutti_cluster_free(cluster);
}

static tutti_cluster *resolve_of_job(int rank, int port, const char *job)
{
    char workers[60];
    tutti_cluster *cluster;
    snprintf(workers, sizeof workers, "localhost:%d,localhost:%d", port, port + 1);
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = rank), &cluster));
    snprintf(cluster->job, sizeof cluster->job, "%s", job);
    return cluster;
}

static void *wait_for_another_job(void *context)
{
    static char table[1000];
    tutti_cluster *cluster = context;
    tutti_membership *m;
    if (tutti__membership_join(cluster, tutti__now_ns() + SECOND, &m) == TUTTI_DEADLINE)
        snprintf(table, sizeof table, "%s", tutti_error_message());
    return table;
}

/* Both sides say which two jobs met, and neither goes on. */
TUTTI_TEST(membership_refuses_ranks_of_another_job)
{
    int port = next_ports();
    tutti_cluster *zero = resolve_of_job(0, port, "job A"), *one = resolve_of_job(1, port, "job B");
    tutti_membership *m;
    pthread_t thread;
    void *table;
    CHECK_INT(pthread_create(&thread, NULL, wait_for_another_job, zero), 0);
    CHECK_STATUS(tutti__membership_join(one, soon(), &m), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "of another job (it belongs to job B, where job A meets");
    pthread_join(thread, &table);
    CHECK_CONTAINS(table, "was refused: of another job (it belongs to job B, where job A meets)");
    tutti_cluster_free(zero);
    tutti_cluster_free(one);
}

TUTTI_TEST(membership_of_one_needs_no_network)
{
    tutti_cluster *cluster;
    tutti_membership *m;
    int32_t mine = 5, all = 0;
    CHECK_OK(tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .workers = "localhost:1"),
                                   &cluster));
    CHECK_OK(tutti__membership_join(cluster, soon(), &m));
    CHECK_INT(tutti__membership_fd(m), -1);
    CHECK_OK(tutti__membership_exchange(m, &mine, sizeof mine, soon(), &all));
    CHECK_INT(all, 5);
    CHECK_OK(tutti__membership_leave(m, soon()));
    tutti_cluster_free(cluster);
}

TUTTI_TEST(membership_refuses_a_time_of_silence_that_is_none)
{
    static const char *const wrong[] = {"abc", "5s", "-5", "0", "99999999999999999999"};
    tutti_cluster *cluster;
    tutti_membership *members;
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = "127.0.0.1:1", .role = "worker"),
        &cluster));
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        setenv("TUTTI_SILENCE_MS", wrong[i], 1);
        CHECK_STATUS(tutti__membership_join(cluster, soon(), &members), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "TUTTI_SILENCE_MS is '");
    }
    setenv("TUTTI_SILENCE_MS", "", 1);
    CHECK_OK(tutti__membership_join(cluster, soon(), &members));
    tutti__membership_abandon(members);
    tutti_cluster_free(cluster);
}
