/* gru_bf16.c: gru over sequences, forward, with products of bf16 where the node allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__gru_cell, .rounded = true};

static int gru_bf16_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t gru_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status gru_bf16_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_gru_bf16) = {
    .name = "gru.bf16",
    .version = 1,
    .op = "gru",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = gru_bf16_score,
    .workspace = gru_bf16_workspace,
    .prepare = gru_bf16_prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
