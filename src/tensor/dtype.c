/* dtype.c: the table of data types, and 16-bit floats.
 *
 *   f16   sign 1, exponent 5 (bias 15), fraction 10
 *   bf16  sign 1, exponent 8 (bias 127), fraction 7: the upper half of an f32
 *
 * NaNs keep their sign and the upper bits of their payload and become quiet, as the conversion
 * instructions of x86_64 and aarch64 have it, so that fast kernels give the same bits. */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[TUTTI_DTYPE_END] = {
#define DTYPE_ROW(name_, number, text, bytes) [TUTTI_##name_] = {(text), (bytes)},
    TUTTI_DTYPE_MAP(DTYPE_ROW)
#undef DTYPE_ROW
};

static bool known(tutti_dtype dtype)
{
    return (int)dtype > TUTTI_NO_DTYPE && (int)dtype < TUTTI_DTYPE_END;
}

const char *tutti_dtype_name(tutti_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].name : "?";
}

size_t tutti_dtype_size(tutti_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].size : 0;
}

bool tutti_dtype_is_float(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
}

bool tutti_dtype_is_int(tutti_dtype dtype)
{
    return dtype == TUTTI_I8 || dtype == TUTTI_U8 || dtype == TUTTI_I32 || dtype == TUTTI_I64;
}

tutti_status tutti_dtype_parse(const char *text, tutti_dtype *ret)
{
    if (text == NULL || ret == NULL)
        return tutti_fail(TUTTI_INVALID, text ? "data type: the place of the result is NULL"
                                              : "data type: name is NULL");
    for (int i = TUTTI_NO_DTYPE + 1; i < TUTTI_DTYPE_END; i++) {
        if (strcmp(text, dtypes[i].name) == 0) {
            *ret = (tutti_dtype)i;
            return TUTTI_OK;
        }
    }
#define DTYPE_LISTED(name, number, listed, size) " " listed
    return tutti_fail(TUTTI_INVALID, "data type '%.32s' is not known; use one of:%s", text,
                      TUTTI_DTYPE_MAP(DTYPE_LISTED));
#undef DTYPE_LISTED
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float tutti_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | (fraction ? 0x400000u | fraction << 13 : 0));
    if (exponent == 0) { /* zero and subnormals: fraction * 2^-24, exact */
        float magnitude = (float)fraction * 0x1p-24f;
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

uint16_t tutti_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    uint32_t sign = (bits >> 16) & 0x8000u;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x47800000u) /* 2^16 and up, infinity too */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: a multiple of 2^-24 */
        /* Adding 1/2 leaves 24 - 1 fraction bits down to 2^-24, so the addition rounds. */
        uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | rounded);
    }
    /* Round at bit 13; a carry runs into the exponent, up to infinity. */
    uint32_t rounded = magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | rounded >> 13);
}

/* Inside this file: what is exported is not made part of a loop. */
static inline uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float tutti_bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t tutti_f32_to_bf16(float value)
{
    return to_bf16(value);
}

/* Round to odd: truncate, and set the last bit when anything was lost. An f32 so rounded has more
 * than two bits beyond a 16-bit float's fraction, so that rounding it again to nearest even gives
 * what rounding the double once would give. Without branches: which way a sum is rounded is no more
 * foreseeable than a coin. */
static inline float round_to_odd(double value)
{
    float rounded = (float)value;
    double back = (double)rounded;
    uint32_t lost = (uint32_t)((back != value) & (value == value));
    uint32_t away = (uint32_t)(fabs(back) > fabs(value));
    return float_of((bits_of(rounded) - (lost & away)) | lost);
}

uint16_t tutti__f64_to_f16(double value)
{
    return tutti_f32_to_f16(round_to_odd(value));
}

uint16_t tutti__f64_to_bf16(double value)
{
    return to_bf16(round_to_odd(value));
}

void tutti__bf16s_to_doubles(int64_t count, const void *data, double *ret)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)data + 2 * i, 2);
        ret[i] = (double)float_of((uint32_t)bits << 16);
    }
}

void tutti__doubles_to_bf16s(int64_t count, const double *values, void *data)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits = to_bf16(round_to_odd(values[i]));
        memcpy((char *)data + 2 * i, &bits, 2);
    }
}
