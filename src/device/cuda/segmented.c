/* segmented.c: sums over a batch shard by shard on a GPU: each shard by the kernel that is best for
 * it, at its own shape, the sums along one tree. So their bits depend neither on how many logical
 * devices there are nor on which shards are here. */
#include <stdlib.h>

#include "device/cuda/module.h"
#include "device/cuda/run.h"
#include "program/segments.h"
#include "tutti/op.h"

enum { ALIGNMENT = 16 }; /* kernels count on it */

static const tutti_kernel *pick(const tutti_kernel_query *query)
{
    const tutti_cuda_module *module;
    tutti_kernel_query shard = *query;
    shard.deterministic = true; /* from run to run */
    return tutti__cuda_module(&module) == TUTTI_OK ? module->gpus->pick(&shard) : NULL;
}

/* The addition of two sums. */
typedef struct adder {
    const tutti_kernel *kernel;
    tutti_type types[2];
    void *plan;
} adder;

typedef struct plan {
    tutti_segment_plan *shards;
    adder adders[TUTTI_SEGMENT_SLOTS]; /* by output; kernel NULL: it is no sum */
} plan;

/* In one dimension, over the first of them. */
static tutti_kernel_query query_of(const tutti_type *sum, adder *a)
{
    int64_t count = tutti_type_count(sum);
    a->types[0] = a->types[1] = tutti_type_make(sum->dtype, 1, &count);
    return (tutti_kernel_query){.node = {.op = tutti_op_find("add"),
                                         .name = "segmented",
                                         .input_count = 2,
                                         .output_count = 1,
                                         .inputs = a->types,
                                         .outputs = a->types},
                                .threads = 1};
}

static const tutti_kernel *pick_adder(const tutti_type *sum, adder *a)
{
    tutti_kernel_query query = query_of(sum, a);
    const tutti_kernel *kernel = pick(&query);
    return kernel && (kernel->inplace & 1) && !kernel->workspace ? kernel : NULL;
}

static void segmented_discard(void *made)
{
    plan *p = made;
    for (int i = 0; p && i < TUTTI_SEGMENT_SLOTS; i++)
        if (p->adders[i].plan && p->adders[i].kernel->discard)
            p->adders[i].kernel->discard(p->adders[i].plan);
    if (p)
        tutti__segment_discard(p->shards);
    free(p);
}

static tutti_status plan_adders(plan *p)
{
    const tutti_segments *s = &p->shards->s;
    for (int i = 0; i < s->inner->output_count; i++) {
        adder *a = &p->adders[i];
        if (s->kinds[i] >= 0)
            continue;
        tutti_kernel_query query = query_of(&s->inner->types[i], a);
        a->kernel = pick_adder(&s->inner->types[i], a);
        if (a->kernel && a->kernel->prepare)
            TUTTI_TRY(a->kernel->prepare(&query, &a->plan));
    }
    return TUTTI_OK;
}

static tutti_status segmented_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    void *shards = NULL;
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    tutti_status status = tutti__segment_plan(query, pick, ALIGNMENT, &shards);
    p->shards = shards;
    if (status == TUTTI_OK)
        status = plan_adders(p);
    if (status != TUTTI_OK)
        segmented_discard(p);
    else
        *ret_plan = p;
    return status;
}

static size_t segmented_room(const void *made)
{
    return tutti__segment_room(((const plan *)made)->shards);
}

static int segmented_score(const tutti_kernel_query *query)
{
    tutti_segments s;
    adder a;
    tutti__segments_of(query->node.attrs, query->node.attr_count, &s);
    for (int i = 0; i < s.inner->output_count; i++)
        if (s.kinds[i] < 0 && !pick_adder(&s.inner->types[i], &a))
            return 0;
    return tutti__segment_picks(query, pick) ? 100 : 0;
}

/* ---- running ---- */

typedef struct walk {
    const plan *p;
    const tutti_gpu_device *device;
} walk;

static tutti_status run_shard(void *context, tutti_kernel_call *shard, int64_t rows)
{
    const walk *w = context;
    const tutti_segment_size *size = tutti__segment_size(w->p->shards, rows);
    if (!size)
        return tutti_fail(TUTTI_INTERNAL, "no plan for a shard of %lld rows", (long long)rows);
    shard->plan = size->plan;
    shard->workspace = (char *)shard->workspace + w->p->shards->own;
    return w->device->table->launch(w->device->gpu, size->kernel, shard, NULL, true);
}

static tutti_status copy(void *context, void *to, const void *from, size_t size)
{
    const walk *w = context;
    return w->device->table->copy_within(w->device->gpu, to, from, size);
}

static tutti_status clear(void *context, void *at, size_t size)
{
    const walk *w = context;
    return w->device->table->fill(w->device->gpu, at, 0, size);
}

static tutti_status add(void *context, tutti_dtype dtype, void *to, const void *from, int64_t count)
{
    const walk *w = context;
    const adder *a = w->p->adders;
    while (!a->kernel || a->types[0].dtype != dtype || a->types[0].dims[0] != count)
        a++;
    tutti_view views[2] = {{to, dtype, 1, &count, NULL},
                           {(void *)(uintptr_t)from, dtype, 1, &count, NULL}};
    tutti_kernel_call call = {.op = tutti_op_find("add"),
                              .name = "segmented",
                              .input_count = 2,
                              .output_count = 1,
                              .inputs = views,
                              .outputs = views,
                              .plan = a->plan};
    return count == 0 ? TUTTI_OK
                      : w->device->table->launch(w->device->gpu, a->kernel, &call, NULL, true);
}

/* Enqueues. */
static tutti_status segmented_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    walk w = {p, tutti__gpu_device_of(call)};
    const tutti_segment_work by = {&w, run_shard, copy, clear, add, ALIGNMENT};
    return tutti__segmented(call, &p->shards->s, call->workspace, &by);
}

const tutti_kernel tutti_kernel_segmented_gpu = {
    .name = "segmented.gpu",
    .version = 1,
    .op = "segmented",
    .target = "gpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = segmented_score,
    .prepare = segmented_prepare,
    .room = segmented_room,
    .discard = segmented_discard,
    .run = segmented_run,
};
