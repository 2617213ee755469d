/* quantized.c: numbers as bytes. */
#include "bridge/onnx.h"

#include <math.h>
#include <string.h>

#include "bridge/onnx/patterns.h"
#include "bridge/onnx/window.h"
#include "bridge/onnx_small.h"
#include "tutti/ops_quantized.h"

static tutti_sym given(tutti_onnx_import *m, int i)
{
    return tutti__onnx_has(m, i) ? tutti__onnx_sym(m, i) : TUTTI_NO_SYM;
}

/* Input 2, the zero: a single one in the shape of its single scale. */
static tutti_sym zero_of(tutti_onnx_import *m, tutti_sym scale)
{
    tutti_sym zero = given(m, 2);
    tutti_type z = zero.node ? tutti_sym_type(zero) : (tutti_type){0}, s = tutti_sym_type(scale);
    if (!zero.node || z.rank == s.rank || tutti_type_count(&z) != 1 || tutti_type_count(&s) != 1)
        return zero;
    return tutti_reshape_like(zero, scale);
}

/* A scale or zero that fits x: one for all, one for each place along an axis, or one for each block
 * of places along it. */
static tutti_sym spread(tutti_sym s, tutti_sym x, int axis, int64_t block)
{
    tutti_type type = tutti_sym_type(x), own = tutti_sym_type(s);
    int64_t dims[TUTTI_MAX_RANK + 1];
    axis += axis < 0 ? type.rank : 0;
    if (own.rank == 0 || axis < 0 || axis >= type.rank || (own.rank == 1 && own.dims[0] == 1))
        return own.rank == 1 ? tutti_reshape(s) : s;
    if (own.rank == 1) {
        for (int i = 0; i < type.rank; i++)
            dims[i] = i == axis ? own.dims[0] : 1;
        return (tutti_reshape)(s, type.rank, dims);
    }
    if (block < 1 || own.rank != type.rank || type.rank >= TUTTI_MAX_RANK)
        return s;
    for (int i = 0; i <= own.rank; i++)
        dims[i] = i == axis + 1 ? block : -1;
    tutti_sym wide = (tutti_broadcast_to)(tutti_expand_dims(s, axis + 1), own.rank + 1, dims);
    for (int i = 0; i < own.rank; i++)
        dims[i] = i == axis && own.dims[i] >= 0 ? own.dims[i] * block : own.dims[i];
    wide = (tutti_reshape)(wide, own.rank, dims);
    return type.dims[axis] < 0 ? wide : tutti_slice_axis(wide, axis, 0, type.dims[axis]);
}

/* To what has not 8 bits: x / scale rounded to the numbers of the type. */
static tutti_sym quantized_to(tutti_onnx_import *m, tutti_sym x, tutti_sym scale, tutti_sym zero,
                              int64_t to)
{
    int axis = tutti__onnx_attr_axis(m, "axis", 1);
    int64_t block = tutti__onnx_attr_int(m, "block_size", 0);
    const tutti_onnx_small *small = tutti__onnx_small(to);
    tutti_sym y = tutti_div(x, spread(scale, x, axis, block));
    if (small && small->exponent > 0)
        return tutti__onnx_to_element(m, y, to, tutti__onnx_attr_int(m, "saturate", 1) != 0);
    double bits = small ? small->bits : 8 * (double)tutti__onnx_stored_bytes(to);
    bool is_signed = small ? small->is_signed : to == 5;
    double least = is_signed ? -pow(2, bits - 1) : 0;
    y = tutti_cast(tutti_round(y), TUTTI_F64);
    if (zero.node)
        y = tutti_add(y, tutti_cast(spread(zero, x, axis, block), TUTTI_F64));
    return tutti_cast(tutti_clip(y, least, least + pow(2, bits) - 1), tutti__onnx_dtype_of(to));
}

static void read_quantize(tutti_onnx_import *m)
{
    int64_t to = tutti__onnx_has(m, 2) ? tutti__onnx_element_of(m, 2) : 0;
    to = to ? to : tutti__onnx_attr_int(m, "output_dtype", 0);
    tutti_dtype dtype = to ? tutti__onnx_dtype_of(to) : TUTTI_U8;
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1);
    if (!x.node || !scale.node)
        return;
    tutti_sym zero = zero_of(m, scale);
    if (tutti_sym_type(x).dtype == TUTTI_I32)
        x = tutti_cast(x, tutti_sym_type(scale).dtype);
    bool wide = zero.node && tutti_dtype_size(tutti_sym_type(zero).dtype) != 1;
    if (tutti__onnx_small(to) || to == 4 || to == 5) {
        tutti__onnx_made(m, 0, quantized_to(m, x, scale, zero, to));
        tutti__onnx_is_of(m, 0, to);
    } else if ((dtype != TUTTI_U8 && dtype != TUTTI_I8) || wide)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "makes %s",
                              to ? tutti__onnx_element(to) : "more than 8 bits");
    else
        tutti__onnx_made(m, 0,
                         tutti_quantize_linear(
                             x, scale, .zero = zero, .axis = tutti__onnx_attr_axis(m, "axis", 1),
                             .block = tutti__onnx_attr_int(m, "block_size", 0), .dtype = dtype));
}

static void read_dequantize(tutti_onnx_import *m)
{
    int64_t block = tutti__onnx_attr_int(m, "block_size", 0);
    int axis = tutti__onnx_attr_axis(m, "axis", 1);
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1), y;
    if (!x.node || !scale.node)
        return;
    if (tutti_dtype_is_float(tutti_sym_type(x).dtype)) { /* small floats; their zero is 0 */
        tutti_dtype dtype = tutti_sym_type(scale).dtype;
        y = tutti_mul(tutti_cast(x, dtype), spread(scale, x, axis, block));
    } else
        y = tutti_dequantize_linear(x, scale, .zero = zero_of(m, scale), .axis = axis,
                                    .block = block);
    tutti__onnx_made(m, 0, y);
}

static void read_dynamic_quantize(tutti_onnx_import *m)
{
    tutti_sym y = tutti_dynamic_quantize_linear(tutti__onnx_sym(m, 0));
    for (int i = 0; y.node && i < 3; i++)
        tutti__onnx_made(m, i, tutti_sym_output(y, i));
}

static void read_matmul_integer(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0,
                     tutti_matmul_integer(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1),
                                          .a_zero = given(m, 2), .b_zero = given(m, 3)));
}

/* Scales are f32 here. */
static tutti_sym scale_of(tutti_onnx_import *m, int i)
{
    tutti_sym sym = tutti__onnx_sym(m, i);
    return sym.node && tutti_sym_type(sym).dtype != TUTTI_F32 ? tutti_cast(sym, TUTTI_F32) : sym;
}

static void read_qlinear_matmul(tutti_onnx_import *m)
{
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 3);
    tutti_qlinear_matmul_options o = {.struct_size = sizeof o,
                                      .a_scale = scale_of(m, 1),
                                      .a_zero = tutti__onnx_sym(m, 2),
                                      .b_scale = scale_of(m, 4),
                                      .b_zero = tutti__onnx_sym(m, 5),
                                      .y_scale = scale_of(m, 6),
                                      .y_zero = tutti__onnx_sym(m, 7)};
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, tutti_qlinear_matmul_with(a, b, &o));
}

/* The options of a convolution of images, from the node and its kernel. */
static bool read_options(tutti_onnx_import *m, tutti_sym x, int kernel,
                         tutti_conv_integer_options *ret)
{
    tutti_onnx_window w;
    int64_t size[3], groups;
    if (tutti__onnx_kernel_type(m, kernel, size) != 4 ||
        !tutti__onnx_read_window(m, x, 2, size, &w)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is not over 2 axes");
        return false;
    }
    if (!tutti__onnx_attr_within(m, "group", 1, 1, INT32_MAX, &groups))
        return false;
    *ret = (tutti_conv_integer_options){.struct_size = sizeof *ret,
                                        .strides = {w.strides[0], w.strides[1]},
                                        .dilations = {w.dilations[0], w.dilations[1]},
                                        .padding =
                                            strcmp(w.padding, "same") == 0 ? "same" : "explicit",
                                        .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]},
                                        .groups = groups};
    return true;
}

static void read_conv_integer(tutti_onnx_import *m)
{
    tutti_conv_integer_options options;
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    if (!x.node || !read_options(m, x, 1, &options))
        return;
    options.x_zero = given(m, 2);
    options.kernel_zero = given(m, 3);
    tutti_sym y = tutti_conv_integer_with(x, tutti__onnx_read_kernel(m, 1, 4), &options);
    tutti__onnx_made_as(m, 0, y, true);
}

static void read_qlinear_conv(tutti_onnx_import *m)
{
    tutti_conv_integer_options window;
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    if (!x.node || !read_options(m, x, 3, &window))
        return;
    tutti_sym kernel = tutti__onnx_read_kernel(m, 3, 4);
    tutti_qlinear_conv_options options = {.struct_size = sizeof options,
                                          .x_scale = tutti__onnx_sym(m, 1),
                                          .x_zero = tutti__onnx_sym(m, 2),
                                          .kernel_scale = tutti__onnx_sym(m, 4),
                                          .kernel_zero = tutti__onnx_sym(m, 5),
                                          .y_scale = tutti__onnx_sym(m, 6),
                                          .y_zero = tutti__onnx_sym(m, 7),
                                          .bias = given(m, 8),
                                          .padding = window.padding,
                                          .groups = window.groups};
    memcpy(options.strides, window.strides, sizeof options.strides);
    memcpy(options.dilations, window.dilations, sizeof options.dilations);
    memcpy(options.pads, window.pads, sizeof options.pads);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym y = tutti_qlinear_conv_with(x, kernel, &options);
    tutti__onnx_made_as(m, 0, y, true);
}

const tutti_onnx_op tutti_onnx_quantize_linear = {
    .type = "QuantizeLinear",
    .read = read_quantize,
};

const tutti_onnx_op tutti_onnx_dequantize_linear = {
    .type = "DequantizeLinear",
    .read = read_dequantize,
};

const tutti_onnx_op tutti_onnx_dynamic_quantize_linear = {
    .type = "DynamicQuantizeLinear",
    .read = read_dynamic_quantize,
};

const tutti_onnx_op tutti_onnx_matmul_integer = {
    .type = "MatMulInteger",
    .read = read_matmul_integer,
};

const tutti_onnx_op tutti_onnx_qlinear_matmul = {
    .type = "QLinearMatMul",
    .read = read_qlinear_matmul,
};

const tutti_onnx_op tutti_onnx_conv_integer = {
    .type = "ConvInteger",
    .read = read_conv_integer,
    .note = "over 2 axes",
};

const tutti_onnx_op tutti_onnx_qlinear_conv = {
    .type = "QLinearConv",
    .read = read_qlinear_conv,
    .note = "over 2 axes",
};

const tutti_onnx_op tutti_onnx_quantize_linear_microsoft = {
    .type = "QuantizeLinear",
    .domain = "com.microsoft",
    .read = read_quantize,
};

const tutti_onnx_op tutti_onnx_dequantize_linear_microsoft = {
    .type = "DequantizeLinear",
    .domain = "com.microsoft",
    .read = read_dequantize,
};
