/* shape.c: see shape.h. */
#include "device/cpu/conv/shape.h"

#include <string.h>

static void fill_steps(tutti_direct_conv *c)
{
    c->taps = c->size[0] * c->size[1] * c->channels;
    c->row = c->in[1] * c->channels;
    c->image = c->in[0] * c->row;
    c->pixel = c->stride[1] * c->channels;
    bool gaps = c->dilation[1] != 1;
    c->runs = gaps ? c->size[1] : 1;
    c->run_length = gaps ? c->channels : c->size[1] * c->channels;
    c->run_step = c->dilation[1] * c->channels;
}

void tutti__direct_forward(const tutti_convolution *c, tutti_direct_conv *ret,
                           tutti_conv_padding *ret_padding)
{
    const tutti_windows *w = &c->windows;
    tutti_conv_padding padding = {.spread = {1, 1}};
    *ret = (tutti_direct_conv){.batch = c->batch, .channels = c->cin, .filters = c->cout};
    for (int a = 0; a < 2; a++) {
        ret->out[a] = w->out[a];
        ret->size[a] = w->size[a];
        ret->stride[a] = w->stride[a];
        ret->dilation[a] = w->dilation[a];
        int64_t reach = (w->out[a] - 1) * w->stride[a] + (w->size[a] - 1) * w->dilation[a] + 1;
        ret->in[a] = reach > w->in[a] + w->before[a] ? reach : w->in[a] + w->before[a];
        padding.from[a] = w->in[a];
        padding.before[a] = w->before[a];
        padding.needed = padding.needed || w->before[a] != 0 || ret->in[a] != w->in[a];
    }
    *ret_padding = padding;
    fill_steps(ret);
}

void tutti__direct_backward(const tutti_convolution *c, tutti_direct_conv *ret,
                            tutti_conv_padding *ret_padding)
{
    const tutti_windows *w = &c->windows;
    tutti_conv_padding padding = {.needed = true};
    *ret = (tutti_direct_conv){.batch = c->batch, .channels = c->cout, .filters = c->cin};
    for (int a = 0; a < 2; a++) {
        int64_t span = (w->size[a] - 1) * w->dilation[a];
        ret->out[a] = w->in[a];
        ret->size[a] = w->size[a];
        ret->stride[a] = 1;
        ret->dilation[a] = w->dilation[a];
        ret->in[a] = w->in[a] + span;
        padding.from[a] = w->out[a];
        padding.before[a] = span - w->before[a];
        padding.spread[a] = w->stride[a];
    }
    *ret_padding = padding;
    fill_steps(ret);
}

int64_t tutti__conv_padded_size(const tutti_direct_conv *c, const tutti_conv_padding *padding)
{
    return padding->needed ? c->batch * c->image : 0;
}

typedef struct pad_work {
    const tutti_direct_conv *shape;
    const tutti_conv_padding *padding;
    const float *from;
    float *to;
} pad_work;

static void pad_image(void *context, int64_t image)
{
    const pad_work *w = context;
    const tutti_direct_conv *c = w->shape;
    const tutti_conv_padding *p = w->padding;
    float *to = w->to + image * c->image;
    const float *from = w->from + image * p->from[0] * p->from[1] * c->channels;
    memset(to, 0, (size_t)c->image * sizeof *to);
    for (int64_t h = 0; h < p->from[0]; h++) {
        int64_t row = p->before[0] + h * p->spread[0];
        if (row < 0 || row >= c->in[0])
            continue;
        const float *source = from + h * p->from[1] * c->channels;
        if (p->spread[1] == 1 && p->before[1] >= 0 && p->before[1] + p->from[1] <= c->in[1]) {
            memcpy(to + row * c->row + p->before[1] * c->channels, source,
                   (size_t)(p->from[1] * c->channels) * sizeof *to);
            continue;
        }
        for (int64_t v = 0; v < p->from[1]; v++) {
            int64_t column = p->before[1] + v * p->spread[1];
            if (column >= 0 && column < c->in[1])
                memcpy(to + row * c->row + column * c->channels, source + v * c->channels,
                       (size_t)c->channels * sizeof *to);
        }
    }
}

const float *tutti__conv_pad(const tutti_call *call, const tutti_direct_conv *c,
                             const tutti_conv_padding *padding, const float *x, float *to)
{
    if (!padding->needed)
        return x;
    pad_work work = {c, padding, x, to};
    tutti_parallel(call, c->batch, pad_image, &work);
    return to;
}

bool tutti__conv_query(const tutti_kernel_query *query, int x, int kernel, int y,
                       tutti_convolution *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_type *types[3];
    int index[3] = {x, kernel, y};
    for (int i = 0; i < 3; i++) {
        types[i] = index[i] < 0 ? &node->outputs[0] : &node->inputs[index[i]];
        if (types[i]->dtype != TUTTI_F32 || !tutti_type_is_static(types[i]) ||
            tutti_type_count(types[i]) == 0)
            return false;
    }
    *ret = tutti__convolution(node->attrs, node->attr_count, types[0]->dims, types[1]->dims,
                              types[2]->dims);
    return ret->groups == 1;
}
