/* second_test.c: second derivatives of every operator, of every sample, through sessions: cpu
 * agrees with the reference, far gives cpu's bits, whole agrees with cpu, and dimensions that are
 * not known when the gradients are made change nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "program/target.h"
#include "tutti/gradients.h"
#include "tutti/ops.h"
#include "tutti/session.h"

enum { SLOTS = 32 };

/* With L the sum of the squares of the outputs: the gradients of the sum of L's gradients. */
typedef struct second {
    tutti_graph *graph;
    int input_count, count;
    tutti_sym inputs[SLOTS], grads[SLOTS];
    tutti_tensor *values[SLOTS]; /* of grads */
} second;

static bool is_float(tutti_sym sym)
{
    return tutti_dtype_is_float(tutti_sym_type(sym).dtype);
}

static void add_to(tutti_sym *sum, tutti_sym term)
{
    term = tutti_sum(tutti_cast(term, TUTTI_F64));
    *sum = sum->node ? tutti_add(*sum, term) : term;
}

/* The gradients of `y` for floating inputs; fewer where it does not depend on one. */
static int differentiate(const second *s, tutti_sym y, tutti_sym *ret)
{
    tutti_sym xs[SLOTS];
    tutti_grad grads[SLOTS];
    int count = 0, made = 0;
    for (int i = 0; i < s->input_count; i++)
        if (is_float(s->inputs[i]))
            xs[count++] = s->inputs[i];
    if (!y.node || count == 0)
        return 0;
    tutti_gradients(y, count, xs, grads);
    for (int i = 0; i < count; i++)
        if (tutti_grad_ok(grads[i]))
            ret[made++] = tutti_grad_dense(grads[i], xs[i]);
    return made;
}

/* False when a rule asks for a dimension that is not known. */
static bool build(const tutti_sample *sample, bool unknown, second *ret)
{
    second s = {.input_count = sample->input_count};
    tutti_sym first = TUTTI_NO_SYM, total = TUTTI_NO_SYM, grads[SLOTS];
    CHECK_OK(tutti_graph_create(&s.graph));
    for (int i = 0; i < s.input_count; i++) {
        tutti_type type = sample->types[i];
        for (int axis = 0; unknown && axis < type.rank; axis++)
            type.dims[axis] = TUTTI_ANY;
        s.inputs[i] = (tutti_placeholder)(s.graph, type);
    }
    tutti_sym y = tutti_apply_op(s.graph, sample->op->name, s.input_count, s.inputs,
                                 sample->attr_count, sample->attrs);
    for (int i = 0; i < sample->output_count && tutti_sym_ok(y); i++)
        if (is_float(tutti_sym_output(y, i)))
            add_to(&first, tutti_square(tutti_sym_output(y, i)));
    int count = differentiate(&s, first, grads);
    for (int i = 0; i < count; i++)
        add_to(&total, grads[i]);
    s.count = differentiate(&s, total, s.grads);
    tutti_status status = tutti_graph_check(s.graph);
    if (status != TUTTI_OK && !(unknown && strstr(tutti_error_message(), "known")))
        tutti__test_fail(__FILE__, __LINE__, "%s \"%s\"%s: %s", sample->op->name, sample->text,
                         unknown ? " without dimensions" : "", tutti_error_message());
    if (status == TUTTI_OK)
        *ret = s;
    else
        tutti_graph_destroy(s.graph);
    return status == TUTTI_OK;
}

static tutti_status run(second *s, const tutti_sample *sample, const char *device)
{
    tutti_feed feeds[SLOTS];
    tutti_fetch fetches[SLOTS];
    tutti_run_options options = {.struct_size = sizeof options,
                                 .feed = {s->input_count, feeds},
                                 .fetch = {s->count, fetches}};
    tutti_session *session;
    for (int i = 0; i < s->input_count; i++)
        feeds[i] = (tutti_feed){s->inputs[i], sample->values[i]};
    for (int i = 0; i < s->count; i++)
        fetches[i] = (tutti_fetch){s->grads[i], &s->values[i]};
    CHECK_OK(tutti_session_open(&session, s->graph, .device = device, .deadline_seconds = 20));
    tutti_status status = tutti_run_with(session, &options);
    tutti_session_close(session);
    return status;
}

static tutti_status run_reference(second *s, const tutti_sample *sample)
{
    tutti_reference_feed feeds[SLOTS];
    tutti_edge fetches[SLOTS];
    for (int i = 0; i < s->input_count; i++)
        feeds[i] = (tutti_reference_feed){tutti__edge(s->inputs[i]), sample->values[i]};
    for (int i = 0; i < s->count; i++)
        fetches[i] = tutti__edge(s->grads[i]);
    return tutti__reference_run(s->graph, s->input_count, feeds, s->count, fetches, s->values);
}

static void drop(second *s)
{
    for (int i = 0; i < s->count; i++)
        tutti_tensor_release(s->values[i]);
    tutti_graph_destroy(s->graph);
}

/* On a device, NULL for the reference; false where there is nothing to compare. */
static bool compute(const tutti_sample *sample, const char *device, bool unknown, second *ret)
{
    if (!build(sample, unknown, ret))
        return false;
    tutti_status status = ret->count == 0  ? TUTTI_OK
                          : device == NULL ? run_reference(ret, sample)
                                           : run(ret, sample, device);
    if (status != TUTTI_OK)
        tutti__test_fail(__FILE__, __LINE__, "%s \"%s\" on %s: %s", sample->op->name, sample->text,
                         device ? device : "the reference", tutti_error_message());
    return true;
}

static void compare(const tutti_sample *sample, const second *expected, const char *device,
                    bool unknown, double tolerance)
{
    second s;
    if (!compute(sample, device, unknown, &s))
        return;
    CHECK_INT(s.count, expected->count);
    for (int i = 0; i < s.count; i++)
        if (tolerance == 0 ? !tutti_tensor_same(s.values[i], expected->values[i])
                           : tutti__tensor_near(s.values[i], expected->values[i], tolerance,
                                                "gradient") != TUTTI_OK)
            tutti__test_fail(__FILE__, __LINE__, "%s \"%s\" on %s%s: gradient %d is not cpu's: %s",
                             sample->op->name, sample->text, device ? device : "the reference",
                             unknown ? " without dimensions" : "", i,
                             tolerance == 0 ? "other bits" : tutti_error_message());
    drop(&s);
}

/* Whether second derivatives are asked for: variables have theirs through their reads. */
static bool counts(const tutti_sample *sample)
{
    bool values = sample->input_count <= SLOTS && sample->output_count <= SLOTS;
    for (int i = 0; i < sample->input_count; i++)
        values = values && !sample->types[i].handle;
    return values && sample->op->gradient && !(sample->op->flags & TUTTI_OP_UPDATES);
}

/* With fewer indices than elements these need to know so when they are built (see ops_shape.h). */
static bool needs_dimensions(const tutti_sample *sample)
{
    return strcmp(sample->op->name, "gather_elements") == 0 ||
           strcmp(sample->op->name, "scatter_elements") == 0;
}

/* Gradients of 16 bits are rounded on their way, elsewhere on every device. */
static double tolerance_of(const tutti_sample *sample)
{
    bool narrow = false;
    for (int i = 0; i < sample->input_count; i++)
        narrow =
            narrow || sample->types[i].dtype == TUTTI_F16 || sample->types[i].dtype == TUTTI_BF16;
    return narrow ? 5e-2 : 1e-3;
}

/* `device`: on that one only; NULL: on those for tests. */
static void check(const tutti_sample *sample, const char *device)
{
    second here;
    double tolerance = tolerance_of(sample);
    if (!counts(sample) || !compute(sample, "cpu:0", false, &here))
        return;
    if (device) {
        compare(sample, &here, device, false, tolerance);
        drop(&here);
        return;
    }
    if (!(sample->op->flags & TUTTI_OP_RANDOM))
        compare(sample, &here, NULL, false, tolerance);
    if (!needs_dimensions(sample))
        compare(sample, &here, "cpu:0", true, tolerance);
    compare(sample, &here, "far:0", false, 0);
    compare(sample, &here, "whole:0", false, tolerance);
    drop(&here);
}

static void check_all(const char *device)
{
    const tutti_op *ops[1024];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    for (size_t i = 0; i < count; i++)
        for (const char *const *text = ops[i]->samples; text && *text; text++) {
            tutti_sample *sample;
            CHECK_OK(tutti__sample_parse(ops[i], *text, 1, &sample));
            check(sample, device);
            tutti__sample_free(sample);
        }
}

TUTTI_TEST(second_derivatives_are_the_same_on_every_device)
{
    CHECK_OK(tutti__param_set("FAR_DELAY_US", "2"));
    check_all(NULL);
}

TUTTI_TEST(second_derivatives_are_the_same_on_a_gpu)
{
    tutti_device *device;
    if (tutti__device_open("gpu:0", &device) != TUTTI_OK)
        SKIP("no GPU: %s", tutti_error_message());
    check_all("gpu:0");
}
