/* onnx_small.h: element types of less than a byte, and floats of a byte or less. */
#ifndef TUTTI_BRIDGE_ONNX_SMALL_H
#define TUTTI_BRIDGE_ONNX_SMALL_H

#include "tutti/tensor.h"

typedef struct tutti_onnx_small {
    int64_t number;   /* TensorProto.DataType */
    tutti_dtype held; /* our type that holds its values */
    int bits;
    bool is_signed;
    int exponent, mantissa, bias; /* of floats: bits of both; 0 for integers */
    double most;                  /* the largest finite value */
    bool infinite;                /* has infinities: what is too large is one; else NaN */
} tutti_onnx_small;

/* NULL for a type that is not small. */
const tutti_onnx_small *tutti__onnx_small(int64_t number);
/* Bytes that so many elements take in a file: the first in the lowest bits. */
size_t tutti__onnx_packed_bytes(const tutti_onnx_small *s, int64_t count);
/* All elements of `to`, from their bytes. */
void tutti__onnx_unpack(const tutti_onnx_small *s, const uint8_t *bytes, tutti_tensor *to);

#endif
