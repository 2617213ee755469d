/* pipeline.c: stages of the model on the devices, micro-batches one behind the other. */
#include "parallel/strategies/strategy.h"

bool tutti__strategy_spans(const tutti_strategy *strategy)
{
    return strategy && strategy->kind && strategy->kind->pipeline &&
           tutti_strategy_workers(strategy) > 1;
}

static tutti_status count_workers(const tutti_strategy *s, int *ret)
{
    tutti_cluster *cluster = NULL;
    if (!s->options.cluster)
        TUTTI_TRY(tutti_cluster_resolve(NULL, &cluster));
    *ret = tutti_cluster_size(cluster ? cluster : s->options.cluster);
    tutti_cluster_free(cluster);
    return TUTTI_OK;
}

/* The devices of all processes, one process after the other, by the names that they have here. */
static tutti_status find_devices(tutti_strategy *s, tutti_pipeline *p)
{
    int processes = s->axis_group->size / s->axis_group->local, own = tutti_strategy_rank(s);
    p->device_count = s->axis_group->size;
    const char **names = tutti__arena_array(&s->strings, (size_t)p->device_count, sizeof *names);
    const char **all = tutti__arena_array(&s->strings, (size_t)p->device_count, sizeof *all);
    s->fronts = tutti__arena_array(&s->strings, (size_t)processes, sizeof *s->fronts);
    if (!names || !all || !s->fronts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
    p->devices = names;
    p->names = all;
    for (int i = 0; i < p->device_count; i++) {
        const char *device = s->devices[i % s->local];
        all[i] = processes == 1 ? device
                                : tutti__arena_format(&s->strings, "/job:worker/task:%d/%s",
                                                      i / s->local, device);
        names[i] = i / s->local == own ? device : all[i];
        if (!names[i])
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
    }
    for (int i = 0; i < processes; i++)
        s->fronts[i] = names[i * s->local];
    p->fronts = s->fronts;
    p->front_count = processes;
    return TUTTI_OK;
}

tutti_status tutti__strategy_stage_devices(tutti_strategy *s)
{
    if (!s->kind->pipeline)
        return TUTTI_OK;
    if (s->options.stages < 0 || s->options.stages >= TUTTI_STAGES_MOST)
        return tutti_fail(TUTTI_INVALID, "a pipeline has 1 to %d stages, not %d",
                          TUTTI_STAGES_MOST - 1, s->options.stages);
    if (s->options.devices || s->options.stages == 0)
        return TUTTI_OK;
    int workers;
    TUTTI_TRY(count_workers(s, &workers));
    if (workers > 1)
        return TUTTI_OK; /* of each of them its device */
    tutti_text list = {0};
    for (int i = 0; i < s->options.stages; i++)
        tutti__text_add(&list, "%scpu:%d", i > 0 ? "," : "", i);
    s->options.devices =
        list.failed ? NULL : tutti__arena_string(&s->strings, list.data ? list.data : "");
    tutti__text_free(&list);
    return s->options.devices ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
}

/* Every device has as many stages. */
static tutti_status take_stages(tutti_strategy *s, tutti_pipeline *p)
{
    int stages = s->options.stages > 0 ? s->options.stages : p->device_count;
    if (stages < p->device_count)
        return tutti_fail(TUTTI_INVALID,
                          "%d stages leave %d of the %d devices without one; name fewer devices or "
                          "take stages=%d",
                          stages, p->device_count - stages, p->device_count, p->device_count);
    if (stages % p->device_count != 0)
        return tutti_fail(TUTTI_INVALID,
                          "%d stages do not divide by %d devices, of which each has as many; take "
                          "stages=%d",
                          stages, p->device_count,
                          (stages / p->device_count + 1) * p->device_count);
    p->chunks = stages / p->device_count;
    return TUTTI_OK;
}

static tutti_status take_micro(const tutti_strategy *s, tutti_pipeline *p)
{
    int asked = s->options.micro_batches;
    p->micro = asked > 0 ? asked : 2 * p->device_count * p->chunks;
    if (asked < 0)
        return tutti_fail(TUTTI_INVALID, "a batch is cut into 1 micro-batch or more, not %d",
                          asked);
    if (!s->options.deterministic || p->micro <= s->options.shards)
        return TUTTI_OK;
    if (asked > 0)
        return tutti_fail(TUTTI_INVALID,
                          "deterministic mode cuts a batch into %d shards, which %d micro-batches "
                          "cannot share; give more: --set shards=%d",
                          s->options.shards, asked, asked);
    p->micro = s->options.shards;
    return TUTTI_OK;
}

tutti_status tutti__strategy_stages(tutti_strategy *s)
{
    tutti_pipeline *p = &s->pipeline;
    tutti_pipeline_schedule *schedule;
    if (!s->kind->pipeline)
        return TUTTI_OK;
    TUTTI_TRY(find_devices(s, p));
    TUTTI_TRY(take_stages(s, p));
    TUTTI_TRY(take_micro(s, p));
    const char *name = s->options.schedule ? s->options.schedule
                       : p->chunks > 1     ? "interleaved"
                                           : "1f1b";
    TUTTI_TRY(tutti__pipeline_schedule_find(name, &p->kind));
    /* Refuses what the schedule cannot do, with the numbers. */
    TUTTI_TRY(
        tutti__pipeline_schedule_create(p->kind, p->device_count, p->chunks, p->micro, &schedule));
    tutti__pipeline_schedule_free(schedule);
    return TUTTI_OK;
}

const tutti_strategy_kind tutti_strategy_kind_pipeline = {
    .name = "pipeline",
    .doc = "stages of the model on devices of their own, micro-batches one behind the other",
    .several = true,
    .processes = true,
    .pipeline = true,
};
