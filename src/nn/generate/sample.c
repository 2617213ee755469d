/* sample.c: one token drawn from scores. Where only the most likely ones count they are taken off a
 * heap, one by one, so that a large vocabulary is never sorted. */
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/require.h"
#include "tutti/generate.h"

/* Scores over 1 token: of equal ones the first is the more likely. NaN is never drawn. */
typedef struct sampler {
    const float *logits;
    int64_t count;      /* on the heap */
    int64_t *heap;      /* token numbers, the most likely first */
    double most, scale; /* p = exp((x - most) * scale), not divided by the sum */
} sampler;

static double weight_of(const sampler *s, int64_t token)
{
    double x = s->logits[token];
    return x == s->most ? 1 : isnan(x) ? 0 : (double)expf((float)((x - s->most) * s->scale));
}

static bool is_likelier(const sampler *s, int64_t a, int64_t b)
{
    double x = s->logits[a], y = s->logits[b];
    return x != y ? x > y || isnan(y) : a < b;
}

static void sift(sampler *s, int64_t at)
{
    int64_t one = s->heap[at];
    for (int64_t child = 2 * at + 1; child < s->count; child = 2 * at + 1) {
        child += child + 1 < s->count && is_likelier(s, s->heap[child + 1], s->heap[child]);
        if (!is_likelier(s, s->heap[child], one))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = one;
}

/* In [0, 1), 53 bits. */
static double uniform(uint64_t seed, uint64_t number)
{
    uint32_t words[4];
    tutti__random_block((tutti_random_key){seed, 0x67656e65}, number, words);
    return (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
}

/* The first token at which the weights, one after the other, have passed `share` of their sum. */
static tutti_status draw_all(const sampler *s, int64_t count, double share, int64_t *ret_token)
{
    float *weights = malloc((size_t)count * sizeof *weights);
    double sum = 0, passed = 0;
    int64_t last = -1;
    if (!weights)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to sample");
    for (int64_t i = 0; i < count; i++) {
        weights[i] = (float)weight_of(s, i);
        sum += (double)weights[i];
    }
    for (int64_t i = 0; i < count && !(last >= 0 && passed > share * sum); i++) {
        passed += (double)weights[i];
        last = weights[i] > 0 ? i : last;
    }
    free(weights);
    *ret_token = last;
    return TUTTI_OK;
}

/* Takes up to `most` tokens off the heap, in their order, until they have `share` of the weights of
 * all `most`; they stand behind the heap then, the likeliest last. */
static tutti_status draw_likely(sampler *s, int64_t count, const tutti_sample_options *options,
                                double share, int64_t *ret_token)
{
    int64_t most = options->top_k > 0 && options->top_k < count ? options->top_k : count, taken = 0;
    double sum = 0, kept = 0, passed = 0;
    s->heap = malloc((size_t)count * sizeof *s->heap);
    if (!s->heap)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to sample");
    s->count = count;
    for (int64_t i = 0; i < count; i++) {
        s->heap[i] = i;
        sum += most == count ? weight_of(s, i) : 0;
    }
    for (int64_t i = count / 2; i-- > 0;)
        sift(s, i);
    bool nucleus = options->top_p > 0 && options->top_p < 1;
    while (taken < most && !(nucleus && most == count && kept >= options->top_p * sum)) {
        int64_t best = s->heap[0];
        s->heap[0] = s->heap[--s->count];
        s->heap[s->count] = best;
        sift(s, 0);
        kept += weight_of(s, best);
        taken++;
    }
    if (nucleus && most < count) { /* of the most likely ones, those that have so much of theirs */
        double all = kept;
        for (kept = 0, most = 0; most < taken && kept < options->top_p * all; most++)
            kept += weight_of(s, s->heap[count - 1 - most]);
        taken = most;
    }
    int64_t token = s->heap[count - 1];
    for (int64_t i = 0; i < taken; i++) {
        double weight = weight_of(s, s->heap[count - 1 - i]);
        passed += weight;
        token = weight > 0 ? s->heap[count - 1 - i] : token;
        if (passed > share * kept)
            break;
    }
    free(s->heap);
    *ret_token = token;
    return TUTTI_OK;
}

tutti_status tutti_sample_token(int64_t count, const float *logits, uint64_t number,
                                const tutti_sample_options *options, int64_t *ret_token)
{
    static const tutti_sample_options none = {.struct_size = sizeof none};
    TUTTI_REQUIRE(logits);
    TUTTI_REQUIRE(ret_token);
    options = options ? options : &none;
    bool greedy = options->temperature == 0 && signbit(options->temperature);
    if (!(options->temperature >= 0) || options->top_k < 0 || !(options->top_p >= 0) ||
        options->top_p > 1)
        return tutti_fail(TUTTI_INVALID,
                          "temperature %g, top_k %lld and top_p %g: the temperature and top_k are "
                          "0 or more, top_p is from 0 to 1",
                          options->temperature, (long long)options->top_k, options->top_p);
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (best < 0 ? !isnan(logits[i]) : logits[i] > logits[best])
            best = i;
    if (best < 0 || logits[best] == -INFINITY)
        return tutti_fail(TUTTI_INVALID, "none of %lld scores is a number that is not -inf",
                          (long long)count);
    sampler s = {.logits = logits,
                 .most = logits[best],
                 .scale = 1 / (options->temperature > 0 ? options->temperature : 1)};
    if (greedy || logits[best] == INFINITY) {
        *ret_token = best;
        return TUTTI_OK;
    }
    double share = uniform(options->seed ? options->seed : 1, number);
    if (options->top_k > 0 || (options->top_p > 0 && options->top_p < 1))
        return draw_likely(&s, count, options, share, ret_token);
    return draw_all(&s, count, share, ret_token);
}
