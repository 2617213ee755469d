/* member_view.c: views of an open job as callers see them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/heartbeat.h"
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
