/* onnx_decode.c: ONNX's messages from protobuf, which may come from anybody. Numbers of fields are
 * those of onnx.proto. */
#include <stdio.h>
#include <string.h>

#include "bridge/onnx_decode.h"
#include "io/protobuf.h"

tutti_status tutti__onnx_no_memory(const tutti_onnx_decoder *d)
{
    return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the model", d->file);
}

/* One more object; a few bytes in the file are a struct here. */
tutti_status tutti__onnx_count(tutti_onnx_decoder *d)
{
    if (++d->objects > ONNX_OBJECTS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d nodes, tensors and attributes",
                          d->file, ONNX_OBJECTS);
    return TUTTI_OK;
}

tutti_status tutti__onnx_take_string(tutti_onnx_decoder *d, const tutti_proto_field *f,
                                     const char **ret)
{
    if (f->kind != TUTTI_PROTO_BYTES)
        return tutti_fail(TUTTI_CORRUPT, "%s: field %u should be a text", d->file, f->number);
    if (f->size > 0 && memchr(f->data, 0, f->size))
        return tutti_fail(TUTTI_CORRUPT, "%s: a text has a byte 0 inside: '%s'…", d->file,
                          (const char *)f->data);
    char *copy = tutti__arena_take(&d->onnx->arena, f->size + 1);
    if (!copy)
        return tutti__onnx_no_memory(d);
    if (f->size > 0)
        memcpy(copy, f->data, f->size);
    *ret = copy;
    return TUTTI_OK;
}

tutti_status tutti__onnx_take_name(tutti_onnx_decoder *d, const tutti_proto_field *f,
                                   tutti_onnx_names *list)
{
    const char *name = NULL;
    TUTTI_TRY(tutti__onnx_take_string(d, f, &name));
    const char **slot = ONNX_PUSH(&d->onnx->arena, list);
    if (!slot)
        return tutti__onnx_no_memory(d);
    *slot = name;
    return TUTTI_OK;
}

tutti_status tutti__onnx_note_need(tutti_onnx_decoder *d, const char *format, ...)
{
    char text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (size_t i = 0; i < d->onnx->needs.count; i++)
        if (strcmp(d->onnx->needs.items[i], text) == 0)
            return TUTTI_OK;
    const char **slot = ONNX_PUSH(&d->onnx->arena, &d->onnx->needs);
    char *copy = slot ? tutti__arena_take(&d->onnx->arena, strlen(text) + 1) : NULL;
    if (!copy)
        return tutti__onnx_no_memory(d);
    memcpy(copy, text, strlen(text) + 1);
    *slot = copy;
    return TUTTI_OK;
}

/* ---- ValueInfoProto ---- */

static tutti_status read_dim(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    int i = v->type.rank;
    if (i == TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: '%s' has more than %d dimensions", d->file,
                          v->name, TUTTI_MAX_RANK);
    v->type.dims[i] = TUTTI_ANY;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            v->type.dims[i] = tutti__proto_int(&f) < 0 ? TUTTI_ANY : tutti__proto_int(&f);
        if (f.number == 2)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &v->names[i]));
    }
    v->type.rank++;
    return tutti__proto_end(&p);
}

static tutti_status read_shape(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    v->ranked = true;
    while (tutti__proto_next(&p, &f))
        if (f.number == 1)
            TUTTI_TRY(read_dim(d, tutti__proto_inside(&p, &f), v));
    return tutti__proto_end(&p);
}

static tutti_status read_tensor_type(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1) {
            v->element = tutti__proto_int(&f);
            v->type.dtype = tutti__onnx_dtype_of(v->element);
            d->onnx->widened = d->onnx->widened || tutti__onnx_is_widened(v->element);
        }
        if (f.number == 2)
            TUTTI_TRY(read_shape(d, tutti__proto_inside(&p, &f), v));
    }
    return tutti__proto_end(&p);
}

/* TypeProto: tensor_type 1, denotation 6, optional_type 9 (elem_type 1), others are no tensors. An
 * optional tensor is one that is given. */
static tutti_status read_type(tutti_onnx_decoder *d, tutti_proto p, bool optional,
                              tutti_onnx_value *v)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.kind != TUTTI_PROTO_BYTES || f.number == 6)
            continue;
        tutti_proto inner = tutti__proto_inside(&p, &f);
        if (f.number == 1)
            TUTTI_TRY(read_tensor_type(d, inner, v));
        else if (f.number == 9 && !optional) {
            tutti_proto_field element;
            while (tutti__proto_next(&inner, &element))
                if (element.number == 1)
                    TUTTI_TRY(read_type(d, tutti__proto_inside(&inner, &element), true, v));
            TUTTI_TRY(tutti__proto_end(&inner));
        } else
            v->other = true;
    }
    return tutti__proto_end(&p);
}

static tutti_status read_value(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    v->name = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &v->name));
        if (f.number == 2)
            TUTTI_TRY(read_type(d, tutti__proto_inside(&p, &f), false, v));
    }
    return tutti__proto_end(&p);
}

/* ---- nodes ---- */

static tutti_status read_numbers(tutti_onnx_decoder *d, tutti_proto *p, const tutti_proto_field *f,
                                 tutti_onnx_attr *attr)
{
    int64_t whole;
    float single;
    for (size_t at = 0; f->number == 7 && tutti__proto_each_float(p, f, &at, &single);) {
        float *slot = ONNX_PUSH(&d->onnx->arena, &attr->floats);
        if (!slot)
            return tutti__onnx_no_memory(d);
        *slot = single;
    }
    for (size_t at = 0; f->number == 8 && tutti__proto_each_int(p, f, &at, &whole);) {
        int64_t *slot = ONNX_PUSH(&d->onnx->arena, &attr->ints);
        if (!slot)
            return tutti__onnx_no_memory(d);
        *slot = whole;
    }
    return TUTTI_OK;
}

static tutti_status read_text(tutti_onnx_decoder *d, const tutti_proto_field *f,
                              tutti_onnx_attr *attr)
{
    if (f->number == 1)
        return tutti__onnx_take_string(d, f, &attr->name);
    if (f->number == 4)
        return tutti__onnx_take_string(d, f, &attr->s);
    const char **slot = ONNX_PUSH(&d->onnx->arena, &attr->strings);
    return slot ? tutti__onnx_take_string(d, f, slot) : tutti__onnx_no_memory(d);
}

static tutti_status read_subgraph(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_attr *attr)
{
    if (d->depth == ONNX_DEPTH)
        return tutti_fail(TUTTI_CORRUPT, "%s: sub-graphs nest deeper than %d", d->file, ONNX_DEPTH);
    attr->graph = tutti__arena_take(&d->onnx->arena, sizeof *attr->graph);
    if (!attr->graph)
        return tutti__onnx_no_memory(d);
    d->depth++;
    tutti_status status = tutti__onnx_take_graph(d, p, attr->graph);
    d->depth--;
    return status;
}

/* Old files leave the type out; the field that is there says it. */
static tutti_onnx_attr_kind kind_of(int64_t given, uint32_t field)
{
    static const tutti_onnx_attr_kind kinds[] = {
        [2] = ONNX_FLOAT, [3] = ONNX_INT,    [4] = ONNX_STRING, [5] = ONNX_TENSOR,
        [6] = ONNX_GRAPH, [7] = ONNX_FLOATS, [8] = ONNX_INTS,   [9] = ONNX_STRINGS};
    if (given > 0)
        return given <= ONNX_STRINGS ? (tutti_onnx_attr_kind)given : ONNX_NONE;
    return field < TUTTI_COUNT(kinds) ? kinds[field] : ONNX_NONE;
}

tutti_status tutti__onnx_take_attr(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_attr *attr)
{
    tutti_proto_field f;
    const char *unused;
    int64_t given = 0;
    uint32_t last = 0;
    bool tensor = false; /* one is there, whatever its elements are */
    bool sparse = false;
    attr->name = attr->s = attr->refers = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1 || f.number == 4 || f.number == 9)
            TUTTI_TRY(read_text(d, &f, attr));
        if (f.number == 2)
            attr->f = tutti__proto_float(&f);
        if (f.number == 3)
            attr->i = tutti__proto_int(&f);
        if (f.number == 5)
            TUTTI_TRY(
                tutti__onnx_take_tensor(d, tutti__proto_inside(&p, &f), &unused, &attr->tensor));
        if (f.number == 22)
            TUTTI_TRY(
                tutti__onnx_take_sparse(d, tutti__proto_inside(&p, &f), &unused, &attr->tensor));
        if (f.number == 5 || f.number == 22)
            attr->element = d->element;
        if (f.number == 6)
            TUTTI_TRY(read_subgraph(d, tutti__proto_inside(&p, &f), attr));
        if (f.number == 7 || f.number == 8)
            TUTTI_TRY(read_numbers(d, &p, &f, attr));
        tensor = tensor || f.number == 5 || f.number == 22;
        sparse = sparse || f.number == 22;
        if (f.number >= 2 && f.number <= 9)
            last = f.number;
        if (f.number == 21)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &attr->refers));
        if (f.number == 20)
            given = tutti__proto_int(&f);
    }
    attr->kind = sparse ? ONNX_TENSOR : kind_of(given, last);
    bool empty =
        (attr->kind == ONNX_TENSOR && !tensor) || (attr->kind == ONNX_GRAPH && !attr->graph);
    if (empty && !attr->refers[0])
        return tutti_fail(TUTTI_CORRUPT, "%s: attribute '%s' has no value", d->file, attr->name);
    return tutti__proto_end(&p);
}

tutti_status tutti__onnx_take_node(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_node *node)
{
    tutti_proto_field f;
    node->name = node->type = node->domain = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__onnx_take_name(d, &f, &node->inputs));
        if (f.number == 2)
            TUTTI_TRY(tutti__onnx_take_name(d, &f, &node->outputs));
        if (f.number == 3)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &node->name));
        if (f.number == 4)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &node->type));
        if (f.number == 7)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &node->domain));
        if (f.number == 5) {
            TUTTI_TRY(tutti__onnx_count(d));
            tutti_onnx_attr *attr = ONNX_PUSH(&d->onnx->arena, &node->attrs);
            if (!attr)
                return tutti__onnx_no_memory(d);
            TUTTI_TRY(tutti__onnx_take_attr(d, tutti__proto_inside(&p, &f), attr));
        }
    }
    return tutti__proto_end(&p);
}

/* ---- graph and model ---- */

static tutti_status read_part(tutti_onnx_decoder *d, tutti_proto p, uint32_t number,
                              tutti_onnx_graph *graph)
{
    TUTTI_TRY(tutti__onnx_count(d));
    if (number == 1) {
        tutti_onnx_node *node = ONNX_PUSH(&d->onnx->arena, &graph->nodes);
        return node ? tutti__onnx_take_node(d, p, node) : tutti__onnx_no_memory(d);
    }
    if (number == 5 || number == 15) {
        tutti_onnx_tensor *t = ONNX_PUSH(&d->onnx->arena, &graph->initializers);
        if (!t)
            return tutti__onnx_no_memory(d);
        tutti_status status = number == 5 ? tutti__onnx_take_tensor(d, p, &t->name, &t->value)
                                          : tutti__onnx_take_sparse(d, p, &t->name, &t->value);
        t->element = d->element;
        return status;
    }
    tutti_onnx_value *v = number == 11 ? ONNX_PUSH(&d->onnx->arena, &graph->inputs)
                                       : ONNX_PUSH(&d->onnx->arena, &graph->outputs);
    return v ? read_value(d, p, v) : tutti__onnx_no_memory(d);
}

tutti_status tutti__onnx_take_graph(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_graph *graph)
{
    tutti_proto_field f;
    graph->name = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 2)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &graph->name));
        if (f.number == 1 || f.number == 5 || f.number == 11 || f.number == 12 || f.number == 15)
            TUTTI_TRY(read_part(d, tutti__proto_inside(&p, &f), f.number, graph));
    }
    return tutti__proto_end(&p);
}
