/* onnx_read.c: what rules that read nodes of ONNX's are made of. */
#include "bridge/onnx.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ops/state/state.h"
#include "tables/onnx_op.h"
#include "tensor/tensor.h"

const tutti_onnx_op *tutti__onnx_reader(const char *domain, const char *type)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (const tutti_onnx_op *const *at = tutti__onnx_op_table; *at; at++)
        if ((*at)->type && (*at)->read && strcmp((*at)->type, type) == 0 &&
            strcmp((*at)->domain ? (*at)->domain : "", domain) == 0)
            return *at;
    return tutti__onnx_own_reader(domain, type);
}

void tutti__onnx_read_fail(tutti_onnx_import *m, tutti_status status, const char *format, ...)
{
    char text[700];
    va_list list;
    if (m->status != TUTTI_OK)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    /* What the graph had no memory for explains everything that is missed behind it. */
    if (m->graph && tutti_graph_check(m->graph) == TUTTI_NO_MEMORY) {
        status = TUTTI_NO_MEMORY;
        snprintf(text, sizeof text, "%s", tutti_error_message());
    }
    if (m->node)
        m->status =
            tutti_fail(status, "%s: %s '%s' (opset %lld): %s", m->file, m->node->type,
                       m->node->name[0] || m->node->outputs.count == 0 ? m->node->name
                                                                       : m->node->outputs.items[0],
                       (long long)m->opset, text);
    else
        m->status = tutti_fail(status, "%s: %s", m->file, text);
    tutti__error_capture(m->status, &m->error);
}

/* ---- inputs ---- */

bool tutti__onnx_has(const tutti_onnx_import *m, int i)
{
    if (i < 0 || (size_t)i >= m->node->inputs.count || m->node->inputs.items[i][0] == 0)
        return false;
    return tutti__onnx_find((tutti_onnx_import *)m, m->node->inputs.items[i]) != m->root->missing;
}

bool tutti__onnx_names(const tutti_onnx_import *m, int i)
{
    return i >= 0 && (size_t)i < m->node->outputs.count && m->node->outputs.items[i][0] != 0;
}

tutti_onnx_known *tutti__onnx_input(tutti_onnx_import *m, int i)
{
    return tutti__onnx_has(m, i) ? tutti__onnx_find(m, m->node->inputs.items[i]) : NULL;
}

void tutti__onnx_legal_name(const char *name, char ret[256])
{
    size_t size = 0;
    for (; size < 200 && name[size]; size++) {
        bool slash = name[size] == '/' && (size == 0 || ret[size - 1] == '/' || !name[size + 1]);
        bool legal = isalnum((unsigned char)name[size]) || strchr("_./-+:@", name[size]);
        ret[size] = legal && !slash ? name[size] : '_';
    }
    if (size > 0 && ret[size - 1] == '/') /* the name was cut here */
        ret[size - 1] = '_';
    if (size == 0)
        ret[size++] = '_';
    ret[size] = 0;
}

static tutti_sym make_variable(tutti_onnx_import *m, const tutti_onnx_known *known,
                               tutti_tensor *value)
{
    char name[256];
    tutti__onnx_legal_name(known->name, name);
    tutti_hidden_scopes hidden = tutti__scopes_hide(m->graph);
    tutti_sym variable = tutti_variable(m->graph, tutti_tensor_init(value), .name = name,
                                        .not_trainable = known->frozen);
    tutti__scopes_show(m->graph, hidden);
    return variable;
}

/* Constants and initializers get their node when it is first asked for. */
static void materialize(tutti_onnx_import *m, tutti_onnx_known *known)
{
    if (known->elements && !known->plain.node && !known->value)
        known->plain = tutti__onnx_elements_sym(m, known->elements);
    if (known->plain.node || known->last.node || !known->value)
        return;
    if (known->weight && !m->root->constants &&
        tutti_dtype_is_float(tutti_tensor_dtype(known->value)))
        known->plain = make_variable(m, known, known->value);
    else
        known->plain = tutti_constant(m->graph, known->value);
}

static tutti_onnx_known *needed(tutti_onnx_import *m, int i)
{
    tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (m->status != TUTTI_OK)
        return NULL;
    if (known && known->sequence) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "input %d is a sequence, not a tensor", i);
        return NULL;
    }
    if (known) {
        materialize(m, known);
        return known;
    }
    if (tutti__onnx_has(m, i))
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its input '%s' is made by nobody before it",
                              m->node->inputs.items[i]);
    else
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "input %d is missing", i);
    return NULL;
}

static tutti_sym turned(tutti_sym sym, bool to_first)
{
    int64_t order[TUTTI_MAX_RANK];
    int rank = tutti_sym_type(sym).rank;
    if (rank < 3)
        return sym;
    if (to_first)
        tutti__onnx_first_order(rank, order);
    else
        tutti__onnx_last_order(rank, order);
    return (tutti_transpose)(sym, rank, order);
}

tutti_sym tutti__onnx_sym(tutti_onnx_import *m, int i)
{
    tutti_onnx_known *known = needed(m, i);
    if (!known)
        return TUTTI_NO_SYM;
    if (!known->plain.node && known->last.node)
        known->plain = turned(known->last, true);
    return known->plain;
}

tutti_sym tutti__onnx_sym_last(tutti_onnx_import *m, int i)
{
    tutti_onnx_known *known = needed(m, i);
    if (!known)
        return TUTTI_NO_SYM;
    if (!known->last.node && known->plain.node)
        known->last = turned(known->plain, false);
    return known->last;
}

tutti_sym tutti__onnx_sym_as(tutti_onnx_import *m, int i, bool last)
{
    const tutti_onnx_known *known = needed(m, i);
    if (!last || (known && known->plain.node && tutti_sym_type(known->plain).rank == 0))
        return tutti__onnx_sym(m, i);
    return tutti__onnx_sym_last(m, i);
}

/* Inputs of equal rank of which one is there channels last only; others are scalars. */
bool tutti__onnx_joined(tutti_onnx_import *m)
{
    int rank = 0;
    bool any = false;
    for (size_t i = 0; i < m->node->inputs.count; i++) {
        const tutti_onnx_known *known = needed(m, (int)i);
        if (!known)
            return false;
        tutti_sym sym = known->plain.node ? known->plain : known->last;
        int own = sym.node ? tutti_sym_type(sym).rank : 0;
        if (own == 0)
            continue;
        if (own < 3 || (rank != 0 && own != rank))
            return false;
        rank = own;
        any = any || !known->plain.node;
    }
    return any;
}

/* ---- outputs ---- */

tutti_sym tutti__onnx_symbol(tutti_onnx_import *m, tutti_onnx_known *known)
{
    /* As a node's input, so that the order of dimensions is the file's. */
    materialize(m, known);
    if (!known->plain.node && known->last.node)
        known->plain = turned(known->last, true);
    if (!known->plain.node)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "'%s' is no tensor", known->name);
    return known->plain;
}

void tutti__onnx_made_known(tutti_onnx_import *m, int i, tutti_onnx_known *known)
{
    if (m->status != TUTTI_OK || !tutti__onnx_names(m, i) || !known)
        return;
    const char *name = m->node->outputs.items[i];
    if (tutti__map_get(&m->known, name))
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "'%s' is made twice", name);
    else if (tutti__map_set(&m->known, name, known) != TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
}

static void keep_made(tutti_onnx_import *m, int i, tutti_onnx_known known)
{
    if (m->status != TUTTI_OK || !tutti__onnx_names(m, i))
        return;
    tutti_onnx_known *kept = tutti__arena_take(&m->root->arena, sizeof *kept);
    if (!kept) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    *kept = known;
    kept->name = m->node->outputs.items[i];
    tutti__onnx_made_known(m, i, kept);
}

void tutti__onnx_made_as(tutti_onnx_import *m, int i, tutti_sym sym, bool last)
{
    if (sym.node)
        keep_made(m, i,
                  (tutti_onnx_known){.plain = last ? TUTTI_NO_SYM : sym,
                                     .last = last ? sym : TUTTI_NO_SYM});
}

void tutti__onnx_made(tutti_onnx_import *m, int i, tutti_sym sym)
{
    tutti__onnx_made_as(m, i, sym, false);
}

void tutti__onnx_made_value(tutti_onnx_import *m, int i, tutti_tensor *value)
{
    if (!TUTTI_VEC_PUSH(&m->root->made, value)) {
        tutti_tensor_release(value);
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    keep_made(m, i, (tutti_onnx_known){.value = value});
}

void tutti__onnx_made_elements(tutti_onnx_import *m, int i, const tutti_onnx_elements *elements)
{
    tutti_onnx_elements *copy = tutti__arena_take(&m->root->arena, sizeof *copy);
    if (!copy) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    *copy = *elements;
    keep_made(m, i, (tutti_onnx_known){.elements = copy});
}

void tutti__onnx_read_plain(tutti_onnx_import *m)
{
    tutti_sym inputs[16];
    bool last = tutti__onnx_joined(m);
    size_t count = m->node->inputs.count;
    if (count == 0 || count > 16) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has %zu inputs", count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        inputs[i] = tutti__onnx_sym_as(m, (int)i, last);
    if (m->status == TUTTI_OK)
        tutti__onnx_made_as(
            m, 0, tutti_apply_op(m->graph, m->rule->op, (int)count, inputs, 0, NULL), last);
}

/* ---- constants ---- */

tutti_tensor *tutti__onnx_read_constant(tutti_onnx_import *m, int i, const char *what)
{
    tutti_tensor *value = tutti__onnx_try_constant(m, i);
    if (!value)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "%s (input %d) must be known before it runs",
                              what, i);
    return value;
}

static bool take_ints(tutti_onnx_import *m, int64_t count, const char *what, tutti_axes *ret)
{
    *ret = (tutti_axes){0};
    if (count >= 0 && count <= TUTTI_MAX_RANK)
        return true;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "%s has %lld entries, at most %d are possible",
                          what, (long long)count, TUTTI_MAX_RANK);
    return false;
}

bool tutti__onnx_read_ints(tutti_onnx_import *m, int i, const char *what, tutti_axes *ret)
{
    const tutti_tensor *value = tutti__onnx_read_constant(m, i, what);
    if (!value || !take_ints(m, tutti_tensor_count(value), what, ret))
        return false;
    for (int64_t k = 0; k < tutti_tensor_count(value); k++)
        ret->values[ret->count++] = tutti_tensor_get_int(value, k);
    return true;
}

bool tutti__onnx_read_axes(tutti_onnx_import *m, int i, const char *name, tutti_axes *ret)
{
    const int64_t *values;
    if (tutti__onnx_has(m, i))
        return tutti__onnx_read_ints(m, i, name, ret);
    int count = tutti__onnx_attr_ints(m, name, &values);
    if (!take_ints(m, count, name, ret))
        return false;
    while (ret->count < count) {
        ret->values[ret->count] = values[ret->count];
        ret->count++;
    }
    return true;
}

bool tutti__onnx_read_number(tutti_onnx_import *m, int i, double fallback, double *ret)
{
    *ret = fallback;
    if (!tutti__onnx_has(m, i))
        return true;
    const tutti_tensor *value = tutti__onnx_read_constant(m, i, "a number");
    if (value)
        *ret = tutti_tensor_get(value, 0);
    return value != NULL;
}

bool tutti__onnx_read_int(tutti_onnx_import *m, int i, int64_t fallback, int64_t *ret)
{
    *ret = fallback;
    if (!tutti__onnx_has(m, i))
        return true;
    const tutti_tensor *value = tutti__onnx_read_constant(m, i, "a number");
    if (value)
        *ret = tutti_tensor_get_int(value, 0);
    return value != NULL;
}

/* ---- attributes ---- */

int64_t tutti__onnx_attr_int(const tutti_onnx_import *m, const char *name, int64_t fallback)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_INT);
    return attr ? attr->i : fallback;
}

int tutti__onnx_attr_axis(const tutti_onnx_import *m, const char *name, int fallback)
{
    int64_t axis = tutti__onnx_attr_int(m, name, fallback);
    return axis < -TUTTI_MAX_RANK || axis > TUTTI_MAX_RANK ? TUTTI_MAX_RANK : (int)axis;
}

bool tutti__onnx_attr_within(tutti_onnx_import *m, const char *name, int64_t fallback,
                             int64_t least, int64_t most, int64_t *ret)
{
    *ret = tutti__onnx_attr_int(m, name, fallback);
    if (*ret >= least && *ret <= most)
        return true;
    tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%s is %lld; from %lld to %lld is possible", name,
                          (long long)*ret, (long long)least, (long long)most);
    return false;
}

double tutti__onnx_attr_setting(const tutti_onnx_import *m, const char *name, double fallback)
{
    double value = tutti__onnx_attr_float(m, name, fallback);
    return value == 0 ? 1e-300 : value;
}

double tutti__onnx_attr_float(const tutti_onnx_import *m, const char *name, double fallback)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_FLOAT);
    return attr ? (double)attr->f : fallback;
}

const char *tutti__onnx_attr_string(const tutti_onnx_import *m, const char *name,
                                    const char *fallback)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_STRING);
    return attr ? attr->s : fallback;
}

int tutti__onnx_attr_ints(const tutti_onnx_import *m, const char *name, const int64_t **ret)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_INTS);
    *ret = attr ? attr->ints.items : NULL;
    return attr && attr->ints.count < INT32_MAX ? (int)attr->ints.count : 0;
}

/* ---- weights in another form ---- */

tutti_sym tutti__onnx_formed(tutti_onnx_import *m, int i, const char *form,
                             tutti_onnx_convert_fn *make, const void *context)
{
    tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (!known || !known->value || m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    if (known->formed.node && strcmp(known->form, form) == 0)
        return known->formed;
    tutti_tensor *value = make(known->value, context);
    if (!value) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    bool weight =
        known->weight && !m->root->constants && tutti_dtype_is_float(tutti_tensor_dtype(value));
    known->formed = weight ? make_variable(m, known, value) : tutti_constant(m->graph, value);
    known->form = form;
    tutti_tensor_release(value);
    return known->formed;
}
