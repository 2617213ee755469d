/* quantized.c: numbers as bytes. */
#include "bridge/onnx.h"

#include <string.h>

#include "bridge/onnx/patterns.h"
#include "bridge/onnx/window.h"
#include "tutti/ops_quantized.h"

static tutti_sym given(tutti_onnx_import *m, int i)
{
    return tutti__onnx_has(m, i) ? tutti__onnx_sym(m, i) : TUTTI_NO_SYM;
}

static void read_quantize(tutti_onnx_import *m)
{
    int64_t block = tutti__onnx_attr_int(m, "block_size", 0);
    int64_t to = tutti__onnx_attr_int(m, "output_dtype", 0);
    tutti_dtype dtype = to ? tutti__onnx_dtype_of(to) : TUTTI_U8;
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1);
    if (!x.node || !scale.node)
        return;
    tutti_sym zero = given(m, 2);
    if ((dtype != TUTTI_U8 && dtype != TUTTI_I8) ||
        (zero.node && tutti_dtype_size(tutti_sym_type(zero).dtype) != 1)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "makes %s",
                              to ? tutti__onnx_element(to) : "more than 8 bits");
        return;
    }
    if (tutti_sym_type(x).dtype == TUTTI_I32)
        x = tutti_cast(x, tutti_sym_type(scale).dtype);
    tutti__onnx_made(m, 0,
                     tutti_quantize_linear(x, scale, zero, tutti__onnx_attr_axis(m, "axis", 1),
                                           .block = block, .dtype = dtype));
}

static void read_dequantize(tutti_onnx_import *m)
{
    int64_t block = tutti__onnx_attr_int(m, "block_size", 0);
    tutti__onnx_made(m, 0,
                     tutti_dequantize_linear(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1),
                                             given(m, 2), tutti__onnx_attr_axis(m, "axis", 1),
                                             .block = block));
}

static void read_dynamic_quantize(tutti_onnx_import *m)
{
    tutti_sym y = tutti_dynamic_quantize_linear(tutti__onnx_sym(m, 0));
    for (int i = 0; y.node && i < 3; i++)
        tutti__onnx_made(m, i, tutti_output_of(y, i));
}

static void read_matmul_integer(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0,
                     tutti_matmul_integer(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1), given(m, 2),
                                          given(m, 3)));
}

/* Scales are f32 here. */
static tutti_sym scale_of(tutti_onnx_import *m, int i)
{
    tutti_sym sym = tutti__onnx_sym(m, i);
    return sym.node && tutti_sym_type(sym).dtype != TUTTI_F32 ? tutti_cast(sym, TUTTI_F32) : sym;
}

static void read_qlinear_matmul(tutti_onnx_import *m)
{
    tutti_quantized_sym a = {tutti__onnx_sym(m, 0), scale_of(m, 1), tutti__onnx_sym(m, 2)};
    tutti_quantized_sym b = {tutti__onnx_sym(m, 3), scale_of(m, 4), tutti__onnx_sym(m, 5)};
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, tutti_qlinear_matmul(a, b, scale_of(m, 6), tutti__onnx_sym(m, 7)));
}

/* The options of a convolution of images, from the node and its kernel. */
static bool read_options(tutti_onnx_import *m, tutti_sym x, int kernel, tutti_conv2d_options *ret)
{
    tutti_onnx_window w;
    int64_t size[3];
    if (tutti__onnx_kernel_type(m, kernel, size) != 4 ||
        !tutti__onnx_read_window(m, x, 2, size, &w)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is not over 2 axes");
        return false;
    }
    *ret = (tutti_conv2d_options){.struct_size = sizeof *ret,
                                  .strides = {w.strides[0], w.strides[1]},
                                  .dilations = {w.dilations[0], w.dilations[1]},
                                  .padding = strcmp(w.padding, "same") == 0 ? "same" : "explicit",
                                  .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]},
                                  .groups = tutti__onnx_attr_int(m, "group", 1)};
    return true;
}

static void read_conv_integer(tutti_onnx_import *m)
{
    tutti_conv2d_options options;
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    if (!x.node || !read_options(m, x, 1, &options))
        return;
    tutti_sym y = (tutti_conv_integer)(x, tutti__onnx_read_kernel(m, 1, 4), given(m, 2),
                                       given(m, 3), &options);
    tutti__onnx_made_as(m, 0, y, true);
}

static void read_qlinear_conv(tutti_onnx_import *m)
{
    tutti_conv2d_options options;
    tutti_quantized_sym x = {tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1),
                             tutti__onnx_sym(m, 2)};
    if (!x.q.node || !read_options(m, x.q, 3, &options))
        return;
    tutti_quantized_sym kernel = {tutti__onnx_read_kernel(m, 3, 4), tutti__onnx_sym(m, 4),
                                  tutti__onnx_sym(m, 5)};
    if (m->status != TUTTI_OK)
        return;
    tutti_sym y = (tutti_qlinear_conv)(x, kernel, tutti__onnx_sym(m, 6), tutti__onnx_sym(m, 7),
                                       given(m, 8), &options);
    tutti__onnx_made_as(m, 0, y, true);
}

const tutti_onnx_op tutti_onnx_quantize_linear = {
    .type = "QuantizeLinear",
    .read = read_quantize,
    .note = "to int8 and uint8",
};

const tutti_onnx_op tutti_onnx_dequantize_linear = {
    .type = "DequantizeLinear",
    .read = read_dequantize,
    .note = "of int8, uint8 and int32",
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
