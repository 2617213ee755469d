/* segmented.c: sums over a batch shard by shard: each shard by the kernel that is best for it, the
 * sums along one tree. */
#include "program/segments.h"

static const tutti_kernel *pick(const tutti_kernel_query *query)
{
    return tutti__kernel_pick("cpu", query);
}

static tutti_status segmented_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__segment_plan(query, pick, 0, ret_plan);
}

static tutti_status run_shard(void *context, tutti_kernel_call *shard, int64_t rows)
{
    const tutti_segment_plan *p = context;
    const tutti_segment_size *size = tutti__segment_size(p, rows);
    if (!size)
        return tutti_fail(TUTTI_INTERNAL, "no plan for a shard of %lld rows", (long long)rows);
    shard->plan = size->plan;
    shard->workspace = (char *)shard->workspace + p->own;
    return size->kernel ? size->kernel->run(shard) : shard->op->reference(shard);
}

static tutti_status segmented_run(const tutti_kernel_call *call)
{
    tutti_segment_plan *p = call->plan;
    const tutti_segment_work by = {.context = p, .run = run_shard};
    return tutti__segmented(call, &p->s, call->workspace, &by);
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
    .room = tutti__segment_room,
    .discard = tutti__segment_discard,
    .run = segmented_run,
};
