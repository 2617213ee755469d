/* witness.c: what ranks of this machine know of each other when rank 0, which asks everybody, is
 * the one that failed: each has noted in shared memory what it has come to. */
#include "comm/comm.h"
#include "comm/segment.h"

/* Those of the operation are noted by the group's context; what members of a new group tell each
 * other within the split is not. */
static bool find_place(const tutti_verdict *verdict, uint64_t *ret_place)
{
    const uint64_t within_split = UINT64_C(1) << 63;
    uint32_t context = verdict->group == 0 ? TUTTI_WHOLE_CONTEXT : (uint32_t)(verdict->group >> 32);
    *ret_place = tutti__calls_place(context, verdict->sequence);
    return verdict->operation[0] != '\0' && (verdict->group & within_split) == 0;
}

static void look_around(const tutti_fabric *fabric, uint64_t place, tutti_ranks *ret_come,
                        tutti_ranks *ret_absent)
{
    int own = fabric->machine[fabric->rank], there = 0;
    for (int rank = 0; rank < fabric->size; rank++) {
        if (fabric->machine[rank] != own)
            continue;
        tutti_calls *calls = &tutti__segment_place(fabric->segment, there++)->calls;
        tutti_coming coming = tutti__calls_look(calls, place);
        if (coming == TUTTI_HAS_COME)
            tutti__ranks_add(ret_come, rank);
        else if (coming == TUTTI_HAS_NOT_COME)
            tutti__ranks_add(ret_absent, rank);
    }
}

tutti_status tutti__fabric_fail_by_verdict(const tutti_fabric *fabric)
{
    tutti_membership *members = fabric->membership;
    tutti_ranks come = {0}, absent = {0};
    tutti_verdict verdict;
    uint64_t place;
    tutti__membership_verdict(members, &verdict);
    if (verdict.alone && fabric->segment && find_place(&verdict, &place)) {
        look_around(fabric, place, &come, &absent);
        tutti__membership_testify(members, &come, &absent);
    }
    return tutti__membership_fail(members);
}
