// elementwise.cuh: op_NAME for each element-wise operator NAME, of one element: operands, then the
// operator's numbers in the order of its attributes, then, where it may fail, `bad`, which turns true
// on a bad value. F is float or double; integers and bools are i64, and wrap. What has no function
// here has no kernel: chain.c looks for the name.
#define OP template <class F> __device__ __forceinline__
#define OP_INT __device__ __forceinline__

OP_INT i64 wrap_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
OP_INT i64 wrap_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
OP_INT i64 wrap_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }

// Arithmetic.
OP F op_add(F a, F b) { return a + b; }
OP_INT i64 op_add(i64 a, i64 b) { return wrap_add(a, b); }
OP F op_sub(F a, F b) { return a - b; }
OP_INT i64 op_sub(i64 a, i64 b) { return wrap_sub(a, b); }
OP F op_mul(F a, F b) { return a * b; }
OP_INT i64 op_mul(i64 a, i64 b) { return wrap_mul(a, b); }
OP F op_div(F a, F b) { return a / b; }
OP F op_neg(F x) { return -x; }
OP_INT i64 op_neg(i64 x) { return wrap_sub(0, x); }
OP F op_abs(F x) { return fabs(x); }
OP_INT i64 op_abs(i64 x) { return x < 0 ? wrap_sub(0, x) : x; }
OP F op_square(F x) { return x * x; }
OP_INT i64 op_square(i64 x) { return wrap_mul(x, x); }
OP F op_reciprocal(F x) { return (F)1 / x; }
OP F op_sign(F x) { return x != x ? x : (F)((x > 0) - (x < 0)); }
OP_INT i64 op_sign(i64 x) { return (x > 0) - (x < 0); }
OP F op_maximum(F a, F b) { return a != a || a > b || (a == b && !signbit(a)) ? a : b; }
OP_INT i64 op_maximum(i64 a, i64 b) { return a >= b ? a : b; }
OP F op_minimum(F a, F b) { return a != a || a < b || (a == b && signbit(a)) ? a : b; }
OP_INT i64 op_minimum(i64 a, i64 b) { return a <= b ? a : b; }
OP F op_floordiv(F a, F b, bool &)
{
    const F rest = fmod(a, b);
    if (b == 0)
        return a / b;
    F quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysign((F)0, a / b) : nearbyint(quotient);
}
OP_INT i64 op_floordiv(i64 a, i64 b, bool &bad)
{
    bad |= b == 0;
    if (b == 0)
        return 0;
    if (b == -1)
        return wrap_sub(0, a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
OP F op_mod(F a, F b, bool &)
{
    F rest = fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    return rest == 0 ? copysign((F)0, b) : rest;
}
OP_INT i64 op_mod(i64 a, i64 b, bool &bad)
{
    bad |= b == 0;
    if (b == 0 || b == -1)
        return 0;
    const i64 rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
OP F op_pow(F a, F b, bool &) { return pow(a, b); }
OP_INT i64 op_pow(i64 a, i64 b, bool &bad)
{
    i64 result = 1;
    bad |= b < 0;
    for (u64 bits = b < 0 ? 0 : (u64)b; bits != 0; bits >>= 1) {
        if (bits & 1)
            result = wrap_mul(result, a);
        a = wrap_mul(a, a);
    }
    return result;
}
OP F op_clip(F x, double low, double high)
{
    return x <= (F)low ? (F)low : x > (F)high ? (F)high : x;
}
OP_INT i64 op_clip(i64 x, double low, double high)
{
    const double l = ceil(low), h = floor(high);
    const i64 a = l >= 0x1p63 ? 0x7fffffffffffffffll : l <= -0x1p63 ? -0x7fffffffffffffffll - 1 : (i64)l;
    const i64 b = h >= 0x1p63 ? 0x7fffffffffffffffll : h <= -0x1p63 ? -0x7fffffffffffffffll - 1 : (i64)h;
    return x < a ? a : x > b ? b : x;
}
OP F op_ceil(F x) { return ceil(x); }
OP F op_floor(F x) { return floor(x); }
OP F op_round(F x) { return nearbyint(x); }
OP_INT i64 op_bitwise_and(i64 a, i64 b) { return a & b; }
OP_INT i64 op_bitwise_or(i64 a, i64 b) { return a | b; }
OP_INT i64 op_bitwise_xor(i64 a, i64 b) { return a ^ b; }

// Functions.
// With COARSE (all values round to bf16) by the chip's exponential and quotient, to 1e-6 of 1.
__device__ __forceinline__ double hyperbolic(double x) { return tanh(x); }
__device__ __forceinline__ float hyperbolic(float x)
{
#ifdef COARSE
    return fabsf(x) < 0.02f ? x - x * x * x * (1.0f / 3) : 1 - 2 / (exp(2 * x) + 1);
#else
    return tanh(x);
#endif
}
OP F op_exp(F x) { return exp(x); }
OP F op_expm1(F x) { return expm1(x); }
OP F op_log(F x) { return log(x); }
OP F op_log1p(F x) { return log1p(x); }
OP F op_sqrt(F x) { return sqrt(x); }
OP F op_rsqrt(F x) { return (F)1 / sqrt(x); }
OP F op_sin(F x) { return sin(x); }
OP F op_cos(F x) { return cos(x); }
OP F op_tan(F x) { return tan(x); }
OP F op_asin(F x) { return asin(x); }
OP F op_acos(F x) { return acos(x); }
OP F op_atan(F x) { return atan(x); }
OP F op_sinh(F x) { return sinh(x); }
OP F op_cosh(F x) { return cosh(x); }
OP F op_tanh(F x) { return hyperbolic(x); }
OP F op_erf(F x) { return erf(x); }

// Activations.
OP F op_relu(F x) { return x > 0 || x != x ? x : (F)0; }
OP_INT i64 op_relu(i64 x) { return x > 0 ? x : 0; }
OP F op_relu6(F x) { return x <= 0 ? (F)0 : x > 6 ? (F)6 : x; }
OP_INT i64 op_relu6(i64 x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
OP F op_leaky_relu(F x, double alpha) { return x > 0 ? x : (F)alpha * x; }
OP F op_prelu(F x, F slope) { return x > 0 ? x : slope * x; }
OP_INT i64 op_prelu(i64 x, i64 slope) { return x > 0 ? x : wrap_mul(slope, x); }
OP F op_elu(F x, double alpha) { return x > 0 ? x : (F)alpha * expm1(x); }
OP F op_selu(F x)
{
    return x > 0 ? (F)1.05070098735548049342 * x
                 : (F)(1.05070098735548049342 * 1.67326324235437728482) * expm1(x);
}
OP F op_sigmoid(F x)
{
    const F small = exp(-fabs(x));
    return (x >= 0 ? (F)1 : small) / ((F)1 + small);
}
OP F op_silu(F x)
{
    const F small = exp(-fabs(x));
    return x * ((x >= 0 ? (F)1 : small) / ((F)1 + small));
}
OP F op_softplus(F x) { return x != x ? x : fmax(x, (F)0) + log1p(exp(-fabs(x))); }
OP F op_softsign(F x) { return isinf(x) ? copysign((F)1, x) : x / ((F)1 + fabs(x)); }
OP F op_mish(F x)
{
    const F e = exp(-fabs(x)), n = x > 0 ? 1 + 2 * e : e * (e + 2);
    return x * (n / (x > 0 ? n + 2 * e * e : n + 2));
}
OP F op_hard_sigmoid(F x) { return x != x ? x : fmin(fmax(x + 3, (F)0), (F)6) / 6; }
OP F op_hard_swish(F x) { return x != x ? x : x * (fmin(fmax(x + 3, (F)0), (F)6) / 6); }
OP F op_gelu(F x, i64 approximate)
{
    if (approximate)
        return (F)0.5 * x * (1 + hyperbolic((F)0.79788456080286535588 * (x + (F)0.044715 * x * x * x)));
    const F above = erfc(-x * (F)0.70710678118654752440);
    return above == 0 ? -(F)0 : (F)0.5 * x * above;
}
OP F op_gelu_slope(F x)
{
    const F below = (F)0.5 * erfc(-x * (F)0.70710678118654752440), bell = exp((F)-0.5 * x * x);
    return bell > 0 ? below + x * bell * (F)0.39894228040143267794 : copysign(below, x);
}
OP F op_sigmoid_cross_entropy(F x, F z)
{
    const F size = fabs(x), wrong = x > 0 ? 1 - z : z;
    return (wrong == 0 ? (F)0 : size * wrong) + log1p(exp(-size));
}

// Comparisons, logic, choice.
#define OP_COMPARE(name, sign)                                                                     \
    OP i64 name(F a, F b) { return a sign b; }
OP_COMPARE(op_equal, ==)
OP_COMPARE(op_not_equal, !=)
OP_COMPARE(op_greater, >)
OP_COMPARE(op_greater_equal, >=)
OP_COMPARE(op_less, <)
OP_COMPARE(op_less_equal, <=)
OP_INT i64 op_logical_and(i64 a, i64 b) { return a && b; }
OP_INT i64 op_logical_or(i64 a, i64 b) { return a || b; }
OP_INT i64 op_logical_xor(i64 a, i64 b) { return !a != !b; }
OP_INT i64 op_logical_not(i64 a) { return !a; }
OP F op_where(i64 c, F a, F b) { return c ? a : b; }
OP i64 op_is_nan(F x) { return x != x; }
OP i64 op_is_inf(F x) { return isinf(x) ? 1 : 0; }
OP i64 op_is_finite(F x) { return isfinite(x) ? 1 : 0; }

// The result's type rounds.
OP F op_cast(F x, i64) { return x; }
// The nearest number of a float with so many bits.
OP F op_round_float(F x, i64 mantissa, i64 least, double most, i64 saturate, i64 infinite)
{
    double size = fabs((double)x);
    if (x != x || x == 0)
        return x;
    if (!isinf(size)) {
        int exponent;
        frexp(size, &exponent);
        const double unit = ldexp(1.0, (int)((exponent - 1 > least ? exponent - 1 : least) - mantissa));
        size = nearbyint(size / unit) * unit;
    }
    if (size > most)
        size = saturate ? most : infinite ? (double)INFINITY : __longlong_as_double(0x7ff8000000000000ll);
    return (F)copysign(size, (double)x);
}
