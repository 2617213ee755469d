// hold.cu: does nothing for so many nanoseconds, so that what is enqueued meanwhile runs without gaps.
// Options: none.
#include "common.cuh"

extern "C" __global__ void hold(u64 nanoseconds)
{
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}
