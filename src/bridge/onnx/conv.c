/* conv.c: convolution. ONNX's kernels are [filters, channels / groups, height, width], ours
 * [height, width, channels / groups, filters]. */
#include <string.h>

#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"
#include "bridge/onnx/window.h"

/* ---- writing ---- */

static tutti_tensor *permuted(const tutti_tensor *value, const int *order)
{
    tutti_tensor *view, *copy = NULL;
    if (tutti_tensor_permute((tutti_tensor *)value, order, &view) != TUTTI_OK)
        return NULL;
    if (tutti_tensor_contiguous(view, &copy) != TUTTI_OK)
        copy = NULL;
    tutti_tensor_release(view);
    return copy;
}

/* The kernel in ONNX's order: turned here when it is a weight, else in the graph. */
static const char *write_kernel(tutti_onnx_export *x)
{
    static const int order[] = {3, 2, 0, 1};
    tutti_tensor *value;
    const tutti_node *node;
    if (!tutti__onnx_value_of(x, x->node->inputs[1], &value, &node))
        return tutti__onnx_turned(x, tutti__onnx_in(x, 1), 4, (int64_t[]){3, 2, 0, 1});
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
    const char *y = ONNX(x, "Conv", image, write_kernel(x));
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
    if (!x->needed[image.node->id] || !tutti__is(image.node, "conv2d") || edge->uses != 1 ||
        !edge->first || tutti__edge_type(bias)->rank != 1 || !tutti__is(bias.node, "read"))
        return false;
    tutti_onnx_node *conv = maker(x, edge->first);
    if (!conv || strcmp(conv->type, "Conv") != 0 || conv->inputs.count != 2)
        return false;
    const char **slot = ONNX_PUSH(&x->onnx->arena, &conv->inputs);
    if (!slot)
        return false;
    *slot = tutti__onnx_in(x, 1);
    tutti__onnx_out_as(x, 0, edge->first, true);
    return true;
}

/* ---- reading ---- */

/* ONNX's kernel in our order. */
static const int *order_of(int rank)
{
    static const int orders[2][4] = {{2, 1, 0, 0}, {2, 3, 1, 0}};
    return orders[rank - 3];
}

static tutti_tensor *form_kernel(const tutti_tensor *value, const void *context)
{
    (void)context;
    return permuted(value, order_of(tutti_tensor_rank(value)));
}

static tutti_sym read_kernel(tutti_onnx_import *m, int rank)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 1);
    const int *order = order_of(rank);
    int64_t wide[4] = {order[0], order[1], order[2], order[3]};
    if (known->value && !known->plain.node)
        return tutti__onnx_formed(m, 1, "conv kernel", form_kernel, NULL);
    return (tutti_transpose)(tutti__onnx_sym(m, 1), rank, wide);
}

static int kernel_rank(tutti_onnx_import *m)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 1);
    if (!known)
        return 0;
    tutti_sym sym = known->plain.node ? known->plain : known->last;
    return known->value ? tutti_tensor_rank(known->value) : sym.node ? tutti_sym_type(sym).rank : 0;
}

static void read_conv(tutti_onnx_import *m)
{
    tutti_onnx_window w;
    int rank = kernel_rank(m);
    if (rank != 3 && rank != 4) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is in %d dimensions; 1 and 2 are supported",
                              rank - 2);
        return;
    }
    if (!tutti__onnx_read_window(m, rank - 2, &w))
        return;
    tutti_sym x = tutti__onnx_sym_last(m, 0), kernel = read_kernel(m, rank), y;
    int64_t groups = tutti__onnx_attr_int(m, "group", 1);
    if (rank == 3)
        y = tutti_conv1d_of(x, kernel, .stride = w.strides[0], .dilation = w.dilations[0],
                            .padding = w.padding, .pads = {w.pads[0], w.pads[1]}, .groups = groups);
    else
        y = tutti_conv2d_of(x, kernel, .strides = {w.strides[0], w.strides[1]},
                            .dilations = {w.dilations[0], w.dilations[1]}, .padding = w.padding,
                            .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}, .groups = groups);
    if (tutti__onnx_has(m, 2))
        y = tutti_add(y, tutti__onnx_sym(m, 2));
    tutti__onnx_made_as(m, 0, y, true);
}

const tutti_onnx_op tutti_onnx_conv = {
    .op = "conv2d",
    .type = "Conv",
    .write = write_conv2d,
    .read = read_conv,
};
