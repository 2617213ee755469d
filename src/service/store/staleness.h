/* staleness.h: how old gradients were when they were applied, in versions of their shard: the
 * updates between what the worker read and this one. */
#ifndef TUTTI_SERVICE_STORE_STALENESS_H
#define TUTTI_SERVICE_STORE_STALENESS_H

#include "service/store/saved.h"

enum { TUTTI_STALENESS_COUNTED = 64 }; /* older ones are counted together */

typedef struct tutti_store_staleness {
    uint64_t counts[TUTTI_STALENESS_COUNTED + 1];
    uint64_t gradients, largest;
    double sum;
} tutti_store_staleness;

void tutti__store_staleness_add(tutti_store_staleness *staleness, uint64_t versions);
void tutti__store_staleness_join(tutti_store_staleness *staleness,
                                 const tutti_store_staleness *other);
double tutti__store_staleness_mean(const tutti_store_staleness *staleness); /* 0 of none */
/* "staleness of 120 gradients: mean 1.9, largest 4; 0: 12 1: 30 2: 41 3: 30 4: 7". */
void tutti__store_staleness_print(const tutti_store_staleness *staleness, tutti_text *text);
void tutti__store_staleness_save(const tutti_store_staleness *staleness, tutti_text *out);
void tutti__store_staleness_load(saved_reader *in, tutti_store_staleness *ret);

/* What a staleness rule makes of the learning rate. */
typedef enum tutti_store_rate {
    TUTTI_STORE_RATE_NONE,
    TUTTI_STORE_RATE_INVERSE,  /* 1/tau (Zhang 2015); 1 for a gradient that is not stale */
    TUTTI_STORE_RATE_DISTANCE, /* 1 / (1 + |w - w_read| / mean |update|) (Barkai 2020, by norms) */
} tutti_store_rate;
/* "", "none", "inverse", "distance"; INVALID lists them. */
tutti_status tutti__store_rate_parse(const char *text, tutti_store_rate *ret);

#endif
