// fold.cu: reductions over any axes, in an order that follows from the shapes. Element r of output o
// is x[place(kept, o) + place(along, r)]. LANES threads work on one output, on a piece of its
// elements; pieces are joined by a second launch, fold_pieces, in their order.
//
// Options: TYPE; OUT; FOLD: what is made, see below; LANES: 1 (neighbours are other outputs), 32 or
// 256 (neighbours are elements of one output).
#include "common.cuh"

enum { SUM, MEAN, PROD, LARGEST, SMALLEST, ANY, ALL, SQUARES, SIZES, LOG_SUM_EXP, VARIANCE, FIRST_LARGEST,
       FIRST_SMALLEST, NORM, FINITE };

template <class A> struct real {
    typedef A F;
};
template <> struct real<i64> {
    typedef double F;
};
typedef real<C>::F F; // of functions

struct state {
    C a, b;
    i64 n;
};

__device__ __forceinline__ state begin()
{
    switch (FOLD) {
    case PROD:
    case ALL:
    case FINITE:
        return {(C)1, (C)0, 0};
    case LOG_SUM_EXP:
    case LARGEST:
        return {(C)-INFINITY, (C)0, 0};
    case SMALLEST:
        return {(C)INFINITY, (C)0, 0};
    default:
        return {(C)0, (C)0, FOLD == FIRST_LARGEST || FOLD == FIRST_SMALLEST ? -1 : 0};
    }
}

// Whether x comes before y among the largest (smallest): what is no number comes first.
__device__ __forceinline__ bool beats(C x, C y)
{
    if (x != x || y != y)
        return y == y;
    return FOLD == FIRST_LARGEST ? x > y : x < y;
}
__device__ __forceinline__ C extreme(C a, C b)
{
    if (FOLD == LARGEST)
        return a != a || a > b || (a == b && !signbit((double)a)) ? a : b;
    return a != a || a < b || (a == b && signbit((double)a)) ? a : b;
}

__device__ __forceinline__ state join(state s, state t)
{
    switch (FOLD) {
    case PROD:
        return {s.a * t.a, 0, 0};
    case LARGEST:
    case SMALLEST:
        return s.n == 0 ? t : t.n == 0 ? s : state{extreme(s.a, t.a), 0, 1};
    case ANY:
        return {(C)(s.a != 0 || t.a != 0), 0, 0};
    case ALL:
    case FINITE:
        return {(C)(s.a != 0 && t.a != 0), 0, 0};
    case LOG_SUM_EXP: {
        const C top = s.a != s.a || s.a > t.a ? s.a : t.a;
        if (isinf((double)top) || top != top)
            return {top, (C)1, 0};
        return {top, s.b * (C)exp((F)(s.a - top)) + t.b * (C)exp((F)(t.a - top)), 0};
    }
    case VARIANCE: { // mean, sum of squares about it, count
        if (s.n == 0 || t.n == 0)
            return s.n == 0 ? t : s;
        const C apart = t.a - s.a, part = (C)t.n / (C)(s.n + t.n);
        return {s.a + apart * part, s.b + t.b + apart * apart * (C)s.n * part, s.n + t.n};
    }
    case FIRST_LARGEST:
    case FIRST_SMALLEST:
        if (s.n < 0 || t.n < 0)
            return s.n < 0 ? t : s;
        return beats(t.a, s.a) || (!beats(s.a, t.a) && t.n < s.n) ? t : s;
    default:
        return {s.a + t.a, 0, 0};
    }
}

__device__ __forceinline__ state of(C x, i64 r)
{
    switch (FOLD) {
    case LARGEST:
    case SMALLEST:
        return {x, 0, 1};
    case ANY:
    case ALL:
        return {(C)(x != 0), 0, 0};
    case FINITE:
        return {(C)(isfinite((double)x) ? 1 : 0), 0, 0};
    case SQUARES:
    case NORM:
        return {x * x, 0, 0};
    case SIZES:
        return {x < 0 ? -x : x, 0, 0};
    case LOG_SUM_EXP:
        return {x, (C)1, 0};
    case VARIANCE:
        return {x, 0, 1};
    case FIRST_LARGEST:
    case FIRST_SMALLEST:
        return {x, 0, r};
    default:
        return {x, 0, 0};
    }
}

__device__ __forceinline__ OUT finish(state s, i64 count)
{
    switch (FOLD) {
    case MEAN:
        return narrow<OUT>(s.a / (C)count);
    case NORM:
        return narrow<OUT>((C)sqrt((F)s.a));
    case LOG_SUM_EXP:
        return narrow<OUT>(isinf((double)s.a) || s.a != s.a ? s.a : s.a + (C)log((F)s.b));
    case VARIANCE:
        return narrow<OUT>(s.b / (C)count);
    case FIRST_LARGEST:
    case FIRST_SMALLEST:
        return narrow<OUT>(s.n);
    default:
        return narrow<OUT>(s.a);
    }
}

__device__ __forceinline__ state exchange(state s, int step)
{
    return {__shfl_down_sync(0xffffffff, s.a, step), __shfl_down_sync(0xffffffff, s.b, step),
            __shfl_down_sync(0xffffffff, s.n, step)};
}

// Of all threads of a group, in order; thread 0 of it has the result.
__device__ __forceinline__ state gather_group(state s)
{
    if (LANES == 1)
        return s;
    for (int step = LANES == 1 ? 0 : 16; step > 0; step /= 2)
        s = join(s, exchange(s, step));
    if (LANES == 32)
        return s;
    __shared__ state parts[8];
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < 8; w++)
            s = join(s, parts[w]);
    return s;
}

// partial [pieces][outputs] where there are pieces, else y.
extern "C" __global__ void __launch_bounds__(256)
fold(const T *x, i64 outputs, i64 count, i64 pieces, const shape kept, const places kept_at,
     const shape along, const places along_at, int dense, OUT *y, state *partial)
{
    const i64 group = ((i64)blockIdx.x * 256 + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    if (group >= outputs * pieces)
        return;
    const i64 piece = group / outputs, o = group - piece * outputs;
    const i64 share = (count + pieces - 1) / pieces, from = piece * share;
    const i64 to = from + share < count ? from + share : count;
    const T *base = x + place(kept, kept_at, o);
    state s[4] = {begin(), begin(), begin(), begin()};
    if (dense) { // one stride along the elements
        const i64 stride = along_at.stride[0];
        i64 r = from + lane;
        for (; r + 3 * LANES < to; r += 4 * LANES) {
            T v[4];
#pragma unroll
            for (int u = 0; u < 4; u++)
                v[u] = base[(r + u * LANES) * stride];
#pragma unroll
            for (int u = 0; u < 4; u++)
                s[u] = join(s[u], of(widen(v[u]), r + u * LANES));
        }
        for (; r < to; r += LANES)
            s[0] = join(s[0], of(widen(base[r * stride]), r));
    } else {
        for (i64 r = from + lane; r < to; r += LANES)
            s[0] = join(s[0], of(widen(base[place(along, along_at, r)]), r));
    }
    const state all = gather_group(join(join(s[0], s[1]), join(s[2], s[3])));
    if (lane == 0 && pieces == 1)
        y[o] = finish(all, count);
    else if (lane == 0)
        partial[group] = all;
}

#if FOLD == 11 || FOLD == 12
// Where the largest (smallest) of each dense row is; vectors of PER elements, a block for a row.
#ifndef PER
#define PER 1
#endif
extern "C" __global__ void __launch_bounds__(256) position_rows(const T *x, i64 width, OUT *y)
{
    const vec<T, PER> *row = (const vec<T, PER> *)(x + blockIdx.x * width);
    state s = begin();
    int at = -1;
#pragma unroll 2
    for (int i = threadIdx.x; i < width / PER; i += 256) {
        const vec<T, PER> v = row[i];
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const C c = widen(v.at[k]);
            if (at < 0 || beats(c, s.a)) {
                s.a = c;
                at = i * PER + k;
            }
        }
    }
    s.n = at;
    s = gather_group(s);
    if (threadIdx.x == 0)
        y[blockIdx.x] = finish(s, width);
}
#endif

extern "C" __global__ void __launch_bounds__(256)
fold_pieces(const state *partial, i64 outputs, i64 pieces, i64 count, OUT *y)
{
    const i64 o = ((i64)blockIdx.x * 256 + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    if (o >= outputs)
        return;
    state s = begin();
    for (i64 p = lane; p < pieces; p += LANES)
        s = join(s, partial[p * outputs + o]);
    s = gather_group(s);
    if (lane == 0)
        y[o] = finish(s, count);
}

// Several tensors at once, CHUNK elements for a block: partial[first + block].
enum { CHUNK = 16384, TENSORS = 96 };
struct tensors {
    const T *x[TENSORS];
    i64 count[TENSORS];
    u32 first[TENSORS]; // block of each
    int number;
};
extern "C" __global__ void __launch_bounds__(256) fold_many(const tensors all, state *partial)
{
    int low = 0, high = all.number - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (all.first[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const T *x = all.x[low];
    const i64 begin_at = (i64)(blockIdx.x - all.first[low]) * CHUNK;
    const i64 end = begin_at + CHUNK < all.count[low] ? begin_at + CHUNK : all.count[low];
    state s[4] = {begin(), begin(), begin(), begin()};
    i64 r = begin_at + threadIdx.x;
    for (; r + 3 * 256 < end; r += 4 * 256) {
        T v[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
            v[u] = x[r + u * 256];
#pragma unroll
        for (int u = 0; u < 4; u++)
            s[u] = join(s[u], of(widen(v[u]), r + u * 256));
    }
    for (; r < end; r += 256)
        s[0] = join(s[0], of(widen(x[r]), r));
    const state sum = gather_group(join(join(s[0], s[1]), join(s[2], s[3])));
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

// The first place of what is no number, or infinite; y is a copy of x.
extern "C" __global__ void __launch_bounds__(256) check_numerics(const T *x, i64 count, T *y, u64 *fault)
{
    EACH_ELEMENT(i, count)
    {
        const T v = x[i];
        if (!isfinite((double)widen(v)))
            fail_at(fault, i);
        y[i] = v;
    }
}
