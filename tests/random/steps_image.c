/* steps_image.c: convolutions and pools with bias, norm, activation and residual. */
#include "builder.h"

static const char *const paddings[] = {"same", "valid", "same", "explicit"};

static tutti_sym image(builder *b, tutti_sym x, int rank)
{
    x = with_rank(b, x, rank);
    if (!b->batched)
        x = at_most(b, x, 0, 5);
    for (int i = 1; i + 1 < rank; i++)
        x = at_most(b, x, i, 12);
    return at_most(b, x, rank - 1, 33);
}

static int64_t no_less(int64_t size, int64_t most)
{
    return size < 1 ? 1 : size < most ? size : most;
}

/* Groups that divide the channels. */
static int64_t groups_of(builder *b, int64_t channels)
{
    if (!one_in(b, 3))
        return 1;
    return channels % 3 == 0 ? 3 : channels % 2 == 0 ? 2 : channels < 1 ? 1 : channels;
}

static tutti_sym finished(builder *b, tutti_sym y)
{
    int64_t filters = dim_of(y, -1);
    switch (below(b, 4)) {
    case 0:
        y = tutti_nn_batch_norm(y, WEIGHT(b, 1, 0.4, filters), WEIGHT(b, 0, 0.4, filters),
                                .epsilon = 0.1);
        break;
    case 1:
        break;
    default:
        y = tutti_add(y, WEIGHT(b, 0, 0.5, filters));
    }
    if (one_in(b, 3))
        y = tutti_add(y, like_shaped(b, y));
    return activation(b, y);
}

static tutti_sym conv2d(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    int64_t channels = dim_of(x, 3), groups = groups_of(b, channels);
    int64_t filters = groups * odd_size(b, groups > 1 ? 3 : 33);
    int64_t h = no_less(dim_of(x, 1), 1 + below(b, 3)), w = no_less(dim_of(x, 2), 1 + below(b, 5));
    int64_t dilation = one_in(b, 4) && dim_of(x, 1) > 2 * h && dim_of(x, 2) > 2 * w ? 2 : 1;
    const char *padding = paddings[below(b, 4)];
    int64_t pads[4] = {0};
    for (int i = 0; padding == paddings[3] && i < 4; i++)
        pads[i] = below(b, 3);
    tutti_sym kernel = WEIGHT(b, 0, 0.3, h, w, channels / groups, filters);
    tutti_sym y = tutti_nn_conv2d(x, kernel, .strides = {1 + one_in(b, 3), 1 + one_in(b, 3)},
                                  .dilations = {dilation, dilation}, .padding = padding,
                                  .pads = {pads[0], pads[1], pads[2], pads[3]}, .groups = groups);
    return finished(b, y);
}

static tutti_sym depthwise(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    if (dim_of(x, 3) < 1) /* no groups */
        return x;
    int64_t h = no_less(dim_of(x, 1), 1 + below(b, 3)), w = no_less(dim_of(x, 2), 1 + below(b, 3));
    tutti_sym kernel = WEIGHT(b, 0, 0.4, h, w, dim_of(x, 3), 1 + one_in(b, 4));
    int64_t stride = 1 + one_in(b, 3);
    return finished(b, tutti_nn_depthwise_conv2d(x, kernel, .strides = {stride, stride},
                                                 .padding = paddings[below(b, 3)]));
}

static tutti_sym conv1d(builder *b, tutti_sym x)
{
    x = image(b, x, 3);
    int64_t channels = dim_of(x, 2), groups = groups_of(b, channels);
    int64_t filters = groups * odd_size(b, groups > 1 ? 3 : 33);
    int64_t width = no_less(dim_of(x, 1), 1 + below(b, 4));
    tutti_sym kernel = WEIGHT(b, 0, 0.3, width, channels / groups, filters);
    bool causal = one_in(b, 4);
    tutti_sym y = tutti_nn_conv1d(x, kernel, .strides = 1 + one_in(b, 3), .groups = groups,
                                  .dilations = 1 + (causal && one_in(b, 2)),
                                  .padding = causal ? "causal" : paddings[below(b, 3)]);
    return finished(b, y);
}

static tutti_sym conv2d_transpose(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    int64_t stride = 1 + one_in(b, 2);
    tutti_sym kernel =
        WEIGHT(b, 0, 0.3, 1 + below(b, 3), 1 + below(b, 3), odd_size(b, 9), dim_of(x, 3));
    return finished(b, tutti_nn_conv2d_transpose(x, kernel, .strides = {stride, stride},
                                                 .padding = paddings[below(b, 3)]));
}

static tutti_sym conv3d(builder *b, tutti_sym x)
{
    x = at_most(b, image(b, x, 5), 4, 9);
    int64_t filters = odd_size(b, 9);
    tutti_sym kernel = WEIGHT(b, 0, 0.3, no_less(dim_of(x, 1), 2), no_less(dim_of(x, 2), 3),
                              no_less(dim_of(x, 3), 2), dim_of(x, 4), filters);
    return finished(b, tutti_nn_conv3d(x, kernel, .padding = paddings[below(b, 3)]));
}

static tutti_sym pool2d(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    int64_t h = no_less(dim_of(x, 1), 1 + below(b, 3)), w = no_less(dim_of(x, 2), 1 + below(b, 3));
    int64_t sh = 1 + below(b, 2), sw = 1 + below(b, 2);
    const char *padding = paddings[below(b, 3)];
    return one_in(b, 2) ? tutti_nn_max_pool2d(x, .pool_size = {h, w}, .strides = {sh, sw},
                                              .padding = padding)
                        : tutti_nn_average_pool2d(x, .pool_size = {h, w}, .strides = {sh, sw},
                                                  .padding = padding);
}

static tutti_sym pool1d(builder *b, tutti_sym x)
{
    x = image(b, x, 3);
    int64_t w = no_less(dim_of(x, 1), 1 + below(b, 3));
    const char *padding = paddings[below(b, 3)];
    return one_in(b, 2) ? tutti_nn_max_pool1d(x, .pool_size = w, .strides = 1 + below(b, 2),
                                              .padding = padding)
                        : tutti_nn_average_pool1d(x, .pool_size = w, .padding = padding);
}

static tutti_sym global_pool(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    for (int i = 1; i < 4; i++)
        if (dim_of(x, i) < 1)
            return x;
    return one_in(b, 2) ? tutti_nn_global_average_pool2d(x) : tutti_nn_global_max_pool2d(x);
}

static tutti_sym resize(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    if (dim_of(x, 1) < 1 || dim_of(x, 2) < 1)
        return x;
    return tutti_resize(x, .sizes = {1 + below(b, 7), 1 + below(b, 7)},
                        .mode = one_in(b, 2) ? "linear" : "nearest");
}

/* conv, norm, relu, conv, norm, + x, relu. */
static tutti_sym residual(builder *b, tutti_sym x)
{
    x = image(b, x, 4);
    int64_t c = dim_of(x, 3);
    tutti_sym y = tutti_nn_conv2d(x, WEIGHT(b, 0, 0.2, 3, 3, c, c), .padding = "same");
    y = tutti_relu(
        tutti_nn_batch_norm(y, WEIGHT(b, 1, 0.2, c), WEIGHT(b, 0, 0.2, c), .epsilon = 0.1));
    y = tutti_nn_conv2d(y, WEIGHT(b, 0, 0.2, 3, 3, c, c), .padding = "same");
    y = tutti_nn_batch_norm(y, WEIGHT(b, 1, 0.2, c), WEIGHT(b, 0, 0.2, c), .epsilon = 0.1);
    return tutti_relu(tutti_add(y, x));
}

const step_kind image_steps[] = {
    {"conv2d", conv2d, 6},
    {"depthwise", depthwise, 2},
    {"conv1d", conv1d, 3},
    {"conv2d_transpose", conv2d_transpose, 1},
    {"conv3d", conv3d, 1},
    {"pool2d", pool2d, 3},
    {"pool1d", pool1d, 1},
    {"global_pool", global_pool, 1},
    {"resize", resize, 1},
    {"residual", residual, 1},
    {0},
};
