/* plan.h: sizes, products and workspace of a recurrent node. */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_PLAN_H
#define TUTTI_DEVICE_CPU_RECURRENT_PLAN_H

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/recurrent/rounded_step.h"
#include "device/cpu/recurrent/sequence.h"
#include "device/cpu/slots.h"

/* Rows whose gradients of the biases are summed together: not the group, which depends on the
 * number of threads. */
enum { TUTTI_SEQUENCE_SUM_ROWS = 8 };

typedef struct tutti_sequence_plan {
    const tutti_rows_cell *rows;
    const tutti_cell *cell;
    tutti_rnn_slots slots; /* of the backward operator */
    int lengths;           /* input, or -1 */
    bool reverse;
    int64_t batch, time, features, units, wide, kept, steps; /* steps = batch * time */
    int64_t group; /* rows that walk together, a multiple of TUTTI_SEQUENCE_SUM_ROWS */
    int threads;
    bool rounded;               /* products of bf16, and bf16 is what is kept for them */
    tutti_rounded_step by_step; /* of those: h recurrent, or db recurrent^T, at each step */
    bool joint;                 /* da is db: one product gives the gradients of both weights */
    bool apart;                 /* not joint, and x is kept by itself, without what lengths mask */
    int64_t taken;              /* floats that a step took for them: x if joint, then h before */
    /* Products over all steps: x kernel; da kernel^T, x^T da, h_before^T db, or [x h_before]^T da.
     */
    tutti_gemm_plan project, back_x, back_kernel, back_recurrent, back_joint;
    /* Parts of the workspace, in floats from its start. */
    size_t a, b, before, x, sums, joined, packed, groups, gemm, slot, slot_floats, total;
} tutti_sequence_plan;

/* How many groups a batch has. */
static inline int64_t tutti__sequence_groups(const tutti_sequence_plan *p)
{
    return (p->batch + p->group - 1) / p->group;
}

static inline int64_t tutti__sequence_sums(const tutti_sequence_plan *p)
{
    return (p->batch + TUTTI_SEQUENCE_SUM_ROWS - 1) / TUTTI_SEQUENCE_SUM_ROWS;
}

static inline int64_t tutti__sequence_time(const tutti_sequence_plan *p, int64_t step)
{
    return p->reverse ? p->time - 1 - step : step;
}

static inline int64_t tutti__sequence_length(const tutti_sequence_plan *p,
                                             const tutti_kernel_call *call, int64_t row)
{
    return p->lengths < 0 ? p->time : tutti_view_get_int(&call->inputs[p->lengths], row);
}

#endif
