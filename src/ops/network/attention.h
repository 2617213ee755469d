/* attention.h: what attention and its backward operators share.
 *
 * q [batch, heads, queries, features], k [batch, heads, keys, features],
 * v [batch, heads, keys, values], mask broadcasts to [batch, heads, queries, keys].
 * For one query i of one head:
 *   s[j] = scale q[i] k[j] + mask[i,j] over the keys j it sees, l = log(sum(exp(s))),
 *   y = sum over j of exp(s[j] - l) v[j].
 * Backward operators compute s again, and take what rounding puts above l for l. Where l is coarse,
 * its rounding would spoil exp(s - l): they sum the exponentials again, too. So they need all keys.
 * l (output 1) is f32 for 16-bit floats, whose own precision would spoil exp(s - l). */
#ifndef TUTTI_OPS_NETWORK_ATTENTION_H
#define TUTTI_OPS_NETWORK_ATTENTION_H

#include <math.h>

#include "ops/network/network.h"

/* Inputs of the backward operators: these five, the gradients of y and l whose bits are set in
 * attribute "grads", and the mask. */
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_Y, ATTENTION_L };
typedef struct tutti_attention_slots {
    int y_grad, l_grad, mask, count; /* -1 for none */
} tutti_attention_slots;
tutti_attention_slots tutti__attention_slots(int64_t grads, int input_count);

#define ATTENTION_ATTRS                                                                            \
    {"causal", TUTTI_ATTR_INT, "false"}, {"first_query", TUTTI_ATTR_INT, "0"},                     \
    {                                                                                              \
        "scale", TUTTI_ATTR_FLOAT, "0"                                                             \
    }
#define SAME_ATTENTION(node)                                                                       \
    SAME_ATTR(node, "causal"), SAME_ATTR(node, "first_query"), SAME_ATTR(node, "scale")

/* Rules. ------------------------------------------------------------------------------------- */

/* Checks q, k, v and the mask at index `mask` (-1: none); gives the types of y and l. */
tutti_status tutti__attention_infer(const tutti_infer *node, int mask, tutti_type ret_outputs[2]);
/* Checks all inputs of a backward operator. */
tutti_status tutti__attention_backward_infer(const tutti_infer *node);
/* Pairs of a query and a key that it sees. */
double tutti__attention_pairs(const tutti_infer *node);
/* The mask's own axis that lies along `axis` of the scores; TUTTI_WHOLE where it is repeated or
 * there is no mask; -2 when that is not known yet. */
int tutti__mask_axis(const tutti_infer *node, int mask, int axis);
/* A way along an axis of the scores: along queries, pieces know their first one. */
void tutti__attention_way(tutti_ways *ways, int axis, int input_count, const int *inputs,
                          int output_count, const int *outputs);

/* Kernels. ----------------------------------------------------------------------------------- */

typedef struct tutti_attention {
    int64_t batch, heads, queries, keys, features, values;
    int64_t mask_step[4]; /* of the mask along each axis of the scores, in elements */
    double scale;
    bool causal;
    int64_t first_query;
} tutti_attention;
tutti_attention tutti__attention(const tutti_kernel_call *call, int mask);

/* How many keys query i sees: a prefix of them. */
static inline int64_t tutti__keys_seen(const tutti_attention *a, int64_t query)
{
    if (!a->causal || query >= a->keys - 1 - a->first_query)
        return a->keys;
    return a->first_query + query + 1 < 0 ? 0 : a->first_query + query + 1;
}

/* Whether l (finite) is so large that exp(s - l) would be off by more than 4e-6 as f32. */
static inline bool tutti__attention_coarse(double l)
{
    return fabs(l) > 64 && fabs(l) < HUGE_VAL;
}

/* What backward kernels do with one pair: p = exp(min(s - l, 0)), ds = the gradient of s. `row`
 * counts queries over batch and heads, `column` keys. `mask` is the offset of the pair's mask
 * element. */
typedef struct tutti_pair {
    int64_t row, column, mask;
    double p, ds;
} tutti_pair;
typedef void tutti_pair_fn(const tutti_attention *a, void *context, const tutti_pair *pair);
void tutti__attention_pairs_each(const tutti_attention *a, const double *const *inputs,
                                 const tutti_attention_slots *slots, tutti_pair_fn *visit,
                                 void *context);

/* Gradients of the backward operators. ------------------------------------------------------- */

/* The gradients of q k v y l, grads and mask from those of dq, dk, dv, dmask (any may be none), as
 * nodes that hold the whole matrix of scores. */
tutti_status tutti__attention_second_gradient(tutti_gradient_call *node, tutti_sym by_dq,
                                              tutti_sym by_dk, tutti_sym by_dv, tutti_sym by_dmask);

/* A backward operator's node for `node`, an attention node. */
tutti_sym tutti__attention_backward_build(const tutti_gradient_call *node, const char *op);

#endif
