// norm.cu: layer norm and rms norm of rows, with the residual before them, and their gradients.
//
//     s = x + residual (where there is one; s is written too)
//     y = (s - mean) * rstd * gamma + beta        rms norm: mean = 0, no beta
//
// Backward: dx, plus what came along the residual, and the weights' gradients, summed in a fixed
// order: each group of threads keeps the sums of its own rows (a share that depends on the shape
// alone) in registers, and norm_weights adds the groups' partials.
//
// Options: TYPE, WIDTH (a multiple of 16 bytes), THREADS of a row (32: a warp, 4 rows in a block), RMS.
#include "common.cuh"

enum {
    N = PER16(T),
    VECTORS = WIDTH / N,
    EACH = (VECTORS + THREADS - 1) / THREADS,
    ROWS = THREADS == 32 ? 4 : 1
};

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
norm_rows(const T *x, const T *residual, const T *gamma, const T *beta, float epsilon, i64 rows, T *sum,
     T *y, float *mean, float *rstd)
{
    __shared__ float scratch[32];
    const i64 r = (i64)blockIdx.x * ROWS + threadIdx.x / THREADS;
    const int t = threadIdx.x % THREADS;
    if (r >= rows)
        return;
    float value[EACH][N], total = 0.0f, square = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = t + e * THREADS;
        vec<T, N> a, b;
        if (i < VECTORS) {
            a = ((const vec<T, N> *)(x + r * WIDTH))[i];
            if (residual)
                b = ((const vec<T, N> *)(residual + r * WIDTH))[i];
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            value[e][k] = i < VECTORS ? to_float(a.at[k]) : 0.0f;
            if (residual && i < VECTORS) {
                a.at[k] = from_float<T>(value[e][k] + to_float(b.at[k]));
                value[e][k] = to_float(a.at[k]);
            }
            total += value[e][k];
        }
        if (residual && i < VECTORS)
            ((vec<T, N> *)(sum + r * WIDTH))[i] = a;
    }
    const float middle = RMS ? 0.0f : group_sum<THREADS>(total, scratch) / WIDTH;
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int k = 0; k < N; k++)
            if (t + e * THREADS < VECTORS)
                square += (value[e][k] - middle) * (value[e][k] - middle);
    const float inverse = rsqrtf(group_sum<THREADS>(square, scratch) / WIDTH + epsilon);
    if (t == 0) {
        if (!RMS)
            mean[r] = middle;
        rstd[r] = inverse;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = t + e * THREADS;
        if (i < VECTORS) {
            vec<T, N> g = ((const vec<T, N> *)gamma)[i], b, v;
            if (!RMS)
                b = ((const vec<T, N> *)beta)[i];
#pragma unroll
            for (int k = 0; k < N; k++)
                v.at[k] = from_float<T>((value[e][k] - middle) * inverse * to_float(g.at[k]) +
                                        (RMS ? 0.0f : to_float(b.at[k])));
            ((vec<T, N> *)(y + r * WIDTH))[i] = v;
        }
    }
}

// `s` is the normalised rows' input. Without rstd its moments are computed again. partial [groups][2][WIDTH], groups = gridDim.x * ROWS.
extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
norm_gradient(const T *s, const T *dy, const T *along, const T *gamma, const float *mean,
              const float *rstd, float epsilon, i64 rows, T *dx, float *partial)
{
    __shared__ float scratch[32];
    const int group = blockIdx.x * ROWS + threadIdx.x / THREADS, groups = gridDim.x * ROWS;
    const int t = threadIdx.x % THREADS;
    float dgamma[EACH][N] = {}, dbeta[EACH][N] = {};
    for (i64 r = group; r < rows; r += groups) {
        float hat[EACH][N], d[EACH][N], sum = 0.0f, dot = 0.0f;
        vec<T, N> more[EACH], in[EACH], back[EACH]; // asked for together
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (t + e * THREADS < VECTORS) {
                if (along)
                    more[e] = ((const vec<T, N> *)(along + r * WIDTH))[t + e * THREADS];
                in[e] = ((const vec<T, N> *)(s + r * WIDTH))[t + e * THREADS];
                back[e] = ((const vec<T, N> *)(dy + r * WIDTH))[t + e * THREADS];
            }
        float middle = 0.0f, inverse;
        if (rstd) {
            middle = RMS ? 0.0f : mean[r];
            inverse = rstd[r];
        } else {
            float total = 0.0f, square = 0.0f;
#pragma unroll
            for (int e = 0; e < EACH; e++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    total += t + e * THREADS < VECTORS ? to_float(in[e].at[k]) : 0.0f;
            middle = RMS ? 0.0f : group_sum<THREADS>(total, scratch) / WIDTH;
#pragma unroll
            for (int e = 0; e < EACH; e++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (t + e * THREADS < VECTORS)
                        square += (to_float(in[e].at[k]) - middle) * (to_float(in[e].at[k]) - middle);
            inverse = rsqrtf(group_sum<THREADS>(square, scratch) / WIDTH + epsilon);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int i = t + e * THREADS;
            if (i < VECTORS) {
                const vec<T, N> a = in[e], b = back[e];
                vec<T, N> g = ((const vec<T, N> *)gamma)[i];
#pragma unroll
                for (int k = 0; k < N; k++) {
                    hat[e][k] = (to_float(a.at[k]) - middle) * inverse;
                    dgamma[e][k] += to_float(b.at[k]) * hat[e][k];
                    dbeta[e][k] += to_float(b.at[k]);
                    d[e][k] = to_float(b.at[k]) * to_float(g.at[k]);
                    sum += d[e][k];
                    dot += d[e][k] * hat[e][k];
                }
            }
        }
        sum = RMS ? 0.0f : group_sum<THREADS>(sum, scratch) / WIDTH;
        dot = group_sum<THREADS>(dot, scratch) / WIDTH;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int i = t + e * THREADS;
            if (i < VECTORS) {
                vec<T, N> v;
#pragma unroll
                for (int k = 0; k < N; k++)
                    v.at[k] = from_float<T>((d[e][k] - sum - hat[e][k] * dot) * inverse +
                                            (along ? to_float(more[e].at[k]) : 0.0f));
                ((vec<T, N> *)(dx + r * WIDTH))[i] = v;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int k = 0; k < N; k++)
            if (t + e * THREADS < VECTORS) {
                const int j = (t + e * THREADS) * N + k;
                partial[((i64)group * 2) * WIDTH + j] = dgamma[e][k];
                partial[((i64)group * 2 + 1) * WIDTH + j] = dbeta[e][k];
            }
}

// 2 * WIDTH columns; a block of 32 x 32 threads adds 32 of them.
extern "C" __global__ void __launch_bounds__(1024)
norm_weights(const float *partial, int groups, T *dgamma, T *dbeta)
{
    __shared__ float tile[32][33];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, j = blockIdx.x * 32 + x;
    float sum = 0.0f;
    if (j < 2 * WIDTH)
        for (int g = y; g < groups; g += 32)
            sum += partial[(i64)g * 2 * WIDTH + j];
    tile[y][x] = sum;
    __syncthreads();
    sum = warp_sum(tile[x][y]);
    const int column = blockIdx.x * 32 + y;
    if (x == 0 && column < WIDTH)
        dgamma[column] = from_float<T>(sum);
    else if (x == 0 && column < 2 * WIDTH && !RMS)
        dbeta[column - WIDTH] = from_float<T>(sum);
}
