/* batch_norm_inference.c: batch_norm with a given mean and variance, as nodes that fuse:
 * y = x f + (offset - mean f), f = scale / sqrt(variance + epsilon). */
#include "ops/network/norm.h"

tutti_sym tutti_nn_batch_norm_inference_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                             tutti_sym mean, tutti_sym variance,
                                             const tutti_normalize_options *given)
{
    double epsilon;
    if (!tutti__epsilon_take(x, "batch_norm_inference", given, 1e-3, &epsilon))
        return TUTTI_POISON;
    tutti_sym factor = tutti_mul(scale, tutti_rsqrt(tutti_add(variance, epsilon)));
    return tutti_add(tutti_mul(x, factor), tutti_sub(offset, tutti_mul(mean, factor)));
}
