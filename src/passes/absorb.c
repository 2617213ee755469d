/* absorb.c: scales and shifts of channels behind a convolution or product whose weights are
 * constant go into the weights and one bias, as batch norm's inference form does: conv2d(x, kernel)
 * * s + t  →  conv2d(x, kernel s) + t (matmul(x, w) + b) * s     →  matmul(x, w s) + b s Weights
 * that are variables are left alone. Products are rounded in another order than before, so results
 * may differ in the last bits: the one pass of which that is true. */
#include <math.h>
#include <stdlib.h>

#include "passes/group.h"

/* y = v scale + shift, per channel, v the value of `first`. */
typedef struct chain {
    tutti_node *first, *last;
    int64_t channels;
    int scales, shifts; /* nodes of each kind */
    double *scale, *shift;
} chain;

/* The constant beside v in a node that works per channel: a row of the last axis, or one number. */
static tutti_tensor *row_beside(const tutti_node *node, const tutti_node *v, int64_t channels)
{
    int own = node->input_count == 2 && node->inputs[0].node == v ? 0 : 1;
    if (node->input_count != 2 || node->inputs[own].node != v || node->inputs[1 - own].node == v ||
        (own == 1 && (tutti__is(node, "sub") || tutti__is(node, "div"))) ||
        !tutti_type_equal(&node->types[0], &v->types[0]))
        return NULL;
    tutti_tensor *row = tutti__constant_of(node->inputs[1 - own]);
    if (row == NULL || tutti_tensor_dtype(row) != TUTTI_F32)
        return NULL;
    int rank = tutti_tensor_rank(row);
    int64_t count = tutti_tensor_count(row);
    bool fits = count == 1 || (count == channels && tutti_tensor_dims(row)[rank - 1] == channels);
    return fits ? row : NULL;
}

static bool absorb_take(chain *c, tutti_node *node)
{
    bool scales = tutti__is(node, "mul") || tutti__is(node, "div");
    bool shifts = tutti__is(node, "add") || tutti__is(node, "sub");
    tutti_tensor *row = scales || shifts ? row_beside(node, c->last, c->channels) : NULL;
    if (row == NULL || tutti__rewrite_pinned(node))
        return false;
    bool one = tutti_tensor_count(row) == 1;
    for (int64_t i = 0; i < c->channels; i++) {
        double value = tutti_tensor_get(row, one ? 0 : i);
        value = tutti__is(node, "div") ? 1 / value : tutti__is(node, "sub") ? -value : value;
        c->scale[i] *= scales ? value : 1;
        c->shift[i] = scales ? c->shift[i] * value : c->shift[i] + value;
    }
    c->scales += scales;
    c->shifts += shifts;
    c->last = node;
    return true;
}

/* The user of a value that has only one, or NULL. */
static tutti_node *only_user(const tutti_uses *uses, const tutti_node *node)
{
    uint32_t first = uses->first[node->id];
    return uses->wanted[node->id] || uses->first[node->id + 1] - first != 1 ? NULL
                                                                            : uses->users[first];
}

/* Weights whose last axis is the channels of the result. */
static tutti_tensor *weights_of(const tutti_node *node)
{
    bool product = tutti__is(node, "matmul");
    if ((!product && !tutti__is(node, "conv2d")) || node->types[0].dtype != TUTTI_F32 ||
        !tutti_type_is_static(&node->types[0]) || tutti__rewrite_pinned(node) ||
        (product && tutti__int(node, "transpose_b") != 0))
        return NULL;
    tutti_tensor *weights = tutti__constant_of(node->inputs[1]);
    return weights != NULL && tutti_tensor_is_contiguous(weights) &&
                   tutti_tensor_rank(weights) == (product ? 2 : 4)
               ? weights
               : NULL;
}

static tutti_status scaled(const tutti_tensor *weights, const chain *c, tutti_tensor **ret)
{
    tutti_tensor *made;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, tutti_tensor_rank(weights), tutti_tensor_dims(weights),
                                  &made));
    const float *from = tutti_tensor_data((tutti_tensor *)weights);
    float *to = tutti_tensor_data(made);
    for (int64_t i = 0; i < tutti_tensor_count(weights); i += c->channels)
        for (int64_t k = 0; k < c->channels; k++)
            to[i + k] = (float)(from[i + k] * c->scale[k]);
    *ret = made;
    return TUTTI_OK;
}

/* The new weights, and behind them the bias. */
static tutti_status rebuild(tutti_rewrite *rewrite, const chain *c, tutti_tensor *weights)
{
    tutti_tensor *made, *row = NULL;
    tutti_edge inputs[2] = {c->first->inputs[0]}, y, bias;
    tutti_status status = scaled(weights, c, &made);
    if (status == TUTTI_OK) {
        status = tutti__rewrite_constant(rewrite, c->first, made, &inputs[1]);
        tutti_tensor_release(made);
    }
    if (status == TUTTI_OK)
        status = tutti__rewrite_add(rewrite, c->first, c->first->op->name, 2, inputs,
                                    c->first->attr_count, c->first->attrs, &y);
    if (status == TUTTI_OK && c->shifts > 0)
        status = tutti_tensor_create(TUTTI_F32, 1, &c->channels, &row);
    if (row != NULL) {
        for (int64_t i = 0; i < c->channels; i++)
            tutti_tensor_set(row, i, c->shift[i]);
        status = tutti__rewrite_constant(rewrite, c->last, row, &bias);
        if (status == TUTTI_OK)
            status = tutti__rewrite_add(rewrite, c->last, "add", 2, (tutti_edge[]){y, bias}, 0,
                                        NULL, &y);
        tutti_tensor_release(row);
    }
    return status == TUTTI_OK ? tutti__rewrite_replace(rewrite, c->last, 0, y) : status;
}

static tutti_status look_at(tutti_rewrite *rewrite, const tutti_uses *uses, tutti_node *node)
{
    tutti_tensor *weights = weights_of(node);
    tutti_node *user = weights == NULL ? NULL : only_user(uses, node);
    if (user == NULL)
        return TUTTI_OK;
    int64_t channels = node->types[0].dims[node->types[0].rank - 1];
    chain c = {.first = node, .last = node, .channels = channels};
    c.scale = calloc(2 * (size_t)channels + 1, sizeof *c.scale);
    if (c.scale == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to scale %lld channels", (long long)channels);
    c.shift = c.scale + channels;
    for (int64_t i = 0; i < channels; i++)
        c.scale[i] = 1;
    while (user != NULL && absorb_take(&c, user))
        user = only_user(uses, user);
    bool pays = c.scales > 0 || c.shifts > 1;
    for (int64_t i = 0; i < channels; i++) /* 0 inf is no number, and v / 0 may be one */
        pays = pays && isfinite(c.scale[i]) && isfinite(c.shift[i]);
    tutti_status status = pays ? rebuild(rewrite, &c, weights) : TUTTI_OK;
    free(c.scale);
    return status;
}

static tutti_status absorb_run(tutti_graph *graph, const tutti_pass_context *context,
                               int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    for (size_t n = 0; status == TUTTI_OK && n < rewrite.node_count; n++) {
        tutti__rewrite_visit(graph->nodes.data[n]);
        status = look_at(&rewrite, &uses, graph->nodes.data[n]);
    }
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++)
        tutti__rewrite_visit(graph->nodes.data[n]);
    tutti__uses_free(&uses);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_absorb = {
    .name = "absorb",
    .doc = "scales and shifts of channels go into the constant weights before them",
    .stage = TUTTI_PASS_JOB,
    .order = 25,
    .run = absorb_run,
};
