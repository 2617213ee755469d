// sort.cu: a stable sort of 32-bit keys with their values by 8 bits at a time (least first): count
// the digits of each tile, add up over digits and tiles, move. No atomics on what is ordered. Keys
// above `most` count as `most`.
#include "common.cuh"

enum { THREADS = 256, EACH = 8, TILE = THREADS * EACH, DIGITS = 256, WARPS = THREADS / 32 };

__device__ __forceinline__ u32 digit_of(u32 key, int shift) { return key >> shift & (DIGITS - 1); }

// counts [DIGITS][tiles]
extern "C" __global__ void __launch_bounds__(THREADS)
sort_count(const u32 *keys, i64 count, u32 most, int shift, u32 *counts)
{
    __shared__ u32 local[DIGITS];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int e = 0; e < EACH; e++) {
        const i64 i = (i64)blockIdx.x * TILE + e * THREADS + threadIdx.x;
        if (i < count)
            atomicAdd(&local[digit_of(min(keys[i], most), shift)], 1u); // a count: the order has no say
    }
    __syncthreads();
    counts[(i64)threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

// Exclusive sums over `total` counts, by one block.
extern "C" __global__ void __launch_bounds__(1024) sort_scan(u32 *counts, i64 total)
{
    __shared__ u32 sums[32];
    __shared__ u32 carry;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        carry = 0;
    for (i64 begin = 0; begin < total; begin += 1024) {
        const i64 i = begin + threadIdx.x;
        const u32 own = i < total ? counts[i] : 0;
        u32 x = own;
        for (int step = 1; step < 32; step *= 2) {
            const u32 y = __shfl_up_sync(0xffffffff, x, step);
            x += lane >= step ? y : 0;
        }
        __syncthreads();
        if (lane == 31)
            sums[warp] = x;
        __syncthreads();
        u32 s = sums[lane];
        for (int step = 1; step < 32; step *= 2) {
            const u32 y = __shfl_up_sync(0xffffffff, s, step);
            s += lane >= step ? y : 0;
        }
        const u32 before = carry + (warp > 0 ? __shfl_sync(0xffffffff, s, warp - 1) : 0);
        if (i < total)
            counts[i] = before + x - own;
        const u32 all = __shfl_sync(0xffffffff, s, 31);
        __syncthreads();
        if (threadIdx.x == 0)
            carry += all;
        __syncthreads();
    }
}

// A thread's keys follow each other warp by warp: warp w has [w * 32 * EACH, (w + 1) * 32 * EACH) of
// the tile, so that ranks are (digit, warp, turn, lane), the order of positions. values NULL: 0, 1, ...
extern "C" __global__ void __launch_bounds__(THREADS)
sort_move(const u32 *keys, const u32 *values, i64 count, u32 most, int shift, const u32 *starts,
          u32 *ret_keys, u32 *ret_values)
{
    __shared__ u32 local[WARPS][DIGITS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = lane; d < DIGITS; d += 32)
        local[warp][d] = 0;
    __syncwarp();
    u32 key[EACH], rank[EACH];
    const i64 first = (i64)blockIdx.x * TILE + warp * 32 * EACH + lane;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const i64 i = first + e * 32;
        key[e] = i < count ? min(keys[i], most) : most;
        const u32 d = i < count ? digit_of(key[e], shift) : DIGITS;
        const u32 alike = __match_any_sync(0xffffffff, d);
        const u32 below = __popc(alike & ((1u << lane) - 1));
        rank[e] = d < DIGITS ? local[warp][d] + below : 0;
        __syncwarp();
        if (d < DIGITS && below == 0)
            local[warp][d] += __popc(alike);
        __syncwarp();
    }
    __syncthreads();
    u32 before = starts[(i64)threadIdx.x * gridDim.x + blockIdx.x];
    for (int w = 0; w < WARPS; w++) {
        const u32 own = local[w][threadIdx.x];
        local[w][threadIdx.x] = before;
        before += own;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const i64 i = first + e * 32;
        if (i < count) {
            const u32 to = local[warp][digit_of(key[e], shift)] + rank[e];
            ret_keys[to] = key[e];
            ret_values[to] = values ? values[i] : (u32)i;
        }
    }
}
