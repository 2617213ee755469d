// move.cu: transposition of the last two dimensions, and rows written by number.
//
// Options: TYPE of 1, 2, 4 or 8 bytes.
#include "common.cuh"

enum { SIDE = 32, LINES = 8 };

// y[b][j][i] = x[b][i][j]; a block moves a square of 32 x 32 (of 64 x 32 pairs for types of 2 bytes
// would be faster where both sizes are even).
extern "C" __global__ void __launch_bounds__(SIDE *LINES)
transpose(const T *x, i64 rows, i64 columns, T *y)
{
    __shared__ T tile[SIDE][SIDE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
    const int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
    const i64 base = (i64)blockIdx.z * rows * columns;
    const i64 top = (i64)blockIdx.y * SIDE, left = (i64)blockIdx.x * SIDE;
#pragma unroll
    for (int k = 0; k < SIDE; k += LINES)
        if (top + ty + k < rows && left + tx < columns)
            tile[ty + k][tx] = x[base + (top + ty + k) * columns + left + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += LINES)
        if (left + ty + k < columns && top + tx < rows)
            y[base + (left + ty + k) * rows + top + tx] = tile[tx][ty + k];
}

// y[ids[i]] = x[i], rows of `width`; ids are unique. One outside of [0, size) is left out.
extern "C" __global__ void __launch_bounds__(256)
scatter_rows(const T *x, const i32 *ids, i64 count, i64 width, i32 size, T *y)
{
    const i64 stride = (i64)gridDim.x * 256;
    for (i64 at = (i64)blockIdx.x * 256 + threadIdx.x; at < count * width; at += stride) {
        const i32 id = ids[at / width];
        if (id >= 0 && id < size)
            y[id * width + at % width] = x[at];
    }
}

extern "C" __global__ void __launch_bounds__(256)
gather_rows(const T *x, const i32 *ids, i64 count, i64 width, i32 size, T *y)
{
    const i64 stride = (i64)gridDim.x * 256;
    for (i64 at = (i64)blockIdx.x * 256 + threadIdx.x; at < count * width; at += stride) {
        const i32 id = ids[at / width];
        y[at] = id >= 0 && id < size ? x[id * width + at % width] : T{};
    }
}
