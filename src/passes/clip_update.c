/* clip_update.c: clipping goes into the update: update(clip(g s)) becomes one pass over the memory.
 *
 * A gradient that is multiplied by a number, or cut to [-c, c], only for one update, is handed to
 * it as it is, with the number as input "scale" and the bound as attribute "clip". The update
 * computes the same product, and cuts after it. An update of rows sums those of one index before
 * it does either: a product may wait for the sum, a bound may not. */
#include <math.h>

#include "ops/update/rule.h"
#include "passes/group.h"

typedef struct clipping {
    tutti_edge gradient, scale; /* scale.node NULL: there is none */
    double clip;                /* 0: none */
} clipping;

/* A node of which nobody else takes the value. */
static bool is_between(const tutti_node *node, const char *op, const tutti_uses *uses)
{
    return tutti__is(node, op) && !tutti__rewrite_pinned(node) && node->scratch != NULL &&
           !uses->wanted[node->id] && uses->first[node->id + 1] - uses->first[node->id] == 1;
}

static clipping look_back(tutti_edge gradient, bool of_rows, const tutti_uses *uses)
{
    clipping c = {.gradient = gradient};
    const tutti_node *node = gradient.node;
    if (!of_rows && is_between(node, "clip", uses)) {
        double low = tutti_attr_float(node->attrs, node->attr_count, "min"),
               high = tutti_attr_float(node->attrs, node->attr_count, "max");
        if (low == -high && high > 0 && isfinite(high)) {
            c.clip = high;
            c.gradient = node->inputs[0];
        }
    }
    node = c.gradient.node;
    for (int i = 0; i < 2 && c.scale.node == NULL && is_between(node, "mul", uses); i++) {
        const tutti_type *number = tutti__edge_type(node->inputs[1 - i]);
        if (number->rank != 0 || number->dtype != TUTTI_F32 ||
            !tutti_type_equal(tutti__edge_type(node->inputs[i]), &node->types[0]))
            continue;
        c.scale = node->inputs[1 - i];
        c.gradient = node->inputs[i];
    }
    return c;
}

static bool is_update(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_UPDATES) && node->op->infer == tutti__update_infer &&
           tutti_attr_find(node->attrs, node->attr_count, "scaled") != NULL;
}

/* Another list of attributes, with two of them changed. */
static tutti_attr *change_attrs(tutti_graph *graph, const tutti_node *node, const clipping *c)
{
    tutti_attr *attrs =
        tutti__arena_array(&graph->arena, (size_t)node->attr_count + 1, sizeof *attrs);
    for (int i = 0; attrs != NULL && i < node->attr_count; i++) {
        attrs[i] = node->attrs[i];
        if (strcmp(attrs[i].name, "scaled") == 0 && c->scale.node != NULL)
            attrs[i].value.i = 1;
        if (strcmp(attrs[i].name, "clip") == 0 && c->clip > 0)
            attrs[i].value.f = c->clip;
    }
    return attrs;
}

/* The update stays the node that it is: others wait for it. */
static tutti_status clip_update_fold(tutti_rewrite *rewrite, tutti_node *node,
                                     const tutti_update_layout *at, const clipping *c)
{
    tutti_graph *graph = rewrite->graph;
    tutti_edge *inputs =
        tutti__arena_array(&graph->arena, (size_t)node->input_count + 2, sizeof *inputs);
    tutti_attr *attrs = change_attrs(graph, node, c);
    if (inputs == NULL || attrs == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to clip in '%s'", node->name);
    int count = 0;
    for (int i = 0; i < node->input_count; i++) {
        if (i == at->apply && c->scale.node != NULL)
            inputs[count++] = c->scale;
        inputs[count++] = i == at->gradient ? c->gradient : node->inputs[i];
    }
    if (at->apply < 0 && c->scale.node != NULL)
        inputs[count++] = c->scale;
    node->inputs = inputs;
    node->input_count = count;
    node->attrs = attrs;
    rewrite->changes++;
    return TUTTI_OK;
}

static tutti_status look_at(tutti_rewrite *rewrite, const tutti_uses *uses, tutti_node *node)
{
    if (!is_update(node))
        return TUTTI_OK;
    tutti_update_layout at =
        tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
    if (at.scale >= 0 || tutti_attr_float(node->attrs, node->attr_count, "clip") > 0 ||
        tutti__edge_type(node->inputs[at.gradient])->dtype != TUTTI_F32)
        return TUTTI_OK;
    clipping c = look_back(node->inputs[at.gradient], at.indices >= 0, uses);
    return c.scale.node != NULL || c.clip > 0 ? clip_update_fold(rewrite, node, &at, &c) : TUTTI_OK;
}

static tutti_status clip_update_run(tutti_graph *graph, const tutti_pass_context *context,
                                    int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    if (!tutti__group_device_fuses(context)) {
        *ret_changes = 0;
        return TUTTI_OK;
    }
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    for (size_t n = 0; status == TUTTI_OK && n < rewrite.node_count; n++)
        status = look_at(&rewrite, &uses, graph->nodes.data[n]);
    tutti__uses_free(&uses);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_clip_update = {
    .name = "clip_update",
    .doc = "clipping of gradients goes into the updates that take them",
    .stage = TUTTI_PASS_PARTITION,
    .order = 52,
    .run = clip_update_run,
};
