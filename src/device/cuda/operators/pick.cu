// pick.cu: elements taken by number, and elements that follow from their own place.
//
// Options: TYPE; INDEX: i32 or i64, of indices, or NUMBERS: 1 for integers, 0 for floats, or neither;
// WIDE for TYPE=sixteen.
#ifdef WIDE // 16 bytes
struct __attribute__((aligned(16))) sixteen {
    unsigned long long half[2];
};
#endif
#include "common.cuh"
#ifdef INDEX

// An index in [0, size); else the first place of a bad one is noted, and 0 taken.
__device__ __forceinline__ i64 index_at(const INDEX *indices, i64 i, i64 size, u64 *fault)
{
    const i64 at = indices[i];
    if (at >= 0 && at < size)
        return at;
    fail_at(fault, i);
    return 0;
}

// y[o][j][k] = x[o][indices[j]][k], `inner` elements k of TYPE.
extern "C" __global__ void __launch_bounds__(256)
gather(const T *x, const INDEX *indices, i64 outer, i64 size, i64 inner, i64 number, T *y, u64 *fault)
{
    EACH_ELEMENT(i, outer * number * inner)
    {
        const i64 row = quotient(i, inner), o = quotient(row, number), j = row - o * number;
        const i64 at = index_at(indices, j, size, fault);
        y[i] = size > 0 ? x[(o * size + at) * inner + (i - row * inner)] : T{};
    }
}

// y[j][k] = x[indices[j][0], .., indices[j][columns - 1]][k]; s: the first axes of x, with strides.
extern "C" __global__ void __launch_bounds__(256)
gather_nd(const T *x, const INDEX *indices, i64 rows, int columns, i64 inner, const shape s,
          const places p, T *y, u64 *fault)
{
    EACH_ELEMENT(i, rows * inner)
    {
        const i64 row = quotient(i, inner);
        i64 at = 0;
        for (int c = 0; c < columns; c++)
            at += index_at(indices, row * columns + c, s.dim[c], fault) * p.stride[c];
        y[i] = x[at + (i - row * inner)];
    }
}

// y[i] = x[place(i) + indices[i] stride]; s: the shape of the indices.
extern "C" __global__ void __launch_bounds__(256)
take_along(const T *x, const INDEX *indices, i64 count, const shape s, const places p, i64 size,
           i64 stride, T *y, u64 *fault)
{
    EACH_ELEMENT(i, count)
        y[i] = x[place(s, p, i) + index_at(indices, i, size, fault) * stride];
}

// y[i][j] = j == indices[i] ? on : off
extern "C" __global__ void __launch_bounds__(256)
one_hot(const INDEX *indices, i64 count, i64 depth, T on, T off, T *y)
{
    EACH_ELEMENT(i, count * depth)
        y[i] = (i64)indices[quotient(i, depth)] == remainder_of(i, depth) ? on : off;
}
#else
enum { CONSTANT, REFLECT, EDGE };
struct padding {
    i64 before[MOST_RANK];
};
__device__ __forceinline__ i64 pad_source(int mode, i64 at, i64 before, i64 size)
{
    const i64 i = at - before;
    if (i >= 0 && i < size)
        return i;
    return mode == CONSTANT ? -1 : mode == EDGE ? (i < 0 ? 0 : size - 1) : i < 0 ? -i : 2 * (size - 1) - i;
}

#ifdef NUMBERS // of T

// y[i] = start + i delta
extern "C" __global__ void __launch_bounds__(256)
range(double start, double delta, i64 count, T *y)
{
    EACH_ELEMENT(i, count)
        y[i] = NUMBERS ? narrow<T>((i64)start + i * (i64)delta)
                       : narrow<T>(i == 0 ? start : __dadd_rn(start, __dmul_rn((double)i, delta)));
}

// Places along an axis that padding makes of element i: up to three ranges.
struct spans {
    i64 begin[3], end[3];
    int count;
};
__device__ __forceinline__ spans spans_of(int mode, i64 i, i64 before, i64 size, i64 padded)
{
    const i64 own = before + i, behind = own + 2 * (size - 1 - i);
    spans found = {{own}, {own + 1}, 1};
    if (mode == EDGE) {
        found.begin[0] = i == 0 ? 0 : own;
        found.end[0] = i == size - 1 ? padded : own + 1;
    }
    if (mode == REFLECT && i > 0 && own - 2 * i >= 0) {
        found.begin[found.count] = own - 2 * i;
        found.end[found.count++] = own - 2 * i + 1;
    }
    if (mode == REFLECT && i < size - 1 && behind < padded) {
        found.begin[found.count] = behind;
        found.end[found.count++] = behind + 1;
    }
    return found;
}

// y[i] = sum of the places of x (the padded one, shape s) that stand for element i (shape own).
extern "C" __global__ void __launch_bounds__(128)
pad_grad(const T *x, i64 count, const shape s, const shape own, const padding p, int mode, T *y)
{
    EACH_ELEMENT(i, count)
    {
        spans span[MOST_RANK];
        i64 at[MOST_RANK], stride[MOST_RANK], rest = i, step = 1;
        int part[MOST_RANK];
        const int rank = (int)s.rank;
        for (int d = rank - 1; d >= 0; d--) {
            span[d] = spans_of(mode, rest % own.dim[d], p.before[d], own.dim[d], s.dim[d]);
            rest /= own.dim[d];
            stride[d] = step;
            step *= s.dim[d];
            part[d] = 0;
            at[d] = span[d].begin[0];
        }
        C sum = 0;
        for (bool more = true; more;) {
            i64 from = 0;
            for (int d = 0; d < rank; d++)
                from += at[d] * stride[d];
            sum += widen(x[from]);
            more = false;
            for (int d = rank - 1; d >= 0 && !more; d--) {
                more = ++at[d] < span[d].end[part[d]];
                if (!more && part[d] + 1 < span[d].count) {
                    at[d] = span[d].begin[++part[d]];
                    more = true;
                }
                if (!more)
                    at[d] = span[d].begin[part[d] = 0];
            }
        }
        y[i] = narrow<T>(sum);
    }
}

#else // of any type of the size

// s: of y; from: x's shape.
extern "C" __global__ void __launch_bounds__(256)
pad(const T *x, i64 count, const shape s, const shape from, const padding p, int mode, T value, T *y)
{
    EACH_ELEMENT(i, count)
    {
        i64 rest = i, at = 0, step = 1;
        bool inside = true;
        for (int d = (int)s.rank - 1; d >= 0; d--) {
            const i64 next = rest / s.dim[d];
            const i64 source = pad_source(mode, rest - next * s.dim[d], p.before[d], from.dim[d]);
            inside &= source >= 0;
            at += source * step;
            step *= from.dim[d];
            rest = next;
        }
        y[i] = inside ? x[at] : value;
    }
}

// Above (upper) or below a diagonal of matrices; 0 elsewhere.
extern "C" __global__ void __launch_bounds__(256)
trilu(const T *x, i64 count, i64 rows, i64 columns, int upper, i64 offset, T *y)
{
    EACH_ELEMENT(i, count)
    {
        const i64 row = quotient(i, columns), j = i - row * columns, border = remainder_of(row, rows) + offset;
        y[i] = (upper ? j >= border : j <= border) ? x[i] : T{};
    }
}
#endif
#endif
