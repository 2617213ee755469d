/* graphdef.h: TensorFlow's graphs as structs. Numbers of fields are those of graph.proto,
 * node_def.proto, attr_value.proto and tensor.proto. Reading is safe for hostile bytes. */
#ifndef TUTTI_BRIDGE_GRAPHDEF_H
#define TUTTI_BRIDGE_GRAPHDEF_H

#include "bridge/onnx_proto.h"
#include "io/protobuf.h"
#include "ops/build.h"
#include "tutti/graphdef.h"

#define GRAPHDEF_NODES 200000
#define GRAPHDEF_REPEATED ((int64_t)1 << 26) /* elements of constants that name few bytes */

typedef struct tutti_graphdef_attr {
    const char *name, *s;
    int64_t i, type; /* b counts as i */
    float f;
    tutti_onnx_names strings;
    ONNX_LIST(int64_t) ints;
    bool has_shape, ranked;
    tutti_type shape;
    tutti_tensor *tensor; /* the file's; NULL: none, or of elements we do not have */
} tutti_graphdef_attr;

typedef struct tutti_graphdef_node {
    const char *name, *op;
    tutti_onnx_names inputs; /* "name", "name:1", "^name" */
    ONNX_LIST(tutti_graphdef_attr) attrs;
    int state;         /* of building: 0 not begun, 1 under way, 2 done */
    bool used;         /* some other node takes its output */
    tutti_sym made;    /* output 0 */
    tutti_sym more[8]; /* outputs from 1 on, where they are not outputs of `made`'s node */
} tutti_graphdef_node;

typedef struct tutti_graphdef {
    tutti_arena arena;
    TUTTI_VEC(tutti_tensor *) tensors;
    const char *file;
    ONNX_LIST(tutti_graphdef_node) nodes;
    tutti_map by_name;
    int64_t repeated; /* elements so far that may repeat a few bytes */
} tutti_graphdef;

tutti_status tutti__graphdef_decode(const char *name, const void *data, size_t size,
                                    tutti_graphdef **ret);
void tutti__graphdef_free(tutti_graphdef *def); /* NULL is fine */
/* Appends a graph as a GraphDef. */
tutti_status tutti__graphdef_encode(const tutti_graph *graph, tutti_text *text);
tutti_status tutti__graphdef_into_graph(tutti_graphdef *def, tutti_graph *graph,
                                        tutti_onnx_ports *ret_ports);

/* DataType of an element type and the reverse; 0 and TUTTI_NO_DTYPE for none. */
int tutti__graphdef_dtype(tutti_dtype dtype);
tutti_dtype tutti__graphdef_dtype_of(int64_t number);
const tutti_graphdef_attr *tutti__graphdef_attr(const tutti_graphdef_node *node, const char *name);

/* Building. */
typedef struct tutti_graphdef_import {
    tutti_graphdef *def;
    tutti_graph *graph;
    tutti_graphdef_node *node; /* that is being built */
    tutti_status status;
    tutti_error error;
} tutti_graphdef_import;

typedef void tutti_graphdef_rule(tutti_graphdef_import *m);
/* The rule of an operator, or NULL. */
tutti_graphdef_rule *tutti__graphdef_rule_of(const char *op);
void tutti__graphdef_fail(tutti_graphdef_import *m, tutti_status status, const char *format, ...)
    TUTTI_PRINTF(3, 4);
/* Data input i as a symbol, and its value when it is a constant. */
tutti_sym tutti__graphdef_in(tutti_graphdef_import *m, int i);
tutti_tensor *tutti__graphdef_value(tutti_graphdef_import *m, int i);
int tutti__graphdef_inputs(const tutti_graphdef_node *node); /* without control inputs */
/* A constant list of at most TUTTI_MAX_RANK integers; false after a failure. */
bool tutti__graphdef_ints(tutti_graphdef_import *m, int i, tutti_axes *ret);

#endif
