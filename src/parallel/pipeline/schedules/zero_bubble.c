/* zero_bubble.c: ZB-H1 (Qi et al. 2024). Only B, the gradients of a stage's inputs, is awaited by
 * the stage before it; W, the gradients of the weights, fills the time in which a device would
 * wait. As 1f1b, but device d is d micro-batches behind with W, and does the rest of them while the
 * last B travel back. Where F, B and W take as long as each other, idle time is a third of 1f1b's;
 * device d holds the activations of at most K micro-batches. */
#include "parallel/pipeline/schedule.h"

static tutti_status zero_bubble_fill(tutti_pipeline_schedule *s, int device)
{
    int behind = s->devices - 1 - device, warm = behind < s->micro ? behind : s->micro;
    int weights = 0;
    for (int i = 0; i < warm; i++)
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i));
    for (int i = 0; i < s->micro; i++) {
        if (i + warm < s->micro)
            TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, device, i + warm));
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_BACKWARD, device, i));
        if (i >= device)
            TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_WEIGHT, device, weights++));
    }
    while (weights < s->micro)
        TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_WEIGHT, device, weights++));
    return TUTTI_OK;
}

const tutti_pipeline_schedule_kind tutti_pipeline_schedule_kind_zero_bubble = {
    .name = "zero_bubble",
    .doc = "1f1b whose gradients of weights fill the waiting times (ZB-H1)",
    .weights = true,
    .fill = zero_bubble_fill,
};
