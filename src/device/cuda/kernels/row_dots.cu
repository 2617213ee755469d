// row_dots.cu: products of rows of two tensors with each other, as the gradient of attention needs
// them: sums[b][h][r] = sum over d of x[b][h][r][d] * y[b][h][r][d], both with the same strides.
//
// Options: TYPE, SIZE of a row (a multiple of 16 bytes), LANES of a row: a power of two, at most 32.
#include "common.cuh"

enum { N = PER16(T), VECTORS = SIZE / N, THREADS = 256 };

extern "C" __global__ void __launch_bounds__(THREADS)
row_dots(const T *x, const T *y, i64 batch, i64 heads, i64 rows, i64 batch_stride, i64 head_stride,
         i64 row_stride, float *sums)
{
    // Rows of different heads lie beside each other in memory: heads change first.
    const i64 at = ((i64)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    const bool there = at < batch * heads * rows;
    const i64 h = at % heads, r = at / heads % rows, b = at / heads / rows;
    const i64 from = b * batch_stride + h * head_stride + r * row_stride;
    float sum = 0.0f;
    for (int i = lane; there && i < VECTORS; i += LANES) {
        const vec<T, N> a = ((const vec<T, N> *)(x + from))[i], c = ((const vec<T, N> *)(y + from))[i];
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += to_float(a.at[k]) * to_float(c.at[k]);
    }
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (there && lane == 0)
        sums[(b * heads + h) * rows + r] = sum;
}
