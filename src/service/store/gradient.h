/* gradient.h: what a worker pushes for one shard. */
#ifndef TUTTI_SERVICE_STORE_GRADIENT_H
#define TUTTI_SERVICE_STORE_GRADIENT_H

#include "service/store/message.h"
#include "service/store/saved.h"
#include "tutti/tensor.h"

/* Elements of the shard's type, or whole rows of it. */
typedef struct tutti_store_gradient {
    uint32_t form;
    size_t row_count;
    int64_t *rows; /* ascending, each once */
    uint8_t *data;
    size_t bytes; /* of data */
} tutti_store_gradient;

/* Elements of one row: of everything but axis 0. */
int64_t tutti__store_row_elements(const tutti_type *type);
/* SHAPE in words when what a message holds does not fit the shard. */
tutti_status tutti__store_gradient_fits(const char *shard, const tutti_type *type,
                                        const tutti_store_message *message);
/* Whether all its elements are numbers. */
bool tutti__store_gradient_is_finite(const tutti_type *type, const tutti_store_message *message);
/* A copy of what a message holds, which fits. Rows at equal indices are summed, in the order in
 * which they stand, and rounded once. */
tutti_status tutti__store_gradient_take(const tutti_type *type, const tutti_store_message *message,
                                        tutti_store_gradient *ret);
void tutti__store_gradient_free(tutti_store_gradient *gradient); /* zeroed is fine */

/* sum of weights[i] * gradients[i] / sum of weights, in this order, rounded once; dense ones that
 * all have weight 1 pairwise, each sum rounded; rows that one of
 * them does not have count as zeros. One with weight 1 keeps its bits. */
tutti_status tutti__store_gradient_mean(const tutti_type *type, size_t count,
                                        const tutti_store_gradient *const *gradients,
                                        const double *weights, tutti_store_gradient *ret);
/* Multiplied in place. */
void tutti__store_gradient_scale(const tutti_type *type, tutti_store_gradient *gradient,
                                 double factor);
/* The same as a dense one; the shard's rows are few enough for memory. */
tutti_status tutti__store_gradient_dense(const tutti_type *type,
                                         const tutti_store_gradient *gradient,
                                         tutti_store_gradient *ret);

void tutti__store_gradient_save(const tutti_store_gradient *gradient, tutti_text *out);
tutti_status tutti__store_gradient_load(const tutti_type *type, saved_reader *in,
                                        tutti_store_gradient *ret);

#endif
