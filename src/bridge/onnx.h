/* onnx.h: what an operator's rules between us and ONNX see. One file in onnx/ for each operator or
 * small family; each rule ends in one const descriptor.
 * tables: tutti_onnx_op
 *
 * Order of dimensions. Ours is channels last, ONNX's convolutions and pooling want channels first.
 * A value is kept in the order it was made in, and turned only where somebody wants the other one:
 *   exporting, an edge may have a name `plain` (our order) and a name `first` (channels first);
 *   importing, a name may stand for a symbol `plain` (the file's order) and one `last`.
 * Rules that work element by element take whichever is there (tutti__onnx_pick, _joined), so that a
 * chain of convolutions, activations and pooling turns its data once at each end. */
#ifndef TUTTI_BRIDGE_ONNX_H
#define TUTTI_BRIDGE_ONNX_H

#include "bridge/onnx_proto.h"
#include "graph/graph.h"
#include "nn/model/model.h"
#include "ops/build.h"
#include "tutti/onnx.h"

#define ONNX_OPSET_LOWEST 17 /* that is written */
#define ONNX_OPSET_HIGHEST 21
#define ONNX_OPSET_OLDEST 7 /* that is read */
#define ONNX_OPSET_NEWEST 28
#define ONNX_ELEMENTS 64  /* of a list of integers that is followed through the graph */
#define ONNX_UNROLL 64    /* rounds of a loop that are built one after the other */
#define ONNX_BUILT 250000 /* nodes that are built, with all that is built again */

typedef struct tutti_onnx_export tutti_onnx_export;
typedef struct tutti_onnx_import tutti_onnx_import;

/* One operator of ours and one of ONNX's; either side may be absent. */
typedef struct tutti_onnx_op {
    const char *op;     /* ours; NULL: only read */
    const char *type;   /* ONNX's; NULL: only written, as several nodes */
    const char *domain; /* of the type; NULL: ONNX's own */
    const char *note;   /* for the manual: what is not supported; NULL: nothing */
    /* Writes x->node. A failure is noted in x. */
    void (*write)(tutti_onnx_export *x);
    /* Builds m->node. A failure is noted in m or in the graph. */
    void (*read)(tutti_onnx_import *m);
} tutti_onnx_op;

/* By our name or by ONNX's; NULL when there is no such rule. */
const tutti_onnx_op *tutti__onnx_writer(const char *op);
const tutti_onnx_op *tutti__onnx_reader(const char *domain, const char *type);
/* The same for what users have registered (onnx_own.c), where we have none. */
const tutti_onnx_op *tutti__onnx_own_writer(const char *op);
const tutti_onnx_op *tutti__onnx_own_reader(const char *domain, const char *type);

/* Axes of channels first, as the order of a transpose from channels last, and the reverse. */
void tutti__onnx_first_order(int rank, int64_t *ret_order);
void tutti__onnx_last_order(int rank, int64_t *ret_order);

/* ---- writing ---- */

typedef struct tutti_onnx_edge {
    const char *plain, *first; /* names in the file; NULL: not written in that order */
    int uses;                  /* by nodes that are written, and as outputs */
} tutti_onnx_edge;

struct tutti_onnx_export {
    tutti_onnx *onnx;
    tutti_graph *graph;
    tutti_session *session; /* for the values of variables */
    const tutti_node *node; /* that is being written */
    const tutti_onnx_op *rule;
    bool *needed;  /* per node */
    size_t *start; /* per node: its first edge */
    tutti_onnx_edge *edges;
    tutti_map names;       /* that are taken */
    tutti_map shared;      /* constants by what they hold → name */
    tutti_onnx_node *last; /* node written last: attributes go there */
    tutti_status status;   /* the first failure, with its message in `error` */
    tutti_error error;
};

/* The first failure stays; the message names the node. */
void tutti__onnx_write_fail(tutti_onnx_export *x, tutti_status status, const char *format, ...)
    TUTTI_PRINTF(3, 4);

/* Names of input i of the present node: in our order, channels first, or `first` by choice. */
const char *tutti__onnx_in(tutti_onnx_export *x, int i);
const char *tutti__onnx_in_first(tutti_onnx_export *x, int i);
const char *tutti__onnx_in_as(tutti_onnx_export *x, int i, bool first);
/* The present node's output i is that value. */
void tutti__onnx_out(tutti_onnx_export *x, int i, const char *name);
void tutti__onnx_out_as(tutti_onnx_export *x, int i, const char *name, bool first);
/* True when all inputs of rank 3 and more are there channels first, are of the output's rank, and
 * the others are scalars: then an element-wise node may work on them as they are. */
bool tutti__onnx_pick(const tutti_onnx_export *x);
/* Whether somebody uses output i. */
bool tutti__onnx_wants(const tutti_onnx_export *x, int i);
const tutti_type *tutti__onnx_type_in(const tutti_onnx_export *x, int i);

/* Adds a node of ONNX's and returns the name of its (first) output:
 *     ONNX(x, "Mul", a, b)
 * An input "" is left out. Attributes and further outputs go to the node added last. */
const char *tutti__onnx_node(tutti_onnx_export *x, const char *type, size_t count,
                             const char *const *inputs);
#define ONNX(x, type, ...)                                                                         \
    tutti__onnx_node((x), (type), sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *),    \
                     (const char *[]){__VA_ARGS__})
const char *tutti__onnx_more(tutti_onnx_export *x); /* one more output of the last node */
void tutti__onnx_set_int(tutti_onnx_export *x, const char *name, int64_t value);
void tutti__onnx_set_float(tutti_onnx_export *x, const char *name, double value);
void tutti__onnx_set_string(tutti_onnx_export *x, const char *name, const char *value);
void tutti__onnx_set_ints(tutti_onnx_export *x, const char *name, int count, const int64_t *values);
void tutti__onnx_set_tensor(tutti_onnx_export *x, const char *name, tutti_tensor *value);

/* Constants: a vector of i64, a scalar, any tensor (taken over). Equal ones are shared. */
const char *tutti__onnx_ints(tutti_onnx_export *x, int count, const int64_t *values);
const char *tutti__onnx_number(tutti_onnx_export *x, tutti_dtype dtype, double value);
const char *tutti__onnx_constant(tutti_onnx_export *x, tutti_tensor *value);

/* The value of an edge that is a variable, a constant, or one of them in another shape, order or
 * element type; *ret_node is the variable or constant. False when it is none. The tensor is the
 * caller's. */
bool tutti__onnx_value_of(tutti_onnx_export *x, tutti_edge edge, tutti_tensor **ret_value,
                          const tutti_node **ret_node);
/* A weight under the name of its variable, in another form; `form` tells forms apart. Takes the
 * tensor over. */
const char *tutti__onnx_weight(tutti_onnx_export *x, const tutti_node *node, const char *form,
                               tutti_tensor *value);

/* The element type that stands in the file: before opset 22 hardly any operator of ONNX's takes
 * bf16, so f32 stands for it. */
tutti_dtype tutti__onnx_written(tutti_dtype dtype);

/* Pieces that several rules need: axes as attribute or input, whichever the operator has in this
 * opset; x turned; x without or with axes. */
const char *tutti__onnx_turned(tutti_onnx_export *x, const char *name, int rank,
                               const int64_t *order);
const char *tutti__onnx_squeezed(tutti_onnx_export *x, const char *name, int64_t axis);
const char *tutti__onnx_unsqueezed(tutti_onnx_export *x, const char *name, int64_t axis);
const char *tutti__onnx_cast(tutti_onnx_export *x, const char *name, tutti_dtype dtype);

/* Attributes of the present node. */
#define NODE_INT(x, name) tutti__int((x)->node, (name))
#define NODE_FLOAT(x, name) tutti__float((x)->node, (name))
#define NODE_STR(x, name) tutti__str((x)->node, (name))
#define NODE_INTS(x, name, ret)                                                                    \
    tutti_attr_ints((x)->node->attrs, (x)->node->attr_count, (name), ret)

/* Ready-made: one node with the same inputs and no attributes. */
void tutti__onnx_write_plain(tutti_onnx_export *x);

/* ---- reading ---- */

/* One integer of a list that is followed through the graph: a number, or a scalar of i64. */
typedef struct tutti_onnx_element {
    bool known;
    int64_t value;
    tutti_sym sym; /* when it is not known */
} tutti_onnx_element;
typedef struct tutti_onnx_elements {
    int rank; /* 0 or 1 */
    int count;
    tutti_dtype dtype; /* i64 or i32 */
    tutti_onnx_element items[ONNX_ELEMENTS];
} tutti_onnx_elements;

/* What a name stands for. */
typedef struct tutti_onnx_known {
    const char *name;
    tutti_sym plain, last; /* TUTTI_NO_SYM: not built in that order */
    tutti_tensor *value;   /* of a constant; the file's */
    int64_t element;    /* ONNX's number of its element type where that is known; 0: ours says it */
    bool weight;        /* an initializer: becomes a variable where it is floating */
    bool frozen;        /* that is not trained */
    bool lost;          /* its node could not be built */
    tutti_sym formed;   /* the weight in the form that an operator has made of it */
    const char *form;   /* which form that is */
    tutti_sym shape_of; /* the value is the shape of this; TUTTI_NO_SYM: it is not */
    const tutti_onnx_elements *elements; /* of a list some of which are known; or NULL */
    bool sequence;                       /* a list of tensors */
    size_t item_count;                   /* that is known while the graph is built */
    struct tutti_onnx_known **items;
    tutti_sym shapes; /* of a list whose length is not known: see onnx/list.h; `plain` is its sym */
    tutti_type of;    /* what is known of its tensors */
} tutti_onnx_known;

/* A value as a body of cond or while takes and gives it: a tensor, or a list of tensors as two
 * (onnx/list.h). */
typedef struct tutti_onnx_pack {
    tutti_sym sym;
    bool list;
    tutti_sym shapes;
    tutti_type of;
} tutti_onnx_pack;

/* Scopes: a sub-graph or function is built by an importer of its own. One that is built in place
 * (`around`) sees the names around it; one that becomes a body of cond or while (`beyond`) sees
 * constants and what it was given. The root owns memory, made values and what is missing. */
struct tutti_onnx_import {
    const tutti_onnx *onnx;
    const char *file;
    tutti_graph *graph;
    const tutti_onnx_node *node; /* that is being built */
    const tutti_onnx_op *rule;
    int64_t opset; /* of the default domain, here */
    tutti_onnx_import *root, *around, *beyond;
    int depth;
    tutti_map known; /* name → tutti_onnx_known */
    tutti_status status;
    tutti_error error;
    /* Of the root: */
    tutti_model *model; /* or NULL: into a graph */
    tutti_arena arena;
    TUTTI_VEC(tutti_tensor *) made; /* values computed on the way */
    tutti_text needs;               /* what is not supported, one after the other */
    size_t need_count;
    int built;           /* nodes so far */
    bool constants;      /* weights are constants, not variables */
    tutti_dtype compute; /* what products multiply instead of f32; 0: what the file has */
    size_t given_count;
    const tutti_onnx_given *given; /* inputs whose values are known already */
    tutti_onnx_known *missing;     /* stands for an optional value that is absent */
};

void tutti__onnx_read_fail(tutti_onnx_import *m, tutti_status status, const char *format, ...)
    TUTTI_PRINTF(3, 4);

/* Is input i given? Its symbol in the file's order; channels last. */
bool tutti__onnx_has(const tutti_onnx_import *m, int i);
tutti_sym tutti__onnx_sym(tutti_onnx_import *m, int i);
tutti_sym tutti__onnx_sym_last(tutti_onnx_import *m, int i);
tutti_sym tutti__onnx_sym_as(tutti_onnx_import *m, int i, bool last);
/* A factor x of a product, in what the model computes in; the product y as the file has x. */
tutti_sym tutti__onnx_factor(const tutti_onnx_import *m, tutti_sym x);
tutti_sym tutti__onnx_product(const tutti_onnx_import *m, tutti_sym x, tutti_sym y);
/* Output i is that symbol. */
void tutti__onnx_made(tutti_onnx_import *m, int i, tutti_sym sym);
void tutti__onnx_made_as(tutti_onnx_import *m, int i, tutti_sym sym, bool last);
/* Output i is what another name stands for; a constant (the tensor is taken over); a list. */
void tutti__onnx_made_known(tutti_onnx_import *m, int i, tutti_onnx_known *known);
void tutti__onnx_made_value(tutti_onnx_import *m, int i, tutti_tensor *value);
void tutti__onnx_made_elements(tutti_onnx_import *m, int i, const tutti_onnx_elements *elements);
/* True when all inputs of rank 3 and more are there channels last and the others are scalars. */
bool tutti__onnx_joined(tutti_onnx_import *m);
/* Whether output i has a name. */
bool tutti__onnx_names(const tutti_onnx_import *m, int i);
tutti_onnx_known *tutti__onnx_input(tutti_onnx_import *m, int i); /* NULL: not given */
tutti_onnx_known *tutti__onnx_find(tutti_onnx_import *m, const char *name);
tutti_onnx_known *tutti__onnx_learn(tutti_onnx_import *m, const char *name,
                                    tutti_onnx_known known); /* NULL after a failure */
/* The symbol of a name in the file's order; TUTTI_NO_SYM after a failure. */
tutti_sym tutti__onnx_symbol(tutti_onnx_import *m, tutti_onnx_known *known);

/* Constant inputs. The tensor is the file's or the importer's; NULL when it is not known, with a
 * failure for _read_constant. What is made of constants and given inputs alone is computed. */
tutti_tensor *tutti__onnx_try_constant(tutti_onnx_import *m, int i);
tutti_tensor *tutti__onnx_read_constant(tutti_onnx_import *m, int i, const char *what);
/* Input i as a list of integers, as far as they are known; false when its length is not. */
bool tutti__onnx_read_elements(tutti_onnx_import *m, int i, tutti_onnx_elements *ret);
bool tutti__onnx_all_known(const tutti_onnx_elements *elements);
/* As a tensor of i64 in the graph. */
tutti_sym tutti__onnx_elements_sym(tutti_onnx_import *m, const tutti_onnx_elements *elements);
/* The present node where it computes with shapes: true when it was done. */
bool tutti__onnx_fold(tutti_onnx_import *m);
/* Whether two dimensions of unknown size are always the same. */
bool tutti__onnx_same_dim(tutti_sym a, int axis_a, tutti_sym b, int axis_b);
/* Integers of a constant; at most TUTTI_MAX_RANK. False after a failure. */
bool tutti__onnx_read_ints(tutti_onnx_import *m, int i, const char *what, tutti_axes *ret);
/* Input i, or where it is not there the attribute; none: count 0. */
bool tutti__onnx_read_axes(tutti_onnx_import *m, int i, const char *name, tutti_axes *ret);
bool tutti__onnx_read_number(tutti_onnx_import *m, int i, double fallback, double *ret);
bool tutti__onnx_read_int(tutti_onnx_import *m, int i, int64_t fallback, int64_t *ret);

int64_t tutti__onnx_attr_int(const tutti_onnx_import *m, const char *name, int64_t fallback);
/* The same for an axis; one that no tensor has is made TUTTI_MAX_RANK, which builders refuse. */
int tutti__onnx_attr_axis(const tutti_onnx_import *m, const char *name, int fallback);
/* The same for a number that must lie in a range; else a failure, false. */
bool tutti__onnx_attr_within(tutti_onnx_import *m, const char *name, int64_t fallback,
                             int64_t least, int64_t most, int64_t *ret);
double tutti__onnx_attr_float(const tutti_onnx_import *m, const char *name, double fallback);
/* For builders' settings, of which 0 is the default: 0 becomes a number that adds nothing. */
double tutti__onnx_attr_setting(const tutti_onnx_import *m, const char *name, double fallback);
const char *tutti__onnx_attr_string(const tutti_onnx_import *m, const char *name,
                                    const char *fallback);
/* A list; its count, 0 without. */
int tutti__onnx_attr_ints(const tutti_onnx_import *m, const char *name, const int64_t **ret);

/* Input i, a constant, in another form: of an initializer a variable under its name. `make` gives
 * the values, NULL when there is no memory; it is asked once for each form, so that operators that
 * share a weight share the variable. */
typedef tutti_tensor *tutti_onnx_convert_fn(const tutti_tensor *value, const void *context);
tutti_sym tutti__onnx_formed(tutti_onnx_import *m, int i, const char *form,
                             tutti_onnx_convert_fn *make, const void *context);

/* x as elements of ONNX's type `number`, which we hold in a wider one (16 bits and less, uint32):
 * cut off to whole numbers that wrap round, or rounded to floats that it has; what is too large
 * becomes the largest (saturate), or what the format has for it. Note the type with _is_of. */
tutti_sym tutti__onnx_to_element(tutti_onnx_import *m, tutti_sym x, int64_t number, bool saturate);
void tutti__onnx_is_of(tutti_onnx_import *m, int i, int64_t number);
int64_t tutti__onnx_element_of(tutti_onnx_import *m, int i); /* of input i; 0: not noted */

/* Ready-made: the operator rule->op with the same inputs and no attributes. */
void tutti__onnx_read_plain(tutti_onnx_import *m);

/* ---- sub-graphs ---- */

/* Nodes that the graph's outputs need, in their order, in the arena. */
tutti_status tutti__onnx_live(const tutti_onnx_graph *graph, tutti_arena *arena, size_t *ret_count,
                              const tutti_onnx_node **ret_nodes);

/* Builds nodes one after the other; what is not supported is noted, other failures are m's. */
void tutti__onnx_build_nodes(tutti_onnx_import *m, size_t count, const tutti_onnx_node *nodes);
/* A sub-graph's nodes right here; ret_outputs[i] is what its output i stands for. False after a
 * failure, or when something in it is not supported. */
bool tutti__onnx_inline(tutti_onnx_import *m, const tutti_onnx_graph *graph, size_t input_count,
                        tutti_onnx_known *const *inputs, tutti_onnx_known **ret_outputs);
/* Names around it that a sub-graph uses and that are no constants; at most `limit`. False when
 * there are more. */
bool tutti__onnx_captures(tutti_onnx_import *m, const tutti_onnx_graph *graph, int limit,
                          int *count, const char **names);
/* A sub-graph as the body of cond or while: `inputs` are symbols of `body`, captures stand for the
 * names. A failure is the body's. */
typedef struct tutti_onnx_body {
    const tutti_onnx_graph *graph;
    int input_count, capture_count;
    const tutti_onnx_pack *inputs, *captures;
    const char *const *names;
} tutti_onnx_body;
void tutti__onnx_build_body(tutti_onnx_import *m, tutti_graph *body, const tutti_onnx_body *what,
                            tutti_onnx_pack *ret_outputs);
/* The function of the model's own that a node calls, or NULL. */
const tutti_onnx_function *tutti__onnx_function_of(const tutti_onnx *onnx,
                                                   const tutti_onnx_node *node);
void tutti__onnx_call_function(tutti_onnx_import *m, const tutti_onnx_function *function);
/* Everything in a file that is not supported: operators, element types, …; TUTTI_OK when there is
 * nothing. */
tutti_status tutti__onnx_check_needs(const tutti_onnx *onnx, const char *file);

/* ---- parts ---- */

/* Around a node that becomes a part of the model: a scope for the names of what is built, and
 * afterwards the part with its values. Nothing in sub-graphs, functions and graphs. */
size_t tutti__onnx_part_begin(tutti_onnx_import *m, const tutti_onnx_node *node);
void tutti__onnx_part_end(tutti_onnx_import *m, const tutti_onnx_node *node, size_t first_node);
/* A name the graph takes: other characters, and slashes that part nothing, become '_'. */
void tutti__onnx_legal_name(const char *name, char ret[256]);

/* ---- whole files ---- */

/* A graph as ONNX; ports name inputs and outputs. *ret_onnx is freed by tutti__onnx_free. */
tutti_status tutti__onnx_from_graph(tutti_graph *graph, tutti_session *session, const char *name,
                                    int opset, int input_count, const tutti_onnx_port *inputs,
                                    int output_count, const tutti_onnx_port *outputs,
                                    tutti_onnx **ret_onnx);
/* Drops nodes, initializers that no output needs. */
tutti_status tutti__onnx_prune(tutti_onnx *onnx);
/* Builds into a functional model that has neither inputs nor outputs yet. */
tutti_status tutti__onnx_into_model(const tutti_onnx *onnx, const char *file, tutti_model *model);
/* Builds into a graph; inputs become placeholders. */
tutti_status tutti__onnx_into_graph(const tutti_onnx *onnx, const char *file, tutti_graph *graph,
                                    const tutti_onnx_graph_options *options,
                                    tutti_onnx_ports *ret_ports);
/* Inputs, outputs, opset, operators and parameters, as text for a person. */
tutti_status tutti__onnx_describe(const char *path, bool json, tutti_text *text);

#endif
