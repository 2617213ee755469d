/* tile.c: the whole tensor repeated along each axis. */
#include "ops/shape/move.h"

static tutti_status tile_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    const int64_t *multiples;
    int count = RULE_INTS(node, "multiples", &multiples);
    int64_t dims[TUTTI_MAX_RANK];
    if (count != x->rank)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%d multiples are given for %s, needs %d, one for each axis", count,
                         tutti_type_text(x, text), x->rank);
    for (int i = 0; i < count; i++) {
        if (multiples[i] < 0)
            return RULE_FAIL(node, TUTTI_INVALID, "multiple %d is %lld, needs 0 or more", i,
                             (long long)multiples[i]);
        dims[i] = x->dims[i];
        if (dims[i] != TUTTI_ANY && !tutti__mul_size(dims[i], multiples[i], &dims[i]))
            return RULE_FAIL(node, TUTTI_TOO_LARGE, "the size of axis %d overflows 64 bits", i);
    }
    return tutti__shape_output(node, 0, x->dtype, count, dims);
}

static tutti_status tile_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_tile_grad;
    node->input_grads[0] =
        TUTTI_NARY(&tutti_op_tile_grad, ((tutti_sym[]){node->output_grads[0], node->inputs[0]}),
                   RULE_ATTR(node, "multiples"));
    return TUTTI_OK;
}

/* Axis i of y is two axes, multiples[i] and x's own, of which the first does not move in x. */
static tutti_status tile_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_move move = {.rank = 2 * x->rank, .size = tutti_dtype_size(x->dtype)};
    int64_t from[TUTTI_MAX_RANK], to[TUTTI_MAX_RANK];
    const int64_t *multiples;
    RULE_INTS(call, "multiples", &multiples);
    tutti__strides_of(x->rank, x->dims, from);
    tutti__strides_of(y->rank, y->dims, to);
    for (int i = 0; i < x->rank; i++) {
        move.dims[2 * i] = multiples[i];
        move.to[2 * i] = to[i] * x->dims[i];
        move.dims[2 * i + 1] = x->dims[i];
        move.from[2 * i + 1] = from[i];
        move.to[2 * i + 1] = to[i];
    }
    tutti__move(call, &move, x->data, y->data);
    return TUTTI_OK;
}

/* Axes that are not repeated. */
static int tile_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *multiples;
    RULE_INTS(node, "multiples", &multiples);
    for (int i = 0; i < node->inputs[0].rank; i++)
        if (multiples[i] == 1)
            tutti__cut_pair(&cuts, i, i);
    return cuts.count;
}

extern const tutti_op tutti_op_tile;
tutti_sym(tutti_tile)(tutti_sym x, int count, const int64_t *multiples)
{
    return TUTTI_NARY(&tutti_op_tile, ((tutti_sym[]){x}),
                      TUTTI_INTS("multiples", count, multiples));
}

static const tutti_attr_spec attrs[] = {
    {"multiples", TUTTI_ATTR_INTS, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] | multiples=[2,1]", "f32[3,2] | multiples=[1,3]", "i32[2,1,2] | multiples=[2,2,2]",
    "f32[2] | multiples=[0]",     "f32[] | multiples=[]",       NULL,
};

const tutti_op tutti_op_tile = {
    .struct_size = sizeof(tutti_op),
    .name = "tile",
    .version = 1,
    .doc =
        "tile(x; multiples): y[i, j, ..] = x[i mod d0, j mod d1, ..], multiples[k] times along axis k",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tile_infer,
    .gradient = tile_gradient,
    .cost = tutti__cost_move,
    .split = tile_split,
    .reference = tile_reference,
    .samples = samples,
};
