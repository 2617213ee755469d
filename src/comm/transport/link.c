/* link.c: one connection of a transport: how bytes will go, and messages to bytes and back.
 *
 * Both sides begin with a greeting of 40 bytes over the channel: "TTtr", u32 what (0 sockets, 1
 * here is memory to share, 2 it is mapped), i32 process, i32 descriptor, u64 device, u64 inode, u64
 * bytes. Of two processes of one machine the lower rank offers memory, two rings in a file without
 * a name, and the higher one says whether it could map it; each sends one greeting. Then come
 * messages: "TTtm", u32 0, u64 tag, u64 bytes, the bytes; over the rings where both have them.
 * There the channel carries bells: a byte to a peer that sleeps. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"
#include "comm/shm/memory.h"
#include "comm/transport/inside.h"

enum { WAY_SOCKETS, WAY_OFFERED, WAY_MAPPED };
enum { PATIENT_ROUNDS = 64 }; /* pieces that one link moves before others have their turn */

/* ---- events ---- */

/* Without memory for it a message is as if it had not come: its connection ends instead. */
void tutti__transport_add_event(tutti_transport *t, const tutti_transport_event *event)
{
    if (TUTTI_VEC_PUSH(&t->events, *event))
        return;
    if (event->what == TRANSPORT_DONE)
        event->done(event->context, event->status);
    else if (!event->placed)
        free(event->data);
}

static void finish(tutti_transport *t, tutti_transport_link *link,
                   tutti_transport_outgoing *message, tutti_status status)
{
    link->kept -= message->kept;
    if (message->done != NULL)
        tutti__transport_add_event(t, &(tutti_transport_event){.what = TRANSPORT_DONE,
                                                               .done = message->done,
                                                               .context = message->context,
                                                               .status = status});
    free(message);
}

/* ---- greeting ---- */

static void put(char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(value >> (8 * i));
}

static uint64_t get(const char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return value;
}

static void write_greeting(tutti_transport_link *link, int way)
{
    struct stat now = {0};
    char *at = link->greeting_out;
    int file = link->segment != NULL ? link->segment->file : -1;
    if (way == WAY_OFFERED && fstat(file, &now) != 0)
        way = WAY_SOCKETS;
    memcpy(at, "TTtr", 4);
    put(at + 4, (uint64_t)way, 4);
    put(at + 8, (uint64_t)getpid(), 4);
    put(at + 12, (uint64_t)(int64_t)file, 4);
    put(at + 16, (uint64_t)now.st_dev, 8);
    put(at + 24, (uint64_t)now.st_ino, 8);
    put(at + 32, link->segment != NULL ? link->segment->bytes : 0, 8);
    link->greeting_size = TUTTI_TRANSPORT_GREETING;
}

/* Two rings; the heap behind them is never touched. */
static bool make_memory(tutti_transport_link *link)
{
    size_t bytes = tutti__segment_bytes(2, 0);
    tutti_error before;
    void *memory;
    int file;
    tutti__error_capture(TUTTI_OK, &before);
    bool good = tutti__shm_nameless(bytes, 2, &file, &memory) == TUTTI_OK;
    if (good && tutti__segment_open(memory, bytes, 0, false, true, 0, &link->segment) != TUTTI_OK) {
        munmap(memory, bytes);
        close(file);
        good = false;
    }
    if (good && tutti__segment_back(link->segment, file) != TUTTI_OK) {
        tutti__segment_close(link->segment);
        link->segment = NULL;
        good = false;
    }
    tutti__error_restore(&before);
    return good;
}

/* In another namespace the same numbers are something else. */
static int open_offer(const char *greeting)
{
    char path[64];
    struct stat now;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)get(greeting + 8, 4),
             (int)get(greeting + 12, 4));
    int file = open(path, O_RDWR | O_CLOEXEC);
    bool same = file >= 0 && fstat(file, &now) == 0 &&
                (uint64_t)now.st_dev == get(greeting + 16, 8) &&
                (uint64_t)now.st_ino == get(greeting + 24, 8);
    if (file >= 0 && !same)
        close(file);
    return same ? file : -1;
}

static bool map_memory(tutti_transport_link *link)
{
    size_t bytes = get(link->greeting_in + 32, 8);
    tutti_error before;
    void *memory;
    tutti__error_capture(TUTTI_OK, &before);
    int file = bytes == tutti__segment_bytes(2, 0) ? open_offer(link->greeting_in) : -1;
    bool good = file >= 0 && tutti__shm_map(file, bytes, &memory) == TUTTI_OK;
    if (!good && file >= 0)
        close(file);
    if (good && tutti__segment_open(memory, bytes, 1, false, true, 0, &link->segment) != TUTTI_OK) {
        munmap(memory, bytes);
        close(file);
        good = false;
    }
    if (good && tutti__segment_back(link->segment, file) != TUTTI_OK) {
        tutti__segment_close(link->segment);
        link->segment = NULL;
        good = false;
    }
    tutti__error_restore(&before);
    return good;
}

tutti_status tutti__transport_greet(tutti_transport *t, tutti_transport_link *link,
                                    tutti_channel *channel)
{
    bool offers = link->near && !t->options.no_sharing && t->membership->rank < link->rank;
    link->channel = channel;
    link->state = TUTTI_TRANSPORT_GREETS;
    link->greeted_in = link->greeted_out = link->greeting_size = 0;
    if (t->membership->rank < link->rank)
        write_greeting(link, offers && make_memory(link) ? WAY_OFFERED : WAY_SOCKETS);
    return TUTTI_OK;
}

/* The lower rank's comes first: the higher one answers it. */
static tutti_status take_greeting(tutti_transport *t, tutti_transport_link *link)
{
    int way = (int)get(link->greeting_in + 4, 4);
    if (memcmp(link->greeting_in, "TTtr", 4) != 0)
        return tutti_fail(TUTTI_CORRUPT, "rank %d did not greet: it speaks another protocol",
                          link->rank);
    bool answers = t->membership->rank > link->rank;
    if (answers) {
        link->shared = way == WAY_OFFERED && !t->options.no_sharing && map_memory(link);
        write_greeting(link, link->shared ? WAY_MAPPED : WAY_SOCKETS);
    } else {
        link->shared = way == WAY_MAPPED && link->segment != NULL;
    }
    if (!link->shared) {
        tutti__segment_close(link->segment);
        link->segment = NULL;
    }
    return TUTTI_OK;
}

static tutti_status greet(tutti_transport *t, tutti_transport_link *link)
{
    size_t done = 1;
    while (done > 0 && link->greeted_out < link->greeting_size) {
        TUTTI_TRY(tutti__channel_send(link->channel, link->greeting_out + link->greeted_out,
                                      link->greeting_size - link->greeted_out, &done));
        link->greeted_out += done;
    }
    done = 1;
    while (done > 0 && link->greeted_in < TUTTI_TRANSPORT_GREETING) {
        TUTTI_TRY(tutti__channel_recv(link->channel, link->greeting_in + link->greeted_in,
                                      TUTTI_TRANSPORT_GREETING - link->greeted_in, &done));
        link->greeted_in += done;
        if (link->greeted_in == TUTTI_TRANSPORT_GREETING) {
            TUTTI_TRY(take_greeting(t, link));
            if (link->greeted_out < link->greeting_size)
                return greet(t, link);
        }
    }
    if (link->greeted_in == TUTTI_TRANSPORT_GREETING && link->greeting_size > 0 &&
        link->greeted_out == link->greeting_size)
        link->state = TUTTI_TRANSPORT_CARRIES;
    return TUTTI_OK;
}

/* ---- bytes ---- */

static bool peer_sleeps(const tutti_transport_link *link)
{
    const tutti_segment_place *place = tutti__segment_place(link->segment, 1 - link->segment->rank);
    return atomic_load_explicit(&place->sleeping, memory_order_relaxed) != 0;
}

/* It comes back from the socket's buffer when there is room: one byte is enough. */
static tutti_status ring(tutti_transport_link *link)
{
    size_t done;
    TUTTI_TRY(tutti__channel_send(link->channel, "!", 1, &done));
    link->rings = done == 0;
    return TUTTI_OK;
}

static tutti_status send_bytes(tutti_transport_link *link, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    size_t sum = 0;
    *ret_done = 0;
    if (link->shared) {
        TUTTI_TRY(tutti__ring_send(link->segment, 1 - link->segment->rank, parts, count, ret_done));
        return *ret_done > 0 && peer_sleeps(link) ? ring(link) : TUTTI_OK;
    }
    for (int i = 0; i < count; i++) {
        size_t done;
        TUTTI_TRY(tutti__channel_send(link->channel, parts[i].iov_base, parts[i].iov_len, &done));
        sum += done;
        if (done < parts[i].iov_len)
            break;
    }
    *ret_done = sum;
    return TUTTI_OK;
}

static tutti_status recv_bytes(tutti_transport_link *link, void *data, size_t size,
                               size_t *ret_done)
{
    if (!link->shared)
        return tutti__channel_recv(link->channel, data, size, ret_done);
    const tutti_ring *from =
        tutti__segment_ring(link->segment, 1 - link->segment->rank, link->segment->rank);
    uint64_t there = atomic_load_explicit(&from->written, memory_order_relaxed) -
                     atomic_load_explicit(&from->read, memory_order_relaxed);
    bool full = there >= link->segment->header->ring_bytes / 2;
    TUTTI_TRY(tutti__ring_recv(link->segment, 1 - link->segment->rank, data, size, ret_done));
    return full && *ret_done > 0 && peer_sleeps(link) ? ring(link) : TUTTI_OK;
}

/* The bells, and the end of the peer, which the kernel tells by the channel. */
static tutti_status hear_bells(tutti_transport_link *link)
{
    char bells[256];
    size_t done = sizeof bells;
    if (link->rings)
        TUTTI_TRY(ring(link));
    while (done == sizeof bells)
        TUTTI_TRY(tutti__channel_recv(link->channel, bells, sizeof bells, &done));
    return TUTTI_OK;
}

/* ---- messages ---- */

static void advance(tutti_transport_outgoing *m, size_t done)
{
    size_t header = TUTTI_TRANSPORT_HEADER - m->header_done;
    header = header < done ? header : done;
    m->header_done += header;
    done -= header;
    while (done > 0) {
        struct iovec *part = &m->parts[m->at];
        size_t taken = part->iov_len < done ? part->iov_len : done;
        part->iov_base = (char *)part->iov_base + taken;
        part->iov_len -= taken;
        done -= taken;
        m->at += part->iov_len == 0;
    }
    while (m->at < m->count && m->parts[m->at].iov_len == 0)
        m->at++;
}

static tutti_status send_messages(tutti_transport *t, tutti_transport_link *link, bool *ret_moved)
{
    for (int round = 0; link->first != NULL && round < PATIENT_ROUNDS; round++) {
        tutti_transport_outgoing *m = link->first;
        struct iovec parts[9];
        int count = 0;
        size_t done;
        if (m->header_done < TUTTI_TRANSPORT_HEADER)
            parts[count++] =
                (struct iovec){m->header + m->header_done, TUTTI_TRANSPORT_HEADER - m->header_done};
        for (int i = m->at; i < m->count && count < 9; i++)
            parts[count++] = m->parts[i];
        TUTTI_TRY(send_bytes(link, parts, count, &done));
        if (done == 0)
            return TUTTI_OK;
        *ret_moved = true;
        advance(m, done);
        if (m->header_done < TUTTI_TRANSPORT_HEADER || m->at < m->count)
            continue;
        link->first = m->next;
        if (link->first == NULL)
            link->last = &link->first;
        finish(t, link, m, TUTTI_OK);
    }
    return TUTTI_OK;
}

static tutti_status begin_message(tutti_transport *t, tutti_transport_link *link)
{
    const char *header = link->in.header;
    uint64_t size = get(header + 16, 8);
    link->in.tag = get(header + 8, 8);
    if (memcmp(header, "TTtm\0\0\0", 8) != 0)
        return tutti_fail(TUTTI_CORRUPT, "rank %d sent bytes that are no message", link->rank);
    if (size > t->options.most)
        return tutti_fail(TUTTI_TOO_LARGE, "rank %d sends a message of %llu bytes; at most %llu",
                          link->rank, (unsigned long long)size,
                          (unsigned long long)t->options.most);
    link->in.size = size;
    link->in.done = 0;
    link->in.data = t->calls.place != NULL
                        ? t->calls.place(t->calls.context, link->rank, link->in.tag, size)
                        : NULL;
    link->in.placed = link->in.data != NULL;
    if (!link->in.placed)
        link->in.data = malloc(size > 0 ? size : 1);
    if (link->in.data == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a message of %llu bytes from rank %d",
                          (unsigned long long)size, link->rank);
    return TUTTI_OK;
}

static void end_message(tutti_transport *t, tutti_transport_link *link)
{
    tutti_transport_event event = {.what = TRANSPORT_CAME,
                                   .rank = link->rank,
                                   .incarnation = link->incarnation,
                                   .tag = link->in.tag,
                                   .data = link->in.data,
                                   .size = link->in.size,
                                   .placed = link->in.placed};
    link->in.data = NULL;
    link->in.header_done = 0;
    tutti__transport_add_event(t, &event);
}

static tutti_status receive_messages(tutti_transport *t, tutti_transport_link *link,
                                     bool *ret_moved)
{
    for (int round = 0; round < PATIENT_ROUNDS; round++) {
        size_t done = 0;
        if (link->in.data == NULL) {
            TUTTI_TRY(recv_bytes(link, link->in.header + link->in.header_done,
                                 TUTTI_TRANSPORT_HEADER - link->in.header_done, &done));
            link->in.header_done += done;
            if (link->in.header_done < TUTTI_TRANSPORT_HEADER)
                return TUTTI_OK;
            TUTTI_TRY(begin_message(t, link));
        }
        if (link->in.done < link->in.size) {
            TUTTI_TRY(recv_bytes(link, link->in.data + link->in.done, link->in.size - link->in.done,
                                 &done));
            link->in.done += done;
            *ret_moved = *ret_moved || done > 0;
            if (done == 0)
                return TUTTI_OK;
        }
        if (link->in.done == link->in.size) {
            *ret_moved = true;
            end_message(t, link);
        }
    }
    return TUTTI_OK;
}

/* What has not begun may be left out; where it has, the stream cannot go on. */
static tutti_status watch_deadlines(tutti_transport *t, tutti_transport_link *link, int64_t now_ns)
{
    for (tutti_transport_outgoing **at = &link->first; *at != NULL;) {
        tutti_transport_outgoing *m = *at;
        if (m->deadline_ns == 0 || now_ns < m->deadline_ns) {
            at = &m->next;
            continue;
        }
        if (m->header_done > 0)
            return tutti_fail(TUTTI_DEADLINE, "rank %d did not take a message of %zu bytes in time",
                              link->rank, m->size);
        *at = m->next;
        if (*at == NULL)
            link->last = at;
        finish(t, link, m, TUTTI_DEADLINE);
    }
    return TUTTI_OK;
}

static tutti_status move(tutti_transport *t, tutti_transport_link *link, bool *ret_moved)
{
    if (link->first != NULL)
        TUTTI_TRY(watch_deadlines(t, link, tutti__now_ns()));
    if (link->state == TUTTI_TRANSPORT_GREETS)
        TUTTI_TRY(greet(t, link));
    if (link->state != TUTTI_TRANSPORT_CARRIES)
        return TUTTI_OK;
    TUTTI_TRY(send_messages(t, link, ret_moved));
    return receive_messages(t, link, ret_moved);
}

bool tutti__transport_move(tutti_transport *t, tutti_transport_link *link, bool *ret_moved)
{
    return move(t, link, ret_moved) == TUTTI_OK;
}

bool tutti__transport_hear(tutti_transport *t, tutti_transport_link *link)
{
    bool moved = false;
    if (!link->shared || hear_bells(link) == TUTTI_OK)
        return true;
    (void)receive_messages(t, link, &moved); /* what it had said before it ended */
    return false;
}

/* ---- the end ---- */

void tutti__transport_sleeps(tutti_transport_link *link, bool sleeps)
{
    if (!link->shared)
        return;
    tutti_segment_place *place = tutti__segment_place(link->segment, link->segment->rank);
    atomic_store(&place->sleeping, sleeps ? 1 : 0);
}

void tutti__transport_end(tutti_transport *t, tutti_transport_link *link, bool gone,
                          const char *why)
{
    bool there = link->channel != NULL || link->first != NULL;
    tutti__channel_close(link->channel);
    tutti__segment_close(link->segment);
    link->channel = NULL;
    link->segment = NULL;
    link->shared = link->rings = false;
    link->state = TUTTI_TRANSPORT_WANTED;
    link->retry_ns = 0;
    if (!link->in.placed)
        free(link->in.data);
    memset(&link->in, 0, sizeof link->in);
    while (link->first != NULL) {
        tutti_transport_outgoing *m = link->first;
        link->first = m->next;
        finish(t, link, m, TUTTI_CLOSED);
    }
    link->last = &link->first;
    if (there || gone)
        tutti__transport_add_event(t, &(tutti_transport_event){.what = TRANSPORT_LOST,
                                                               .rank = link->rank,
                                                               .incarnation = link->incarnation,
                                                               .gone = gone,
                                                               .data = strdup(why)});
}

void tutti__transport_link_free(tutti_transport_link *link)
{
    tutti__channel_close(link->channel);
    tutti__segment_close(link->segment);
    if (!link->in.placed)
        free(link->in.data);
    free(link);
}
