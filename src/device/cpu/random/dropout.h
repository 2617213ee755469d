/* dropout.h: y = residual + x / (1 - rate) where a random number is at least rate, else residual:
 * the reference's numbers, DROPOUT_LANES blocks of Philox side by side. For files compiled once for
 * each instruction set. */
#ifndef TUTTI_DEVICE_CPU_RANDOM_DROPOUT_H
#define TUTTI_DEVICE_CPU_RANDOM_DROPOUT_H

#include "base/container.h"
#include "base/random.h"
#include "device/cpu/row/row.h"

enum { DROPOUT_LANES = 16, DROPOUT_PIECE = 8192 };

typedef struct dropout_work {
    tutti_random_key key;
    uint32_t least; /* 24-bit numbers below it are dropped */
    float factor;
    int64_t count;
    const float *x, *residual; /* residual NULL: none */
    float *y;
} dropout_work;

/* Words of blocks [first, first + DROPOUT_LANES): word k of block i at words[k][i]. See
 * base/random.c. */
static inline void draw_blocks(tutti_random_key key, uint64_t first,
                               uint32_t words[4][DROPOUT_LANES])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int i = 0; i < DROPOUT_LANES; i++) {
        words[0][i] = (uint32_t)(first + (uint64_t)i);
        words[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        words[2][i] = (uint32_t)key.stream;
        words[3][i] = (uint32_t)(key.stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < DROPOUT_LANES; i++) {
            uint64_t p0 = (uint64_t)0xd2511f53u * words[0][i],
                     p1 = (uint64_t)0xcd9e8d57u * words[2][i];
            words[0][i] = (uint32_t)(p1 >> 32) ^ words[1][i] ^ k0;
            words[1][i] = (uint32_t)p1;
            words[2][i] = (uint32_t)(p0 >> 32) ^ words[3][i] ^ k1;
            words[3][i] = (uint32_t)p0;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

static void dropout_piece(void *context, int64_t piece)
{
    const dropout_work *w = context;
    int64_t first = piece * DROPOUT_PIECE,
            end = w->count - first < DROPOUT_PIECE ? w->count : first + DROPOUT_PIECE;
    for (int64_t at = first; at < end; at += 4 * DROPOUT_LANES) {
        uint32_t words[4][DROPOUT_LANES];
        draw_blocks(w->key, (uint64_t)at / 4, words);
        int64_t count = end - at < 4 * DROPOUT_LANES ? end - at : 4 * DROPOUT_LANES;
        for (int64_t i = 0; i < count && w->residual == NULL; i++)
            w->y[at + i] = words[i % 4][i / 4] >> 8 >= w->least ? w->x[at + i] * w->factor : 0;
        for (int64_t i = 0; i < count && w->residual != NULL; i++)
            w->y[at + i] = w->residual[at + i] +
                           (words[i % 4][i / 4] >> 8 >= w->least ? w->x[at + i] * w->factor : 0);
    }
}

/* Whether a dropout draws for a whole tensor, not for a piece of one. */
static inline bool dropout_is_whole(const tutti_attr *attrs, int count)
{
    const int64_t *global;
    return tutti_attr_ints(attrs, count, "global_dims", &global) == 0;
}

/* What the numbers and the factor come from. */
typedef struct dropout_draw {
    double rate;
    int64_t seed, salt;
} dropout_draw;

static inline dropout_draw dropout_draw_of(const tutti_attr *attrs, int count)
{
    return (dropout_draw){tutti_attr_float(attrs, count, "rate"),
                          tutti_attr_int(attrs, count, "seed"),
                          tutti_attr_int(attrs, count, "salt")};
}

/* x, residual, y and count are given. A number n 2^-24 is at least rate when n is at least
 * rate 2^24, rounded up. */
static inline void dropout_run(const tutti_kernel_call *call, dropout_work *w, dropout_draw draw,
                               const tutti_view *counter)
{
    w->least = (uint32_t)ceil(draw.rate * 0x1p24);
    w->factor = (float)(1 / (1 - draw.rate));
    w->key.seed = tutti__hash_mix((uint64_t)draw.seed, (uint64_t)draw.salt);
    w->key.stream = (uint64_t)tutti_view_get_int(counter, 0);
    tutti_parallel(call, (w->count + DROPOUT_PIECE - 1) / DROPOUT_PIECE, dropout_piece, w);
}

#endif
