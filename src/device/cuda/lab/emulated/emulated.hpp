// emulated.hpp: CUDA C++ on a CPU, as far as the kernels here use it, for tests without a GPU: a
// block's threads are fibres, one after the other to the next barrier or exchange of a warp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__
#define __restrict__

struct emulated_dim {
    unsigned x, y, z;
};
static emulated_dim threadIdx, blockIdx, blockDim, gridDim;
struct uint4 {
    unsigned x, y, z, w;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emulated
{
enum { STACK = 256 << 10, MOST = 1024 };
struct fibre {
    ucontext_t context;
    bool done;
};
static fibre fibres[MOST];
static char *stacks;
static ucontext_t scheduler;
static int current, threads, block_live, block_waiting, block_turn;
static int warp_live[MOST / 32], warp_waiting[MOST / 32], warp_turn[MOST / 32];
static unsigned char values[MOST][32];
static void (*body)(void **);
static void **arguments;

static void yield() { swapcontext(&fibres[current].context, &scheduler); }
static void meet(int &waiting, int &turn, int &live)
{
    const int mine = turn;
    if (++waiting >= live) {
        waiting = 0;
        turn++;
        return;
    }
    while (turn == mine)
        yield();
}
static void leave(int &waiting, int &turn, int &live)
{
    live--;
    if (live > 0 && waiting >= live) {
        waiting = 0;
        turn++;
    }
}
static void start()
{
    body(arguments);
    const int w = current / 32;
    fibres[current].done = true;
    leave(warp_waiting[w], warp_turn[w], warp_live[w]);
    leave(block_waiting, block_turn, block_live);
    yield();
}
static void run_block()
{
    block_live = threads;
    block_waiting = block_turn = 0;
    for (int w = 0; w * 32 < threads; w++) {
        warp_live[w] = std::min(32, threads - w * 32);
        warp_waiting[w] = warp_turn[w] = 0;
    }
    for (int t = 0; t < threads; t++) {
        getcontext(&fibres[t].context);
        fibres[t].done = false;
        fibres[t].context.uc_stack.ss_sp = stacks + (size_t)t * STACK;
        fibres[t].context.uc_stack.ss_size = STACK;
        fibres[t].context.uc_link = &scheduler;
        makecontext(&fibres[t].context, start, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (int t = 0; t < threads; t++)
            if (!fibres[t].done) {
                any = true;
                current = t;
                threadIdx = {(unsigned)t, 0, 0};
                swapcontext(&scheduler, &fibres[t].context);
            }
    }
}
static void run(void (*kernel)(void **), unsigned x, unsigned y, unsigned z, unsigned count, void **given)
{
    if (!stacks)
        stacks = (char *)malloc((size_t)MOST * STACK);
    body = kernel;
    arguments = given;
    threads = (int)count;
    blockDim = {count, 1, 1};
    gridDim = {x, y, z};
    for (unsigned k = 0; k < z; k++)
        for (unsigned j = 0; j < y; j++)
            for (unsigned i = 0; i < x; i++) {
                blockIdx = {i, j, k};
                run_block();
            }
}
template <class... A, size_t... I> void call(void (*f)(A...), void **p, std::index_sequence<I...>)
{
    f(*(typename std::remove_cv<A>::type *)p[I]...);
}
template <class... A> void call(void (*f)(A...), void **p)
{
    call(f, p, std::index_sequence_for<A...>());
}
// How many bytes each argument takes.
template <class... A> int sizes(void (*)(A...), unsigned *ret)
{
    const unsigned all[] = {(unsigned)sizeof(A)..., 0};
    std::copy(all, all + sizeof...(A), ret);
    return (int)sizeof...(A);
}
// The value of lane `from` of the caller's warp.
template <class T> T exchange(T x, int from)
{
    const int w = current / 32, self = current;
    memcpy(values[self], &x, sizeof x);
    meet(warp_waiting[w], warp_turn[w], warp_live[w]);
    T y;
    memcpy(&y, values[from >= 0 && from < 32 && w * 32 + from < threads ? w * 32 + from : self], sizeof y);
    meet(warp_waiting[w], warp_turn[w], warp_live[w]);
    return y;
}
} // namespace emulated

static inline void __syncthreads()
{
    emulated::meet(emulated::block_waiting, emulated::block_turn, emulated::block_live);
}
static inline void __syncwarp(unsigned = ~0u)
{
    const int w = emulated::current / 32;
    emulated::meet(emulated::warp_waiting[w], emulated::warp_turn[w], emulated::warp_live[w]);
}
static inline int emulated_lane() { return emulated::current % 32; }
template <class T> T __shfl_xor_sync(unsigned, T x, int step) { return emulated::exchange(x, emulated_lane() ^ step); }
template <class T> T __shfl_sync(unsigned, T x, int from) { return emulated::exchange(x, from); }
template <class T> T __shfl_up_sync(unsigned, T x, int step)
{
    return emulated::exchange(x, emulated_lane() - step < 0 ? emulated_lane() : emulated_lane() - step);
}
template <class T> T __shfl_down_sync(unsigned, T x, int step)
{
    return emulated::exchange(x, emulated_lane() + step > 31 ? emulated_lane() : emulated_lane() + step);
}
static inline unsigned __ballot_sync(unsigned, bool x)
{
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
        all |= (unsigned)emulated::exchange((int)x, i) << i;
    return all;
}
static inline unsigned __match_any_sync(unsigned, unsigned x)
{
    unsigned alike = 0;
    for (int i = 0; i < 32; i++)
        alike |= (unsigned)(emulated::exchange(x, i) == x) << i;
    return alike;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <class A, class B> A atomicAdd(A *at, B x)
{
    A old = *at;
    *at += x;
    return old;
}
template <class A, class B> A atomicMin(A *at, B x)
{
    A old = *at;
    if ((A)x < old)
        *at = (A)x;
    return old;
}
template <class T, class F> T emulated_bits(F x)
{
    T y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return emulated_bits<int>(x); }
static inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __double2float_rz(double x)
{
    float y = (float)x;
    return std::isfinite(x) && std::fabs((double)y) > std::fabs(x) ? std::nextafterf(y, 0) : y;
}
static inline float __ll2float_rz(long long x)
{
    float y = (float)x;
    long double a = std::fabs((long double)y), b = std::fabs((long double)x);
    return a > b ? std::nextafterf(y, 0) : y;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    unsigned long long all = (unsigned long long)b << 32 | a;
    unsigned y = 0;
    for (int i = 0; i < 4; i++)
        y |= (unsigned)(all >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return y;
}
static inline float emulated_from_half(unsigned short h)
{
    const int sign = h >> 15, exponent = h >> 10 & 31, fraction = h & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : HUGE_VALF)
                       : exponent     ? std::ldexp((float)(fraction | 1024), exponent - 25)
                                      : std::ldexp((float)fraction, -24);
    return sign ? -size : size;
}
static inline unsigned short emulated_to_half(float x)
{
    const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
    const float size = std::fabs(x);
    if (x != x)
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14f)
        return sign | (unsigned short)std::nearbyint(size * 0x1p24f);
    int exponent;
    std::frexp(size, &exponent);
    const int fraction = (int)std::nearbyint(std::ldexp(size, 11 - exponent)); // 1024 to 2048
    return sign | (unsigned short)(((exponent + 14) << 10) + (fraction - 1024));
}
static inline unsigned long long emulated_nanoseconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}
static inline unsigned short emulated_to_bf16(float x)
{
    const unsigned bits = __float_as_uint(x);
    return x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
using std::acos, std::asin, std::atan, std::ceil, std::copysign, std::cos, std::cosh, std::erf, std::erfc,
    std::exp, std::expm1, std::fabs, std::floor, std::fmax, std::fmin, std::fmod, std::frexp, std::isfinite,
    std::isinf, std::isnan, std::ldexp, std::log, std::log1p, std::max, std::min, std::nearbyint, std::pow,
    std::signbit, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
#undef INFINITY
