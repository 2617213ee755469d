// common.cuh: what every kernel begins with. Nothing is included: types, conversions, 16-byte
// vectors and reductions are here, what C++ lacks is PTX.
typedef signed char i8;
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

// Numbers are computed in C: float, double for double, 64 bits for integers and bools.
template <class T> struct computed {
    typedef i64 C;
};
template <> struct computed<float> {
    typedef float C;
};
template <> struct computed<bf16> {
    typedef float C;
};
template <> struct computed<f16> {
    typedef float C;
};
template <> struct computed<double> {
    typedef double C;
};
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(bf16 x) { return to_float(x); }
__device__ __forceinline__ float widen(f16 x) { return to_float(x); }
__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ i64 widen(i64 x) { return x; }
__device__ __forceinline__ i64 widen(i32 x) { return x; }
__device__ __forceinline__ i64 widen(i8 x) { return x; }
__device__ __forceinline__ i64 widen(u8 x) { return x; }
__device__ __forceinline__ i64 widen(bool x) { return x; }

// Towards zero where it is not exact, and then odd: rounding that to fewer bits rounds once.
__device__ __forceinline__ float odd_float(double x)
{
    const float y = __double2float_rz(x);
    return (double)y == x || x != x || isinf(y) ? y : __uint_as_float(__float_as_uint(y) | 1);
}
__device__ __forceinline__ float odd_float(i64 x)
{
    const float y = __ll2float_rz(x);
    return (i64)y == x ? y : __uint_as_float(__float_as_uint(y) | 1);
}
__device__ __forceinline__ float odd_float(float x) { return x; }

// Whole numbers from floats: towards zero, out of range to the nearest, 0 of what is no number.
template <class F> __device__ __forceinline__ i64 whole(F x, i64 low, i64 high)
{
    return x != x ? 0 : x <= (F)low ? low : x >= (F)high ? high : (i64)x;
}
__device__ __forceinline__ i64 whole(i64 x, i64, i64) { return x; }

// narrow<T>(x): a computed number as an element, rounded once; integers modulo 2^bits.
template <class T> struct narrowing;
#define NARROWING(T_, text_)                                                                       \
    template <> struct narrowing<T_> {                                                             \
        template <class C> static __device__ __forceinline__ T_ of(C x) { return text_; }          \
    };
NARROWING(float, (float)x)
NARROWING(double, (double)x)
NARROWING(bf16, from_float<bf16>(odd_float(x)))
NARROWING(f16, from_float<f16>(odd_float(x)))
NARROWING(i8, (i8)whole(x, -128, 127))
NARROWING(u8, (u8)whole(x, 0, 255))
NARROWING(i32, (i32)whole(x, -2147483647 - 1, 2147483647))
NARROWING(i64, whole(x, -9223372036854775807ll - 1, 9223372036854775807ll))
NARROWING(bool, x != 0)
template <class T, class C> __device__ __forceinline__ T narrow(C x) { return narrowing<T>::of(x); }
// A computed number rounded to T's numbers.
template <class T, class C> __device__ __forceinline__ typename computed<T>::C settle(C x)
{
    return widen(narrow<T>(x));
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
typedef computed<T>::C C;
#endif

// Dimensions and strides in elements; what a launcher passes by value.
enum { MOST_RANK = 8 };
struct shape {
    i64 rank, dim[MOST_RANK];
};
struct places { // of an element in a tensor, by its index in a shape
    i64 stride[MOST_RANK];
};
__device__ __forceinline__ i64 place(const shape &s, const places &p, i64 index)
{
    i64 at = 0;
    if (index < 0x7fffffff) {
        u32 rest = (u32)index;
        for (int d = (int)s.rank - 1; d >= 0; d--) {
            const u32 size = (u32)s.dim[d], next = rest / size;
            at += (i64)(rest - next * size) * p.stride[d];
            rest = next;
        }
        return at;
    }
    for (int d = (int)s.rank - 1; d >= 0; d--) {
        const i64 next = index / s.dim[d];
        at += (index - next * s.dim[d]) * p.stride[d];
        index = next;
    }
    return at;
}

// a / b and a % b of numbers that are not negative: by 32 bits where that will do.
__device__ __forceinline__ i64 quotient(i64 a, i64 b)
{
    return (a | b) >> 31 ? a / b : (i64)((u32)a / (u32)b);
}
__device__ __forceinline__ i64 remainder_of(i64 a, i64 b)
{
    return (a | b) >> 31 ? a % b : (i64)((u32)a % (u32)b);
}

// A bad value at place `at` of what an operator is given: the first place stays. fault: or NULL.
__device__ __forceinline__ void fail_at(u64 *fault, i64 at)
{
    if (fault)
        atomicMin(fault, (u64)at);
}
// Elements of a thread of a grid of blocks of any size.
#define EACH_ELEMENT(i, count)                                                                     \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                          \
         i += (i64)gridDim.x * blockDim.x)

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
