/* open.c: a member of an open job, for the tests of this folder.
 *
 *     cluster_open [--deadline S] DEED...
 *
 * A server (role ps) answers messages until all workers have left. A worker does its deeds in
 * order: ping N (round trips to the first server; prints the median), load MB (one message there
 * and back), work S (a small message to every server now and then, for S seconds), file PATH (the
 * same, until the file is there), crash CODE. Everybody prints each view ("view 4 at 12.345: 0 1 2,
 * kept by 0"), and each rank that is lost. Exit code 0; 3 when the membership failed, 4 when it
 * could not join. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "comm/transport/transport.h"

#define SECOND INT64_C(1000000000)
enum { REQUEST = 1, ANSWER = 2 };

static tutti_cluster *cluster;
static tutti_membership *members;
static tutti_transport *transport;
static int64_t deadline_s = 20;
static long answers;

static int64_t deadline(void)
{
    return tutti__now_ns() + deadline_s * SECOND;
}

static double wall(void)
{
    return (double)(tutti__world()->wall_ns(tutti__world()->self) / 1000) / 1e6;
}

static void say_view(void *context, const tutti_member_view *view)
{
    (void)context;
    char text[600] = "";
    for (int i = 0; i < view->count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " %d", view->members[i].rank);
    }
    printf("view %llu at %.6f:%s, kept by %d%s\n", (unsigned long long)view->number, wall(), text,
           view->keeper, view->cut ? ", cut off" : "");
    fflush(stdout);
}

static void say_lost(void *context, int rank, uint64_t incarnation, bool gone, const char *why)
{
    (void)context;
    (void)incarnation;
    printf("%s rank %d: %s\n", gone ? "lost" : "cut", rank, why);
    fflush(stdout);
}

static void deliver(void *context, int rank, uint64_t incarnation, uint64_t tag, void *data,
                    size_t size)
{
    (void)context;
    struct iovec part = {data, size};
    tutti_transport_message message = {
        .rank = rank, .incarnation = incarnation, .tag = ANSWER, .parts = &part, .count = 1};
    answers += tag == ANSWER;
    if (tag == REQUEST)
        (void)tutti__transport_send(transport, &message);
}

static tutti_status serve(void)
{
    int workers = tutti_cluster_count(cluster, TUTTI_ROLE_WORKER) +
                  tutti_cluster_count(cluster, TUTTI_ROLE_CHIEF);
    while (tutti__membership_count_left(members, TUTTI_ROLE_WORKER) +
               tutti__membership_count_left(members, TUTTI_ROLE_CHIEF) <
           workers) {
        tutti_status status = tutti__transport_poll(transport, tutti__now_ns() + SECOND / 5);
        if (status != TUTTI_OK && status != TUTTI_DEADLINE)
            return status;
    }
    return TUTTI_OK;
}

static tutti_status ask(int rank, char *data, size_t size)
{
    struct iovec part = {data, size};
    long before = answers;
    tutti_transport_message message = {.rank = rank, .tag = REQUEST, .parts = &part, .count = 1};
    TUTTI_TRY(tutti__transport_send(transport, &message));
    int64_t until = deadline();
    while (answers == before)
        TUTTI_TRY(tutti__transport_poll(transport, until));
    return TUTTI_OK;
}

static int first_server(void)
{
    return tutti_cluster_size(cluster) - tutti_cluster_count(cluster, TUTTI_ROLE_PS);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static tutti_status ping(int count)
{
    int64_t *times = calloc((size_t)count, sizeof *times);
    char byte[8] = "ping";
    TUTTI_TRY(ask(first_server(), byte, sizeof byte));
    for (int i = 0; i < count; i++) {
        int64_t begun = tutti__now_ns();
        TUTTI_TRY(ask(first_server(), byte, sizeof byte));
        times[i] = tutti__now_ns() - begun;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("round trip over %s: median %.1f us, 1 in 100 above %.1f us\n",
           tutti__transport_way(transport, first_server()), (double)times[count / 2] / 1e3,
           (double)times[count - 1 - count / 100] / 1e3);
    free(times);
    return TUTTI_OK;
}

static tutti_status load(int megabytes)
{
    size_t size = (size_t)megabytes << 20;
    char *data = calloc(1, size);
    TUTTI_TRY(ask(first_server(), data, size));
    int64_t begun = tutti__now_ns();
    for (int i = 0; i < 3; i++)
        TUTTI_TRY(ask(first_server(), data, size));
    printf("%d MiB there and back over %s: %.2f GB/s each way\n", megabytes,
           tutti__transport_way(transport, first_server()),
           6 * (double)size / (double)(tutti__now_ns() - begun));
    free(data);
    return TUTTI_OK;
}

/* Those that are not there are passed over. */
static tutti_status work(double seconds, const char *file)
{
    int64_t until = tutti__now_ns() + (int64_t)(seconds * 1e9);
    while (file != NULL ? access(file, F_OK) != 0 : tutti__now_ns() < until) {
        for (int r = first_server(); r < tutti_cluster_size(cluster); r++) {
            char byte[4] = "hi";
            struct iovec part = {byte, sizeof byte};
            (void)tutti__transport_send(
                transport,
                &(tutti_transport_message){.rank = r, .tag = REQUEST, .parts = &part, .count = 1});
        }
        tutti_status status = tutti__transport_poll(transport, tutti__now_ns() + SECOND / 50);
        if (status != TUTTI_OK && status != TUTTI_DEADLINE)
            return status;
    }
    return TUTTI_OK;
}

static tutti_status act(const char *deed, const char *value)
{
    if (strcmp(deed, "ping") == 0)
        return ping(atoi(value));
    if (strcmp(deed, "load") == 0)
        return load(atoi(value));
    if (strcmp(deed, "work") == 0)
        return work(atof(value), NULL);
    if (strcmp(deed, "file") == 0)
        return work(0, value);
    if (strcmp(deed, "crash") == 0)
        _exit(atoi(value));
    return tutti_fail(TUTTI_INVALID, "there is no deed '%s'", deed);
}

static tutti_status be_worker(int at, int argc, char **argv)
{
    int servers = tutti_cluster_count(cluster, TUTTI_ROLE_PS);
    TUTTI_TRY(tutti__membership_await_members(members, TUTTI_ROLE_PS, servers, deadline()));
    for (; at + 1 < argc; at += 2)
        TUTTI_TRY(act(argv[at], argv[at + 1]));
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    int at = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (at + 1 < argc && strcmp(argv[at], "--deadline") == 0) {
        deadline_s = atoi(argv[at + 1]);
        at += 2;
    }
    tutti_transport_calls calls = {
        .deliver = deliver, .lost = say_lost, .view = say_view, .context = NULL};
    tutti_status status = tutti_cluster_resolve(NULL, &cluster);
    if (status == TUTTI_OK)
        status = tutti__membership_join_open(cluster, deadline(), &members);
    if (status == TUTTI_OK)
        status = tutti__transport_open(members, NULL, &calls, &transport);
    if (status != TUTTI_OK) {
        printf("join: %s: %s\n", tutti_status_text(status), tutti_error_message());
        return 4;
    }
    char banner[300];
    tutti__membership_describe(members, banner, sizeof banner);
    printf("joined: %s\n", banner);
    printf("process %d is %s %d\n", (int)getpid(), tutti_role_text(tutti_cluster_role(cluster)),
           tutti_cluster_index(cluster));
    fflush(stdout);
    bool server = tutti_cluster_role(cluster) == TUTTI_ROLE_PS;
    status = server ? serve() : be_worker(at, argc, argv);
    if (status != TUTTI_OK) {
        printf("failed: %s: %s\n", tutti_status_text(status), tutti_error_message());
        fflush(stdout);
        tutti__transport_close(transport);
        tutti__membership_abandon(members);
        return 3;
    }
    tutti__transport_close(transport);
    status = tutti__membership_leave(members, deadline());
    printf("left: %s\n", tutti_status_text(status));
    tutti_cluster_free(cluster);
    return status == TUTTI_OK ? 0 : 3;
}
