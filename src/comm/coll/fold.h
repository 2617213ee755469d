/* fold.h: element-wise reductions, compiled once for each instruction set.
 * tables: tutti_comm_fold */
#ifndef TUTTI_COMM_COLL_FOLD_H
#define TUTTI_COMM_COLL_FOLD_H

#include "base/status.h"
#include "tutti/reduction.h"
#include "tutti/tensor.h"

/* out[i] = in[0][i] ∘ in[1][i] ∘ … from left to right, for `sources` >= 1 arrays. `out` may be any
 * of the inputs, but may not overlap one otherwise. 16-bit floats are folded in f32 and rounded
 * once. mean folds like sum: tutti__fold_finish divides. */
typedef void tutti_fold_function(void *out, const void *const *in, int sources, int64_t count);

typedef struct tutti_comm_fold {
    const char *isa;
    tutti_fold_function *fold[TUTTI_DTYPE_END][TUTTI_PROD + 1]; /* NULL where it is not defined */
    void (*divide[TUTTI_DTYPE_END])(void *data, int64_t count, int64_t by);
    void (*widen[TUTTI_DTYPE_END])(const uint16_t *in, int64_t count, float *out); /* f16 bf16 */
    void (*narrow[TUTTI_DTYPE_END])(const float *in, int64_t count,
                                    uint16_t *out); /* nearest even */
} tutti_comm_fold;

/* For this CPU. */
const tutti_comm_fold *tutti__fold_best(void);

/* The function for a type and reduction; NULL when there is none. */
tutti_fold_function *tutti__fold_find(tutti_dtype dtype, tutti_reduction reduction);
/* What remains to be done to a folded result over `ranks` values: mean divides. */
void tutti__fold_finish(tutti_dtype dtype, tutti_reduction reduction, void *data, int64_t count,
                        int64_t ranks);

#endif
