/* onnx_decode.h: the parts of the decoder to each other. */
#ifndef TUTTI_BRIDGE_ONNX_DECODE_H
#define TUTTI_BRIDGE_ONNX_DECODE_H

#include "base/world.h"
#include "bridge/onnx_proto.h"
#include "io/protobuf.h"
#include "tensor/buffer.h"

#define ONNX_DENSE ((int64_t)1 << 26) /* elements of a sparse tensor, zeros too */

typedef struct tutti_onnx_decoder {
    tutti_onnx *onnx;
    const char *file; /* for messages, and the folder of data outside it */
    bool inside;      /* there is no folder: data outside the file is refused */
    int depth;        /* of sub-graphs */
    /* The file's bytes, which large tensors stay in instead of being copied; NULL: all are copied.
     * A tensor is moved over the field's own tag and length to where its elements are aligned. */
    tutti_buffer *bytes;
    size_t objects;  /* nodes, attributes, tensors, inputs, outputs so far */
    int64_t element; /* of the tensor that was read last */
    int64_t dense;   /* elements of sparse tensors so far */
    /* The file outside that was opened last, which the next tensor often stands in too. */
    const char *location; /* NULL: none */
    tutti_file *outside;
    int64_t outside_bytes;
} tutti_onnx_decoder;

tutti_status tutti__onnx_no_memory(const tutti_onnx_decoder *d);
/* A copy of a text field; NUL-terminated. */
tutti_status tutti__onnx_take_string(tutti_onnx_decoder *d, const tutti_proto_field *field,
                                     const char **ret);
/* One more name at the end of a list. */
tutti_status tutti__onnx_take_name(tutti_onnx_decoder *d, const tutti_proto_field *field,
                                   tutti_onnx_names *list);
/* Counts one more object, of which a file has a limited number. */
tutti_status tutti__onnx_count(tutti_onnx_decoder *d);
/* Something that we have no form for. */
tutti_status tutti__onnx_note_need(tutti_onnx_decoder *d, const char *format, ...)
    TUTTI_PRINTF(2, 3);
tutti_status tutti__onnx_take_node(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_node *node);
tutti_status tutti__onnx_take_attr(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_attr *attr);
tutti_status tutti__onnx_take_graph(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_graph *graph);
/* Where external data stands, entry by entry as the tensor names it. */
typedef struct tutti_onnx_outside {
    const char *location;
    int64_t offset, length; /* length -1: not said */
} tutti_onnx_outside;
/* That `size` bytes are there, before memory for them is; then those bytes into `to`. */
tutti_status tutti__onnx_find_outside(tutti_onnx_decoder *d, const char *tensor,
                                      const tutti_onnx_outside *where, size_t size);
tutti_status tutti__onnx_take_outside(tutti_onnx_decoder *d, const char *tensor,
                                      const tutti_onnx_outside *where, void *to, size_t size);
void tutti__onnx_close_outside(tutti_onnx_decoder *d);
/* A TensorProto; the tensor is the file's, NULL when its elements are among the needs. */
tutti_status tutti__onnx_take_tensor(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret);

/* A SparseTensorProto as a dense tensor. */
tutti_status tutti__onnx_take_sparse(tutti_onnx_decoder *d, tutti_proto p, const char **ret_name,
                                     tutti_tensor **ret);

#endif
