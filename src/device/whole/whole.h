/* whole.h: what the parts of the whole target share.
 *
 * Invariants:
 *  1. A graph is evaluated as a function: an update takes the old values of its variables and gives
 * new tensors. Nothing is written in place.
 *  2. Nodes that follow an update, or receive what follows one, are late: they are evaluated inside
 * the commit, on the values that variables have then, so that updates of concurrent runs all count.
 * Only where late nodes can fail and meet other devices do they start from the values of before.
 *  3. New values replace the old ones when all of them are ready. A failure before that changes
 * nothing. */
#ifndef TUTTI_DEVICE_WHOLE_WHOLE_H
#define TUTTI_DEVICE_WHOLE_WHOLE_H

#include "program/program.h"

typedef struct tutti_whole_variable {
    tutti_piece *piece;
    bool needed; /* its value of before the step is used */
    bool updated;
} tutti_whole_variable;

#define TUTTI_WHOLE_KEPT UINT32_MAX

typedef struct tutti_whole_executable {
    tutti_executable executable;
    const tutti_device *device;
    tutti_graph *graph;
    tutti_arena arena; /* of the arrays here */
    int variable_count;
    tutti_whole_variable *variables;
    /* By node id. */
    int32_t *variable_of; /* variables: index; others: -1 */
    int32_t *follows; /* reads: id of the update whose value they give, -1: the value of before the
                         step */
    bool *late;
    const tutti_kernel *
        *runner;           /* kernels of the runner: send, recv, collectives; NULL: the reference */
    uint32_t *traced;      /* what the trace knows the node by; 0: it computes nothing */
    uint32_t *last_reader; /* id of the node after which its values go; TUTTI_WHOLE_KEPT: none */
    size_t most_bytes;     /* of values, at any moment of a run */
    uint32_t lane;
    /* Something late can fail, here or on another device. It is then evaluated before the commit
     * point: as a rehearsal, or, where it meets other devices, for good. */
    bool shadows, meets_late;
} tutti_whole_executable;

/* Analyses a partition; the executable holds it from then on. Free it also after failure. */
tutti_status tutti__whole_analyse(tutti_whole_executable *executable,
                                  const tutti_partition *partition);
/* Finds how long values live; `late` is known. */
tutti_status tutti__whole_lifetimes(tutti_whole_executable *executable);
/* Whether the target can run a node. */
bool tutti__whole_supports(const tutti_device *device, const tutti_node *node);

/* One run. Tensors are on the host: this target's own memory while it computes. */
typedef struct tutti_whole_run {
    const tutti_whole_executable *executable;
    tutti_run *run;
    tutti_tensor *const *inputs;
    tutti_tensor **before;   /* by variable: before the step, or NULL */
    tutti_tensor **newest;   /* by variable: after the updates so far, or NULL */
    bool committing;         /* updates start from the state's values, not from `before` */
    bool late_done;          /* late nodes have been evaluated for good */
    tutti_tensor ***values;  /* by node id: per output */
    tutti_tensor ***updated; /* by id of an update: per input, the variable's value after it */
} tutti_whole_run;

/* Evaluates the nodes that are late, or those that are not. */
tutti_status tutti__whole_evaluate(tutti_whole_run *r, bool late);
/* Releases the values that nothing reads after this node, which has run. */
void tutti__whole_let_go(tutti_whole_run *r, const tutti_node *reader);
/* Evaluates a sub-graph on arguments; ret_results gets a tensor per result. */
tutti_status tutti__whole_body(tutti_whole_run *r, const tutti_graph *body, int count,
                               tutti_tensor *const *arguments, tutti_tensor **ret_results);
/* Runs a cond or a while. */
tutti_status tutti__whole_control(tutti_whole_run *r, const tutti_node *node,
                                  tutti_tensor *const *inputs, tutti_tensor **ret_outputs);
/* Runs a node by its reference kernel, or as control flow. An update writes the tensors that stand
 * for its variables among the inputs. */
tutti_status tutti__whole_node(tutti_whole_run *r, const tutti_node *node,
                               tutti_tensor *const *inputs, tutti_tensor **ret_outputs);

#endif
