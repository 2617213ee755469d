/* grid_sample_nodes.c: grid_sample made of other operators, for the gradient of its gradient. What
 * grid.c does for one place it does for all: floors, comparisons and casts pass no gradient, so
 * that only the weights depend on the grid. */
#include "ops/build.h"
#include "ops/network/grid_sample.h"

typedef struct axis_nodes {
    bool align_corners, border, reflection, cubic;
    tutti_sym size, last; /* scalars */
} axis_nodes;

/* A place of every output, [batch, out…]; taps are along one axis more. */
typedef struct taps {
    tutti_sym index, weight;
} taps;

/* p mirrored until it lies in [low, high]. */
static tutti_sym mirror(tutti_sym p, tutti_sym low, tutti_sym high)
{
    tutti_sym span = tutti_sub(high, low), none = tutti__scalar_like(p, 0);
    tutti_sym is_wide = tutti_greater(span, none);
    span = tutti_where(is_wide, span, 1);
    tutti_sym way = tutti_abs(tutti_sub(p, low)), whole = tutti_floor(tutti_div(way, span));
    tutti_sym rest = tutti_sub(way, tutti_mul(whole, span));
    tutti_sym is_even = tutti_equal(tutti_mod(whole, 2), none);
    tutti_sym back = tutti_where(is_even, tutti_add(low, rest), tutti_sub(high, rest));
    return tutti_where(is_wide, back, low);
}

/* A place brought into the input, as padding says. */
static tutti_sym pad_place(const axis_nodes *a, tutti_sym p)
{
    tutti_sym first = tutti__scalar_like(p, 0);
    if (a->reflection)
        p = mirror(p, a->align_corners ? first : tutti__scalar_like(p, -0.5),
                   a->align_corners ? a->last : tutti_add(a->last, 0.5));
    if (a->reflection || a->border)
        p = tutti_where(tutti_greater_equal(p, a->last), a->last,
                        tutti_where(tutti_less_equal(p, first), first, p));
    return p;
}

/* Where coordinate g is among the elements; what is not a number is as far outside as can be. */
static tutti_sym place_of(const axis_nodes *a, tutti_sym g)
{
    tutti_sym factor = tutti_mul(a->align_corners ? a->last : a->size, 0.5);
    tutti_sym p = tutti_mul(tutti_add(g, 1), factor);
    if (!a->align_corners)
        p = tutti_add(p, -0.5);
    tutti_sym is_near = tutti_less(tutti_abs(p), 1e15);
    return tutti_where(is_near, p, -1e15);
}

/* Keys's polynomial with a = -3/4 at distance x from an element, 0 to 1 or 1 to 2. */
static tutti_sym cubic_weight(tutti_sym x, bool is_near)
{
    const double a = -0.75;
    tutti_sym y = tutti_add(tutti_mul(x, is_near ? a + 2 : a), is_near ? -a - 3 : -5 * a);
    if (is_near)
        return tutti_add(tutti_mul(y, tutti_square(x)), 1);
    return tutti_add(tutti_mul(tutti_add(tutti_mul(y, x), 8 * a), x), -4 * a);
}

static tutti_sym weight_of(const axis_nodes *a, tutti_sym part, int tap)
{
    tutti_sym rest = tutti_sub(1, part);
    if (!a->cubic)
        return tap == 0 ? rest : part;
    switch (tap) {
    case 0:
        return cubic_weight(tutti_add(part, 1), false);
    case 1:
        return cubic_weight(part, true);
    case 2:
        return cubic_weight(rest, true);
    default:
        return cubic_weight(tutti_add(rest, 1), false);
    }
}

/* The taps along one axis at coordinates g; one that is not in the input weighs nothing. */
static taps taps_of(const axis_nodes *a, tutti_sym g)
{
    tutti_sym p = place_of(a, g), index[TUTTI_GRID_TAPS], weight[TUTTI_GRID_TAPS];
    int count = a->cubic ? 4 : 2, axis = tutti_sym_type(g).rank;
    if (!a->cubic)
        p = pad_place(a, p);
    tutti_sym base = tutti_floor(p), part = tutti_sub(p, base), none = tutti__scalar_like(p, 0);
    for (int tap = 0; tap < count; tap++) {
        tutti_sym at = tutti_add(base, a->cubic ? tap - 1 : tap);
        if (a->cubic)
            at = pad_place(a, at);
        tutti_sym is_there =
            tutti_logical_and(tutti_greater_equal(at, none), tutti_less_equal(at, a->last));
        index[tap] = tutti_cast(tutti_where(is_there, at, none), TUTTI_I64);
        weight[tap] = tutti_where(is_there, weight_of(a, part, tap), none);
    }
    return (taps){tutti_stack(count, index, .axis = axis),
                  tutti_stack(count, weight, .axis = axis)};
}

/* All combinations of taps in one axis: combination i takes tap i / stride % count of this one. */
static taps combined(taps t, int count, int combinations, int stride)
{
    int64_t which[TUTTI_GRID_TAPS * TUTTI_GRID_TAPS * TUTTI_GRID_TAPS];
    int axis = tutti_sym_type(t.index).rank - 1;
    for (int i = 0; i < combinations; i++)
        which[i] = i / stride % count;
    tutti_sym list = (tutti_ints)(t.index.node->graph, combinations, which);
    return (taps){tutti_gather(t.index, list, axis), tutti_gather(t.weight, list, axis)};
}

/* The number of the example that each output is of, once for each combination. */
static tutti_sym examples(tutti_sym like)
{
    return tutti_add(tutti_cumsum(tutti_ones_like(like), 0), -1);
}

void tutti__grid_sample_nodes(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                              void *context)
{
    const tutti_gradient_call *node = context;
    tutti_sym x = args[0], grid = tutti__widened(args[1]);
    tutti_type type = tutti_sym_type(x);
    const char *padding = RULE_STRING(node, "padding");
    int axes = type.rank - 2, all = 1, stride = 1;
    axis_nodes a = {.align_corners = RULE_INT(node, "align_corners") != 0,
                    .border = strcmp(padding, "border") == 0,
                    .reflection = strcmp(padding, "reflection") == 0,
                    .cubic = strcmp(RULE_STRING(node, "mode"), "cubic") == 0};
    tutti_sym index[1 + TUTTI_GRID_AXES] = {{0}}, weight = TUTTI_NO_SYM;
    (void)body;
    (void)count;
    for (int axis = 0; axis < axes; axis++)
        all *= a.cubic ? 4 : 2;
    for (int axis = 0; axis < axes; axis++) {
        int at = axes - 1 - axis; /* of the axis's coordinate in the grid */
        tutti_sym g = tutti_squeeze(tutti_slice_axis(grid, -1, at, at + 1), type.rank - 1);
        a.size = tutti_cast(tutti_size(x, axis + 1), tutti_sym_type(grid).dtype);
        a.last = tutti_add(a.size, -1);
        taps t = combined(taps_of(&a, g), a.cubic ? 4 : 2, all, stride);
        stride *= a.cubic ? 4 : 2;
        index[1 + axis] = t.index;
        weight = axis == 0 ? t.weight : tutti_mul(weight, t.weight);
    }
    index[0] = examples(index[1]);
    tutti_sym places = tutti_stack(1 + axes, index, .axis = type.rank);
    tutti_sym pixels = tutti_gather_nd(tutti__widened(x), places);
    tutti_sym y = tutti_mul(pixels, tutti_expand_dims(weight, type.rank));
    ret[0] = tutti__narrowed(tutti_sum(y, .axes = TUTTI_AXES(type.rank - 1)), type.dtype);
}
