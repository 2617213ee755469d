/* onnx_decode.c: ONNX's messages from protobuf, which may come from anybody. Numbers of fields are
 * those of onnx.proto. */
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "bridge/onnx_proto.h"
#include "io/protobuf.h"

typedef struct reader {
    tutti_onnx *onnx;
    const char *file; /* for messages */
    int depth;        /* of sub-graphs */
    size_t objects;   /* nodes, attributes, tensors, inputs, outputs so far */
} reader;

static tutti_status no_memory(const reader *r)
{
    return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the model", r->file);
}

/* One more object; a few bytes in the file are a struct here. */
static tutti_status count_object(reader *r)
{
    if (++r->objects > ONNX_OBJECTS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d nodes, tensors and attributes",
                          r->file, ONNX_OBJECTS);
    return TUTTI_OK;
}

static tutti_status take_string(reader *r, const tutti_proto_field *f, const char **ret)
{
    if (f->kind != TUTTI_PROTO_BYTES)
        return tutti_fail(TUTTI_CORRUPT, "%s: field %u should be a text", r->file, f->number);
    char *copy = tutti__arena_take(&r->onnx->arena, f->size + 1);
    if (!copy)
        return no_memory(r);
    if (f->size > 0)
        memcpy(copy, f->data, f->size);
    *ret = copy;
    return TUTTI_OK;
}

static tutti_status push_name(reader *r, const tutti_proto_field *f, tutti_onnx_names *list)
{
    const char *name = NULL;
    TUTTI_TRY(take_string(r, f, &name));
    const char **slot = ONNX_PUSH(&r->onnx->arena, list);
    if (!slot)
        return no_memory(r);
    *slot = name;
    return TUTTI_OK;
}

/* ---- TensorProto ---- */

/* What a tensor's message holds, before it is a tensor. */
typedef struct parts {
    const char *name;
    int64_t number; /* data_type */
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    tutti_proto_field raw;      /* number 0: none */
    tutti_proto values;         /* the message again, to walk its typed data */
    bool outside;
} parts;

static tutti_status read_dims(reader *r, tutti_proto *p, const tutti_proto_field *f, parts *t)
{
    int64_t dim;
    for (size_t at = 0; tutti__proto_each_int(p, f, &at, &dim);) {
        if (t->rank == TUTTI_MAX_RANK)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has more than %d dimensions",
                              r->file, t->name, TUTTI_MAX_RANK);
        if (dim < 0)
            return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has dimension %lld", r->file, t->name,
                              (long long)dim);
        t->dims[t->rank++] = dim;
    }
    return TUTTI_OK;
}

static tutti_status read_parts(reader *r, tutti_proto p, parts *t)
{
    tutti_proto_field f;
    *t = (parts){.name = "", .values = p};
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(read_dims(r, &p, &f, t));
        if (f.number == 2)
            t->number = tutti__proto_int(&f);
        if (f.number == 8)
            TUTTI_TRY(take_string(r, &f, &t->name));
        if (f.number == 9 && f.kind == TUTTI_PROTO_BYTES)
            t->raw = f;
        if (f.number == 13 || (f.number == 14 && tutti__proto_int(&f) == 1))
            t->outside = true;
    }
    return tutti__proto_end(&p);
}

/* The field that holds elements of a type: float_data 4, int32_data 5, string_data 6, int64_data 7,
 * double_data 10. */
static uint32_t typed_field(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F32:
        return 4;
    case TUTTI_STRING:
        return 6;
    case TUTTI_I64:
        return 7;
    case TUTTI_F64:
        return 10;
    default:
        return 5;
    }
}

/* Element i; 16-bit floats stand as their bits. */
static void set_int(tutti_tensor *tensor, int64_t i, int64_t value)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    if (dtype == TUTTI_F16 || dtype == TUTTI_BF16)
        ((uint16_t *)tutti_tensor_data(tensor))[i] = (uint16_t)value;
    else
        tutti_tensor_set_int(tensor, i, value);
}

/* Puts the elements of one field into the tensor, from *done on (none without a tensor). */
static tutti_status take_elements(tutti_proto *p, const tutti_proto_field *f, tutti_dtype dtype,
                                  tutti_tensor *tensor, int64_t *done)
{
    int64_t whole;
    float single;
    double number;
    int64_t count = tensor ? tutti_tensor_count(tensor) : INT64_MAX;
    if (dtype == TUTTI_STRING) {
        if (tensor && *done < count)
            TUTTI_TRY(tutti_tensor_set_string(tensor, *done, (const char *)f->data,
                                              (int64_t)f->size));
        (*done)++;
        return TUTTI_OK;
    }
    for (size_t at = 0; *done < count; (*done)++) {
        if (dtype == TUTTI_F32) {
            if (!tutti__proto_each_float(p, f, &at, &single))
                break;
            if (tensor)
                tutti_tensor_set(tensor, *done, (double)single);
        } else if (dtype == TUTTI_F64) {
            if (!tutti__proto_each_double(p, f, &at, &number))
                break;
            if (tensor)
                tutti_tensor_set(tensor, *done, number);
        } else {
            if (!tutti__proto_each_int(p, f, &at, &whole))
                break;
            if (tensor)
                set_int(tensor, *done, whole);
        }
    }
    return TUTTI_OK;
}

/* Counts typed elements, or puts them into the tensor. */
static tutti_status walk_typed(const parts *t, tutti_dtype dtype, tutti_tensor *tensor,
                               int64_t *ret_count)
{
    tutti_proto p = t->values;
    tutti_proto_field f;
    int64_t done = 0;
    while (tutti__proto_next(&p, &f))
        if (f.number == typed_field(dtype) &&
            (dtype != TUTTI_STRING || f.kind == TUTTI_PROTO_BYTES))
            TUTTI_TRY(take_elements(&p, &f, dtype, tensor, &done));
    *ret_count = done;
    return tutti__proto_end(&p);
}

static tutti_status check_tensor(const reader *r, const parts *t, tutti_dtype dtype,
                                 int64_t *ret_count)
{
    tutti_type type = tutti_type_make(dtype, t->rank, t->dims);
    int64_t count = tutti_type_count(&type), given = 0;
    if (t->outside)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: the data of tensor '%s' stands outside the file; save the model as "
                          "one file",
                          r->file, t->name);
    if (dtype == TUTTI_NO_DTYPE)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%s' has elements of ONNX type %lld",
                          r->file, t->name, (long long)t->number);
    if (t->raw.number != 0 && dtype != TUTTI_STRING)
        given = (int64_t)(t->raw.size / tutti_dtype_size(dtype));
    else
        TUTTI_TRY(walk_typed(t, dtype, NULL, &given));
    bool odd = t->raw.number != 0 && dtype != TUTTI_STRING &&
               t->raw.size % tutti_dtype_size(dtype) != 0;
    if (count < 0 || count != given || odd)
        return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%s' has %lld elements, its data holds %lld",
                          r->file, t->name, (long long)count, (long long)given);
    *ret_count = count;
    return TUTTI_OK;
}

static void fix_bools(tutti_tensor *tensor)
{
    uint8_t *bytes = tutti_tensor_data(tensor);
    for (int64_t i = 0; tutti_tensor_dtype(tensor) == TUTTI_BOOL && i < tutti_tensor_count(tensor);
         i++)
        bytes[i] = bytes[i] != 0;
}

static tutti_status read_tensor(reader *r, tutti_proto p, const char **ret_name, tutti_tensor **ret)
{
    parts t;
    int64_t count = 0, done = 0;
    tutti_tensor *tensor;
    TUTTI_TRY(read_parts(r, p, &t));
    tutti_dtype dtype = tutti__onnx_dtype_of(t.number);
    TUTTI_TRY(check_tensor(r, &t, dtype, &count));
    TUTTI_TRY(tutti_tensor_create(dtype, t.rank, t.dims, &tensor));
    tutti_status status = tutti__onnx_keep(r->onnx, tensor);
    TUTTI_TRY(status);
    if (t.raw.number != 0 && dtype != TUTTI_STRING) {
        if (count > 0)
            memcpy(tutti_tensor_data(tensor), t.raw.data, t.raw.size);
        fix_bools(tensor);
    } else {
        TUTTI_TRY(walk_typed(&t, dtype, tensor, &done));
    }
    *ret_name = t.name;
    *ret = tensor;
    return TUTTI_OK;
}

/* ---- ValueInfoProto ---- */

static tutti_status read_dim(reader *r, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    int i = v->type.rank;
    if (i == TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: '%s' has more than %d dimensions", r->file,
                          v->name, TUTTI_MAX_RANK);
    v->type.dims[i] = TUTTI_ANY;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            v->type.dims[i] = tutti__proto_int(&f) < 0 ? TUTTI_ANY : tutti__proto_int(&f);
        if (f.number == 2)
            TUTTI_TRY(take_string(r, &f, &v->names[i]));
    }
    v->type.rank++;
    return tutti__proto_end(&p);
}

static tutti_status read_shape(reader *r, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    v->ranked = true;
    while (tutti__proto_next(&p, &f))
        if (f.number == 1)
            TUTTI_TRY(read_dim(r, tutti__proto_inside(&p, &f), v));
    return tutti__proto_end(&p);
}

static tutti_status read_tensor_type(reader *r, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            v->type.dtype = tutti__onnx_dtype_of(tutti__proto_int(&f));
        if (f.number == 2)
            TUTTI_TRY(read_shape(r, tutti__proto_inside(&p, &f), v));
    }
    return tutti__proto_end(&p);
}

static tutti_status read_value(reader *r, tutti_proto p, tutti_onnx_value *v)
{
    tutti_proto_field f, inner;
    v->name = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(take_string(r, &f, &v->name));
        if (f.number != 2)
            continue;
        tutti_proto type = tutti__proto_inside(&p, &f);
        while (tutti__proto_next(&type, &inner))
            if (inner.number == 1)
                TUTTI_TRY(read_tensor_type(r, tutti__proto_inside(&type, &inner), v));
        TUTTI_TRY(tutti__proto_end(&type));
    }
    return tutti__proto_end(&p);
}

/* ---- nodes ---- */

static tutti_status read_graph(reader *r, tutti_proto p, tutti_onnx_graph *graph);

static tutti_status read_numbers(reader *r, tutti_proto *p, const tutti_proto_field *f,
                                 tutti_onnx_attr *attr)
{
    int64_t whole;
    float single;
    for (size_t at = 0; f->number == 7 && tutti__proto_each_float(p, f, &at, &single);) {
        float *slot = ONNX_PUSH(&r->onnx->arena, &attr->floats);
        if (!slot)
            return no_memory(r);
        *slot = single;
    }
    for (size_t at = 0; f->number == 8 && tutti__proto_each_int(p, f, &at, &whole);) {
        int64_t *slot = ONNX_PUSH(&r->onnx->arena, &attr->ints);
        if (!slot)
            return no_memory(r);
        *slot = whole;
    }
    return TUTTI_OK;
}

static tutti_status read_text(reader *r, const tutti_proto_field *f, tutti_onnx_attr *attr)
{
    if (f->number == 1)
        return take_string(r, f, &attr->name);
    if (f->number == 4)
        return take_string(r, f, &attr->s);
    const char **slot = ONNX_PUSH(&r->onnx->arena, &attr->strings);
    return slot ? take_string(r, f, slot) : no_memory(r);
}

static tutti_status read_subgraph(reader *r, tutti_proto p, tutti_onnx_attr *attr)
{
    if (r->depth == ONNX_DEPTH)
        return tutti_fail(TUTTI_CORRUPT, "%s: sub-graphs nest deeper than %d", r->file, ONNX_DEPTH);
    attr->graph = tutti__arena_take(&r->onnx->arena, sizeof *attr->graph);
    if (!attr->graph)
        return no_memory(r);
    r->depth++;
    tutti_status status = read_graph(r, p, attr->graph);
    r->depth--;
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

static tutti_status read_attr(reader *r, tutti_proto p, tutti_onnx_attr *attr)
{
    tutti_proto_field f;
    const char *unused;
    int64_t given = 0;
    uint32_t last = 0;
    attr->name = attr->s = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1 || f.number == 4 || f.number == 9)
            TUTTI_TRY(read_text(r, &f, attr));
        if (f.number == 2)
            attr->f = tutti__proto_float(&f);
        if (f.number == 3)
            attr->i = tutti__proto_int(&f);
        if (f.number == 5)
            TUTTI_TRY(read_tensor(r, tutti__proto_inside(&p, &f), &unused, &attr->tensor));
        if (f.number == 6)
            TUTTI_TRY(read_subgraph(r, tutti__proto_inside(&p, &f), attr));
        if (f.number == 7 || f.number == 8)
            TUTTI_TRY(read_numbers(r, &p, &f, attr));
        if (f.number >= 2 && f.number <= 9)
            last = f.number;
        if (f.number == 20)
            given = tutti__proto_int(&f);
    }
    attr->kind = kind_of(given, last);
    if ((attr->kind == ONNX_TENSOR && !attr->tensor) || (attr->kind == ONNX_GRAPH && !attr->graph))
        return tutti_fail(TUTTI_CORRUPT, "%s: attribute '%s' has no value", r->file, attr->name);
    return tutti__proto_end(&p);
}

static tutti_status read_node(reader *r, tutti_proto p, tutti_onnx_node *node)
{
    tutti_proto_field f;
    node->name = node->type = node->domain = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(push_name(r, &f, &node->inputs));
        if (f.number == 2)
            TUTTI_TRY(push_name(r, &f, &node->outputs));
        if (f.number == 3)
            TUTTI_TRY(take_string(r, &f, &node->name));
        if (f.number == 4)
            TUTTI_TRY(take_string(r, &f, &node->type));
        if (f.number == 7)
            TUTTI_TRY(take_string(r, &f, &node->domain));
        if (f.number == 5) {
            TUTTI_TRY(count_object(r));
            tutti_onnx_attr *attr = ONNX_PUSH(&r->onnx->arena, &node->attrs);
            if (!attr)
                return no_memory(r);
            TUTTI_TRY(read_attr(r, tutti__proto_inside(&p, &f), attr));
        }
    }
    return tutti__proto_end(&p);
}

/* ---- graph and model ---- */

static tutti_status read_part(reader *r, tutti_proto p, uint32_t number, tutti_onnx_graph *graph)
{
    TUTTI_TRY(count_object(r));
    if (number == 1) {
        tutti_onnx_node *node = ONNX_PUSH(&r->onnx->arena, &graph->nodes);
        return node ? read_node(r, p, node) : no_memory(r);
    }
    if (number == 5) {
        tutti_onnx_tensor *t = ONNX_PUSH(&r->onnx->arena, &graph->initializers);
        return t ? read_tensor(r, p, &t->name, &t->value) : no_memory(r);
    }
    tutti_onnx_value *v = number == 11 ? ONNX_PUSH(&r->onnx->arena, &graph->inputs)
                                       : ONNX_PUSH(&r->onnx->arena, &graph->outputs);
    return v ? read_value(r, p, v) : no_memory(r);
}

static tutti_status read_graph(reader *r, tutti_proto p, tutti_onnx_graph *graph)
{
    tutti_proto_field f;
    graph->name = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 2)
            TUTTI_TRY(take_string(r, &f, &graph->name));
        if (f.number == 1 || f.number == 5 || f.number == 11 || f.number == 12)
            TUTTI_TRY(read_part(r, tutti__proto_inside(&p, &f), f.number, graph));
        if (f.number == 15)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: sparse initializers are not supported",
                              r->file);
    }
    return tutti__proto_end(&p);
}

/* The default domain is "" or "ai.onnx". */
static tutti_status read_opset(reader *r, tutti_proto p)
{
    tutti_proto_field f;
    const char *domain = "";
    int64_t version = 0;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(take_string(r, &f, &domain));
        if (f.number == 2)
            version = tutti__proto_int(&f);
    }
    if (domain[0] == 0 || strcmp(domain, "ai.onnx") == 0) {
        r->onnx->opset = version;
        return tutti__proto_end(&p);
    }
    const char **slot = ONNX_PUSH(&r->onnx->arena, &r->onnx->domains);
    if (!slot)
        return no_memory(r);
    *slot = domain;
    return tutti__proto_end(&p);
}

static tutti_status read_model(reader *r, tutti_proto p)
{
    tutti_proto_field f;
    bool found = false;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            r->onnx->ir_version = tutti__proto_int(&f);
        if (f.number == 2)
            TUTTI_TRY(take_string(r, &f, &r->onnx->producer));
        if (f.number == 3)
            TUTTI_TRY(take_string(r, &f, &r->onnx->producer_version));
        if (f.number == 8)
            TUTTI_TRY(read_opset(r, tutti__proto_inside(&p, &f)));
        if (f.number != 7)
            continue;
        if (found)
            return tutti_fail(TUTTI_CORRUPT, "%s: the file holds two graphs", r->file);
        found = true;
        TUTTI_TRY(read_graph(r, tutti__proto_inside(&p, &f), &r->onnx->graph));
    }
    TUTTI_TRY(tutti__proto_end(&p));
    if (!found)
        return tutti_fail(TUTTI_CORRUPT, "%s: there is no graph in it; is it an ONNX file?",
                          r->file);
    return TUTTI_OK;
}

tutti_status tutti__onnx_decode(const char *name, const void *data, size_t size,
                                tutti_onnx **ret_onnx)
{
    reader r = {.file = name};
    TUTTI_TRY(tutti__onnx_create(&r.onnx));
    tutti_status status = read_model(&r, tutti__proto(name, data, size));
    if (status == TUTTI_OK)
        *ret_onnx = r.onnx;
    else
        tutti__onnx_free(r.onnx);
    return status;
}

tutti_status tutti__onnx_load(const char *path, tutti_onnx **ret_onnx)
{
    void *data;
    size_t size;
    const tutti_world *world = tutti__world();
    TUTTI_TRY(world->read_file(world->self, path, ONNX_BYTES, &data, &size));
    tutti_status status = tutti__onnx_decode(path, data, size, ret_onnx);
    free(data);
    return status;
}
