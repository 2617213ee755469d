/* attr.c: attributes: lookup, defaults, copies, equality. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "graph/attr.h"

const tutti_attr *tutti_attr_find(const tutti_attr *attrs, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (attrs[i].name == name ||
            (attrs[i].name[0] == name[0] && strcmp(attrs[i].name, name) == 0))
            return &attrs[i];
    return NULL;
}

int64_t tutti_attr_int(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    return attr ? attr->value.i : 0;
}

double tutti_attr_float(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    return attr ? attr->value.f : 0;
}

const char *tutti_attr_string(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    return attr && attr->value.s ? attr->value.s : "";
}

int tutti_attr_ints(const tutti_attr *attrs, int count, const char *name,
                    const int64_t **ret_values)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    *ret_values = attr ? attr->value.ints : NULL;
    return attr ? attr->count : 0;
}

static const char *const kind_names[] = {"none",   "int",    "float", "string", "ints",
                                         "floats", "tensor", "graph", "types"};

const char *tutti__attr_kind_name(tutti_attr_kind kind)
{
    return (size_t)kind < TUTTI_COUNT(kind_names) ? kind_names[kind] : "?";
}

static bool parse_word(const char *text, int64_t *ret)
{
    tutti_dtype dtype;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *ret = text[0] == 't';
    else if (tutti_dtype_parse(text, &dtype) == TUTTI_OK)
        *ret = dtype;
    else
        return false;
    return true;
}

/* "[1, 2]" into integers or floats; at most 64 elements. */
static tutti_status parse_list(tutti_arena *arena, const tutti_attr_spec *spec, const char *text,
                               tutti_attr *ret)
{
    int64_t ints[64];
    double floats[64];
    int count = 0;
    const char *at = text;
    if (*at++ != '[')
        return tutti_fail(TUTTI_INVALID, "attribute '%s': \"%s\" is not a list like [1,2]",
                          spec->name, text);
    while (*at && *at != ']') {
        char *end;
        if (count == (int)TUTTI_COUNT(ints))
            return tutti_fail(TUTTI_INVALID, "attribute '%s': \"%s\" has more than %d elements",
                              spec->name, text, count);
        ints[count] = strtoll(at, &end, 10);
        floats[count] = tutti__strtod(at, spec->kind == TUTTI_ATTR_FLOATS ? &end : NULL);
        if (end == at)
            return tutti_fail(TUTTI_INVALID, "attribute '%s': \"%s\" is not a list like [1,2]",
                              spec->name, text);
        count++;
        at = end;
        while (*at == ',' || *at == ' ')
            at++;
    }
    if (*at != ']' || at[1])
        return tutti_fail(TUTTI_INVALID, "attribute '%s': \"%s\" is not a list like [1,2]",
                          spec->name, text);
    ret->count = count;
    if (spec->kind == TUTTI_ATTR_INTS)
        ret->value.ints = (void *)tutti__arena_bytes(arena, ints, (size_t)count * sizeof *ints);
    else
        ret->value.floats =
            (void *)tutti__arena_bytes(arena, floats, (size_t)count * sizeof *floats);
    return ret->value.ints ? TUTTI_OK
                           : tutti_fail(TUTTI_NO_MEMORY, "no memory for an attribute list");
}

tutti_status tutti__attr_parse(tutti_arena *arena, const tutti_attr_spec *spec, const char *text,
                               tutti_attr *ret_attr)
{
    tutti_attr attr = {.name = spec->name, .kind = spec->kind};
    char *end = NULL;
    switch (spec->kind) {
    case TUTTI_ATTR_INT:
        attr.value.i = strtoll(text, &end, 0);
        if ((end == text || *end) && !parse_word(text, &attr.value.i))
            return tutti_fail(TUTTI_INVALID,
                              "attribute '%s': \"%s\" is not an integer, bool or data type",
                              spec->name, text);
        break;
    case TUTTI_ATTR_FLOAT:
        attr.value.f = tutti__strtod(text, &end);
        if (end == text || *end)
            return tutti_fail(TUTTI_INVALID, "attribute '%s': \"%s\" is not a number", spec->name,
                              text);
        break;
    case TUTTI_ATTR_STRING:
        attr.count = (int32_t)strlen(text);
        attr.value.s = tutti__arena_string(arena, text);
        if (!attr.value.s)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for attribute '%s'", spec->name);
        break;
    case TUTTI_ATTR_INTS:
    case TUTTI_ATTR_FLOATS:
        TUTTI_TRY(parse_list(arena, spec, text, &attr));
        break;
    case TUTTI_ATTR_TYPES: /* only the empty list has a text form */
        break;
    default:
        return tutti_fail(TUTTI_INVALID, "attribute '%s' of kind %s has no text form", spec->name,
                          tutti__attr_kind_name(spec->kind));
    }
    *ret_attr = attr;
    return TUTTI_OK;
}

/* The number of elements of a list or bytes of a string; one that is not given is empty. */
static tutti_status element_count(const tutti_attr *attr, const char *name, size_t *ret)
{
    bool text = attr->kind == TUTTI_ATTR_STRING;
    bool list = attr->kind == TUTTI_ATTR_INTS || attr->kind == TUTTI_ATTR_FLOATS ||
                attr->kind == TUTTI_ATTR_TYPES;
    size_t count = text && attr->count < 0 && attr->value.s ? strlen(attr->value.s)
                   : attr->count > 0                        ? (size_t)attr->count
                                                            : 0;
    if (((text || list) && count > 0 && !attr->value.s) || (list && attr->count < 0) ||
        count > INT32_MAX)
        return tutti_fail(TUTTI_INVALID, "attribute '%s' has %d elements at %s", name, attr->count,
                          attr->value.s ? "an address" : "NULL");
    *ret = count;
    return TUTTI_OK;
}

tutti_status tutti__attr_copy(tutti_graph *graph, const tutti_attr *from, const char *name,
                              tutti_attr *ret)
{
    tutti_attr attr = *from;
    size_t count;
    attr.name = name;
    TUTTI_TRY(element_count(from, name, &count));
    switch (from->kind) {
    case TUTTI_ATTR_STRING:
        attr.count = (int32_t)count;
        attr.value.s = tutti__arena_bytes(&graph->arena, from->value.s ? from->value.s : "", count);
        break;
    case TUTTI_ATTR_INTS:
        attr.value.ints =
            (void *)tutti__arena_bytes(&graph->arena, from->value.ints, count * sizeof(int64_t));
        break;
    case TUTTI_ATTR_FLOATS:
        attr.value.floats =
            (void *)tutti__arena_bytes(&graph->arena, from->value.floats, count * sizeof(double));
        break;
    case TUTTI_ATTR_TYPES:
        attr.value.types = (void *)tutti__arena_bytes(&graph->arena, from->value.types,
                                                      count * sizeof(tutti_type));
        break;
    case TUTTI_ATTR_TENSOR:
        if (!attr.value.tensor)
            return tutti_fail(TUTTI_INVALID, "attribute '%s' is a NULL tensor", name);
        if (!TUTTI_VEC_PUSH(&graph->tensors, attr.value.tensor))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for attribute '%s'", name);
        tutti_tensor_retain(attr.value.tensor);
        break;
    case TUTTI_ATTR_GRAPH:
        if (!attr.value.graph)
            return tutti_fail(TUTTI_INVALID, "attribute '%s' is a NULL graph", name);
        if (attr.value.graph == graph)
            return tutti_fail(TUTTI_INVALID, "attribute '%s' is the graph that the node stands in",
                              name);
        TUTTI_TRY(tutti_graph_check(attr.value.graph));
        if (!TUTTI_VEC_PUSH(&graph->graphs, attr.value.graph))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for attribute '%s'", name);
        tutti__graph_retain(attr.value.graph);
        break;
    default:
        break;
    }
    if (attr.kind >= TUTTI_ATTR_STRING && !attr.value.s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for attribute '%s'", name);
    *ret = attr;
    return TUTTI_OK;
}

static tutti_status refuse_unknown(const tutti_op *op, const tutti_attr *attr)
{
    tutti_text known = {0};
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        tutti__text_add(&known, "%s%s", known.size ? ", " : "", spec->name);
    tutti_status status = tutti_fail(TUTTI_INVALID, "has no attribute '%s'; it takes %s",
                                     attr->name, known.size ? known.data : "none");
    tutti__text_free(&known);
    return status;
}

/* Of more attributes than were taken: one that the operator has not, or one that came before. */
static tutti_status refuse_spare(const tutti_op *op, int count, const tutti_attr *given)
{
    for (int i = 0; i < count; i++) {
        const tutti_attr_spec *spec = op->attrs;
        while (spec && spec->name && strcmp(spec->name, given[i].name) != 0)
            spec++;
        if (!spec || !spec->name)
            return refuse_unknown(op, &given[i]);
        if (tutti_attr_find(given, i, given[i].name))
            return tutti_fail(TUTTI_INVALID, "attribute '%s' is given twice; give it once",
                              given[i].name);
    }
    return TUTTI_OK;
}

tutti_status tutti__attrs_complete(tutti_graph *graph, const tutti_op *op, int given_count,
                                   const tutti_attr *given, int *ret_count, tutti_attr **ret_attrs)
{
    int count = 0, used = 0;
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        count++;
    tutti_attr *attrs = tutti__arena_array(&graph->arena, (size_t)count + 1, sizeof *attrs);
    if (!attrs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for attributes");
    for (int i = 0; i < given_count; i++)
        if (!given[i].name)
            return tutti_fail(TUTTI_INVALID, "attribute %d has no name", i);
    for (int i = 0; i < count; i++) {
        const tutti_attr_spec *spec = &op->attrs[i];
        const tutti_attr *attr = tutti_attr_find(given, given_count, spec->name);
        if (!attr) {
            if (!spec->fallback)
                return tutti_fail(TUTTI_INVALID, "needs attribute '%s'", spec->name);
            TUTTI_TRY(tutti__attr_parse(&graph->arena, spec, spec->fallback, &attrs[i]));
            continue;
        }
        if (attr->kind != spec->kind)
            return tutti_fail(TUTTI_INVALID, "attribute '%s' is given as %s, needs %s", spec->name,
                              tutti__attr_kind_name(attr->kind), tutti__attr_kind_name(spec->kind));
        TUTTI_TRY(tutti__attr_copy(graph, attr, spec->name, &attrs[i]));
        used++;
    }
    if (used < given_count)
        TUTTI_TRY(refuse_spare(op, given_count, given));
    *ret_count = count;
    *ret_attrs = attrs;
    return TUTTI_OK;
}

static size_t payload(const tutti_attr *attr, const void **ret_data)
{
    size_t count = attr->count > 0 ? (size_t)attr->count : 0;
    *ret_data = attr->value.s;
    switch (attr->kind) {
    case TUTTI_ATTR_STRING:
        return count;
    case TUTTI_ATTR_INTS:
        return count * sizeof(int64_t);
    case TUTTI_ATTR_FLOATS:
        return count * sizeof(double);
    default:
        *ret_data = &attr->value;
        return sizeof attr->value;
    }
}

static bool types_equal(const tutti_attr *a, const tutti_attr *b)
{
    for (int i = 0; i < a->count; i++)
        if (!tutti_type_equal(&a->value.types[i], &b->value.types[i]))
            return false;
    return true;
}

bool tutti__attr_equal(const tutti_attr *a, const tutti_attr *b)
{
    if (a->kind != b->kind || a->count != b->count || strcmp(a->name, b->name) != 0)
        return false;
    if (a->kind == TUTTI_ATTR_TENSOR)
        return a->value.tensor == b->value.tensor ||
               tutti_tensor_same(a->value.tensor, b->value.tensor);
    if (a->kind == TUTTI_ATTR_TYPES)
        return types_equal(a, b);
    if (a->kind == TUTTI_ATTR_GRAPH)
        return tutti__graph_same(a->value.graph, b->value.graph);
    const void *data_a, *data_b;
    size_t size = payload(a, &data_a);
    return payload(b, &data_b) == size && memcmp(data_a, data_b, size) == 0;
}

/* Large data in lanes that do not wait for each other: each step is one to one in the lane. */
static uint64_t hash_large(uint64_t h, const unsigned char *data, size_t size)
{
    enum { LANES = 8, SMALL = 1 << 12 };
    uint64_t lanes[LANES], word;
    size_t at = 0, whole = size / (8 * LANES) * (8 * LANES);
    if (size < SMALL)
        return tutti__hash_bytes(h, data, size);
    for (uint64_t i = 0; i < LANES; i++)
        lanes[i] = tutti__hash_mix(h, i);
    for (; at < whole; at += 8 * LANES)
        for (size_t i = 0; i < LANES; i++) {
            memcpy(&word, data + at + 8 * i, 8);
            uint64_t lane = (lanes[i] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            lanes[i] = lane ^ lane >> 32;
        }
    for (int i = 0; i < LANES; i++)
        h = tutti__hash_mix(h, lanes[i]);
    return tutti__hash_bytes(h, data + at, size - at);
}

/* Equal values give equal hashes, however they lie in memory. A strided tensor is rare; when there
 * is no memory for its copy, its type alone counts. */
static uint64_t hash_tensor(uint64_t h, tutti_tensor *tensor)
{
    tutti_tensor *flat;
    h = tutti__hash_type(h, tutti_tensor_type(tensor));
    if (tutti_tensor_contiguous(tensor, &flat) != TUTTI_OK)
        return h;
    size_t count = (size_t)tutti_tensor_count(flat);
    if (tutti_tensor_dtype(flat) == TUTTI_STRING) {
        for (size_t i = 0; i < count; i++) {
            tutti_string s = tutti_tensor_get_string(flat, (int64_t)i);
            h = tutti__hash_bytes(h, s.data, (size_t)s.size);
        }
    } else {
        h = hash_large(h, tutti_tensor_data(flat),
                       count * tutti_dtype_size(tutti_tensor_dtype(flat)));
    }
    tutti_tensor_release(flat);
    return h;
}

uint64_t tutti__hash_type(uint64_t h, const tutti_type *type)
{
    h = tutti__hash_mix(h, (uint64_t)type->dtype | (uint64_t)type->rank << 8 |
                               (uint64_t)type->handle << 16);
    for (int i = 0; i < type->rank; i++)
        h = tutti__hash_mix(h, (uint64_t)type->dims[i]);
    return h;
}

uint64_t tutti__attr_hash(uint64_t h, const tutti_attr *attr)
{
    h = tutti__hash_mix(h, (uint64_t)attr->kind << 32 | (uint32_t)attr->count);
    if (attr->kind == TUTTI_ATTR_TENSOR)
        return hash_tensor(h, attr->value.tensor);
    if (attr->kind == TUTTI_ATTR_GRAPH)
        return tutti__hash_mix(h, tutti__graph_hash(attr->value.graph));
    if (attr->kind == TUTTI_ATTR_TYPES) {
        for (int i = 0; i < attr->count; i++)
            h = tutti__hash_type(h, &attr->value.types[i]);
        return h;
    }
    const void *data;
    size_t size = payload(attr, &data);
    return tutti__hash_bytes(h, data, size);
}
