// recurrent.cu: simple_rnn, gru and lstm over sequences: a block walks a row of the batch through all its
// steps, state in shared memory, the recurrent matrix from the L2 cache. Products over all steps at once
// (x kernel before, dx, dkernel and drecurrent behind) are the launcher's.
//
// Where a block has a thread for each column of the recurrent matrix and can keep the matrix, in registers
// (HELD rows of it) and shared memory, it does, and asks for the next step's values one step ahead:
// recurrent_held, recurrent_gradient_held.
//
// Options: TYPE; CELL: 0 simple_rnn, 1 gru, 2 lstm; LENGTHS: type of the rows' lengths. Held: UNITS, a multiple
// of 4; HELD, too; DYNAMIC: the shared memory comes with the launch.
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

#ifdef UNITS
enum { WIDE = GATES * UNITS, FLOATS = UNITS + 2 * WIDE + (UNITS - HELD) * WIDE };
#ifdef DYNAMIC
#define SHARED_FLOATS(name) extern __shared__ float name[]
#else
#define SHARED_FLOATS(name) __shared__ float name[FLOATS]
#endif

// x[0] w[0] + x[1] w[1] + ...: a thread's weights, the first in registers, the others in shared memory.
__device__ __forceinline__ float held_product(const float *x, const float *w, const float *rest)
{
    float sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < HELD; k += 4) {
        const vec<float, 4> v = *(const vec<float, 4> *)(x + k);
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[e] += v.at[e] * w[k + e];
    }
#pragma unroll 8
    for (int k = HELD; k < UNITS; k += 4) {
        const vec<float, 4> v = *(const vec<float, 4> *)(x + k);
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[e] += v.at[e] * rest[(k - HELD + e) * WIDE];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

extern "C" __global__ void __launch_bounds__(WIDE, 1)
recurrent_held(const T *a, const T *h0, const T *c0, const T *matrix, const T *bias, const LENGTHS *lengths,
               const sizes s, T *y, T *h_end, T *c_end, T *reserve)
{
    SHARED_FLOATS(memory);
    float *h = memory, *own = h + UNITS, *in = own + WIDE, *rest = in + WIDE + threadIdx.x;
    const int g = threadIdx.x;
    const i64 row = blockIdx.x, length = lengths ? (i64)lengths[row] : s.time;
    const float bias_in = widen(bias[g]), bias_own = CELL == 1 ? widen(bias[WIDE + g]) : 0.0f;
    float w[HELD], c = 0, after = 0;
#pragma unroll
    for (int k = 0; k < HELD; k++)
        w[k] = widen(matrix[k * WIDE + g]);
    for (int k = HELD; k < UNITS; k++)
        rest[(k - HELD) * WIDE] = widen(matrix[k * WIDE + g]);
    if (g < UNITS) {
        h[g] = widen(h0[row * UNITS + g]);
        c = CELL == 2 ? widen(c0[row * UNITS + g]) : 0.0f;
    }
    if (s.time > 0)
        after = widen(a[(row * s.time + (s.reverse ? s.time - 1 : 0)) * WIDE + g]);
    __syncthreads();
    for (i64 step = 0; step < s.time; step++) {
        const i64 at = s.reverse ? s.time - 1 - step : step, t = row * s.time + at;
        const bool active = at < length;
        const float now = after;
        if (step + 1 < s.time)
            after = widen(a[(s.reverse ? t - 1 : t + 1) * WIDE + g]);
        own[g] = active ? bias_own + held_product(h, w, rest) : 0.0f;
        in[g] = now + bias_in;
        __syncthreads();
        if (g < UNITS) {
            T *kept = reserve + t * KEPT * UNITS + g;
            float all[4] = {0, 0, 0, 0}, state = h[g];
#pragma unroll
            for (int k = 0; k < GATES; k++)
                all[k] = in[k * UNITS + g] + (CELL == 1 && k == GATES - 1 ? 0.0f : own[k * UNITS + g]);
            if (active && CELL == 0) {
                state = tanh(all[0]);
            } else if (active && CELL == 1) {
                const float last = own[(GATES - 1) * UNITS + g], z = sigmoid(all[0]), r = sigmoid(all[1]);
                const float n = tanh(all[2] + r * last);
                state = z * state + (1 - z) * n;
                all[0] = z, all[1] = r, all[2] = n, all[3] = last;
            } else if (active) {
                all[0] = sigmoid(all[0]), all[1] = sigmoid(all[1]), all[2] = tanh(all[2]), all[3] = sigmoid(all[3]);
                c = all[1] * c + all[0] * all[2];
                state = all[3] * tanh(c);
            }
#pragma unroll
            for (int k = 0; k < KEPT && k < 4; k++)
                kept[k * UNITS] = active ? narrow<T>(all[k]) : T{};
            if (CELL == 2)
                kept[4 * UNITS] = narrow<T>(c);
            y[t * UNITS + g] = narrow<T>(state);
            h[g] = state;
        }
        __syncthreads();
    }
    if (g < UNITS) {
        h_end[row * UNITS + g] = narrow<T>(h[g]);
        if (CELL == 2)
            c_end[row * UNITS + g] = narrow<T>(c);
    }
}

// What one unit's step of the gradient takes.
struct asked {
    float kept[5], y, dy, h_before, c_before;
};
__device__ __forceinline__ asked ask(const T *h0, const T *c0, const T *y, const T *reserve, const T *dy,
                                     const sizes &s, i64 row, i64 step, int u)
{
    asked q = {};
    const i64 t = row * s.time + (s.reverse ? s.time - 1 - step : step), last = s.reverse ? t + 1 : t - 1;
#pragma unroll
    for (int k = 0; k < KEPT; k++)
        q.kept[k] = widen(reserve[(t * KEPT + k) * UNITS + u]);
    q.y = CELL == 0 ? widen(y[t * UNITS + u]) : 0.0f;
    q.dy = dy ? widen(dy[t * UNITS + u]) : 0.0f;
    q.h_before = widen(step > 0 ? y[last * UNITS + u] : h0[row * UNITS + u]);
    if (CELL == 2)
        q.c_before = widen(step > 0 ? reserve[(last * KEPT + 4) * UNITS + u] : c0[row * UNITS + u]);
    return q;
}

// Thread (part, u) multiplies gate `part` of d by row u of the matrix.
extern "C" __global__ void __launch_bounds__(WIDE, 1)
recurrent_gradient_held(const T *h0, const T *c0, const T *matrix, const T *y, const T *reserve,
                        const LENGTHS *lengths, const incoming grads, const sizes s, T *dh_first, T *dc_first,
                        T *da, T *db, T *before)
{
    SHARED_FLOATS(memory);
    float *d = memory, *partial = d + WIDE, *rest = partial + WIDE + UNITS + threadIdx.x;
    const int u = threadIdx.x % UNITS, part = threadIdx.x / UNITS;
    const i64 row = blockIdx.x, length = lengths ? (i64)lengths[row] : s.time;
    const T *weights = matrix + u * WIDE + part * UNITS;
    float w[HELD], dh = 0, dc = 0;
    asked after = {};
#pragma unroll
    for (int k = 0; k < HELD; k++)
        w[k] = widen(weights[k]);
    for (int k = HELD; k < UNITS; k++)
        rest[(k - HELD) * WIDE] = widen(weights[k]);
    if (part == 0) {
        dh = grads.h ? widen(grads.h[row * UNITS + u]) : 0.0f;
        dc = grads.c ? widen(grads.c[row * UNITS + u]) : 0.0f;
        if (s.time > 0)
            after = ask(h0, c0, y, reserve, grads.y, s, row, s.time - 1, u);
    }
    for (i64 step = s.time - 1; step >= 0; step--) {
        const i64 at = s.reverse ? s.time - 1 - step : step, t = row * s.time + at;
        const bool active = at < length;
        if (part == 0) {
            const asked q = after;
            const T *more = grads.reserve + t * KEPT * UNITS + u;
            float in[4] = {0, 0, 0, 0}, own[4] = {0, 0, 0, 0}, extra[4] = {0, 0, 0, 0};
            if (step > 0)
                after = ask(h0, c0, y, reserve, grads.y, s, row, step - 1, u);
            dh += q.dy;
            if (CELL == 2 && grads.reserve)
                dc += widen(more[4 * UNITS]);
            for (int k = 0; k < 4 && KEPT > 0 && grads.reserve; k++)
                extra[k] = widen(more[k * UNITS]);
            if (active && CELL == 0) {
                in[0] = own[0] = dh * (1 - q.y * q.y);
                dh = 0;
            } else if (active && CELL == 1) {
                const float z = q.kept[0], r = q.kept[1], n = q.kept[2], b2 = q.kept[3];
                const float dz = dh * (q.h_before - n) + extra[0];
                const float dn = (dh * (1 - z) + extra[2]) * (1 - n * n), dr = dn * b2 + extra[1];
                in[0] = own[0] = dz * z * (1 - z);
                in[1] = own[1] = dr * r * (1 - r);
                in[2] = dn;
                own[2] = dn * r + extra[3];
                dh *= z;
            } else if (active) {
                const float i = q.kept[0], f = q.kept[1], g = q.kept[2], o = q.kept[3], th = tanh(q.kept[4]);
                const float by_c = dc + dh * o * (1 - th * th);
                in[0] = own[0] = (by_c * g + extra[0]) * i * (1 - i);
                in[1] = own[1] = (by_c * q.c_before + extra[1]) * f * (1 - f);
                in[2] = own[2] = (by_c * i + extra[2]) * (1 - g * g);
                in[3] = own[3] = (dh * th + extra[3]) * o * (1 - o);
                dc = by_c * f;
                dh = 0;
            }
            before[t * UNITS + u] = active ? narrow<T>(q.h_before) : T{};
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                d[g * UNITS + u] = own[g];
                da[t * WIDE + g * UNITS + u] = narrow<T>(in[g]);
                if (CELL == 1)
                    db[t * WIDE + g * UNITS + u] = narrow<T>(own[g]);
            }
        }
        __syncthreads();
        partial[threadIdx.x] = active ? held_product(d + part * UNITS, w, rest) : 0.0f;
        __syncthreads();
        if (part == 0)
#pragma unroll
            for (int g = 0; g < GATES; g++)
                dh += partial[g * UNITS + u];
    }
    if (part == 0) {
        dh_first[row * UNITS + u] = narrow<T>(dh);
        if (CELL == 2)
            dc_first[row * UNITS + u] = narrow<T>(dc);
    }
}
#endif

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
