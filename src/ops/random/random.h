/* random.h: what the random operators share. */
#ifndef TUTTI_OPS_RANDOM_RANDOM_H
#define TUTTI_OPS_RANDOM_RANDOM_H

#include "ops/random/draw.h"
#include "ops/state/state.h"

/* Attributes of every random operator; the operator's own follow. */
#define TUTTI_RANDOM_ATTRS                                                                         \
    {"seed", TUTTI_ATTR_INT, "0"}, {"salt", TUTTI_ATTR_INT, "0"},                                  \
        {"global_dims", TUTTI_ATTR_INTS, "[]"},                                                    \
    {                                                                                              \
        "start", TUTTI_ATTR_INTS, "[]"                                                             \
    }

/* Input 0 is the counter; the attributes of pieces fit `output`. */
tutti_status tutti__need_counter(const tutti_infer *node);
tutti_status tutti__need_piece(const tutti_infer *node, const tutti_type *output);
/* Shape rule of (counter) with "dims", or (counter, like): output of "dtype". */
tutti_status tutti__infer_random(tutti_infer *node);
/* The same for floats only. */
tutti_status tutti__infer_random_floats(tutti_infer *node);
/* Cuts along every axis of the output; the piece's place goes into the attributes, as of every
 * operator marked TUTTI_OP_RANDOM. */
int tutti__split_random(const tutti_infer *node, int capacity, tutti_split *ret);
/* About 40 operations an element. */
void tutti__cost_random(const tutti_infer *node, tutti_cost *ret);

/* The graph's step counter: in a body an argument of the body, else the variable
 * "tutti/random_counter" (an i64 scalar), made on first use. */
#define TUTTI_RANDOM_COUNTER "tutti/random_counter"
tutti_sym tutti__random_counter(tutti_graph *graph);
/* Whether this step of a trace gives the counter its first value, or would if something drew. */
bool tutti__random_begins(tutti_graph *graph);
/* What tells a random node from others of one seed: its name. In a trace, whose names depend on
 * what was made before, that is the name which was `wished`, in its scopes, as a graph would have
 * it; or without one (NULL) its number among those of the step: a step that is repeated or restored
 * draws with the same salts. `own_counter`: it draws by a counter of its own, not the graph's. */
int64_t tutti__random_salt(const tutti_node *node, const char *wished, bool own_counter);

/* Builds a random node: input 0 the options' counter or the graph's, then `inputs`; gives it its
 * seed, and a salt from its name. */
tutti_sym tutti__random_build(tutti_graph *graph, const tutti_op *op,
                              const tutti_random_options *options, int input_count,
                              const tutti_sym *inputs, int attr_count, const tutti_attr *attrs);
/* For operators of a type: attributes "dtype", "dims" and two numbers, and options->like. */
tutti_sym tutti__random_build_type(tutti_graph *graph, const tutti_op *op, tutti_type type,
                                   const tutti_random_options *options, int attr_count,
                                   const tutti_attr *attrs);

/* Of operators with attributes mean and stddev. */
tutti_status tutti__infer_normal(tutti_infer *node);
/* y = mean + stddev z, z = normal(key, index). */
tutti_status tutti__normal_reference(const tutti_kernel_call *call,
                                     double (*normal)(tutti_random_key key, uint64_t index));

#endif
