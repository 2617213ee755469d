/* dtype.h: data types from inside. */
#ifndef TUTTI_TENSOR_DTYPE_H
#define TUTTI_TENSOR_DTYPE_H

#include "tutti/tensor.h"

/* Doubles to 16-bit floats, rounded once to nearest even. */
uint16_t tutti__f64_to_f16(double value);
uint16_t tutti__f64_to_bf16(double value);

/* The same of many, which need not be aligned. */
void tutti__bf16s_to_doubles(int64_t count, const void *data, double *ret);
void tutti__doubles_to_bf16s(int64_t count, const double *values, void *data);

/* Blocks of contiguous elements to and from doubles or 64-bit integers, with the conversions of
 * tutti_tensor_cast. Not for strings (reads give NaN or 0, writes do nothing). `to_ints` takes
 * floats towards zero and saturates. */
void tutti__elements_to_doubles(tutti_dtype dtype, const void *data, int64_t count, double *ret);
void tutti__elements_to_ints(tutti_dtype dtype, const void *data, int64_t count, int64_t *ret);
void tutti__elements_from_doubles(tutti_dtype dtype, void *data, int64_t count,
                                  const double *values);
void tutti__elements_from_ints(tutti_dtype dtype, void *data, int64_t count, const int64_t *values);

#endif
