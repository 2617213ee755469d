/* message.c: posting, matching and moving messages. */
#include <stdlib.h>
#include <string.h>

#include "base/kill.h"
#include "base/memory.h"
#include "base/recycle.h"
#include "comm/fabric/serve.h"

/* Most that is kept of what nobody asked for, for each peer. While something behind it is waited
 * for, which would never come otherwise, it is this part of the memory. */
enum { EARLY_BYTES = 256 << 20, EARLY_PART = 4 };

static void message_push(tutti_queue_of_messages *queue, tutti_fabric_message *message)
{
    message->next = NULL;
    *queue->last = message;
    queue->last = &message->next;
}

static bool take_out(tutti_queue_of_messages *queue, const tutti_fabric_message *message)
{
    tutti_fabric_message **at = &queue->first;
    while (*at && *at != message)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = message->next;
    if (!*at)
        queue->last = at;
    return true;
}

static void message_finish(tutti_fabric *fabric, tutti_fabric_message *message, tutti_status status)
{
    message->status = status;
    atomic_fetch_sub(&fabric->pending, 1);
    bool given_away = message->given_away;
    atomic_store_explicit(&message->complete, true, memory_order_release);
    if (given_away)
        free(message);
}

/* The stream failed: everything that needs it does too, now and later; what has come as a whole
 * stays. The reason is the calling thread's error. */
static void fail_stream(tutti_fabric *fabric, tutti_stream *stream, tutti_status status)
{
    tutti_fabric_message *message;
    if (!stream->error && (stream->error = malloc(sizeof *stream->error)))
        tutti__error_capture(status, stream->error);
    while ((message = stream->sending.first)) {
        take_out(&stream->sending, message);
        message_finish(fabric, message, status);
    }
    while ((message = stream->posted.first)) {
        take_out(&stream->posted, message);
        message_finish(fabric, message, status);
    }
    if (stream->in.target)
        message_finish(fabric, stream->in.target, status);
    for (tutti_unexpected *early = stream->early; early; early = early->next) {
        if (early->waiting)
            message_finish(fabric, early->waiting, status);
        early->waiting = NULL;
    }
    memset(&stream->in, 0, sizeof stream->in);
}

static void note_moved(tutti_fabric *fabric, size_t bytes)
{
    if (bytes > 0)
        atomic_fetch_add_explicit(&fabric->moved, 1, memory_order_relaxed);
}

static tutti_status pump_out(tutti_fabric *fabric, int peer)
{
    tutti_stream *stream = &fabric->streams[peer];
    tutti_fabric_message *message;
    while ((message = stream->sending.first)) {
        struct iovec parts[2];
        size_t done = 0, header = sizeof message->header;
        int count = 0;
        if (message->done < header)
            parts[count++] =
                (struct iovec){(char *)&message->header + message->done, header - message->done};
        size_t sent = message->done > header ? message->done - header : 0;
        if (sent < message->size)
            parts[count++] = (struct iovec){message->data + sent, message->size - sent};
        TUTTI_TRY(stream->engine->send(stream->state, peer, parts, count, &done));
        message->done += done;
        note_moved(fabric, done);
        if (message->done < header + message->size)
            return TUTTI_OK;
        take_out(&stream->sending, message);
        message_finish(fabric, message, TUTTI_OK);
    }
    return TUTTI_OK;
}

/* Whether one is sent for the other: of collectives, whatever kind they are of. */
static bool same_tag(uint32_t a, uint32_t b)
{
    return ((a ^ b) & (a & TUTTI_COLLECTIVE_TAG ? ~TUTTI_CALL_MASK : UINT32_MAX)) == 0;
}

static tutti_fabric_message *find_posted(const tutti_stream *stream, uint32_t context, uint32_t tag)
{
    for (tutti_fabric_message *m = stream->posted.first; m; m = m->next)
        if (m->context == context && same_tag(m->tag, tag))
            return m;
    return NULL;
}

/* What came for a message must be what was sent. */
static tutti_status check_fit(const tutti_fabric_message *message, uint32_t tag, uint64_t size)
{
    if (message->size != size)
        return tutti_fail(TUTTI_INVALID,
                          "rank %d sent %llu bytes where %zu were expected (tag %u); ranks must "
                          "call the same operations with the same sizes in the same order",
                          message->peer, (unsigned long long)size, message->size, message->tag);
    if (message->tag != tag)
        return tutti_fail(TUTTI_INVALID,
                          "rank %d is in another operation, or in one with another type, "
                          "reduction, root, count, algorithm or form on the wire, or was before; "
                          "ranks must call the same operations with the same sizes in the same "
                          "order",
                          message->peer);
    return TUTTI_OK;
}

/* Collectives of a group run one at a time, and a rank's messages come in the order in which it
 * sent them: one of another collective that comes before what is waited for will never be asked
 * for. */
static bool is_astray(const tutti_fabric_message *waiting, uint32_t context, uint32_t tag)
{
    return (waiting->tag & tag & TUTTI_COLLECTIVE_TAG) && waiting->context == context &&
           !same_tag(waiting->tag, tag);
}

static tutti_status went_astray(const tutti_fabric *fabric, const tutti_fabric_message *waiting,
                                uint32_t tag, uint64_t size)
{
    return tutti_fail(
        TUTTI_INVALID,
        "rank %d sent %llu bytes in operation number %u of the group that rank %d did "
        "not ask for there; ranks must call the same operations with the same sizes "
        "and roots in the same order",
        waiting->peer, (unsigned long long)size, tag & TUTTI_SEQUENCE_MASK, fabric->rank);
}

/* A message has come that none of those posted is for. Apart from what every message passes. */
__attribute__((noinline)) static tutti_status check_posted(const tutti_fabric *fabric,
                                                           const tutti_stream *stream,
                                                           uint32_t context, uint32_t tag,
                                                           uint64_t size)
{
    for (const tutti_fabric_message *m = stream->posted.first; m; m = m->next)
        if (is_astray(m, context, tag))
            return went_astray(fabric, m, tag, size);
    return TUTTI_OK;
}

/* Behind those that came before; its bytes come next. */
static void keep_early(tutti_stream *stream, tutti_unexpected *early)
{
    early->before = stream->early_last;
    *(early->before ? &early->before->next : &stream->early) = early;
    stream->early_last = early;
    stream->early_bytes += early->size;
    stream->in.early = early;
}

/* Receives of users may be repeated. Nobody asks twice in a collective, which has broken the group,
 * nor of those that serve. */
static bool may_be_repeated(const tutti_fabric_message *message)
{
    return !(message->tag & TUTTI_COLLECTIVE_TAG) && message->context != TUTTI_SERVE_CONTEXT;
}

/* A header is complete: where do its bytes go? Sets `matched` unless there is no room yet. */
static tutti_status message_match(tutti_fabric *fabric, tutti_stream *stream, int peer)
{
    uint32_t context, tag;
    uint64_t size;
    memcpy(&context, stream->in.header, 4);
    memcpy(&tag, stream->in.header + 4, 4);
    memcpy(&size, stream->in.header + 8, 8);
    if (size >> 48 != TUTTI_HEADER_MARK >> 48)
        return tutti_fail(TUTTI_CORRUPT,
                          "rank %d sent bytes that are no message (%08x %08x %016llx): does "
                          "something else write to this connection?",
                          peer, context, tag, (unsigned long long)size);
    size ^= TUTTI_HEADER_MARK;
    tutti_fabric_message *posted = find_posted(stream, context, tag);
    /* A receive of another size fails, and the message is the next one's. */
    while (posted && posted->size != size && may_be_repeated(posted)) {
        take_out(&stream->posted, posted);
        message_finish(fabric, posted, check_fit(posted, tag, size));
        posted = find_posted(stream, context, tag);
    }
    if (posted) {
        TUTTI_TRY(check_fit(posted, tag, size));
        take_out(&stream->posted, posted);
        stream->in.target = posted;
        stream->in.matched = true;
        return TUTTI_OK;
    }
    TUTTI_TRY(check_posted(fabric, stream, context, tag, size));
    uint64_t most = EARLY_BYTES;
    if (stream->posted.first && (uint64_t)tutti__memory_limit() / EARLY_PART > most)
        most = (uint64_t)tutti__memory_limit() / EARLY_PART;
    if (stream->early_bytes >= most || size > most - stream->early_bytes)
        return TUTTI_OK;
    tutti_unexpected *early = tutti__recycle_take(sizeof *early + size);
    if (!early)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "no memory for a message of %llu bytes from rank %d (tag %u) that nobody "
                          "has asked for yet; receive it before what was sent later",
                          (unsigned long long)size, peer, tag);
    *early = (tutti_unexpected){.context = context, .tag = tag, .size = size};
    keep_early(stream, early);
    stream->in.matched = true;
    return TUTTI_OK;
}

static void drop_early(tutti_stream *stream, tutti_unexpected *early)
{
    *(early->before ? &early->before->next : &stream->early) = early->next;
    *(early->next ? &early->next->before : &stream->early_last) = early->before;
    stream->early_bytes -= early->size;
    tutti__recycle_give(early, sizeof *early + early->size);
}

static void post(tutti_fabric *fabric, tutti_fabric_message *message)
{
    message->done = 0;
    message->status = TUTTI_OK;
    atomic_store_explicit(&message->complete, false, memory_order_relaxed);
    message->outgoing = true;
    message->header.context = message->context;
    message->header.tag = message->tag;
    message->header.size = message->size | TUTTI_HEADER_MARK;
    atomic_fetch_add(&fabric->pending, 1);
    message_push(&fabric->streams[message->peer].sending, message);
}

/* A peer asks for something. */
static tutti_status reply(tutti_fabric *fabric, int peer, tutti_unexpected *asked)
{
    tutti_fabric_message *message = tutti__serve(fabric, peer, asked->data, asked->size);
    drop_early(&fabric->streams[peer], asked);
    if (!message)
        return tutti_fail(TUTTI_CORRUPT, "rank %d asked for what nobody can give", peer);
    post(fabric, message);
    return TUTTI_OK;
}

/* The message under way has all its bytes. */
static tutti_status arrived(tutti_fabric *fabric, int peer)
{
    tutti_stream *stream = &fabric->streams[peer];
    tutti_fabric_message *target = stream->in.target;
    tutti_unexpected *early = stream->in.early;
    memset(&stream->in, 0, sizeof stream->in);
    if (target) {
        message_finish(fabric, target, TUTTI_OK);
    } else if (early && early->context == TUTTI_SERVE_CONTEXT && early->tag == 0) {
        return reply(fabric, peer, early);
    } else if (early && early->waiting) {
        if (early->size > 0) /* one without bytes may be NULL */
            memcpy(early->waiting->data, early->data, early->size);
        message_finish(fabric, early->waiting, TUTTI_OK);
        drop_early(stream, early);
    } else if (early && early->unwanted) {
        drop_early(stream, early);
    }
    return TUTTI_OK;
}

static tutti_status pump_in(tutti_fabric *fabric, int peer)
{
    tutti_stream *stream = &fabric->streams[peer];
    for (;;) {
        size_t done = 0;
        if (stream->in.header_done < TUTTI_HEADER_BYTES) {
            TUTTI_TRY(stream->engine->recv(stream->state, peer,
                                           stream->in.header + stream->in.header_done,
                                           TUTTI_HEADER_BYTES - stream->in.header_done, &done));
            stream->in.header_done += done;
            note_moved(fabric, done);
            if (stream->in.header_done < TUTTI_HEADER_BYTES)
                return TUTTI_OK;
        }
        if (!stream->in.matched)
            TUTTI_TRY(message_match(fabric, stream, peer));
        if (!stream->in.matched)
            return TUTTI_OK;
        tutti_fabric_message *target = stream->in.target;
        tutti_unexpected *early = stream->in.early;
        size_t *have = target ? &target->done : &early->done;
        size_t size = target ? target->size : early->size;
        char *data = target ? target->data : early->data;
        if (*have < size) {
            TUTTI_TRY(stream->engine->recv(stream->state, peer, data + *have, size - *have, &done));
            *have += done;
            note_moved(fabric, done);
            if (!target && early->waiting)
                early->waiting->done = *have; /* for who asks how far it has come */
            if (*have < size)
                return TUTTI_OK;
        }
        TUTTI_TRY(arrived(fabric, peer));
        if (!stream->posted.first)
            return TUTTI_OK;
    }
}

size_t tutti__stream_wanted(const tutti_stream *stream)
{
    if (stream->in.target)
        return stream->in.target->size - stream->in.target->done;
    if (stream->in.matched && stream->in.early)
        return stream->in.early->size - stream->in.early->done;
    return 1;
}

static bool expecting(const tutti_stream *stream)
{
    return stream->posted.first || stream->in.target || (stream->in.early && stream->in.matched);
}

static void pump(tutti_fabric *fabric, int peer, bool hear)
{
    tutti_stream *stream = &fabric->streams[peer];
    tutti_status status = TUTTI_OK;
    if (stream->sending.first)
        status = pump_out(fabric, peer);
    if (status == TUTTI_OK && (expecting(stream) || hear))
        status = pump_in(fabric, peer);
    if (status == TUTTI_OK && stream->sending.first)
        status = pump_out(fabric, peer); /* an answer */
    if (status != TUTTI_OK)
        fail_stream(fabric, stream, status);
}

static void progress(tutti_fabric *fabric, bool hear)
{
    pthread_mutex_lock(&fabric->lock);
    int before = atomic_load(&fabric->pending);
    for (int peer = 0; peer < fabric->size; peer++) {
        const tutti_stream *stream = &fabric->streams[peer];
        if (stream->sending.first || expecting(stream) ||
            (hear && stream->engine && !stream->error))
            pump(fabric, peer, hear);
    }
    bool some = atomic_load(&fabric->pending) < before;
    pthread_mutex_unlock(&fabric->lock);
    if (some)
        tutti__fabric_kick(fabric);
}

void tutti__fabric_progress(tutti_fabric *fabric)
{
    progress(fabric, false);
}

void tutti__fabric_hear(tutti_fabric *fabric)
{
    progress(fabric, fabric->server.give != NULL);
}

void tutti__fabric_take_in(tutti_fabric *fabric)
{
    progress(fabric, true);
}

void tutti__fabric_send(tutti_fabric *fabric, tutti_fabric_message *message)
{
    tutti_stream *stream = &fabric->streams[message->peer];
    tutti__kill_point();
    pthread_mutex_lock(&fabric->lock);
    bool alone = !stream->sending.first;
    post(fabric, message);
    tutti_status status = stream->error ? stream->error->status
                          : alone       ? pump_out(fabric, message->peer)
                                        : TUTTI_OK;
    if (status != TUTTI_OK)
        fail_stream(fabric, stream, status);
    pthread_mutex_unlock(&fabric->lock);
}

/* True when it came earlier; then it is complete, or will be when its last bytes are there. */
static bool take_early(tutti_fabric *fabric, tutti_stream *stream, tutti_fabric_message *message)
{
    tutti_unexpected *early = stream->early;
    bool astray = false;
    while (early && (early->context != message->context || !same_tag(message->tag, early->tag) ||
                     early->waiting || early->unwanted)) {
        astray =
            !early->waiting && !early->unwanted && is_astray(message, early->context, early->tag);
        if (astray)
            break;
        early = early->next;
    }
    if (!early)
        return false;
    tutti_status fits = astray ? went_astray(fabric, message, early->tag, early->size)
                               : check_fit(message, early->tag, early->size);
    if (fits != TUTTI_OK) {
        message_finish(fabric, message, fits);
    } else if (early->done < early->size) {
        early->waiting = message;
        message->done = early->done;
    } else {
        if (early->size > 0)
            memcpy(message->data, early->data, early->size);
        message_finish(fabric, message, TUTTI_OK);
        if (stream->in.early != early)
            drop_early(stream, early);
    }
    return true;
}

void tutti__fabric_recv(tutti_fabric *fabric, tutti_fabric_message *message)
{
    tutti_stream *stream = &fabric->streams[message->peer];
    message->done = 0;
    message->outgoing = false;
    message->status = TUTTI_OK;
    atomic_store_explicit(&message->complete, false, memory_order_relaxed);
    pthread_mutex_lock(&fabric->lock);
    atomic_fetch_add(&fabric->pending, 1);
    if (!stream->early || !take_early(fabric, stream, message))
        message_push(&stream->posted, message);
    if (stream->error)
        fail_stream(fabric, stream, stream->error->status);
    pthread_mutex_unlock(&fabric->lock);
}

/* What comes for a message that nobody waits for any more goes on into memory of ours, behind what
 * was there before. NULL when there is none: the stream is out of step and ends. */
static tutti_unexpected *take_over(tutti_fabric *fabric, tutti_stream *stream,
                                   const tutti_fabric_message *message)
{
    tutti_unexpected *early = tutti__recycle_take(sizeof *early + message->size);
    stream->in.target = NULL;
    if (!early) {
        fail_stream(
            fabric, stream,
            tutti_fail(TUTTI_NO_MEMORY,
                       "no memory for a message of %zu bytes from rank %d (tag %u) that was "
                       "given up half way",
                       message->size, message->peer, message->tag));
        return NULL;
    }
    *early = (tutti_unexpected){.context = message->context,
                                .tag = message->tag,
                                .size = message->size,
                                .done = message->done};
    if (message->done > 0)
        memcpy(early->data, message->data, message->done);
    keep_early(stream, early);
    return early;
}

/* A receive ends before its bytes are there. They are the next receive's, as if none had come: one
 * that waits already, or the same, repeated. */
static void let_go(tutti_fabric *fabric, tutti_stream *stream, const tutti_fabric_message *message)
{
    tutti_unexpected *early = stream->early;
    while (early && early->waiting != message)
        early = early->next;
    if (early)
        early->waiting = NULL;
    else if (stream->in.target == message)
        early = take_over(fabric, stream, message);
    if (!early)
        return;
    early->unwanted = !may_be_repeated(message);
    tutti_fabric_message *next = find_posted(stream, early->context, early->tag);
    if (next && !early->unwanted) {
        take_out(&stream->posted, next);
        take_early(fabric, stream, next);
    }
}

/* Of a message under way, header and all: what an engine has in its hands leaves all the same. */
static size_t gone_of(const tutti_stream *stream, const tutti_fabric_message *message)
{
    bool held = stream->engine->handed_over && stream->sending.first == message;
    return message->done + (held ? stream->engine->handed_over(stream->state, message->peer) : 0);
}

/* Bytes of a message that have left, without its header. */
static size_t sent_of(size_t gone)
{
    return gone > TUTTI_HEADER_BYTES ? gone - TUTTI_HEADER_BYTES : 0;
}

size_t tutti__fabric_sent(tutti_fabric *fabric, const tutti_fabric_message *message)
{
    pthread_mutex_lock(&fabric->lock);
    size_t sent = sent_of(gone_of(&fabric->streams[message->peer], message));
    pthread_mutex_unlock(&fabric->lock);
    return sent;
}

void tutti__fabric_cancel(tutti_fabric *fabric, tutti_fabric_message *message)
{
    pthread_mutex_lock(&fabric->lock);
    if (!atomic_load(&message->complete)) {
        tutti_stream *stream = &fabric->streams[message->peer];
        size_t gone = gone_of(stream, message);
        if (take_out(&stream->sending, message)) {
            message->done = gone;
            if (gone > 0)
                fail_stream(fabric, stream,
                            tutti_fail(TUTTI_CANCELLED,
                                       "a message to rank %d was given up after %zu of %zu bytes",
                                       message->peer, sent_of(gone), message->size));
        } else if (!take_out(&stream->posted, message)) {
            let_go(fabric, stream, message);
        }
        message_finish(fabric, message, TUTTI_CANCELLED);
    }
    pthread_mutex_unlock(&fabric->lock);
}
