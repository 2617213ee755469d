/* elementwise.c: any element-wise operator on its own, by tile loops. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/tile/program.h"

/* Only the best set bids: the loops are looked up for it. */
static int elementwise_score(const tutti_kernel_query *query)
{
    tutti_tile_program *program;
    if (strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) != 0 ||
        tutti__tile_compile(query, &program) != TUTTI_OK)
        return 0;
    tutti__tile_discard(program);
    return 100;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_elementwise) = {
    .name = "elementwise.tile",
    .version = 3,
    .op = TUTTI_KERNEL_ELEMENTWISE,
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = ~UINT32_C(0),
    .covers = tutti__tile_covers,
    .score = elementwise_score,
    .prepare = tutti__tile_prepare,
    .room = tutti__tile_room,
    .discard = tutti__tile_discard,
    .run = tutti__tile_call,
};
