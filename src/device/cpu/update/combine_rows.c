/* combine_rows.c: rows of one index summed into the first of them. */
#include <string.h>

#include "base/isa.h"
#include "ops/update/update.h"
#include "program/kernel.h"

enum { PIECE = 64 /* rows in order of their index */ };

typedef struct work {
    const tutti_row_groups *groups;
    const float *rows;
    float *out;
    int64_t size;
} work;

static void add_row(float *restrict to, const float *restrict from, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        to[i] += from[i];
}

/* A group belongs to the piece in which it begins. */
static void combine_rows_piece(void *context, int64_t index)
{
    const work *w = context;
    const tutti_row_groups *groups = w->groups;
    const size_t bytes = (size_t)w->size * sizeof(float);
    int64_t at = index * PIECE, stop = at + PIECE < groups->count ? at + PIECE : groups->count;
    if (at > 0 && groups->index[at] == groups->index[at - 1])
        at = tutti__row_groups_next(groups, at);
    while (at < stop) {
        int64_t next = tutti__row_groups_next(groups, at);
        float *sum = w->out + groups->order[at] * w->size;
        memcpy(sum, w->rows + groups->order[at] * w->size, bytes);
        for (int64_t r = at + 1; r < next; r++) {
            add_row(sum, w->rows + groups->order[r] * w->size, w->size);
            memset(w->out + groups->order[r] * w->size, 0, bytes);
        }
        at = next;
    }
}

static int64_t count_of(const tutti_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}

static int combine_rows_score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == TUTTI_F32 ? 100 : 0;
}

static size_t combine_rows_workspace(const tutti_kernel_query *query)
{
    return tutti__row_groups_bytes(count_of(&query->node.inputs[1]));
}

static tutti_status combine_rows_run(const tutti_kernel_call *call)
{
    tutti_row_groups groups;
    TUTTI_TRY(tutti__row_groups_in(call, &call->inputs[1], INT64_MAX, call->workspace, &groups));
    if (groups.count == 0)
        return TUTTI_OK;
    work w = {.groups = &groups,
              .rows = call->inputs[0].data,
              .out = call->outputs[0].data,
              .size = tutti_view_count(&call->inputs[0]) / groups.count};
    tutti_parallel(call, (groups.count + PIECE - 1) / PIECE, combine_rows_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_combine_rows_pass) = {
    .name = "combine_rows.pass",
    .version = 1,
    .op = "combine_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = combine_rows_score,
    .workspace = combine_rows_workspace,
    .run = combine_rows_run,
};
