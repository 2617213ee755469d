/* broadcast_to.c: repeats x along axes of size 1 and new leading axes. */
#include "ops/shape/broadcast.h"

static tutti_status broadcast_to_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    const int64_t *dims;
    int rank = RULE_INTS(node, "dims", &dims);
    int64_t known[TUTTI_MAX_RANK];
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "%d dimensions are given, at most %d are possible",
                         rank, TUTTI_MAX_RANK);
    tutti_type y = tutti_type_make(x->dtype, rank, dims);
    for (int i = 0; i < rank; i++) {
        int own = i - (rank - x->rank);
        if (dims[i] < -1 || (dims[i] == -1 && own < 0))
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld, needs 0 or more%s", i,
                             (long long)dims[i],
                             own < 0 ? " (the input has no such axis to keep)"
                                     : ", or -1 to keep the input's");
        if (dims[i] == -1)
            y.dims[i] = x->dims[own];
    }
    TUTTI_TRY(tutti__broadcast_check(node, x, &y, known));
    return tutti__shape_output(node, 0, x->dtype, rank, known);
}

static tutti_status broadcast_to_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_unbroadcast(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static int broadcast_to_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *dims;
    RULE_INTS(node, "dims", &dims);
    for (int i = 0; i < node->outputs[0].rank; i++) {
        int own = tutti__broadcast_axis(&node->inputs[0], &node->outputs[0], i);
        if (own == TUTTI_PARTIAL_SUM || (own == TUTTI_WHOLE && dims[i] == -1))
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)own;
        way->outputs[0] = (int8_t)i;
        way->attr = dims[i] == -1 ? NULL : "dims";
        way->attr_index = i;
    }
    return cuts.count;
}

extern const tutti_op tutti_op_broadcast_to;
tutti_sym(tutti_broadcast_to)(tutti_sym x, int rank, const int64_t *dims)
{
    return TUTTI_NARY(&tutti_op_broadcast_to, ((tutti_sym[]){x}), TUTTI_INTS("dims", rank, dims));
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,1] | dims=[2,3,4]", "f32[3] | dims=[2,3]",   "f32[] | dims=[3,2]",
    "i32[4,1] | dims=[-1,3]",  "f32[1,3] | dims=[0,3]", NULL,
};

const tutti_op tutti_op_broadcast_to = {
    .struct_size = sizeof(tutti_op),
    .name = "broadcast_to",
    .version = 1,
    .doc =
        "broadcast_to(x; dims): y has the shape dims, x repeated along axes of size 1 and new leading axes; -1 keeps a dimension",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = broadcast_to_infer,
    .gradient = broadcast_to_gradient,
    .cost = tutti__cost_move,
    .split = broadcast_to_split,
    .reference = tutti__broadcast_reference,
    .samples = samples,
};
