/* simple_rnn_bf16.c: simple_rnn over sequences, forward, with products of bf16 where the node
 * allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__simple_rnn_cell, .rounded = true};

static int simple_rnn_bf16_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t simple_rnn_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status simple_rnn_bf16_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_simple_rnn_bf16) = {
    .name = "simple_rnn.bf16",
    .version = 1,
    .op = "simple_rnn",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = simple_rnn_bf16_score,
    .workspace = simple_rnn_bf16_workspace,
    .prepare = simple_rnn_bf16_prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
