/* onnx_own.c: operators that a user has registered. "acme.softclip" is the operator softclip of the
 * domain acme, with its attributes: Tutti reads it where the operator is registered, other programs
 * where they have one of that name. Attributes that ONNX has no exact form for are tensors. */
#include <stdio.h>
#include <string.h>

#include "bridge/onnx.h"

#define VERSION "tutti_version" /* where it is not 1 */

static const tutti_onnx_op own_rule;

/* A user's, with a prefix that makes a domain. */
static bool is_own(const tutti_op *op)
{
    const char *dot = op && !tutti__op_is_built_in(op) ? strrchr(op->name, '.') : NULL;
    return dot && dot > op->name && dot[1];
}

const tutti_onnx_op *tutti__onnx_own_writer(const char *op)
{
    return is_own(tutti_op_find(op)) ? &own_rule : NULL;
}

static const tutti_op *onnx_own_find(const char *domain, const char *type, int64_t version)
{
    char name[512];
    int size = version == 0
                   ? snprintf(name, sizeof name, "%s.%s", domain, type)
                   : snprintf(name, sizeof name, "%s.%s@%lld", domain, type, (long long)version);
    const tutti_op *op = domain[0] && size < (int)sizeof name ? tutti_op_find(name) : NULL;
    return is_own(op) ? op : NULL;
}

const tutti_onnx_op *tutti__onnx_own_reader(const char *domain, const char *type)
{
    return onnx_own_find(domain, type, 0) ? &own_rule : NULL;
}

/* ---- writing ---- */

static void use_domain(tutti_onnx_export *x, const char *domain)
{
    tutti_onnx_names *all = &x->onnx->domains;
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i], domain) == 0)
            return;
    const char **slot = ONNX_PUSH(&x->onnx->arena, all);
    if (slot)
        *slot = domain;
    else
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
}

static void set_doubles(tutti_onnx_export *x, const char *name, int count, const double *values)
{
    tutti_tensor *tensor;
    if (tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){count}, values, &tensor) == TUTTI_OK)
        tutti__onnx_set_tensor(x, name, tensor);
    else
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
}

static void set_attr(tutti_onnx_export *x, const tutti_attr *attr)
{
    switch (attr->kind) {
    case TUTTI_ATTR_INT:
        tutti__onnx_set_int(x, attr->name, attr->value.i);
        return;
    case TUTTI_ATTR_FLOAT:
        if ((double)(float)attr->value.f == attr->value.f)
            tutti__onnx_set_float(x, attr->name, attr->value.f);
        else
            set_doubles(x, attr->name, 1, &attr->value.f);
        return;
    case TUTTI_ATTR_STRING:
        tutti__onnx_set_string(x, attr->name, attr->value.s);
        return;
    case TUTTI_ATTR_INTS:
        tutti__onnx_set_ints(x, attr->name, attr->count, attr->value.ints);
        return;
    case TUTTI_ATTR_FLOATS:
        set_doubles(x, attr->name, attr->count, attr->value.floats);
        return;
    case TUTTI_ATTR_TENSOR:
        tutti__onnx_set_tensor(x, attr->name, tutti_tensor_retain(attr->value.tensor));
        return;
    default:
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "its attribute '%s' has no form in ONNX",
                               attr->name);
    }
}

static void write_own(tutti_onnx_export *x)
{
    const tutti_node *node = x->node;
    const char *inputs[64], *name = node->op->name, *dot = strrchr(name, '.');
    if (node->input_count > 64 || node->output_count < 1) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "has %d inputs and %d outputs",
                               node->input_count, node->output_count);
        return;
    }
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__onnx_in(x, i);
    char *domain = tutti__arena_bytes(&x->onnx->arena, name, (size_t)(dot - name) + 1);
    char *type = tutti__arena_string(&x->onnx->arena, dot + 1);
    if (!domain || !type) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return;
    }
    domain[dot - name] = 0;
    const char *y = tutti__onnx_node(x, type, (size_t)node->input_count, inputs);
    if (x->status != TUTTI_OK)
        return;
    x->last->domain = domain;
    use_domain(x, domain);
    for (int i = 0; i < node->attr_count; i++)
        set_attr(x, &node->attrs[i]);
    if (node->op->version != 1)
        tutti__onnx_set_int(x, VERSION, node->op->version);
    tutti__onnx_out(x, 0, y);
    for (int i = 1; i < node->output_count; i++)
        tutti__onnx_out(x, i, tutti__onnx_more(x));
}

/* ---- reading ---- */

static bool bad_attr(tutti_onnx_import *m, const char *name)
{
    tutti__onnx_read_fail(m, TUTTI_INVALID, "its attribute '%s' is not of the operator's kind",
                          name);
    return false;
}

static bool read_floats(tutti_onnx_import *m, const tutti_onnx_attr *from, tutti_attr *ret)
{
    bool listed = from->kind == ONNX_FLOATS;
    int64_t count = listed                                      ? (int64_t)from->floats.count
                    : from->kind == ONNX_TENSOR && from->tensor ? tutti_tensor_count(from->tensor)
                                                                : -1;
    double *values = count >= 0 && count <= 4096
                         ? tutti__arena_array(&m->root->arena, (size_t)count + 1, sizeof *values)
                         : NULL;
    if (!values || (!listed && !tutti_dtype_is_float(tutti_tensor_dtype(from->tensor))))
        return bad_attr(m, from->name);
    for (int64_t i = 0; i < count; i++)
        values[i] = listed ? (double)from->floats.items[i] : tutti_tensor_get(from->tensor, i);
    ret->count = (int)count;
    ret->value.floats = values;
    return true;
}

static bool read_attr(tutti_onnx_import *m, const tutti_attr_spec *spec,
                      const tutti_onnx_attr *from, tutti_attr *ret)
{
    tutti_attr list = {0};
    *ret = (tutti_attr){.name = spec->name, .kind = spec->kind};
    switch (spec->kind) {
    case TUTTI_ATTR_INT:
        ret->value.i = from->i;
        return from->kind == ONNX_INT || bad_attr(m, spec->name);
    case TUTTI_ATTR_FLOAT:
        ret->value.f = (double)from->f;
        if (from->kind == ONNX_FLOAT)
            return true;
        if (!read_floats(m, from, &list) || list.count != 1)
            return bad_attr(m, spec->name);
        ret->value.f = list.value.floats[0];
        return true;
    case TUTTI_ATTR_STRING:
        ret->value.s = from->s;
        ret->count = -1;
        return from->kind == ONNX_STRING || bad_attr(m, spec->name);
    case TUTTI_ATTR_INTS:
        ret->value.ints = from->ints.items;
        ret->count = (int)from->ints.count;
        return (from->kind == ONNX_INTS && from->ints.count <= 4096) || bad_attr(m, spec->name);
    case TUTTI_ATTR_FLOATS:
        return read_floats(m, from, ret);
    case TUTTI_ATTR_TENSOR:
        ret->value.tensor = from->tensor;
        return (from->kind == ONNX_TENSOR && from->tensor) || bad_attr(m, spec->name);
    default:
        return bad_attr(m, spec->name);
    }
}

static const tutti_attr_spec *spec_of(const tutti_op *op, const char *name)
{
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        if (strcmp(spec->name, name) == 0)
            return spec;
    return NULL;
}

/* An empty list is no attribute in some files; every other one must be the operator's. */
static bool read_attrs(tutti_onnx_import *m, const tutti_op *op, int *count, tutti_attr *ret)
{
    *count = 0;
    for (size_t i = 0; i < m->node->attrs.count; i++) {
        const tutti_onnx_attr *from = &m->node->attrs.items[i];
        const tutti_attr_spec *spec = spec_of(op, from->name);
        if (!spec && strcmp(from->name, VERSION) == 0)
            continue;
        if (!spec || *count == 32) {
            tutti__onnx_read_fail(m, TUTTI_INVALID, "operator '%s' has no attribute '%s'", op->name,
                                  from->name);
            return false;
        }
        if (!read_attr(m, spec, from, &ret[(*count)++]))
            return false;
    }
    return true;
}

static void read_own(tutti_onnx_import *m)
{
    const tutti_op *op =
        onnx_own_find(m->node->domain, m->node->type, tutti__onnx_attr_int(m, VERSION, 0));
    tutti_sym inputs[64];
    tutti_attr attrs[32];
    int count, given = (int)m->node->inputs.count;
    if (!op || m->node->inputs.count > 64) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is not registered in this version");
        return;
    }
    for (int i = 0; i < given; i++)
        inputs[i] = tutti__onnx_sym(m, i);
    if (m->status != TUTTI_OK || !read_attrs(m, op, &count, attrs))
        return;
    tutti_sym y = tutti__build(m->graph, op, NULL, given, inputs, count, attrs);
    for (int i = 0; y.node && i < y.node->output_count; i++)
        tutti__onnx_made(m, i, tutti__sym(y.node, (uint32_t)i));
}

static const tutti_onnx_op own_rule = {
    .write = write_own,
    .read = read_own,
};
