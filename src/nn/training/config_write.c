/* config_write.c: a model as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/training/config.h"
#include "tutti/checkpoint.h"

tutti_status tutti__config_write_layer(const tutti_layer *layer, tutti_json_writer *w)
{
    char who[300];
    snprintf(who, sizeof who, "layer '%s' (%s)", layer->name, layer->kind->name);
    tutti__json_begin(w, '{');
    tutti__json_key(w, "kind");
    tutti__json_put_string(w, layer->kind->name);
    tutti__json_key(w, "name");
    tutti__json_put_string(w, layer->name);
    if (layer->frozen) {
        tutti__json_key(w, "frozen");
        tutti__json_put_bool(w, true);
    }
    if (layer->remat) {
        tutti__json_key(w, "remat");
        tutti__json_put_bool(w, true);
    }
    tutti_model *inner = tutti__layer_model(layer);
    if (inner) {
        tutti__json_key(w, "model");
        TUTTI_TRY(tutti__config_write(inner, w));
    } else {
        TUTTI_TRY(tutti__settings_write(who, layer->kind->fields, layer->settings, w));
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

static void write_shape(const tutti_type *type, int from, tutti_json_writer *w)
{
    tutti__json_key(w, "dtype");
    tutti__json_put_string(w, tutti_dtype_name(type->dtype));
    tutti__json_key(w, "shape");
    tutti__json_begin(w, '[');
    for (int i = from; i < type->rank; i++) {
        if (type->dims[i] < 0)
            tutti__json_put_null(w);
        else
            tutti__json_put_int(w, type->dims[i]);
    }
    tutti__json_end(w);
}

/* ---- operators that stand in a blueprint by themselves ---- */

static tutti_status write_tensor(const tutti_node *node, const tutti_tensor *tensor,
                                 tutti_json_writer *w)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    int64_t count = tutti_tensor_count(tensor);
    if (count > 65536 || type->dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "'%s' is a constant of %lld elements, too large for JSON; make it a "
                          "variable",
                          node->name, (long long)count);
    tutti__json_begin(w, '{');
    write_shape(type, 0, w);
    tutti__json_key(w, "data");
    tutti__json_begin(w, '[');
    for (int64_t i = 0; i < count; i++) {
        if (tutti_dtype_is_float(type->dtype))
            tutti__json_put_real(w, tutti_tensor_get(tensor, i));
        else
            tutti__json_put_int(w, tutti_tensor_get_int(tensor, i));
    }
    tutti__json_end(w);
    tutti__json_end(w);
    return TUTTI_OK;
}

static tutti_status write_attr(const tutti_node *node, const tutti_attr *attr, tutti_json_writer *w)
{
    tutti__json_key(w, attr->name);
    switch (attr->kind) {
    case TUTTI_ATTR_INT:
        tutti__json_put_int(w, attr->value.i);
        return TUTTI_OK;
    case TUTTI_ATTR_FLOAT:
        tutti__json_put_real(w, attr->value.f);
        return TUTTI_OK;
    case TUTTI_ATTR_STRING:
        tutti__json_put_bytes(w, attr->value.s, (size_t)attr->count);
        return TUTTI_OK;
    case TUTTI_ATTR_INTS:
    case TUTTI_ATTR_FLOATS:
        tutti__json_begin(w, '[');
        for (int i = 0; i < attr->count; i++) {
            if (attr->kind == TUTTI_ATTR_INTS)
                tutti__json_put_int(w, attr->value.ints[i]);
            else
                tutti__json_put_real(w, attr->value.floats[i]);
        }
        tutti__json_end(w);
        return TUTTI_OK;
    case TUTTI_ATTR_TENSOR:
        return write_tensor(node, attr->value.tensor, w);
    default:
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' (%s) cannot be told in JSON: its attribute '%s'",
                          node->name, node->op->name, attr->name);
    }
}

static tutti_status write_op(const tutti_node *node, tutti_json_writer *w)
{
    tutti__json_key(w, "op");
    tutti__json_put_string(w, node->op->name);
    tutti__json_key(w, "attrs");
    tutti__json_begin(w, '{');
    for (int i = 0; i < node->attr_count; i++)
        TUTTI_TRY(write_attr(node, &node->attrs[i], w));
    tutti__json_end(w);
    return TUTTI_OK;
}

static void write_edge(tutti_edge edge, tutti_json_writer *w)
{
    char text[700];
    if (edge.index == 0)
        snprintf(text, sizeof text, "%s", edge.node->name);
    else
        snprintf(text, sizeof text, "%s:%u", edge.node->name, edge.index);
    tutti__json_put_string(w, text);
}

static tutti_status write_node(const tutti_model *model, const tutti_node *node,
                               tutti_json_writer *w)
{
    tutti__json_begin(w, '{');
    tutti__json_key(w, "name");
    tutti__json_put_string(w, node->name);
    if (node->op == tutti__layer_op) {
        tutti__json_key(w, "layer");
        tutti__json_put_string(w, model->layers.data[tutti__int(node, "layer")]->name);
    } else {
        TUTTI_TRY(write_op(node, w));
    }
    tutti__json_key(w, "inputs");
    tutti__json_begin(w, '[');
    for (int i = 0; i < node->input_count; i++)
        write_edge(node->inputs[i], w);
    tutti__json_end(w);
    if (node->remat) { /* the number of the scope it stands in */
        tutti__json_key(w, "remat");
        tutti__json_put_int(w, node->region);
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

static tutti_status write_nodes(const tutti_model *model, tutti_json_writer *w)
{
    const tutti_graph *blueprint = model->blueprint;
    tutti__json_key(w, "nodes");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < blueprint->nodes.count; i++) {
        const tutti_node *node = blueprint->nodes.data[i];
        bool input = tutti__is(node, "placeholder");
        if (!node->dead && !input)
            TUTTI_TRY(write_node(model, node, w));
    }
    tutti__json_end(w);
    tutti__json_key(w, "outputs");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->outputs.count; i++) {
        tutti__json_begin(w, '{');
        tutti__json_key(w, "name");
        tutti__json_put_string(w, model->outputs.data[i].name);
        tutti__json_key(w, "from");
        write_edge(tutti__edge(model->outputs.data[i].sym), w);
        tutti__json_end(w);
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

static void write_head(const tutti_model *model, tutti_json_writer *w)
{
    tutti__json_key(w, "tutti");
    tutti__json_put_string(w, tutti_version());
    tutti__json_key(w, "kind");
    tutti__json_put_string(w, model->sequential ? "sequential" : "functional");
    tutti__json_key(w, "name");
    tutti__json_put_string(w, model->name);
    tutti__json_key(w, "precision");
    tutti__json_put_string(w, tutti_dtype_name(model->compute));
}

tutti_status tutti__config_write(tutti_model *model, tutti_json_writer *w)
{
    if (model->kind)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "model '%s' is made by code of its own (tutti_subclass), which a file "
                          "cannot hold; save its weights with tutti_save_weights",
                          model->name);
    tutti__json_begin(w, '{');
    write_head(model, w);
    tutti__json_key(w, "layers");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->layers.count; i++)
        TUTTI_TRY(tutti__config_write_layer(model->layers.data[i], w));
    tutti__json_end(w);
    tutti__json_key(w, "inputs");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->inputs.count; i++) {
        tutti__json_begin(w, '{');
        tutti__json_key(w, "name");
        tutti__json_put_string(w, model->inputs.data[i].name);
        write_shape(&model->inputs.data[i].type, 1, w);
        tutti__json_end(w);
    }
    tutti__json_end(w);
    if (!model->sequential)
        TUTTI_TRY(write_nodes(model, w));
    if (model->trainer)
        TUTTI_TRY(tutti__config_write_compile(model, w));
    tutti__json_end(w);
    return TUTTI_OK;
}

tutti_status tutti_model_to_json(tutti_model *model, char **ret_text)
{
    tutti_text text = {0};
    tutti_json_writer writer = {.text = &text, .indent = 2};
    TUTTI_TRY(tutti_model_check(model));
    tutti_status status = tutti__config_write(model, &writer);
    if (status == TUTTI_OK)
        status = tutti__json_finish(&writer);
    if (status == TUTTI_OK && !text.failed) {
        *ret_text = text.data;
        return TUTTI_OK;
    }
    tutti__text_free(&text);
    return status != TUTTI_OK ? status : tutti_fail(TUTTI_NO_MEMORY, "no memory for JSON");
}
