/* lstm_bf16.c: lstm over sequences, forward, with products of bf16 where the node allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__lstm_cell, .rounded = true};

static int lstm_bf16_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t lstm_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status lstm_bf16_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lstm_bf16) = {
    .name = "lstm.bf16",
    .version = 1,
    .op = "lstm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = lstm_bf16_score,
    .workspace = lstm_bf16_workspace,
    .prepare = lstm_bf16_prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
