// schedule.cu: a schedule's rate at a count of updates, as nn/optimizers/schedules compute it on the host.
//
// Options: KIND: which of them.
#include "common.cuh"

#define EXPONENTIAL 0
#define INVERSE 1
#define COSINE 2
#define POLYNOMIAL 3
#define PIECEWISE 4
#define STEPS 5

struct numbers {
    double at[33];
};

// Of exponential and inverse decay: rate, steps, decay, staircase.
__device__ __forceinline__ double decay_time(const double *s, double step)
{
    const double time = step / s[1];
    return s[3] != 0 ? floor(time) : time;
}

// Falls have lengths 1, t, t^2, ...: how many are over.
__device__ __forceinline__ double falls_before(double time, double t)
{
    if (t == 1)
        return floor(time);
    double count = floor(log(1 - time * (1 - t)) / log(t));
    while (count > 0 && (1 - pow(t, count)) / (1 - t) > time)
        count--;
    while ((1 - pow(t, count + 1)) / (1 - t) <= time)
        count++;
    return count;
}

// Rate, steps, alpha, warm-up: steps and target, restarts, their lengths and heights.
__device__ __forceinline__ double cosine(const double *s, double step)
{
    double low = s[0], high = low, height = 1;
    const double warm = s[3], t = s[6];
    if (warm > 0 && s[4] != 0)
        high = s[4];
    else
        low = 0;
    if (step < warm)
        return (high - low) * (step / warm) + low;
    double time = (step - warm) / s[1];
    if (s[5] != 0) {
        const double before = falls_before(time, t);
        height = pow(s[7], before);
        time = t == 1 ? time - before : (time - (1 - pow(t, before)) / (1 - t)) / pow(t, before);
    }
    time = time < 1 ? time : 1;
    return high * ((1 - s[2]) * 0.5 * height * (1 + cos(3.14159265358979323846 * time)) + s[2]);
}

// Rate, steps, end, power, cycle.
__device__ __forceinline__ double polynomial(const double *s, double step)
{
    double steps = s[1];
    if (s[4] != 0)
        steps *= step > 0 ? ceil(step / steps) : 1;
    const double left = 1 - (step < steps ? step : steps) / steps;
    return (s[0] - s[2]) * pow(left, s[3]) + s[2];
}

// `pieces` boundaries, 16 at most, then values.
__device__ __forceinline__ double piecewise(const double *s, double step, int pieces)
{
    int piece = 0;
    while (piece < pieces && step > s[piece])
        piece++;
    return s[16 + piece];
}

extern "C" __global__ void schedule_at(const numbers n, int pieces, const i64 *updates, float *y)
{
    const double step = *updates > 0 ? (double)(*updates - 1) : 0;
    const double *s = n.at;
    const double rate = KIND == EXPONENTIAL  ? s[0] * pow(s[2], decay_time(s, step))
                        : KIND == INVERSE    ? s[0] / (1 + s[2] * decay_time(s, step))
                        : KIND == COSINE     ? cosine(s, step)
                        : KIND == POLYNOMIAL ? polynomial(s, step)
                        : KIND == PIECEWISE  ? piecewise(s, step, pieces)
                                             : s[0] * pow(s[2], floor(step / s[1]));
    *y = rate >= 0 && rate <= 1.7976931348623157e308 ? (float)rate : __int_as_float(0x7fc00000);
}
