/* failures_test.c: calls that come late, end half way, are given up, or are not the same on all
 * ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "comm/coll/area.h"
#include "comm/group/testing.h"

/* Rank 1 waits for something else of rank 0 than what rank 0 cannot get rid of: more than is kept
 * for it, of which a part has gone. */
static tutti_status send_half(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t size = (int64_t)64 << 20;
    int rank = tutti_comm_rank(comm), x = 0;
    char *large = rank == 0 ? calloc(1, (size_t)size) : NULL;
    tutti_status status;
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    int64_t start = tutti__now_ns();
    if (rank == 0) { /* nobody reads */
        status = tutti_comm_send(comm, 1, 3, large, size, TUTTI_CALL(.timeout = 0.2));
        EXPECT(status == TUTTI_DEADLINE);
    } else {
        tutti__world()->sleep_ns(tutti__world()->self, 400000000);
        status = tutti_comm_recv(comm, 0, 4, &x, sizeof x, NULL);
    }
    free(large);
    if (status != TUTTI_DEADLINE ||
        !strstr(tutti_error_message(), "send, tag 3: waited too long") ||
        !strstr(tutti_error_message(), "of 67108864 bytes sent; the rest cannot follow"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    EXPECT(tutti__now_ns() - start < (int64_t)5000000000);
    EXPECT(tutti_comm_barrier(comm, NULL) == TUTTI_DEADLINE);
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_send_that_ends_half_way_breaks_the_group)
{
    tutti__test_engines(2, send_half, NULL);
}

static tutti_status wait_for_odd_times(tutti_comm *comm, void *context)
{
    (void)context;
    static const double odd[] = {-1, NAN, -INFINITY};
    int x = 0, other = 1 - tutti_comm_rank(comm);
    for (size_t i = 0; i < TUTTI_COUNT(odd); i++) {
        const tutti_comm_call *call = TUTTI_CALL(.timeout = odd[i]);
        EXPECT(tutti_comm_recv(comm, other, 3, &x, sizeof x, call) == TUTTI_INVALID);
        EXPECT(strstr(tutti_error_message(), ".timeout of") != NULL);
        EXPECT(tutti_comm_all_reduce(comm, &x, &x, 1, TUTTI_I32, TUTTI_SUM, call) == TUTTI_INVALID);
        EXPECT(tutti_comm_all_reduce_many(comm, &(tutti_comm_piece){&x, 1}, 1, TUTTI_I32, TUTTI_SUM,
                                          NULL, call) == TUTTI_INVALID);
    }
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_times_that_nobody_can_wait_for_are_refused)
{
    tutti_comm *comms[2];
    tutti__test_engines(2, wait_for_odd_times, NULL);
    CHECK_STATUS(tutti_comm_local(2, TUTTI_COMM_OPTIONS(.timeout = -1), comms), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_fork(2, TUTTI_COMM_OPTIONS(.join_timeout = NAN), comms), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".join_timeout");
}

static tutti_status late(tutti_comm *comm, void *context)
{
    (void)context;
    float one = 1;
    if (tutti_comm_rank(comm) == 1)
        return TUTTI_OK; /* does not come */
    int64_t start = tutti__now_ns();
    tutti_status status = tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
                                                TUTTI_CALL(.timeout = 0.2));
    EXPECT(status != TUTTI_OK);
    EXPECT(tutti__now_ns() - start < 5000000000);
    EXPECT(status == TUTTI_CLOSED || strstr(tutti_error_message(), "rank 1") != NULL);
    EXPECT(tutti_comm_barrier(comm, NULL) == status); /* broken for good */
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_deadline_names_who_did_not_come)
{
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), late, NULL);
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "tcp"), late, NULL);
}

/* Rank 2 comes when the others have given up, and could do its part alone. */
static tutti_status come_too_late(tutti_comm *comm, void *context)
{
    (void)context;
    enum { MILLISECOND = 1000000 };
    float x[100] = {0};
    const tutti_world *world = tutti__world();
    bool last = tutti_comm_rank(comm) == 2;
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    if (last)
        world->sleep_ns(world->self, 300 * MILLISECOND);
    tutti_status status =
        tutti_comm_broadcast(comm, x, 100, TUTTI_F32, 2, TUTTI_CALL(.timeout = 0.1));
    EXPECT(status == TUTTI_DEADLINE && strstr(tutti_error_message(), "waited too long for rank"));
    if (!last) /* it does not go yet: that is not how others hear of it */
        world->sleep_ns(world->self, 400 * MILLISECOND);
    return TUTTI_OK;
}

TUTTI_TEST(comm_who_comes_after_the_others_deadline_fails_too)
{
    tutti__test_engines(3, come_too_late, NULL);
    tutti__test_forked(3, TUTTI_COMM_OPTIONS(.engine = "tcp"), come_too_late, NULL);
    tutti__test_forked(3, TUTTI_COMM_OPTIONS(.engine = "shm"), come_too_late, NULL);
}

/* By messages: rank 2 is waited for by rank 0, which has come. */
static tutti_status late_in_a_ring(tutti_comm *comm, void *context)
{
    (void)context;
    float x[100] = {0};
    if (tutti_comm_rank(comm) == 1)
        return TUTTI_OK; /* does not come */
    EXPECT(tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.timeout = 0.2, .algorithm = "ring")) ==
           TUTTI_DEADLINE);
    EXPECT(strstr(tutti_error_message(), "waited too long for rank 1"));
    EXPECT(strstr(tutti_error_message(), "; 3 of 4 ranks of the group had come"));
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_deadline_of_messages_names_who_did_not_come)
{
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "local"), late_in_a_ring, NULL);
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "shm"), late_in_a_ring, NULL);
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "tcp"), late_in_a_ring, NULL);
}

/* Ranks 1 and 3 have given the root what is theirs, and are in a barrier of all; rank 2 is in
 * neither. */
static tutti_status late_in_a_group(tutti_comm *comm, void *context)
{
    (void)context;
    enum { MILLISECOND = 1000000 };
    float own[25] = {0}, all[100];
    int rank = tutti_comm_rank(comm);
    tutti_comm *group;
    TUTTI_TRY(tutti_comm_split(comm, 0, -rank, &group));
    const tutti_world *world = tutti__world();
    if (rank == 2) {
        world->sleep_ns(world->self, 500 * MILLISECOND);
        (void)tutti_comm_close(group);
        return TUTTI_OK;
    }
    tutti_status status = tutti_comm_gather(group, own, all, 25, TUTTI_F32, 3,
                                            TUTTI_CALL(.timeout = 0.2, .algorithm = "central"));
    EXPECT((status == TUTTI_OK) == (rank != 0));
    if (rank != 0)
        status = tutti_comm_barrier(comm, NULL);
    EXPECT(status == TUTTI_DEADLINE);
    EXPECT(strstr(tutti_error_message(), "gather number 1"));
    EXPECT(strstr(tutti_error_message(), "waited too long for rank 2"));
    EXPECT(strstr(tutti_error_message(), "; 3 of 4 ranks of the group had come"));
    (void)tutti_comm_close(group);
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_deadline_in_a_group_names_who_did_not_come_to_it)
{
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "tcp"), late_in_a_group, NULL);
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 20), late_in_a_group,
                       NULL);
}

/* What they say of its size, and who came, once. */
static tutti_status late_in_blocks(tutti_comm *comm, void *context)
{
    (void)context;
    float x[30] = {0}, y[10] = {0};
    static const int64_t counts[] = {10, 10, 10};
    if (tutti_comm_rank(comm) == 1)
        return TUTTI_OK; /* does not come */
    EXPECT(tutti_comm_all_gather_uneven(comm, y, counts, x, TUTTI_F32,
                                        TUTTI_CALL(.timeout = 0.2)) == TUTTI_DEADLINE);
    EXPECT(strstr(tutti_error_message(), ", 30 x f32 in all, 3 ranks)"));
    return TUTTI_OK;
}

static tutti_status late_and_compressed(tutti_comm *comm, void *context)
{
    (void)context;
    float x[100] = {0};
    tutti_compressor *compressor;
    if (tutti_comm_rank(comm) == 1)
        return TUTTI_OK; /* does not come */
    TUTTI_TRY(tutti_compressor_create("topk:0.1", 1, &(int64_t){100}, &compressor));
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM,
                              TUTTI_CALL(.timeout = 0.2, .compressor = compressor));
    tutti_compressor_free(compressor);
    EXPECT(status == TUTTI_DEADLINE);
    const char *come = strstr(tutti_error_message(), "ranks of the group had come");
    EXPECT(come && !strstr(come + 1, "ranks of the group had come"));
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_deadline_says_each_thing_once)
{
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), late_in_blocks, NULL);
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "tcp"), late_in_blocks, NULL);
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), late_and_compressed, NULL);
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "shm"), late_and_compressed, NULL);
}

static tutti_status receive_again(tutti_comm *comm, void *context)
{
    (void)context;
    int value = 0;
    if (tutti_comm_rank(comm) == 0) {
        EXPECT(tutti_comm_recv(comm, 1, 3, &value, 4, TUTTI_CALL(.timeout = 0.02)) ==
               TUTTI_DEADLINE);
        TUTTI_TRY(tutti_comm_barrier(comm, NULL));
        TUTTI_TRY(tutti_comm_recv(comm, 1, 3, &value, 4, NULL));
        EXPECT(value == 42);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    value = 42;
    return tutti_comm_send(comm, 0, 3, &value, 4, NULL);
}

TUTTI_TEST(comm_a_receive_may_be_repeated_after_its_deadline)
{
    tutti__test_engines(2, receive_again, NULL);
}

static tutti_status aborting(tutti_comm *comm, void *context)
{
    (void)context;
    float one = 1;
    if (tutti_comm_rank(comm) == 0) {
        tutti__world()->sleep_ns(tutti__world()->self, 20000000);
        tutti_comm_abort(comm, "out of coffee");
        return TUTTI_OK;
    }
    tutti_status status = tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL);
    EXPECT(status == TUTTI_CANCELLED && strstr(tutti_error_message(), "out of coffee"));
    return TUTTI_OK;
}

TUTTI_TEST(comm_abort_reaches_ranks_that_share_memory)
{
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "shm"), aborting, NULL);
}

/* ---- ranks that call differently ---- */

static tutti_status other_sizes(tutti_comm *comm, void *context)
{
    float values[128] = {1};
    (void)context;
    TUTTI_TRY(tutti_comm_all_reduce(comm, values, values, 128, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(values[0] == (float)tutti_comm_size(comm));
    int64_t count = tutti_comm_rank(comm) == 1 ? 126 : 128;
    EXPECT(tutti_comm_all_reduce(comm, values, values, count, TUTTI_F32, TUTTI_SUM, NULL) ==
           TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "with the same sizes in the same order") != NULL);
    /* In shared memory, which two ranks do what. */
    EXPECT(!comm->area || (strstr(tutti_error_message(), "in all_reduce (sum) of 126 x f32") &&
                           strstr(tutti_error_message(), "in all_reduce (sum) of 128 x f32")));
    return TUTTI_OK;
}

/* Rank 1 takes rank 0's block for much larger than it is. */
static tutti_status other_counts(tutti_comm *comm, void *context)
{
    (void)context;
    enum { BLOCK = 10, MUCH = 3000000 };
    int64_t counts[] = {tutti_comm_rank(comm) == 1 ? MUCH : BLOCK, BLOCK, BLOCK};
    float in[BLOCK] = {0}, *out = calloc(MUCH + 2 * BLOCK, sizeof *out);
    EXPECT(out != NULL);
    tutti_status status = tutti_comm_all_gather_uneven(comm, in, counts, out, TUTTI_F32, NULL);
    free(out);
    if (!comm->area && tutti_comm_rank(comm) != 1)
        return TUTTI_OK; /* what it was sent may have been what it expected */
    EXPECT(status == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "with the same sizes in the same order") != NULL);
    return TUTTI_OK;
}

TUTTI_TEST(ranks_with_other_counts_are_told)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        tutti__test_ranks(3,
                          TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 20),
                          other_counts, NULL);
}

/* As many bytes, of another kind. */
static tutti_status other_kinds(tutti_comm *comm, void *context)
{
    bool type = *(const bool *)context, odd = tutti_comm_rank(comm) == 1;
    float x[100] = {1};
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, 100, odd && type ? TUTTI_I32 : TUTTI_F32,
                              odd && !type ? TUTTI_MAX : TUTTI_SUM, NULL);
    if (status != TUTTI_INVALID || !strstr(tutti_error_message(), "in the same order"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(ranks_with_other_types_and_reductions_are_told)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        for (int type = 0; type < 2; type++)
            tutti__test_ranks(
                2, TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 20),
                other_kinds, &(bool){type});
}

TUTTI_TEST(ranks_with_other_sizes_are_told)
{
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "local", .timeout = 20), other_sizes, NULL);
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "shm", .timeout = 20), other_sizes, NULL);
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 20), other_sizes, NULL);
}

/* Sixteen bits on the wire of one rank only, which goes by messages; the other in shared memory. */
static tutti_status other_wires(tutti_comm *comm, void *context)
{
    (void)context;
    float x[100] = {0};
    tutti_dtype wire = tutti_comm_rank(comm) == 1 ? TUTTI_BF16 : 0;
    EXPECT(tutti_comm_all_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM, TUTTI_CALL(.wire = wire)) ==
           TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "in the same order"));
    EXPECT(!comm->area || strstr(tutti_error_message(), "100 x f32, as bf16 on the wire"));
    return TUTTI_OK;
}

/* Each is a root that waits for the other: by messages, which nobody sends. */
static tutti_status roots_that_wait(tutti_comm *comm, void *context)
{
    (void)context;
    float x[100] = {0};
    EXPECT(tutti_comm_reduce(comm, x, x, 100, TUTTI_F32, TUTTI_SUM, tutti_comm_rank(comm),
                             TUTTI_CALL(.algorithm = "tree", .timeout = 0.3)) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "f32 with root 0"));
    EXPECT(strstr(tutti_error_message(), "f32 with root 1"));
    return TUTTI_OK;
}

/* As many elements, of other tensors. */
static tutti_status other_pieces(tutti_comm *comm, void *context)
{
    (void)context;
    float x[10] = {0};
    int64_t first = tutti_comm_rank(comm) == 1 ? 4 : 5;
    tutti_comm_piece pieces[] = {{x, first}, {x + first, 10 - first}};
    EXPECT(tutti_comm_all_reduce_many(comm, pieces, 2, TUTTI_F32, TUTTI_SUM, NULL, NULL) ==
           TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "in the same order"));
    return TUTTI_OK;
}

TUTTI_TEST(ranks_with_other_forms_roots_and_pieces_are_told)
{
    tutti__test_engines(2, other_wires, NULL);
    tutti__test_engines(2, other_pieces, NULL);
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "local"), roots_that_wait, NULL);
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "shm"), roots_that_wait, NULL);
    tutti__test_forked(2, TUTTI_COMM_OPTIONS(.engine = "tcp"), roots_that_wait, NULL);
}

/* One that was refused has begun nowhere, however long a rank stays there. */
static tutti_status refused_first(tutti_comm *comm, void *context)
{
    (void)context;
    float x[4] = {0}, all[4 * 2] = {0};
    EXPECT(tutti_comm_gather(comm, x, all, 4, TUTTI_F32, 0, TUTTI_CALL(.algorithm = "halving")) ==
           TUTTI_INVALID);
    if (tutti_comm_rank(comm) == 1)
        usleep(200 * 1000);
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_refused_collectives_are_no_others_business)
{
    tutti__test_engines(2, refused_first, NULL);
    tutti__test_forked(2, TUTTI_COMM_OPTIONS(.engine = "tcp"), refused_first, NULL);
}

/* In a collective in which nobody waits for anybody; `context`: which of them. */
static tutti_status other_roots(tutti_comm *comm, void *context)
{
    bool broadcasts = *(const bool *)context;
    int rank = tutti_comm_rank(comm);
    float x[4] = {0}, all[4 * 5] = {0};
    tutti_status status = tutti_comm_barrier(comm, NULL); /* others' failure may overtake its end */
    if (status == TUTTI_OK)
        status = broadcasts  ? tutti_comm_broadcast(comm, x, 4, TUTTI_F32, rank, NULL)
                 : rank == 0 ? tutti_comm_scatter(comm, all, x, 4, TUTTI_F32, 0, NULL)
                             : tutti_comm_gather(comm, x, all, 4, TUTTI_F32, 0, NULL);
    if (status == TUTTI_OK) /* of messages it is the next one that shows it */
        status = tutti_comm_barrier(comm, NULL);
    if (status != TUTTI_INVALID || !strstr(tutti_error_message(), "in the same order"))
        return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
    return TUTTI_OK;
}

TUTTI_TEST(ranks_that_all_send_in_another_collective_are_told_in_the_next)
{
    static const int sizes[] = {2, 5};
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        for (size_t i = 0; i < TUTTI_COUNT(sizes); i++)
            for (int kind = 0; kind < 2; kind++)
                tutti__test_ranks(
                    sizes[i],
                    TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 20),
                    other_roots, &(bool){kind});
}

/* More than a stream between two ranks holds: both send before they receive; then rank 0 sends what
 * rank 1 asks for only after a collective. */
static tutti_status send_first(tutti_comm *comm, void *context)
{
    (void)context;
    enum { SIZE = 6 << 20 };
    int rank = tutti_comm_rank(comm), other = 1 - rank;
    const tutti_comm_call *soon = TUTTI_CALL(.timeout = 20);
    char *given = malloc(SIZE), *got = malloc(SIZE);
    EXPECT(given && got);
    memset(given, 'a' + rank, SIZE);
    TUTTI_TRY(tutti_comm_send(comm, other, 1, given, SIZE, soon));
    TUTTI_TRY(tutti_comm_recv(comm, other, 1, got, SIZE, soon));
    EXPECT(got[0] == 'a' + other && got[SIZE - 1] == 'a' + other);
    if (rank == 0)
        TUTTI_TRY(tutti_comm_send(comm, other, 2, given, SIZE, soon));
    TUTTI_TRY(tutti_comm_barrier(comm, soon));
    if (rank == 1)
        TUTTI_TRY(tutti_comm_recv(comm, other, 2, got, SIZE, soon));
    EXPECT(got[SIZE / 2] == 'a' + other);
    free(given);
    free(got);
    return TUTTI_OK;
}

TUTTI_TEST(comm_what_nobody_asks_for_yet_is_taken_in_by_who_waits)
{
    tutti__test_engines(2, send_first, NULL);
}

/* A receive of another size fails by itself, whether the message has come before it or not; the
 * message is the next receive's, and the group is whole. */
static tutti_status ask_for_more(tutti_comm *comm, void *context)
{
    bool early = *(const bool *)context;
    const tutti_comm_call *soon = TUTTI_CALL(.timeout = 10);
    int32_t number = 7, room[2] = {0};
    if (tutti_comm_rank(comm) == 0) {
        if (!early)
            tutti__world()->sleep_ns(tutti__world()->self, 50000000);
        TUTTI_TRY(tutti_comm_send(comm, 1, 5, &number, 4, soon));
        if (early)
            TUTTI_TRY(tutti_comm_send(comm, 1, 6, &number, 4, soon));
    } else {
        if (early) /* what was sent before it is there as well */
            TUTTI_TRY(tutti_comm_recv(comm, 0, 6, room, 4, soon));
        EXPECT(tutti_comm_recv(comm, 0, 5, room, 8, soon) == TUTTI_INVALID);
        EXPECT(strstr(tutti_error_message(), "rank 0 sent 4 bytes where 8 were expected"));
        room[0] = 0;
        TUTTI_TRY(tutti_comm_recv(comm, 0, 5, room, 4, soon));
        EXPECT(room[0] == 7);
    }
    return tutti_comm_barrier(comm, soon);
}

TUTTI_TEST(comm_a_receive_of_another_size_fails_alone)
{
    for (int early = 0; early < 2; early++)
        tutti__test_engines(2, ask_for_more, &(bool){early});
}

static tutti_status give_nowhere(tutti_comm *comm, void *context)
{
    (void)context;
    float x[4] = {0};
    EXPECT(tutti_comm_all_reduce(comm, NULL, x, 4, TUTTI_F32, TUTTI_SUM, NULL) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "all_reduce: in is NULL, for 4 x f32"));
    EXPECT(tutti_comm_broadcast(comm, NULL, 4, TUTTI_F32, 0, NULL) == TUTTI_INVALID);
    EXPECT(tutti_comm_send(comm, 1 - tutti_comm_rank(comm), 0, NULL, 8, NULL) == TUTTI_INVALID);
    return tutti_comm_barrier(comm, NULL); /* nothing has happened */
}

TUTTI_TEST(comm_memory_that_is_missing_is_refused)
{
    tutti__test_engines(2, give_nowhere, NULL);
}

/* What one rank writes while another, or itself, still reads it gives sums of something else. */
static tutti_status overlap(tutti_comm *comm, void *context)
{
    (void)context;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
    int rank = tutti_comm_rank(comm);
    EXPECT(tutti_comm_all_reduce(comm, x, x + 1, 2, TUTTI_F32, TUTTI_SUM, NULL) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "all_reduce: in and out overlap"));
    EXPECT(tutti_comm_all_gather(comm, x + 1, x, 2, TUTTI_F32, NULL) == TUTTI_INVALID);
    EXPECT(tutti_comm_reduce_scatter(comm, x, x + 1, 2, TUTTI_F32, TUTTI_SUM, NULL) ==
           TUTTI_INVALID);
    EXPECT(tutti_comm_all_to_all(comm, x, x, 2, TUTTI_F32, NULL) == TUTTI_INVALID);
    if (rank == 0) { /* the others have none */
        EXPECT(tutti_comm_reduce(comm, x, x + 1, 2, TUTTI_F32, TUTTI_SUM, 0, NULL) ==
               TUTTI_INVALID);
        EXPECT(tutti_comm_gather(comm, x + 1, x, 2, TUTTI_F32, 0, NULL) == TUTTI_INVALID);
        EXPECT(tutti_comm_scatter(comm, x, x + 1, 2, TUTTI_F32, 0, NULL) == TUTTI_INVALID);
    }
    EXPECT(x[0] == 1 && x[7] == 8);
    /* Side by side, and in place. */
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x + 2, 2, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(x[2] == 2 && x[3] == 4);
    TUTTI_TRY(tutti_comm_all_gather(comm, x + 2 * rank, x, 2, TUTTI_F32, NULL));
    EXPECT(x[0] == 1 && x[3] == 4);
    TUTTI_TRY(tutti_comm_all_to_all(comm, x, y, 2, TUTTI_F32, NULL));
    int64_t counts[] = {1, 3};
    EXPECT(tutti_comm_all_gather_uneven(comm, x + 2, counts, x, TUTTI_F32, NULL) == TUTTI_INVALID);
    return tutti_comm_all_gather_uneven(comm, x + rank, counts, x, TUTTI_F32, NULL);
}

TUTTI_TEST(comm_memory_that_overlaps_is_refused)
{
    tutti__test_engines(2, overlap, NULL);
}

/* The own block of the larger memory is the smaller one, by every algorithm. */
static tutti_status in_own_block(tutti_comm *comm, void *context)
{
    enum { BLOCK = 5000, RANKS = 3 };
    static const char *const algorithms[] = {NULL, "naive", "ring", "halving", "pairwise", "mesh"};
    (void)context;
    int rank = tutti_comm_rank(comm);
    int32_t *x = malloc(sizeof *x * BLOCK * RANKS), *own = x + rank * BLOCK;
    EXPECT(x != NULL);
    for (size_t a = 0; a < TUTTI_COUNT(algorithms); a++) {
        const tutti_comm_call *call = TUTTI_CALL(.algorithm = algorithms[a]);
        for (int i = 0; i < BLOCK * RANKS; i++)
            x[i] = i + rank;
        tutti_status status =
            tutti_comm_reduce_scatter(comm, x, own, BLOCK, TUTTI_I32, TUTTI_SUM, call);
        EXPECT(status == TUTTI_OK || status == TUTTI_INVALID); /* not every one does it */
        for (int i = 0; status == TUTTI_OK && i < BLOCK; i++)
            EXPECT(own[i] == 3 * (rank * BLOCK + i) + 3);
        for (int i = 0; i < BLOCK; i++)
            own[i] = rank * BLOCK + i;
        if (tutti_comm_gather(comm, own, x, BLOCK, TUTTI_I32, 1, call) != TUTTI_OK)
            continue;
        for (int i = 0; rank == 1 && i < BLOCK * RANKS; i++)
            EXPECT(x[i] == i);
        TUTTI_TRY(tutti_comm_scatter(comm, x, own, BLOCK, TUTTI_I32, 1, call));
        for (int i = 0; i < BLOCK; i++)
            EXPECT(own[i] == rank * BLOCK + i);
    }
    free(x);
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_the_own_block_may_be_a_part_of_the_others_memory)
{
    tutti__test_engines(3, in_own_block, NULL);
}

/* Two find out at once, each in words of its own. */
TUTTI_TEST(comm_the_first_reason_is_that_of_all_who_can_read_it)
{
    tutti_comm *comms[2];
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++) {
        CHECK_OK(
            tutti_comm_local(2, TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e]), comms));
        (void)tutti__fabric_break(comms[0]->fabric, TUTTI_CLOSED, "rank 2 ended");
        (void)tutti__fabric_break(comms[1]->fabric, TUTTI_IO, "rank 2 is gone");
        for (int r = 0; r < 2; r++) {
            CHECK_STATUS(tutti_comm_barrier(comms[r], NULL), TUTTI_CLOSED);
            CHECK_STR(tutti_error_message(), "rank 2 ended");
            (void)tutti_comm_close(comms[r]);
        }
    }
}

typedef struct waiter {
    tutti_comm *comm;
    atomic_bool back;
} waiter;

static void *wait_in_sum(void *context)
{
    enum { COUNT = 1 << 16 };
    static float x[COUNT];
    waiter *w = context;
    (void)tutti_comm_all_reduce(w->comm, x, x, COUNT, TUTTI_F32, TUTTI_SUM, NULL);
    atomic_store(&w->back, true);
    return NULL;
}

/* Rank 1 is in rank 0's memory when the group is broken: rank 0 must not return, and free it. */
TUTTI_TEST(comm_memory_stays_until_nobody_reads_it_in_a_broken_group)
{
    tutti_comm *comms[2];
    pthread_t thread;
    CHECK_OK(tutti_comm_local(2, NULL, comms));
    waiter w = {.comm = comms[0]};
    CHECK_OK(tutti__area_reach(comms[1]->area));
    CHECK(pthread_create(&thread, NULL, wait_in_sum, &w) == 0);
    usleep(50000);
    tutti_comm_abort(comms[1], "enough");
    usleep(100000);
    CHECK(!atomic_load(&w.back));
    tutti__area_let_go(comms[1]->area);
    pthread_join(thread, NULL);
    CHECK_STATUS(tutti__area_reach(comms[1]->area), TUTTI_CANCELLED);
    for (int r = 0; r < 2; r++)
        (void)tutti_comm_close(comms[r]);
}
