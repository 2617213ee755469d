/* tile_grad.c: sums over the repetitions of a tile: the adjoint of tile. */
#include "ops/shape/rule.h"

static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_type like;
    const int64_t *multiples;
    TUTTI_TRY(tutti__shape_floats(node, 0));
    TUTTI_TRY(tutti__shape_like(node, 1, &like));
    bool agree = RULE_INTS(node, "multiples", &multiples) == x->rank && x->rank == like.rank;
    for (int i = 0; agree && i < x->rank; i++)
        agree =
            multiples[i] >= 0 && (x->dims[i] == TUTTI_ANY || like.dims[i] == TUTTI_ANY ||
                                  (multiples[i] == 0 ? x->dims[i] == 0
                                                     : x->dims[i] / multiples[i] == like.dims[i] &&
                                                           x->dims[i] % multiples[i] == 0));
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID, "input %s is not %s repeated by these multiples",
                         tutti_type_text(x, a), tutti_type_text(&like, b));
    return tutti__shape_output(node, 0, x->dtype, like.rank, like.dims);
}

static tutti_status gradient(tutti_gradient *node)
{
    extern const tutti_op tutti_op_tile;
    if (node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_tile, ((tutti_sym[]){node->output_grads[0]}),
                                          RULE_ATTR(node, "multiples"));
    return TUTTI_OK;
}

/* Offset in x of element `flat` of a grid with the given steps along each axis. */
static int64_t offset_of(int rank, const int64_t *sizes, const int64_t *steps, int64_t flat)
{
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; i--) {
        offset += flat % sizes[i] * steps[i];
        flat /= sizes[i];
    }
    return offset;
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t strides[TUTTI_MAX_RANK], jumps[TUTTI_MAX_RANK] = {0};
    int64_t count = tutti__dims_product(y->rank, y->dims);
    const int64_t *multiples;
    RULE_INTS(call, "multiples", &multiples);
    int64_t tiles = tutti__dims_product(x->rank, multiples);
    tutti__strides_of(x->rank, x->dims, strides);
    for (int i = 0; i < x->rank; i++)
        jumps[i] = strides[i] * y->dims[i];
    for (int64_t n = 0; n < count; n++) {
        int64_t base = offset_of(y->rank, y->dims, strides, n);
        double sum = 0;
        for (int64_t t = 0; t < tiles; t++)
            sum += tutti_view_get(x, base + offset_of(y->rank, multiples, jumps, t));
        tutti_view_set(y, n, sum);
    }
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[0]);
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *multiples;
    RULE_INTS(node, "multiples", &multiples);
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (multiples[i] != 1)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 1, i);
    }
    return cuts.count;
}

static const tutti_attr_spec attrs[] = {
    {"multiples", TUTTI_ATTR_INTS, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[4,3] f32[2,3] | multiples=[2,1]",
    "f32[4,2,4] f32[2,1,2] | multiples=[2,2,2]",
    "f32[0] f32[2] | multiples=[0]",
    "f32[6,3] | multiples=[2,1] dims=[3,3]",
    NULL,
};

const tutti_op tutti_op_tile_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "tile_grad",
    .version = 1,
    .doc =
        "tile_grad(x, like; multiples, dims): y[i] = sum of all x[j] that tiling makes of element i of a tensor of the shape of like, or dims without it",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
