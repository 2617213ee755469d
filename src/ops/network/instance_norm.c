/* instance_norm.c: normalisation of each channel of each example, made of other operators. 16 bits
 * are computed in 32, as group_norm does. */
#include "ops/composite.h"
#include "ops/network/norm.h"

tutti_sym tutti_nn_instance_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                      const tutti_normalize_options *given)
{
    char text[TUTTI_TYPE_TEXT];
    double epsilon;
    tutti_axes axes = {0};
    if (!tutti__epsilon_take(x, "instance_norm", given, 1e-5, &epsilon))
        return TUTTI_POISON;
    tutti_type type = tutti_sym_type(x);
    if (type.rank < 3)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "instance_norm: x is %s, needs [batch, ..., channels] with at least "
                             "one axis between batch and channels",
                             tutti_type_text(&type, text));
    for (int axis = 1; axis < type.rank - 1; axis++)
        axes.values[axes.count++] = axis;
    tutti_sym wide = tutti__widened(x);
    tutti_sym centred = tutti_sub(wide, tutti_mean(wide, .axes = axes, .keepdims = true));
    tutti_sym variance = tutti_mean(tutti_square(centred), .axes = axes, .keepdims = true);
    tutti_sym r = tutti_rsqrt(tutti_add(variance, epsilon));
    tutti_sym xhat = tutti__narrowed(tutti_mul(centred, r), type.dtype);
    return tutti_add(tutti_mul(xhat, scale), offset);
}

const tutti_composite tutti_composite_instance_norm = {
    .name = "instance_norm",
    .category = "network",
    .doc =
        "instance_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset over each channel of each example",
    .made_of = "mean and element-wise operators, which fuse",
};
