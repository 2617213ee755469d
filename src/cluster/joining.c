/* joining.c: how a process finds the job whose ranks come and go: who keeps its roster, or that it
 * is itself the first. */
#include <stdio.h>
#include <string.h>

#include "cluster/heartbeat.h"
#include "cluster/place.h"
#include "cluster/roster_view.h"

/* Where one who keeps the roster, or knows who does, may be: where the job meets, and every task
 * whose address is known. */
typedef struct place {
    char host[256];
    int port;
} place;

typedef TUTTI_VEC(place) place_list;

static bool add_place(place_list *places, const char *host, int port)
{
    place at = {.port = port};
    snprintf(at.host, sizeof at.host, "%s", host);
    if (tutti__host_loopback(host) && strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0)
        snprintf(at.host, sizeof at.host, "127.0.0.1");
    for (size_t i = 0; i < places->count; i++)
        if (places->data[i].port == port && strcmp(places->data[i].host, at.host) == 0)
            return true;
    return TUTTI_VEC_PUSH(places, at);
}

static bool list_places(const tutti_heartbeat *heartbeat, const char *host, int port,
                        place_list *places)
{
    const tutti_cluster *cluster = heartbeat->cluster;
    bool first = cluster->rank == 0 && !cluster->rejoin; /* it is itself who listens there */
    bool good = first || add_place(places, host, port);
    for (int r = 0; good && r < cluster->size; r++) {
        tutti_role role;
        int index, at = 0;
        char name[256];
        if (r == cluster->rank || !tutti_cluster_find_rank(cluster, r, &role, &index))
            continue;
        const char *task = tutti_cluster_task(cluster, role, index);
        if (task != NULL && tutti__task_split(task, name, sizeof name, &at) && at > 0 && name[0])
            good = add_place(places, name, at);
    }
    return good;
}

static tutti_status link_to_keeper(tutti_heartbeat *heartbeat, tutti_wire wire, int keeper,
                                   const char *reached)
{
    tutti_link *link;
    pthread_mutex_lock(&heartbeat->lock);
    tutti_status status = tutti__link_add(heartbeat, wire, TUTTI_LINK_MEMBER, keeper, &link);
    if (status == TUTTI_OK) {
        tutti__roster_view_linked(&heartbeat->roster, tutti__now_ns(), keeper, reached);
        tutti__link_read(heartbeat, link); /* TLS may hold what came behind the admission */
        tutti__heartbeat_publish(heartbeat);
    }
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
    return status;
}

/* Where it has let us in the view follows at once, unless it is lost just now. */
static bool await_first_view(tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    const tutti_roster *roster = &heartbeat->roster;
    int64_t until = tutti__now_ns() + heartbeat->silence_ns;
    until = until < deadline_ns ? until : deadline_ns;
    pthread_mutex_lock(&heartbeat->lock);
    while (roster->phase == TUTTI_PHASE_GATHERING && roster->keeper >= 0 &&
           roster->members[roster->keeper].linked && tutti__heartbeat_wait(heartbeat, until))
        ;
    bool in = roster->phase != TUTTI_PHASE_GATHERING && heartbeat->shown != NULL;
    pthread_mutex_unlock(&heartbeat->lock);
    return in;
}

typedef struct search {
    tutti_heartbeat *heartbeat;
    int64_t deadline_ns;
    tutti_error error; /* of the attempt that says most */
    bool reached;      /* somebody of the job was, in this round */
    bool final;
} search;

static void note_failure(search *s, tutti_status status)
{
    if (s->error.status == TUTTI_OK || s->reached || s->final)
        tutti__error_capture(status, &s->error);
}

/* Follows who says that another keeps the roster, a few times. True when this rank is in a view. */
static bool try_place(search *s, place at)
{
    for (int hops = 0; hops < 4; hops++) {
        tutti_wire wire;
        tutti_peer_hint hint;
        char reached[64];
        int keeper;
        int64_t until = tutti__now_ns() + INT64_C(5000000000);
        tutti_status status = tutti__dial_keeper(s->heartbeat, at.host, at.port,
                                                 until < s->deadline_ns ? until : s->deadline_ns,
                                                 &wire, reached, &keeper, &hint, &s->final);
        if (status == TUTTI_OK) {
            s->reached = true;
            return link_to_keeper(s->heartbeat, wire, keeper, reached) == TUTTI_OK &&
                   await_first_view(s->heartbeat, s->deadline_ns);
        }
        s->reached = s->reached || (status == TUTTI_NOT_FOUND && !hint.fresh);
        note_failure(s, status);
        if (status != TUTTI_NOT_FOUND || hint.rank < 0)
            return false;
        at.port = hint.port; /* "" and loopback: on the machine of the one that says so */
        bool near = hint.address[0] == '\0' || tutti__host_loopback(hint.address);
        snprintf(at.host, sizeof at.host, "%s", near ? reached : hint.address);
    }
    return false;
}

static tutti_status search_job(tutti_heartbeat *heartbeat, const place_list *places,
                               int64_t deadline_ns)
{
    const tutti_world *world = tutti__world();
    const tutti_cluster *cluster = heartbeat->cluster;
    search s = {.heartbeat = heartbeat, .deadline_ns = deadline_ns};
    for (int64_t pause = 5000000;; pause = pause < 320000000 ? 2 * pause : pause) {
        s.reached = s.final = false;
        for (size_t i = 0; i < places->count && !s.final; i++)
            if (try_place(&s, places->data[i]))
                return TUTTI_OK;
        if (!s.reached && !s.final && cluster->rank == 0 && !cluster->rejoin) {
            pthread_mutex_lock(&heartbeat->lock);
            tutti__roster_view_found(&heartbeat->roster, tutti__now_ns());
            tutti__heartbeat_publish(heartbeat);
            pthread_mutex_unlock(&heartbeat->lock);
            tutti__heartbeat_wake(heartbeat);
            return TUTTI_OK;
        }
        int64_t left = deadline_ns - tutti__now_ns();
        if (tutti__membership_failed(&heartbeat->membership))
            return tutti__membership_fail(&heartbeat->membership);
        if (s.final || left <= 0) {
            tutti_status status = tutti__error_restore(&s.error);
            return tutti__error_prefix(s.final ? status : TUTTI_DEADLINE,
                                       "rank %d cannot join the job at %s", cluster->rank,
                                       cluster->meeting);
        }
        world->sleep_ns(world->self, pause < left ? pause : left);
    }
}

static tutti_status join(tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    const tutti_cluster *cluster = heartbeat->cluster;
    char host[256] = "";
    int port = 0;
    place_list places = {0};
    if (cluster->meeting == NULL ||
        !tutti__task_split(cluster->meeting, host, sizeof host, &port) || port == 0)
        return tutti_fail(TUTTI_INVALID, "where rank 0 is to be reached is '%s', not host:port",
                          cluster->meeting != NULL ? cluster->meeting : "");
    if (tutti__host_loopback(host) && strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0)
        snprintf(host, sizeof host, "127.0.0.1");
    snprintf(heartbeat->reached, sizeof heartbeat->reached, "127.0.0.1");
    TUTTI_TRY(tutti__listener_open(heartbeat, host, port, deadline_ns));
    tutti_peer self = {.port = heartbeat->me.port,
                       .pid = heartbeat->me.pid,
                       .machine = heartbeat->me.machine,
                       .role = cluster->role,
                       .index = cluster->index};
    snprintf(self.host, sizeof self.host, "%s", heartbeat->me.host);
    snprintf(self.address, sizeof self.address, "%s", heartbeat->me.address);
    tutti__roster_self(&heartbeat->roster, &self);
    TUTTI_TRY(tutti__allow_descriptors(cluster->size)); /* any of them may keep the roster */
    tutti__wish_descriptors(cluster->size * 4);
    TUTTI_TRY(tutti__heartbeat_start(heartbeat));
    tutti_status status = list_places(heartbeat, host, port, &places)
                              ? search_job(heartbeat, &places, deadline_ns)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a list of tasks");
    TUTTI_VEC_FREE(&places);
    return status;
}

tutti_status tutti__membership_join_open(const tutti_cluster *cluster, int64_t deadline_ns,
                                         tutti_membership **ret_membership)
{
    tutti_heartbeat *heartbeat;
    tutti_cluster own = *cluster;
    own.open = true;
    if (cluster->rank < 0)
        return tutti_fail(TUTTI_INVALID,
                          "an evaluator stands beside the job and has no rank in it; "
                          "let it read checkpoints instead of joining");
    TUTTI_TRY(tutti__heartbeat_create(&own, &heartbeat));
    tutti_status status = join(heartbeat, deadline_ns);
    if (status != TUTTI_OK) {
        tutti_error error;
        tutti__error_capture(status, &error);
        tutti__membership_abandon(&heartbeat->membership);
        return tutti__error_restore(&error);
    }
    heartbeat->membership.job = heartbeat->roster.job;
    *ret_membership = &heartbeat->membership;
    return TUTTI_OK;
}
