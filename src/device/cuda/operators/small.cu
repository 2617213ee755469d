// small.cu: operators of a few lines each.
//
// Options: TYPE; OTHER: a second type, where there is one.
#include "common.cuh"

// y[i] = numbers[i]
struct numbers {
    i64 at[MOST_RANK];
};
extern "C" __global__ void given_numbers(const numbers n, int count, T *y)
{
    if (threadIdx.x < count)
        y[threadIdx.x] = narrow<T>(n.at[threadIdx.x]);
}

// y[i] = f(y[i] + row[i % columns]), f the identity or relu.
extern "C" __global__ void __launch_bounds__(256) add_row(T *y, const T *row, i64 count, i64 columns, int relu)
{
    EACH_ELEMENT(i, count)
    {
        const C sum = widen(y[i]) + widen(row[remainder_of(i, columns)]);
        y[i] = narrow<T>(relu && sum <= 0 ? (C)0 : sum);
    }
}

// v += sign x; y = v
extern "C" __global__ void __launch_bounds__(256) assign_moved(T *v, const T *x, i64 count, int sign, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const C a = widen(v[i]), b = widen(x[i]);
        const T moved = narrow<T>(sign > 0 ? a + b : a - b);
        v[i] = moved;
        y[i] = moved;
    }
}

// The same of up to 32 variables: a block each.
struct moves {
    T *v[32];
    const T *x[32];
    T *y[32];
    i64 count[32];
    int sign[32];
};
extern "C" __global__ void __launch_bounds__(256) assign_moved_many(const moves m)
{
    const int n = blockIdx.x;
    for (i64 i = threadIdx.x; i < m.count[n]; i += 256) {
        const C a = widen(m.v[n][i]), b = widen(m.x[n][i]);
        const T moved = narrow<T>(m.sign[n] > 0 ? a + b : a - b);
        m.v[n][i] = moved;
        m.y[n][i] = moved;
    }
}

// v[o, start + i, r] = x[o, i, r], start moved to where x fits; y = v, or NULL. OTHER: of start.
#ifdef OTHER
extern "C" __global__ void __launch_bounds__(256)
assign_slice(T *v, const T *x, const OTHER *from, i64 outer, i64 dim, i64 count, i64 row, T *y)
{
    i64 start = (i64)*from;
    start = start > dim - count ? dim - count : start;
    start = start < 0 ? 0 : start;
    const i64 along = y ? dim : count;
    EACH_ELEMENT(i, outer * along * row)
    {
        const i64 o = quotient(i, along * row), rest = i - o * along * row, a = quotient(rest, row);
        const i64 at = y ? a : start + a, k = at - start, place = (o * dim + at) * row + (rest - a * row);
        const bool inside = k >= 0 && k < count;
        const T value = inside ? x[(o * count + k) * row + (rest - a * row)] : v[place];
        if (inside)
            v[place] = value;
        if (y)
            y[place] = value;
    }
}
#endif

// Where an element finds its scale and zero: see ops/quantized/quantized.h.
struct quantum {
    i64 size, inner, step, per_outer, per_axis;
};
__device__ __forceinline__ i64 quantum_at(const quantum &q, i64 i)
{
    const i64 inner = i % q.inner, along = i / q.inner % q.size, outer = i / q.inner / q.size;
    return outer * q.per_outer + along / q.step * q.per_axis + (q.per_outer > 0 ? inner : 0);
}

#ifdef OTHER
__device__ __forceinline__ int saturate(float value, int zero, int low, int high)
{
    const float moved = rintf(value) + (float)zero;
    return !(moved > (float)low) ? (moved != moved ? zero : low) : moved < (float)high ? (int)moved : high;
}
// x / scale in the scale's precision; TYPE: of x and scale, OTHER: i8 or u8.
extern "C" __global__ void __launch_bounds__(256)
quantize(const T *x, const T *scale, const OTHER *zero, i64 count, const quantum q, OTHER *y)
{
    EACH_ELEMENT(i, count)
    {
        const i64 k = quantum_at(q, i);
        const C by = widen(x[i]) / widen(scale[k]);
        const bool plain = (OTHER)-1 > (OTHER)0;
        y[i] = (OTHER)saturate((float)by, zero ? (int)zero[k] : 0, plain ? 0 : -128, plain ? 255 : 127);
    }
}
// TYPE: of scale and y, OTHER: of x and zero.
extern "C" __global__ void __launch_bounds__(256)
dequantize(const OTHER *x, const T *scale, const OTHER *zero, i64 count, const quantum q, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const i64 k = quantum_at(q, i), moved = (i64)x[i] - (zero ? (i64)zero[k] : 0);
        y[i] = narrow<T>((C)moved * widen(scale[k]));
    }
}

// The counter's own class of every row: logits [batch][classes], y [batch][n] of OTHER; numbers as the
// reference draws them (ops/random/random_categorical.c).
extern "C" __global__ void __launch_bounds__(128)
categorical(u64 seed, const i64 *counter, const T *logits, i64 batch, i64 classes, i64 n, i64 whole, i64 start,
            OTHER *y, u64 *fault)
{
    EACH_ELEMENT(i, batch * n)
    {
        const i64 row = i / n;
        const T *x = logits + row * classes;
        double top = -INFINITY, total = 0, sum = 0;
        bool bad = false;
        for (i64 c = 0; c < classes; c++) {
            const double v = (double)widen(x[c]);
            bad |= v != v || v == INFINITY;
            top = v > top ? v : top;
        }
        if (bad || top == -INFINITY)
            fail_at(fault, row);
        for (i64 c = 0; c < classes; c++)
            total += exp((double)widen(x[c]) - top);
        const u64 index = (u64)(start + row * whole + i % n);
        const uint4 w = philox(seed, (u64)*counter, index / 2);
        const u64 high = index % 2 ? w.z : w.x, low = index % 2 ? w.w : w.y;
        const double target = (double)((high << 32 | low) >> 11) * 0x1p-53 * total;
        i64 last = 0, found = -1;
        for (i64 c = 0; c < classes && found < 0; c++) {
            const double weight = exp((double)widen(x[c]) - top);
            sum += weight;
            if (weight > 0)
                last = c;
            if (sum > target)
                found = c;
        }
        y[i] = narrow<OTHER>(found < 0 ? last : found);
    }
}
#endif
