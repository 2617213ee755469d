/* compiler.h: what is known while a tile program is made; see program.c. */
#ifndef TUTTI_DEVICE_CPU_TILE_COMPILER_H
#define TUTTI_DEVICE_CPU_TILE_COMPILER_H

#include "device/cpu/tile/program.h"

/* Of a value. `root`: the value whose place this one shares (a cast that changes nothing); itself
 * otherwise. */
typedef struct tutti_tile_state {
    int root, last_use; /* last_use: index of the last value that reads it; END to the end */
    tutti_tile_place place;
    bool by_row;           /* one element for each row of the tile */
    bool widened;          /* and `wide` holds it repeated along the rows */
    tutti_tile_place wide; /* a slot */
    int total;             /* of a sum over rows: its number in the program; else -1 */
} tutti_tile_state;

typedef struct tutti_tile_compiler {
    tutti_tile_program *program;
    const tutti_tile_body *body;
    tutti_dtype type; /* computed in: TUTTI_F32 or TUTTI_F64 */
    /* Values are those of kernels of their own: what is fused depends on whether shapes happen to
     * be equal, as they are where a replica has one row. */
    bool deterministic;
    tutti_tile_state *states;
    bool *taken;         /* per slot */
    int last_input_read; /* the last value that reads an input's memory */
} tutti_tile_compiler;

int tutti__tile_take_slot(tutti_tile_compiler *c);
void tutti__tile_add_step(tutti_tile_compiler *c, tutti_tile_step step);
tutti_status tutti__tile_refuse(const char *what);

/* Types of outputs; UNSUPPORTED when they are not what the body gives. */
tutti_status tutti__tile_check_outputs(const tutti_kernel_query *query,
                                       tutti_tile_program *program);
/* Cuts the space into tiles of at most so many elements. */
tutti_status tutti__tile_make_space(tutti_tile_program *program, int64_t tile_elements);
/* Whether no value but repeated scalars goes through a slot: then tiles need not fit in one. */
bool tutti__tile_needs_no_slots(const tutti_tile_program *program);

/* Values that work along rows: which are there one for each row, which are totals; UNSUPPORTED when
 * the space's tiles do not hold what they work along. */
tutti_status tutti__tile_classify(const tutti_kernel_query *query, tutti_tile_compiler *c);
/* A value that every element takes, from one that is there for each row. */
tutti_tile_place tutti__tile_widened(tutti_tile_compiler *c, int v);
/* The loop of a value that is not ELEMENTS; NULL when there is none. */
const tutti_tile_op *tutti__tile_row_loop(const tutti_tile_compiler *c, int v);
/* Where totals are gathered, once the space and all totals are known; false when they cannot be. */
bool tutti__tile_plan_totals(tutti_tile_program *program);

#endif
