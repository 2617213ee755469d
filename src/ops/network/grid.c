/* grid.c: see grid_sample.h. */
#include <math.h>

#include "ops/network/grid_sample.h"

static tutti_status check_words(const tutti_infer *node)
{
    const char *mode = RULE_STRING(node, "mode"), *padding = RULE_STRING(node, "padding");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "nearest") != 0 && strcmp(mode, "cubic") != 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "mode is \"%s\", needs \"linear\", \"nearest\" or \"cubic\"", mode);
    if (strcmp(padding, "zeros") != 0 && strcmp(padding, "border") != 0 &&
        strcmp(padding, "reflection") != 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "padding is \"%s\", needs \"zeros\", \"border\" or \"reflection\"",
                         padding);
    return TUTTI_OK;
}

static bool agree(int64_t a, int64_t b)
{
    return a == b || a == TUTTI_ANY || b == TUTTI_ANY;
}

tutti_status tutti__grid_infer(const tutti_infer *node, const tutti_type *x, const tutti_type *grid,
                               const tutti_type *grad)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    int rank = grid->rank, axes = rank - 2;
    TUTTI_TRY(check_words(node));
    if (axes < 1 || axes > TUTTI_GRID_AXES || !agree(grid->dims[rank - 1], axes))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "grid is %s, needs [batch, …, axes] with one to three axes between batch "
                         "and coordinates, and as many coordinates",
                         tutti_type_text(grid, a));
    bool fits = x == NULL || (x->rank == rank && agree(x->dims[0], grid->dims[0]));
    for (int axis = 0; fits && grad != NULL && axis < rank - 1; axis++)
        fits = grad->rank == rank && agree(grad->dims[axis], grid->dims[axis]);
    if (fits && x != NULL && grad != NULL)
        fits = agree(x->dims[rank - 1], grad->dims[rank - 1]);
    if (!fits)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "grid is %s, which does not fit %s; needs the same batch and number of "
                         "axes",
                         tutti_type_text(grid, a), tutti_type_text(x == NULL ? grad : x, b));
    for (int axis = 1; x != NULL && axis < rank - 1; axis++)
        if (x->dims[axis] == 0 || x->dims[axis] >= (int64_t)1 << 31)
            return RULE_FAIL(node, TUTTI_INVALID, "x is %s; there is nothing to sample",
                             tutti_type_text(x, a));
    return TUTTI_OK;
}

tutti_grid tutti__grid(const tutti_kernel_call *call, const tutti_view *x, const tutti_view *grid)
{
    const char *mode = tutti_attr_string(call->attrs, call->attr_count, "mode");
    const char *padding = tutti_attr_string(call->attrs, call->attr_count, "padding");
    tutti_grid g = {.axes = x->rank - 2,
                    .batch = x->dims[0],
                    .channels = x->dims[x->rank - 1],
                    .outputs = 1,
                    .align_corners = CALL_INT(call, "align_corners") != 0,
                    .border = strcmp(padding, "border") == 0,
                    .reflection = strcmp(padding, "reflection") == 0,
                    .nearest = strcmp(mode, "nearest") == 0,
                    .cubic = strcmp(mode, "cubic") == 0};
    for (int axis = 0; axis < g.axes; axis++) {
        g.size[axis] = x->dims[axis + 1];
        g.outputs *= grid->dims[axis + 1];
    }
    return g;
}

/* p mirrored until it lies in [low, high]; the sign of its slope goes to *ret_slope. */
static double mirror(double p, double low, double high, double *ret_slope)
{
    double span = high - low, way = fabs(p - low), whole;
    *ret_slope = p < low ? -1 : 1;
    if (!(span > 0)) {
        *ret_slope = 0;
        return low;
    }
    whole = floor(way / span);
    double rest = way - whole * span;
    if (fmod(whole, 2) == 0)
        return low + rest;
    *ret_slope = -*ret_slope;
    return high - rest;
}

/* A place brought into the input, as padding says; the slope of that goes to *ret_slope. */
static double pad_place(const tutti_grid *g, int axis, double p, double *ret_slope)
{
    double last = (double)(g->size[axis] - 1);
    *ret_slope = 1;
    if (g->reflection)
        p = mirror(p, g->align_corners ? 0 : -0.5, g->align_corners ? last : last + 0.5, ret_slope);
    if ((g->reflection || g->border) && (p <= 0 || p >= last)) {
        *ret_slope = 0;
        p = p >= last ? last : 0;
    }
    return p;
}

/* An element at a whole place; -1 where there is a zero. */
static int64_t grid_element(const tutti_grid *g, int axis, double p)
{
    double ignored;
    if (g->cubic)
        p = pad_place(g, axis, p, &ignored);
    return p >= 0 && p < (double)g->size[axis] ? (int64_t)p : -1;
}

/* Keys's polynomial with a = -3/4 at distance x >= 0 from an element, and its slope. */
static void cubic_weight(double x, double *ret_weight, double *ret_slope)
{
    const double a = -0.75;
    if (x <= 1) {
        *ret_weight = ((a + 2) * x - (a + 3)) * x * x + 1;
        *ret_slope = (3 * (a + 2) * x - 2 * (a + 3)) * x;
    } else {
        *ret_weight = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        *ret_slope = (3 * a * x - 10 * a) * x + 8 * a;
    }
}

void tutti__grid_axis(const tutti_grid *g, int axis, double at, tutti_grid_axis *ret)
{
    double size = (double)g->size[axis], slope = 1;
    double factor = (g->align_corners ? size - 1 : size) / 2;
    double p = (at + 1) * factor - (g->align_corners ? 0 : 0.5);
    if (!(fabs(p) < 1e15)) /* also NaN: as far outside as one can be */
        p = -1e15;
    if (!g->cubic)
        p = pad_place(g, axis, p, &slope);
    if (g->nearest) {
        *ret = (tutti_grid_axis){.count = 1, .index = {grid_element(g, axis, nearbyint(p))}};
        ret->weight[0] = 1;
        return;
    }
    double base = floor(p), part = p - base;
    ret->count = g->cubic ? 4 : 2;
    for (int tap = 0; tap < ret->count; tap++) {
        int offset = g->cubic ? tap - 1 : tap;
        double distance = fabs(part - offset), sign = part >= offset ? 1 : -1;
        ret->index[tap] = grid_element(g, axis, base + offset);
        ret->weight[tap] = 1 - distance;
        ret->slope[tap] = -1;
        if (g->cubic)
            cubic_weight(distance, &ret->weight[tap], &ret->slope[tap]);
        ret->slope[tap] *= sign * slope * factor;
    }
    if (!g->cubic) { /* where part is 0 the slope is that to the right */
        ret->slope[0] = -slope * factor;
        ret->slope[1] = slope * factor;
    }
}

/* The combinations of one output. */
static void walk_taps(const tutti_grid *g, const tutti_grid_axis *axes, tutti_grid_fn *visit,
                      void *context, int64_t image, int64_t output)
{
    int taps[TUTTI_GRID_AXES], combinations = 1;
    for (int axis = 0; axis < g->axes; axis++)
        combinations *= axes[axis].count;
    for (int i = 0; i < combinations; i++) {
        int64_t x = image;
        int rest = i;
        bool zero = false;
        for (int axis = 0; axis < g->axes; axis++) {
            taps[axis] = rest % axes[axis].count;
            rest /= axes[axis].count;
            int64_t index = axes[axis].index[taps[axis]];
            zero = zero || index < 0;
            x = x * g->size[axis] + index;
        }
        if (!zero)
            visit(g, context, axes, taps, output, x * g->channels, output * g->channels);
    }
}

void tutti__grid_each(const tutti_grid *g, const double *grid, tutti_grid_fn *visit, void *context)
{
    tutti_grid_axis axes[TUTTI_GRID_AXES];
    for (int64_t output = 0; output < g->batch * g->outputs; output++) {
        for (int axis = 0; axis < g->axes; axis++)
            tutti__grid_axis(g, axis, grid[output * g->axes + g->axes - 1 - axis], &axes[axis]);
        walk_taps(g, axes, visit, context, output / g->outputs, output);
    }
}

void tutti__grid_cost(const tutti_infer *node, const tutti_type *y, tutti_cost *ret)
{
    const char *mode = RULE_STRING(node, "mode");
    double taps = strcmp(mode, "nearest") == 0 ? 1 : strcmp(mode, "linear") == 0 ? 2 : 4, all = 2;
    for (int axis = 0; axis < y->rank - 2; axis++)
        all *= taps;
    tutti__cost_flops(node, all * tutti__elements(y), ret);
}
