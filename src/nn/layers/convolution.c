/* convolution.c: see convolution.h. */
#include "nn/layers/convolution.h"

bool tutti__transposed_axis(tutti_layer_call *call, const tutti_transposed_axis *axis,
                            int64_t *ret_size, int64_t *ret_more)
{
    int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    *ret_size = *ret_more = 0;
    if (axis->output_padding == 0) {
        *ret_more = axis->same || span >= axis->stride ? 0 : axis->stride - span;
        return true;
    }
    if (axis->in < 1) {
        tutti_layer_fail(call, "output_padding needs an input whose sizes are known");
        return false;
    }
    if (axis->output_padding < 0 || axis->output_padding >= axis->stride) {
        tutti_layer_fail(call, "output_padding is %lld, must be less than the stride %lld",
                         (long long)axis->output_padding, (long long)axis->stride);
        return false;
    }
    *ret_size = (axis->in - 1) * axis->stride + span - (axis->same ? span / 2 * 2 : 0) +
                axis->output_padding;
    return true;
}
