/* ranks.h: a set of ranks, as bits. */
#ifndef TUTTI_CLUSTER_RANKS_H
#define TUTTI_CLUSTER_RANKS_H

#include <stdbool.h>
#include <stdint.h>

enum { TUTTI_MOST_RANKS = 4096 };

typedef struct tutti_ranks {
    uint64_t bits[TUTTI_MOST_RANKS / 64];
} tutti_ranks;

static inline void tutti__ranks_add(tutti_ranks *ranks, int rank)
{
    ranks->bits[rank / 64] |= UINT64_C(1) << (rank % 64);
}

static inline bool tutti__ranks_have(const tutti_ranks *ranks, int rank)
{
    return (ranks->bits[rank / 64] >> (rank % 64) & 1) != 0;
}

/* Of the ranks below `size`. */
static inline int tutti__ranks_count(const tutti_ranks *ranks, int size)
{
    int count = 0;
    for (int r = 0; r < size; r++)
        count += tutti__ranks_have(ranks, r);
    return count;
}

#endif
