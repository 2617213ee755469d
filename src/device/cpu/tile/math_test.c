#include <math.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "device/cpu/tile/tile.h"
#include "program/kernel.h"

enum { COUNT = 1024 };

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static double softplus(double x)
{
    return (x > 0 || isnan(x) ? x : 0) + log1p(exp(-fabs(x)));
}

static double gelu(double x)
{
    return isinf(x) ? fmax(x, -0.0) : 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double mish(double x)
{
    double e = exp(-fabs(x)), n = x > 0 ? 1 + 2 * e : e * (e + 2);
    return x * n / (x > 0 ? n + 2 * e * e : n + 2);
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static const struct {
    const char *name;
    double (*exact)(double);
} functions[] = {
    {"exp", exp},         {"expm1", expm1},       {"log", log},   {"log1p", log1p},
    {"tanh", tanh},       {"erf", erf},           {"sin", sin},   {"cos", cos},
    {"sigmoid", sigmoid}, {"softplus", softplus}, {"gelu", gelu}, {"silu", silu},
    {"rsqrt", rsqrt},     {"mish", mish},         {"sqrt", sqrt}, {"tan", tan},
    {"asin", asin},       {"acos", acos},         {"atan", atan}, {"sinh", sinh},
    {"cosh", cosh},
};

/* Distance in units of the last place of the exact value. Results below 1e-36 may become 0. */
static double distance(float actual, double exact)
{
    float nearest = (float)exact;
    if (actual == nearest || (isnan(actual) && isnan(exact)))
        return 0;
    if (fabs(exact) < 1e-36 && fabsf(actual) < 1e-36f)
        return 0;
    if (isnan(actual) || isnan(exact) || isinf(actual) || isinf(nearest))
        return INFINITY;
    float size = fabsf(nearest);
    return fabs((double)actual - exact) / (double)(nextafterf(size, INFINITY) - size);
}

static void check_tile(int function, const float *x, double limit)
{
    static const double none[TUTTI_TILE_PARAMS];
    const tutti_attr exact_form = TUTTI_INT("approximate", 0);
    float y[COUNT];
    const tutti_tile_op *row = tutti__tile_find(functions[function].name, &exact_form, 1);
    CHECK(row != NULL);
    row->f32(&(tutti_tile_args){.count = COUNT, .x = {x}, .y = y, .params = none});
    for (int i = 0; i < COUNT; i++) {
        double exact = functions[function].exact((double)x[i]), off = distance(y[i], exact);
        if (off > limit)
            tutti__test_fail(__FILE__, __LINE__, "%s(%.9g) is %.9g, exact %.9g: %.1f units",
                             functions[function].name, (double)x[i], (double)y[i], exact, off);
    }
}

/* Floats of every size and sign by their bits, then numbers round zero; then what is special. */
static void check_function(int function, double limit)
{
    static const float special[] = {0.0f,       -0.0f,     INFINITY,        -INFINITY,
                                    NAN,        1.0f,      -1.0f,           0x1p-149f,
                                    -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f};
    float x[COUNT];
    uint32_t step = TUTTI_TEST_SANITIZED ? 1000003 : 50021, bits = 0;
    for (uint64_t total = 0; total < UINT64_C(1) << 32; total += (uint64_t)step * COUNT) {
        for (int i = 0; i < COUNT; i++, bits += step)
            memcpy(&x[i], &bits, sizeof bits);
        check_tile(function, x, limit);
    }
    for (int part = 0; part < 60; part++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(part * COUNT + i) * (30.0f / (60 * COUNT)) - 15;
        check_tile(function, x, limit);
    }
    for (int i = 0; i < COUNT; i++)
        x[i] = special[i % (int)TUTTI_COUNT(special)];
    check_tile(function, x, limit);
}

/* Without fused multiply-adds the sums that need them lose some bits. */
TUTTI_TEST(tile_functions_are_within_four_units)
{
    int sets = 0;
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        sets++;
#if defined(__x86_64__)
        double limit = strcmp(*isa, "base") == 0 ? 200 : 4;
#else
        double limit = 4;
#endif
        for (size_t f = 0; f < TUTTI_COUNT(functions); f++)
            check_function((int)f, limit);
    }
    CHECK(sets > 0);
    CHECK(tutti__kernel_check_under(NULL));
}

static double modulo_of(double a, double b)
{
    double rest = fmod(a, b);
    rest += rest != 0 && (rest < 0) != (b < 0) ? b : 0;
    return rest == 0 ? copysign(0, b) : rest;
}

static double floor_of(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    quotient -= rest != 0 && (rest < 0) != (b < 0);
    return b == 0 ? a / b : quotient == 0 ? copysign(0, a / b) : nearbyint(quotient);
}

/* Floats of every size and sign: `spread` bits of the exponent differ; multiples of b among them.
 */
static void check_divisions(uint64_t *noise, int spread)
{
    static const double none[TUTTI_TILE_PARAMS];
    const tutti_tile_op *mod = tutti__tile_find("mod", NULL, 0);
    const tutti_tile_op *floor_divide = tutti__tile_find("floordiv", NULL, 0);
    float a[COUNT], b[COUNT], rest[COUNT], whole[COUNT];
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits[2];
        for (int k = 0; k < 2; k++) {
            *noise = *noise * UINT64_C(6364136223846793005) + 1442695040888963407;
            bits[k] = (uint32_t)(*noise >> 32);
            if (spread < 8) /* exponents near that of 1 */
                bits[k] = (bits[k] & 0x807fffff) | (127 + (bits[k] >> 23) % (1u << spread)) << 23;
        }
        memcpy(&a[i], &bits[0], sizeof a[i]);
        memcpy(&b[i], &bits[1], sizeof b[i]);
        a[i] = i % 7 == 0 ? b[i] * (float)(i % 1000 - 500) : a[i];
    }
    mod->f32(&(tutti_tile_args){.count = COUNT - 1, .x = {a, b}, .y = rest, .params = none});
    floor_divide->f32(
        &(tutti_tile_args){.count = COUNT - 1, .x = {a, b}, .y = whole, .params = none});
    for (int i = 0; i < COUNT - 1; i++) {
        float r = (float)modulo_of((double)a[i], (double)b[i]);
        float w = (float)floor_of((double)a[i], (double)b[i]);
        CHECK(isnan(r) ? isnan(rest[i]) : memcmp(&r, &rest[i], sizeof r) == 0);
        CHECK(isnan(w) ? isnan(whole[i]) : memcmp(&w, &whole[i], sizeof w) == 0);
    }
}

TUTTI_TEST(tile_divisions_have_the_bits_of_fmod)
{
    uint64_t noise = 1;
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++)
        for (int k = 0; k < 200 && tutti__kernel_check_under(*isa); k++)
            check_divisions(&noise, k % 9);
    CHECK(tutti__kernel_check_under(NULL));
}

TUTTI_TEST(tile_loops_leave_what_lies_behind)
{
    static const double none[TUTTI_TILE_PARAMS];
    const tutti_tile_op *row = tutti__tile_find("exp", NULL, 0);
    for (int count = 0; count < 40; count++) {
        float x[64], y[64];
        for (int i = 0; i < 64; i++) {
            x[i] = 1;
            y[i] = 7;
        }
        row->f32(&(tutti_tile_args){.count = count, .x = {x}, .y = y, .params = none});
        for (int i = 0; i < 64; i++)
            CHECK_NEAR(y[i], i < count ? 2.718282 : 7, 1e-5);
    }
}
