/* operators.c: every operator's samples on a GPU beside its reference on the CPU, in every element
 * type it takes, twice: results are near the reference's and have the same bits both times.
 *
 *     cuda_operators                 all operators
 *     cuda_operators --part 3/16     every 16th of them, from the third on: for several at once
 *     cuda_operators --list          which operators have a kernel; needs no GPU
 *     cuda_operators NAME...         these */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/blas/product.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/lab/fused.h"
#include "device/cuda/operators/dnn.h"
#include "device/cuda/operators/operator.h"
#include "ops/sample.h"
#include "program/tune.h"
#include "tables/op.h"

enum { MOST = 32, SLAB = 256 << 20, NOISE = 4 << 20, GUARD = 512 };

typedef struct bench {
    tutti_cuda_call call;
    tutti_cu_pointer slab;
    size_t used;
    int ran, failed, without;
    bool verbose;
} bench;

typedef struct one {
    const tutti_sample *sample;
    const tutti_cuda_kernel *kernel;
    tutti_kernel_query query;
    tutti_view inputs[MOST], outputs[MOST];
    tutti_tensor *expected[MOST], *updated[MOST], *first[MOST];
    size_t workspace;
} one;

static void complain(bench *b, const one *o, const char *what, const char *more)
{
    b->failed++;
    printf("FAIL %s \"%s\" %s: %s: %s\n", o->sample->op->name, o->sample->text,
           o->kernel ? o->kernel->name : "-", what, more);
}

static tutti_status take(bench *b, size_t bytes, tutti_cu_pointer *ret)
{
    size_t wanted = (bytes + 2 * GUARD + 255) / 256 * 256;
    if (b->used + wanted > SLAB)
        return tutti_fail(TUTTI_TOO_LARGE, "a sample wants more than the laboratory has");
    *ret = b->slab + b->used + GUARD;
    b->used += wanted;
    return TUTTI_OK;
}

static size_t bytes_of(const tutti_tensor *tensor)
{
    return (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(tutti_tensor_dtype(tensor));
}

static tutti_status view_type(bench *b, const tutti_type *type, tutti_view *ret)
{
    tutti_cu_pointer at;
    *ret = (tutti_view){.dtype = type->dtype, .rank = type->rank, .dims = type->dims};
    TUTTI_TRY(take(b, (size_t)tutti__cuda_type_count(type) * tutti_dtype_size(type->dtype), &at));
    ret->data = (void *)(uintptr_t)at;
    return TUTTI_OK;
}

/* Everything is noise but the inputs. */
static tutti_status lay_out(bench *b, one *o, tutti_kernel_call *call)
{
    const tutti_sample *s = o->sample;
    const tutti_cuda_stream on = b->call.on;
    tutti_cu_pointer work, fault;
    b->used = 0;
    TUTTI_TRY(TUTTI_CU(on.device, cuMemsetD8Async(b->slab, 0xff, NOISE, on.stream)));
    TUTTI_TRY(take(b, 8, &fault));
    for (int i = 0; i < s->input_count; i++) {
        TUTTI_TRY(view_type(b, &s->types[i], &o->inputs[i]));
        if (bytes_of(s->values[i]) > 0)
            TUTTI_TRY(TUTTI_CU(on.device, cuMemcpyHtoDAsync(tutti__cuda_in(&b->call, i),
                                                            tutti_tensor_data(s->values[i]),
                                                            bytes_of(s->values[i]), on.stream)));
    }
    for (int i = 0; i < s->output_count; i++)
        TUTTI_TRY(view_type(b, &s->node->types[i], &o->outputs[i]));
    if (b->used > NOISE)
        return tutti_fail(TUTTI_TOO_LARGE, "a sample wants too much");
    TUTTI_TRY(take(b, o->workspace, &work));
    call->workspace = (void *)(uintptr_t)work;
    b->call.fault = fault;
    return TUTTI_OK;
}

static tutti_status fetch(bench *b, const tutti_view *view, tutti_tensor **ret)
{
    const tutti_cuda_stream on = b->call.on;
    TUTTI_TRY(tutti_tensor_create(view->dtype, view->rank, view->dims, ret));
    if (bytes_of(*ret) > 0)
        TUTTI_TRY(TUTTI_CU(on.device, cuMemcpyDtoHAsync(tutti_tensor_data(*ret),
                                                        (tutti_cu_pointer)(uintptr_t)view->data,
                                                        bytes_of(*ret), on.stream)));
    return TUTTI_CU(on.device, cuStreamSynchronize(on.stream));
}

/* What kernels compute in f32 is not the reference's f64 rounded. */
static double tolerance_of(const tutti_sample *s, const tutti_tensor *tensor)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    bool f64 = dtype == TUTTI_F64;
    for (int i = 0; i < s->input_count; i++)
        f64 &= s->types[i].dtype != TUTTI_F32;
    return dtype == TUTTI_F16 ? 4e-3 : dtype == TUTTI_BF16 ? 3e-2 : f64 ? 1e-10 : 2e-5;
}

static void check_tensor(bench *b, one *o, tutti_tensor *actual, tutti_tensor *expected,
                         const char *what)
{
    if (tutti__tensor_near(actual, expected, tolerance_of(o->sample, actual), what) != TUTTI_OK)
        complain(b, o, what, tutti_error_message());
}

static tutti_status run_once(bench *b, one *o, tutti_kernel_call *call, int turn)
{
    const tutti_sample *s = o->sample;
    uint64_t fault;
    TUTTI_TRY(lay_out(b, o, call));
    TUTTI_TRY(o->kernel->run(&b->call));
    TUTTI_TRY(TUTTI_CU(b->call.on.device,
                       cuMemcpyDtoHAsync(&fault, b->call.fault, 8, b->call.on.stream)));
    TUTTI_TRY(TUTTI_CU(b->call.on.device, cuStreamSynchronize(b->call.on.stream)));
    if (fault != UINT64_MAX)
        complain(b, o, "fault", "a bad value where there is none");
    for (int i = 0; i < s->output_count; i++) {
        tutti_tensor *actual = NULL;
        TUTTI_TRY(fetch(b, &o->outputs[i], &actual));
        if (turn == 0)
            check_tensor(b, o, o->first[i] = actual, o->expected[i], "result");
        else if (!tutti_tensor_same(o->first[i], actual))
            complain(b, o, "result", "other bits the second time");
        if (turn > 0)
            tutti_tensor_release(actual);
    }
    for (int i = 0; i < s->input_count; i++) {
        tutti_tensor *actual = NULL;
        TUTTI_TRY(fetch(b, &o->inputs[i], &actual));
        if (s->types[i].handle)
            check_tensor(b, o, actual, o->updated[i], "variable");
        else if (!tutti_tensor_same(actual, s->values[i]))
            complain(b, o, "input", "was written");
        tutti_tensor_release(actual);
    }
    return TUTTI_OK;
}

static tutti_status run_kernel(bench *b, one *o)
{
    const tutti_sample *s = o->sample;
    void *plan = NULL;
    for (int i = 0; i < s->input_count; i++) {
        if (s->types[i].handle)
            TUTTI_TRY(tutti_tensor_from(
                tutti_tensor_dtype(s->values[i]), tutti_tensor_rank(s->values[i]),
                tutti_tensor_dims(s->values[i]), tutti_tensor_data(s->values[i]), &o->updated[i]));
        else
            o->updated[i] = tutti_tensor_retain(s->values[i]);
    }
    TUTTI_TRY(tutti__sample_run_on(s, o->updated, s->attrs, o->expected));
    if (o->kernel->prepare)
        TUTTI_TRY(o->kernel->prepare(&o->query, &plan));
    o->workspace = o->kernel->workspace ? o->kernel->workspace(&o->query) : 0;
    tutti_kernel_call call = {.op = s->op,
                              .name = s->op->name,
                              .attrs = s->attrs,
                              .attr_count = s->attr_count,
                              .input_count = s->input_count,
                              .output_count = s->output_count,
                              .inputs = o->inputs,
                              .outputs = o->outputs,
                              .plan = plan};
    b->call.call = &call;
    tutti_status status = TUTTI_OK;
    for (int turn = 0; turn < 2 && status == TUTTI_OK; turn++)
        status = run_once(b, o, &call, turn);
    b->call.call = NULL;
    if (o->kernel->discard)
        o->kernel->discard(plan);
    return status;
}

static bool is_known(const tutti_sample *s)
{
    bool known = s->input_count <= MOST && s->output_count <= MOST;
    for (int i = 0; known && i < s->output_count; i++)
        known = tutti_type_is_static(&s->node->types[i]) && s->node->types[i].dtype != TUTTI_STRING;
    for (int i = 0; known && i < s->input_count; i++)
        known = s->types[i].dtype != TUTTI_STRING;
    return known;
}

/* 1: a kernel ran; 0: there is none; -1: no sample for a GPU. */
static int check_sample(bench *b, const tutti_sample *sample)
{
    one o = {.sample = sample};
    if (!is_known(sample))
        return -1;
    o.query = (tutti_kernel_query){.node = tutti__sample_rule(sample), .threads = 1};
    o.query.deterministic = b->call.deterministic;
    o.kernel = tutti__cuda_kernel_pick(&o.query);
    if (!o.kernel) {
        b->without++;
        printf("none %s \"%s\" %s\n", sample->op->name, sample->text,
               sample->input_count > 0 ? tutti_dtype_name(sample->types[0].dtype) : "");
        return 0;
    }
    b->ran++;
    if (b->call.on.device && run_kernel(b, &o) != TUTTI_OK)
        complain(b, &o, "runs", tutti_error_message());
    for (int i = 0; i < MOST; i++) {
        tutti_tensor_release(o.expected[i]);
        tutti_tensor_release(o.updated[i]);
        tutti_tensor_release(o.first[i]);
    }
    return 1;
}

static bool usable(const bench *b)
{
    return !b->call.on.device || b->call.on.device->cu->cuStreamSynchronize(b->call.on.stream) == 0;
}

static void check_operator(bench *b, const tutti_op *op)
{
    static const tutti_dtype others[] = {TUTTI_F64, TUTTI_F16, TUTTI_BF16};
    int ran = 0, none = 0, before = b->failed;
    for (const char *const *text = op->samples; text && *text && usable(b); text++) {
        tutti_sample *sample, *other;
        if (tutti__sample_parse(op, *text, 11, &sample) != TUTTI_OK)
            continue;
        int found = check_sample(b, sample);
        ran += found > 0, none += found == 0;
        for (size_t i = 0; i < TUTTI_COUNT(others) && usable(b); i++) {
            if (tutti__sample_cast(sample, TUTTI_F32, others[i], &other) != TUTTI_OK)
                continue;
            found = check_sample(b, other);
            ran += found > 0, none += found == 0;
            tutti__sample_free(other);
        }
        tutti__sample_free(sample);
    }
    printf("%-28s %4d ran %3d without%s\n", op->name, ran, none,
           b->failed > before ? "  FAILED" : "");
    fflush(stdout);
}

static void check_fused(bench *b)
{
    for (int i = 0; i < lab_fused_count() && usable(b); i++) {
        tutti_sample sample;
        b->call.deterministic = lab_fused_deterministic(i);
        if (lab_fused_make(i, &sample) == TUTTI_OK)
            (void)check_sample(b, &sample);
        else
            b->failed++, printf("FAIL %s\n", tutti_error_message());
    }
    b->call.deterministic = true;
    printf("%-28s %4d cases\n", "fused", lab_fused_count());
}

/* Several variables by one launch: as each by itself. */
static tutti_status run_together(bench *b, one *o, int count, tutti_kernel_call *calls,
                                 tutti_cuda_call *together, tutti_view (*inputs)[MOST])
{
    const tutti_sample *s = o->sample;
    for (int i = 0; i < count; i++) {
        calls[i] = calls[0];
        for (int k = 0; k < s->input_count; k++) {
            inputs[i][k] = o->inputs[k];
            if (!s->types[k].handle)
                continue;
            TUTTI_TRY(view_type(b, &s->types[k], &inputs[i][k]));
            TUTTI_TRY(TUTTI_CU(b->call.on.device,
                               cuMemcpyDtoDAsync((tutti_cu_pointer)(uintptr_t)inputs[i][k].data,
                                                 tutti__cuda_in(&b->call, k),
                                                 bytes_of(s->values[k]), b->call.on.stream)));
        }
        calls[i].inputs = inputs[i];
        together[i] = b->call;
        together[i].call = &calls[i];
    }
    for (int i = 0; i < count; i++) { /* the new value lies in the variable */
        calls[i].outputs = inputs[i];
        if (!o->kernel->joins(&together[0], &together[i]))
            complain(b, o, "joins", "calls that are alike do not");
    }
    TUTTI_TRY(o->kernel->run_many(together, count));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < s->input_count; k++) {
            tutti_tensor *actual = NULL;
            if (!s->types[k].handle)
                continue;
            TUTTI_TRY(fetch(b, &inputs[i][k], &actual));
            check_tensor(b, o, actual, o->updated[k], "variable beside others");
            tutti_tensor_release(actual);
        }
    return TUTTI_OK;
}

static tutti_status check_together(bench *b, const char *op, int count)
{
    tutti_sample *sample;
    TUTTI_TRY(tutti__sample_parse(tutti_op_find(op), tutti_op_find(op)->samples[0], 11, &sample));
    one o = {.sample = sample,
             .query = {.node = tutti__sample_rule(sample), .threads = 1, .deterministic = true}};
    tutti_kernel_call *calls = calloc((size_t)count, sizeof *calls);
    tutti_cuda_call *together = calloc((size_t)count, sizeof *together);
    tutti_view(*inputs)[MOST] = calloc((size_t)count, sizeof *inputs);
    o.kernel = tutti__cuda_kernel_pick(&o.query);
    for (int i = 0; i < sample->input_count; i++)
        TUTTI_TRY(tutti_tensor_from(tutti_tensor_dtype(sample->values[i]),
                                    tutti_tensor_rank(sample->values[i]),
                                    tutti_tensor_dims(sample->values[i]),
                                    tutti_tensor_data(sample->values[i]), &o.updated[i]));
    TUTTI_TRY(tutti__sample_run_on(sample, o.updated, sample->attrs, o.expected));
    o.workspace = o.kernel->workspace(&o.query);
    calls[0] = (tutti_kernel_call){.op = sample->op,
                                   .name = op,
                                   .attrs = sample->attrs,
                                   .attr_count = sample->attr_count,
                                   .input_count = sample->input_count,
                                   .output_count = sample->output_count,
                                   .inputs = o.inputs,
                                   .outputs = o.outputs};
    b->call.call = &calls[0];
    TUTTI_TRY(lay_out(b, &o, &calls[0]));
    tutti_status status = run_together(b, &o, count, calls, together, inputs);
    b->call.call = NULL;
    printf("%-28s %4d variables at once\n", op, count);
    free(calls);
    free(together);
    free(inputs);
    return status;
}

static bool wanted(const char *name, int argc, char **argv)
{
    bool any = argc <= 1;
    for (int i = 1; i < argc && !any; i++)
        any = strcmp(name, argv[i]) == 0;
    return any;
}

static tutti_status open_bench(bench *b)
{
    tutti_cuda_stream *on = &b->call.on;
    TUTTI_TRY(tutti__cuda_device_open(0, &on->device));
    TUTTI_TRY(TUTTI_CU(on->device, cuStreamCreate(&on->stream, TUTTI_CU_NON_BLOCKING)));
    if (tutti__cuda_products_open(on->device, &b->call.products) != TUTTI_OK)
        printf("without cuBLASLt: %s\n", tutti_error_message());
    if (tutti__cuda_dnn_open(on->device, &b->call.dnn) != TUTTI_OK)
        printf("without cuDNN: %s\n", tutti_error_message());
    return TUTTI_CU(on->device, cuMemAlloc(&b->slab, SLAB));
}

int main(int argc, char **argv)
{
    static bench own;
    int part = 0, parts = 1;
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    if (argc > 2 && strcmp(argv[1], "--part") == 0 && sscanf(argv[2], "%d/%d", &part, &parts) == 2)
        argc -= 2, argv += 2;
    if (list)
        argc--, argv++;
    tutti__cuda_cache_folder(tutti__tune_folder());
    own.call.deterministic = true;
    if (!list && open_bench(&own) != TUTTI_OK)
        return printf("SKIP no GPU to test on: %s\n", tutti_error_message()), 77;
    for (int i = 0; tutti__op_table[i]; i++)
        if (i % parts == part % parts && wanted(tutti__op_table[i]->name, argc, argv))
            check_operator(&own, tutti__op_table[i]);
    if (part == 0 && wanted("fused", argc, argv))
        check_fused(&own);
    static const char *const updates[] = {"adam_update", "sgd_update", "lion_update"};
    for (size_t i = 0; i < TUTTI_COUNT(updates) && part == 0 && !list; i++)
        if (wanted(updates[i], argc, argv) && check_together(&own, updates[i], 70) != TUTTI_OK)
            own.failed++, printf("FAIL %s at once: %s\n", updates[i], tutti_error_message());
    printf("%d passed, %d failed, %d skipped\n", own.ran > own.failed ? own.ran - own.failed : 0,
           own.failed, own.without);
    return own.failed > 0;
}
