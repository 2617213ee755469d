/* lab.c: the harness, see lab.h. */
#include "device/cuda/lab/lab.h"

#include <stdarg.h>

enum { TURNS = 21, WARM = 3 };

tutti_status lab_memory(lab_bench *lab, size_t bytes, tutti_cu_pointer *ret)
{
    if (lab->memory_count == 256)
        return tutti_fail(TUTTI_TOO_LARGE, "a check takes more than 256 pieces of memory");
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemAlloc(ret, bytes ? bytes : 1)));
    lab->memory[lab->memory_count++] = *ret;
    return TUTTI_CU(lab->on.device, cuMemsetD8Async(*ret, 0xff, bytes, lab->on.stream));
}

tutti_status lab_put(lab_bench *lab, const void *data, size_t bytes, tutti_cu_pointer *ret)
{
    TUTTI_TRY(lab_memory(lab, bytes, ret));
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemcpyHtoDAsync(*ret, data, bytes, lab->on.stream)));
    return TUTTI_CU(lab->on.device, cuStreamSynchronize(lab->on.stream));
}

tutti_status lab_get(lab_bench *lab, tutti_cu_pointer from, void *ret_data, size_t bytes)
{
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemcpyDtoHAsync(ret_data, from, bytes, lab->on.stream)));
    return TUTTI_CU(lab->on.device, cuStreamSynchronize(lab->on.stream));
}

static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

/* Ties to even, as rint does. */
static uint16_t f16_of(float x)
{
    int exponent;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    float size = fabsf(x);
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (uint16_t)rintf(size * 0x1p24f));
    float digits = rintf(frexpf(size, &exponent) * 2048); /* 1024 to 2048 */
    int bits = (exponent + 14) * 1024 + (int)digits - 1024;
    return (uint16_t)(sign | bits);
}

static float of_f16(uint16_t x)
{
    int exponent = x >> 10 & 31, digits = x & 1023;
    float size = exponent == 31  ? digits ? NAN : INFINITY
                 : exponent == 0 ? ldexpf((float)digits, -24)
                                 : ldexpf((float)(digits + 1024), exponent - 25);
    return x & 0x8000 ? -size : size;
}

static void write_as(tutti_cuda_type type, double value, char *to)
{
    float f = (float)value;
    uint16_t b = bf16_of(f);
    uint16_t h = f16_of(f);
    memcpy(to,
           type == TUTTI_CUDA_F32    ? (void *)&f
           : type == TUTTI_CUDA_BF16 ? (void *)&b
                                     : (void *)&h,
           (size_t)tutti__cuda_type_size(type));
}

static double read_as(tutti_cuda_type type, const char *from)
{
    float f;
    uint16_t b;
    if (type == TUTTI_CUDA_F32)
        return memcpy(&f, from, 4), (double)f;
    if (type == TUTTI_CUDA_BF16)
        return memcpy(&b, from, 2), (double)of_bf16(b);
    return memcpy(&b, from, 2), (double)of_f16(b);
}

double lab_round(tutti_cuda_type type, double value)
{
    char bytes[4];
    write_as(type, value, bytes);
    return read_as(type, bytes);
}

tutti_status lab_numbers(lab_bench *lab, tutti_cuda_type type, int64_t count, double low,
                         double high, double **ret_values, tutti_cu_pointer *ret)
{
    static uint64_t seed = 1;
    size_t size = (size_t)tutti__cuda_type_size(type);
    tutti_random_key key = {seed++, 0};
    char *bytes = malloc((size_t)count * size);
    double *values = malloc((size_t)count * sizeof *values);
    if (!bytes || !values)
        return free(bytes), free(values), tutti_fail(TUTTI_NO_MEMORY, "no memory");
    uint32_t words[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            tutti__random_block(key, (uint64_t)i / 4, words);
        write_as(type, low + (high - low) * (words[i % 4] * 0x1p-32), bytes + (size_t)i * size);
        values[i] = read_as(type, bytes + (size_t)i * size);
    }
    tutti_status status = lab_put(lab, bytes, (size_t)count * size, ret);
    free(bytes);
    *ret_values = values;
    return status;
}

tutti_status lab_read(lab_bench *lab, tutti_cuda_type type, tutti_cu_pointer from, int64_t count,
                      double **ret_values)
{
    size_t size = (size_t)tutti__cuda_type_size(type);
    char *bytes = malloc((size_t)count * size);
    double *values = malloc((size_t)count * sizeof *values);
    if (!bytes || !values)
        return free(bytes), free(values), tutti_fail(TUTTI_NO_MEMORY, "no memory");
    tutti_status status = lab_get(lab, from, bytes, (size_t)count * size);
    for (int64_t i = 0; i < count; i++)
        values[i] = read_as(type, bytes + (size_t)i * size);
    free(bytes);
    *ret_values = values;
    return status;
}

void lab_pass(lab_bench *lab, bool passed, const char *what, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%s %-22s %-26s %s\n", passed ? "PASS" : "FAIL", lab->check, what, text);
    fflush(stdout);
    if (passed)
        lab->passed++;
    else
        lab->failed++;
}

void lab_compare(lab_bench *lab, const char *what, const double *a, const double *b, int64_t count,
                 double limit)
{
    double difference = 0, norm = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = a[i] - b[i];
        difference += d * d;
        norm += b[i] * b[i];
        if (fabs(d) > worst)
            worst = fabs(d);
    }
    double error = sqrt(difference) / (norm > 0 ? sqrt(norm) : 1);
    lab_pass(lab, error <= limit, what, "error %.2e (limit %.0e), largest %.2e", error, limit,
             worst);
}

void lab_same(lab_bench *lab, const char *what, tutti_cu_pointer a, const void *before,
              size_t bytes)
{
    char *now = malloc(bytes);
    bool same = now && lab_get(lab, a, now, bytes) == TUTTI_OK && memcmp(now, before, bytes) == 0;
    free(now);
    lab_pass(lab, same, what, "%s", same ? "equal bits again" : "other bits than before");
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

tutti_status lab_microseconds(lab_bench *lab, lab_call *call, void *context, double *ret)
{
    tutti_cuda_device *device = lab->on.device;
    tutti_cu_event begin, end;
    float times[TURNS];
    int copies = 1;
    TUTTI_TRY(TUTTI_CU(device, cuEventCreate(&begin, 0)));
    TUTTI_TRY(TUTTI_CU(device, cuEventCreate(&end, 0)));
    for (int turn = -WARM; turn < TURNS; turn++) {
        TUTTI_TRY(TUTTI_CU(device, cuEventRecord(begin, lab->on.stream)));
        for (int i = 0; i < copies; i++)
            TUTTI_TRY(call(lab, context));
        TUTTI_TRY(TUTTI_CU(device, cuEventRecord(end, lab->on.stream)));
        TUTTI_TRY(TUTTI_CU(device, cuEventSynchronize(end)));
        float milliseconds;
        TUTTI_TRY(TUTTI_CU(device, cuEventElapsedTime(&milliseconds, begin, end)));
        times[turn < 0 ? 0 : turn] = milliseconds * 1000 / (float)copies;
        if (turn == -1 && milliseconds < 1)
            copies = milliseconds < 0.02f ? 100 : (int)(2 / milliseconds) + 1;
    }
    (void)device->cu->cuEventDestroy(begin);
    (void)device->cu->cuEventDestroy(end);
    qsort(times, TURNS, sizeof *times, by_size);
    *ret = (double)times[TURNS / 2];
    return TUTTI_OK;
}

tutti_status lab_time(lab_bench *lab, const char *what, lab_call *call, void *context, double bytes,
                      double flops)
{
    double us;
    TUTTI_TRY(lab_microseconds(lab, call, context, &us));
    printf("time %-22s %-26s %9.1f us", lab->check, what, us);
    if (bytes > 0)
        printf("  %6.0f GB/s", bytes / us / 1e3);
    if (bytes > 0 && lab->copy_bandwidth > 0)
        printf(" = %.2f of a copy", bytes / us * 1e6 / lab->copy_bandwidth);
    if (flops > 0)
        printf("  %6.1f TFLOP/s", flops / us / 1e6);
    printf("\n");
    fflush(stdout);
    return TUTTI_OK;
}
