/* dequantize_linear.c: bytes and sums of their products as f32, with one scale and zero for all or
 * one for each index of the last axis. */
#include "base/isa.h"
#include "program/kernel.h"

enum { PIECE = 16384 };

typedef struct work {
    const tutti_kernel_call *call;
    int64_t rows, columns, per_piece; /* of one scale: one row */
    bool one;
} work;

#define LOOP(T, W)                                                                                 \
    do {                                                                                           \
        const T *from = (const T *)x->data + first, *z = zeros;                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (float)((W)from[i] - (z != NULL ? z[one ? 0 : i] : 0)) * scales[one ? 0 : i];  \
    } while (0)

/* Elements [first, first + count), which begin at column 0 unless one scale serves all. */
static void dequantize_linear_convert(const work *w, int64_t first, int64_t count)
{
    const tutti_view *x = &w->call->inputs[0];
    const float *scales = w->call->inputs[1].data;
    const void *zeros = w->call->input_count > 2 ? w->call->inputs[2].data : NULL;
    float *to = (float *)w->call->outputs[0].data + first;
    bool one = w->one;
    if (x->dtype == TUTTI_U8)
        LOOP(uint8_t, int32_t);
    else if (x->dtype == TUTTI_I8)
        LOOP(int8_t, int32_t);
    else
        LOOP(int32_t, int64_t);
}

static void dequantize_linear_piece(void *context, int64_t index)
{
    const work *w = context;
    int64_t end = (index + 1) * w->per_piece < w->rows ? (index + 1) * w->per_piece : w->rows;
    if (w->one) {
        dequantize_linear_convert(w, index * w->per_piece, end - index * w->per_piece);
        return;
    }
    for (int64_t r = index * w->per_piece; r < end; r++)
        dequantize_linear_convert(w, r * w->columns, w->columns);
}

static int dequantize_linear_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    int rank = node->inputs[0].rank;
    int64_t axis = tutti_attr_int(node->attrs, node->attr_count, "axis");
    bool last = (axis == -1 || axis == rank - 1) && node->inputs[1].rank == 1 &&
                tutti_attr_int(node->attrs, node->attr_count, "block") == 0;
    return node->inputs[1].dtype == TUTTI_F32 && (last || tutti_type_count(&node->inputs[1]) == 1)
               ? 100
               : 0;
}

static tutti_status dequantize_linear_run(const tutti_kernel_call *call)
{
    int64_t count = tutti_view_count(&call->inputs[0]);
    work w = {.call = call, .one = tutti_view_count(&call->inputs[1]) == 1};
    w.columns = w.one ? 1 : tutti_view_count(&call->inputs[1]);
    w.rows = w.columns > 0 ? count / w.columns : 0;
    w.per_piece = w.columns < PIECE && w.columns > 0 ? PIECE / w.columns : 1;
    tutti_parallel(call, (w.rows + w.per_piece - 1) / w.per_piece, dequantize_linear_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_dequantize_linear) = {
    .name = "dequantize_linear.rows",
    .version = 1,
    .op = "dequantize_linear",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = dequantize_linear_score,
    .run = dequantize_linear_run,
};
