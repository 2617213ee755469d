/* onnx_decode.h: the parts of the decoder to each other. */
#ifndef TUTTI_BRIDGE_ONNX_DECODE_H
#define TUTTI_BRIDGE_ONNX_DECODE_H

#include "bridge/onnx_proto.h"
#include "io/protobuf.h"

typedef struct tutti_onnx_decoder {
    tutti_onnx *onnx;
    const char *file; /* for messages */
    int depth;        /* of sub-graphs */
    size_t objects;   /* nodes, attributes, tensors, inputs, outputs so far */
} tutti_onnx_decoder;

tutti_status tutti__onnx_no_memory(const tutti_onnx_decoder *d);
/* A copy of a text field; NUL-terminated. */
tutti_status tutti__onnx_take_string(tutti_onnx_decoder *d, const tutti_proto_field *field,
                                     const char **ret);
/* A TensorProto; the tensor is the file's. */
tutti_status tutti__onnx_take_tensor(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret);

#endif
