/* segmented.c: sums over a batch shard by shard: each shard by the kernel that is best for it, the
 * sums along one tree. Which kernel that is follows from the shard's rows, never from how many
 * shards are here. */
#include "ops/comm/segmented.h"

#include <stdlib.h>
#include <string.h>

#include "program/kernel.h"

enum { MOST_SIZES = 4 }; /* of shards: they differ by one row, and there may be empty ones */

typedef struct size_plan {
    int64_t rows;
    const tutti_kernel *kernel;
    void *plan;
    size_t workspace;
} size_plan;

typedef struct plan {
    tutti_segments s;
    int count;
    size_plan sizes[MOST_SIZES];
    size_t own; /* bytes of the tree's workspace */
} plan;

static tutti_type shard_type(tutti_type type, int64_t axis, int64_t all, int64_t rows)
{
    if (axis >= 0 && all > 0)
        type.dims[axis] = type.dims[axis] / all * rows;
    return type;
}

/* The query that a shard of so many rows makes; `inputs` and `outputs` hold its types. */
static tutti_kernel_query shard_query(const tutti_kernel_query *query, const tutti_segments *s,
                                      int64_t rows, tutti_type *inputs, tutti_type *outputs)
{
    const tutti_node *inner = s->inner;
    for (int i = 0; i < inner->input_count; i++)
        inputs[i] = shard_type(query->node.inputs[s->inputs[i]], s->axes[i], s->rows, rows);
    for (int i = 0; i < inner->output_count; i++)
        outputs[i] = s->kinds[i] < 0
                         ? inner->types[i]
                         : shard_type(query->node.outputs[i], s->kinds[i], s->rows, rows);
    tutti_kernel_query shard = *query;
    shard.deterministic = false; /* a shard is always whole: any kernel gives it the same bits */
    shard.node = (tutti_infer){.op = inner->op,
                               .name = inner->name,
                               .input_count = inner->input_count,
                               .output_count = inner->output_count,
                               .inputs = inputs,
                               .attrs = inner->attrs,
                               .attr_count = inner->attr_count,
                               .outputs = outputs};
    return shard;
}

static void segmented_discard(void *made)
{
    plan *p = made;
    for (int i = 0; p && i < p->count; i++)
        if (p->sizes[i].plan && p->sizes[i].kernel->discard)
            p->sizes[i].kernel->discard(p->sizes[i].plan);
    free(p);
}

static tutti_status add_size(plan *p, const tutti_kernel_query *query, int64_t rows)
{
    tutti_type inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
    for (int i = 0; i < p->count; i++)
        if (p->sizes[i].rows == rows)
            return TUTTI_OK;
    if (p->count == MOST_SIZES)
        return tutti_fail(TUTTI_INTERNAL, "shards of more than %d sizes", MOST_SIZES);
    tutti_kernel_query shard = shard_query(query, &p->s, rows, inputs, outputs);
    size_plan *size = &p->sizes[p->count++];
    *size = (size_plan){.rows = rows, .kernel = tutti__kernel_pick("cpu", &shard)};
    if (!size->kernel)
        return TUTTI_OK;
    if (size->kernel->prepare)
        TUTTI_TRY(size->kernel->prepare(&shard, &size->plan));
    size->workspace = tutti__kernel_workspace(size->kernel, &shard, size->plan);
    return TUTTI_OK;
}

static tutti_status segmented_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    tutti__segments_of(query->node.attrs, query->node.attr_count, &p->s);
    p->own = tutti__segmented_workspace(&p->s, query->node.inputs, query->node.outputs);
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < p->s.count; i++)
        if (p->s.bounds[i + 1] > p->s.bounds[i])
            status = add_size(p, query, p->s.bounds[i + 1] - p->s.bounds[i]);
    if (status != TUTTI_OK)
        segmented_discard(p);
    else
        *ret_plan = p;
    return status;
}

static size_t room(const void *made)
{
    const plan *p = made;
    size_t most = 0;
    for (int i = 0; i < p->count; i++)
        most = p->sizes[i].workspace > most ? p->sizes[i].workspace : most;
    return most + (p->own + 63) / 64 * 64 + 64;
}

static tutti_status run_shard(void *context, tutti_kernel_call *shard, int64_t rows)
{
    plan *p = context;
    for (int i = 0; i < p->count; i++) {
        if (p->sizes[i].rows != rows)
            continue;
        shard->plan = p->sizes[i].plan;
        shard->workspace = (char *)shard->workspace + (p->own + 63) / 64 * 64;
        return p->sizes[i].kernel ? p->sizes[i].kernel->run(shard) : shard->op->reference(shard);
    }
    return tutti_fail(TUTTI_INTERNAL, "no plan for a shard of %lld rows", (long long)rows);
}

static tutti_status segmented_run(const tutti_kernel_call *call)
{
    plan *p = call->plan;
    return tutti__segmented(call, &p->s, call->workspace, run_shard, p);
}

static int segmented_score(const tutti_kernel_query *query)
{
    TUTTI_UNUSED(query);
    return 100;
}

const tutti_kernel tutti_kernel_segmented = {
    .name = "segmented.shards",
    .version = 1,
    .op = "segmented",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = segmented_score,
    .prepare = segmented_prepare,
    .room = room,
    .discard = segmented_discard,
    .run = segmented_run,
};
