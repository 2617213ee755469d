/* lstm.c: lstm over sequences, forward. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__lstm_cell};

static int lstm_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t lstm_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status lstm_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lstm) = {
    .name = "lstm.groups",
    .version = 1,
    .op = "lstm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = lstm_score,
    .workspace = lstm_workspace,
    .prepare = lstm_prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
