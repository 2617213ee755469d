// draws.cu: random operators: numbers as the reference draws them (ops/random/draw.h): a function of
// (seed, counter, index in the whole tensor), in doubles, rounded once. The counter is on the device.
//
// Options: TYPE; COUNTER: its type; KIND: 0 uniform, 1 uniform integers, 2 normal, 3 truncated normal,
// 4 bernoulli, 5 dropout (TYPE of x); BITS of a 16-bit type: 8 or 11.
#include "common.cuh"

enum { UNIFORM, WHOLE, NORMAL, TRUNCATED, BERNOULLI, DROPOUT };

__device__ __forceinline__ u64 hash_mix(u64 seed, u64 word)
{
    u64 x = (seed ^ (word * 0x9e3779b97f4a7c15ull)) + 0x632be59bd9b4e019ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
__device__ __forceinline__ u32 word_of(uint4 w, int i) { return i == 0 ? w.x : i == 1 ? w.y : i == 2 ? w.z : w.w; }

// Where the output lies in the whole tensor; rank 0: it is the whole.
struct cut {
    i64 rank, dim[MOST_RANK], whole[MOST_RANK], start[MOST_RANK];
};
__device__ __forceinline__ u64 index_of(const cut &c, i64 i)
{
    u64 index = 0, size = 1;
    if (c.rank == 0)
        return (u64)i;
    for (int d = (int)c.rank - 1; d >= 0; d--) {
        index += (u64)(i % c.dim[d] + c.start[d]) * size;
        size *= (u64)c.whole[d];
        i /= c.dim[d];
    }
    return index;
}

__device__ __forceinline__ double normal_of(u32 a, u32 b, u64 index)
{
    const double radius = sqrt(-2.0 * log(((double)a + 1.0) * 0x1p-32));
    const double angle = 6.283185307179586476925 * ((double)b * 0x1p-32);
    return radius * (index % 2 == 0 ? cos(angle) : sin(angle));
}

// a, b: low and high, mean and deviation, p, rate.
__device__ __forceinline__ T draw(u64 seed, u64 stream, u64 index, uint4 block, double a, double b, T x)
{
    const u32 own = word_of(block, (int)(index % 4));
    switch (KIND) {
    case UNIFORM: {
        double unit;
        if (sizeof(T) == 8) {
            const uint4 w = philox(seed, stream, 2 * index / 4);
            const u64 high = word_of(w, (int)(2 * index % 4)), low = word_of(w, (int)(2 * index % 4) + 1);
            unit = (double)((high << 32 | low) >> 11) * 0x1p-53;
        } else {
            const int bits = sizeof(T) == 4 ? 24 : BITS;
            unit = (double)(own >> (32 - bits)) * (bits == 24 ? 0x1p-24 : bits == 8 ? 0x1p-8 : 0x1p-11);
        }
        const T y = narrow<T>(a + (b - a) * unit);
        return (double)widen(y) >= b ? narrow<T>(a) : y;
    }
    case WHOLE: { // a: first, b: how many
        const uint4 w = philox(seed, stream, index / 2);
        const u64 wide = index % 2 ? (u64)w.w << 32 | w.z : (u64)w.y << 32 | w.x;
        return narrow<T>((i64)a + (i64)__umul64hi(wide, (u64)b));
    }
    case NORMAL: {
        const int pair = (int)(index % 4 & 2);
        return narrow<T>(a + b * normal_of(word_of(block, pair), word_of(block, pair + 1), index));
    }
    case TRUNCATED: {
        double z = 0;
        for (u64 attempt = 0; attempt < 64; attempt++) {
            const uint4 w = philox(hash_mix(seed, attempt), stream, index / 4);
            const int pair = (int)(index % 4 & 2);
            z = normal_of(word_of(w, pair), word_of(w, pair + 1), index);
            if (fabs(z) <= 2)
                break;
            z = 0;
        }
        return narrow<T>(a + b * z);
    }
    case BERNOULLI:
        return narrow<T>((i64)((double)(own >> 8) * 0x1p-24 < a));
    default:
        return (double)(own >> 8) * 0x1p-24 >= a ? narrow<T>(widen(x) * (C)b) : T{};
    }
}

extern "C" __global__ void __launch_bounds__(256)
draws(u64 seed, const COUNTER *counter, i64 count, const cut where, double a, double b, const T *x, T *y)
{
    const u64 stream = (u64)(i64)*counter;
    const i64 whole = where.rank == 0 ? count / 4 * 4 : 0;
    for (i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 4; i < whole; i += (i64)gridDim.x * 1024) {
        vec<T, 4> in, out;
        if (KIND == DROPOUT)
            in = *(const vec<T, 4> *)(x + i);
        const uint4 block = philox(seed, stream, (u64)i / 4);
#pragma unroll
        for (int k = 0; k < 4; k++)
            out.at[k] = draw(seed, stream, (u64)(i + k), block, a, b, in.at[k]);
        *(vec<T, 4> *)(y + i) = out;
    }
    for (i64 i = whole + (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const u64 index = index_of(where, i);
        y[i] = draw(seed, stream, index, philox(seed, stream, index / 4), a, b, KIND == DROPOUT ? x[i] : T{});
    }
}
