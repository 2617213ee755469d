/* batch.h: what batch, padded_batch and window share. */
#ifndef TUTTI_DATA_TRANSFORM_BATCH_H
#define TUTTI_DATA_TRANSFORM_BATCH_H

#include "data/dataset.h"

#define TUTTI_BATCH_LIMIT ((int64_t)1 << 24)

/* The next `size` elements, fewer at the end; none after a failure. */
tutti_status tutti__collect(tutti_iterator *input, int64_t size, tutti_element *elements,
                            int64_t *ret_count);
void tutti__release_all(int64_t count, tutti_element *elements);
/* Gives every type an axis 0 of `rows`. */
void tutti__batch_types(tutti_dataset *dataset, int64_t rows);
/* Passes over `count` batches of the input's elements. */
tutti_status tutti__batch_skip(tutti_iterator *input, int64_t size, bool drop_remainder,
                               int64_t count, int64_t *ret_skipped);
int64_t tutti__batch_count(int64_t cardinality, int64_t size, bool drop_remainder);

#endif
