/* conv.c: convolutions of bytes: the taps of each output position gathered into a row of the left
 * matrix, the kernel [height width channels, filters] being the right one. */
#include <string.h>

#include "device/cpu/int8/finish.h"
#include "device/cpu/int8/kernels.h"
#include "ops/network/window.h"

static tutti_int8_shape shape_of(const tutti_convolution *c)
{
    const tutti_windows *w = &c->windows;
    return (tutti_int8_shape){.m = c->batch * w->out[0] * w->out[1],
                              .n = c->cout,
                              .k = w->size[0] * w->size[1] * c->cin,
                              .groups = c->groups};
}

static tutti_convolution convolution_of(const tutti_infer *node, const tutti_int_conv *c)
{
    return tutti__convolution(node->attrs, node->attr_count, node->inputs[c->x].dims,
                              node->inputs[c->kernel].dims, node->outputs[0].dims);
}

int tutti__int8_conv_score(const tutti_kernel_query *query, const tutti_int_conv *c)
{
    if (tutti_type_count(&query->node.outputs[0]) < 1)
        return 0;
    tutti_convolution v = convolution_of(&query->node, c);
    tutti_int8_shape shape = shape_of(&v);
    if (shape.k < 1 || shape.k > INT32_MAX / 512 || shape.n > INT32_MAX / 512)
        return 0;
    return 100;
}

size_t tutti__int8_conv_workspace(const tutti_kernel_query *query, const tutti_int_conv *c)
{
    tutti_convolution v = convolution_of(&query->node, c);
    tutti_int8_shape shape = shape_of(&v);
    bool packed = query->node.values != NULL && query->node.values[c->kernel] != NULL;
    return tutti__int8_scratch_bytes(&shape, query->threads) +
           (packed ? 0 : tutti__int8_right_bytes(&shape));
}

tutti_status tutti__int8_conv_prepare(const tutti_kernel_query *query, const tutti_int_conv *c,
                                      void **ret_plan)
{
    tutti_convolution v = convolution_of(&query->node, c);
    tutti_int8_shape shape = shape_of(&v);
    return tutti__int8_plan(query, &shape, c->kernel, ret_plan);
}

typedef struct operands {
    const uint8_t *x;
    uint8_t zero; /* as a byte of x */
    tutti_convolution c;
    tutti_int8_finish finish;
} operands;

/* One line of taps, kernel row ky, of the window that begins at column ix. */
static void gather_line(const operands *o, int64_t group, const uint8_t *line, int64_t ix,
                        uint8_t *to)
{
    const tutti_windows *w = &o->c.windows;
    int64_t cin = o->c.cin, channels = cin * o->c.groups, taps = w->size[1];
    if (o->c.groups == 1 && w->dilation[1] == 1 && ix >= 0 && ix + taps <= w->in[1]) {
        memcpy(to, line + ix * channels, (size_t)(taps * cin));
        return;
    }
    for (int64_t kx = 0; kx < taps; kx++, ix += w->dilation[1], to += cin)
        if (ix >= 0 && ix < w->in[1])
            memcpy(to, line + ix * channels + group * cin, (size_t)cin);
        else
            memset(to, o->zero, (size_t)cin);
}

static const uint8_t *row(const void *context, int64_t group, int64_t i, uint8_t *room)
{
    const operands *o = context;
    const tutti_windows *w = &o->c.windows;
    int64_t cin = o->c.cin, channels = cin * o->c.groups, line = w->size[1] * cin;
    int64_t ox = i % w->out[1], oy = i / w->out[1] % w->out[0], n = i / w->out[1] / w->out[0];
    int64_t ix = tutti__window_start(w, 1, ox), iy = tutti__window_start(w, 0, oy);
    if (w->size[0] == 1 && w->size[1] == 1 && o->c.groups == 1 && ix >= 0 && ix < w->in[1] &&
        iy >= 0 && iy < w->in[0])
        return o->x + ((n * w->in[0] + iy) * w->in[1] + ix) * channels;
    uint8_t *to = room;
    for (int64_t ky = 0; ky < w->size[0]; ky++, iy += w->dilation[0], to += line)
        if (iy >= 0 && iy < w->in[0])
            gather_line(o, group, o->x + (n * w->in[0] + iy) * w->in[1] * channels, ix, to);
        else
            memset(to, o->zero, (size_t)line);
    return room;
}

static void finish(const void *context, int64_t i, int64_t first, int64_t count,
                   const int32_t *sums)
{
    tutti__int8_finish(&((const operands *)context)->finish, i, first, count, sums);
}

tutti_status tutti__int8_conv_run(const tutti_kernel_call *call, const tutti_int_conv *c)
{
    const tutti_view *x = &call->inputs[c->x], *kernel = &call->inputs[c->kernel];
    const tutti_int8_plan *plan = call->plan;
    operands o = {.x = x->data,
                  .zero = (uint8_t)tutti__zero_of(call, c->x_zero, 0),
                  .c = tutti__convolution(call->attrs, call->attr_count, x->dims, kernel->dims,
                                          call->outputs[0].dims)};
    tutti_int8_shape shape = shape_of(&o.c);
    o.finish = tutti__int8_finish_of(call, c->finish, c->bias, shape.groups * shape.n);
    tutti_int8_product product = {
        .shape = shape,
        .right = tutti__int8_right(call, &shape, kernel),
        .scratch = call->workspace,
        .threads = plan->threads,
        .left_dtype = x->dtype,
        .right_dtype = kernel->dtype,
        .row = row,
        .left_zero = c->x_zero < call->input_count ? &call->inputs[c->x_zero] : NULL,
        .right_zero = c->kernel_zero < call->input_count ? &call->inputs[c->kernel_zero] : NULL,
        .direct = c->finish || o.finish.bias ? NULL : call->outputs[0].data,
        .line = shape.groups * shape.n,
        .finish = finish,
        .context = &o,
    };
    tutti__int8_product(call, &product);
    return TUTTI_OK;
}
