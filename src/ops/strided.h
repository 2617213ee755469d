/* strided.h: a walk over the elements of an output in row-major order that knows, for every input,
 * the flat index of the element that broadcasting puts there. */
#ifndef TUTTI_OPS_STRIDED_H
#define TUTTI_OPS_STRIDED_H

#include "tutti/op.h"

typedef struct tutti_strided {
    int rank, inputs;
    const int64_t *dims;
    int64_t index[TUTTI_MAX_RANK];
    int64_t step[TUTTI_SPLIT_SLOTS][TUTTI_MAX_RANK]; /* 0 along repeated axes */
    int64_t at[TUTTI_SPLIT_SLOTS];                   /* the flat index into each input */
} tutti_strided;

/* At the first element of output 0. At most TUTTI_SPLIT_SLOTS inputs. */
static inline void tutti__strided_start(const tutti_kernel_call *call, tutti_strided *walk)
{
    const tutti_view *out = &call->outputs[0];
    *walk = (tutti_strided){.rank = out->rank, .inputs = call->input_count, .dims = out->dims};
    for (int i = 0; i < call->input_count; i++) {
        const tutti_view *in = &call->inputs[i];
        int64_t size = 1;
        for (int axis = in->rank - 1; axis >= 0; axis--) {
            walk->step[i][axis + out->rank - in->rank] = in->dims[axis] == 1 ? 0 : size;
            size *= in->dims[axis];
        }
    }
}

static inline void tutti__strided_next(tutti_strided *walk)
{
    for (int axis = walk->rank - 1; axis >= 0; axis--) {
        bool carry = ++walk->index[axis] == walk->dims[axis];
        for (int i = 0; i < walk->inputs; i++)
            walk->at[i] += walk->step[i][axis] * (carry ? 1 - walk->dims[axis] : 1);
        if (!carry)
            return;
        walk->index[axis] = 0;
    }
}

#endif
