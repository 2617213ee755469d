/* segmented_matmul.c: aT b summed over shards of its rows: the gradient of a dense layer's weights.
 * The result is made block by block, each with its whole tree of shards in the nearest caches, so
 * that sums of shards never go to memory. Shards of few rows are multiplied as they stand, because
 * packing them would take longer than the product. */
#include "ops/comm/segmented.h"

#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/shallow.h"
#include "device/cpu/slots.h"
#include "program/kernel.h"

enum {
    BLOCK_FLOATS = 32768,
    SHALLOW_FLOATS = 2048, /* of a block whose shards are not packed */
    SHALLOW_ROWS = 48,     /* of a shard at most */
};

typedef struct plan {
    tutti_segments s;
    int64_t m, n, block; /* rows of a block */
    int threads;
    size_t gemm_bytes, slot_bytes;
} plan;

static bool segmented_matmul_fits(const tutti_kernel_query *query, tutti_segments *s)
{
    const tutti_infer *node = &query->node;
    tutti__segments_of(node->attrs, node->attr_count, s);
    const tutti_node *inner = s->inner;
    if (!tutti__is(inner, "matmul") || inner->types[0].dtype != TUTTI_F32 ||
        inner->types[0].rank != 2 || s->kinds[0] != TUTTI_PARTIAL_SUM || s->axes[0] != 0 ||
        s->axes[1] != 0 || !tutti__int(inner, "transpose_a") || tutti__int(inner, "transpose_b"))
        return false;
    return node->inputs[s->inputs[0]].dtype == TUTTI_F32 && node->inputs[s->inputs[0]].rank == 2 &&
           node->inputs[s->inputs[1]].rank == 2;
}

static int segmented_matmul_score(const tutti_kernel_query *query)
{
    tutti_segments s;
    return segmented_matmul_fits(query, &s) ? 200 : 0;
}

static tutti_gemm_plan product(const plan *p, int64_t rows, int64_t inner)
{
    return tutti__gemm_plan(rows, p->n, inner, TUTTI_GEMM_ONE_THREAD | TUTTI_GEMM_PLAIN);
}

static int levels(const tutti_segments *s)
{
    int count = 1;
    while (1 << count < s->shards)
        count++;
    return count;
}

/* By a shard's own rows: its bits may not depend on the shards beside it. */
static bool is_shallow(int64_t rows)
{
    return rows <= SHALLOW_ROWS;
}

static void segmented_matmul_make(const tutti_kernel_query *query, plan *p)
{
    segmented_matmul_fits(query, &p->s);
    p->m = p->s.inner->types[0].dims[0];
    p->n = p->s.inner->types[0].dims[1];
    p->threads = query->threads;
    int64_t unit = p->s.rows > 0 ? query->node.inputs[p->s.inputs[0]].dims[0] / p->s.rows : 0;
    int64_t deepest = 0;
    for (int i = 0; i < p->s.count; i++) {
        int64_t depth = (p->s.bounds[i + 1] - p->s.bounds[i]) * unit;
        deepest = depth > deepest ? depth : deepest;
    }
    bool shallow = is_shallow(deepest);
    int64_t unroll = shallow ? SHALLOW_TILE_ROWS : 8;
    p->block = p->n > 0 ? (shallow ? SHALLOW_FLOATS : BLOCK_FLOATS) / p->n / unroll * unroll : 0;
    p->block = p->block < unroll ? unroll : p->block;
    for (int i = 0; i < p->s.count; i++) {
        int64_t depth = (p->s.bounds[i + 1] - p->s.bounds[i]) * unit;
        if (is_shallow(depth))
            continue;
        tutti_gemm_plan one = product(p, p->block, depth);
        size_t bytes = tutti__gemm_workspace(&one);
        p->gemm_bytes = bytes > p->gemm_bytes ? bytes : p->gemm_bytes;
    }
    p->gemm_bytes = tutti__slot_bytes(p->gemm_bytes);
    p->slot_bytes =
        p->gemm_bytes + (size_t)levels(&p->s) * (size_t)(p->block * p->n) * sizeof(float);
}

static tutti_status segmented_matmul_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    segmented_matmul_make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

static size_t segmented_matmul_workspace(const tutti_kernel_query *query)
{
    plan p = {0};
    segmented_matmul_make(query, &p);
    return tutti__slot_bytes(p.slot_bytes) * (size_t)(p.threads > 0 ? p.threads : 1) + 64;
}

typedef struct block {
    const plan *p;
    const float *a, *b;
    int64_t unit;        /* rows of a for one row of the batch */
    int64_t first, rows; /* of the result */
    char *slot;
} block;

/* Whether adding a shard's products to what is there is the same as adding its finished sums: the
 * tiles sum up to `depth` of its rows before they add. */
static bool adds_at_once(const block *k, int shard)
{
    const plan *p = k->p;
    int64_t rows = (p->s.bounds[shard + 1] - p->s.bounds[shard]) * k->unit;
    return is_shallow(rows) || rows <= product(p, k->rows, rows).tile->depth;
}

/* `add`: to what is there. */
static void run_shard(const block *k, int shard, bool add, float *into)
{
    const plan *p = k->p;
    int64_t from = p->s.bounds[shard] * k->unit, to = p->s.bounds[shard + 1] * k->unit;
    if (to == from && add)
        return;
    if (to == from) {
        memset(into, 0, (size_t)(k->rows * p->n) * sizeof *into);
        return;
    }
    if (is_shallow(to - from)) {
        shallow_product(k->rows, p->n, to - from, k->a + from * p->m + k->first, p->m,
                        k->b + from * p->n, add, into);
        return;
    }
    tutti_gemm_plan one = product(p, k->rows, to - from);
    tutti_gemm gemm = {.trans_a = true,
                       .add = add,
                       .m = k->rows,
                       .n = p->n,
                       .k = to - from,
                       .a = k->a + from * p->m + k->first,
                       .b = k->b + from * p->n,
                       .c = into,
                       .lda = p->m,
                       .ldb = p->n,
                       .ldc = p->n};
    tutti__gemm_run(&one, NULL, &gemm, k->slot);
}

static void segmented_matmul_fold(const block *k, int a, int b, int level, float *into)
{
    const plan *p = k->p;
    if (b - a == 1) {
        run_shard(k, a - p->s.first, false, into);
        return;
    }
    float *right = (float *)(void *)(k->slot + p->gemm_bytes) + level * p->block * p->n;
    segmented_matmul_fold(k, a, (a + b) / 2, level + 1, into);
    if (b - (a + b) / 2 == 1 && adds_at_once(k, b - 1 - p->s.first)) {
        run_shard(k, b - 1 - p->s.first, true, into);
        return;
    }
    segmented_matmul_fold(k, (a + b) / 2, b, level + 1, right);
    for (int64_t i = 0; i < k->rows * p->n; i++)
        into[i] += right[i];
}

static void fold_nodes(const block *k, int a, int b, float *output, int *number)
{
    const plan *p = k->p;
    int low = p->s.first, high = p->s.first + p->s.count;
    if (b <= low || a >= high)
        return;
    if (low <= a && b <= high) {
        float *node = output + (int64_t)*number * p->m * p->n;
        ++*number;
        segmented_matmul_fold(k, a, b, 0, node + k->first * p->n);
        return;
    }
    fold_nodes(k, a, (a + b) / 2, output, number);
    fold_nodes(k, (a + b) / 2, b, output, number);
}

typedef struct job {
    const plan *p;
    const tutti_kernel_call *call;
    tutti_slots slots;
} job;

static void segmented_matmul_run_block(void *context, int64_t index)
{
    job *j = context;
    const plan *p = j->p;
    const tutti_view *a = &j->call->inputs[p->s.inputs[0]], *b = &j->call->inputs[p->s.inputs[1]];
    block k = {.p = p, .a = a->data, .b = b->data, .first = index * p->block};
    int number = 0;
    k.unit = p->s.rows > 0 ? a->dims[0] / p->s.rows : 0;
    k.rows = p->m - k.first < p->block ? p->m - k.first : p->block;
    k.slot = tutti__slot_take(&j->slots);
    fold_nodes(&k, 0, p->s.shards, j->call->outputs[0].data, &number);
    tutti__slot_give(&j->slots, k.slot);
}

static tutti_status segmented_matmul_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    job j = {.p = p, .call = call};
    tutti__slots_start(&j.slots, call->workspace, p->slot_bytes, p->threads > 0 ? p->threads : 1);
    tutti_parallel(call, (p->m + p->block - 1) / p->block, segmented_matmul_run_block, &j);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_segmented_matmul) = {
    .name = "segmented.matmul",
    .version = 3,
    .op = "segmented",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = segmented_matmul_score,
    .workspace = segmented_matmul_workspace,
    .prepare = segmented_matmul_prepare,
    .discard = free,
    .run = segmented_matmul_run,
};
