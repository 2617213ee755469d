/* refused_test.c: groups and calls that cannot be, or that ranks do not mean alike. */
#include <math.h>
#include <string.h>

#include "comm/coll/wire.h"
#include "comm/group/testing.h"

TUTTI_TEST(comm_unknown_engines_and_sizes_are_refused)
{
    tutti_comm *comms[2];
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.engine = "pigeon"), comms),
                 TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "shm");
    CHECK_STATUS(tutti_comm_local(0, NULL, comms), TUTTI_INVALID);
}

/* As many as one rank may have: 16 of them have more than a process can address. */
TUTTI_TEST(comm_more_addresses_than_there_are_names_the_option)
{
    enum { RANKS = 16 };
    tutti_comm *comms[RANKS], *comm;
    const tutti_comm_options *huge =
        TUTTI_COMM_OPTIONS(.engine = "local", .arena_bytes = INT64_C(1) << 46);
    CHECK_STATUS(tutti_comm_local(RANKS, huge, comms), TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(),
                   "('ulimit -v unlimited'), or give a smaller .arena_bytes");
    huge = TUTTI_COMM_OPTIONS(.engine = "shm", .arena_bytes = INT64_C(1) << 46);
    CHECK_STATUS(tutti_comm_fork(RANKS, huge, &comm), TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(),
                   "('ulimit -v unlimited'), or give a smaller .arena_bytes");
}

TUTTI_TEST(comm_options_that_cannot_be_are_refused)
{
    tutti_comm *comms[8];
    tutti_comm_cost cost = {.link = {{.alpha = NAN}}};
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.streams = -1), comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".streams of -1");
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.arena_bytes = -5), comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".arena_bytes of -5");
    static const int64_t vast[] = {INT64_MAX, INT64_MAX - 4095, INT64_C(1) << 62, INT64_C(1) << 46};
    for (size_t i = 0; i < TUTTI_COUNT(vast); i++)
        for (int e = 0; e < 2; e++) { /* those that share memory */
            const tutti_comm_options *options =
                TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .arena_bytes = vast[i]);
            CHECK_STATUS(tutti_comm_local(8, options, comms),
                         i < 3 ? TUTTI_TOO_LARGE : TUTTI_NO_MEMORY);
            CHECK_CONTAINS(tutti_error_message(), "arena");
        }
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.cost = &cost), comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "alpha of .cost of nan s");
    cost = (tutti_comm_cost){.link[0].beta[3] = 0.1};
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.cost = &cost), comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "beta of .cost of 0.1 s a byte is a link of 10 bytes");
    CHECK_STATUS(tutti_comm_local(2, &(tutti_comm_options){.engine = "tcp"}, comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "TUTTI_COMM_OPTIONS");
    CHECK_STATUS(tutti_comm_local(2, NULL, NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_spec_check(NULL), TUTTI_INVALID);
    CHECK(isinf(tutti_comm_predict(NULL, "all_reduce", "ring", 2, 8)));
    CHECK_OK(tutti_comm_local(1, NULL, comms));
    CHECK_STATUS(tutti_comm_all_reduce_many(comms[0], NULL, 1, TUTTI_F32, TUTTI_SUM, NULL, NULL),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_all_reduce_many(comms[0], NULL, -1, TUTTI_F32, TUTTI_SUM, NULL, NULL),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_allocate(comms[0], 8, NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_split(comms[0], 0, 0, NULL), TUTTI_INVALID);
    CHECK_OK(tutti_comm_close(comms[0]));
}

/* Which of them go together, and so how often shared memory would be summed, is a matter of limits.
 */
static tutti_status overlap_pieces(tutti_comm *comm, void *context)
{
    (void)context;
    enum { MANY = 5000 };
    static _Thread_local float x[MANY + 2];
    static _Thread_local tutti_comm_piece pieces[MANY];
    for (int most = 0; most < 2; most++) {
        const tutti_comm_bucket *bucket = TUTTI_BUCKET(.bucket_count = most);
        tutti_comm_piece two[] = {{x + 2, 4}, {x, 0}, {x, 4}};
        x[2] = 7;
        EXPECT(tutti_comm_all_reduce_many(comm, two, 3, TUTTI_F32, TUTTI_SUM, bucket, NULL) ==
               TUTTI_INVALID);
        EXPECT(
            strstr(tutti_error_message(), "numbers 0 and 2 overlap, of 16 and 16 bytes, 8 apart"));
        EXPECT(x[2] == 7);
    }
    for (int i = 0; i < MANY; i++) { /* backwards, side by side */
        pieces[MANY - 1 - i] = (tutti_comm_piece){x + i, 1};
        x[i] = 1;
    }
    TUTTI_TRY(tutti_comm_all_reduce_many(comm, pieces, MANY, TUTTI_F32, TUTTI_SUM, NULL, NULL));
    EXPECT(x[0] == 3 && x[MANY - 1] == 3);
    pieces[17].count = 2;
    EXPECT(tutti_comm_all_reduce_many(comm, pieces, MANY, TUTTI_F32, TUTTI_SUM, NULL, NULL) ==
           TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "numbers 16 and 17 overlap"));
    return TUTTI_OK;
}

TUTTI_TEST(comm_pieces_that_overlap_are_refused)
{
    tutti__test_engines(3, overlap_pieces, NULL);
}

static tutti_status refuse_pieces(tutti_comm *comm, void *context)
{
    (void)context;
    float x[4] = {1, 2, 3, 4};
    tutti_comm_piece pieces[] = {{x, 4}, {NULL, 3}};
    EXPECT(tutti_comm_all_reduce_many(comm, pieces, 2, TUTTI_F32, TUTTI_SUM, NULL, NULL) ==
           TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "number 1 is NULL") != NULL);
    tutti_comm_bucket bucket = {.bucket_bytes = -1};
    EXPECT(tutti_comm_all_reduce_many(comm, pieces, 1, TUTTI_F32, TUTTI_SUM, &bucket, NULL) ==
           TUTTI_INVALID);
    EXPECT(x[0] == 1);
    return tutti_comm_all_reduce_many(comm, pieces, 1, TUTTI_F32, TUTTI_SUM, NULL, NULL);
}

TUTTI_TEST(comm_pieces_that_are_not_there_are_refused)
{
    tutti__test_engines(2, refuse_pieces, NULL);
}

/* Each with its reason. */
static tutti_status ask_for_what_does_not_go_together(tutti_comm *comm, void *context)
{
    (void)context;
    static const struct {
        tutti_comm_call call;
        const char *why;
    } cases[] = {
        {{.algorithm = "compressed"}, "by 'compressed' is not possible: it needs .wire, .codec or"},
        {{.algorithm = "ring", .wire = TUTTI_BF16},
         "by 'ring' is not possible: with .wire, .codec or .compressor it goes by 'compressed' only; "
         "there are: compressed"},
        {{.algorithm = "ring", .shards = 2},
         "by 'ring' is not possible: with .shards it goes by 'fixed' only; there are: fixed"},
        {{.algorithm = "pigeon"}, "by 'pigeon' is not possible in this group of 2 ranks"},
    };
    float x[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_comm_call call = cases[i].call;
        call.struct_size = sizeof call;
        EXPECT(tutti_comm_all_reduce(comm, x, x, 4, TUTTI_F32, TUTTI_SUM, &call) == TUTTI_INVALID);
        EXPECT(strstr(tutti_error_message(), cases[i].why) != NULL);
    }
    int peer = 1 - tutti_comm_rank(comm);
    EXPECT(tutti_comm_send(comm, peer, 0, x, 4, TUTTI_CALL(.algorithm = "ring")) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "send: .algorithm is for collectives; leave it out"));
    EXPECT(tutti_comm_recv(comm, peer, 0, x, 4, TUTTI_CALL(.wire = TUTTI_F16)) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "recv: .wire is for collectives; leave it out"));
    tutti_comm_call empty = {.timeout = 1};
    EXPECT(tutti_comm_recv(comm, peer, 0, x, 4, &empty) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "recv: the options have a struct_size of 0"));
    EXPECT(tutti_comm_broadcast(comm, x, 4, TUTTI_F32, 0, &empty) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "broadcast: the options have a struct_size of 0"));
    EXPECT(strstr(tutti_error_message(), "make them with TUTTI_CALL(...)"));
    return tutti_comm_all_reduce(comm, x, x, 4, TUTTI_F32, TUTTI_SUM, NULL);
}

TUTTI_TEST(comm_what_does_not_go_together_is_refused_with_the_reason)
{
    tutti__test_engines(2, ask_for_what_does_not_go_together, NULL);
}

/* Ranks that name other algorithms, or other forms on the wire, took each other's bytes for sums.
 */
static tutti_status differ(tutti_comm *comm, void *context)
{
    const tutti_comm_call *calls = context;
    enum { COUNT = 3000 };
    float x[COUNT] = {0};
    EXPECT(tutti_comm_all_reduce(comm, x, x, COUNT, TUTTI_F32, TUTTI_SUM,
                                 &calls[tutti_comm_rank(comm)]) != TUTTI_OK);
    EXPECT(strstr(tutti_error_message(), "algorithm or form on the wire") != NULL);
    return TUTTI_OK;
}

TUTTI_TEST(comm_ranks_that_go_different_ways_are_found_out)
{
    tutti_comm_call algorithms[] = {*TUTTI_CALL(.algorithm = "naive"),
                                    *TUTTI_CALL(.algorithm = "central")};
    tutti_comm_call wires[] = {*TUTTI_CALL(.wire = TUTTI_BF16), *TUTTI_CALL(.wire = TUTTI_F16)};
    const tutti_comm_options *options = TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 20);
    tutti__test_ranks(2, options, differ, algorithms);
    tutti__test_ranks(2, options, differ, wires);
}

/* What an operation does not do is refused, on all ranks, before anybody has begun. */
static tutti_status ask_too_much(tutti_comm *comm, void *context)
{
    (void)context;
    float x[2] = {1, 2};
    tutti_request *request = NULL;
    EXPECT(tutti_comm_broadcast(comm, x, 2, TUTTI_F32, 0, TUTTI_CALL(.wire = TUTTI_BF16)) ==
           TUTTI_INVALID);
    EXPECT(tutti_comm_reduce(comm, x, x, 2, TUTTI_F32, TUTTI_SUM, 0, TUTTI_CALL(.shards = 4)) ==
           TUTTI_INVALID);
    EXPECT(tutti_comm_agree(comm, "schedule", NULL, 0, 0, TUTTI_CALL(.request = &request)) ==
           TUTTI_INVALID);
    EXPECT(request == NULL);
    EXPECT(tutti_comm_agree(comm, "schedule", NULL, -1, 0, NULL) == TUTTI_INVALID);
    EXPECT(tutti_comm_all_reduce(comm, x, x, 2, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.wire = TUTTI_BF16, .codec = tutti__wire_codec(
                                                                    TUTTI_F16))) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "leave one out"));
    /* A call that does not say how much of it there is: nothing of it would be read. */
    EXPECT(tutti_comm_barrier(comm, &(tutti_comm_call){.timeout = 1}) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "TUTTI_CALL"));
    EXPECT(tutti_comm_recv(comm, 1 - comm->rank, 0, x, 4, &(tutti_comm_call){.timeout = 1}) ==
           TUTTI_INVALID);
    TUTTI_TRY(tutti_comm_barrier(comm, &(tutti_comm_call){0})); /* asks for nothing */
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, 2, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(x[0] == (float)comm->size);
    return TUTTI_OK;
}

TUTTI_TEST(comm_what_only_all_reduce_does_is_refused_elsewhere)
{
    tutti__test_engines(2, ask_too_much, NULL);
}
