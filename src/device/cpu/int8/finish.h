/* finish.h: what becomes of the sums of a product of bytes: i32 as they are, or bytes again. */
#ifndef TUTTI_DEVICE_CPU_INT8_FINISH_H
#define TUTTI_DEVICE_CPU_INT8_FINISH_H

#include "ops/quantized/quantized.h"

typedef struct tutti_int8_finish {
    const tutti_kernel_call *call;
    const tutti_requantize *requantize; /* NULL: i32 */
    const int32_t *bias;                /* NULL: none */
    int64_t bias_step, line;            /* 0 when one bias serves all; columns of C */
    const tutti_view *left_scale, *right_scale;
    float y_scale;
    int32_t y_zero;
} tutti_int8_finish;

/* `bias`: the input with it, which may not be there. */
tutti_int8_finish tutti__int8_finish_of(const tutti_kernel_call *call,
                                        const tutti_requantize *requantize, int bias, int64_t line);
void tutti__int8_finish(const tutti_int8_finish *f, int64_t row, int64_t first, int64_t count,
                        const int32_t *sums);

#endif
