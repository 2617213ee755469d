/* chain.c: the operations of chains. Results have the same bits as those of the tile loops. */
#include "device/cpu/tile/chain.h"

#include "base/isa.h"
#include "device/cpu/tile/math.h"

#define VALUE vec a0, vec a1, vec a2, vec a3, vec a4, vec a5, vec a6, vec a7
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define BLOCK (8 * VEC_LANES)

/* memory: op->memory; next: that of the operation after. Were the address fetched just before the
 * operand, what waits for both would fill the CPU's queues. */
typedef void operation(const tutti_chain_op *op, int64_t at, float *memory, float *next, VALUE);
#define OPERATION(name)                                                                            \
    static void name(const tutti_chain_op *op, int64_t at, float *memory, float *next, VALUE)
#define NEXT                                                                                       \
    ((operation *)op[1].run)(op + 1, at, next, op[2].memory, a0, a1, a2, a3, a4, a5, a6, a7)

#define AT(pointer, i) vec_load((pointer) + at + (i)*VEC_LANES)

OPERATION(store)
{
    float *to = memory + at;
#define STEP(i) vec_store(to + i * VEC_LANES, a##i);
    EACH(STEP)
#undef STEP
    NEXT;
}

/* The last operation: stores, and returns to `run`. */
OPERATION(finish)
{
    float *to = memory + at;
#define STEP(i) vec_store(to + i * VEC_LANES, a##i);
    EACH(STEP)
#undef STEP
}

#define MAX(a, b) vec_maximum(a, b)
#define MIN(a, b) vec_minimum(a, b)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define EQUAL(a, b) vec_one(vec_eq(a, b))
#define NOT_EQUAL(a, b) vec_one(vec_ne(a, b))
#define LESS(a, b) vec_one(vec_lt(a, b))
#define LESS_EQUAL(a, b) vec_one(vec_le(a, b))
#define GREATER(a, b) vec_one(vec_gt(a, b))
#define GREATER_EQUAL(a, b) vec_one(vec_ge(a, b))
#define PRELU(a, b) vec_select(vec_gt(a, S(0.0f)), a, (b) * (a))

#define EIGHT(e0, e1, e2, e3, e4, e5, e6, e7)                                                      \
    a0 = e0, a1 = e1, a2 = e2, a3 = e3, a4 = e4, a5 = e5, a6 = e6, a7 = e7
/* An operator of two with memory, in both orders, after the value was changed. */
#define SAME(x) (x)
#define PAIR_OF_MEMORY(name, f, change)                                                            \
    OPERATION(name##_memory)                                                                       \
    {                                                                                              \
        const float *b = memory;                                                                   \
        EIGHT(f(change(a0), AT(b, 0)), f(change(a1), AT(b, 1)), f(change(a2), AT(b, 2)),           \
              f(change(a3), AT(b, 3)), f(change(a4), AT(b, 4)), f(change(a5), AT(b, 5)),           \
              f(change(a6), AT(b, 6)), f(change(a7), AT(b, 7)));                                   \
        NEXT;                                                                                      \
    }                                                                                              \
    OPERATION(name##_memory_first)                                                                 \
    {                                                                                              \
        const float *b = memory;                                                                   \
        EIGHT(f(AT(b, 0), change(a0)), f(AT(b, 1), change(a1)), f(AT(b, 2), change(a2)),           \
              f(AT(b, 3), change(a3)), f(AT(b, 4), change(a4)), f(AT(b, 5), change(a5)),           \
              f(AT(b, 6), change(a6)), f(AT(b, 7), change(a7)));                                   \
        NEXT;                                                                                      \
    }
/* The four forms of an operator of two. */
#define PAIR(name, f)                                                                              \
    PAIR_OF_MEMORY(name, f, SAME)                                                                  \
    OPERATION(name##_scalar)                                                                       \
    {                                                                                              \
        const vec b = vec_load(memory);                                                            \
        EIGHT(f(a0, b), f(a1, b), f(a2, b), f(a3, b), f(a4, b), f(a5, b), f(a6, b), f(a7, b));     \
        NEXT;                                                                                      \
    }                                                                                              \
    OPERATION(name##_scalar_first)                                                                 \
    {                                                                                              \
        const vec b = vec_load(memory);                                                            \
        EIGHT(f(b, a0), f(b, a1), f(b, a2), f(b, a3), f(b, a4), f(b, a5), f(b, a6), f(b, a7));     \
        NEXT;                                                                                      \
    }
/* Alone, and followed by a cheap operator of one: fewer calls for the same work. */
#define PAIR_AND_THEN(name, f)                                                                     \
    PAIR(name, f)                                                                                  \
    PAIR(name##_relu, f##_RELU) PAIR(name##_negate, f##_NEGATE) PAIR(name##_absolute, f##_ABSOLUTE)
#define THEN(f)                                                                                    \
    VEC_INLINE vec f##_RELU(vec a, vec b)                                                          \
    {                                                                                              \
        return vec_relu(f(a, b));                                                                  \
    }                                                                                              \
    VEC_INLINE vec f##_NEGATE(vec a, vec b)                                                        \
    {                                                                                              \
        return -f(a, b);                                                                           \
    }                                                                                              \
    VEC_INLINE vec f##_ABSOLUTE(vec a, vec b)                                                      \
    {                                                                                              \
        return vec_abs(f(a, b));                                                                   \
    }
THEN(ADD)
THEN(SUB)
THEN(MUL)
THEN(DIV)
THEN(MAX)
THEN(MIN)
PAIR_AND_THEN(add, ADD)
PAIR_AND_THEN(sub, SUB)
PAIR_AND_THEN(mul, MUL)
PAIR_AND_THEN(divide, DIV)
PAIR_AND_THEN(maximum, MAX)
PAIR_AND_THEN(minimum, MIN)
PAIR(equal, EQUAL)
PAIR(not_equal, NOT_EQUAL)
PAIR(less, LESS)
PAIR(less_equal, LESS_EQUAL)
PAIR(greater, GREATER)
PAIR(greater_equal, GREATER_EQUAL)
PAIR(prelu, PRELU)

/* An operator of one; x is the register, p and q its parameters. */
#define SINGLE(name, f)                                                                            \
    OPERATION(name)                                                                                \
    {                                                                                              \
        const vec p = vec_splat(op->params[0]), q = vec_splat(op->params[1]);                      \
        (void)p;                                                                                   \
        (void)q;                                                                                   \
        EIGHT(f(a0), f(a1), f(a2), f(a3), f(a4), f(a5), f(a6), f(a7));                             \
        NEXT;                                                                                      \
    }
#define NEGATE(x) (-(x))
#define SQUARE(x) ((x) * (x))
#define DOUBLE(x) ((x) + (x))
#define RECIPROCAL(x) (1.0f / (x))
#define LEAKY_RELU(x) vec_select(vec_gt(x, S(0.0f)), x, p *(x))
#define CLIP(x) vec_clip(x, p, q)
#define NOT(x) vec_one(vec_eq(x, S(0.0f)))
SINGLE(negate, NEGATE)
SINGLE(absolute, vec_abs)
SINGLE(square, SQUARE)
SINGLE(reciprocal, RECIPROCAL)
SINGLE(relu, vec_relu)
SINGLE(twice, DOUBLE)
SINGLE(leaky_relu, LEAKY_RELU)
SINGLE(clip, CLIP)
SINGLE(not_, NOT)
#define RECIPROCAL_ROOT(x) (1.0f / vec_sqrt(x))
SINGLE(root, vec_sqrt)
SINGLE(reciprocal_root, RECIPROCAL_ROOT)
OPERATION(exponential)
{
    vec x[8] = {a0, a1, a2, a3, a4, a5, a6, a7};
    VEC_UNROLL for (int i = 0; i < 8; i += EXP_TOGETHER)
        exp_side_by_side(x + i, EXP_TOGETHER, true);
    EIGHT(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
    NEXT;
}
SINGLE(exponential_less_one, vec_expm1)
SINGLE(logarithm, vec_log)
SINGLE(logarithm_of_one_plus, vec_log1p)
SINGLE(hyperbolic_tangent, vec_tanh)
SINGLE(error, vec_erf)
SINGLE(sigmoid, vec_sigmoid)
SINGLE(softplus, vec_softplus)
SINGLE(silu, vec_silu)
SINGLE(hard_swish, vec_hard_swish)
SINGLE(mish, vec_mish)

/* After a cheap operator of one. */
#define AFTER(name, f)                                                                             \
    PAIR_OF_MEMORY(negated_##name, f, NEGATE)                                                      \
    PAIR_OF_MEMORY(squared_##name, f, SQUARE)
AFTER(add, ADD)
AFTER(sub, SUB)
AFTER(mul, MUL)
AFTER(maximum, MAX)
AFTER(minimum, MIN)

/* where: the value in registers is the condition. */
#define WHERE(a, b, c) vec_select(vec_ne(a, S(0.0f)), b, c)
#define CHOICE(name, B, C)                                                                         \
    OPERATION(name)                                                                                \
    {                                                                                              \
        const float *b = memory, *c = op->second;                                                  \
        const vec bs = vec_splat(*b), cs = vec_splat(*c);                                          \
        (void)bs;                                                                                  \
        (void)cs;                                                                                  \
        EIGHT(WHERE(a0, B(0), C(0)), WHERE(a1, B(1), C(1)), WHERE(a2, B(2), C(2)),                 \
              WHERE(a3, B(3), C(3)), WHERE(a4, B(4), C(4)), WHERE(a5, B(5), C(5)),                 \
              WHERE(a6, B(6), C(6)), WHERE(a7, B(7), C(7)));                                       \
        NEXT;                                                                                      \
    }
#define B_MEMORY(i) AT(b, i)
#define B_SCALAR(i) bs
#define C_MEMORY(i) AT(c, i)
#define C_SCALAR(i) cs
CHOICE(where_memory, B_MEMORY, C_MEMORY)
CHOICE(where_scalar, B_MEMORY, C_SCALAR)
CHOICE(where_scalar_first, B_SCALAR, C_MEMORY)

#define RUN(function) ((tutti_chain_function *)(operation *)(function))
#define ROWS_THEN(operator_, then_, name)                                                          \
    {operator_, TUTTI_CHAIN_MEMORY, then_, RUN(name##_memory)},                                    \
        {operator_, TUTTI_CHAIN_MEMORY_FIRST, then_, RUN(name##_memory_first)},                    \
        {operator_, TUTTI_CHAIN_SCALAR, then_, RUN(name##_scalar)},                                \
    {                                                                                              \
        operator_, TUTTI_CHAIN_SCALAR_FIRST, then_, RUN(name##_scalar_first)                       \
    }
#define ROWS_OF(operator_, name) ROWS_THEN(operator_, NULL, name)
#define ROWS_OF_ALL(operator_, name)                                                               \
    ROWS_THEN(operator_, NULL, name), ROWS_THEN(operator_, "relu", name##_relu),                   \
        ROWS_THEN(operator_, "neg", name##_negate), ROWS_THEN(operator_, "abs", name##_absolute)

#define ROWS_AFTER(before_, operator_, name)                                                       \
    {operator_, TUTTI_CHAIN_MEMORY, NULL, RUN(name##_memory), before_},                            \
    {                                                                                              \
        operator_, TUTTI_CHAIN_MEMORY_FIRST, NULL, RUN(name##_memory_first), before_               \
    }
#define ROWS_AFTER_ALL(operator_, name)                                                            \
    ROWS_AFTER("neg", operator_, negated_##name), ROWS_AFTER("square", operator_, squared_##name)

static const tutti_chain_entry entries[] = {
    {".store", TUTTI_CHAIN_ALONE, NULL, RUN(store)},
    {".finish", TUTTI_CHAIN_ALONE, NULL, RUN(finish)},
    ROWS_OF_ALL("add", add),
    ROWS_OF_ALL("sub", sub),
    ROWS_OF_ALL("mul", mul),
    ROWS_OF_ALL("div", divide),
    ROWS_OF_ALL("maximum", maximum),
    ROWS_OF_ALL("minimum", minimum),
    ROWS_AFTER_ALL("add", add),
    ROWS_AFTER_ALL("sub", sub),
    ROWS_AFTER_ALL("mul", mul),
    ROWS_AFTER_ALL("maximum", maximum),
    ROWS_AFTER_ALL("minimum", minimum),
    ROWS_OF("equal", equal),
    ROWS_OF("not_equal", not_equal),
    ROWS_OF("less", less),
    ROWS_OF("less_equal", less_equal),
    ROWS_OF("greater", greater),
    ROWS_OF("greater_equal", greater_equal),
    ROWS_OF("prelu", prelu),
    {"add", TUTTI_CHAIN_SELF, NULL, RUN(twice)},
    {"mul", TUTTI_CHAIN_SELF, NULL, RUN(square)},
    {"neg", TUTTI_CHAIN_ALONE, NULL, RUN(negate)},
    {"abs", TUTTI_CHAIN_ALONE, NULL, RUN(absolute)},
    {"square", TUTTI_CHAIN_ALONE, NULL, RUN(square)},
    {"reciprocal", TUTTI_CHAIN_ALONE, NULL, RUN(reciprocal)},
    {"relu", TUTTI_CHAIN_ALONE, NULL, RUN(relu)},
    {"leaky_relu", TUTTI_CHAIN_ALONE, NULL, RUN(leaky_relu)},
    {"clip", TUTTI_CHAIN_ALONE, NULL, RUN(clip)},
    {"logical_not", TUTTI_CHAIN_ALONE, NULL, RUN(not_)},
    {"sqrt", TUTTI_CHAIN_ALONE, NULL, RUN(root)},
    {"rsqrt", TUTTI_CHAIN_ALONE, NULL, RUN(reciprocal_root)},
    {"exp", TUTTI_CHAIN_ALONE, NULL, RUN(exponential)},
    {"expm1", TUTTI_CHAIN_ALONE, NULL, RUN(exponential_less_one)},
    {"log", TUTTI_CHAIN_ALONE, NULL, RUN(logarithm)},
    {"log1p", TUTTI_CHAIN_ALONE, NULL, RUN(logarithm_of_one_plus)},
    {"tanh", TUTTI_CHAIN_ALONE, NULL, RUN(hyperbolic_tangent)},
    {"erf", TUTTI_CHAIN_ALONE, NULL, RUN(error)},
    {"sigmoid", TUTTI_CHAIN_ALONE, NULL, RUN(sigmoid)},
    {"softplus", TUTTI_CHAIN_ALONE, NULL, RUN(softplus)},
    {"silu", TUTTI_CHAIN_ALONE, NULL, RUN(silu)},
    {"hard_swish", TUTTI_CHAIN_ALONE, NULL, RUN(hard_swish)},
    {"mish", TUTTI_CHAIN_ALONE, NULL, RUN(mish)},
    {"where", TUTTI_CHAIN_MEMORY, NULL, RUN(where_memory)},
    {"where", TUTTI_CHAIN_SCALAR, NULL, RUN(where_scalar)},
    {"where", TUTTI_CHAIN_SCALAR_FIRST, NULL, RUN(where_scalar_first)},
    {0},
};

/* Elements between what is computed and what is fetched; of a line of the cache. */
enum { AHEAD = 512, LINE = 16 };

static void chain_run(const float *from, const tutti_chain_op *ops, int64_t count)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        VEC_UNROLL for (int i = 0; i < BLOCK; i += LINE)
            __builtin_prefetch(from + at + AHEAD + i, 0, 3);
        ((operation *)ops->run)(ops, at, ops[0].memory, ops[1].memory, AT(from, 0), AT(from, 1),
                                AT(from, 2), AT(from, 3), AT(from, 4), AT(from, 5), AT(from, 6),
                                AT(from, 7));
    }
    /* What follows may be C's library, whose code of older instructions waits at each of them while
     * the upper halves of registers are in use. The compiler does not see that a chain leaves them
     * so: the operations hand registers on. */
#if defined(__AVX2__)
    _mm256_zeroupper();
#endif
}

const tutti_chain TUTTI_ISA_NAME(tutti_chain) = {
    .isa = TUTTI_ISA_TEXT,
    .block = BLOCK,
    .entries = entries,
    .run = chain_run,
};
