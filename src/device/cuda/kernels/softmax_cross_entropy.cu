// softmax_cross_entropy.cu: the loss of each row of logits and its gradient in one pass: a row is
// read once, kept in shared memory, and the gradient written over it.
//
//     loss[r] = log sum_j exp(x[r][j]) - x[r][label[r]]
//     dx[r][j] = (softmax(x[r])[j] - (j == label[r])) * scale (of all rows, or scales[r])
//
// Options: TYPE (bf16, f16, float), INDEX of labels, WIDTH elements of a row that count, STRIDE from
// row to row, PER elements that a thread takes at once (a divisor of STRIDE), THREADS of a block, KEPT:
// the row stays in shared memory (16 bytes at once); else it is read again. Columns from WIDTH to STRIDE
// get a gradient of 0. A label outside of [0, WIDTH) is ignored: loss and gradient 0; and noted in
// `fault`.
#include "common.cuh"

enum { N = PER, VECTORS = STRIDE / N, EACH = (VECTORS + THREADS - 1) / THREADS };

// A copy of 16 bytes into shared memory, beside which the thread goes on; and the wait for all but
// the last `pending` copies.
__device__ __forceinline__ void copy_begin(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.commit_group;"
                 :
                 : "r"((u32)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
#define COPY_WAIT(pending) asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory")
template <int E> struct rows_of {
    template <class F> static __device__ __forceinline__ void each(F f)
    {
        rows_of<E - 1>::each(f);
        if (KEPT)
            COPY_WAIT(EACH - E); // a thread reads what it has copied itself
        f(E - 1);
    }
};
template <> struct rows_of<0> {
    template <class F> static __device__ __forceinline__ void each(F f) {}
};

#define LOG2E 1.4426950408889634f
__device__ __forceinline__ float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_cross_entropy(const T *logits, const INDEX *labels, float scale, const float *scales, float *loss,
                      T *gradient, u64 *fault)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float scratch[32];
    const i64 r = blockIdx.x;
    const vec<T, N> *in = (const vec<T, N> *)(logits + r * STRIDE);
    const vec<T, N> *row = KEPT ? (const vec<T, N> *)memory : in;
    vec<T, N> *out = (vec<T, N> *)(gradient + r * STRIDE);
    const i64 label = (i64)labels[r];
    const bool counts = label >= 0 && label < WIDTH;
    if (scales)
        scale = scales[r];
    if (fault && !counts && threadIdx.x == 0)
        fail_at(fault, r);
    float most = -INFINITY, sum = 0.0f;
#if KEPT
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = threadIdx.x + e * THREADS;
        if (i < VECTORS)
            copy_begin((vec<T, N> *)memory + i, &in[i]);
        else
            asm volatile("cp.async.commit_group;");
    }
#endif
    rows_of<EACH>::each([&](int e) {
        const int i = threadIdx.x + e * THREADS;
        if (i >= VECTORS)
            return;
        const vec<T, N> x = row[i];
        float value[N], high = most;
#pragma unroll
        for (int k = 0; k < N; k++) {
            value[k] = to_float(x.at[k]) * LOG2E;
            if (i >= WIDTH / N && i * N + k >= WIDTH)
                value[k] = -INFINITY;
            high = fmaxf(high, value[k]);
        }
        if (high > most) {
            sum *= power2(most - high);
            most = high;
        }
        if (most > -INFINITY)
#pragma unroll
            for (int k = 0; k < N; k++)
                sum += power2(value[k] - most);
    });
    __syncthreads(); // one thread reads the label's logit, which another has copied
    const float top = group_max<THREADS>(most, scratch); // in powers of two
    const float whole =
        group_sum<THREADS>(most > -INFINITY ? sum * power2(most - top) : 0.0f, scratch);
    const float factor = counts ? scale / whole : 0.0f;
    if (threadIdx.x == 0)
        loss[r] = counts ? logf(whole) + top / LOG2E - to_float(((const T *)row)[label]) : 0.0f;
    for (int i = threadIdx.x; i < VECTORS; i += THREADS) {
        const vec<T, N> x = row[i];
        vec<T, N> y;
        float value[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            value[k] = power2(fmaf(to_float(x.at[k]), LOG2E, -top)) * factor;
        if (i >= WIDTH / N)
#pragma unroll
            for (int k = 0; k < N; k++)
                value[k] = i * N + k < WIDTH ? value[k] : 0.0f;
        if (counts && i == label / N)
#pragma unroll
            for (int k = 0; k < N; k++)
                value[k] -= i * N + k == label ? scale : 0.0f;
#pragma unroll
        for (int k = 0; k < N; k++)
            y.at[k] = from_float<T>(value[k]);
        out[i] = y;
    }
}
