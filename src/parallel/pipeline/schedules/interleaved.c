/* interleaved.c: interleaved 1F1B (Narayanan et al. 2021). A device has v chunks of the model, so
 * that the pipeline fills in a v-th of the time: idle (K-1)/(vM+K-1), for v times the transfers.
 *
 * Micro-batches go through a device in groups of K: a group through its first chunk, then through
 * its second one, …; then the next group. Number n of a device's forward passes therefore has chunk
 * n / K mod v; backward passes take the chunks from the last to the first. K divides M. */
#include "parallel/pipeline/schedule.h"

/* Number n of the passes of a device in one direction. */
static tutti_status add_pass(tutti_pipeline_schedule *s, int device,
                             tutti_pipeline_action_kind kind, int n)
{
    int round = s->devices * s->chunks, chunk = n % round / s->devices;
    int micro = n / round * s->devices + n % s->devices;
    if (kind == TUTTI_BACKWARD)
        chunk = s->chunks - 1 - chunk;
    return tutti__pipeline_schedule_add(s, device, kind, chunk * s->devices + device, micro);
}

/* Too few to fill the devices: one micro-batch through all stages and back, then the next. */
static tutti_status add_one_by_one(tutti_pipeline_schedule *s, int device)
{
    for (int i = 0; i < s->micro; i++) {
        for (int c = 0; c < s->chunks; c++)
            TUTTI_TRY(
                tutti__pipeline_schedule_add(s, device, TUTTI_FORWARD, c * s->devices + device, i));
        for (int c = s->chunks; c-- > 0;)
            TUTTI_TRY(tutti__pipeline_schedule_add(s, device, TUTTI_BACKWARD,
                                                   c * s->devices + device, i));
    }
    return TUTTI_OK;
}

static tutti_status interleaved_fill(tutti_pipeline_schedule *s, int device)
{
    int total = s->micro * s->chunks;
    int warm = 2 * (s->devices - 1 - device) + (s->chunks - 1) * s->devices;
    if (s->micro < s->devices)
        return add_one_by_one(s, device);
    if (s->micro % s->devices != 0)
        return tutti_fail(TUTTI_INVALID,
                          "schedule interleaved takes micro-batches in groups of one for each "
                          "device: %d do not divide by %d devices; use %d or %d, or schedule 1f1b",
                          s->micro, s->devices, s->micro / s->devices * s->devices + s->devices,
                          s->micro > s->devices ? s->micro / s->devices * s->devices : s->devices);
    warm = warm < total ? warm : total;
    for (int n = 0; n < warm; n++)
        TUTTI_TRY(add_pass(s, device, TUTTI_FORWARD, n));
    for (int n = 0; n < total; n++) {
        if (n + warm < total)
            TUTTI_TRY(add_pass(s, device, TUTTI_FORWARD, n + warm));
        TUTTI_TRY(add_pass(s, device, TUTTI_BACKWARD, n));
    }
    return TUTTI_OK;
}

const tutti_pipeline_schedule_kind tutti_pipeline_schedule_kind_interleaved = {
    .name = "interleaved",
    .doc = "1f1b with several stages to a device: the pipeline fills sooner",
    .chunks = true,
    .fill = interleaved_fill,
};
