/* lanes.h: attention with one query in each lane, for files that are compiled once for each
 * instruction set. A block of BLOCK queries is transposed once; then keys and values are read as
 * they stand, one of their elements being the scalar of a multiply-add:
 *
 *     scores [key][BLOCK] = k[key] . q^T,   y^T [value][BLOCK] = sum over keys of v[key]
 * scores[key]
 *
 * so that nothing is packed, and maxima and sums over keys need no look across lanes. Features and
 * values must be multiples of VEC_LANES. */
#ifndef TUTTI_DEVICE_CPU_ATTENTION_LANES_H
#define TUTTI_DEVICE_CPU_ATTENTION_LANES_H

#include "device/cpu/attention/tiles.h"

#if defined(__AVX2__) || defined(__AVX512F__)
enum { BLOCK_VECS = 1 };
#else
enum { BLOCK_VECS = 2 };
#endif
enum {
    BLOCK = BLOCK_VECS * VEC_LANES,  /* queries side by side */
    BLOCKS = ATTENTION_TILE / BLOCK, /* of a tile of queries */
    MANY = 8,                        /* rows of keys, or of results, at once */
    SCORES = ATTENTION_TILE * BLOCK  /* floats of a block's scores with a tile of keys */
};

/* Scalars of step p for row i: from[i * row + p * step]; row or step is 1. */
typedef struct lanes_scalars {
    const float *from;
    int64_t row, step;
} lanes_scalars;

/* sum[i] += scalar (p, i) * line[p] for `steps` <= 4 steps. */
VEC_INLINE void lanes_steps(int rows, int steps, int vecs, lanes_scalars s, const float *line,
                            int64_t pitch, vec sum[MANY][BLOCK_VECS])
{
#if defined(__aarch64__)
    /* The multiply-add takes one lane of a register as its scalar: four at a time. */
    quad four[MANY] = {{0}};
    bool along = s.step == 1 && steps == 4, across = s.step != 1 && rows % 4 == 0;
    if (along) {
        VEC_UNROLL for (int i = 0; i < rows; i++) four[i] =
            *(const quad_unaligned *)(s.from + i * s.row);
    }
#endif
    VEC_UNROLL for (int p = 0; p < steps; p++)
    {
        vec x[BLOCK_VECS];
        VEC_UNROLL for (int v = 0; v < vecs; v++) x[v] = vec_load(line + p * pitch + v * VEC_LANES);
#if defined(__aarch64__)
        if (across) {
            VEC_UNROLL for (int i = 0; i < rows / 4; i++) four[i] =
                *(const quad_unaligned *)(s.from + p * s.step + 4 * i);
        }
#endif
        VEC_UNROLL for (int i = 0; i < rows; i++)
        {
#if defined(__aarch64__)
            vec scalar = vec_splat(along    ? four[i][p]
                                   : across ? four[i / 4][i % 4]
                                            : s.from[i * s.row + p * s.step]);
#else
            vec scalar = vec_splat(s.from[i * s.row + p * s.step]);
#endif
            VEC_UNROLL for (int v = 0; v < vecs; v++) sum[i][v] = vec_fma(x[v], scalar, sum[i][v]);
        }
    }
}

/* to[i][vecs] = or += the sum over `count` steps, in order. */
VEC_INLINE void lanes_rows(int rows, int vecs, int64_t count, lanes_scalars s, const float *line,
                           int64_t pitch, float *to, int64_t to_pitch, bool add)
{
    vec sum[MANY][BLOCK_VECS];
    int64_t p = 0;
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int v = 0; v < vecs; v++) sum[i][v] =
        add ? vec_load(to + i * to_pitch + v * VEC_LANES) : (vec){0};
    for (; p + 4 <= count; p += 4, s.from += 4 * s.step, line += 4 * pitch)
        lanes_steps(rows, 4, vecs, s, line, pitch, sum);
    for (; p < count; p++, s.from += s.step, line += pitch)
        lanes_steps(rows, 1, vecs, s, line, pitch, sum);
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int v = 0; v < vecs; v++)
        vec_store(to + i * to_pitch + v * VEC_LANES, sum[i][v]);
}

/* to[key][BLOCK] = from[key] . line, over `count` elements; line is [count][BLOCK]. */
static void lanes_dot(int64_t keys, int64_t count, const float *from, const float *line, float *to)
{
    int64_t key = 0;
    for (; key + MANY <= keys; key += MANY)
        lanes_rows(MANY, BLOCK_VECS, count, (lanes_scalars){from + key * count, count, 1}, line,
                   BLOCK, to + key * BLOCK, BLOCK, false);
    for (; key < keys; key++)
        lanes_rows(1, BLOCK_VECS, count, (lanes_scalars){from + key * count, count, 1}, line, BLOCK,
                   to + key * BLOCK, BLOCK, false);
}

/* to[c][BLOCK] = or += sum over keys of from[key][c] line[key], for `count` elements c. */
static void lanes_combine(int64_t keys, int64_t count, const float *from, const float *line,
                          float *to, bool add)
{
    int64_t c = 0;
    for (; c + MANY <= count; c += MANY)
        lanes_rows(MANY, BLOCK_VECS, keys, (lanes_scalars){from + c, 1, count}, line, BLOCK,
                   to + c * BLOCK, BLOCK, add);
    for (; c < count; c += 4)
        lanes_rows(4, BLOCK_VECS, keys, (lanes_scalars){from + c, 1, count}, line, BLOCK,
                   to + c * BLOCK, BLOCK, add);
}

/* to[p][BLOCK] = `rows` <= BLOCK rows of x[count], transposed; 0 beyond them. */
static void lanes_take(int64_t rows, int64_t count, const float *x, float *to)
{
    for (int64_t i = 0; i < BLOCK; i += 4) {
        for (int64_t p = 0; i + 4 <= rows && p < count; p += 4) {
            const float *from = x + i * count + p;
            quad a = *(const quad_unaligned *)from, b = *(const quad_unaligned *)(from + count);
            quad c = *(const quad_unaligned *)(from + 2 * count);
            quad d = *(const quad_unaligned *)(from + 3 * count);
            quad_transpose(&a, &b, &c, &d);
            *(quad_unaligned *)(to + p * BLOCK + i) = a;
            *(quad_unaligned *)(to + (p + 1) * BLOCK + i) = b;
            *(quad_unaligned *)(to + (p + 2) * BLOCK + i) = c;
            *(quad_unaligned *)(to + (p + 3) * BLOCK + i) = d;
        }
        for (int64_t k = i; i + 4 > rows && k < i + 4; k++)
            for (int64_t p = 0; p < count; p++)
                to[p * BLOCK + k] = k < rows ? x[k * count + p] : 0;
    }
}

/* The other way: rows of y[count] from y^T, each times its factor. */
static void lanes_give(int64_t rows, int64_t count, const float *from, const float *factor,
                       float *y)
{
    for (int64_t i = 0; i < rows; i += 4) {
        const quad f = *(const quad_unaligned *)(factor + i);
        for (int64_t p = 0; p < count; p += 4) {
            const float *at = from + p * BLOCK + i;
            quad line[4] = {*(const quad_unaligned *)at * f,
                            *(const quad_unaligned *)(at + BLOCK) * f,
                            *(const quad_unaligned *)(at + 2 * BLOCK) * f,
                            *(const quad_unaligned *)(at + 3 * BLOCK) * f};
            quad_transpose(&line[0], &line[1], &line[2], &line[3]);
            for (int64_t k = 0; k < 4 && i + k < rows; k++)
                *(quad_unaligned *)(y + (i + k) * count + p) = line[k];
        }
    }
}

/* A block of queries by a tile of keys. */
typedef struct lanes_block {
    int64_t head, query, rows, key, keys; /* keys: those of the tile that some row sees */
    int64_t all;                          /* of them every row sees these */
    float seen[BLOCK];                    /* keys of the tile, for each row */
} lanes_block;

/* Whom the rows of a block see among the tile's keys. */
static inline void lanes_look(const tutti_attention *a, lanes_block *b)
{
    int64_t end = b->key + ATTENTION_TILE < a->keys ? b->key + ATTENTION_TILE : a->keys;
    for (int64_t i = 0; i < BLOCK; i++) {
        int64_t row = i < b->rows ? i : b->rows - 1;
        int64_t seen = tutti__keys_seen(a, b->query + row);
        seen = seen < b->key ? 0 : seen < end ? seen - b->key : end - b->key;
        b->seen[i] = (float)seen;
        if (i == 0)
            b->all = seen;
        b->keys = seen; /* later queries see no fewer */
    }
}

/* scale scores + mask, -inf where a row does not see the key. */
static inline void lanes_mask(const tutti_attention *a, const lanes_block *b, const float *mask,
                              float *scores)
{
    const float scale = (float)a->scale;
    if (mask != NULL)
        mask += b->head / a->heads * a->mask_step[0] + b->head % a->heads * a->mask_step[1] +
                b->query * a->mask_step[2] + b->key * a->mask_step[3];
    for (int64_t j = 0; j < b->keys; j++) {
        float *s = scores + j * BLOCK;
        VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
            vec_store(s + v * VEC_LANES, vec_load(s + v * VEC_LANES) * scale);
        for (int64_t i = 0; mask != NULL && i < b->rows; i++)
            s[i] += mask[i * a->mask_step[2] + j * a->mask_step[3]];
        if (j < b->all)
            continue;
        VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
        {
            vec x = vec_load(s + v * VEC_LANES), seen = vec_load(b->seen + v * VEC_LANES);
            vec_store(s + v * VEC_LANES, vec_select(vec_gt(seen, S((float)j)), x, S(-INFINITY)));
        }
    }
}

/* The rows in the making: y = sum / total, with exponentials taken off `most`. */
typedef struct lanes_running {
    vec most[BLOCK_VECS], total[BLOCK_VECS];
} lanes_running;

static inline void lanes_start(lanes_running *r)
{
    VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
    {
        r->most[v] = S(-INFINITY);
        r->total[v] = (vec){0};
    }
}

/* Scores become exponentials; what was summed so far is scaled to the new maximum. */
static void lanes_add(lanes_running *r, int64_t keys, int64_t values, float *scores, float *y)
{
    VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
    {
        float *s = scores + v * VEC_LANES;
        vec most = r->most[v], sum = {0};
        for (int64_t j = 0; j < keys; j++)
            most = vec_maximum(most, vec_load(s + j * BLOCK));
        /* Rows that saw nothing have -inf, from which nothing can be taken off. */
        vec base = vec_select(vec_eq(most, S(-INFINITY)), S(0.0f), most);
        vec correction = vec_exp(r->most[v] - base);
        for (int64_t j = 0; j < keys; j++) {
            vec e = vec_exp(vec_load(s + j * BLOCK) - base);
            vec_store(s + j * BLOCK, e);
            sum += e;
        }
        r->total[v] = r->total[v] * correction + sum;
        r->most[v] = most;
        for (int64_t c = 0; c < values; c++) {
            float *at = y + c * BLOCK + v * VEC_LANES;
            vec_store(at, vec_load(at) * correction);
        }
    }
}

/* Features and values fill registers. */
static inline int lanes_score(const tutti_kernel_query *query)
{
    int64_t features = query->node.inputs[0].dims[3], values = query->node.inputs[2].dims[3];
    bool fill = features % VEC_LANES == 0 && values % VEC_LANES == 0;
    return fill && attention_score(query) > 0 ? 120 : 0;
}

/* A plan is the number of floats in a slot and the threads. */
static inline tutti_status lanes_plan(const tutti_kernel_query *query, size_t floats,
                                      void **ret_plan)
{
    attention_plan plan = {.threads = query->threads,
                           .slot_floats =
                               tutti__slot_bytes(floats * sizeof(float)) / sizeof(float)};
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

static inline size_t lanes_bytes(const tutti_kernel_query *query, size_t floats)
{
    return tutti__slot_bytes(floats * sizeof(float)) * (size_t)tutti__slot_count(query->threads);
}

#endif
