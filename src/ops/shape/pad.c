/* pad.c: adds elements before and after along each axis. */
#include "ops/shape/pad.h"

tutti_pad_mode tutti__pad_mode(const tutti_attr *given, int attr_count)
{
    const char *mode = tutti_attr_string(given, attr_count, "mode");
    return strcmp(mode, "reflect") == 0 ? TUTTI_PAD_REFLECT
           : strcmp(mode, "edge") == 0  ? TUTTI_PAD_EDGE
                                        : TUTTI_PAD_CONSTANT;
}

static tutti_status check_axis(const tutti_infer *node, const tutti_type *x, int axis,
                               int64_t before, int64_t after)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_pad_mode mode = tutti__pad_mode(node->attrs, node->attr_count);
    int64_t size = x->dims[axis], most = before > after ? before : after;
    if (before < 0 || after < 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "paddings of axis %d are %lld and %lld, need 0 or more; tutti_slice takes away", axis,
            (long long)before, (long long)after);
    if (mode == TUTTI_PAD_REFLECT && size != TUTTI_ANY && most > 0 && most >= size)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "axis %d of %s has %lld elements to reflect, paddings are %lld and %lld; they must "
            "be smaller",
            axis, tutti_type_text(x, text), (long long)size, (long long)before, (long long)after);
    if (mode == TUTTI_PAD_EDGE && size == 0 && most > 0)
        return RULE_FAIL(node, TUTTI_INVALID, "axis %d of %s is empty, so it has no edge to repeat",
                         axis, tutti_type_text(x, text));
    return TUTTI_OK;
}

tutti_status tutti__pad_check(const tutti_infer *node, const tutti_type *x)
{
    char text[TUTTI_TYPE_TEXT];
    const char *mode = RULE_STRING(node, "mode");
    const int64_t *paddings;
    int count = RULE_INTS(node, "paddings", &paddings);
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "mode '%.32s' is not known; use constant, reflect or edge", mode);
    if (count != 2 * x->rank)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%d paddings are given for %s, needs %d: before and after for each axis",
                         count, tutti_type_text(x, text), 2 * x->rank);
    for (int i = 0; i < x->rank; i++)
        TUTTI_TRY(check_axis(node, x, i, paddings[2 * i], paddings[2 * i + 1]));
    return TUTTI_OK;
}

static tutti_status pad_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    const int64_t *paddings;
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__pad_check(node, x));
    if (tutti__pad_mode(node->attrs, node->attr_count) == TUTTI_PAD_CONSTANT)
        TUTTI_TRY(tutti__fill_rule(node, x->dtype, "value"));
    RULE_INTS(node, "paddings", &paddings);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (dims[i] != TUTTI_ANY && (!tutti__add_size(dims[i], paddings[2 * i], &dims[i]) ||
                                     !tutti__add_size(dims[i], paddings[2 * i + 1], &dims[i])))
            return RULE_FAIL(node, TUTTI_TOO_LARGE, "the size of axis %d overflows 64 bits", i);
    }
    return tutti__shape_output(node, 0, x->dtype, x->rank, dims);
}

/* Of a constant: the inside of the gradient. Else everything that came from an element, summed. */
static tutti_status pad_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_pad_grad;
    tutti_slice_options inside = {.struct_size = sizeof inside};
    const int64_t *paddings;
    int count = RULE_INTS(node, "paddings", &paddings);
    if (tutti__pad_mode(node->attrs, node->attr_count) != TUTTI_PAD_CONSTANT) {
        node->input_grads[0] =
            TUTTI_NARY(&tutti_op_pad_grad, ((tutti_sym[]){node->output_grads[0], node->inputs[0]}),
                       RULE_ATTR(node, "paddings"), RULE_ATTR(node, "mode"));
        return TUTTI_OK;
    }
    inside.begin.count = inside.end.count = count / 2;
    for (int i = 0; i < count / 2; i++) {
        inside.begin.values[i] = paddings[2 * i];
        inside.end.values[i] = paddings[2 * i + 1] > 0 ? -paddings[2 * i + 1] : TUTTI_LAST;
    }
    node->input_grads[0] = tutti_slice_with(node->output_grads[0], &inside);
    return TUTTI_OK;
}

/* One row of y from one row of x: the inside at once, the paddings one by one. */
static void pad_row(tutti_pad_mode mode, const tutti_view *x, const tutti_view *y, int64_t from,
                    int64_t to, int64_t before)
{
    int64_t size = x->dims[x->rank - 1], padded = y->dims[y->rank - 1];
    size_t bytes = tutti_dtype_size(x->dtype);
    memcpy(tutti__element(y, to + before), tutti__element(x, from), (size_t)size * bytes);
    for (int64_t at = 0; at < padded; at++) {
        if (at == before)
            at += size;
        if (at < padded)
            memcpy(tutti__element(y, to + at),
                   tutti__element(x, from + tutti__pad_source(mode, at, before, size)), bytes);
    }
}

static void pad_rows(tutti_pad_mode mode, const tutti_view *x, const tutti_view *y,
                     const int64_t *paddings)
{
    int64_t index[TUTTI_MAX_RANK] = {0}, strides[TUTTI_MAX_RANK], to = 0;
    int last = y->rank - 1;
    tutti__strides_of(x->rank, x->dims, strides);
    for (;;) {
        int64_t from = 0;
        int axis = last - 1;
        for (int i = 0; i < last; i++)
            from += tutti__pad_source(mode, index[i], paddings[2 * i], x->dims[i]) * strides[i];
        pad_row(mode, x, y, from, to, paddings[2 * last]);
        to += y->dims[last];
        for (; axis >= 0 && ++index[axis] == y->dims[axis]; axis--)
            index[axis] = 0;
        if (axis < 0)
            return;
    }
}

static tutti_status pad_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_pad_mode mode = tutti__pad_mode(call->attrs, call->attr_count);
    tutti_move move = {.rank = x->rank, .size = tutti_dtype_size(x->dtype)};
    const int64_t *paddings;
    int64_t start = 0;
    RULE_INTS(call, "paddings", &paddings);
    if (tutti_view_count(y) == 0)
        return TUTTI_OK;
    if (mode != TUTTI_PAD_CONSTANT && x->rank > 0) {
        pad_rows(mode, x, y, paddings);
        return TUTTI_OK;
    }
    tutti__fill_view(y, RULE_FLOAT(call, "value"));
    tutti__strides_of(x->rank, x->dims, move.from);
    tutti__strides_of(y->rank, y->dims, move.to);
    for (int i = 0; i < x->rank; i++) {
        move.dims[i] = x->dims[i];
        start += paddings[2 * i] * move.to[i];
    }
    tutti__move(call, &move, x->data, tutti__element(y, start));
    return TUTTI_OK;
}

/* Axes without padding. */
static int pad_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *paddings;
    RULE_INTS(node, "paddings", &paddings);
    for (int i = 0; i < node->inputs[0].rank; i++)
        if (paddings[2 * i] == 0 && paddings[2 * i + 1] == 0)
            tutti__cut_pair(&cuts, i, i);
    return cuts.count;
}

extern const tutti_op tutti_op_pad;
tutti_sym tutti_pad_with(tutti_sym x, const tutti_pad_options *options)
{
    RULE_OPTIONS(tutti_pad_options, o, options);
    int64_t paddings[2 * TUTTI_MAX_RANK] = {0};
    if (!tutti__usable("pad", x))
        return TUTTI_POISON;
    int rank = tutti_sym_type(x).rank;
    if (o.before.count < 0 || o.before.count > rank || o.after.count < 0 || o.after.count > rank)
        return tutti__poison(
            tutti_sym_graph(x), TUTTI_INVALID,
            "pad: %d paddings before and %d after are given for an input of %d dimensions",
            o.before.count, o.after.count, rank);
    for (int i = 0; i < rank; i++) {
        paddings[2 * i] = i < o.before.count ? o.before.values[i] : 0;
        paddings[2 * i + 1] = i < o.after.count ? o.after.values[i] : 0;
    }
    return TUTTI_NARY(&tutti_op_pad, ((tutti_sym[]){x}), TUTTI_INTS("paddings", 2 * rank, paddings),
                      TUTTI_STR("mode", o.mode ? o.mode : "constant"),
                      TUTTI_FLOAT("value", o.value));
}

static const tutti_attr_spec attrs[] = {
    {"paddings", TUTTI_ATTR_INTS, NULL},
    {"mode", TUTTI_ATTR_STRING, "constant"},
    {"value", TUTTI_ATTR_FLOAT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] | paddings=[1,0,0,2]",
    "f32[3,4] | paddings=[0,0,2,3] mode=reflect",
    "f32[2,3,2] | paddings=[1,1,2,0,0,0] mode=edge",
    "i32[4] | paddings=[1,2] value=7",
    "f32[0,2] | paddings=[1,1,0,0] value=-1",
    "f32[] | paddings=[]",
    NULL,
};

const tutti_op tutti_op_pad = {
    .struct_size = sizeof(tutti_op),
    .name = "pad",
    .version = 1,
    .doc =
        "pad(x; paddings, mode, value): y[i + before] = x[i]; around it value, or x mirrored (reflect), or its edge (edge)",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = pad_infer,
    .gradient = pad_gradient,
    .cost = tutti__cost_move,
    .split = pad_split,
    .reference = pad_reference,
    .samples = samples,
};
