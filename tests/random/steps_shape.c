/* steps_shape.c: what moves, picks, joins or repeats elements. */
#include "builder.h"

static tutti_sym transpose(builder *b, tutti_sym x)
{
    int rank = rank_of(x), first = first_axis(b);
    int64_t order[TUTTI_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = rank - 1; i > first; i--) {
        int other = first + below(b, i - first + 1);
        int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    return rank < 2 ? x : (tutti_transpose)(x, rank, order);
}

static tutti_sym reshape(builder *b, tutti_sym x)
{
    return with_rank(b, x, (b->batched ? 2 : 1) + below(b, 3));
}

static tutti_sym join(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0)
        return x;
    tutti_sym y = like_shaped(b, x), z = one_in(b, 2) ? tutti_tanh(x) : at_most(b, y, axis, 3);
    return one_in(b, 2) ? tutti_concatenate(TUTTI_SYMS(x, z, y), .axis = axis)
                        : tutti_concatenate(TUTTI_SYMS(z, x), .axis = axis - rank_of(x));
}

static tutti_sym stack(builder *b, tutti_sym x)
{
    if (rank_of(x) >= 5)
        return x;
    int axis = first_axis(b) + below(b, rank_of(x) - first_axis(b) + 1);
    return tutti_stack(TUTTI_SYMS(x, like_shaped(b, x)), .axis = axis);
}

static tutti_sym split(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0 || dim_of(x, axis) < 2)
        return x;
    int64_t size = dim_of(x, axis), half = size / 2;
    if (size % 2 == 0 && one_in(b, 2)) {
        tutti_sym pieces = tutti_split_into(x, axis, 2);
        tutti_sym other = tutti_sym_output(pieces, 1);
        return tutti_mul(tutti_sym_output(pieces, 0), tutti_sigmoid(other));
    }
    tutti_sym pieces = tutti_split_sizes(x, axis, half, size - half);
    return tutti_concatenate(
        TUTTI_SYMS(tutti_relu(tutti_sym_output(pieces, 1)), tutti_sym_output(pieces, 0)),
        .axis = axis);
}

static tutti_sym unstack(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0 || dim_of(x, axis) < 1 || dim_of(x, axis) > 6)
        return x;
    tutti_sym pieces = tutti_unstack(x, axis, 0);
    return tutti_add(tutti_sym_output(pieces, (int)dim_of(x, axis) - 1),
                     tutti_mul(tutti_sym_output(pieces, 0), 0.5));
}

static tutti_sym slice(builder *b, tutti_sym x)
{
    tutti_axes begin = {0}, end = {0}, step = {0};
    for (int i = 0; i < rank_of(x); i++) {
        int64_t size = dim_of(x, i);
        bool whole = i < first_axis(b) || size < (b->batched ? 5 : 2) || one_in(b, 2);
        bool back = !whole && one_in(b, 4);
        begin.values[i] = back ? TUTTI_LAST : whole ? TUTTI_FIRST : below(b, 3) - !b->batched;
        end.values[i] = back           ? TUTTI_FIRST
                        : whole        ? TUTTI_LAST
                        : one_in(b, 2) ? TUTTI_LAST
                                       : size - below(b, 2);
        step.values[i] = whole ? 1 : back ? -1 - below(b, 2) : 1 + below(b, 3);
    }
    begin.count = end.count = step.count = rank_of(x);
    return tutti_slice(x, .begin = begin, .end = end, .step = step);
}

static tutti_sym pad(builder *b, tutti_sym x)
{
    tutti_axes before = {0}, after = {0};
    bool longer = true;
    for (int i = 0; i < rank_of(x); i++) {
        bool free = i >= first_axis(b);
        before.values[i] = free ? below(b, 3) : 0;
        after.values[i] = free ? below(b, 3) : 0;
        longer = longer && (!free || dim_of(x, i) > 2);
    }
    before.count = after.count = rank_of(x);
    const char *mode = longer && one_in(b, 3) ? (one_in(b, 2) ? "reflect" : "edge") : NULL;
    return tutti_pad(x, .before = before, .after = after, .mode = mode, .value = mode ? 0 : 0.5);
}

static tutti_sym repeat(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0)
        return x;
    int64_t multiples[TUTTI_MAX_RANK];
    for (int i = 0; i < rank_of(x); i++)
        multiples[i] = i == axis ? 2 : 1;
    return (tutti_tile)(x, rank_of(x), multiples);
}

static tutti_sym gather(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0 || dim_of(x, axis) < 1 || b->fed_count > 20)
        return x;
    int64_t count = 1 + below(b, 9), indices[9];
    for (int64_t i = 0; i < count; i++)
        indices[i] = below(b, (int)dim_of(x, axis));
    return tutti_gather(x, (tutti_ints)(b->graph, (int)count, indices), axis);
}

static tutti_sym turned(builder *b, tutti_sym x)
{
    int axis = any_axis(b, x);
    if (axis < 0)
        return x;
    int64_t axes[1] = {axis};
    return one_in(b, 2) ? (tutti_reverse)(x, 1, axes) : tutti_roll(x, below(b, 5) - 2, axis);
}

static tutti_sym ones(builder *b, tutti_sym x)
{
    if (rank_of(x) >= 5)
        return x;
    x = tutti_expand_dims(x, first_axis(b) + below(b, rank_of(x) - first_axis(b) + 1));
    return tutti_add(x, weight_against(b, x));
}

static tutti_sym triangle(builder *b, tutti_sym x)
{
    if (rank_of(x) < first_axis(b) + 2)
        return x;
    return one_in(b, 2) ? tutti_triu(x, below(b, 3) - 1) : tutti_tril(x, below(b, 3) - 1);
}

const step_kind shape_steps[] = {
    {"transpose", transpose, 3}, {"reshape", reshape, 3},
    {"join", join, 3},           {"stack", stack, 1},
    {"split", split, 2},         {"unstack", unstack, 1},
    {"slice", slice, 2},         {"pad", pad, 2},
    {"repeat", repeat, 1},       {"gather", gather, 1},
    {"turned", turned, 1},       {"ones", ones, 1},
    {"triangle", triangle, 1},   {0},
};
