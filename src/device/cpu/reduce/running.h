/* running.h: running sums and products along one axis, x and y [outer, size, inner]: the bits of
 * the reference, which goes along the axis in order, floats in double.
 *
 * A strip is some neighbouring columns along the whole axis, of one outer index; they are summed
 * side by side. Pieces are strips. */
#ifndef TUTTI_DEVICE_CPU_REDUCE_RUNNING_H
#define TUTTI_DEVICE_CPU_REDUCE_RUNNING_H

#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/vector.h"
#include "program/kernel.h"

enum {
    RUNNING_COLUMNS = 64, /* of a strip, at most */
    RUNNING_PIECE = 16384 /* elements of a piece, about */
};

typedef struct running_plan {
    int64_t outer, size, inner;
    int64_t across, strips, strips_of_piece; /* across: strips of one outer index */
    bool exclusive, reverse;
} running_plan;

static inline tutti_status running_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = &node->inputs[0];
    int64_t axis = tutti_attr_int(node->attrs, node->attr_count, "axis");
    running_plan plan = {.outer = 1,
                         .inner = 1,
                         .exclusive =
                             tutti_attr_int(node->attrs, node->attr_count, "exclusive") != 0,
                         .reverse = tutti_attr_int(node->attrs, node->attr_count, "reverse") != 0};
    axis += axis < 0 ? x->rank : 0;
    plan.size = x->dims[axis];
    for (int i = 0; i < axis; i++)
        plan.outer *= x->dims[i];
    for (int i = (int)axis + 1; i < x->rank; i++)
        plan.inner *= x->dims[i];
    plan.across = (plan.inner + RUNNING_COLUMNS - 1) / RUNNING_COLUMNS;
    plan.strips = plan.outer * plan.across;
    int64_t width = plan.inner < RUNNING_COLUMNS ? plan.inner : RUNNING_COLUMNS;
    plan.strips_of_piece = RUNNING_PIECE / (plan.size * width) + 1;
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

/* The functions of a kernel for elements of type T: `sum` is the type to add or multiply in, with
 * OP from `start` on. A strip of one column is compiled by itself: its sum stays in a register. */
#define RUNNING_TYPE(name, T, sum, start, OP)                                                      \
    VEC_INLINE void strip_##name(const running_plan *p, const T *x, T *y, int64_t width)           \
    {                                                                                              \
        const int64_t size = p->size, inner = p->inner;                                            \
        const bool reverse = p->reverse, exclusive = p->exclusive;                                 \
        sum so_far[RUNNING_COLUMNS];                                                               \
        for (int64_t c = 0; c < width; c++)                                                        \
            so_far[c] = start;                                                                     \
        for (int64_t i = 0; i < size; i++) {                                                       \
            const int64_t at = (reverse ? size - 1 - i : i) * inner;                               \
            for (int64_t c = 0; c < width; c++) {                                                  \
                const sum with = so_far[c] OP(sum) x[at + c];                                      \
                y[at + c] = (T)(exclusive ? so_far[c] : with);                                     \
                so_far[c] = with;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void piece_##name(void *context, int64_t index)                                         \
    {                                                                                              \
        const tutti_kernel_call *call = context;                                                   \
        const running_plan *p = call->plan;                                                        \
        int64_t first = index * p->strips_of_piece, end = first + p->strips_of_piece;              \
        for (int64_t s = first; s < end && s < p->strips; s++) {                                   \
            int64_t column = s % p->across * RUNNING_COLUMNS, rest = p->inner - column;            \
            int64_t at = s / p->across * p->size * p->inner + column;                              \
            const T *x = (const T *)call->inputs[0].data + at;                                     \
            T *y = (T *)call->outputs[0].data + at;                                                \
            if (p->inner == 1)                                                                     \
                strip_##name(p, x, y, 1);                                                          \
            else                                                                                   \
                strip_##name(p, x, y, rest < RUNNING_COLUMNS ? rest : RUNNING_COLUMNS);            \
        }                                                                                          \
    }

#define RUNNING_KERNEL(start, OP)                                                                  \
    RUNNING_TYPE(f32, float, double, start, OP)                                                    \
    RUNNING_TYPE(f64, double, double, start, OP)                                                   \
    RUNNING_TYPE(i8, int8_t, uint64_t, start, OP)                                                  \
    RUNNING_TYPE(u8, uint8_t, uint64_t, start, OP)                                                 \
    RUNNING_TYPE(i32, int32_t, uint64_t, start, OP)                                                \
    RUNNING_TYPE(i64, int64_t, uint64_t, start, OP)                                                \
    static void (*const pieces[TUTTI_DTYPE_END])(void *, int64_t) = {                              \
        [TUTTI_F32] = piece_f32, [TUTTI_F64] = piece_f64, [TUTTI_I8] = piece_i8,                   \
        [TUTTI_U8] = piece_u8,   [TUTTI_I32] = piece_i32, [TUTTI_I64] = piece_i64};                \
    static int score(const tutti_kernel_query *query)                                              \
    {                                                                                              \
        const tutti_type *x = &query->node.inputs[0];                                              \
        return pieces[x->dtype] != NULL && tutti_type_count(x) > 0 ? 100 : 0;                      \
    }                                                                                              \
    static tutti_status run(const tutti_kernel_call *call)                                         \
    {                                                                                              \
        const running_plan *p = call->plan;                                                        \
        tutti_parallel(call, (p->strips + p->strips_of_piece - 1) / p->strips_of_piece,            \
                       pieces[call->inputs[0].dtype], (void *)(uintptr_t)call);                    \
        return TUTTI_OK;                                                                           \
    }

#endif
