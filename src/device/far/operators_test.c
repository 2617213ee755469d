/* operators_test.c: every sample of every operator, through sessions on the test devices: far gives
 * cpu's bits, whole agrees with the reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "ops/sample.h"
#include "program/target.h"
#include "tutti/ops.h"
#include "tutti/session.h"

/* What one run of a sample gives: the outputs, then every variable among the inputs. */
typedef struct outcome {
    int count;
    tutti_tensor **values;
} outcome;

static void free_outcome(outcome *o)
{
    for (int i = 0; i < o->count; i++)
        tutti_tensor_release(o->values[i]);
    free(o->values);
}

/* Gives the sample's variables their values by assignments. */
static tutti_status set_variables(tutti_session *session, const tutti_sample *sample)
{
    for (int i = 0; i < sample->input_count; i++) {
        tutti_edge input = sample->node->inputs[i];
        if (!sample->types[i].handle || !tutti__is(input.node, "variable"))
            continue;
        tutti_type type = sample->types[i];
        type.handle = false;
        tutti_sym fed = (tutti_placeholder)(sample->graph, type);
        tutti_sym set = tutti_assign(tutti__sym(input.node, 0), fed);
        TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({fed, sample->values[i]}), .target = set));
    }
    return TUTTI_OK;
}

static tutti_status run_in(tutti_session *session, const tutti_sample *sample, outcome *ret)
{
    tutti_feed feeds[32];
    tutti_fetch fetches[32];
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {0, feeds}, .fetch = {0, fetches}};
    int count = sample->output_count;
    CHECK(sample->input_count <= 32 && count <= 32);
    outcome o = {.values = calloc((size_t)(count + sample->input_count) + 1, sizeof *o.values)};
    TUTTI_TRY(set_variables(session, sample));
    for (int i = 0; i < sample->input_count; i++)
        if (!sample->types[i].handle)
            feeds[options.feed.count++] =
                (tutti_feed){tutti__sym(sample->node->inputs[i].node, 0), sample->values[i]};
    for (int i = 0; i < count; i++)
        if (!sample->node->types[i].handle)
            fetches[options.fetch.count++] =
                (tutti_fetch){tutti__sym(sample->node, (uint32_t)i), &o.values[o.count++]};
    if (count == 0)
        options.target = tutti__sym(sample->node, 0);
    tutti_status status = tutti_run_with(session, &options);
    for (int i = 0; status == TUTTI_OK && i < sample->input_count; i++)
        if (sample->types[i].handle)
            status = tutti_session_get(session, tutti__sym(sample->node->inputs[i].node, 0),
                                       &o.values[o.count++]);
    if (status == TUTTI_OK)
        *ret = o;
    else
        free(o.values);
    return status;
}

/* False, and a line about it, when it fails. */
static bool run_on(const char *device, const tutti_op *op, const char *text, outcome *ret)
{
    tutti_sample *sample;
    tutti_session *session;
    CHECK_OK(tutti__sample_parse(op, text, 1, &sample));
    CHECK_OK(tutti_session_open(&session, sample->graph, .device = device, .deadline_seconds = 20,
                                .mesh = "data=1,model=1", .mesh_devices = device));
    tutti_status status = run_in(session, sample, ret);
    if (status != TUTTI_OK)
        fprintf(stderr, "%s \"%s\" on %s: %s\n", op->name, text, device, tutti_error_message());
    tutti_session_close(session);
    tutti__sample_free(sample);
    return status == TUTTI_OK;
}

/* Says where they are not the same. */
static bool compare(const char *device, double tolerance, const tutti_op *op, const char *text)
{
    outcome here, there;
    bool all = true;
    if (!run_on("cpu:0", op, text, &here) || !run_on(device, op, text, &there))
        return false;
    CHECK_INT(here.count, there.count);
    for (int i = 0; i < here.count; i++) {
        bool same = tutti_tensor_same(here.values[i], there.values[i]);
        if (!same && tolerance > 0)
            same = tutti__tensor_near(there.values[i], here.values[i], -1, text) == TUTTI_OK;
        if (!same)
            fprintf(stderr, "%s \"%s\": value %d on %s is not cpu's: %s\n", op->name, text, i,
                    device, tolerance == 0 ? "other bits" : tutti_error_message());
        all = all && same;
    }
    free_outcome(&here);
    free_outcome(&there);
    return all;
}

static void compare_all(const char *device, double tolerance)
{
    const tutti_op *ops[1024];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    int failed = 0;
    CHECK(count > 100 && count <= TUTTI_COUNT(ops));
    for (size_t i = 0; i < count; i++)
        for (const char *const *text = ops[i]->samples; text && *text; text++)
            failed += !compare(device, tolerance, ops[i], *text);
    CHECK_INT(failed, 0);
}

TUTTI_TEST(far_runs_every_operator)
{
    CHECK_OK(tutti__param_set("FAR_DELAY_US", "2"));
    compare_all("far:0", 0);
}

TUTTI_TEST(whole_runs_every_operator)
{
    compare_all("whole:0", 1);
}

TUTTI_TEST(gpu_runs_every_operator)
{
    tutti_device *device;
    if (tutti__device_open("gpu:0", &device) != TUTTI_OK)
        SKIP("no GPU: %s", tutti_error_message());
    compare_all("gpu:0", 1);
}
