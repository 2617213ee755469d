/* reduce.c: element-wise work with its reductions, and operators over rows, on one tile after the
 * other: what is reduced is not written unless somebody else wants it. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/tile/program.h"

/* Only the best set bids: the loops are looked up for it. */
static int reduce_score(const tutti_kernel_query *query)
{
    tutti_tile_program *program;
    if (strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) != 0 ||
        strcmp(tutti_attr_string(query->node.attrs, query->node.attr_count, "pattern"), "reduce") !=
            0 ||
        tutti__tile_compile(query, &program) != TUTTI_OK)
        return 0;
    int score = program->body->row_count > 0 && program->space.count > 0 ? 100 : 0;
    tutti__tile_discard(program);
    return score;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_fused_reduce) = {
    .name = "fused.reduce",
    .version = 3,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = ~UINT32_C(0),
    .score = reduce_score,
    .prepare = tutti__tile_prepare,
    .room = tutti__tile_room,
    .discard = tutti__tile_discard,
    .run = tutti__tile_call,
};
