/* reduce.h: what the reductions share. Attributes axes (a list, empty: all) and keepdims. */
#ifndef TUTTI_OPS_REDUCE_REDUCE_H
#define TUTTI_OPS_REDUCE_REDUCE_H

#include "ops/shape/rule.h"

#define TUTTI_REDUCE_ATTRS                                                                         \
    {"axes", TUTTI_ATTR_INTS, "[]"},                                                               \
    {                                                                                              \
        "keepdims", TUTTI_ATTR_INT, "false"                                                        \
    }

/* Shape rules: for floats and integers; for floats; for bools. */
tutti_status tutti__reduce_numbers(tutti_infer *node);
tutti_status tutti__reduce_floats(tutti_infer *node);
tutti_status tutti__reduce_bools(tutti_infer *node);

/* A floating-point operation for each element of the input. */
void tutti__reduce_cost(const tutti_infer *node, tutti_cost *ret);

/* Cuts along the axes that stay; and, when `partial` is not TUTTI_WHOLE, along the others, the
 * pieces to be combined so. */
int tutti__reduce_split(const tutti_infer *node, int partial, int capacity, tutti_split *ret);
/* Without the others. */
int tutti__reduce_split_kept(const tutti_infer *node, int capacity, tutti_split *ret);

tutti_sym tutti__reduce_build(const tutti_op *op, tutti_sym x, const tutti_reduce_options *options);

/* Gradient rules: a result, or its gradient, with the reduced axes back as axes of size 1, so that
 * it broadcasts to x; the options that reduce x the same way but keep these axes; and a gradient
 * divided by the number of elements that make one result. */
tutti_sym tutti__reduce_keep(const tutti_gradient_call *node, tutti_sym reduced);
tutti_reduce_options tutti__reduce_keeping(const tutti_gradient_call *node);
tutti_sym tutti__reduce_divide(const tutti_gradient_call *node, tutti_sym grad);

/* Expansions: the sum of `values`, of x's shape, over the node's axes, divided by the number of
 * elements that make one result. */
tutti_sym tutti__reduce_expand_mean(const tutti_expansion *node, tutti_sym values, bool keepdims);

/* Kernels. Element r of those that make result k lies at at(kept, k) + at(reduced, r). */
typedef struct tutti_reduce_axes {
    int rank;
    int64_t count, dims[TUTTI_MAX_RANK], strides[TUTTI_MAX_RANK];
} tutti_reduce_axes;
typedef struct tutti_reduce_plan {
    tutti_reduce_axes kept, reduced;
} tutti_reduce_plan;
tutti_reduce_plan tutti__reduce_plan(const tutti_view *x, uint32_t mask);
tutti_reduce_plan tutti__reduce_plan_of(const tutti_kernel_call *call); /* by attribute axes */
int64_t tutti__reduce_at(const tutti_reduce_axes *axes, int64_t flat);

/* result = step(… step(step(start, x0), x1) …), in row-major order, floats in double. */
typedef struct tutti_reduce_fold {
    double start;
    double (*step)(double so_far, double x);
    int64_t start_int;
    int64_t (*step_int)(int64_t so_far, int64_t x); /* (optional where integers are refused) */
} tutti_reduce_fold;
void tutti__reduce_fold(const tutti_view *x, const tutti_view *y, const tutti_reduce_plan *plan,
                        const tutti_reduce_fold *fold);

/* Along attribute "axis", by "exclusive" and "reverse": every element gets the fold of those before
 * it and itself. And the cuts along other axes. */
tutti_status tutti__reduce_running(const tutti_kernel_call *call, const tutti_reduce_fold *fold);
int tutti__running_split(const tutti_infer *node, int capacity, tutti_split *ret);

/* The gradient of max and min: shared by all elements that are equal to the result. */
tutti_status tutti__reduce_extreme_gradient(tutti_gradient_call *node);
/* Shape rule, kernel and split rule of argmax and argmin; better(a, b): a is to be preferred. */
tutti_status tutti__reduce_position_infer(tutti_infer *node);
tutti_status tutti__reduce_position(const tutti_kernel_call *call,
                                    bool (*better)(double a, double b),
                                    bool (*better_int)(int64_t a, int64_t b));
int tutti__reduce_position_split(const tutti_infer *node, int capacity, tutti_split *ret);

/* Programs for rows that are split: blocks.c. */
tutti_status tutti__top_k_expand_on(tutti_expansion *node);
tutti_status tutti__argmax_expand_on(tutti_expansion *node);

#endif
