/* distance.h: how far a shard has moved since a worker read it, for learning rates by distance
 * (gap-aware, Barkai 2020): 1 / (1 + |w - w_read| / C), C the mean norm of an update. Kept by the
 * leader, which writes the factor into the operation, so that replicas need none of it. */
#ifndef TUTTI_SERVICE_STORE_DISTANCE_H
#define TUTTI_SERVICE_STORE_DISTANCE_H

#include "service/store/shard.h"

typedef struct tutti_store_read {
    uint32_t shard, contribution;
    tutti_tensor *value; /* that it read last; a reference, no copy */
} tutti_store_read;

typedef struct tutti_store_moved {
    uint32_t shard;
    uint64_t version;
    tutti_tensor *value; /* present at that version */
    double norms;        /* sum over updates */
    uint64_t updates;
} tutti_store_moved;

typedef struct tutti_store_distances {
    TUTTI_VEC(tutti_store_read) reads;
    TUTTI_VEC(tutti_store_moved) moved;
} tutti_store_distances;

void tutti__store_distances_free(tutti_store_distances *distances); /* a zeroed one is fine */
/* A worker reads this value. */
void tutti__store_distances_read(tutti_store_distances *distances, const tutti_store_shard *shard,
                                 uint32_t contribution, tutti_tensor *value);
/* The shard was updated, perhaps: notes how far it moved. */
void tutti__store_distances_note(tutti_store_distances *distances, tutti_store_shard *shard);
/* The factor for a worker's push; 1 where nothing is known, of rows too. */
double tutti__store_distances_factor(const tutti_store_distances *distances,
                                     const tutti_store_shard *shard, uint32_t contribution);

#endif
