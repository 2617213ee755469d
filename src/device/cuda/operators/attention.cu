// attention.cu: attention of any type, with any mask, and its gradients, the matrix of scores never in
// memory: a warp for each query (forward, dq) or key (dk, dv), 32 of the others at a time. Sums go in one
// order, so it is what deterministic mode takes.
//
//     s[i, j] = scale q[i] k[j] + mask[i, j],  l = log(sum(exp(s))),  y = sum over j of exp(s - l) v
//     p = exp(min(s - l, 0)),  ds = p (dy v' - sum(dy y) + dl)
//
// Few queries, as when a sequence is continued: attention_few, a block for each of them.
//
// Options: TYPE; LTYPE: of l.
#include "common.cuh"

enum { WARPS = 8, MOST = 8 }; // MOST * 32: features and values
struct attention_shape {
    i64 batch, heads, queries, keys, features, values;
    i64 mask_step[4];
    double scale;
    i64 causal, first_query;
};

__device__ __forceinline__ C warp_add(C x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}
__device__ __forceinline__ C warp_most(C x)
{
    for (int step = 16; step > 0; step /= 2) {
        const C y = __shfl_xor_sync(0xffffffff, x, step);
        x = x != x || x > y ? x : y;
    }
    return x;
}
__device__ __forceinline__ C dot(const T *a, const T *b, i64 n)
{
    C sum = 0;
    for (i64 c = 0; c < n; c++)
        sum += widen(a[c]) * widen(b[c]);
    return sum;
}
__device__ __forceinline__ i64 seen_by(const attention_shape &a, i64 query)
{
    if (!a.causal || query >= a.keys - 1 - a.first_query)
        return a.keys;
    return a.first_query + query + 1 < 0 ? 0 : a.first_query + query + 1;
}
// head counts heads over the batch.
__device__ __forceinline__ C score(const attention_shape &a, const T *q, const T *k, const T *mask, i64 head,
                                   i64 query, i64 key)
{
    const C s = (C)a.scale * dot(q + (head * a.queries + query) * a.features,
                                 k + (head * a.keys + key) * a.features, a.features);
    return mask ? s + widen(mask[head / a.heads * a.mask_step[0] + head % a.heads * a.mask_step[1] +
                                 query * a.mask_step[2] + key * a.mask_step[3]])
                : s;
}

extern "C" __global__ void __launch_bounds__(256)
attention(const T *q, const T *k, const T *v, const T *mask, const attention_shape a, T *y, LTYPE *l)
{
    const i64 row = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= a.batch * a.heads * a.queries)
        return;
    const i64 head = row / a.queries, query = row % a.queries, seen = seen_by(a, query);
    C top = -INFINITY, total = 0, sum[MOST];
#pragma unroll
    for (int e = 0; e < MOST; e++)
        sum[e] = 0;
    for (i64 first = 0; first < seen; first += 32) {
        const i64 j = first + lane;
        const C s = j < seen ? score(a, q, k, mask, head, query, j) : (C)-INFINITY;
        const C most = warp_most(s), next = top != top || top > most ? top : most;
        if (next == -INFINITY)
            continue;
        const C fade = exp(top - next), p = j < seen ? exp(s - next) : (C)0;
        total = total * fade + warp_add(p);
        top = next;
        const int here = (int)(seen - first < 32 ? seen - first : 32);
#pragma unroll
        for (int e = 0; e < MOST; e++)
            sum[e] *= fade;
        for (int t = 0; t < here; t++) {
            const C weight = __shfl_sync(0xffffffff, p, t);
            const T *from = v + (head * a.keys + first + t) * a.values;
            if (weight != 0)
#pragma unroll
                for (int e = 0; e < MOST; e++)
                    if (lane + e * 32 < a.values)
                        sum[e] += weight * widen(from[lane + e * 32]);
        }
    }
#pragma unroll
    for (int e = 0; e < MOST; e++)
        if (lane + e * 32 < a.values)
            y[row * a.values + lane + e * 32] = narrow<T>(total != 0 ? sum[e] / total : sum[e]);
    if (lane == 0)
        l[row] = narrow<LTYPE>(top + log(total));
}

// Each thread scores keys of its own, PER elements of a key at a time; then threads go over the values, PER
// columns each, rows side by side. Scores of all keys stay in shared memory: at most KEYS.
#ifdef PER
enum { KEYS = 8192 };
__device__ __forceinline__ C few_most(C x, C *parts)
{
    x = warp_most(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int w = 1; w < 8; w++)
        x = x != x || x > parts[w] ? x : parts[w];
    return x;
}
__device__ __forceinline__ C few_sum(C x, C *parts)
{
    x = warp_add(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < 8; w++)
        x += parts[w];
    return x;
}
extern "C" __global__ void __launch_bounds__(256)
attention_few(const T *q, const T *k, const T *v, const T *mask, const attention_shape a, T *y, LTYPE *l)
{
    __shared__ float p[KEYS];
    __shared__ C parts[8];
    __shared__ float query_of[MOST * 32], sums[256 * PER];
    const i64 row = blockIdx.x, head = row / a.queries, query = row % a.queries, seen = seen_by(a, query);
    const int features = (int)a.features, values = (int)a.values;
    const T *keys = k + head * a.keys * features, *from = v + head * a.keys * values;
    const T *own = mask ? mask + head / a.heads * a.mask_step[0] + head % a.heads * a.mask_step[1] +
                              query * a.mask_step[2]
                        : mask;
    C top = -INFINITY, total = 0;
    for (int c = threadIdx.x; c < features; c += 256)
        query_of[c] = (float)((C)a.scale * widen(q[row * features + c]));
    __syncthreads();
    for (i64 j = threadIdx.x; j < seen; j += 256) {
        C s = 0;
        const C more = own ? widen(own[j * a.mask_step[3]]) : (C)0;
        if (more != -INFINITY)
#pragma unroll 8
            for (int c = 0; c < features; c += PER) {
                const vec<T, PER> x = *(const vec<T, PER> *)(keys + j * features + c);
#pragma unroll
                for (int e = 0; e < PER; e++)
                    s += query_of[c + e] * widen(x.at[e]);
            }
        s += more;
        p[j] = s;
        top = s != s || s > top ? s : top;
    }
    top = few_most(top, parts);
    for (i64 j = threadIdx.x; j < seen; j += 256) {
        p[j] = top == -INFINITY ? 0.0f : exp(p[j] - top);
        total += p[j];
    }
    total = few_sum(total, parts);
    const int across = values / PER, sides = 256 / across; // threads for a row of values, rows side by side
    const int column = threadIdx.x % across * PER, side = threadIdx.x / across;
    float sum[PER] = {};
    if (side < sides)
#pragma unroll 4
        for (i64 j = side; j < seen; j += sides) {
            const float weight = p[j];
            if (weight == 0)
                continue;
            const vec<T, PER> x = *(const vec<T, PER> *)(from + j * values + column);
#pragma unroll
            for (int e = 0; e < PER; e++)
                sum[e] += weight * widen(x.at[e]);
        }
#pragma unroll
    for (int e = 0; e < PER; e++)
        sums[threadIdx.x * PER + e] = sum[e];
    __syncthreads();
    for (int c = threadIdx.x; c < values; c += 256) {
        float all = 0;
        for (int g = 0; g < sides; g++)
            all += sums[(g * across + c / PER) * PER + c % PER];
        y[row * values + c] = narrow<T>(total != 0 ? all / total : all);
    }
    if (threadIdx.x == 0)
        l[row] = narrow<LTYPE>(top + log(total));
}
#endif

// A query that sees nothing has l = -inf, and no part in anything.
struct backward {
    const T *q, *k, *v, *y, *dy, *mask; // dy, mask: or NULL
    const LTYPE *l, *dl;                // dl: or NULL
};
__device__ __forceinline__ void pair_of(const backward &b, const attention_shape &a, i64 head, i64 query, i64 key,
                                        const C *kept, C *p, C *ds)
{
    const i64 row = head * a.queries + query;
    const C s = score(a, b.q, b.k, b.mask, head, query, key), below = s - kept[2 * row];
    *p = kept[2 * row] == -INFINITY ? (C)0 : exp(below < 0 || below != below ? below : (C)0);
    const C by = b.dy ? dot(b.dy + row * a.values, b.v + (head * a.keys + key) * a.values, a.values) : (C)0;
    *ds = *p == 0 ? (C)0 : *p * (by + kept[2 * row + 1]);
}

// dq, and kept [rows][2]: l, where it is coarse summed again, and dl - sum(dy y). dq NULL: only kept.
extern "C" __global__ void __launch_bounds__(256)
attention_queries(const backward b, const attention_shape a, C *kept, T *dq)
{
    const i64 row = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= a.batch * a.heads * a.queries)
        return;
    const i64 head = row / a.queries, query = row % a.queries, seen = seen_by(a, query);
    C l = widen(b.l[row]), rest = 0;
    if (fabs(l) > 64 && fabs(l) < INFINITY) {
        C top = -INFINITY, total = 0;
        for (i64 j = lane; j < seen; j += 32) {
            const C s = score(a, b.q, b.k, b.mask, head, query, j);
            top = s != s || s > top ? s : top;
        }
        top = warp_most(top);
        for (i64 j = lane; j < seen; j += 32)
            total += exp(score(a, b.q, b.k, b.mask, head, query, j) - top);
        l = top + log(warp_add(total));
    }
    for (i64 c = lane; c < a.values && b.dy; c += 32)
        rest -= widen(b.dy[row * a.values + c]) * widen(b.y[row * a.values + c]);
    rest = warp_add(rest) + (b.dl ? widen(b.dl[row]) : (C)0);
    if (lane == 0) {
        kept[2 * row] = l;
        kept[2 * row + 1] = rest;
    }
    __syncwarp();
    if (!dq)
        return;
    C sum[MOST];
#pragma unroll
    for (int e = 0; e < MOST; e++)
        sum[e] = 0;
    for (i64 first = 0; first < seen; first += 32) {
        const i64 j = first + lane;
        C p = 0, ds = 0;
        if (j < seen)
            pair_of(b, a, head, query, j, kept, &p, &ds);
        const int here = (int)(seen - first < 32 ? seen - first : 32);
        for (int t = 0; t < here; t++) {
            const C weight = __shfl_sync(0xffffffff, ds, t);
            const T *from = b.k + (head * a.keys + first + t) * a.features;
#pragma unroll
            for (int e = 0; e < MOST; e++)
                if (lane + e * 32 < a.features)
                    sum[e] += weight * widen(from[lane + e * 32]);
        }
    }
#pragma unroll
    for (int e = 0; e < MOST; e++)
        if (lane + e * 32 < a.features)
            dq[row * a.features + lane + e * 32] = narrow<T>((C)a.scale * sum[e]);
}

extern "C" __global__ void __launch_bounds__(256)
attention_keys(const backward b, const attention_shape a, const C *kept, T *dk, T *dv)
{
    const i64 row = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= a.batch * a.heads * a.keys)
        return;
    const i64 head = row / a.keys, key = row % a.keys;
    C by_k[MOST], by_v[MOST];
#pragma unroll
    for (int e = 0; e < MOST; e++)
        by_k[e] = by_v[e] = 0;
    for (i64 first = 0; first < a.queries; first += 32) {
        const i64 i = first + lane;
        C p = 0, ds = 0;
        if (i < a.queries && key < seen_by(a, i))
            pair_of(b, a, head, i, key, kept, &p, &ds);
        const int here = (int)(a.queries - first < 32 ? a.queries - first : 32);
        for (int t = 0; t < here; t++) {
            const C weight = __shfl_sync(0xffffffff, p, t), slope = __shfl_sync(0xffffffff, ds, t);
            const i64 at = head * a.queries + first + t;
#pragma unroll
            for (int e = 0; e < MOST; e++) {
                if (lane + e * 32 < a.features && slope != 0)
                    by_k[e] += slope * widen(b.q[at * a.features + lane + e * 32]);
                if (lane + e * 32 < a.values && b.dy && weight != 0)
                    by_v[e] += weight * widen(b.dy[at * a.values + lane + e * 32]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < MOST; e++) {
        if (lane + e * 32 < a.features)
            dk[row * a.features + lane + e * 32] = narrow<T>((C)a.scale * by_k[e]);
        if (lane + e * 32 < a.values)
            dv[row * a.values + lane + e * 32] = narrow<T>(by_v[e]);
    }
}

// A warp for each element of the mask; own: its sizes along batch, heads, queries, keys.
struct mask_sizes {
    i64 own[4];
};
extern "C" __global__ void __launch_bounds__(256)
attention_mask(const backward b, const attention_shape a, const mask_sizes m, const C *kept, i64 count, T *dmask)
{
    const i64 at = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (at >= count)
        return;
    const i64 all[4] = {a.batch, a.heads, a.queries, a.keys};
    i64 rest = at, place[4], repeats[4], pairs = 1;
    for (int d = 3; d >= 0; d--) {
        place[d] = rest % m.own[d];
        rest /= m.own[d];
        repeats[d] = m.own[d] == all[d] ? 1 : all[d];
        pairs *= repeats[d];
    }
    C sum = 0;
    for (i64 r = threadIdx.x % 32; r < pairs; r += 32) {
        i64 left = r, own[4];
        for (int d = 3; d >= 0; d--) {
            own[d] = place[d] + left % repeats[d];
            left /= repeats[d];
        }
        C p, ds;
        if (own[3] >= seen_by(a, own[2]))
            continue;
        pair_of(b, a, own[0] * a.heads + own[1], own[2], own[3], kept, &p, &ds);
        sum += ds;
    }
    sum = warp_add(sum);
    if (threadIdx.x % 32 == 0)
        dmask[at] = narrow<T>(sum);
}
