/* reshape.c: other dimensions for the same elements in the same order. */
#include "ops/shape/rule.h"

/* The product of the dimensions that are given; *ret_open is the place of -1, or -1. */
static tutti_status check_dims(const tutti_infer *node, int rank, const int64_t *dims,
                               int64_t *ret_known, int *ret_open)
{
    int64_t known = 1;
    int open = -1;
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "%d dimensions are given, at most %d are possible",
                         rank, TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1 && open >= 0)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "dimensions %d and %d are both -1; only one can follow from the others", open, i);
        if (dims[i] < -1)
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld, needs 0 or more, or -1", i,
                             (long long)dims[i]);
        if (dims[i] == -1)
            open = i;
        else if (!tutti__mul_size(known, dims[i], &known))
            return RULE_FAIL(node, TUTTI_TOO_LARGE,
                             "the product of the dimensions overflows 64 bits");
    }
    *ret_known = known;
    *ret_open = open;
    return TUTTI_OK;
}

static tutti_status reshape_infer(tutti_infer *node)
{
    char from[TUTTI_TYPE_TEXT], to[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    const int64_t *dims;
    int rank = RULE_INTS(node, "dims", &dims), open = -1;
    int64_t known = 1, count = tutti_type_count(x);
    TUTTI_TRY(check_dims(node, rank, dims, &known, &open));
    tutti_type y = tutti_type_make(x->dtype, rank, dims);
    tutti_type_text(x, from);
    if (open >= 0 && known == 0 && count >= 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input %s into %s: what -1 stands for cannot be told beside a dimension of 0; "
            "give every dimension",
            from, tutti_type_text(&y, to));
    if (count >= 0 && (open >= 0 ? count % known != 0 : count != known))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input %s has %lld elements, which do not fit %s%s; give dimensions whose "
                         "product is %lld",
                         from, (long long)count, tutti_type_text(&y, to),
                         open >= 0 ? " for any size of the open dimension" : "", (long long)count);
    if (open >= 0 && count >= 0)
        y.dims[open] = count / known;
    node->outputs[0] = y;
    return TUTTI_OK;
}

static tutti_status reshape_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_reshape_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

typedef struct {
    tutti_cuts cuts;
    const int64_t *dims;
} split_state;

static void reshape_cut(void *context, int from, int to)
{
    split_state *state = context;
    tutti_split *way = tutti__cut(&state->cuts);
    way->inputs[0] = (int8_t)from;
    way->outputs[0] = (int8_t)to;
    if (state->dims[to] >= 0) {
        way->attr = "dims";
        way->attr_index = to;
    }
}

static int reshape_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    split_state state = {.cuts = {.capacity = capacity, .ret = ret}};
    RULE_INTS(node, "dims", &state.dims);
    tutti__split_reshaped(&node->inputs[0], &node->outputs[0], &state, reshape_cut);
    return state.cuts.count;
}

extern const tutti_op tutti_op_reshape;
tutti_sym(tutti_reshape)(tutti_sym x, int rank, const int64_t *dims)
{
    return TUTTI_NARY(&tutti_op_reshape, ((tutti_sym[]){x}), TUTTI_INTS("dims", rank, dims));
}

static const tutti_attr_spec attrs[] = {{"dims", TUTTI_ATTR_INTS, NULL}, {NULL}};
static const char *const samples[] = {
    "f32[2,6] | dims=[3,4]", "f32[4,3,5] | dims=[4,-1]", "i32[3,4] | dims=[3,2,2]",
    "f32[1] | dims=[]",      "f32[0,3] | dims=[-1,3,2]", NULL,
};

const tutti_op tutti_op_reshape = {
    .struct_size = sizeof(tutti_op),
    .name = "reshape",
    .version = 1,
    .doc =
        "reshape(x; dims): y has x's elements in the same order under the dimensions dims, of which one may be -1",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = reshape_infer,
    .gradient = reshape_gradient,
    .cost = tutti__cost_move,
    .split = reshape_split,
    .reference = tutti__reference_view,
    .samples = samples,
};
