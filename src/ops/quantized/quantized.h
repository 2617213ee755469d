/* quantized.h: what the operators on quantised numbers share. A quantised tensor q, i8 or u8,
 * stands for x = (q - zero) * scale. Scale and zero are one number each; or one for each index
 * along an axis; or, in blocks, one for each `block` indices along it. */
#ifndef TUTTI_OPS_QUANTIZED_QUANTIZED_H
#define TUTTI_OPS_QUANTIZED_QUANTIZED_H

#include <math.h>

#include "ops/shape/rule.h"

static inline bool tutti__is_byte(tutti_dtype dtype)
{
    return dtype == TUTTI_I8 || dtype == TUTTI_U8;
}

/* Input `i`, called `what`, holds i8 or u8. */
tutti_status tutti__need_bytes(const tutti_infer *node, int i, const char *what);
/* Input `i` is one number, or a vector with one for each of `size` (TUTTI_ANY: not known). dtype
 * TUTTI_NO_DTYPE: any that the caller has checked. */
tutti_status tutti__need_parameter(const tutti_infer *node, int i, const char *what,
                                   tutti_dtype dtype, int64_t size);
/* Scale at input 1, which fits input 0 along attributes "axis" and "block", and zero at input 2, if
 * there is one, of the same shape. */
tutti_status tutti__need_scale(const tutti_infer *node);

/* Where each element of a tensor finds its scale and zero. */
typedef struct tutti_quantum {
    int64_t size, inner, step, per_outer, per_axis; /* see tutti__quantum_at */
} tutti_quantum;
tutti_quantum tutti__quantum(const tutti_kernel_call *call);
/* Index of the parameters of element i: [outer, axis, inner] with blocks along the axis. */
static inline int64_t tutti__quantum_at(const tutti_quantum *q, int64_t i)
{
    int64_t inner = i % q->inner, along = i / q->inner % q->size, outer = i / q->inner / q->size;
    return outer * q->per_outer + along / q->step * q->per_axis + (q->per_outer > 0 ? inner : 0);
}
int tutti__split_quantum(const tutti_infer *node, int capacity, tutti_split *ret);

/* round(value) + zero in the range of the type; halves to even; NaN to zero. */
static inline int32_t tutti__saturate(float value, int32_t zero, tutti_dtype dtype)
{
    float low = dtype == TUTTI_U8 ? 0 : -128, high = dtype == TUTTI_U8 ? 255 : 127;
    float moved = rintf(value) + (float)zero;
    return !(moved > low) ? (isnan(moved) ? zero : (int32_t)low)
                          : (int32_t)(moved < high ? moved : high);
}

/* A byte of i8 or u8. */
static inline int32_t tutti__byte_at(const tutti_view *view, int64_t i)
{
    return view->dtype == TUTTI_U8 ? ((const uint8_t *)view->data)[i]
                                   : ((const int8_t *)view->data)[i];
}
/* Element i of a vector of bytes, or the only one there is; 0 of an input that was left out. */
int32_t tutti__zero_of(const tutti_kernel_call *call, int input, int64_t i);
/* The same of floats; 1 of an input that was left out. */
float tutti__scale_of(const tutti_kernel_call *call, int input, int64_t i);

/* How an i32 sum of row i and column j becomes a byte: round(sum * a * b / y) + zero, all floats.
 * The inputs' numbers. */
typedef struct tutti_requantize {
    int a_scale, b_scale, y_scale, y_zero;
} tutti_requantize;
static inline int32_t tutti__requantize(const tutti_kernel_call *call, const tutti_requantize *r,
                                        int64_t row, int64_t column, int32_t sum)
{
    float factor = tutti__scale_of(call, r->a_scale, row) *
                   tutti__scale_of(call, r->b_scale, column) / tutti__scale_of(call, r->y_scale, 0);
    return tutti__saturate((float)sum * factor, tutti__zero_of(call, r->y_zero, 0),
                           call->outputs[0].dtype);
}

/* Products of matrices: a [.., m, k] at input `a`, b [.., k, n] at input `b`, zeros at a_zero and
 * b_zero (an index that is not there means 0). */
typedef struct tutti_int_matmul {
    int a, a_zero, b, b_zero;
    const tutti_requantize *finish; /* NULL: the output is i32 */
} tutti_int_matmul;
tutti_status tutti__int_matmul_infer(tutti_infer *node, const tutti_int_matmul *m,
                                     tutti_dtype dtype);
tutti_status tutti__int_matmul_reference(const tutti_kernel_call *call, const tutti_int_matmul *m);
void tutti__int_matmul_cost(const tutti_infer *node, const tutti_int_matmul *m, tutti_cost *ret);
/* Rows of the first matrix, when the second is one; a parameter of rows is cut along. */
int tutti__int_matmul_split(const tutti_infer *node, const tutti_int_matmul *m, int capacity,
                            tutti_split *ret);

/* Convolutions of [batch, height, width, channels], padded with x's zero. */
typedef struct tutti_int_conv {
    int x, x_zero, kernel, kernel_zero, bias; /* bias i32 [filters], added to the sums */
    const tutti_requantize *finish;
} tutti_int_conv;
tutti_status tutti__int_conv_infer(tutti_infer *node, const tutti_int_conv *c, tutti_dtype dtype);
tutti_status tutti__int_conv_reference(const tutti_kernel_call *call, const tutti_int_conv *c);
void tutti__int_conv_cost(const tutti_infer *node, const tutti_int_conv *c, tutti_cost *ret);
int tutti__int_conv_split(const tutti_infer *node, const tutti_int_conv *c, int capacity,
                          tutti_split *ret);

/* The attributes of a convolution from its options, whose lists they point to; zeros become the
 * defaults. */
void tutti__int_conv_attrs(int64_t strides[2], int64_t dilations[2], const char *padding,
                           int64_t pads[4], int64_t groups, tutti_attr ret_attrs[5]);
/* The zero that was given, or 0 of q's type. */
tutti_sym tutti__zero_or(tutti_sym zero, tutti_sym q);
/* Poison that says which scales must be given. */
tutti_sym tutti__no_scale(tutti_sym q, const char *op, const char *scales);

/* Which inputs of the four operators mean what. */
const tutti_int_matmul *tutti__matmul_integer_inputs(void);
const tutti_int_matmul *tutti__qlinear_matmul_inputs(void);
const tutti_int_conv *tutti__conv_integer_inputs(void);
const tutti_int_conv *tutti__qlinear_conv_inputs(void);

#endif
