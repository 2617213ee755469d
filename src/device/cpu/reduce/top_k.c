/* top_k.c: the k largest of each row of f32. A heap has the best so far, its smallest on top, which
 * most elements are compared with and no more. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/count.h"
#include "program/kernel.h"

enum {
    BLOCK = 32,       /* elements that are compared at once */
    PIECE = 16 << 10, /* elements of a piece, at the least */
    MOST_PIECES = 64, /* each with a heap */
};

typedef struct work {
    const float *x;
    float *values;
    int32_t *positions;
    uint64_t *heaps; /* [pieces][k] */
    int64_t rows, size, k, per_piece;
} work;

/* In the order of the operator: a NaN before all numbers, both zeros alike, of equals the first. */
static inline uint64_t key_of(float value, int64_t position)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    bits = value == 0 ? UINT32_C(1) << 31 : value != value ? UINT32_MAX : bits;
    return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)position);
}

static inline int64_t where_is(uint64_t key)
{
    return (int64_t)(UINT32_MAX - (uint32_t)key);
}

/* Puts `key` at `at` or below, where it is smaller than what follows it. */
static void sink(uint64_t *heap, int64_t count, int64_t at, uint64_t key)
{
    for (int64_t next; (next = 2 * at + 1) < count; at = next) {
        next += next + 1 < count && heap[next + 1] < heap[next];
        if (heap[next] >= key)
            break;
        heap[at] = heap[next];
    }
    heap[at] = key;
}

static inline bool none_above(const float *x, float bar)
{
    int above = 0;
    for (int i = 0; i < BLOCK; i++)
        above |= !(x[i] <= bar); /* or no number */
    return above == 0;
}

static void fill_heap(const work *w, const float *x, uint64_t *heap)
{
    int64_t k = w->k;
    for (int64_t i = 0; i < k; i++)
        heap[i] = key_of(x[i], i);
    for (int64_t i = k / 2; i-- > 0;)
        sink(heap, k, i, heap[i]);
    for (int64_t i = k; i < w->size;) {
        float bar = x[where_is(heap[0])];
        if (i + BLOCK <= w->size && none_above(x + i, bar)) {
            i += BLOCK;
            continue;
        }
        int64_t end = least(i + BLOCK, w->size);
        for (; i < end; i++) {
            uint64_t key = key_of(x[i], i);
            if (key > heap[0])
                sink(heap, k, 0, key);
        }
    }
}

/* The smallest goes to the end, again and again. */
static void sort_heap(uint64_t *heap, int64_t count)
{
    while (count > 1) {
        uint64_t smallest = heap[0];
        count--;
        sink(heap, count, 0, heap[count]);
        heap[count] = smallest;
    }
}

static void piece(void *context, int64_t index)
{
    const work *w = context;
    uint64_t *heap = w->heaps + index * w->k;
    int64_t end = least((index + 1) * w->per_piece, w->rows);
    for (int64_t row = index * w->per_piece; row < end; row++) {
        const float *x = w->x + row * w->size;
        fill_heap(w, x, heap);
        sort_heap(heap, w->k);
        for (int64_t j = 0; j < w->k; j++) {
            int64_t position = where_is(heap[j]);
            w->positions[row * w->k + j] = (int32_t)position;
            w->values[row * w->k + j] = x[position];
        }
    }
}

/* By shape only, so that every number of threads has the same pieces. */
static int64_t rows_of_piece(int64_t rows, int64_t size)
{
    return most(divide_up(rows, MOST_PIECES), divide_up(PIECE, size));
}

static int score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return x->dtype == TUTTI_F32 && x->rank > 0 && tutti_type_count(x) > 0 ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    int64_t size = x->dims[x->rank - 1], rows = tutti_type_count(x) / size;
    int64_t k = query->node.outputs[0].dims[x->rank - 1];
    return (size_t)(divide_up(rows, rows_of_piece(rows, size)) * k) * sizeof(uint64_t);
}

static tutti_status run(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0];
    work w = {.x = x->data,
              .values = call->outputs[0].data,
              .positions = call->outputs[1].data,
              .heaps = call->workspace,
              .size = x->dims[x->rank - 1],
              .k = call->outputs[0].dims[x->rank - 1]};
    w.rows = tutti_view_count(x) / w.size;
    w.per_piece = rows_of_piece(w.rows, w.size);
    if (w.k > 0)
        tutti_parallel(call, divide_up(w.rows, w.per_piece), piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_top_k) = {
    .name = "top_k.heap",
    .version = 1,
    .op = "top_k",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .run = run,
};
