/* config_write.c: a model as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/training/config.h"
#include "tutti/checkpoint.h"

void tutti__config_stored_free(tutti_config_stored *stored)
{
    for (size_t i = 0; i < stored->constants.count; i++) {
        free(stored->constants.data[i].name);
        tutti_tensor_release(stored->constants.data[i].value);
    }
    TUTTI_VEC_FREE(&stored->constants);
}

static tutti_status write_inner(tutti_model *inner, const char *name, tutti_config_stored *stored,
                                tutti_json_writer *w)
{
    char prefix[700];
    const char *before = stored ? stored->prefix : "";
    snprintf(prefix, sizeof prefix, "%s%s/", before, name);
    if (stored)
        stored->prefix = prefix;
    tutti__json_key(w, "model");
    tutti_status status = tutti__config_write(inner, stored, w);
    if (stored)
        stored->prefix = before;
    return status;
}

tutti_status tutti__config_write_layer(const tutti_layer *layer, tutti_config_stored *stored,
                                       tutti_json_writer *w)
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
    if (layer->stage > 0) {
        tutti__json_key(w, "stage");
        tutti__json_put_int(w, layer->stage);
    }
    tutti_model *inner = tutti__layer_model(layer);
    if (inner) {
        TUTTI_TRY(write_inner(inner, layer->name, stored, w));
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

enum { NUMBERS = 1024 }; /* at most, of a constant that could stand in a file */

static tutti_status store(const tutti_node *node, tutti_tensor *tensor, tutti_config_stored *stored,
                          tutti_json_writer *w)
{
    char name[1024];
    snprintf(name, sizeof name, TUTTI_CONFIG_CONSTANTS "%s%s", stored->prefix, node->name);
    char *kept = strdup(name);
    if (!kept || !TUTTI_VEC_PUSH(&stored->constants,
                                 ((tutti_snapshot_entry){kept, tutti_tensor_retain(tensor)}))) {
        free(kept);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to save a model");
    }
    tutti__json_begin(w, '{');
    write_shape(tutti_tensor_type(tensor), 0, w);
    tutti__json_key(w, "stored");
    tutti__json_put_string(w, name);
    tutti__json_end(w);
    return TUTTI_OK;
}

static tutti_status write_tensor(const tutti_node *node, tutti_tensor *tensor,
                                 tutti_config_stored *stored, tutti_json_writer *w)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    int64_t count = tutti_tensor_count(tensor);
    if (count > NUMBERS && stored && type->dtype != TUTTI_STRING)
        return store(node, tensor, stored, w);
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

static tutti_status write_attr(const tutti_node *node, const tutti_attr *attr,
                               tutti_config_stored *stored, tutti_json_writer *w)
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
        return write_tensor(node, attr->value.tensor, stored, w);
    default:
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' (%s) cannot be told in JSON: its attribute '%s'",
                          node->name, node->op->name, attr->name);
    }
}

static tutti_status write_op(const tutti_node *node, tutti_config_stored *stored,
                             tutti_json_writer *w)
{
    tutti__json_key(w, "op");
    tutti__json_put_string(w, node->op->name);
    tutti__json_key(w, "attrs");
    tutti__json_begin(w, '{');
    for (int i = 0; i < node->attr_count; i++)
        TUTTI_TRY(write_attr(node, &node->attrs[i], stored, w));
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

static tutti_status write_node(const tutti_model *model, const tutti_node *node, bool first_value,
                               tutti_config_stored *stored, tutti_json_writer *w)
{
    tutti__json_begin(w, '{');
    tutti__json_key(w, "name");
    tutti__json_put_string(w, node->name);
    if (node->op == tutti__layer_op) {
        tutti__json_key(w, "layer");
        tutti__json_put_string(w, model->layers.data[tutti__int(node, "layer")]->name);
    } else {
        TUTTI_TRY(write_op(node, stored, w));
    }
    tutti__json_key(w, "inputs");
    tutti__json_begin(w, '[');
    for (int i = 0; i < node->input_count; i++)
        write_edge(node->inputs[i], w);
    tutti__json_end(w);
    if (first_value) {
        tutti__json_key(w, "stored");
        tutti__json_put_bool(w, true);
    }
    if (node->id < model->part_of.count && model->part_of.data[node->id] > 0) {
        tutti__json_key(w, "part");
        tutti__json_put_int(w, model->part_of.data[node->id] - 1);
    }
    if (node->remat) { /* the number of the scope it stands in */
        tutti__json_key(w, "remat");
        tutti__json_put_int(w, node->region);
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

/* A weight that begins with numbers: they are its value in the file of weights, or soon were. */
static bool begins_with_numbers(const tutti_model *model, const tutti_node *node)
{
    enum { FEW = 16 };
    return tutti__is(node, "assign") && tutti__int(node, "initializer") &&
           tutti__is(node->inputs[0].node, "variable") &&
           tutti__is(node->inputs[1].node, "constant") &&
           (model->parts.count > 0 || tutti_type_count(&node->inputs[1].node->types[0]) > FEW);
}

enum { WRITTEN, LEFT_OUT, STORED };

/* How each node is written. Constants that are used otherwise too stay. */
static void plan_nodes(const tutti_model *model, uint8_t *ret)
{
    const tutti_graph *blueprint = model->blueprint;
    for (size_t i = 0; i < blueprint->nodes.count; i++) {
        const tutti_node *node = blueprint->nodes.data[i];
        if (node->dead || tutti__is(node, "placeholder")) {
            ret[i] = LEFT_OUT;
        } else if (begins_with_numbers(model, node)) {
            ret[i] = ret[node->inputs[1].node->id] = LEFT_OUT;
            ret[node->inputs[0].node->id] = STORED;
        }
    }
    for (size_t i = 0; i < blueprint->nodes.count; i++) {
        const tutti_node *node = blueprint->nodes.data[i];
        for (int k = 0; ret[i] != LEFT_OUT && k < node->input_count; k++)
            if (tutti__is(node->inputs[k].node, "constant"))
                ret[node->inputs[k].node->id] = WRITTEN;
    }
    for (size_t i = 0; i < model->outputs.count; i++)
        if (tutti__is(model->outputs.data[i].sym.node, "constant"))
            ret[model->outputs.data[i].sym.node->id] = WRITTEN;
}

static tutti_status write_nodes(const tutti_model *model, tutti_config_stored *stored,
                                tutti_json_writer *w)
{
    const tutti_graph *blueprint = model->blueprint;
    uint8_t *how = calloc(blueprint->nodes.count + 1, sizeof *how);
    tutti_status status = TUTTI_OK;
    if (!how)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for JSON");
    plan_nodes(model, how);
    tutti__json_key(w, "nodes");
    tutti__json_begin(w, '[');
    for (size_t i = 0; status == TUTTI_OK && i < blueprint->nodes.count; i++)
        if (how[i] != LEFT_OUT)
            status = write_node(model, blueprint->nodes.data[i], how[i] == STORED, stored, w);
    tutti__json_end(w);
    free(how);
    return status;
}

static void write_outputs(const tutti_model *model, tutti_json_writer *w)
{
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
}

/* What an imported model has of its file. */
static void write_parts(const tutti_model *model, tutti_json_writer *w)
{
    tutti__json_key(w, "parts");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->parts.count; i++) {
        const tutti_layer *part = model->parts.data[i];
        tutti__json_begin(w, '{');
        tutti__json_key(w, "name");
        tutti__json_put_string(w, part->name);
        tutti__json_key(w, "kind");
        tutti__json_put_string(w, part->kind->name);
        if (part->frozen) {
            tutti__json_key(w, "frozen");
            tutti__json_put_bool(w, true);
        }
        tutti__json_end(w);
    }
    tutti__json_end(w);
}

static void write_values(const tutti_model *model, tutti_json_writer *w)
{
    tutti__json_key(w, "values");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->values.count; i++) {
        const tutti_named_value *value = &model->values.data[i];
        tutti__json_begin(w, '{');
        tutti__json_key(w, "name");
        tutti__json_put_string(w, value->name);
        tutti__json_key(w, "from");
        write_edge(tutti__edge(value->sym), w);
        if (value->turned) {
            tutti__json_key(w, "turned");
            tutti__json_put_bool(w, true);
        }
        tutti__json_key(w, "part");
        tutti__json_put_int(w, value->part);
        tutti__json_end(w);
    }
    tutti__json_end(w);
}

static void write_name(void *context, const char *name)
{
    tutti__json_put_string(context, name);
}

static void count_name(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
}

static void write_frozen(const tutti_model *model, bool frozen, tutti_json_writer *w)
{
    int count = 0;
    tutti__frozen_by_name(model, frozen, count_name, &count);
    if (count == 0)
        return;
    tutti__json_key(w, frozen ? "frozen" : "unfrozen");
    tutti__json_begin(w, '[');
    tutti__frozen_by_name(model, frozen, write_name, w);
    tutti__json_end(w);
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

tutti_status tutti__config_write(tutti_model *model, tutti_config_stored *stored,
                                 tutti_json_writer *w)
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
        TUTTI_TRY(tutti__config_write_layer(model->layers.data[i], stored, w));
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
    if (model->parts.count > 0)
        write_parts(model, w);
    if (!model->sequential) {
        TUTTI_TRY(write_nodes(model, stored, w));
        write_outputs(model, w);
    }
    if (model->values.count > 0)
        write_values(model, w);
    write_frozen(model, true, w);
    write_frozen(model, false, w);
    if (model->trainer)
        TUTTI_TRY(tutti__config_write_compile(model, w));
    tutti__json_end(w);
    return TUTTI_OK;
}

tutti_status tutti__model_json(tutti_model *model, tutti_config_stored *stored, char **ret_text)
{
    tutti_text text = {0};
    tutti_json_writer writer = {.text = &text, .indent = 2};
    TUTTI_TRY(tutti_model_check(model));
    tutti_status status = tutti__config_write(model, stored, &writer);
    if (status == TUTTI_OK)
        status = tutti__json_finish(&writer);
    if (status == TUTTI_OK && !text.failed) {
        *ret_text = text.data;
        return TUTTI_OK;
    }
    tutti__text_free(&text);
    return status != TUTTI_OK ? status : tutti_fail(TUTTI_NO_MEMORY, "no memory for JSON");
}

tutti_status tutti_model_to_json(tutti_model *model, char **ret_text)
{
    return tutti__model_json(model, NULL, ret_text);
}
