/* fused_elementwise.c: the body of a fused node, all of it on one tile after the other. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/tile/program.h"

/* Only the best set bids: the loops are looked up for it. */
static int fused_elementwise_score(const tutti_kernel_query *query)
{
    tutti_tile_program *program;
    if (strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) != 0 ||
        tutti__tile_compile(query, &program) != TUTTI_OK)
        return 0;
    int score = program->body->row_count == 0 ? 100 : 0;
    tutti__tile_discard(program);
    return score;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_fused_elementwise) = {
    .name = "fused.elementwise",
    .version = 3,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = ~UINT32_C(0),
    .score = fused_elementwise_score,
    .prepare = tutti__tile_prepare,
    .room = tutti__tile_room,
    .discard = tutti__tile_discard,
    .run = tutti__tile_call,
};
