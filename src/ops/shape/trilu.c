/* trilu.c: the upper or lower triangle of matrices, zero elsewhere. */
#include "ops/shape/move.h"

static tutti_status trilu_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    if (x->dtype == TUTTI_STRING || x->rank < 2)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input is %s, needs numbers or bools of at least 2 dimensions [.., rows, "
                         "columns]",
                         tutti_type_text(x, text));
    return tutti_infer_same(node);
}

static tutti_status trilu_gradient(tutti_gradient_call *node)
{
    int64_t offset = RULE_INT(node, "offset");
    tutti_sym dy = node->output_grads[0];
    node->input_grads[0] =
        RULE_INT(node, "upper") ? tutti_triu(dy, offset) : tutti_tril(dy, offset);
    return TUTTI_OK;
}

static int64_t between(int64_t value, int64_t high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* Row i of a matrix keeps columns [0, i + offset] (lower) or [i + offset, columns) (upper). */
static tutti_status trilu_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    int64_t all = tutti_view_count(x), size = (int64_t)tutti_dtype_size(x->dtype);
    int64_t offset = RULE_INT(call, "offset");
    bool upper = RULE_INT(call, "upper") != 0;
    offset = offset > columns ? columns : offset < -rows ? -rows : offset;
    for (int64_t row = 0; all > 0 && row < all / columns; row++) {
        int64_t border = row % rows + offset;
        int64_t from = upper ? between(border, columns) : 0;
        int64_t to = upper ? columns : between(border + 1, columns);
        char *out = tutti__element(y, row * columns);
        memset(out, 0, (size_t)(from * size));
        memcpy(out + from * size, tutti__element(x, row * columns + from),
               (size_t)((to - from) * size));
        memset(out + to * size, 0, (size_t)((columns - to) * size));
    }
    return TUTTI_OK;
}

/* Every axis but those of the matrices. */
static int trilu_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int axis = 0; axis < node->inputs[0].rank - 2; axis++)
        tutti__cut_pair(&cuts, axis, axis);
    return cuts.count;
}

extern const tutti_op tutti_op_trilu;
tutti_sym(tutti_triu)(tutti_sym x, int64_t offset)
{
    return TUTTI_NARY(&tutti_op_trilu, ((tutti_sym[]){x}), TUTTI_INT("upper", 1),
                      TUTTI_INT("offset", offset));
}

tutti_sym(tutti_tril)(tutti_sym x, int64_t offset)
{
    return TUTTI_NARY(&tutti_op_trilu, ((tutti_sym[]){x}), TUTTI_INT("upper", 0),
                      TUTTI_INT("offset", offset));
}

static const tutti_attr_spec attrs[] = {
    {"upper", TUTTI_ATTR_INT, "true"},
    {"offset", TUTTI_ATTR_INT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4]",
    "f32[2,4,3] | upper=false offset=1",
    "f64[3,3] | offset=-1",
    "i32[5,2] | upper=false offset=-2",
    "bool[3,3] | offset=9",
    "f32[0,3]",
    NULL,
};

const tutti_op tutti_op_trilu = {
    .struct_size = sizeof(tutti_op),
    .name = "trilu",
    .version = 1,
    .doc =
        "trilu(x; upper, offset): y[.., i, j] = x[.., i, j] where j >= i + offset (lower: j <= i + offset), else 0",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = trilu_infer,
    .gradient = trilu_gradient,
    .cost = tutti__cost_move,
    .split = trilu_split,
    .reference = trilu_reference,
    .samples = samples,
};
