/* gru_backward.c: gru over sequences, backward. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/recurrent/sequence.h"

static int score(const tutti_kernel_query *query)
{
    bool best = strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0;
    return best && tutti__sequence_suits(query, &tutti__gru_cell) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    return tutti__sequence_workspace(query, &tutti__gru_cell, true);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__sequence_prepare(query, &tutti__gru_cell, true, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_gru_backward) = {
    .name = "gru_backward.groups",
    .version = 1,
    .op = "gru_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = tutti__sequence_run_backward,
};
