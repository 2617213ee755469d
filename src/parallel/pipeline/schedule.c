/* schedule.c: schedules by name; transfers between the stages. */
#include "parallel/pipeline/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "tables/pipeline_schedule_kind.h"

tutti_status tutti__pipeline_schedule_find(const char *name,
                                           const tutti_pipeline_schedule_kind **ret)
{
    tutti_text text = {0};
    for (const tutti_pipeline_schedule_kind *const *kind = tutti__pipeline_schedule_kind_table;
         *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            tutti__text_free(&text);
            *ret = *kind;
            return TUTTI_OK;
        }
        tutti__text_add(&text, "%s%s", text.data ? ", " : "", (*kind)->name);
    }
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "there is no schedule '%s'; there are: %s",
                                     name, text.data ? text.data : "none");
    tutti__text_free(&text);
    return status;
}

static tutti_status schedule_add(tutti_pipeline_schedule *s, int device,
                                 tutti_pipeline_action action)
{
    return TUTTI_VEC_PUSH(&s->of[device].list, action)
               ? TUTTI_OK
               : tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
}

tutti_status tutti__pipeline_schedule_add(tutti_pipeline_schedule *s, int device,
                                          tutti_pipeline_action_kind kind, int stage, int micro)
{
    return schedule_add(s, device,
                        (tutti_pipeline_action){.kind = kind, .stage = stage, .micro = micro});
}

/* The stage that an action's input comes from, and its result goes to; -1: none, or on its device.
 */
static int stage_beyond(const tutti_pipeline_schedule *s, const tutti_pipeline_action *a, int step)
{
    int to = a->stage + step;
    bool none = to < 0 || to >= s->stages || a->kind == TUTTI_WEIGHT;
    return none || tutti__stage_device(s, to) == tutti__stage_device(s, a->stage) ? -1 : to;
}

static tutti_status add_transfers(tutti_pipeline_schedule *s, int device)
{
    tutti_pipeline_actions before = s->of[device];
    tutti_status status = TUTTI_OK;
    s->of[device] = (tutti_pipeline_actions){0};
    for (size_t i = 0; status == TUTTI_OK && i < before.list.count; i++) {
        tutti_pipeline_action a = before.list.data[i];
        bool back = a.kind == TUTTI_BACKWARD;
        int from = stage_beyond(s, &a, back ? 1 : -1), to = stage_beyond(s, &a, back ? -1 : 1);
        if (from >= 0)
            status = schedule_add(
                s, device, (tutti_pipeline_action){TUTTI_RECV, a.stage, a.micro, back, from});
        if (status == TUTTI_OK)
            status = schedule_add(s, device, a);
        if (status == TUTTI_OK && to >= 0)
            status = schedule_add(s, device,
                                  (tutti_pipeline_action){TUTTI_SEND, a.stage, a.micro, back, to});
    }
    TUTTI_VEC_FREE(&before.list);
    return status;
}

static tutti_status check_sizes(const tutti_pipeline_schedule_kind *kind, int devices, int chunks,
                                int micro)
{
    if (devices < 1 || micro < 1)
        return tutti_fail(TUTTI_INVALID,
                          "a pipeline has at least one device and one micro-batch, not %d and %d",
                          devices, micro);
    if (chunks > 1 && !kind->chunks)
        return tutti_fail(TUTTI_INVALID,
                          "schedule %s has one stage to a device, not %d; use schedule interleaved",
                          kind->name, chunks);
    if ((int64_t)devices * chunks * micro * 3 > TUTTI_SCHEDULE_MOST)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%d devices with %d stages each and %d micro-batches have more than %d "
                          "actions; use fewer micro-batches",
                          devices, chunks, micro, TUTTI_SCHEDULE_MOST);
    return TUTTI_OK;
}

static tutti_status fill(tutti_pipeline_schedule *s)
{
    for (int d = 0; d < s->devices; d++) {
        TUTTI_TRY(s->kind->fill(s, d));
        TUTTI_TRY(add_transfers(s, d));
    }
    tutti_pipeline_times times;
    TUTTI_TRY(tutti__pipeline_schedule_simulate(s, NULL, &times));
    tutti__pipeline_times_free(s, &times);
    return TUTTI_OK;
}

tutti_status tutti__pipeline_schedule_create(const tutti_pipeline_schedule_kind *kind, int devices,
                                             int chunks, int micro, tutti_pipeline_schedule **ret)
{
    chunks = chunks > 0 ? chunks : kind->chunks ? 2 : 1;
    TUTTI_TRY(check_sizes(kind, devices, chunks, micro));
    tutti_pipeline_schedule *s = calloc(1, sizeof *s);
    tutti_pipeline_actions *of = calloc((size_t)devices, sizeof *of);
    if (!s || !of) {
        free(s);
        free(of);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
    }
    *s = (tutti_pipeline_schedule){.kind = kind,
                                   .devices = devices,
                                   .chunks = chunks,
                                   .micro = micro,
                                   .stages = devices * chunks,
                                   .of = of};
    tutti_status status = fill(s);
    if (status == TUTTI_OK)
        *ret = s;
    else
        tutti__pipeline_schedule_free(s);
    return status;
}

void tutti__pipeline_schedule_free(tutti_pipeline_schedule *s)
{
    if (!s)
        return;
    for (int d = 0; d < s->devices; d++)
        TUTTI_VEC_FREE(&s->of[d].list);
    free(s->of);
    free(s);
}
