/* graphdef.h: TensorFlow's graphs as structs. Numbers of fields are those of graph.proto,
 * function.proto, node_def.proto, attr_value.proto and tensor.proto. Reading is safe for hostile
 * bytes.
 *
 * Control flow comes in two forms. As functions: While, If, Case and calls name functions of the
 * file's library. Lowered: Enter, Merge, Switch, NextIteration and Exit make loops of the nodes
 * themselves, Switch and Merge branches (flow.c finds them). Of both the importer makes
 * bodies: nodes between what is given to them and what they make. */
#ifndef TUTTI_BRIDGE_GRAPHDEF_H
#define TUTTI_BRIDGE_GRAPHDEF_H

#include "bridge/onnx_proto.h"
#include "io/protobuf.h"
#include "ops/build.h"
#include "tutti/graphdef.h"

#define GRAPHDEF_NODES 200000
#define GRAPHDEF_FUNCTIONS 10000
#define GRAPHDEF_BUILT 60000    /* nodes that are built, with all that is built again */
#define GRAPHDEF_DEPTH 24       /* bodies in each other */
#define GRAPHDEF_UNROLL 64      /* rounds of a loop built one after the other */
#define GRAPHDEF_UNROLLED 16384 /* nodes of such rounds */
#define GRAPHDEF_ITEMS 4096     /* tensors of a list whose length is known */
#define GRAPHDEF_VALUES 512     /* that go into a loop or a branch */
#define GRAPHDEF_REPEATED ((int64_t)1 << 26) /* elements of constants that name few bytes */

typedef struct tutti_graphdef_attr {
    const char *name, *s, *function;
    int64_t i, type; /* b counts as i */
    float f;
    tutti_onnx_names strings, functions;
    ONNX_LIST(int64_t) ints;
    bool has_shape, ranked;
    tutti_type shape;
    tutti_tensor *tensor; /* the file's; NULL: none, or of elements we do not have */
} tutti_graphdef_attr;

typedef struct tutti_graphdef_flow tutti_graphdef_flow;

typedef struct tutti_graphdef_node {
    const char *name, *op;
    tutti_onnx_names inputs; /* "name", "name:1", "^name" */
    ONNX_LIST(tutti_graphdef_attr) attrs;
    bool used;   /* some other node takes its output */
    bool output; /* of the graph */
    bool needed; /* for an output */
    bool inside; /* of a lowered loop or branch */
    /* Of an Exit or Merge: the loop or branch whose result it is. That waits for other things than
     * the node's inputs. */
    const tutti_graphdef_flow *flow;
} tutti_graphdef_node;

/* The nodes of the file, or of a function; arguments of a function are nodes "_Arg". */
typedef struct tutti_graphdef_graph {
    const char *name;
    ONNX_LIST(tutti_graphdef_node) nodes;
    tutti_map by_name;
    size_t arg_count;         /* the first nodes */
    tutti_onnx_names results; /* as inputs are written */
    bool flows_known;
} tutti_graphdef_graph;

typedef struct tutti_graphdef {
    tutti_arena arena;
    TUTTI_VEC(tutti_tensor *) tensors;
    const char *file;
    tutti_graphdef_graph graph;
    ONNX_LIST(tutti_graphdef_graph) functions;
    tutti_map by_name; /* of functions */
    size_t node_count; /* of all */
    int64_t repeated;  /* elements so far that may repeat a few bytes */
} tutti_graphdef;

tutti_status tutti__graphdef_decode(const char *name, const void *data, size_t size,
                                    tutti_graphdef **ret);
void tutti__graphdef_free(tutti_graphdef *def); /* NULL is fine */
/* For library.c: a node, a text; what a field of FunctionDefLibrary holds. */
tutti_status tutti__graphdef_read_node(tutti_graphdef *def, tutti_proto p,
                                       tutti_graphdef_graph *graph);
tutti_status tutti__graphdef_read_text(tutti_graphdef *def, const tutti_proto_field *f,
                                       const char **ret);
tutti_status tutti__graphdef_index(tutti_graphdef *def, tutti_graphdef_graph *graph);
tutti_status tutti__graphdef_read_library(tutti_graphdef *def, tutti_proto p);
tutti_status tutti__graphdef_no_memory(const tutti_graphdef *def);

/* Appends a graph as a GraphDef. */
tutti_status tutti__graphdef_encode(const tutti_graph *graph, tutti_text *text);
tutti_status tutti__graphdef_into_graph(tutti_graphdef *def, tutti_graph *graph,
                                        tutti_onnx_ports *ret_ports);

/* DataType of an element type and the reverse; 0 and TUTTI_NO_DTYPE for none. */
int tutti__graphdef_dtype(tutti_dtype dtype);
tutti_dtype tutti__graphdef_dtype_of(int64_t number);
const tutti_graphdef_attr *tutti__graphdef_attr(const tutti_graphdef_node *node, const char *name);

/* ---- values ---- */

/* What an output stands for: a tensor, or a list of tensors of one type. Such a list is known place
 * by place (items), or its tensors stacked, [count, …] (sym), or, while nobody has said what its
 * tensors are, their number alone (count). */
typedef struct tutti_graphdef_value {
    bool lost; /* its node could not be built */
    bool list;
    bool grows;       /* writing behind its end makes it longer */
    tutti_sym sym;    /* TUTTI_NO_SYM: none */
    tutti_sym count;  /* i64 scalar */
    tutti_type of;    /* the type of its tensors, as far as it is known */
    bool ranked;      /* their rank is known */
    int item_count;   /* with items */
    tutti_sym *items; /* or NULL; TUTTI_NO_SYM where nothing was written */
} tutti_graphdef_value;

/* A node in a scope. */
typedef struct tutti_graphdef_made {
    const tutti_graphdef_node *node;
    int state; /* of building: 0 not begun, 1 under way, 2 done */
    int count;
    tutti_graphdef_value *outputs; /* those beyond are outputs of output 0's node */
} tutti_graphdef_made;

typedef struct tutti_graphdef_scope {
    tutti_graphdef_graph *graph;
    tutti_graphdef_made **slots; /* by the node's address; open addressing */
    size_t count, capacity;
} tutti_graphdef_scope;

/* Building. The root owns what all scopes share. */
typedef struct tutti_graphdef_import {
    tutti_graphdef *def;
    tutti_graph *graph;
    tutti_graphdef_scope *scope;
    const tutti_graphdef_node *node; /* that is being built */
    tutti_graphdef_made *here;
    struct tutti_graphdef_import *root;
    int depth;
    bool quiet; /* an attempt: what is not supported is not noted */
    tutti_status status;
    tutti_error error;
    /* Of the root: */
    tutti_text needs; /* what is not supported */
    size_t need_count;
    int built;
} tutti_graphdef_import;

typedef void tutti_graphdef_rule(tutti_graphdef_import *m);
/* The rule of an operator, or NULL. */
tutti_graphdef_rule *tutti__graphdef_rule_of(const char *op);
void tutti__graphdef_fail(tutti_graphdef_import *m, tutti_status status, const char *format, ...)
    TUTTI_PRINTF(3, 4);
void *tutti__graphdef_take(tutti_graphdef_import *m, size_t count, size_t size); /* of the arena */
/* Data input i as a value (NULL after a failure), as a symbol, and its value when it is known. */
const tutti_graphdef_value *tutti__graphdef_input(tutti_graphdef_import *m, int i);
tutti_sym tutti__graphdef_in(tutti_graphdef_import *m, int i);
tutti_tensor *tutti__graphdef_value(tutti_graphdef_import *m, int i);
tutti_tensor *tutti__graphdef_try_value(tutti_graphdef_import *m, int i); /* NULL: not known */
tutti_tensor *tutti__graphdef_known(tutti_graphdef_import *m, tutti_sym sym);
int tutti__graphdef_inputs(const tutti_graphdef_node *node); /* without control inputs */
/* A constant list of at most TUTTI_MAX_RANK integers; false after a failure. */
bool tutti__graphdef_ints(tutti_graphdef_import *m, int i, tutti_axes *ret);
/* Integers of rank 0 or 1, number by number: GRAPHDEF_UNKNOWN stands for what is not known.
 * False when there are more than TUTTI_MAX_RANK, or nobody knows how many. */
#define GRAPHDEF_UNKNOWN INT64_MIN
bool tutti__graphdef_numbers(tutti_graphdef_import *m, tutti_sym sym, tutti_axes *ret);
/* The numbers that input i, a shape, holds, and what stands for it in the graph: something of that
 * shape. False after a failure. */
bool tutti__graphdef_shape_in(tutti_graphdef_import *m, int i, tutti_axes *ret);
tutti_sym tutti__graphdef_like(tutti_graphdef_import *m, int i);
/* x in the shape that input i holds, in which one number may be -1. */
tutti_sym tutti__graphdef_reshaped(tutti_graphdef_import *m, tutti_sym x, int i);
/* One dimension: a number, or (known < 0) an i64 scalar. And x in such a shape. */
typedef struct tutti_graphdef_dim {
    int64_t known;
    tutti_sym sym;
} tutti_graphdef_dim;
tutti_graphdef_dim tutti__graphdef_dim(tutti_sym x, int axis);
tutti_graphdef_dim tutti__graphdef_dim_times(tutti_graphdef_dim dim, int64_t times, int64_t over);
tutti_sym tutti__graphdef_in_dims(tutti_sym x, int rank, const tutti_graphdef_dim *dims);
/* Output i of the present node. */
void tutti__graphdef_give(tutti_graphdef_import *m, int i, const tutti_graphdef_value *value);

/* ---- scopes ---- */

/* "name" or "name:1"; a leading '^' is passed over. NULL: there is no such node. */
tutti_graphdef_node *tutti__graphdef_find(const tutti_graphdef_graph *graph, const char *input,
                                          int *ret_output);
tutti_graphdef_made *tutti__graphdef_at(tutti_graphdef_import *m, const tutti_graphdef_node *node);
/* Builds what an input names, and gives its value; false after a failure. */
bool tutti__graphdef_build(tutti_graphdef_import *m, const char *input, tutti_graphdef_value *ret);
void tutti__graphdef_scope_free(tutti_graphdef_scope *scope);

/* Output `output` of a node stands for argument `arg`. */
typedef struct tutti_graphdef_binding {
    const tutti_graphdef_node *node;
    int output, arg;
} tutti_graphdef_binding;
typedef struct tutti_graphdef_body {
    tutti_graphdef_graph *graph;
    ONNX_LIST(tutti_graphdef_binding) bindings;
    tutti_onnx_names results; /* as inputs are written */
} tutti_graphdef_body;
/* Builds a body's results into a graph: m's own, or a sub-graph. False after a failure, which is
 * m's; results may be lost. */
bool tutti__graphdef_enter(tutti_graphdef_import *m, const tutti_graphdef_body *body,
                           tutti_graph *into, const tutti_graphdef_value *args,
                           tutti_graphdef_value *ret);
/* A function as a body; NULL when there is none of that name or it does not take and give so many.
 */
const tutti_graphdef_body *tutti__graphdef_function(tutti_graphdef_import *m, const char *name,
                                                    int args, int results);
/* Which arguments a body's result depends on; the number of its nodes, -1 after a failure. */
int tutti__graphdef_reaches(tutti_graphdef_import *m, const tutti_graphdef_body *body,
                            const char *result, bool *args);

/* ---- control flow ---- */

typedef struct tutti_graphdef_end {
    tutti_graphdef_node *node;
    int result;
} tutti_graphdef_end;

/* A lowered loop: bodies are condition and step; arguments the first values, then what stays. Or a
 * lowered branch: bodies are then and else; arguments what goes through a Switch, after pred. */
struct tutti_graphdef_flow {
    bool loop;
    int variables;          /* of a loop */
    tutti_onnx_names waits; /* inputs that are its arguments (of a branch, behind the predicate) */
    tutti_graphdef_body bodies[2];
    ONNX_LIST(tutti_graphdef_end) ends; /* Exits or Merges */
};
/* Finds the lowered loops and branches of a graph, once. */
tutti_status tutti__graphdef_find_flows(tutti_graphdef *def, tutti_graphdef_graph *graph);

typedef struct tutti_graphdef_loop {
    const tutti_graphdef_body *condition, *step;
    int args, variables; /* arguments; those that the step gives anew come first */
    tutti_graphdef_value *values;
} tutti_graphdef_loop;
/* Goes round: values[0, variables) become the last ones. */
void tutti__graphdef_go_round(tutti_graphdef_import *m, tutti_graphdef_loop *loop);

typedef struct tutti_graphdef_branches {
    const tutti_graphdef_body *const *bodies;
    int args, results;
    const tutti_graphdef_value *values;
} tutti_graphdef_branches;
/* then (bodies[0]) when pred is true, else bodies[1]. */
void tutti__graphdef_choose(tutti_graphdef_import *m, tutti_sym pred,
                            const tutti_graphdef_branches *branches, tutti_graphdef_value *ret);

/* Values that go into a sub-graph are one symbol each. A list becomes its tensors stacked, or, when
 * nothing is known of them, their number. */
bool tutti__graphdef_resolve(tutti_graphdef_import *m, tutti_graphdef_value *value);
tutti_sym tutti__graphdef_lay(const tutti_graphdef_value *value);
tutti_graphdef_value tutti__graphdef_lift(const tutti_graphdef_value *like, tutti_sym sym);
tutti_sym tutti__graphdef_zeros(tutti_sym x, tutti_sym count); /* [count, …] of tensors like x */
tutti_sym tutti__graphdef_loosened(tutti_sym x);               /* of which only the rank is known */

#endif
