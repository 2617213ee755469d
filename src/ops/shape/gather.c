/* gather.c: rows along an axis, named by indices. */
#include "ops/shape/scatter.h"

static tutti_status gather_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    int64_t dims[2 * TUTTI_MAX_RANK];
    int axis, rank = 0;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    TUTTI_TRY(tutti__shape_indices(node, 1));
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return tutti__shape_output(node, 0, x->dtype, rank, dims);
}

/* Along axis 0 the gradient is sparse: the rows of dy and where they belong. False when the shape
 * of a row is not known. */
static bool give_rows(tutti_gradient_call *node)
{
    tutti_type x = tutti_sym_type(node->inputs[0]), indices = tutti_sym_type(node->inputs[1]);
    int64_t count = tutti_type_count(&indices), row = 1;
    if (node->input_grad_rows == NULL)
        return false;
    for (int i = 1; i < x.rank; i++)
        row = x.dims[i] <= 0 ? 0 : row * x.dims[i];
    if (indices.rank != 1 && row == 0)
        return false;
    if (indices.rank == 1) {
        node->input_grads[0] = node->output_grads[0];
        node->input_grad_rows[0] = node->inputs[1];
        return true;
    }
    x.dims[0] = count >= 0 ? count : -1;
    node->input_grads[0] = (tutti_reshape)(node->output_grads[0], x.rank, x.dims);
    node->input_grad_rows[0] = tutti_reshape(node->inputs[1], x.dims[0]);
    return true;
}

static tutti_status gather_gradient(tutti_gradient_call *node)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), tutti_sym_type(node->inputs[0]).rank);
    if (!node->wanted[0] || (axis == 0 && give_rows(node)))
        return TUTTI_OK;
    node->input_grads[0] =
        tutti_gather_grad(node->output_grads[0], node->inputs[1], node->inputs[0], axis);
    return TUTTI_OK;
}

enum { RUN = 512 }; /* rows whose places are found at once */

typedef struct {
    const char *from;
    char *to;
    const tutti_view *indices;
    int64_t indices_count, size; /* of the axis */
    size_t bytes;                /* of a row */
    int64_t rows, chunk;         /* all rows of y; those that one piece takes */
} job;

/* Rows of x that stand behind each other in y, `count` of them from `row` on: where they are. */
static void places_of(const job *all, int64_t row, int64_t count, int64_t *ret_places)
{
    int64_t outer = row / all->indices_count, at = row % all->indices_count;
    for (int64_t n = 0, run; n < count; n += run, at = 0, outer++) {
        run = all->indices_count - at < count - n ? all->indices_count - at : count - n;
        for (int64_t i = 0; i < run; i++)
            ret_places[n + i] = outer * all->size + tutti__index_at(all->indices, at + i);
    }
}

static void gather_piece(void *context, int64_t index)
{
    const job *all = context;
    int64_t places[RUN], first = index * all->chunk, end = first + all->chunk;
    if (end > all->rows)
        end = all->rows;
    for (int64_t row = first; row < end; row += RUN) {
        int64_t count = end - row < RUN ? end - row : RUN;
        places_of(all, row, count, places);
        tutti__pick(all->bytes, count, all->to + (size_t)row * all->bytes, all->from, places);
    }
}

static tutti_status gather_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_blocks blocks = tutti__blocks(x, axis);
    TUTTI_TRY(tutti__indices_check(call, 1, axis, 1, x->dims));
    if (tutti_view_count(y) == 0)
        return TUTTI_OK;
    job all = {.from = x->data,
               .to = y->data,
               .indices = indices,
               .indices_count = tutti_view_count(indices),
               .size = blocks.size,
               .bytes = (size_t)blocks.inner * tutti_dtype_size(x->dtype)};
    all.rows = blocks.outer * all.indices_count;
    all.chunk = 256 * 1024 / (int64_t)(all.bytes + sizeof(int64_t)) + 1;
    tutti_parallel(call, (all.rows + all.chunk - 1) / all.chunk, gather_piece, &all);
    return TUTTI_OK;
}

/* Cut x beside the axis, or cut the indices. */
static int gather_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    int axis = tutti__axis_of(RULE_INT(node, "axis"), x->rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            tutti__cut_pair(&cuts, i, i < axis ? i : i + indices->rank - 1);
    for (int i = 0; i < indices->rank; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[1] = (int8_t)i;
        way->outputs[0] = (int8_t)(axis + i);
    }
    return cuts.count;
}

/* Reads the rows that are asked for, not all of x. */
static void gather_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->bytes_read = ret->bytes_written + tutti__shape_elements(&node->inputs[1]) *
                                               (double)tutti_dtype_size(node->inputs[1].dtype);
}

extern const tutti_op tutti_op_gather;
tutti_sym(tutti_gather)(tutti_sym x, tutti_sym indices, int axis)
{
    return TUTTI_NARY(&tutti_op_gather, ((tutti_sym[]){x, indices}), TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "f32[5,3] i32[4]{0:5}",
    "f32[4,2] i64[2,3]{0:4}",
    "f32[3,4,2] i32[3]{0:4} | axis=1",
    "i32[2,5] i32[2,2]{0:5} | axis=-1",
    "f32[4,3] i32[0] ",
    "f32[4] i32[]{0:4}",
    NULL,
};

const tutti_op tutti_op_gather = {
    .struct_size = sizeof(tutti_op),
    .name = "gather",
    .version = 1,
    .doc =
        "gather(x, indices; axis): y[.., j, ..] = x[.., indices[j], ..]; the axis is replaced by the axes of indices",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = gather_infer,
    .gradient = gather_gradient,
    .cost = gather_cost,
    .split = gather_split,
    .reference = gather_reference,
    .samples = samples,
};
