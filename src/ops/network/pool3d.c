/* pool3d.c: pooling of volumes, made of other operators. A window's maximum is that of its planes'
 * maxima; its mean that of its planes' means, since all its planes reach equally far into the
 * input. */
#include "ops/composite.h"
#include "ops/network/network.h"

typedef tutti_sym pool2d_fn(tutti_sym x, const tutti_pool2d_options *options);

/* [batch, depth, height, width, channels] as images [batch * depth, height, width, channels], then
 * as images [batch, depth, height * width, channels]. */
static tutti_sym pool3d(const char *op, pool2d_fn *pool2d, tutti_sym x,
                        const tutti_pool3d_options *given)
{
    char text[TUTTI_TYPE_TEXT];
    TAKE_OPTIONS(tutti_pool3d_options, o, given);
    if (!tutti__usable(op, x))
        return TUTTI_POISON;
    tutti_type type = tutti_sym_type(x);
    const int64_t *in = type.dims;
    if (type.rank != 5 || in[1] < 1 || in[2] < 1 || in[3] < 1 || in[4] < 1)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "%s: x is %s, needs [batch,depth,height,width,channels], of which "
                             "only the batch may be unknown",
                             op, tutti_type_text(&type, text));
    for (int axis = 0; axis < 3; axis++) {
        o.pool_size[axis] = o.pool_size[axis] == 0 ? 2 : o.pool_size[axis];
        o.strides[axis] = o.strides[axis] == 0 ? o.pool_size[axis] : o.strides[axis];
    }
    const int64_t *p = o.pads;
    if (o.padding == NULL && (p[0] | p[1] | p[2] | p[3] | p[4] | p[5]) != 0)
        o.padding = "explicit";
    tutti_pool2d_options plane = {.struct_size = sizeof plane,
                                  .pool_size = {o.pool_size[1], o.pool_size[2]},
                                  .strides = {o.strides[1], o.strides[2]},
                                  .padding = o.padding,
                                  .pads = {p[2], p[3], p[4], p[5]}};
    tutti_pool2d_options depth = {.struct_size = sizeof depth,
                                  .pool_size = {o.pool_size[0], 1},
                                  .strides = {o.strides[0], 1},
                                  .padding = o.padding,
                                  .pads = {p[0], p[1], 0, 0}};
    tutti_sym planes = pool2d(tutti_reshape(x, -1, in[2], in[3], in[4]), &plane);
    if (!tutti_sym_ok(planes))
        return TUTTI_POISON;
    tutti_type pooled = tutti_sym_type(planes);
    int64_t rows = pooled.dims[1], columns = pooled.dims[2];
    tutti_sym y = pool2d(tutti_reshape(planes, -1, in[1], rows * columns, in[4]), &depth);
    if (!tutti_sym_ok(y))
        return TUTTI_POISON;
    return tutti_reshape(y, -1, tutti_sym_type(y).dims[1], rows, columns, in[4]);
}

tutti_sym tutti_nn_max_pool3d_with(tutti_sym x, const tutti_pool3d_options *options)
{
    return pool3d("max_pool3d", tutti_nn_max_pool2d_with, x, options);
}

tutti_sym tutti_nn_average_pool3d_with(tutti_sym x, const tutti_pool3d_options *options)
{
    return pool3d("average_pool3d", tutti_nn_average_pool2d_with, x, options);
}

tutti_sym(tutti_nn_global_max_pool3d)(tutti_sym x)
{
    return tutti_max(x, .axes = TUTTI_AXES(1, 2, 3));
}

tutti_sym(tutti_nn_global_average_pool3d)(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(1, 2, 3));
}

const tutti_composite tutti_composite_max_pool3d = {
    .name = "max_pool3d",
    .category = "network",
    .doc = "max_pool3d(x): the maximum of each window of depth, height and width",
    .made_of = "max_pool2d over planes, then over depth",
};

const tutti_composite tutti_composite_average_pool3d = {
    .name = "average_pool3d",
    .category = "network",
    .doc = "average_pool3d(x): the mean of each window of depth, height and width",
    .made_of = "average_pool2d over planes, then over depth",
};

const tutti_composite tutti_composite_global_max_pool3d = {
    .name = "global_max_pool3d",
    .category = "network",
    .doc = "global_max_pool3d(x): y[n,c] = max over d,h,w of x[n,d,h,w,c]",
    .made_of = "max",
};

const tutti_composite tutti_composite_global_average_pool3d = {
    .name = "global_average_pool3d",
    .category = "network",
    .doc = "global_average_pool3d(x): y[n,c] = mean over d,h,w of x[n,d,h,w,c]",
    .made_of = "mean",
};
