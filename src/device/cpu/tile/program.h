/* program.h: an element-wise node compiled to steps over tiles.
 *
 * Every value of the body has a place: an input's memory (contiguous, of the element type computed
 * in), an output's memory, or a slot: a tile in scratch memory. Slots are reused when the value in
 * them has been used for the last time. An output is written directly only once no input is read
 * any more, so that it may share memory with an input.
 *
 * Bodies with reductions, and with operators over rows, are run on tiles of whole rows: see
 * reducing.c.
 *
 * Values are computed in float, or in double when any value is f64; after each operator they are
 * rounded to their own type, as a sequence of single operators would do. */
#ifndef TUTTI_DEVICE_CPU_TILE_PROGRAM_H
#define TUTTI_DEVICE_CPU_TILE_PROGRAM_H

#include "device/cpu/tile/body.h"
#include "device/cpu/tile/chain.h"
#include "device/cpu/tile/space.h"

/* Elements of a tile of a program that keeps nothing in slots. */
#define TUTTI_TILE_WIDE 16384
#define TUTTI_TILE_TOTALS 4

typedef enum tutti_place_kind {
    TUTTI_PLACE_SLOT,
    TUTTI_PLACE_SCALAR, /* a slot that holds one number, repeated */
    TUTTI_PLACE_INPUT,
    TUTTI_PLACE_OUTPUT,
    TUTTI_PLACE_TOTAL,    /* where a chunk gathers a total */
    TUTTI_PLACE_REGISTERS /* only inside a chain: the value of the step before */
} tutti_place_kind;

typedef struct tutti_tile_place {
    tutti_place_kind kind;
    int index;
} tutti_tile_place;

typedef enum tutti_step_kind {
    TUTTI_STEP_ELEMENTS, /* on all elements of the tile */
    TUTTI_STEP_BY_ROW,   /* on one element for each row */
    TUTTI_STEP_ROWS      /* on all, told how many a row has: params[0] */
} tutti_step_kind;

typedef struct tutti_tile_step {
    tutti_tile_loop *loop;
    tutti_step_kind kind;
    const char *name; /* of the operator */
    int inputs;
    tutti_tile_place x[TUTTI_TILE_INPUTS], y;
    double params[TUTTI_TILE_PARAMS];
    /* The first step of a chain says how many steps it has; the others say 0, single steps 1. */
    int chain;
    tutti_chain_function *run;      /* as part of a chain, else NULL */
    tutti_chain_function *run_both; /* this and the next step of the chain in one, or NULL */
    int registers;                  /* in a chain: the operand that is in registers */
    bool keep;                      /* in a chain: the value is also written to y */
} tutti_tile_step;

/* An input that is converted or repeated into a slot before the steps. */
typedef struct tutti_tile_load {
    int source, slot;
    size_t element; /* bytes of one, in memory */
    tutti_tile_loop *convert;
} tutti_tile_load;

/* A sum over rows, or over everything, of the tiles of all chunks. */
typedef struct tutti_tile_total {
    int output;
    bool whole;             /* one number; else one for each column */
    int64_t width;          /* how many */
    double divisor;         /* of a mean */
    size_t at;              /* byte in the memory of a chunk: floats, of a whole total one double */
    tutti_tile_loop *store; /* to the output's type */
} tutti_tile_total;

typedef struct tutti_tile_program {
    tutti_tile_body *body;
    tutti_tile_space space;
    const tutti_chain *chain;
    size_t element; /* bytes of one, in a tile: 4 or 8 */
    int slot_count, load_count, step_count, threads;
    tutti_tile_load *loads;
    tutti_tile_step *steps;
    size_t output_elements[TUTTI_SPACE_INPUTS]; /* bytes of one, per output */
    bool output_by_row[TUTTI_SPACE_INPUTS];     /* outputs of one element for each row */
    int total_count;
    tutti_tile_total totals[TUTTI_TILE_TOTALS];
    /* For totals tiles are cut into chunks: of all tiles in order, or, when a total has columns, of
     * rows of tiles, which are done column by column. */
    int64_t chunks, chunk_tiles;
    bool chunk_rows;
    size_t chunk_bytes;
} tutti_tile_program;

/* UNSUPPORTED when some operator has no loop or types do not fit. */
tutti_status tutti__tile_compile(const tutti_kernel_query *query, tutti_tile_program **ret_program);
void tutti__tile_discard(void *program); /* NULL is fine */
size_t tutti__tile_workspace(const tutti_tile_program *program);
tutti_status tutti__tile_run(const tutti_tile_program *program, const tutti_kernel_call *call);

/* Whether an element-wise operator has loops, or is a cast, which loads and stores do. */
bool tutti__tile_covers(const tutti_op *op);

/* What the kernels that run such programs have in common; the plan is the program. */
tutti_status tutti__tile_prepare(const tutti_kernel_query *query, void **ret_plan);
size_t tutti__tile_room(const void *plan);
tutti_status tutti__tile_call(const tutti_kernel_call *call);

#endif
