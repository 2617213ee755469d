// rows.cu: softmax, losses and norms of rows of any length and type, and batch norm of columns. LANES
// threads work on one row and go over it as often as the formula asks; sums are in C, in an order that
// follows from the length.
//
// Options: TYPE (floats); LANES: 32 or 256; INDEX: of labels.
#include "common.cuh"

enum { THREADS = 256, ROWS = THREADS / LANES };

template <class F> __device__ __forceinline__ C join_all(C x, F join)
{
    for (int step = 16; step > 0; step /= 2)
        x = join(x, __shfl_xor_sync(0xffffffff, x, step));
    if (LANES == 32)
        return x;
    __shared__ C parts[8];
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int w = 1; w < LANES / 32; w++)
        x = join(x, parts[w]);
    return x;
}
__device__ __forceinline__ C add_all(C x)
{
    return join_all(x, [](C a, C b) { return a + b; });
}
__device__ __forceinline__ C most_of_all(C x)
{
    return join_all(x, [](C a, C b) { return a != a || a > b ? a : b; });
}
#define THIS_ROW ((i64)blockIdx.x * ROWS + threadIdx.x / LANES)
#define THIS_LANE ((int)(threadIdx.x % LANES))

// The largest of a row, and the sum of exponentials below it.
struct log_sum {
    C top, sum;
};
__device__ __forceinline__ log_sum log_sum_of(const T *x, i64 size, i64 step)
{
    C top = -INFINITY, sum = 0;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C v = widen(x[i * step]);
        top = v != v || v > top ? v : top;
    }
    top = most_of_all(top);
    for (i64 i = THIS_LANE; i < size; i += LANES)
        sum += exp(widen(x[i * step]) - top);
    return {top, add_all(sum)};
}

// Row (o, i) is x[o][..][i]: `size` elements `inner` apart.
extern "C" __global__ void __launch_bounds__(THREADS)
row_softmax(const T *x, i64 rows, i64 size, i64 inner, int log_of, T *y)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const i64 base = r / inner * size * inner + r % inner;
    const log_sum s = log_sum_of(x + base, size, inner);
    const C shift = log((C)s.sum), factor = 1 / s.sum;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C v = widen(x[base + i * inner]) - s.top;
        y[base + i * inner] = narrow<T>(log_of ? v - shift : exp(v) * factor);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
row_cross_entropy(const T *logits, const T *labels, i64 rows, i64 size, T *loss)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const log_sum s = log_sum_of(logits + r * size, size, 1);
    const C shift = log((C)s.sum);
    C sum = 0;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C z = widen(labels[r * size + i]);
        sum -= z == 0 ? (C)0 : z * (widen(logits[r * size + i]) - s.top - shift);
    }
    sum = add_all(sum);
    if (THIS_LANE == 0)
        loss[r] = narrow<T>(sum);
}

#ifdef INDEX
extern "C" __global__ void __launch_bounds__(THREADS)
row_sparse_cross_entropy(const T *logits, const INDEX *labels, i64 rows, i64 size, T *loss, u64 *fault)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const log_sum s = log_sum_of(logits + r * size, size, 1);
    const i64 label = labels[r];
    if (THIS_LANE != 0)
        return;
    if (label < 0 || label >= size)
        fail_at(fault, r);
    else
        loss[r] = narrow<T>(log((C)s.sum) - (widen(logits[r * size + label]) - s.top));
}

// grad [rows], or NULL for 1.
extern "C" __global__ void __launch_bounds__(THREADS)
row_sparse_cross_entropy_gradient(const T *logits, const INDEX *labels, const T *grad, i64 rows, i64 size,
                                  T *dx, u64 *fault)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const log_sum s = log_sum_of(logits + r * size, size, 1);
    const i64 label = labels[r];
    const C g = grad ? widen(grad[r]) : (C)1, factor = 1 / s.sum;
    if (THIS_LANE == 0 && (label < 0 || label >= size))
        fail_at(fault, r);
    for (i64 i = THIS_LANE; i < size; i += LANES)
        dx[r * size + i] =
            narrow<T>((exp(widen(logits[r * size + i]) - s.top) * factor - (i == label ? 1 : 0)) * g);
}
#endif

// mean and 1 / sqrt(variance + epsilon) of a row; rms: mean 0.
struct moments {
    C mean, inverse;
};
__device__ __forceinline__ moments moments_of(const T *x, i64 size, double epsilon, int rms)
{
    C sum = 0, square = 0;
    for (i64 i = THIS_LANE; i < size && !rms; i += LANES)
        sum += widen(x[i]);
    const C mean = rms ? (C)0 : add_all(sum) / (C)size;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C v = widen(x[i]) - mean;
        square += v * v;
    }
    return {mean, 1 / sqrt(add_all(square) / (C)size + (C)epsilon)};
}

// offset: or NULL, for an rms norm.
extern "C" __global__ void __launch_bounds__(THREADS)
row_norm(const T *x, const T *scale, const T *offset, i64 rows, i64 size, double epsilon, int rms, T *y)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const moments m = moments_of(x + r * size, size, epsilon, rms);
    for (i64 i = THIS_LANE; i < size; i += LANES)
        y[r * size + i] = narrow<T>((widen(x[r * size + i]) - m.mean) * m.inverse * widen(scale[i]) +
                                    (offset ? widen(offset[i]) : (C)0));
}

// kept [rows]: for the columns' sums.
extern "C" __global__ void __launch_bounds__(THREADS)
row_norm_gradient(const T *x, const T *scale, const T *grad, i64 rows, i64 size, double epsilon, int rms,
                  T *dx, moments *kept)
{
    const i64 r = THIS_ROW;
    if (r >= rows)
        return;
    const moments m = moments_of(x + r * size, size, epsilon, rms);
    C sum = 0, dot = 0;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C h = widen(scale[i]) * widen(grad[r * size + i]);
        sum += h;
        dot += h * (widen(x[r * size + i]) - m.mean) * m.inverse;
    }
    sum = rms ? (C)0 : add_all(sum) / (C)size;
    dot = add_all(dot) / (C)size;
    for (i64 i = THIS_LANE; i < size; i += LANES) {
        const C hat = (widen(x[r * size + i]) - m.mean) * m.inverse;
        dx[r * size + i] = narrow<T>(m.inverse * (widen(scale[i]) * widen(grad[r * size + i]) - sum - hat * dot));
    }
    if (THIS_LANE == 0)
        kept[r] = m;
}

// Columns, a thread each; piece p has its share of rows. partial [pieces][2][size]: sums of grad xhat and
// of grad. Rows' moments come as `kept`, or as columns' mean and variance.
extern "C" __global__ void __launch_bounds__(THREADS)
column_sums(const T *x, const T *grad, i64 rows, i64 size, i64 pieces, const moments *kept, const T *mean,
            const T *variance, double epsilon, C *partial)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= pieces * size)
        return;
    const i64 p = at / size, c = at - p * size, share = (rows + pieces - 1) / pieces;
    const i64 end = (p + 1) * share < rows ? (p + 1) * share : rows;
    const C middle = kept ? (C)0 : widen(mean[c]);
    const C inverse = kept ? (C)0 : 1 / sqrt(widen(variance[c]) + (C)epsilon);
    C one = 0, two = 0;
#pragma unroll 4
    for (i64 r = p * share; r < end; r++) {
        const moments m = kept ? kept[r] : moments{middle, inverse};
        const C g = widen(grad[r * size + c]);
        one += g * (widen(x[r * size + c]) - m.mean) * m.inverse;
        two += g;
    }
    partial[p * 2 * size + c] = one;
    partial[(p * 2 + 1) * size + c] = two;
}
// sums [2][size] C, where a launch behind needs them exactly; dscale and doffset, or NULL.
extern "C" __global__ void __launch_bounds__(THREADS)
column_sums_join(const C *partial, i64 size, i64 pieces, T *dscale, T *doffset, C *sums)
{
    const i64 c = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (c >= size)
        return;
    C one = 0, two = 0;
    for (i64 p = 0; p < pieces; p++) {
        one += partial[p * 2 * size + c];
        two += partial[(p * 2 + 1) * size + c];
    }
    if (dscale)
        dscale[c] = narrow<T>(one);
    if (doffset)
        doffset[c] = narrow<T>(two);
    if (sums) {
        sums[c] = one;
        sums[size + c] = two;
    }
}

// Batch norm: moments of columns by pieces of rows: partial [pieces][2][size]: mean, squares about it.
extern "C" __global__ void __launch_bounds__(THREADS)
column_moments(const T *x, i64 rows, i64 size, i64 pieces, C *partial)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= pieces * size)
        return;
    const i64 p = at / size, c = at - p * size, share = (rows + pieces - 1) / pieces;
    const i64 begin = p * share < rows ? p * share : rows;
    const i64 end = begin + share < rows ? begin + share : rows;
    C sum = 0, square = 0;
#pragma unroll 4
    for (i64 r = begin; r < end; r++)
        sum += widen(x[r * size + c]);
    const C mean = end > begin ? sum / (C)(end - begin) : (C)0;
#pragma unroll 4
    for (i64 r = begin; r < end; r++) {
        const C v = widen(x[r * size + c]) - mean;
        square += v * v;
    }
    partial[p * 2 * size + c] = mean;
    partial[(p * 2 + 1) * size + c] = square;
}
extern "C" __global__ void __launch_bounds__(THREADS)
column_moments_join(const C *partial, i64 rows, i64 size, i64 pieces, T *mean, T *variance, C *exact)
{
    const i64 c = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (c >= size)
        return;
    const i64 share = (rows + pieces - 1) / pieces;
    C m = 0, s = 0, n = 0;
    for (i64 p = 0; p < pieces; p++) {
        const i64 begin = p * share, end = begin + share < rows ? begin + share : rows;
        if (end <= begin)
            break;
        const C own = (C)(end - begin), apart = partial[p * 2 * size + c] - m, part = own / (n + own);
        s += partial[(p * 2 + 1) * size + c] + apart * apart * n * part;
        m += apart * part;
        n += own;
    }
    exact[c] = m;
    exact[size + c] = s / (C)rows;
    mean[c] = narrow<T>(m);
    variance[c] = narrow<T>(s / (C)rows);
}
extern "C" __global__ void __launch_bounds__(THREADS)
batch_norm(const T *x, const T *scale, const T *offset, i64 count, i64 size, double epsilon, const C *exact, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const i64 c = remainder_of(i, size);
        y[i] = narrow<T>((widen(x[i]) - exact[c]) * (widen(scale[c]) / sqrt(exact[size + c] + (C)epsilon)) +
                         widen(offset[c]));
    }
}
extern "C" __global__ void __launch_bounds__(THREADS)
batch_norm_gradient(const T *x, const T *scale, const T *mean, const T *variance, const T *grad, i64 rows,
                    i64 size, double epsilon, const C *sums, T *dx)
{
    EACH_ELEMENT(i, rows * size)
    {
        const i64 c = remainder_of(i, size);
        const C r = 1 / sqrt(widen(variance[c]) + (C)epsilon), hat = (widen(x[i]) - widen(mean[c])) * r;
        dx[i] = narrow<T>(widen(scale[c]) * r *
                          (widen(grad[i]) - (sums[size + c] + hat * sums[c]) / (C)rows));
    }
}
