/* random_uniform.c: floats in [low, high): the reference's bits, four to a block. */
#include "base/isa.h"
#include "ops/random/draw.h"
#include "program/kernel.h"

#define PIECE 4096

typedef struct work {
    tutti_random_key key;
    double low, high;
    int64_t count;
    float *to;
} work;

static void draw_piece(void *context, int64_t piece)
{
    const work *w = context;
    int64_t first = piece * PIECE, end = first + PIECE < w->count ? first + PIECE : w->count;
    for (int64_t i = first; i < end; i += 4) {
        uint32_t words[4];
        tutti__random_block(w->key, (uint64_t)i / 4, words);
        for (int64_t k = 0; k < 4 && i + k < end; k++) {
            float value =
                (float)(w->low + (w->high - w->low) * ((double)(words[k] >> 8) * 0x1p-24));
            w->to[i + k] = value >= w->high ? (float)w->low : value;
        }
    }
}

static int random_uniform_score(const tutti_kernel_query *query)
{
    const int64_t *global;
    bool whole =
        tutti_attr_ints(query->node.attrs, query->node.attr_count, "global_dims", &global) == 0;
    return query->node.outputs[0].dtype == TUTTI_F32 && whole ? 100 : 0;
}

static tutti_status random_uniform_run(const tutti_kernel_call *call)
{
    work w = {tutti__draw_of(call, &call->outputs[0]).key, tutti__call_float(call, "low"),
              tutti__call_float(call, "high"), tutti_view_count(&call->outputs[0]),
              call->outputs[0].data};
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, draw_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_random_uniform_blocks) = {
    .name = "random_uniform.blocks",
    .version = 1,
    .op = "random_uniform",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = random_uniform_score,
    .run = random_uniform_run,
};
