/* gpipe.c: all micro-batches forwards, then all back (Huang et al. 2019). Idle (K-1)/(M+K-1);
 * activations of all M micro-batches are held. */
#include "parallel/pipeline/schedule.h"

static tutti_status gpipe_fill(tutti_pipeline_schedule *s, int device)
{
    for (int i = 0; i < s->micro; i++)
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i));
    for (int i = 0; i < s->micro; i++)
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_BACKWARD, device, i));
    return TUTTI_OK;
}

const tutti_pipeline_schedule_kind tutti_pipeline_schedule_kind_gpipe = {
    .name = "gpipe",
    .doc = "all micro-batches forwards, then all backwards",
    .fill = gpipe_fill,
};
