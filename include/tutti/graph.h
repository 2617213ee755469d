/* graph.h: building a dataflow graph. Nodes are operators, edges are tensors.
 *
 * A builder call never has to be checked: a bad call records the first mistake in the graph with
 * the user's file and line and returns a poison symbol; calls on poison do nothing;
 * tutti_graph_check, and every run, report that first mistake. A call that is given no symbol of
 * any graph (tutti_concatenate of a list of none, tutti_apply_gradients of -1 variables) has
 * nowhere to record its mistake: tutti_error_message has it, and a run refuses the poison.
 *
 * A graph is built by one thread at a time. A graph that is not being built may be run by many. */
#ifndef TUTTI_GRAPH_H
#define TUTTI_GRAPH_H

#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_graph tutti_graph;
typedef struct tutti_node tutti_node;
typedef struct tutti_op tutti_op;

/* One output of one node. A plain value; the node belongs to its graph. `generation` guards against
 * symbols that outlived a tape's step. */
typedef struct tutti_sym {
    tutti_node *node;
    uint32_t index;
    uint32_t generation;
} tutti_sym;

#define TUTTI_NO_SYM ((tutti_sym){0})
/* False for TUTTI_NO_SYM and for poison. */
static inline bool tutti_sym_ok(tutti_sym sym)
{
    return sym.node != NULL;
}

/* Lists that count themselves: "count, pointer". TUTTI_DIMS() is a scalar's: no dimensions. */
#define TUTTI_DIMS(...)                                                                            \
    ((int)(sizeof((const int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1),                      \
        ((const int64_t[]){0, __VA_ARGS__} + 1)
#define TUTTI_SYMS(...)                                                                            \
    ((int)(sizeof((const tutti_sym[]){__VA_ARGS__}) / sizeof(tutti_sym))),                         \
        ((const tutti_sym[]){__VA_ARGS__})
#define TUTTI_ONE_DIMS_(x, ...) (x), TUTTI_DIMS(__VA_ARGS__)

/* An empty graph, which owns its nodes; one thread at a time may build. The caller destroys it. */
TUTTI_API tutti_status tutti_graph_create(tutti_graph **ret_graph);
TUTTI_API void tutti_graph_destroy(tutti_graph *graph); /* NULL is fine */
/* TUTTI_OK, or the first mistake made while building (its message becomes the last error). */
TUTTI_API tutti_status tutti_graph_check(const tutti_graph *graph);
TUTTI_API size_t tutti_graph_node_count(const tutti_graph *graph);
TUTTI_API tutti_node *tutti_graph_find(const tutti_graph *graph, const char *name); /* or NULL */

/* What a node is: its name, its operator's name, its device; of a result its graph and type. They
 * belong to the graph and live as long. */
TUTTI_API const char *tutti_node_name(const tutti_node *node);
TUTTI_API const char *tutti_node_op(const tutti_node *node);
TUTTI_API const char *tutti_node_device(const tutti_node *node); /* "" when free */
TUTTI_API tutti_graph *tutti_sym_graph(tutti_sym sym);
TUTTI_API tutti_type tutti_sym_type(tutti_sym sym);

/* Scopes. Names made inside TUTTI_WITH_NAME(g, "layer1") begin with "layer1/"; a name that is taken
 * gets _1, _2, … A name, of a scope or a node, has 1 to 512 letters, digits and _ . - + : @, and a
 * / between parts: "a/b", not "/a", "a/" or "a//b"; with all scopes around it a node's has at most
 * 1024. Device scopes merge: the inner one wins field by field. */
TUTTI_API void tutti_name_push(tutti_graph *graph, const char *name);
TUTTI_API void tutti_name_pop(tutti_graph *graph);
TUTTI_API void tutti_device_push(tutti_graph *graph, const char *device);
TUTTI_API void tutti_device_pop(tutti_graph *graph);
/* A function from node to device, asked for each node made in the scope (NULL or "": no wish). */
typedef const char *tutti_device_fn(const tutti_node *node, void *context);
TUTTI_API void tutti_device_push_fn(tutti_graph *graph, tutti_device_fn *fn, void *context);
/* Nodes made inside wait for these nodes; where they are more than 32, for a group that does. Like
 * an input, each must be a symbol of this graph and, of a tape, of this step; so must the neighbour
 * of a colocation scope. */
TUTTI_API void tutti_control_push(tutti_graph *graph, int count, const tutti_sym *after);
TUTTI_API void tutti_control_pop(tutti_graph *graph);
/* Nodes made inside stand on the device of `with`, also where device scopes say another. */
TUTTI_API void tutti_colocate_push(tutti_graph *graph, tutti_sym with);
TUTTI_API void tutti_colocate_pop(tutti_graph *graph);

/* What is made inside is not kept for the gradients: it is computed again when they need it, from
 * what is kept. What others read outside is kept. Of scopes inside each other the outermost counts.
 */
TUTTI_API void tutti_remat_push(tutti_graph *graph);
TUTTI_API void tutti_remat_pop(tutti_graph *graph);

/* What is made inside belongs to stage `stage` of a pipeline, from 0, or to that of a value which
 * it is made from, if that is later: so what stands in no scope follows what it is made from.
 * Gradients belong to the stage of what they are gradients of, updates to that of their variable.
 * Strategies without stages take no notice. Of scopes inside each other the inner one counts. */
TUTTI_API void tutti_stage_push(tutti_graph *graph, int stage);
TUTTI_API void tutti_stage_pop(tutti_graph *graph);

/* Each scope has a counter of its own name, so that scopes nest without a warning. */
#define TUTTI_SCOPE_(push, pop) TUTTI_SCOPE_NUMBER_(push, pop, __COUNTER__)
#define TUTTI_SCOPE_NUMBER_(push, pop, number) TUTTI_SCOPE_LOOP_(push, pop, number)
#define TUTTI_SCOPE_LOOP_(push, pop, number)                                                       \
    for (int tutti_once_##number = (TUTTI_AT(push), 1); tutti_once_##number;                       \
         tutti_once_##number = ((pop), 0))
#define TUTTI_WITH_NAME(graph, name)                                                               \
    TUTTI_SCOPE_(tutti_name_push(graph, name), tutti_name_pop(graph))
#define TUTTI_WITH_DEVICE(graph, device)                                                           \
    TUTTI_SCOPE_(tutti_device_push(graph, device), tutti_device_pop(graph))
#define TUTTI_WITH_DEVICE_FN(graph, fn, context)                                                   \
    TUTTI_SCOPE_(tutti_device_push_fn(graph, fn, context), tutti_device_pop(graph))
#define TUTTI_WITH_CONTROL(graph, ...)                                                             \
    TUTTI_SCOPE_(tutti_control_push(graph,                                                         \
                                    (int)(sizeof((tutti_sym[]){__VA_ARGS__}) / sizeof(tutti_sym)), \
                                    (tutti_sym[]){__VA_ARGS__}),                                   \
                 tutti_control_pop(graph))
#define TUTTI_WITH_REMAT(graph) TUTTI_SCOPE_(tutti_remat_push(graph), tutti_remat_pop(graph))
#define TUTTI_WITH_STAGE(graph, stage)                                                             \
    TUTTI_SCOPE_(tutti_stage_push(graph, stage), tutti_stage_pop(graph))
#define TUTTI_WITH_COLOCATION(graph, with)                                                         \
    TUTTI_SCOPE_(tutti_colocate_push(graph, with), tutti_colocate_pop(graph))

/* A device name, parsed: "/job:ps/replica:0/task:1/device:GPU:0", "/cpu:0", "far:1", "gpu:0/1".
 * Fields that are not given are "" or -1. */
typedef struct tutti_device_name {
    char job[64];
    int replica, task;
    char kind[32]; /* lower case: "cpu", "gpu", "far" */
    int index;
    int part; /* of "gpu:0/1" 1: a logical device, one of several that share the hardware */
} tutti_device_name;
TUTTI_API tutti_status tutti_device_parse(const char *text, tutti_device_name *ret);
/* Fields of `inner` win; those it leaves out come from `outer`. */
TUTTI_API tutti_device_name tutti_device_merge(const tutti_device_name *outer,
                                               const tutti_device_name *inner);
#define TUTTI_DEVICE_TEXT 192
TUTTI_API const char *tutti_device_text(const tutti_device_name *name,
                                        char ret_text[TUTTI_DEVICE_TEXT]);
/* The device of a process without job, replica and task: "cpu:0", "gpu:0/1". What is left out is
 * the first one; the kind, a cpu. */
TUTTI_API const char *tutti_device_local(const tutti_device_name *name,
                                         char ret_text[TUTTI_DEVICE_TEXT]);

/* Attributes of a node, by name, each with its kind. Ints, floats and the like are copied. */
typedef enum tutti_attr_kind {
    TUTTI_ATTR_NONE,
    TUTTI_ATTR_INT, /* also bool and dtype */
    TUTTI_ATTR_FLOAT,
    TUTTI_ATTR_STRING, /* bytes with a length */
    TUTTI_ATTR_INTS,
    TUTTI_ATTR_FLOATS,
    TUTTI_ATTR_TENSOR,
    TUTTI_ATTR_GRAPH, /* a sub-graph */
    TUTTI_ATTR_TYPES  /* a list of tutti_type */
} tutti_attr_kind;
typedef struct tutti_attr {
    const char *name;
    tutti_attr_kind kind;
    int32_t count; /* of ints, floats, types; length of a string */
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
        tutti_tensor *tensor;
        tutti_graph *graph;
        const tutti_type *types;
    } value;
} tutti_attr;

#define TUTTI_INT(name_, value_)                                                                   \
    ((tutti_attr){.name = (name_), .kind = TUTTI_ATTR_INT, .value.i = (value_)})
#define TUTTI_FLOAT(name_, value_)                                                                 \
    ((tutti_attr){.name = (name_), .kind = TUTTI_ATTR_FLOAT, .value.f = (value_)})
#define TUTTI_STR(name_, value_)                                                                   \
    ((tutti_attr){.name = (name_), .kind = TUTTI_ATTR_STRING, .count = -1, .value.s = (value_)})
#define TUTTI_INTS(name_, count_, values_)                                                         \
    ((tutti_attr){.name = (name_),                                                                 \
                  .kind = TUTTI_ATTR_INTS,                                                         \
                  .count = (int32_t)(count_),                                                      \
                  .value.ints = (values_)})
#define TUTTI_FLOATS(name_, count_, values_)                                                       \
    ((tutti_attr){.name = (name_),                                                                 \
                  .kind = TUTTI_ATTR_FLOATS,                                                       \
                  .count = (int32_t)(count_),                                                      \
                  .value.floats = (values_)})
#define TUTTI_TENSOR_ATTR(name_, value_)                                                           \
    ((tutti_attr){.name = (name_), .kind = TUTTI_ATTR_TENSOR, .value.tensor = (value_)})
#define TUTTI_GRAPH_ATTR(name_, value_)                                                            \
    ((tutti_attr){.name = (name_), .kind = TUTTI_ATTR_GRAPH, .value.graph = (value_)})
#define TUTTI_TYPES_ATTR(name_, count_, values_)                                                   \
    ((tutti_attr){.name = (name_),                                                                 \
                  .kind = TUTTI_ATTR_TYPES,                                                        \
                  .count = (int32_t)(count_),                                                      \
                  .value.types = (values_)})

/* Any operator by name, for those without a function of their own: users' operators too.
 *     tutti_sym y = tutti_apply_op(g, "mycompany.swish", 1, &x, 1, &TUTTI_FLOAT("beta", 1.5));
 * Handles (variables) among the inputs are read where the operator wants values. Tensors and
 * sub-graphs among the attributes are retained or copied. */
TUTTI_API tutti_sym tutti_apply_op(tutti_graph *graph, const char *op, int input_count,
                                   const tutti_sym *inputs, int attr_count,
                                   const tutti_attr *attrs);
#define tutti_apply_op(...) TUTTI_AT(tutti_apply_op(__VA_ARGS__))
/* The same with a wished name. */
TUTTI_API tutti_sym tutti_apply_op_named(tutti_graph *graph, const char *op, const char *name,
                                         int input_count, const tutti_sym *inputs, int attr_count,
                                         const tutti_attr *attrs);
#define tutti_apply_op_named(...) TUTTI_AT(tutti_apply_op_named(__VA_ARGS__))
/* Another output of the same node. */
TUTTI_API tutti_sym tutti_sym_output(tutti_sym sym, int index);
#define tutti_sym_output(...) TUTTI_AT(tutti_sym_output(__VA_ARGS__))
TUTTI_API int tutti_sym_output_count(tutti_sym sym);

/* Text, one line a node; and Graphviz. The string is from malloc. */
TUTTI_API tutti_status tutti_graph_print(const tutti_graph *graph, char **ret_text);
TUTTI_API tutti_status tutti_graph_dot(const tutti_graph *graph, char **ret_text);
/* Binary form: round-trips. *ret_data is from malloc. Reading hostile bytes is safe: counts, depth
 * and sizes are limited; only names of registered operators travel. */
TUTTI_API tutti_status tutti_graph_serialize(const tutti_graph *graph, void **ret_data,
                                             size_t *ret_size);
TUTTI_API tutti_status tutti_graph_deserialize(const void *data, size_t size,
                                               tutti_graph **ret_graph);
/* Everything a graph promises, checked: types by the operators' own rules, no cycles, names unique,
 * handles used as handles. */
TUTTI_API tutti_status tutti_graph_verify(const tutti_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
