/* sgd_update.c: gradient descent in one pass over the memory. */
#include <string.h>

#include "program/isa.h"
#include "program/kernel.h"

#define PIECE 32768

typedef struct work {
    int64_t count;
    float *variable;
    const float *gradient;
    float rate;
} work;

static void move_piece(void *context, int64_t piece)
{
    const work w = *(const work *)context;
    int64_t first = piece * PIECE, end = first + PIECE < w.count ? first + PIECE : w.count;
    for (int64_t i = first; i < end; i++)
        w.variable[i] -= w.rate * w.gradient[i];
}

static int score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == TUTTI_F32 && query->node.inputs[1].dtype == TUTTI_F32
               ? 100
               : 0;
}

static tutti_status run(const tutti_call *call)
{
    work w = {tutti_view_count(&call->inputs[0]), call->inputs[0].data, call->inputs[1].data,
              (float)tutti_view_get(&call->inputs[2], 0)};
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, move_piece, &w);
    if (call->outputs[0].data != w.variable)
        memcpy(call->outputs[0].data, w.variable, (size_t)w.count * sizeof(float));
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sgd_update_pass) = {
    .name = "sgd_update.pass",
    .version = 1,
    .op = "sgd_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .run = run,
};
