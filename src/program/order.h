/* order.h: the parts of ordering to each other: order.c makes values and instructions, sequence.c
 * says in which order, updates.c decides what becomes of the values of variables around their
 * updates. */
#ifndef TUTTI_PROGRAM_ORDER_H
#define TUTTI_PROGRAM_ORDER_H

#include "base/pointers.h"
#include "program/program.h"

typedef struct tutti_order {
    tutti_program *program;
    tutti_graph *graph;
    tutti_arena *arena;
    size_t node_count;
    bool *commits;     /* by node id: an update or something that follows one */
    bool *runs;        /* by node id: becomes an instruction */
    int32_t *base;     /* by node id: index of its first value */
    int32_t *moved;    /* by node id: the copy that its first value is read from now, or -1 */
    int32_t *position; /* by node id: its place in the sequence */
    tutti_node **sequence;
    size_t sequence_count;
    TUTTI_VEC(tutti_program_value) values;
    TUTTI_VEC(tutti_instruction) instructions;
    tutti_pointers slots; /* of the variables, by the piece of state that they are */
    int32_t *shadow; /* by variable: value that stands in for it, or -1; NULL: there are none */
    struct tutti_order_index *index; /* of updates.c */
} tutti_order;

/* Fills `sequence` and `position`. */
tutti_status tutti__order_sequence(tutti_order *o);
/* A new value; root -1: it has memory of its own. Its index, or -1 without memory. */
int32_t tutti__order_value(tutti_order *o, tutti_program_value value);
/* The value that an edge is read from now. */
int32_t tutti__order_value_of(const tutti_order *o, tutti_edge edge);
tutti_status tutti__order_instruction(tutti_order *o, const tutti_node *node, tutti_kernel_fn *run,
                                      int input_count, const int32_t *inputs, int output_count,
                                      const int32_t *outputs);

/* Every variable that an update node writes; and who reads what of them, which saving goes by. */
tutti_status tutti__order_mark_updates(tutti_order *o);
/* Copies the values of variables that somebody wants after their memory is written again; called
 * with the position where they were made, -1 for before the commit. */
tutti_status tutti__order_save(tutti_order *o, int32_t made_at);
/* Updated variables get stand-ins, filled before the first update; values after it move there too.
 */
tutti_status tutti__order_shadows(tutti_order *o);
/* The commit of a program with shadows: they move into the variables. */
tutti_status tutti__order_move_shadows(tutti_order *o);
/* Which variables must have a value, and which must keep it when the commit begins. */
tutti_status tutti__order_mark_reads(tutti_order *o);

#endif
