/* map.h: what map shares with its threads. */
#ifndef TUTTI_DATA_TRANSFORM_MAP_H
#define TUTTI_DATA_TRANSFORM_MAP_H

#include "data/dataset.h"

typedef struct tutti_map_settings {
    tutti_map_fn *function;
    void *context;
    int parallel;
    uint64_t seed;
    int components; /* 0: not said */
} tutti_map_settings;

/* Calls the function for an element, in place, and checks what it gives. After a failure the
 * element is empty. */
tutti_status tutti__map_apply(const tutti_dataset *dataset, const tutti_share *share,
                              uint64_t epoch, int64_t index, tutti_element *element);

/* Threads that apply the function; elements come out in the order in which they went in. */
typedef struct tutti_map_threads tutti_map_threads;
tutti_status tutti__map_threads_start(const tutti_iterator *iterator, int threads,
                                      tutti_map_threads **ret);
/* Calls under way are waited for. NULL is fine. */
void tutti__map_threads_stop(tutti_map_threads *threads);
bool tutti__map_threads_full(const tutti_map_threads *threads);
int64_t tutti__map_threads_pending(const tutti_map_threads *threads);
/* Hands over element number `index`; not when full. */
void tutti__map_threads_put(tutti_map_threads *threads, int64_t index, tutti_element element);
/* The oldest, when it is done; something must be pending. Waits; looks at `iterator`'s flag. */
tutti_status tutti__map_threads_take(tutti_map_threads *threads, const tutti_iterator *iterator,
                                     tutti_element *ret);

#endif
