/* quantize.h: a float as a byte, for files compiled once for each instruction set. */
#ifndef TUTTI_DEVICE_CPU_INT8_QUANTIZE_H
#define TUTTI_DEVICE_CPU_INT8_QUANTIZE_H

#include <math.h>
#include <stdbool.h>

#include "device/cpu/vector.h"

/* round(x / scale) + zero, between the type's bounds; NaN becomes the zero. */
VEC_INLINE uint8_t quantized(float x, float scale, float zero, bool is_signed)
{
    const float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    float value = rintf(x / scale) + zero;
    value = value != value ? zero : value;
    value = value < low ? low : value;
    value = value > high ? high : value;
    return (uint8_t)(int32_t)value;
}

#endif
