/* sort.h: sorts by keys of 64 bits, in a time that grows with their number alone. */
#ifndef TUTTI_OPS_SORT_H
#define TUTTI_OPS_SORT_H

#include <stdint.h>

/* A key and where it stood. */
typedef struct tutti_keyed {
    uint64_t key;
    int64_t place;
} tutti_keyed;

/* Rising keys, equal ones in the order that they had. `scratch` has room for as many. */
void tutti__sort_keyed(int64_t count, tutti_keyed *items, tutti_keyed *scratch);

/* Keys in the order of numbers: 0 and -0 have the same; that of NaN is the largest. */
uint64_t tutti__key_of_int(int64_t value);
uint64_t tutti__key_of_double(double value);

#endif
