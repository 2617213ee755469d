/* finish.c: see finish.h. Floats in the order of the reference, so that bytes are the same. */
#include "device/cpu/int8/finish.h"

tutti_int8_finish tutti__int8_finish_of(const tutti_kernel_call *call,
                                        const tutti_requantize *requantize, int bias, int64_t line)
{
    tutti_int8_finish f = {.call = call, .requantize = requantize, .line = line};
    if (bias > 0 && bias < call->input_count) {
        f.bias = call->inputs[bias].data;
        f.bias_step = tutti_view_count(&call->inputs[bias]) != 1;
    }
    if (requantize != NULL) {
        f.left_scale = &call->inputs[requantize->a_scale];
        f.right_scale = &call->inputs[requantize->b_scale];
        f.y_scale = tutti__scale_of(call, requantize->y_scale, 0);
        f.y_zero = tutti__zero_of(call, requantize->y_zero, 0);
    }
    return f;
}

static void to_bytes(const tutti_int8_finish *f, int64_t row, int64_t first, int64_t count,
                     const int32_t *sums)
{
    const tutti_view *y = &f->call->outputs[0];
    const float *a = f->left_scale->data, *b = f->right_scale->data;
    int64_t step = tutti_view_count(f->right_scale) != 1;
    float left = a[tutti_view_count(f->left_scale) != 1 ? row : 0];
    uint8_t *to = (uint8_t *)y->data + row * f->line + first;
    for (int64_t j = 0; j < count; j++) {
        uint32_t sum = (uint32_t)sums[j];
        if (f->bias != NULL)
            sum += (uint32_t)f->bias[(first + j) * f->bias_step];
        float factor = left * b[(first + j) * step] / f->y_scale;
        to[j] = (uint8_t)tutti__saturate((float)(int32_t)sum * factor, f->y_zero, y->dtype);
    }
}

void tutti__int8_finish(const tutti_int8_finish *f, int64_t row, int64_t first, int64_t count,
                        const int32_t *sums)
{
    if (f->requantize != NULL) {
        to_bytes(f, row, first, count, sums);
        return;
    }
    int32_t *to = (int32_t *)f->call->outputs[0].data + row * f->line + first;
    for (int64_t j = 0; j < count; j++)
        to[j] = (int32_t)((uint32_t)sums[j] +
                          (f->bias != NULL ? (uint32_t)f->bias[(first + j) * f->bias_step] : 0));
}
