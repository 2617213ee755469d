/* dial.c: connecting to a rank, with both sides' proofs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster/heartbeat.h"
#include "cluster/interface.h"
#include "cluster/lookup.h"
#include "cluster/place.h"
#include "cluster/roster_view.h"

enum { MILLISECOND = 1000000 };

typedef struct dialing {
    tutti_heartbeat *heartbeat;
    const char *host;
    int port, to;
    uint32_t purpose, number;
    int64_t deadline_ns;
    tutti_wire wire;
    uint8_t in[TUTTI_FRAME_BYTES];
    size_t in_size;
    bool final;   /* trying again is useless */
    bool reached; /* somebody listens there, in this attempt */
    bool bound;   /* it goes out by the interface TUTTI_IFACE */
    tutti_error error;
    tutti_error met;       /* of the last attempt that reached somebody */
    tutti_peer_hint *hint; /* of an open roster's keeper: where it is, and who was reached */
    int found;
} dialing;

/* Records why this attempt failed. */
static tutti_status dial_note(dialing *d, bool final, tutti_status status)
{
    tutti__error_capture(status, &d->error);
    if (d->reached)
        d->met = d->error;
    d->final = final;
    return status;
}

/* Nobody listens there. Where somebody did before, as a rank 0 that gave up a moment ago, what came
 * of that says more. */
static tutti_status note_nobody(dialing *d, int error)
{
    char why[300];
    tutti__descriptors_text(error, why, sizeof why);
    if (d->bound && error != EMFILE)
        snprintf(why, sizeof why, "%s (by the interface TUTTI_IFACE=%.40s)", strerror(error),
                 tutti__interface_name());
    if (d->met.status == TUTTI_OK)
        return dial_note(d, false, tutti_fail(TUTTI_IO, "%s", why));
    return dial_note(d, false,
                     tutti_fail(TUTTI_IO, "%s; then nobody was there: %s", d->met.message, why));
}

/* Waits for the socket until the deadline, or 5 s: a firewall that drops everything is tried again.
 */
static tutti_status await(dialing *d, int wants, int64_t until_ns)
{
    const tutti_world *world = tutti__world();
    tutti_wait wait = {.socket = d->wire.socket, .wants = wants};
    int64_t left = until_ns - tutti__now_ns();
    if (left > 0 && world->wait(world->self, &wait, 1, left) > 0)
        return TUTTI_OK;
    if (tutti__now_ns() < until_ns)
        return TUTTI_OK;
    if (d->error.status != TUTTI_OK && until_ns == d->deadline_ns)
        return d->error.status; /* an earlier attempt says more than the end of the time */
    return dial_note(d, false, tutti_fail(TUTTI_DEADLINE, "no answer"));
}

static tutti_status send_message(dialing *d, const tutti_cluster_message *message, int64_t until_ns)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    size_t size = tutti__message_write(message, frame), sent = 0;
    while (sent < size) {
        int64_t done = tutti__wire_send(&d->wire, frame + sent, size - sent);
        if (done == -EAGAIN)
            TUTTI_TRY(
                await(d, TUTTI_WAIT_WRITE | (d->wire.tls != NULL ? TUTTI_WAIT_READ : 0), until_ns));
        else if (done <= 0)
            return dial_note(d, false,
                             tutti_fail(TUTTI_IO, "%s", tutti__wire_reason(&d->wire, done)));
        else
            sent += (size_t)done;
    }
    return TUTTI_OK;
}

static tutti_status receive_message(dialing *d, tutti_cluster_message *ret_message,
                                    int64_t until_ns)
{
    for (;;) {
        size_t used;
        if (tutti__message_read(d->in, d->in_size, ret_message, &used) != TUTTI_OK)
            return dial_note(d, false,
                             tutti_fail(TUTTI_CORRUPT, "something that is no tutti listens there"));
        if (used > 0) {
            d->in_size -= used;
            memmove(d->in, d->in + used, d->in_size);
            return TUTTI_OK;
        }
        /* One byte at a time would be enough for exactness; a frame at most follows, since the
         * other side waits for us, except behind an admission, which is read by its size below. */
        size_t want = d->in_size < TUTTI_FRAME_HEAD
                          ? TUTTI_FRAME_HEAD - d->in_size
                          : TUTTI_FRAME_HEAD + d->in[4] + ((size_t)d->in[5] << 8) - d->in_size;
        int64_t got = tutti__wire_receive(&d->wire, d->in + d->in_size, want);
        if (got == -EAGAIN)
            TUTTI_TRY(await(d, TUTTI_WAIT_READ, until_ns));
        else if (got == -EPROTO) {
            const char *reason = tutti__wire_reason(&d->wire, got);
            return dial_note(d, strstr(reason, "unexpected eof") == NULL,
                             tutti_fail(TUTTI_IO, "TLS: %s", reason));
        } else if (got <= 0)
            return dial_note(
                d, false,
                tutti_fail(TUTTI_CLOSED, "the connection was closed at once%s",
                           d->purpose == TUTTI_PURPOSE_CHANNEL
                               ? "; has that process used up its descriptors (ulimit -n)?"
                               : ""));
        else
            d->in_size += (size_t)got;
    }
}

static tutti_status connect_to(dialing *d, const tutti_address *to, int64_t until_ns)
{
    const tutti_world *world = tutti__world();
    tutti_address from;
    bool bound = false;
    TUTTI_TRY(tutti__interface_towards(to, &from, &bound));
    d->bound = bound;
    int socket = world->connect(world->self, to, bound ? &from : NULL);
    if (socket < 0)
        return note_nobody(d, -socket);
    d->wire = (tutti_wire){.socket = socket};
    TUTTI_TRY(await(d, TUTTI_WAIT_WRITE, until_ns));
    int error = world->connected(world->self, socket);
    if (error != 0)
        return note_nobody(d, -error);
    d->reached = true;
    d->wire.socket = -1;
    return tutti__wire_open(socket, d->heartbeat->tls, false, &d->wire);
}

/* Of these a later attempt may succeed: the earlier process, or its earlier job, is still there. */
static bool passing(tutti_refusal refusal, uint32_t purpose)
{
    if (refusal == TUTTI_REFUSAL_TAKEN)
        return purpose == TUTTI_PURPOSE_MEMBER || purpose == TUTTI_PURPOSE_JOIN;
    return refusal == TUTTI_REFUSAL_EPOCH || refusal == TUTTI_REFUSAL_ENDING ||
           refusal == TUTTI_REFUSAL_EARLY;
}

static tutti_status fail_refused(dialing *d, tutti_refusal refusal, const char *text)
{
    return dial_note(d, !passing(refusal, d->purpose),
                     tutti_fail(refusal == TUTTI_REFUSAL_LATE ? TUTTI_DEADLINE : TUTTI_INVALID,
                                "refused: %s%s", text,
                                refusal == TUTTI_REFUSAL_SECRET
                                    ? " (compare TUTTI_SECRET_FILE on both machines)"
                                    : ""));
}

/* A rank without TLS challenges at once whoever comes; one with it says nothing until we begin. */
static tutti_status receive_challenge(dialing *d, tutti_cluster_message *ret_challenge,
                                      int64_t until_ns)
{
    tutti_status status = receive_message(d, ret_challenge, until_ns);
    if (status == TUTTI_IO && tutti__now_ns() >= until_ns)
        status = TUTTI_DEADLINE; /* an earlier attempt found nobody; this one found somebody */
    bool silent = status == TUTTI_DEADLINE || status == TUTTI_CLOSED;
    if (!silent || d->in_size > 0 || d->wire.tls != NULL || strstr(d->error.message, "TLS"))
        return status;
    return dial_note(d, false,
                     tutti_fail(status,
                                "%s; if it uses TLS, this rank must do so too: set TUTTI_TLS_CERT, "
                                "TUTTI_TLS_KEY and TUTTI_TLS_CA",
                                status == TUTTI_CLOSED ? "the connection was closed without a word"
                                                       : "it is there, but says nothing"));
}

static tutti_status prove(dialing *d, int64_t until_ns)
{
    tutti_cluster_message challenge, hello, answer;
    uint8_t nonce[TUTTI_NONCE_BYTES];
    TUTTI_TRY(receive_challenge(d, &challenge, until_ns));
    if (challenge.type != TUTTI_MESSAGE_CHALLENGE)
        return dial_note(d, true, tutti_fail(TUTTI_CORRUPT, "it does not begin with a challenge"));
    TUTTI_TRY(tutti__random_fill(nonce, sizeof nonce));
    tutti_refusal refusal = tutti__handshake_hello(&d->heartbeat->me, &challenge, d->purpose, d->to,
                                                   d->number, nonce, &hello);
    if (refusal != TUTTI_REFUSAL_NONE)
        return fail_refused(d, refusal, tutti__refusal_text(refusal));
    d->found = (int)challenge.as.challenge.rank;
    TUTTI_TRY(send_message(d, &hello, until_ns));
    TUTTI_TRY(receive_message(d, &answer, until_ns));
    if (answer.type == TUTTI_MESSAGE_REFUSE && d->hint != NULL &&
        answer.as.refuse.reason == TUTTI_REFUSAL_ELSEWHERE) {
        tutti_peer_hint *hint = d->hint;
        if (!tutti__roster_view_keeper_read(answer.as.refuse.text, d->heartbeat->cluster->size,
                                            &hint->rank, hint->address, sizeof hint->address,
                                            &hint->port))
            hint->rank = -1;
        hint->fresh = strcmp(answer.as.refuse.text, "new") == 0;
        return dial_note(d, false,
                         tutti_fail(TUTTI_NOT_FOUND, "nobody who is there keeps the roster yet"));
    }
    if (answer.type == TUTTI_MESSAGE_REFUSE)
        return fail_refused(d, (tutti_refusal)answer.as.refuse.reason, answer.as.refuse.text);
    if (answer.type != TUTTI_MESSAGE_ADMIT ||
        !tutti__handshake_confirm(&d->heartbeat->me, &challenge, &hello, &answer))
        return dial_note(d, true,
                         tutti_fail(TUTTI_INVALID, "it does not know the job's secret itself"));
    return TUTTI_OK;
}

/* Every address of the name once. */
static tutti_status attempt(dialing *d, char ret_reached[64])
{
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    tutti_status status = tutti__lookup(d->host, d->port, d->deadline_ns, addresses, &count);
    if (status != TUTTI_OK)
        return dial_note(d, false, status);
    int64_t until = tutti__now_ns() + 5000 * (int64_t)MILLISECOND;
    until = until < d->deadline_ns ? until : d->deadline_ns;
    status = TUTTI_NOT_FOUND;
    for (size_t i = 0; i < count; i++) {
        d->wire = (tutti_wire){.socket = -1};
        d->in_size = 0;
        d->reached = false;
        status = connect_to(d, &addresses[i], until);
        if (status == TUTTI_OK)
            status = prove(d, until);
        if (status == TUTTI_OK || (status == TUTTI_NOT_FOUND && d->hint != NULL))
            tutti__address_text(&addresses[i], ret_reached, 64);
        if (status == TUTTI_OK)
            return TUTTI_OK;
        if (d->error.status != status)
            dial_note(d, true, status);
        tutti__wire_close(&d->wire);
        if (d->final)
            break;
    }
    return status;
}

tutti_status tutti__dial_keeper(tutti_heartbeat *heartbeat, const char *host, int port,
                                int64_t deadline_ns, tutti_wire *ret_wire, char ret_reached[64],
                                int *ret_rank, tutti_peer_hint *ret_hint, bool *ret_final)
{
    dialing d = {.heartbeat = heartbeat,
                 .host = host,
                 .port = port,
                 .to = -1,
                 .purpose = TUTTI_PURPOSE_JOIN,
                 .deadline_ns = deadline_ns,
                 .hint = ret_hint};
    *ret_hint = (tutti_peer_hint){.rank = -1};
    *ret_reached = '\0';
    tutti_status status = attempt(&d, ret_reached);
    *ret_final = d.final;
    if (status == TUTTI_OK) {
        *ret_wire = d.wire;
        *ret_rank = d.found;
        return TUTTI_OK;
    }
    tutti__error_restore(&d.error);
    return tutti__error_prefix(status, "at %s port %d", host, port);
}

tutti_status tutti__dial(tutti_heartbeat *heartbeat, const char *host, int port, uint32_t purpose,
                         int to, uint32_t number, int64_t deadline_ns, tutti_wire *ret_wire,
                         char ret_reached[64])
{
    const tutti_world *world = tutti__world();
    dialing d = {.heartbeat = heartbeat,
                 .host = host,
                 .port = port,
                 .to = to,
                 .purpose = purpose,
                 .number = number,
                 .deadline_ns = deadline_ns};
    for (int64_t pause = 5 * MILLISECOND;; pause = pause < 320 * MILLISECOND ? 2 * pause : pause) {
        tutti_status status = attempt(&d, ret_reached);
        if (status == TUTTI_OK) {
            *ret_wire = d.wire;
            return TUTTI_OK;
        }
        int64_t left = deadline_ns - tutti__now_ns();
        bool failed = tutti__membership_failed(&heartbeat->membership);
        if (d.final || left <= 0 || failed) {
            tutti__error_restore(&d.error);
            return tutti__error_prefix(d.final ? status : TUTTI_DEADLINE,
                                       "rank %d cannot reach rank %d at %s port %d",
                                       heartbeat->cluster->rank, to, host, port);
        }
        world->sleep_ns(world->self, pause < left ? pause : left);
    }
}
