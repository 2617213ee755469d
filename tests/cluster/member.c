/* member.c: a rank for the tests of this folder: joins, does what it is told, says what happened.
 *
 *     cluster_member [--deadline S] DEED...
 *
 * Deeds, in order: exchange N (rounds), channel (some bytes each way with every other rank), spin
 * (enters an operation and waits for a failure), work S (sleeps), slow MS (before each round, rank
 * 1 only), skew (rank 0 says who is late), agree R (rank R has another hash), crash CODE and abort
 * (rank 1 only). At the end it leaves. Prints one line a deed; exit code 0 success, 3 a verdict, 4
 * no rendezvous. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "cluster/channel.h"

#define SECOND INT64_C(1000000000)

static tutti_cluster *cluster;
static tutti_membership *members;
static int64_t deadline_s = 20;
static int slow_ms;

static int64_t deadline(void)
{
    return tutti__now_ns() + deadline_s * SECOND;
}

static int give_up(const char *what, tutti_status status)
{
    int64_t seen = tutti__world()->wall_ns(tutti__world()->self);
    char text[1024];
    snprintf(text, sizeof text, "%s", tutti_error_message());
    printf("%s: %s: %s\n", what, tutti_status_text(status), text);
    printf("seen at %.3f\n", (double)(seen / 1000000) / 1e3);
    fflush(stdout);
    tutti__membership_abandon(members);
    tutti_cluster_free(cluster);
    return 3;
}

static tutti_status exchange(int rounds)
{
    static int64_t all[2 * TUTTI_MOST_RANKS];
    int64_t mine[2];
    for (int i = 0; i < rounds; i++) {
        mine[0] = members->rank;
        mine[1] = i;
        if (slow_ms > 0 && members->rank == 1)
            usleep((useconds_t)slow_ms * 1000);
        tutti__membership_note(members, (tutti_rank_group){0}, "exchange", (uint64_t)i, true);
        TUTTI_TRY(tutti__membership_exchange(members, mine, sizeof mine, deadline(), all));
        tutti__membership_note(members, (tutti_rank_group){0}, "exchange", (uint64_t)i, false);
        for (int r = 0; r < members->size; r++)
            if (all[2 * r] != r || all[2 * r + 1] != i)
                return tutti_fail(TUTTI_INTERNAL, "rank %d gave something else", r);
    }
    printf("exchanged %d\n", rounds);
    return TUTTI_OK;
}

static tutti_status move(tutti_channel *channel, bool send, char *data, size_t size)
{
    int64_t until = deadline();
    while (size > 0) {
        size_t done = 0;
        TUTTI_TRY(send ? tutti__channel_send(channel, data, size, &done)
                       : tutti__channel_recv(channel, data, size, &done));
        data += done;
        size -= done;
        if (tutti__now_ns() > until)
            return tutti_fail(TUTTI_DEADLINE, "a byte took too long");
        struct pollfd wait = {tutti__channel_fd(channel), send ? POLLOUT : POLLIN, 0};
        if (done == 0 && !tutti__channel_pending(channel))
            poll(&wait, 1, 100);
    }
    return TUTTI_OK;
}

static tutti_status channels(void)
{
    for (int r = 0; r < members->size; r++) {
        tutti_channel *channel;
        char sent[3] = {(char)members->rank, (char)r, 'x'}, got[3] = {0};
        if (r == members->rank)
            continue;
        TUTTI_TRY(tutti__channel_open(members, r, 7, deadline(), &channel));
        tutti_status status = move(channel, true, sent, sizeof sent);
        if (status == TUTTI_OK)
            status = move(channel, false, got, sizeof got);
        bool encrypted = tutti__channel_encrypted(channel);
        tutti__channel_close(channel);
        TUTTI_TRY(status);
        if (got[0] != r || got[1] != members->rank || got[2] != 'x')
            return tutti_fail(TUTTI_INTERNAL, "rank %d sent something else", r);
        if (r == members->size - 1 || (r == members->size - 2 && members->rank == r + 1))
            printf("channels %s\n", encrypted ? "encrypted" : "plain");
    }
    return TUTTI_OK;
}

static tutti_status spin(void)
{
    printf("spinning %d\n", (int)getpid());
    fflush(stdout);
    tutti__membership_note(members, (tutti_rank_group){0}, "all_reduce", 41, true);
    tutti__membership_note(members, (tutti_rank_group){0}, "all_reduce", 41, false);
    if (members->rank != 1)
        tutti__membership_note(members, (tutti_rank_group){0}, "all_reduce", 42, true);
    struct pollfd wait = {tutti__membership_fd(members), POLLIN, 0};
    if (poll(&wait, 1, (int)deadline_s * 1000) != 1 || !tutti__membership_failed(members))
        return tutti_fail(TUTTI_INTERNAL, "nothing failed");
    return tutti__membership_fail(members);
}

static void say_skew(void)
{
    for (int r = 0; members->rank == 0 && r < members->size; r++) {
        tutti_skew skew = tutti__membership_skew(members, r);
        printf("skew %d: %llu samples, last %llu times, mean %.1f ms\n", r,
               (unsigned long long)skew.samples, (unsigned long long)skew.last_by[0],
               (double)skew.mean_ns / 1e6);
    }
}

static tutti_status act(const char *deed, const char *value)
{
    int number = value != NULL ? atoi(value) : 0;
    if (strcmp(deed, "exchange") == 0)
        return exchange(number);
    if (strcmp(deed, "channel") == 0)
        return channels();
    if (strcmp(deed, "spin") == 0)
        return spin();
    if (strcmp(deed, "helper") == 0 && fork() == 0) { /* as loaders of data are */
        sleep((unsigned)number);
        _exit(0);
    }
    if (strcmp(deed, "work") == 0)
        usleep((useconds_t)(atof(value) * 1e6));
    while (strcmp(deed, "file") == 0 && access(value, F_OK) != 0)
        usleep(10000);
    if (strcmp(deed, "slow") == 0)
        slow_ms = number;
    if (strcmp(deed, "skew") == 0)
        say_skew();
    if (strcmp(deed, "agree") == 0)
        return tutti__membership_agree(members, "schedule", members->rank == number ? 2u : 1u,
                                       deadline());
    if (strcmp(deed, "crash") == 0 && members->rank == 1)
        _exit(number);
    if (strcmp(deed, "abort") == 0 && members->rank == 1)
        abort();
    return TUTTI_OK;
}

static bool takes_value(const char *deed)
{
    static const char *const names[] = {"exchange", "helper", "work", "file",
                                        "slow",     "crash",  "agree"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], deed) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    int at = 1;
    if (at + 1 < argc && strcmp(argv[at], "--deadline") == 0) {
        deadline_s = atoi(argv[at + 1]);
        at += 2;
    }
    int64_t begun = tutti__now_ns();
    tutti_status status = tutti_cluster_resolve(NULL, &cluster);
    if (status == TUTTI_OK)
        status = tutti__membership_join(cluster, deadline(), &members);
    if (status != TUTTI_OK) {
        printf("join: %s: %s\n", tutti_status_text(status), tutti_error_message());
        tutti_cluster_free(cluster);
        return 4;
    }
    char banner[500];
    tutti__membership_describe(members, banner, sizeof banner);
    printf("joined as %d in %.3f s: %s\n", members->rank, (double)(tutti__now_ns() - begun) / 1e9,
           banner);
    fflush(stdout);
    for (; at < argc; at++) {
        const char *deed = argv[at], *value = takes_value(deed) ? argv[++at] : NULL;
        if ((status = act(deed, value)) != TUTTI_OK)
            return give_up(deed, status);
        fflush(stdout);
    }
    status = tutti__membership_leave(members, deadline());
    members = NULL;
    if (status != TUTTI_OK)
        return give_up("leave", status);
    printf("left\n");
    tutti_cluster_free(cluster);
    return 0;
}
