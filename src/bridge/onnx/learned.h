/* learned.h: what the operators of ai.onnx.ml, which scikit-learn's converters write, share. */
#ifndef TUTTI_BRIDGE_ONNX_LEARNED_H
#define TUTTI_BRIDGE_ONNX_LEARNED_H

#include "bridge/onnx.h"

/* A constant of f32 from a list attribute; TUTTI_NO_SYM without one. The product of the dimensions
 * must be its length, or there is a failure. */
tutti_sym tutti__onnx_floats(tutti_onnx_import *m, const char *name, int rank, const int64_t *dims);
size_t tutti__onnx_float_count(const tutti_onnx_import *m, const char *name);
/* The attribute classlabels_…, of either kind, by place; their number in *ret_count. */
tutti_sym tutti__onnx_labels(tutti_onnx_import *m, size_t *ret_count);
/* Scores [rows, classes] after attribute post_transform. */
tutti_sym tutti__onnx_transformed(tutti_onnx_import *m, tutti_sym scores);
/* Output 0: the label (classlabels_…) of the largest score, output 1: the scores transformed. One
 * column of scores stands for the second of two classes. */
void tutti__onnx_classified(tutti_onnx_import *m, tutti_sym scores);
/* x as f32. */
tutti_sym tutti__onnx_features(tutti_onnx_import *m, int i);

#endif
