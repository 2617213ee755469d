/* powersgd.c: a matrix as the product of two thin ones (Vogels and others, 2019). Of V = G + E
 * [n, m] one step of power iteration from the last time's Q [m, r]:
 *
 *     P = V Q, summed over ranks;  P = orthonormal(P);  Q = V' P, summed over ranks
 *     out = P Q' (the sum);  E = V - P Q' / ranks
 *
 * (n + m) r numbers travel in place of n m. Ranks compute from the same sums: the same bits. E is
 * what this rank's share of the common approximation left out of V.
 *
 * Where a sum is not finite, as with a loss scale that was too large, all ranks get NaN, and keep E
 * and Q of before: the sums are the same everywhere, so all of them see it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "comm/compress/compress.h"

static int64_t width(const tutti_compressor *compressor)
{
    int64_t r = (int64_t)compressor->argument, n = compressor->rows, m = compressor->columns;
    int64_t most = n < m ? n : m;
    return r < most ? r : most;
}

/* Small or thin ones travel whole: (n + m) r would not be less. */
static bool whole(const tutti_compressor *compressor)
{
    int64_t n = compressor->rows, m = compressor->columns;
    return (n + m) * width(compressor) >= n * m;
}

static int64_t state(const tutti_compressor *compressor)
{
    if (whole(compressor))
        return 0;
    return compressor->rows * compressor->columns + compressor->columns * width(compressor);
}

static int64_t bytes(const tutti_compressor *compressor)
{
    int64_t n = compressor->rows, m = compressor->columns;
    return (whole(compressor) ? n * m : (n + m) * width(compressor)) * (int64_t)sizeof(float);
}

static float *last_q(const tutti_compressor *compressor)
{
    return compressor->state + compressor->rows * compressor->columns;
}

/* Q starts at random, on all ranks in the same way. */
static void powersgd_begin(tutti_compressor *compressor)
{
    if (compressor->state_count == 0)
        return;
    float *q = last_q(compressor);
    int64_t count = compressor->columns * width(compressor);
    tutti_random_key key = {.seed = 0x706f776572};
    for (int64_t i = 0; i < count; i++)
        q[i] = (float)tutti__random_normal(key, (uint64_t)i);
}

/* p [n, r] = v [n, m] q [m, r], v = e + g */
static void times(const float *e, const float *g, const float *q, int64_t n, int64_t m, int64_t r,
                  float *ret_p)
{
    memset(ret_p, 0, (size_t)(n * r) * sizeof *ret_p);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            float v = e[i * m + j] + g[i * m + j];
            for (int64_t k = 0; k < r; k++)
                ret_p[i * r + k] += v * q[j * r + k];
        }
}

/* q [m, r] = v [n, m]' p [n, r], v = e + g */
static void transposed_times(const float *e, const float *g, const float *p, int64_t n, int64_t m,
                             int64_t r, float *ret_q)
{
    memset(ret_q, 0, (size_t)(m * r) * sizeof *ret_q);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            float v = e[i * m + j] + g[i * m + j];
            for (int64_t k = 0; k < r; k++)
                ret_q[j * r + k] += v * p[i * r + k];
        }
}

static bool all_finite(const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

static double dot(const float *p, int64_t n, int64_t r, int64_t a, int64_t b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)p[i * r + a] * p[i * r + b];
    return sum;
}

/* Columns of p [n, r] by Gram and Schmidt, twice, which is as good as exact. A column without
 * anything of its own becomes zero. */
static void orthonormalise(float *p, int64_t n, int64_t r)
{
    for (int64_t k = 0; k < r; k++) {
        double before = sqrt(dot(p, n, r, k, k));
        for (int again = 0; again < 2; again++)
            for (int64_t b = 0; b < k; b++) {
                double share = dot(p, n, r, k, b);
                for (int64_t i = 0; i < n; i++)
                    p[i * r + k] -= (float)(share * p[i * r + b]);
            }
        double length = sqrt(dot(p, n, r, k, k));
        double scale = length > 1e-6 * before && length > 1e-30 ? 1 / length : 0;
        for (int64_t i = 0; i < n; i++)
            p[i * r + k] = (float)(p[i * r + k] * scale);
    }
}

/* out = P Q', and E = V - share P Q'. `g` may be `ret_out`. What is left out of the largest numbers
 * there are can be infinite; it is forgotten. */
static void give_out(const float *p, const float *q, int64_t n, int64_t m, int64_t r, float share,
                     const float *g, float *e, float *ret_out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            float sum = 0;
            for (int64_t k = 0; k < r; k++)
                sum += p[i * r + k] * q[j * r + k];
            float left = e[i * m + j] + g[i * m + j] - share * sum;
            e[i * m + j] = isfinite(left) ? left : 0;
            ret_out[i * m + j] = sum;
        }
}

static tutti_status powersgd_reduce(tutti_compressor *compressor, tutti_collective *c)
{
    int64_t n = compressor->rows, m = compressor->columns, r = width(compressor);
    if (whole(compressor))
        return tutti__compressor_call(c, TUTTI_ALL_REDUCE, c->in, c->out, c->count, TUTTI_F32);
    const float *g = c->in;
    float *e = compressor->state, *out = c->out;
    float *p = malloc((size_t)((n + m) * r) * sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld x %lld numbers", (long long)(n + m),
                          (long long)r);
    float *q = p + n * r; /* not the last time's before it is known to be of use */
    bool finite = false;
    times(e, g, last_q(compressor), n, m, r, p);
    tutti_status status = tutti__compressor_call(c, TUTTI_ALL_REDUCE, p, p, n * r, TUTTI_F32);
    if (status == TUTTI_OK) {
        finite = all_finite(p, n * r);
        orthonormalise(p, n, r);
        transposed_times(e, g, p, n, m, r, q);
        status = tutti__compressor_call(c, TUTTI_ALL_REDUCE, q, q, m * r, TUTTI_F32);
        finite = finite && all_finite(q, m * r);
    }
    if (status == TUTTI_OK && finite) {
        give_out(p, q, n, m, r, c->reduction == TUTTI_MEAN ? 1.0F : 1.0F / (float)c->size, g, e,
                 out);
        memcpy(last_q(compressor), q, (size_t)(m * r) * sizeof *q);
    }
    for (int64_t i = 0; status == TUTTI_OK && !finite && i < c->count; i++)
        out[i] = NAN;
    free(p);
    return status;
}

const tutti_compression tutti_compression_powersgd = {
    .name = "powersgd",
    .doc = "a product of two thin matrices, the difference later",
    .argument = "RANK",
    .least = 1,
    .most = 1024,
    .whole = true,
    .state = state,
    .begin = powersgd_begin,
    .bytes = bytes,
    .reduce = powersgd_reduce,
};
