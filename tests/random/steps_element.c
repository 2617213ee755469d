/* steps_element.c: element-wise chains with broadcasts, scalars and values used several times. */
#include "builder.h"

/* A function of one, safe for any number of moderate size. */
static tutti_sym function(builder *b, tutti_sym x)
{
    switch (below(b, 22)) {
    case 0:
        return tutti_exp(tutti_minimum(x, 2));
    case 1:
        return tutti_log(tutti_add(tutti_square(x), 0.5));
    case 2:
        return tutti_sqrt(tutti_add(tutti_abs(x), 0.25));
    case 3:
        return tutti_rsqrt(tutti_add(tutti_square(x), 1));
    case 4:
        return tutti_reciprocal(tutti_add(tutti_abs(x), 1));
    case 5:
        return tutti_sin(x);
    case 6:
        return tutti_cos(x);
    case 7:
        return tutti_tanh(x);
    case 8:
        return tutti_erf(x);
    case 9:
        return tutti_expm1(tutti_clip(x, -3, 1));
    case 10:
        return tutti_log1p(tutti_relu(x));
    case 11:
        return tutti_softplus(x);
    case 12:
        return tutti_softsign(x);
    case 13:
        return tutti_selu(x);
    case 14:
        return tutti_hard_swish(x);
    case 15:
        return tutti_hard_sigmoid(x);
    case 16:
        return tutti_mish(x);
    case 17:
        return tutti_neg(x);
    case 18:
        return tutti_abs(x);
    case 19:
        return tutti_atan(x);
    case 20:
        return tutti_pow(tutti_add(tutti_abs(x), 0.5), 1.5);
    default:
        return tutti_sigmoid(x);
    }
}

/* An extreme beside something else: tanh(x) is x where x is small, to f32's precision but not to
 * the reference's, and where both are the same the gradient is shared. */
static tutti_sym aside(tutti_sym y)
{
    return tutti_add(y, 0.03);
}

static tutti_sym arithmetic(builder *b, tutti_sym x, tutti_sym y)
{
    switch (below(b, 8)) {
    case 0:
    case 1:
        return tutti_add(x, y);
    case 2:
        return tutti_sub(x, y);
    case 3:
        return tutti_sub(y, x);
    case 4:
        return tutti_mul(x, one_in(b, 2) ? tutti_tanh(y) : tutti_sigmoid(y));
    case 5:
        return tutti_div(x, tutti_add(tutti_abs(y), 1));
    case 6:
        return tutti_maximum(x, aside(y));
    default:
        return tutti_minimum(aside(y), x);
    }
}

static tutti_sym chain(builder *b, tutti_sym x)
{
    int length = 1 + below(b, 5);
    for (int i = 0; i < length; i++) {
        switch (below(b, 6)) {
        case 0:
            x = tutti_mul(x, draw_between(&b->draw, -1.2, 1.2));
            break;
        case 1:
            x = tutti_add(x, draw_between(&b->draw, -1, 1));
            break;
        case 2:
            x = arithmetic(b, x, x);
            break;
        case 3:
            x = activation(b, x);
            break;
        default:
            x = function(b, x);
        }
    }
    return x;
}

static tutti_sym two(builder *b, tutti_sym x)
{
    return arithmetic(b, x, like_shaped(b, x));
}

static tutti_sym broadcast(builder *b, tutti_sym x)
{
    tutti_sym y = weight_against(b, x);
    return one_in(b, 2) ? arithmetic(b, x, y) : arithmetic(b, y, x);
}

static tutti_sym bias_activation(builder *b, tutti_sym x)
{
    if (any_axis(b, x) < 0)
        return activation(b, x);
    return activation(b, tutti_add(x, WEIGHT(b, 0, 0.5, dim_of(x, -1))));
}

/* One value in several places, joined again. */
static tutti_sym diamond(builder *b, tutti_sym x)
{
    tutti_sym left = chain(b, x), right = chain(b, x);
    return arithmetic(b, left, right);
}

static tutti_sym choice(builder *b, tutti_sym x)
{
    tutti_sym y = one_in(b, 2) ? like_shaped(b, x) : weight_against(b, x);
    tutti_sym against = one_in(b, 2) ? tutti_scalar(b->graph, tutti_sym_type(x).dtype, 0.1) : y;
    tutti_sym asked = one_in(b, 2) ? tutti_greater(x, against) : tutti_less_equal(x, against);
    if (one_in(b, 4))
        asked = tutti_logical_not(asked);
    return tutti_where(asked, chain(b, x),
                       one_in(b, 2) ? y : tutti_scalar(b->graph, tutti_sym_type(x).dtype, 0));
}

static tutti_sym clip(builder *b, tutti_sym x)
{
    return tutti_clip(x, -0.7, draw_between(&b->draw, 0, 1));
}

static tutti_sym stopped(builder *b, tutti_sym x)
{
    return arithmetic(b, tutti_stop_gradient(function(b, x)), x);
}

/* Whole numbers in between: no gradient comes back this way. */
static tutti_sym through_ints(builder *b, tutti_sym x)
{
    tutti_sym whole = tutti_cast(tutti_mul(x, 3), one_in(b, 2) ? TUTTI_I32 : TUTTI_I64);
    if (one_in(b, 2))
        whole = tutti_add(whole, 2);
    return tutti_add(x, tutti_mul(tutti_cast(whole, b->dtype), 0.125));
}

static tutti_sym prelu(builder *b, tutti_sym x)
{
    return tutti_prelu(x, weight_against(b, x));
}

static tutti_sym same(builder *b, tutti_sym x)
{
    return tutti_add(tutti_identity(x), tutti_identity(chain(b, x)));
}

const step_kind element_steps[] = {
    {"chain", chain, 5},
    {"two", two, 4},
    {"broadcast", broadcast, 5},
    {"bias", bias_activation, 2},
    {"diamond", diamond, 3},
    {"choice", choice, 2},
    {"clip", clip, 1},
    {"stopped", stopped, 1},
    {"through_ints", through_ints, 1},
    {"prelu", prelu, 1},
    {"same", same, 1},
    {0},
};
