// softmax.cu: softmax of rows, and its gradient dx = y * (dy - sum(dy * y)). A row is held in
// registers.
//
// Options: TYPE, WIDTH (a multiple of 16 bytes), THREADS of a row (32: a warp, 4 rows in a block).
#include "common.cuh"

enum {
    N = PER16(T),
    VECTORS = WIDTH / N,
    EACH = (VECTORS + THREADS - 1) / THREADS,
    ROWS = THREADS == 32 ? 4 : 1
};

extern "C" __global__ void __launch_bounds__(THREADS *ROWS) softmax(const T *x, T *y, i64 rows)
{
    __shared__ float scratch[32];
    const i64 r = (i64)blockIdx.x * ROWS + threadIdx.x / THREADS;
    const int t = threadIdx.x % THREADS;
    if (r >= rows)
        return;
    const vec<T, N> *in = (const vec<T, N> *)(x + r * WIDTH);
    float value[EACH][N], most = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        vec<T, N> v;
        if (t + e * THREADS < VECTORS)
            v = in[t + e * THREADS];
#pragma unroll
        for (int k = 0; k < N; k++) {
            value[e][k] = t + e * THREADS < VECTORS ? to_float(v.at[k]) : -INFINITY;
            most = fmaxf(most, value[e][k]);
        }
    }
    most = group_max<THREADS>(most, scratch);
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += value[e][k] = __expf(value[e][k] - most);
    const float inverse = 1.0f / group_sum<THREADS>(sum, scratch);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        vec<T, N> v;
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = from_float<T>(value[e][k] * inverse);
        if (t + e * THREADS < VECTORS)
            ((vec<T, N> *)(y + r * WIDTH))[t + e * THREADS] = v;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
softmax_gradient(const T *y, const T *dy, T *dx, i64 rows)
{
    __shared__ float scratch[32];
    const i64 r = (i64)blockIdx.x * ROWS + threadIdx.x / THREADS;
    const int t = threadIdx.x % THREADS;
    if (r >= rows)
        return;
    vec<T, N> out[EACH], upper[EACH];
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (t + e * THREADS < VECTORS) {
            out[e] = ((const vec<T, N> *)(y + r * WIDTH))[t + e * THREADS];
            upper[e] = ((const vec<T, N> *)(dy + r * WIDTH))[t + e * THREADS];
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += to_float(out[e].at[k]) * to_float(upper[e].at[k]);
        }
    sum = group_sum<THREADS>(sum, scratch);
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (t + e * THREADS < VECTORS) {
            vec<T, N> v;
#pragma unroll
            for (int k = 0; k < N; k++)
                v.at[k] = from_float<T>(to_float(out[e].at[k]) * (to_float(upper[e].at[k]) - sum));
            ((vec<T, N> *)(dx + r * WIDTH))[t + e * THREADS] = v;
        }
}
