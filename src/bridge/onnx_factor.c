/* onnx_factor.c: what products of an imported model multiply under --precision. Weights and all
 * other values stay as the file has them. */
#include "bridge/onnx.h"

static bool rounds(const tutti_onnx_import *m, tutti_sym x)
{
    tutti_dtype compute = m->root->compute;
    return x.node && tutti_sym_type(x).dtype == TUTTI_F32 &&
           (compute == TUTTI_BF16 || compute == TUTTI_F16);
}

tutti_sym tutti__onnx_factor(const tutti_onnx_import *m, tutti_sym x)
{
    return rounds(m, x) ? tutti_cast(x, m->root->compute) : x;
}

tutti_sym tutti__onnx_product(const tutti_onnx_import *m, tutti_sym x, tutti_sym y)
{
    return rounds(m, x) ? tutti_cast(y, TUTTI_F32) : y;
}
