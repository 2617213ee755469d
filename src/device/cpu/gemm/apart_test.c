#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/random.h"
#include "base/test.h"
#include "device/cpu/gemm/run.h"

enum { GUARD = 256 };

static float *drawn(int64_t count, uint64_t seed)
{
    float *x = malloc((size_t)count * sizeof *x);
    CHECK(x != NULL);
    for (int64_t i = 0; i < count; i++)
        x[i] = 2 * tutti__random_f32((tutti_random_key){seed, 0}, (uint64_t)i) - 1;
    return x;
}

/* Runs it in a workspace behind which nothing may be written. */
static void run(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm)
{
    size_t bytes = tutti__gemm_workspace(plan);
    char *workspace = malloc(bytes + GUARD);
    CHECK(workspace != NULL);
    memset(workspace + bytes, 77, GUARD);
    tutti__gemm_run(plan, pool, gemm, workspace);
    for (size_t i = 0; i < GUARD; i++)
        CHECK(workspace[bytes + i] == 77);
    free(workspace);
}

static void check_same_bits(const int64_t shape[3], int mode)
{
    bool trans_a = mode & 1, trans_b = mode & 2;
    int64_t m = shape[0], n = shape[1], k = shape[2];
    float *a = drawn(m * k, 1), *b = drawn(n * k, 2), *bias = drawn(n, 3);
    float *shared = drawn(m * n, 4), *apart = drawn(m * n, 4);
    tutti_gemm gemm = {.trans_a = trans_a,
                       .trans_b = trans_b,
                       .m = m,
                       .n = n,
                       .k = k,
                       .a = a,
                       .b = b,
                       .c = shared,
                       .lda = trans_a ? m : k,
                       .ldb = trans_b ? k : n,
                       .ldc = n,
                       .add = mode & 4,
                       .bias = mode & 8 ? bias : NULL,
                       .relu = mode & 8};
    tutti_gemm_plan plan = tutti__gemm_plan(m, n, k, TUTTI_GEMM_PLAIN);
    CHECK(plan.apart);
    plan.apart = false;
    run(&plan, NULL, &gemm);
    plan.apart = true;
    gemm.c = apart;
    for (int threads = 1; threads <= 5; threads++) {
        tutti_pool *pool;
        CHECK_OK(tutti__pool_create(threads, -1, &pool));
        for (int64_t i = 0; i < m * n; i++)
            apart[i] = 2 * tutti__random_f32((tutti_random_key){4, 0}, (uint64_t)i) - 1;
        run(&plan, pool, &gemm);
        CHECK(memcmp(apart, shared, (size_t)(m * n) * sizeof(float)) == 0);
        tutti__pool_destroy(pool);
    }
    free(a);
    free(b);
    free(bias);
    free(shared);
    free(apart);
}

/* Gradients of weights, wide and narrow, with rows and columns that fill no tile. */
TUTTI_TEST(gemm_pieces_that_pack_for_themselves_have_the_same_bits)
{
    static const int64_t shapes[][3] = {{128, 128, 700}, {512, 70, 401}, {67, 300, 1000},
                                        {70, 10, 650},   {61, 65, 1352}, {900, 64, 64},
                                        {70, 1100, 530}};
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (int mode = 0; mode < 16; mode++)
            check_same_bits(shapes[s], mode);
}

/* Whether it does, its matrices standing side by side without gaps. */
static bool runs_apart(tutti_pool *pool, tutti_gemm gemm)
{
    gemm.lda = gemm.trans_a ? gemm.m : gemm.k;
    gemm.ldb = gemm.ldc = gemm.n;
    tutti_gemm_plan plan = tutti__gemm_plan(gemm.m, gemm.n, gemm.k, TUTTI_GEMM_PLAIN);
    void *workspace = malloc(tutti__gemm_workspace(&plan));
    CHECK(workspace != NULL);
    bool did = tutti__gemm_run_apart(&plan, pool, &gemm, workspace);
    free(workspace);
    return did;
}

/* A long sum of two narrow matrices runs so on two threads. One of wide rows that are used as they
 * stand does not, unless its B is larger than a core's cache. */
TUTTI_TEST(gemm_pieces_pack_for_themselves_where_it_pays)
{
    tutti_pool *pool;
    CHECK_OK(tutti__pool_create(2, -1, &pool));
    float *a = drawn(2048 * 128, 1), *b = drawn(512 * 2048, 2), *c = drawn(2048 * 512, 3);
    tutti_gemm gemm = {.trans_a = true, .m = 128, .n = 128, .k = 2048, .a = a, .b = b, .c = c};
    CHECK(runs_apart(pool, gemm));
    gemm = (tutti_gemm){.m = 2048, .n = 512, .k = 128, .a = a, .b = b, .c = c};
    CHECK(runs_apart(pool, gemm) == (tutti__gemm_tile()->multiply_rows == NULL));
    gemm = (tutti_gemm){.m = 256, .n = 2048, .k = 512, .a = a, .b = b, .c = c};
    CHECK(runs_apart(pool, gemm));
    free(a);
    free(b);
    free(c);
    tutti__pool_destroy(pool);
}
