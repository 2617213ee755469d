/* onnx_write.c: what rules that write nodes of ONNX's are made of. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <string.h>

#include "tables/onnx_op.h"

const tutti_onnx_op *tutti__onnx_writer(const char *op)
{
    for (const tutti_onnx_op *const *at = tutti__onnx_op_table; *at; at++)
        if ((*at)->op && (*at)->write && strcmp((*at)->op, op) == 0)
            return *at;
    return tutti__onnx_own_writer(op);
}

void tutti__onnx_first_order(int rank, int64_t *ret_order)
{
    for (int i = 0; i < rank; i++)
        ret_order[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

void tutti__onnx_last_order(int rank, int64_t *ret_order)
{
    for (int i = 0; i < rank; i++)
        ret_order[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

void tutti__onnx_write_fail(tutti_onnx_export *x, tutti_status status, const char *format, ...)
{
    char text[700];
    va_list list;
    if (x->status != TUTTI_OK)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (x->node)
        x->status = tutti_fail(status, "%s '%s': %s", x->node->op->name, x->node->name, text);
    else
        x->status = tutti_fail(status, "%s", text);
    tutti__error_capture(x->status, &x->error);
}

/* A name nobody has yet: the wish, or the wish with a number. */
static const char *fresh(tutti_onnx_export *x, const char *wish)
{
    char name[700];
    snprintf(name, sizeof name, "%s", wish);
    for (unsigned number = 1; tutti__map_get(&x->names, name); number++)
        snprintf(name, sizeof name, "%.600s_%u", wish, number);
    char *kept = tutti__arena_string(&x->onnx->arena, name);
    if (!kept || tutti__map_set(&x->names, name, x) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    return kept;
}

tutti_dtype tutti__onnx_written(tutti_dtype dtype)
{
    return dtype == TUTTI_BF16 ? TUTTI_F32 : dtype;
}

/* The tensor as it is written; takes it over. NULL after a failure. */
static tutti_tensor *written(tutti_onnx_export *x, tutti_tensor *value)
{
    tutti_tensor *wide = NULL;
    tutti_dtype dtype = tutti_tensor_dtype(value);
    if (tutti__onnx_written(dtype) == dtype)
        return value;
    if (tutti_tensor_cast(value, tutti__onnx_written(dtype), &wide) != TUTTI_OK)
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    tutti_tensor_release(value);
    return wide;
}

/* ---- nodes ---- */

const char *tutti__onnx_node(tutti_onnx_export *x, const char *type, size_t count,
                             const char *const *inputs)
{
    char wish[700];
    tutti_arena *arena = &x->onnx->arena;
    if (x->status != TUTTI_OK)
        return "";
    tutti_onnx_node *node = ONNX_PUSH(arena, &x->onnx->graph.nodes);
    snprintf(wish, sizeof wish, "%s/%s", x->node ? x->node->name : "graph", type);
    const char *name = fresh(x, wish);
    while (count > 0 && inputs[count - 1][0] == 0)
        count--;
    for (size_t i = 0; node && i < count; i++) {
        const char **slot = ONNX_PUSH(arena, &node->inputs);
        if (slot)
            *slot = inputs[i];
    }
    const char **slot = node ? ONNX_PUSH(arena, &node->outputs) : NULL;
    if (!slot || node->inputs.count < count) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    *slot = name;
    node->name = name;
    node->type = type;
    node->domain = "";
    x->last = node;
    return name;
}

const char *tutti__onnx_more(tutti_onnx_export *x)
{
    if (x->status != TUTTI_OK)
        return "";
    const char *name = fresh(x, x->last->name);
    const char **slot = ONNX_PUSH(&x->onnx->arena, &x->last->outputs);
    if (slot)
        *slot = name;
    else
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    return name;
}

/* A new attribute of the last node; a spare one after a failure. */
static tutti_onnx_attr *attribute(tutti_onnx_export *x, const char *name, tutti_onnx_attr_kind kind)
{
    tutti_onnx_attr *attr =
        x->status == TUTTI_OK ? ONNX_PUSH(&x->onnx->arena, &x->last->attrs) : NULL;
    if (!attr) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return NULL;
    }
    *attr = (tutti_onnx_attr){.name = name, .kind = kind, .s = ""};
    return attr;
}

void tutti__onnx_set_int(tutti_onnx_export *x, const char *name, int64_t value)
{
    tutti_onnx_attr *attr = attribute(x, name, ONNX_INT);
    if (attr)
        attr->i = value;
}

void tutti__onnx_set_float(tutti_onnx_export *x, const char *name, double value)
{
    tutti_onnx_attr *attr = attribute(x, name, ONNX_FLOAT);
    if (attr)
        attr->f = (float)value;
}

void tutti__onnx_set_string(tutti_onnx_export *x, const char *name, const char *value)
{
    tutti_onnx_attr *attr = attribute(x, name, ONNX_STRING);
    const char *kept = tutti__arena_string(&x->onnx->arena, value);
    if (attr && kept)
        attr->s = kept;
    else
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
}

void tutti__onnx_set_ints(tutti_onnx_export *x, const char *name, int count, const int64_t *values)
{
    tutti_onnx_attr *attr = attribute(x, name, ONNX_INTS);
    for (int i = 0; attr && i < count; i++) {
        int64_t *slot = ONNX_PUSH(&x->onnx->arena, &attr->ints);
        if (slot)
            *slot = values[i];
        else
            tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    }
}

/* Takes the tensor over. */
void tutti__onnx_set_tensor(tutti_onnx_export *x, const char *name, tutti_tensor *value)
{
    tutti_onnx_attr *attr = attribute(x, name, ONNX_TENSOR);
    tutti_tensor *kept = written(x, value);
    if (!attr)
        tutti_tensor_release(kept);
    else if (!kept || tutti__onnx_keep(x->onnx, kept) != TUTTI_OK)
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    else
        attr->tensor = kept;
}

/* ---- constants ---- */

static const char *initializer(tutti_onnx_export *x, const char *wish, tutti_tensor *value)
{
    const char *name = fresh(x, wish);
    tutti_tensor *kept = written(x, value);
    if (!kept || tutti__onnx_keep(x->onnx, kept) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    tutti_onnx_tensor *slot = ONNX_PUSH(&x->onnx->arena, &x->onnx->graph.initializers);
    if (slot)
        *slot = (tutti_onnx_tensor){name, kept};
    else
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    return name;
}

static const char *share(tutti_onnx_export *x, const char *key, const char *name)
{
    if (x->status == TUTTI_OK && tutti__map_set(&x->shared, key, (void *)name) != TUTTI_OK)
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
    return name;
}

const char *tutti__onnx_ints(tutti_onnx_export *x, int count, const int64_t *values)
{
    char key[400] = "ints";
    size_t used = 4;
    int64_t dims[1] = {count};
    tutti_tensor *tensor;
    if (x->status != TUTTI_OK)
        return "";
    for (int i = 0; i < count && used + 24 < sizeof key; i++)
        used += (size_t)snprintf(key + used, sizeof key - used, "_%lld", (long long)values[i]);
    const char *name = count <= 16 ? tutti__map_get(&x->shared, key) : NULL;
    if (name)
        return name;
    if (tutti_tensor_from(TUTTI_I64, 1, dims, values, &tensor) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    return share(x, key, initializer(x, key, tensor));
}

const char *tutti__onnx_constant(tutti_onnx_export *x, tutti_tensor *value)
{
    const char *name = tutti__onnx_node(x, "Constant", 0, NULL);
    tutti__onnx_set_tensor(x, "value", value);
    return name;
}

const char *tutti__onnx_number(tutti_onnx_export *x, tutti_dtype dtype, double value)
{
    char key[80];
    tutti_tensor *tensor;
    if (x->status != TUTTI_OK)
        return "";
    snprintf(key, sizeof key, "number %d %.17g", (int)dtype, value);
    const char *name = tutti__map_get(&x->shared, key);
    if (name)
        return name;
    if (tutti_tensor_create(dtype, 0, NULL, &tensor) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    if (dtype == TUTTI_I64 || dtype == TUTTI_I32)
        tutti_tensor_set_int(tensor, 0, (int64_t)value);
    else
        tutti_tensor_set(tensor, 0, value);
    return share(x, key, tutti__onnx_constant(x, tensor));
}

const char *tutti__onnx_weight(tutti_onnx_export *x, const tutti_node *node, const char *form,
                               tutti_tensor *value)
{
    char key[160];
    snprintf(key, sizeof key, "weight %u %s", node->id, form);
    const char *name = x->status == TUTTI_OK ? tutti__map_get(&x->shared, key) : "";
    if (name) {
        tutti_tensor_release(value);
        return name;
    }
    name = tutti__is(node, "variable") ? initializer(x, node->name, value)
                                       : tutti__onnx_constant(x, value);
    return share(x, key, name);
}

/* ---- pieces ---- */

const char *tutti__onnx_turned(tutti_onnx_export *x, const char *name, int rank,
                               const int64_t *order)
{
    const char *turned = ONNX(x, "Transpose", name);
    tutti__onnx_set_ints(x, "perm", rank, order);
    return turned;
}

const char *tutti__onnx_squeezed(tutti_onnx_export *x, const char *name, int64_t axis)
{
    return ONNX(x, "Squeeze", name, tutti__onnx_ints(x, 1, &axis));
}

const char *tutti__onnx_unsqueezed(tutti_onnx_export *x, const char *name, int64_t axis)
{
    return ONNX(x, "Unsqueeze", name, tutti__onnx_ints(x, 1, &axis));
}

const char *tutti__onnx_cast(tutti_onnx_export *x, const char *name, tutti_dtype dtype)
{
    const char *made = ONNX(x, "Cast", name);
    tutti__onnx_set_int(x, "to", tutti__onnx_dtype(tutti__onnx_written(dtype)));
    return made;
}
