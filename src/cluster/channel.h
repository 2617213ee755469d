/* channel.h: an authenticated byte stream between two ranks. Plain TCP after the
 * challenge-response, TLS 1.3 with mutual certificates where they are configured (TUTTI_TLS_CERT,
 * TUTTI_TLS_KEY, TUTTI_TLS_CA). */
#ifndef TUTTI_CLUSTER_CHANNEL_H
#define TUTTI_CLUSTER_CHANNEL_H

#include "cluster/membership.h"

typedef struct tutti_channel tutti_channel;

/* A rank opens at most so many to each other one: for them it asks the system for descriptors. */
enum { TUTTI_CHANNELS_EACH = 16 };
enum { TUTTI_CHANNEL_NUMBERS = 64 }; /* they are numbered below that */
/* The one that is for after a verdict: opening it waits although the membership has failed. */
enum { TUTTI_CHANNEL_AFTER_VERDICT = TUTTI_CHANNEL_NUMBERS - 1 };

/* Both ranks call it with the same number; the lower rank connects, the higher accepts. Blocks
 * until the stream stands, the deadline passes or the membership fails. A pair may be opened only
 * once per number. Close every channel before the membership ends. */
tutti_status tutti__channel_open(tutti_membership *membership, int peer, uint32_t number,
                                 int64_t deadline_ns, tutti_channel **ret_channel);
void tutti__channel_close(tutti_channel *channel); /* NULL is fine */

/* Whether a process listens where this rank did: false when it has ended. Takes at most a third of
 * a second. */
bool tutti__channel_listens(tutti_membership *membership, int rank);

/* In open jobs either side calls, without waiting; the channel is there with _take on both sides,
 * where the membership's watchers are told. One that ends may be opened again, and a new one of the
 * same number takes its place. TUTTI_NOT_FOUND: the rank is not in the view with that incarnation.
 */
tutti_status tutti__channel_call(tutti_membership *membership, int peer, uint64_t incarnation,
                                 uint32_t number);
/* Whether a call is under way: else it has come, or has failed and may be tried again in a while.
 */
bool tutti__channel_is_called(tutti_membership *membership, int peer, uint32_t number);
/* Any channel of that number that has come; TUTTI_NOT_FOUND: none. */
tutti_status tutti__channel_take(tutti_membership *membership, uint32_t number, int *ret_peer,
                                 uint64_t *ret_incarnation, tutti_channel **ret_channel);

/* Never block. *ret_done is what was taken, 0 when the stream is full or empty for now (poll the
 * fd). TUTTI_CLOSED when the other side ended, TUTTI_IO when the connection broke; then suspect the
 * peer, or await the verdict. One thread may send while another receives, in TLS too. */
tutti_status tutti__channel_send(tutti_channel *channel, const void *data, size_t size,
                                 size_t *ret_done);
tutti_status tutti__channel_recv(tutti_channel *channel, void *data, size_t size, size_t *ret_done);
/* For poll. Before polling for reading ask tutti__channel_pending: TLS may hold bytes already. */
int tutti__channel_fd(const tutti_channel *channel);
bool tutti__channel_pending(tutti_channel *channel);
bool tutti__channel_encrypted(const tutti_channel *channel);

#endif
