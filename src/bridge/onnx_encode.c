/* onnx_encode.c: ONNX's messages as protobuf. Numbers of fields are those of onnx.proto. */
#include <string.h>

#include "bridge/onnx_proto.h"
#include "io/protobuf.h"

static void put_names(tutti_text *text, uint32_t number, const tutti_onnx_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        tutti__proto_put_string(text, number, names->items[i]);
}

/* A name that is not given is not written. */
static void put_given(tutti_text *text, uint32_t number, const char *string)
{
    if (string && string[0])
        tutti__proto_put_string(text, number, string);
}

/* TensorProto: dims 1, data_type 2, string_data 6, name 8, raw_data 9. */
static tutti_status put_tensor(tutti_text *text, uint32_t number, const char *name,
                               tutti_tensor *tensor)
{
    tutti_tensor *flat;
    if (!tensor)
        return tutti_fail(TUTTI_UNSUPPORTED, "tensor '%s' has elements that cannot be written",
                          name);
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &flat));
    size_t mark = tutti__proto_open(text, number);
    for (int i = 0; i < tutti_tensor_rank(flat); i++)
        tutti__proto_put_int(text, 1, tutti_tensor_dims(flat)[i]);
    tutti_dtype dtype = tutti_tensor_dtype(flat);
    tutti__proto_put_int(text, 2, tutti__onnx_dtype(dtype));
    int64_t count = tutti_tensor_count(flat);
    for (int64_t i = 0; dtype == TUTTI_STRING && i < count; i++) {
        tutti_string s = tutti_tensor_get_string(flat, i);
        tutti__proto_put_bytes(text, 6, s.data, (size_t)s.size);
    }
    put_given(text, 8, name);
    if (dtype != TUTTI_STRING)
        tutti__proto_put_bytes(text, 9, tutti_tensor_data(flat),
                               (size_t)count * tutti_dtype_size(dtype));
    tutti__proto_close(text, mark);
    tutti_tensor_release(flat);
    return TUTTI_OK;
}

/* ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; Tensor: elem_type 1, shape 2;
 * TensorShapeProto: dim 1; Dimension: dim_value 1, dim_param 2. */
/* TypeProto: tensor_type 1 {elem_type 1, shape 2}, sequence_type 4. */
static void put_value(tutti_text *text, uint32_t number, const tutti_onnx_value *value)
{
    size_t mark = tutti__proto_open(text, number);
    tutti__proto_put_string(text, 1, value->name);
    size_t type = tutti__proto_open(text, 2),
           tensor = tutti__proto_open(text, value->other ? 4 : 1);
    if (!value->other)
        tutti__proto_put_int(text, 1, tutti__onnx_dtype(value->type.dtype));
    if (value->ranked && !value->other) {
        size_t shape = tutti__proto_open(text, 2);
        for (int i = 0; i < value->type.rank; i++) {
            size_t dim = tutti__proto_open(text, 1);
            if (value->type.dims[i] >= 0)
                tutti__proto_put_int(text, 1, value->type.dims[i]);
            else
                put_given(text, 2, value->names[i]);
            tutti__proto_close(text, dim);
        }
        tutti__proto_close(text, shape);
    }
    tutti__proto_close(text, tensor);
    tutti__proto_close(text, type);
    tutti__proto_close(text, mark);
}

static tutti_status put_graph(tutti_text *text, uint32_t number, const tutti_onnx_graph *graph);

/* AttributeProto: name 1, f 2, i 3, s 4, t 5, g 6, floats 7, ints 8, strings 9, type 20,
 * ref_attr_name 21. */
static tutti_status put_attr(tutti_text *text, uint32_t number, const tutti_onnx_attr *attr)
{
    bool refers = attr->refers && attr->refers[0];
    size_t mark = tutti__proto_open(text, number);
    tutti__proto_put_string(text, 1, attr->name);
    if (attr->kind == ONNX_FLOAT)
        tutti__proto_put_float(text, 2, attr->f);
    if (attr->kind == ONNX_INT)
        tutti__proto_put_int(text, 3, attr->i);
    if (attr->kind == ONNX_STRING)
        tutti__proto_put_string(text, 4, attr->s);
    if (attr->kind == ONNX_TENSOR && !refers)
        TUTTI_TRY(put_tensor(text, 5, "", attr->tensor));
    if (attr->kind == ONNX_GRAPH && !refers)
        TUTTI_TRY(put_graph(text, 6, attr->graph));
    for (size_t i = 0; i < attr->floats.count; i++)
        tutti__proto_put_float(text, 7, attr->floats.items[i]);
    for (size_t i = 0; i < attr->ints.count; i++)
        tutti__proto_put_int(text, 8, attr->ints.items[i]);
    for (size_t i = 0; i < attr->strings.count; i++)
        tutti__proto_put_string(text, 9, attr->strings.items[i]);
    tutti__proto_put_int(text, 20, attr->kind);
    put_given(text, 21, attr->refers);
    tutti__proto_close(text, mark);
    return TUTTI_OK;
}

/* NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7. */
static tutti_status put_node(tutti_text *text, uint32_t number, const tutti_onnx_node *node)
{
    size_t mark = tutti__proto_open(text, number);
    put_names(text, 1, &node->inputs);
    put_names(text, 2, &node->outputs);
    put_given(text, 3, node->name);
    tutti__proto_put_string(text, 4, node->type);
    for (size_t i = 0; i < node->attrs.count; i++)
        TUTTI_TRY(put_attr(text, 5, &node->attrs.items[i]));
    put_given(text, 7, node->domain);
    tutti__proto_close(text, mark);
    return TUTTI_OK;
}

/* GraphProto: node 1, name 2, initializer 5, input 11, output 12. */
static tutti_status put_graph(tutti_text *text, uint32_t number, const tutti_onnx_graph *graph)
{
    size_t mark = tutti__proto_open(text, number);
    for (size_t i = 0; i < graph->nodes.count; i++)
        TUTTI_TRY(put_node(text, 1, &graph->nodes.items[i]));
    tutti__proto_put_string(text, 2, graph->name);
    for (size_t i = 0; i < graph->initializers.count; i++)
        TUTTI_TRY(put_tensor(text, 5, graph->initializers.items[i].name,
                             graph->initializers.items[i].value));
    for (size_t i = 0; i < graph->inputs.count; i++)
        put_value(text, 11, &graph->inputs.items[i]);
    for (size_t i = 0; i < graph->outputs.count; i++)
        put_value(text, 12, &graph->outputs.items[i]);
    tutti__proto_close(text, mark);
    return TUTTI_OK;
}

/* OperatorSetIdProto: domain 1, version 2. */
static void put_opset(tutti_text *text, uint32_t number, const char *domain, int64_t version)
{
    size_t mark = tutti__proto_open(text, number);
    tutti__proto_put_string(text, 1, domain);
    tutti__proto_put_int(text, 2, version);
    tutti__proto_close(text, mark);
}

/* FunctionProto: name 1, input 4, output 5, node 7, opset_import 9, domain 10, attribute_proto 11.
 */
static tutti_status put_function(tutti_text *text, const tutti_onnx_function *f)
{
    size_t mark = tutti__proto_open(text, 25);
    tutti__proto_put_string(text, 1, f->name);
    put_names(text, 4, &f->inputs);
    put_names(text, 5, &f->outputs);
    for (size_t i = 0; i < f->nodes.count; i++)
        TUTTI_TRY(put_node(text, 7, &f->nodes.items[i]));
    if (f->opset > 0)
        put_opset(text, 9, "", f->opset);
    tutti__proto_put_string(text, 10, f->domain);
    for (size_t i = 0; i < f->defaults.count; i++)
        TUTTI_TRY(put_attr(text, 11, &f->defaults.items[i]));
    tutti__proto_close(text, mark);
    return TUTTI_OK;
}

/* ModelProto: ir_version 1, producer_name 2, producer_version 3, graph 7, opset_import 8,
 * functions 25. */
tutti_status tutti__onnx_encode(const tutti_onnx *onnx, tutti_text *text)
{
    tutti__proto_put_int(text, 1, onnx->ir_version);
    put_given(text, 2, onnx->producer);
    put_given(text, 3, onnx->producer_version);
    TUTTI_TRY(put_graph(text, 7, &onnx->graph));
    put_opset(text, 8, "", onnx->opset);
    for (size_t i = 0; i < onnx->domains.count; i++)
        put_opset(text, 8, onnx->domains.items[i], 1);
    for (size_t i = 0; i < onnx->functions.count; i++)
        TUTTI_TRY(put_function(text, &onnx->functions.items[i]));
    if (text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to write an ONNX model");
    if (text->size >= ONNX_BYTES)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "the model takes %zu bytes as ONNX; a file holds less than 2 GiB",
                          text->size);
    return TUTTI_OK;
}
