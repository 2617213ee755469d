/* tile.h: element-wise loops over tiles that stay in the first cache, one set of them for each
 * instruction set.
 *
 * A tile is at most TUTTI_TILE_BYTES of float or of double. Bools are 0 and 1 of that type. A loop
 * may write its result over an operand.
 *
 * tables: tutti_tile_family */
#ifndef TUTTI_DEVICE_CPU_TILE_TILE_H
#define TUTTI_DEVICE_CPU_TILE_TILE_H

#include "tutti/graph.h"

#define TUTTI_TILE_BYTES 4096
#define TUTTI_TILE_INPUTS 3
#define TUTTI_TILE_PARAMS 2

typedef struct tutti_tile_args {
    int64_t count;
    const void *x[TUTTI_TILE_INPUTS];
    void *y;
    const double *params; /* values of the attributes that the loop names */
} tutti_tile_args;

typedef void tutti_tile_loop(const tutti_tile_args *args);

typedef struct tutti_tile_op {
    /* An operator, or a name of the tile room itself: ".load_f16" and ".store_f16" convert from and
     * to memory, ".round_f16" rounds, ".truth" is x != 0. */
    const char *name;
    int inputs;
    tutti_tile_loop *f32, *f64;
    const char *attrs[TUTTI_TILE_PARAMS]; /* floats and ints */
    const char *when;                     /* (optional) only where this attribute is not zero */
} tutti_tile_op;

typedef struct tutti_tile_family {
    const char *isa;
    const tutti_tile_op
        *ops; /* ends with a NULL name; an entry with `when` before the one without */
} tutti_tile_family;

/* The loop for an operator, from the best instruction set this CPU has; NULL when there is none.
 * `attrs` may be NULL for the room's own names. */
const tutti_tile_op *tutti__tile_find(const char *name, const tutti_attr *attrs, int attr_count);

#endif
