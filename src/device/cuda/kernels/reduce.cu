// reduce.cu: sums and maxima of rows (the last dimension) and of columns, accumulated in f32 in a
// fixed order. A whole tensor is one row, cut into pieces that are rows themselves.
//
// Options: TYPE, OUT, MAXIMUM (0: sum).
#include "common.cuh"

enum { N = PER16(T), THREADS = 256 };

__device__ __forceinline__ float join(float a, float b) { return MAXIMUM ? fmaxf(a, b) : a + b; }

// Row r is x[r * width .. (r + 1) * width), clipped to `total` elements; four loads are in flight.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_rows(const T *x, i64 width, i64 total, OUT *y)
{
    __shared__ float scratch[32];
    const i64 begin = (i64)blockIdx.x * width;
    const i64 count = begin + width < total ? width : total - begin;
    const i64 vectors = begin * sizeof(T) % 16 == 0 ? count / N : 0;
    const vec<T, N> *in = (const vec<T, N> *)(x + begin);
    float part[4];
    for (int u = 0; u < 4; u++)
        part[u] = MAXIMUM ? -INFINITY : 0.0f;
    for (i64 i = threadIdx.x; i < vectors; i += 4 * THREADS) {
        vec<T, N> v[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (i + u * THREADS < vectors)
                v[u] = in[i + u * THREADS];
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (i + u * THREADS < vectors)
#pragma unroll
                for (int k = 0; k < N; k++)
                    part[u] = join(part[u], to_float(v[u].at[k]));
    }
    for (i64 i = vectors * N + threadIdx.x; i < count; i += THREADS)
        part[0] = join(part[0], to_float(x[begin + i]));
    const float mine = join(join(part[0], part[1]), join(part[2], part[3]));
    const float all = MAXIMUM ? group_max<THREADS>(mine, scratch) : group_sum<THREADS>(mine, scratch);
    if (threadIdx.x == 0)
        y[blockIdx.x] = from_float<OUT>(all);
}

// Columns: block (c, p) adds rows [p * share, (p + 1) * share) of 32 * N columns. y [pieces][width].
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_columns(const T *x, i64 rows, i64 width, i64 share, OUT *y)
{
    __shared__ float tile[THREADS / 32][32 * N];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    const i64 column = ((i64)blockIdx.x * 32 + lane) * N;
    const i64 begin = (i64)blockIdx.y * share, end = begin + share < rows ? begin + share : rows;
    float part[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        part[k] = MAXIMUM ? -INFINITY : 0.0f;
    if (width % N == 0 && column < width) {
#pragma unroll 4
        for (i64 r = begin + line; r < end; r += THREADS / 32) {
            vec<T, N> v = *(const vec<T, N> *)(x + r * width + column);
#pragma unroll
            for (int k = 0; k < N; k++)
                part[k] = join(part[k], to_float(v.at[k]));
        }
    } else if (column < width) {
        for (i64 r = begin + line; r < end; r += THREADS / 32)
            for (int k = 0; k < N && column + k < width; k++)
                part[k] = join(part[k], to_float(x[r * width + column + k]));
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        tile[line][lane * N + k] = part[k];
    __syncthreads();
    for (int c = threadIdx.x; c < 32 * N; c += THREADS) {
        float sum = tile[0][c];
        for (int l = 1; l < THREADS / 32; l++)
            sum = join(sum, tile[l][c]);
        const i64 j = (i64)blockIdx.x * 32 * N + c;
        if (j < width)
            y[(i64)blockIdx.y * width + j] = from_float<OUT>(sum);
    }
}
