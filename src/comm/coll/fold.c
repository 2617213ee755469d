/* fold.c: out = a ∘ b ∘ …, for every data type and reduction. Plain loops, which compilers turn
 * into vectors; up to five sources go in one pass over memory, more in blocks that stay in the
 * nearest cache. */
#include "comm/coll/fold.h"

#include <string.h>

#include "base/isa.h"

enum { BLOCK = 1024, PASS = 5 }; /* elements that stay in the nearest cache; arrays at once */

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
/* A NaN in either stays. */
#define LEAST(a, b) (((a) < (b) || (a) != (a)) ? (a) : (b))
#define MOST(a, b) (((a) > (b) || (a) != (a)) ? (a) : (b))

/* `out` may be an input: element i is read before it is written, which is what ivdep says. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* with sanitizers the loops stay scalar */
#define NO_CARRY _Pragma("clang loop vectorize(enable)")
#else
#define NO_CARRY _Pragma("GCC ivdep")
#endif

/* Of one type that is computed as it is (`wide` = `type` but for unsigned arithmetic, which wraps).
 * A pass is over one to PASS arrays at once: the more a core reads at a time, the more of them are
 * on their way to it. */
#define LOOP(expression)                                                                           \
    NO_CARRY for (int64_t i = 0; i < count; i++) o[i] = (expression);                              \
    break

#define FOLD(name, type, wide, OP)                                                                 \
    static inline type name##_two(type x, type y)                                                  \
    {                                                                                              \
        return (type)OP((wide)x, (wide)y);                                                         \
    }                                                                                              \
    static inline type name##_three(type x, type y, type z)                                        \
    {                                                                                              \
        return name##_two(name##_two(x, y), z);                                                    \
    }                                                                                              \
    static void name##_pass(type *o, const void *const *in, int sources, int64_t count)            \
    {                                                                                              \
        const type *a = in[0], *b = in[sources > 1 ? 1 : 0], *c = in[sources > 2 ? 2 : 0];         \
        const type *d = in[sources > 3 ? 3 : 0], *e = in[sources > 4 ? 4 : 0];                     \
        switch (sources) {                                                                         \
        case 1:                                                                                    \
            if (o != a)                                                                            \
                memcpy(o, a, (size_t)count * sizeof(type));                                        \
            break;                                                                                 \
        case 2:                                                                                    \
            LOOP(name##_two(a[i], b[i]));                                                          \
        case 3:                                                                                    \
            LOOP(name##_three(a[i], b[i], c[i]));                                                  \
        case 4:                                                                                    \
            LOOP(name##_two(name##_three(a[i], b[i], c[i]), d[i]));                                \
        default:                                                                                   \
            LOOP(name##_three(name##_three(a[i], b[i], c[i]), d[i], e[i]));                        \
        }                                                                                          \
    }                                                                                              \
    /* Some first, then their sum and all but one of a pass. */                                    \
    static void name##_many(type *out, const void *const *in, int sources, int64_t count)          \
    {                                                                                              \
        type sum[BLOCK];                                                                           \
        const void *part[PASS] = {0};                                                              \
        for (int64_t start = 0; start < count; start += BLOCK) {                                   \
            int64_t n = count - start < BLOCK ? count - start : BLOCK;                             \
            int done = (sources - 2) % (PASS - 1) + 2;                                             \
            for (int s = 0; s < done; s++)                                                         \
                part[s] = (const type *)in[s] + start;                                             \
            name##_pass(sum, part, done, n);                                                       \
            for (part[0] = sum; done < sources; done += PASS - 1) {                                \
                for (int s = 1; s < PASS; s++)                                                     \
                    part[s] = (const type *)in[done + s - 1] + start;                              \
                name##_pass(done + PASS - 1 < sources ? sum : out + start, part, PASS, n);         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(void *out, const void *const *in, int sources, int64_t count)                 \
    {                                                                                              \
        if (sources <= PASS)                                                                       \
            name##_pass(out, in, sources, count);                                                  \
        else                                                                                       \
            name##_many(out, in, sources, count);                                                  \
    }

#define FOLDS(prefix, type, wide)                                                                  \
    FOLD(prefix##_add, type, wide, ADD)                                                            \
    FOLD(prefix##_mul, type, wide, MUL)                                                            \
    FOLD(prefix##_least, type, type, LEAST)                                                        \
    FOLD(prefix##_most, type, type, MOST)                                                          \
    static void prefix##_divide(void *data, int64_t count, int64_t by)                             \
    {                                                                                              \
        type *x = data;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            x[i] = (type)(x[i] / (type)by);                                                        \
    }

FOLDS(f32, float, float)
FOLDS(f64, double, double)
FOLDS(i32, int32_t, uint32_t)
FOLDS(i64, int64_t, uint64_t)
FOLDS(u8, uint8_t, uint8_t)
FOLDS(i8, int8_t, uint8_t)

/* Bits of an f32. */
static inline float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bf16_wide(uint16_t x)
{
    return from_bits((uint32_t)x << 16);
}
static inline uint16_t bf16_narrow(float x)
{
    uint32_t bits = to_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* f16's subnormals are counted, in steps of 2^-24: as bits of an f32 they would be its subnormals,
 * which are zero while kernels run (base/denormals.h). */
static inline float f16_wide(uint16_t x)
{
    uint32_t magnitude = x & 0x7fffu, sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t small = to_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t normal = (magnitude << 13) + (112u << 23), special = magnitude << 13 | 0x7f800000u;
    uint32_t finite = magnitude < 0x400u ? small : normal;
    return from_bits(sign | (magnitude >= 0x7c00u ? special : finite));
}
static inline uint16_t f16_narrow(float x)
{
    uint32_t bits = to_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    /* Normal: round at bit 13 and move the exponent. */
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    /* Below 2^-14: adding 0.5 puts the last bit of f16's subnormals at the end of the f32. */
    uint32_t small = to_bits(from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t big = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t in_range = magnitude < 0x38800000u ? small : normal;
    return (uint16_t)(sign | (magnitude >= 0x477ff000u ? big : in_range));
}

#define CONVERT(prefix)                                                                            \
    static void prefix##_widen_all(const uint16_t *in, int64_t count, float *out)                  \
    {                                                                                              \
        NO_CARRY for (int64_t i = 0; i < count; i++) out[i] = prefix##_wide(in[i]);                \
    }                                                                                              \
    static void prefix##_narrow_all(const float *in, int64_t count, uint16_t *out)                 \
    {                                                                                              \
        NO_CARRY for (int64_t i = 0; i < count; i++) out[i] = prefix##_narrow(in[i]);              \
    }                                                                                              \
    static void prefix##_divide(void *data, int64_t count, int64_t by)                             \
    {                                                                                              \
        uint16_t *x = data;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            x[i] = prefix##_narrow(prefix##_wide(x[i]) / (float)by);                               \
    }

#define FOLD_HALF(prefix, op)                                                                      \
    static void prefix##_##op(void *out, const void *const *in, int sources, int64_t count)        \
    {                                                                                              \
        float sum[BLOCK], next[BLOCK];                                                             \
        for (int64_t start = 0; start < count; start += BLOCK) {                                   \
            int n = (int)(count - start < BLOCK ? count - start : BLOCK);                          \
            prefix##_widen_all((const uint16_t *)in[0] + start, n, sum);                           \
            for (int s = 1; s < sources; s++) {                                                    \
                prefix##_widen_all((const uint16_t *)in[s] + start, n, next);                      \
                f32_##op(sum, (const void *const[]){sum, next}, 2, n);                             \
            }                                                                                      \
            prefix##_narrow_all(sum, n, (uint16_t *)out + start);                                  \
        }                                                                                          \
    }

#define FOLDS_HALF(prefix)                                                                         \
    CONVERT(prefix)                                                                                \
    FOLD_HALF(prefix, add)                                                                         \
    FOLD_HALF(prefix, mul)                                                                         \
    FOLD_HALF(prefix, least)                                                                       \
    FOLD_HALF(prefix, most)

FOLDS_HALF(f16)
FOLDS_HALF(bf16)

#define ROW(prefix)                                                                                \
    {                                                                                              \
        [TUTTI_SUM] = prefix##_add, [TUTTI_MEAN] = prefix##_add, [TUTTI_MIN] = prefix##_least,     \
        [TUTTI_MAX] = prefix##_most, [TUTTI_PROD] = prefix##_mul                                   \
    }

const tutti_comm_fold TUTTI_ISA_NAME(tutti_comm_fold) = {
    .isa = TUTTI_ISA_TEXT,
    .fold =
        {
            [TUTTI_F32] = ROW(f32),
            [TUTTI_F64] = ROW(f64),
            [TUTTI_F16] = ROW(f16),
            [TUTTI_BF16] = ROW(bf16),
            [TUTTI_I32] = ROW(i32),
            [TUTTI_I64] = ROW(i64),
            [TUTTI_U8] = ROW(u8),
            [TUTTI_I8] = ROW(i8),
        },
    .divide =
        {
            [TUTTI_F32] = f32_divide,
            [TUTTI_F64] = f64_divide,
            [TUTTI_F16] = f16_divide,
            [TUTTI_BF16] = bf16_divide,
            [TUTTI_I32] = i32_divide,
            [TUTTI_I64] = i64_divide,
            [TUTTI_U8] = u8_divide,
            [TUTTI_I8] = i8_divide,
        },
    .widen = {[TUTTI_F16] = f16_widen_all, [TUTTI_BF16] = bf16_widen_all},
    .narrow = {[TUTTI_F16] = f16_narrow_all, [TUTTI_BF16] = bf16_narrow_all},
};
