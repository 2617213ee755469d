/* rule_graph.c: the whole value in memory, updated by a graph. */
#include <stdlib.h>

#include "service/store/update_graph.h"

typedef struct graph_rule {
    tutti_store_rule rule;
    tutti_type type;
    tutti_update_graph update;
    tutti_tensor *value; /* what was read of it last, until the next update */
} graph_rule;

static void graph_rule_close(tutti_store_rule *rule)
{
    graph_rule *r = (void *)rule;
    tutti__store_update_graph_close(&r->update);
    tutti_tensor_release(r->value);
    free(r);
}

/* The first value: what the message holds, or what the graph's own initializer gave. */
static tutti_status graph_rule_begin(const tutti_store_message *create, graph_rule *r)
{
    tutti_tensor *value = NULL;
    size_t bytes = (size_t)tutti_type_count(&r->type) * tutti_dtype_size(r->type.dtype);
    TUTTI_TRY(tutti__store_update_graph_open(create->text, create->graph, &r->type, &r->update));
    if (create->data.size == 0 && bytes > 0)
        return TUTTI_OK;
    if (create->data.size != bytes)
        return tutti_fail(TUTTI_INVALID, "shard '%s' has %zu bytes, its first value %zu",
                          create->text, bytes, create->data.size);
    TUTTI_TRY(
        tutti_tensor_from(r->type.dtype, r->type.rank, r->type.dims, create->data.bytes, &value));
    tutti_status status = tutti_session_set(r->update.session, r->update.value, value);
    tutti_tensor_release(value);
    return status;
}

static tutti_status graph_rule_open(const tutti_store_message *create, const tutti_type *type,
                                    tutti_store_rule **ret)
{
    extern const tutti_store_rule_kind tutti_store_rule_graph;
    if (!tutti_type_is_static(type))
        return tutti_fail(TUTTI_INVALID, "shard '%s' has rows without bound", create->text);
    graph_rule *r = calloc(1, sizeof *r);
    if (!r)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for shard '%s'", create->text);
    r->rule.kind = &tutti_store_rule_graph;
    r->type = *type;
    tutti_status status = graph_rule_begin(create, r);
    if (status == TUTTI_OK)
        *ret = &r->rule;
    else
        graph_rule_close(&r->rule);
    return status;
}

static tutti_status indices_tensor(const tutti_store_gradient *gradient, tutti_tensor **ret)
{
    int64_t count = (int64_t)gradient->row_count;
    return tutti_tensor_from(TUTTI_I64, 1, &count, gradient->rows, ret);
}

static tutti_status graph_rule_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    graph_rule *r = (void *)rule;
    bool rows = update->gradient->form == TUTTI_STORE_ROWS;
    tutti_store_gradient dense = {0};
    tutti_tensor *gradient = NULL, *indices = NULL;
    tutti_status status = TUTTI_OK;
    if (rows && tutti_sym_ok(r->update.rows)) {
        status = tutti__store_gradient_tensor(&r->type, update->gradient, &gradient);
        if (status == TUTTI_OK)
            status = indices_tensor(update->gradient, &indices);
    } else {
        if (rows)
            status = tutti__store_gradient_dense(&r->type, update->gradient, &dense);
        if (status == TUTTI_OK)
            status =
                tutti__store_gradient_tensor(&r->type, rows ? &dense : update->gradient, &gradient);
    }
    if (status == TUTTI_OK)
        status = tutti__store_update_graph_run(&r->update, update, gradient, indices);
    tutti_tensor_release(gradient);
    tutti_tensor_release(indices);
    tutti__store_gradient_free(&dense);
    tutti_tensor_release(r->value);
    r->value = NULL;
    return status;
}

static tutti_status graph_rule_read(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                                    tutti_tensor **ret)
{
    graph_rule *r = (void *)rule;
    if (!r->value)
        TUTTI_TRY(tutti_session_get(r->update.session, r->update.value, &r->value));
    if (all) {
        *ret = tutti_tensor_retain(r->value);
        return TUTTI_OK;
    }
    tutti_type type = r->type;
    tutti_tensor *made = NULL;
    type.dims[0] = (int64_t)(rows.size / 8);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &made));
    size_t size = (size_t)tutti__store_row_elements(&type) * tutti_dtype_size(type.dtype);
    for (size_t i = 0; i < rows.size / 8; i++)
        memcpy((char *)tutti_tensor_data(made) + i * size,
               (const char *)tutti_tensor_data(r->value) +
                   (size_t)tutti__packed_long(rows, i) * size,
               size);
    *ret = made;
    return TUTTI_OK;
}

static tutti_status graph_rule_save(tutti_store_rule *rule, tutti_text *out)
{
    graph_rule *r = (void *)rule;
    saved_put(out, r->update.variables.count);
    saved_put_number(out, r->update.factor);
    for (size_t i = 0; i < r->update.variables.count; i++) {
        tutti_tensor *value = NULL;
        TUTTI_TRY(tutti_session_get(r->update.session, r->update.variables.data[i], &value));
        saved_put_bytes(out, tutti_tensor_data(value),
                        (size_t)tutti_tensor_count(value) *
                            tutti_dtype_size(tutti_tensor_dtype(value)));
        tutti_tensor_release(value);
    }
    return TUTTI_OK;
}

static tutti_status graph_rule_load(tutti_store_rule *rule, saved_reader *in)
{
    graph_rule *r = (void *)rule;
    in->bad = in->bad || saved_get(in) != r->update.variables.count;
    r->update.factor = saved_get_number(in);
    for (size_t i = 0; !in->bad && i < r->update.variables.count; i++) {
        tutti_type type = tutti_sym_type(r->update.variables.data[i]);
        tutti_packed_data data = saved_get_bytes(in);
        tutti_tensor *value = NULL;
        in->bad =
            in->bad || data.size != (size_t)tutti_type_count(&type) * tutti_dtype_size(type.dtype);
        if (in->bad)
            break;
        TUTTI_TRY(tutti_tensor_from(type.dtype, type.rank, type.dims, data.bytes, &value));
        tutti_status status =
            tutti_session_set(r->update.session, r->update.variables.data[i], value);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    tutti_tensor_release(r->value);
    r->value = NULL;
    return TUTTI_OK;
}

static tutti_status graph_rule_get(tutti_store_rule *rule, tutti_text *out)
{
    graph_rule *r = (void *)rule;
    saved_put(out, r->update.variables.count);
    for (size_t i = 0; i < r->update.variables.count; i++) {
        tutti_sym variable = r->update.variables.data[i];
        tutti_tensor *value = NULL;
        TUTTI_TRY(tutti_session_get(r->update.session, variable, &value));
        tutti__store_named_put(out, variable.node->name, value);
        tutti_tensor_release(value);
    }
    return out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to read a shard") : TUTTI_OK;
}

/* The rule's variable of that name, which has the tensor's type; NULL: there is none. */
static const tutti_sym *graph_rule_find(const graph_rule *r, const char *name,
                                        const tutti_tensor *value)
{
    for (size_t i = 0; i < r->update.variables.count; i++) {
        const tutti_sym *variable = &r->update.variables.data[i];
        tutti_type type = tutti_sym_type(*variable);
        type.handle = false;
        if (strcmp(variable->node->name, name) == 0 &&
            tutti_type_equal(&type, tutti_tensor_type(value)))
            return variable;
    }
    return NULL;
}

static tutti_status graph_rule_put_each(graph_rule *r, saved_reader in, bool takes)
{
    size_t count = saved_get_count(&in, 24);
    for (size_t i = 0; i < count; i++) {
        char name[TUTTI_STORE_NAME], text[TUTTI_TYPE_TEXT];
        tutti_tensor *value;
        TUTTI_TRY(tutti__store_named_get(&in, name, &value));
        const tutti_sym *variable = graph_rule_find(r, name, value);
        tutti_status status = TUTTI_OK;
        if (!variable)
            status = tutti_fail(TUTTI_INVALID, "there is no '%s' that is %s", name,
                                tutti_type_text(tutti_tensor_type(value), text));
        else if (takes)
            status = tutti_session_set(r->update.session, *variable, value);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

/* First all is looked at, then taken. */
static tutti_status graph_rule_put(tutti_store_rule *rule, saved_reader *in)
{
    graph_rule *r = (void *)rule;
    TUTTI_TRY(graph_rule_put_each(r, *in, false));
    tutti_tensor_release(r->value);
    r->value = NULL;
    return graph_rule_put_each(r, *in, true);
}

static int64_t graph_rule_bytes(const tutti_store_rule *rule)
{
    const graph_rule *r = (const void *)rule;
    int64_t bytes = 0;
    for (size_t i = 0; i < r->update.variables.count; i++) {
        tutti_type type = tutti_sym_type(r->update.variables.data[i]);
        bytes += tutti_type_count(&type) * (int64_t)tutti_dtype_size(type.dtype);
    }
    return bytes;
}

const tutti_store_rule_kind tutti_store_rule_graph = {
    .name = "graph",
    .doc = "the whole value in memory, updated by a graph",
    .open = graph_rule_open,
    .apply = graph_rule_apply,
    .read = graph_rule_read,
    .save = graph_rule_save,
    .load = graph_rule_load,
    .get = graph_rule_get,
    .put = graph_rule_put,
    .bytes = graph_rule_bytes,
    .close = graph_rule_close,
};
