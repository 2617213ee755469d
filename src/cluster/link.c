/* link.c: control connections: strangers who must prove themselves, and members.
 *
 * A stranger holds one socket and 4 KiB. There are at most 256 of them, or as many as the job has
 * ranks, which call all at once when rank 0 is lost, and only once: the oldest goes when one more
 * comes, so that a flood of idle connections shuts nobody out, since an honest process proves
 * itself within milliseconds and tries to join again if it was unlucky. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/heartbeat.h"
#include "cluster/roster_view.h"

enum { SOME_STRANGERS = 256, MOST_OUT = 64 << 20 };
static const int64_t stranger_ns = INT64_C(10000000000);
static const int64_t silent_ns = INT64_C(500000000); /* a probe of the port is gone by then */

void tutti__link_free(tutti_link *link)
{
    if (link == NULL)
        return;
    tutti__wire_close(&link->wire);
    tutti__text_free(&link->out);
    free(link);
}

tutti_status tutti__link_add(tutti_heartbeat *heartbeat, tutti_wire wire, tutti_link_state state,
                             int rank, tutti_link **ret_link)
{
    tutti_link *link = calloc(1, sizeof *link);
    if (link == NULL || !TUTTI_VEC_PUSH(&heartbeat->links, link)) {
        free(link);
        tutti__wire_close(&wire);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a connection");
    }
    link->wire = wire;
    link->state = state;
    link->rank = rank;
    link->since_ns = tutti__now_ns();
    *ret_link = link;
    return TUTTI_OK;
}

tutti_link *tutti__link_of(tutti_heartbeat *heartbeat, int rank)
{
    for (size_t i = 0; i < heartbeat->links.count; i++) {
        tutti_link *link = heartbeat->links.data[i];
        bool calling = link->state == TUTTI_LINK_CALLING && link->purpose != TUTTI_PURPOSE_CHANNEL;
        if ((link->state == TUTTI_LINK_MEMBER || calling) && link->rank == rank)
            return link;
    }
    return NULL;
}

/* ---- strangers whom TLS, or its absence, shuts out ---- */

static void note_turned(tutti_heartbeat *heartbeat, const tutti_link *link, const char *why)
{
    tutti__address_text(&link->from, heartbeat->turned_from, sizeof heartbeat->turned_from);
    snprintf(heartbeat->turned_why, sizeof heartbeat->turned_why, "%s", why);
}

/* One that has said nothing at all for a while: a rank without TLS waits to be challenged, where
 * with TLS it is the one who begins. */
static void note_silent(tutti_heartbeat *heartbeat, const tutti_link *link)
{
    if (link->state == TUTTI_LINK_STRANGER && link->wire.tls != NULL &&
        !tutti__tls_begun(link->wire.tls) && tutti__now_ns() - link->since_ns > silent_ns)
        note_turned(heartbeat, link,
                    "it did not begin TLS, which this side uses; give all ranks TUTTI_TLS_CERT, "
                    "TUTTI_TLS_KEY and TUTTI_TLS_CA, or none");
}

void tutti__link_note_silent(tutti_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->links.count; i++)
        note_silent(heartbeat, heartbeat->links.data[i]);
}

/* A connection failed with `error`: where it was TLS that did, that is why. */
static void note_failed(tutti_heartbeat *heartbeat, const tutti_link *link, int64_t error)
{
    char why[400];
    if (link->state != TUTTI_LINK_STRANGER || link->wire.tls == NULL)
        return;
    if (!tutti__tls_begun(link->wire.tls))
        note_silent(heartbeat, link);
    else if (error == -EPROTO && !tutti__tls_ready(link->wire.tls)) {
        snprintf(why, sizeof why, "TLS: %.390s", tutti__tls_reason(link->wire.tls));
        note_turned(heartbeat, link, why);
    }
}

/* What is no message may be the beginning of TLS's handshake. */
static void note_garbage(tutti_heartbeat *heartbeat, const tutti_link *link)
{
    if (link->state == TUTTI_LINK_STRANGER && link->wire.tls == NULL && link->in_size > 2 &&
        link->in[0] == 0x16 && link->in[1] == 3)
        note_turned(heartbeat, link,
                    "it uses TLS, this side does not; give all ranks TUTTI_TLS_CERT, "
                    "TUTTI_TLS_KEY and TUTTI_TLS_CA, or none");
}

void tutti__link_end(tutti_heartbeat *heartbeat, tutti_link *link, const char *reason)
{
    bool member = link->state == TUTTI_LINK_MEMBER || link->state == TUTTI_LINK_CALLING;
    if (member && link->purpose == TUTTI_PURPOSE_CHANNEL) {
        member = false;
        heartbeat->news = true; /* whoever waits for it tries again */
    }
    char why[TUTTI_REASON_BYTES]; /* it may be the wire's own words */
    snprintf(why, sizeof why, "%s", reason);
    link->state = TUTTI_LINK_CLOSED;
    tutti__wire_close(&link->wire); /* first: another may need its descriptor */
    if (member)
        tutti__roster_closed(&heartbeat->roster, tutti__now_ns(), link->rank, why);
}

/* What could not be sent yet stays; a peer that takes nothing is silent and found by that. */
void tutti__link_flush(tutti_heartbeat *heartbeat, tutti_link *link)
{
    while (link->state != TUTTI_LINK_CLOSED && link->out_sent < link->out.size) {
        int64_t done = tutti__wire_send(&link->wire, link->out.data + link->out_sent,
                                        link->out.size - link->out_sent);
        if (done == -EAGAIN)
            return;
        if (done <= 0) {
            note_failed(heartbeat, link, done);
            tutti__link_end(heartbeat, link, tutti__wire_reason(&link->wire, done));
            return;
        }
        link->out_sent += (size_t)done;
    }
    link->out.size = link->out_sent = 0;
    if (link->state == TUTTI_LINK_ENDING)
        tutti__link_end(heartbeat, link, "");
}

void tutti__link_send(tutti_link *link, const tutti_cluster_message *message)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    size_t size = tutti__message_write(message, frame);
    if (link->out.size + size > MOST_OUT)
        return;
    tutti__text_bytes(&link->out, frame, size);
}

/* ---- strangers ---- */

static size_t count_strangers(const tutti_heartbeat *heartbeat, tutti_link **ret_oldest)
{
    size_t count = 0;
    *ret_oldest = NULL;
    for (size_t i = 0; i < heartbeat->links.count; i++)
        if (heartbeat->links.data[i]->state == TUTTI_LINK_STRANGER && count++ == 0)
            *ret_oldest = heartbeat->links.data[i];
    return count;
}

static void challenge(tutti_heartbeat *heartbeat, int socket, const tutti_address *from)
{
    tutti_wire wire;
    tutti_link *link;
    tutti_cluster_message message;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti__wire_open(socket, heartbeat->tls, true, &wire) == TUTTI_OK &&
        tutti__link_add(heartbeat, wire, TUTTI_LINK_STRANGER, -1, &link) == TUTTI_OK) {
        link->from = *from;
        if (tutti__random_fill(link->nonce, sizeof link->nonce) != TUTTI_OK)
            tutti__link_end(heartbeat, link, "");
        tutti__handshake_challenge(&heartbeat->me, link->nonce, &message);
        tutti__link_send(link, &message);
        tutti__link_flush(heartbeat, link);
    }
    tutti__error_restore(&before);
}

void tutti__link_accept(tutti_heartbeat *heartbeat)
{
    const tutti_world *world = tutti__world();
    size_t ranks = (size_t)heartbeat->cluster->size;
    size_t most = ranks > SOME_STRANGERS ? ranks : SOME_STRANGERS;
    tutti_link *oldest;
    for (int i = 0; i < 256; i++) { /* then others have their turn */
        tutti_address from;
        int socket = world->accept(world->self, heartbeat->listener, &from);
        heartbeat->starved = heartbeat->starved || socket == -EMFILE;
        if (socket < 0 && (socket == -EMFILE || socket == -ENFILE) &&
            count_strangers(heartbeat, &oldest) > 0)
            tutti__link_end(heartbeat, oldest, "");
        if (socket < 0)
            return;
        if (count_strangers(heartbeat, &oldest) >= most)
            tutti__link_end(heartbeat, oldest, "");
        challenge(heartbeat, socket, &from);
    }
}

/* One who comes when the job has already failed hears why. */
static void write_refusal(const tutti_heartbeat *heartbeat, tutti_refusal refusal,
                          const tutti_cluster_message *hello, char *ret_text, size_t size)
{
    const tutti_roster *roster = &heartbeat->roster;
    bool late = refusal == TUTTI_REFUSAL_LATE && roster->phase == TUTTI_PHASE_FAILED;
    if (late && roster->verdict.text[0] != '\0')
        snprintf(ret_text, size, "before all ranks had met, %.960s", roster->verdict.text);
    else if (refusal == TUTTI_REFUSAL_ELSEWHERE)
        tutti__roster_view_keeper_text(roster, ret_text, size);
    else if (refusal == TUTTI_REFUSAL_TAKEN && hello->as.hello.purpose == TUTTI_PURPOSE_CHANNEL)
        snprintf(ret_text, size, "channel %u of rank %u is here already", hello->as.hello.number,
                 hello->as.hello.rank);
    else if (refusal == TUTTI_REFUSAL_TAKEN && hello->as.hello.purpose != TUTTI_PURPOSE_STAND_IN)
        snprintf(ret_text, size, "%s (host %s, process %lld)", tutti__refusal_text(refusal),
                 roster->members[hello->as.hello.rank].peer.host,
                 (long long)roster->members[hello->as.hello.rank].peer.pid);
    else if (refusal == TUTTI_REFUSAL_JOB)
        tutti__refusal_job_text(hello->as.hello.job, heartbeat->me.job, ret_text, size);
    else
        snprintf(ret_text, size, "%s", tutti__refusal_text(refusal));
}

/* Somebody poses as a rank that is there. Members need no word: two groups of a job share rank 0's
 * port, and two ranks call each other when rank 0 is lost. */
static void warn(tutti_heartbeat *heartbeat, const tutti_link *link, tutti_refusal refusal,
                 const tutti_cluster_message *hello, const char *why)
{
    char from[64];
    bool channel = hello->as.hello.purpose == TUTTI_PURPOSE_CHANNEL;
    if (heartbeat->roster.options.open) /* they come and go, and cross each other */
        return;
    if (refusal != TUTTI_REFUSAL_UNMET && !(channel && refusal == TUTTI_REFUSAL_TAKEN))
        return;
    tutti__address_text(&link->from, from, sizeof from);
    snprintf(heartbeat->warning, sizeof heartbeat->warning,
             "rank %d: a process at %s that calls itself rank %u was refused: %.150s",
             heartbeat->cluster->rank, from, hello->as.hello.rank, why);
}

static void link_refuse(tutti_heartbeat *heartbeat, tutti_link *link, tutti_refusal refusal,
                        const tutti_cluster_message *hello)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_REFUSE};
    int claimed = (int)hello->as.hello.rank;
    bool first = false;
    if (refusal != TUTTI_REFUSAL_EARLY && claimed < heartbeat->cluster->size) {
        first = heartbeat->seen[claimed] != refusal;
        heartbeat->seen[claimed] = refusal;
        tutti__address_text(&link->from, heartbeat->seen_from[claimed],
                            sizeof heartbeat->seen_from[claimed]);
    }
    if (refusal == TUTTI_REFUSAL_JOB)
        snprintf(heartbeat->other_job, sizeof heartbeat->other_job, "%s", hello->as.hello.job);
    m.as.refuse.reason = refusal;
    write_refusal(heartbeat, refusal, hello, m.as.refuse.text, sizeof m.as.refuse.text);
    if (first)
        warn(heartbeat, link, refusal, hello, m.as.refuse.text);
    tutti__link_send(link, &m);
    link->state = TUTTI_LINK_ENDING;
}

/* Its own word for its address, else where it was seen; "" for one on this machine, which others
 * reach where they reach rank 0. */
static tutti_peer peer_of(const tutti_link *link, const tutti_cluster_message *hello)
{
    tutti_peer peer = {.port = (int)hello->as.hello.port,
                       .pid = hello->as.hello.pid,
                       .machine = hello->as.hello.machine,
                       .role = (tutti_role)hello->as.hello.role,
                       .index = (int)hello->as.hello.index};
    snprintf(peer.host, sizeof peer.host, "%s", hello->as.hello.host);
    if (hello->as.hello.address[0] != '\0')
        snprintf(peer.address, sizeof peer.address, "%s", hello->as.hello.address);
    else if (!tutti__address_loopback(&link->from))
        tutti__address_text(&link->from, peer.address, sizeof peer.address);
    return peer;
}

static void admit_member(tutti_heartbeat *heartbeat, tutti_link *link,
                         const tutti_cluster_message *hello)
{
    int rank = (int)hello->as.hello.rank;
    tutti_peer peer = peer_of(link, hello);
    link->state = TUTTI_LINK_MEMBER;
    link->rank = rank;
    heartbeat->seen[rank] = TUTTI_REFUSAL_NONE;
    tutti__roster_admit(&heartbeat->roster, tutti__now_ns(), rank, &peer);
}

/* One that is there no more, though its link stands, makes room for it. */
static void admit_joiner(tutti_heartbeat *heartbeat, tutti_link *link,
                         const tutti_cluster_message *hello)
{
    tutti__roster_view_make_room(&heartbeat->roster, tutti__now_ns(), (int)hello->as.hello.rank);
    admit_member(heartbeat, link, hello);
}

static void admit_asker(tutti_heartbeat *heartbeat, tutti_link *link,
                        const tutti_cluster_message *hello)
{
    tutti_link *ours = tutti__link_of(heartbeat, (int)hello->as.hello.rank);
    if (ours != NULL) { /* we call each other: one link is enough */
        ours->state = TUTTI_LINK_ENDING;
        tutti__link_end(heartbeat, ours, "");
    }
    link->state = TUTTI_LINK_MEMBER;
    link->rank = (int)hello->as.hello.rank;
    tutti__roster_stand_in_for(&heartbeat->roster, tutti__now_ns(), link->rank);
}

static tutti_link *find_call(const tutti_heartbeat *heartbeat, int rank, uint32_t number)
{
    for (size_t i = 0; i < heartbeat->links.count; i++) {
        tutti_link *link = heartbeat->links.data[i];
        if (link->state == TUTTI_LINK_CALLING && link->purpose == TUTTI_PURPOSE_CHANNEL &&
            link->rank == rank && link->number == number)
            return link;
    }
    return NULL;
}

bool tutti__link_is_calling(const tutti_heartbeat *heartbeat, int rank, uint32_t number)
{
    return find_call(heartbeat, rank, number) != NULL;
}

/* Where two call each other the lower rank's call is taken. */
static tutti_refusal may_open_in_view(const tutti_heartbeat *heartbeat,
                                      const tutti_cluster_message *hello)
{
    int rank = (int)hello->as.hello.rank;
    if (heartbeat->cluster->rank < rank && find_call(heartbeat, rank, hello->as.hello.number))
        return TUTTI_REFUSAL_TAKEN;
    return tutti__roster_view_may_open(&heartbeat->roster, rank, hello->as.hello.incarnation);
}

/* One channel for each number: who comes second is another than the rank that is there. */
static tutti_refusal may_open(const tutti_heartbeat *heartbeat, const tutti_cluster_message *hello)
{
    uint32_t number = hello->as.hello.number;
    if (number >= TUTTI_CHANNEL_NUMBERS)
        return TUTTI_REFUSAL_ROLE;
    if (heartbeat->roster.options.open)
        return may_open_in_view(heartbeat, hello);
    return heartbeat->opened[hello->as.hello.rank] >> number & 1 ? TUTTI_REFUSAL_TAKEN
                                                                 : TUTTI_REFUSAL_NONE;
}

/* The wire leaves the link; what the caller has already sent behind its hello cannot be there,
 * since it waits for the admission. The admission goes out here: 50 bytes into an empty socket. */
static void admit_channel(tutti_heartbeat *heartbeat, tutti_link *link,
                          const tutti_cluster_message *hello)
{
    tutti__link_flush(heartbeat, link);
    if (link->state != TUTTI_LINK_STRANGER || link->out.size > 0)
        return;
    tutti_caller caller = {(int)hello->as.hello.rank, hello->as.hello.number,
                           hello->as.hello.incarnation, link->wire};
    tutti_link *ours = find_call(heartbeat, caller.rank, caller.number);
    if (!TUTTI_VEC_PUSH(&heartbeat->callers, caller))
        return;
    heartbeat->opened[caller.rank] |= UINT64_C(1) << caller.number;
    heartbeat->news = true;
    if (ours != NULL)
        tutti__link_end(heartbeat, ours, "");
    link->wire = (tutti_wire){.socket = -1};
    link->state = TUTTI_LINK_CLOSED;
}

static tutti_refusal link_judge(const tutti_heartbeat *heartbeat, const tutti_link *link,
                                const tutti_cluster_message *hello)
{
    uint32_t purpose = hello->as.hello.purpose;
    int rank = (int)hello->as.hello.rank;
    bool early = heartbeat->roster.phase == TUTTI_PHASE_GATHERING;
    if (purpose == TUTTI_PURPOSE_CHANNEL && early) /* its word that all have met came sooner */
        return TUTTI_REFUSAL_EARLY;
    tutti_refusal refusal = tutti__handshake_judge(&heartbeat->me, link->nonce, hello);
    if (refusal != TUTTI_REFUSAL_NONE)
        return refusal;
    if (purpose == TUTTI_PURPOSE_MEMBER || purpose == TUTTI_PURPOSE_JOIN)
        return tutti__roster_may_admit(&heartbeat->roster, rank);
    if (purpose == TUTTI_PURPOSE_STAND_IN)
        return tutti__roster_may_stand_in(&heartbeat->roster, rank);
    return may_open(heartbeat, hello);
}

static void judge_stranger(tutti_heartbeat *heartbeat, tutti_link *link,
                           const tutti_cluster_message *hello)
{
    if (hello->type != TUTTI_MESSAGE_HELLO) {
        tutti__link_end(heartbeat, link, "");
        return;
    }
    tutti_refusal refusal = link_judge(heartbeat, link, hello);
    if (refusal != TUTTI_REFUSAL_NONE) {
        link_refuse(heartbeat, link, refusal, hello);
        return;
    }
    tutti_cluster_message admit;
    tutti__handshake_admit(&heartbeat->me, link->nonce, hello, &admit);
    tutti__link_send(link, &admit);
    if (hello->as.hello.purpose == TUTTI_PURPOSE_MEMBER)
        admit_member(heartbeat, link, hello);
    else if (hello->as.hello.purpose == TUTTI_PURPOSE_JOIN)
        admit_joiner(heartbeat, link, hello);
    else if (hello->as.hello.purpose == TUTTI_PURPOSE_STAND_IN)
        admit_asker(heartbeat, link, hello);
    else
        admit_channel(heartbeat, link, hello);
}

/* ---- reading ---- */

static void take_message(tutti_heartbeat *heartbeat, tutti_link *link,
                         const tutti_cluster_message *message)
{
    if (link->state == TUTTI_LINK_STRANGER)
        judge_stranger(heartbeat, link, message);
    else if (link->state == TUTTI_LINK_CALLING)
        tutti__call_answer(heartbeat, link, message);
    else if (link->state == TUTTI_LINK_MEMBER)
        tutti__roster_receive(&heartbeat->roster, tutti__now_ns(), link->rank, message);
}

static bool is_heard(const tutti_link *link)
{
    return link->state != TUTTI_LINK_ENDING && link->state != TUTTI_LINK_CLOSED;
}

/* Every whole frame in the buffer. False when the link has no more to say. */
static bool take_frames(tutti_heartbeat *heartbeat, tutti_link *link)
{
    size_t used = 0, at = 0;
    do {
        tutti_cluster_message message;
        if (tutti__message_read(link->in + at, link->in_size - at, &message, &used) != TUTTI_OK) {
            note_garbage(heartbeat, link);
            tutti__link_end(heartbeat, link, "it sent what is no message");
            return false;
        }
        at += used;
        if (used > 0)
            take_message(heartbeat, link, &message);
    } while (used > 0 && is_heard(link));
    link->in_size -= at;
    memmove(link->in, link->in + at, link->in_size);
    return is_heard(link);
}

/* How much may be read at once. What comes behind the admission to a channel is not ours: of a call
 * for one frames are read one by one. */
static size_t read_limit(const tutti_link *link)
{
    size_t wanted = TUTTI_FRAME_HEAD;
    if (link->state != TUTTI_LINK_CALLING || link->purpose != TUTTI_PURPOSE_CHANNEL)
        return sizeof link->in - link->in_size;
    if (link->in_size >= TUTTI_FRAME_HEAD)
        for (int i = 0; i < 4; i++)
            wanted += (size_t)link->in[4 + i] << (8 * i);
    return wanted > link->in_size ? wanted - link->in_size : 1;
}

void tutti__link_read(tutti_heartbeat *heartbeat, tutti_link *link)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    for (bool more = true; more && link->state != TUTTI_LINK_CLOSED;) {
        int64_t got = tutti__wire_receive(&link->wire, link->in + link->in_size, read_limit(link));
        if (got == -EAGAIN)
            break;
        if (got <= 0) {
            note_failed(heartbeat, link, got);
            tutti__link_end(heartbeat, link, got < 0 ? tutti__wire_reason(&link->wire, got) : "");
            break;
        }
        link->in_size += (size_t)got;
        more = link->state != TUTTI_LINK_ENDING && take_frames(heartbeat, link);
        if (link->state == TUTTI_LINK_ENDING)
            link->in_size = 0;
    }
    tutti__error_restore(&before);
}

void tutti__link_sweep(tutti_heartbeat *heartbeat, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < heartbeat->links.count; i++) {
        tutti_link *link = heartbeat->links.data[i];
        bool waits = link->state == TUTTI_LINK_STRANGER || link->state == TUTTI_LINK_ENDING;
        if (waits && now_ns - link->since_ns > stranger_ns) {
            note_silent(heartbeat, link);
            tutti__link_end(heartbeat, link, "");
        }
        if (link->state == TUTTI_LINK_CLOSED)
            tutti__link_free(link);
        else
            heartbeat->links.data[kept++] = link;
    }
    heartbeat->links.count = kept;
}
