/* comm.h: what the collective operators share. */
#ifndef TUTTI_OPS_COMM_COMM_H
#define TUTTI_OPS_COMM_COMM_H

#include "ops/state/state.h"

/* Attributes of every collective. Nodes of one channel meet; without one, the first of an axis on
 * one device meets the first of that axis on the others, and so on. */
#define TUTTI_COMM_ATTRS                                                                           \
    {"axis", TUTTI_ATTR_STRING, NULL}, {"size", TUTTI_ATTR_INT, NULL},                             \
    {                                                                                              \
        "channel", TUTTI_ATTR_STRING, ""                                                           \
    }

/* Attributes "axis" and "size" are good; input 0 is no string (its bytes lie elsewhere). */
tutti_status tutti__need_axis(const tutti_infer *node);
/* Attribute "op" names a reduction and input 0 can be reduced so. */
tutti_status tutti__need_reduction(const tutti_infer *node);
/* Attribute "root" is a rank. */
tutti_status tutti__need_root(const tutti_infer *node);
/* Attribute `name` as a dimension of input 0. */
tutti_status tutti__need_dim_attr(const tutti_infer *node, const char *name, int *ret_dim);
/* dim * size, dim / size; unknown stays unknown. The latter must divide. */
tutti_status tutti__dim_times(const tutti_infer *node, int64_t dim, int64_t *ret);
tutti_status tutti__dim_over(const tutti_infer *node, int axis, int64_t dim, int64_t *ret);

/* The identity along an axis of size 1; refuses any other. */
tutti_status tutti__reference_alone(const tutti_kernel_call *call);
/* The same for operators with as many outputs as inputs. */
tutti_status tutti__reference_alone_each(const tutti_kernel_call *call);

/* "sum" "mean" "min" "max" "prod" */
const char *tutti__reduction_name(tutti_reduction reduction);
/* The reduction that attribute "op" names. */
tutti_reduction tutti__reduction_of(const tutti_attr *attrs, int attr_count);

/* Gradient rules: whether the node's reduction is a mean (else a sum), or an error. */
tutti_status tutti__gradient_reduction(const tutti_gradient_call *node, bool *ret_mean);

/* Input 0 and output 0 cut alike along every axis but these two (-1: none). */
int tutti__split_except(const tutti_infer *node, int a, int b, int capacity, tutti_split *ret);

/* ---- gather_updates.c ---- */
/* Processes share the updates of a bucket of `count` f32 elements, its values one behind the other,
 * each at a multiple of 16: rank r of `size` has elements [r b, (r + 1) b), the last one also those
 * that are left. */
int64_t tutti__owned_block(int64_t count, int64_t size); /* b, a multiple of 16 */
void tutti__owned_bounds(int64_t count, int64_t size, int64_t rank, int64_t *ret_first,
                         int64_t *ret_end);
/* Which elements of a value that rank has: the value is so many from `offset` on. */
void tutti__owned_elements(int64_t count, int64_t size, int64_t rank, int64_t offset,
                           int64_t elements, int64_t *ret_first, int64_t *ret_end);
/* Elements of a bucket of `count` values, and where the value behind the first `count` begins. */
int64_t tutti__owned_count(const tutti_type *types, int count);
int64_t tutti__owned_offset(const tutti_type *types, int count);

/* Bytes in and out. */
#define tutti__cost_comm tutti__cost_move

#endif
