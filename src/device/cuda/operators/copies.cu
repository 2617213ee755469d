// copies.cu: elements moved between two strided tensors, whatever they are.
//
// Options: TYPE of 1, 2, 4, 8 or 16 bytes; for transposed, VX and VY: elements that are loaded and
// stored at once.
#ifdef WIDE // 16 bytes
struct __attribute__((aligned(16))) sixteen {
    unsigned long long half[2];
};
#endif
#include "common.cuh"

// y[at(i)] = x[from(i)]
extern "C" __global__ void __launch_bounds__(256)
copies(const T *x, T *y, i64 count, const shape s, const places from, const places to)
{
    EACH_ELEMENT(i, count)
        y[place(s, to, i)] = x[place(s, from, i)];
}

// The same along at most four axes and of less than 2^31 elements. Divisions are products: n / d is
// ((n * factor >> 32) + n) >> shift.
struct quick {
    u32 dim[4], factor[4], shift[4];
    i64 from[4], to[4];
};
enum { EACH = 4 };
extern "C" __global__ void __launch_bounds__(256) copies_quick(const T *x, T *y, u32 count, const quick q)
{
    T v[EACH];
    i64 to[EACH];
    const u32 first = blockIdx.x * (256 * EACH) + threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        u32 rest = first + e * 256;
        i64 from = 0;
        to[e] = -1;
        if (rest >= count)
            continue;
        to[e] = 0;
#pragma unroll
        for (int d = 3; d >= 0; d--) {
            const u32 above = d == 0 ? 0 : ((u32)((u64)rest * q.factor[d] >> 32) + rest) >> q.shift[d];
            const u32 at = rest - above * q.dim[d];
            from += at * q.from[d];
            to[e] += at * q.to[d];
            rest = above;
        }
        v[e] = x[from];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (to[e] >= 0)
            y[to[e]] = v[e];
}

// The same where one of the two is dense.
extern "C" __global__ void __launch_bounds__(256)
copies_from(const T *x, T *y, i64 count, const shape s, const places from)
{
    EACH_ELEMENT(i, count)
        y[i] = x[place(s, from, i)];
}
extern "C" __global__ void __launch_bounds__(256)
copies_to(const T *x, T *y, i64 count, const shape s, const places to)
{
    EACH_ELEMENT(i, count)
        y[place(s, to, i)] = x[i];
}

extern "C" __global__ void __launch_bounds__(256) fill(T *y, T value, i64 count)
{
    EACH_ELEMENT(i, count)
        y[i] = value;
}

#ifdef VX
// y[b + i + j * pitch_y] = x[b' + i * pitch_x + j], i < rows, j < columns; b and b' from the other
// dimensions. A block moves a square of SIDE x SIDE by vectors on both sides.
enum { SIDE = sizeof(T) == 8 ? 32 : 64, THREADS = 256, PITCH = SIDE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1) };
extern "C" __global__ void __launch_bounds__(THREADS)
transposed(const T *x, T *y, i64 rows, i64 columns, i64 pitch_x, i64 pitch_y, i64 down, i64 across,
           const shape s, const places from, const places to)
{
    __shared__ T tile[SIDE][PITCH];
    const i64 square = blockIdx.x % (down * across), batch = blockIdx.x / (down * across);
    const i64 top = square / across * SIDE, left = square % across * SIDE;
    const T *in = x + place(s, from, batch);
    T *out = y + place(s, to, batch);
#pragma unroll
    for (int k = 0; k < SIDE * SIDE / VX / THREADS; k++) {
        const int at = k * THREADS + threadIdx.x, i = at / (SIDE / VX), j = at % (SIDE / VX) * VX;
        vec<T, VX> v;
        if (top + i < rows && left + j < columns) {
            v = *(const vec<T, VX> *)(in + (top + i) * pitch_x + left + j);
#pragma unroll
            for (int e = 0; e < VX; e++)
                tile[i][j + e] = v.at[e];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE * SIDE / VY / THREADS; k++) {
        const int at = k * THREADS + threadIdx.x, j = at / (SIDE / VY), i = at % (SIDE / VY) * VY;
        if (top + i < rows && left + j < columns) {
            vec<T, VY> v;
#pragma unroll
            for (int e = 0; e < VY; e++)
                v.at[e] = tile[i + e][j];
            *(vec<T, VY> *)(out + (left + j) * pitch_y + top + i) = v;
        }
    }
}
#endif
