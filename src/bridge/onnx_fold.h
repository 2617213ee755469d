/* onnx_fold.h: arithmetic of shapes while the graph is built: of one element of a list. */
#ifndef TUTTI_BRIDGE_ONNX_FOLD_H
#define TUTTI_BRIDGE_ONNX_FOLD_H

#include "bridge/onnx.h"

/* Add, Sub, Mul, Div (towards zero), Min, Max of sizes; false where it is left to the graph. */
bool tutti__onnx_combine(tutti_onnx_import *m, const char *type, const tutti_onnx_element *a,
                         const tutti_onnx_element *b, tutti_onnx_element *ret);
/* Comparisons, And, Or, as far as they follow: sizes are never negative. */
bool tutti__onnx_compare(const char *type, const tutti_onnx_element *a, const tutti_onnx_element *b,
                         tutti_onnx_element *ret);

#endif
