/* imagine.c: a strategy of replicas that are not there, as one of them would have it: what is
 * compiled for it is what that replica would run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "forecast/forecast.h"

static const tutti_param device_param =
    TUTTI_PARAM("DEVICE", "cpu:0", "the device of programs that name none");

static tutti_status imagine_fill(tutti_strategy *s, int replicas, int first)
{
    const char *device = s->options.devices ? s->options.devices : tutti__param_text(&device_param);
    TUTTI_TRY(tutti__strategy_take_shards(s));
    s->local = 1;
    s->devices = calloc(1, sizeof *s->devices);
    s->device_names = calloc(1, sizeof *s->device_names);
    if (!s->devices || !s->device_names)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a strategy");
    snprintf(s->devices[0], sizeof s->devices[0], "%s", device);
    s->device_names[0] = s->devices[0];
    if (s->kind->central)
        snprintf(s->central, sizeof s->central, "%s", device);
    if (s->options.deterministic && replicas > s->options.shards)
        return tutti_fail(TUTTI_INVALID,
                          "%d shards cannot be shared by %d replicas; give more: --set shards=%d",
                          s->options.shards, replicas, replicas);
    TUTTI_TRY(tutti__axis_groups_create(NULL, NULL, false, NULL, &s->groups));
    TUTTI_TRY(tutti__axis_groups_add(s->groups, TUTTI_BATCH_AXIS, replicas, first, 1,
                                     s->device_names, &s->axis_group));
    s->options.mesh = s->options.layout = NULL; /* of the job, which may be of another size */
    if (!s->kind->sharded)
        s->options.zero = 0;
    return tutti__strategy_layout(s);
}

tutti_strategy *tutti__strategy_imagine(const char *name, int replicas, int first,
                                        const tutti_strategy_options *options)
{
    tutti_strategy *s = tutti__strategy_new(name, options);
    if (!s || !s->kind)
        return s;
    tutti_status status = imagine_fill(s, replicas, first);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &s->error);
    return s;
}
