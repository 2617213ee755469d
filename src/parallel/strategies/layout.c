/* layout.c: the mesh of a job's devices, and which of its axes cut what. */
#include <stdio.h>
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

/* Groups are known by the names of their axes, and one axis named so has all devices already. */
static tutti_status check_names(const tutti_strategy *s)
{
    if (s->mesh->axis_count < 2 || tutti__mesh_axis(s->mesh, TUTTI_BATCH_AXIS) < 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "an axis of the mesh %s is called '%s', which is the name of all %d devices "
                      "together; call it otherwise (--mesh data=2,model=2)",
                      s->options.mesh, TUTTI_BATCH_AXIS, s->axis_group->size);
}

static tutti_status make_mesh(tutti_strategy *s)
{
    tutti_text axes = {0}, devices = {0};
    tutti__text_add(&axes, "%s=%d", s->kind->pipeline ? TUTTI_PIPE_AXIS : TUTTI_BATCH_AXIS,
                    s->axis_group->size);
    tutti_status status = name_devices(s, &devices);
    if (status == TUTTI_OK && (axes.failed || !axes.data))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    if (status == TUTTI_OK)
        status = tutti__mesh_create(s->options.mesh ? s->options.mesh : axes.data, devices.data,
                                    &s->mesh);
    tutti__text_free(&axes);
    tutti__text_free(&devices);
    return status == TUTTI_OK ? check_names(s) : status;
}

/* Whether an axis is the strategy's own, which cuts other dimensions than the batch. */
static bool is_own_axis(const tutti_strategy *s, const tutti_mesh_axis *axis)
{
    return s->kind->rules && strcmp(axis->name, s->kind->axis) == 0;
}

/* The axes that weights are stored along: that of the strategy, else all that cut the batch. */
static void add_weights(const tutti_strategy *s, const char *batch, tutti_text *text)
{
    bool own = tutti__mesh_axis(s->mesh, s->kind->axis) >= 0;
    size_t length = strcspn(batch, "; ");
    if (own)
        tutti__text_add(text, "; weights:%s", s->kind->axis);
    else
        tutti__text_add(text, "; weights:%.*s", (int)length, batch);
}

static tutti_status no_own_axis(const tutti_strategy *s)
{
    tutti_text mesh = {0};
    tutti__mesh_print(&mesh, s->mesh);
    tutti_status status =
        tutti_fail(TUTTI_INVALID,
                   "strategy %s divides layers along the axis '%s', which the mesh %s lacks; name "
                   "one so (--mesh data=2,%s=2), or give rules: --layout",
                   s->kind->name, s->kind->axis, mesh.data ? mesh.data : "", s->kind->axis);
    tutti__text_free(&mesh);
    return status;
}

/* Without rules all axes cut the batch, the first one outermost, but for those of the strategy. */
static tutti_status make_layout(tutti_strategy *s)
{
    tutti_text text = {0};
    bool own = !s->kind->rules || s->options.layout;
    for (int i = 0; i < s->mesh->axis_count && !s->kind->pipeline; i++) {
        if (is_own_axis(s, &s->mesh->axes[i])) {
            own = true;
            continue;
        }
        tutti__text_add(&text, "%s%s", text.size > 0 ? "*" : "batch:", s->mesh->axes[i].name);
    }
    if (!own)
        return tutti__text_free(&text), no_own_axis(s);
    if (s->kind->rules)
        tutti__text_add(&text, "%s%s", text.size > 0 ? "; " : "", s->kind->rules);
    const char *given = s->options.layout, *batch = given ? strstr(given, "batch:") : text.data;
    if (s->kind->sharded && given && !strstr(given, "weights:")) {
        text.size = 0;
        tutti__text_add(&text, "%s", given);
    }
    if (s->kind->sharded && batch && !(given && strstr(given, "weights:"))) {
        char axes[256];
        snprintf(axes, sizeof axes, "%s", batch + strlen("batch:"));
        add_weights(s, axes, &text);
        given = NULL;
    }
    const char *rules = given ? given : text.data ? text.data : "";
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
    if (s->layout.batch < 0)
        return TUTTI_OK;
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
    if (s->layout.weights >= 0 && s->options.deterministic)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "deterministic mode stores every variable whole; leave out %s",
                          s->kind->sharded ? "--strategy fully_sharded" : "the rule for weights");
    bool spans = s->layout.batch >= 0 && tutti__layout_spans(&s->layout, s->layout.batch);
    if (spans || s->kind->pipeline || (!s->kind->central && !s->options.deterministic))
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s cuts the batch along all axes of the mesh, in their order; leave "
                      "--layout out",
                      s->kind->central ? "central_storage" : "deterministic mode");
}

/* Along the strategy's own axis stand all devices. */
static tutti_status default_mesh(tutti_strategy *s)
{
    char text[64];
    if (s->options.mesh || !s->kind->axis)
        return TUTTI_OK;
    snprintf(text, sizeof text, "%s=%d", s->kind->axis, s->axis_group->size);
    s->options.mesh = tutti__arena_string(&s->strings, text);
    return s->options.mesh ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
}

static tutti_status check_zero(const tutti_strategy *s)
{
    int zero = s->options.zero;
    if (zero < 0 || zero > 3)
        return tutti_fail(TUTTI_INVALID,
                          "zero=%d: there are stages 1 (optimizer slots in blocks), 2 (gradients, "
                          "too) and 3 (weights, too)",
                          zero);
    if (zero > 0 && s->layout.weights < 0)
        return tutti_fail(TUTTI_INVALID,
                          "zero=%d, but strategy %s stores every variable whole; use --strategy "
                          "fully_sharded, or a rule for weights (--layout \"batch:data; "
                          "weights:data\")",
                          zero, s->kind->name);
    return TUTTI_OK;
}

tutti_status tutti__strategy_layout(tutti_strategy *s)
{
    TUTTI_TRY(default_mesh(s));
    TUTTI_TRY(make_mesh(s));
    if (s->options.mesh || s->kind->pipeline)
        TUTTI_TRY(tutti__axis_groups_span(s->groups, s->mesh, s->local, s->device_names));
    TUTTI_TRY(make_layout(s));
    TUTTI_TRY(check_zero(s));
    TUTTI_TRY(check_rows(s));
    return check_axes(s);
}
