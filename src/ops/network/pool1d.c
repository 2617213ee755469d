/* pool1d.c: pooling that is made of other operators: along time, and over everything. */
#include "ops/composite.h"
#include "ops/network/network.h"

typedef tutti_sym pool2d_fn(tutti_sym x, const tutti_pool2d_options *options);

/* [batch, time, channels] as an image of height 1. */
static tutti_sym pool1d(const char *op, pool2d_fn *pool2d, tutti_sym x,
                        const tutti_pool1d_options *given)
{
    char text[TUTTI_TYPE_TEXT];
    TAKE_OPTIONS(tutti_pool1d_options, options, given);
    if (!tutti__usable(op, x))
        return TUTTI_POISON;
    tutti_type type = tutti_sym_type(x);
    if (type.rank != 3)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "%s: x is %s, needs 3 dimensions [batch,time,channels]", op,
                             tutti_type_text(&type, text));
    int64_t window = options.pool_size == 0 ? 2 : options.pool_size;
    int64_t stride = options.strides == 0 ? window : options.strides;
    tutti_pool2d_options options2d = {.struct_size = sizeof options2d,
                                      .pool_size = {1, window},
                                      .strides = {1, stride},
                                      .padding = options.padding,
                                      .pads = {0, 0, options.pads[0], options.pads[1]}};
    return tutti_squeeze(pool2d(tutti_expand_dims(x, 1), &options2d), 1);
}

tutti_sym tutti_nn_max_pool1d_with(tutti_sym x, const tutti_pool1d_options *options)
{
    return pool1d("max_pool1d", tutti_nn_max_pool2d_with, x, options);
}

tutti_sym tutti_nn_average_pool1d_with(tutti_sym x, const tutti_pool1d_options *options)
{
    return pool1d("average_pool1d", tutti_nn_average_pool2d_with, x, options);
}

tutti_sym(tutti_nn_global_max_pool2d)(tutti_sym x)
{
    return tutti_max(x, .axes = TUTTI_AXES(1, 2));
}

tutti_sym(tutti_nn_global_average_pool2d)(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(1, 2));
}

tutti_sym(tutti_nn_global_max_pool1d)(tutti_sym x)
{
    return tutti_max(x, .axes = TUTTI_AXES(1));
}

tutti_sym(tutti_nn_global_average_pool1d)(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(1));
}

const tutti_composite tutti_composite_max_pool1d = {
    .name = "max_pool1d",
    .category = "network",
    .doc = "max_pool1d(x): the maximum of each window of time",
    .made_of = "max_pool2d over [batch, 1, time, channels]",
};

const tutti_composite tutti_composite_average_pool1d = {
    .name = "average_pool1d",
    .category = "network",
    .doc = "average_pool1d(x): the mean of each window of time",
    .made_of = "average_pool2d over [batch, 1, time, channels]",
};

const tutti_composite tutti_composite_global_max_pool2d = {
    .name = "global_max_pool2d",
    .category = "network",
    .doc = "global_max_pool2d(x): y[n,c] = max over h,w of x[n,h,w,c]",
    .made_of = "max",
};

const tutti_composite tutti_composite_global_average_pool2d = {
    .name = "global_average_pool2d",
    .category = "network",
    .doc = "global_average_pool2d(x): y[n,c] = mean over h,w of x[n,h,w,c]",
    .made_of = "mean",
};

const tutti_composite tutti_composite_global_max_pool1d = {
    .name = "global_max_pool1d",
    .category = "network",
    .doc = "global_max_pool1d(x): y[n,c] = max over t of x[n,t,c]",
    .made_of = "max",
};

const tutti_composite tutti_composite_global_average_pool1d = {
    .name = "global_average_pool1d",
    .category = "network",
    .doc = "global_average_pool1d(x): y[n,c] = mean over t of x[n,t,c]",
    .made_of = "mean",
};
