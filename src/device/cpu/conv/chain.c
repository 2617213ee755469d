/* chain.c: takes the fused bodies of inference's convolutions apart; see layer.h. */
#include <math.h>
#include <string.h>

#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/windows.h"

/* Whether a node keeps its input between two bounds. */
static bool bounds_of(const tutti_node *node, float *ret_low, float *ret_high)
{
    bool clip = tutti__is(node, "clip"), relu6 = tutti__is(node, "relu6");
    if (!clip && !relu6 && !tutti__is(node, "relu"))
        return false;
    *ret_low = clip ? (float)tutti__float(node, "min") : 0;
    *ret_high = clip ? (float)tutti__float(node, "max") : relu6 ? 6 : INFINITY;
    return true;
}

/* A function of one element for which there is a loop. */
static bool loop_of(const tutti_node *node, tutti_conv_chain *ret)
{
    const tutti_tile_op *op = tutti__tile_find(node->op->name, node->attrs, node->attr_count);
    if (node->input_count != 1 || !(node->op->flags & TUTTI_OP_ELEMENTWISE) || op == NULL ||
        op->inputs != 1 || op->f32 == NULL)
        return false;
    ret->loop = op->f32;
    for (int i = 0; i < TUTTI_TILE_PARAMS && op->attrs[i] != NULL; i++)
        ret->params[i] = tutti_attr_float(node->attrs, node->attr_count, op->attrs[i]);
    return true;
}

/* The input of an addition that is made inside, the other being a parameter; -1: not so. */
static int inner_of(const tutti_node *add)
{
    for (int i = 0; i < 2 && tutti__is(add, "add"); i++)
        if (tutti__parameter_of(add->inputs[i]) < 0 && tutti__parameter_of(add->inputs[1 - i]) >= 0)
            return i;
    return -1;
}

/* Goes up from the result over activation, residual, bounds and bias; returns the convolution. */
static const tutti_node *climb(const tutti_node *node, tutti_conv_chain *ret)
{
    int inner;
    if (bounds_of(node, &ret->low[1], &ret->high[1]) || loop_of(node, ret))
        node = node->inputs[0].node;
    if ((inner = inner_of(node)) >= 0 && !tutti__is(node->inputs[inner].node, "conv2d") &&
        tutti_type_equal(tutti__edge_type(node->inputs[1 - inner]), &node->types[0])) {
        ret->residual = tutti__parameter_of(node->inputs[1 - inner]);
        node = node->inputs[inner].node;
        if (bounds_of(node, &ret->low[0], &ret->high[0]))
            node = node->inputs[0].node;
    }
    if ((inner = inner_of(node)) >= 0) {
        const tutti_node *conv = node->inputs[inner].node;
        tutti_edge other = node->inputs[1 - inner];
        bool row = tutti_type_count(tutti__edge_type(other)) == node->types[0].dims[3];
        *(row || ret->residual >= 0 ? &ret->bias : &ret->residual) = tutti__parameter_of(other);
        node = row || tutti_type_equal(tutti__edge_type(other), &node->types[0]) ? conv : node;
    }
    return node;
}

static bool is_plain(const tutti_type *type)
{
    return type->dtype == TUTTI_F32 && tutti_type_is_static(type) && tutti_type_count(type) > 0;
}

bool tutti__conv_chain(const tutti_infer *fused, tutti_conv_chain *ret)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    if (strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"), "conv2d_chain") !=
            0 ||
        body == NULL || body->value.graph->results.count != 1)
        return false;
    *ret = (tutti_conv_chain){
        .bias = -1, .residual = -1, .low = {-INFINITY, -INFINITY}, .high = {INFINITY, INFINITY}};
    const tutti_node *conv = climb(body->value.graph->results.data[0].node, ret);
    if (!tutti__is(conv, "conv2d"))
        return false;
    const tutti_type *x = tutti__edge_type(conv->inputs[0]),
                     *kernel = tutti__edge_type(conv->inputs[1]);
    ret->x = tutti__parameter_of(conv->inputs[0]);
    ret->kernel = tutti__parameter_of(conv->inputs[1]);
    if (ret->x < 0 || ret->kernel < 0 || !is_plain(x) || !is_plain(kernel) ||
        !is_plain(&conv->types[0]))
        return false;
    if (ret->residual < 0) { /* one pair of bounds is enough */
        ret->low[0] = ret->low[1];
        ret->high[0] = ret->high[1];
    }
    ret->shape = tutti__convolution(conv->attrs, conv->attr_count, x->dims, kernel->dims,
                                    conv->types[0].dims);
    return tutti__conv_countable(&ret->shape);
}
