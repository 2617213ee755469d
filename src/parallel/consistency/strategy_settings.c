/* strategy_settings.c: what a strategy is set to has to be the same in all processes of a job: who
 * sums in another way than the others gets another sum, waits for what nobody sends, or reads their
 * messages as something else. */
#include <stdio.h>

#include "parallel/strategies/strategy.h"

static const char *or_else(const char *text, const char *instead)
{
    return text && text[0] ? text : instead;
}

/* 1, 0, -1: yes, as seems best, no. */
static const char *choice(int given)
{
    return given > 0 ? "on" : given < 0 ? "off" : "auto";
}

tutti_status tutti__strategy_consistent(const tutti_strategy *s, const char *wire)
{
    enum { LINES = 8, LENGTH = 160 };
    const tutti_strategy_options *options = &s->options;
    char lines[LINES][LENGTH];
    const char *texts[LINES];
    tutti_comm *world = s->axis_group->world;
    if (!world || tutti_comm_size(world) < 2)
        return TUTTI_OK;
    snprintf(lines[0], LENGTH, "wire=%s", or_else(wire, "f32"));
    if (options->deterministic)
        snprintf(lines[1], LENGTH, "deterministic, shards=%d", options->shards);
    else
        snprintf(lines[1], LENGTH, "not deterministic");
    snprintf(lines[2], LENGTH, "reduction=%s", or_else(options->reduction, "auto"));
    snprintf(lines[3], LENGTH, "bucket=%lld, overlap=%s", (long long)options->bucket_bytes,
             choice(options->overlap));
    snprintf(lines[4], LENGTH, "sparse=%s", or_else(options->sparse, "auto"));
    snprintf(lines[5], LENGTH, "mesh=%s", or_else(options->mesh, "one axis"));
    snprintf(lines[6], LENGTH, "layout=%s", or_else(options->layout, "all axes cut the batch"));
    snprintf(lines[7], LENGTH, "stages=%d, micro=%d, schedule=%s", options->stages,
             options->micro_batches, or_else(options->schedule, "auto"));
    for (int i = 0; i < LINES; i++)
        texts[i] = lines[i];
    return tutti_comm_agree(
        world, "strategy", texts, LINES, 0,
        &(tutti_comm_call){.struct_size = sizeof(tutti_comm_call), .timeout = options->timeout});
}
