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

/* (a - a_zero) (b - b_zero) as i32, for a [.., m, k] and b [.., k, n] of i8 or u8 each. Zeros are
 * TUTTI_NO_SYM (0), one number, or one for each row of a and column of b. */
TUTTI_API tutti_sym tutti_matmul_integer(tutti_sym a, tutti_sym b, tutti_sym a_zero,
                                         tutti_sym b_zero);
#define tutti_matmul_integer(...) TUTTI_AT(tutti_matmul_integer(__VA_ARGS__))
/* The same for convolutions of x [batch, height, width, channels] with a kernel [height, width,
 * channels / groups, filters], the options those of tutti_nn_conv2d; padding holds x's zero; the
 * kernel may have a zero for each filter. */
TUTTI_API tutti_sym tutti_conv_integer_with(tutti_sym x, tutti_sym kernel, tutti_sym x_zero,
                                            tutti_sym kernel_zero,
                                            const tutti_conv2d_options *options);
#define tutti_conv_integer(x, kernel, x_zero, kernel_zero, ...)                                    \
    TUTTI_AT(tutti_conv_integer_with((x), (kernel), (x_zero), (kernel_zero),                       \
                                     TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

typedef struct tutti_quantized_sym {
    tutti_sym q, scale, zero;
} tutti_quantized_sym;
/* Quantised products, quantised again: round(sums * a.scale * b.scale / y_scale) + y_zero in f32,
 * of y_zero's type. b may have a scale and zero for each column, a for each row. */
TUTTI_API tutti_sym tutti_qlinear_matmul(tutti_quantized_sym a, tutti_quantized_sym b,
                                         tutti_sym y_scale, tutti_sym y_zero);
#define tutti_qlinear_matmul(...) TUTTI_AT(tutti_qlinear_matmul(__VA_ARGS__))
/* The same for convolutions; bias, i32 in units of x.scale * kernel.scale, may be TUTTI_NO_SYM. */
TUTTI_API tutti_sym tutti_qlinear_conv_with(tutti_quantized_sym x, tutti_quantized_sym kernel,
                                            tutti_sym y_scale, tutti_sym y_zero, tutti_sym bias,
                                            const tutti_conv2d_options *options);
#define tutti_qlinear_conv(x, kernel, y_scale, y_zero, bias, ...)                                  \
    TUTTI_AT(tutti_qlinear_conv_with((x), (kernel), (y_scale), (y_zero), (bias),                   \
                                     TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

#ifdef __cplusplus
}
#endif
#endif
