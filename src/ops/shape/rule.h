/* rule.h: what the shape, reduction and linear operators share: checks of shape rules, lists of
 * ways to cut, and the loops of reference kernels. */
#ifndef TUTTI_OPS_SHAPE_RULE_H
#define TUTTI_OPS_SHAPE_RULE_H

#include <string.h>

#include "ops/build.h"

/* Attributes. --------------------------------------------------------------------------------- */

/* A list attribute of a rule's node or of a call; evaluates to its length. */
#define RULE_INTS(node, name, ret) tutti_attr_ints((node)->attrs, (node)->attr_count, name, ret)
/* Attribute `name`, to be handed on to another node. */
#define RULE_ATTR(node, name) (*tutti_attr_find((node)->attrs, (node)->attr_count, name))

/* A valid axis made non-negative. */
static inline int tutti__axis_of(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* Shape rules. -------------------------------------------------------------------------------- */

/* Output `index` gets this type. Too many axes, or more bytes than 63 bits hold, are errors. */
tutti_status tutti__shape_output(tutti_infer *node, int index, tutti_dtype dtype, int rank,
                                 const int64_t *dims);

/* Whether a type has numbers or bools to be filled with. */
tutti_status tutti__fill_dtype(const tutti_infer *node, int64_t dtype);
/* What is asked before something is filled with a number: TUTTI_INVALID when an integer type has it
 * not. */
tutti_status tutti__fill_check(tutti_dtype dtype, double value);
/* The same of an attribute, in a shape rule. */
tutti_status tutti__fill_rule(const tutti_infer *node, tutti_dtype dtype, const char *attr);

/* Two dimensions that must agree: the known one. False when they do not. */
static inline bool tutti__shape_merge(int64_t a, int64_t b, int64_t *ret)
{
    *ret = a == TUTTI_ANY ? b : a;
    return a == b || a == TUTTI_ANY || b == TUTTI_ANY;
}

/* The shape that an operator takes from its last input, number `input`, or, when that was left out,
 * from attribute dims. Of the type only the shape counts. */
tutti_status tutti__shape_like(const tutti_infer *node, int input, tutti_type *ret_like);

/* Input `i` holds floats; floats or integers; i32 or i64. */
tutti_status tutti__shape_floats(const tutti_infer *node, int i);
tutti_status tutti__shape_numbers(const tutti_infer *node, int i);
tutti_status tutti__shape_indices(const tutti_infer *node, int i);
/* Input `i` has input 0's element type. */
tutti_status tutti__shape_same_dtype(const tutti_infer *node, int i);

/* Sets a bit for each axis in attribute `name`; an empty list is all axes. Axes out of range or
 * named twice are errors. */
tutti_status tutti__shape_axes(const tutti_infer *node, const char *name, int rank,
                               uint32_t *ret_mask);
/* The same for a node that was checked. */
uint32_t tutti__axes_mask(int rank, const tutti_attr *attrs, int attr_count, const char *name);

/* Elements of a type as a double; unknown dimensions count as 1. */
double tutti__shape_elements(const tutti_type *type);

/* Split rules. -------------------------------------------------------------------------------- */

typedef struct tutti_cuts {
    int capacity, count;
    tutti_split *ret;
    tutti_split spare; /* written to when there is no more room */
} tutti_cuts;

/* One more way; every slot starts as TUTTI_WHOLE. */
tutti_split *tutti__cut(tutti_cuts *cuts);
/* In a way of an operator that uses tutti__shape_like: its shape is cut along `axis`. */
void tutti__cut_like(const tutti_infer *node, tutti_split *way, int input, int axis);
/* One more way of a node with one input and one output. */
void tutti__cut_pair(tutti_cuts *cuts, int input_axis, int output_axis);
/* Every axis of output 0 but `except`, cut alike in all inputs and outputs of the same rank. */
int tutti__split_other_axes(const tutti_infer *node, int except, int capacity, tutti_split *ret);
/* Axes of two shapes of the same elements that mean the same: calls `found` for each pair. */
void tutti__split_reshaped(const tutti_type *from, const tutti_type *to, void *context,
                           void (*found)(void *context, int from_axis, int to_axis));

/* Kernels. ------------------------------------------------------------------------------------ */

/* A tensor without elements may still have dimensions whose product fits no integer. */

/* The product of dimensions: 0 when one is 0, else INT64_MAX when it does not fit. */
int64_t tutti__dims_product(int rank, const int64_t *dims);

/* A contiguous view seen as [outer, size, inner] around one axis; outer and inner are 0 when it has
 * no elements. */
typedef struct tutti_blocks {
    int64_t outer, size, inner;
} tutti_blocks;
tutti_blocks tutti__blocks(const tutti_view *view, int axis);

/* Row-major strides in elements; all 0 when there are none. */
void tutti__strides_of(int rank, const int64_t *dims, int64_t *ret_strides);

/* Of a view: output 0 gets the bytes of input 0. */
tutti_status tutti__reference_view(const tutti_kernel_call *call);
/* Every element gets the value, as far as its type can hold it; strings become empty. */
void tutti__fill_view(const tutti_view *view, double value);

#endif
