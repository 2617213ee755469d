/* topk.c: the k largest of |g + e|, k = ceil(share n), as places and values; everything else stays
 * in e for the next time (error feedback). Ranks gather all pairs and add them in the order of
 * ranks: the same bits everywhere.
 *
 *     v = g + e;  S = places of the k largest |v|;  e = v outside of S, 0 in S;  out = sum of v[S]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/compress/compress.h"

typedef struct pair {
    uint32_t place;
    float value;
} pair;

static int64_t topk_numbers(const tutti_compressor *compressor)
{
    return compressor->rows * compressor->columns;
}

static int64_t kept(const tutti_compressor *compressor)
{
    int64_t count = topk_numbers(compressor);
    int64_t k = (int64_t)ceil(compressor->argument * (double)count);
    return k < 1 && count > 0 ? 1 : k > count ? count : k;
}

static int64_t bytes(const tutti_compressor *compressor)
{
    return kept(compressor) * (int64_t)sizeof(pair);
}

/* Bits of |x|: they order like the numbers; NaN comes last, that is, is always sent. */
static uint32_t size_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

/* The k-th largest size among `count`, found byte by byte from the top: four passes, no order of
 * elements needed. *ret_ties is how many of exactly that size belong to the k. */
static uint32_t threshold(const float *v, int64_t count, int64_t k, int64_t *ret_ties)
{
    uint32_t prefix = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t histogram[256] = {0};
        for (int64_t i = 0; i < count; i++)
            if ((size_of(v[i]) & mask) == prefix)
                histogram[size_of(v[i]) >> shift & 255]++;
        int digit = 255;
        while (histogram[digit] < k)
            k -= histogram[digit--];
        prefix |= (uint32_t)digit << shift;
        mask |= UINT32_C(255) << shift;
    }
    *ret_ties = k;
    return prefix;
}

/* Takes the k largest out of v, lower places first among equals. */
static void topk_take(float *v, int64_t count, int64_t k, pair *ret_pairs)
{
    int64_t ties, used = 0;
    uint32_t least = threshold(v, count, k, &ties);
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = size_of(v[i]);
        if (size < least || (size == least && ties-- <= 0)) {
            if (size >= 0x7f800000) /* infinite or NaN: all hear of it now, and nobody later */
                v[i] = 0;
            continue;
        }
        ret_pairs[used++] = (pair){(uint32_t)i, v[i]};
        v[i] = 0;
    }
}

static tutti_status add_pairs(tutti_collective *c, const pair *pairs, int64_t k)
{
    float *out = c->out;
    memset(out, 0, (size_t)c->count * sizeof *out);
    for (int64_t i = 0; i < k * c->size; i++) {
        if (pairs[i].place >= (uint64_t)c->count)
            return tutti_fail(TUTTI_CORRUPT, "rank %d gave number %u of %lld", (int)(i / k),
                              pairs[i].place, (long long)c->count);
        out[pairs[i].place] += pairs[i].value;
    }
    tutti__fold_finish(TUTTI_F32, c->reduction, out, c->count, c->size);
    return TUTTI_OK;
}

static tutti_status topk_reduce(tutti_compressor *compressor, tutti_collective *c)
{
    int64_t k = kept(compressor);
    const float *g = c->in;
    float *e = compressor->state;
    if (c->count == 0)
        return TUTTI_OK;
    pair *pairs = malloc((size_t)k * (size_t)(c->size + 1) * sizeof *pairs);
    if (!pairs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld numbers of %d ranks", (long long)k,
                          c->size);
    for (int64_t i = 0; i < c->count; i++)
        e[i] += g[i];
    topk_take(e, c->count, k, pairs);
    tutti_status status = tutti__compressor_call(c, TUTTI_ALL_GATHER, pairs, pairs + k,
                                                 k * (int64_t)sizeof(pair), TUTTI_U8);
    if (status == TUTTI_OK)
        status = add_pairs(c, pairs + k, k);
    free(pairs);
    return status;
}

const tutti_compression tutti_compression_topk = {
    .name = "topk",
    .doc = "the largest numbers, the rest later",
    .argument = "SHARE",
    .least = 1e-6,
    .most = 1,
    .state = topk_numbers,
    .bytes = bytes,
    .reduce = topk_reduce,
};
