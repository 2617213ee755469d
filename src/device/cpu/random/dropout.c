/* dropout.c: y = x / (1 - rate) where a random number is at least rate, else 0: the reference's
 * numbers, LANES blocks of Philox side by side. */
#include "base/container.h"
#include "base/random.h"
#include "device/cpu/row/row.h"

enum { LANES = 16, PIECE = 8192 };

typedef struct dropout_work {
    tutti_random_key key;
    uint32_t least; /* 24-bit numbers below it are dropped */
    float factor;
    int64_t count;
    const float *x;
    float *y;
} dropout_work;

/* Words of blocks [first, first + LANES): word k of block i at words[k][i]. See base/random.c. */
static void draw_blocks(tutti_random_key key, uint64_t first, uint32_t words[4][LANES])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int i = 0; i < LANES; i++) {
        words[0][i] = (uint32_t)(first + (uint64_t)i);
        words[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        words[2][i] = (uint32_t)key.stream;
        words[3][i] = (uint32_t)(key.stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
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

static void run_piece(void *context, int64_t piece)
{
    const dropout_work *w = context;
    int64_t first = piece * PIECE, end = w->count - first < PIECE ? w->count : first + PIECE;
    for (int64_t at = first; at < end; at += 4 * LANES) {
        uint32_t words[4][LANES];
        draw_blocks(w->key, (uint64_t)at / 4, words);
        int64_t count = end - at < 4 * LANES ? end - at : 4 * LANES;
        for (int64_t i = 0; i < count; i++)
            w->y[at + i] = words[i % 4][i / 4] >> 8 >= w->least ? w->x[at + i] * w->factor : 0;
    }
}

static int score(const tutti_kernel_query *query)
{
    const int64_t *global;
    bool whole =
        tutti_attr_ints(query->node.attrs, query->node.attr_count, "global_dims", &global) == 0;
    return whole && row_floats(query, 1) ? 100 : 0;
}

/* A number n 2^-24 is at least rate when n is at least rate 2^24, rounded up. */
static tutti_status run(const tutti_call *call)
{
    double rate = tutti__call_float(call, "rate");
    dropout_work w = {.least = (uint32_t)ceil(rate * 0x1p24),
                      .factor = (float)(1 / (1 - rate)),
                      .count = tutti_view_count(&call->inputs[0]),
                      .x = call->inputs[0].data,
                      .y = call->outputs[0].data};
    w.key.seed = tutti__hash_mix((uint64_t)tutti__call_int(call, "seed"),
                                 (uint64_t)tutti__call_int(call, "salt"));
    w.key.stream = (uint64_t)tutti_view_get_int(&call->inputs[1], 0);
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, run_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_dropout) = {
    .name = "dropout.blocks",
    .version = 1,
    .op = "dropout",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = score,
    .run = run,
};
