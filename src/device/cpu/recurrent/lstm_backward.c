/* lstm_backward.c: lstm over sequences, backward. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/recurrent/sequence.h"

static const tutti_sequence_kind kind = {.cell = &tutti__lstm_cell, .backward = true};

static int lstm_backward_score(const tutti_kernel_query *query)
{
    return tutti__sequence_score(query, kind, TUTTI_ISA_TEXT);
}

static size_t lstm_backward_workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, kind);
}

static tutti_status lstm_backward_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, kind, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lstm_backward) = {
    .name = "lstm_backward.groups",
    .version = 1,
    .op = "lstm_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_TUNED,
    .score = lstm_backward_score,
    .workspace = lstm_backward_workspace,
    .prepare = lstm_backward_prepare,
    .discard = free,
    .run = tutti__sequence_run_backward,
};
