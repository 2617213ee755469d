/* peaks.c: see peaks.h. */
#include "device/cuda/peaks.h"

#include "device/cuda/compile/load.h"

enum { TURNS = 7, SIDE_BF16 = 8192, SIDE_F32 = 4096 };
#define COPY_BYTES ((size_t)1 << 30)

typedef struct measured {
    tutti_cuda_stream on;
    const tutti_cuda_product_plan *plan; /* NULL: a copy */
    tutti_cu_pointer a, b, d;
} measured;

static tutti_status once(const measured *m)
{
    if (!m->plan)
        return TUTTI_CU(m->on.device, cuMemcpyDtoDAsync(m->d, m->a, COPY_BYTES, m->on.stream));
    return tutti__cuda_product_run(m->plan, m->on.stream, m->a, m->b, m->d, 0, 0);
}

/* The least of some turns. */
static tutti_status time_it(const measured *m, tutti_cu_event *events, double *ret_seconds)
{
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        float milliseconds;
        TUTTI_TRY(TUTTI_CU(m->on.device, cuEventRecord(events[0], m->on.stream)));
        TUTTI_TRY(once(m));
        TUTTI_TRY(TUTTI_CU(m->on.device, cuEventRecord(events[1], m->on.stream)));
        TUTTI_TRY(TUTTI_CU(m->on.device, cuEventSynchronize(events[1])));
        TUTTI_TRY(TUTTI_CU(m->on.device, cuEventElapsedTime(&milliseconds, events[0], events[1])));
        if (best == 0 || (double)milliseconds * 1e-3 < best)
            best = (double)milliseconds * 1e-3;
    }
    *ret_seconds = best;
    return TUTTI_OK;
}

static tutti_status time_product(measured *m, tutti_cuda_products *products, tutti_cuda_type type,
                                 int64_t side, tutti_cu_event *events, double *ret_rate)
{
    tutti_cuda_product product = {.type = type, .out = type, .m = side, .n = side, .k = side};
    const tutti_random_key key = {1, 0};
    double seconds, n = (double)side;
    TUTTI_TRY(tutti__cuda_random_uniform(m->on, type, key, 0, side * side, -1, 2, m->a));
    TUTTI_TRY(tutti__cuda_random_uniform(m->on, type, key, 0, side * side, -1, 2, m->b));
    TUTTI_TRY(tutti__cuda_product_plan(products, m->on.stream, &product, true, &m->plan));
    TUTTI_TRY(time_it(m, events, &seconds));
    *ret_rate = 2 * n * n * n / seconds;
    return TUTTI_OK;
}

static tutti_status measure_all(measured *m, tutti_cuda_products *products, double ret[3])
{
    tutti_cu_event events[2];
    double seconds;
    TUTTI_TRY(TUTTI_CU(m->on.device, cuEventCreate(&events[0], 0)));
    tutti_status status = TUTTI_CU(m->on.device, cuEventCreate(&events[1], 0));
    if (status != TUTTI_OK) {
        (void)m->on.device->cu->cuEventDestroy(events[0]);
        return status;
    }
    status = time_it(m, events, &seconds);
    if (status == TUTTI_OK)
        ret[0] = 2 * (double)COPY_BYTES / seconds;
    if (status == TUTTI_OK && products)
        status = time_product(m, products, TUTTI_CUDA_F32, SIDE_F32, events, &ret[1]);
    if (status == TUTTI_OK && products)
        status = time_product(m, products, TUTTI_CUDA_BF16, SIDE_BF16, events, &ret[2]);
    (void)m->on.device->cu->cuEventDestroy(events[0]);
    (void)m->on.device->cu->cuEventDestroy(events[1]);
    return status;
}

tutti_status tutti__cuda_peaks(tutti_cuda_stream on, tutti_cuda_products *products, double ret[3])
{
    measured m = {.on = on};
    tutti_cu_pointer *all[] = {&m.a, &m.b, &m.d};
    tutti_status status = TUTTI_OK;
    ret[0] = ret[1] = ret[2] = 0;
    for (int i = 0; i < 3 && status == TUTTI_OK; i++)
        status = TUTTI_CU(on.device, cuMemAlloc(all[i], COPY_BYTES));
    if (status == TUTTI_OK)
        status = measure_all(&m, products, ret);
    for (int i = 0; i < 3; i++)
        if (*all[i])
            (void)on.device->cu->cuMemFree(*all[i]);
    return status;
}
