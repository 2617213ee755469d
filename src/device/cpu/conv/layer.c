/* layer.c: see layer.h. */
#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/windows.h"

#include <string.h>

/* The body's only node of an operator; NULL when there is none. */
static const tutti_node *layer_find(const tutti_graph *body, const char *op)
{
    for (size_t i = 0; i < body->nodes.count; i++)
        if (tutti__is(body->nodes.data[i], op))
            return body->nodes.data[i];
    return NULL;
}

static int result_of(const tutti_graph *body, const tutti_node *node)
{
    for (size_t i = 0; i < body->results.count; i++)
        if (body->results.data[i].node == node)
            return (int)i;
    return -1;
}

static const tutti_graph *body_of(const tutti_infer *fused, const char *pattern)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    bool same = strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"), pattern) == 0;
    return same && body != NULL ? body->value.graph : NULL;
}

static bool is_plain(const tutti_type *type)
{
    return type->dtype == TUTTI_F32 && tutti_type_is_static(type) && tutti_type_count(type) > 0;
}

static bool shape_of(const tutti_node *conv, const tutti_type *x, const tutti_type *kernel,
                     const tutti_type *y, tutti_convolution *ret)
{
    if (!is_plain(x) || !is_plain(kernel) || !is_plain(y))
        return false;
    *ret = tutti__convolution(conv->attrs, conv->attr_count, x->dims, kernel->dims, y->dims);
    return ret->groups == 1 && tutti__conv_countable(ret);
}

static bool windows_of(const tutti_node *pool, const tutti_type *x, tutti_windows *ret)
{
    *ret = tutti__pool_windows(pool->attrs, pool->attr_count, x->dims);
    for (int a = 0; a < 2; a++)
        if (ret->before[a] != 0 || ret->stride[a] != ret->size[a] ||
            ret->out[a] * ret->size[a] > ret->in[a])
            return false;
    return true;
}

bool tutti__conv_layer(const tutti_infer *fused, const char *pattern, tutti_conv_layer *ret)
{
    const tutti_graph *body = body_of(fused, pattern);
    const tutti_node *conv = body == NULL ? NULL : layer_find(body, "conv2d"),
                     *add = conv == NULL ? NULL : layer_find(body, "add");
    if (add == NULL || !shape_of(conv, tutti__edge_type(conv->inputs[0]),
                                 tutti__edge_type(conv->inputs[1]), &conv->types[0], &ret->shape))
        return false;
    const tutti_node *relu = layer_find(body, "relu"), *pool = layer_find(body, "max_pool2d");
    ret->attrs = conv->attrs;
    ret->attr_count = conv->attr_count;
    ret->x = tutti__parameter_of(conv->inputs[0]);
    ret->kernel = tutti__parameter_of(conv->inputs[1]);
    ret->bias = tutti__parameter_of(add->inputs[add->inputs[0].node == conv ? 1 : 0]);
    ret->relu = relu != NULL;
    ret->map = result_of(body, relu != NULL ? relu : add);
    ret->pooled = pool != NULL;
    ret->pool = pool != NULL ? result_of(body, pool) : -1;
    return ret->x >= 0 && ret->kernel >= 0 && ret->bias >= 0 &&
           (pool == NULL || windows_of(pool, &conv->types[0], &ret->windows));
}

bool tutti__conv_layer_gradient(const tutti_infer *fused, const char *pattern,
                                tutti_conv_layer_gradient *ret)
{
    const tutti_graph *body = body_of(fused, pattern);
    const tutti_node *conv = body == NULL ? NULL : layer_find(body, "conv2d_backward_kernel"),
                     *pool = conv == NULL ? NULL : layer_find(body, "max_pool2d_backward");
    if (pool == NULL || !shape_of(conv, tutti__edge_type(conv->inputs[0]), &conv->types[0],
                                  tutti__edge_type(conv->inputs[1]), &ret->shape))
        return false;
    const tutti_node *sum = layer_find(body, "sum");
    ret->x = tutti__parameter_of(conv->inputs[0]);
    ret->y = tutti__parameter_of(pool->inputs[0]);
    ret->grad = tutti__parameter_of(pool->inputs[1]);
    ret->kernel_grad = result_of(body, conv);
    ret->bias_grad = sum == NULL ? -1 : result_of(body, sum);
    return ret->x >= 0 && ret->y >= 0 && ret->grad >= 0 && ret->kernel_grad >= 0 &&
           windows_of(pool, tutti__edge_type(pool->inputs[0]), &ret->windows);
}
