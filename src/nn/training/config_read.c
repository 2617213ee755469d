/* config_read.c: a model from JSON. The text may come from anywhere. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/crc32c.h"
#include "nn/training/config.h"
#include "ops/build.h"
#include "tutti/checkpoint.h"

static tutti_status bad(const char *what)
{
    return tutti_fail(TUTTI_CORRUPT, "the model's JSON is malformed: %s", what);
}

/* ---- layers ---- */

static const char *const layer_members[] = {"kind",  "name",  "frozen", "remat",
                                            "stage", "model", NULL};

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

static tutti_status read_inner(tutti_job *job, const tutti_config_source *from, const char *name,
                               const tutti_json *json, tutti_model **ret)
{
    char prefix[700];
    tutti_config_source inner = *from;
    snprintf(prefix, sizeof prefix, "%s%s/", from->prefix, name);
    inner.prefix = prefix;
    return tutti__config_read(job, &inner, json, ret);
}

static tutti_status read_layer(tutti_model *model, const tutti_config_source *from,
                               const tutti_json *json)
{
    const char *kind = tutti__json_text(tutti__json_get(json, "kind"), NULL);
    const char *name = tutti__json_text(tutti__json_get(json, "name"), NULL);
    const tutti_json *inner = tutti__json_get(json, "model");
    tutti_layer *layer = NULL;
    if (!kind || !name || !name[0])
        return bad("a layer needs a kind and a name");
    if (inner) {
        tutti_model *other = NULL;
        TUTTI_TRY(read_inner(model->job, from, name, inner, &other));
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
    layer->frozen = tutti__json_bool(tutti__json_get(json, "frozen"), false);
    int64_t stage = tutti__json_int(tutti__json_get(json, "stage"), 0);
    layer->stage = stage < 0 || stage > INT_MAX ? -1 : (int)stage; /* which building refuses */
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
    const tutti_config_source *from;
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

static tutti_status keep_tensor(reading *r, tutti_tensor *tensor)
{
    if (TUTTI_VEC_PUSH(&r->tensors, tensor))
        return TUTTI_OK;
    tutti_tensor_release(tensor);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a constant");
}

/* A value out of the file of weights; *ret NULL where there is no such file. */
static tutti_status read_stored(reading *r, const char *name, const tutti_type *type,
                                tutti_tensor **ret)
{
    char has[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    *ret = NULL;
    if (!r->from->file)
        return TUTTI_OK;
    const tutti_safetensor *item = tutti__safetensors_find(r->from->file, name);
    if (!item || !tutti_type_equal(&item->type, type))
        return tutti_fail(
            TUTTI_INVALID, "the file of weights has '%s' as %s, the model's JSON as %s", name,
            item ? tutti_type_text(&item->type, has) : "nothing", tutti_type_text(type, wanted));
    TUTTI_TRY(tutti__safetensors_tensor(r->from->file, item, ret));
    return keep_tensor(r, *ret);
}

static tutti_status read_constant(reading *r, const char *name, const tutti_type *type,
                                  tutti_tensor **ret)
{
    TUTTI_TRY(read_stored(r, name, type, ret));
    if (*ret)
        return TUTTI_OK;
    if (!r->from->blank)
        return tutti_fail(TUTTI_INVALID,
                          "constant '%s' stands in the file of weights beside the model's JSON; "
                          "load both with tutti_load_model",
                          name);
    if (!tutti_type_is_static(type))
        return bad("a constant has open sizes");
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, ret));
    return keep_tensor(r, *ret);
}

static tutti_status read_tensor(reading *r, const tutti_json *json, tutti_tensor **ret)
{
    tutti_type type;
    const tutti_json *data = tutti__json_get(json, "data");
    const char *stored = tutti__json_text(tutti__json_get(json, "stored"), NULL);
    TUTTI_TRY(read_type(json, 0, &type));
    if (stored)
        return read_constant(r, stored, &type, ret);
    if (!tutti_type_is_static(&type) || !data || data->kind != TUTTI_JSON_ARRAY ||
        tutti_type_count(&type) != (int64_t)data->count || type.dtype == TUTTI_STRING)
        return bad("a constant needs as many numbers as its shape has");
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, ret));
    TUTTI_TRY(keep_tensor(r, *ret));
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
    bool added = strcmp(op_name, tutti__added_op->name) == 0;
    const tutti_op *op = added ? tutti__added_op : tutti_op_find(op_name);
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

/* A weight begins with what the file has for it. Without a file it has no value. */
static tutti_status read_first_value(reading *r, const char *name, tutti_sym variable)
{
    tutti_graph *blueprint = r->model->blueprint;
    tutti_tensor *value;
    if (!tutti__is(variable.node, "variable"))
        return bad("\"stored\" is for variables");
    tutti_type type = variable.node->types[0];
    type.handle = false;
    const char *full = tutti__arena_format(&r->arena, "%s%s", r->from->prefix, name);
    if (!full)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    TUTTI_TRY(read_stored(r, full, &type, &value));
    if (!value)
        return TUTTI_OK;
    tutti_sym inputs[] = {variable, tutti_constant(blueprint, value)};
    tutti__build(blueprint, tutti_op_find("assign"), NULL, 2, inputs, 1,
                 &TUTTI_INT("initializer", 1));
    return tutti_graph_check(blueprint);
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
        if (tutti__json_bool(tutti__json_get(json, "stored"), false))
            TUTTI_TRY(read_first_value(r, name, made));
    }
    return tutti__map_set(&r->made, name, made.node);
}

/* Nodes of one scope that is computed again have its number. */
static tutti_status read_node(reading *r, const tutti_json *json)
{
    int64_t region = tutti__json_int(tutti__json_get(json, "remat"), 0);
    int64_t part = tutti__json_int(tutti__json_get(json, "part"), -1);
    size_t before = r->model->blueprint->nodes.count;
    if (part < -1 || part >= (int64_t)r->model->parts.count)
        return bad("\"part\" of a node is the number of a part");
    if (region < 0 || region > MOST_REGIONS)
        return bad("\"remat\" of a node is the number of a scope");
    if (region > 0)
        tutti__region_push(r->model->blueprint, (uint32_t)region, true);
    tutti_status status = read_node_inside(r, json);
    if (region > 0)
        tutti__region_pop(r->model->blueprint);
    if (status == TUTTI_OK && part >= 0)
        status = tutti__part_take(r->model, (uint32_t)part, before);
    return status;
}

/* ---- what stands in an imported model's file ---- */

static tutti_status read_parts(tutti_model *model, const tutti_json *json)
{
    const tutti_json *parts = tutti__json_get(json, "parts");
    for (const tutti_json *each = tutti__json_first(parts); each; each = each->next) {
        const char *name = tutti__json_text(tutti__json_get(each, "name"), "");
        const char *kind = tutti__json_text(tutti__json_get(each, "kind"), "");
        uint32_t part;
        if (!name[0] || tutti__map_get(&model->layer_names, name))
            return bad("a part needs a name of its own");
        TUTTI_TRY(tutti__part_add(model, name, kind, &part));
        model->parts.data[part]->frozen = tutti__json_bool(tutti__json_get(each, "frozen"), false);
    }
    return TUTTI_OK;
}

static tutti_status read_values(reading *r, const tutti_json *json)
{
    const tutti_json *values = tutti__json_get(json, "values");
    for (const tutti_json *each = tutti__json_first(values); each; each = each->next) {
        const char *name = tutti__json_text(tutti__json_get(each, "name"), "");
        const tutti_json *from = tutti__json_get(each, "from");
        int64_t part = tutti__json_int(tutti__json_get(each, "part"), -1);
        bool turned = tutti__json_bool(tutti__json_get(each, "turned"), false);
        tutti_sym sym;
        if (!name[0] || !from || part < 0 || part >= (int64_t)r->model->parts.count)
            return bad("a value needs a name, a node and a part");
        TUTTI_TRY(read_edge(r, from, &sym));
        TUTTI_TRY(tutti__value_add(r->model, name, sym, turned, (uint32_t)part));
    }
    return TUTTI_OK;
}

static tutti_status read_frozen(tutti_model *model, const tutti_json *names, bool frozen)
{
    for (const tutti_json *each = tutti__json_first(names); each; each = each->next) {
        const char *name = tutti__json_text(each, NULL);
        if (!name)
            return bad("what is frozen are names of weights");
        TUTTI_TRY(tutti__freeze_by_name(model, name, frozen));
    }
    return TUTTI_OK;
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
        TUTTI_TRY(read_layer(r->model, r->from, each));
    TUTTI_TRY(read_parts(r->model, json));
    TUTTI_TRY(read_graph(r, json));
    TUTTI_TRY(read_values(r, json));
    TUTTI_TRY(read_frozen(r->model, tutti__json_get(json, "frozen"), true));
    TUTTI_TRY(read_frozen(r->model, tutti__json_get(json, "unfrozen"), false));
    const tutti_json *compile = tutti__json_get(json, "compile");
    return compile ? tutti__config_read_compile(r->model, compile) : TUTTI_OK;
}

/* What is not understood is not passed over: it may change what the model means. */
static tutti_status check_members(const tutti_json *json)
{
    static const char *const known[] = {"crc32c", "tutti",  "kind",     "name",   "precision",
                                        "layers", "parts",  "inputs",   "nodes",  "outputs",
                                        "values", "frozen", "unfrozen", "compile"};
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

tutti_status tutti__config_read(tutti_job *job, const tutti_config_source *from,
                                const tutti_json *json, tutti_model **ret)
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
    reading r = {.model = model, .from = from};
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

/* The checksum that files have (save.c). */
static tutti_status check_sum(const tutti_json *root, const char *text, size_t size)
{
    const tutti_json *sum = tutti__json_get(root, "crc32c");
    if (!sum)
        return TUTTI_OK;
    char digits[9];
    size_t at = (size_t)sum->offset + 1;
    if (!tutti__json_text(sum, NULL) || sum->count != 8 || at + 8 > size)
        return bad("\"crc32c\" must be 8 hexadecimal digits");
    uint32_t crc = tutti__crc32c(tutti__crc32c(0, text, at), "00000000", 8);
    snprintf(digits, sizeof digits, "%08x", tutti__crc32c(crc, text + at + 8, size - at - 8));
    return memcmp(text + at, digits, 8) == 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_CORRUPT,
                            "the model's JSON has the checksum %s and says %.8s: it is damaged; if "
                            "it was changed on purpose, take its member \"crc32c\" out",
                            digits, tutti__json_text(sum, ""));
}

tutti_status tutti__model_of_json(tutti_job *job, const tutti_config_source *from, const char *text,
                                  tutti_model **ret)
{
    tutti_arena arena = {0};
    const tutti_json *root;
    tutti_status status = tutti__json_parse("the model's JSON", text ? text : "",
                                            text ? strlen(text) : 0, NULL, &arena, &root);
    if (status == TUTTI_OK)
        status = check_sum(root, text, strlen(text));
    if (status == TUTTI_OK)
        status = tutti__config_read(job, from, root, ret);
    tutti__arena_free(&arena);
    return status;
}

tutti_model *tutti__model_from_file(tutti_job *job, const char *path, const char *text)
{
    tutti_model *model = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status =
        tutti__model_of_json(job, &(tutti_config_source){.prefix = ""}, text, &model);
    if (status != TUTTI_OK && path)
        tutti__error_prefix(status, "%s", path);
    return tutti_job_fail(job, status) == TUTTI_OK ? model : NULL;
}

tutti_model *tutti_model_from_json(tutti_job *job, const char *text)
{
    return tutti__model_from_file(job, NULL, text);
}
