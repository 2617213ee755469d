/* einsum_axes.c: the axes of labelled values: other dimensions, another order, sums. What is made
 * of a constant is a constant: its transpose is not computed in each run, and kernels that keep
 * what they pack of constants know it. */
#include "passes/einsum.h"
#include "tensor/pending.h"

/* Takes the reference of the tensor. */
static tutti_status make_constant(const tutti_einsum_parts *parts, tutti_tensor *value,
                                  tutti_edge *ret)
{
    tutti_status status = tutti__rewrite_constant(parts->rewrite, parts->node, value, ret);
    tutti_tensor_release(value);
    return status;
}

tutti_status tutti__einsum_reshape(const tutti_einsum_parts *parts, tutti_edge x, int rank,
                                   const int64_t *dims, tutti_edge *ret)
{
    while (tutti__is(x.node, "reshape"))
        x = x.node->inputs[0];
    tutti_tensor *constant = tutti__constant_of(x), *value;
    tutti_type wanted = tutti_type_make(tutti__edge_type(x)->dtype, rank, dims);
    if (constant == NULL || tutti__same_dims(&wanted, tutti__edge_type(x)))
        return tutti__rewrite_reshape(parts->rewrite, parts->node, x, rank, dims, ret);
    TUTTI_TRY(tutti_tensor_reshape(constant, rank, dims, &value));
    return make_constant(parts, value, ret);
}

static tutti_status transpose(const tutti_einsum_parts *parts, tutti_edge x, int rank,
                              const int *order, tutti_edge *ret)
{
    int64_t axes[TUTTI_MAX_RANK];
    tutti_tensor *constant = tutti__constant_of(x), *value;
    for (int i = 0; i < rank; i++)
        axes[i] = order[i];
    if (constant == NULL)
        return tutti__rewrite_add(parts->rewrite, parts->node, "transpose", 1, &x, 1,
                                  &TUTTI_INTS("order", rank, axes), ret);
    TUTTI_TRY(tutti__tensor_turned(constant, order, &value));
    return make_constant(parts, value, ret);
}

tutti_status tutti__einsum_arrange(const tutti_einsum_parts *parts, const tutti_labelled *x,
                                   const tutti_term *order, tutti_labelled *ret)
{
    int axes[TUTTI_MAX_RANK] = {0};
    tutti_labelled arranged = {x->edge, *order};
    for (int i = 0; i < order->rank; i++)
        axes[i] = tutti__term_axis(&x->term, order->labels[i]);
    if (!tutti__term_equal(&x->term, order))
        TUTTI_TRY(transpose(parts, x->edge, order->rank, axes, &arranged.edge));
    *ret = arranged;
    return TUTTI_OK;
}

tutti_status tutti__einsum_sum(const tutti_einsum_parts *parts, const tutti_labelled *x,
                               uint64_t kept, tutti_labelled *ret)
{
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0;
    tutti_labelled sum = {x->edge, tutti__term_within(&x->term, kept)};
    for (int i = 0; i < x->term.rank; i++)
        if (!(kept >> x->term.labels[i] & 1))
            axes[count++] = i;
    if (count > 0)
        TUTTI_TRY(tutti__rewrite_add(parts->rewrite, parts->node, "sum", 1, &x->edge, 1,
                                     &TUTTI_INTS("axes", count, axes), &sum.edge));
    *ret = sum;
    return TUTTI_OK;
}
