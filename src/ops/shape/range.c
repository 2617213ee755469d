/* range.c: equally spaced numbers. */
#include <math.h>

#include "ops/shape/move.h"
#include "tensor/dtype.h"

/* How many of start, start + delta, … lie before limit. */
static tutti_status range_count(const tutti_infer *node, int64_t *ret_count)
{
    double start = RULE_FLOAT(node, "start"), limit = RULE_FLOAT(node, "limit");
    double delta = RULE_FLOAT(node, "delta");
    if (!isfinite(start) || !isfinite(limit) || !isfinite(delta) || delta == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "start %g, limit %g, delta %g: all must be finite and delta not 0", start,
                         limit, delta);
    double count = ceil((limit - start) / delta);
    if (count >= 0x1p53)
        return RULE_FAIL(node, TUTTI_TOO_LARGE,
                         "start %g, limit %g, delta %g: %g elements are too many", start, limit,
                         delta, count);
    *ret_count = count > 0 ? (int64_t)count : 0;
    return TUTTI_OK;
}

/* Whether whole numbers of a type reach so far. */
static bool holds(tutti_dtype dtype, double value)
{
    int bits = 8 * (int)tutti_dtype_size(dtype);
    return dtype == TUTTI_U8 ? value >= 0 && value < 0x1p8
                             : value >= -ldexp(1, bits - 1) && value < ldexp(1, bits - 1);
}

static tutti_status range_infer(tutti_infer *node)
{
    tutti_dtype dtype = (tutti_dtype)RULE_INT(node, "dtype");
    double start = RULE_FLOAT(node, "start"), delta = RULE_FLOAT(node, "delta");
    int64_t count = 0;
    if (!tutti_dtype_is_float(dtype) && !tutti_dtype_is_int(dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "dtype %d is no type of numbers", (int)dtype);
    TUTTI_TRY(range_count(node, &count));
    if (tutti_dtype_is_int(dtype) && (start != floor(start) || delta != floor(delta)))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "start %g and delta %g must be whole numbers for elements of type %s",
                         start, delta, tutti_dtype_name(dtype));
    double last = start + (double)(count - 1) * delta;
    if (tutti_dtype_is_int(dtype) && count > 0 && (!holds(dtype, start) || !holds(dtype, last)))
        return RULE_FAIL(node, TUTTI_INVALID, "numbers from %g to %g do not fit into type %s",
                         start, last, tutti_dtype_name(dtype));
    return tutti__shape_output(node, 0, dtype, 1, &count);
}

enum { RUN = 512, PIECE = 16 * RUN }; /* numbers made at once; of one piece */

typedef struct {
    const tutti_view *out;
    double start, delta;
} job;

static void range_run(const job *all, int64_t first, int64_t count)
{
    double numbers[RUN];
    int64_t whole[RUN];
    tutti_dtype dtype = all->out->dtype;
    void *to = tutti__element(all->out, first);
    if (tutti_dtype_is_int(dtype)) {
        for (int64_t i = 0; i < count; i++)
            whole[i] = (int64_t)all->start + (first + i) * (int64_t)all->delta;
        tutti__elements_from_ints(dtype, to, count, whole);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        numbers[i] = all->start + (double)(first + i) * all->delta;
    if (first == 0)
        numbers[0] = all->start; /* which may be -0 */
    tutti__elements_from_doubles(dtype, to, count, numbers);
}

static void range_piece(void *context, int64_t index)
{
    const job *all = context;
    int64_t first = index * PIECE, count = all->out->dims[0];
    int64_t end = count - first < PIECE ? count : first + PIECE;
    for (; first < end; first += RUN)
        range_run(all, first, end - first < RUN ? end - first : RUN);
}

static tutti_status range_reference(const tutti_kernel_call *call)
{
    job all = {&call->outputs[0], RULE_FLOAT(call, "start"), RULE_FLOAT(call, "delta")};
    if (all.out->dims[0] > 0)
        tutti_parallel(call, (all.out->dims[0] + PIECE - 1) / PIECE, range_piece, &all);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_range;
tutti_sym(tutti_range)(tutti_graph *graph, double start, double limit, double delta,
                       tutti_dtype dtype)
{
    tutti_attr given[] = {TUTTI_FLOAT("start", start), TUTTI_FLOAT("limit", limit),
                          TUTTI_FLOAT("delta", delta), TUTTI_INT("dtype", dtype)};
    return tutti__build(graph, &tutti_op_range, NULL, 0, NULL, TUTTI_COUNT(given), given);
}

static const tutti_attr_spec attrs[] = {
    {"start", TUTTI_ATTR_FLOAT, "0"},
    {"limit", TUTTI_ATTR_FLOAT, NULL},
    {"delta", TUTTI_ATTR_FLOAT, "1"},
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {NULL},
};
static const char *const samples[] = {
    "| limit=5",
    "| start=1 limit=2 delta=0.25 dtype=f64",
    "| start=7 limit=-2 delta=-3 dtype=i32",
    "| start=3 limit=3",
    NULL,
};

const tutti_op tutti_op_range = {
    .struct_size = sizeof(tutti_op),
    .name = "range",
    .version = 1,
    .doc =
        "range(; start, limit, delta, dtype): y[i] = start + i delta, up to but not including limit",
    .category = "shape",
    .min_inputs = 0,
    .max_inputs = 0,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = range_infer,
    .cost = tutti__cost_move,
    .reference = range_reference,
    .samples = samples,
};
