/* network.h: what the network operators share: kernels on doubles, checks of shapes, ways to cut,
 * windows that slide over images. */
#ifndef TUTTI_OPS_NETWORK_NETWORK_H
#define TUTTI_OPS_NETWORK_NETWORK_H

#include <string.h>

#include "base/arena.h"
#include "ops/build.h"

/* Reference kernels. ------------------------------------------------------------------------- */

/* The body of a reference kernel. Floating inputs come converted to doubles; floating outputs start
 * at zero and are rounded once, after the body. Slots of other types are NULL: read and write those
 * through the call's views. `scratch` is freed after the body. */
typedef tutti_status tutti_doubles_fn(const tutti_kernel_call *call, const double *const *inputs,
                                      double *const *outputs, tutti_arena *scratch);
tutti_status tutti__on_doubles(const tutti_kernel_call *call, tutti_doubles_fn *body);

/* `count` zeroed doubles. */
tutti_status tutti__scratch_doubles(tutti_arena *scratch, int64_t count, double **ret);

#define CALL_INT(call, name) tutti_attr_int((call)->attrs, (call)->attr_count, name)
#define CALL_FLOAT(call, name) tutti_attr_float((call)->attrs, (call)->attr_count, name)

/* What the products may be made of: "full", the inputs as they are, or "bf16", numbers rounded to
 * bf16 and summed in f32. A kernel may do better than it must; the references do. */
#define PRODUCTS_ATTR                                                                              \
    {                                                                                              \
        "products", TUTTI_ATTR_STRING, "full"                                                      \
    }

/* Small dense products, row-major: out[r,c] += sum over k of a[r,k] b[k,c]; and with b transposed,
 * out[r,k] += sum over c of a[r,c] b[k,c]; and out[k,c] += a[k] b[c]. */
void tutti__add_product(int64_t rows, int64_t inner, int64_t columns, const double *a,
                        const double *b, double *out);
void tutti__add_product_transposed(int64_t rows, int64_t inner, int64_t columns, const double *a,
                                   const double *b, double *out);
void tutti__add_outer(int64_t rows, int64_t columns, const double *a, const double *b, double *out);

static inline double tutti__dot(int64_t count, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Shape rules. ------------------------------------------------------------------------------- */

/* Inputs [first, first + count) are floating and of input `first`'s type. */
tutti_status tutti__need_floats(const tutti_infer *node, int first, int count);
/* Input `i`, called `what` in messages, has this rank; `layout` names its axes. */
tutti_status tutti__need_rank(const tutti_infer *node, int i, const char *what, int rank,
                              const char *layout);
/* Dimension `axis` of input `i` is `expected`, as far as both are known; `meaning` says of what. */
tutti_status tutti__need_dim(const tutti_infer *node, int i, const char *what, int axis,
                             int64_t expected, const char *meaning);
/* All of input `i`'s shape agrees with `like`, as far as both are known. */
tutti_status tutti__need_like(const tutti_infer *node, int i, const char *what,
                              const tutti_type *like);

/* Of two dimensions that agree, the known one. */
static inline int64_t tutti__known(int64_t a, int64_t b)
{
    return a >= 0 ? a : b;
}

/* Number of elements as a double; unknown dimensions count as 1. */
double tutti__elements(const tutti_type *type);

/* Cost: bytes in and out, and these floating-point operations. */
void tutti__cost_flops(const tutti_infer *node, double flops, tutti_cost *ret);

/* Split rules. ------------------------------------------------------------------------------- */

typedef struct tutti_ways {
    int count, capacity;
    tutti_split *ret;
} tutti_ways;
/* Adds one way; the lists give an axis or TUTTI_WHOLE or TUTTI_PARTIAL_* for every slot. */
void tutti__way_add(tutti_ways *ways, int input_count, const int *inputs, int output_count,
                    const int *outputs);
#define WAY_SLOTS(...)                                                                             \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[])                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SLOTS(...) WAY_SLOTS(__VA_ARGS__)

/* Gradient rules and builders. --------------------------------------------------------------- */

/* Attribute `name` of a node, to be handed on to another node. */
#define SAME_ATTR(node, name) (*tutti_attr_find((node)->attrs, (node)->attr_count, name))

/* Adds `term` to `*sum`, which may be none. */
void tutti__accumulate(tutti_sym *sum, tutti_sym term);

/* Mean over one axis, which stays with length 1. */
tutti_sym tutti__mean_keeping(tutti_sym x, int axis);
tutti_sym tutti__sum_keeping(tutti_sym x, int axis);
/* Sum and mean over all axes but the last. */
tutti_sym tutti__sum_leading(tutti_sym x);
tutti_sym tutti__mean_leading(tutti_sym x);

/* 16-bit floats as f32, and back to `dtype`. */
tutti_sym tutti__widened(tutti_sym x);
tutti_sym tutti__narrowed(tutti_sym x, tutti_dtype dtype);

/* A user's options, whose struct may be older and shorter than ours: the rest is zero. */
void tutti__options_copy(void *options, size_t size, const void *arg);
#define TAKE_OPTIONS(type, name, given)                                                            \
    type name;                                                                                     \
    tutti__options_copy(&name, sizeof name, given)

#endif
