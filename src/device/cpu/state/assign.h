/* assign.h: variables of floats that are changed in place. */
#ifndef TUTTI_DEVICE_CPU_STATE_ASSIGN_H
#define TUTTI_DEVICE_CPU_STATE_ASSIGN_H

#include "device/cpu/row/row.h"

enum { ASSIGN_PIECE = 16384 };

typedef struct assign_work {
    float *variable, *y;
    const float *x;
    int64_t count;
    float sign;
} assign_work;

static inline void assign_piece(void *context, int64_t piece)
{
    const assign_work *w = context;
    int64_t first = piece * ASSIGN_PIECE, rest = w->count - first;
    int64_t count = rest < ASSIGN_PIECE ? rest : ASSIGN_PIECE;
    float *v = w->variable + first;
    const float *x = w->x + first, sign = w->sign;
    ROW_MAP(v, count, ROW_AT(v) + ROW_AT(x) * sign);
    if (w->y != w->variable)
        memcpy(w->y + first, v, (size_t)count * sizeof(float));
}

static inline int assign_score(const tutti_kernel_query *query)
{
    return row_floats(query, 3) ? 100 : 0;
}

static inline tutti_status assign_run(const tutti_kernel_call *call, float sign)
{
    assign_work w = {.variable = call->inputs[0].data,
                     .y = call->outputs[0].data,
                     .x = call->inputs[1].data,
                     .count = tutti_view_count(&call->inputs[0]),
                     .sign = sign};
    tutti_parallel(call, (w.count + ASSIGN_PIECE - 1) / ASSIGN_PIECE, assign_piece, &w);
    return TUTTI_OK;
}

#endif
