/* handshake.c: challenge, hello, admit. */
#include "cluster/handshake.h"

#include <stdio.h>
#include <string.h>

#include "cluster/cluster.h"

void tutti__handshake_challenge(const tutti_identity *me, const uint8_t nonce[TUTTI_NONCE_BYTES],
                                tutti_cluster_message *ret_challenge)
{
    *ret_challenge = (tutti_cluster_message){.type = TUTTI_MESSAGE_CHALLENGE};
    ret_challenge->as.challenge.protocol = TUTTI_PROTOCOL;
    snprintf(ret_challenge->as.challenge.version, sizeof ret_challenge->as.challenge.version, "%s",
             tutti_version());
    memcpy(ret_challenge->as.challenge.nonce, nonce, TUTTI_NONCE_BYTES);
    ret_challenge->as.challenge.epoch = me->epoch;
    ret_challenge->as.challenge.rank = (uint32_t)tutti_cluster_rank(me->cluster);
}

/* token NULL: of a process that has not met the others. */
static void prove_hello(const tutti_identity *me, const uint8_t *acceptor_nonce,
                        const uint8_t *token, const tutti_cluster_message *hello,
                        uint8_t ret_proof[TUTTI_SHA256_BYTES])
{
    static const char label[] = "tutti hello";
    tutti_cluster_message bare = *hello;
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_hmac hmac;
    memset(bare.as.hello.proof, 0, sizeof bare.as.hello.proof);
    size_t size = tutti__message_write(&bare, frame);
    tutti__hmac_begin(&hmac, me->secret, me->secret_size);
    tutti__hmac_add(&hmac, label, sizeof label);
    tutti__hmac_add(&hmac, acceptor_nonce, TUTTI_NONCE_BYTES);
    if (token != NULL)
        tutti__hmac_add(&hmac, token, TUTTI_TOKEN_BYTES);
    tutti__hmac_add(&hmac, frame, size);
    tutti__hmac_end(&hmac, ret_proof);
}

static void prove_admit(const tutti_identity *me, const uint8_t *acceptor_nonce,
                        const tutti_cluster_message *hello, uint8_t ret_proof[TUTTI_SHA256_BYTES])
{
    static const char label[] = "tutti admit";
    tutti_hmac hmac;
    tutti__hmac_begin(&hmac, me->secret, me->secret_size);
    tutti__hmac_add(&hmac, label, sizeof label);
    tutti__hmac_add(&hmac, acceptor_nonce, TUTTI_NONCE_BYTES);
    tutti__hmac_add(&hmac, hello->as.hello.proof, TUTTI_SHA256_BYTES);
    tutti__hmac_end(&hmac, ret_proof);
}

static const uint8_t *token_for(const tutti_identity *me, uint32_t purpose)
{
    bool newcomer = purpose == TUTTI_PURPOSE_MEMBER || purpose == TUTTI_PURPOSE_JOIN;
    return newcomer ? NULL : me->token;
}

tutti_refusal tutti__handshake_hello(const tutti_identity *me,
                                     const tutti_cluster_message *challenge, uint32_t purpose,
                                     int to, uint32_t number,
                                     const uint8_t nonce[TUTTI_NONCE_BYTES],
                                     tutti_cluster_message *ret_hello)
{
    if (challenge->as.challenge.protocol != TUTTI_PROTOCOL ||
        strcmp(challenge->as.challenge.version, tutti_version()) != 0)
        return TUTTI_REFUSAL_VERSION;
    if (to >= 0 && challenge->as.challenge.rank != (uint32_t)to)
        return TUTTI_REFUSAL_ROLE;
    tutti_cluster_message hello = {.type = TUTTI_MESSAGE_HELLO};
    hello.as.hello.protocol = TUTTI_PROTOCOL;
    snprintf(hello.as.hello.version, sizeof hello.as.hello.version, "%s", tutti_version());
    memcpy(hello.as.hello.nonce, nonce, TUTTI_NONCE_BYTES);
    hello.as.hello.epoch = me->epoch;
    hello.as.hello.purpose = purpose;
    hello.as.hello.rank = (uint32_t)tutti_cluster_rank(me->cluster);
    hello.as.hello.to = challenge->as.challenge.rank;
    hello.as.hello.incarnation = me->incarnation != NULL ? *me->incarnation : 0;
    hello.as.hello.size = (uint32_t)tutti_cluster_size(me->cluster);
    hello.as.hello.role = tutti_cluster_role(me->cluster);
    hello.as.hello.index = (uint32_t)tutti_cluster_index(me->cluster);
    hello.as.hello.number = number;
    hello.as.hello.port = (uint32_t)me->port;
    hello.as.hello.pid = me->pid;
    hello.as.hello.machine = me->machine;
    snprintf(hello.as.hello.host, sizeof hello.as.hello.host, "%s", me->host);
    snprintf(hello.as.hello.address, sizeof hello.as.hello.address, "%s", me->address);
    snprintf(hello.as.hello.job, sizeof hello.as.hello.job, "%s", me->job);
    prove_hello(me, challenge->as.challenge.nonce, token_for(me, purpose), &hello,
                hello.as.hello.proof);
    *ret_hello = hello;
    return TUTTI_REFUSAL_NONE;
}

/* Rank 0 has members; the others have channels from lower ranks, and each other when rank 0 is
 * lost. In an open roster everybody may be called by everybody. */
static bool may_call(const tutti_identity *me, uint32_t purpose, int caller, int own)
{
    if (me->open || purpose == TUTTI_PURPOSE_JOIN)
        return me->open && purpose != TUTTI_PURPOSE_MEMBER;
    if (own == 0)
        return purpose == TUTTI_PURPOSE_MEMBER;
    return (purpose == TUTTI_PURPOSE_CHANNEL && caller < own) ||
           (purpose == TUTTI_PURPOSE_STAND_IN && caller > 0);
}

static tutti_refusal judge_proof(const tutti_identity *me, const uint8_t *nonce,
                                 const tutti_cluster_message *hello)
{
    uint8_t proof[TUTTI_SHA256_BYTES];
    const uint8_t *token = token_for(me, hello->as.hello.purpose);
    prove_hello(me, nonce, token, hello, proof);
    if (tutti__digest_equal(proof, hello->as.hello.proof))
        return TUTTI_REFUSAL_NONE;
    prove_hello(me, nonce, NULL, hello, proof);
    return token != NULL && tutti__digest_equal(proof, hello->as.hello.proof)
               ? TUTTI_REFUSAL_UNMET
               : TUTTI_REFUSAL_SECRET;
}

tutti_refusal tutti__handshake_judge(const tutti_identity *me,
                                     const uint8_t nonce[TUTTI_NONCE_BYTES],
                                     const tutti_cluster_message *hello)
{
    tutti_role role = TUTTI_ROLE_COUNT;
    int index = -1;
    if (hello->as.hello.protocol != TUTTI_PROTOCOL ||
        strcmp(hello->as.hello.version, tutti_version()) != 0)
        return TUTTI_REFUSAL_VERSION;
    if (strcmp(hello->as.hello.job, me->job) != 0) /* whose secret may be another one */
        return TUTTI_REFUSAL_JOB;
    if (hello->as.hello.epoch != me->epoch) /* and so may this one's */
        return TUTTI_REFUSAL_EPOCH;
    tutti_refusal proved = judge_proof(me, nonce, hello);
    if (proved != TUTTI_REFUSAL_NONE)
        return proved;
    int rank = (int)hello->as.hello.rank, own = tutti_cluster_rank(me->cluster);
    bool known = tutti_cluster_find_rank(me->cluster, rank, &role, &index);
    if (!known || role != (tutti_role)hello->as.hello.role || index != (int)hello->as.hello.index ||
        hello->as.hello.size != (uint32_t)tutti_cluster_size(me->cluster) ||
        hello->as.hello.to != (uint32_t)own || rank == own ||
        !may_call(me, hello->as.hello.purpose, rank, own))
        return TUTTI_REFUSAL_ROLE;
    return TUTTI_REFUSAL_NONE;
}

void tutti__handshake_admit(const tutti_identity *me, const uint8_t nonce[TUTTI_NONCE_BYTES],
                            const tutti_cluster_message *hello, tutti_cluster_message *ret_admit)
{
    *ret_admit = (tutti_cluster_message){.type = TUTTI_MESSAGE_ADMIT};
    prove_admit(me, nonce, hello, ret_admit->as.admit.proof);
}

bool tutti__handshake_confirm(const tutti_identity *me, const tutti_cluster_message *challenge,
                              const tutti_cluster_message *hello,
                              const tutti_cluster_message *admit)
{
    uint8_t proof[TUTTI_SHA256_BYTES];
    prove_admit(me, challenge->as.challenge.nonce, hello, proof);
    return tutti__digest_equal(proof, admit->as.admit.proof);
}

const char *tutti__refusal_text(tutti_refusal refusal)
{
    static const char *const texts[TUTTI_REFUSAL_COUNT] = {
        [TUTTI_REFUSAL_NONE] = "admitted",
        [TUTTI_REFUSAL_VERSION] = "wrong version of tutti",
        [TUTTI_REFUSAL_SECRET] = "wrong secret",
        [TUTTI_REFUSAL_ROLE] = "wrong role: rank, task or world size disagree",
        [TUTTI_REFUSAL_EPOCH] = "a process of another start of this job (compare TUTTI_EPOCH)",
        [TUTTI_REFUSAL_TAKEN] = "that rank is here already",
        [TUTTI_REFUSAL_LATE] = "rendezvous was given up",
        [TUTTI_REFUSAL_ENDING] = "the job that met there before is still ending",
        [TUTTI_REFUSAL_JOB] = "a process of another job",
        [TUTTI_REFUSAL_EARLY] = "it has not met all ranks yet",
        [TUTTI_REFUSAL_UNMET] = "it knows the job's secret, but is none of the ranks that have met",
        [TUTTI_REFUSAL_ELSEWHERE] = "another rank keeps the roster",
    };
    return refusal >= 0 && refusal < TUTTI_REFUSAL_COUNT ? texts[refusal] : "unknown";
}

static const char *name_of(const char *job)
{
    return *job != '\0' ? job : "a job without a name";
}

void tutti__refusal_job_text(const char *theirs, const char *ours, char *ret_text, size_t size)
{
    snprintf(
        ret_text, size,
        "of another job (it belongs to %s, where %s meets); give each a port of its own: " TUTTI_PORT_ADVICE,
        name_of(theirs), name_of(ours));
}
