/* tables.c: checks of embeddings, sort, moves, random numbers and AdamW. */
#include "device/cuda/lab/checks.h"

static tutti_status call_embedding(lab_bench *lab, void *context)
{
    return tutti__cuda_embedding(lab->on, context);
}
static tutti_status call_embedding_gradient(lab_bench *lab, void *context)
{
    return tutti__cuda_embedding_gradient(lab->on, context);
}

/* ids: a third is 5, so that runs cross chunks, and a few are outside of the table. */
static int32_t *make_ids(int64_t count, int size)
{
    int32_t *ids = malloc((size_t)count * 4);
    for (int64_t i = 0; ids && i < count; i++) {
        uint32_t word = tutti__random_u32((tutti_random_key){77, 1}, (uint64_t)i);
        ids[i] = word % 3 == 0 ? 5 : (int32_t)(word / 3 % (uint32_t)size);
    }
    return ids;
}

static tutti_status check_embedding(lab_bench *lab, tutti_cuda_type type, int64_t count, int size,
                                    int width)
{
    tutti_cuda_embedding e = {
        .type = type, .count = count, .size = size, .width = width, .period = 16};
    size_t bytes = (size_t)tutti__cuda_type_size(type), cells = (size_t)size * (size_t)width;
    double *table, *extra, *dy, *y, *gradient;
    double *y0 = malloc((size_t)count * (size_t)width * 8), *g0 = calloc(cells, 8);
    int32_t *ids = make_ids(count, size);
    char what[64];
    ids[7] = -1;
    ids[9] = size + 256;
    TUTTI_TRY(lab_numbers(lab, type, (int64_t)cells, -1, 1, &table, &e.table));
    TUTTI_TRY(lab_numbers(lab, type, 16 * width, -1, 1, &extra, &e.extra));
    TUTTI_TRY(lab_numbers(lab, type, count * width, -1, 1, &dy, &e.dy));
    TUTTI_TRY(lab_put(lab, ids, (size_t)count * 4, &e.ids));
    TUTTI_TRY(lab_memory(lab, (size_t)count * (size_t)width * bytes, &e.y));
    TUTTI_TRY(lab_memory(lab, cells * bytes, &e.gradient));
    TUTTI_TRY(lab_memory(lab, tutti__cuda_embedding_workspace(&e), &e.workspace));
    TUTTI_TRY(call_embedding(lab, &e));
    for (int64_t i = 0; i < count; i++)
        for (int j = 0; j < width; j++) {
            y0[i * width + j] = extra[i % 16 * width + j];
            if (ids[i] >= 0 && ids[i] < size) {
                y0[i * width + j] += table[(int64_t)ids[i] * width + j];
                g0[(int64_t)ids[i] * width + j] += dy[i * width + j];
            }
        }
    TUTTI_TRY(lab_read(lab, type, e.y, count * width, &y));
    TUTTI_TRY(call_embedding_gradient(lab, &e));
    TUTTI_TRY(lab_read(lab, type, e.gradient, (int64_t)cells, &gradient));
    double limit = type == TUTTI_CUDA_F32 ? 1e-6 : 5e-3;
    snprintf(what, sizeof what, "%s %lld of %dx%d", tutti__cuda_type_name(type), (long long)count,
             size, width);
    lab_compare(lab, what, y, y0, count * width, limit);
    lab_compare(lab, "gradient", gradient, g0, (int64_t)cells, limit);
    char *bits = malloc(cells * bytes);
    TUTTI_TRY(lab_get(lab, e.gradient, bits, cells * bytes));
    TUTTI_TRY(call_embedding_gradient(lab, &e));
    lab_same(lab, "gradient", e.gradient, bits, cells * bytes);
    free(table), free(extra), free(dy), free(y), free(gradient), free(y0), free(g0), free(ids);
    free(bits);
    return TUTTI_OK;
}

tutti_status lab_check_embedding(lab_bench *lab)
{
    TUTTI_TRY(check_embedding(lab, TUTTI_CUDA_F32, 5000, 300, 64));
    TUTTI_TRY(check_embedding(lab, TUTTI_CUDA_BF16, 4097, 70000, 128));
    tutti_cuda_embedding e = {
        .type = TUTTI_CUDA_BF16, .count = 65536, .size = 50257, .width = 768, .period = 1};
    double bytes = 65536.0 * 768 * 2;
    int32_t *ids = make_ids(e.count, e.size);
    TUTTI_TRY(lab_put(lab, ids, 65536 * 4, &e.ids));
    TUTTI_TRY(lab_memory(lab, 50257u * 768 * 2, &e.table));
    TUTTI_TRY(lab_memory(lab, 50257u * 768 * 2, &e.gradient));
    TUTTI_TRY(lab_memory(lab, (size_t)bytes, &e.y));
    TUTTI_TRY(lab_memory(lab, tutti__cuda_embedding_workspace(&e), &e.workspace));
    e.dy = e.y;
    TUTTI_TRY(lab_time(lab, "bf16 65536x768", call_embedding, &e, 2 * bytes, 0));
    TUTTI_TRY(lab_time(lab, "gradient, 1/3 one id", call_embedding_gradient, &e,
                       bytes + 2 * 50257.0 * 768 * 2, 0));
    free(ids);
    return TUTTI_OK;
}

tutti_status lab_check_sort(lab_bench *lab)
{
    enum { COUNT = 100003 };
    uint32_t *keys = malloc(COUNT * 4), *sorted = malloc(COUNT * 4), *at = malloc(COUNT * 4);
    tutti_cu_pointer on, ret_keys, ret_positions, workspace;
    bool right = true;
    for (int i = 0; i < COUNT; i++)
        keys[i] = tutti__random_u32((tutti_random_key){5, 5}, (uint64_t)i) % 70000;
    TUTTI_TRY(lab_put(lab, keys, COUNT * 4, &on));
    TUTTI_TRY(lab_memory(lab, COUNT * 4, &ret_keys));
    TUTTI_TRY(lab_memory(lab, COUNT * 4, &ret_positions));
    TUTTI_TRY(lab_memory(lab, tutti__cuda_sort_workspace(COUNT), &workspace));
    TUTTI_TRY(tutti__cuda_sort(lab->on, on, COUNT, 69999, ret_keys, ret_positions, workspace));
    TUTTI_TRY(lab_get(lab, ret_keys, sorted, COUNT * 4));
    TUTTI_TRY(lab_get(lab, ret_positions, at, COUNT * 4));
    for (int i = 0; i < COUNT && right; i++)
        right = at[i] < COUNT && keys[at[i]] == sorted[i] &&
                (i == 0 || sorted[i - 1] < sorted[i] ||
                 (sorted[i - 1] == sorted[i] && at[i - 1] < at[i]));
    lab_pass(lab, right, "100003 keys", "sorted, stable");
    free(keys), free(sorted), free(at);
    return TUTTI_OK;
}

enum { TENSORS = 40 };
typedef struct adamw {
    tutti_cuda_type type;
    tutti_cu_pointer tensors, state;
    uint32_t blocks;
    int count;
} adamw;

static tutti_status call_adamw(lab_bench *lab, void *context)
{
    adamw *a = context;
    return tutti__cuda_adamw(lab->on, a->type, a->tensors, a->count, a->blocks, a->state);
}

static tutti_status check_adamw(lab_bench *lab)
{
    tutti_cuda_adamw_tensor tensors[TENSORS];
    double *w[TENSORS], *g[TENSORS], *got, *weight;
    adamw a = {.type = TUTTI_CUDA_BF16, .count = TENSORS};
    const tutti_cuda_adamw_state state = {1e-2f, 0.9f, 0.99f, 1e-8f, 0.5f, 0, 0};
    for (int t = 0; t < TENSORS; t++) {
        int64_t count = 1 + t * 517;
        tensors[t] = (tutti_cuda_adamw_tensor){.count = count, .decay = t % 2 ? 0.1f : 0};
        TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_F32, count, -1, 1, &w[t], &tensors[t].master));
        TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_BF16, count, -1, 1, &g[t], &tensors[t].gradient));
        TUTTI_TRY(lab_memory(lab, (size_t)count * 4, &tensors[t].m));
        TUTTI_TRY(lab_memory(lab, (size_t)count * 4, &tensors[t].v));
        TUTTI_TRY(lab_memory(lab, (size_t)count * 2, &tensors[t].weight));
        tutti_cu_pointer moments[] = {tensors[t].m, tensors[t].v};
        for (int i = 0; i < 2; i++)
            TUTTI_TRY(TUTTI_CU(lab->on.device,
                               cuMemsetD8Async(moments[i], 0, (size_t)count * 4, lab->on.stream)));
    }
    a.blocks = tutti__cuda_adamw_blocks(tensors, TENSORS);
    TUTTI_TRY(lab_put(lab, tensors, sizeof tensors, &a.tensors));
    TUTTI_TRY(lab_put(lab, &state, sizeof state, &a.state));
    for (int step = 0; step < 3; step++)
        TUTTI_TRY(call_adamw(lab, &a));
    double worst = 0, rounded = 0;
    for (int t = 0; t < TENSORS; t++) {
        TUTTI_TRY(lab_read(lab, TUTTI_CUDA_F32, tensors[t].master, tensors[t].count, &got));
        TUTTI_TRY(lab_read(lab, TUTTI_CUDA_BF16, tensors[t].weight, tensors[t].count, &weight));
        for (int64_t i = 0; i < tensors[t].count; i++) {
            double x = w[t][i], d = g[t][i] * 0.5, m = 0, v = 0;
            for (int step = 1; step <= 3; step++) {
                m = 0.9 * m + 0.1 * d;
                v = 0.99 * v + 0.01 * d * d;
                x -= 1e-2 * (m / (1 - pow(0.9, step)) / (sqrt(v / (1 - pow(0.99, step))) + 1e-8) +
                             (double)tensors[t].decay * x);
            }
            worst = fmax(worst, fabs(x - got[i]));
            if (!(fabs(x - got[i]) < 1))
                worst = INFINITY;
            rounded += weight[i] != lab_round(TUTTI_CUDA_BF16, got[i]);
        }
        free(got), free(weight), free(w[t]), free(g[t]);
    }
    lab_pass(lab, worst < 3e-6, "40 tensors, 3 steps", "largest difference %.2e", worst);
    lab_pass(lab, rounded == 0, "working weights", "%.0f are not the rounded masters", rounded);
    return TUTTI_OK;
}

tutti_status lab_check_adamw(lab_bench *lab)
{
    TUTTI_TRY(check_adamw(lab));
    tutti_cuda_adamw_tensor tensors[148];
    adamw a = {.type = TUTTI_CUDA_BF16, .count = 148};
    const tutti_cuda_adamw_state state = {1e-4f, 0.9f, 0.99f, 1e-8f, 1, 0, 0};
    int64_t total = 0;
    tutti_cu_pointer all[5];
    for (int i = 0; i < 5; i++)
        TUTTI_TRY(lab_memory(lab, (size_t)520 << 20, &all[i]));
    for (int i = 0; i < 5; i++)
        TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemsetD8Async(all[i], 1, 520 << 20, lab->on.stream)));
    for (int t = 0; t < 148; t++) {
        int64_t count = t == 0 ? 50257 * 768 : t % 3 == 1 ? 768 * 2304 : t % 3 == 2 ? 768 : 4096;
        uint64_t at = (uint64_t)total;
        tensors[t] = (tutti_cuda_adamw_tensor){all[0] + 4 * at,
                                               all[1] + 4 * at,
                                               all[2] + 4 * at,
                                               all[3] + 2 * at,
                                               all[4] + 2 * at,
                                               count,
                                               0,
                                               0};
        total += count;
    }
    a.blocks = tutti__cuda_adamw_blocks(tensors, 148);
    TUTTI_TRY(lab_put(lab, tensors, sizeof tensors, &a.tensors));
    TUTTI_TRY(lab_put(lab, &state, sizeof state, &a.state));
    char what[64];
    snprintf(what, sizeof what, "%.0fM in 148 tensors", (double)total / 1e6);
    return lab_time(lab, what, call_adamw, &a, (double)total * (3 * 8 + 4), 0);
}

typedef struct drawn {
    tutti_cu_pointer y;
    int64_t count;
    bool normal;
} drawn;

static tutti_status call_random(lab_bench *lab, void *context)
{
    drawn *d = context;
    return (d->normal ? tutti__cuda_random_normal : tutti__cuda_random_uniform)(
        lab->on, TUTTI_CUDA_F32, (tutti_random_key){12345678901234567u, 42}, 8, d->count, 0, 1,
        d->y);
}

tutti_status lab_check_random(lab_bench *lab)
{
    enum { COUNT = 1000001 };
    drawn d = {.count = COUNT};
    const tutti_random_key key = {12345678901234567u, 42};
    float *got = malloc(COUNT * sizeof *got);
    int other = 0, other_normal = 0;
    double worst = 0;
    TUTTI_TRY(lab_memory(lab, (size_t)1 << 30, &d.y));
    TUTTI_TRY(call_random(lab, &d));
    TUTTI_TRY(lab_get(lab, d.y, got, COUNT * 4));
    for (int i = 0; i < COUNT; i++)
        other += got[i] != tutti__random_f32(key, (uint64_t)i + 8);
    lab_pass(lab, other == 0, "uniform f32", "%d of %d differ from the CPU's", other, COUNT);
    d.normal = true;
    TUTTI_TRY(call_random(lab, &d));
    TUTTI_TRY(lab_get(lab, d.y, got, COUNT * 4));
    for (int i = 0; i < COUNT; i++) {
        double expected = tutti__random_normal(key, (uint64_t)i + 8);
        other_normal += got[i] != (float)expected;
        worst = fmax(worst, fabs((double)got[i] - expected));
    }
    lab_pass(lab, worst < 1e-6, "normal f32", "%d of %d differ from the CPU's, most by %.1e",
             other_normal, COUNT, worst);
    free(got);
    d.count = 256 << 20;
    TUTTI_TRY(lab_time(lab, "normal f32 1 GiB", call_random, &d, 1 << 30, 0));
    d.normal = false;
    return lab_time(lab, "uniform f32 1 GiB", call_random, &d, 1 << 30, 0);
}

typedef struct square {
    tutti_cu_pointer x, y;
    int size;
    int64_t rows, columns;
} square;

static tutti_status call_transpose(lab_bench *lab, void *context)
{
    square *s = context;
    return tutti__cuda_transpose(lab->on, s->size, s->x, 1, s->rows, s->columns, s->y);
}

static tutti_status check_transpose(lab_bench *lab, int size, int rows)
{
    enum { BATCH = 3, COLUMNS = 130, COUNT = BATCH * 78 * COLUMNS };
    static char x[8 * COUNT], y[8 * COUNT];
    char what[32];
    tutti_cu_pointer from, to;
    bool right = true;
    for (int i = 0; i < 8 * COUNT; i++)
        x[i] = (char)tutti__random_u32((tutti_random_key){3, 3}, (uint64_t)i);
    TUTTI_TRY(lab_put(lab, x, (size_t)size * COUNT, &from));
    TUTTI_TRY(lab_memory(lab, (size_t)size * COUNT, &to));
    TUTTI_TRY(tutti__cuda_transpose(lab->on, size, from, BATCH, rows, COLUMNS, to));
    TUTTI_TRY(lab_get(lab, to, y, (size_t)size * COUNT));
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < COLUMNS && right; j++)
                right = memcmp(x + size * ((b * rows + i) * COLUMNS + j),
                               y + size * ((b * COLUMNS + j) * rows + i), (size_t)size) == 0;
    snprintf(what, sizeof what, "transpose, %d bytes", size);
    lab_pass(lab, right, what, "3x%dx130", rows);
    return TUTTI_OK;
}

static tutti_status check_rows(lab_bench *lab)
{
    enum { ROWS = 100, WIDTH = 33, COUNT = 60 };
    uint32_t x[ROWS * WIDTH], picked[COUNT * WIDTH], back[ROWS * WIDTH];
    int32_t ids[COUNT];
    tutti_cu_pointer from, by, to, again;
    bool right = true;
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (uint32_t)i * 2654435761u;
    for (int i = 0; i < COUNT; i++)
        ids[i] = i * 37 % ROWS;
    TUTTI_TRY(lab_put(lab, x, sizeof x, &from));
    TUTTI_TRY(lab_put(lab, ids, sizeof ids, &by));
    TUTTI_TRY(lab_memory(lab, sizeof picked, &to));
    TUTTI_TRY(lab_memory(lab, sizeof back, &again));
    TUTTI_TRY(tutti__cuda_gather_rows(lab->on, 4, from, by, COUNT, WIDTH, ROWS, to));
    TUTTI_TRY(tutti__cuda_scatter_rows(lab->on, 4, to, by, COUNT, WIDTH, ROWS, again));
    TUTTI_TRY(lab_get(lab, to, picked, sizeof picked));
    TUTTI_TRY(lab_get(lab, again, back, sizeof back));
    for (int i = 0; i < COUNT; i++)
        right = right && memcmp(picked + i * WIDTH, x + ids[i] * WIDTH, WIDTH * 4) == 0 &&
                memcmp(back + ids[i] * WIDTH, x + ids[i] * WIDTH, WIDTH * 4) == 0;
    lab_pass(lab, right, "gather, scatter rows", "60 of 100x33");
    return TUTTI_OK;
}

tutti_status lab_check_move(lab_bench *lab)
{
    for (int size = 1; size <= 8; size *= 2)
        TUTTI_TRY(check_transpose(lab, size, 77));
    TUTTI_TRY(check_transpose(lab, 2, 78));
    TUTTI_TRY(check_rows(lab));
    square s = {.size = 4, .rows = 16384, .columns = 16384};
    TUTTI_TRY(lab_memory(lab, (size_t)1 << 30, &s.x));
    TUTTI_TRY(lab_memory(lab, (size_t)1 << 30, &s.y));
    TUTTI_TRY(lab_time(lab, "transpose f32 1 GiB", call_transpose, &s, 0x1p31, 0));
    s.size = 2;
    s.columns = 32768;
    return lab_time(lab, "transpose bf16 1 GiB", call_transpose, &s, 0x1p31, 0);
}
