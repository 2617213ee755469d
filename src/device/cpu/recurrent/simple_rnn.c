/* simple_rnn.c: simple_rnn over sequences, forward. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__simple_rnn_cell};

static int simple_rnn_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t simple_rnn_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status simple_rnn_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_simple_rnn) = {
    .name = "simple_rnn.groups",
    .version = 1,
    .op = "simple_rnn",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = simple_rnn_score,
    .workspace = simple_rnn_workspace,
    .prepare = simple_rnn_prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
