/* quantize.c: a copy of a model's inference form with its weights as constants and its products in
 * integers, as the blueprint of a functional model. */
#include "nn/quantize/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"

enum { LEAST_TERMS = 32 };

typedef struct copying {
    tutti_quantizing *q;
    tutti_model *to;
    tutti_node **map; /* by a node's id: its copy; NULL for weights */
    tutti_sym *syms;  /* by a node's id: output 0 where it is not the copy's */
} copying;

static tutti_status value_of(const copying *c, tutti_edge edge, tutti_tensor **ret)
{
    const tutti_node *variable;
    tutti__quantize_weight(edge, &variable);
    return tutti_get_weight(c->q->model, variable->name, ret);
}

/* The copy of a node's output. Weights become constants when they are first asked for: those of
 * products that are integers now never are. */
static tutti_sym copy_of(const copying *c, tutti_edge edge)
{
    const tutti_node *variable;
    tutti_sym *made = &c->syms[edge.node->id];
    tutti_tensor *value;
    if (!made->node && c->map[edge.node->id])
        return tutti__sym(c->map[edge.node->id], (int)edge.index);
    if (made->node || !tutti__quantize_weight(edge, &variable))
        return *made;
    if (value_of(c, edge, &value) != TUTTI_OK)
        return tutti__poison(c->to->blueprint, TUTTI_INTERNAL, "%s", tutti_error_message());
    *made = tutti_constant(c->to->blueprint, value);
    tutti_tensor_release(value);
    return *made;
}

static tutti_status add_inputs(copying *c)
{
    const tutti_model *model = c->q->model;
    for (size_t i = 0; i < model->fed.count; i++) {
        tutti_type type = model->inputs.data[i].type;
        memmove(type.dims, type.dims + 1, sizeof type.dims - sizeof type.dims[0]);
        type.rank--;
        c->syms[model->fed.data[i].node->id] =
            (tutti_input)(c->to, model->inputs.data[i].name, type);
        TUTTI_TRY(tutti_model_check(c->to));
    }
    return TUTTI_OK;
}

static const tutti_quantized_node *found_at(const copying *c, const tutti_node *node)
{
    for (size_t i = 0; i < c->q->found.count; i++)
        if (c->q->found.data[i].node == node)
            return &c->q->found.data[i];
    return NULL;
}

static tutti_status add_product(copying *c, const tutti_quantized_node *found)
{
    tutti_tensor *weight;
    TUTTI_TRY(value_of(c, found->node->inputs[1], &weight));
    tutti_status status = tutti__quantize_replace(found, copy_of(c, found->node->inputs[0]), weight,
                                                  &c->syms[found->node->id]);
    tutti_tensor_release(weight);
    return status;
}

static tutti_status add_copy(copying *c, const tutti_node *node)
{
    tutti_sym few[16], *inputs = few;
    if (node->op->flags & (TUTTI_OP_UPDATES | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s' works on state, which a quantised model has not", node->op->name,
                          node->name);
    if (node->input_count > 16 && !(inputs = malloc((size_t)node->input_count * sizeof *inputs)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to quantise a model");
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = copy_of(c, node->inputs[i]);
    tutti_sym copy = tutti__build(c->to->blueprint, node->op, node->name, node->input_count, inputs,
                                  node->attr_count, node->attrs);
    if (inputs != few)
        free(inputs);
    c->map[node->id] = copy.node;
    return tutti_graph_check(c->to->blueprint);
}

static tutti_status copy_nodes(copying *c)
{
    const tutti_graph *graph = c->q->model->graph;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        const tutti_node *variable;
        const tutti_quantized_node *found = found_at(c, node);
        if (!c->q->needed[n] || c->syms[n].node ||
            tutti__quantize_weight((tutti_edge){.node = node}, &variable))
            continue;
        TUTTI_TRY(found ? add_product(c, found) : add_copy(c, node));
        TUTTI_TRY(tutti_graph_check(c->to->blueprint));
    }
    for (size_t i = 0; i < c->q->model->answers.count; i++) {
        tutti_sym answer = c->q->model->answers.data[i];
        tutti_sym sym = copy_of(c, tutti__edge(answer));
        (tutti_output)(c->to, c->q->model->outputs.data[i].name, tutti_identity(sym));
    }
    return tutti_model_check(c->to);
}

static tutti_status quantize_fill(tutti_quantizing *q, tutti_model *to)
{
    size_t count = q->model->graph->nodes.count + 1;
    copying c = {.q = q, .to = to};
    c.map = calloc(count, sizeof *c.map);
    c.syms = calloc(count, sizeof *c.syms);
    tutti_status status =
        c.map && c.syms ? add_inputs(&c) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    if (status == TUTTI_OK)
        status = copy_nodes(&c);
    free(c.map);
    free(c.syms);
    return status;
}

tutti_model *tutti_quantize_model_with(tutti_model *model, tutti_dataset *data,
                                       const tutti_quantize_model_options *given)
{
    tutti_quantize_model_options options = {0};
    char name[256];
    memcpy(&options, given,
           given->struct_size < sizeof options ? given->struct_size : sizeof options);
    if (!model || tutti_model_check(model) != TUTTI_OK)
        return NULL;
    tutti_quantizing q = {.model = model, .least_terms = options.shallow ? 1 : LEAST_TERMS};
    tutti_status status = tutti__quantize_calibrate(&q, data, options.batches);
    tutti_model *to = NULL;
    snprintf(name, sizeof name, "%s_int8", model->name);
    if (status == TUTTI_OK)
        to = tutti_functional(model->job, .name = options.name ? options.name : name,
                              .precision = "f32");
    if (status == TUTTI_OK)
        status = to ? quantize_fill(&q, to) : tutti_job_check(model->job);
    if (status != TUTTI_OK)
        tutti__model_fail(model, status);
    free(q.needed);
    TUTTI_VEC_FREE(&q.found);
    return status == TUTTI_OK ? to : NULL;
}
