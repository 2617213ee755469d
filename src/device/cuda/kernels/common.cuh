// common.cuh: what every kernel begins with. Nothing is included: types, conversions, 16-byte
// vectors and reductions are here, what C++ lacks is PTX.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float to_float(f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

// Rounds to the nearest, ties to even.
template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x)
{
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
template <> __device__ __forceinline__ f16 from_float<f16>(float x)
{
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

// N elements that are loaded and stored at once, by 16 bytes where they are that many.
template <class T, int N> struct __align__(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) vec {
    T at[N];
};
#define PER16(T) (16 / (int)sizeof(T))

enum { WARP = 32 };
#define INFINITY __int_as_float(0x7f800000)
#ifdef TYPE // of a kernel's elements, unless its words say otherwise
typedef TYPE T;
#endif

__device__ __forceinline__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}
__device__ __forceinline__ float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

// Over a group of GROUP threads, a multiple of 32, that is a whole block or, for 32, a warp; all
// get the result. `shared` is [32] floats of the block. The order is fixed.
template <int GROUP> __device__ __forceinline__ float group_sum(float x, float *shared)
{
    x = warp_sum(x);
    if (GROUP == WARP)
        return x;
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    x = threadIdx.x % WARP < GROUP / WARP ? shared[threadIdx.x % WARP] : 0.0f;
    return warp_sum(x);
}
template <int GROUP> __device__ __forceinline__ float group_max(float x, float *shared)
{
    x = warp_max(x);
    if (GROUP == WARP)
        return x;
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    x = threadIdx.x % WARP < GROUP / WARP ? shared[threadIdx.x % WARP] : -INFINITY;
    return warp_max(x);
}

// Philox 4x32-10, the same words as tutti__random_block on the CPU.
__device__ __forceinline__ uint4 philox(u64 seed, u64 stream, u64 index)
{
    u32 c0 = (u32)index, c1 = (u32)(index >> 32), c2 = (u32)stream, c3 = (u32)(stream >> 32);
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 h0 = __umulhi(0xd2511f53u, c0), l0 = 0xd2511f53u * c0;
        u32 h1 = __umulhi(0xcd9e8d57u, c2), l1 = 0xcd9e8d57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return make_uint4(c0, c1, c2, c3);
}
