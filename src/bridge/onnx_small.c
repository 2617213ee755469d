/* onnx_small.c: elements of less than a byte, and floats of a byte or less. Integers of 2 and 4
 * bits are held in bytes, floats in f32: every value is exact. */
#include "bridge/onnx_small.h"

#include <math.h>

#include "base/status.h"

static const tutti_onnx_small smalls[] = {
    /* number, held as, bits, signed, exponent bits, mantissa bits, bias, largest, infinite */
    {17, TUTTI_F32, 8, true, 4, 3, 7, 448, false},        /* float8e4m3fn */
    {18, TUTTI_F32, 8, true, 4, 3, 8, 240, false},        /* float8e4m3fnuz */
    {19, TUTTI_F32, 8, true, 5, 2, 15, 57344, true},      /* float8e5m2 */
    {20, TUTTI_F32, 8, true, 5, 2, 16, 57344, false},     /* float8e5m2fnuz */
    {21, TUTTI_U8, 4, false, 0, 0, 0, 15, false},         /* uint4 */
    {22, TUTTI_I8, 4, true, 0, 0, 0, 7, false},           /* int4 */
    {23, TUTTI_F32, 4, true, 2, 1, 1, 6, false},          /* float4e2m1 */
    {24, TUTTI_F32, 8, false, 8, 0, 127, 0x1p127, false}, /* float8e8m0 */
    {25, TUTTI_U8, 2, false, 0, 0, 0, 3, false},          /* uint2 */
    {26, TUTTI_I8, 2, true, 0, 0, 0, 1, false},           /* int2 */
};

const tutti_onnx_small *tutti__onnx_small(int64_t number)
{
    for (size_t i = 0; i < TUTTI_COUNT(smalls); i++)
        if (smalls[i].number == number)
            return &smalls[i];
    return NULL;
}

size_t tutti__onnx_packed_bytes(const tutti_onnx_small *s, int64_t count)
{
    size_t each = 8 / (size_t)s->bits; /* elements of a byte */
    return ((size_t)count + each - 1) / each;
}

/* NaN is 0x80 in the formats without a negative zero, all ones in the others; with infinities the
 * whole last exponent is not finite. */
static double float_of(const tutti_onnx_small *s, unsigned bits)
{
    bool unsigned_zero = s->number == 18 || s->number == 20;
    unsigned exponents = (1U << s->exponent) - 1, fraction = bits & ((1U << s->mantissa) - 1);
    unsigned exponent = bits >> s->mantissa & exponents;
    bool negative = s->is_signed && bits >> (s->bits - 1);
    double value;
    if (s->number == 24)
        return bits == 255 ? NAN : ldexp(1, (int)bits - s->bias);
    if (unsigned_zero && bits == 0x80)
        return NAN;
    if (s->infinite && exponent == exponents)
        return fraction ? NAN : negative ? -INFINITY : INFINITY;
    if (s->number == 17 && exponent == exponents && fraction == 7)
        return NAN;
    if (exponent == 0)
        value = ldexp((double)fraction, 1 - s->bias - s->mantissa);
    else
        value =
            ldexp((double)(fraction + (1U << s->mantissa)), (int)exponent - s->bias - s->mantissa);
    return negative ? -value : value;
}

void tutti__onnx_unpack(const tutti_onnx_small *s, const uint8_t *bytes, tutti_tensor *to)
{
    int64_t each = 8 / s->bits, count = tutti_tensor_count(to);
    unsigned mask = (1U << s->bits) - 1, top = 1U << (s->bits - 1);
    for (int64_t i = 0; i < count; i++) {
        unsigned bits = (unsigned)bytes[i / each] >> (unsigned)(i % each * s->bits) & mask;
        if (s->exponent > 0)
            tutti_tensor_set(to, i, float_of(s, bits));
        else
            tutti_tensor_set_int(
                to, i, s->is_signed && (bits & top) ? (int64_t)bits - mask - 1 : (int64_t)bits);
    }
}
