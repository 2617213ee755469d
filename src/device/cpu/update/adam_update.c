/* adam_update.c: Adam in one pass over the memory. */
#include <math.h>
#include <string.h>

#include "ops/update/update.h"
#include "program/isa.h"
#include "program/kernel.h"

#define PIECE 16384

typedef struct work {
    int64_t count;
    float *variable, *m, *s;
    const float *gradient;
    float beta1, beta2, rest1, rest2, epsilon, rate, inverse1, inverse2;
} work;

static void move_piece(void *context, int64_t piece)
{
    const work w = *(const work *)context;
    int64_t first = piece * PIECE, end = first + PIECE < w.count ? first + PIECE : w.count;
    float *restrict variable = w.variable, *restrict m = w.m, *restrict s = w.s;
    const float *restrict gradient = w.gradient;
    for (int64_t i = first; i < end; i++) {
        float g = gradient[i];
        float mean = w.beta1 * m[i] + w.rest1 * g, square = w.beta2 * s[i] + w.rest2 * (g * g);
        m[i] = mean;
        s[i] = square;
        variable[i] -= w.rate * (mean * w.inverse1) / (sqrtf(square * w.inverse2) + w.epsilon);
    }
}

static int score(const tutti_kernel_query *query)
{
    for (int i = 0; i < 4; i++)
        if (query->node.inputs[i].dtype != TUTTI_F32)
            return 0;
    return 100;
}

static tutti_status run(const tutti_call *call)
{
    tutti_adam adam = tutti__adam_make(call, tutti_view_get(&call->inputs[4], 0),
                                       tutti_view_get_int(&call->inputs[5], 0));
    work w = {.count = tutti_view_count(&call->inputs[0]),
              .variable = call->inputs[0].data,
              .m = call->inputs[1].data,
              .s = call->inputs[2].data,
              .gradient = call->inputs[3].data,
              .beta1 = (float)adam.beta1,
              .beta2 = (float)adam.beta2,
              .rest1 = (float)(1 - adam.beta1),
              .rest2 = (float)(1 - adam.beta2),
              .epsilon = (float)adam.epsilon,
              .rate = (float)adam.rate,
              .inverse1 = (float)(1 / adam.scale1),
              .inverse2 = (float)(1 / adam.scale2)};
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, move_piece, &w);
    if (call->outputs[0].data != w.variable)
        memcpy(call->outputs[0].data, w.variable, (size_t)w.count * sizeof(float));
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adam_update_pass) = {
    .name = "adam_update.pass",
    .version = 1,
    .op = "adam_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .run = run,
};
