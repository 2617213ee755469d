/* chain.h: runs of element-wise operators whose value stays in registers, one set for each
 * instruction set.
 *
 * A chain is a list of operations on a block of elements, held in eight vector registers. Each does
 * its work and calls the next with the registers as arguments, so between two operations nothing
 * goes through memory. The last is ".finish".
 *
 * tables: tutti_chain */
#ifndef TUTTI_DEVICE_CPU_TILE_CHAIN_H
#define TUTTI_DEVICE_CPU_TILE_CHAIN_H

#include "base/status.h"

/* What an operation's operands are beside the value in registers. Where it is *memory, the same
 * number stands there for a whole block. */
typedef enum tutti_chain_shape {
    TUTTI_CHAIN_ALONE,        /* f(value) */
    TUTTI_CHAIN_SELF,         /* f(value, value) */
    TUTTI_CHAIN_MEMORY,       /* f(value, memory), f(value, memory, second) */
    TUTTI_CHAIN_SCALAR,       /* f(value, *memory), f(value, memory, *second) */
    TUTTI_CHAIN_MEMORY_FIRST, /* f(memory, value) */
    TUTTI_CHAIN_SCALAR_FIRST  /* f(*memory, value), f(value, *memory, second) */
} tutti_chain_shape;

typedef void tutti_chain_function(void); /* of a type that the instruction set knows */

typedef struct tutti_chain_op {
    tutti_chain_function *run;
    float *memory;
    const float *second;
    float params[2];
} tutti_chain_op;

typedef struct tutti_chain_entry {
    const char *name; /* operator, or ".store", ".finish" */
    tutti_chain_shape form;
    const char *then; /* operator of one that is done in the same operation, or NULL */
    tutti_chain_function *run;
    const char *before; /* operator of one that is done to the value first, or NULL */
} tutti_chain_entry;

typedef struct tutti_chain {
    const char *isa;
    int64_t block;                    /* elements */
    const tutti_chain_entry *entries; /* ".store", ".finish", others; ends with a NULL name */
    /* The value of the first operation is read at `from`; count is a multiple of block. */
    void (*run)(const float *from, const tutti_chain_op *ops, int64_t count);
} tutti_chain;

/* Of the best instruction set this CPU has. */
const tutti_chain *tutti__chain(void);
/* NULL when a chain cannot hold the operator in this form, followed by `then` (or NULL). */
tutti_chain_function *tutti__chain_find(const tutti_chain *chain, const char *name,
                                        tutti_chain_shape form, const char *then);
/* The same with `before` done to the value first. */
tutti_chain_function *tutti__chain_find_after(const tutti_chain *chain, const char *before,
                                              const char *name, tutti_chain_shape form);

#endif
