/* config_read.c: a model from JSON. The text may come from anywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/training/config.h"
#include "ops/build.h"
#include "tutti/checkpoint.h"

static tutti_status bad(const char *what)
{
    return tutti_fail(TUTTI_CORRUPT, "the model's JSON is malformed: %s", what);
}

/* ---- layers ---- */

static const char *const layer_members[] = {"kind", "name", "frozen", "remat", "model", NULL};

static tutti_status read_settings(const tutti_layer_kind *kind, const tutti_json *json,
                                  const char *name, tutti_layer **ret)
{
    tutti_arena arena = {0};
    size_t size = kind->settings_size ? kind->settings_size : sizeof(tutti_layer_settings);
    tutti_layer_settings *settings = calloc(1, size);
    if (!settings)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    settings->struct_size = size;
    settings->name = name;
    settings->frozen = tutti__json_bool(tutti__json_get(json, "frozen"), false);
    tutti_status status =
        tutti__settings_read(name, kind->fields, json, layer_members, &arena, settings);
    if (status == TUTTI_OK) {
        *ret = (tutti_layer_custom)(kind, settings);
        status = *ret ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    }
    tutti__arena_free(&arena);
    free(settings);
    return status;
}

static tutti_status read_layer(tutti_model *model, const tutti_json *json)
{
    const char *kind = tutti__json_text(tutti__json_get(json, "kind"), NULL);
    const char *name = tutti__json_text(tutti__json_get(json, "name"), NULL);
    const tutti_json *inner = tutti__json_get(json, "model");
    tutti_layer *layer = NULL;
    if (!kind || !name || !name[0])
        return bad("a layer needs a kind and a name");
    if (inner) {
        tutti_model *other = NULL;
        TUTTI_TRY(tutti__config_read(model->job, inner, &other));
        layer = tutti__model_layer_named(other, name);
        if (!layer)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    } else {
        const tutti_layer_kind *found = tutti_layer_find(kind);
        if (!found)
            return tutti_fail(TUTTI_NOT_FOUND,
                              "layer '%s' is of the kind '%s', which this program does not know; "
                              "tutti_layer_register makes kinds of your own known",
                              name, kind);
        TUTTI_TRY(read_settings(found, json, name, &layer));
    }
    layer->remat = tutti__json_bool(tutti__json_get(json, "remat"), false);
    tutti_status status = tutti__model_adopt(model, layer);
    if (status != TUTTI_OK)
        tutti_layer_release(layer);
    return status;
}

/* ---- shapes ---- */

static tutti_status read_type(const tutti_json *json, int from, tutti_type *ret)
{
    const tutti_json *shape = tutti__json_get(json, "shape");
    tutti_type type = {.rank = from};
    const char *dtype = tutti__json_text(tutti__json_get(json, "dtype"), "");
    if (tutti_dtype_parse(dtype, &type.dtype) != TUTTI_OK)
        return bad("a shape needs a dtype");
    if (!shape || shape->kind != TUTTI_JSON_ARRAY || shape->count + (size_t)from > TUTTI_MAX_RANK)
        return bad("a shape is a list of at most 8 sizes");
    for (int i = 0; i < from; i++)
        type.dims[i] = TUTTI_ANY;
    for (const tutti_json *each = tutti__json_first(shape); each; each = each->next) {
        bool open = each->kind == TUTTI_JSON_NULL;
        if (!open && (each->kind != TUTTI_JSON_INT || each->as.integer < 0))
            return bad("a size is a whole number or null");
        type.dims[type.rank++] = open ? TUTTI_ANY : each->as.integer;
    }
    *ret = type;
    return TUTTI_OK;
}

/* ---- nodes ---- */

enum { MOST_REGIONS = 1 << 16 };

typedef struct reading {
    tutti_model *model;
    tutti_arena arena;
    tutti_map made; /* name → tutti_node of the blueprint */
    TUTTI_VEC(tutti_tensor *) tensors;
} reading;

static tutti_status read_edge(reading *r, const tutti_json *json, tutti_sym *ret)
{
    const char *text = tutti__json_text(json, NULL);
    if (!text)
        return bad("an input is a text: the name of a node");
    tutti_node *node = tutti__map_get(&r->made, text);
    uint32_t index = 0;
    const char *colon = strrchr(text, ':');
    if (!node && colon) {
        char *name = tutti__arena_bytes(&r->arena, text, (size_t)(colon - text) + 1), *end;
        if (!name)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
        name[colon - text] = 0;
        index = (uint32_t)strtoul(colon + 1, &end, 10);
        node = *end ? NULL : tutti__map_get(&r->made, name);
    }
    if (!node || (int)index >= node->output_count)
        return tutti_fail(TUTTI_CORRUPT, "the model's JSON uses '%s' before it is made", text);
    *ret = tutti__sym(node, index);
    return TUTTI_OK;
}

static tutti_status read_inputs(reading *r, const tutti_json *json, int *ret_count, tutti_sym *ret)
{
    const tutti_json *inputs = tutti__json_get(json, "inputs");
    *ret_count = 0;
    if (!inputs || inputs->kind != TUTTI_JSON_ARRAY || inputs->count > 64)
        return bad("a node needs a list of at most 64 inputs");
    for (const tutti_json *each = tutti__json_first(inputs); each; each = each->next)
        TUTTI_TRY(read_edge(r, each, &ret[(*ret_count)++]));
    return TUTTI_OK;
}

static tutti_status read_tensor(reading *r, const tutti_json *json, tutti_tensor **ret)
{
    tutti_type type;
    const tutti_json *data = tutti__json_get(json, "data");
    TUTTI_TRY(read_type(json, 0, &type));
    if (!tutti_type_is_static(&type) || !data || data->kind != TUTTI_JSON_ARRAY ||
        tutti_type_count(&type) != (int64_t)data->count || type.dtype == TUTTI_STRING)
        return bad("a constant needs as many numbers as its shape has");
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, ret));
    if (!TUTTI_VEC_PUSH(&r->tensors, *ret)) {
        tutti_tensor_release(*ret);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a constant");
    }
    int64_t i = 0;
    for (const tutti_json *each = tutti__json_first(data); each; each = each->next, i++) {
        if (each->kind == TUTTI_JSON_INT)
            tutti_tensor_set_int(*ret, i, each->as.integer);
        else if (each->kind == TUTTI_JSON_REAL)
            tutti_tensor_set(*ret, i, each->as.real);
        else
            return bad("a constant holds numbers");
    }
    return TUTTI_OK;
}

static tutti_status read_list(reading *r, const tutti_json *json, tutti_attr *attr)
{
    if (json->kind != TUTTI_JSON_ARRAY || json->count > 4096)
        return bad("an attribute is not a list");
    bool ints = attr->kind == TUTTI_ATTR_INTS;
    void *values = tutti__arena_array(&r->arena, json->count + 1, sizeof(int64_t));
    if (!values)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an attribute");
    attr->count = 0;
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next, attr->count++) {
        if (ints)
            ((int64_t *)values)[attr->count] = tutti__json_int(each, 0);
        else
            ((double *)values)[attr->count] = tutti__json_real(each, 0);
    }
    if (ints)
        attr->value.ints = values;
    else
        attr->value.floats = values;
    return TUTTI_OK;
}

static tutti_status read_attr(reading *r, const tutti_op *op, const tutti_json *json,
                              tutti_attr *ret)
{
    const tutti_attr_spec *spec = op->attrs;
    while (spec && spec->name && strcmp(spec->name, json->key) != 0)
        spec++;
    if (!spec || !spec->name)
        return tutti_fail(TUTTI_CORRUPT, "operator '%s' has no attribute '%s'", op->name,
                          json->key);
    *ret = (tutti_attr){.name = spec->name, .kind = spec->kind};
    switch (spec->kind) {
    case TUTTI_ATTR_INT:
        ret->value.i = tutti__json_int(json, 0);
        return TUTTI_OK;
    case TUTTI_ATTR_FLOAT:
        ret->value.f = tutti__json_real(json, 0);
        return TUTTI_OK;
    case TUTTI_ATTR_STRING:
        ret->value.s = tutti__json_text(json, "");
        ret->count = -1;
        return TUTTI_OK;
    case TUTTI_ATTR_INTS:
    case TUTTI_ATTR_FLOATS:
        return read_list(r, json, ret);
    case TUTTI_ATTR_TENSOR:
        return read_tensor(r, json, &ret->value.tensor);
    default:
        return bad("an attribute of a kind that JSON cannot hold");
    }
}

static tutti_status read_op(reading *r, const tutti_json *json, const char *name, int count,
                            const tutti_sym *inputs, tutti_sym *ret)
{
    const char *op_name = tutti__json_text(tutti__json_get(json, "op"), "");
    const tutti_op *op = tutti_op_find(op_name);
    const tutti_json *attrs = tutti__json_get(json, "attrs");
    tutti_attr list[32];
    int used = 0;
    if (!op)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no operator '%s'", op_name);
    for (const tutti_json *each = tutti__json_first(attrs); each; each = each->next) {
        if (used == 32)
            return bad("more than 32 attributes");
        TUTTI_TRY(read_attr(r, op, each, &list[used++]));
    }
    *ret = tutti__build(r->model->blueprint, op, name, count, inputs, used, list);
    return tutti_graph_check(r->model->blueprint);
}

static tutti_status read_node_inside(reading *r, const tutti_json *json)
{
    const char *name = tutti__json_text(tutti__json_get(json, "name"), NULL);
    const char *layer = tutti__json_text(tutti__json_get(json, "layer"), NULL);
    tutti_sym inputs[64], made = TUTTI_NO_SYM;
    int count;
    if (!name || tutti__map_get(&r->made, name))
        return bad("a node needs a name of its own");
    TUTTI_TRY(read_inputs(r, json, &count, inputs));
    if (layer) {
        tutti_layer *found = tutti_find_layer(r->model, layer);
        if (!found || count == 0)
            return tutti_fail(TUTTI_CORRUPT, "node '%s' calls layer '%s', which is not there", name,
                              layer);
        made = tutti_layer_apply(found, count, inputs);
        TUTTI_TRY(tutti_graph_check(r->model->blueprint));
    } else {
        TUTTI_TRY(read_op(r, json, name, count, inputs, &made));
    }
    return tutti__map_set(&r->made, name, made.node);
}

/* Nodes of one scope that is computed again have its number. */
static tutti_status read_node(reading *r, const tutti_json *json)
{
    int64_t region = tutti__json_int(tutti__json_get(json, "remat"), 0);
    if (region < 0 || region > MOST_REGIONS)
        return bad("\"remat\" of a node is the number of a scope");
    if (region > 0)
        tutti__region_push(r->model->blueprint, (uint32_t)region, true);
    tutti_status status = read_node_inside(r, json);
    if (region > 0)
        tutti__region_pop(r->model->blueprint);
    return status;
}

static tutti_status read_ports(reading *r, const tutti_json *json)
{
    tutti_model *model = r->model;
    const tutti_json *inputs = tutti__json_get(json, "inputs");
    for (const tutti_json *each = tutti__json_first(inputs); each; each = each->next) {
        tutti_type type;
        const char *name = tutti__json_text(tutti__json_get(each, "name"), "");
        TUTTI_TRY(read_type(each, 1, &type));
        if (model->sequential) {
            TUTTI_TRY(tutti__model_describe(model, 1, &type));
            continue;
        }
        tutti_sym sym = (tutti_placeholder_named)(model->blueprint, name, type);
        TUTTI_TRY(tutti_graph_check(model->blueprint));
        TUTTI_TRY(tutti__port_add(model, &model->inputs, name, type, sym));
        TUTTI_TRY(tutti__map_set(&r->made, name, sym.node));
    }
    return TUTTI_OK;
}

static tutti_status read_graph(reading *r, const tutti_json *json)
{
    const tutti_json *nodes = tutti__json_get(json, "nodes"),
                     *outputs = tutti__json_get(json, "outputs");
    TUTTI_TRY(read_ports(r, json));
    if (r->model->sequential)
        return TUTTI_OK;
    for (const tutti_json *each = tutti__json_first(nodes); each; each = each->next)
        TUTTI_TRY(read_node(r, each));
    for (const tutti_json *each = tutti__json_first(outputs); each; each = each->next) {
        tutti_sym sym;
        const tutti_json *from = tutti__json_get(each, "from");
        if (!from)
            return bad("an output needs \"from\"");
        TUTTI_TRY(read_edge(r, from, &sym));
        TUTTI_TRY(tutti__port_add(r->model, &r->model->outputs,
                                  tutti__json_text(tutti__json_get(each, "name"), ""),
                                  tutti_sym_type(sym), sym));
    }
    r->model->closed = true;
    return TUTTI_OK;
}

static tutti_status read_model(reading *r, const tutti_json *json)
{
    const tutti_json *layers = tutti__json_get(json, "layers");
    if (!layers || layers->kind != TUTTI_JSON_ARRAY)
        return bad("there is no list of layers");
    for (const tutti_json *each = tutti__json_first(layers); each; each = each->next)
        TUTTI_TRY(read_layer(r->model, each));
    TUTTI_TRY(read_graph(r, json));
    const tutti_json *compile = tutti__json_get(json, "compile");
    return compile ? tutti__config_read_compile(r->model, compile) : TUTTI_OK;
}

/* What is not understood is not passed over: it may change what the model means. */
static tutti_status check_members(const tutti_json *json)
{
    static const char *const known[] = {"tutti",  "kind",  "name",    "precision", "layers",
                                        "inputs", "nodes", "outputs", "compile"};
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next) {
        bool found = false;
        for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++)
            found = strcmp(each->key, known[i]) == 0;
        if (!found)
            return tutti_fail(TUTTI_CORRUPT,
                              "the model's JSON, written by version %s, has a member '%s', which "
                              "version %s does not know",
                              tutti__json_text(tutti__json_get(json, "tutti"), "?"), each->key,
                              tutti_version());
    }
    return TUTTI_OK;
}

tutti_status tutti__config_read(tutti_job *job, const tutti_json *json, tutti_model **ret)
{
    const char *kind = tutti__json_text(tutti__json_get(json, "kind"), "");
    bool sequential = strcmp(kind, "sequential") == 0;
    if (!tutti__json_text(tutti__json_get(json, "tutti"), NULL) ||
        (!sequential && strcmp(kind, "functional") != 0))
        return bad("\"tutti\" must be a version and \"kind\" sequential or functional");
    TUTTI_TRY(check_members(json));
    tutti_model *model = tutti_functional_with(
        job, TUTTI_OPTIONS(
                 tutti_model_options, .name = tutti__json_text(tutti__json_get(json, "name"), NULL),
                 .precision = tutti__json_text(tutti__json_get(json, "precision"), NULL)));
    if (!model)
        return tutti_job_check(job);
    model->sequential = sequential;
    reading r = {.model = model};
    tutti_status status = read_model(&r, json);
    for (size_t i = 0; i < r.tensors.count; i++)
        tutti_tensor_release(r.tensors.data[i]);
    TUTTI_VEC_FREE(&r.tensors);
    tutti__map_free(&r.made);
    tutti__arena_free(&r.arena);
    if (status == TUTTI_OK)
        *ret = model;
    return status;
}

tutti_model *tutti_model_from_json(tutti_job *job, const char *text)
{
    tutti_arena arena = {0};
    const tutti_json *root;
    tutti_model *model = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = tutti__json_parse("the model's JSON", text ? text : "",
                                            text ? strlen(text) : 0, NULL, &arena, &root);
    if (status == TUTTI_OK)
        status = tutti__config_read(job, root, &model);
    tutti__arena_free(&arena);
    return tutti_job_fail(job, status) == TUTTI_OK ? model : NULL;
}
