/* check_numerics.c: a copy that looks at what it copies; where something is not finite the
 * reference looks for it, and words the message. */
#include <stdatomic.h>
#include <string.h>

#include "base/isa.h"
#include "program/kernel.h"

enum { PIECE = 65536, BLOCK = 4096 }; /* elements; a block stays in the first cache */

typedef struct work {
    const char *x;
    char *y;
    int64_t count;
    size_t size; /* bytes of an element */
    uint32_t exponent;
    _Atomic bool broken;
} work;

/* Numbers whose exponent is all ones are infinities and NaN. */
#define ALL_FINITE(name, T)                                                                        \
    static inline bool name(const T *x, int64_t count, T exponent)                                 \
    {                                                                                              \
        T broken = 0;                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            broken |= (T)((x[i] & exponent) == exponent);                                          \
        return broken == 0;                                                                        \
    }
ALL_FINITE(all_finite_16, uint16_t)
ALL_FINITE(all_finite_32, uint32_t)
ALL_FINITE(all_finite_64, uint64_t)

static void check_numerics_piece(void *context, int64_t index)
{
    work *w = context;
    int64_t end = (index + 1) * PIECE < w->count ? (index + 1) * PIECE : w->count;
    bool finite = true;
    for (int64_t i = index * PIECE; finite && i < end; i += BLOCK) {
        int64_t count = end - i < BLOCK ? end - i : BLOCK;
        size_t at = (size_t)i * w->size;
        const void *x = w->x + at;
        finite = w->size == 2   ? all_finite_16(x, count, (uint16_t)w->exponent)
                 : w->size == 4 ? all_finite_32(x, count, 0x7f800000)
                                : all_finite_64(x, count, UINT64_C(0x7ff) << 52);
        if (w->x != w->y)
            memcpy(w->y + at, x, (size_t)count * w->size);
    }
    if (!finite)
        atomic_store_explicit(&w->broken, true, memory_order_relaxed);
}

static int check_numerics_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return tutti_dtype_is_float(x->dtype) && tutti_type_count(x) > 0 ? 100 : 0;
}

static tutti_status check_numerics_run(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    work w = {.x = x->data,
              .y = call->outputs[0].data,
              .count = tutti_view_count(x),
              .size = tutti_dtype_size(x->dtype),
              .exponent = x->dtype == TUTTI_F16 ? 0x7c00 : 0x7f80};
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, check_numerics_piece, &w);
    return w.broken ? call->op->reference(call) : TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_check_numerics) = {
    .name = "check_numerics.pass",
    .version = 1,
    .op = "check_numerics",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = check_numerics_score,
    .run = check_numerics_run,
};
