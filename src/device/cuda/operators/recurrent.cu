// recurrent.cu: simple_rnn, gru and lstm over sequences: a block walks a row of the batch through all its
// steps, state in shared memory, the recurrent matrix from the L2 cache. Products over all steps at once
// (x kernel before, dx, dkernel and drecurrent behind) are the launcher's.
//
// Options: TYPE; CELL: 0 simple_rnn, 1 gru, 2 lstm; LENGTHS: type of the rows' lengths.
#include "common.cuh"

enum {
    THREADS = 256,
    GATES = CELL == 0 ? 1 : CELL == 1 ? 3 : 4,
    KEPT = CELL == 0 ? 0 : CELL == 1 ? 4 : 5
};

__device__ __forceinline__ C sigmoid(C x) { return 1 / (1 + exp(-x)); }

struct sizes {
    i64 batch, time, units;
    int reverse;
};

// a [batch, time, gates * units]: x kernel, without bias. scratch [batch][(GATES + 2) * units] C.
extern "C" __global__ void __launch_bounds__(THREADS)
recurrent(const T *a, const T *h0, const T *c0, const T *matrix, const T *bias, const LENGTHS *lengths,
          const sizes s, T *y, T *h_end, T *c_end, T *reserve, C *scratch)
{
    const i64 row = blockIdx.x, units = s.units, wide = GATES * units;
    const i64 length = lengths ? (i64)lengths[row] : s.time;
    C *h = scratch + row * (GATES + 2) * units, *c = h + units, *b = c + units;
    for (i64 u = threadIdx.x; u < units; u += THREADS) {
        h[u] = widen(h0[row * units + u]);
        c[u] = CELL == 2 ? widen(c0[row * units + u]) : (C)0;
    }
    __syncthreads();
    for (i64 step = 0; step < s.time; step++) {
        const i64 t = row * s.time + (s.reverse ? s.time - 1 - step : step);
        const bool active = (s.reverse ? s.time - 1 - step : step) < length;
        T *kept = reserve + t * KEPT * units;
        if (active)
            for (i64 g = threadIdx.x; g < wide; g += THREADS) {
                C sum = CELL == 1 ? widen(bias[wide + g]) : (C)0;
#pragma unroll 8
                for (i64 k = 0; k < units; k++)
                    sum += h[k] * widen(matrix[k * wide + g]);
                b[g] = sum;
            }
        __syncthreads();
        for (i64 u = threadIdx.x; u < units; u += THREADS) {
            if (active) {
                C in[GATES];
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    in[g] = widen(a[t * wide + g * units + u]) + widen(bias[g * units + u]);
                if (CELL == 0) {
                    h[u] = tanh(in[0] + b[u]);
                } else if (CELL == 1) {
                    const C last = b[(GATES - 1) * units + u], z = sigmoid(in[0] + b[u]);
                    const C r = sigmoid(in[1 % GATES] + b[(1 % GATES) * units + u]);
                    const C n = tanh(in[GATES - 1] + r * last);
                    h[u] = z * h[u] + (1 - z) * n;
                    kept[u] = narrow<T>(z);
                    kept[units + u] = narrow<T>(r);
                    kept[2 * units + u] = narrow<T>(n);
                    kept[3 * units + u] = narrow<T>(last);
                } else {
                    const C i = sigmoid(in[0] + b[u]), f = sigmoid(in[1 % GATES] + b[(1 % GATES) * units + u]);
                    const C g = tanh(in[2 % GATES] + b[(2 % GATES) * units + u]);
                    const C o = sigmoid(in[GATES - 1] + b[(GATES - 1) * units + u]);
                    c[u] = f * c[u] + i * g;
                    h[u] = o * tanh(c[u]);
                    kept[u] = narrow<T>(i);
                    kept[units + u] = narrow<T>(f);
                    kept[2 * units + u] = narrow<T>(g);
                    kept[3 * units + u] = narrow<T>(o);
                }
            } else {
                for (int k = 0; k < KEPT; k++)
                    kept[k * units + u] = T{};
            }
            if (CELL == 2)
                kept[4 * units + u] = narrow<T>(c[u]);
            y[t * units + u] = narrow<T>(h[u]);
        }
        __syncthreads();
    }
    for (i64 u = threadIdx.x; u < units; u += THREADS) {
        h_end[row * units + u] = narrow<T>(h[u]);
        if (CELL == 2)
            c_end[row * units + u] = narrow<T>(c[u]);
    }
}

// Gradients may be NULL. da, db [batch, time, gates * units], before [batch, time, units]: h before each
// step; all 0 where a row has ended. db is written for gru only.
struct incoming {
    const T *y, *h, *c, *reserve;
};
extern "C" __global__ void __launch_bounds__(THREADS)
recurrent_gradient(const T *h0, const T *c0, const T *matrix, const T *y, const T *reserve,
                   const LENGTHS *lengths, const incoming grads, const sizes s, T *dh_first, T *dc_first, T *da,
                   T *db, T *before, C *scratch)
{
    const i64 row = blockIdx.x, units = s.units, wide = GATES * units;
    const i64 length = lengths ? (i64)lengths[row] : s.time;
    C *dh = scratch + row * (GATES + 2) * units, *dc = dh + units, *d = dc + units;
    for (i64 u = threadIdx.x; u < units; u += THREADS) {
        dh[u] = grads.h ? widen(grads.h[row * units + u]) : (C)0;
        dc[u] = grads.c ? widen(grads.c[row * units + u]) : (C)0;
    }
    __syncthreads();
    for (i64 step = s.time - 1; step >= 0; step--) {
        const i64 at = s.reverse ? s.time - 1 - step : step, t = row * s.time + at;
        const i64 last = s.reverse ? t + 1 : t - 1;
        const T *kept = reserve + t * KEPT * units, *more = grads.reserve + t * KEPT * units;
        const bool active = at < length;
        for (i64 u = threadIdx.x; u < units; u += THREADS) {
            if (grads.y)
                dh[u] += widen(grads.y[t * units + u]);
            if (CELL == 2 && grads.reserve)
                dc[u] += widen(more[4 * units + u]);
            const C h_before = widen(step > 0 ? y[last * units + u] : h0[row * units + u]);
            C in[GATES], own[GATES];
#pragma unroll
            for (int g = 0; g < GATES; g++)
                in[g] = own[g] = 0;
            if (active && CELL == 0) {
                const C h = widen(y[t * units + u]);
                in[0] = own[0] = dh[u] * (1 - h * h);
                dh[u] = 0;
            } else if (active && CELL == 1) {
                const C z = widen(kept[u]), r = widen(kept[units + u]), n = widen(kept[2 * units + u]);
                const C b2 = widen(kept[3 * units + u]);
                C extra[4];
                for (int k = 0; k < 4; k++)
                    extra[k] = grads.reserve ? widen(more[k * units + u]) : (C)0;
                const C dz = dh[u] * (h_before - n) + extra[0];
                const C dn = (dh[u] * (1 - z) + extra[2]) * (1 - n * n), dr = dn * b2 + extra[1];
                in[0] = own[0] = dz * z * (1 - z);
                in[1 % GATES] = own[1 % GATES] = dr * r * (1 - r);
                in[GATES - 1] = dn;
                own[GATES - 1] = dn * r + extra[3];
                dh[u] *= z;
            } else if (active) {
                const C i = widen(kept[u]), f = widen(kept[units + u]), g = widen(kept[2 * units + u]);
                const C o = widen(kept[3 * units + u]), th = tanh(widen(kept[4 * units + u]));
                const C c_before =
                    widen(step > 0 ? reserve[(last * KEPT + 4) * units + u] : c0[row * units + u]);
                const C by_c = dc[u] + dh[u] * o * (1 - th * th);
                C extra[4];
                for (int k = 0; k < 4; k++)
                    extra[k] = grads.reserve ? widen(more[k * units + u]) : (C)0;
                in[0] = own[0] = (by_c * g + extra[0]) * i * (1 - i);
                in[1 % GATES] = own[1 % GATES] = (by_c * c_before + extra[1]) * f * (1 - f);
                in[2 % GATES] = own[2 % GATES] = (by_c * i + extra[2]) * (1 - g * g);
                in[GATES - 1] = own[GATES - 1] = (dh[u] * th + extra[3]) * o * (1 - o);
                dc[u] = by_c * f;
                dh[u] = 0;
            }
            before[t * units + u] = active ? narrow<T>(h_before) : T{};
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                d[g * units + u] = own[g];
                da[t * wide + g * units + u] = narrow<T>(in[g]);
                if (CELL == 1)
                    db[t * wide + g * units + u] = narrow<T>(own[g]);
            }
        }
        __syncthreads();
        if (active)
            for (i64 u = threadIdx.x / 32; u < units; u += THREADS / 32) {
                C sum = 0;
                for (i64 g = threadIdx.x % 32; g < wide; g += 32)
                    sum += d[g] * widen(matrix[u * wide + g]);
                for (int way = 16; way > 0; way /= 2)
                    sum += __shfl_down_sync(0xffffffff, sum, way);
                if (threadIdx.x % 32 == 0)
                    dh[u] += sum;
            }
        __syncthreads();
    }
    for (i64 u = threadIdx.x; u < units; u += THREADS) {
        dh_first[row * units + u] = narrow<T>(dh[u]);
        if (CELL == 2)
            dc_first[row * units + u] = narrow<T>(dc[u]);
    }
}

// Sums of columns, a warp of rows for each: 8 threads' shares in their order.
extern "C" __global__ void __launch_bounds__(THREADS)
recurrent_bias(const T *d, i64 rows, i64 wide, T *sums)
{
    __shared__ C parts[8][32];
    const i64 c = (i64)blockIdx.x * 32 + threadIdx.x % 32;
    const i64 share = (rows + 7) / 8, part = threadIdx.x / 32;
    C sum = 0;
    for (i64 r = part * share; c < wide && r < rows && r < (part + 1) * share; r++)
        sum += widen(d[r * wide + c]);
    parts[part][threadIdx.x % 32] = sum;
    __syncthreads();
    if (part == 0 && c < wide) {
        for (int p = 1; p < 8; p++)
            sum += parts[p][threadIdx.x % 32];
        sums[c] = narrow<T>(sum);
    }
}

// x without what lies behind the rows' ends.
extern "C" __global__ void __launch_bounds__(THREADS)
recurrent_ends(const T *x, const LENGTHS *lengths, i64 time, i64 features, i64 count, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const i64 t = i / features;
        y[i] = t % time < (i64)lengths[t / time] ? x[i] : T{};
    }
}
