/* walk.h: the walk over a job that builds one replica's part; shared by walk.c, forms.c, spread.c.
 */
#ifndef TUTTI_DIST_WALK_H
#define TUTTI_DIST_WALK_H

#include "dist/spread.h"

typedef enum tutti_form_kind {
    TUTTI_FORM_WHOLE,
    TUTTI_FORM_CUT,
    TUTTI_FORM_PARTIAL
} tutti_form_kind;

/* A value of the job as the replica has it. */
typedef struct tutti_form {
    tutti_form_kind kind;
    int dim; /* of a cut */
    tutti_edge edge;
} tutti_form;

enum { TUTTI_FORMS_MOST = 8 };
typedef struct tutti_value_forms {
    int count; /* the first is how it was made; others were turned from it */
    tutti_form forms[TUTTI_FORMS_MOST];
} tutti_value_forms;

/* node->scratch of the job's nodes. */
typedef struct tutti_walked {
    tutti_node *node;                 /* what control edges wait for */
    const struct tutti_walked *first; /* of the first replica's walk; NULL in that walk */
    tutti_value_forms *outputs;
} tutti_walked;

typedef struct tutti_walk {
    const tutti_spread *spread;
    tutti_graph *from, *to;
    int replica; /* of all */
    const char *device;
    int64_t first, rows; /* of the batch */
    int channel;         /* number of collectives so far: equal on all replicas */
    tutti_arena *scratch;
} tutti_walk;

/* Takes a node of the job whose inputs have been walked. */
tutti_status tutti__walk_node(tutti_walk *walk, tutti_node *node);

/* ---- forms.c ---- */
/* How the value was made. */
const tutti_form *tutti__form_made(tutti_edge edge);
/* Whether it is whole already, as it was made or because somebody wanted it so. */
bool tutti__form_is_known(tutti_edge edge);
/* The value in another form: found, or made by a collective, a slice, or by computing it so. */
tutti_status tutti__form_as(tutti_walk *walk, tutti_edge edge, tutti_form_kind kind, int dim,
                            tutti_edge *ret);
/* An all_reduce of `from` in the name of `like`. */
tutti_status tutti__form_reduce(tutti_walk *walk, const tutti_node *like, const char *how,
                                tutti_edge from, tutti_edge *ret);
/* The same for the replica's nodes of the tree over the shards. */
tutti_status tutti__form_reduce_shards(tutti_walk *walk, const tutti_node *like, int blocks,
                                       tutti_edge from, tutti_edge *ret);
/* Whether a dimension can be cut as the batch is: a multiple of it. */
bool tutti__form_divides(const tutti_walk *walk, int64_t size);
/* That size on this replica, and where it begins. */
int64_t tutti__form_size(const tutti_walk *walk, int64_t size);
int64_t tutti__form_start(const tutti_walk *walk, int64_t size);

/* ---- bucket.c ---- */
/* Joins sums over the replicas; leaves the graph sorted. */
tutti_status tutti__spread_buckets(tutti_graph *graph, const tutti_spread *spread);

/* ---- order.c ---- */
/* Puts nodes, of which those from `known` on are new, where they stand alike in all processes. */
tutti_status tutti__spread_order(tutti_graph *graph, size_t known);

/* ---- early.c ---- */
/* Orders a graph whose buckets are started and waited for: what they need comes first. */
tutti_status tutti__spread_early(tutti_graph *graph);
/* updated.c: the variable whose update, or that of whose slot, comes first behind a gradient; *ret
 * is NULL where none does. */
tutti_status tutti__spread_updated(const tutti_graph *graph, const tutti_node *gradient,
                                   const tutti_node **ret);
/* Its name in the state; of a slot that of its variable. */
const char *tutti__spread_name(const tutti_node *variable);

/* ---- walk.c ---- */
/* The ways to cut a node of the job. */
int tutti__walk_ways(const tutti_node *node, int capacity, tutti_split *ret);
/* A copy of the node in the replica's graph with these inputs, cut in that way; NULL: whole. */
tutti_status tutti__walk_copy(tutti_walk *walk, const tutti_node *node, const tutti_edge *inputs,
                              const tutti_split *way, tutti_node **ret);
/* A new node beside what it stands for. */
tutti_status tutti__walk_add(tutti_walk *walk, const tutti_node *like, const char *op,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret);

tutti_status tutti__walk_no_memory(void);
/* How output `output` of the node that is being walked came to be. */
void tutti__walk_made(tutti_walked *mark, int output, tutti_form form);
/* Takes the node whole: every replica does all of it. */
tutti_status tutti__walk_whole(tutti_walk *walk, tutti_node *node, tutti_walked *mark);

/* ---- copy.c ---- */
tutti_status tutti__walk_copy_controls(const tutti_walk *walk, const tutti_node *node,
                                       tutti_node *copy);
tutti_attr *tutti__walk_attr(tutti_node *node, const char *name);

/* ---- partial.c ---- */
/* Whether what goes in partial comes out so; and then. */
bool tutti__walk_passes_partial(const tutti_node *node);
tutti_status tutti__walk_copy_partial(tutti_walk *walk, tutti_node *node, tutti_walked *mark);
/* A variable whose copies are not to be put together must not be read for all replicas. */
tutti_status tutti__walk_check_read(const tutti_walk *walk, const tutti_node *node);
/* The copy of a variable of which all replicas have the same value after all says so. */
void tutti__walk_keep_whole(const tutti_walk *walk, const tutti_node *node, tutti_node *copy);
/* Whether it reads or updates a variable of which replicas have values of their own; and then. */
bool tutti__walk_takes_partial(const tutti_walk *walk, const tutti_node *node);
tutti_status tutti__walk_copy_accumulated(tutti_walk *walk, tutti_node *node, tutti_walked *mark);

/* ---- sparse.c ---- */
/* Whether an update's rows are summed as a table; and then. */
bool tutti__walk_makes_dense(const tutti_walk *walk, const tutti_node *node);
tutti_status tutti__walk_copy_dense(tutti_walk *walk, tutti_node *node, tutti_walked *mark);

/* ---- summed.c ---- */
/* Whether a way gives a sum over the batch; and then, in deterministic mode. */
bool tutti__walk_is_summed(const tutti_node *node, const tutti_split *way);
tutti_status tutti__walk_copy_summed(tutti_walk *walk, tutti_node *node, const tutti_split *way,
                                     tutti_walked *mark);

/* ---- special.c ---- */
bool tutti__walk_is_group(const tutti_node *node);
/* `own` holds this process's rows of the node's output: this replica's part of them. */
tutti_status tutti__walk_take_rows(tutti_walk *walk, tutti_node *node, int output, tutti_edge own,
                                   tutti_walked *mark);
tutti_status tutti__walk_take_parameter(tutti_walk *walk, tutti_node *node, tutti_walked *mark);
tutti_status tutti__walk_take_group(tutti_walk *walk, tutti_node *node, tutti_walked *mark);
tutti_status tutti__walk_take_print(tutti_walk *walk, tutti_node *node, tutti_walked *mark);
/* Of central storage; false: the node has nothing to do with a variable. */
bool tutti__walk_take_central(tutti_walk *walk, tutti_node *node, tutti_walked *mark,
                              tutti_status *ret_status);

/* ---- queues.c ---- */
bool tutti__walk_is_queue(const tutti_node *node);
tutti_status tutti__walk_take_queue(tutti_walk *walk, tutti_node *node, tutti_walked *mark);
/* A step that ends because rows are missing does so when all its meetings are over: no process, and
 * no device of one, is left in one that others never come to. */
tutti_status tutti__spread_end_last(tutti_graph *graph);

#endif
