/* ops_quantized.h: numbers as bytes. A quantised tensor q, i8 or u8, stands for the floats
 * (q - zero) * scale. No gradient flows through these operators. */
#ifndef TUTTI_OPS_QUANTIZED_H
#define TUTTI_OPS_QUANTIZED_H

#include "tutti/ops_network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scale (floats) and zero (of q's type): one number each; or vectors with one for each index along
 * `axis`; or, with .block, of q's rank with one for each `block` indices along the axis. */
typedef struct tutti_quantize_linear_options {
    size_t struct_size;
    tutti_sym zero; /* by default 0 */
    int axis;
    int64_t block;
    tutti_dtype dtype; /* of quantize_linear without a zero: u8 (default) or i8 */
} tutti_quantize_linear_options;

/* round(x / scale) + zero, halves to even, within the type's range; the result has zero's type. */
TUTTI_API tutti_sym tutti_quantize_linear_with(tutti_sym x, tutti_sym scale,
                                               const tutti_quantize_linear_options *options);
#define tutti_quantize_linear(x, ...)                                                              \
    TUTTI_AT(                                                                                      \
        tutti_quantize_linear_with((x), TUTTI_ONE_(tutti_quantize_linear_options, __VA_ARGS__, )))
/* (q - zero) * scale, in the scale's type; q is i8, u8 or i32. */
TUTTI_API tutti_sym tutti_dequantize_linear_with(tutti_sym q, tutti_sym scale,
                                                 const tutti_quantize_linear_options *options);
#define tutti_dequantize_linear(q, ...)                                                            \
    TUTTI_AT(tutti_dequantize_linear_with(                                                         \
        (q), TUTTI_ONE_(tutti_quantize_linear_options, __VA_ARGS__, )))
/* u8 by x's own range, which 0 is part of; outputs 1 and 2 (by tutti_sym_output) are the scale,
 * f32, and the zero, u8. */
TUTTI_API tutti_sym tutti_dynamic_quantize_linear(tutti_sym x);
#define tutti_dynamic_quantize_linear(...) TUTTI_AT(tutti_dynamic_quantize_linear(__VA_ARGS__))

/* Zeros: none means 0; one number, or one for each row of a and column of b. */
typedef struct tutti_matmul_integer_options {
    size_t struct_size;
    tutti_sym a_zero, b_zero;
} tutti_matmul_integer_options;
/* (a - a_zero) (b - b_zero) as i32, for a [.., m, k] and b [.., k, n] of i8 or u8 each:
 * tutti_matmul_integer(a, b, .a_zero = zero). */
TUTTI_API tutti_sym tutti_matmul_integer_with(tutti_sym a, tutti_sym b,
                                              const tutti_matmul_integer_options *options);
#define tutti_matmul_integer(a, ...)                                                               \
    TUTTI_AT(                                                                                      \
        tutti_matmul_integer_with((a), TUTTI_ONE_(tutti_matmul_integer_options, __VA_ARGS__, )))

typedef struct tutti_conv_integer_options {
    size_t struct_size;
    tutti_sym x_zero;      /* none: 0; padding holds it */
    tutti_sym kernel_zero; /* none: 0; one number, or one for each filter */
    int64_t strides[2];    /* these as tutti_nn_conv2d's */
    int64_t dilations[2];
    const char *padding;
    int64_t pads[4];
    int64_t groups;
} tutti_conv_integer_options;
/* The same for convolutions of x [batch, height, width, channels] with a kernel [height, width,
 * channels / groups, filters]. */
TUTTI_API tutti_sym tutti_conv_integer_with(tutti_sym x, tutti_sym kernel,
                                            const tutti_conv_integer_options *options);
#define tutti_conv_integer(x, ...)                                                                 \
    TUTTI_AT(tutti_conv_integer_with((x), TUTTI_ONE_(tutti_conv_integer_options, __VA_ARGS__, )))

typedef struct tutti_qlinear_matmul_options {
    size_t struct_size;
    tutti_sym a_scale, b_scale; /* must be given: f32, one number, or one for each row, column */
    tutti_sym a_zero, b_zero;   /* none: 0 */
    tutti_sym y_scale;          /* must be given: one number */
    tutti_sym y_zero;           /* none: 0 of a's type */
} tutti_qlinear_matmul_options;
/* Quantised products, quantised again: round(sums * a_scale * b_scale / y_scale) + y_zero in f32,
 * of y_zero's type. */
TUTTI_API tutti_sym tutti_qlinear_matmul_with(tutti_sym a, tutti_sym b,
                                              const tutti_qlinear_matmul_options *options);
#define tutti_qlinear_matmul(a, ...)                                                               \
    TUTTI_AT(                                                                                      \
        tutti_qlinear_matmul_with((a), TUTTI_ONE_(tutti_qlinear_matmul_options, __VA_ARGS__, )))

typedef struct tutti_qlinear_conv_options {
    size_t struct_size;
    tutti_sym x_scale, kernel_scale; /* must be given; the kernel's may be one for each filter */
    tutti_sym x_zero, kernel_zero;   /* none: 0 */
    tutti_sym y_scale;               /* must be given */
    tutti_sym y_zero;                /* none: 0 of x's type */
    tutti_sym bias;                  /* none, or i32 in units of x_scale * kernel_scale */
    int64_t strides[2];              /* these as tutti_nn_conv2d's */
    int64_t dilations[2];
    const char *padding;
    int64_t pads[4];
    int64_t groups;
} tutti_qlinear_conv_options;
/* The same for convolutions. */
TUTTI_API tutti_sym tutti_qlinear_conv_with(tutti_sym x, tutti_sym kernel,
                                            const tutti_qlinear_conv_options *options);
#define tutti_qlinear_conv(x, ...)                                                                 \
    TUTTI_AT(tutti_qlinear_conv_with((x), TUTTI_ONE_(tutti_qlinear_conv_options, __VA_ARGS__, )))

#ifdef __cplusplus
}
#endif
#endif
