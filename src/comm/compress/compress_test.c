/* compress_test.c: compressors by name; what they leave out comes back; they converge. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "comm/group/testing.h"

enum { ROWS = 24, COLUMNS = 16, COUNT = ROWS * COLUMNS, EXAMPLES = 32 };

TUTTI_TEST(comm_compressors_by_name)
{
    const int64_t dims[] = {3, 8, COLUMNS};
    tutti_compressor *made;
    CHECK_OK(tutti_compressor_check("bf16"));
    CHECK_OK(tutti_compressor_check("topk:0.01"));
    CHECK_OK(tutti_compressor_check("powersgd:2"));
    CHECK_STATUS(tutti_compressor_check("zip"), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "topk:SHARE");
    CHECK_STATUS(tutti_compressor_check("topk"), TUTTI_INVALID);
    CHECK_STATUS(tutti_compressor_check("bf16:2"), TUTTI_INVALID);
    CHECK_STATUS(tutti_compressor_check("topk:2"), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "from 1e-06 to 1");
    CHECK_STATUS(tutti_compressor_check("powersgd:x"), TUTTI_INVALID);
    CHECK_OK(tutti_compressor_create("powersgd:2", 3, dims, &made));
    CHECK_INT(tutti_compressor_bytes(made), (24 + 16) * 2 * 4);
    int64_t count;
    CHECK(tutti_compressor_state(made, &count) != NULL);
    CHECK_INT(count, COUNT + COLUMNS * 2);
    tutti_compressor_free(made);
    CHECK_OK(tutti_compressor_create("topk:0.1", 1, (const int64_t[]){95}, &made));
    CHECK_INT(tutti_compressor_bytes(made), 10 * 8);
    tutti_compressor_free(made);
    CHECK_OK(tutti_compressor_create("powersgd:4", 1, (const int64_t[]){95}, &made));
    CHECK_INT(tutti_compressor_bytes(made), 95 * 4); /* a vector travels whole */
    tutti_compressor_free(made);
    CHECK_OK(tutti_compressor_create("f16", 0, NULL, &made));
    CHECK_INT(tutti_compressor_bytes(made), 2);
    tutti_compressor_free(made);
}

/* The sum of all that was given out is the sum of all that came in, but for what is remembered. */
static tutti_status nothing_is_lost(tutti_comm *comm, void *context)
{
    const char *name = context;
    tutti_compressor *compressor;
    float x[COUNT], same[COUNT];
    double in[COUNT] = {0}, out[COUNT] = {0};
    int rank = tutti_comm_rank(comm);
    tutti_random_key key = {.seed = (uint64_t)rank + 7};
    TUTTI_TRY(tutti_compressor_create(name, 2, (const int64_t[]){ROWS, COLUMNS}, &compressor));
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < COUNT; i++)
            in[i] += x[i] = (float)tutti__random_normal(key, (uint64_t)step * COUNT + (uint64_t)i);
        TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, COUNT, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.compressor = compressor)));
        for (int i = 0; i < COUNT; i++)
            out[i] += x[i];
        memcpy(same, x, sizeof x);
        TUTTI_TRY(tutti_comm_broadcast(comm, same, COUNT, TUTTI_F32, 0, NULL));
        EXPECT(memcmp(same, x, sizeof x) == 0);
    }
    int64_t count;
    const float *left = tutti_compressor_state(compressor, &count);
    for (int i = 0; i < COUNT; i++)
        in[i] -= left[i];
    TUTTI_TRY(tutti_comm_all_reduce(comm, in, in, COUNT, TUTTI_F64, TUTTI_SUM, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(fabs(in[i] - out[i]) < 1e-3);
    EXPECT(tutti_comm_all_reduce(comm, x, x, 5, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.compressor = compressor)) == TUTTI_INVALID);
    EXPECT(tutti_comm_all_reduce(comm, x, x, COUNT, TUTTI_F32, TUTTI_MAX,
                                 TUTTI_CALL(.compressor = compressor)) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "sum and mean") != NULL);
    tutti_compressor_free(compressor);
    return TUTTI_OK;
}

TUTTI_TEST(comm_what_compressors_leave_out_is_added_later)
{
    static const char *const engines[] = {"local", "tcp"};
    static char largest[] = "topk:0.05", thin[] = "powersgd:2";
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++) {
        tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = engines[e]), nothing_is_lost, largest);
        tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = engines[e]), nothing_is_lost, thin);
    }
}

/* A step that is not finite is seen by all ranks, and forgotten: the next goes on from the one
 * before, as if it had not been. */
static tutti_status forgets_what_is_not_finite(tutti_comm *comm, void *context)
{
    enum { STEPS = 5, BAD = 2 };
    int rank = tutti_comm_rank(comm);
    tutti_compressor *with, *without;
    float x[COUNT], y[COUNT], bad = *(const float *)context;
    tutti_random_key key = {.seed = (uint64_t)rank + 7};
    const int64_t dims[] = {ROWS, COLUMNS};
    TUTTI_TRY(tutti_compressor_create("powersgd:2", 2, dims, &with));
    TUTTI_TRY(tutti_compressor_create("powersgd:2", 2, dims, &without));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = y[i] = (float)tutti__random_normal(key, (uint64_t)step * COUNT + (uint64_t)i);
        if (step == BAD && rank == 1)
            x[100] = bad;
        TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, COUNT, TUTTI_F32, TUTTI_MEAN,
                                        TUTTI_CALL(.compressor = with)));
        if (step == BAD) {
            for (int i = 0; i < COUNT; i++)
                EXPECT(!isfinite(x[i]));
            continue;
        }
        TUTTI_TRY(tutti_comm_all_reduce(comm, y, y, COUNT, TUTTI_F32, TUTTI_MEAN,
                                        TUTTI_CALL(.compressor = without)));
        EXPECT(memcmp(x, y, sizeof x) == 0);
        int64_t count;
        const float *kept = tutti_compressor_state(with, &count);
        EXPECT(memcmp(kept, tutti_compressor_state(without, &count),
                      (size_t)count * sizeof *kept) == 0);
    }
    tutti_compressor_free(with);
    tutti_compressor_free(without);
    return TUTTI_OK;
}

TUTTI_TEST(comm_powersgd_recovers_from_a_step_that_is_not_finite)
{
    float bad[] = {INFINITY, NAN};
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++)
        tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), forgets_what_is_not_finite,
                          &bad[i]);
}

/* Least squares: A [EXAMPLES, ROWS] of this rank, B = A W* [EXAMPLES, COLUMNS]; gradient of
 * |A W - B|^2 / (2 EXAMPLES). */
typedef struct problem {
    float a[EXAMPLES][ROWS], b[EXAMPLES][COLUMNS];
} problem;

static problem *problem_of(int rank)
{
    problem *p = calloc(1, sizeof *p);
    tutti_random_key key = {.seed = (uint64_t)rank + 100}, truth = {.seed = 1};
    for (int e = 0; p && e < EXAMPLES; e++)
        for (int i = 0; i < ROWS; i++) {
            p->a[e][i] = (float)tutti__random_normal(key, (uint64_t)e * ROWS + (uint64_t)i);
            for (int j = 0; j < COLUMNS; j++) {
                uint64_t at = (uint64_t)i * COLUMNS + (uint64_t)j;
                p->b[e][j] += p->a[e][i] * (float)tutti__random_normal(truth, at);
            }
        }
    return p;
}

static double gradient(const problem *p, const float *w, float *ret_g)
{
    double loss = 0;
    memset(ret_g, 0, COUNT * sizeof *ret_g);
    for (int e = 0; e < EXAMPLES; e++)
        for (int j = 0; j < COLUMNS; j++) {
            float miss = -p->b[e][j];
            for (int i = 0; i < ROWS; i++)
                miss += p->a[e][i] * w[i * COLUMNS + j];
            for (int i = 0; i < ROWS; i++)
                ret_g[i * COLUMNS + j] += p->a[e][i] * miss / EXAMPLES;
            loss += miss * miss / (2 * EXAMPLES);
        }
    return loss;
}

typedef struct training {
    const char *name; /* NULL: whole */
    double rate;
    int steps;
    double loss, bytes; /* of the last step; that stand for the gradient */
} training;

static tutti_status descend(tutti_comm *comm, void *context)
{
    training *t = context;
    problem *p = problem_of(tutti_comm_rank(comm));
    tutti_compressor *compressor = NULL;
    static const int64_t dims[] = {ROWS, COLUMNS};
    float w[COUNT] = {0}, g[COUNT];
    double loss = 0;
    EXPECT(p != NULL);
    if (t->name)
        TUTTI_TRY(tutti_compressor_create(t->name, 2, dims, &compressor));
    for (int step = 0; step < t->steps; step++) {
        loss = gradient(p, w, g);
        TUTTI_TRY(tutti_comm_all_reduce(comm, g, g, COUNT, TUTTI_F32, TUTTI_MEAN,
                                        TUTTI_CALL(.compressor = compressor)));
        for (int i = 0; i < COUNT; i++)
            w[i] -= (float)t->rate * g[i];
    }
    double bytes = compressor ? (double)tutti_compressor_bytes(compressor) : COUNT * 4;
    TUTTI_TRY(tutti_comm_all_reduce(comm, &loss, &loss, 1, TUTTI_F64, TUTTI_SUM, NULL));
    if (tutti_comm_rank(comm) == 0)
        t->loss = loss, t->bytes = bytes;
    tutti_compressor_free(compressor);
    free(p);
    return TUTTI_OK;
}

static training train(const char *name, double rate, int steps)
{
    training t = {.name = name, .rate = rate, .steps = steps};
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), descend, &t);
    return t;
}

/* The loss starts at some hundreds. */
TUTTI_TEST(comm_compressed_gradients_converge)
{
    training whole = train(NULL, 0.4, 150);
    CHECK(whole.loss < 1e-5);
    training half = train("f16", 0.4, 150);
    CHECK(half.loss < 1e-2);
    training brief = train("bf16", 0.4, 150);
    CHECK(brief.loss < 1e-1);
    training largest = train("topk:0.1", 0.15, 400);
    CHECK(largest.loss < 1e-3);
    CHECK(largest.bytes < 0.25 * COUNT * 4);
    training thin = train("powersgd:2", 0.2, 400);
    CHECK(thin.loss < 1e-3);
    CHECK(thin.bytes < 0.25 * COUNT * 4);
}

/* A codec of numbers that are mostly zero: a position and a value for each that is not. */
static int64_t sparse_bound(void *context, int64_t count)
{
    (void)context;
    return 8 * count;
}
static int64_t sparse_encode(void *context, const float *numbers, int64_t count, void *bytes)
{
    (void)context;
    char *to = bytes;
    for (int32_t i = 0; i < count; i++)
        if (numbers[i] != 0) {
            memcpy(to, &i, 4);
            memcpy(to + 4, &numbers[i], 4);
            to += 8;
        }
    return to - (char *)bytes;
}
static void sparse_decode(void *context, const void *bytes, int64_t size, int64_t count,
                          float *numbers)
{
    (void)context;
    memset(numbers, 0, (size_t)count * sizeof *numbers);
    for (const char *from = bytes; size >= 8; size -= 8, from += 8) {
        int32_t i;
        memcpy(&i, from, 4);
        memcpy(&numbers[i], from + 4, 4);
    }
}
static int64_t encode_too_much(void *context, const float *numbers, int64_t count, void *bytes)
{
    (void)context, (void)numbers, (void)bytes;
    return 8 * count + 1;
}

static tutti_status sparse_sum(tutti_comm *comm, void *context)
{
    (void)context;
    enum { MANY = 30000 };
    static const tutti_comm_codec codec = {"sparse", sparse_bound, sparse_encode, sparse_decode,
                                           NULL};
    int size = tutti_comm_size(comm);
    float *x = calloc(MANY, sizeof *x);
    EXPECT(x != NULL);
    x[5] = 1, x[MANY - 1] = 2;
    int64_t before = tutti_comm_bytes_sent(comm);
    tutti_status status =
        tutti_comm_all_reduce(comm, x, x, MANY, TUTTI_F32, TUTTI_SUM, TUTTI_CALL(.codec = &codec));
    int64_t sent = tutti_comm_bytes_sent(comm) - before;
    bool right = x[5] == (float)size && x[MANY - 1] == 2.0f * (float)size && x[6] == 0;
    free(x);
    TUTTI_TRY(status);
    EXPECT(right);
    EXPECT(sent <= 2 * 8 * (size - 1) + 8 * size); /* how many, twice, and the two numbers */
    return TUTTI_OK;
}

static tutti_status too_much(tutti_comm *comm, void *context)
{
    (void)context;
    static const tutti_comm_codec codec = {"large", sparse_bound, encode_too_much, sparse_decode,
                                           NULL};
    float x[10] = {1};
    EXPECT(tutti_comm_all_reduce(comm, x, x, 10, TUTTI_F32, TUTTI_SUM,
                                 TUTTI_CALL(.codec = &codec)) == TUTTI_INVALID);
    EXPECT(strstr(tutti_error_message(), "codec 'large' made"));
    return TUTTI_OK;
}

TUTTI_TEST(comm_codecs_send_what_they_made)
{
    static const char *const engines[] = {"local", "shm", "tcp"};
    for (int e = 0; e < 3; e++)
        tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = engines[e]), sparse_sum, NULL);
    tutti__test_ranks(2, NULL, too_much, NULL);
}
