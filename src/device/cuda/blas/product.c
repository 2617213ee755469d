/* product.c: see product.h. cuBLASLt is column-major: a row-major d = a b is its d' = b' a', so its
 * A is our b, and what it calls rows of D are our columns. */
#include "device/cuda/blas/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "device/cuda/blas/choices.h"
#include "device/cuda/compile/load.h"
#include "device/cuda/driver/load.h"

enum { CANDIDATES = 8, TURNS = 5, WORKSPACE = 64 << 20 };

struct tutti_cuda_product_plan {
    tutti_cuda_product_plan *next;
    tutti_cuda_products *owner;
    tutti_cuda_product product;
    tutti_blas_product description;
    tutti_blas_layout a, b, d; /* theirs: b is our a */
    tutti_blas_algorithm algorithm;
    int chosen, candidates;
    float best, first; /* microseconds; 0: not measured */
};

struct tutti_cuda_products {
    const tutti_blas *blas;
    tutti_cuda_device *device;
    tutti_blas_handle handle;
    tutti_cu_pointer workspace;
    tutti_cuda_product_plan *plans;
    char path[4096]; /* of the choices; "": none are kept */
    tutti_cuda_choices choices;
};

static tutti_status product_check(const tutti_blas *blas, tutti_blas_result result,
                                  const char *what)
{
    if (result == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED, "cuBLASLt, %s: %s", what,
                      blas->cublasLtGetStatusName(result));
}

static unsigned type_of(tutti_cuda_type type)
{
    return type == TUTTI_CUDA_F32    ? TUTTI_CUDA_R_32F
           : type == TUTTI_CUDA_BF16 ? TUTTI_CUDA_R_16BF
                                     : TUTTI_CUDA_R_16F;
}

int64_t tutti__cuda_product_aux_stride(const tutti_cuda_product *product)
{
    bool bits = product->epilogue == TUTTI_CUDA_BIAS_RELU_AUX ||
                product->epilogue == TUTTI_CUDA_DRELU_BIAS_GRADIENT;
    int64_t step = bits ? 128 : 8;
    return (product->n + step - 1) / step * step;
}

static tutti_status set(const tutti_blas *blas, tutti_blas_product description, unsigned attribute,
                        const void *value, size_t size)
{
    return product_check(blas,
                         blas->cublasLtMatmulDescSetAttribute(description, attribute, value, size),
                         "an attribute of a product");
}

static const unsigned epilogues[] = {
    [TUTTI_CUDA_PLAIN] = TUTTI_BLAS_NONE,
    [TUTTI_CUDA_BIAS] = TUTTI_BLAS_BIAS,
    [TUTTI_CUDA_BIAS_RELU] = TUTTI_BLAS_RELU_BIAS,
    [TUTTI_CUDA_BIAS_RELU_AUX] = TUTTI_BLAS_RELU_AUX_BIAS,
    [TUTTI_CUDA_BIAS_GELU_AUX] = TUTTI_BLAS_GELU_AUX_BIAS,
    [TUTTI_CUDA_DRELU_BIAS_GRADIENT] = TUTTI_BLAS_DRELU_BGRAD,
    [TUTTI_CUDA_DGELU_BIAS_GRADIENT] = TUTTI_BLAS_DGELU_BGRAD,
    [TUTTI_CUDA_BIAS_GRADIENT_B] = TUTTI_BLAS_BGRADA,
};

static bool has_aux(const tutti_cuda_product *p)
{
    return p->epilogue == TUTTI_CUDA_BIAS_RELU_AUX || p->epilogue == TUTTI_CUDA_BIAS_GELU_AUX ||
           p->epilogue == TUTTI_CUDA_DRELU_BIAS_GRADIENT ||
           p->epilogue == TUTTI_CUDA_DGELU_BIAS_GRADIENT;
}

static tutti_status product_describe(tutti_cuda_product_plan *plan)
{
    const tutti_blas *blas = plan->owner->blas;
    const tutti_cuda_product *p = &plan->product;
    unsigned compute = p->type == TUTTI_CUDA_F32 && p->tf32 ? TUTTI_BLAS_TF32 : TUTTI_BLAS_32F;
    int32_t ta = p->transpose_b, tb = p->transpose_a;
    uint32_t epilogue = epilogues[p->epilogue];
    int32_t bias_type = (int32_t)type_of(p->out);
    int64_t stride = tutti__cuda_product_aux_stride(p);
    TUTTI_TRY(product_check(
        blas, blas->cublasLtMatmulDescCreate(&plan->description, compute, TUTTI_CUDA_R_32F),
        "a product"));
    TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_TRANSPOSE_A, &ta, sizeof ta));
    TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_TRANSPOSE_B, &tb, sizeof tb));
    TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_EPILOGUE, &epilogue, sizeof epilogue));
    if (p->epilogue != TUTTI_CUDA_PLAIN)
        TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_BIAS_TYPE, &bias_type, sizeof bias_type));
    if (has_aux(p))
        TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_AUX_STRIDE, &stride, sizeof stride));
    return TUTTI_OK;
}

static tutti_status lay_out(const tutti_blas *blas, tutti_cuda_type type, int64_t rows,
                            int64_t columns, int64_t batch, tutti_blas_layout *ret)
{
    int32_t count = (int32_t)batch;
    int64_t stride = rows * columns;
    TUTTI_TRY(product_check(blas,
                            blas->cublasLtMatrixLayoutCreate(ret, type_of(type), (uint64_t)rows,
                                                             (uint64_t)columns, rows),
                            "a matrix"));
    if (batch <= 1)
        return TUTTI_OK;
    TUTTI_TRY(product_check(
        blas,
        blas->cublasLtMatrixLayoutSetAttribute(*ret, TUTTI_BLAS_BATCH_COUNT, &count, sizeof count),
        "a batch"));
    return product_check(blas,
                         blas->cublasLtMatrixLayoutSetAttribute(*ret, TUTTI_BLAS_BATCH_STRIDE,
                                                                &stride, sizeof stride),
                         "a batch's stride");
}

static tutti_status make_layouts(tutti_cuda_product_plan *plan)
{
    const tutti_blas *blas = plan->owner->blas;
    const tutti_cuda_product *p = &plan->product;
    int64_t m = p->m, n = p->n, k = p->k;
    TUTTI_TRY(
        lay_out(blas, p->type, p->transpose_b ? k : n, p->transpose_b ? n : k, p->batch, &plan->a));
    TUTTI_TRY(
        lay_out(blas, p->type, p->transpose_a ? m : k, p->transpose_a ? k : m, p->batch, &plan->b));
    return lay_out(blas, p->out, n, m, p->batch, &plan->d);
}

static tutti_status point(const tutti_cuda_product_plan *plan, tutti_cu_pointer bias,
                          tutti_cu_pointer aux)
{
    const tutti_blas *blas = plan->owner->blas;
    if (plan->product.epilogue != TUTTI_CUDA_PLAIN)
        TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_BIAS_POINTER, &bias, sizeof bias));
    if (has_aux(&plan->product))
        TUTTI_TRY(set(blas, plan->description, TUTTI_BLAS_AUX_POINTER, &aux, sizeof aux));
    return TUTTI_OK;
}

static tutti_status ask(const tutti_cuda_product_plan *plan, tutti_blas_heuristic *ret, int *count)
{
    const tutti_cuda_products *own = plan->owner;
    const tutti_blas *blas = own->blas;
    tutti_blas_preference preference;
    uint64_t bytes = WORKSPACE;
    uint32_t no_reduction = 0;
    TUTTI_TRY(
        product_check(blas, blas->cublasLtMatmulPreferenceCreate(&preference), "a preference"));
    tutti_blas_result result = blas->cublasLtMatmulPreferenceSetAttribute(
        preference, TUTTI_BLAS_WORKSPACE_BYTES, &bytes, sizeof bytes);
    if (result == 0 && plan->product.any_rows)
        result = blas->cublasLtMatmulPreferenceSetAttribute(preference, TUTTI_BLAS_REDUCTION_MASK,
                                                            &no_reduction, sizeof no_reduction);
    if (result == 0)
        result = blas->cublasLtMatmulAlgoGetHeuristic(own->handle, plan->description, plan->a,
                                                      plan->b, plan->d, plan->d, preference,
                                                      CANDIDATES, ret, count);
    (void)blas->cublasLtMatmulPreferenceDestroy(preference);
    TUTTI_TRY(product_check(blas, result, "algorithms"));
    return *count > 0 ? TUTTI_OK
                      : tutti_fail(TUTTI_UNSUPPORTED, "cuBLASLt has no algorithm for this product");
}

static tutti_status run_with(const tutti_cuda_product_plan *plan,
                             const tutti_blas_algorithm *algorithm, tutti_cu_stream stream,
                             tutti_cu_pointer a, tutti_cu_pointer b, tutti_cu_pointer d)
{
    const tutti_cuda_products *own = plan->owner;
    const float alpha = 1.0f, beta = plan->product.accumulate ? 1.0f : 0.0f;
    return product_check(own->blas,
                         own->blas->cublasLtMatmul(
                             own->handle, plan->description, &alpha, (const void *)(uintptr_t)b,
                             plan->a, (const void *)(uintptr_t)a, plan->b, &beta,
                             (const void *)(uintptr_t)d, plan->d, (void *)(uintptr_t)d, plan->d,
                             algorithm, (void *)(uintptr_t)own->workspace, WORKSPACE, stream),
                         "a product's run");
}

/* Microseconds of a candidate, the least of some turns; negative: it does not run. */
static float time_of(const tutti_cuda_product_plan *plan, const tutti_blas_algorithm *algorithm,
                     tutti_cu_stream stream, const tutti_cu_pointer *memory, tutti_cu_event *events)
{
    const tutti_cu_driver *cu = plan->owner->device->cu;
    float best = -1, milliseconds;
    for (int turn = 0; turn < TURNS; turn++) {
        (void)cu->cuEventRecord(events[0], stream);
        if (run_with(plan, algorithm, stream, memory[0], memory[1], memory[2]) != TUTTI_OK)
            return -1;
        (void)cu->cuEventRecord(events[1], stream);
        if (cu->cuEventSynchronize(events[1]) != 0 ||
            cu->cuEventElapsedTime(&milliseconds, events[0], events[1]) != 0)
            return -1;
        if (turn > 0 && (best < 0 || 1000 * milliseconds < best))
            best = 1000 * milliseconds;
    }
    return best;
}

/* Runs the candidates on memory of their own. Failing to measure leaves the first choice. */
static void measure_candidates(tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                               const tutti_blas_heuristic *found, const tutti_cu_pointer *memory)
{
    const tutti_cu_driver *cu = plan->owner->device->cu;
    tutti_cu_event events[2];
    if (cu->cuEventCreate(&events[0], 0) != 0 || cu->cuEventCreate(&events[1], 0) != 0 ||
        point(plan, memory[3], memory[4]) != TUTTI_OK)
        return;
    for (int i = 0; i < plan->candidates; i++) {
        float time = time_of(plan, &found[i].algo, stream, memory, events);
        if (i == 0)
            plan->first = time;
        /* 2 % ahead, so that noise does not choose between equals. */
        if (time > 0 && (plan->best <= 0 || time < 0.98f * plan->best)) {
            plan->best = time;
            plan->chosen = i;
            plan->algorithm = found[i].algo;
        }
    }
    (void)cu->cuEventDestroy(events[0]);
    (void)cu->cuEventDestroy(events[1]);
}

static void product_measure(tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                            const tutti_blas_heuristic *found)
{
    const tutti_cuda_product *p = &plan->product;
    const tutti_cu_driver *cu = plan->owner->device->cu;
    size_t batch = p->batch > 1 ? (size_t)p->batch : 1, m = (size_t)p->m, n = (size_t)p->n;
    const size_t sizes[5] = {batch * m * (size_t)p->k * 4, batch * n * (size_t)p->k * 4,
                             batch * m * n * 4, n * 4,
                             batch * m * (size_t)tutti__cuda_product_aux_stride(p) * 4};
    tutti_cu_pointer memory[5] = {0};
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    bool enough = true;
    for (int i = 0; i < 5 && enough; i++)
        enough = cu->cuMemAlloc(&memory[i], sizes[i]) == 0 &&
                 cu->cuMemsetD8Async(memory[i], (unsigned char)(0x3b + i), sizes[i], stream) == 0;
    if (enough)
        measure_candidates(plan, stream, found, memory);
    for (int i = 0; i < 5; i++)
        if (memory[i])
            (void)cu->cuMemFree(memory[i]);
    tutti__error_restore(&before);
}

static void free_layouts(tutti_cuda_product_plan *plan)
{
    tutti_blas_layout *layouts[] = {&plan->a, &plan->b, &plan->d};
    for (int i = 0; i < 3; i++) {
        if (*layouts[i])
            (void)plan->owner->blas->cublasLtMatrixLayoutDestroy(*layouts[i]);
        *layouts[i] = NULL;
    }
}

static void free_plan(tutti_cuda_product_plan *plan)
{
    free_layouts(plan);
    if (plan->description)
        (void)plan->owner->blas->cublasLtMatmulDescDestroy(plan->description);
    free(plan);
}

static uint64_t key_of(const tutti_cuda_products *products, const tutti_cuda_product *p)
{
    const int64_t words[] = {p->type,
                             p->out,
                             p->transpose_a,
                             p->transpose_b,
                             p->tf32,
                             p->accumulate,
                             p->m,
                             p->n,
                             p->k,
                             p->batch,
                             p->epilogue,
                             WORKSPACE,
                             (int64_t)products->blas->cublasLtGetVersion()};
    return tutti__hash_bytes(tutti__hash_string(1, products->device->name), words, sizeof words);
}

/* Measures unless another process, or this one, has: then its choice is taken. */
static void product_choose(tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                           const tutti_blas_heuristic *found)
{
    tutti_cuda_products *products = plan->owner;
    uint64_t key = key_of(products, &plan->product);
    const tutti_cuda_choice *kept = tutti__cuda_choices_find(&products->choices, key);
    tutti_error before;
    if (kept) {
        plan->algorithm = kept->algorithm;
        return;
    }
    product_measure(plan, stream, found);
    if (!products->path[0] || plan->best <= 0)
        return;
    tutti__error_capture(TUTTI_OK, &before);
    tutti__cuda_choices_read(&products->choices, products->path); /* what others have written */
    kept = tutti__cuda_choices_find(&products->choices, key);
    if (kept)
        plan->algorithm = kept->algorithm;
    else if (tutti__cuda_choices_add(&products->choices,
                                     &(tutti_cuda_choice){key, plan->algorithm}) == TUTTI_OK)
        (void)tutti__cuda_choices_write(&products->choices, products->path);
    tutti__error_restore(&before);
}

/* The algorithm of a product with as many rows as suit every one: how many there are changes no bit
 * of a row. */
static tutti_status choose_for_any_rows(tutti_cuda_product_plan *plan)
{
    enum { ROWS = 1024 };
    tutti_blas_heuristic found[CANDIDATES];
    const tutti_cuda_product product = plan->product;
    plan->product.m = ROWS;
    plan->product.batch = 1;
    tutti_status status = make_layouts(plan);
    if (status == TUTTI_OK)
        status = point(plan, plan->owner->workspace, plan->owner->workspace);
    if (status == TUTTI_OK)
        status = ask(plan, found, &plan->candidates);
    plan->product = product;
    free_layouts(plan);
    if (status == TUTTI_OK)
        plan->algorithm = found[0].algo;
    return status == TUTTI_OK ? make_layouts(plan) : status;
}

static tutti_status product_build(tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                                  bool measured)
{
    tutti_blas_heuristic found[CANDIDATES];
    TUTTI_TRY(product_describe(plan));
    if (plan->product.any_rows)
        return choose_for_any_rows(plan);
    TUTTI_TRY(make_layouts(plan));
    /* Whether an epilogue's addresses are good enough is part of the question. */
    TUTTI_TRY(point(plan, plan->owner->workspace, plan->owner->workspace));
    TUTTI_TRY(ask(plan, found, &plan->candidates));
    plan->algorithm = found[0].algo;
    if (measured)
        product_choose(plan, stream, found);
    return TUTTI_OK;
}

static bool same(const tutti_cuda_product *a, const tutti_cuda_product *b)
{
    return a->type == b->type && a->out == b->out && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b && a->tf32 == b->tf32 &&
           a->accumulate == b->accumulate && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->batch == b->batch && a->epilogue == b->epilogue && a->any_rows == b->any_rows;
}

tutti_status tutti__cuda_product_plan(tutti_cuda_products *products, tutti_cu_stream stream,
                                      const tutti_cuda_product *product, bool measured,
                                      const tutti_cuda_product_plan **ret)
{
    tutti_cuda_product_plan *plan = products->plans;
    while (plan && !same(&plan->product, product))
        plan = plan->next;
    if (!plan) {
        plan = calloc(1, sizeof *plan);
        if (!plan)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a product");
        plan->owner = products;
        plan->product = *product;
        tutti_status status = product_build(plan, stream, measured);
        if (status != TUTTI_OK) {
            free_plan(plan);
            return tutti__error_prefix(status, "product %lldx%lldx%lld, epilogue %d",
                                       (long long)product->m, (long long)product->n,
                                       (long long)product->k, (int)product->epilogue);
        }
        plan->next = products->plans;
        products->plans = plan;
    }
    *ret = plan;
    return TUTTI_OK;
}

tutti_status tutti__cuda_product_run(const tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                                     tutti_cu_pointer a, tutti_cu_pointer b, tutti_cu_pointer d,
                                     tutti_cu_pointer bias, tutti_cu_pointer aux)
{
    TUTTI_TRY(point(plan, bias, aux));
    return run_with(plan, &plan->algorithm, stream, a, b, d);
}

void tutti__cuda_product_describe(const tutti_cuda_product_plan *plan, char *text, size_t size)
{
    snprintf(text, size, "candidate %d of %d, %.1f us (first: %.1f us)", plan->chosen + 1,
             plan->candidates, (double)plan->best, (double)plan->first);
}

tutti_status tutti__cuda_products_open(tutti_cuda_device *device, tutti_cuda_products **ret)
{
    const tutti_blas *blas;
    TUTTI_TRY(tutti__cuda_blas(&blas));
    tutti_cuda_products *products = calloc(1, sizeof *products);
    if (!products)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a handle");
    products->blas = blas;
    products->device = device;
    if (tutti__cuda_cache()[0] &&
        snprintf(products->path, sizeof products->path, "%s/cuda/products.txt",
                 tutti__cuda_cache()) < (int)sizeof products->path)
        tutti__cuda_choices_read(&products->choices, products->path);
    tutti_status status = product_check(blas, blas->cublasLtCreate(&products->handle), "a handle");
    if (status == TUTTI_OK)
        status = TUTTI_CU(device, cuMemAlloc(&products->workspace, WORKSPACE));
    if (status == TUTTI_OK)
        *ret = products;
    else
        tutti__cuda_products_close(products);
    return status;
}

void tutti__cuda_products_close(tutti_cuda_products *products)
{
    if (!products)
        return;
    for (tutti_cuda_product_plan *plan = products->plans, *next; plan; plan = next) {
        next = plan->next;
        free_plan(plan);
    }
    if (products->workspace)
        (void)products->device->cu->cuMemFree(products->workspace);
    if (products->handle)
        (void)products->blas->cublasLtDestroy(products->handle);
    tutti__cuda_choices_free(&products->choices);
    free(products);
}
