// adamw.cu: AdamW over all parameters in one launch: f32 masters and moments, gradients and working
// weights of any type. What changes from step to step lies on the device, so that a captured graph
// can be replayed. 1-based step.
//
//     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g
//     w -= rate (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + epsilon) + decay w)
//
// Options: TYPE of working weights and gradients. A block takes CHUNK elements of one tensor.
#include "common.cuh"

enum { CHUNK = 4096, THREADS = 256, N = 4 };

struct tensor {
    float *master, *m, *v;
    T *weight; // or NULL
    const T *gradient;
    i64 count;
    float decay;
    u32 first_block; // of this tensor
};
struct state {
    float rate, beta1, beta2, epsilon, gradient_scale;
    u32 skip;
    i64 step;
};

extern "C" __global__ void adamw_next(state *s)
{
    if (!s->skip)
        s->step++;
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw(const tensor *tensors, int tensor_count, const state *now)
{
    const state s = *now;
    if (s.skip)
        return;
    int low = 0, high = tensor_count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (tensors[middle].first_block <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const tensor t = tensors[low];
    const float mend1 = 1.0f / (1.0f - powf(s.beta1, (float)s.step));
    const float mend2 = 1.0f / (1.0f - powf(s.beta2, (float)s.step));
    const i64 begin = (i64)(blockIdx.x - t.first_block) * CHUNK;
    const i64 end = begin + CHUNK < t.count ? begin + CHUNK : t.count;
#pragma unroll
    for (int turn = 0; turn < CHUNK / THREADS / N; turn++) {
        const i64 i = begin + (turn * THREADS + threadIdx.x) * N;
        if (i >= end)
            break;
        const bool whole = i + N <= end;
        vec<float, N> w, m, v;
        vec<T, N> g, out;
        if (whole) {
            w = *(const vec<float, N> *)(t.master + i);
            m = *(const vec<float, N> *)(t.m + i);
            v = *(const vec<float, N> *)(t.v + i);
            g = *(const vec<T, N> *)(t.gradient + i);
        } else {
            for (int k = 0; k < N && i + k < end; k++) {
                w.at[k] = t.master[i + k];
                m.at[k] = t.m[i + k];
                v.at[k] = t.v[i + k];
                g.at[k] = t.gradient[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = to_float(g.at[k]) * s.gradient_scale;
            m.at[k] = s.beta1 * m.at[k] + (1.0f - s.beta1) * d;
            v.at[k] = s.beta2 * v.at[k] + (1.0f - s.beta2) * d * d;
            w.at[k] -= s.rate * (m.at[k] * mend1 / (sqrtf(v.at[k] * mend2) + s.epsilon) +
                                 t.decay * w.at[k]);
            out.at[k] = from_float<T>(w.at[k]);
        }
        if (whole) {
            *(vec<float, N> *)(t.master + i) = w;
            *(vec<float, N> *)(t.m + i) = m;
            *(vec<float, N> *)(t.v + i) = v;
            if (t.weight)
                *(vec<T, N> *)(t.weight + i) = out;
        } else {
            for (int k = 0; k < N && i + k < end; k++) {
                t.master[i + k] = w.at[k];
                t.m[i + k] = m.at[k];
                t.v[i + k] = v.at[k];
                if (t.weight)
                    t.weight[i + k] = out.at[k];
            }
        }
    }
}
