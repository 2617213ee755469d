#include "cluster/handshake.h"

#include <string.h>

#include "base/test.h"

static tutti_cluster *resolve_as(const char *role, int index)
{
    tutti_cluster *cluster = NULL;
    CHECK_OK(
        tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .chief = "a:1",
                                            .workers = "b:1,c:1", .role = role, .index = index),
                              &cluster));
    return cluster;
}

typedef struct pair {
    tutti_identity acceptor, connector;
    uint8_t near[TUTTI_NONCE_BYTES], far[TUTTI_NONCE_BYTES];
    tutti_cluster_message challenge, hello, admit;
} pair;

/* Rank 0 accepts, rank 2 connects. */
static void begin(pair *p)
{
    static const char secret[] = "the secret of this job";
    memset(p, 0, sizeof *p);
    p->acceptor = (tutti_identity){.cluster = resolve_as("chief", 0),
                                   .epoch = 3,
                                   .port = 1,
                                   .secret = secret,
                                   .secret_size = sizeof secret};
    p->connector = p->acceptor;
    p->connector.cluster = resolve_as("worker", 1);
    memset(p->near, 1, sizeof p->near);
    memset(p->far, 2, sizeof p->far);
    tutti__handshake_challenge(&p->acceptor, p->near, &p->challenge);
}

static void end(pair *p)
{
    tutti_cluster_free((tutti_cluster *)(uintptr_t)p->acceptor.cluster);
    tutti_cluster_free((tutti_cluster *)(uintptr_t)p->connector.cluster);
}

static tutti_refusal greet(pair *p)
{
    return tutti__handshake_hello(&p->connector, &p->challenge, TUTTI_PURPOSE_MEMBER, 0, 0, p->far,
                                  &p->hello);
}

TUTTI_TEST(handshake_admits_who_knows_the_secret)
{
    pair p;
    begin(&p);
    CHECK_INT(greet(&p), TUTTI_REFUSAL_NONE);
    CHECK_INT(p.hello.as.hello.rank, 2);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_NONE);
    tutti__handshake_admit(&p.acceptor, p.near, &p.hello, &p.admit);
    CHECK(tutti__handshake_confirm(&p.connector, &p.challenge, &p.hello, &p.admit));
    end(&p);
}

TUTTI_TEST(handshake_refuses_a_wrong_secret_on_either_side)
{
    pair p;
    begin(&p);
    p.connector.secret_size -= 2;
    CHECK_INT(greet(&p), TUTTI_REFUSAL_NONE);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_SECRET);
    p.connector.secret_size += 2;
    greet(&p);
    p.acceptor.secret_size -= 2;
    tutti__handshake_admit(&p.acceptor, p.near, &p.hello, &p.admit);
    CHECK(!tutti__handshake_confirm(&p.connector, &p.challenge, &p.hello, &p.admit));
    end(&p);
}

TUTTI_TEST(handshake_refuses_replay_and_tampering)
{
    pair p;
    begin(&p);
    greet(&p);
    uint8_t fresh[TUTTI_NONCE_BYTES] = {9};
    CHECK_INT(tutti__handshake_judge(&p.acceptor, fresh, &p.hello), TUTTI_REFUSAL_SECRET);
    p.hello.as.hello.port = 99;
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_SECRET);
    greet(&p); /* its proof sent back is no admission */
    p.admit.type = TUTTI_MESSAGE_ADMIT;
    memcpy(p.admit.as.admit.proof, p.hello.as.hello.proof, TUTTI_SHA256_BYTES);
    CHECK(!tutti__handshake_confirm(&p.connector, &p.challenge, &p.hello, &p.admit));
    end(&p);
}

/* Whatever its secret is: two jobs that meet at one port do not take each other's ranks. */
TUTTI_TEST(handshake_refuses_ranks_of_another_job)
{
    pair p;
    char text[300];
    begin(&p);
    strcpy(p.acceptor.job, "step 7.0 of Slurm");
    CHECK_INT(greet(&p), TUTTI_REFUSAL_NONE);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_JOB);
    strcpy(p.connector.job, "step 7.1 of Slurm");
    p.connector.secret_size -= 2;
    greet(&p);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_JOB);
    tutti__refusal_job_text(p.connector.job, p.acceptor.job, text, sizeof text);
    CHECK_CONTAINS(text, "of another job (it belongs to step 7.1 of Slurm, where step 7.0");
    tutti__refusal_job_text("", p.acceptor.job, text, sizeof text);
    CHECK_CONTAINS(text, "a job without a name");
    p.connector.secret_size += 2;
    strcpy(p.connector.job, p.acceptor.job);
    greet(&p);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_NONE);
    strcpy(p.hello.as.hello.job, "x"); /* it is under the proof */
    strcpy(p.acceptor.job, "x");
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_SECRET);
    end(&p);
}

/* When rank 0 is lost, the others ask each other: rank 0 is not let in so, and lets in nobody. */
TUTTI_TEST(handshake_lets_ranks_ask_each_other_without_rank_0)
{
    static const struct {
        int caller, called;
        tutti_refusal refusal;
    } cases[] = {{2, 1, TUTTI_REFUSAL_NONE},
                 {1, 2, TUTTI_REFUSAL_NONE},
                 {0, 1, TUTTI_REFUSAL_ROLE},
                 {2, 0, TUTTI_REFUSAL_ROLE}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        int called = cases[i].called, caller = cases[i].caller;
        pair p;
        begin(&p);
        end(&p);
        p.acceptor.cluster =
            called == 0 ? resolve_as("chief", 0) : resolve_as("worker", called - 1);
        p.connector.cluster =
            caller == 0 ? resolve_as("chief", 0) : resolve_as("worker", caller - 1);
        tutti__handshake_challenge(&p.acceptor, p.near, &p.challenge);
        CHECK_INT(tutti__handshake_hello(&p.connector, &p.challenge, TUTTI_PURPOSE_STAND_IN, called,
                                         0, p.far, &p.hello),
                  TUTTI_REFUSAL_NONE);
        CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), cases[i].refusal);
        end(&p);
    }
}

/* A lower rank opens a channel to a higher one, with the token that both got when all had met. */
TUTTI_TEST(handshake_refuses_channels_of_who_has_not_met_the_others)
{
    static const uint8_t token[TUTTI_TOKEN_BYTES] = {1}, other[TUTTI_TOKEN_BYTES] = {2};
    static const struct {
        const uint8_t *token;
        int caller, called;
        tutti_refusal refusal;
    } cases[] = {{token, 1, 2, TUTTI_REFUSAL_NONE},
                 {token, 2, 1, TUTTI_REFUSAL_ROLE},
                 {NULL, 1, 2, TUTTI_REFUSAL_UNMET},
                 {other, 1, 2, TUTTI_REFUSAL_SECRET}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        pair p;
        begin(&p);
        end(&p);
        p.acceptor.cluster = resolve_as("worker", cases[i].called - 1);
        p.connector.cluster = resolve_as("worker", cases[i].caller - 1);
        p.acceptor.token = token;
        p.connector.token = cases[i].token;
        tutti__handshake_challenge(&p.acceptor, p.near, &p.challenge);
        CHECK_INT(tutti__handshake_hello(&p.connector, &p.challenge, TUTTI_PURPOSE_CHANNEL,
                                         cases[i].called, 0, p.far, &p.hello),
                  TUTTI_REFUSAL_NONE);
        CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), cases[i].refusal);
        end(&p);
    }
}

TUTTI_TEST(handshake_tells_versions_epochs_and_roles_apart)
{
    pair p;
    begin(&p);
    p.challenge.as.challenge.protocol++;
    CHECK_INT(greet(&p), TUTTI_REFUSAL_VERSION);
    p.challenge.as.challenge.protocol--;
    p.connector.epoch++;
    CHECK_INT(greet(&p), TUTTI_REFUSAL_NONE); /* it says who it is, and is refused */
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_EPOCH);
    p.connector.epoch--;
    p.challenge.as.challenge.rank = 1;
    CHECK_INT(greet(&p), TUTTI_REFUSAL_ROLE);
    p.challenge.as.challenge.rank = 0;
    greet(&p);
    strcpy(p.hello.as.hello.version, "0.0.9");
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_VERSION);
    tutti_cluster_free((tutti_cluster *)(uintptr_t)p.connector.cluster);
    p.connector.cluster = resolve_as("chief", 0); /* it takes itself for rank 0 too */
    greet(&p);
    CHECK_INT(tutti__handshake_judge(&p.acceptor, p.near, &p.hello), TUTTI_REFUSAL_ROLE);
    end(&p);
}
