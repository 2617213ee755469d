/* handshake.h: how two processes prove to each other that they know the job's secret, before
 * anything else is believed. Pure functions on messages; nonces come from outside.
 *
 *     acceptor                       connector
 *     challenge(nonce A)   ------->
 *                          <-------  hello(nonce C, who, proof C)
 *     admit(proof A)       ------->                        or refuse(reason)
 *
 * proof C = HMAC(secret, "tutti hello" | nonce A | token | the hello without its proof)
 * proof A = HMAC(secret, "tutti admit" | nonce A | proof C)
 *
 * Both nonces and the epoch are under the proof, so neither an earlier run's messages nor the
 * other direction's are of any use. The token is what rank 0 has given to all ranks when they had
 * met; a member, who comes before that, has none. So nobody opens a channel in the name of a rank
 * that is there, who only knows the secret. */
#ifndef TUTTI_CLUSTER_HANDSHAKE_H
#define TUTTI_CLUSTER_HANDSHAKE_H

#include "cluster/message.h"

/* What a process says of itself, and its secret. */
typedef struct tutti_identity {
    const tutti_cluster *cluster;
    uint32_t epoch;
    int64_t pid;
    uint64_t machine;
    int port;
    char host[256], address[64];
    char job[TUTTI_JOB_BYTES]; /* its scheduler's name for it; "": none */
    const void *secret;
    size_t secret_size;          /* 0: none; proofs are then with an empty key */
    const uint8_t *token;        /* [TUTTI_TOKEN_BYTES]; NULL: it has not met the others */
    bool open;                   /* of an open roster */
    const uint64_t *incarnation; /* in that; NULL: of none */
} tutti_identity;

void tutti__handshake_challenge(const tutti_identity *me, const uint8_t nonce[TUTTI_NONCE_BYTES],
                                tutti_cluster_message *ret_challenge);
/* The connector's answer. NONE, or why it is useless to go on (VERSION, ROLE). One of another epoch
 * is sent all the same: the acceptor, which refuses it, then knows who was there. `to` -1: whoever
 * is there. */
tutti_refusal tutti__handshake_hello(const tutti_identity *me,
                                     const tutti_cluster_message *challenge, uint32_t purpose,
                                     int to, uint32_t number,
                                     const uint8_t nonce[TUTTI_NONCE_BYTES],
                                     tutti_cluster_message *ret_hello);
/* The acceptor's judgement; `nonce` is the one of its challenge. */
tutti_refusal tutti__handshake_judge(const tutti_identity *me,
                                     const uint8_t nonce[TUTTI_NONCE_BYTES],
                                     const tutti_cluster_message *hello);
void tutti__handshake_admit(const tutti_identity *me, const uint8_t nonce[TUTTI_NONCE_BYTES],
                            const tutti_cluster_message *hello, tutti_cluster_message *ret_admit);
/* Whether the acceptor knows the secret too. */
bool tutti__handshake_confirm(const tutti_identity *me, const tutti_cluster_message *challenge,
                              const tutti_cluster_message *hello,
                              const tutti_cluster_message *admit);

/* "wrong secret"; never NULL. */
const char *tutti__refusal_text(tutti_refusal refusal);
/* TUTTI_REFUSAL_JOB with both names: `theirs` is refused by `ours`. */
void tutti__refusal_job_text(const char *theirs, const char *ours, char *ret_text, size_t size);

#endif
