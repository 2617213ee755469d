/* simple_rnn.c: simple_rnn over sequences, forward. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/recurrent/sequence.h"

static int score(const tutti_kernel_query *query)
{
    bool best = strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0;
    return best && tutti__sequence_suits(query, &tutti__simple_rnn_cell) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, &tutti__simple_rnn_cell, false);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, &tutti__simple_rnn_cell, false, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_simple_rnn) = {
    .name = "simple_rnn.groups",
    .version = 1,
    .op = "simple_rnn",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = tutti__sequence_run,
};
