/* comm_test.c: every operation by every algorithm, over every engine, against what it should be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/group/testing.h"
#include "tensor/dtype.h"

static const char *const engines[] = {"local", "shm", "tcp"};
static const tutti_dtype types[] = {TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16,
                                    TUTTI_I32, TUTTI_I64, TUTTI_U8,  TUTTI_I8};

typedef struct plan {
    const char *algorithm;
    tutti_operation operation;
    tutti_dtype dtype;
    tutti_reduction reduction;
    int64_t count;
    bool arena;
} plan;

/* The fold over ranks of small whole numbers. */
static double expected(const plan *p, int size, int64_t i)
{
    double value = tutti__test_value(0, i);
    for (int r = 1; r < size; r++) {
        double next = tutti__test_value(r, i);
        value = p->reduction == TUTTI_MIN    ? fmin(value, next)
                : p->reduction == TUTTI_MAX  ? fmax(value, next)
                : p->reduction == TUTTI_PROD ? value * next
                                             : value + next;
    }
    if (p->reduction == TUTTI_MEAN)
        value = tutti_dtype_is_float(p->dtype) ? value / size : trunc(value / size);
    return value;
}

static void set(void *data, tutti_dtype dtype, int64_t i, double value)
{
    char *at = (char *)data + (size_t)i * tutti_dtype_size(dtype);
    tutti__elements_from_doubles(dtype, at, 1, &value);
}

static double get(const void *data, tutti_dtype dtype, int64_t i)
{
    double value;
    const char *at = (const char *)data + (size_t)i * tutti_dtype_size(dtype);
    tutti__elements_to_doubles(dtype, at, 1, &value);
    return value;
}

static bool near(const plan *p, double value, double should)
{
    double scale = p->dtype == TUTTI_BF16  ? 0.02
                   : p->dtype == TUTTI_F16 ? 0.003
                   : p->dtype == TUTTI_F32 ? 1e-6
                                           : 1e-12;
    return fabs(value - should) <= scale * fabs(should);
}

static tutti_status memory(tutti_comm *comm, const plan *p, int64_t count, void **ret)
{
    int64_t bytes = (count + 1) * (int64_t)tutti_dtype_size(p->dtype);
    if (p->arena)
        return tutti_comm_allocate(comm, bytes, ret);
    *ret = calloc(1, (size_t)bytes);
    return *ret ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
}

static void give_back(tutti_comm *comm, const plan *p, void *data)
{
    if (p->arena)
        tutti_comm_free(comm, data);
    else
        free(data);
}

static tutti_status check_folded(const plan *p, int size, const void *out, int64_t first)
{
    for (int64_t i = 0; i < p->count; i++)
        if (!near(p, get(out, p->dtype, i), expected(p, size, first + i)))
            return tutti_fail(TUTTI_CHECK_FAILED,
                              "%s by %s, %s, reduction %d, %lld elements, %d "
                              "ranks: element %lld is %g, should be %g",
                              tutti__operation_names[p->operation], p->algorithm,
                              tutti_dtype_name(p->dtype), p->reduction, (long long)p->count, size,
                              (long long)i, get(out, p->dtype, i), expected(p, size, first + i));
    return TUTTI_OK;
}

static tutti_status check_block(const plan *p, const void *out, int64_t at, int rank, int64_t first)
{
    for (int64_t i = 0; i < p->count; i++)
        if (get(out, p->dtype, at + i) != tutti__test_value(rank, first + i))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s by %s, %lld elements: element %lld",
                              tutti__operation_names[p->operation], p->algorithm,
                              (long long)p->count, (long long)(at + i));
    return TUTTI_OK;
}

static tutti_status folds(tutti_comm *comm, const plan *p, void *in, void *out)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = p->algorithm);
    if (p->operation == TUTTI_REDUCE_SCATTER) {
        TUTTI_TRY(tutti_comm_reduce_scatter(comm, in, out, p->count, p->dtype, p->reduction, call));
        return check_folded(p, size, out, rank * p->count);
    }
    if (p->operation == TUTTI_REDUCE) {
        int root = size / 2;
        TUTTI_TRY(tutti_comm_reduce(comm, in, out, p->count, p->dtype, p->reduction, root, call));
        return rank == root ? check_folded(p, size, out, 0) : TUTTI_OK;
    }
    TUTTI_TRY(tutti_comm_all_reduce(comm, in, out, p->count, p->dtype, p->reduction, call));
    TUTTI_TRY(check_folded(p, size, out, 0));
    TUTTI_TRY(tutti_comm_all_reduce(comm, in, in, p->count, p->dtype, p->reduction, call));
    EXPECT(memcmp(in, out, (size_t)p->count * tutti_dtype_size(p->dtype)) == 0);
    return TUTTI_OK;
}

static tutti_status moves(tutti_comm *comm, const plan *p, void *in, void *out)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm), root = size - 1;
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = p->algorithm);
    int64_t n = p->count;
    switch (p->operation) {
    case TUTTI_BARRIER:
        return tutti_comm_barrier(comm, call);
    case TUTTI_BROADCAST:
        TUTTI_TRY(tutti_comm_broadcast(comm, in, n, p->dtype, root, call));
        return check_block(p, in, 0, root, 0);
    case TUTTI_GATHER:
        TUTTI_TRY(tutti_comm_gather(comm, in, out, n, p->dtype, root, call));
        break;
    case TUTTI_SCATTER:
        TUTTI_TRY(tutti_comm_scatter(comm, in, out, n, p->dtype, root, call));
        return check_block(p, out, 0, root, rank * n);
    case TUTTI_ALL_TO_ALL:
        TUTTI_TRY(tutti_comm_all_to_all(comm, in, out, n, p->dtype, call));
        for (int r = 0; r < size; r++)
            TUTTI_TRY(check_block(p, out, r * n, r, rank * n));
        return TUTTI_OK;
    default:
        TUTTI_TRY(tutti_comm_all_gather(comm, in, out, n, p->dtype, call));
    }
    for (int r = 0; r < size && (p->operation == TUTTI_ALL_GATHER || rank == root); r++)
        TUTTI_TRY(check_block(p, out, r * n, r, 0));
    return TUTTI_OK;
}

/* One operation by one algorithm. */
static tutti_status run_plan(tutti_comm *comm, const plan *p)
{
    int size = tutti_comm_size(comm), rank = tutti_comm_rank(comm);
    void *in = NULL, *out = NULL;
    TUTTI_TRY(memory(comm, p, p->count * size, &in));
    TUTTI_TRY(memory(comm, p, p->count * size, &out));
    for (int64_t i = 0; i < p->count * size; i++)
        set(in, p->dtype, i, tutti__test_value(rank, i));
    bool folding = p->operation == TUTTI_REDUCE || p->operation == TUTTI_ALL_REDUCE ||
                   p->operation == TUTTI_REDUCE_SCATTER;
    tutti_status status = folding ? folds(comm, p, in, out) : moves(comm, p, in, out);
    give_back(comm, p, in);
    give_back(comm, p, out);
    return status;
}

static tutti_status all_sizes(tutti_comm *comm, plan *p)
{
    static const int64_t counts[] = {0, 1, 37, 3001};
    for (size_t i = 0; i < TUTTI_COUNT(counts); i++) {
        p->count = counts[i];
        p->arena = i % 2 == 1;
        TUTTI_TRY(run_plan(comm, p));
    }
    return TUTTI_OK;
}

static bool possible(const tutti_comm *comm, const char *name)
{
    const tutti_coll *coll = tutti__coll_find(name);
    return tutti__coll_possible(coll, comm) && strcmp(name, "compressed") != 0;
}

/* Every algorithm of every operation, f32. */
static tutti_status all_algorithms(tutti_comm *comm, void *context)
{
    (void)context;
    for (int op = 0; op < TUTTI_OPERATION_COUNT; op++) {
        const char *const *names = tutti_comm_algorithms(tutti__operation_names[op]);
        for (; *names; names++) {
            plan p = {.algorithm = *names, .operation = (tutti_operation)op, .dtype = TUTTI_F32};
            if (possible(comm, *names) || tutti_comm_size(comm) == 1)
                TUTTI_TRY(all_sizes(comm, &p));
        }
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_every_algorithm_of_every_operation_1_to_9_ranks)
{
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (int size = 1; size <= 9; size++)
            tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engines[e], .timeout = 60),
                              all_algorithms, NULL);
}

static tutti_status all_types(tutti_comm *comm, void *context)
{
    (void)context;
    const char *const *names = tutti_comm_algorithms("all_reduce");
    for (; *names; names++) {
        if (!possible(comm, *names))
            continue;
        for (size_t t = 0; t < TUTTI_COUNT(types); t++)
            for (int reduction = TUTTI_SUM; reduction <= TUTTI_PROD; reduction++) {
                plan p = {*names, TUTTI_ALL_REDUCE, types[t], (tutti_reduction)reduction,
                          123,    reduction % 2};
                if ((types[t] == TUTTI_U8 || types[t] == TUTTI_I8) && reduction == TUTTI_PROD)
                    continue; /* it wraps */
                TUTTI_TRY(run_plan(comm, &p));
            }
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_all_reduce_of_every_type_and_reduction)
{
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (int size = 2; size <= 5; size += 3)
            tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engines[e], .timeout = 60),
                              all_types, NULL);
}

static tutti_status large(tutti_comm *comm, void *context)
{
    const char *const *names = tutti_comm_algorithms("all_reduce");
    for (; *names; names++)
        for (int arena = 0; arena < 2; arena++) {
            plan p = {*names,    TUTTI_ALL_REDUCE,          TUTTI_F32,
                      TUTTI_SUM, *(const int64_t *)context, arena};
            if (possible(comm, *names))
                TUTTI_TRY(run_plan(comm, &p));
        }
    return TUTTI_OK;
}

TUTTI_TEST(comm_large_messages)
{
    int64_t count = (1 << 18) + 13;
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = engines[e], .timeout = 60), large,
                          &count);
}

/* Elements repeat after so many. */
enum { PATTERN = 16 };

static void make_pattern(tutti_dtype dtype, double base, double step, char *ret)
{
    for (int i = 0; i < PATTERN; i++)
        set(ret, dtype, i, base + step * i);
}

/* 64 MiB and a little, in place: ranks give r + (i mod 16). */
static tutti_status largest_by(tutti_comm *comm, plan *p)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    char given[PATTERN * 8], wanted[PATTERN * 8], *x;
    size_t each = PATTERN * tutti_dtype_size(p->dtype), whole = (64 << 20) / each * each;
    p->count = (int64_t)(whole / tutti_dtype_size(p->dtype)) + 3;
    size_t rest = 3 * tutti_dtype_size(p->dtype);
    make_pattern(p->dtype, rank, 1, given);
    make_pattern(p->dtype, size * (size - 1) / 2.0, size, wanted);
    TUTTI_TRY(memory(comm, p, p->count, (void **)&x));
    for (size_t at = 0; at <= whole; at += each)
        memcpy(x + at, given, at < whole ? each : rest);
    TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, p->count, p->dtype, TUTTI_SUM,
                                    TUTTI_CALL(.algorithm = p->algorithm)));
    for (size_t at = 0; at <= whole; at += each)
        if (memcmp(x + at, wanted, at < whole ? each : rest) != 0)
            return tutti_fail(TUTTI_CHECK_FAILED, "%s, %s, %d ranks: wrong at byte %zu",
                              p->algorithm, tutti_dtype_name(p->dtype), size, at);
    give_back(comm, p, x);
    return TUTTI_OK;
}

/* Every algorithm, with a type of its own for each number of ranks. */
static tutti_status largest(tutti_comm *comm, void *context)
{
    (void)context;
    int turn = tutti_comm_size(comm);
    const char *const *names = tutti_comm_algorithms("all_reduce");
    for (const char *const *name = names; *name; name++) {
        if (!possible(comm, *name) && tutti_comm_size(comm) > 1)
            continue;
        plan p = {.algorithm = *name, .arena = turn % 2};
        p.dtype = types[turn++ % (int)TUTTI_COUNT(types)];
        TUTTI_TRY(largest_by(comm, &p));
    }
    return TUTTI_OK;
}

static void test_largest(const char *engine)
{
    if (!getenv("TUTTI_TEST_LARGE"))
        SKIP("64 MiB messages take minutes: make test-collectives");
    for (int size = 1; size <= 9; size++)
        tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engine, .timeout = 900), largest,
                          NULL);
}

TUTTI_TEST(comm_messages_of_64_mib_local)
{
    test_largest("local");
}

TUTTI_TEST(comm_messages_of_64_mib_shm)
{
    test_largest("shm");
}

TUTTI_TEST(comm_messages_of_64_mib_tcp)
{
    test_largest("tcp");
}

static tutti_status bytes_counted(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t p = tutti_comm_size(comm), n = 840 * 4; /* 840 is a multiple of 1 to 8 */
    float *data = calloc(840, sizeof *data);
    struct {
        const char *name;
        int64_t each, root; /* bytes that leave a rank, and rank 0 */
    } want[] = {
        {"naive", (p - 1) * n, (p - 1) * n},
        {"central", n, (p - 1) * n}, /* with (p - 1) n that come in: 2 (p - 1) n through it */
        {"ring", 2 * (p - 1) * n / p, 2 * (p - 1) * n / p},
    };
    for (size_t i = 0; i < TUTTI_COUNT(want); i++) {
        int64_t before = tutti_comm_bytes_sent(comm);
        TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, 840, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.algorithm = want[i].name)));
        int64_t sent = tutti_comm_bytes_sent(comm) - before;
        EXPECT(sent == (tutti_comm_rank(comm) ? want[i].each : want[i].root));
    }
    free(data);
    return TUTTI_OK;
}

TUTTI_TEST(comm_bytes_sent_are_those_of_the_formula)
{
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (int size = 2; size <= 8; size++)
            tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engines[e]), bytes_counted, NULL);
}

static tutti_status uneven(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t counts[16], total = 0;
    int32_t in[64], out[1024];
    int size = tutti_comm_size(comm), rank = tutti_comm_rank(comm);
    for (int r = 0; r < size; r++)
        total += counts[r] = (r * 5) % 7;
    for (int i = 0; i < counts[rank]; i++)
        in[i] = rank * 100 + i;
    const char *const *names = tutti_comm_algorithms("all_gather");
    for (; *names; names++) {
        if (!possible(comm, *names))
            continue;
        memset(out, 0, sizeof out);
        TUTTI_TRY(tutti_comm_all_gather_uneven(comm, in, counts, out, TUTTI_I32,
                                               TUTTI_CALL(.algorithm = *names)));
        for (int r = 0, at = 0; r < size; r++)
            for (int i = 0; i < counts[r]; i++)
                EXPECT(out[at++] == r * 100 + i);
    }
    EXPECT(total < 1024);
    return TUTTI_OK;
}

TUTTI_TEST(comm_all_gather_of_uneven_blocks)
{
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (int size = 2; size <= 9; size++)
            tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engines[e]), uneven, NULL);
}
