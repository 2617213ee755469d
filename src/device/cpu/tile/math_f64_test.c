#include <math.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "device/cpu/tile/tile.h"

enum { COUNT = 511, ROUNDS = TUTTI_TEST_SANITIZED ? 8 : 80 };

static const double none[TUTTI_TILE_PARAMS];
static uint64_t noise = 1;

static long double sigmoid(long double x)
{
    long double e = expl(-fabsl(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static long double softplus(long double x)
{
    return (x > 0 || isnan(x) ? x : 0) + log1pl(expl(-fabsl(x)));
}

static long double gelu(long double x)
{
    return isinf(x) ? fmaxl(x, -0.0L) : x * (erfcl(-x * 0.70710678118654752440084436210485L) / 2);
}

static long double silu(long double x)
{
    return x * sigmoid(x);
}

/* `limit`: units in the last place; `least`: results below it may have fewer bits, as products of
 * numbers below the normal ones do. */
static const struct {
    const char *name;
    long double (*exact)(long double);
    double limit, least;
} functions[] = {
    {"exp", expl, 1},
    {"expm1", expm1l, 1.5},
    {"log", logl, 1},
    {"log1p", log1pl, 1},
    {"tanh", tanhl, 1},
    {"sigmoid", sigmoid, 2.5},
    {"sin", sinl, 1},
    {"cos", cosl, 1},
    {"tan", tanl, 3},
    {"asin", asinl, 1.5},
    {"acos", acosl, 1.5},
    {"atan", atanl, 2},
    {"sinh", sinhl, 2},
    {"cosh", coshl, 1.5},
    {"erf", erfl, 1.5},
    {"softplus", softplus, 2},
    {"silu", silu, 3, 0x1p-1010},
    {"gelu", gelu, 6, 0x1p-1010},
    {"sqrt", sqrtl, 0.5},
};

static const double special[] = {0.0,
                                 -0.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffffffffffp1023,
                                 1e-310,
                                 -1e-310,
                                 709.78, /* e^x is a number, just; not one */
                                 709.79,
                                 710.4, /* the same of sinh */
                                 -710.5,
                                 -745.1, /* e^x is the least number; 0 */
                                 -745.2,
                                 -708.5,
                                 -37.5, /* gelu's end */
                                 -38.6,
                                 0x1p-27,
                                 -0x1p-54,
                                 0x1.921fb54442d18p+0, /* next to whole multiples of pi / 2 */
                                 0x1.921fb54442d18p+20,
                                 6381956970095103.0 * 0x1p50,
                                 0x1p30,
                                 2e9,
                                 1e22};

/* Distance in units of the last place of the exact value. What is next to no number at all may be
 * one unit off: infinity from the largest one, 0 from the least. */
static double distance(double actual, long double exact)
{
    double nearest = (double)exact, size = fabs(nearest);
    if (isnan(actual) || isnan(nearest))
        return isnan(actual) && isnan(nearest) ? 0 : (double)INFINITY;
    if (!signbit(actual) != !signbit(nearest))
        return (double)INFINITY;
    if (actual == nearest)
        return actual == 0 || isinf(actual)
                   ? 0
                   : (double)(fabsl((long double)actual - exact) /
                              (long double)(nextafter(size, INFINITY) - size));
    if (isinf(actual) || isinf(nearest))
        return fmin(fabs(actual), size) == 0x1.fffffffffffffp1023 ? 1 : (double)INFINITY;
    return (double)(fabsl((long double)actual - exact) /
                    (long double)(nextafter(size, INFINITY) - size));
}

static uint64_t next_bits(void)
{
    noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407;
    return noise ^ noise >> 29;
}

/* From -1 to 1. */
static double next_number(void)
{
    return (double)(int64_t)next_bits() * 0x1p-63;
}

/* Of every size; as large as 32; as large as 1.5; of sizes from 2^-30 to 2^10. */
static void fill(double *x, int round)
{
    for (int i = 0; i < COUNT; i++) {
        uint64_t bits = next_bits();
        if (round % 4 == 3)
            bits = (bits & UINT64_C(0x800fffffffffffff)) | (uint64_t)(993 + (bits >> 52) % 40)
                                                               << 52;
        memcpy(&x[i], &bits, sizeof bits);
        if (round % 4 == 1 || round % 4 == 2)
            x[i] = next_number() * (round % 4 == 1 ? 32 : 1.5);
    }
}

static void check_tile(int function, const double *x, double limit)
{
    const tutti_attr exact_form = TUTTI_INT("approximate", 0);
    double y[COUNT];
    const tutti_tile_op *row = tutti__tile_find(functions[function].name, &exact_form, 1);
    CHECK(row != NULL);
    row->f64(&(tutti_tile_args){.count = COUNT, .x = {x}, .y = y, .params = none});
    for (int i = 0; i < COUNT; i++) {
        long double exact = functions[function].exact((long double)x[i]);
        double off = distance(y[i], exact), least = functions[function].least;
        if (off > limit && !(fabs(y[i]) < least && fabsl(exact) < (long double)least))
            tutti__test_fail(__FILE__, __LINE__, "%s(%.17g) is %.17g, exact %.21Lg: %.2f units",
                             functions[function].name, x[i], y[i], exact, off);
    }
}

/* Where C's functions are called, their errors (a few units of tanh), and of gelu that of the
 * argument of erfc. */
static double limit_under(const char *isa, double limit)
{
#if defined(__x86_64__)
    return strcmp(isa, "base") == 0 ? (limit < 4 ? 8 : 2000) : limit;
#else
    (void)isa;
    return limit;
#endif
}

TUTTI_TEST(tile_functions_of_doubles_are_within_two_units)
{
    double x[COUNT];
    int sets = 0;
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        sets++;
        for (int f = 0; f < (int)TUTTI_COUNT(functions); f++) {
            const double limit = limit_under(*isa, functions[f].limit);
            for (int i = 0; i < COUNT; i++)
                x[i] = special[i % (int)TUTTI_COUNT(special)];
            check_tile(f, x, limit);
            for (int round = 0; round < ROUNDS; round++) {
                fill(x, round);
                check_tile(f, x, limit);
            }
        }
    }
    CHECK(sets > 0);
    CHECK(tutti__kernel_check_under(NULL));
}

static void check_powers(const double *a, const double *b)
{
    const tutti_tile_op *row = tutti__tile_find("pow", NULL, 0);
    double y[COUNT];
    row->f64(&(tutti_tile_args){.count = COUNT, .x = {a, b}, .y = y, .params = none});
    for (int i = 0; i < COUNT; i++) {
        long double exact = powl((long double)a[i], (long double)b[i]);
        double off = distance(y[i], exact);
        if (off > 1.01)
            tutti__test_fail(__FILE__, __LINE__, "pow(%.17g, %.17g) is %.17g, exact %.21Lg: %.2f",
                             a[i], b[i], y[i], exact, off);
    }
}

static void check_powers_of_specials(void)
{
    static const double more[] = {2,      -2,      3,      -3,       1.5,
                                  0x1p50, -0x1p50, 0x1p53, 0x1.8p49, 1 + 0x1p-52};
    const int count = (int)(TUTTI_COUNT(special) + TUTTI_COUNT(more));
    double a[COUNT], b[COUNT], all[64];
    for (int i = 0; i < count; i++)
        all[i] = i < (int)TUTTI_COUNT(special) ? special[i] : more[i - (int)TUTTI_COUNT(special)];
    for (int first = 0; first < count * count; first += COUNT) {
        for (int i = 0; i < COUNT; i++) {
            a[i] = all[(first + i) / count % count];
            b[i] = all[(first + i) % count];
        }
        check_powers(a, b);
    }
}

/* Results of every size; powers of numbers near 1, with large exponents; whole powers. */
static void check_powers_of_round(int round)
{
    double a[COUNT], b[COUNT];
    for (int i = 0; i < COUNT; i++) {
        a[i] = exp(next_number() * (round % 3 == 0 ? 700 : 1.5));
        b[i] = next_number() * (round % 3 == 0 ? 1 : 500);
        if (round % 3 == 2) {
            a[i] = next_number() * 10;
            b[i] = floor(next_number() * 40);
        }
    }
    check_powers(a, b);
}

TUTTI_TEST(tile_powers_of_doubles_are_within_one_unit)
{
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        check_powers_of_specials();
        for (int round = 0; round < ROUNDS; round++)
            check_powers_of_round(round);
    }
    CHECK(tutti__kernel_check_under(NULL));
}

TUTTI_TEST(tile_loops_of_doubles_leave_what_lies_behind)
{
    const tutti_tile_op *exponential = tutti__tile_find("exp", NULL, 0);
    const tutti_tile_op *power = tutti__tile_find("pow", NULL, 0);
    for (int count = 0; count < 40; count++) {
        double x[64], y[64];
        for (int i = 0; i < 64; i++) {
            x[i] = 1;
            y[i] = 7;
        }
        exponential->f64(&(tutti_tile_args){.count = count, .x = {x}, .y = y, .params = none});
        for (int i = 0; i < 64; i++)
            CHECK_NEAR(y[i], i < count ? M_E : 7, 1e-15);
        power->f64(&(tutti_tile_args){.count = count, .x = {y, x}, .y = x, .params = none});
        for (int i = 0; i < 64; i++)
            CHECK_NEAR(x[i], i < count ? M_E : 1, 1e-15);
    }
}
