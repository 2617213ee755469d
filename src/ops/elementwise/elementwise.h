/* elementwise.h: what the element-wise operators share: shape rules by kind of element type. */
#ifndef TUTTI_OPS_ELEMENTWISE_ELEMENTWISE_H
#define TUTTI_OPS_ELEMENTWISE_ELEMENTWISE_H

#include "ops/build.h"

/* One input, output of the same type. */
tutti_status tutti__infer_float(tutti_infer *node);  /* f32 f64 f16 bf16 */
tutti_status tutti__infer_number(tutti_infer *node); /* floats and integers */
/* One float, output bool. */
tutti_status tutti__infer_float_test(tutti_infer *node);
/* Inputs of one element type that broadcast. */
tutti_status tutti__infer_numbers(tutti_infer *node);
tutti_status tutti__infer_bools(tutti_infer *node);

/* P(x) + x p(x), of which dy times is the gradient of the exact gelu: see gelu_slope.c. */
tutti_sym tutti__gelu_slope(tutti_sym x);

/* A function that a CPU computes by a polynomial: counted as 16 FLOPs an element. */
void tutti__cost_transcendental(const tutti_infer *node, tutti_cost *ret);

/* Integers that wrap round without undefined behaviour. */
static inline int64_t tutti__wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t tutti__wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t tutti__wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Gradients of an operator of two with broadcasting: sums `grad` over the axes along which input
 * `index` was repeated, when that input's gradient is wanted. */
void tutti__gradient_give(tutti_gradient_call *node, int index, tutti_sym grad);

/* Whether a whole number is a value of an integer type or bool. */
bool tutti__integer_fits(double value, tutti_dtype dtype);

#endif
