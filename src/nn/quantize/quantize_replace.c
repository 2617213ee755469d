/* quantize_replace.c: one product or convolution in integers:
 *   x ~ (xq - zero) sx,  xq u8;   w[:, f] ~ wq[:, f] sw[f],  wq i8;
 *   y[:, f] ~ sx sw[f] sum of (xq - zero) wq[:, f] */
#include <math.h>
#include <string.h>

#include "nn/quantize/quantize.h"
#include "ops/build.h"

/* Bytes and scales of a weight whose last axis is filters: the largest magnitude becomes 127. */
static tutti_status quantize_weight(tutti_tensor *weight, tutti_tensor **ret_bytes,
                                    tutti_tensor **ret_scales)
{
    const tutti_type *type = tutti_tensor_type(weight);
    int64_t filters = type->dims[type->rank - 1], count = tutti_tensor_count(weight);
    const float *w = tutti_tensor_data(weight);
    tutti_tensor *bytes, *scales;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &filters, &scales));
    tutti_status status = tutti_tensor_create(TUTTI_I8, type->rank, type->dims, &bytes);
    if (status != TUTTI_OK) {
        tutti_tensor_release(scales);
        return status;
    }
    float *scale = tutti_tensor_data(scales);
    int8_t *q = tutti_tensor_data(bytes);
    for (int64_t i = 0; i < count; i++)
        if (fabsf(w[i]) > scale[i % filters])
            scale[i % filters] = fabsf(w[i]);
    for (int64_t f = 0; f < filters; f++)
        scale[f] = scale[f] > 0 && isfinite(scale[f]) ? scale[f] / 127 : 1;
    for (int64_t i = 0; i < count; i++) {
        float value = rintf(w[i] / scale[i % filters]);
        q[i] = (int8_t)(!(value > -127) ? -127 : value < 127 ? value : 127);
    }
    *ret_bytes = bytes;
    *ret_scales = scales;
    return TUTTI_OK;
}

static tutti_sym constant(tutti_graph *graph, tutti_dtype dtype, double value)
{
    return tutti_scalar(graph, dtype, value);
}

static tutti_sym product(const tutti_node *node, tutti_sym x, tutti_sym zero, tutti_sym weight)
{
    static const char *const shared[] = {"strides", "dilations", "padding", "pads", "groups"};
    tutti_sym inputs[] = {x, weight, zero};
    tutti_attr attrs[TUTTI_COUNT(shared)];
    bool matmul = tutti__is(node, "matmul");
    for (size_t i = 0; !matmul && i < TUTTI_COUNT(shared); i++)
        attrs[i] = *tutti_attr_find(node->attrs, node->attr_count, shared[i]);
    return tutti_apply_op(tutti_sym_graph(x), matmul ? "matmul_integer" : "conv_integer", 3, inputs,
                          matmul ? 0 : (int)TUTTI_COUNT(shared), attrs);
}

tutti_status tutti__quantize_replace(const tutti_quantized_node *node, tutti_sym x,
                                     tutti_tensor *weight, tutti_sym *ret)
{
    tutti_graph *graph = tutti_sym_graph(x);
    tutti_tensor *bytes, *scales;
    float scale = node->high > node->low ? (node->high - node->low) / 255 : 1;
    float zero = fminf(fmaxf(rintf(-node->low / scale), 0), 255);
    TUTTI_TRY(quantize_weight(weight, &bytes, &scales));
    float *factors = tutti_tensor_data(scales);
    for (int64_t f = 0; f < tutti_tensor_count(scales); f++)
        factors[f] *= scale;
    tutti_sym zeros = constant(graph, TUTTI_U8, zero);
    tutti_sym q =
        tutti_quantize_linear(x, constant(graph, TUTTI_F32, scale), .zero = zeros, .axis = -1);
    tutti_sym sums = product(node->node, q, zeros, tutti_constant(graph, bytes));
    /* Element-wise, so that it joins the bias and the activation behind it in one pass. */
    *ret = tutti_mul(tutti_cast(sums, TUTTI_F32), tutti_constant(graph, scales));
    tutti_tensor_release(bytes);
    tutti_tensor_release(scales);
    return TUTTI_OK;
}
