/* composite.h: what looks like an operator to users and is made of others: its gradient, split
 * rules, cost and kernels are theirs. Listed by `tutti ops`.
 *
 * tables: tutti_composite
 */
#ifndef TUTTI_OPS_COMPOSITE_H
#define TUTTI_OPS_COMPOSITE_H

typedef struct tutti_composite {
    const char *name, *category;
    const char *doc;     /* one line with the formula */
    const char *made_of; /* names of operators */
} tutti_composite;

#endif
