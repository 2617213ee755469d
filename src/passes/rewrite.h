/* rewrite.h: how a pass replaces nodes while it walks over a graph.
 *
 * Invariants:
 *  1. Nodes are visited once, in topological order; when one is visited, its inputs and control
 * edges are already what earlier replacements made of them.
 *  2. A replacement has the type of what it replaces.
 *  3. At the end results, targets and colocations follow the replacements, and what nothing needs
 * any more is pruned; but a node with an effect (an update, a queue, a print) that was needed
 * before is needed ever after: it becomes a target if nothing else asks for it.
 *  4. A pinned node keeps its place: it waits for a control edge, is waited for by one, is a
 * target, or says how its value is sharded. Its value may still be seen through, values are
 * pure; but what a rule of tutti__rewrite_nodes makes waits for what was waited for before, and a
 * rule that gives what was there and waits for less is not followed.
 */
#ifndef TUTTI_PASSES_REWRITE_H
#define TUTTI_PASSES_REWRITE_H

#include "passes/pass.h"

typedef struct tutti_rewrite_mark {
    tutti_edge *to;      /* per output, or NULL: what stands for it now; node NULL: itself */
    bool pinned, needed; /* needed: for a result or target, at the start */
    tutti_node *gate;    /* see tutti__gate */
} tutti_rewrite_mark;

typedef struct tutti_rewrite {
    tutti_graph *graph;
    const tutti_pass_context *context;
    size_t node_count;         /* those that were there at the start: they are visited */
    tutti_rewrite_mark *marks; /* of these; node->scratch points here */
    int changes;
    bool leftovers; /* nodes that a rule made and that nobody uses */
} tutti_rewrite;

tutti_status tutti__rewrite_begin(tutti_rewrite *rewrite, tutti_graph *graph,
                                  const tutti_pass_context *context);
/* Ends a rewrite in any case; with TUTTI_OK the graph is put in order and *ret_changes written. */
tutti_status tutti__rewrite_end(tutti_rewrite *rewrite, tutti_status status, int *ret_changes);

/* What stands for an edge now. */
tutti_edge tutti__rewrite_now(tutti_edge edge);
/* Rewires a node to what stands for its inputs and control edges now. */
void tutti__rewrite_visit(tutti_node *node);
/* From now on `to` stands for an output of a node that was there at the start. */
tutti_status tutti__rewrite_replace(tutti_rewrite *rewrite, tutti_node *node, uint32_t output,
                                    tutti_edge to);
bool tutti__rewrite_pinned(const tutti_node *node);

/* A new node in the name and place of `like`: name, origin, device, colocation, user's line. */
tutti_status tutti__rewrite_add(tutti_rewrite *rewrite, const tutti_node *like, const char *op,
                                int input_count, const tutti_edge *inputs, int attr_count,
                                const tutti_attr *attrs, tutti_edge *ret);
/* New constants; the tensor is retained. */
tutti_status tutti__rewrite_constant(tutti_rewrite *rewrite, const tutti_node *like,
                                     tutti_tensor *value, tutti_edge *ret);
tutti_status tutti__rewrite_scalar(tutti_rewrite *rewrite, const tutti_node *like,
                                   tutti_dtype dtype, double value, tutti_edge *ret);
/* `x` under other dimensions; x itself when it has them. */
tutti_status tutti__rewrite_reshape(tutti_rewrite *rewrite, const tutti_node *like, tutti_edge x,
                                    int rank, const int64_t *dims, tutti_edge *ret);

/* Looks at one node and writes what should stand for its output 0, or leaves *ret as it is. */
typedef tutti_status tutti_rewrite_rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret);
/* A rule asked at every node that is not pinned, and again at the nodes that it makes. */
tutti_status tutti__rewrite_nodes(tutti_graph *graph, const tutti_pass_context *context,
                                  tutti_rewrite_rule *rule, int *ret_changes);

/* Marks, by id, what results and targets of a sorted graph need. */
void tutti__mark_needed(const tutti_graph *graph, bool *seen);
/* Whether it changes something besides its outputs. */
bool tutti__has_effect(const tutti_node *node);
/* The node whose end is enough for all that a node follows by control edges, its own and those of
 * what it is made of, and for the updates among these: one of them, or itself where it follows
 * several; NULL: it follows none. `known` gives that of its inputs. */
tutti_node *tutti__gate(tutti_node *node, tutti_node *(*known)(const tutti_node *));
/* In a rewrite: whether a node follows any. */
bool tutti__rewrite_waits(const tutti_node *node);

/* The value of an edge that is a constant, or NULL; also where it waits for something. */
tutti_tensor *tutti__constant_of(tutti_edge edge);
/* Whether every element is known to be one number. */
bool tutti__splat_of(tutti_edge edge, double *ret_value);
/* A function of its inputs and nothing else, that cannot fail; some of it may be left out. */
bool tutti__is_pure(const tutti_node *node);
/* Same dimensions; the element types may differ. */
bool tutti__same_dims(const tutti_type *a, const tutti_type *b);
/* Size in bytes; 0 when it is not known. */
int64_t tutti__known_bytes(const tutti_type *type);
/* The order of a transpose: axis i of the output is axis order[i] of the input. */
void tutti__transpose_order(const tutti_node *node, int ret_order[TUTTI_MAX_RANK]);
/* Whether the axes of more than 1 keep their order: then a transpose moves no element. */
bool tutti__order_moves_nothing(int rank, const int64_t *dims, const int *order);

#endif
