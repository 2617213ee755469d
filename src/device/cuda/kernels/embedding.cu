// embedding.cu: rows of a table by number, and the table's gradient without atomics: positions are
// sorted by id (sort.cu, stable), and each run of one id is added in the order of positions. Blocks
// take CHUNK positions each; runs that cross their bounds leave partials that a second kernel joins.
//
// Options: TYPE, WIDTH (a multiple of 16 bytes).
#include "common.cuh"

enum { N = PER16(T), VECTORS = WIDTH / N, CHUNK = 32, THREADS = VECTORS < 256 ? (VECTORS + 31) / 32 * 32 : 256 };

// y[i] = table[ids[i]], plus extra[i % period] where there is one (positions). An id that is outside
// of the table gives zeros.
extern "C" __global__ void __launch_bounds__(256)
embedding(const T *table, const i32 *ids, i64 count, i32 size, const T *extra, i64 period, T *y)
{
    const i64 stride = (i64)gridDim.x * 256;
    for (i64 at = (i64)blockIdx.x * 256 + threadIdx.x; at < count * VECTORS; at += stride) {
        const i64 i = at / VECTORS;
        const int c = (int)(at % VECTORS), id = ids[i];
        vec<T, N> v, more;
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = from_float<T>(0.0f);
        if (id >= 0 && id < size)
            v = ((const vec<T, N> *)(table + (i64)id * WIDTH))[c];
        if (extra) {
            more = ((const vec<T, N> *)(extra + i % period * WIDTH))[c];
#pragma unroll
            for (int k = 0; k < N; k++)
                v.at[k] = from_float<T>(to_float(v.at[k]) + to_float(more.at[k]));
        }
        ((vec<T, N> *)(y + i * WIDTH))[c] = v;
    }
}

__device__ __forceinline__ void put(T *to, int c, const float *sum)
{
    vec<T, N> v;
#pragma unroll
    for (int k = 0; k < N; k++)
        v.at[k] = from_float<T>(sum[k]);
    ((vec<T, N> *)to)[c] = v;
}

// ids and positions are sorted by id. A run that begins before the chunk or goes on behind it leaves
// its sum in edge[chunk][0] (its head) or edge[chunk][1] (its tail; a run through all of it: head).
extern "C" __global__ void __launch_bounds__(256)
embedding_gradient(const T *dy, const i32 *ids, const i32 *positions, i64 count, i32 size,
                   T *gradient, float *edge)
{
    const i64 begin = (i64)blockIdx.x * CHUNK, end = begin + CHUNK < count ? begin + CHUNK : count;
    for (int c = threadIdx.x; c < VECTORS; c += blockDim.x) {
        float sum[N] = {};
        i64 start = begin;
#pragma unroll 4
        for (i64 i = begin; i < end; i++) {
            const vec<T, N> v = ((const vec<T, N> *)(dy + (i64)positions[i] * WIDTH))[c];
            const i32 id = ids[i];
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] += to_float(v.at[k]);
            const bool last = i + 1 == count || ids[i + 1] != id;
            if (!last && i + 1 < end)
                continue;
            const bool before = start == begin && begin > 0 && ids[begin - 1] == id;
            if (before || !last) {
                float *to = edge + (((i64)blockIdx.x * 2 + !before) * WIDTH + c * N);
#pragma unroll
                for (int k = 0; k < N; k++)
                    to[k] = sum[k];
            } else if (id >= 0 && id < size) {
                put(gradient + (i64)id * WIDTH, c, sum);
            }
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] = 0.0f;
            start = i + 1;
        }
    }
}

// A block for each chunk in which a run begins that crosses its end: adds its tail and the heads of
// the chunks that follow.
extern "C" __global__ void __launch_bounds__(256)
embedding_edges(const i32 *ids, i64 count, i32 size, const float *edge, T *gradient)
{
    const i64 chunk = blockIdx.x, end = (chunk + 1) * CHUNK;
    if (end >= count || ids[end] != ids[end - 1])
        return;
    const i32 id = ids[end - 1];
    const i64 begin = chunk * CHUNK;
    if (begin > 0 && ids[begin] == id && ids[begin - 1] == id)
        return; // it began earlier
    i64 low = chunk + 1, high = (count - 1) / CHUNK + 1; // the chunks that begin with the id
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (ids[middle * CHUNK] == id)
            low = middle + 1;
        else
            high = middle;
    }
    for (int c = threadIdx.x; c < VECTORS; c += blockDim.x) {
        float sum[N];
        const vec<float, N> tail = *(const vec<float, N> *)(edge + (chunk * 2 + 1) * WIDTH + c * N);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] = tail.at[k];
#pragma unroll 8
        for (i64 next = chunk + 1; next < low; next++) {
            const vec<float, N> head = *(const vec<float, N> *)(edge + next * 2 * WIDTH + c * N);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] += head.at[k];
        }
        if (id >= 0 && id < size)
            put(gradient + (i64)id * WIDTH, c, sum);
    }
}
