// move.cu: transposition of the last two dimensions, and rows written by number.
//
// Options: TYPE of 1, 2, 4 or 8 bytes.
#include "common.cuh"

enum { SIDE = 32, LINES = 8 };

// y[b][j][i] = x[b][i][j]; a block moves a square of 32 x 32.
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

// The same for elements of 2 bytes where rows and columns are even: a block moves 64 x 64, two elements
// at once. Words a, b of two rows become those of two columns.
extern "C" __global__ void __launch_bounds__(SIDE *LINES)
transpose_pairs(const u32 *x, i64 rows, i64 columns, u32 *y)
{
    __shared__ u32 tile[2 * SIDE][SIDE + 1];
    const int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
    const i64 base = (i64)blockIdx.z * rows * (columns / 2);
    const i64 top = (i64)blockIdx.y * 2 * SIDE, left = (i64)blockIdx.x * SIDE; // left: in pairs
#pragma unroll
    for (int k = 0; k < 2 * SIDE; k += LINES)
        if (top + ty + k < rows && left + tx < columns / 2)
            tile[ty + k][tx] = x[base + (top + ty + k) * (columns / 2) + left + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += LINES) {
        const i64 column = 2 * (left + ty + k), row = top / 2 + tx; // row: in pairs
        const u32 a = tile[2 * tx][ty + k], b = tile[2 * tx + 1][ty + k];
        if (column < columns && row < rows / 2) {
            y[base + column * (rows / 2) + row] = __byte_perm(a, b, 0x5410);
            y[base + (column + 1) * (rows / 2) + row] = __byte_perm(a, b, 0x7632);
        }
    }
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
