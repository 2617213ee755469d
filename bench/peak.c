/* peak.c: peak arithmetic on registers and peak bandwidth, on all threads.
 *
 * A spin keeps enough independent sums in registers to hide the latency of a multiply-add (4 cycles
 * on two to four units), does `rounds` of them and returns how many FLOPs that were. */
#include "bench/peak.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/pool.h"
#include "device/cpu/gemm/gemm.h"

#define ROUNDS 5000
#define REPEATS 200
#define COPY_BYTES ((size_t)48 << 20)
#define COPY_PIECES 64

typedef double spin_fn(int rounds, float *sink);

/* Written out, so that each sum has a register of its own at any level of optimisation. */
#define SUMS_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define SUMS_24(X)                                                                                 \
    SUMS_12(X)                                                                                     \
    X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

#if defined(__aarch64__)
#include <arm_neon.h>

static double spin_neon(int rounds, float *sink)
{
    float32x4_t x = vdupq_n_f32(*sink), y = vdupq_n_f32(0.5f);
#define BEGIN(i) float32x4_t s##i = vdupq_n_f32((float)i);
    SUMS_24(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) s##i = vfmaq_f32(s##i, x, y);
        SUMS_24(STEP)
    }
#define JOIN(i) s0 = vaddq_f32(s0, s##i);
    SUMS_24(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = vgetq_lane_f32(s0, 0);
    return (double)rounds * 24 * 4 * 2;
}

/* bfmmla: 2x4 by 4x2; by inline assembly, because the intrinsic asks for a flag of the whole file.
 */
#if defined(__clang__)
#define WITH_BF16 __attribute__((target("bf16")))
#else
#define WITH_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#endif
WITH_BF16 static double spin_bf16(int rounds, float *sink)
{
    float32x4_t x = vdupq_n_f32(*sink), y = x;
#define BEGIN(i) float32x4_t s##i = vdupq_n_f32((float)i);
    SUMS_24(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(s##i) : "w"(x), "w"(y));
        SUMS_24(STEP)
    }
#define JOIN(i) s0 = vaddq_f32(s0, s##i);
    SUMS_24(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = vgetq_lane_f32(s0, 0);
    return (double)rounds * 24 * 16 * 2;
}

static spin_fn *pick_f32(void)
{
    return spin_neon;
}
static spin_fn *pick_bf16(void)
{
    return tutti__cpu()->bf16 ? spin_bf16 : NULL;
}

#elif defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static double spin_512(int rounds, float *sink)
{
    __m512 x = _mm512_set1_ps(*sink), y = _mm512_set1_ps(0.5f);
#define BEGIN(i) __m512 s##i = _mm512_set1_ps((float)i);
    SUMS_24(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) s##i = _mm512_fmadd_ps(x, y, s##i);
        SUMS_24(STEP)
    }
#define JOIN(i) s0 = _mm512_add_ps(s0, s##i);
    SUMS_24(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = _mm512_cvtss_f32(s0);
    return (double)rounds * 24 * 16 * 2;
}

__attribute__((target("avx2,fma"))) static double spin_256(int rounds, float *sink)
{
    __m256 x = _mm256_set1_ps(*sink), y = _mm256_set1_ps(0.5f);
#define BEGIN(i) __m256 s##i = _mm256_set1_ps((float)i);
    SUMS_12(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) s##i = _mm256_fmadd_ps(x, y, s##i);
        SUMS_12(STEP)
    }
#define JOIN(i) s0 = _mm256_add_ps(s0, s##i);
    SUMS_12(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = _mm256_cvtss_f32(s0);
    return (double)rounds * 12 * 8 * 2;
}

static double spin_128(int rounds, float *sink)
{
    __m128 x = _mm_set1_ps(*sink);
#define BEGIN(i) __m128 s##i = _mm_set1_ps((float)i);
    SUMS_12(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) s##i = _mm_add_ps(_mm_mul_ps(s##i, x), x);
        SUMS_12(STEP)
    }
#define JOIN(i) s0 = _mm_add_ps(s0, s##i);
    SUMS_12(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = _mm_cvtss_f32(s0);
    return (double)rounds * 12 * 4 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) static double spin_512_bf16(int rounds, float *sink)
{
    __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(*sink), _mm512_set1_ps(*sink));
#define BEGIN(i) __m512 s##i = _mm512_set1_ps((float)i);
    SUMS_24(BEGIN)
    for (int r = 0; r < rounds; r++) {
#define STEP(i) s##i = _mm512_dpbf16_ps(s##i, x, x);
        SUMS_24(STEP)
    }
#define JOIN(i) s0 = _mm512_add_ps(s0, s##i);
    SUMS_24(JOIN)
#undef BEGIN
#undef STEP
#undef JOIN
    *sink = _mm512_cvtss_f32(s0);
    return (double)rounds * 24 * 32 * 2;
}

/* Two tiles of 16x32 bf16 by two of 32x16 into four of 16x16 f32. */
__attribute__((target("amx-tile,amx-bf16"))) static double spin_amx(int rounds, float *sink)
{
    struct {
        uint8_t palette, start, rest[14];
        uint16_t bytes[16]; /* of a row */
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    float result[256];
    __asm__ volatile("" : : "r"(&config) : "memory"); /* all of it is read */
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, result, 64);
    _tile_release();
    *sink = result[0];
    return (double)rounds * 4 * 16 * 16 * 32 * 2;
}

static spin_fn *pick_f32(void)
{
    return tutti__cpu()->avx512 ? spin_512 : tutti__cpu()->avx2 ? spin_256 : spin_128;
}
static spin_fn *pick_bf16(void)
{
    return tutti__cpu()->amx_bf16 ? spin_amx : tutti__cpu()->avx512_bf16 ? spin_512_bf16 : NULL;
}

#else

static double spin_plain(int rounds, float *sink)
{
    float sums[8] = {0}, x = *sink;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < 8; i++)
            sums[i] = sums[i] * x + 0.5f;
    for (int i = 0; i < 8; i++)
        *sink += sums[i];
    return (double)rounds * 8 * 2;
}

static spin_fn *pick_f32(void)
{
    return spin_plain;
}
static spin_fn *pick_bf16(void)
{
    return NULL;
}

#endif

typedef struct spinning {
    spin_fn *spin;
    double speeds[256]; /* FLOPs a second, by piece */
} spinning;

static void spin_piece(void *context, int64_t index)
{
    spinning *s = context;
    float sink = 0;
    double start = tutti__seconds(), flops = s->spin(ROUNDS, &sink);
    s->speeds[index] = flops / (tutti__seconds() - start);
    volatile float keep = sink;
    (void)keep;
}

/* Each thread's own speed, while the others spin too: a thread that the system does not let run
 * leaves the others' figures as they are. */
static double spin_speed(tutti_pool *pool, spin_fn *spin)
{
    spinning s = {.spin = spin};
    int threads = tutti__pool_threads(pool);
    threads = threads < 256 ? threads : 256;
    double best = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double sum = 0;
        tutti__pool_run(pool, threads, spin_piece, &s);
        for (int i = 0; i < threads; i++)
            sum += s.speeds[i];
        best = sum > best ? sum : best;
    }
    return best;
}

typedef struct copying {
    char *from, *to;
} copying;

static void copy_piece(void *context, int64_t index)
{
    copying *c = context;
    size_t size = COPY_BYTES / COPY_PIECES, at = (size_t)index * size;
    memcpy(c->to + at, c->from + at, size);
}

static double copy_speed(tutti_pool *pool)
{
    copying c = {malloc(COPY_BYTES), malloc(COPY_BYTES)};
    double best = 0;
    if (c.from && c.to) {
        memset(c.from, 1, COPY_BYTES);
        for (int repeat = 0; repeat < 6; repeat++) {
            double start = tutti__seconds();
            tutti__pool_run(pool, COPY_PIECES, copy_piece, &c);
            double speed = 2.0 * (double)COPY_BYTES / (tutti__seconds() - start);
            best = speed > best ? speed : best;
        }
    }
    free(c.from);
    free(c.to);
    return best;
}

/* A product that fits into the cache, because the loops above are not the fastest everywhere: a
 * Neoverse-V1 that sees nothing but multiply-adds saves power and starts half as many. */
#define SIDE ((int64_t)384)
static double product_speed(tutti_pool *pool, uint32_t flags)
{
    tutti_gemm_plan plan = tutti__gemm_plan(SIDE, SIDE, SIDE, flags | TUTTI_GEMM_PLAIN);
    size_t size = (size_t)(SIDE * SIDE) * sizeof(float), room = tutti__gemm_workspace(&plan);
    float *abc = calloc(3, size), *workspace = aligned_alloc(64, (room + 63) / 64 * 64);
    double best = 0;
    for (int64_t i = 0; abc != NULL && i < 2 * SIDE * SIDE; i++)
        abc[i] = (float)(i % 13) - 6.0f;
    for (int repeat = 0; repeat < 20 && abc != NULL && workspace != NULL; repeat++) {
        tutti_gemm g = {.m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE, .ldc = SIDE};
        g.a = abc;
        g.b = abc + SIDE * SIDE;
        g.c = abc + 2 * SIDE * SIDE;
        double start = tutti__seconds();
        tutti__gemm_run(&plan, pool, &g, workspace);
        double speed = 2.0 * (double)(SIDE * SIDE * SIDE) / (tutti__seconds() - start);
        best = speed > best ? speed : best;
    }
    free(abc);
    free(workspace);
    return best;
}

static void raise(double *value, double found)
{
    *value = found > *value ? found : *value;
}

void tutti__peak_raise(tutti_peak *peak, int threads)
{
    tutti_pool *pool;
    tutti__bench_must(tutti__pool_create(threads, -1, &pool));
    raise(&peak->flops, spin_speed(pool, pick_f32()));
    raise(&peak->flops, product_speed(pool, 0));
    raise(&peak->bf16_flops, product_speed(pool, TUTTI_GEMM_BF16));
    raise(&peak->bf16_flops, pick_bf16() ? spin_speed(pool, pick_bf16()) : peak->flops);
    raise(&peak->bytes, copy_speed(pool));
    tutti__pool_destroy(pool);
}

static int run(int argc, char **argv, bool json)
{
    tutti_peak peak = {0};
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    tutti__peak_raise(&peak, tutti__bench_threads());
    tutti__report(json, &(tutti_result){"peak", "f32", peak.flops * 1e-9, "GFLOP/s"});
    tutti__report(json, &(tutti_result){"peak", "bf16", peak.bf16_flops * 1e-9, "GFLOP/s"});
    tutti__report(json, &(tutti_result){"peak", "copy", peak.bytes * 1e-9, "GB/s"});
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_peak = {
    .name = "peak",
    .summary =
        "what the machine can do: multiply-adds on registers or in the cache, a copy of memory",
    .run = run,
};
