/* scatter_nd.c: sums of updates at positions along several axes. */
#include "ops/shape/scatter.h"

static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT], c[TUTTI_TYPE_TEXT];
    const tutti_type *indices = &node->inputs[0], *updates = &node->inputs[1];
    const int64_t *dims;
    int rank = RULE_INTS(node, "dims", &dims);
    int columns;
    int64_t merged;
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "%d dimensions are given, at most %d are possible",
                         rank, TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld, needs 0 or more", i,
                             (long long)dims[i]);
    TUTTI_TRY(tutti__shape_numbers(node, 1));
    TUTTI_TRY(tutti__index_columns(node, 0, rank, &columns));
    bool agree = updates->rank == indices->rank - 1 + rank - columns;
    for (int i = 0; agree && i < updates->rank; i++)
        agree = tutti__shape_merge(updates->dims[i],
                                   i < indices->rank - 1 ? indices->dims[i]
                                                         : dims[i - (indices->rank - 1) + columns],
                                   &merged);
    if (!agree) {
        tutti_type y = tutti_type_make(updates->dtype, rank, dims);
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "updates are %s, which do not fit indices %s into a result %s: they need the "
            "dimensions of indices without the last, then those that are not indexed",
            tutti_type_text(updates, a), tutti_type_text(indices, b), tutti_type_text(&y, c));
    }
    return tutti__shape_output(node, 0, updates->dtype, rank, dims);
}

static tutti_status gradient(tutti_gradient *node)
{
    if (node->wanted[1])
        node->input_grads[1] = tutti_gather_nd(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *indices = &call->inputs[0], *y = &call->outputs[0];
    tutti_index_rows rows = tutti__index_rows(indices, y->rank, y->dims);
    tutti_scatter scatter = {rows.rows, rows.length, tutti__index_rows_start, &rows};
    TUTTI_TRY(tutti__indices_check(call, 0, 0, rows.columns, y->dims));
    tutti__scatter_add(&scatter, &call->inputs[1], y);
    return TUTTI_OK;
}

/* The indices: each piece of them adds its part. Or an axis that is not indexed. */
static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *indices = &node->inputs[0];
    int columns = (int)indices->dims[indices->rank - 1];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < indices->rank - 1; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->inputs[1] = (int8_t)i;
        way->outputs[0] = TUTTI_PARTIAL_SUM;
    }
    for (int i = columns; i < node->outputs[0].rank; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[1] = (int8_t)(indices->rank - 1 + i - columns);
        way->outputs[0] = (int8_t)i;
        way->attr = "dims";
        way->attr_index = i;
    }
    return cuts.count;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[1]);
}

extern const tutti_op tutti_op_scatter_nd;
tutti_sym(tutti_scatter_nd)(tutti_sym indices, tutti_sym updates, int rank, const int64_t *dims)
{
    return TUTTI_NARY(&tutti_op_scatter_nd, ((tutti_sym[]){indices, updates}),
                      TUTTI_INTS("dims", rank, dims));
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, NULL},
    {NULL},
};
static const char *const samples[] = {
    "i32[3,2]{0:3} f32[3] | dims=[3,4]",    "i64[5,1]{0:3} f32[5,4,2] | dims=[3,4,2]",
    "i32[4,1]{=1,1,1,0} i32[4] | dims=[2]", "i32[0,1] f32[0,2] | dims=[3,2]",
    "i32[6,1]{0:2} f16[6] | dims=[2]",      NULL,
};

const tutti_op tutti_op_scatter_nd = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_nd",
    .version = 1,
    .doc =
        "scatter_nd(indices, updates; dims): y = 0 in the shape dims, then y[indices[j, 0], .., indices[j, k - 1], :] += updates[j, :]",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
