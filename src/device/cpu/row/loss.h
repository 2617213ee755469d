/* loss.h: losses of rows of logits, and their gradients. A label that is no class is found before
 * any row is computed. */
#ifndef TUTTI_DEVICE_CPU_ROW_LOSS_H
#define TUTTI_DEVICE_CPU_ROW_LOSS_H

#include "device/cpu/row/row.h"

enum { LOSS_LOGITS, LOSS_LABELS, LOSS_GRAD };

typedef struct loss_work {
    const tutti_kernel_call *call;
    const float *logits;
    float *y;
    row_matrix matrix;
} loss_work;

static inline int64_t loss_label(const loss_work *w, int64_t row)
{
    const tutti_view *labels = &w->call->inputs[LOSS_LABELS];
    if (labels->dtype == TUTTI_I32)
        return ((const int32_t *)labels->data)[row];
    if (labels->dtype == TUTTI_I64)
        return ((const int64_t *)labels->data)[row];
    return tutti_view_get_int(labels, row);
}

static inline tutti_status loss_check_labels(const loss_work *w)
{
    for (int64_t row = 0; row < w->matrix.rows; row++) {
        int64_t label = loss_label(w, row);
        if (label < 0 || label >= w->matrix.columns)
            return tutti_fail(
                TUTTI_OUT_OF_RANGE,
                "%s '%s': label %lld in row %lld is none of the %lld classes; labels must "
                "be in [0, %lld), the last axis of logits",
                w->call->op->name, w->call->name, (long long)label, (long long)row,
                (long long)w->matrix.columns, (long long)w->matrix.columns);
    }
    return TUTTI_OK;
}

/* log(sum(e^x)) of a row is *ret_most + the result: apart, because where logits are large their sum
 * has no digits left for the second. */
VEC_INLINE float loss_log_sum(const float *x, int64_t count, float *ret_most)
{
    float most = *ret_most = row_max(x, count);
    if (!(most - most == 0))
        return 0; /* infinite or NaN */
    return (float)log((double)row_exp_sum(x, count, most));
}

static inline loss_work loss_start(const tutti_kernel_call *call)
{
    return (loss_work){.call = call,
                       .logits = call->inputs[LOSS_LOGITS].data,
                       .y = call->outputs[0].data,
                       .matrix = row_matrix_of(&call->inputs[LOSS_LOGITS])};
}

#endif
