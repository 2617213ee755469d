/* gather_nd.c: elements or slices at positions along several axes. */
#include "ops/shape/scatter.h"

static tutti_status gather_nd_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    int64_t dims[2 * TUTTI_MAX_RANK];
    int columns, rank = 0;
    TUTTI_TRY(tutti__index_columns(node, 1, x->rank, &columns));
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = columns; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return tutti__shape_output(node, 0, x->dtype, rank, dims);
}

static tutti_status gather_nd_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_scatter_nd_like(node->inputs[1], node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

enum { RUN = 512 }; /* rows of indices taken at once */

typedef struct {
    const tutti_index_rows *rows;
    const tutti_view *x, *y;
} job;

static void gather_piece(void *context, int64_t index)
{
    const job *all = context;
    const tutti_index_rows *rows = all->rows;
    int64_t starts[RUN], first = index * RUN;
    int64_t count = rows->rows - first < RUN ? rows->rows - first : RUN;
    size_t size = tutti_dtype_size(all->x->dtype), bytes = (size_t)rows->length * size;
    tutti__index_rows_starts(rows, first, count, starts);
    if (rows->length == 1)
        tutti__pick(size, count, tutti__element(all->y, first), all->x->data, starts);
    for (int64_t i = 0; rows->length > 1 && i < count; i++)
        memcpy(tutti__element(all->y, (first + i) * rows->length),
               tutti__element(all->x, starts[i]), bytes);
}

static tutti_status gather_nd_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
    tutti_index_rows rows = tutti__index_rows(indices, x->rank, x->dims);
    job all = {&rows, x, y};
    TUTTI_TRY(tutti__indices_check(call, 1, 0, rows.columns, x->dims));
    if (rows.length > 0)
        tutti_parallel(call, (rows.rows + RUN - 1) / RUN, gather_piece, &all);
    return TUTTI_OK;
}

static int gather_nd_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    int columns = (int)indices->dims[indices->rank - 1];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < indices->rank - 1; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[1] = way->outputs[0] = (int8_t)i;
    }
    for (int i = columns; i < x->rank; i++)
        tutti__cut_pair(&cuts, i, indices->rank - 1 + i - columns);
    return cuts.count;
}

extern const tutti_op tutti_op_gather_nd;
tutti_sym(tutti_gather_nd)(tutti_sym x, tutti_sym indices)
{
    return tutti__binary(&tutti_op_gather_nd, x, indices);
}

static const char *const samples[] = {
    "f32[3,4] i32[3,2]{0:3}",
    "f32[3,4,2] i64[2,1]{0:3}",
    "f32[2,2,3] i32[2,2,2]{0:2}",
    "i32[5] i32[1]{0:5}",
    "f32[3,2] i32[0,2]",
    "f32[3,2] i32[2,0]",
    NULL,
};

const tutti_op tutti_op_gather_nd = {
    .struct_size = sizeof(tutti_op),
    .name = "gather_nd",
    .version = 1,
    .doc = "gather_nd(x, indices): y[j, :] = x[indices[j, 0], .., indices[j, k - 1], :]",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = gather_nd_infer,
    .gradient = gather_nd_gradient,
    .cost = tutti__cost_move,
    .split = gather_nd_split,
    .reference = gather_nd_reference,
    .samples = samples,
};
