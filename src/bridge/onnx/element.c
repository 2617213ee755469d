/* element.c: element types of ONNX's that stand in wider ones of ours: what they make of a value.
 */
#include "bridge/onnx.h"
#include "ops/build.h"

#include <math.h>

#include "bridge/onnx_small.h"

void tutti__onnx_is_of(tutti_onnx_import *m, int i, int64_t number)
{
    tutti_onnx_known *known =
        tutti__onnx_names(m, i) ? tutti__onnx_find(m, m->node->outputs.items[i]) : NULL;
    if (known)
        known->element = number;
}

int64_t tutti__onnx_element_of(tutti_onnx_import *m, int i)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, i);
    return known ? known->element : 0;
}

/* Whole numbers of so many bits, in i64: the others wrap round. */
static tutti_sym wrapped(tutti_sym x, int bits, bool is_signed)
{
    tutti_graph *graph = tutti_sym_graph(x);
    tutti_sym low = tutti_bitwise_and(tutti_cast(x, TUTTI_I64),
                                      tutti_scalar(graph, TUTTI_I64, ldexp(1, bits) - 1));
    tutti_sym half = tutti_scalar(graph, TUTTI_I64, ldexp(1, bits - 1));
    return is_signed ? tutti_sub(tutti_bitwise_xor(low, half), half) : low;
}

/* Powers of two alone, without zero, sign or infinity: the next one up, down, or the nearest. */
static tutti_sym power_of_two(tutti_onnx_import *m, tutti_sym x)
{
    const char *mode = tutti__onnx_attr_string(m, "round_mode", "up");
    tutti_round_float_options o = {sizeof o, 0, -127, 0x1p127, true, false};
    tutti_sym wide = tutti_cast(x, TUTTI_F64);
    tutti_sym low = tutti_clip(wide, 0x1p-127, 0x1p127), y = tutti_round_float_with(low, &o);
    if (mode[0] == 'u')
        y = tutti_where(tutti_less(y, low), tutti_mul(y, 2), y);
    if (mode[0] == 'd')
        y = tutti_where(tutti_greater(y, low), tutti_mul(y, 0.5), y);
    y = tutti_cast(y, TUTTI_F32);
    return tutti_where(tutti_is_nan(wide), NAN, y);
}

tutti_sym tutti__onnx_to_element(tutti_onnx_import *m, tutti_sym x, int64_t number, bool saturate)
{
    const tutti_onnx_small *small = tutti__onnx_small(number);
    tutti_dtype dtype = tutti__onnx_dtype_of(number);
    if (number == 24)
        return power_of_two(m, x);
    if (small && small->exponent > 0) {
        bool unsigned_zero = number == 18 || number == 20;
        tutti_round_float_options o = {sizeof o,    small->mantissa,          1 - small->bias,
                                       small->most, saturate || number == 23, small->infinite};
        x = tutti_sym_type(x).dtype == TUTTI_F32 ? x : tutti_cast(x, TUTTI_F32);
        tutti_sym y = tutti_round_float_with(x, &o), zero = tutti__scalar_like(y, 0);
        return unsigned_zero ? tutti_where(tutti_equal(y, zero), zero, y) : y;
    }
    int bits = small ? small->bits : 8 * (int)tutti__onnx_stored_bytes(number);
    bool is_signed = small ? small->is_signed : number == 5;
    if (number == 13) /* all of what i64 has */
        return tutti_cast(x, TUTTI_I64);
    if (tutti_dtype_is_float(tutti_sym_type(x).dtype) && !small)
        return tutti_cast(x, dtype);
    return tutti_cast(wrapped(x, bits, is_signed), dtype);
}
