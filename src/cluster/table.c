/* table.c: who is missing at the rendezvous, and why. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/heartbeat.h"
#include "cluster/lookup.h"
#include "cluster/roster_view.h"

enum { MOST_LISTED = 8, MILLISECOND = 1000000 };

/* Whether something answers at an address: 0, or -errno (-EAGAIN: no answer within 100 ms). */
static int knock(const tutti_address *address)
{
    const tutti_world *world = tutti__world();
    int socket = world->connect(world->self, address, NULL);
    if (socket < 0)
        return socket;
    tutti_wait wait = {.socket = socket, .wants = TUTTI_WAIT_WRITE};
    int came = world->wait(world->self, &wait, 1, 100 * MILLISECOND);
    int result = came > 0 ? world->connected(world->self, socket) : -EAGAIN;
    world->close_socket(world->self, socket);
    return result;
}

static bool resolves(const char *host, int port, tutti_address *ret, size_t *ret_count)
{
    int64_t until = tutti__now_ns() + 200 * MILLISECOND;
    return tutti__lookup(host, port, until, ret, ret_count) == TUTTI_OK && *ret_count > 0;
}

/* The name by which the others look for this rank may be wrong. */
static void doubt_meeting(const char *meeting, tutti_text *text)
{
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    char host[256];
    int port;
    if (tutti__task_split(meeting, host, sizeof host, &port) &&
        !resolves(host, port, addresses, &count))
        tutti__text_add(text,
                        "\nthe name '%s', by which they look for rank 0, does not resolve here "
                        "either",
                        host);
}

/* What can be found out about a task from outside. */
static void explore(const char *task, char *ret_text, size_t size)
{
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    char host[256];
    int port;
    if (!tutti__task_split(task, host, sizeof host, &port)) {
        snprintf(ret_text, size, "it has not been heard of");
        return;
    }
    if (!resolves(host, port, addresses, &count)) {
        snprintf(ret_text, size, "the name '%s' does not resolve", host);
        return;
    }
    int result = port > 0 ? knock(&addresses[0]) : -EAGAIN;
    if (port == 0)
        snprintf(ret_text, size, "it has not been heard of");
    else if (result == 0)
        snprintf(ret_text, size, "it listens at port %d but has not come; can it reach rank 0?",
                 port);
    else if (result == -EAGAIN)
        snprintf(ret_text, size, "no answer from %s; is a firewall between?", host);
    else
        snprintf(ret_text, size, "%s at port %d; was it started?", strerror(-result), port);
}

typedef struct gap {
    int rank;
    tutti_refusal seen;
    char from[64];
    int64_t pid; /* of one that came and went; 0: none did */
    char host[256];
} gap;

/* Under the lock. */
static int find_gaps(const tutti_heartbeat *heartbeat, gap gaps[MOST_LISTED])
{
    int count = 0;
    bool open = heartbeat->roster.options.open;
    for (int r = open ? 0 : 1; r < heartbeat->cluster->size; r++) {
        if (open ? tutti__roster_view_has(&heartbeat->roster, r)
                 : heartbeat->roster.members[r].linked)
            continue;
        if (count < MOST_LISTED) {
            const tutti_peer *peer = &heartbeat->roster.members[r].peer;
            gaps[count] = (gap){.rank = r, .seen = heartbeat->seen[r], .pid = peer->pid};
            snprintf(gaps[count].host, sizeof gaps[count].host, "%s", peer->host);
            snprintf(gaps[count].from, sizeof gaps[count].from, "%s", heartbeat->seen_from[r]);
        }
        count++;
    }
    return count;
}

void tutti__missing_table(tutti_heartbeat *heartbeat, int64_t waited_ns, char *ret_text,
                          size_t size)
{
    gap gaps[MOST_LISTED];
    tutti_text text = {0};
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    char turned_from[sizeof heartbeat->turned_from], turned_why[sizeof heartbeat->turned_why];
    char of_job[3 * TUTTI_JOB_BYTES];
    pthread_mutex_lock(&heartbeat->lock);
    int count = find_gaps(heartbeat, gaps), world = heartbeat->cluster->size, unseen = 0;
    tutti__link_note_silent(heartbeat);
    snprintf(turned_from, sizeof turned_from, "%s", heartbeat->turned_from);
    snprintf(turned_why, sizeof turned_why, "%s", heartbeat->turned_why);
    tutti__refusal_job_text(heartbeat->other_job, heartbeat->me.job, of_job, sizeof of_job);
    pthread_mutex_unlock(&heartbeat->lock);
    for (int i = 0; i < count && i < MOST_LISTED; i++)
        unseen += gaps[i].seen == TUTTI_REFUSAL_NONE && gaps[i].pid == 0;
    bool certain = unseen == 1 && count <= MOST_LISTED; /* whom it was that did not say its rank */
    tutti__text_add(&text, "after %.1f s, %d of %d ranks have met at %s; missing:",
                    (double)waited_ns / 1e9, world - count, world, heartbeat->cluster->meeting);
    for (int i = 0; i < count && i < MOST_LISTED; i++) {
        tutti_role role = TUTTI_ROLE_WORKER;
        int index = 0;
        char why[sizeof of_job + 100];
        tutti_cluster_find_rank(heartbeat->cluster, gaps[i].rank, &role, &index);
        const char *task = tutti_cluster_task(heartbeat->cluster, role, index);
        if (gaps[i].seen != TUTTI_REFUSAL_NONE)
            snprintf(why, sizeof why, "a process at %s was refused: %s", gaps[i].from,
                     gaps[i].seen == TUTTI_REFUSAL_JOB ? of_job
                                                       : tutti__refusal_text(gaps[i].seen));
        else if (gaps[i].pid != 0)
            snprintf(
                why, sizeof why,
                "it was there (host %s, process %lld), and went before all had met; see why it "
                "ended",
                gaps[i].host, (long long)gaps[i].pid);
        else if (certain && turned_why[0] != '\0')
            snprintf(why, sizeof why, "a process at %s was refused: %s", turned_from, turned_why);
        else
            explore(task != NULL ? task : "", why, sizeof why);
        tutti__text_add(&text, "\n  rank %d (%s %d%s%s): %s", gaps[i].rank, tutti_role_text(role),
                        index, task && *task ? " at " : "", task ? task : "", why);
    }
    if (count > MOST_LISTED)
        tutti__text_add(&text, "\n  and %d more", count - MOST_LISTED);
    if (!certain && turned_why[0] != '\0')
        tutti__text_add(&text, "\na process at %s was refused: %s", turned_from, turned_why);
    if (count > 0)
        doubt_meeting(heartbeat->cluster->meeting, &text);
    snprintf(ret_text, size, "%s", text.failed ? "ranks are missing" : text.data);
    tutti__text_free(&text);
    tutti__error_restore(&before);
}

void tutti__missing_tell(tutti_heartbeat *heartbeat)
{
    tutti_text text = {0};
    int own = heartbeat->cluster->rank;
    tutti__text_add(&text, "missing");
    pthread_mutex_lock(&heartbeat->lock);
    for (int r = 1; r < heartbeat->cluster->size; r++)
        if (own == 0 ? !heartbeat->roster.members[r].linked : r == own)
            tutti__text_add(&text, " %d", r);
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__text_add(&text, "\n");
    if (heartbeat->cluster->launcher_fd >= 0 && !text.failed)
        (void)!send(heartbeat->cluster->launcher_fd, text.data, text.size, MSG_NOSIGNAL);
    tutti__text_free(&text);
}
