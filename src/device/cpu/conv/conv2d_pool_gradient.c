/* conv2d_pool_gradient.c: the gradients of kernel and bias of p = max_pool2d(y),
 * y = relu(conv2d(x, kernel) + bias), from y and the gradient of p. The gradient of the map is made
 * a few rows at a time and summed while it is in the first cache. */
#include "base/isa.h"
#include "device/cpu/conv/pool_gradient.h"

/* A block of the map's gradient, and room to read a whole panel at its end. */
static bool conv2d_pool_gradient_make(const tutti_kernel_query *query, plan *ret)
{
    if (!pool_gradient_make(query, ret))
        return false;
    const tutti_convolution *c = &ret->layer.shape;
    ret->slot = tutti__slot_bytes((size_t)(ret->sum.block * c->windows.out[1] * c->cout + PANEL) *
                                  sizeof(float));
    return true;
}

static int conv2d_pool_gradient_score(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_pool_gradient_make(query, &p) ? 100 : 0;
}

static size_t conv2d_pool_gradient_workspace(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_pool_gradient_make(query, &p) ? pool_gradient_workspace(&p) : 0;
}

static tutti_status conv2d_pool_gradient_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan p;
    conv2d_pool_gradient_make(query, &p); /* which gave it a score */
    return pool_gradient_prepare(query, &p, ret_plan);
}

/* One window, `lanes` channels: the gradient goes to the first maximum, if that is above 0. A NaN
 * is greater than all, equals nothing and is not above 0. Returns what was given. */
VEC_INLINE vec give(int64_t rows, int64_t columns, int64_t row, int64_t channels, const float *y,
                    vec grad, float *to, int64_t lanes)
{
    const vec none = vec_splat(0);
    vec most = vec_load_lanes(y, lanes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i == 0; j < columns; j++)
            most = vec_maximum(most, vec_load_lanes(y + i * row + j * channels, lanes));
    grad = vec_select(vec_gt(most, none), grad, none);
    vec left = grad;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            vmask here = vec_eq(vec_load_lanes(y + i * row + j * channels, lanes), most);
            vec_store_lanes(to + i * row + j * channels, vec_select(here, left, none), lanes);
            left = vec_select(here, none, left);
        }
    return vec_select(vec_eq(most, most), grad, none);
}

/* The same for one channel. */
static inline float give_one(const tutti_windows *w, int64_t channels, const float *y, float grad,
                             float *to)
{
    int64_t row = w->in[1] * channels, best = 0;
    for (int64_t i = 0; i < w->size[0]; i++)
        for (int64_t j = 0; j < w->size[1]; j++) {
            int64_t at = i * row + j * channels;
            best = y[at] > y[best] || y[at] != y[at] ? at : best;
            to[at] = 0;
        }
    grad = y[best] > 0 ? grad : 0;
    to[best] = grad;
    return grad;
}

/* One row of windows; columns that no window sees get zeros. */
static void give_row(const tutti_windows *w, int64_t channels, const float *y, const float *grad,
                     float *to, float *bias)
{
    int64_t row = w->in[1] * channels;
    for (int64_t column = 0; column < w->out[1]; column++, grad += channels) {
        int64_t at = column * w->size[1] * channels, c = 0;
        for (; c + VEC_LANES <= channels; c += VEC_LANES) {
            bool pairs = w->size[0] == 2 && w->size[1] == 2;
            vec g = vec_load(grad + c);
            vec given = pairs ? give(2, 2, row, channels, y + at + c, g, to + at + c, VEC_LANES)
                              : give(w->size[0], w->size[1], row, channels, y + at + c, g,
                                     to + at + c, VEC_LANES);
            vec_store(bias + c, vec_load(bias + c) + given);
        }
#if VEC_MASKED
        int64_t lanes = channels - c;
        if (lanes > 0) {
            vec given = give(w->size[0], w->size[1], row, channels, y + at + c,
                             vec_load_part(grad + c, lanes), to + at + c, lanes);
            vec_store_part(bias + c, vec_load_part(bias + c, lanes) + given, lanes);
        }
        c = channels;
#endif
        for (; c < channels; c++)
            bias[c] += give_one(w, channels, y + at + c, grad[c], to + at + c);
    }
    int64_t rest = w->in[1] - w->out[1] * w->size[1];
    for (int64_t i = 0; i < w->size[0] && rest > 0; i++)
        memset(to + (i * w->in[1] + w->in[1] - rest) * channels, 0,
               (size_t)(rest * channels) * sizeof *to);
}

/* The gradient of a block of the map. */
static void give_block(const work *w, block_place at, float *to, float *bias)
{
    const tutti_windows *windows = &w->plan->layer.windows;
    int64_t channels = w->plan->layer.shape.cout, line = windows->in[1] * channels, row = at.row;
    for (; row + windows->size[0] <= at.row + at.rows && row / windows->size[0] < windows->out[0];
         row += windows->size[0], to += windows->size[0] * line)
        give_row(windows, channels, w->y + (at.image * windows->in[0] + row) * line,
                 w->grad + (at.image * windows->out[0] + row / windows->size[0]) * windows->out[1] *
                               channels,
                 to, bias);
    memset(to, 0, (size_t)((at.row + at.rows - row) * line) * sizeof *to);
}

/* Piece: a chunk, block after block. */
static void conv2d_pool_gradient_sum_piece(void *context, int64_t chunk)
{
    work *w = context;
    const kernel_sum *p = &w->plan->sum;
    float *map = tutti__slot_take(&w->slots), *sums = w->partial + chunk * p->lines * p->width,
          *bias = sums + p->taps * p->width;
    int64_t first = chunk_begin(p, chunk);
    memset(bias, 0, (size_t)p->width * sizeof *bias);
    for (int64_t block = first; block < chunk_begin(p, chunk + 1); block++) {
        block_place at = block_at(p, block);
        int64_t size = at.rows * p->walk->out[1] * p->walk->filters;
        give_block(w, at, map, bias);
        memset(map + size, 0, PANEL * sizeof *map);
        kernel_sum_block(p, at, w->x, map, map + size + PANEL, sums, block > first);
    }
    tutti__slot_give(&w->slots, map);
}

static tutti_status conv2d_pool_gradient_run(const tutti_kernel_call *call)
{
    return pool_gradient_run(call, conv2d_pool_gradient_sum_piece);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_pool_gradient) = {
    .name = "fused.conv2d_pool_gradient",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = conv2d_pool_gradient_score,
    .workspace = conv2d_pool_gradient_workspace,
    .prepare = conv2d_pool_gradient_prepare,
    .discard = pool_gradient_discard,
    .run = conv2d_pool_gradient_run,
};
