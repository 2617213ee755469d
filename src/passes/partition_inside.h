/* partition_inside.h: the pieces being built, shared by partition.c and transfer.c only. */
#ifndef TUTTI_PASSES_PARTITION_INSIDE_H
#define TUTTI_PASSES_PARTITION_INSIDE_H

#include "passes/pass.h"

typedef struct tutti_carried { /* an edge that arrived in a piece */
    tutti_edge edge;           /* of the job; node NULL ends */
    bool control;
    tutti_node *recv;
} tutti_carried;

typedef struct tutti_sent {   /* what other devices wait for: an edge that left a piece, a send, a
                           collective */
    const tutti_node *source; /* of the job */
    int from;
    tutti_node *send;
} tutti_sent;

typedef struct tutti_last_collective { /* of a piece */
    tutti_node *node;
    size_t sends; /* as many had left the pieces when it was added */
} tutti_last_collective;

typedef struct tutti_partitioner {
    tutti_graph *job;
    int count;
    tutti_piece_graph *pieces;
    tutti_node ***maps;                 /* by piece, by job id: the node's copy */
    TUTTI_VEC(tutti_carried) * arrived; /* by piece */
    int *home;                          /* by job id: piece, or -1 for constants and parameters */
    bool *late; /* by job id: follows an update, so it is known after the commit only */
    const tutti_node **order; /* of the job's nodes, in which they are added */
    bool around_commit; /* in that order, what follows an update stands behind all that does not */
    const tutti_node **partner;             /* by job id: see meet.h */
    int *number;                            /* by job id: of collectives without a channel */
    tutti_last_collective *last_collective; /* by piece */
    tutti_node **last_send;                 /* by piece */
    TUTTI_VEC(tutti_sent) sends;
    bool *seen; /* by job id: scratch of transfer.c */
    const tutti_node **stack;
    int front_count; /* 0: the job is of one process */
    const char *const *fronts;
} tutti_partitioner;

/* Constants that wait for nothing, and parameters, stand in every piece that uses them. */
static inline bool tutti__floats(const tutti_node *node)
{
    return (tutti__is(node, "constant") && node->control_count == 0) ||
           tutti__is(node, "parameter");
}

/* A copy of a node in a piece, without inputs and controls. */
tutti_status tutti__partition_copy(tutti_partitioner *b, int piece, const tutti_node *node);

/* An edge of the job as an edge in a piece: of the node's copy, or of a recv. */
tutti_status tutti__partition_edge(tutti_partitioner *b, tutti_edge edge, int piece,
                                   tutti_edge *ret);
/* A node to wait for, the same way. */
tutti_status tutti__partition_control(tutti_partitioner *b, tutti_node *before, int piece,
                                      tutti_node **ret);
/* Who waits for a send, or meets after others have met, only keeps an order (tutti__keeps_order).
 * Who depends on them follows what they follow too, and so sees the updates before them. */
tutti_status tutti__partition_follow(tutti_node *node, const tutti_node *before);
/* The copy of a collective: gets its channel, and its place among the piece's others. */
tutti_status tutti__partition_collective(tutti_partitioner *b, int piece, const tutti_node *node,
                                         tutti_node *copy);
/* A node that has its copy, if it is a user's own send or recv. */
tutti_status tutti__partition_own(tutti_partitioner *b, const tutti_node *node);

#endif
