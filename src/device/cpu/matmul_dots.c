/* matmul_dots.c: products of matrices that are few dot products for what they read: a matrix by a
 * column, a row by a transposed matrix, a few rows by a few columns along many k. Nothing is packed
 * for more than a piece at a time.
 *
 * A dot product is the sum, in order, of those of pieces along k; so it depends on its row and its
 * column only. Where the choice of this kernel would depend on how many rows there are, it does not
 * bid in deterministic mode. Integers wrap round. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/tile/tile.h"
#include "device/cpu/vector.h"
#include "program/kernel.h"

enum {
    PIECE = 1024,     /* elements along k */
    FEW = 8,          /* lines that are held while others come by */
    BLOCK = 32,       /* others of a task */
    TASK = 1 << 15,   /* elements of a task, about */
    LEAST_K = 64,     /* below it most of the time goes into adding up lanes */
    MANY_K = 1 << 12, /* from here on a few rows by a few columns are dot products */
};

typedef union number {
    float f32;
    double f64;
    uint64_t bits;
} number;

/* Of one element type. */
typedef struct type_loops {
    void (*dot)(const void *a, const void *b, int64_t count, number *ret);
    void (*add)(number *to, const number *x);
    void (*store)(const number *x, void *y, int64_t at);
} type_loops;

static void dot_f32(const void *x, const void *y, int64_t count, number *ret)
{
    enum { SUMS = 4, STEP = SUMS * VEC_LANES };
    const float *a = x, *b = y;
    vec sums[SUMS] = {{0}};
    int64_t p = 0;
    for (; p + STEP <= count; p += STEP)
        VEC_UNROLL for (int j = 0; j < SUMS; j++) sums[j] =
            vec_fma(vec_load(a + p + j * VEC_LANES), vec_load(b + p + j * VEC_LANES), sums[j]);
    for (; p + VEC_LANES <= count; p += VEC_LANES)
        sums[0] = vec_fma(vec_load(a + p), vec_load(b + p), sums[0]);
    vec all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
#if VEC_LANES >= 16
    all += VEC_TURN(all, 8);
#endif
#if VEC_LANES >= 8
    all += VEC_TURN(all, 4);
#endif
    all += VEC_TURN(all, 2);
    float sum = all[0] + all[1];
    for (; p < count; p++)
        sum = VEC_FUSED ? __builtin_fmaf(a[p], b[p], sum) : sum + a[p] * b[p];
    ret->f32 = sum;
}

static void dot_f64(const void *x, const void *y, int64_t count, number *ret)
{
    enum { SUMS = 16 };
    const double *a = x, *b = y;
    double sums[SUMS] = {0};
    int64_t p = 0;
    for (; p + SUMS <= count; p += SUMS)
        for (int j = 0; j < SUMS; j++)
            sums[j] += a[p + j] * b[p + j];
    for (int j = 0; p < count; p++, j++)
        sums[j] += a[p] * b[p];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            sums[j] += sums[j + half];
    ret->f64 = sums[0];
}

static void add_f32(number *to, const number *x)
{
    to->f32 += x->f32;
}

static void add_f64(number *to, const number *x)
{
    to->f64 += x->f64;
}

static void add_bits(number *to, const number *x)
{
    to->bits += x->bits;
}

static void store_f32(const number *x, void *y, int64_t at)
{
    ((float *)y)[at] = x->f32;
}

static void store_f64(const number *x, void *y, int64_t at)
{
    ((double *)y)[at] = x->f64;
}

static void store_f16(const number *x, void *y, int64_t at)
{
    ((uint16_t *)y)[at] = tutti_f32_to_f16(x->f32);
}

static void store_bf16(const number *x, void *y, int64_t at)
{
    ((uint16_t *)y)[at] = tutti_f32_to_bf16(x->f32);
}

/* `wide` has no sign, so that it wraps round, and at least the bits of the type. */
#define INTEGER(name, type, wide)                                                                  \
    static void dot_##name(const void *x, const void *y, int64_t count, number *ret)               \
    {                                                                                              \
        const type *a = x, *b = y;                                                                 \
        wide sum = 0;                                                                              \
        for (int64_t p = 0; p < count; p++)                                                        \
            sum += (wide)a[p] * (wide)b[p];                                                        \
        ret->bits = sum;                                                                           \
    }                                                                                              \
    static void store_##name(const number *x, void *y, int64_t at)                                 \
    {                                                                                              \
        ((type *)y)[at] = (type)x->bits;                                                           \
    }
INTEGER(i8, int8_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)

static const type_loops all_loops[TUTTI_DTYPE_END] = {
    [TUTTI_F32] = {dot_f32, add_f32, store_f32},  [TUTTI_F64] = {dot_f64, add_f64, store_f64},
    [TUTTI_F16] = {dot_f32, add_f32, store_f16},  [TUTTI_BF16] = {dot_f32, add_f32, store_bf16},
    [TUTTI_I8] = {dot_i8, add_bits, store_i8},    [TUTTI_U8] = {dot_u8, add_bits, store_u8},
    [TUTTI_I32] = {dot_i32, add_bits, store_i32}, [TUTTI_I64] = {dot_i64, add_bits, store_i64},
};

/* Rows of a or columns of b: elements from one to the next, and along k. */
typedef struct lines {
    int input;
    int64_t count, apart, step;
    int64_t to_next; /* in y */
} lines;

typedef struct dots_plan {
    type_loops loops;
    tutti_tile_loop *load; /* of 16-bit floats, else NULL */
    size_t element;
    int64_t k, pieces;
    lines few, others;
    int64_t block, group; /* others and pieces of a task */
} dots_plan;

/* b is one matrix, and leading axes of a are more rows. */
static dots_plan matmul_dots_plan_of(const tutti_infer *node)
{
    const tutti_type *a = &node->inputs[0], *y = &node->outputs[0];
    bool trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    bool trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    dots_plan p = {.loops = all_loops[y->dtype], .element = tutti_dtype_size(y->dtype)};
    int64_t n = y->dims[y->rank - 1], m = 1;
    for (int axis = 0; axis < y->rank - 1; axis++)
        m *= y->dims[axis];
    p.k = a->dims[a->rank - 1 - trans_a];
    p.pieces = (p.k + PIECE - 1) / PIECE;
    if (y->dtype == TUTTI_F16 || y->dtype == TUTTI_BF16)
        p.load = tutti__tile_find(y->dtype == TUTTI_F16 ? ".load_f16" : ".load_bf16", NULL, 0)->f32;
    lines rows = {0, m, trans_a ? 1 : p.k, trans_a ? m : 1, n};
    lines columns = {1, n, trans_b ? p.k : 1, trans_b ? 1 : n, 1};
    p.few = n <= FEW ? columns : rows;
    p.others = n <= FEW ? rows : columns;
    p.block = p.others.count < BLOCK ? p.others.count : BLOCK;
    int64_t elements = p.block * (p.k < PIECE ? p.k : PIECE);
    p.group = elements > 0 && elements < TASK ? TASK / elements : 1;
    if (p.k <= PIECE && p.group > 1) { /* there is one piece, so others fill the task */
        p.block *= p.group;
        p.group = 1;
    }
    return p;
}

static int matmul_dots_score(const tutti_kernel_query *query)
{
    const tutti_type *a = &query->node.inputs[0], *b = &query->node.inputs[1];
    bool trans_a = tutti_attr_int(query->node.attrs, query->node.attr_count, "transpose_a") != 0;
    if (all_loops[query->node.outputs[0].dtype].dot == NULL || b->rank != 2 ||
        (trans_a && a->rank != 2))
        return 0;
    dots_plan p = matmul_dots_plan_of(&query->node);
    int64_t n = p.few.input == 1 ? p.few.count : p.others.count;
    if (p.k < LEAST_K || p.few.count == 0 || p.others.count == 0)
        return 0;
    if (n == 1 && !trans_a)
        return 130; /* however many rows */
    if (query->deterministic)
        return 0;
    bool along = p.few.count == 1 && p.others.step == 1;
    return along || (p.few.count <= FEW && p.others.count <= FEW && p.k >= MANY_K) ? 130 : 0;
}

static size_t matmul_dots_workspace(const tutti_kernel_query *query)
{
    dots_plan p = matmul_dots_plan_of(&query->node);
    return p.pieces > 1 ? (size_t)(p.few.count * p.others.count * p.pieces) * sizeof(number) : 0;
}

static tutti_status matmul_dots_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    dots_plan plan = matmul_dots_plan_of(&query->node);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

typedef struct product {
    const dots_plan *plan;
    const tutti_kernel_call *call;
    number *sums; /* [few, others, pieces]; NULL: there is one piece */
} product;

/* Room for a piece of one line in the type that is summed. */
typedef union room {
    double f64[PIECE];
    float f32[PIECE];
    char bytes[8 * PIECE];
} room;

#define GATHER(type)                                                                               \
    for (int64_t i = 0; i < count; i++)                                                            \
    ((type *)to)[i] = ((const type *)from)[i * step]

static void matmul_dots_gather(size_t element, const void *from, int64_t step, int64_t count,
                               void *to)
{
    if (element == 8)
        GATHER(uint64_t);
    else if (element == 4)
        GATHER(uint32_t);
    else if (element == 2)
        GATHER(uint16_t);
    else
        GATHER(uint8_t);
}

/* Elements [first, first + count) of a line, where they stand or in room of its own. */
static const void *fetch(const product *w, const lines *of, int64_t line, int64_t first,
                         int64_t count, room *own)
{
    static const double none[TUTTI_TILE_PARAMS];
    const dots_plan *p = w->plan;
    uint16_t turned[PIECE];
    const void *from = (const char *)w->call->inputs[of->input].data +
                       (size_t)(line * of->apart + first * of->step) * p->element;
    if (p->load == NULL && of->step == 1)
        return from;
    if (of->step != 1)
        matmul_dots_gather(p->element, from, of->step, count,
                           p->load != NULL ? (void *)turned : (void *)own);
    if (p->load != NULL)
        p->load(&(tutti_tile_args){
            .count = count, .x = {of->step != 1 ? turned : from}, .y = own, .params = none});
    return own;
}

/* Dot products of all few lines and of a block of the others, over a group of pieces. */
static void dots_task(void *context, int64_t index)
{
    const product *w = context;
    const dots_plan *p = w->plan;
    int64_t groups = (p->pieces + p->group - 1) / p->group;
    int64_t from = index / groups * p->block, piece = index % groups * p->group;
    int64_t to = from + p->block < p->others.count ? from + p->block : p->others.count;
    int64_t end = piece + p->group < p->pieces ? piece + p->group : p->pieces;
    room few_rooms[FEW], other_room;
    const void *few[FEW];
    for (; piece < end; piece++) {
        int64_t first = piece * PIECE, count = p->k - first < PIECE ? p->k - first : PIECE;
        for (int64_t j = 0; j < p->few.count; j++)
            few[j] = fetch(w, &p->few, j, first, count, &few_rooms[j]);
        for (int64_t i = from; i < to; i++) {
            const void *other = fetch(w, &p->others, i, first, count, &other_room);
            for (int64_t j = 0; j < p->few.count; j++) {
                number sum;
                p->loops.dot(other, few[j], count, &sum);
                if (w->sums == NULL)
                    p->loops.store(&sum, w->call->outputs[0].data,
                                   i * p->others.to_next + j * p->few.to_next);
                else
                    w->sums[(j * p->others.count + i) * p->pieces + piece] = sum;
            }
        }
    }
}

static void join_task(void *context, int64_t index)
{
    const product *w = context;
    const dots_plan *p = w->plan;
    int64_t end = (index + 1) * BLOCK, all = p->few.count * p->others.count;
    for (int64_t at = index * BLOCK; at < end && at < all; at++) {
        number *sum = w->sums + at * p->pieces;
        for (int64_t piece = 1; piece < p->pieces; piece++)
            p->loops.add(sum, sum + piece);
        p->loops.store(sum, w->call->outputs[0].data,
                       at % p->others.count * p->others.to_next +
                           at / p->others.count * p->few.to_next);
    }
}

static tutti_status matmul_dots_run(const tutti_kernel_call *call)
{
    const dots_plan *p = call->plan;
    product w = {p, call, p->pieces > 1 ? call->workspace : NULL};
    int64_t blocks = (p->others.count + p->block - 1) / p->block;
    int64_t groups = (p->pieces + p->group - 1) / p->group;
    tutti_parallel(call, blocks * groups, dots_task, &w);
    if (w.sums != NULL)
        tutti_parallel(call, (p->few.count * p->others.count + BLOCK - 1) / BLOCK, join_task, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_dots) = {
    .name = "matmul.dots",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_dots_score,
    .workspace = matmul_dots_workspace,
    .prepare = matmul_dots_prepare,
    .discard = free,
    .run = matmul_dots_run,
};
