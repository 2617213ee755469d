/* partition.h: how a variable is cut into shards, and on which slot each lies. All processes
 * compute the same.
 *
 * A partitioner says into how many pieces each dimension is cut; at most one of them may be more
 * than
 * 1. Piece i of n takes [i d / n, (i + 1) d / n) of a dimension d, so that pieces differ by one row
 * at most; there are never more pieces than rows. */
#ifndef TUTTI_SERVICE_STORE_PARTITION_H
#define TUTTI_SERVICE_STORE_PARTITION_H

#include "base/status.h"
#include "tutti/tensor.h"

/* Pieces along axis 0, as TensorFlow's partitioners of these names have them: n, or as many as
 * there are rows; as many of at least `bytes` as there are, at most n; as many as are needed for
 * pieces of at most `bytes` (a row at least), at most n (0: any number); the same along any axis.
 */
int64_t tutti__store_partition_fixed_size(const tutti_type *type, int64_t n);
int64_t tutti__store_partition_min_size(const tutti_type *type, int64_t bytes, int64_t n);
int64_t tutti__store_partition_max_size(const tutti_type *type, int64_t bytes, int64_t n);
int64_t tutti__store_partition_variable_axis_size(const tutti_type *type, int axis, int64_t bytes,
                                                  int64_t n);

typedef struct tutti_store_partition {
    int axis;       /* that is cut */
    int64_t pieces; /* 1: it is whole */
} tutti_store_partition;

/* From "fixed_size(4)", "min_size(262144, 8)", "max_size(1048576)",
 * "variable_axis_size(1, 4096, 16)", or from what a variable's .partitioner said: "4,1". "": whole.
 * INVALID says what there is. */
tutti_status tutti__store_partition_parse(const char *text, const tutti_type *type,
                                          tutti_store_partition *ret_partition);
/* Where piece i begins along the axis; i = pieces gives its end. */
int64_t tutti__store_partition_begin(const tutti_type *type, const tutti_store_partition *partition,
                                     int64_t i);
/* The piece that has row `row` of the axis. */
int64_t tutti__store_partition_piece_of(const tutti_type *type,
                                        const tutti_store_partition *partition, int64_t row);
/* The type of piece i. */
tutti_type tutti__store_partition_type(const tutti_type *type,
                                       const tutti_store_partition *partition, int64_t i);

/* ---- placement.c ---- */

/* A user's: the slot of a shard of so many bytes. */
typedef int tutti_store_place_fn(const char *shard, int64_t bytes, int slots, void *context);

typedef struct tutti_store_load {
    int64_t bytes;
    int shards;
} tutti_store_load;

typedef struct tutti_store_placement {
    const char *name;         /* "round_robin", "least_loaded"; of a user's function "function" */
    tutti_store_place_fn *fn; /* of "function" */
    void *context;
    int slots;
    int next;               /* of round_robin */
    tutti_store_load *load; /* [slots] */
} tutti_store_placement;

/* By name ("": round_robin), or by a function where that is not NULL. */
tutti_status tutti__store_placement_create(const char *name, tutti_store_place_fn *fn,
                                           void *context, int slots,
                                           tutti_store_placement *ret_placement);
void tutti__store_placement_free(tutti_store_placement *placement); /* a zeroed one is fine */
/* The slot of one more shard; least_loaded: the one with the fewest bytes, the first of equals. */
tutti_status tutti__store_placement_next(tutti_store_placement *placement, const char *shard,
                                         int64_t bytes, int *ret_slot);
/* "ps 0: 12 shards, 5.2 MiB   ps 1: 11 shards, 5.1 MiB", for banners. */
void tutti__store_placement_print(const tutti_store_placement *placement, char *text, size_t size);

#endif
