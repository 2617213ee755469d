/* initial.c: initial values of variables; see initial.h. */
#include "ops/state/initial.h"

#include <math.h>

#include "ops/shape/rule.h"

tutti_init tutti_init_make(tutti_init_kind kind, double a, double b, int rank, const int64_t *dims)
{
    tutti_init init = {.kind = kind, .a = a, .b = b, .rank = rank};
    for (int i = 0; dims && i < rank && i < TUTTI_MAX_RANK; i++)
        init.dims[i] = dims[i];
    return init;
}

tutti_init tutti_tensor_init(tutti_tensor *tensor)
{
    tutti_init init = {.kind = TUTTI_INIT_TENSOR, .tensor = tensor};
    if (tensor)
        init = tutti_init_make(TUTTI_INIT_TENSOR, 0, 0, tutti_tensor_rank(tensor),
                               tutti_tensor_dims(tensor));
    init.tensor = tensor;
    return init;
}

tutti_init tutti_sym_init(tutti_sym sym)
{
    tutti_type type = tutti_sym_type(sym);
    tutti_init init = tutti_init_make(TUTTI_INIT_SYM, 0, 0, type.rank, type.dims);
    init.sym = sym;
    return init;
}

/* Whether the type has what is made, not given. Draws by fans are about weights: of integers only
 * -1 and 0 could come, or nothing. */
static tutti_status check_made(const tutti_init *init, tutti_dtype dtype)
{
    if (init->kind == TUTTI_INIT_TENSOR || init->kind == TUTTI_INIT_SYM || dtype == TUTTI_NO_DTYPE)
        return TUTTI_OK;
    if (dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID, "string has no numbers as initial values; give strings "
                                         "with tutti_tensor_init");
    bool scaled = init->kind == TUTTI_INIT_SCALED_UNIFORM || init->kind == TUTTI_INIT_SCALED_NORMAL;
    if (scaled && !tutti_dtype_is_float(dtype))
        return tutti_fail(TUTTI_INVALID,
                          "initial values that are scaled by fans are floats, .dtype asks for %s",
                          tutti_dtype_name(dtype));
    return init->kind == TUTTI_INIT_FULL ? tutti__fill_check(dtype, init->a) : TUTTI_OK;
}

tutti_status tutti__init_type(const tutti_init *init, tutti_dtype dtype, tutti_type *ret_type)
{
    tutti_dtype own = TUTTI_NO_DTYPE;
    if (init->kind == TUTTI_INIT_TENSOR && !init->tensor)
        return tutti_fail(TUTTI_INVALID, "the tensor of the initial value is NULL");
    if (init->kind == TUTTI_INIT_SYM && !tutti_sym_ok(init->sym))
        return tutti_fail(TUTTI_INVALID, "the symbol of the initial value is none");
    if (init->kind == TUTTI_INIT_TENSOR)
        own = tutti_tensor_dtype(init->tensor);
    if (init->kind == TUTTI_INIT_SYM)
        own = tutti_sym_type(init->sym).dtype;
    if (own != TUTTI_NO_DTYPE && dtype != TUTTI_NO_DTYPE && own != dtype)
        return tutti_fail(TUTTI_INVALID,
                          "the initial value is %s, .dtype asks for %s; leave it out",
                          tutti_dtype_name(own), tutti_dtype_name(dtype));
    TUTTI_TRY(check_made(init, dtype));
    if (init->rank < 0 || init->rank > TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_INVALID, "the initial value has %d dimensions, at most %d exist",
                          init->rank, TUTTI_MAX_RANK);
    if (dtype == TUTTI_NO_DTYPE)
        dtype = own == TUTTI_NO_DTYPE ? TUTTI_F32 : own;
    *ret_type = tutti_type_make(dtype, init->rank, init->dims);
    return TUTTI_OK;
}

/* [n]: n and n; [..., in, out]: in and out, times the size of the dimensions before them. */
void tutti__fans(int rank, const int64_t *dims, double *ret_in, double *ret_out)
{
    double receptive = 1, in = 1, out = 1;
    for (int i = 0; i + 2 < rank; i++)
        receptive *= (double)dims[i];
    if (rank >= 1) {
        out = (double)dims[rank - 1];
        in = (double)dims[rank >= 2 ? rank - 2 : 0];
    }
    *ret_in = fmax(1, in * receptive);
    *ret_out = fmax(1, out * receptive);
}

/* The standard deviation of a normal distribution cut at two standard deviations. */
#define TRUNCATED_STDDEV 0.87962566103423978

/* A scaled kind as a plain one: variance a / fan. */
static tutti_init unscaled(const tutti_init *init)
{
    tutti_init plain = *init;
    double in, out;
    tutti__fans(init->rank, init->dims, &in, &out);
    double fan = init->b == TUTTI_FAN_IN ? in : init->b == TUTTI_FAN_OUT ? out : (in + out) / 2;
    if (init->kind == TUTTI_INIT_SCALED_UNIFORM) {
        plain.kind = TUTTI_INIT_UNIFORM;
        plain.b = sqrt(3 * init->a / fan);
        plain.a = -plain.b;
    } else if (init->kind == TUTTI_INIT_SCALED_NORMAL) {
        plain.kind = TUTTI_INIT_TRUNCATED_NORMAL;
        plain.a = 0;
        plain.b = sqrt(init->a / fan) / TRUNCATED_STDDEV;
    }
    return plain;
}

static tutti_sym full(tutti_graph *graph, double value, const tutti_type *type)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype), TUTTI_FLOAT("value", value),
                          TUTTI_INTS("dims", type->rank, type->dims)};
    return tutti_apply_op_named(graph, "fill", "initial_value", 0, NULL, TUTTI_COUNT(attrs), attrs);
}

tutti_sym tutti__initial_value(tutti_graph *graph, const tutti_init *init, const tutti_type *type,
                               int64_t seed)
{
    tutti_init plain = unscaled(init);
    tutti_random_options options = {
        .struct_size = sizeof options, .seed = seed, .name = "initial_value"};
    if (plain.kind == TUTTI_INIT_TENSOR)
        return tutti_constant(graph, plain.tensor);
    if (plain.kind == TUTTI_INIT_SYM)
        return tutti__value_of(plain.sym);
    if (plain.kind == TUTTI_INIT_FULL)
        return full(graph, plain.a, type);
    /* Counter 0, always: initialising twice gives the same values. */
    options.counter = tutti_scalar(graph, TUTTI_I64, 0);
    switch (plain.kind) {
    case TUTTI_INIT_UNIFORM:
        return tutti_random_uniform_with(graph, plain.a, plain.b, *type, &options);
    case TUTTI_INIT_NORMAL:
        return tutti_random_normal_with(graph, plain.a, plain.b, *type, &options);
    case TUTTI_INIT_TRUNCATED_NORMAL:
        return tutti_random_truncated_normal_with(graph, plain.a, plain.b, *type, &options);
    default:
        return tutti__poison(graph, TUTTI_INVALID, "there is no initial value of kind %d",
                             (int)plain.kind);
    }
}
