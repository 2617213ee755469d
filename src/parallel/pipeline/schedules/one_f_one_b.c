/* one_f_one_b.c: 1F1B (PipeDream-Flush, Narayanan et al. 2021). A device does as many forward
 * passes as there are stages behind it, then one forward and one backward in turn. Idle
 * (K-1)/(M+K-1), as GPipe, but device d holds the activations of at most K-d micro-batches. */
#include "parallel/pipeline/schedule.h"

static tutti_status one_f_one_b_fill(tutti_pipeline_schedule *s, int device)
{
    int behind = s->devices - 1 - device, warm = behind < s->micro ? behind : s->micro;
    for (int i = 0; i < warm; i++)
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i));
    for (int i = 0; i < s->micro; i++) {
        if (i + warm < s->micro)
            TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i + warm));
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_BACKWARD, device, i));
    }
    return TUTTI_OK;
}

const tutti_pipeline_schedule_kind tutti_pipeline_schedule_kind_1f1b = {
    .name = "1f1b",
    .doc = "one forward, one backward in turn: a device holds few activations",
    .fill = one_f_one_b_fill,
};
