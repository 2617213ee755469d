/* widen.c: operators on 16 bits for which the device has kernels of 32 bits only are computed in 32
 * bits, and values that only go from one of them to the next are never rounded: convolutions with
 * bias, activation and pool, say, which then find the kernels that are made for all of it.
 *
 *     conv2d(x16, cast16(k32)) -> cast16(conv2d(cast32(x16), k32))    cast32(cast16(y32)) -> y32
 *
 * Convolutions and recurrent networks of bf16 become such whose products may be of bf16 (attribute
 * `products`): kernels that round what they multiply read and write 32 bits, beside neighbours that
 * have nothing else.
 *
 * An operator that can do both (element by element, or moving elements) goes with the largest of
 * its inputs, one of 32 bits or rounded from such a one, if somebody wants its value in 32 bits.
 * In deterministic mode all its inputs of 16 bits have to be such.
 *
 * Values are nearer to what 32 bits give than the graph asks for, never further away; the explicit
 * rounding of somebody who asks for 32 bits again stays.
 *
 * Nodes of the gradients widen what they need of the forward pass again, so that only the 16 bits
 * are kept until then. */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "passes/group.h"

enum { MOST = 16, MOST_ATTRS = 32 }; /* inputs and outputs of a node; attributes */

/* NARROW: stays. MAY: its value comes from rounded ones. FOLLOWS: from one that MUST be wide,
 * because there is no other kernel. */
typedef enum wideness { NARROW, MAY, FOLLOWS, MUST } wideness;

typedef struct widening {
    tutti_rewrite rewrite;
    tutti_uses uses;
    wideness *wide;   /* by id */
    tutti_edge *once; /* by id, forward and backward: output 0 in 32 bits; node NULL: not yet */
} widening;

static bool is_narrow(const tutti_type *type)
{
    return !type->handle && (type->dtype == TUTTI_BF16 || type->dtype == TUTTI_F16);
}

/* A rounding to 16 bits. */
static bool is_rounding(const tutti_node *node)
{
    return tutti__is(node, "cast") && tutti__edge_type(node->inputs[0])->dtype == TUTTI_F32 &&
           is_narrow(&node->types[0]);
}

/* Some value of 16 bits, no type named by an attribute, no body. */
static bool may_widen(const tutti_node *node)
{
    bool narrow = false;
    if ((!tutti__is_pure(node) && !tutti__is(node, "dropout")) || tutti__rewrite_pinned(node) ||
        tutti__is(node, "cast") || tutti__is(node, "constant") || node->input_count < 1 ||
        node->input_count > MOST || node->output_count < 1 || node->output_count > MOST ||
        node->attr_count > MOST_ATTRS)
        return false;
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, "dtype") == 0 || node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            return false;
    for (int i = 0; i < node->input_count; i++)
        narrow = narrow || is_narrow(tutti__edge_type(node->inputs[i]));
    for (int i = 0; i < node->output_count; i++)
        if (!tutti_type_is_static(&node->types[i]))
            return false;
    return narrow;
}

/* Whether the device runs it by a kernel of 32 bits. */
static bool is_widened(const tutti_pass_context *context, const tutti_node *node)
{
    tutti_type inputs[MOST];
    tutti_kernel_query query = {.node = tutti__node_rule(node, inputs),
                                .threads = tutti__pool_most(context->device->pool),
                                .deterministic = context->deterministic};
    const tutti_kernel *kernel = tutti__device_kernel(context->device, &query);
    return kernel != NULL && kernel->flags & TUTTI_KERNEL_WIDENS;
}

/* Operators that are as good in 32 bits as in 16. Not whether two values are equal, of which one
 * may have been rounded, nor whether one has overflowed. */
static bool is_either(const tutti_node *node)
{
    static const char *const tests[] = {"equal", "not_equal", "is_finite", "is_inf", "is_nan"};
    for (size_t i = 0; i < TUTTI_COUNT(tests); i++)
        if (tutti__is(node, tests[i]))
            return false;
    return node->op->flags & (TUTTI_OP_ELEMENTWISE | TUTTI_OP_VIEW) ||
           tutti__is(node, "transpose") || tutti__is(node, "sum") || tutti__is(node, "mean");
}

/* The largest input of 16 bits. */
static const tutti_node *main_input(const tutti_node *node)
{
    const tutti_node *largest = NULL;
    int64_t most = -1;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (is_narrow(type) && tutti_type_count(type) > most) {
            most = tutti_type_count(type);
            largest = node->inputs[i].node;
        }
    }
    return largest;
}

/* By a node of 32 bits or, where that counts, by somebody who widens it. */
static bool is_wanted_wide(const widening *w, const tutti_node *node, bool casts)
{
    for (uint32_t u = w->uses.first[node->id]; u < w->uses.first[node->id + 1]; u++) {
        const tutti_node *user = w->uses.users[u];
        if (w->wide[user->id] != NARROW ||
            (casts && tutti__is(user, "cast") && user->types[0].dtype == TUTTI_F32))
            return true;
    }
    return false;
}

/* What a node may be for the sake of this input. */
static wideness after(const widening *w, const tutti_node *input)
{
    if (is_rounding(input))
        return MAY;
    wideness before = w->wide[input->id];
    return before == MUST ? FOLLOWS : before;
}

/* For the sake of all inputs of 16 bits: which one is the largest depends on the rows that a
 * replica has, and so would the bits. */
static wideness after_all(const widening *w, const tutti_node *node)
{
    wideness most = NARROW;
    for (int i = 0; i < node->input_count; i++) {
        if (!is_narrow(tutti__edge_type(node->inputs[i])))
            continue;
        wideness one = after(w, node->inputs[i].node);
        if (one == NARROW && tutti__constant_of(node->inputs[i]) == NULL)
            return NARROW;
        most = one > most ? one : most;
    }
    return most;
}

/* What node n is before anybody is asked who wants it. */
static wideness wideness_of(const widening *w, const tutti_node *node)
{
    if (!may_widen(node))
        return NARROW;
    if (is_widened(w->rewrite.context, node))
        return MUST;
    const tutti_node *input = is_either(node) ? main_input(node) : NULL;
    if (input == NULL)
        return NARROW;
    return w->rewrite.context->deterministic ? after_all(w, node) : after(w, input);
}

/* Fills in `wide`: down the graph those that must be or may be, up the graph not those that nobody
 * wants so. Returns how many are left. */
static size_t widen_choose(widening *w)
{
    tutti_node *const *nodes = w->rewrite.graph->nodes.data;
    size_t count = 0;
    for (size_t n = 0; n < w->rewrite.node_count; n++)
        w->wide[n] = wideness_of(w, nodes[n]);
    for (size_t n = w->rewrite.node_count; n-- > 0;) {
        if (w->wide[n] == MAY || w->wide[n] == FOLLOWS)
            w->wide[n] = is_wanted_wide(w, nodes[n], w->wide[n] == FOLLOWS) ? w->wide[n] : NARROW;
        count += w->wide[n] != NARROW;
    }
    return count;
}

/* A value in 32 bits. */
static tutti_status widen_edge(widening *w, const tutti_node *user, tutti_edge edge,
                               tutti_edge *ret)
{
    tutti_tensor *constant = tutti__constant_of(edge);
    bool known =
        edge.node->id < w->rewrite.node_count && edge.index == 0 && edge.node->scratch != NULL;
    tutti_edge *once = known ? &w->once[2 * edge.node->id + user->backward] : NULL;
    *ret = edge;
    if (!is_narrow(tutti__edge_type(edge)))
        return TUTTI_OK;
    if (is_rounding(edge.node)) {
        *ret = edge.node->inputs[0];
        return TUTTI_OK;
    }
    if (constant != NULL && tutti_tensor_count(constant) == 1 && tutti__edge_type(edge)->rank == 0)
        return tutti__rewrite_scalar(&w->rewrite, user, TUTTI_F32, tutti_tensor_get(constant, 0),
                                     ret);
    if (once != NULL && once->node != NULL) {
        *ret = *once;
        return TUTTI_OK;
    }
    tutti_attr attrs[] = {TUTTI_INT("dtype", TUTTI_F32)};
    TUTTI_TRY(tutti__rewrite_add(&w->rewrite, user, "cast", 1, &edge, 1, attrs, ret));
    if (once != NULL)
        *once = *ret;
    return TUTTI_OK;
}

/* The node's attributes, of which one, if it has it, says that products of bf16 are enough. */
static int wide_attrs(const tutti_node *node, tutti_attr *ret)
{
    for (int i = 0; i < node->attr_count; i++) {
        bool products = strcmp(node->attrs[i].name, "products") == 0;
        ret[i] = products && tutti__edge_type(node->inputs[0])->dtype == TUTTI_BF16
                     ? TUTTI_STR("products", "bf16")
                     : node->attrs[i];
    }
    return node->attr_count;
}

/* The node in 32 bits, and its values rounded for those who want 16. */
static tutti_status widen_node(widening *w, tutti_node *node)
{
    tutti_edge inputs[MOST], wide;
    tutti_attr own[MOST_ATTRS];
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(widen_edge(w, node, node->inputs[i], &inputs[i]));
    TUTTI_TRY(tutti__rewrite_add(&w->rewrite, node, node->op->name, node->input_count, inputs,
                                 wide_attrs(node, own), own, &wide));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge to = {wide.node, (uint32_t)i};
        tutti_attr attrs[] = {TUTTI_INT("dtype", node->types[i].dtype)};
        if (is_narrow(&node->types[i]))
            TUTTI_TRY(tutti__rewrite_add(&w->rewrite, node, "cast", 1, &to, 1, attrs, &to));
        TUTTI_TRY(tutti__rewrite_replace(&w->rewrite, node, (uint32_t)i, to));
    }
    return TUTTI_OK;
}

/* cast32(cast16(y)) of a rounding that was made here. */
static tutti_status see_through(widening *w, tutti_node *node)
{
    const tutti_node *rounding = node->inputs[0].node;
    if (!tutti__is(node, "cast") || node->types[0].dtype != TUTTI_F32 ||
        tutti__rewrite_pinned(node) || !is_rounding(rounding) || rounding->scratch != NULL)
        return TUTTI_OK;
    return tutti__rewrite_replace(&w->rewrite, node, 0, rounding->inputs[0]);
}

static tutti_status walk(widening *w)
{
    if (widen_choose(w) == 0)
        return TUTTI_OK;
    for (size_t n = 0; n < w->rewrite.node_count; n++) {
        tutti_node *node = w->rewrite.graph->nodes.data[n];
        tutti__rewrite_visit(node);
        TUTTI_TRY(w->wide[n] != NARROW ? widen_node(w, node) : see_through(w, node));
    }
    return TUTTI_OK;
}

static bool has_narrow(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        for (int i = 0; i < graph->nodes.data[n]->output_count; i++)
            if (is_narrow(&graph->nodes.data[n]->types[i]))
                return true;
    return false;
}

static tutti_status widen_run(tutti_graph *graph, const tutti_pass_context *context,
                              int *ret_changes)
{
    widening w = {0};
    *ret_changes = 0;
    if (context == NULL || context->device == NULL || context->device->target->kernels == NULL ||
        !has_narrow(graph))
        return TUTTI_OK;
    w.wide = calloc(graph->nodes.count + 1, sizeof *w.wide);
    w.once = calloc(2 * graph->nodes.count + 1, sizeof *w.once);
    tutti_status status = tutti__rewrite_begin(&w.rewrite, graph, context);
    if (status == TUTTI_OK && (w.wide == NULL || w.once == NULL))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to widen %zu nodes", graph->nodes.count);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &w.uses);
    if (status == TUTTI_OK)
        status = walk(&w);
    tutti__uses_free(&w.uses);
    free(w.wide);
    free(w.once);
    return tutti__rewrite_end(&w.rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_widen = {
    .name = "widen",
    .doc = "operators on 16 bits that only have kernels of 32 are computed in 32, without "
           "rounding in between",
    .stage = TUTTI_PASS_PARTITION,
    .order = 47,
    .run = widen_run,
};
