/* steps_row.c: reductions over random axes, softmax, norms, dropout. */
#include "builder.h"

/* Some axes; in a batched recipe all of axis 0 now and then. */
static tutti_axes some_axes(builder *b, tutti_sym x)
{
    tutti_axes axes = {0};
    for (int i = 0; i < rank_of(x); i++)
        if (one_in(b, 2))
            axes.values[axes.count++] = one_in(b, 3) ? i - rank_of(x) : i;
    return axes;
}

static tutti_sym reduced(builder *b, tutti_sym x, tutti_axes axes, bool keep)
{
    switch (below(b, 7)) {
    case 0:
    case 1:
        return tutti_mul(tutti_sum(x, .axes = axes, .keepdims = keep), 0.125);
    case 2:
        return tutti_mean(x, .axes = axes, .keepdims = keep);
    case 3:
        return tutti_max(x, .axes = axes, .keepdims = keep);
    case 4:
        return tutti_min(x, .axes = axes, .keepdims = keep);
    case 5:
        return tutti_logsumexp(x, .axes = axes, .keepdims = keep);
    default:
        return tutti_variance(x, .axes = axes, .keepdims = keep);
    }
}

static bool is_empty(tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    return tutti_type_count(&type) == 0;
}

static tutti_sym reduce(builder *b, tutti_sym x)
{
    if (is_empty(x))
        return tutti_sum(x, .axes = some_axes(b, x));
    tutti_axes axes = some_axes(b, x);
    if (!b->batched)
        return reduced(b, x, axes, one_in(b, 2));
    for (int i = 0; i < axes.count; i++)
        if (axes.values[i] == 0 || axes.values[i] == -rank_of(x)) /* keep the batch */
            return tutti_sub(x, reduced(b, x, axes, true));
    return axes.count ? reduced(b, x, axes, one_in(b, 2)) : tutti_sub(x, reduced(b, x, axes, true));
}

static tutti_sym against_reduced(builder *b, tutti_sym x)
{
    if (is_empty(x))
        return x;
    tutti_sym r = reduced(b, x, some_axes(b, x), true);
    return one_in(b, 2) ? tutti_sub(x, r) : tutti_mul(x, tutti_sigmoid(r));
}

static tutti_sym softmax(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0)
        return x;
    switch (below(b, 4)) {
    case 0:
        return tutti_softmax(x);
    case 1:
        return tutti_log_softmax(x);
    case 2:
        return tutti_softmax(x, .axes = TUTTI_AXES(axis));
    default:
        return tutti_log_softmax(x, .axes = TUTTI_AXES(axis));
    }
}

/* Softmax, layer norm and the like as users write them out. */
static tutti_sym written_out(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0 || is_empty(x))
        return x;
    tutti_axes axes = TUTTI_AXES(one_in(b, 2) ? -1 : axis);
    if (one_in(b, 2)) {
        tutti_sym e = tutti_exp(tutti_sub(x, tutti_max(x, .axes = axes, .keepdims = true)));
        return tutti_div(e, tutti_sum(e, .axes = axes, .keepdims = true));
    }
    tutti_sym d = tutti_sub(x, tutti_mean(x, .axes = axes, .keepdims = true));
    tutti_sym v = tutti_mean(tutti_square(d), .axes = axes, .keepdims = true);
    return tutti_mul(d, tutti_rsqrt(tutti_add(v, 0.1)));
}

/* Epsilon is large, so that a row of equal numbers is not divided by next to nothing. */
static tutti_sym norm(builder *b, tutti_sym x)
{
    if (any_axis(b, x) < 0 || is_empty(x))
        return x;
    x = with_rank(b, x, rank_of(x) < 2 ? 2 : rank_of(x));
    int64_t channels = dim_of(x, -1);
    tutti_sym scale = WEIGHT(b, 1, 0.4, channels), offset = WEIGHT(b, 0, 0.4, channels);
    switch (below(b, 6)) {
    case 0:
    case 1:
        x = tutti_nn_batch_norm(x, scale, offset, .epsilon = 0.1);
        return one_in(b, 2) ? tutti_relu(one_in(b, 2) ? tutti_add(x, like_shaped(b, x)) : x) : x;
    case 2:
        return tutti_nn_layer_norm(x, scale, offset, .epsilon = 0.1);
    case 3:
        return tutti_nn_rms_norm(x, scale, .epsilon = 0.1);
    case 4:
        return tutti_nn_group_norm(x, scale, offset,
                                   channels % 3 == 0   ? 3
                                   : channels % 2 == 0 ? 2
                                                       : 1,
                                   .epsilon = 0.1);
    default:
        return rank_of(x) < 3 ? tutti_nn_layer_norm(x, scale, offset, .epsilon = 0.1)
                              : tutti_nn_instance_norm(x, scale, offset, .epsilon = 0.1);
    }
}

static tutti_sym dropout(builder *b, tutti_sym x)
{
    tutti_sym y = tutti_nn_dropout(x, 0.1 + 0.2 * below(b, 4), .counter = round_counter(b),
                                   .seed = 5, .salt = 100 + b->step);
    return one_in(b, 2) ? tutti_add(like_shaped(b, x), y) : y;
}

static tutti_sym running(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    return axis < 0 ? x
                    : tutti_mul(
                          tutti_cumsum(x, axis, .exclusive = one_in(b, 2), .reverse = one_in(b, 2)),
                          0.3);
}

static tutti_sym magnitude(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0 || is_empty(x))
        return x;
    return tutti_norm(tutti_add(x, 0.3), .axes = TUTTI_AXES(axis), .ord = 1 + below(b, 2),
                      .keepdims = one_in(b, 2));
}

const step_kind row_steps[] = {
    {"reduce", reduce, 4},
    {"against_reduced", against_reduced, 3},
    {"softmax", softmax, 3},
    {"written_out", written_out, 2},
    {"norm", norm, 6},
    {"dropout", dropout, 2},
    {"running", running, 1},
    {"magnitude", magnitude, 1},
    {0},
};
