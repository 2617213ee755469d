/* member_view.c: views of an open job as callers see them, and joining one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/heartbeat.h"
#include "cluster/place.h"
#include "cluster/roster_view.h"

/* ---- showing ---- */

/* How the launcher, which starts ranks again, finds who keeps the roster: "keeper PORT". It knows
 * the host by the rank that says so. */
static void tell_launcher(tutti_heartbeat *heartbeat)
{
    char line[64];
    const tutti_roster *roster = &heartbeat->roster;
    if (roster->keeper == heartbeat->keeper_told || roster->phase != TUTTI_PHASE_RUNNING)
        return;
    heartbeat->keeper_told = roster->keeper;
    int port = roster->keeper == roster->options.rank ? heartbeat->me.port : 0;
    int size = snprintf(line, sizeof line, "keeper %d %d\n", roster->keeper, port);
    if (heartbeat->cluster->launcher_fd >= 0)
        (void)!send(heartbeat->cluster->launcher_fd, line, (size_t)size,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_shown(const tutti_heartbeat *heartbeat)
{
    const tutti_roster *roster = &heartbeat->roster;
    const tutti_member_view *view = heartbeat->shown;
    uint64_t own = roster->outside ? 0 : roster->members[roster->options.rank].incarnation;
    return view != NULL && view->number == roster->view && view->keeper == roster->keeper &&
           view->cut == roster->cut && view->own == own;
}

void tutti__member_view_show(tutti_heartbeat *heartbeat)
{
    const tutti_roster *roster = &heartbeat->roster;
    int count = tutti__roster_view_count(roster), at = 0;
    bool running = roster->phase == TUTTI_PHASE_RUNNING || roster->phase == TUTTI_PHASE_ASKING;
    if (!running || roster->view == 0 || is_shown(heartbeat))
        return;
    tell_launcher(heartbeat);
    tutti_member_view *view = calloc(1, sizeof *view + (size_t)count * sizeof *view->members);
    if (view == NULL)
        return; /* the next message or tick tries again */
    view->number = roster->view;
    view->keeper = roster->keeper;
    view->cut = roster->cut;
    view->own = roster->outside ? 0 : roster->members[roster->options.rank].incarnation;
    view->size = roster->options.size;
    view->count = count;
    atomic_init(&view->references, 1);
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (member->left)
            tutti__ranks_add(&view->left, r);
        if (member->incarnation != 0)
            view->members[at++] = (tutti_view_member){r, member->incarnation, member->peer};
    }
    tutti__member_view_release(heartbeat->shown);
    heartbeat->shown = view;
    heartbeat->news = true;
}

void tutti__member_view_tell(tutti_heartbeat *heartbeat)
{
    if (!heartbeat->news)
        return;
    heartbeat->news = false;
    heartbeat->telling = true;
    size_t count = heartbeat->watchers.count;
    for (size_t i = 0; i < count && i < heartbeat->watchers.count; i++) {
        tutti_watcher watcher = heartbeat->watchers.data[i];
        pthread_mutex_unlock(&heartbeat->lock);
        watcher.tell(watcher.context);
        pthread_mutex_lock(&heartbeat->lock);
    }
    heartbeat->telling = false;
    pthread_cond_broadcast(&heartbeat->changed);
}

tutti_status tutti__membership_watch(tutti_membership *membership, void (*tell)(void *context),
                                     void *context)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_watcher watcher = {tell, context};
    pthread_mutex_lock(&heartbeat->lock);
    bool good = TUTTI_VEC_PUSH(&heartbeat->watchers, watcher);
    heartbeat->news = true; /* what is there already */
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
    return good ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to watch a job's views");
}

void tutti__membership_unwatch(tutti_membership *membership, void (*tell)(void *context),
                               void *context)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    size_t kept = 0;
    pthread_mutex_lock(&heartbeat->lock);
    for (size_t i = 0; i < heartbeat->watchers.count; i++) {
        tutti_watcher each = heartbeat->watchers.data[i];
        if (each.tell != tell || each.context != context)
            heartbeat->watchers.data[kept++] = each;
    }
    heartbeat->watchers.count = kept;
    while (heartbeat->telling)
        tutti__heartbeat_wait(heartbeat, tutti__now_ns() + 10000000);
    pthread_mutex_unlock(&heartbeat->lock);
}

/* ---- what callers ask ---- */

const tutti_member_view *tutti__membership_view(tutti_membership *membership)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    tutti_member_view *view = heartbeat->shown;
    atomic_fetch_add(&view->references, 1);
    pthread_mutex_unlock(&heartbeat->lock);
    return view;
}

void tutti__member_view_release(const tutti_member_view *view)
{
    tutti_member_view *own = (tutti_member_view *)(uintptr_t)view;
    if (own != NULL && atomic_fetch_sub(&own->references, 1) == 1)
        free(own);
}

const tutti_view_member *tutti__member_view_find(const tutti_member_view *view, int rank)
{
    for (int i = 0; i < view->count; i++)
        if (view->members[i].rank == rank)
            return &view->members[i];
    return NULL;
}

int tutti__member_view_count(const tutti_member_view *view, tutti_role role)
{
    int count = 0;
    for (int i = 0; i < view->count; i++)
        count += view->members[i].peer.role == role;
    return count;
}

int tutti__membership_count_left(tutti_membership *membership, tutti_role role)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    int count = 0, index;
    pthread_mutex_lock(&heartbeat->lock);
    for (int r = 0; r < heartbeat->cluster->size; r++) {
        tutti_role each;
        count += heartbeat->roster.members[r].left &&
                 tutti_cluster_find_rank(heartbeat->cluster, r, &each, &index) && each == role;
    }
    pthread_mutex_unlock(&heartbeat->lock);
    return count;
}

const tutti_member_view *tutti__membership_await_view(tutti_membership *membership, uint64_t after,
                                                      int64_t deadline_ns)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_member_view *view = NULL;
    bool in_time = true;
    pthread_mutex_lock(&heartbeat->lock);
    while (in_time && view == NULL && !tutti__membership_failed(membership)) {
        if (heartbeat->shown->number > after)
            view = heartbeat->shown;
        else
            in_time = tutti__heartbeat_wait(heartbeat, deadline_ns);
    }
    if (view != NULL)
        atomic_fetch_add(&view->references, 1);
    pthread_mutex_unlock(&heartbeat->lock);
    return view;
}

tutti_status tutti__membership_await_members(tutti_membership *membership, tutti_role role,
                                             int count, int64_t deadline_ns)
{
    int64_t begun = tutti__now_ns();
    uint64_t seen = 0;
    tutti_verdict table;
    for (;;) {
        const tutti_member_view *view = tutti__membership_await_view(membership, seen, deadline_ns);
        if (view == NULL)
            break;
        bool enough = tutti__member_view_count(view, role) >= count;
        seen = view->number;
        tutti__member_view_release(view);
        if (enough)
            return TUTTI_OK;
    }
    if (tutti__membership_failed(membership))
        return tutti__membership_fail(membership);
    tutti__missing_table(membership->heartbeat, tutti__now_ns() - begun, table.text,
                         sizeof table.text);
    return tutti_fail(TUTTI_DEADLINE, "too few tasks with the role %s: %d are needed; %s",
                      tutti_role_text(role), count, table.text);
}

void tutti__membership_gone(tutti_membership *membership, int rank, char *ret_text, size_t size)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    snprintf(ret_text, size, "%s", heartbeat->roster.members[rank].gone);
    pthread_mutex_unlock(&heartbeat->lock);
}

/* ---- joining ---- */

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
        s->reached = s->reached || status == TUTTI_NOT_FOUND;
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
