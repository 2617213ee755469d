/* build.h: short ways to write builders and gradient rules in ops/. */
#ifndef TUTTI_OPS_BUILD_H
#define TUTTI_OPS_BUILD_H

#include <string.h>

#include "base/status.h"
#include "graph/graph.h"
#include "tutti/ops.h"

/* Builders for operators without attributes. A poison input gives poison. */
tutti_sym tutti__unary(const tutti_op *op, tutti_sym x);
tutti_sym tutti__binary(const tutti_op *op, tutti_sym a, tutti_sym b);
/* With attributes. The graph is inputs[0]'s. */
tutti_sym tutti__nary(const tutti_op *op, int input_count, const tutti_sym *inputs, int attr_count,
                      const tutti_attr *attrs);
#define TUTTI_NARY(op, inputs, ...)                                                                \
    tutti__nary(op, (int)TUTTI_COUNT(inputs), inputs,                                              \
                (int)(sizeof((tutti_attr[]){__VA_ARGS__}) / sizeof(tutti_attr)),                   \
                (tutti_attr[]){__VA_ARGS__})

/* A constant of x's element type and no dimensions, which broadcasts against anything. For an
 * integer x the number must be whole. */
tutti_sym tutti__scalar_like(tutti_sym x, double value);

/* The graph of the first that has one; NULL when there is none, or no list. */
tutti_graph *tutti__graph_of(int count, const tutti_sym *syms);
/* What a builder returns that is given no symbol of any graph: poison. The thread's message says
 * which of them was never set; poison among them has its message already. */
tutti_sym tutti__poison_of(const char *op, int count, const tutti_sym *syms);

/* For builders that look at types before they build: false when x is poison, or is refused, as a
 * value of an earlier step of a tape is, whose type is none. */
bool tutti__usable(const char *op, tutti_sym x);

/* Attributes of a rule's node, short. */
#define RULE_INT(node, name) tutti_attr_int((node)->attrs, (node)->attr_count, name)
#define RULE_FLOAT(node, name) tutti_attr_float((node)->attrs, (node)->attr_count, name)
#define RULE_STRING(node, name) tutti_attr_string((node)->attrs, (node)->attr_count, name)

/* A user's options, whose struct may be older and shorter than ours: the rest is zero. */
#define RULE_OPTIONS(type, name, given)                                                            \
    type name = {0};                                                                               \
    if ((given) != NULL)                                                                           \
    memcpy(&name, given, (given)->struct_size < sizeof name ? (given)->struct_size : sizeof name)

/* "op 'name': " before a message: return RULE_FAIL(node, TUTTI_INVALID, "input has …"). */
#define RULE_FAIL(node, status, ...)                                                               \
    tutti__rule_fail((node)->op->name, (node)->name, status, __VA_ARGS__)
tutti_status tutti__rule_fail(const char *op, const char *name, tutti_status status,
                              const char *format, ...) TUTTI_PRINTF(4, 5);

/* axis in [-rank, rank) made non-negative; the message names the axis and the shape. */
tutti_status tutti__rule_axis(const tutti_infer *node, int64_t axis, int rank, int *ret_axis);

/* Ready-made cost rules. */
void tutti__cost_elementwise(const tutti_infer *node,
                             tutti_cost *ret);                   /* 1 FLOP an output element */
void tutti__cost_move(const tutti_infer *node, tutti_cost *ret); /* 0 FLOPs, bytes in and out */

/* Axes as an attribute. A list with more than there can be is read no further, and so refused. */
static inline tutti_attr tutti__axes_attr(const char *name, const tutti_axes *axes)
{
    return TUTTI_INTS(name, axes->count, axes->count <= TUTTI_MAX_RANK ? axes->values : NULL);
}
/* Dimensions of a type, which a user may have filled in by hand, likewise. */
static inline tutti_attr tutti__dims_attr(const tutti_type *type)
{
    bool fits = type->rank >= 0 && type->rank <= TUTTI_MAX_RANK;
    return TUTTI_INTS("dims", type->rank, fits ? type->dims : NULL);
}

#endif
