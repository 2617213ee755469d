// schedule.cu: a learning rate as a function of the count of updates, in f64, as nn/optimizers/schedules/
// has it; one thread.
//
// Options: KIND, the schedule's place in the table of schedule.c.
#include "common.cuh"

enum { COSINE, EXPONENTIAL, INVERSE, PIECEWISE, POLYNOMIAL, STEP, PIECES = 16 };
struct given {
    double n[2 * PIECES + 1];
    int count; // of boundaries
};

// Falls have lengths 1, t, t^2, ...: the largest number of them whose sum is not above the time gone.
__device__ double falls_before(double time, double t)
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
// Rate, steps, alpha, steps of the warm-up and its target, restarts, t, m.
__device__ double cosine(const double *n, double step)
{
    const double steps = n[3];
    const bool target = steps > 0 && n[4] != 0;
    const double low = target ? n[0] : 0, high = target ? n[4] : n[0];
    if (step < steps)
        return (high - low) * (step / steps) + low;
    double time = (step - steps) / n[1], height = 1;
    if (n[5] != 0) {
        const double before = falls_before(time, n[6]);
        height = pow(n[7], before);
        time = n[6] == 1 ? time - before : (time - (1 - pow(n[6], before)) / (1 - n[6])) / pow(n[6], before);
    }
    time = time < 1 ? time : 1;
    return high * ((1 - n[2]) * 0.5 * height * (1 + cos(3.14159265358979323846 * time)) + n[2]);
}
// Rate, steps, decay, staircase.
__device__ double decay(const double *n, double step)
{
    double time = step / n[1];
    time = n[3] != 0 ? floor(time) : time;
    return KIND == EXPONENTIAL ? n[0] * pow(n[2], time) : n[0] / (1 + n[2] * time);
}
__device__ double piecewise(const given &g, double step)
{
    int piece = 0;
    while (piece < g.count && step > g.n[piece])
        piece++;
    return g.n[PIECES + piece];
}
// Rate, steps, end, power, cycle.
__device__ double polynomial(const double *n, double step)
{
    double steps = n[1];
    if (n[4] != 0)
        steps *= step > 0 ? ceil(step / steps) : 1;
    return (n[0] - n[2]) * pow(1 - (step < steps ? step : steps) / steps, n[3]) + n[2];
}

extern "C" __global__ void schedule_rate(const given g, const i64 *updates, float *rate)
{
    const double step = *updates > 0 ? (double)(*updates - 1) : 0;
    const double y = KIND == COSINE                            ? cosine(g.n, step)
                     : KIND == EXPONENTIAL || KIND == INVERSE  ? decay(g.n, step)
                     : KIND == PIECEWISE                       ? piecewise(g, step)
                     : KIND == POLYNOMIAL                      ? polynomial(g.n, step)
                                                               : g.n[0] * pow(g.n[2], floor(step / g.n[1]));
    *rate = y >= 0 && y < INFINITY ? (float)y : __int_as_float(0x7fc00000);
}
