// windows.cu: convolutions of any type, stride, dilation and number of groups, element by element, where
// no library takes them; and pooling. Tap k of the window at output o reads i = o stride - before + k
// dilation. Two dimensions are three with a depth of one.
//
// Options: TYPE; PLACE: type of places. FORM: size, stride and dilation of the window are S0 to S2, T0 to T2 and
// D0 to D2, so that loops over it unroll.
#include "common.cuh"

struct windows {
    i64 in[3], out[3], size[3], stride[3], dilation[3], before[3];
    i64 batch, groups, cin, cout; // channels of one group
};

typedef PLACE I;
__device__ __forceinline__ I part(I a, I b)
{
    return sizeof(I) == 4 ? (I)((u32)a / (u32)b) : (I)quotient((i64)a, (i64)b);
}

#ifdef FORM
#define SIZE(w, d) ((d) == 0 ? (I)S0 : (d) == 1 ? (I)S1 : (I)S2)
#define STRIDE(w, d) ((d) == 0 ? (I)T0 : (d) == 1 ? (I)T1 : (I)T2)
#define DILATION(w, d) ((d) == 0 ? (I)D0 : (d) == 1 ? (I)D1 : (I)D2)
#else
#define SIZE(w, d) ((I)(w).size[d])
#define STRIDE(w, d) ((I)(w).stride[d])
#define DILATION(w, d) ((I)(w).dilation[d])
#endif

// The places of an index [batch][a][b][c][channels] in sizes.
struct spot {
    I n, at[3], channel;
};
__device__ __forceinline__ spot spot_of(I i, const i64 *sizes, I channels)
{
    spot s;
    I rest = part(i, channels);
    s.channel = i - rest * channels;
    for (int d = 2; d >= 0; d--) {
        i = rest;
        rest = part(i, (I)sizes[d]);
        s.at[d] = i - rest * (I)sizes[d];
    }
    i = rest;
    s.n = i;
    return s;
}
#define EACH_TAP(w)                                                                                \
    for (I ka = 0; ka < SIZE(w, 0); ka++)                                                          \
        for (I kb = 0; kb < SIZE(w, 1); kb++)                                                      \
            for (I kc = 0; kc < SIZE(w, 2); kc++)

// The offset of position (a, b, c) of image n, in elements of `channels`; -1 outside.
__device__ __forceinline__ I offset_of(I n, I a, I b, I c, const i64 *sizes, I channels)
{
    const I first = (I)sizes[0], second = (I)sizes[1], third = (I)sizes[2];
    if (a < 0 || b < 0 || c < 0 || a >= first || b >= second || c >= third)
        return -1;
    return (((n * first + a) * second + b) * third + c) * channels;
}
__device__ __forceinline__ I reads(const windows &w, int d, I o, I k)
{
    return o * STRIDE(w, d) - (I)w.before[d] + k * DILATION(w, d);
}
__device__ __forceinline__ I read_at(const windows &w, const spot &s, I ka, I kb, I kc, I channels)
{
    return offset_of(s.n, reads(w, 0, s.at[0], ka), reads(w, 1, s.at[1], kb), reads(w, 2, s.at[2], kc), w.in,
                     channels);
}
// The output along an axis whose tap k reads input i; -1: none.
__device__ __forceinline__ I writes_from(const windows &w, int d, I i, I k)
{
    const I t = i + (I)w.before[d] - k * DILATION(w, d);
    return t < 0 || t % STRIDE(w, d) != 0 ? -1 : t / STRIDE(w, d);
}

// y[.., f] = sum of x[.., c] kernel[taps][c][f]
extern "C" __global__ void __launch_bounds__(256)
convolve(const T *x, const T *kernel, const windows w, i64 count, T *y)
{
    const i64 filters = w.groups * w.cout, channels = w.groups * w.cin;
    EACH_ELEMENT(i, count)
    {
        const spot s = spot_of(i, w.out, filters);
        const i64 group = quotient(s.channel, w.cout);
        C sum = 0;
        EACH_TAP(w)
        {
            const i64 from = read_at(w, s, ka, kb, kc, channels);
            if (from < 0)
                continue;
            const T *in = x + from + group * w.cin;
            const T *k = kernel + ((ka * w.size[1] + kb) * w.size[2] + kc) * w.cin * filters + s.channel;
            for (i64 c = 0; c < w.cin; c++)
                sum += widen(in[c]) * widen(k[c * filters]);
        }
        y[i] = narrow<T>(sum);
    }
}

extern "C" __global__ void __launch_bounds__(256)
convolve_input(const T *kernel, const T *grad, const windows w, i64 count, T *dx)
{
    const i64 filters = w.groups * w.cout, channels = w.groups * w.cin;
    EACH_ELEMENT(i, count)
    {
        const spot s = spot_of(i, w.in, channels);
        const i64 group = s.channel / w.cin, c = s.channel % w.cin;
        C sum = 0;
        EACH_TAP(w)
        {
            const i64 from = offset_of(s.n, writes_from(w, 0, s.at[0], ka), writes_from(w, 1, s.at[1], kb),
                                       writes_from(w, 2, s.at[2], kc), w.out, filters);
            if (from < 0)
                continue;
            const T *g = grad + from + group * w.cout;
            const T *k = kernel + (((ka * w.size[1] + kb) * w.size[2] + kc) * w.cin + c) * filters + group * w.cout;
            for (i64 f = 0; f < w.cout; f++)
                sum += widen(g[f]) * widen(k[f]);
        }
        dx[i] = narrow<T>(sum);
    }
}

// A warp for each element of the kernel.
extern "C" __global__ void __launch_bounds__(256)
convolve_kernel(const T *x, const T *grad, const windows w, i64 count, T *dkernel)
{
    const i64 filters = w.groups * w.cout, channels = w.groups * w.cin;
    const i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) / 32;
    if (i >= count)
        return;
    const i64 f = i % filters, c = i / filters % w.cin, tap = i / filters / w.cin, group = f / w.cout;
    const i64 kc = tap % w.size[2], kb = tap / w.size[2] % w.size[1], ka = tap / w.size[2] / w.size[1];
    const i64 outputs = w.batch * w.out[0] * w.out[1] * w.out[2];
    C sum = 0;
    for (i64 o = threadIdx.x % 32; o < outputs; o += 32) {
        const spot s = spot_of(o, w.out, 1);
        const i64 from = read_at(w, s, ka, kb, kc, channels);
        if (from >= 0)
            sum += widen(x[from + group * w.cin + c]) * widen(grad[o * filters + f]);
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        dkernel[i] = narrow<T>(sum);
}

// The first largest of a window, the first NaN before all.
__device__ __forceinline__ I largest_of(const T *x, const windows &w, const spot &s)
{
    I best = -1;
    C most = 0;
    EACH_TAP(w)
    {
        const I from = read_at(w, s, ka, kb, kc, (I)w.cin);
        if (from < 0)
            continue;
        const C v = widen(x[from + s.channel]);
        if (best < 0 || v > most || (v != v && most == most)) {
            best = from + s.channel;
            most = v;
        }
    }
    return best;
}

// y[o] = values[the first largest of window o of x]; of a max pool both are x.
extern "C" __global__ void __launch_bounds__(256)
pool_largest(const T *x, const T *values, const windows w, i64 count, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const I from = largest_of(x, w, spot_of((I)i, w.out, (I)w.cin));
        y[i] = from < 0 ? T{} : values[from];
    }
}

__device__ __forceinline__ I taps_of(const windows &w, const spot &s)
{
    I taps = 1;
    for (int d = 0; d < 3; d++) {
        I inside = 0;
        for (I k = 0; k < SIZE(w, d); k++) {
            const I i = reads(w, d, s.at[d], k);
            inside += i >= 0 && i < (I)w.in[d];
        }
        taps *= inside;
    }
    return taps;
}

extern "C" __global__ void __launch_bounds__(256)
pool_average(const T *x, const windows w, i64 count, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const spot s = spot_of((I)i, w.out, (I)w.cin);
        C sum = 0;
        EACH_TAP(w)
        {
            const I from = read_at(w, s, ka, kb, kc, (I)w.cin);
            if (from >= 0)
                sum += widen(x[from + s.channel]);
        }
        y[i] = narrow<T>(sum / (C)taps_of(w, s));
    }
}

// dx of a pool: each element asks the windows that hold it. x: of a max pool, else NULL.
extern "C" __global__ void __launch_bounds__(256)
pool_gradient(const T *x, const T *grad, const windows w, i64 count, T *dx)
{
    EACH_ELEMENT(i, count)
    {
        const spot s = spot_of((I)i, w.in, (I)w.cin);
        C sum = 0;
        EACH_TAP(w)
        {
            spot o = {s.n, {writes_from(w, 0, s.at[0], ka), writes_from(w, 1, s.at[1], kb),
                            writes_from(w, 2, s.at[2], kc)}, s.channel};
            const I from = offset_of(o.n, o.at[0], o.at[1], o.at[2], w.out, (I)w.cin);
            if (from < 0)
                continue;
            if (!x)
                sum += widen(grad[from + s.channel]) / (C)taps_of(w, o);
            else if (largest_of(x, w, o) == i)
                sum += widen(grad[from + s.channel]);
        }
        dx[i] = narrow<T>(sum);
    }
}
