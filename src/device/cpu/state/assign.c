/* assign.c: a variable takes a value: a copy in parallel. */
#include <string.h>

#include "base/isa.h"
#include "program/kernel.h"

#define PIECE ((size_t)256 << 10) /* bytes */

typedef struct work {
    char *to;
    const char *from;
    size_t size;
} work;

static void copy_piece(void *context, int64_t piece)
{
    const work *w = context;
    size_t first = (size_t)piece * PIECE, size = w->size - first < PIECE ? w->size - first : PIECE;
    memcpy(w->to + first, w->from + first, size);
}

static int score(const tutti_kernel_query *query)
{
    return query->node.inputs[1].dtype == TUTTI_STRING ? 0 : 100;
}

static tutti_status run(const tutti_kernel_call *call)
{
    work w = {call->inputs[0].data, call->inputs[1].data,
              (size_t)tutti_view_count(&call->inputs[1]) * tutti_dtype_size(call->inputs[1].dtype)};
    if (w.size && w.to != w.from)
        tutti_parallel(call, (int64_t)((w.size + PIECE - 1) / PIECE), copy_piece, &w);
    if (w.size && call->outputs[0].data != call->inputs[0].data)
        memcpy(call->outputs[0].data, w.from, w.size);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_assign_copy) = {
    .name = "assign.copy",
    .version = 1,
    .op = "assign",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .run = run,
};
