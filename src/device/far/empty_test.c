/* empty_test.c: every sample of every operator with a dimension set to 0, where the shape rule
 * takes that, forward and backward: the devices agree with the reference and with each other;
 * nothing divides by the number of elements, reads the first of none or leaves a result unwritten.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "ops/sample.h"
#include "tutti/gradients.h"
#include "tutti/ops.h"
#include "tutti/session.h"

enum { SLOTS = 32, PLACES = 24 };

/* What a sample gives on one device: its outputs, then gradients. */
typedef struct outcome {
    tutti_status status;
    char message[1024];
    int count;
    tutti_tensor *values[2 * SLOTS];
} outcome;

/* The sample's text with dimensions set to 0: that at place `which` among those of the inputs, or,
 * with `same`, all that are equal to it, in lists of attributes too. Values behind a shape that was
 * changed are left out. False when there is no such dimension, or it is 0. */
static bool make_empty(const char *text, int which, bool same, char *ret)
{
    const char *bar = strstr(text, " | ");
    long wanted = -1;
    int seen = 0;
    bool inside = false, changed = false;
    for (const char *at = text; *at;) {
        bool attribute = bar && at >= bar;
        inside = *at == '[' || (inside && *at != ']');
        changed = changed && *at != ' ';
        if (changed && !attribute && at[0] == '{' && at[1] == '=') {
            at = strchr(at, '}') + 1;
            continue;
        }
        if (!inside || !isdigit((unsigned char)*at) || at[-1] == '-' || at[-1] == '.') {
            *ret++ = *at++;
            continue;
        }
        char *end;
        long value = strtol(at, &end, 10);
        if (!attribute && seen++ == which)
            wanted = value;
        bool hit = same ? value == wanted : !attribute && seen - 1 == which;
        changed |= hit;
        ret += sprintf(ret, "%ld", hit ? 0 : value);
        at = end;
    }
    *ret = '\0';
    return wanted > 0;
}

/* d(sum of the floating outputs)/d(every floating input), as fetches; how many. */
static int add_gradients(const tutti_sample *sample, tutti_sym *ret)
{
    tutti_sym xs[SLOTS], total = TUTTI_NO_SYM;
    tutti_grad grads[SLOTS];
    int count = 0, made = 0;
    for (int i = 0; i < sample->input_count; i++)
        if (tutti_dtype_is_float(sample->types[i].dtype))
            xs[count++] = tutti__sym(sample->node->inputs[i].node, 0);
    for (int i = 0; i < sample->output_count; i++)
        if (tutti_dtype_is_float(sample->node->types[i].dtype)) {
            tutti_sym y = tutti_sum(tutti_cast(tutti__sym(sample->node, (uint32_t)i), TUTTI_F32));
            total = total.node ? tutti_add(total, y) : y;
        }
    if (!total.node || count == 0 || !sample->op->gradient)
        return 0;
    tutti_gradients(total, count, xs, grads);
    for (int i = 0; i < count; i++)
        if (tutti_grad_ok(grads[i]) && !grads[i].rows.node)
            ret[made++] = grads[i].value;
    return made;
}

static void run_on(const char *device, const tutti_sample *sample, int gradient_count,
                   const tutti_sym *gradients, outcome *ret)
{
    tutti_feed feeds[SLOTS];
    tutti_fetch fetches[2 * SLOTS];
    tutti_session *session;
    tutti_run_options options = {.struct_size = sizeof options,
                                 .feed = {sample->input_count, feeds},
                                 .fetch = {sample->output_count + gradient_count, fetches}};
    *ret = (outcome){.count = options.fetch.count};
    for (int i = 0; i < sample->input_count; i++)
        feeds[i] = (tutti_feed){tutti__sym(sample->node->inputs[i].node, 0), sample->values[i]};
    for (int i = 0; i < ret->count; i++) {
        bool output = i < sample->output_count;
        fetches[i] = (tutti_fetch){output ? tutti__sym(sample->node, (uint32_t)i)
                                          : gradients[i - sample->output_count],
                                   &ret->values[i]};
    }
    if (ret->count == 0)
        options.target = tutti__sym(sample->node, 0);
    CHECK_OK(tutti_session_open(
        &session, sample->graph, .device = device, .deadline_seconds = 20,
        .mesh = {.axis_count = 2, .axes = {"data", "model"}, .sizes = {1, 1}, .devices = &device}));
    ret->status = tutti_run_with(session, &options);
    snprintf(ret->message, sizeof ret->message, "%s", tutti_error_message());
    tutti_session_close(session);
}

static void compare(const char *device, const char *text, const tutti_sample *sample,
                    const outcome *o, tutti_status status, int count, tutti_tensor *const *expected)
{
    if ((o->status == TUTTI_OK) != (status == TUTTI_OK))
        tutti__test_fail(__FILE__, __LINE__, "%s \"%s\" on %s: %s", sample->op->name, text, device,
                         o->status == TUTTI_OK ? "runs, elsewhere it does not" : o->message);
    for (int i = 0; o->status == TUTTI_OK && i < count; i++)
        if (tutti__tensor_near(o->values[i], expected[i], -1, "value") != TUTTI_OK)
            tutti__test_fail(__FILE__, __LINE__, "%s \"%s\" on %s, value %d: %s", sample->op->name,
                             text, device, i, tutti_error_message());
}

static void release(int count, tutti_tensor **values)
{
    for (int i = 0; i < count; i++)
        tutti_tensor_release(values[i]);
}

static void run_everywhere(const tutti_sample *sample, const char *text)
{
    static const char *const devices[] = {"far:0", "whole:0"};
    tutti_tensor *reference[SLOTS] = {0};
    tutti_sym gradients[SLOTS];
    outcome here, there;
    tutti_status status = tutti__sample_run(sample, reference);
    int count = status == TUTTI_OK ? add_gradients(sample, gradients) : 0;
    CHECK_OK(tutti_graph_check(sample->graph));
    run_on("cpu:0", sample, count, gradients, &here);
    compare("cpu:0", text, sample, &here, status, sample->output_count, reference);
    for (int i = 0; i < 2; i++) {
        run_on(devices[i], sample, count, gradients, &there);
        compare(devices[i], text, sample, &there, here.status, here.count, here.values);
        release(there.count, there.values);
    }
    release(here.count, here.values);
    release(sample->output_count, reference);
}

/* 1 when the shape rule takes it. Variables have their own tests. */
static int try_empty(const tutti_op *op, const char *text)
{
    tutti_sample *sample;
    if (tutti__sample_parse(op, text, 1, &sample) != TUTTI_OK)
        return 0;
    bool fits = sample->input_count <= SLOTS && sample->output_count <= SLOTS;
    for (int i = 0; i < sample->input_count; i++)
        fits &= !sample->types[i].handle;
    if (fits)
        run_everywhere(sample, text);
    tutti__sample_free(sample);
    return fits;
}

TUTTI_TEST(empty_tensors_through_every_operator)
{
    const tutti_op *ops[1024];
    char text[512];
    int tried = 0;
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    CHECK_OK(tutti__param_set("FAR_DELAY_US", "2"));
    for (size_t i = 0; i < count; i++)
        for (const char *const *sample = ops[i]->samples; sample && *sample; sample++)
            for (int which = 0; which < PLACES; which++)
                for (int same = 0; same < 2; same++)
                    if (make_empty(*sample, which, same, text))
                        tried += try_empty(ops[i], text);
    CHECK(tried > 1000);
}
