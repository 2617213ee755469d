/* pad_grad.c: sums what padding made of each element: the adjoint of pad by reflection or edge. */
#include "ops/shape/pad.h"

/* Whether `size` elements come of `inside` ones. */
static bool is_padded(int64_t size, int64_t inside, const int64_t *paddings)
{
    return tutti__add_size(inside, paddings[0], &inside) &&
           tutti__add_size(inside, paddings[1], &inside) && size == inside;
}

static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_type like;
    const int64_t *paddings;
    TUTTI_TRY(tutti__shape_floats(node, 0));
    TUTTI_TRY(tutti__shape_like(node, 1, &like));
    TUTTI_TRY(tutti__pad_check(node, &like));
    RULE_INTS(node, "paddings", &paddings);
    bool agree = x->rank == like.rank;
    for (int i = 0; agree && i < x->rank; i++)
        agree = x->dims[i] == TUTTI_ANY || like.dims[i] == TUTTI_ANY ||
                is_padded(x->dims[i], like.dims[i], &paddings[2 * i]);
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID, "input %s is not %s with these paddings",
                         tutti_type_text(x, a), tutti_type_text(&like, b));
    return tutti__shape_output(node, 0, x->dtype, like.rank, like.dims);
}

static tutti_status gradient(tutti_gradient *node)
{
    extern const tutti_op tutti_op_pad;
    if (node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_pad, ((tutti_sym[]){node->output_grads[0]}),
                                          RULE_ATTR(node, "paddings"), RULE_ATTR(node, "mode"));
    return TUTTI_OK;
}

typedef struct {
    const tutti_view *x, *y;
    const int64_t *paddings;
    tutti_pad_mode mode;
    int64_t strides[TUTTI_MAX_RANK], index[TUTTI_MAX_RANK]; /* of x; of the element of y */
} state;

static double sum_from(const state *s, int axis, int64_t offset);

static double sum_range(const state *s, int axis, int64_t offset, int64_t low, int64_t high)
{
    double sum = 0;
    for (int64_t at = low; at < high; at++)
        sum += sum_from(s, axis + 1, offset + at * s->strides[axis]);
    return sum;
}

/* All places of x from `axis` on that hold the element. Along one axis these are its own place, and
 * by reflection one before and one behind, or at an edge all the padding there. */
static double sum_from(const state *s, int axis, int64_t offset)
{
    if (axis == s->y->rank)
        return tutti_view_get(s->x, offset);
    int64_t i = s->index[axis], size = s->y->dims[axis], all = s->x->dims[axis];
    int64_t own = s->paddings[2 * axis] + i;
    if (s->mode == TUTTI_PAD_EDGE)
        return sum_range(s, axis, offset, i == 0 ? 0 : own, i == size - 1 ? all : own + 1);
    double sum = sum_range(s, axis, offset, own, own + 1);
    if (s->mode == TUTTI_PAD_REFLECT && i > 0 && own - 2 * i >= 0)
        sum += sum_range(s, axis, offset, own - 2 * i, own - 2 * i + 1);
    int64_t behind = own + 2 * (size - 1 - i);
    if (s->mode == TUTTI_PAD_REFLECT && i < size - 1 && behind < all)
        sum += sum_range(s, axis, offset, behind, behind + 1);
    return sum;
}

static tutti_status reference(const tutti_call *call)
{
    state s = {.x = &call->inputs[0], .y = &call->outputs[0]};
    int64_t count = tutti_view_count(s.y);
    s.mode = tutti__pad_mode(call->attrs, call->attr_count);
    RULE_INTS(call, "paddings", &s.paddings);
    tutti__strides_of(s.x->rank, s.x->dims, s.strides);
    for (int64_t n = 0; n < count; n++) {
        tutti_view_set(s.y, n, sum_from(&s, 0, 0));
        for (int axis = s.y->rank - 1; axis >= 0 && ++s.index[axis] == s.y->dims[axis]; axis--)
            s.index[axis] = 0;
    }
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *paddings;
    RULE_INTS(node, "paddings", &paddings);
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (paddings[2 * i] != 0 || paddings[2 * i + 1] != 0)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 1, i);
    }
    return cuts.count;
}

static const tutti_attr_spec attrs[] = {
    {"paddings", TUTTI_ATTR_INTS, NULL},
    {"mode", TUTTI_ATTR_STRING, "constant"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,9] f32[3,4] | paddings=[0,0,2,3] mode=reflect",
    "f32[4,5,2] f32[2,3,2] | paddings=[1,1,2,0,0,0] mode=edge",
    "f32[4] f32[1] | paddings=[1,2] mode=edge",
    "f32[3,9] | paddings=[0,0,2,3] mode=reflect dims=[3,4]",
    NULL,
};

const tutti_op tutti_op_pad_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "pad_grad",
    .version = 1,
    .doc =
        "pad_grad(x, like; paddings, mode, dims): y[i] = sum of all x[j] that padding makes of element i of a tensor of the shape of like, or dims without it",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
