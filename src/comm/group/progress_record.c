/* progress_record.c: what ranks of this machine know of each other when rank 0, which asks
 * everybody, is the one that failed: each has noted in shared memory what it has come to. */
#include "comm/comm.h"
#include "comm/fabric/segment.h"

/* Operations are noted by the group's context; what members of a new group tell each other within
 * the split is not. */
static bool find_place(uint64_t group, uint64_t sequence, uint64_t *ret_place)
{
    const uint64_t within_split = UINT64_C(1) << 63;
    uint32_t context = group == 0 ? TUTTI_WHOLE_CONTEXT : (uint32_t)(group >> 32);
    *ret_place = tutti__calls_place(context, sequence);
    return (group & within_split) == 0;
}

static void look(void *arg, uint64_t group, uint64_t sequence, tutti_ranks *come,
                 tutti_ranks *absent)
{
    const tutti_fabric *fabric = arg;
    int own = fabric->machine[fabric->rank], there = 0;
    uint64_t place;
    if (!find_place(group, sequence, &place))
        return;
    for (int rank = 0; rank < fabric->size; rank++) {
        if (fabric->machine[rank] != own)
            continue;
        tutti_calls *calls = &tutti__segment_place(fabric->segment, there++)->calls;
        tutti_coming coming = tutti__calls_look(calls, place);
        if (coming == TUTTI_HAS_COME)
            tutti__ranks_add(come, rank);
        else if (coming == TUTTI_HAS_NOT_COME)
            tutti__ranks_add(absent, rank);
    }
}

void tutti__fabric_progress_record(tutti_fabric *fabric)
{
    tutti_segment *segment = fabric->segment;
    fabric->noted = &tutti__segment_place(segment, segment->rank)->calls;
    tutti__membership_set_progress_record(fabric->membership,
                                          (tutti_progress_record){look, fabric});
}
