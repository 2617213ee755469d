/* conv.c: convolution. ONNX's kernels are [filters, channels / groups, height, width], ours
 * [height, width, channels / groups, filters]. */
#include <string.h>

#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"
#include "bridge/onnx/window.h"
#include "tensor/pending.h"

/* ---- writing ---- */

static tutti_tensor *permuted(const tutti_tensor *value, const int *order)
{
    tutti_tensor *turned;
    return tutti__tensor_turned((tutti_tensor *)value, order, &turned) == TUTTI_OK ? turned : NULL;
}

const char *tutti__onnx_write_kernel(tutti_onnx_export *x, int i)
{
    static const int orders[2][5] = {{3, 2, 0, 1, 0}, {4, 3, 0, 1, 2}};
    int rank = tutti__onnx_type_in(x, i)->rank;
    const int *order = orders[rank - 4];
    int64_t wide[5] = {order[0], order[1], order[2], order[3], order[4]};
    tutti_tensor *value;
    const tutti_node *node;
    if (!tutti__onnx_value_of(x, x->node->inputs[i], &value, &node))
        return tutti__onnx_turned(x, tutti__onnx_in(x, i), rank, wide);
    tutti_tensor *turned = permuted(value, order);
    tutti_tensor_release(value);
    if (turned)
        return tutti__onnx_weight(x, node, "conv kernel", turned);
    tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    return "";
}

static void write_conv2d(tutti_onnx_export *x)
{
    const int64_t *dilations, *kernel = tutti__onnx_type_in(x, 1)->dims;
    const char *image = tutti__onnx_in_first(x, 0);
    const char *y = ONNX(x, "Conv", image, tutti__onnx_write_kernel(x, 1));
    int count = NODE_INTS(x, "dilations", &dilations);
    if (kernel[0] > 0 && kernel[1] > 0)
        tutti__onnx_set_ints(x, "kernel_shape", 2, kernel);
    tutti__onnx_set_ints(x, "dilations", count, dilations);
    tutti__onnx_set_int(x, "group", NODE_INT(x, "groups"));
    tutti__onnx_set_window(x, kernel);
    tutti__onnx_out_as(x, 0, y, true);
}

static tutti_onnx_node *maker(tutti_onnx_export *x, const char *name)
{
    for (size_t i = x->onnx->graph.nodes.count; i-- > 0;)
        if (strcmp(x->onnx->graph.nodes.items[i].outputs.items[0], name) == 0)
            return &x->onnx->graph.nodes.items[i];
    return NULL;
}

bool tutti__onnx_write_bias(tutti_onnx_export *x)
{
    tutti_edge image = x->node->inputs[0], bias = x->node->inputs[1];
    const tutti_onnx_edge *edge = &x->edges[x->start[image.node->id]];
    static const char *const makers[] = {"conv2d", "conv3d", "conv2d_backward_input",
                                         "conv3d_backward_input"};
    bool convolves = false;
    for (size_t i = 0; i < TUTTI_COUNT(makers); i++)
        convolves = convolves || tutti__is(image.node, makers[i]);
    if (!x->needed[image.node->id] || !convolves || edge->uses != 1 || !edge->first ||
        tutti__edge_type(bias)->rank != 1 || !tutti__is(bias.node, "read"))
        return false;
    tutti_onnx_node *conv = maker(x, edge->first);
    if (!conv || strncmp(conv->type, "Conv", 4) != 0 || conv->inputs.count != 2)
        return false;
    const char **slot = ONNX_PUSH(&x->onnx->arena, &conv->inputs);
    if (!slot)
        return false;
    *slot = tutti__onnx_in(x, 1);
    tutti__onnx_out_as(x, 0, edge->first, true);
    return true;
}

/* ---- reading ---- */

/* ONNX's kernel [filters, channels, …] in our order [… , channels, filters]; of a transposed
 * convolution [channels, filters, …] as [… , filters, channels]. */
static const int *order_of(int rank)
{
    static const int orders[3][5] = {{2, 1, 0, 0, 0}, {2, 3, 1, 0, 0}, {2, 3, 4, 1, 0}};
    return orders[rank - 3];
}

static tutti_tensor *form_kernel(const tutti_tensor *value, const void *context)
{
    (void)context;
    return permuted(value, order_of(tutti_tensor_rank(value)));
}

tutti_sym tutti__onnx_read_kernel(tutti_onnx_import *m, int i, int rank)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, i);
    const int *order = order_of(rank);
    int64_t wide[5] = {order[0], order[1], order[2], order[3], order[4]};
    if (known->value && !known->plain.node)
        return tutti__onnx_formed(m, i, "conv kernel", form_kernel, NULL);
    return (tutti_transpose)(tutti__onnx_sym(m, i), rank, wide);
}

int tutti__onnx_kernel_type(tutti_onnx_import *m, int i, int64_t size[3])
{
    const tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (!known)
        return 0;
    tutti_sym sym = known->plain.node || known->value ? known->plain : known->last;
    if (!known->value && !sym.node)
        return 0;
    tutti_type type = known->value ? *tutti_tensor_type(known->value) : tutti_sym_type(sym);
    for (int k = 0; k < 3; k++)
        size[k] = k + 2 < type.rank ? type.dims[k + 2] : 1;
    if (type.rank >= 3 && type.rank <= 5)
        return type.rank;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is in %d dimensions; 1 to 3 are supported",
                          type.rank - 2);
    return 0;
}

/* A bias beside channels last. */
static tutti_sym biased(tutti_onnx_import *m, tutti_sym y, int i)
{
    return tutti__onnx_has(m, i) ? tutti_add(y, tutti__onnx_sym(m, i)) : y;
}

static void read_conv(tutti_onnx_import *m)
{
    tutti_onnx_window w;
    int64_t size[3], groups = tutti__onnx_attr_int(m, "group", 1);
    int rank = tutti__onnx_kernel_type(m, 1, size);
    tutti_sym x = tutti__onnx_sym_last(m, 0), y;
    if (rank == 0 || !tutti__onnx_read_window(m, x, rank - 2, size, &w))
        return;
    tutti_sym kernel = tutti__onnx_factor(m, tutti__onnx_read_kernel(m, 1, rank));
    tutti_sym factor = tutti__onnx_factor(m, x);
    const int64_t *s = w.strides, *d = w.dilations, *p = w.pads;
    if (rank == 3)
        y = tutti_nn_conv1d(factor, kernel, .strides = s[0], .dilations = d[0],
                            .padding = w.padding, .pads = {p[0], p[1]}, .groups = groups);
    else if (rank == 4)
        y = tutti_nn_conv2d(factor, kernel, .strides = {s[0], s[1]}, .dilations = {d[0], d[1]},
                            .padding = w.padding, .pads = {p[0], p[1], p[2], p[3]},
                            .groups = groups);
    else
        y = tutti_nn_conv3d(factor, kernel, .strides = {s[0], s[1], s[2]},
                            .dilations = {d[0], d[1], d[2]}, .padding = w.padding,
                            .pads = {p[0], p[1], p[2], p[3], p[4], p[5]}, .groups = groups);
    tutti__onnx_made_as(m, 0, biased(m, tutti__onnx_product(m, x, y), 2), true);
}

/* ---- transposed ---- */

typedef struct spread {
    int64_t out_padding[3];
    tutti_onnx_window w;
} spread;

/* Pads that give the wanted size: output_shape, or stride times the input for SAME. */
static bool settle_size(tutti_onnx_import *m, tutti_sym x, const int64_t *size, spread *t)
{
    const int64_t *wanted, *extra;
    tutti_type type = tutti_sym_type(x);
    int axes = t->w.axes, given = tutti__onnx_attr_ints(m, "output_shape", &wanted);
    const char *auto_pad = tutti__onnx_attr_string(m, "auto_pad", "NOTSET");
    int extras = tutti__onnx_attr_ints(m, "output_padding", &extra);
    bool same = strncmp(auto_pad, "SAME", 4) == 0;
    for (int i = 0; i < axes; i++) {
        t->out_padding[i] = i < extras ? extra[i] : 0;
        if (given == 0 && !same)
            continue;
        if (type.dims[i + 1] < 0 && given > 0) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "output_shape needs known dimensions");
            return false;
        }
        int64_t in = type.dims[i + 1], reach = (size[i] - 1) * t->w.dilations[i] + 1;
        int64_t out = given > 0 ? wanted[i + given - axes] : in * t->w.strides[i];
        int64_t all = given > 0 || in >= 0
                          ? t->w.strides[i] * (in - 1) + t->out_padding[i] + reach - out
                          : reach - t->w.strides[i] + t->out_padding[i];
        if (all < 0) { /* larger than the windows reach: more behind */
            t->out_padding[i] -= all;
            all = 0;
        }
        bool upper = strcmp(auto_pad, "SAME_UPPER") == 0;
        t->w.pads[2 * i] = upper ? all / 2 : all - all / 2;
        t->w.pads[2 * i + 1] = all - t->w.pads[2 * i];
    }
    t->w.padding = "explicit";
    return true;
}

static void read_conv_transpose(tutti_onnx_import *m)
{
    spread t;
    int64_t size[3], groups = tutti__onnx_attr_int(m, "group", 1);
    int rank = tutti__onnx_kernel_type(m, 1, size);
    tutti_sym x = tutti__onnx_sym_last(m, 0), y;
    if (rank == 0 || !x.node)
        return;
    const char *auto_pad = tutti__onnx_attr_string(m, "auto_pad", "NOTSET");
    const tutti_onnx_node *here = m->node;
    tutti_onnx_node plain = *here;
    if (strncmp(auto_pad, "SAME", 4) == 0) { /* its own rule, below */
        tutti_onnx_attr *kept =
            tutti__arena_array(&m->root->arena, here->attrs.count + 1, sizeof *kept);
        plain.attrs.items = kept;
        plain.attrs.count = 0;
        for (size_t i = 0; kept && i < here->attrs.count; i++)
            if (strcmp(here->attrs.items[i].name, "auto_pad") != 0)
                kept[plain.attrs.count++] = here->attrs.items[i];
    }
    m->node = &plain;
    bool read = tutti__onnx_read_window(m, x, rank - 2, size, &t.w);
    m->node = here;
    if (!read || !settle_size(m, x, size, &t))
        return;
    tutti_sym kernel = tutti__onnx_read_kernel(m, 1, rank);
    const int64_t *s = t.w.strides, *d = t.w.dilations, *p = t.w.pads, *o = t.out_padding;
    if (rank == 3)
        y = tutti_nn_conv1d_transpose(x, kernel, .strides = s[0], .dilations = d[0],
                                      .padding = "explicit", .pads = {p[0], p[1]}, .groups = groups,
                                      .output_padding = o[0]);
    else if (rank == 4)
        y = tutti_nn_conv2d_transpose(x, kernel, .strides = {s[0], s[1]}, .dilations = {d[0], d[1]},
                                      .padding = "explicit", .pads = {p[0], p[1], p[2], p[3]},
                                      .groups = groups, .output_padding = {o[0], o[1]});
    else
        y = tutti_nn_conv3d_transpose(x, kernel, .strides = {s[0], s[1], s[2]},
                                      .dilations = {d[0], d[1], d[2]}, .padding = "explicit",
                                      .pads = {p[0], p[1], p[2], p[3], p[4], p[5]},
                                      .groups = groups, .output_padding = {o[0], o[1], o[2]});
    tutti__onnx_made_as(m, 0, biased(m, y, 2), true);
}

const tutti_onnx_op tutti_onnx_conv = {
    .op = "conv2d",
    .type = "Conv",
    .write = write_conv2d,
    .read = read_conv,
};

const tutti_onnx_op tutti_onnx_conv_transpose = {
    .type = "ConvTranspose",
    .read = read_conv_transpose,
};
