/* naive.c: one micro-batch after the other, forwards through all stages and back. One device works
 * at a time: idle (K-1)/K. */
#include "parallel/pipeline/schedule.h"

static tutti_status naive_fill(tutti_pipeline_schedule *s, int device)
{
    for (int i = 0; i < s->micro; i++) {
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i));
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_BACKWARD, device, i));
    }
    return TUTTI_OK;
}

const tutti_pipeline_schedule_kind tutti_pipeline_schedule_kind_naive = {
    .name = "naive",
    .doc = "one micro-batch at a time: all devices but one wait",
    .fill = naive_fill,
};
