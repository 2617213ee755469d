/* rows.h: the source under everything that lies in memory as tensors: rows along axis 0. */
#ifndef TUTTI_DATA_SOURCE_ROWS_H
#define TUTTI_DATA_SOURCE_ROWS_H

#include "data/dataset.h"

/* How stored values are delivered. */
typedef enum tutti_reading {
    TUTTI_READ_AS_IS,
    TUTTI_READ_UNIT,  /* u8 to f32: value / 255 */
    TUTTI_READ_CLASS, /* u8 to i64 */
} tutti_reading;

/* Rows of contiguous host tensors, which are retained. `row_types` (NULL: as stored) gives other
 * dimensions for a row of as many values. `name` stands in messages and in tutti_dataset_print. */
tutti_dataset *tutti__rows_dataset(tutti_job *job, const tutti_dataset_def *def, int count,
                                   tutti_tensor *const *tensors, const tutti_reading *readings,
                                   const tutti_type *row_types);

/* What a def needs to be such a source under a name of its own. */
#define TUTTI_ROWS_SETTINGS (sizeof(tutti_tensor *) * TUTTI_MAX_COMPONENTS + 64 + 16)
void tutti__rows_destroy(tutti_dataset *dataset);
tutti_status tutti__rows_at(tutti_access *access, uint64_t epoch, int64_t index,
                            tutti_element *ret);
tutti_status tutti__rows_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                const int64_t *indices, tutti_tensor *const *rows, int64_t first);

#endif
