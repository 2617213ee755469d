// update.cu: optimizers: what elements of variables and their slots become under a gradient; the rules
// of ops/update/*_update.c. Rate, step, scale and whether to update at all are read on the device, so
// a captured step can be replayed. Several variables are updated by one launch.
//
// Options: RULE, see below; TYPE of variable and slots; GRADIENT; SLOTS.
#include "common.cuh"

enum { SGD, ADAM, ADAGRAD, ADADELTA, RMSPROP, ADAMAX, NADAM, LAMB, EMA, LARS, LION };
enum { CHUNK = 4096, THREADS = 256, VARIABLES = 32, NUMBERS = 12, KEEP = 0, SCALE = 12, SKIP = 13 };

// Attributes by place: see update.c.
struct given {
    double a[6], decay, clip;
    const float *rate; // or NULL, as all of these
    const i64 *step;
    const float *scale;
    const bool *apply;
};

// numbers [14]
extern "C" __global__ void update_numbers(const given in, double *n)
{
    const double rate = in.rate ? (double)*in.rate : 0.0;
    const double step = in.step && *in.step > 1 ? (double)*in.step : 1.0;
    const double *a = in.a;
    for (int i = 0; i < NUMBERS; i++)
        n[i] = 0;
    n[KEEP] = 1 - rate * in.decay;
    n[SCALE] = in.scale ? (double)*in.scale : 1.0;
    n[SKIP] = in.apply && !*in.apply;
    switch (RULE) {
    case SGD: { // momentum, nesterov, torch
        const double inner = a[2] != 0 ? 1 : -rate;
        n[1] = rate;
        n[2] = a[0];
        n[3] = inner;
        n[4] = a[2] != 0 ? -rate : 1;
        n[5] = a[1] != 0 ? a[0] : 1;
        n[6] = a[1] != 0 ? inner : 0;
        break;
    }
    case ADAM: { // beta1, beta2, epsilon, amsgrad, torch
        const double one = 1 - pow(a[0], step), two = 1 - pow(a[1], step);
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[3] = a[1];
        n[4] = 1 - a[1];
        n[5] = a[2];
        n[6] = rate / one * (a[4] != 0 ? 1 : sqrt(two));
        n[7] = a[4] != 0 ? 1 / two : 1;
        n[8] = a[3];
        break;
    }
    case ADAGRAD: // epsilon, torch
        n[1] = rate;
        n[a[1] != 0 ? 3 : 2] = a[0];
        break;
    case ADADELTA: // rho, epsilon
        n[1] = rate;
        n[2] = a[0];
        n[3] = 1 - a[0];
        n[4] = a[1];
        break;
    case RMSPROP: // rho, epsilon, momentum, centered, torch
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[a[4] != 0 ? 4 : 3] = a[1];
        n[5] = a[2];
        n[6] = a[3];
        n[7] = a[4] != 0 ? 1 : rate;
        n[8] = a[4] != 0 ? rate : 1;
        break;
    case ADAMAX: // beta1, beta2, epsilon, torch
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[3] = a[1];
        n[a[3] != 0 ? 4 : 5] = a[2];
        n[6] = rate / (1 - pow(a[0], step));
        break;
    case NADAM: { // beta1, beta2, epsilon, momentum_decay
        const double now = a[0] * (1 - 0.5 * pow(0.96, step * a[3]));
        const double next = a[0] * (1 - 0.5 * pow(0.96, (step + 1) * a[3]));
        const double factor = pow(0.96, a[3]);
        double all = 1, power = 1;
        for (double t = 1; t <= step && all > 1e-18; t++) {
            power *= factor;
            all *= a[0] * (1 - 0.5 * power);
        }
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[3] = a[1];
        n[4] = 1 - a[1];
        n[5] = a[2];
        n[6] = rate * next / (1 - all * next);
        n[7] = rate * (1 - now) / (1 - all);
        n[8] = 1 / (1 - pow(a[1], step));
        break;
    }
    case LAMB: // beta1, beta2, epsilon
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[3] = a[1];
        n[4] = 1 - a[1];
        n[5] = a[2];
        n[6] = rate;
        n[7] = 1 / (1 - pow(a[0], step));
        n[8] = 1 / (1 - pow(a[1], step));
        break;
    case EMA: // decay
        n[1] = step > 1 ? a[0] : 0;
        n[2] = 1 - n[1];
        break;
    case LARS: // momentum, nesterov, trust, epsilon
        n[KEEP] = 1;
        n[1] = rate;
        n[2] = a[0];
        n[3] = a[1];
        n[4] = in.decay;
        n[5] = a[2];
        n[6] = a[3];
        break;
    case LION: // beta1, beta2
        n[1] = a[0];
        n[2] = 1 - a[0];
        n[3] = a[1];
        n[4] = 1 - a[1];
        n[5] = rate;
        break;
    }
}

__device__ __forceinline__ C direction(const C *n, C mean, C square)
{
    return mean * n[7] / (sqrt(square * n[8]) + n[5]);
}

__device__ __forceinline__ void element(const C *n, C g, C *x)
{
    switch (RULE) {
    case SGD:
        if (SLOTS == 0) {
            x[0] -= n[1] * g;
            break;
        }
        x[1] = n[2] * x[1] + n[3] * g;
        x[0] += n[4] * (n[5] * x[1] + n[6] * g);
        break;
    case ADAM: {
        x[1] = n[1] * x[1] + n[2] * g;
        x[2] = n[3] * x[2] + n[4] * g * g;
        C second = x[2];
        if (SLOTS == 3)
            second = x[3] = x[3] > x[2] ? x[3] : x[2];
        x[0] -= n[6] * x[1] / (sqrt(second * n[7]) + n[5]);
        break;
    }
    case ADAGRAD:
        x[1] += g * g;
        x[0] -= n[1] * g / (sqrt(x[1] + n[2]) + n[3]);
        break;
    case ADADELTA: {
        x[1] = n[2] * x[1] + n[3] * g * g;
        const C step = g * sqrt((x[2] + n[4]) / (x[1] + n[4]));
        x[2] = n[2] * x[2] + n[3] * step * step;
        x[0] -= n[1] * step;
        break;
    }
    case RMSPROP: {
        C spread = x[1] = n[1] * x[1] + n[2] * g * g;
        const bool centered = n[6] != 0;
        if (SLOTS > 1 && centered) {
            x[2] = n[1] * x[2] + n[2] * g;
            spread -= x[2] * x[2];
            spread = spread < 0 ? (C)0 : spread;
        }
        C step = n[7] * g / (sqrt(spread + n[3]) + n[4]);
        if (SLOTS == 3)
            step = x[3] = n[5] * x[3] + step;
        else if (SLOTS == 2 && !centered)
            step = x[2] = n[5] * x[2] + step;
        x[0] -= n[8] * step;
        break;
    }
    case ADAMAX: {
        const C size = fabs(g) + n[4], faded = n[3] * x[2];
        x[1] = n[1] * x[1] + n[2] * g;
        x[2] = faded > size ? faded : size;
        x[0] -= n[6] * x[1] / (x[2] + n[5]);
        break;
    }
    case NADAM:
        x[1] = n[1] * x[1] + n[2] * g;
        x[2] = n[3] * x[2] + n[4] * g * g;
        x[0] -= (n[6] * x[1] + n[7] * g) / (sqrt(x[2] * n[8]) + n[5]);
        break;
    case LAMB:
        x[1] = n[1] * x[1] + n[2] * g;
        x[2] = n[3] * x[2] + n[4] * g * g;
        x[0] -= n[6] * direction(n, x[1], x[2]);
        break;
    case EMA:
        x[0] = n[1] * x[0] + n[2] * g;
        break;
    case LARS: {
        const C step = n[1] * (g + n[4] * x[0]);
        x[1] = n[2] * x[1] + step;
        x[0] -= n[3] != 0 ? n[2] * x[1] + step : x[1];
        break;
    }
    case LION: {
        const C mean = n[1] * x[1] + n[2] * g;
        x[0] -= n[5] * (mean > 0 ? (C)1 : mean < 0 ? (C)-1 : mean);
        x[1] = n[3] * x[1] + n[4] * g;
        break;
    }
    }
}

__device__ __forceinline__ C gradient_at(const C *n, double clip, GRADIENT given)
{
    const C most = (C)clip, g = (C)widen(given) * n[SCALE];
    return clip > 0 && g > most ? most : clip > 0 && g < -most ? -most : g;
}

struct variables {
    T *x[VARIABLES][4]; // the variable, then its slots
    const GRADIENT *g[VARIABLES];
    T *y[VARIABLES]; // the variable's value once more, or NULL
    i64 count[VARIABLES];
    u32 first[VARIABLES]; // block of each
    int number;
};
enum { N = sizeof(T) == 8 ? 2 : 4 };

extern "C" __global__ void __launch_bounds__(THREADS)
update(const variables all, double clip, const double *numbers)
{
    C n[14];
#pragma unroll
    for (int i = 0; i < 14; i++)
        n[i] = (C)numbers[i];
    int low = 0, high = all.number - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (all.first[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const i64 begin = (i64)(blockIdx.x - all.first[low]) * CHUNK;
    const i64 end = begin + CHUNK < all.count[low] ? begin + CHUNK : all.count[low];
    const bool skip = n[SKIP] != 0;
    T *y = all.y[low];
    if (skip && !y)
        return;
#pragma unroll
    for (int turn = 0; turn < CHUNK / THREADS / N; turn++) {
        const i64 i = begin + (turn * THREADS + threadIdx.x) * N;
        if (i >= end)
            break;
        const bool whole = i + N <= end;
        vec<T, N> v[SLOTS + 1];
        vec<GRADIENT, N> g;
        if (whole) {
#pragma unroll
            for (int s = 0; s <= SLOTS; s++)
                v[s] = *(const vec<T, N> *)(all.x[low][s] + i);
            g = *(const vec<GRADIENT, N> *)(all.g[low] + i);
        } else {
            for (int k = 0; k < N && i + k < end; k++) {
                for (int s = 0; s <= SLOTS; s++)
                    v[s].at[k] = all.x[low][s][i + k];
                g.at[k] = all.g[low][i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            C x[4];
#pragma unroll
            for (int s = 0; s <= SLOTS; s++)
                x[s] = widen(v[s].at[k]);
            x[0] *= n[KEEP];
            element(n, gradient_at(n, clip, g.at[k]), x);
            if (!skip)
#pragma unroll
                for (int s = 0; s <= SLOTS; s++)
                    v[s].at[k] = narrow<T>(x[s]);
        }
        if (whole) {
#pragma unroll
            for (int s = 0; s <= SLOTS; s++)
                *(vec<T, N> *)(all.x[low][s] + i) = v[s];
            if (y)
                *(vec<T, N> *)(y + i) = v[0];
        } else {
            for (int k = 0; k < N && i + k < end; k++) {
                for (int s = 0; s <= SLOTS; s++)
                    all.x[low][s][i + k] = v[s].at[k];
                if (y)
                    y[i + k] = v[0].at[k];
            }
        }
    }
}

struct rows_of {
    T *x[4];
};
// The rows that sorted keys name, each once; combined [i][length]: the sum of a row's gradients, at the
// first update i that names it.
extern "C" __global__ void __launch_bounds__(256)
update_rows(const rows_of v, const GRADIENT *combined, const u32 *keys, const u32 *positions, i64 count,
            i64 length, u32 rows, double clip, const double *numbers)
{
    C n[14];
#pragma unroll
    for (int i = 0; i < 14; i++)
        n[i] = (C)numbers[i];
    if (n[SKIP] != 0)
        return;
    EACH_ELEMENT(at, count * length)
    {
        const i64 j = quotient(at, length), column = at - j * length;
        if (keys[j] >= rows || (j > 0 && keys[j - 1] == keys[j]))
            continue;
        const i64 i = (i64)keys[j] * length + column;
        C x[4];
        for (int s = 0; s <= SLOTS; s++)
            x[s] = widen(v.x[s][i]);
        x[0] *= n[KEEP];
        element(n, gradient_at(n, clip, combined[(i64)positions[j] * length + column]), x);
        for (int s = 0; s <= SLOTS; s++)
            v.x[s][i] = narrow<T>(x[s]);
    }
}

// partial [blocks][2]: squares of the variable and of what is measured beside it.
extern "C" __global__ void __launch_bounds__(256)
update_measure(const rows_of v, const GRADIENT *g, i64 count, double clip, const double *numbers,
               double *partial)
{
    __shared__ double parts[2][8];
    C n[14];
    for (int i = 0; i < 14; i++)
        n[i] = (C)numbers[i];
    double one = 0, two = 0;
    const i64 begin = (i64)blockIdx.x * CHUNK, end = begin + CHUNK < count ? begin + CHUNK : count;
    for (i64 i = begin + threadIdx.x; i < end; i += 256) {
        C x[4];
        for (int s = 0; s <= SLOTS; s++)
            x[s] = widen(v.x[s][i]);
        x[0] *= n[KEEP];
        const C d = gradient_at(n, clip, g[i]);
        const C y = RULE == LAMB ? direction(n, n[1] * x[1] + n[2] * d, n[3] * x[2 % (SLOTS + 1)] + n[4] * d * d)
                                 : d;
        one += (double)x[0] * x[0];
        two += (double)y * y;
    }
    for (int step = 16; step > 0; step /= 2) {
        one += __shfl_down_sync(0xffffffff, one, step);
        two += __shfl_down_sync(0xffffffff, two, step);
    }
    if (threadIdx.x % 32 == 0) {
        parts[0][threadIdx.x / 32] = one;
        parts[1][threadIdx.x / 32] = two;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        double sum = 0;
        for (int w = 0; w < 8; w++)
            sum += parts[threadIdx.x][w];
        partial[blockIdx.x * 2 + threadIdx.x] = sum;
    }
}

extern "C" __global__ void update_trust(const double *partial, i64 blocks, double *n)
{
    double one = 0, two = 0;
    for (i64 b = 0; b < blocks; b++) {
        one += partial[2 * b];
        two += partial[2 * b + 1];
    }
    one = sqrt(one);
    two = sqrt(two);
    if (RULE == LAMB && one > 0 && two > 0)
        n[6] *= one / two;
    const double below = two + n[4] * one + n[6];
    if (RULE == LARS && one > 0 && two > 0)
        n[1] *= n[5] * one / below;
}
