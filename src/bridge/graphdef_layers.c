/* graphdef_layers.c: TensorFlow's products, windows, norms and reductions. Images are [batch,
 * height, width, channels] on both sides; NCHW is refused. */
#include "bridge/graphdef_rules.h"

#include <string.h>

/* ---- products and windows ---- */

static void read_matmul(tutti_graphdef_import *m)
{
    bool batched = strncmp(m->node->op, "Batch", 5) == 0;
    const char *a = batched ? "adj_x" : "transpose_a", *b = batched ? "adj_y" : "transpose_b";
    tutti_sym x = IN(0), y = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_matmul(x, y, .transpose_a = attr_int(m, a, 0) != 0,
                             .transpose_b = attr_int(m, b, 0) != 0));
}

typedef struct window {
    int64_t strides[2], dilations[2], size[2], pads[4];
    const char *padding;
} window;

static bool read_window(tutti_graphdef_import *m, window *w)
{
    static const char *const names[] = {"strides", "dilations", "ksize"};
    int64_t *to[] = {w->strides, w->dilations, w->size};
    const char *padding = attr_string(m, "padding", "VALID");
    *w = (window){{1, 1}, {1, 1}, {1, 1}, {0}, strcmp(padding, "SAME") == 0 ? "same" : "valid"};
    for (int i = 0; i < 3; i++) {
        const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, names[i]);
        for (int k = 0; attr && attr->ints.count == 4 && k < 2; k++)
            to[i][k] = attr->ints.items[k + 1];
    }
    const tutti_graphdef_attr *pads = tutti__graphdef_attr(m->node, "explicit_paddings");
    if (strcmp(padding, "EXPLICIT") == 0 && pads && pads->ints.count == 8) {
        w->padding = "explicit";
        for (int k = 0; k < 4; k++)
            w->pads[k] = pads->ints.items[k + 2];
    }
    if (strcmp(attr_string(m, "data_format", "NHWC"), "NHWC") != 0)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "is channels first");
    return m->status == TUTTI_OK;
}

static void read_conv(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0), kernel = IN(1);
    if (m->status != TUTTI_OK || !read_window(m, &w))
        return;
    tutti_conv2d_options o = {.struct_size = sizeof o,
                              .strides = {w.strides[0], w.strides[1]},
                              .dilations = {w.dilations[0], w.dilations[1]},
                              .padding = w.padding,
                              .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}};
    if (strcmp(m->node->op, "Conv2D") == 0) {
        tutti_type image = tutti_sym_type(x), weights = tutti_sym_type(kernel);
        bool known =
            image.rank == 4 && weights.rank == 4 && image.dims[3] > 0 && weights.dims[2] > 0;
        o.groups = known ? image.dims[3] / weights.dims[2] : 1;
        made(m, (tutti_conv2d_of)(x, kernel, &o));
    } else {
        made(m, (tutti_depthwise_conv2d_of)(x, kernel, &o));
    }
}

/* Sizes of the image, kernel, gradient: Keras' transposed convolution, whose sizes follow. */
static void read_conv_transpose(tutti_graphdef_import *m)
{
    window w;
    tutti_sym kernel = IN(1), x = IN(2);
    if (m->status != TUTTI_OK || !read_window(m, &w))
        return;
    made(m, tutti_conv2d_transpose_of(x, kernel, .strides = {w.strides[0], w.strides[1]},
                                      .dilations = {w.dilations[0], w.dilations[1]},
                                      .padding = w.padding,
                                      .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}));
}

/* Pixels are points at their corners, or areas with centres. */
static void read_resize(tutti_graphdef_import *m)
{
    tutti_axes size;
    tutti_sym x = IN(0);
    bool linear = strcmp(m->node->op, "ResizeBilinear") == 0;
    bool corners = attr_int(m, "align_corners", 0), centres = attr_int(m, "half_pixel_centers", 0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &size))
        return;
    if (size.count != 2) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "has %d sizes", size.count);
        return;
    }
    made(m, tutti_resize(x, .sizes = {size.values[0], size.values[1]},
                         .mode = linear ? "linear" : "nearest",
                         .coordinates = corners   ? "align_corners"
                                        : centres ? "half_pixel"
                                                  : "asymmetric",
                         .nearest_mode = corners || centres ? "round_prefer_ceil" : "floor"));
}

static void read_einsum(tutti_graphdef_import *m)
{
    tutti_sym inputs[8];
    int count = tutti__graphdef_inputs(m->node);
    if (count < 1 || count > 8)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d operands", count);
    for (int i = 0; m->status == TUTTI_OK && i < count; i++)
        inputs[i] = IN(i);
    if (m->status == TUTTI_OK)
        made(m, (tutti_einsum)(attr_string(m, "equation", ""), count, inputs));
}

static void read_pool(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !read_window(m, &w))
        return;
    tutti_pool2d_options o = {.struct_size = sizeof o,
                              .window = {w.size[0], w.size[1]},
                              .strides = {w.strides[0], w.strides[1]},
                              .padding = w.padding,
                              .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}};
    made(m, strcmp(m->node->op, "MaxPool") == 0 ? (tutti_max_pool2d_of)(x, &o)
                                                : (tutti_average_pool2d_of)(x, &o));
}

static void read_batch_norm(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *epsilon = tutti__graphdef_attr(m->node, "epsilon");
    tutti_sym in[5];
    for (int i = 0; i < 5; i++)
        in[i] = IN(i);
    if (attr_int(m, "is_training", 1))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "is in training mode");
    if (m->status == TUTTI_OK)
        made(m, tutti_batch_norm_inference_of(in[0], in[1], in[2], in[3], in[4],
                                              .epsilon = epsilon ? (double)epsilon->f : 1e-4));
}

/* ---- one number of many ---- */

static void read_reduce(tutti_graphdef_import *m)
{
    static const char *const ops[][2] = {{"Mean", "mean"}, {"Sum", "sum"},   {"Max", "max"},
                                         {"Min", "min"},   {"Prod", "prod"}, {"All", "all"},
                                         {"Any", "any"}};
    tutti_axes axes;
    tutti_sym x = IN(0);
    size_t i = 0;
    while (strcmp(ops[i][0], m->node->op) != 0)
        i++;
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axes))
        return;
    tutti_attr attrs[] = {TUTTI_INTS("axes", axes.count, axes.values),
                          TUTTI_INT("keep_dims", attr_int(m, "keep_dims", 0) != 0)};
    made(m, axes.count == 0 ? x : tutti_apply_op(m->graph, ops[i][1], 1, &x, 2, attrs));
}

static void read_argmax(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    const tutti_graphdef_attr *type = tutti__graphdef_attr(m->node, "output_type");
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axis) || axis.count != 1)
        return;
    tutti_sym y = strcmp(m->node->op, "ArgMax") == 0 ? tutti_argmax(x, (int)axis.values[0])
                                                     : tutti_argmin(x, (int)axis.values[0]);
    made(m, type && type->type == 3 ? tutti_cast(y, TUTTI_I32) : y);
}

static void read_softmax(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m,
             m->node->op[0] == 'L' ? tutti_log_softmax_along(x, -1) : tutti_softmax_along(x, -1));
}

static void read_alpha(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *alpha = tutti__graphdef_attr(m->node, "alpha");
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, m->node->op[0] == 'E' ? tutti_elu(x, 1)
                                      : tutti_leaky_relu(x, alpha ? (double)alpha->f : 0.2));
}

const tutti_graphdef_entry tutti__graphdef_layers[] = {
    {"MatMul", read_matmul},
    {"BatchMatMul", read_matmul},
    {"BatchMatMulV2", read_matmul},
    {"Conv2D", read_conv},
    {"DepthwiseConv2dNative", read_conv},
    {"Conv2DBackpropInput", read_conv_transpose},
    {"ResizeBilinear", read_resize},
    {"ResizeNearestNeighbor", read_resize},
    {"Einsum", read_einsum},
    {"MaxPool", read_pool},
    {"AvgPool", read_pool},
    {"FusedBatchNorm", read_batch_norm},
    {"FusedBatchNormV2", read_batch_norm},
    {"FusedBatchNormV3", read_batch_norm},
    {"Mean", read_reduce},
    {"Sum", read_reduce},
    {"Max", read_reduce},
    {"Min", read_reduce},
    {"Prod", read_reduce},
    {"All", read_reduce},
    {"Any", read_reduce},
    {"ArgMax", read_argmax},
    {"ArgMin", read_argmax},
    {"Softmax", read_softmax},
    {"LogSoftmax", read_softmax},
    {"Elu", read_alpha},
    {"LeakyRelu", read_alpha},
    {NULL, NULL},
};
