/* rows.c: checks of what works on rows: softmax, cross-entropy, norms, reductions. */
#include "device/cuda/lab/checks.h"

typedef struct copy {
    tutti_cu_pointer from, to;
    size_t bytes;
} copy;

static tutti_status call_copy(lab_bench *lab, void *context)
{
    copy *c = context;
    return TUTTI_CU(lab->on.device, cuMemcpyDtoDAsync(c->to, c->from, c->bytes, lab->on.stream));
}

tutti_status lab_check_copy(lab_bench *lab)
{
    copy c = {.bytes = (size_t)1 << 30};
    double us;
    TUTTI_TRY(lab_memory(lab, c.bytes, &c.from));
    TUTTI_TRY(lab_memory(lab, c.bytes, &c.to));
    TUTTI_TRY(lab_microseconds(lab, call_copy, &c, &us));
    lab->copy_bandwidth = 2 * (double)c.bytes / us * 1e6;
    printf("time %-22s %-26s %9.1f us  %6.0f GB/s read and written\n", "copy", "1 GiB", us,
           lab->copy_bandwidth / 1e9);
    return TUTTI_OK;
}

typedef struct softmax {
    tutti_cuda_type type;
    tutti_cu_pointer x, y, dy, dx;
    int64_t rows;
    int width;
} softmax;

static tutti_status call_softmax(lab_bench *lab, void *context)
{
    softmax *s = context;
    return tutti__cuda_softmax(lab->on, s->type, s->x, s->y, s->rows, s->width);
}

static tutti_status check_softmax(lab_bench *lab, tutti_cuda_type type, int64_t rows, int width)
{
    softmax s = {.type = type, .rows = rows, .width = width};
    int64_t count = rows * width;
    size_t bytes = (size_t)count * (size_t)tutti__cuda_type_size(type);
    double *x, *dy, *y, *dx, limit = type == TUTTI_CUDA_F32 ? 1e-5 : 5e-3;
    double *y0 = malloc((size_t)count * 8), *dx0 = malloc((size_t)count * 8);
    char what[64];
    TUTTI_TRY(lab_numbers(lab, type, count, -8, 8, &x, &s.x));
    TUTTI_TRY(lab_numbers(lab, type, count, -1, 1, &dy, &s.dy));
    TUTTI_TRY(lab_memory(lab, bytes, &s.y));
    TUTTI_TRY(lab_memory(lab, bytes, &s.dx));
    TUTTI_TRY(call_softmax(lab, &s));
    TUTTI_TRY(tutti__cuda_softmax_gradient(lab->on, type, s.y, s.dy, s.dx, rows, width));
    TUTTI_TRY(lab_read(lab, type, s.y, count, &y));
    TUTTI_TRY(lab_read(lab, type, s.dx, count, &dx));
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, dot = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            sum += exp(x[i]);
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            y0[i] = exp(x[i]) / sum;
            dot += y[i] * dy[i];
        }
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            dx0[i] = y[i] * (dy[i] - dot);
    }
    snprintf(what, sizeof what, "%s %lldx%d", tutti__cuda_type_name(type), (long long)rows, width);
    lab_compare(lab, what, y, y0, count, limit);
    snprintf(what, sizeof what, "%s %lldx%d gradient", tutti__cuda_type_name(type), (long long)rows,
             width);
    lab_compare(lab, what, dx, dx0, count, limit);
    free(x), free(dy), free(y), free(dx), free(y0), free(dx0);
    return TUTTI_OK;
}

tutti_status lab_check_softmax(lab_bench *lab)
{
    TUTTI_TRY(check_softmax(lab, TUTTI_CUDA_F32, 77, 12));
    TUTTI_TRY(check_softmax(lab, TUTTI_CUDA_BF16, 333, 1024));
    TUTTI_TRY(check_softmax(lab, TUTTI_CUDA_F16, 65, 4104));
    TUTTI_TRY(check_softmax(lab, TUTTI_CUDA_F32, 9, 16384));
    softmax s = {.type = TUTTI_CUDA_BF16, .rows = 512 << 10, .width = 1024};
    size_t bytes = (size_t)1 << 30;
    TUTTI_TRY(lab_memory(lab, bytes, &s.x));
    TUTTI_TRY(lab_memory(lab, bytes, &s.y));
    TUTTI_TRY(tutti__cuda_random_uniform(lab->on, s.type, (tutti_random_key){1, 1}, 0, 512 << 20,
                                         -1, 2, s.x));
    return lab_time(lab, "bf16 1 GiB", call_softmax, &s, 2.0 * (double)bytes, 0);
}

static tutti_status call_cross_entropy(lab_bench *lab, void *context)
{
    return tutti__cuda_softmax_cross_entropy(lab->on, context);
}

static tutti_status check_cross_entropy(lab_bench *lab, tutti_cuda_type type, int64_t rows,
                                        int width, int stride)
{
    tutti_cuda_cross_entropy c = {
        .type = type, .rows = rows, .width = width, .stride = stride, .scale = 1.0f / (float)rows};
    int64_t count = rows * stride;
    double *x, *loss, *dx, *loss0 = malloc((size_t)rows * 8), *dx0 = malloc((size_t)count * 8);
    int32_t *labels = malloc((size_t)rows * 4);
    char what[64];
    for (int64_t r = 0; r < rows; r++)
        labels[r] = r == 3 ? -1 : (int32_t)(r * 7919 % width);
    TUTTI_TRY(lab_numbers(lab, type, count, -6, 6, &x, &c.logits));
    TUTTI_TRY(lab_put(lab, labels, (size_t)rows * 4, &c.labels));
    TUTTI_TRY(lab_memory(lab, (size_t)rows * 4, &c.loss));
    c.gradient = c.logits;
    TUTTI_TRY(call_cross_entropy(lab, &c));
    TUTTI_TRY(lab_read(lab, TUTTI_CUDA_F32, c.loss, rows, &loss));
    TUTTI_TRY(lab_read(lab, type, c.gradient, count, &dx));
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, *row = x + r * stride;
        bool counts = labels[r] >= 0;
        for (int j = 0; j < width; j++)
            sum += exp(row[j]);
        loss0[r] = counts ? log(sum) - row[labels[r]] : 0;
        for (int j = 0; j < stride; j++)
            dx0[r * stride + j] =
                counts && j < width ? (exp(row[j]) / sum - (j == labels[r])) * (double)c.scale : 0;
    }
    snprintf(what, sizeof what, "%s %lldx%d", tutti__cuda_type_name(type), (long long)rows, width);
    lab_compare(lab, what, loss, loss0, rows, 1e-5);
    snprintf(what, sizeof what, "%s %lldx%d gradient", tutti__cuda_type_name(type), (long long)rows,
             width);
    lab_compare(lab, what, dx, dx0, count, type == TUTTI_CUDA_F32 ? 1e-5 : 5e-3);
    free(x), free(loss), free(dx), free(loss0), free(dx0), free(labels);
    return TUTTI_OK;
}

tutti_status lab_check_cross_entropy(lab_bench *lab)
{
    TUTTI_TRY(check_cross_entropy(lab, TUTTI_CUDA_F32, 64, 10, 12));
    TUTTI_TRY(check_cross_entropy(lab, TUTTI_CUDA_F16, 33, 1000, 1000));
    TUTTI_TRY(check_cross_entropy(lab, TUTTI_CUDA_BF16, 37, 50257, 50304));
    tutti_cuda_cross_entropy c = {
        .type = TUTTI_CUDA_BF16, .rows = 16384, .width = 50257, .stride = 50304, .scale = 1e-4f};
    size_t bytes = 2u * 16384u * 50304u;
    TUTTI_TRY(lab_memory(lab, bytes, &c.logits));
    TUTTI_TRY(lab_memory(lab, bytes, &c.gradient));
    TUTTI_TRY(lab_memory(lab, 65536, &c.labels));
    TUTTI_TRY(lab_memory(lab, 65536, &c.loss));
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemsetD8Async(c.labels, 0, 65536, lab->on.stream)));
    TUTTI_TRY(tutti__cuda_random_uniform(lab->on, c.type, (tutti_random_key){1, 1}, 0,
                                         (int64_t)bytes / 2, -1, 2, c.logits));
    return lab_time(lab, "bf16 16384x50257", call_cross_entropy, &c, 2.0 * (double)bytes, 0);
}

static tutti_status call_norm(lab_bench *lab, void *context)
{
    return tutti__cuda_norm(lab->on, context);
}

static tutti_status call_norm_gradient(lab_bench *lab, void *context)
{
    return tutti__cuda_norm_gradient(lab->on, context);
}

static tutti_status make_norm(lab_bench *lab, tutti_cuda_norm *n)
{
    size_t size = (size_t)tutti__cuda_type_size(n->type), width = (size_t)n->width;
    size_t bytes = (size_t)n->rows * width * size;
    n->epsilon = 1e-5f;
    TUTTI_TRY(lab_memory(lab, bytes, &n->sum));
    TUTTI_TRY(lab_memory(lab, bytes, &n->y));
    TUTTI_TRY(lab_memory(lab, bytes, &n->dx));
    TUTTI_TRY(lab_memory(lab, width * size, &n->dgamma));
    TUTTI_TRY(lab_memory(lab, width * size, &n->dbeta));
    TUTTI_TRY(lab_memory(lab, (size_t)n->rows * 4, &n->mean));
    TUTTI_TRY(lab_memory(lab, (size_t)n->rows * 4, &n->rstd));
    return lab_memory(lab, tutti__cuda_norm_workspace(n), &n->workspace);
}

static tutti_status check_norm(lab_bench *lab, tutti_cuda_type type, int64_t rows, int width,
                               bool rms, bool with_residual)
{
    tutti_cuda_norm n = {.type = type, .rows = rows, .width = width, .rms = rms};
    int64_t count = rows * width;
    double *x, *residual, *gamma, *beta, *dy, *along, *s, *y, *dx, *dgamma, *dbeta;
    double *y0 = malloc((size_t)count * 8), *dx0 = malloc((size_t)count * 8),
           *g0 = calloc((size_t)width, 8), *b0 = calloc((size_t)width, 8);
    double limit = type == TUTTI_CUDA_F32 ? 1e-5 : 1e-2;
    char what[64], more[80];
    TUTTI_TRY(make_norm(lab, &n));
    TUTTI_TRY(lab_numbers(lab, type, count, -1, 3, &x, &n.x));
    TUTTI_TRY(lab_numbers(lab, type, count, -1, 1, &residual, &n.residual));
    TUTTI_TRY(lab_numbers(lab, type, width, 0.5, 1.5, &gamma, &n.gamma));
    TUTTI_TRY(lab_numbers(lab, type, width, -1, 1, &beta, &n.beta));
    TUTTI_TRY(lab_numbers(lab, type, count, -1, 1, &dy, &n.dy));
    TUTTI_TRY(lab_numbers(lab, type, count, -1, 1, &along, &n.along));
    if (!with_residual)
        n.residual = n.along = 0;
    TUTTI_TRY(call_norm(lab, &n));
    if (with_residual)
        n.x = n.sum;
    TUTTI_TRY(lab_read(lab, type, n.x, count, &s));
    TUTTI_TRY(call_norm_gradient(lab, &n));
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, square = 0, sum = 0, dot = 0, *row = s + r * width;
        for (int j = 0; j < width && !rms; j++)
            mean += row[j] / width;
        for (int j = 0; j < width; j++)
            square += (row[j] - mean) * (row[j] - mean) / width;
        double rstd = 1 / sqrt(square + 1e-5);
        for (int j = 0; j < width; j++) {
            int64_t i = r * width + j;
            double hat = (row[j] - mean) * rstd, d = dy[i] * gamma[j];
            y0[i] = hat * gamma[j] + (rms ? 0 : beta[j]);
            g0[j] += dy[i] * hat;
            b0[j] += dy[i];
            sum += rms ? 0 : d / width;
            dot += d * hat / width;
        }
        for (int j = 0; j < width; j++) {
            int64_t i = r * width + j;
            dx0[i] = (dy[i] * gamma[j] - sum - (row[j] - mean) * rstd * dot) * rstd +
                     (with_residual ? along[i] : 0);
        }
    }
    for (int64_t i = 0; i < count; i++)
        residual[i] = with_residual ? lab_round(type, x[i] + residual[i]) : x[i];
    TUTTI_TRY(lab_read(lab, type, n.y, count, &y));
    TUTTI_TRY(lab_read(lab, type, n.dx, count, &dx));
    TUTTI_TRY(lab_read(lab, type, n.dgamma, width, &dgamma));
    TUTTI_TRY(lab_read(lab, type, n.dbeta, width, &dbeta));
    snprintf(what, sizeof what, "%s%s %lldx%d", rms ? "rms " : "", tutti__cuda_type_name(type),
             (long long)rows, width);
    if (with_residual)
        lab_compare(lab, "sum with residual", s, residual, count, 1e-6);
    lab_compare(lab, what, y, y0, count, limit);
    snprintf(more, sizeof more, "%s dx", what);
    lab_compare(lab, more, dx, dx0, count, limit);
    snprintf(more, sizeof more, "%s dgamma", what);
    lab_compare(lab, more, dgamma, g0, width, limit);
    snprintf(more, sizeof more, "%s dbeta", what);
    if (!rms)
        lab_compare(lab, more, dbeta, b0, width, limit);
    char *bits = malloc((size_t)width * (size_t)tutti__cuda_type_size(type));
    size_t bytes = (size_t)width * (size_t)tutti__cuda_type_size(type);
    TUTTI_TRY(lab_get(lab, n.dgamma, bits, bytes));
    TUTTI_TRY(call_norm_gradient(lab, &n));
    lab_same(lab, "dgamma", n.dgamma, bits, bytes);
    free(x), free(residual), free(gamma), free(beta), free(dy), free(along), free(s), free(y);
    free(dx), free(dgamma), free(dbeta), free(y0), free(dx0), free(g0), free(b0), free(bits);
    return TUTTI_OK;
}

tutti_status lab_check_norm(lab_bench *lab)
{
    TUTTI_TRY(check_norm(lab, TUTTI_CUDA_F32, 301, 64, false, false));
    TUTTI_TRY(check_norm(lab, TUTTI_CUDA_BF16, 1000, 768, false, true));
    TUTTI_TRY(check_norm(lab, TUTTI_CUDA_F32, 100, 4096, true, true));
    TUTTI_TRY(check_norm(lab, TUTTI_CUDA_F16, 70, 5128, true, false));
    tutti_cuda_norm n = {.type = TUTTI_CUDA_BF16, .rows = 65536 * 8, .width = 768};
    size_t bytes = (size_t)n.rows * 768 * 2;
    double *gamma;
    TUTTI_TRY(make_norm(lab, &n));
    TUTTI_TRY(lab_memory(lab, bytes, &n.x));
    TUTTI_TRY(lab_memory(lab, bytes, &n.dy));
    TUTTI_TRY(lab_memory(lab, bytes, &n.residual));
    TUTTI_TRY(lab_numbers(lab, n.type, 768, 0, 1, &gamma, &n.gamma));
    n.beta = n.gamma;
    free(gamma);
    tutti_cu_pointer all[] = {n.x, n.dy, n.residual};
    for (int i = 0; i < 3; i++)
        TUTTI_TRY(tutti__cuda_random_uniform(lab->on, n.type, (tutti_random_key){1, 1}, 0,
                                             n.rows * 768, -1, 2, all[i]));
    TUTTI_TRY(lab_time(lab, "bf16 residual, 768 MiB", call_norm, &n, 4.0 * (double)bytes, 0));
    tutti_cu_pointer residual = n.residual;
    n.residual = 0;
    TUTTI_TRY(lab_time(lab, "bf16, 768 MiB", call_norm, &n, 2.0 * (double)bytes, 0));
    TUTTI_TRY(lab_time(lab, "bf16 gradient", call_norm_gradient, &n, 3.0 * (double)bytes, 0));
    n.along = residual;
    return lab_time(lab, "bf16 gradient, along", call_norm_gradient, &n, 4.0 * (double)bytes, 0);
}

static tutti_status call_rows(lab_bench *lab, void *context)
{
    return tutti__cuda_reduce_rows(lab->on, context);
}
static tutti_status call_columns(lab_bench *lab, void *context)
{
    return tutti__cuda_reduce_columns(lab->on, context);
}
static tutti_status call_all(lab_bench *lab, void *context)
{
    return tutti__cuda_reduce_all(lab->on, context);
}

static tutti_status check_reduce(lab_bench *lab, tutti_cuda_type type, int64_t rows, int64_t width,
                                 bool maximum)
{
    tutti_cuda_reduce c = {.type = type, .rows = rows, .width = width, .maximum = maximum};
    int64_t most = rows > width ? rows : width;
    double *x, *y, *by_row = malloc((size_t)rows * 8), *by_column = malloc((size_t)width * 8);
    double all = maximum ? -INFINITY : 0;
    char what[64];
    TUTTI_TRY(lab_numbers(lab, type, rows * width, -1, 2, &x, &c.x));
    TUTTI_TRY(lab_memory(lab, (size_t)most * 4, &c.y));
    TUTTI_TRY(lab_memory(lab, tutti__cuda_reduce_workspace(&c), &c.workspace));
    for (int64_t i = 0; i < rows * width; i++) {
        int64_t r = i / width, j = i % width;
        by_row[r] = j == 0 ? x[i] : maximum ? fmax(by_row[r], x[i]) : by_row[r] + x[i];
        by_column[j] = r == 0 ? x[i] : maximum ? fmax(by_column[j], x[i]) : by_column[j] + x[i];
        all = maximum ? fmax(all, x[i]) : all + x[i];
    }
    const struct {
        lab_call *call;
        const char *name;
        const double *expected;
        int64_t count;
    } ways[] = {{call_rows, "rows", by_row, rows},
                {call_columns, "columns", by_column, width},
                {call_all, "all", &all, 1}};
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(ways[i].call(lab, &c));
        TUTTI_TRY(lab_read(lab, TUTTI_CUDA_F32, c.y, ways[i].count, &y));
        snprintf(what, sizeof what, "%s %s %lldx%lld %s", maximum ? "max" : "sum",
                 tutti__cuda_type_name(type), (long long)rows, (long long)width, ways[i].name);
        lab_compare(lab, what, y, ways[i].expected, ways[i].count, 1e-6);
        free(y);
    }
    free(x), free(by_row), free(by_column);
    return TUTTI_OK;
}

tutti_status lab_check_reduce(lab_bench *lab)
{
    TUTTI_TRY(check_reduce(lab, TUTTI_CUDA_F32, 1000, 37, false));
    TUTTI_TRY(check_reduce(lab, TUTTI_CUDA_BF16, 3001, 768, false));
    TUTTI_TRY(check_reduce(lab, TUTTI_CUDA_F16, 5, 200003, true));
    tutti_cuda_reduce c = {.type = TUTTI_CUDA_BF16, .rows = 65536, .width = 8192};
    size_t bytes = (size_t)1 << 30;
    TUTTI_TRY(lab_memory(lab, bytes, &c.x));
    TUTTI_TRY(lab_memory(lab, 65536 * 4, &c.y));
    TUTTI_TRY(lab_memory(lab, tutti__cuda_reduce_workspace(&c), &c.workspace));
    c.type = TUTTI_CUDA_F32;
    c.rows = 32768;
    TUTTI_TRY(tutti__cuda_random_uniform(lab->on, c.type, (tutti_random_key){1, 1}, 0, 256 << 20,
                                         -1, 2, c.x));
    TUTTI_TRY(lab_time(lab, "f32 1 GiB rows", call_rows, &c, (double)bytes, 0));
    TUTTI_TRY(lab_time(lab, "f32 1 GiB columns", call_columns, &c, (double)bytes, 0));
    TUTTI_TRY(lab_time(lab, "f32 1 GiB all", call_all, &c, (double)bytes, 0));
    c.type = TUTTI_CUDA_BF16;
    c.rows = 65536;
    return lab_time(lab, "bf16 1 GiB columns", call_columns, &c, (double)bytes, 0);
}
