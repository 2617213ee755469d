/* top_k.c: the k largest of each row. A heap has the best so far, its smallest on top, which most
 * elements are compared with and no more. */
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
    const void *x;
    void *values;
    int32_t *positions;
    void *heaps; /* [pieces][k] */
    int64_t rows, size, k, per_piece;
} work;

/* Elements in the order of the operator: a NaN before all numbers, both zeros alike. */
#define RANK_OF_FLOAT(T, U, suffix)                                                                \
    static inline U rank_##suffix(T value)                                                         \
    {                                                                                              \
        const U sign = (U)1 << (8 * sizeof(U) - 1);                                                \
        U bits;                                                                                    \
        memcpy(&bits, &value, sizeof bits);                                                        \
        bits = bits & sign ? ~bits : bits | sign;                                                  \
        return value == 0 ? sign : value != value ? (U)-1 : bits;                                  \
    }
#define RANK_OF_INTEGER(T, U, LOWEST, suffix)                                                      \
    static inline U rank_##suffix(T value)                                                         \
    {                                                                                              \
        return (U)value - (U)LOWEST;                                                               \
    }
RANK_OF_FLOAT(float, uint32_t, f32)
RANK_OF_FLOAT(double, uint64_t, f64)
RANK_OF_INTEGER(int8_t, uint32_t, INT8_MIN, i8)
RANK_OF_INTEGER(uint8_t, uint32_t, 0, u8)
RANK_OF_INTEGER(int32_t, uint32_t, INT32_MIN, i32)
RANK_OF_INTEGER(int64_t, uint64_t, INT64_MIN, i64)

/* Heaps of keys: a rank, and below it 32 bits that make of equals the first the largest. */
typedef uint64_t short_key;
__extension__ typedef unsigned __int128 long_key;

#define HEAP_OF(KEY)                                                                               \
    static inline int64_t where_is_##KEY(KEY key)                                                  \
    {                                                                                              \
        return (int64_t)(UINT32_MAX - (uint32_t)key);                                              \
    }                                                                                              \
    /* Puts `key` at `at` or below, where it is smaller than what follows it. */                   \
    static void sink_##KEY(KEY *heap, int64_t count, int64_t at, KEY key)                          \
    {                                                                                              \
        for (int64_t next; (next = 2 * at + 1) < count; at = next) {                               \
            next += next + 1 < count && heap[next + 1] < heap[next];                               \
            if (heap[next] >= key)                                                                 \
                break;                                                                             \
            heap[at] = heap[next];                                                                 \
        }                                                                                          \
        heap[at] = key;                                                                            \
    }                                                                                              \
    /* The smallest goes to the end, again and again. */                                           \
    static void sort_##KEY(KEY *heap, int64_t count)                                               \
    {                                                                                              \
        while (count > 1) {                                                                        \
            KEY smallest = heap[0];                                                                \
            count--;                                                                               \
            sink_##KEY(heap, count, 0, heap[count]);                                               \
            heap[count] = smallest;                                                                \
        }                                                                                          \
    }
HEAP_OF(short_key)
HEAP_OF(long_key)

/* MASK: an integer as wide as T. */
#define ROWS_OF(T, MASK, KEY, suffix)                                                              \
    static inline KEY key_##suffix(T value, int64_t position)                                      \
    {                                                                                              \
        return (KEY)rank_##suffix(value) << 32 | (UINT32_MAX - (uint32_t)position);                \
    }                                                                                              \
    static inline bool none_above_##suffix(const T *x, T bar)                                      \
    {                                                                                              \
        MASK above = 0;                                                                            \
        for (int i = 0; i < BLOCK; i++)                                                            \
            above = (MASK)(above | !(x[i] <= bar)); /* or no number */                             \
        return above == 0;                                                                         \
    }                                                                                              \
    static void fill_heap_##suffix(const work *w, const T *x, KEY *heap)                           \
    {                                                                                              \
        int64_t k = w->k;                                                                          \
        for (int64_t i = 0; i < k; i++)                                                            \
            heap[i] = key_##suffix(x[i], i);                                                       \
        for (int64_t i = k / 2; i-- > 0;)                                                          \
            sink_##KEY(heap, k, i, heap[i]);                                                       \
        for (int64_t i = k; i < w->size;) {                                                        \
            T bar = x[where_is_##KEY(heap[0])];                                                    \
            if (i + BLOCK <= w->size && none_above_##suffix(x + i, bar)) {                         \
                i += BLOCK;                                                                        \
                continue;                                                                          \
            }                                                                                      \
            int64_t end = least(i + BLOCK, w->size);                                               \
            for (; i < end; i++) {                                                                 \
                KEY key = key_##suffix(x[i], i);                                                   \
                if (key > heap[0])                                                                 \
                    sink_##KEY(heap, k, 0, key);                                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void piece_##suffix(void *context, int64_t index)                                       \
    {                                                                                              \
        const work *w = context;                                                                   \
        KEY *heap = (KEY *)w->heaps + index * w->k;                                                \
        int64_t end = least((index + 1) * w->per_piece, w->rows);                                  \
        for (int64_t row = index * w->per_piece; row < end; row++) {                               \
            const T *x = (const T *)w->x + row * w->size;                                          \
            fill_heap_##suffix(w, x, heap);                                                        \
            sort_##KEY(heap, w->k);                                                                \
            for (int64_t j = 0; j < w->k; j++) {                                                   \
                int64_t position = where_is_##KEY(heap[j]);                                        \
                w->positions[row * w->k + j] = (int32_t)position;                                  \
                ((T *)w->values)[row * w->k + j] = x[position];                                    \
            }                                                                                      \
        }                                                                                          \
    }
ROWS_OF(float, int32_t, short_key, f32)
ROWS_OF(double, int64_t, long_key, f64)
ROWS_OF(int8_t, int8_t, short_key, i8)
ROWS_OF(uint8_t, uint8_t, short_key, u8)
ROWS_OF(int32_t, int32_t, short_key, i32)
ROWS_OF(int64_t, int64_t, long_key, i64)

static const struct {
    void (*piece)(void *context, int64_t index);
    size_t key; /* bytes */
} functions[TUTTI_DTYPE_END] = {
    [TUTTI_F32] = {piece_f32, sizeof(short_key)}, [TUTTI_F64] = {piece_f64, sizeof(long_key)},
    [TUTTI_I8] = {piece_i8, sizeof(short_key)},   [TUTTI_U8] = {piece_u8, sizeof(short_key)},
    [TUTTI_I32] = {piece_i32, sizeof(short_key)}, [TUTTI_I64] = {piece_i64, sizeof(long_key)},
};

/* By shape only, so that every number of threads has the same pieces. */
static int64_t rows_of_piece(int64_t rows, int64_t size)
{
    return most(divide_up(rows, MOST_PIECES), divide_up(PIECE, size));
}

static int top_k_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return functions[x->dtype].piece && x->rank > 0 && tutti_type_count(x) > 0 ? 100 : 0;
}

static size_t top_k_workspace(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    int64_t size = x->dims[x->rank - 1], rows = tutti_type_count(x) / size;
    int64_t k = query->node.outputs[0].dims[x->rank - 1];
    return (size_t)(divide_up(rows, rows_of_piece(rows, size)) * k) * functions[x->dtype].key;
}

static tutti_status top_k_run(const tutti_kernel_call *call)
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
        tutti_parallel(call, divide_up(w.rows, w.per_piece), functions[x->dtype].piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_top_k) = {
    .name = "top_k.heap",
    .version = 1,
    .op = "top_k",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = top_k_score,
    .workspace = top_k_workspace,
    .run = top_k_run,
};
