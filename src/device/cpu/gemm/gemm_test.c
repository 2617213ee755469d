#include "device/cpu/gemm/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/test.h"
#include "program/kernel.h"
#include "tables/gemm_engine.h"
#include "tables/gemm_tile.h"

enum { GAP = 3 }; /* elements between rows that belong to nobody */

/* One product with its operands; rows are GAP elements longer than they need to be. */
typedef struct product {
    tutti_gemm gemm;
    float *a, *b, *c, *before;
    size_t c_count;
} product;

static float *random_floats(size_t count, uint64_t seed)
{
    float *x = malloc((count + 1) * sizeof *x);
    CHECK(x != NULL);
    for (size_t i = 0; i < count; i++)
        x[i] = 2 * tutti__random_f32((tutti_random_key){seed, 0}, i) - 1;
    return x;
}

static product make_product(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool add)
{
    product p = {.gemm = {trans_a, trans_b, add, m, n, k}};
    p.gemm.lda = (trans_a ? m : k) + GAP;
    p.gemm.ldb = (trans_b ? k : n) + GAP;
    p.gemm.ldc = n + GAP;
    p.c_count = (size_t)(m * p.gemm.ldc);
    p.a = random_floats((size_t)((trans_a ? k : m) * p.gemm.lda), 1);
    p.b = random_floats((size_t)((trans_b ? n : k) * p.gemm.ldb), 2);
    p.before = random_floats(p.c_count, 3);
    p.c = random_floats(p.c_count, 3);
    p.gemm.a = p.a;
    p.gemm.b = p.b;
    p.gemm.c = p.c;
    return p;
}

static void free_product(product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->before);
}

static double expected_at(const product *p, int64_t i, int64_t j)
{
    const tutti_gemm *g = &p->gemm;
    double sum = g->add ? (double)p->before[i * g->ldc + j] : 0;
    for (int64_t x = 0; x < g->k; x++)
        sum += (double)g->a[g->trans_a ? x * g->lda + i : i * g->lda + x] *
               (double)g->b[g->trans_b ? j * g->ldb + x : x * g->ldb + j];
    return sum;
}

static void run_product(product *p, const tutti_gemm_plan *plan, tutti_pool *pool)
{
    size_t bytes = tutti__gemm_workspace(plan);
    void *workspace = malloc(bytes + 1);
    CHECK(workspace != NULL);
    memcpy(p->c, p->before, p->c_count * sizeof(float));
    tutti__gemm_run(plan, pool, &p->gemm, workspace);
    free(workspace);
}

static void check_product(const product *p)
{
    const tutti_gemm *g = &p->gemm;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->ldc; j++) {
            float actual = p->c[i * g->ldc + j];
            if (j < g->n)
                CHECK_NEAR(actual, expected_at(p, i, j), 1e-5 * (1 + (double)g->k / 16));
            else
                CHECK_NEAR(actual, p->before[i * g->ldc + j], 0); /* the gap stays as it was */
        }
}

static const int64_t shapes[][3] = {
    {1, 1, 1},    {0, 3, 2},       {3, 0, 2},      {3, 2, 0},    {1, 7, 5},     {4, 4, 4},
    {5, 13, 3},   {8, 12, 16},     {9, 25, 31},    {17, 8, 40},  {12, 32, 257}, {33, 65, 70},
    {64, 10, 64}, {130, 140, 150}, {20, 30, 1300}, {3, 5, 2000},
};

TUTTI_TEST(gemm_plain_matches_double_sums)
{
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (int mode = 0; mode < 16; mode++) {
            product p = make_product(shapes[s][0], shapes[s][1], shapes[s][2], mode & 1, mode & 2,
                                     mode & 4);
            uint32_t flags = TUTTI_GEMM_PLAIN | (mode & 8 ? TUTTI_GEMM_ONE_THREAD : 0);
            tutti_gemm_plan plan = tutti__gemm_plan(p.gemm.m, p.gemm.n, p.gemm.k, flags);
            run_product(&p, &plan, NULL);
            check_product(&p);
            free_product(&p);
        }
}

/* Numbers of pieces are quotients by these. */
TUTTI_TEST(gemm_plans_of_empty_products_have_no_empty_pieces)
{
    static const int64_t empty[][3] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {0, 0, 0}, {0, 5000, 5000}};
    static const uint32_t flags[] = {0, TUTTI_GEMM_ONE_THREAD, TUTTI_GEMM_PLAIN,
                                     TUTTI_GEMM_ROUNDED};
    for (size_t i = 0; i < TUTTI_COUNT(empty); i++)
        for (size_t k = 0; k < TUTTI_COUNT(flags); k++) {
            tutti_gemm_plan plan =
                tutti__gemm_plan(empty[i][0], empty[i][1], empty[i][2], flags[k]);
            CHECK(plan.piece_m > 0 && plan.piece_n > 0);
        }
}

/* Halving pieces whose rows are rounded up to tiles comes to an end. */
TUTTI_TEST(gemm_plans_of_few_rows_and_a_long_k_are_found)
{
    static const uint32_t flags[] = {0, TUTTI_GEMM_ONE_THREAD, TUTTI_GEMM_PLAIN, TUTTI_GEMM_BF16};
    for (int64_t m = 1; m <= 70; m++)
        for (int64_t n = 1; n <= 4096; n = 2 * n + 3)
            for (size_t k = 0; k < TUTTI_COUNT(flags); k++) {
                tutti_gemm_plan plan = tutti__gemm_plan(m, n, 5408, flags[k]);
                CHECK(plan.piece_m > 0 && plan.piece_n > 0);
            }
}

TUTTI_TEST(gemm_every_instruction_set_matches)
{
    for (const tutti_gemm_tile *const *tile = tutti__gemm_tile_table; *tile != NULL; tile++) {
        if (!tutti__isa_present((*tile)->isa) || (*tile)->element != sizeof(float))
            continue;
        CHECK_OK(tutti__param_set("ISA", (*tile)->isa));
        CHECK(tutti__gemm_tile() == *tile);
        product p = make_product(37, 53, 600, false, true, true);
        tutti_gemm_plan plan = tutti__gemm_plan(37, 53, 600, TUTTI_GEMM_PLAIN);
        run_product(&p, &plan, NULL);
        check_product(&p);
        free_product(&p);
    }
    CHECK_OK(tutti__param_set("ISA", NULL));
}

/* Operands that bf16 holds exactly. */
static uint16_t *round_operand(float *x, size_t count)
{
    uint16_t *rounded = malloc((count + 1) * sizeof *rounded);
    CHECK(rounded != NULL);
    for (size_t i = 0; i < count; i++) {
        rounded[i] = tutti_f32_to_bf16(x[i]);
        x[i] = tutti_bf16_to_f32(rounded[i]);
    }
    return rounded;
}

static void check_bf16(int64_t m, int64_t n, int64_t k, int mode, uint32_t flags)
{
    product p = make_product(m, n, k, mode & 1, mode & 2, mode & 4);
    uint16_t *a = round_operand(p.a, (size_t)((mode & 1 ? k : m) * p.gemm.lda));
    uint16_t *b = round_operand(p.b, (size_t)((mode & 2 ? n : k) * p.gemm.ldb));
    tutti_gemm_plan plan = tutti__gemm_plan(m, n, k, flags);
    run_product(&p, &plan, NULL); /* f32 is rounded while it is packed */
    check_product(&p);
    tutti_gemm floats = p.gemm;
    p.gemm.a16 = a;
    p.gemm.b16 = b;
    p.gemm.a_bf16 = p.gemm.b_bf16 = true;
    run_product(&p, &plan, NULL);
    p.gemm.a = floats.a;
    p.gemm.b = floats.b;
    check_product(&p);
    free(a);
    free(b);
    free_product(&p);
}

TUTTI_TEST(gemm_of_bf16_matches_double_sums)
{
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (int mode = 0; mode < 8; mode++) {
            check_bf16(shapes[s][0], shapes[s][1], shapes[s][2], mode, TUTTI_GEMM_ROUNDED);
            check_bf16(shapes[s][0], shapes[s][1], shapes[s][2], mode, TUTTI_GEMM_BF16);
        }
}

TUTTI_TEST(gemm_of_every_bf16_set_matches)
{
    int tried = 0;
    for (const tutti_gemm_tile *const *tile = tutti__gemm_tile_table; *tile != NULL; tile++) {
        if ((*tile)->element != 2 || !tutti__isa_present((*tile)->isa))
            continue;
        CHECK_OK(tutti__param_set("ISA", (*tile)->isa));
        CHECK(tutti__gemm_bf16_tile() == *tile);
        for (int mode = 0; mode < 8; mode++)
            check_bf16(67, 91, 1300, mode, TUTTI_GEMM_BF16);
        tried++;
    }
    CHECK_OK(tutti__param_set("ISA", NULL));
    if (tried == 0)
        SKIP("this CPU has no instructions for products of bf16");
}

/* Bits of one product under a plan and a pool. */
static void check_same_bits(product *p, const float *expected, uint32_t flags, tutti_pool *pool)
{
    tutti_gemm_plan plan = tutti__gemm_plan(p->gemm.m, p->gemm.n, p->gemm.k, flags);
    run_product(p, &plan, pool);
    CHECK(memcmp(p->c, expected, p->c_count * sizeof(float)) == 0);
}

TUTTI_TEST(gemm_bits_do_not_depend_on_threads_or_plan)
{
    static const int64_t sizes[][3] = {{150, 160, 170}, {24, 40, 3000}, {300, 20, 900}};
    static const uint32_t kinds[] = {TUTTI_GEMM_PLAIN, TUTTI_GEMM_BF16};
    tutti_pool *pool;
    CHECK_OK(tutti__pool_create(3, -1, &pool));
    for (size_t s = 0; s < TUTTI_COUNT(sizes) * TUTTI_COUNT(kinds); s++) {
        const int64_t *size = sizes[s / TUTTI_COUNT(kinds)];
        uint32_t kind = kinds[s % TUTTI_COUNT(kinds)];
        product p = make_product(size[0], size[1], size[2], false, false, true);
        tutti_gemm_plan plan = tutti__gemm_plan(p.gemm.m, p.gemm.n, p.gemm.k, kind);
        run_product(&p, &plan, NULL);
        float *expected = malloc(p.c_count * sizeof(float));
        CHECK(expected != NULL);
        memcpy(expected, p.c, p.c_count * sizeof(float));
        for (int i = 0; i < 5; i++)
            check_same_bits(&p, expected, kind, pool);
        check_same_bits(&p, expected, kind | TUTTI_GEMM_ONE_THREAD, pool);
        free(expected);
        free_product(&p);
    }
    tutti__pool_destroy(pool);
}

TUTTI_TEST(products_of_row_invariant_libraries_do_not_depend_on_threads)
{
    static const int64_t sizes[][3] = {
        {130, 150, 140}, {256, 160, 170}, {433, 129, 500}, {700, 300, 900}, {1024, 256, 256}};
    int tried = 0;
    for (const tutti_gemm_engine *const *e = tutti__gemm_engine_table; *e != NULL; e++) {
        const tutti_gemm_engine *engine;
        if ((*e)->row_invariant == NULL || !(*e)->row_invariant() ||
            tutti__gemm_engine_load((*e)->name, &engine) != TUTTI_OK)
            continue;
        tried++;
        for (size_t s = 0; s < TUTTI_COUNT(sizes); s++) {
            product p = make_product(sizes[s][0], sizes[s][1], sizes[s][2], false, false, false);
            tutti_gemm_plan plan = tutti__gemm_plan(p.gemm.m, p.gemm.n, p.gemm.k, TUTTI_GEMM_PLAIN);
            plan.engine = engine;
            run_product(&p, &plan, NULL);
            check_product(&p);
            float *expected = malloc(p.c_count * sizeof(float));
            CHECK(expected != NULL);
            memcpy(expected, p.c, p.c_count * sizeof(float));
            for (int threads = 2; threads <= 5; threads++) {
                tutti_pool *pool;
                CHECK_OK(tutti__pool_create(threads, -1, &pool));
                run_product(&p, &plan, pool);
                CHECK(memcmp(p.c, expected, p.c_count * sizeof(float)) == 0);
                tutti__pool_destroy(pool);
            }
            free(expected);
            free_product(&p);
        }
    }
    if (tried == 0)
        SKIP("no library whose products keep their rows on this CPU is installed");
}

static void check_rows(uint32_t flags)
{
    product all = make_product(200, 70, 900, false, false, false);
    tutti_gemm_plan plan = tutti__gemm_plan(200, 70, 900, flags);
    run_product(&all, &plan, NULL);
    static const int64_t cuts[][2] = {{0, 1}, {3, 7}, {11, 64}, {50, 150}};
    for (size_t i = 0; i < TUTTI_COUNT(cuts); i++) {
        int64_t row = cuts[i][0], rows = cuts[i][1];
        product part = make_product(rows, 70, 900, false, false, false);
        part.gemm.a = all.a + row * all.gemm.lda;
        part.gemm.b = all.b;
        plan = tutti__gemm_plan(rows, 70, 900, flags);
        run_product(&part, &plan, NULL);
        for (int64_t r = 0; r < rows; r++)
            CHECK(memcmp(part.c + r * part.gemm.ldc, all.c + (row + r) * all.gemm.ldc,
                         70 * sizeof(float)) == 0);
        free_product(&part);
    }
    free_product(&all);
}

TUTTI_TEST(gemm_rows_do_not_depend_on_their_neighbours)
{
    check_rows(TUTTI_GEMM_PLAIN);
    check_rows(TUTTI_GEMM_BF16);
}

TUTTI_TEST(gemm_with_packed_matrix_has_the_same_bits)
{
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (int mode = 0; mode < 8; mode++) {
            product p = make_product(shapes[s][0], shapes[s][1], shapes[s][2], mode & 1, mode & 2,
                                     mode & 4);
            tutti_gemm_plan plan = tutti__gemm_plan(p.gemm.m, p.gemm.n, p.gemm.k, TUTTI_GEMM_PLAIN);
            run_product(&p, &plan, NULL);
            float *expected = malloc(p.c_count * sizeof(float) + 1);
            float *packed = malloc((size_t)tutti__gemm_packed_floats(p.gemm.n, p.gemm.k) * 4 + 1);
            float *scratch = malloc((size_t)tutti__gemm_scratch_floats(p.gemm.m) * 4 + 1);
            CHECK(expected != NULL && packed != NULL && scratch != NULL);
            memcpy(expected, p.c, p.c_count * sizeof(float));
            memcpy(p.c, p.before, p.c_count * sizeof(float));
            tutti__gemm_pack(tutti__gemm_tile(), &p.gemm, packed);
            tutti__gemm_with(tutti__gemm_tile(), &p.gemm, packed, scratch);
            CHECK(memcmp(p.c, expected, p.c_count * sizeof(float)) == 0);
            free(expected);
            free(packed);
            free(scratch);
            free_product(&p);
        }
}

/* B packed before, and one row by itself, give the bits of any other way. */
TUTTI_TEST(gemm_plans_with_packed_matrices_have_the_same_bits)
{
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (int mode = 0; mode < 16; mode++) {
            int64_t m = mode & 8 ? 1 : shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            product p = make_product(m, n, k, mode & 1, mode & 2, mode & 4);
            tutti_gemm_plan plain = tutti__gemm_plan(m, n, k, TUTTI_GEMM_PLAIN),
                            packed = tutti__gemm_plan(m, n, k, TUTTI_GEMM_PACKED);
            float *expected = malloc(p.c_count * sizeof(float) + 1);
            float *b = malloc(
                (size_t)(tutti__gemm_packed_floats(n, k) + tutti__gemm_row_floats(n, k)) * 4 + 1);
            CHECK(expected != NULL && b != NULL && packed.packed && packed.engine == NULL);
            run_product(&p, &plain, NULL);
            memcpy(expected, p.c, p.c_count * sizeof(float));
            memcpy(p.c, p.before, p.c_count * sizeof(float));
            if (m == 1)
                tutti__gemm_pack_row(&p.gemm, b);
            else
                tutti__gemm_pack(tutti__gemm_tile(), &p.gemm, b);
            p.gemm.packed_b = b;
            p.gemm.b = NULL;
            run_product(&p, &packed, NULL);
            CHECK(memcmp(p.c, expected, p.c_count * sizeof(float)) == 0);
            free(expected);
            free(b);
            free_product(&p);
        }
}

TUTTI_TEST(gemm_libraries_match_where_installed)
{
    int tried = 0;
    for (const tutti_gemm_engine *const *e = tutti__gemm_engine_table; *e != NULL; e++) {
        const tutti_gemm_engine *engine;
        tutti_status status = tutti__gemm_engine_load((*e)->name, &engine);
        if (status != TUTTI_OK) {
            CHECK_CONTAINS(tutti_error_message(), (*e)->package);
            continue;
        }
        tried++;
        for (int mode = 0; mode < 8; mode++) {
            product p = make_product(67, 45, 91, mode & 1, mode & 2, mode & 4);
            tutti_gemm_plan plan = tutti__gemm_plan(67, 45, 91, TUTTI_GEMM_PLAIN);
            plan.engine = engine;
            run_product(&p, &plan, NULL);
            check_product(&p);
            free_product(&p);
        }
    }
    if (tried == 0)
        SKIP("no matrix library is installed");
}

TUTTI_TEST(gemm_engine_is_chosen_by_name)
{
    const tutti_gemm_engine *engine = tutti__gemm_engine_table[0];
    CHECK_OK(tutti__param_set("GEMM", "plain"));
    CHECK_OK(tutti__gemm_engine(true, &engine));
    CHECK(engine == NULL);
    CHECK_OK(tutti__param_set("GEMM", "abacus"));
    CHECK_STATUS(tutti__gemm_engine(true, &engine), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "abacus");
    CHECK_OK(tutti__param_set("GEMM", NULL));
}
