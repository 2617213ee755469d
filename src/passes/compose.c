/* compose.c: reductions that have no kernel of their own become others that have one:
 *
 *     logsumexp(x)  ->  m + log(sum(exp(x - m))), m = max(x)
 *     variance(x)   ->  mean(square(x - mean(x)))
 *     norm(x)       ->  m sqrt(sum(square(x / m))), m = max(abs(x)); sum(abs(x)) where ord is 1
 *
 * m is 0, or 1, where it is no number that one could subtract, or divide by: then the rest is not
 * either, or nothing can overflow. Values of 16 bits are computed in 32. */
#include "base/pool.h"
#include "passes/rewrite.h"
#include "program/kernel.h"

/* One reduction that is replaced. */
typedef struct composing {
    tutti_rewrite *rewrite;
    const tutti_node *node;
    const tutti_attr *axes;
    tutti_status status; /* of the first step that failed; the others do nothing then */
} composing;

static tutti_edge compose_step(composing *c, const char *op, int input_count, tutti_edge *inputs,
                               int attr_count, const tutti_attr *attrs)
{
    tutti_edge made = {0};
    if (c->status == TUTTI_OK)
        c->status = tutti__rewrite_add(c->rewrite, c->node, op, input_count, inputs, attr_count,
                                       attrs, &made);
    return made;
}

static tutti_edge unary(composing *c, const char *op, tutti_edge x)
{
    return compose_step(c, op, 1, &x, 0, NULL);
}

static tutti_edge binary(composing *c, const char *op, tutti_edge x, tutti_edge y)
{
    return compose_step(c, op, 2, (tutti_edge[]){x, y}, 0, NULL);
}

/* Over the node's axes, which stay with size 1. */
static tutti_edge reduced(composing *c, const char *op, tutti_edge x)
{
    tutti_attr attrs[] = {*c->axes, TUTTI_INT("keepdims", 1)};
    return compose_step(c, op, 1, &x, 2, attrs);
}

static tutti_edge compose_scalar(composing *c, tutti_edge like, double value)
{
    tutti_edge made = {0};
    if (c->status == TUTTI_OK)
        c->status =
            tutti__rewrite_scalar(c->rewrite, c->node, tutti__edge_type(like)->dtype, value, &made);
    return made;
}

static tutti_edge where(composing *c, tutti_edge condition, tutti_edge x, double otherwise)
{
    tutti_edge inputs[] = {condition, x, compose_scalar(c, x, otherwise)};
    return compose_step(c, "where", 3, inputs, 0, NULL);
}

static tutti_edge logsumexp(composing *c, tutti_edge x)
{
    tutti_edge most = reduced(c, "max", x);
    tutti_edge shift = where(c, unary(c, "is_finite", most), most, 0);
    tutti_edge sum = reduced(c, "sum", unary(c, "exp", binary(c, "sub", x, shift)));
    return binary(c, "add", unary(c, "log", sum), shift);
}

static tutti_edge variance(composing *c, tutti_edge x)
{
    tutti_edge mean = reduced(c, "mean", x);
    return reduced(c, "mean", unary(c, "square", binary(c, "sub", x, mean)));
}

static tutti_edge norm(composing *c, tutti_edge x)
{
    tutti_edge sizes = unary(c, "abs", x);
    if (tutti_attr_int(c->node->attrs, c->node->attr_count, "ord") == 1)
        return reduced(c, "sum", sizes);
    tutti_edge most = reduced(c, "max", sizes);
    tutti_edge large = unary(c, "is_finite", unary(c, "reciprocal", most)); /* not 0, nor tiny */
    tutti_edge unit =
        where(c, binary(c, "logical_and", unary(c, "is_finite", most), large), most, 1);
    tutti_edge squares = unary(c, "square", binary(c, "div", x, unit));
    return binary(c, "mul", unary(c, "sqrt", reduced(c, "sum", squares)), unit);
}

static const struct {
    const char *op;
    tutti_edge (*compose)(composing *c, tutti_edge x);
} ways[] = {{"logsumexp", logsumexp}, {"variance", variance}, {"norm", norm}};

/* Whether the device has kernels, and none for this node. */
static bool lacks_kernel(const tutti_pass_context *context, const tutti_node *node)
{
    const tutti_device *device = context == NULL ? NULL : context->device;
    tutti_type inputs[1];
    if (device == NULL || device->target->kernels == NULL)
        return false;
    tutti_kernel_query query = {.node = tutti__node_rule(node, inputs),
                                .threads = tutti__pool_most(device->pool),
                                .deterministic = context->deterministic};
    return tutti__device_kernel(device, &query) == NULL;
}

static tutti_edge cast(composing *c, tutti_edge x, tutti_dtype dtype)
{
    return c->status != TUTTI_OK || tutti__edge_type(x)->dtype == dtype
               ? x
               : compose_step(c, "cast", 1, &x, 1, &TUTTI_INT("dtype", dtype));
}

static tutti_status rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *type = &node->types[0];
    size_t w = 0;
    while (w < TUTTI_COUNT(ways) && !tutti__is(node, ways[w].op))
        w++;
    if (w == TUTTI_COUNT(ways) || !tutti_type_is_static(type) ||
        !tutti_type_is_static(tutti__edge_type(node->inputs[0])) ||
        tutti_type_count(tutti__edge_type(node->inputs[0])) < 1 ||
        !lacks_kernel(rewrite->context, node))
        return TUTTI_OK;
    composing c = {.rewrite = rewrite,
                   .node = node,
                   .axes = tutti_attr_find(node->attrs, node->attr_count, "axes")};
    tutti_dtype wide = tutti_dtype_size(type->dtype) == 2 ? TUTTI_F32 : type->dtype;
    tutti_edge made = ways[w].compose(&c, cast(&c, node->inputs[0], wide));
    made = cast(&c, made, type->dtype);
    TUTTI_TRY(c.status);
    return tutti__rewrite_reshape(rewrite, node, made, type->rank, type->dims, ret);
}

static tutti_status compose_run(tutti_graph *graph, const tutti_pass_context *context,
                                int *ret_changes)
{
    return tutti__rewrite_nodes(graph, context, rule, ret_changes);
}

const tutti_pass tutti_pass_compose = {
    .name = "compose",
    .doc = "reductions without a kernel of their own become others that have one",
    .stage = TUTTI_PASS_PARTITION,
    .order = 41,
    .run = compose_run,
};
