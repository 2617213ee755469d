/* graphdef_rules.c: TensorFlow's operators as ours. Images are [batch, height, width, channels] on
 * both sides; NCHW is refused. */
#include "bridge/graphdef.h"

#include <string.h>

#define IN(i) tutti__graphdef_in(m, i)

static void made(tutti_graphdef_import *m, tutti_sym sym)
{
    if (m->status == TUTTI_OK)
        m->node->made = sym;
}

static int64_t attr_int(const tutti_graphdef_import *m, const char *name, int64_t fallback)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? attr->i : fallback;
}

static const char *attr_string(const tutti_graphdef_import *m, const char *name,
                               const char *fallback)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? attr->s : fallback;
}

/* ---- the same operator under another name ---- */

static const char *const same[][2] = {
    {"Add", "add"},
    {"AddV2", "add"},
    {"BiasAdd", "add"},
    {"Sub", "sub"},
    {"Mul", "mul"},
    {"RealDiv", "div"},
    {"Div", "div"},
    {"FloorDiv", "floordiv"},
    {"FloorMod", "mod"},
    {"Maximum", "maximum"},
    {"Minimum", "minimum"},
    {"Pow", "pow"},
    {"Relu", "relu"},
    {"Relu6", "relu6"},
    {"Selu", "selu"},
    {"Sigmoid", "sigmoid"},
    {"Tanh", "tanh"},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"Exp", "exp"},
    {"Expm1", "expm1"},
    {"Log", "log"},
    {"Log1p", "log1p"},
    {"Sqrt", "sqrt"},
    {"Rsqrt", "rsqrt"},
    {"Square", "square"},
    {"Neg", "neg"},
    {"Abs", "abs"},
    {"Sign", "sign"},
    {"Floor", "floor"},
    {"Ceil", "ceil"},
    {"Round", "round"},
    {"Rint", "round"},
    {"Reciprocal", "reciprocal"},
    {"Inv", "reciprocal"},
    {"Sin", "sin"},
    {"Cos", "cos"},
    {"Tan", "tan"},
    {"Asin", "asin"},
    {"Acos", "acos"},
    {"Atan", "atan"},
    {"Sinh", "sinh"},
    {"Cosh", "cosh"},
    {"Erf", "erf"},
    {"Equal", "equal"},
    {"NotEqual", "not_equal"},
    {"Less", "less"},
    {"LessEqual", "less_equal"},
    {"Greater", "greater"},
    {"GreaterEqual", "greater_equal"},
    {"LogicalAnd", "logical_and"},
    {"LogicalOr", "logical_or"},
    {"LogicalNot", "logical_not"},
    {"Select", "where"},
    {"SelectV2", "where"},
    {"ZerosLike", "zeros_like"},
    {"OnesLike", "ones_like"},
    {"StopGradient", "stop_gradient"},
    {"IsNan", "is_nan"},
    {"IsInf", "is_inf"},
    {"IsFinite", "is_finite"},
};

static void read_same(tutti_graphdef_import *m)
{
    tutti_sym inputs[4];
    int count = tutti__graphdef_inputs(m->node);
    size_t i = 0;
    while (strcmp(same[i][0], m->node->op) != 0)
        i++;
    for (int k = 0; k < count && k < 4; k++)
        inputs[k] = IN(k);
    if (count < 1 || count > 4)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "has %d inputs", count);
    if (m->status == TUTTI_OK)
        made(m, tutti_apply_op(m->graph, same[i][1], count, inputs, 0, NULL));
}

/* ---- ends ---- */

static void read_const(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, "value");
    if (attr && attr->tensor)
        made(m, tutti_constant(m->graph, attr->tensor));
    else
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "its elements are of a type that is not known");
}

static void read_placeholder(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *dtype = tutti__graphdef_attr(m->node, "dtype");
    const tutti_graphdef_attr *shape = tutti__graphdef_attr(m->node, "shape");
    if (!dtype || !shape || !shape->has_shape || !shape->ranked ||
        tutti__graphdef_dtype_of(dtype->type) == TUTTI_NO_DTYPE) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "its element type or number of dimensions is not "
                             "known");
        return;
    }
    tutti_type type = shape->shape;
    type.dtype = tutti__graphdef_dtype_of(dtype->type);
    made(m, (tutti_placeholder)(m->graph, type));
}

static void read_identity(tutti_graphdef_import *m)
{
    made(m, IN(0));
}

static void read_nothing(tutti_graphdef_import *m)
{
    (void)m;
}

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

/* Split has its axis first, SplitV sizes and axis last, Unpack the axis as an attribute. */
static void read_split(tutti_graphdef_import *m)
{
    bool equal = strcmp(m->node->op, "Split") == 0, sized = strcmp(m->node->op, "SplitV") == 0;
    tutti_sym x = IN(equal ? 1 : 0);
    tutti_axes axis = {.count = 1, .values = {attr_int(m, "axis", 0)}}, sizes = {0};
    int64_t count = attr_int(m, equal || sized ? "num_split" : "num", 1);
    if (m->status != TUTTI_OK ||
        ((equal || sized) && !tutti__graphdef_ints(m, sized ? 2 : 0, &axis)) ||
        (sized && !tutti__graphdef_ints(m, 1, &sizes)))
        return;
    if (axis.count != 1 || count < 1 || count > 4096 || (sized && sizes.count != count))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "makes %lld pieces", (long long)count);
    else if (sized)
        made(m, (tutti_split_sizes)(x, (int)axis.values[0], sizes.count, sizes.values));
    else
        made(m, equal ? tutti_split_into(x, (int)axis.values[0], (int)count)
                      : tutti_unstack(x, (int)axis.values[0], (int)count));
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

/* ---- shapes ---- */

/* A shape that is computed stands for itself by what is filled with it. */
static void read_reshape(tutti_graphdef_import *m)
{
    tutti_axes dims;
    tutti_sym x = IN(0), shape = IN(1);
    if (m->status != TUTTI_OK)
        return;
    if (tutti__is(shape.node, "constant")) {
        if (tutti__graphdef_ints(m, 1, &dims))
            made(m, (tutti_reshape)(x, dims.count, dims.values));
        return;
    }
    tutti_type type = tutti_sym_type(shape);
    if (type.rank != 1 || type.dims[0] < 0 || type.dims[0] > TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "the number of its dimensions is not known");
        return;
    }
    /* -1 is what the others leave: size(x) / -product */
    shape = type.dtype == TUTTI_I64 ? shape : tutti_cast(shape, TUTTI_I64);
    tutti_sym size = tutti_cast((tutti_size)(x, 0, NULL), TUTTI_F64);
    tutti_sym product = tutti_cast(tutti_prod(shape), TUTTI_F64);
    tutti_sym open = tutti_cast(tutti_neg(tutti_div(size, product)), TUTTI_I64);
    tutti_sym below = tutti_less(shape, tutti_scalar_like(shape, 0));
    tutti_sym whole = tutti_where(below, open, shape);
    made(m, tutti_reshape_like(x, (tutti_fill_dynamic)(whole, TUTTI_BOOL, 0, 0, NULL)));
}

static void read_squeeze(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *axes = tutti__graphdef_attr(m->node, "squeeze_dims");
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m,
             (tutti_squeeze)(x, axes ? (int)axes->ints.count : 0, axes ? axes->ints.items : NULL));
}

static void read_expand_dims(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &axis) && axis.count == 1)
        made(m, tutti_expand_dims(x, (int)axis.values[0]));
}

static void read_transpose(tutti_graphdef_import *m)
{
    tutti_axes order;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &order))
        made(m, (tutti_transpose)(x, order.count, order.values));
}

static void read_tile(tutti_graphdef_import *m)
{
    tutti_axes times;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &times))
        made(m, (tutti_tile)(x, times.count, times.values));
}

/* ConcatV2 has its axis last; Pack as an attribute; AddN adds. */
static void read_join(tutti_graphdef_import *m)
{
    tutti_sym parts[64];
    tutti_axes axis = {.count = 1};
    bool joins = strcmp(m->node->op, "ConcatV2") == 0;
    int count = tutti__graphdef_inputs(m->node) - joins;
    if (count < 1 || count > 64) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d inputs", count);
        return;
    }
    for (int i = 0; i < count; i++)
        parts[i] = IN(i);
    if (m->status != TUTTI_OK || (joins && !tutti__graphdef_ints(m, count, &axis)))
        return;
    if (joins) {
        made(m, (tutti_concat)((int)axis.values[0], count, parts));
    } else if (strcmp(m->node->op, "Pack") == 0) {
        made(m, (tutti_stack)((int)attr_int(m, "axis", 0), count, parts));
    } else {
        for (int i = 1; i < count; i++)
            parts[0] = tutti_add(parts[0], parts[i]);
        made(m, parts[0]);
    }
}

static void read_pad(tutti_graphdef_import *m)
{
    tutti_pad_options o = {.struct_size = sizeof o};
    const tutti_tensor *pads = tutti__graphdef_value(m, 1);
    tutti_sym x = IN(0);
    const tutti_tensor *value = m->status == TUTTI_OK && strcmp(m->node->op, "PadV2") == 0
                                    ? tutti__graphdef_value(m, 2)
                                    : NULL;
    if (m->status != TUTTI_OK || tutti_tensor_count(pads) > 2 * TUTTI_MAX_RANK)
        return;
    o.before.count = o.after.count = (int)(tutti_tensor_count(pads) / 2);
    for (int i = 0; i < o.before.count; i++) {
        o.before.values[i] = tutti_tensor_get_int(pads, 2 * i);
        o.after.values[i] = tutti_tensor_get_int(pads, 2 * i + 1);
    }
    o.value = value ? tutti_tensor_get(value, 0) : 0;
    made(m, (tutti_pad)(x, &o));
}

static void read_cast(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *to = tutti__graphdef_attr(m->node, "DstT");
    tutti_dtype dtype = to ? tutti__graphdef_dtype_of(to->type) : TUTTI_NO_DTYPE;
    tutti_sym x = IN(0);
    if (dtype == TUTTI_NO_DTYPE || dtype == TUTTI_STRING)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "converts to a type that is not known");
    if (m->status == TUTTI_OK)
        made(m, tutti_cast(x, dtype));
}

static void read_shape(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *to = tutti__graphdef_attr(m->node, "out_type");
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, to && to->type == 9 ? tutti_shape(x) : tutti_cast(tutti_shape(x), TUTTI_I32));
}

static void read_gather(tutti_graphdef_import *m)
{
    tutti_axes axis = {.count = 1};
    tutti_sym x = IN(0), at = IN(1);
    if (m->status == TUTTI_OK && strcmp(m->node->op, "GatherV2") == 0 &&
        !tutti__graphdef_ints(m, 2, &axis))
        return;
    if (m->status == TUTTI_OK)
        made(m, tutti_gather(x, at, (int)axis.values[0]));
}

/* x[begin:end:step] with masks: bit i of begin_mask and end_mask leaves an end open, of
 * shrink_axis_mask takes one element and drops the axis. */
static void read_strided_slice(tutti_graphdef_import *m)
{
    tutti_axes begin, end, step, drop = {0};
    tutti_slice_options o = {.struct_size = sizeof o};
    tutti_sym x = IN(0);
    if (attr_int(m, "ellipsis_mask", 0) || attr_int(m, "new_axis_mask", 0))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "ellipsis and new axes are not supported");
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &begin) ||
        !tutti__graphdef_ints(m, 2, &end) || !tutti__graphdef_ints(m, 3, &step))
        return;
    o.begin.count = o.end.count = o.step.count = begin.count;
    for (int i = 0; i < begin.count && i < end.count && i < step.count; i++) {
        bool shrinks = attr_int(m, "shrink_axis_mask", 0) >> i & 1;
        int64_t from = begin.values[i];
        o.begin.values[i] = attr_int(m, "begin_mask", 0) >> i & 1 ? TUTTI_FIRST : from;
        o.end.values[i] = attr_int(m, "end_mask", 0) >> i & 1 ? TUTTI_LAST : end.values[i];
        o.step.values[i] = step.values[i];
        if (!shrinks)
            continue;
        o.begin.values[i] = from;
        o.end.values[i] = from == -1 ? TUTTI_LAST : from + 1;
        drop.values[drop.count++] = i;
    }
    tutti_sym y = (tutti_slice)(x, &o);
    made(m, drop.count > 0 ? (tutti_squeeze)(y, drop.count, drop.values) : y);
}

static void read_fill(tutti_graphdef_import *m)
{
    tutti_axes dims;
    tutti_sym value = IN(1);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 0, &dims))
        made(m, (tutti_broadcast_to)(value, dims.count, dims.values));
}

/* 1 - erf(x) */
static void read_erfc(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_add_scalar(tutti_neg(tutti_erf(x)), 1));
}

static void read_squared_difference(tutti_graphdef_import *m)
{
    tutti_sym a = IN(0), b = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_square(tutti_sub(a, b)));
}

static const struct {
    const char *op;
    tutti_graphdef_rule *rule;
} rules[] = {
    {"Const", read_const},
    {"Placeholder", read_placeholder},
    {"Identity", read_identity},
    {"IdentityN", read_identity},
    {"NoOp", read_nothing},
    {"MatMul", read_matmul},
    {"BatchMatMul", read_matmul},
    {"BatchMatMulV2", read_matmul},
    {"Conv2D", read_conv},
    {"DepthwiseConv2dNative", read_conv},
    {"Conv2DBackpropInput", read_conv_transpose},
    {"ResizeBilinear", read_resize},
    {"ResizeNearestNeighbor", read_resize},
    {"Einsum", read_einsum},
    {"Split", read_split},
    {"SplitV", read_split},
    {"Unpack", read_split},
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
    {"Reshape", read_reshape},
    {"Squeeze", read_squeeze},
    {"ExpandDims", read_expand_dims},
    {"Transpose", read_transpose},
    {"Tile", read_tile},
    {"ConcatV2", read_join},
    {"Pack", read_join},
    {"AddN", read_join},
    {"Pad", read_pad},
    {"PadV2", read_pad},
    {"Cast", read_cast},
    {"Shape", read_shape},
    {"Gather", read_gather},
    {"GatherV2", read_gather},
    {"StridedSlice", read_strided_slice},
    {"Fill", read_fill},
    {"Erfc", read_erfc},
    {"SquaredDifference", read_squared_difference},
};

tutti_graphdef_rule *tutti__graphdef_rule_of(const char *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(rules); i++)
        if (strcmp(rules[i].op, op) == 0)
            return rules[i].rule;
    for (size_t i = 0; i < TUTTI_COUNT(same); i++)
        if (strcmp(same[i][0], op) == 0)
            return read_same;
    return NULL;
}
