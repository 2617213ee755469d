/* products.c: checks of matrix products and their epilogues. */
#include "device/cuda/lab/checks.h"

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double h = 1e-5;
    return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

typedef struct product {
    tutti_cuda_product shape;
    const tutti_cuda_product_plan *plan;
    tutti_cu_pointer a, b, d, bias, aux;
} product;

static tutti_status call_product(lab_bench *lab, void *context)
{
    product *p = context;
    return tutti__cuda_product_run(p->plan, lab->on.stream, p->a, p->b, p->d, p->bias, p->aux);
}

static void products_multiply(const tutti_cuda_product *p, const double *a, const double *b,
                              double *d)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum += a[p->transpose_a ? l * p->m + i : i * p->k + l] *
                       b[p->transpose_b ? j * p->k + l : l * p->n + j];
            d[i * p->n + j] = sum;
        }
}

static double limit_of(const tutti_cuda_product *p)
{
    if (p->type == TUTTI_CUDA_F32)
        return p->tf32 ? 2e-3 : 2e-6;
    return p->out == TUTTI_CUDA_F32 ? 1e-5 : p->out == TUTTI_CUDA_BF16 ? 5e-3 : 1e-3;
}

static tutti_status check_plain(lab_bench *lab, tutti_cuda_product shape)
{
    product p = {.shape = shape};
    double *a, *b, *d, *d0 = malloc((size_t)(shape.m * shape.n) * 8);
    char what[64];
    TUTTI_TRY(lab_numbers(lab, shape.type, shape.m * shape.k, -1, 1, &a, &p.a));
    TUTTI_TRY(lab_numbers(lab, shape.type, shape.k * shape.n, -1, 1, &b, &p.b));
    TUTTI_TRY(lab_memory(lab, (size_t)(shape.m * shape.n * 4), &p.d));
    TUTTI_TRY(tutti__cuda_product_plan(lab->products, lab->on.stream, &shape, true, &p.plan));
    TUTTI_TRY(call_product(lab, &p));
    TUTTI_TRY(lab_read(lab, shape.out, p.d, shape.m * shape.n, &d));
    products_multiply(&shape, a, b, d0);
    snprintf(what, sizeof what, "%s%s %s%s to %s", shape.tf32 ? "tf32 " : "",
             tutti__cuda_type_name(shape.type), shape.transpose_a ? "a'" : "a",
             shape.transpose_b ? "b'" : "b", tutti__cuda_type_name(shape.out));
    lab_compare(lab, what, d, d0, shape.m * shape.n, limit_of(&shape));
    free(a), free(b), free(d), free(d0);
    return TUTTI_OK;
}

static tutti_status time_product(lab_bench *lab, tutti_cuda_type type, bool tf32, int64_t side)
{
    product p = {.shape = {.type = type,
                           .out = type,
                           .tf32 = tf32,
                           .transpose_b = true,
                           .m = side,
                           .n = side,
                           .k = side}};
    size_t bytes = (size_t)(side * side) * (size_t)tutti__cuda_type_size(type);
    tutti_cu_pointer *all[] = {&p.a, &p.b, &p.d};
    char what[64], plan[128];
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(lab_memory(lab, bytes, all[i]));
        TUTTI_TRY(tutti__cuda_random_uniform(lab->on, type, (tutti_random_key){9, (uint64_t)i}, 0,
                                             side * side, -1, 2, *all[i]));
    }
    TUTTI_TRY(tutti__cuda_product_plan(lab->products, lab->on.stream, &p.shape, true, &p.plan));
    tutti__cuda_product_describe(p.plan, plan, sizeof plan);
    printf("     %s\n", plan);
    snprintf(what, sizeof what, "%s%s %lld", tf32 ? "tf32 " : "", tutti__cuda_type_name(type),
             (long long)side);
    return lab_time(lab, what, call_product, &p, 0, 2.0 * (double)(side * side * side));
}

tutti_status lab_check_products(lab_bench *lab)
{
    static const struct {
        tutti_cuda_type type, out;
        bool tf32;
    } types[] = {{TUTTI_CUDA_F32, TUTTI_CUDA_F32, false},
                 {TUTTI_CUDA_F32, TUTTI_CUDA_F32, true},
                 {TUTTI_CUDA_BF16, TUTTI_CUDA_BF16, false},
                 {TUTTI_CUDA_BF16, TUTTI_CUDA_F32, false},
                 {TUTTI_CUDA_F16, TUTTI_CUDA_F16, false}};
    for (size_t t = 0; t < TUTTI_COUNT(types); t++)
        for (int way = 0; way < (t == 0 ? 4 : 2); way++)
            TUTTI_TRY(check_plain(lab, (tutti_cuda_product){.type = types[t].type,
                                                            .out = types[t].out,
                                                            .tf32 = types[t].tf32,
                                                            .transpose_a = way & 2,
                                                            .transpose_b = way & 1,
                                                            .m = 200,
                                                            .n = 136,
                                                            .k = 264}));
    TUTTI_TRY(time_product(lab, TUTTI_CUDA_BF16, false, 4096));
    TUTTI_TRY(time_product(lab, TUTTI_CUDA_BF16, false, 8192));
    TUTTI_TRY(time_product(lab, TUTTI_CUDA_F32, false, 4096));
    return time_product(lab, TUTTI_CUDA_F32, true, 4096);
}

/* x [m, k] w [k, n] with bias and an activation, then back: dx of the layer behind it. */
static tutti_status check_forward(lab_bench *lab, tutti_cuda_type type,
                                  tutti_cuda_epilogue epilogue, const char *name)
{
    product p = {
        .shape = {.type = type, .out = type, .m = 256, .n = 384, .k = 192, .epilogue = epilogue}};
    tutti_cuda_product *s = &p.shape;
    int64_t count = s->m * s->n;
    double *a, *b, *bias, *d, *d0 = malloc((size_t)count * 8), limit = 2 * limit_of(s);
    char what[64];
    TUTTI_TRY(lab_numbers(lab, type, s->m * s->k, -1, 1, &a, &p.a));
    TUTTI_TRY(lab_numbers(lab, type, s->k * s->n, -0.2, 0.2, &b, &p.b));
    TUTTI_TRY(lab_numbers(lab, type, s->n, -1, 1, &bias, &p.bias));
    TUTTI_TRY(lab_memory(lab, (size_t)count * 4, &p.d));
    TUTTI_TRY(lab_memory(lab, (size_t)(s->m * tutti__cuda_product_aux_stride(s)) * 4, &p.aux));
    TUTTI_TRY(tutti__cuda_product_plan(lab->products, lab->on.stream, s, true, &p.plan));
    TUTTI_TRY(call_product(lab, &p));
    TUTTI_TRY(lab_read(lab, type, p.d, count, &d));
    products_multiply(s, a, b, d0);
    for (int64_t i = 0; i < count; i++) {
        d0[i] += bias[i % s->n];
        if (epilogue == TUTTI_CUDA_BIAS_RELU || epilogue == TUTTI_CUDA_BIAS_RELU_AUX)
            d0[i] = d0[i] > 0 ? d0[i] : 0;
        if (epilogue == TUTTI_CUDA_BIAS_GELU_AUX)
            d0[i] = gelu(d0[i]);
    }
    snprintf(what, sizeof what, "%s %s", tutti__cuda_type_name(type), name);
    lab_compare(lab, what, d, d0, count,
                epilogue == TUTTI_CUDA_BIAS_GELU_AUX ? 2 * limit + 1e-3 : limit);
    free(d);
    if (epilogue == TUTTI_CUDA_BIAS_RELU_AUX || epilogue == TUTTI_CUDA_BIAS_GELU_AUX) {
        /* dy [m, k2] w2' (stored [n, k2]) times the slope at what went in; bias' gradient. */
        bool is_relu = epilogue == TUTTI_CUDA_BIAS_RELU_AUX;
        product q = {.shape = {.type = type,
                               .out = type,
                               .transpose_b = true,
                               .m = s->m,
                               .n = s->n,
                               .k = 128,
                               .epilogue = is_relu ? TUTTI_CUDA_DRELU_BIAS_GRADIENT
                                                   : TUTTI_CUDA_DGELU_BIAS_GRADIENT},
                     .aux = p.aux};
        double *dy, *w2, *sums = calloc((size_t)s->n, 8), *got;
        TUTTI_TRY(lab_numbers(lab, type, s->m * 128, -1, 1, &dy, &q.a));
        TUTTI_TRY(lab_numbers(lab, type, s->n * 128, -1, 1, &w2, &q.b));
        TUTTI_TRY(lab_memory(lab, (size_t)count * 4, &q.d));
        TUTTI_TRY(lab_memory(lab, (size_t)s->n * 4, &q.bias));
        TUTTI_TRY(tutti__cuda_product_plan(lab->products, lab->on.stream, &q.shape, true, &q.plan));
        TUTTI_TRY(call_product(lab, &q));
        TUTTI_TRY(lab_read(lab, type, q.d, count, &d));
        TUTTI_TRY(lab_read(lab, type, q.bias, s->n, &got));
        double *before = malloc((size_t)count * 8);
        products_multiply(s, a, b, before);
        products_multiply(&q.shape, dy, w2, d0);
        for (int64_t i = 0; i < count; i++) {
            double x = lab_round(type, before[i] + bias[i % s->n]);
            d0[i] *= is_relu ? x > 0 : gelu_slope(x);
            sums[i % s->n] += d0[i];
        }
        snprintf(what, sizeof what, "%s %s backward", tutti__cuda_type_name(type), name);
        lab_compare(lab, what, d, d0, count, 2 * limit + 1e-3);
        snprintf(what, sizeof what, "%s %s dbias", tutti__cuda_type_name(type), name);
        lab_compare(lab, what, got, sums, s->n, 2 * limit + 1e-3);
        free(dy), free(w2), free(sums), free(got), free(before), free(d);
    }
    free(a), free(b), free(bias), free(d0);
    return TUTTI_OK;
}

static tutti_status check_bias_gradient(lab_bench *lab, tutti_cuda_type type)
{
    product p = {.shape = {.type = type,
                           .out = type,
                           .transpose_a = true,
                           .m = 192,
                           .n = 384,
                           .k = 512,
                           .epilogue = TUTTI_CUDA_BIAS_GRADIENT_B}};
    double *a, *b, *d, *sums = calloc(384, 8), *got, *d0 = malloc(192 * 384 * 8);
    char what[64];
    TUTTI_TRY(lab_numbers(lab, type, 192 * 512, -1, 1, &a, &p.a));
    TUTTI_TRY(lab_numbers(lab, type, 512 * 384, -1, 1, &b, &p.b));
    TUTTI_TRY(lab_memory(lab, 192 * 384 * 4, &p.d));
    TUTTI_TRY(lab_memory(lab, 384 * 4, &p.bias));
    TUTTI_TRY(tutti__cuda_product_plan(lab->products, lab->on.stream, &p.shape, true, &p.plan));
    TUTTI_TRY(call_product(lab, &p));
    TUTTI_TRY(lab_read(lab, type, p.d, 192 * 384, &d));
    TUTTI_TRY(lab_read(lab, type, p.bias, 384, &got));
    products_multiply(&p.shape, a, b, d0);
    for (int i = 0; i < 512 * 384; i++)
        sums[i % 384] += b[i];
    snprintf(what, sizeof what, "%s dw", tutti__cuda_type_name(type));
    lab_compare(lab, what, d, d0, 192 * 384, limit_of(&p.shape));
    snprintf(what, sizeof what, "%s dw's dbias", tutti__cuda_type_name(type));
    lab_compare(lab, what, got, sums, 384, limit_of(&p.shape) + 1e-5);
    free(a), free(b), free(d), free(sums), free(got), free(d0);
    return TUTTI_OK;
}

/* What a type lacks is told and is no failure: there is an unfused way. */
static void attempt(lab_bench *lab, tutti_status status, const char *what)
{
    if (status == TUTTI_UNSUPPORTED)
        printf("none %-22s %-26s %s\n", lab->check, what, tutti_error_message());
    else if (status != TUTTI_OK)
        lab_pass(lab, false, what, "%s", tutti_error_message());
}

tutti_status lab_check_epilogues(lab_bench *lab)
{
    static const tutti_cuda_type types[] = {TUTTI_CUDA_F32, TUTTI_CUDA_BF16, TUTTI_CUDA_F16};
    for (int t = 0; t < 3; t++) {
        attempt(lab, check_forward(lab, types[t], TUTTI_CUDA_BIAS, "bias"), "bias");
        attempt(lab, check_forward(lab, types[t], TUTTI_CUDA_BIAS_RELU, "bias relu"), "relu");
        attempt(lab, check_forward(lab, types[t], TUTTI_CUDA_BIAS_RELU_AUX, "bias relu aux"),
                "relu aux");
        attempt(lab, check_forward(lab, types[t], TUTTI_CUDA_BIAS_GELU_AUX, "bias gelu aux"),
                "gelu aux");
        attempt(lab, check_bias_gradient(lab, types[t]), "bias gradient");
    }
    return TUTTI_OK;
}
