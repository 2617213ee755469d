/* graph.h: the graph from inside. Passes and strategies rewrite graphs through this header.
 *
 * Invariants:
 *  1. Nodes, names and attributes live in the graph's arena and die with it.
 *  2. node->id is its index in graph->nodes; inputs come before their users (ids ascend along data
 *     and control edges), so the node array is a topological order. A pass that rewires nodes calls
 *     tutti__graph_sort at its end, which restores this and drops dead nodes.
 *  3. Every output has a type; after specialisation every dimension is known.
 *  4. A dead node stays in the array with `dead` set until graph compaction.
 */
#ifndef TUTTI_GRAPH_GRAPH_H
#define TUTTI_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/container.h"
#include "tutti/gradients.h"
#include "tutti/op.h"
#include "tutti/reduction.h"

/* How one edge lies over the device mesh, axis by axis (mesh.h): the same everywhere, cut along a
 * dimension, the reduction of what the ranks have, or each rank's own, which follows from its
 * position. Of several axes that cut one dimension the first is outermost. */
typedef enum tutti_shard_kind {
    TUTTI_REPLICATED,
    TUTTI_SPLIT,
    TUTTI_PARTIAL,
    TUTTI_VARYING
} tutti_shard_kind;
typedef struct tutti_axis_shard {
    const char *axis; /* of the mesh */
    tutti_shard_kind kind;
    int dimension;             /* for TUTTI_SPLIT */
    tutti_reduction reduction; /* for TUTTI_PARTIAL */
} tutti_axis_shard;
typedef struct tutti_sharding {
    int count;
    const tutti_axis_shard *shards;
} tutti_sharding;

typedef struct tutti_edge {
    tutti_node *node;
    uint32_t index;
} tutti_edge;

struct tutti_node {
    tutti_graph *graph;
    uint32_t id, generation;
    const tutti_op *op;
    const char *name;
    const char *origin;         /* name before rewrites: what random numbers and messages go by */
    const char *device;         /* "" when free; the placer writes the full name */
    const tutti_node *colocate; /* or NULL */
    const char *file;           /* of the user, or NULL */
    int line;
    int input_count, control_count, attr_count, output_count;
    tutti_edge *inputs;
    tutti_node **controls;
    tutti_node **grown; /* `controls`, where tutti__node_after made room for more */
    int grown_room;
    tutti_attr *attrs;                /* in the order of op->attrs */
    tutti_type *types;                /* per output */
    const tutti_sharding **shardings; /* per output; the array or an entry may be NULL */
    tutti_edge current;               /* handles: the read that uses share; node NULL: none yet */
    tutti_node *updated; /* handles in a trace: the last update, which later reads follow */
    /* What may be computed a second time for the gradients (passes/remat.c). */
    uint32_t region; /* the scope or call of a layer that it was made in; 0: none */
    bool remat;      /* all of the region is to be */
    bool backward;   /* made by differentiation */
    bool recomputed; /* it is such a second time */
    int stage;       /* of a pipeline; 0: the first, or whatever reads it */
    bool dead;
    void *scratch; /* of the pass that runs; no pass relies on another's */
};

typedef struct tutti_scope {
    enum {
        TUTTI_SCOPE_NAME,
        TUTTI_SCOPE_DEVICE,
        TUTTI_SCOPE_DEVICE_FN,
        TUTTI_SCOPE_CONTROL,
        TUTTI_SCOPE_COLOCATE,
        TUTTI_SCOPE_REGION,
        TUTTI_SCOPE_STAGE
    } kind;
    const char *text; /* full name prefix, or the device as this scope alone gives it */
    tutti_device_fn *fn;
    void *context;
    int control_count;
    tutti_node **controls;
    const tutti_node *colocate;
    uint32_t region;
    bool remat;
    int stage;
    bool exact; /* whatever the inputs' stages are */
} tutti_scope;

/* Called with the gradient of `edge` when it is complete; what it returns takes its place. */
typedef struct tutti_gradient_hook {
    tutti_edge edge;
    tutti_grad (*fn)(tutti_sym forward, tutti_grad grad, void *context);
    void *context;
} tutti_gradient_hook;

struct tutti_graph {
    _Atomic int references;
    tutti_arena arena;
    TUTTI_VEC(tutti_node *) nodes;
    tutti_map by_name;
    TUTTI_VEC(tutti_edge) results;   /* of a sub-graph or partition: what it returns */
    TUTTI_VEC(tutti_node *) targets; /* of a sub-graph or partition: what it runs for its effect */
    TUTTI_VEC(tutti_scope) scopes;
    size_t lost_scopes; /* open ones that stand in no list: there was no memory for the first */
    TUTTI_VEC(tutti_tensor *) tensors; /* retained by attributes */
    TUTTI_VEC(tutti_graph *) graphs;   /* retained by attributes; sealed: no longer built */
    tutti_error error;                 /* the first mistake */
    uint32_t generation;
    uint64_t version; /* counts changes; caches are keyed by it */
    uint64_t serial;  /* unique in the process */
    TUTTI_VEC(tutti_gradient_hook) hooks;
    /* While a tape differentiates: gradients flow through nodes [first, last) and reads only; last
     * 0: all. */
    struct {
        uint32_t first, last;
    } recorded;
    uint32_t regions;   /* the last one's number */
    int differentiated; /* more than 0 while gradients are being made */
    tutti_map taken; /* by a name that was wished again: the last number (unsigned) put behind it */
    /* A trace of a tape: names are not looked up, updates take effect in the order of building. */
    bool trace;
    uint32_t initializers; /* of a trace: made since tutti__graph_reset and not run by themselves */
    uint32_t drawn; /* of a trace: unnamed random nodes since tutti__graph_reset; see random_salt */
    /* Of a trace: handles live here through tutti__graph_reset, and so does the memory of all
     * nodes, so that symbols of earlier steps can be told. */
    tutti_arena *lasting;
    TUTTI_VEC(tutti_node *) spare; /* nodes of earlier steps, to be used again */
    void *owner;                   /* of a trace: its tape */
    /* Of a trace: whether the variable has a value already, so that none is to be assigned. */
    bool (*holds)(const tutti_graph *graph, const char *shared_name);
    void *building;   /* nn's: what is being built into this graph, or NULL */
    void *optimizers; /* nn's: those that were applied, in the memory that lasts; or NULL */
    struct tutti_inspection *inspection; /* inspect.h's: values marked by name, or NULL */
};

/* Sub-graphs: parameters are nodes of operator "parameter" with attribute "index". */

/* Adds a node. Attributes may come in any order and leave defaults out. Runs the shape rule. On
 * error records the mistake and returns a status; *ret_node untouched. */
tutti_status tutti__node_add(tutti_graph *graph, const tutti_op *op, const char *name,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret_node);

/* Adds a node as it once was: operator, inputs, name, origin, device (strings of the graph's arena)
 * and number of outputs are those of `like`; no scope is applied, no user place is noted, and the
 * name cannot be looked up yet. */
tutti_status tutti__node_restore(tutti_graph *graph, const tutti_node *like, int attr_count,
                                 const tutti_attr *attrs, tutti_node **ret_node);

/* Builder with sticky error: as tutti_apply_op_named, but with the operator at hand. */
tutti_sym tutti__build(tutti_graph *graph, const tutti_op *op, const char *name, int input_count,
                       const tutti_sym *inputs, int attr_count, const tutti_attr *attrs);

/* Whether it is one of ours; else a user has registered it. */
bool tutti__op_is_built_in(const tutti_op *op);

/* After a failure of the node at run time: a message that begins with its name, "op 'name': …",
 * gets the user's place there, where it is known, and one that names no place at its end. Returns
 * the status. */
tutti_status tutti__node_failed(const tutti_node *node, tutti_status status);
/* " (file:line)" where the user built the node, for messages; "" where that is not known, as of a
 * graph that was read. */
enum { TUTTI_PLACE_TEXT = 512 };
const char *tutti__node_place(const tutti_node *node, char text[TUTTI_PLACE_TEXT]);
/* What a call returns whose mistake no graph could note, since none was given: no symbol, as
 * TUTTI_NO_SYM is none, but not one that was never set. A run refuses it as its target. */
#define TUTTI_POISON ((tutti_sym){.index = UINT32_MAX})
/* Notes the first mistake, with the current user place; returns poison. Where the graph is NULL the
 * thread's message is all that is left of it. */
tutti_sym tutti__poison(tutti_graph *graph, tutti_status status, const char *format, ...)
    TUTTI_PRINTF(3, 4);
/* Whether a symbol can be used in the graph now: it was set, and is of this graph and of this step
 * of a tape. The message begins with `what` and, unless negative, its number: "input 2 …". */
tutti_status tutti__sym_usable(const tutti_graph *graph, tutti_sym sym, const char *what,
                               int number);

static inline tutti_sym tutti__sym(tutti_node *node, uint32_t index)
{
    return (tutti_sym){node, index, node->generation};
}
static inline tutti_edge tutti__edge(tutti_sym sym)
{
    return (tutti_edge){sym.node, sym.index};
}
static inline const tutti_type *tutti__edge_type(tutti_edge e)
{
    return &e.node->types[e.index];
}
/* Of a job whose feeds are known: a value whose shape depends on data. */
static inline bool tutti__type_by_data(const tutti_type *type)
{
    return !type->handle && !tutti_type_is_static(type);
}

/* What a rule is asked about a node; `inputs` has room for the types of its inputs. */
static inline tutti_infer tutti__node_rule(const tutti_node *node, tutti_type *inputs)
{
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = *tutti__edge_type(node->inputs[i]);
    return (tutti_infer){.op = node->op,
                         .name = node->name,
                         .input_count = node->input_count,
                         .output_count = node->output_count,
                         .inputs = inputs,
                         .attrs = node->attrs,
                         .attr_count = node->attr_count,
                         .outputs = node->types};
}

/* The value of a variable: a "read" node, shared while no control scope is in force. */
tutti_status tutti__handle_read(tutti_graph *graph, tutti_edge handle, tutti_edge *ret);

/* What is made from now on is a region: see tutti_node. `region` 0: a new one. Of regions inside
 * each other the outermost counts that is to be computed again, or the innermost. */
void tutti__region_push(tutti_graph *graph, uint32_t region, bool remat);
void tutti__region_pop(tutti_graph *graph);

/* The marks of tutti_node that a node gets which stands for another one. */
static inline void tutti__node_mark_like(tutti_node *node, const tutti_node *like)
{
    node->region = like->region;
    node->remat = like->remat;
    node->backward = like->backward;
    node->recomputed = like->recomputed;
    node->stage = like->stage;
}

/* Around what differentiation makes: of the stage of what it differentiates. */
void tutti__stage_push_exact(tutti_graph *graph, int stage);
enum { TUTTI_STAGES_MOST = 4096 };

/* Adds a control edge: `node` waits for `after` (which must have a smaller id). */
tutti_status tutti__node_after(tutti_node *node, tutti_node *after);

/* One more owner; tutti_graph_destroy gives one up. */
tutti_graph *tutti__graph_retain(tutti_graph *graph);

/* Reads text as an attribute of the given kind: "0" "1.5" "true" "[1,2]" "f32" "same". Lists and
 * strings go into the arena. */
tutti_status tutti__attr_parse(tutti_arena *arena, const tutti_attr_spec *spec, const char *text,
                               tutti_attr *ret_attr);

/* Appends a result to a sub-graph. */
tutti_status tutti__graph_result(tutti_graph *graph, tutti_edge edge);

/* Deep copy, dead nodes left out; ret_map (optional) gets, per old id, the new node or NULL. */
tutti_status tutti__graph_copy(const tutti_graph *graph, tutti_graph **ret_graph,
                               tutti_node ***ret_map);

/* What fetches and targets need, as a graph of its own: fed edges become "parameter" nodes of the
 * given types (index = position), results are the fetches, targets the targets. Types of the other
 * nodes are as they were; names are kept. ret_graph's nodes know their origin. */
typedef struct tutti_extract {
    int feed_count, fetch_count, target_count;
    const tutti_edge *feeds, *fetches;
    const tutti_type *feed_types;
    tutti_node *const *targets;
} tutti_extract;
tutti_status tutti__graph_extract(const tutti_graph *graph, const tutti_extract *wanted,
                                  tutti_graph **ret_graph);

/* Marks dead what neither results nor targets need, then sorts. Parameters stay. */
tutti_status tutti__graph_prune(tutti_graph *graph);

/* Restores invariant 2 and drops dead nodes, and control edges from them. INTERNAL error on a
 * cycle. */
tutti_status tutti__graph_sort(tutti_graph *graph);

/* Rewires every use of `from` (inputs and results) to `to`. */
void tutti__graph_replace(tutti_graph *graph, tutti_edge from, tutti_edge to);

/* Following what nodes are colocated with always ends; TUTTI_INVALID names a node where it does
 * not. */
tutti_status tutti__graph_check_colocation(const tutti_graph *graph);
/* Parameters have indices of their own, from 0; TUTTI_INVALID names one that has not. */
tutti_status tutti__graph_check_parameters(const tutti_graph *graph);

/* Runs a node's shape rule on its present inputs; `values` (optional) are known input values. */
tutti_status tutti__node_infer(tutti_node *node, tutti_tensor *const *values,
                               tutti_type *ret_types);

/* The same with the values of those inputs that are constants. */
tutti_status tutti__node_infer_known(tutti_node *node, tutti_type *ret_types);

/* Whether two graphs are the same in structure: operators, attributes, types, edges, devices,
 * results, targets; not names. A hash of just that. */
bool tutti__graph_same(const tutti_graph *a, const tutti_graph *b);
uint64_t tutti__graph_hash(const tutti_graph *graph);
bool tutti__attr_equal(const tutti_attr *a, const tutti_attr *b);
uint64_t tutti__attr_hash(uint64_t seed, const tutti_attr *attr);
uint64_t tutti__hash_type(uint64_t seed, const tutti_type *type);

/* A node's work by its operator's cost rule, and the floating-point operations of it; 0 where
 * shapes are not known. */
tutti_cost tutti__node_cost(const tutti_node *node);
double tutti__node_flops(const tutti_node *node);
/* Of all nodes, and of those that are computed again. */
double tutti__graph_flops(const tutti_graph *graph, double *ret_recomputed);

/* Attributes of a node by name. */
static inline int64_t tutti__int(const tutti_node *n, const char *name)
{
    return tutti_attr_int(n->attrs, n->attr_count, name);
}
static inline double tutti__float(const tutti_node *n, const char *name)
{
    return tutti_attr_float(n->attrs, n->attr_count, name);
}
static inline const char *tutti__str(const tutti_node *n, const char *name)
{
    return tutti_attr_string(n->attrs, n->attr_count, name);
}
static inline bool tutti__is(const tutti_node *n, const char *op)
{
    return n->op->name[0] == op[0] && __builtin_strcmp(n->op->name, op) == 0;
}

/* The name that a handle's variable or queue has in the state. */
static inline const char *tutti__state_name(const tutti_node *handle)
{
    const char *shared = tutti__str(handle, "shared_name");
    return shared[0] ? shared : handle->name;
}

/* The number of the parameter of a body behind an edge; -1 when it is none. */
static inline int tutti__parameter_of(tutti_edge e)
{
    return tutti__is(e.node, "parameter") ? (int)tutti__int(e.node, "index") : -1;
}

#endif
