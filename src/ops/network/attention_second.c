/* attention_second.c: the gradients of attention's backward operators, made of other operators.
 * They hold the whole matrix of scores: second derivatives are rare, and small.
 *
 * The backward operators compute, with inputs q k v y l, g (of y) and e (of l):
 *   S = scale q k^T + mask, P = exp(min(S - l, 0)), R = g v^T - sum(g y) + e, E = P R,
 *   dq = scale E k, dk = scale E^T q, dv = P^T g, dmask = E.
 * With a, b, c, m the gradients of those four:
 *   E' = scale (a k^T + q b^T) + m,  P' = E' R + g c^T,  R' = E' P,  S' = P' P
 *   q: scale (S' k + E b)   k: scale (S'^T q + E^T a)   v: R'^T g   y: -sum(R') g   l: -sum(S')
 *   g: R' v + P c - sum(R') y   e: sum(R')   mask: S' */
#include "ops/build.h"
#include "ops/network/attention.h"

/* The operands, in l's element type; g and e are zeros where they are absent. */
typedef struct operands {
    tutti_sym q, k, v, y, l, g, e, mask;
    tutti_sym a, b, c, m; /* m may be none */
} operands;

typedef struct matrices {
    tutti_sym p, r, e, e_grad, p_grad, r_grad, s_grad;
} matrices;

static tutti_sym times(tutti_sym a, tutti_sym b)
{
    return tutti_matmul(a, b);
}
static tutti_sym times_t(tutti_sym a, tutti_sym b)
{
    return tutti_matmul(a, b, .transpose_b = true);
}
static tutti_sym t_times(tutti_sym a, tutti_sym b)
{
    return tutti_matmul(a, b, .transpose_a = true);
}

static tutti_sym cast_to(tutti_sym x, tutti_dtype dtype)
{
    return !tutti_sym_ok(x) || tutti_sym_type(x).dtype == dtype ? x : tutti_cast(x, dtype);
}

static tutti_sym or_zeros(tutti_sym x, tutti_sym like, tutti_dtype dtype)
{
    return tutti_sym_ok(x) ? cast_to(x, dtype) : cast_to(tutti_zeros_like(like), dtype);
}

/* x times the scale, which may depend on a number of features that is not known yet. */
static tutti_sym scaled(const tutti_gradient_call *node, tutti_sym x, tutti_sym q)
{
    double scale = RULE_FLOAT(node, "scale");
    int64_t features = tutti_sym_ok(q) ? tutti_sym_type(q).dims[3] : 1;
    if (scale == 0 && features == TUTTI_ANY)
        return tutti_mul(x, tutti_rsqrt(tutti_cast(tutti_size(q, 3), tutti_sym_type(q).dtype)));
    return tutti_mul(x, scale == 0 ? 1 / sqrt((double)features) : scale);
}

/* S with -inf where a query does not see a key. */
static tutti_sym scores(const tutti_gradient_call *node, const operands *o)
{
    tutti_sym s = scaled(node, times_t(o->q, o->k), o->q);
    if (tutti_sym_ok(o->mask))
        s = tutti_add(s, o->mask);
    if (!RULE_INT(node, "causal"))
        return s;
    tutti_sym ones = tutti_ones_like(s);
    tutti_sym last_seen = tutti_add(tutti_cumsum(ones, 2), (double)RULE_INT(node, "first_query"));
    tutti_sym sees = tutti_less_equal(tutti_cumsum(ones, 3), last_seen);
    return tutti_where(sees, s, -HUGE_VAL);
}

/* P; a query that sees nothing has l = -inf and an empty row. Where l is coarse (attention.h), the
 * softmax of S. */
static tutti_sym probabilities(const tutti_gradient_call *node, const operands *o)
{
    tutti_sym zero = tutti__scalar_like(o->l, 0), s = scores(node, o);
    tutti_sym l = tutti_expand_dims(tutti_where(tutti_is_finite(o->l), o->l, zero), 3);
    tutti_sym coarse = tutti_greater(tutti_abs(l), 64);
    tutti_sym below = tutti_sub(s, l);
    return tutti_where(coarse, tutti_softmax(tutti_where(coarse, s, zero)),
                       tutti_exp(tutti_where(tutti_greater(below, zero), zero, below)));
}

static matrices matrices_build(const tutti_gradient_call *node, const operands *o)
{
    matrices x;
    tutti_sym shared =
        tutti_sub(tutti_expand_dims(o->e, 3), tutti__sum_keeping(tutti_mul(o->g, o->y), 3));
    x.p = probabilities(node, o);
    x.r = tutti_add(times_t(o->g, o->v), shared);
    x.e = tutti_mul(x.p, x.r);
    x.e_grad = scaled(node, tutti_add(times_t(o->a, o->k), times_t(o->q, o->b)), o->q);
    if (tutti_sym_ok(o->m))
        x.e_grad = tutti_add(x.e_grad, o->m);
    x.p_grad = tutti_add(tutti_mul(x.e_grad, x.r), times_t(o->g, o->c));
    x.r_grad = tutti_mul(x.e_grad, x.p);
    x.s_grad = tutti_mul(x.p_grad, x.p);
    return x;
}

static void give(tutti_gradient_call *node, int slot, tutti_sym grad)
{
    if (slot >= 0 && node->wanted[slot])
        node->input_grads[slot] = cast_to(grad, tutti_sym_type(node->inputs[slot]).dtype);
}

static operands operands_build(const tutti_gradient_call *node, const tutti_attention_slots *slots,
                               tutti_dtype dtype)
{
    const tutti_sym *inputs = node->inputs;
    tutti_sym none = TUTTI_NO_SYM;
    return (operands){
        .q = cast_to(inputs[ATTENTION_Q], dtype),
        .k = cast_to(inputs[ATTENTION_K], dtype),
        .v = cast_to(inputs[ATTENTION_V], dtype),
        .y = cast_to(inputs[ATTENTION_Y], dtype),
        .l = inputs[ATTENTION_L],
        .g = or_zeros(slots->y_grad < 0 ? none : inputs[slots->y_grad], inputs[ATTENTION_Y], dtype),
        .e = or_zeros(slots->l_grad < 0 ? none : inputs[slots->l_grad], inputs[ATTENTION_L], dtype),
        .mask = slots->mask < 0 ? none : cast_to(inputs[slots->mask], dtype),
    };
}

tutti_status tutti__attention_second_gradient(tutti_gradient_call *node, tutti_sym by_dq,
                                              tutti_sym by_dk, tutti_sym by_dv, tutti_sym by_dmask)
{
    tutti_attention_slots slots =
        tutti__attention_slots(RULE_INT(node, "grads"), node->input_count);
    tutti_dtype dtype = tutti_sym_type(node->inputs[ATTENTION_L]).dtype;
    operands o = operands_build(node, &slots, dtype);
    o.a = or_zeros(by_dq, o.q, dtype);
    o.b = or_zeros(by_dk, o.k, dtype);
    o.c = or_zeros(by_dv, o.v, dtype);
    o.m = cast_to(by_dmask, dtype);
    matrices x = matrices_build(node, &o);
    tutti_sym r_sum = tutti__sum_keeping(x.r_grad, 3);
    tutti_sym by_q = tutti_add(times(x.s_grad, o.k), times(x.e, o.b));
    tutti_sym by_k = tutti_add(t_times(x.s_grad, o.q), t_times(x.e, o.a));
    tutti_sym by_g = tutti_add(times(x.r_grad, o.v), times(x.p, o.c));
    give(node, ATTENTION_Q, scaled(node, by_q, o.q));
    give(node, ATTENTION_K, scaled(node, by_k, o.q));
    give(node, ATTENTION_V, t_times(x.r_grad, o.g));
    give(node, ATTENTION_Y, tutti_neg(tutti_mul(r_sum, o.g)));
    give(node, ATTENTION_L, tutti_neg(tutti_sum(x.s_grad, .axes = TUTTI_AXES(3))));
    give(node, slots.y_grad, tutti_sub(by_g, tutti_mul(r_sum, o.y)));
    give(node, slots.l_grad, tutti_squeeze(r_sum, 3));
    if (slots.mask >= 0)
        give(node, slots.mask, tutti_unbroadcast(x.s_grad, o.mask));
    return TUTTI_OK;
}
