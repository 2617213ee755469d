// lines.cu: work along one axis: running sums and products, products of all others, the largest of rows,
// determinants, products of matrices of any type, random orders.
//
// Options: TYPE. A line is `size` elements `inner` apart.
#include "common.cuh"

#define LINE_BASE(line) ((line) / inner * size * inner + (line) % inner)

// LANES 1: a thread for a line; 256: a block.
extern "C" __global__ void __launch_bounds__(256)
running(const T *x, i64 lines, i64 size, i64 inner, int product, int exclusive, int reverse, T *y)
{
    EACH_ELEMENT(line, lines)
    {
        const i64 base = LINE_BASE(line);
        C sum = product ? 1 : 0;
        for (i64 n = 0; n < size; n++) {
            const i64 at = base + (reverse ? size - 1 - n : n) * inner;
            const C before = sum, v = widen(x[at]);
            sum = product ? sum * v : sum + v;
            y[at] = narrow<T>(exclusive ? before : sum);
        }
    }
}
extern "C" __global__ void __launch_bounds__(256)
running_long(const T *x, i64 size, i64 inner, int product, int exclusive, int reverse, T *y)
{
    __shared__ C sums[8];
    const i64 base = LINE_BASE((i64)blockIdx.x);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    C carry = product ? 1 : 0;
    for (i64 begin = 0; begin < size; begin += 256) {
        const i64 n = begin + threadIdx.x, at = base + (reverse ? size - 1 - n : n) * inner;
        C v = n < size ? widen(x[at]) : (C)(product ? 1 : 0);
        for (int step = 1; step < 32; step *= 2) {
            const C other = __shfl_up_sync(0xffffffff, v, step);
            if (lane >= step)
                v = product ? v * other : v + other;
        }
        __syncthreads();
        if (lane == 31)
            sums[warp] = v;
        __syncthreads();
        C before = carry;
        for (int w = 0; w < warp; w++)
            before = product ? before * sums[w] : before + sums[w];
        for (int w = 0; w < 8; w++)
            carry = product ? carry * sums[w] : carry + sums[w];
        const C left = __shfl_up_sync(0xffffffff, v, 1);
        const C own = exclusive ? (lane > 0 ? left : (C)(product ? 1 : 0)) : v;
        if (n < size)
            y[at] = narrow<T>(product ? before * own : before + own);
    }
}

// y[i] = product of all x[j], j != i; scratch [lines][size] C.
extern "C" __global__ void __launch_bounds__(256)
products_except(const T *x, i64 lines, i64 size, i64 inner, C *scratch, T *y)
{
    EACH_ELEMENT(line, lines)
    {
        const i64 base = LINE_BASE(line);
        C before = 1, behind = 1;
        for (i64 n = 0; n < size; n++) {
            scratch[base + n * inner] = before;
            before *= widen(x[base + n * inner]);
        }
        for (i64 n = size - 1; n >= 0; n--) {
            y[base + n * inner] = narrow<T>(scratch[base + n * inner] * behind);
            behind *= widen(x[base + n * inner]);
        }
    }
}

struct found {
    C value;
    i64 at;
};
// Whether a comes before b: larger, or equal and earlier; what is no number before all.
__device__ __forceinline__ bool comes_first(found a, found b)
{
    if (a.at < 0 || b.at < 0)
        return b.at < 0 && a.at >= 0;
    const bool no_a = a.value != a.value, no_b = b.value != b.value;
    if (no_a != no_b)
        return no_a;
    return (!no_a && a.value > b.value) || ((no_a || a.value == b.value) && a.at < b.at);
}
// A block for a row: the best of those that come behind the last one, k times.
extern "C" __global__ void __launch_bounds__(256)
top_k(const T *x, i64 size, i64 k, T *y, i32 *places)
{
    __shared__ found parts[8];
    const T *row = x + (i64)blockIdx.x * size;
    found last = {0, -1};
    for (i64 j = 0; j < k; j++) {
        found best = {0, -1};
        for (i64 i = threadIdx.x; i < size; i += 256) {
            const found own = {widen(row[i]), i};
            if ((last.at < 0 || comes_first(last, own)) && comes_first(own, best))
                best = own;
        }
        for (int step = 16; step > 0; step /= 2) {
            const found other = {__shfl_xor_sync(0xffffffff, best.value, step),
                                 __shfl_xor_sync(0xffffffff, best.at, step)};
            if (comes_first(other, best))
                best = other;
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            parts[threadIdx.x / 32] = best;
        __syncthreads();
        last = parts[0];
        for (int w = 1; w < 8; w++)
            if (comes_first(parts[w], last))
                last = parts[w];
        if (threadIdx.x == 0) {
            y[(i64)blockIdx.x * k + j] = row[last.at];
            places[(i64)blockIdx.x * k + j] = (i32)last.at;
        }
    }
}

// y[.., i, j] = sum over k of a[.., i, k] b[.., k, j]; strides of the three axes of each, batch by shape.
struct strides {
    i64 row, column;
};
enum { TILE = 16 };
extern "C" __global__ void __launch_bounds__(TILE *TILE)
multiply(const T *a, const T *b, i64 m, i64 n, i64 k, const shape batch, const places at_a, const places at_b,
         const strides sa, const strides sb, T *y)
{
    __shared__ C left[TILE][TILE + 1], right[TILE][TILE + 1];
    const i64 across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    const i64 z = blockIdx.x / (across * down), square = blockIdx.x % (across * down);
    const int ty = threadIdx.x / TILE, tx = threadIdx.x % TILE;
    const i64 i = square / across * TILE + ty, j = square % across * TILE + tx;
    const T *from_a = a + place(batch, at_a, z), *from_b = b + place(batch, at_b, z);
    C sum = 0;
    for (i64 k0 = 0; k0 < k; k0 += TILE) {
        left[ty][tx] = i < m && k0 + tx < k ? widen(from_a[i * sa.row + (k0 + tx) * sa.column]) : (C)0;
        right[ty][tx] = j < n && k0 + ty < k ? widen(from_b[(k0 + ty) * sb.row + j * sb.column]) : (C)0;
        __syncthreads();
#pragma unroll
        for (int t = 0; t < TILE; t++)
            sum += left[ty][t] * right[t][tx];
        __syncthreads();
    }
    if (i < m && j < n)
        y[z * m * n + i * n + j] = narrow<T>(sum);
}

// Determinants by elimination with pivots; scratch [count][n][n] doubles; a thread for each.
extern "C" __global__ void __launch_bounds__(64) det(const T *x, i64 count, i64 n, double *scratch, T *y)
{
    EACH_ELEMENT(i, count)
    {
        double *a = scratch + i * n * n, all = 1;
        for (i64 e = 0; e < n * n; e++)
            a[e] = (double)widen(x[i * n * n + e]);
        for (i64 c = 0; c < n; c++) {
            i64 pivot = c;
            for (i64 r = c + 1; r < n; r++)
                if (fabs(a[r * n + c]) > fabs(a[pivot * n + c]))
                    pivot = r;
            if (pivot != c) {
                all = -all;
                for (i64 e = c; e < n; e++) {
                    const double t = a[c * n + e];
                    a[c * n + e] = a[pivot * n + e];
                    a[pivot * n + e] = t;
                }
            }
            all *= a[c * n + c];
            if (a[c * n + c] == 0)
                break;
            for (i64 r = c + 1; r < n; r++) {
                const double f = a[r * n + c] / a[c * n + c];
                for (i64 e = c; e < n; e++)
                    a[r * n + e] -= f * a[c * n + e];
            }
        }
        y[i] = narrow<T>(all);
    }
}
