/* features_test.c: what calls may ask for: asynchrony, groups, shards, wire forms, sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "comm/coll/native.h"
#include "comm/coll/wire.h"
#include "comm/group/testing.h"

/* Every rank receives first: nothing may depend on the order of posting. Large ones do not fit into
 * any buffer on the way. */
static tutti_status round_trip(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    static const int64_t sizes[] = {0, 1, 100000, 3 << 20};
    for (size_t s = 0; s < TUTTI_COUNT(sizes); s++) {
        size_t bytes = (size_t)sizes[s];
        char *out = malloc(2 * bytes + 2), *in = calloc(1, 2 * bytes + 2);
        tutti_request *requests[4];
        memset(out, rank + 1, 2 * bytes + 1);
        memset(out + bytes, rank + 101, bytes + 1);
        for (int i = 0; i < 2; i++) /* tags cross */
            TUTTI_TRY(tutti_comm_recv(comm, before, 7 - i, in + (size_t)i * bytes, sizes[s],
                                      TUTTI_CALL(.request = &requests[i])));
        for (int i = 0; i < 2; i++)
            TUTTI_TRY(tutti_comm_send(comm, next, 6 + i, out + (size_t)i * bytes, sizes[s],
                                      TUTTI_CALL(.request = &requests[2 + i])));
        TUTTI_TRY(tutti_comm_barrier(comm, NULL));
        for (int i = 3; i >= 0; i--)
            TUTTI_TRY(tutti_comm_wait(requests[i]));
        for (size_t i = 0; i < bytes; i += 997)
            EXPECT(in[i] == (char)(before + 101) && in[bytes + i] == (char)(before + 1));
        free(out);
        free(in);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_messages_by_tag_both_ways_at_once)
{
    tutti__test_engines(3, round_trip, NULL);
}

/* Rank 1 takes the second message first; the first is larger than what is kept of those that nobody
 * waits behind. */
static tutti_status behind_a_large_one(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t size = (int64_t)260 << 20;
    int rank = tutti_comm_rank(comm), x = 42;
    char *large = calloc(1, (size_t)size);
    tutti_request *first = NULL, *second = NULL;
    tutti_status status = TUTTI_OK;
    EXPECT(large != NULL);
    if (rank == 0) {
        large[size - 1] = 7;
        TUTTI_TRY(tutti_comm_send(comm, 1, 1, large, size, TUTTI_CALL(.request = &first)));
        TUTTI_TRY(tutti_comm_send(comm, 1, 2, &x, sizeof x, TUTTI_CALL(.request = &second)));
        status = tutti_comm_wait(first);
        TUTTI_TRY(tutti_comm_wait(second));
    } else {
        x = 0;
        TUTTI_TRY(tutti_comm_recv(comm, 0, 2, &x, sizeof x, TUTTI_CALL(.timeout = 20)));
        status = tutti_comm_recv(comm, 0, 1, large, size, NULL);
    }
    EXPECT(x == 42 && large[size - 1] == 7);
    free(large);
    return status;
}

TUTTI_TEST(comm_messages_behind_a_large_one_nobody_asked_for)
{
    if (tutti__memory_limit() < (int64_t)4 << 30)
        return; /* a quarter of it is less than the message */
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60), behind_a_large_one,
                      NULL);
}

/* Who has nothing gives no memory. */
static tutti_status nothing_from_nowhere(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    float x[2] = {1, 2}, own[2], out[8] = {0};
    int64_t counts[8], none[8] = {0};
    for (int r = 0; r < size; r++)
        counts[r] = r == 1 ? 0 : 2;
    TUTTI_TRY(
        tutti_comm_all_gather_uneven(comm, rank == 1 ? NULL : x, counts, out, TUTTI_F32, NULL));
    EXPECT(out[0] == 1 && out[3] == 2);
    TUTTI_TRY(tutti_comm_all_gather_uneven(comm, NULL, none, NULL, TUTTI_F32, NULL));
    TUTTI_TRY(tutti_comm_gather(comm, NULL, NULL, 0, TUTTI_F32, 0, NULL));
    TUTTI_TRY(tutti_comm_scatter(comm, NULL, NULL, 0, TUTTI_F32, 0, NULL));
    TUTTI_TRY(tutti_comm_scatter(comm, rank == 0 ? out : NULL, own, 2, TUTTI_F32, 0, NULL));
    TUTTI_TRY(tutti_comm_all_reduce_many(comm, (tutti_comm_piece[]){{NULL, 0}, {NULL, 0}}, 2,
                                         TUTTI_F32, TUTTI_SUM, NULL, NULL));
    TUTTI_TRY(tutti_comm_broadcast(comm, NULL, 0, TUTTI_F32, 0, NULL));
    TUTTI_TRY(tutti_comm_reduce(comm, NULL, NULL, 0, TUTTI_F32, TUTTI_SUM, 0, NULL));
    TUTTI_TRY(tutti_comm_reduce_scatter(comm, NULL, NULL, 0, TUTTI_F32, TUTTI_SUM, NULL));
    for (const char *const *by = tutti_comm_algorithms("all_gather"); *by; by++)
        if (tutti__coll_possible(tutti__coll_find(*by), comm))
            TUTTI_TRY(tutti_comm_all_gather(comm, rank ? x : NULL, NULL, 0, TUTTI_F32,
                                            TUTTI_CALL(.algorithm = *by)));
    for (const char *const *by = tutti_comm_algorithms("all_to_all"); *by; by++)
        if (tutti__coll_possible(tutti__coll_find(*by), comm))
            TUTTI_TRY(tutti_comm_all_to_all(comm, rank ? x : NULL, NULL, 0, TUTTI_F32,
                                            TUTTI_CALL(.algorithm = *by)));
    for (const char *const *by = tutti_comm_algorithms("all_reduce"); *by; by++)
        if (tutti__coll_possible(tutti__coll_find(*by), comm) && strcmp(*by, "compressed") != 0)
            TUTTI_TRY(tutti_comm_all_reduce(comm, rank ? x : NULL, NULL, 0, TUTTI_F32, TUTTI_SUM,
                                            TUTTI_CALL(.algorithm = *by)));
    TUTTI_TRY(tutti_comm_all_reduce(comm, NULL, NULL, 0, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.wire = TUTTI_BF16)));
    TUTTI_TRY(tutti_comm_all_reduce(comm, NULL, NULL, 0, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.shards = size)));
    for (int r = 0; r < 2; r++) /* one shard: only the last rank has it */
        TUTTI_TRY(tutti_comm_all_reduce(comm, rank == size - 1 ? x : NULL, out, 2, TUTTI_F32,
                                        TUTTI_SUM, TUTTI_CALL(.shards = 1)));
    EXPECT(out[1] == 2);
    return TUTTI_OK;
}

TUTTI_TEST(comm_collectives_of_nothing_need_no_memory)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        tutti__test_ranks(3,
                          TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 5),
                          nothing_from_nowhere, NULL);
}

static tutti_status overlapped(tutti_comm *comm, void *context)
{
    (void)context;
    enum { CALLS = 20, COUNT = 5000 };
    float *data = calloc(CALLS * COUNT, sizeof *data);
    tutti_request *requests[CALLS];
    for (int i = 0; i < CALLS * COUNT; i++) {
        int call = i / COUNT;
        data[i] = (float)(tutti_comm_rank(comm) + call);
    }
    for (int i = 0; i < CALLS; i++)
        TUTTI_TRY(tutti_comm_all_reduce(comm, data + i * COUNT, data + i * COUNT, COUNT, TUTTI_F32,
                                        TUTTI_SUM, TUTTI_CALL(.request = &requests[i])));
    TUTTI_TRY(tutti_comm_barrier(comm, NULL)); /* keeps its place behind them */
    for (int i = 0; i < CALLS; i++)
        EXPECT(tutti_comm_test(requests[i]));
    for (int i = 0; i < CALLS; i++)
        TUTTI_TRY(tutti_comm_wait(requests[i]));
    int size = tutti_comm_size(comm);
    for (int i = 0; i < CALLS * COUNT; i++) {
        int sum = size * (size - 1) / 2 + size * (i / COUNT);
        EXPECT(data[i] == (float)sum);
    }
    free(data);
    return TUTTI_OK;
}

TUTTI_TEST(comm_asynchronous_calls_run_in_order)
{
    tutti__test_engines(3, overlapped, NULL);
}

static tutti_status split(tutti_comm *comm, void *context)
{
    (void)context;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    tutti_comm *odd = NULL, *few = NULL;
    TUTTI_TRY(tutti_comm_split(comm, rank % 2, -rank, &odd));
    EXPECT(tutti_comm_size(odd) == (size + 1 - rank % 2) / 2);
    EXPECT(tutti_comm_rank(odd) == tutti_comm_size(odd) - 1 - rank / 2);
    int64_t sum = rank, all = rank;
    TUTTI_TRY(tutti_comm_all_reduce(odd, &sum, &sum, 1, TUTTI_I64, TUTTI_SUM, NULL));
    TUTTI_TRY(tutti_comm_all_reduce(comm, &all, &all, 1, TUTTI_I64, TUTTI_MAX, NULL));
    int64_t want = 0;
    for (int r = rank % 2; r < size; r += 2)
        want += r;
    EXPECT(sum == want && all == size - 1);
    TUTTI_TRY(tutti_comm_split(odd, tutti_comm_rank(odd) == 0 ? 0 : -1, 0, &few));
    EXPECT((few != NULL) == (tutti_comm_rank(odd) == 0));
    TUTTI_TRY(tutti_comm_close(few));
    return tutti_comm_close(odd);
}

TUTTI_TEST(comm_split_into_groups)
{
    tutti__test_engines(5, split, NULL);
}

enum { SPLITTERS = 3, SPLITS = 60 };

typedef struct splitter {
    pthread_t thread;
    tutti_comm *comm;
    int number;
    uint32_t contexts[SPLITS];
    tutti_error error;
} splitter;

static tutti_status split_often(splitter *own)
{
    for (int i = 0; i < SPLITS; i++) {
        tutti_comm *part;
        int64_t sum = own->number + 1;
        TUTTI_TRY(tutti_comm_split(own->comm, 0, 0, &part));
        own->contexts[i] = part->context;
        TUTTI_TRY(tutti_comm_all_reduce(part, &sum, &sum, 1, TUTTI_I64, TUTTI_SUM,
                                        TUTTI_CALL(.algorithm = "ring", .timeout = 20)));
        EXPECT(sum == (own->number + 1) * tutti_comm_size(part));
        TUTTI_TRY(tutti_comm_close(part));
    }
    return TUTTI_OK;
}

static void *run_splitter(void *arg)
{
    splitter *own = arg;
    tutti_status status = split_often(own);
    if (status != TUTTI_OK) {
        tutti__error_capture(status, &own->error);
        tutti_comm_abort(own->comm, own->error.message);
    }
    return NULL;
}

/* The groups of one rank all have numbers of their own. */
static tutti_status split_at_once(tutti_comm *comm, void *context)
{
    (void)context;
    splitter each[SPLITTERS] = {0};
    tutti_status status = TUTTI_OK;
    for (int k = 0; k < SPLITTERS; k++) {
        each[k].number = k;
        TUTTI_TRY(tutti_comm_split(comm, 0, k % 2 ? -tutti_comm_rank(comm) : 0, &each[k].comm));
    }
    for (int k = 0; k < SPLITTERS; k++)
        EXPECT(pthread_create(&each[k].thread, NULL, run_splitter, &each[k]) == 0);
    for (int k = 0; k < SPLITTERS; k++)
        pthread_join(each[k].thread, NULL);
    for (int k = 0; k < SPLITTERS; k++) {
        if (each[k].error.status && status == TUTTI_OK)
            status = tutti__error_restore(&each[k].error);
        (void)tutti_comm_close(each[k].comm);
    }
    TUTTI_TRY(status);
    for (int i = 0; i < SPLITTERS * SPLITS; i++)
        for (int j = 0; j < i; j++)
            EXPECT(each[i / SPLITS].contexts[i % SPLITS] != each[j / SPLITS].contexts[j % SPLITS]);
    return TUTTI_OK;
}

TUTTI_TEST(comm_split_of_several_groups_at_once)
{
    tutti__test_engines(3, split_at_once, NULL);
}

/* Groups of all sizes come and go, several at a time, and none of them closes at once on all ranks:
 * what they share must suffice for more than fit into the segment together. */
static tutti_status split_and_close(tutti_comm *comm, void *context)
{
    (void)context;
    enum { TIMES = 250, OPEN = 4 };
    int rank = tutti_comm_rank(comm);
    tutti_comm *open[OPEN] = {0};
    for (int i = 0; i < TIMES; i++) {
        tutti_comm **at = &open[i % OPEN];
        TUTTI_TRY(tutti_comm_close(*at));
        TUTTI_TRY(tutti_comm_split(comm, i % 3 ? 0 : rank % 2, i % 2 ? -rank : 0, at));
        for (int k = 0; k < OPEN && open[k]; k++) {
            int64_t sum = 1 + k;
            TUTTI_TRY(tutti_comm_all_reduce(open[k], &sum, &sum, 1, TUTTI_I64, TUTTI_SUM,
                                            TUTTI_CALL(.algorithm = "direct")));
            EXPECT(sum == (1 + k) * tutti_comm_size(open[k]));
        }
    }
    for (int k = 0; k < OPEN; k++)
        TUTTI_TRY(tutti_comm_close(open[k]));
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    EXPECT(comm->fabric->segment->header->piece_count == 1);
    return TUTTI_OK;
}

TUTTI_TEST(comm_split_gives_shared_memory_back)
{
    tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = "local"), split_and_close, NULL);
    tutti__test_forked(4, TUTTI_COMM_OPTIONS(.engine = "shm"), split_and_close, NULL);
}

static tutti_status split_too_often(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *part = NULL;
    atomic_store(&comm->fabric->contexts, (1u << 30) / 2 - 2);
    TUTTI_TRY(tutti_comm_split(comm, 0, 0, &part));
    TUTTI_TRY(tutti_comm_close(part));
    for (int i = 0; i < 2; i++) {
        EXPECT(tutti_comm_split(comm, 0, 0, &part) == TUTTI_TOO_LARGE);
        EXPECT(strstr(tutti_error_message(), "use them again") != NULL);
    }
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_split_says_when_groups_have_no_more_numbers)
{
    tutti__test_ranks(2, NULL, split_too_often, NULL);
}

/* One sum over 8 shards, for any number of ranks. */
typedef struct shards {
    float sum[301];
    bool known;
} shards;

static void fill_shards(const tutti_comm *comm, float *in)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    int low = rank * 8 / size, high = (rank + 1) * 8 / size;
    for (int s = low; s < high; s++)
        for (int i = 0; i < 301; i++)
            in[(s - low) * 301 + i] = sinf((float)(s * 301 + i)) * powf(10, (float)(i % 7));
}

static tutti_status sum_shards(tutti_comm *comm, void *context)
{
    shards *want = context;
    float *in = calloc(8 * 301, sizeof *in), out[301];
    fill_shards(comm, in);
    TUTTI_TRY(
        tutti_comm_all_reduce(comm, in, out, 301, TUTTI_F32, TUTTI_SUM, TUTTI_CALL(.shards = 8)));
    if (!want->known) /* one rank only */
        memcpy(want->sum, out, sizeof out);
    EXPECT(memcmp(want->sum, out, sizeof out) == 0);
    memset(out, 0, sizeof out); /* shards do not lie side by side: no parts, whatever is asked */
    TUTTI_TRY(tutti_comm_all_reduce(comm, in, out, 301, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.shards = 8, .algorithm = "fixed#3")));
    EXPECT(memcmp(want->sum, out, sizeof out) == 0);
    TUTTI_TRY(
        tutti_comm_all_reduce(comm, in, in, 301, TUTTI_F32, TUTTI_SUM, TUTTI_CALL(.shards = 8)));
    EXPECT(memcmp(want->sum, in, sizeof out) == 0);
    free(in);
    return TUTTI_OK;
}

TUTTI_TEST(comm_sums_over_shards_have_the_same_bits_for_any_number_of_ranks)
{
    shards want = {0};
    tutti__test_ranks(1, NULL, sum_shards, &want);
    want.known = true;
    double plain = 0;
    for (int s = 0; s < 8; s++)
        plain += sinf((float)(s * 301));
    CHECK_NEAR(want.sum[0], plain, 1e-5);
    for (int size = 2; size <= 9; size++)
        tutti__test_engines(size, sum_shards, &want);
}

static tutti_status wired(tutti_comm *comm, void *context)
{
    (void)context;
    int size = tutti_comm_size(comm), sum = size * (size + 1) / 2;
    float data[1001], same[1001];
    for (int wire = TUTTI_F16; wire <= TUTTI_BF16; wire++) {
        for (int i = 0; i < 1001; i++)
            data[i] = cosf((float)i) * (float)(tutti_comm_rank(comm) + 1);
        int64_t before = tutti_comm_bytes_sent(comm);
        TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, 1001, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.wire = (tutti_dtype)wire)));
        EXPECT(tutti_comm_bytes_sent(comm) - before < 2 * 1001 * 2 + 64 * size);
        for (int i = 0; i < 1001; i++)
            EXPECT(fabsf(data[i] - cosf((float)i) * (float)sum) <
                   (wire == TUTTI_F16 ? 0.002 : 0.02) * size * size);
        memcpy(same, data, sizeof data);
        TUTTI_TRY(tutti_comm_broadcast(comm, same, 1001, TUTTI_F32, 0, NULL));
        EXPECT(memcmp(same, data, sizeof data) == 0);
    }
    EXPECT(tutti_comm_all_reduce(comm, data, data, 10, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.wire = TUTTI_I32)) == TUTTI_INVALID);
    return TUTTI_OK;
}

TUTTI_TEST(comm_sixteen_bits_on_the_wire)
{
    tutti__test_engines(2, wired, NULL);
    tutti__test_engines(5, wired, NULL);
}

static tutti_status by_size(tutti_comm *comm, void *context)
{
    (void)context;
    float data[5000];
    for (int count = 1; count <= 5000; count *= 17) {
        for (int i = 0; i < count; i++)
            data[i] = 1;
        TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, count, TUTTI_F32, TUTTI_SUM, NULL));
        EXPECT(data[0] == 3 && data[count - 1] == 3);
    }
    EXPECT(tutti_comm_all_reduce(comm, data, data, 3, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.algorithm = "telepathy")) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "ring") != NULL);
    return TUTTI_OK;
}

TUTTI_TEST(comm_algorithms_by_size)
{
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "tcp", .all_reduce = "tree:1k:ring/ring#3"),
                      by_size, NULL);
    tutti_algorithm_spec spec;
    CHECK_OK(tutti__comm_spec_parse("central:4k:tree:1m:naive/ring#2", TUTTI_ALL_REDUCE, &spec));
    CHECK_INT(spec.count, 3);
    CHECK_INT(spec.range[0].limit, 4096);
    CHECK_STR(spec.range[2].between, "ring");
    CHECK_INT(spec.range[2].parts, 2);
    CHECK_STATUS(tutti_comm_spec_check("tree:ring"), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_spec_check("tree:4k:ring:2k:tree"), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_spec_check("postman"), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "tree:64k:ring");
    CHECK_STATUS(tutti_comm_spec_check("ring#1000000"), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a number of 1 to 1024 is expected at '1000000'");
    CHECK_STATUS(tutti_comm_spec_check("tree:9g:ring:99999999999g:tree"), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a number of 1 to 9223372036854775807 is expected");
    CHECK_STATUS(tutti_comm_spec_check("tree:99999999999999999999:ring"), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_spec_check("hierarchical/ring"), TUTTI_INVALID);
    CHECK_STATUS(tutti_comm_spec_check("ring/compressed"), TUTTI_INVALID);
}

/* Every operation takes a list; what cannot be read for it is refused on all ranks in the same way.
 */
static tutti_status every_operation_by_size(tutti_comm *comm, void *context)
{
    (void)context;
    enum { COUNT = 900, RANKS = 3 }; /* 3600 bytes, and a third of that */
    int32_t in[RANKS * COUNT], out[RANKS * COUNT];
    int rank = tutti_comm_rank(comm);
    for (int root = 0; root < RANKS; root++) {
        for (int i = 0; i < COUNT; i++)
            in[i] = rank == root ? i : -1;
        TUTTI_TRY(tutti_comm_broadcast(comm, in, COUNT, TUTTI_I32, root,
                                       TUTTI_CALL(.algorithm = "tree:1k:tree#3", .timeout = 10)));
        for (int i = 0; i < COUNT; i++)
            EXPECT(in[i] == i);
        TUTTI_TRY(tutti_comm_reduce(comm, in, rank == root ? out : NULL, COUNT, TUTTI_I32,
                                    TUTTI_SUM, root,
                                    TUTTI_CALL(.algorithm = "central:1k:tree#3", .timeout = 10)));
        EXPECT(rank != root || (out[1] == RANKS && out[COUNT - 1] == RANKS * (COUNT - 1)));
    }
    for (int i = 0; i < RANKS * COUNT; i++)
        in[i] = i;
    int64_t sent = tutti_comm_bytes_sent(comm);
    TUTTI_TRY(tutti_comm_reduce_scatter(comm, in, out, COUNT, TUTTI_I32, TUTTI_SUM,
                                        TUTTI_CALL(.algorithm = "naive:1k:ring", .timeout = 10)));
    EXPECT(tutti_comm_bytes_sent(comm) - sent == (RANKS - 1) * COUNT * 4); /* the ring's */
    EXPECT(out[COUNT - 1] == RANKS * ((rank + 1) * COUNT - 1));
    TUTTI_TRY(tutti_comm_all_gather(comm, in, out, COUNT, TUTTI_I32,
                                    TUTTI_CALL(.algorithm = "naive:1k:ring", .timeout = 10)));
    EXPECT(out[RANKS * COUNT - 1] == COUNT - 1);
    EXPECT(tutti_comm_all_gather(comm, in, out, COUNT, TUTTI_I32,
                                 TUTTI_CALL(.algorithm = "ring#2")) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "can be cut into parts"));
    EXPECT(tutti_comm_reduce_scatter(comm, in, out, COUNT, TUTTI_I32, TUTTI_SUM,
                                     TUTTI_CALL(.algorithm = "ring/ring")) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "has no two levels"));
    EXPECT(tutti_comm_broadcast(comm, in, COUNT, TUTTI_I32, 0,
                                TUTTI_CALL(.algorithm = "tree:1k:compressed")) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "no such algorithm for broadcast"));
    return tutti_comm_barrier(comm, TUTTI_CALL(.timeout = 10));
}

TUTTI_TEST(comm_algorithms_by_size_of_every_operation)
{
    tutti__test_engines(3, every_operation_by_size, NULL);
}

/* Rank 1 asks for what there is not, and then for what all do. */
static tutti_status refused_once(tutti_comm *comm, void *context)
{
    (void)context;
    int32_t x = 1;
    if (tutti_comm_rank(comm) == 1)
        EXPECT(tutti_comm_all_reduce(comm, &x, &x, 1, TUTTI_I32, TUTTI_SUM,
                                     TUTTI_CALL(.algorithm = "postman")) == TUTTI_INVALID);
    TUTTI_TRY(tutti_comm_all_reduce(comm, &x, &x, 1, TUTTI_I32, TUTTI_SUM,
                                    TUTTI_CALL(.timeout = 5, .algorithm = "ring")));
    EXPECT(x == tutti_comm_size(comm));
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_call_that_is_refused_leaves_the_group_whole)
{
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "tcp"), refused_once, NULL);
    tutti__test_ranks(3, NULL, refused_once, NULL);
}

/* ---- a library behind the engine that does not know all types and sizes ---- */

enum { LIBRARY_COUNTS = 1000 };

static const char *library_lacks(const tutti_collective *c)
{
    if (c->fold && c->dtype == TUTTI_BF16)
        return "the library does not know bf16";
    return c->count > LIBRARY_COUNTS ? "the library counts to 1000" : NULL;
}

static atomic_int library_calls;

static tutti_status library_run(void *state, tutti_collective *c)
{
    (void)state;
    atomic_fetch_add(&library_calls, 1);
    return tutti__coll_find("ring")->on[c->operation].run(c);
}

static tutti_status sum_of(tutti_comm *comm, int64_t count, tutti_dtype dtype, const char *by)
{
    static uint16_t const ones = 0x3f80; /* 1 in bf16 */
    char data[4 * 2 * LIBRARY_COUNTS];
    for (int64_t i = 0; i < count; i++)
        if (dtype == TUTTI_BF16)
            memcpy(data + 2 * i, &ones, 2);
        else
            memcpy(data + 4 * i, &(float){1}, 4);
    return tutti_comm_all_reduce(comm, data, data, count, dtype, TUTTI_SUM,
                                 TUTTI_CALL(.algorithm = by, .timeout = 10));
}

static tutti_status refused(tutti_comm *comm, int64_t count, tutti_dtype dtype, const char *by,
                            const char *why)
{
    EXPECT(sum_of(comm, count, dtype, by) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), why) && strstr(tutti_error_message(), "ring"));
    return TUTTI_OK;
}

/* `context`: whether the group was opened with the library's all_reduce. */
static tutti_status by_the_library(tutti_comm *comm, void *context)
{
    const tutti_native library = {.lacks = library_lacks, .run = library_run};
    const tutti_fabric_engine *plain = comm->fabric->open[0].engine;
    tutti_fabric_engine with = *plain;
    tutti_comm *all;
    bool listed = *(const bool *)context;
    with.native = &library;
    comm->fabric->open[0].engine = &with;
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    int before = atomic_load(&library_calls);
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    TUTTI_TRY(sum_of(comm, 10, TUTTI_F32, "native"));
    TUTTI_TRY(refused(comm, 10, TUTTI_BF16, "native", "does not know bf16; there are: "));
    TUTTI_TRY(refused(comm, LIBRARY_COUNTS + 1, TUTTI_F32, "native", "counts to 1000"));
    TUTTI_TRY(sum_of(comm, LIBRARY_COUNTS + 1, TUTTI_F32, "native#2"));
    for (int i = 0; i < 3; i++) /* what nobody asked the library for */
        TUTTI_TRY(
            sum_of(comm, i == 1 ? LIBRARY_COUNTS + 1 : 10, i == 2 ? TUTTI_BF16 : TUTTI_F32, NULL));
    TUTTI_TRY(tutti_comm_split(comm, 0, 0, &all)); /* the library does not know this group */
    TUTTI_TRY(refused(all, 10, TUTTI_F32, "native", "not possible in this group"));
    TUTTI_TRY(sum_of(all, 10, TUTTI_F32, NULL));
    TUTTI_TRY(tutti_comm_close(all));
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    EXPECT(atomic_load(&library_calls) - before == tutti_comm_size(comm) * (listed ? 4 : 3));
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    comm->fabric->open[0].engine = plain;
    return TUTTI_OK;
}

TUTTI_TEST(comm_what_a_library_lacks_is_refused_or_done_otherwise)
{
    for (int listed = 0; listed < 2; listed++)
        tutti__test_ranks(
            3, TUTTI_COMM_OPTIONS(.engine = "tcp", .all_reduce = listed ? "native" : NULL),
            by_the_library, &(bool){listed});
}

static tutti_status many(tutti_comm *comm, void *context)
{
    (void)context;
    float data[200][11];
    tutti_comm_piece pieces[200];
    for (int i = 0; i < 200; i++) {
        pieces[i] = (tutti_comm_piece){data[i], i % 12};
        for (int j = 0; j < 11; j++)
            data[i][j] = (float)(i + j);
    }
    TUTTI_TRY(tutti_comm_all_reduce_many(comm, pieces, 200, TUTTI_F32, TUTTI_SUM,
                                         TUTTI_BUCKET(.bucket_bytes = 256, .bucket_count = 9),
                                         NULL));
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < 11; j++)
            EXPECT(data[i][j] == (float)((i + j) * (j < i % 12 ? 3 : 1)));
    return TUTTI_OK;
}

/* Rank 1 has used its arena for itself, and the bucket's limit is more than there is memory. */
static tutti_status many_without_arena(tutti_comm *comm, void *context)
{
    (void)context;
    void *memory;
    while (comm->fabric->segment && tutti_comm_rank(comm) == 1 &&
           tutti_comm_allocate(comm, 4096, &memory) == TUTTI_OK)
        ;
    float a = 1, b[2] = {2, 3};
    tutti_comm_piece pieces[2] = {{&a, 1}, {b, 2}};
    TUTTI_TRY(tutti_comm_all_reduce_many(
        comm, pieces, 2, TUTTI_F32, TUTTI_SUM,
        TUTTI_BUCKET(.bucket_bytes = (int64_t)1 << 50, .bucket_count = 100), NULL));
    EXPECT(a == 3 && b[0] == 6 && b[1] == 9);
    EXPECT(comm->bucket_bytes < 1 << 20);
    return TUTTI_OK;
}

TUTTI_TEST(comm_buckets_take_what_their_tensors_need)
{
    tutti__test_engines(3, many_without_arena, NULL);
}

TUTTI_TEST(comm_buckets_of_many_small_tensors)
{
    tutti__test_engines(3, many, NULL);
}

static tutti_status measured(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm_cost cost;
    tutti_comm_get_cost(comm, &cost);
    EXPECT(cost.link[TUTTI_LINK_WITHIN].alpha > 0 && cost.link[TUTTI_LINK_WITHIN].alpha < 0.1);
    EXPECT(cost.link[TUTTI_LINK_WITHIN].exchange[TUTTI_COMM_AT_MIB] > 0 &&
           cost.gamma[TUTTI_COMM_AT_MIB] > 0);
    enum { SMALL = 1 }; /* 32 KiB */
    EXPECT(cost.sum[TUTTI_LINK_WITHIN][SMALL] > 0 && cost.put[TUTTI_LINK_WITHIN][SMALL] > 0 &&
           cost.take[TUTTI_LINK_WITHIN][SMALL] > 0);
    EXPECT(tutti_comm_predict(&cost, "all_reduce", "ring", 2, 1 << 20) > 0);
    float one = 1;
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(one == 2);
    return TUTTI_OK;
}

/* By a given cost: what waiting for each other takes, against what a message takes. */
static tutti_status chosen_by_cost(tutti_comm *comm, void *context)
{
    bool by_memory = *(const bool *)context;
    tutti_collective little = {.comm = comm,
                               .operation = TUTTI_BROADCAST,
                               .rank = comm->rank,
                               .size = comm->size,
                               .count = 1000,
                               .element = 4};
    float one = 1;
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(one == 4 && (!comm->area || tutti__coll_choose(&little)->shared == by_memory));
    little.operation = TUTTI_ALL_REDUCE; /* the same bits in every run */
    EXPECT(!comm->area || strcmp(tutti__coll_choose(&little)->name, "direct") == 0);
    return TUTTI_OK;
}

TUTTI_TEST(comm_shared_memory_is_chosen_by_cost_too)
{
    tutti_comm_cost cost = {.phase = 1e-6};
    cost.link[TUTTI_LINK_WITHIN].alpha = 1e-6;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].beta[i] = cost.link[TUTTI_LINK_WITHIN].exchange[i] =
            cost.copy[i] = cost.gamma[i] = 1e-10;
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++) {
        const char *engine = tutti__test_engine_names[e];
        cost.phase = 1e-6; /* 2 phases against 2 messages, one byte moved against two */
        tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = engine, .cost = &cost), chosen_by_cost,
                          &(bool){true});
        cost.phase = 10e-6;
        tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = engine, .cost = &cost), chosen_by_cost,
                          &(bool){false});
    }
}

TUTTI_TEST(comm_cost_is_measured)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        tutti__test_ranks(
            2, TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .measure = true), measured,
            NULL);
}

/* What calls may take is not for meeting, of which measuring links is a part. */
static tutti_status settle_in_no_time(tutti_comm *comm, void *context)
{
    (void)context;
    double given = comm->timeout;
    comm->timeout = 1e-9;
    tutti_status status = tutti__cost_find(comm, TUTTI_COST_GLANCED);
    comm->timeout = given;
    TUTTI_TRY(status);
    EXPECT(comm->cost.link[TUTTI_LINK_WITHIN].alpha > 0);
    return TUTTI_OK;
}

TUTTI_TEST(comm_links_are_measured_however_short_calls_are)
{
    tutti__test_engines(3, settle_in_no_time, NULL);
}
