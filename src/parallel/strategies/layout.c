/* layout.c: the mesh of a job's devices, and which of its axes cut what. */
#include <string.h>

#include "parallel/strategies/strategy.h"

/* "cpu:0,cpu:1", with the task of each process before it where there are several; all have devices
 * of the same names. */
static tutti_status name_devices(const tutti_strategy *s, tutti_text *ret)
{
    int processes = s->axis_group->size / s->axis_group->local;
    for (int p = 0; p < processes; p++)
        for (int i = 0; i < s->local; i++) {
            tutti__text_add(ret, "%s", p + i > 0 ? "," : "");
            if (processes > 1)
                tutti__text_add(ret, "/job:worker/task:%d/", p);
            tutti__text_add(ret, "%s", s->devices[i]);
        }
    return ret->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh") : TUTTI_OK;
}

static tutti_status make_mesh(tutti_strategy *s)
{
    tutti_text axes = {0}, devices = {0};
    tutti__text_add(&axes, TUTTI_BATCH_AXIS "=%d", s->axis_group->size);
    tutti_status status = name_devices(s, &devices);
    if (status == TUTTI_OK && (axes.failed || !axes.data))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    if (status == TUTTI_OK)
        status = tutti__mesh_create(s->options.mesh ? s->options.mesh : axes.data, devices.data,
                                    &s->mesh);
    tutti__text_free(&axes);
    tutti__text_free(&devices);
    return status;
}

/* Without rules all axes cut the batch, the first one outermost. */
static tutti_status make_layout(tutti_strategy *s)
{
    tutti_text text = {0};
    for (int i = 0; i < s->mesh->axis_count; i++)
        tutti__text_add(&text, "%s%s", i > 0 ? "*" : "batch:", s->mesh->axes[i].name);
    const char *rules = s->options.layout ? s->options.layout : text.data;
    tutti_status status = text.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a layout")
                                      : tutti__layout_parse(rules, s->mesh, &s->layout);
    tutti__text_free(&text);
    return status;
}

/* The rows of a process follow each other: it is fed one block of the batch. */
static tutti_status check_rows(const tutti_strategy *s)
{
    tutti_spmd spmd = tutti__strategy_spmd(s, 0);
    int low = tutti__spmd_batch_ranks(&spmd), high = -1, count = 0;
    for (int rank = 0; rank < tutti__spmd_batch_ranks(&spmd); rank++) {
        bool own = false;
        for (int i = 0; i < spmd.local; i++)
            own = own || tutti__spmd_batch_rank(&spmd, spmd.first + i) == rank;
        count += own;
        low = own && rank < low ? rank : low;
        high = own ? rank : high;
    }
    if (high - low + 1 == count)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "batch:%s: the %d devices of this process would have %d blocks of the batch "
                      "between %d and %d of %d, which do not follow each other; name the axis "
                      "between processes first",
                      s->layout.axes[s->layout.batch].name, spmd.local, count, low, high,
                      tutti__spmd_batch_ranks(&spmd));
}

/* What cuts the batch otherwise cannot do. */
static tutti_status check_axes(const tutti_strategy *s)
{
    bool spans = s->layout.batch >= 0 && tutti__layout_spans(&s->layout, s->layout.batch);
    if (spans || (!s->kind->central && !s->options.deterministic))
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s cuts the batch along all axes of the mesh, in their order; leave "
                      "--layout out",
                      s->kind->central ? "central_storage" : "deterministic mode");
}

tutti_status tutti__strategy_layout(tutti_strategy *s)
{
    TUTTI_TRY(make_mesh(s));
    if (s->options.mesh)
        TUTTI_TRY(tutti__axis_groups_span(s->groups, s->mesh, s->local, s->device_names));
    TUTTI_TRY(make_layout(s));
    TUTTI_TRY(check_rows(s));
    return check_axes(s);
}
