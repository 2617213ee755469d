// scatter.cu: rows added (or combined otherwise) at places that indices name, without atomics on
// numbers: the places are sorted (sort.cu, stable), and what goes to one place is combined in the
// order of the updates. Groups of threads take CHUNK updates each; a run of one place that crosses
// the bounds of its chunk leaves partial results, which scatter_edges joins.
//
// Options: TYPE; PER: elements of a thread, which divides a row; LANES: threads for a row, which divides
// 256; COMBINE: 0 add, 1 multiply, 2 largest, 3 smallest, 4 the last one; STORE: see put. Or INDEX:
// i32 or i64, for the keys.
#include "common.cuh"

#ifdef INDEX
// keys[i]: the row that update i goes to; `rows` (which sorts last) for a bad index. s, p: sizes
// of the indexed axes and what a step along each is worth in rows.
__device__ __forceinline__ i64 checked(i64 at, i64 size, i64 i, int negative, u64 *fault, bool *bad)
{
    if (negative && at < 0)
        at += size;
    if (at >= 0 && at < size)
        return at;
    fail_at(fault, i);
    *bad = true;
    return 0;
}

// Rows of an axis behind `outer` others: update (o, j) goes to o * size + indices[j].
extern "C" __global__ void __launch_bounds__(256)
keys_axis(const INDEX *indices, i64 number, i64 outer, i64 size, u32 rows, u32 *keys, u64 *fault)
{
    EACH_ELEMENT(i, outer * number)
    {
        bool bad = false;
        const i64 at = checked(indices[i % number], size, i % number, 0, fault, &bad);
        keys[i] = bad ? rows : (u32)(i / number * size + at);
    }
}

extern "C" __global__ void __launch_bounds__(256)
keys_nd(const INDEX *indices, i64 count, int columns, const shape s, const places p, u32 rows, u32 *keys,
        u64 *fault)
{
    EACH_ELEMENT(i, count)
    {
        bool bad = false;
        i64 at = 0;
        for (int c = 0; c < columns; c++)
            at += checked(indices[i * columns + c], s.dim[c], i * columns + c, 0, fault, &bad) * p.stride[c];
        keys[i] = bad ? rows : (u32)at;
    }
}

extern "C" __global__ void __launch_bounds__(256)
keys_along(const INDEX *indices, i64 count, const shape s, const places p, i64 size, i64 stride, int negative,
           u32 rows, u32 *keys, u64 *fault)
{
    EACH_ELEMENT(i, count)
    {
        bool bad = false;
        const i64 at = checked(indices[i], size, i, negative, fault, &bad);
        keys[i] = bad ? rows : (u32)(place(s, p, i) + at * stride);
    }
}
#else
enum { N = PER, CHUNK = 32, THREADS = 256, GROUPS = THREADS / LANES };

__device__ __forceinline__ C join(C a, C b)
{
    switch (COMBINE) {
    case 0:
        return a + b;
    case 1:
        return a * b;
    case 2:
        return a != a || a > b ? a : b;
    case 3:
        return a != a || a < b ? a : b;
    default:
        return b;
    }
}

// STORE 0: y[row] = sum; 1: y[row] joined with it; 2: y[row] - sum; 3: y[place of the first update].
__device__ __forceinline__ void put(T *y, i64 row, i64 first, i64 length, i64 c, const C *sum)
{
    vec<T, N> v, *to = (vec<T, N> *)(y + (STORE == 3 ? first : row) * length) + c;
    if (STORE == 1 || STORE == 2)
        v = *to;
#pragma unroll
    for (int k = 0; k < N; k++)
        v.at[k] = narrow<T>(STORE == 1   ? join(widen(v.at[k]), sum[k])
                            : STORE == 2 ? widen(v.at[k]) - sum[k]
                                         : sum[k]);
    *to = v;
}

// keys and positions are sorted by key. edge [chunks][2][length]: the head of a chunk, if its first
// run begins before it; its tail, if its last run begins in it and goes on behind it.
extern "C" __global__ void __launch_bounds__(THREADS)
scatter(const T *updates, const u32 *keys, const u32 *positions, i64 count, i64 length, u32 rows, T *y,
        C *edge)
{
    const i64 chunk = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
    const i64 begin = chunk * CHUNK, end = begin + CHUNK < count ? begin + CHUNK : count;
    for (i64 c = threadIdx.x % LANES; c < length / N; c += LANES) {
        C sum[N];
        i64 start = begin;
#pragma unroll 4
        for (i64 i = begin; i < end; i++) {
            const vec<T, N> v = ((const vec<T, N> *)(updates + (i64)positions[i] * length))[c];
            const u32 key = keys[i];
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] = i == start ? widen(v.at[k]) : join(sum[k], widen(v.at[k]));
            const bool last = i + 1 == count || keys[i + 1] != key;
            if (!last && i + 1 < end)
                continue;
            const bool before = start == begin && begin > 0 && keys[begin - 1] == key;
            if (before || !last) {
                C *to = edge + (chunk * 2 + !before) * length + c * N;
#pragma unroll
                for (int k = 0; k < N; k++)
                    to[k] = sum[k];
            } else if (key < rows) {
                put(y, key, positions[start], length, c, sum);
            }
            start = i + 1;
        }
    }
}

// A block for each chunk in which a run begins that crosses its end: joins its tail and the heads of
// the chunks that follow, PARTS shares of them beside each other.
extern "C" __global__ void __launch_bounds__(THREADS)
scatter_edges(const u32 *keys, const u32 *positions, i64 count, i64 length, u32 rows, const C *edge, T *y)
{
    __shared__ C shared[THREADS][N];
    const i64 chunk = blockIdx.x, end = (chunk + 1) * CHUNK;
    if (end >= count || keys[end] != keys[end - 1])
        return;
    const u32 key = keys[end - 1];
    i64 first = end - 1;
    while (first > chunk * CHUNK && keys[first - 1] == key)
        first--;
    if (key >= rows || (first == chunk * CHUNK && first > 0 && keys[first - 1] == key))
        return; // a bad index, or it began earlier
    i64 low = chunk + 1, high = (count - 1) / CHUNK + 1; // the chunks that begin with the key
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (keys[middle * CHUNK] == key)
            low = middle + 1;
        else
            high = middle;
    }
    const i64 heads = low - chunk - 1, share = (heads + GROUPS - 1) / GROUPS;
    const int part = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const i64 from = chunk + 1 + part * share, to = from + share < low ? from + share : low;
    for (i64 c0 = 0; c0 < length / N; c0 += LANES) {
        const i64 c = c0 + lane;
        C sum[N];
        if (c < length / N)
#pragma unroll 4
            for (i64 next = from; next < to; next++) {
                const C *head = edge + next * 2 * length + c * N;
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] = next == from ? head[k] : join(sum[k], head[k]);
            }
#pragma unroll
        for (int k = 0; k < N; k++)
            shared[threadIdx.x][k] = sum[k];
        __syncthreads();
        if (part == 0 && c < length / N) {
            const C *tail = edge + (chunk * 2 + 1) * length + c * N;
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] = tail[k];
            for (int p = 0; p < GROUPS && chunk + 1 + p * share < low; p++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] = join(sum[k], shared[p * LANES + lane][k]);
            put(y, key, positions[first], length, c, sum);
        }
        __syncthreads();
    }
}
#endif
