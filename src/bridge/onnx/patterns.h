/* patterns.h: several nodes of ours that are one of ONNX's. Each function looks at the present
 * node, writes the whole when it is the end of such a thing, and says whether it was. */
#ifndef TUTTI_BRIDGE_ONNX_PATTERNS_H
#define TUTTI_BRIDGE_ONNX_PATTERNS_H

#include "bridge/onnx.h"

/* conv2d(x, kernel) + bias: the Conv that was written gets the bias. */
bool tutti__onnx_write_bias(tutti_onnx_export *x);
/* x * f + (offset - mean * f), f = scale * rsqrt(variance + epsilon): BatchNormalization. */
bool tutti__onnx_write_batch_norm(tutti_onnx_export *x);

/* Reading: a kernel in our order; its rank (0 after a failure) and the sizes of its window. */
tutti_sym tutti__onnx_read_kernel(tutti_onnx_import *m, int i, int rank);
/* Input i, a convolution's kernel over 2 or 3 axes, in ONNX's order: turned here when it is a
 * weight, else in the graph. */
const char *tutti__onnx_write_kernel(tutti_onnx_export *x, int i);
int tutti__onnx_kernel_type(tutti_onnx_import *m, int i, int64_t size[3]);

#endif
