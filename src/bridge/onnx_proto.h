/* onnx_proto.h: ONNX's messages as structs, read from and written to protobuf.
 *
 * Everything belongs to a tutti_onnx: names and lists stand in its arena, tensors are released with
 * it. A name that a file leaves out is "", a list of inputs may hold "" for an input that is not
 * given.
 *
 * Reading is safe for hostile bytes: there are at most ONNX_OBJECTS of all kinds, a tensor's bytes
 * must be exactly as many as its dimensions say, sub-graphs nest at most ONNX_DEPTH deep, and data
 * outside the file must stand in the file's folder. What we have no form for (an element type, a
 * sparse tensor) is noted among the model's needs, so that all of them can be named at once. */
#ifndef TUTTI_BRIDGE_ONNX_PROTO_H
#define TUTTI_BRIDGE_ONNX_PROTO_H

#include "base/arena.h"
#include "base/container.h"
#include "tutti/tensor.h"

#define ONNX_DEPTH 16
#define ONNX_OBJECTS 2000000         /* nodes, attributes, tensors, inputs, outputs */
#define ONNX_BYTES ((size_t)1 << 31) /* protobuf's own limit */

/* A list in the arena. */
#define ONNX_LIST(type)                                                                            \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }
/* A new zeroed element at the end, or NULL when there is no memory. */
#define ONNX_PUSH(arena, list)                                                                     \
    (tutti__onnx_grow((arena), (void **)&(list)->items, (list)->count, &(list)->capacity,          \
                      sizeof *(list)->items)                                                       \
         ? &(list)->items[(list)->count++]                                                         \
         : NULL)
bool tutti__onnx_grow(tutti_arena *arena, void **items, size_t count, size_t *capacity,
                      size_t size);

/* AttributeProto.AttributeType. */
typedef enum tutti_onnx_attr_kind {
    ONNX_NONE = 0,
    ONNX_FLOAT = 1,
    ONNX_INT = 2,
    ONNX_STRING = 3,
    ONNX_TENSOR = 4,
    ONNX_GRAPH = 5,
    ONNX_FLOATS = 6,
    ONNX_INTS = 7,
    ONNX_STRINGS = 8,
} tutti_onnx_attr_kind;

typedef struct tutti_onnx_graph tutti_onnx_graph;

typedef struct tutti_onnx_attr {
    const char *name;
    tutti_onnx_attr_kind kind; /* others than those above read as ONNX_NONE */
    const char *refers;        /* in a function: to this attribute of the call; "" for none */
    float f;
    int64_t i;
    const char *s;        /* NUL-terminated; a NUL in a text of the file is refused */
    tutti_tensor *tensor; /* the tutti_onnx's */
    int64_t element;      /* of the tensor: ONNX's number of the element type */
    tutti_onnx_graph *graph;
    ONNX_LIST(float) floats;
    ONNX_LIST(int64_t) ints;
    ONNX_LIST(const char *) strings;
} tutti_onnx_attr;

typedef ONNX_LIST(const char *) tutti_onnx_names;

typedef struct tutti_onnx_node {
    const char *name, *type, *domain;
    tutti_onnx_names inputs, outputs;
    ONNX_LIST(tutti_onnx_attr) attrs;
} tutti_onnx_node;

/* An initializer. */
typedef struct tutti_onnx_tensor {
    const char *name;
    tutti_tensor *value; /* the tutti_onnx's; NULL: what it holds is among the needs */
    int64_t element;     /* ONNX's number of the element type; 0: that of the value */
} tutti_onnx_tensor;

/* An input or output with its type; dims -1 where the file gives a name or nothing. */
typedef struct tutti_onnx_value {
    const char *name;
    tutti_type type; /* dtype TUTTI_NO_DTYPE: not a tensor, or of elements we do not have */
    bool ranked;     /* false: the file says nothing about its dimensions */
    bool other;      /* a sequence, an optional value, a map: no tensor */
    int64_t element; /* ONNX's number of the element type */
    const char *names[TUTTI_MAX_RANK]; /* of dimensions, NULL or "" without */
} tutti_onnx_value;

struct tutti_onnx_graph {
    const char *name;
    ONNX_LIST(tutti_onnx_node) nodes;
    ONNX_LIST(tutti_onnx_tensor) initializers;
    ONNX_LIST(tutti_onnx_value) inputs, outputs;
};

/* A function of the model's own: a node of its domain and name stands for its nodes. */
typedef struct tutti_onnx_function {
    const char *name, *domain;
    tutti_onnx_names inputs, outputs;
    ONNX_LIST(tutti_onnx_attr) defaults; /* of attributes that a call may leave out */
    ONNX_LIST(tutti_onnx_node) nodes;
    int64_t opset; /* of the default domain; 0: the model's */
} tutti_onnx_function;

typedef struct tutti_onnx {
    tutti_arena arena;
    TUTTI_VEC(tutti_tensor *) tensors;
    bool widened;              /* has integers that stand in wider types: tutti__onnx_is_widened */
    int64_t ir_version, opset; /* of the default domain; 0: none given */
    const char *producer, *producer_version;
    tutti_onnx_names domains; /* other domains that the file uses */
    tutti_onnx_names needs;   /* what the model has that we have no form for */
    tutti_onnx_graph graph;
    ONNX_LIST(tutti_onnx_function) functions;
} tutti_onnx;

/* Reads a ModelProto; `name` is for messages. *ret_onnx is freed by tutti__onnx_free. */
tutti_status tutti__onnx_decode(const char *name, const void *data, size_t size,
                                tutti_onnx **ret_onnx);
tutti_status tutti__onnx_load(const char *path, tutti_onnx **ret_onnx);
/* Reads a TensorProto by itself; TUTTI_UNSUPPORTED when its elements have no form here. The tensor
 * is the caller's; the name, in ret_name, is cut to its size. */
tutti_status tutti__onnx_decode_tensor(const char *name, const void *data, size_t size,
                                       char ret_name[128], tutti_tensor **ret_tensor);
/* Appends a ModelProto. */
tutti_status tutti__onnx_encode(const tutti_onnx *onnx, tutti_text *text);
tutti_status tutti__onnx_create(tutti_onnx **ret_onnx);
void tutti__onnx_free(tutti_onnx *onnx); /* NULL is fine */
/* Hands a tensor to the file's struct, also on failure. */
tutti_status tutti__onnx_keep(tutti_onnx *onnx, tutti_tensor *tensor);

/* "uint16" for 4. */
const char *tutti__onnx_element(int64_t number);
/* TensorProto.DataType of an element type and the reverse; 0 and TUTTI_NO_DTYPE for none. */
int tutti__onnx_dtype(tutti_dtype dtype);
tutti_dtype tutti__onnx_dtype_of(int64_t number);
/* int16, uint16, uint32, uint64 and the types of onnx_small.h stand in wider types of ours, which
 * hold their values; bytes of an element in the file, of those that are not small. */
bool tutti__onnx_is_widened(int64_t number);
size_t tutti__onnx_stored_bytes(int64_t number);

/* The attribute of that name and kind, or NULL. */
const tutti_onnx_attr *tutti__onnx_attr(const tutti_onnx_node *node, const char *name,
                                        tutti_onnx_attr_kind kind);

#endif
