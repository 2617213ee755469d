/* transport.c: see transport.h: peers and their links, polling, callbacks. */
#define _GNU_SOURCE
#include "comm/transport/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pause.h"
#include "base/pool.h"
#include "base/world.h"
#include "comm/transport/inside.h"

static const int64_t retry_ns = 20000000, slice_ns = 100000000;

/* ---- opening and closing ---- */

static void tell(void *context)
{
    tutti_transport *t = context;
    atomic_store(&t->changed, true);
    tutti__transport_wake(t);
}

void tutti__transport_wake(tutti_transport *t)
{
    uint64_t one = 1;
    atomic_store(&t->woken, true);
    (void)!write(t->wake_fd, &one, sizeof one);
}

static void fill_options(tutti_transport_options *o)
{
    const char *engine = getenv("TUTTI_ENGINE");
    o->no_sharing = o->no_sharing || (engine != NULL && strcmp(engine, "tcp") == 0);
    o->most = o->most != 0 ? o->most : (uint64_t)16 << 30;
    o->most_kept = o->most_kept != 0 ? o->most_kept : (uint64_t)256 << 20;
    bool alone = tutti__cpu_count() < 2; /* whom it waits for wants the CPU */
    o->spin_ns = o->spin_ns < 0 || alone ? 0 : o->spin_ns > 0 ? o->spin_ns : 50000;
}

tutti_status tutti__transport_open(tutti_membership *membership,
                                   const tutti_transport_options *options,
                                   const tutti_transport_calls *calls,
                                   tutti_transport **ret_transport)
{
    tutti_transport *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a transport");
    t->membership = membership;
    if (options != NULL)
        t->options = *options;
    t->calls = *calls;
    fill_options(&t->options);
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->polling, NULL);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->view = tutti__membership_view(membership);
    t->view_is_new = true;
    tutti_status status = t->wake_fd < 0
                              ? tutti_fail(TUTTI_NO_MEMORY, "no descriptor: %s", strerror(errno))
                              : tutti__membership_watch(membership, tell, t);
    if (status != TUTTI_OK) {
        if (t->wake_fd >= 0)
            close(t->wake_fd);
        tutti__member_view_release(t->view);
        free(t);
        return status;
    }
    atomic_store(&t->changed, true); /* somebody may have called before anybody watched */
    *ret_transport = t;
    return TUTTI_OK;
}

static void drop_events(tutti_transport *t)
{
    for (size_t i = 0; i < t->events.count; i++) {
        tutti_transport_event *e = &t->events.data[i];
        if (e->what == TRANSPORT_DONE)
            e->done(e->context, e->status);
        else if (!e->placed)
            free(e->data);
    }
    t->events.count = 0;
}

void tutti__transport_close(tutti_transport *t)
{
    if (t == NULL)
        return;
    tutti__membership_unwatch(t->membership, tell, t);
    for (size_t i = 0; i < t->links.count; i++) {
        tutti__transport_end(t, t->links.data[i], false, "");
        tutti__transport_link_free(t->links.data[i]);
    }
    drop_events(t);
    TUTTI_VEC_FREE(&t->links);
    TUTTI_VEC_FREE(&t->events);
    tutti__member_view_release(t->view);
    close(t->wake_fd);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->polling);
    free(t);
}

/* ---- links ---- */

static tutti_transport_link *find_link(const tutti_transport *t, int rank)
{
    for (size_t i = 0; i < t->links.count; i++)
        if (t->links.data[i]->rank == rank)
            return t->links.data[i];
    return NULL;
}

/* Of the incarnation that is in the view; NULL without memory. */
static tutti_transport_link *make_link(tutti_transport *t, const tutti_view_member *member)
{
    const tutti_view_member *own = tutti__member_view_find(t->view, t->membership->rank);
    tutti_transport_link *link = find_link(t, member->rank);
    if (link != NULL)
        return link;
    link = calloc(1, sizeof *link);
    if (link == NULL || !TUTTI_VEC_PUSH(&t->links, link)) {
        free(link);
        return NULL;
    }
    link->rank = member->rank;
    link->incarnation = member->incarnation;
    link->near = own != NULL && own->peer.machine == member->peer.machine;
    link->last = &link->first;
    return link;
}

static void end_with(tutti_transport *t, tutti_transport_link *link)
{
    char why[400];
    snprintf(why, sizeof why, "%s", tutti_error_message());
    tutti__transport_end(t, link, false, why);
}

/* Messages that a peer does not acknowledge for as long as a silent rank is waited for: the network
 * between the two is cut, though both may be heard by the keeper. */
static void limit_silence(const tutti_transport *t, tutti_channel *channel)
{
    unsigned limit = (unsigned)(tutti__membership_silence(t->membership) / 1000000);
    (void)setsockopt(tutti__channel_fd(channel), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit,
                     sizeof limit);
}

static void take_channels(tutti_transport *t)
{
    tutti_channel *channel;
    uint64_t incarnation;
    int rank;
    while (tutti__channel_take(t->membership, TUTTI_TRANSPORT_CHANNEL, &rank, &incarnation,
                               &channel) == TUTTI_OK) {
        const tutti_view_member *member = tutti__member_view_find(t->view, rank);
        tutti_transport_link *link = NULL;
        if (member != NULL && member->incarnation == incarnation)
            link = make_link(t, member);
        if (link == NULL) {
            tutti__channel_close(channel);
            continue;
        }
        if (link->channel != NULL) /* the peer has lost that one */
            tutti__transport_end(t, link, false, "the peer has opened another connection");
        limit_silence(t, channel);
        if (tutti__transport_greet(t, link, channel) != TUTTI_OK)
            end_with(t, link);
    }
}

/* Those that are not in the view any more end. */
static void take_view(tutti_transport *t)
{
    size_t kept = 0;
    const tutti_member_view *view = tutti__membership_view(t->membership);
    if (view->number == t->view->number && view->cut == t->view->cut && view->own == t->view->own) {
        tutti__member_view_release(view);
        return;
    }
    tutti__member_view_release(t->view);
    t->view = view;
    t->view_is_new = true;
    for (size_t i = 0; i < t->links.count; i++) {
        tutti_transport_link *link = t->links.data[i];
        const tutti_view_member *member = tutti__member_view_find(view, link->rank);
        if (member != NULL && member->incarnation == link->incarnation) {
            t->links.data[kept++] = link;
            continue;
        }
        char why[400];
        bool moved = false;
        if (link->channel != NULL) /* what it said before it ended */
            (void)tutti__transport_move(t, link, &moved);
        tutti__membership_gone(t->membership, link->rank, why, sizeof why);
        tutti__transport_end(t, link, true, why[0] ? why : "it has left the job");
        tutti__transport_link_free(link);
    }
    t->links.count = kept;
}

/* A connection that is wanted: the call is made, and made again where it failed. */
static void call(tutti_transport *t, tutti_transport_link *link, int64_t now_ns)
{
    if (link->channel != NULL || link->first == NULL || now_ns < link->retry_ns ||
        tutti__channel_is_called(t->membership, link->rank, TUTTI_TRANSPORT_CHANNEL))
        return;
    link->retry_ns = now_ns + retry_ns;
    if (tutti__channel_call(t->membership, link->rank, link->incarnation,
                            TUTTI_TRANSPORT_CHANNEL) != TUTTI_OK)
        tutti__error_forget();
}

/* ---- sending ---- */

static void put(char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (char)(value >> (8 * i));
}

static size_t size_of(const tutti_transport_message *message)
{
    size_t size = 0;
    for (int i = 0; i < message->count; i++)
        size += message->parts[i].iov_len;
    return size;
}

/* With a copy of the bytes behind it, where nobody says when they are not needed any more. */
static tutti_transport_outgoing *make_outgoing(const tutti_transport_message *message)
{
    size_t size = size_of(message), copy = message->done == NULL ? size : 0;
    size_t table = (size_t)message->count * sizeof(struct iovec);
    tutti_transport_outgoing *m = calloc(1, sizeof *m + table + copy);
    if (m == NULL)
        return NULL;
    m->parts = (struct iovec *)(void *)(m + 1);
    m->size = size;
    m->kept = copy;
    m->deadline_ns = message->deadline_ns;
    m->done = message->done;
    m->context = message->context;
    memcpy(m->header, "TTtm", 4);
    put(m->header + 8, message->tag);
    put(m->header + 16, size);
    char *to = (char *)m->parts + table;
    if (copy == 0) {
        if (table > 0)
            memcpy(m->parts, message->parts, table);
        m->count = message->count;
    } else {
        m->parts[0] = (struct iovec){to, size};
        m->count = 1;
        for (int i = 0; i < message->count; i++) {
            memcpy(to, message->parts[i].iov_base, message->parts[i].iov_len);
            to += message->parts[i].iov_len;
        }
    }
    while (m->at < m->count && m->parts[m->at].iov_len == 0)
        m->at++;
    return m;
}

static tutti_status find_peer(tutti_transport *t, const tutti_transport_message *message,
                              tutti_transport_link **ret_link)
{
    const tutti_view_member *member = tutti__member_view_find(t->view, message->rank);
    bool there = member != NULL && message->rank != t->membership->rank &&
                 (message->incarnation == 0 || member->incarnation == message->incarnation);
    if (!there) {
        char why[400];
        tutti__membership_gone(t->membership, message->rank, why, sizeof why);
        return tutti_fail(TUTTI_CLOSED, "rank %d is not there%s%s", message->rank,
                          why[0] ? ": " : "", why);
    }
    *ret_link = make_link(t, member);
    if (*ret_link == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a connection to rank %d", message->rank);
    if (message->done == NULL && (*ret_link)->kept + size_of(message) > t->options.most_kept)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%zu bytes wait for rank %d already, at most %llu may; wait until it has "
                          "taken some",
                          (*ret_link)->kept, message->rank,
                          (unsigned long long)t->options.most_kept);
    return TUTTI_OK;
}

tutti_status tutti__transport_send(tutti_transport *t, const tutti_transport_message *message)
{
    tutti_transport_link *link;
    tutti_transport_outgoing *m;
    bool moved = false;
    if (message->rank < 0 || message->rank >= t->membership->size)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "rank %d of %d", message->rank, t->membership->size);
    pthread_mutex_lock(&t->lock);
    if (atomic_exchange(&t->changed, false)) {
        take_view(t);
        take_channels(t);
    }
    tutti_status status = find_peer(t, message, &link);
    if (status == TUTTI_CLOSED) { /* the caller may have seen a view that we were not told of yet */
        take_view(t);
        status = find_peer(t, message, &link);
    }
    if (status == TUTTI_OK && (m = make_outgoing(message)) == NULL)
        status =
            tutti_fail(TUTTI_NO_MEMORY, "no memory for a message of %zu bytes", size_of(message));
    if (status == TUTTI_OK) {
        link->kept += m->kept;
        *link->last = m;
        link->last = &m->next;
        if (link->state == TUTTI_TRANSPORT_CARRIES && !tutti__transport_move(t, link, &moved))
            end_with(t, link);
        if (link->channel == NULL)
            call(t, link, tutti__now_ns());
    }
    bool kick = t->events.count > 0 || (status == TUTTI_OK && link->first != NULL);
    pthread_mutex_unlock(&t->lock);
    if (kick) /* somebody may be asleep without it */
        tutti__transport_wake(t);
    return status;
}

/* ---- polling ---- */

/* `listen`: the sockets behind shared memory too, which only ring. */
static bool progress(tutti_transport *t, bool listen)
{
    bool moved = false;
    if (atomic_exchange(&t->changed, false)) {
        take_view(t);
        take_channels(t);
    }
    for (size_t i = 0; i < t->links.count; i++) {
        tutti_transport_link *link = t->links.data[i];
        if (link->channel == NULL) {
            if (link->first != NULL)
                call(t, link, tutti__now_ns());
            continue;
        }
        if (!tutti__transport_move(t, link, &moved) || (listen && !tutti__transport_hear(t, link)))
            end_with(t, link);
    }
    return moved;
}

static void call_back(tutti_transport *t, tutti_transport_event *e)
{
    const tutti_transport_calls *calls = &t->calls;
    if (e->what == TRANSPORT_CAME) {
        if (calls->deliver != NULL)
            calls->deliver(calls->context, e->rank, e->incarnation, e->tag, e->data, e->size);
        if (!e->placed)
            free(e->data);
    } else if (e->what == TRANSPORT_LOST) {
        if (calls->lost != NULL)
            calls->lost(calls->context, e->rank, e->incarnation, e->gone,
                        e->data != NULL ? e->data : "");
        free(e->data);
    } else
        e->done(e->context, e->status);
}

/* With the lock held, which is given back while callbacks run. True when there were any. */
static bool call_all_back(tutti_transport *t)
{
    bool some = t->events.count > 0 || t->view_is_new;
    const tutti_member_view *view = NULL;
    TUTTI_VEC(tutti_transport_event) events = {0};
    if (!some)
        return false;
    memcpy(&events, &t->events, sizeof events);
    memset(&t->events, 0, sizeof t->events);
    if (t->view_is_new && t->calls.view != NULL) {
        view = t->view;
        atomic_fetch_add(&((tutti_member_view *)(uintptr_t)view)->references, 1);
    }
    t->view_is_new = false;
    pthread_mutex_unlock(&t->lock);
    if (view != NULL)
        t->calls.view(t->calls.context, view);
    for (size_t i = 0; i < events.count; i++)
        call_back(t, &events.data[i]);
    tutti__member_view_release(view);
    pthread_mutex_lock(&t->lock);
    if (t->events.count == 0 && t->events.data == NULL) { /* the room is used again */
        events.count = 0;
        memcpy(&t->events, &events, sizeof events);
    } else
        TUTTI_VEC_FREE(&events);
    return true;
}

typedef TUTTI_VEC(struct pollfd) poll_list;

/* With the lock held. False without memory. */
static bool list_polls(tutti_transport *t, poll_list *polls, int64_t *wake_ns)
{
    polls->count = 0;
    struct pollfd own = {t->wake_fd, POLLIN, 0};
    bool good = TUTTI_VEC_PUSH(polls, own);
    for (size_t i = 0; good && i < t->links.count; i++) {
        const tutti_transport_link *link = t->links.data[i];
        for (const tutti_transport_outgoing *m = link->first; m != NULL; m = m->next)
            if (m->deadline_ns != 0 && m->deadline_ns < *wake_ns)
                *wake_ns = m->deadline_ns;
        if (link->channel == NULL) {
            if (link->first != NULL && link->retry_ns < *wake_ns)
                *wake_ns = link->retry_ns;
            continue;
        }
        bool greets =
            link->state == TUTTI_TRANSPORT_GREETS && link->greeted_out < link->greeting_size;
        bool sends =
            greets || link->rings ||
            (link->first != NULL && !link->shared && link->state == TUTTI_TRANSPORT_CARRIES);
        struct pollfd each = {tutti__channel_fd(link->channel),
                              (short)(POLLIN | (sends ? POLLOUT : 0)), 0};
        good = TUTTI_VEC_PUSH(polls, each);
    }
    return good;
}

static void set_sleeping(tutti_transport *t, bool sleeps)
{
    for (size_t i = 0; i < t->links.count; i++)
        tutti__transport_sleeps(t->links.data[i], sleeps);
}

/* With the lock held, which is given back meanwhile. A last look follows the sign that we sleep:
 * who sends after it rings. */
static void nap(tutti_transport *t, poll_list *polls, int64_t until_ns)
{
    uint64_t drained;
    int64_t wake = tutti__now_ns() + slice_ns;
    wake = until_ns < wake ? until_ns : wake;
    set_sleeping(t, true);
    atomic_thread_fence(memory_order_seq_cst);
    if (!progress(t, true) && t->events.count == 0 && !t->view_is_new &&
        list_polls(t, polls, &wake)) {
        int64_t left = wake - tutti__now_ns();
        struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        pthread_mutex_unlock(&t->lock);
        if (left > 0 && !atomic_load(&t->woken))
            (void)ppoll(polls->data, (nfds_t)polls->count, &timeout, NULL);
        pthread_mutex_lock(&t->lock);
    }
    set_sleeping(t, false);
    if (atomic_exchange(&t->woken, false))
        (void)!read(t->wake_fd, &drained, sizeof drained);
}

tutti_status tutti__transport_poll(tutti_transport *t, int64_t deadline_ns)
{
    poll_list polls = {0};
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&t->polling);
    int64_t now = tutti__now_ns(), spin_until = now + t->options.spin_ns;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        bool moved = progress(t, false);
        if (call_all_back(t))
            break;
        now = tutti__now_ns();
        if (tutti__membership_failed(t->membership)) {
            status = tutti__membership_fail(t->membership);
            break;
        }
        if (now >= deadline_ns) {
            status = TUTTI_DEADLINE;
            break;
        }
        if (moved)
            spin_until = now + t->options.spin_ns;
        else if (now < spin_until) {
            pthread_mutex_unlock(&t->lock); /* others send */
            tutti__pause();
            pthread_mutex_lock(&t->lock);
        } else
            nap(t, &polls, deadline_ns);
    }
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_unlock(&t->polling);
    TUTTI_VEC_FREE(&polls);
    return status;
}

const char *tutti__transport_way(tutti_transport *t, int rank)
{
    pthread_mutex_lock(&t->lock);
    const tutti_transport_link *link = find_link(t, rank);
    bool stands = link != NULL && link->state == TUTTI_TRANSPORT_CARRIES;
    const char *way = !stands                                   ? ""
                      : link->shared                            ? "shared memory"
                      : tutti__channel_encrypted(link->channel) ? "TLS"
                                                                : "tcp";
    pthread_mutex_unlock(&t->lock);
    return way;
}
