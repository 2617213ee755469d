// random.cu: random numbers equal to the CPU's (base/random.h): number i is word i % 4 of block
// i / 4. Options: TYPE. A thread makes one block. `first` is a multiple of 4.
#include "common.cuh"

__device__ __forceinline__ void put(T *y, i64 i, i64 count, vec<T, 4> drawn)
{
    if (i + 4 <= count)
        *(vec<T, 4> *)(y + i) = drawn;
    else
        for (int k = 0; i + k < count; k++)
            y[i + k] = drawn.at[k];
}

extern "C" __global__ void __launch_bounds__(256)
random_uniform(u64 seed, u64 stream, u64 first, i64 count, float low, float scale, T *y)
{
    const i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= count)
        return;
    const uint4 w = philox(seed, stream, (first + i) / 4);
    const u32 words[4] = {w.x, w.y, w.z, w.w};
    vec<T, 4> drawn;
#pragma unroll
    for (int k = 0; k < 4; k++)
        drawn.at[k] =
            from_float<T>(__fadd_rn(low, __fmul_rn(scale, (float)(words[k] >> 8) * 0x1p-24f)));
    put(y, i, count, drawn);
}

extern "C" __global__ void __launch_bounds__(256)
random_normal(u64 seed, u64 stream, u64 first, i64 count, float mean, float deviation, T *y)
{
    const i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= count)
        return;
    const uint4 w = philox(seed, stream, (first + i) / 4);
    const u32 words[4] = {w.x, w.y, w.z, w.w};
    vec<T, 4> drawn;
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
        const double radius = sqrt(-2.0 * log(((double)words[pair] + 1.0) * 0x1p-32));
        double s, c;
        sincos(6.283185307179586476925 * ((double)words[pair + 1] * 0x1p-32), &s, &c);
        drawn.at[pair] = from_float<T>((float)(mean + deviation * (radius * c)));
        drawn.at[pair + 1] = from_float<T>((float)(mean + deviation * (radius * s)));
    }
    put(y, i, count, drawn);
}
