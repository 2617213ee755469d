/* kernel_check.c: see kernel_check.h. */
#include "device/cpu/kernel_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/pool.h"
#include "base/test.h"
#include "device/cpu/tile/chain.h"
#include "ops/build.h"
#include "program/kernel.h"

enum { MOST = 16, MOST_KERNELS = 96, GUARD = 256, MOST_THREADS = 3 };

typedef struct check {
    const tutti_sample *sample;
    const tutti_kernel *kernel;
    tutti_kernel_query query;
    double tolerance;
    tutti_tensor *expected[MOST], *updated[MOST]; /* updated: handles after the reference ran */
    tutti_tensor *first[MOST];                    /* results under the first pool */
} check;

static void must(const check *c, tutti_status status, const char *what)
{
    if (status != TUTTI_OK)
        tutti__test_fail(__FILE__, __LINE__, "%s, kernel %s (%s): %s: %s", c->sample->text,
                         c->kernel == NULL ? "-" : c->kernel->name,
                         c->kernel == NULL ? "-" : c->kernel->isa, what, tutti_error_message());
}

static tutti_view view_of(tutti_tensor *tensor)
{
    return (tutti_view){tutti_tensor_data(tensor), tutti_tensor_dtype(tensor),
                        tutti_tensor_rank(tensor), tutti_tensor_dims(tensor), NULL};
}

static tutti_tensor *copy_of(const check *c, tutti_tensor *tensor)
{
    tutti_tensor *copy;
    must(c,
         tutti_tensor_from(tutti_tensor_dtype(tensor), tutti_tensor_rank(tensor),
                           tutti_tensor_dims(tensor), tutti_tensor_data(tensor), &copy),
         "copy");
    return copy;
}

/* Outputs start as NaN bits, so that an element that is not written shows. */
static tutti_tensor *new_output(const check *c, const tutti_type *type)
{
    tutti_tensor *tensor;
    must(c, tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor), "output");
    memset(tutti_tensor_data(tensor), 0xff,
           (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(type->dtype));
    return tensor;
}

static char *guarded(size_t bytes)
{
    char *memory = aligned_alloc(64, (bytes + 2 * GUARD + 63) / 64 * 64);
    CHECK(memory != NULL);
    memset(memory, 0x5a, bytes + 2 * GUARD);
    return memory;
}

static void check_guards(const check *c, const char *memory, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (memory[i] != 0x5a || memory[GUARD + bytes + i] != 0x5a)
            tutti__test_fail(__FILE__, __LINE__,
                             "%s, kernel %s: wrote outside its workspace of %zu", c->sample->text,
                             c->kernel->name, bytes);
}

static void kernel_check_compare(check *c, int index, tutti_tensor *actual, tutti_tensor *expected,
                                 int threads)
{
    tutti_dtype dtype = tutti_tensor_dtype(actual);
    must(c, tutti__tensor_near(actual, expected, c->tolerance, "result"), "compared");
    if ((tutti_dtype_is_int(dtype) || dtype == TUTTI_BOOL) && !tutti_tensor_same(actual, expected))
        tutti__test_fail(__FILE__, __LINE__, "%s, kernel %s: other bytes than the reference's",
                         c->sample->text, c->kernel->name);
    if (c->first[index] == NULL) {
        c->first[index] = tutti_tensor_retain(actual);
        return;
    }
    if (!tutti_tensor_same(c->first[index], actual))
        tutti__test_fail(__FILE__, __LINE__, "%s, kernel %s: %d threads give other bits than one",
                         c->sample->text, c->kernel->name, threads);
}

/* One run; `inplace` >= 0: output 0 is written over that input. */
static void run_once(check *c, void *plan, size_t workspace, int threads, int inplace)
{
    const tutti_sample *s = c->sample;
    tutti_view inputs[MOST], outputs[MOST];
    tutti_tensor *in[MOST], *out[MOST];
    tutti_pool *pool;
    must(c, tutti__pool_create(threads, -1, &pool), "pool");
    for (int i = 0; i < s->input_count; i++) {
        in[i] = copy_of(c, s->values[i]);
        inputs[i] = view_of(in[i]);
        if (c->kernel->reads != NULL && !c->kernel->reads(plan, i))
            inputs[i].data = NULL; /* as in runs */
    }
    for (int i = 0; i < s->output_count; i++) {
        out[i] = i == 0 && inplace >= 0 ? tutti_tensor_retain(in[inplace])
                                        : new_output(c, &s->node->types[i]);
        outputs[i] = view_of(out[i]);
    }
    char *memory = guarded(workspace);
    tutti_kernel_call call = {.op = s->op,
                              .name = s->op->name,
                              .attrs = s->attrs,
                              .attr_count = s->attr_count,
                              .input_count = s->input_count,
                              .output_count = s->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .workspace = memory + GUARD,
                              .plan = plan,
                              .pool = pool,
                              .deadline = INT64_MAX};
    must(c, c->kernel->run(&call), "run");
    check_guards(c, memory, workspace);
    for (int i = 0; i < s->output_count; i++)
        kernel_check_compare(c, i, out[i], c->expected[i], threads);
    for (int i = 0; i < s->input_count; i++)
        if (s->types[i].handle)
            must(c, tutti__tensor_near(in[i], c->updated[i], c->tolerance, "variable"), "compared");
        else if (i != inplace && !tutti_tensor_same(in[i], s->values[i]))
            tutti__test_fail(__FILE__, __LINE__, "%s, kernel %s: input %d was written", s->text,
                             c->kernel->name, i);
    for (int i = 0; i < s->output_count; i++)
        tutti_tensor_release(out[i]);
    for (int i = 0; i < s->input_count; i++)
        tutti_tensor_release(in[i]);
    free(memory);
    tutti__pool_destroy(pool);
}

/* Whether output 0 may share input i's memory: types agree and no other input is the same. */
static bool can_overwrite(const check *c, int i)
{
    return c->kernel->inplace >> i & 1 && !c->sample->types[i].handle &&
           tutti_type_equal(&c->sample->types[i], &c->sample->node->types[0]);
}

static void run_kernel(check *c)
{
    void *plan = NULL;
    if (c->kernel->prepare != NULL)
        must(c, c->kernel->prepare(&c->query, &plan), "prepare");
    size_t workspace = tutti__kernel_workspace(c->kernel, &c->query, plan);
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        run_once(c, plan, workspace, threads, -1);
    for (int i = 0; i < c->sample->input_count && i < 32; i++)
        if (can_overwrite(c, i))
            run_once(c, plan, workspace, 2, i);
    if (c->kernel->discard != NULL)
        c->kernel->discard(plan);
    for (int i = 0; i < c->sample->output_count; i++) {
        tutti_tensor_release(c->first[i]);
        c->first[i] = NULL;
    }
}

static void expect(check *c)
{
    const tutti_sample *s = c->sample;
    for (int i = 0; i < s->input_count; i++)
        c->updated[i] =
            s->types[i].handle ? copy_of(c, s->values[i]) : tutti_tensor_retain(s->values[i]);
    must(c, tutti__sample_run_on(s, c->updated, s->attrs, c->expected), "reference");
}

/* Whether one of the same name, of another instruction set, stands before it. */
static bool counted(const tutti_kernel *const *kernels, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(kernels[i]->name, kernels[index]->name) == 0)
            return true;
    return false;
}

int tutti__kernel_check_sample(const tutti_sample *sample, double tolerance)
{
    check c = {.sample = sample, .tolerance = tolerance};
    const tutti_kernel *kernels[MOST_KERNELS];
    int count = tutti__kernel_list(sample->op->name, "cpu", MOST_KERNELS, kernels), bids = 0;
    bool expected = false;
    tutti_tensor *constants[MOST];
    CHECK(count <= MOST_KERNELS && sample->input_count <= MOST && sample->output_count <= MOST);
    c.query = (tutti_kernel_query){.node = tutti__sample_rule(sample), .threads = MOST_THREADS};
    for (int i = 0; i < sample->input_count; i++)
        constants[i] = sample->types[i].handle ? NULL : sample->values[i];
    for (int i = 0; i < count; i++) {
        c.kernel = kernels[i];
        if (kernels[i]->score(&c.query) <= 0)
            continue;
        if (!expected)
            expect(&c);
        expected = true;
        bids += !counted(kernels, i);
        run_kernel(&c);
        c.query.node.values = constants; /* once more with inputs that are known beforehand */
        if (kernels[i]->prepare != NULL && kernels[i]->score(&c.query) > 0)
            run_kernel(&c);
        c.query.node.values = NULL;
    }
    for (int i = 0; bids > 0 && i < sample->output_count; i++)
        tutti_tensor_release(c.expected[i]);
    for (int i = 0; bids > 0 && i < sample->input_count; i++)
        tutti_tensor_release(c.updated[i]);
    return bids;
}

int tutti__kernel_check_fused(const char *op, const char *pattern, tutti_graph *body, int count,
                              tutti_tensor *const *values, double tolerance)
{
    tutti_graph *graph;
    tutti_sym inputs[MOST];
    tutti_type types[MOST];
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body), TUTTI_STR("pattern", pattern)};
    CHECK_OK(tutti_graph_create(&graph));
    CHECK(count <= MOST);
    for (int i = 0; i < count; i++) {
        types[i] = *tutti_tensor_type(values[i]);
        inputs[i] = (tutti_placeholder)(graph, types[i]);
    }
    tutti_sym fused = tutti_apply_op(graph, op, count, inputs, 2, attrs);
    CHECK(tutti_sym_ok(fused));
    tutti_sample sample = {.op = fused.node->op,
                           .input_count = count,
                           .output_count = fused.node->output_count,
                           .attr_count = fused.node->attr_count,
                           .types = types,
                           .values = (tutti_tensor **)(uintptr_t)values,
                           .attrs = fused.node->attrs,
                           .graph = graph,
                           .node = fused.node};
    int bids = tutti__kernel_check_sample(&sample, tolerance);
    tutti_graph_destroy(graph);
    return bids;
}

int tutti__kernel_check(const char *op, const char *text, double tolerance)
{
    tutti_sample *sample;
    const tutti_op *found = tutti_op_find(op);
    if (found == NULL)
        tutti__test_fail(__FILE__, __LINE__, "operator %s is unknown", op);
    tutti_status status = tutti__sample_parse(found, text, 7, &sample);
    if (status != TUTTI_OK)
        tutti__test_fail(__FILE__, __LINE__, "%s \"%s\": %s", op, text, tutti_error_message());
    int bids = tutti__kernel_check_sample(sample, tolerance);
    tutti__sample_free(sample);
    return bids;
}

void tutti__kernel_check_op(const char *op)
{
    static const tutti_dtype others[] = {TUTTI_F64, TUTTI_F16, TUTTI_BF16};
    const tutti_op *found = tutti_op_find(op);
    if (found == NULL)
        tutti__test_fail(__FILE__, __LINE__, "operator %s is unknown", op);
    int bids = 0, floats = 0; /* operators of integers alone are left to their reference */
    for (const char *const *text = found->samples; text != NULL && *text != NULL; text++) {
        tutti_sample *sample, *other;
        if (tutti__sample_parse(found, *text, 11, &sample) != TUTTI_OK)
            continue;
        bids += tutti__kernel_check_sample(sample, -1);
        floats += sample->input_count > 0 && !tutti_dtype_is_int(sample->types[0].dtype);
        for (size_t i = 0; i < TUTTI_COUNT(others); i++) {
            if (tutti__sample_cast(sample, TUTTI_F32, others[i], &other) != TUTTI_OK)
                continue;
            bids += tutti__kernel_check_sample(other, -1);
            tutti__sample_free(other);
        }
        tutti__sample_free(sample);
    }
    if (bids == 0 && floats > 0)
        tutti__test_fail(__FILE__, __LINE__, "no kernel bids for any sample of %s", op);
}

const char *tutti__kernel_error(const char *op, const char *text, tutti_status status)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 7, &sample));
    check c = {.sample = sample};
    c.query = (tutti_kernel_query){.node = tutti__sample_rule(sample), .threads = 1};
    c.kernel = tutti__kernel_pick("cpu", &c.query);
    CHECK(c.kernel != NULL);
    tutti_view inputs[MOST], outputs[MOST];
    for (int i = 0; i < sample->input_count; i++)
        inputs[i] = view_of(sample->values[i]);
    tutti_tensor *out[MOST] = {0};
    for (int i = 0; i < sample->output_count; i++) {
        out[i] = new_output(&c, &sample->node->types[i]);
        outputs[i] = view_of(out[i]);
    }
    void *plan = NULL;
    if (c.kernel->prepare != NULL)
        must(&c, c.kernel->prepare(&c.query, &plan), "prepare");
    char *memory = guarded(tutti__kernel_workspace(c.kernel, &c.query, plan));
    tutti_kernel_call call = {.op = sample->op,
                              .name = sample->op->name,
                              .attrs = sample->attrs,
                              .attr_count = sample->attr_count,
                              .input_count = sample->input_count,
                              .output_count = sample->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .workspace = memory + GUARD,
                              .plan = plan,
                              .deadline = INT64_MAX};
    CHECK_STATUS(c.kernel->run(&call), status);
    if (c.kernel->discard != NULL)
        c.kernel->discard(plan);
    for (int i = 0; i < sample->output_count; i++)
        tutti_tensor_release(out[i]);
    free(memory);
    tutti__sample_free(sample);
    return tutti_error_message();
}

const char *const tutti__kernel_check_isas[] = {"base", "avx2", "avx512", "sve", NULL};

bool tutti__kernel_check_under(const char *isa)
{
    CHECK_OK(tutti__param_set("ISA", NULL));
    if (isa && !tutti__isa_present(isa))
        return false;
    CHECK_OK(tutti__param_set("ISA", isa));
    return tutti__chain() != NULL; /* else left out of a build for this machine alone */
}
