/* numbers.c: arithmetic of shapes, number by number: what is known stays known beside a
 * batch that is open. It is followed through the nodes that were built. */
#include "bridge/graphdef/graphdef.h"
#include "ops/shape/slice.h"

#include <string.h>

#define DEEPEST 64
#define MOST 512 /* nodes that one question may visit */

typedef struct asking {
    tutti_graphdef_import *m;
    int depth, visited;
} asking;

static bool ask(asking *a, tutti_edge edge, tutti_axes *ret);

static bool is_whole(const tutti_type *type)
{
    return (type->dtype == TUTTI_I32 || type->dtype == TUTTI_I64) && type->rank <= 1;
}

static void numbers_push(tutti_axes *list, int64_t value)
{
    if (list->count < TUTTI_MAX_RANK)
        list->values[list->count++] = value;
}

static bool of_constant(const tutti_node *node, tutti_axes *ret)
{
    const tutti_tensor *value =
        tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor;
    for (int64_t i = 0; i < tutti_tensor_count(value); i++)
        numbers_push(ret, tutti_tensor_get_int(value, i));
    return true;
}

static bool of_shape(const tutti_node *node, tutti_axes *ret)
{
    const tutti_type *x = tutti__edge_type(node->inputs[0]);
    for (int i = 0; i < x->rank; i++)
        numbers_push(ret, x->dims[i] == TUTTI_ANY ? GRAPHDEF_UNKNOWN : x->dims[i]);
    return true;
}

/* Some of the input's numbers: slice along the only axis. */
static bool of_slice(asking *a, const tutti_node *node, tutti_axes *ret)
{
    tutti_axes all;
    tutti_slice_run run;
    if (!ask(a, node->inputs[0], &all))
        return false;
    int64_t dim = all.count;
    tutti__slice_runs(node->attrs, node->attr_count, 1, &dim, &run);
    for (int64_t i = 0; i < run.count; i++)
        numbers_push(ret, all.values[run.start + i * run.step]);
    return true;
}

static bool of_gather(asking *a, const tutti_node *node, tutti_axes *ret)
{
    tutti_axes all, at;
    if (!ask(a, node->inputs[0], &all) || !ask(a, node->inputs[1], &at))
        return false;
    for (int i = 0; i < at.count; i++) {
        int64_t place = at.values[i] + (at.values[i] < 0 ? all.count : 0);
        numbers_push(ret, place >= 0 && place < all.count ? all.values[place] : GRAPHDEF_UNKNOWN);
    }
    return true;
}

/* concat and stack of numbers. */
static bool of_join(asking *a, const tutti_node *node, tutti_axes *ret)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_axes part;
        if (!ask(a, node->inputs[i], &part))
            return false;
        for (int k = 0; k < part.count; k++)
            numbers_push(ret, part.values[k]);
    }
    return true;
}

static int64_t compute(const char *op, int64_t a, int64_t b)
{
    int64_t result = GRAPHDEF_UNKNOWN;
    if (a == GRAPHDEF_UNKNOWN || b == GRAPHDEF_UNKNOWN)
        return result;
    if (strcmp(op, "maximum") == 0)
        return a > b ? a : b;
    if (strcmp(op, "minimum") == 0)
        return a < b ? a : b;
    if (strcmp(op, "floordiv") == 0)
        return b == 0 || b == -1 ? GRAPHDEF_UNKNOWN : a / b - (a % b != 0 && (a < 0) != (b < 0));
    bool over = strcmp(op, "add") == 0   ? __builtin_add_overflow(a, b, &result)
                : strcmp(op, "sub") == 0 ? __builtin_sub_overflow(a, b, &result)
                                         : __builtin_mul_overflow(a, b, &result);
    return over || result > INT32_MAX || result < INT32_MIN ? GRAPHDEF_UNKNOWN : result;
}

static bool of_arithmetic(asking *a, const tutti_node *node, tutti_axes *ret)
{
    tutti_axes x, y;
    if (!ask(a, node->inputs[0], &x) || !ask(a, node->inputs[1], &y) ||
        (x.count != y.count && x.count != 1 && y.count != 1))
        return false;
    int count = x.count == 1 ? y.count : x.count;
    for (int i = 0; i < count; i++)
        numbers_push(ret, compute(node->op->name, x.values[x.count == 1 ? 0 : i],
                                  y.values[y.count == 1 ? 0 : i]));
    return true;
}

static bool of_product(asking *a, const tutti_node *node, tutti_axes *ret)
{
    tutti_axes x;
    int64_t product = 1;
    if (!ask(a, node->inputs[0], &x))
        return false;
    for (int i = 0; i < x.count; i++)
        product = compute("mul", product, x.values[i]);
    numbers_push(ret, product);
    return true;
}

/* Of all axes, or of those that are named. */
static bool of_size(const tutti_node *node, tutti_axes *ret)
{
    const tutti_type *x = tutti__edge_type(node->inputs[0]);
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    int64_t size = 1;
    for (int i = 0; i < (count > 0 ? count : x->rank); i++) {
        int64_t axis = count > 0 ? axes[i] + (axes[i] < 0 ? x->rank : 0) : i;
        int64_t dim = axis >= 0 && axis < x->rank ? x->dims[axis] : TUTTI_ANY;
        size = compute("mul", size, dim == TUTTI_ANY ? GRAPHDEF_UNKNOWN : dim);
    }
    numbers_push(ret, size);
    return true;
}

static bool is_one_of(const tutti_node *node, const char *const *names)
{
    while (*names && !tutti__is(node, *names))
        names++;
    return *names;
}

static bool follow(asking *a, const tutti_node *node, tutti_axes *ret)
{
    static const char *const same[] = {"cast",        "identity",      "squeeze", "reshape",
                                       "expand_dims", "stop_gradient", NULL};
    static const char *const pairs[] = {"add",     "sub",     "mul", "floordiv",
                                        "maximum", "minimum", NULL};
    if (tutti__is(node, "constant"))
        return of_constant(node, ret);
    if (tutti__is(node, "shape"))
        return of_shape(node, ret);
    if (is_one_of(node, same))
        return ask(a, node->inputs[0], ret);
    if (tutti__is(node, "slice"))
        return of_slice(a, node, ret);
    if (tutti__is(node, "gather"))
        return of_gather(a, node, ret);
    if (tutti__is(node, "concat") || tutti__is(node, "stack"))
        return of_join(a, node, ret);
    if (is_one_of(node, pairs))
        return of_arithmetic(a, node, ret);
    if (tutti__is(node, "size"))
        return of_size(node, ret);
    return tutti__is(node, "prod") && of_product(a, node, ret);
}

/* What is followed must agree with what the type says; else nothing is known but how many. */
static bool ask(asking *a, tutti_edge edge, tutti_axes *ret)
{
    const tutti_type *type = tutti__edge_type(edge);
    int64_t count = tutti_type_count(type);
    *ret = (tutti_axes){0};
    if (!is_whole(type) || count < 0 || count > TUTTI_MAX_RANK || a->depth >= DEEPEST ||
        ++a->visited > MOST)
        return false;
    a->depth++;
    bool known = follow(a, edge.node, ret);
    a->depth--;
    if (known && ret->count == count)
        return true;
    ret->count = (int)count;
    for (int i = 0; i < ret->count; i++)
        ret->values[i] = GRAPHDEF_UNKNOWN;
    return true;
}

bool tutti__graphdef_numbers(tutti_graphdef_import *m, tutti_sym sym, tutti_axes *ret)
{
    asking a = {.m = m};
    *ret = (tutti_axes){0};
    return tutti_graph_check(m->graph) == TUTTI_OK && ask(&a, tutti__edge(sym), ret);
}

/* ---- shapes that nodes take ---- */

bool tutti__graphdef_shape_in(tutti_graphdef_import *m, int i, tutti_axes *ret)
{
    tutti_sym shape = tutti__graphdef_in(m, i);
    if (m->status == TUTTI_OK &&
        (tutti_sym_type(shape).rank != 1 || !tutti__graphdef_numbers(m, shape, ret)))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "the number of its dimensions is not known");
    return m->status == TUTTI_OK;
}

/* Something of the shape `whole`, i64 [rank], of which `numbers` are known. */
static tutti_sym like_shape(tutti_sym whole, const tutti_axes *numbers)
{
    int64_t dims[TUTTI_MAX_RANK];
    for (int i = 0; i < numbers->count; i++)
        dims[i] = numbers->values[i] < 0 ? TUTTI_ANY : numbers->values[i];
    return (tutti_fill_dynamic)(whole, TUTTI_BOOL, 0, numbers->count, dims);
}

tutti_sym tutti__graphdef_like(tutti_graphdef_import *m, int i)
{
    tutti_axes numbers = {0};
    tutti_sym shape = tutti__graphdef_in(m, i);
    if (!tutti__graphdef_shape_in(m, i, &numbers))
        return TUTTI_NO_SYM;
    bool all = true;
    for (int k = 0; k < numbers.count; k++)
        all = all && numbers.values[k] >= 0;
    if (all)
        return (tutti_fill)(m->graph, TUTTI_BOOL, 0, numbers.count, numbers.values);
    return like_shape(tutti_cast(shape, TUTTI_I64), &numbers);
}

tutti_sym tutti__graphdef_reshaped(tutti_graphdef_import *m, tutti_sym x, int i)
{
    tutti_axes numbers = {0};
    tutti_sym shape = tutti__graphdef_in(m, i);
    int open = 0;
    if (!tutti__graphdef_shape_in(m, i, &numbers))
        return TUTTI_NO_SYM;
    int64_t dims[TUTTI_MAX_RANK];
    for (int k = 0; k < numbers.count; k++) {
        dims[k] = numbers.values[k] < 0 ? -1 : numbers.values[k];
        open += dims[k] < 0;
    }
    if (open <= 1)
        return (tutti_reshape)(x, numbers.count, dims);
    /* -1 is what the others leave: size(x) / -product */
    shape = tutti_cast(shape, TUTTI_I64);
    tutti_sym size = tutti_cast((tutti_size)(x, 0, NULL), TUTTI_F64);
    tutti_sym product = tutti_cast(tutti_prod(shape), TUTTI_F64);
    tutti_sym left = tutti_cast(tutti_neg(tutti_div(size, product)), TUTTI_I64);
    tutti_sym below = tutti_less(shape, 0);
    return tutti_reshape_like(x, like_shape(tutti_where(below, left, shape), &numbers));
}

tutti_graphdef_dim tutti__graphdef_dim(tutti_sym x, int axis)
{
    tutti_type type = tutti_sym_ok(x) ? tutti_sym_type(x) : (tutti_type){0};
    if (axis >= type.rank)
        return (tutti_graphdef_dim){.known = 1};
    if (type.dims[axis] >= 0)
        return (tutti_graphdef_dim){.known = type.dims[axis]};
    return (tutti_graphdef_dim){.known = -1, .sym = tutti_size(x, axis)};
}

tutti_graphdef_dim tutti__graphdef_dim_times(tutti_graphdef_dim dim, int64_t times, int64_t over)
{
    if (dim.known >= 0)
        return (tutti_graphdef_dim){.known = dim.known * times / over};
    dim.sym = tutti_mul(dim.sym, (double)times);
    if (over != 1)
        dim.sym = tutti_floordiv(dim.sym, (double)over);
    return dim;
}

tutti_sym tutti__graphdef_in_dims(tutti_sym x, int rank, const tutti_graphdef_dim *dims)
{
    tutti_axes numbers = {.count = rank};
    tutti_sym parts[TUTTI_MAX_RANK];
    int open = 0;
    for (int i = 0; i < rank; i++)
        open += (numbers.values[i] = dims[i].known < 0 ? -1 : dims[i].known) < 0;
    if (open <= 1)
        return (tutti_reshape)(x, rank, numbers.values);
    for (int i = 0; i < rank; i++)
        parts[i] = dims[i].known < 0
                       ? dims[i].sym
                       : tutti_scalar(tutti_sym_graph(x), TUTTI_I64, (double)dims[i].known);
    return tutti_reshape_like(x, like_shape(tutti_stack(rank, parts), &numbers));
}
