/* list.h: lists of tensors whose length is known only when they run. Such a list is two tensors:
 * the elements of all its tensors, one after the other, [elements], and their shapes, i64 [count,
 * rank]. Its tensors have one element type and one rank; their dimensions may differ. */
#ifndef TUTTI_BRIDGE_ONNX_LIST_H
#define TUTTI_BRIDGE_ONNX_LIST_H

#include "bridge/onnx.h"

/* ---- what bodies take and give ---- */

tutti_onnx_pack tutti__onnx_packed(tutti_onnx_import *m, tutti_onnx_known *known);
tutti_onnx_known tutti__onnx_unpacked(const tutti_onnx_pack *pack);
/* Packs as symbols, one after the other: their number. And from symbols again, in the forms of
 * `like`. */
int tutti__onnx_lay(int count, const tutti_onnx_pack *packs, tutti_sym *ret);
int tutti__onnx_lift(int count, const tutti_onnx_pack *like, const tutti_sym *syms,
                     tutti_onnx_pack *ret);
/* An empty list of whose tensors nothing is known: no symbols. */
bool tutti__onnx_is_bare(const tutti_onnx_pack *pack);
/* An empty list of such tensors. */
tutti_onnx_pack tutti__onnx_empty_list(tutti_graph *graph, tutti_type of);
/* The same list, whose length differs from round to round. */
tutti_onnx_pack tutti__onnx_open_list(const tutti_onnx_pack *list);
/* Leaves open in `of` what the other type does not have; false when they are of different ranks or
 * element types. */
bool tutti__onnx_widen(tutti_type *of, const tutti_type *other);

/* ---- what is done with lists ---- */

/* Places are scalars of i64; negative ones count from the end. */
tutti_sym tutti__onnx_list_length(const tutti_onnx_pack *list);
tutti_sym tutti__onnx_list_at(const tutti_onnx_pack *list, tutti_sym place);
/* With x at a place, or (TUTTI_NO_SYM) behind the others; without what is there. */
tutti_onnx_pack tutti__onnx_list_with(const tutti_onnx_pack *list, tutti_sym x, tutti_sym place);
tutti_onnx_pack tutti__onnx_list_without(const tutti_onnx_pack *list, tutti_sym place);
/* One tensor of all, joined along an axis, or stacked along a new one. Running it fails where
 * dimensions differ that must not. */
tutti_sym tutti__onnx_list_joined(const tutti_onnx_pack *list, int axis, bool stack);
/* Single slices of x along an axis, with or without it. */
tutti_onnx_pack tutti__onnx_list_slices(tutti_sym x, int axis, bool keep);

#endif
