// windows.cu: convolutions of any type, stride, dilation and number of groups, element by element, where
// no library takes them; and pooling. Tap k of the window at output o reads i = o stride - before + k
// dilation. Two dimensions are three with a depth of one.
//
// Options: TYPE.
#include "common.cuh"

struct windows {
    i64 in[3], out[3], size[3], stride[3], dilation[3], before[3];
    i64 batch, groups, cin, cout; // channels of one group
};

// The places of an index [batch][a][b][c][channels] in sizes.
struct spot {
    i64 n, at[3], channel;
};
__device__ __forceinline__ spot spot_of(i64 i, const i64 *sizes, i64 channels)
{
    spot s;
    i64 rest = quotient(i, channels);
    s.channel = i - rest * channels;
    for (int d = 2; d >= 0; d--) {
        i = rest;
        rest = quotient(i, sizes[d]);
        s.at[d] = i - rest * sizes[d];
    }
    i = rest;
    s.n = i;
    return s;
}
#define EACH_TAP(w)                                                                                \
    for (i64 ka = 0; ka < (w).size[0]; ka++)                                                       \
        for (i64 kb = 0; kb < (w).size[1]; kb++)                                                   \
            for (i64 kc = 0; kc < (w).size[2]; kc++)

// The offset of position (a, b, c) of image n, in elements of `channels`; -1 outside.
__device__ __forceinline__ i64 offset_of(i64 n, i64 a, i64 b, i64 c, const i64 *sizes, i64 channels)
{
    if (a < 0 || b < 0 || c < 0 || a >= sizes[0] || b >= sizes[1] || c >= sizes[2])
        return -1;
    return (((n * sizes[0] + a) * sizes[1] + b) * sizes[2] + c) * channels;
}
__device__ __forceinline__ i64 read_at(const windows &w, const spot &s, i64 ka, i64 kb, i64 kc, i64 channels)
{
    return offset_of(s.n, s.at[0] * w.stride[0] - w.before[0] + ka * w.dilation[0],
                     s.at[1] * w.stride[1] - w.before[1] + kb * w.dilation[1],
                     s.at[2] * w.stride[2] - w.before[2] + kc * w.dilation[2], w.in, channels);
}
// The output along an axis whose tap k reads input i; -1: none.
__device__ __forceinline__ i64 writes_from(const windows &w, int d, i64 i, i64 k)
{
    const i64 t = i + w.before[d] - k * w.dilation[d];
    return t < 0 || t % w.stride[d] != 0 ? -1 : t / w.stride[d];
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
__device__ __forceinline__ i64 largest_of(const T *x, const windows &w, const spot &s)
{
    i64 best = -1;
    C most = 0;
    EACH_TAP(w)
    {
        const i64 from = read_at(w, s, ka, kb, kc, w.cin);
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
        const i64 from = largest_of(x, w, spot_of(i, w.out, w.cin));
        y[i] = from < 0 ? T{} : values[from];
    }
}

__device__ __forceinline__ i64 taps_of(const windows &w, const spot &s)
{
    i64 taps = 1;
    for (int d = 0; d < 3; d++) {
        i64 inside = 0;
        for (i64 k = 0; k < w.size[d]; k++) {
            const i64 i = s.at[d] * w.stride[d] - w.before[d] + k * w.dilation[d];
            inside += i >= 0 && i < w.in[d];
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
        const spot s = spot_of(i, w.out, w.cin);
        C sum = 0;
        EACH_TAP(w)
        {
            const i64 from = read_at(w, s, ka, kb, kc, w.cin);
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
        const spot s = spot_of(i, w.in, w.cin);
        C sum = 0;
        EACH_TAP(w)
        {
            spot o = {s.n, {writes_from(w, 0, s.at[0], ka), writes_from(w, 1, s.at[1], kb),
                            writes_from(w, 2, s.at[2], kc)}, s.channel};
            const i64 from = offset_of(o.n, o.at[0], o.at[1], o.at[2], w.out, w.cin);
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
