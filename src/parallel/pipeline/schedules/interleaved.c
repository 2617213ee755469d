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

static tutti_status interleaved_fill(tutti_pipeline_schedule *s, int device)
{
    int total = s->micro * s->chunks;
    int warm = 2 * (s->devices - 1 - device) + (s->chunks - 1) * s->devices;
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
