/* decode.c: TensorFlow's messages from protobuf, which may come from anybody. */
#include "bridge/graphdef/graphdef.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    tutti_dtype dtype;
    int number;
} dtypes[] = {
    {TUTTI_F32, 1},    {TUTTI_F64, 2}, {TUTTI_I32, 3},   {TUTTI_U8, 4},    {TUTTI_I8, 6},
    {TUTTI_STRING, 7}, {TUTTI_I64, 9}, {TUTTI_BOOL, 10}, {TUTTI_BF16, 14}, {TUTTI_F16, 19},
};

int tutti__graphdef_dtype(tutti_dtype dtype)
{
    for (size_t i = 0; i < TUTTI_COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].number;
    return 0;
}

tutti_dtype tutti__graphdef_dtype_of(int64_t number)
{
    for (size_t i = 0; i < TUTTI_COUNT(dtypes); i++)
        if (dtypes[i].number == number)
            return dtypes[i].dtype;
    return TUTTI_NO_DTYPE;
}

const tutti_graphdef_attr *tutti__graphdef_attr(const tutti_graphdef_node *node, const char *name)
{
    for (size_t i = 0; i < node->attrs.count; i++)
        if (strcmp(node->attrs.items[i].name, name) == 0)
            return &node->attrs.items[i];
    return NULL;
}

tutti_status tutti__graphdef_no_memory(const tutti_graphdef *def)
{
    return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the graph", def->file);
}

tutti_status tutti__graphdef_read_text(tutti_graphdef *def, const tutti_proto_field *f,
                                       const char **ret)
{
    if (f->kind != TUTTI_PROTO_BYTES)
        return tutti_fail(TUTTI_CORRUPT, "%s: field %u should be a text", def->file, f->number);
    char *copy = tutti__arena_take(&def->arena, f->size + 1);
    if (!copy)
        return tutti__graphdef_no_memory(def);
    if (f->size > 0)
        memcpy(copy, f->data, f->size);
    *ret = copy;
    return TUTTI_OK;
}

static tutti_status push_string(tutti_graphdef *def, const tutti_proto_field *f,
                                tutti_onnx_names *list)
{
    const char *text = "";
    TUTTI_TRY(tutti__graphdef_read_text(def, f, &text));
    const char **slot = ONNX_PUSH(&def->arena, list);
    if (!slot)
        return tutti__graphdef_no_memory(def);
    *slot = text;
    return TUTTI_OK;
}

/* TensorShapeProto: dim 2 {size 1}, unknown_rank 3. */
static tutti_status read_shape(tutti_graphdef *def, tutti_proto p, tutti_type *type, bool *ranked)
{
    tutti_proto_field f, d;
    *ranked = true;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 3 && tutti__proto_int(&f))
            *ranked = false;
        if (f.number != 2)
            continue;
        if (type->rank == TUTTI_MAX_RANK)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: more than %d dimensions", def->file,
                              TUTTI_MAX_RANK);
        int64_t size = 0;
        tutti_proto inside = tutti__proto_inside(&p, &f);
        while (tutti__proto_next(&inside, &d))
            if (d.number == 1)
                size = tutti__proto_int(&d);
        TUTTI_TRY(tutti__proto_end(&inside));
        type->dims[type->rank++] = size < 0 ? TUTTI_ANY : size;
    }
    return tutti__proto_end(&p);
}

/* Which field holds typed values: float 5, double 6, int 7, string 8, int64 10, bool 11, half 13.
 */
static uint32_t typed_field(tutti_dtype dtype)
{
    return dtype == TUTTI_F32                          ? 5
           : dtype == TUTTI_F64                        ? 6
           : dtype == TUTTI_STRING                     ? 8
           : dtype == TUTTI_I64                        ? 10
           : dtype == TUTTI_BOOL                       ? 11
           : dtype == TUTTI_F16 || dtype == TUTTI_BF16 ? 13
                                                       : 7;
}

/* Values one by one; the last is repeated when there are fewer than elements. */
static tutti_status fill_typed(tutti_proto p, tutti_tensor *tensor)
{
    tutti_proto_field f;
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    int64_t done = 0, count = tutti_tensor_count(tensor), whole;
    float single;
    double number;
    while (done < count && tutti__proto_next(&p, &f)) {
        if (f.number != typed_field(dtype))
            continue;
        if (dtype == TUTTI_STRING && f.kind == TUTTI_PROTO_BYTES)
            TUTTI_TRY(
                tutti_tensor_set_string(tensor, done++, (const char *)f.data, (int64_t)f.size));
        for (size_t at = 0;
             done < count && dtype == TUTTI_F32 && tutti__proto_each_float(&p, &f, &at, &single);)
            tutti_tensor_set(tensor, done++, (double)single);
        for (size_t at = 0;
             done < count && dtype == TUTTI_F64 && tutti__proto_each_double(&p, &f, &at, &number);)
            tutti_tensor_set(tensor, done++, number);
        for (size_t at = 0; done < count && dtype != TUTTI_F32 && dtype != TUTTI_F64 &&
                            dtype != TUTTI_STRING && tutti__proto_each_int(&p, &f, &at, &whole);) {
            if (dtype == TUTTI_F16 || dtype == TUTTI_BF16)
                ((uint16_t *)tutti_tensor_data(tensor))[done++] = (uint16_t)whole;
            else
                tutti_tensor_set_int(tensor, done++, whole);
        }
    }
    for (; done > 0 && done < count && dtype != TUTTI_STRING; done++)
        memcpy((char *)tutti_tensor_data(tensor) + (size_t)done * tutti_dtype_size(dtype),
               (char *)tutti_tensor_data(tensor) + (size_t)(done - 1) * tutti_dtype_size(dtype),
               tutti_dtype_size(dtype));
    return TUTTI_OK;
}

/* TensorProto: dtype 1, tensor_shape 2, tensor_content 4. A file names few bytes for many equal
 * elements, so the number of those in all constants is limited. */
static tutti_status read_tensor(tutti_graphdef *def, tutti_proto p, tutti_tensor **ret)
{
    tutti_proto again = p;
    tutti_proto_field f, content = {0};
    tutti_type type = {0};
    bool ranked = true;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            type.dtype = tutti__graphdef_dtype_of(tutti__proto_int(&f));
        if (f.number == 2)
            TUTTI_TRY(read_shape(def, tutti__proto_inside(&p, &f), &type, &ranked));
        if (f.number == 4 && f.kind == TUTTI_PROTO_BYTES)
            content = f;
    }
    TUTTI_TRY(tutti__proto_end(&p));
    int64_t count = tutti_type_count(&type);
    if (type.dtype == TUTTI_NO_DTYPE)
        return TUTTI_OK; /* named when somebody wants it */
    bool raw = content.size > 0 && type.dtype != TUTTI_STRING;
    if (!ranked || count < 0 ||
        (raw && content.size != (size_t)count * tutti_dtype_size(type.dtype)) ||
        (!raw && count > GRAPHDEF_REPEATED - def->repeated))
        return tutti_fail(TUTTI_CORRUPT, "%s: a constant has %lld elements and %zu bytes",
                          def->file, (long long)count, content.size);
    def->repeated += raw ? 0 : count;
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &tensor));
    if (!TUTTI_VEC_PUSH(&def->tensors, tensor)) {
        tutti_tensor_release(tensor);
        return tutti__graphdef_no_memory(def);
    }
    *ret = tensor;
    if (!raw)
        return fill_typed(again, tensor);
    memcpy(tutti_tensor_data(tensor), content.data, content.size);
    for (int64_t i = 0; type.dtype == TUTTI_BOOL && i < count; i++)
        ((uint8_t *)tutti_tensor_data(tensor))[i] = ((uint8_t *)tutti_tensor_data(tensor))[i] != 0;
    return TUTTI_OK;
}

/* NameAttrList: name 1. */
static tutti_status read_function_name(tutti_graphdef *def, tutti_proto p, const char **ret)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f))
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, ret));
    return tutti__proto_end(&p);
}

/* ListValue: s 2, i 3, func 9. */
static tutti_status read_list(tutti_graphdef *def, tutti_proto list, tutti_graphdef_attr *attr)
{
    tutti_proto_field l;
    int64_t whole;
    while (tutti__proto_next(&list, &l)) {
        if (l.number == 2)
            TUTTI_TRY(push_string(def, &l, &attr->strings));
        if (l.number == 9) {
            const char **slot = ONNX_PUSH(&def->arena, &attr->functions);
            if (!slot)
                return tutti__graphdef_no_memory(def);
            *slot = "";
            TUTTI_TRY(read_function_name(def, tutti__proto_inside(&list, &l), slot));
        }
        for (size_t at = 0; l.number == 3 && tutti__proto_each_int(&list, &l, &at, &whole);) {
            int64_t *slot = ONNX_PUSH(&def->arena, &attr->ints);
            if (!slot)
                return tutti__graphdef_no_memory(def);
            *slot = whole;
        }
    }
    return tutti__proto_end(&list);
}

/* AttrValue: list 1, s 2, i 3, f 4, b 5, type 6, shape 7, tensor 8, func 10. */
static tutti_status read_attr_value(tutti_graphdef *def, tutti_proto p, tutti_graphdef_attr *attr)
{
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 2)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &attr->s));
        if (f.number == 3 || f.number == 5)
            attr->i = tutti__proto_int(&f);
        if (f.number == 4)
            attr->f = tutti__proto_float(&f);
        if (f.number == 6)
            attr->type = tutti__proto_int(&f);
        if (f.number == 7) {
            attr->has_shape = true;
            attr->shape = (tutti_type){0};
            TUTTI_TRY(read_shape(def, tutti__proto_inside(&p, &f), &attr->shape, &attr->ranked));
        }
        if (f.number == 8)
            TUTTI_TRY(read_tensor(def, tutti__proto_inside(&p, &f), &attr->tensor));
        if (f.number == 10)
            TUTTI_TRY(read_function_name(def, tutti__proto_inside(&p, &f), &attr->function));
        if (f.number == 1)
            TUTTI_TRY(read_list(def, tutti__proto_inside(&p, &f), attr));
    }
    return tutti__proto_end(&p);
}

/* AttrEntry: key 1, value 2. */
static tutti_status read_attr(tutti_graphdef *def, tutti_proto entry, tutti_graphdef_node *node)
{
    tutti_proto_field e;
    tutti_graphdef_attr *attr = ONNX_PUSH(&def->arena, &node->attrs);
    if (!attr)
        return tutti__graphdef_no_memory(def);
    attr->name = attr->s = attr->function = "";
    while (tutti__proto_next(&entry, &e)) {
        if (e.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &e, &attr->name));
        if (e.number == 2)
            TUTTI_TRY(read_attr_value(def, tutti__proto_inside(&entry, &e), attr));
    }
    return tutti__proto_end(&entry);
}

/* NodeDef: name 1, op 2, input 3, attr 5. */
tutti_status tutti__graphdef_read_node(tutti_graphdef *def, tutti_proto p,
                                       tutti_graphdef_graph *graph)
{
    tutti_proto_field f;
    if (def->node_count++ == GRAPHDEF_NODES)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d nodes", def->file, GRAPHDEF_NODES);
    tutti_graphdef_node *node = ONNX_PUSH(&def->arena, &graph->nodes);
    if (!node)
        return tutti__graphdef_no_memory(def);
    node->name = node->op = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &node->name));
        if (f.number == 2)
            TUTTI_TRY(tutti__graphdef_read_text(def, &f, &node->op));
        if (f.number == 3)
            TUTTI_TRY(push_string(def, &f, &node->inputs));
        if (f.number == 5)
            TUTTI_TRY(read_attr(def, tutti__proto_inside(&p, &f), node));
    }
    return tutti__proto_end(&p);
}

tutti_status tutti__graphdef_index(tutti_graphdef *def, tutti_graphdef_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_graphdef_node *node = &graph->nodes.items[i];
        if (tutti__map_get(&graph->by_name, node->name))
            return tutti_fail(TUTTI_CORRUPT, "%s: node '%s' is there twice", def->file, node->name);
        TUTTI_TRY(tutti__map_set(&graph->by_name, node->name, node));
    }
    return TUTTI_OK;
}

/* GraphDef: node 1, library 2. */
static tutti_status read_graph(tutti_graphdef *def, tutti_proto p)
{
    tutti_proto_field f;
    def->graph.name = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__graphdef_read_node(def, tutti__proto_inside(&p, &f), &def->graph));
        if (f.number == 2)
            TUTTI_TRY(tutti__graphdef_read_library(def, tutti__proto_inside(&p, &f)));
    }
    TUTTI_TRY(tutti__proto_end(&p));
    if (def->graph.nodes.count == 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: there is no node in it; is it a GraphDef?",
                          def->file);
    return tutti__graphdef_index(def, &def->graph);
}

void tutti__graphdef_free(tutti_graphdef *def)
{
    if (!def)
        return;
    for (size_t i = 0; i < def->tensors.count; i++)
        tutti_tensor_release(def->tensors.data[i]);
    TUTTI_VEC_FREE(&def->tensors);
    tutti__map_free(&def->by_name);
    tutti__map_free(&def->graph.by_name);
    for (size_t i = 0; i < def->functions.count; i++)
        tutti__map_free(&def->functions.items[i].by_name);
    tutti__arena_free(&def->arena);
    free(def);
}

tutti_status tutti__graphdef_decode(const char *name, const void *data, size_t size,
                                    tutti_graphdef **ret)
{
    tutti_graphdef *def = calloc(1, sizeof *def);
    if (!def)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a graph");
    def->file = name;
    tutti_status status = read_graph(def, tutti__proto(name, data, size));
    if (status == TUTTI_OK)
        *ret = def;
    else
        tutti__graphdef_free(def);
    return status;
}
