/* group_norm.c: normalisation over parts of the channels, made of other operators. Statistics are
 * taken channel by channel first, so that only [batch, channels] is ever reshaped. 16 bits are
 * computed in 32: f16 has no square of 300, and not the cube of r, which the gradient takes. */
#include "ops/composite.h"
#include "ops/network/norm.h"

/* m [batch, channels] to the mean of each group, repeated for its channels and with axes of length
 * 1 between batch and channels, rank in all. */
static tutti_sym share_in_groups(tutti_sym m, int64_t groups, int64_t channels, int rank)
{
    int64_t dims[TUTTI_MAX_RANK] = {-1};
    tutti_sym parts = tutti_reshape(m, -1, groups, channels / groups);
    tutti_sym mean = tutti__mean_keeping(parts, 2);
    tutti_sym repeated = tutti_tile(mean, 1, 1, channels / groups);
    for (int axis = 1; axis < rank; axis++)
        dims[axis] = axis == rank - 1 ? channels : 1;
    return (tutti_reshape)(repeated, rank, dims);
}

/* Mean over the axes between batch and channels: [batch, channels]. */
static tutti_sym channel_mean(tutti_sym x, int rank)
{
    tutti_axes axes = {0};
    for (int axis = 1; axis < rank - 1; axis++)
        axes.values[axes.count++] = axis;
    return axes.count == 0 ? x : tutti_mean(x, .axes = axes);
}

static tutti_status group_norm_check(tutti_type x, int64_t groups)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t channels = x.rank < 2 ? 0 : x.dims[x.rank - 1];
    if (x.rank < 2 || channels <= 0)
        return tutti_fail(
            TUTTI_INVALID,
            "group_norm: x is %s, needs [batch, ..., channels] with a known number of "
            "channels",
            tutti_type_text(&x, text));
    if (groups < 1 || channels % groups != 0)
        return tutti_fail(TUTTI_INVALID, "group_norm: %lld channels do not divide into %lld groups",
                          (long long)channels, (long long)groups);
    return TUTTI_OK;
}

tutti_sym tutti_nn_group_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset, int64_t groups,
                                   const tutti_normalize_options *given)
{
    double epsilon;
    if (!tutti__epsilon_take(x, "group_norm", given, 1e-3, &epsilon))
        return TUTTI_POISON;
    tutti_type type = tutti_sym_type(x);
    tutti_status status = group_norm_check(type, groups);
    if (status != TUTTI_OK)
        return tutti__poison(tutti_sym_graph(x), status, "%s", tutti_error_message());
    int64_t channels = type.dims[type.rank - 1];
    tutti_sym wide = tutti__widened(x);
    tutti_sym mean = share_in_groups(channel_mean(wide, type.rank), groups, channels, type.rank);
    tutti_sym centred = tutti_sub(wide, mean);
    tutti_sym square = channel_mean(tutti_square(centred), type.rank);
    tutti_sym variance = share_in_groups(square, groups, channels, type.rank);
    tutti_sym r = tutti_rsqrt(tutti_add(variance, epsilon));
    tutti_sym xhat = tutti__narrowed(tutti_mul(centred, r), type.dtype);
    return tutti_add(tutti_mul(xhat, scale), offset);
}

const tutti_composite tutti_composite_group_norm = {
    .name = "group_norm",
    .category = "network",
    .doc =
        "group_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset over each group of channels",
    .made_of = "reshape, mean, variance and element-wise operators, which fuse",
};
