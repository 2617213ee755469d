/* sampled_matmul.c: elements of A B^T at given positions. */
#include "ops/shape/move.h"
#include "ops/sparse/sparse.h"
#include "tensor/dtype.h"

/* indices i64 [n,2], dense_shape i64 [2] = (rows of a, rows of b), a [r,m], b [c,m] -> [n] */
static tutti_status sampled_matmul_infer(tutti_infer *node)
{
    char x[TUTTI_TYPE_TEXT], y[TUTTI_TYPE_TEXT];
    const tutti_type *a = &node->inputs[2], *b = &node->inputs[3];
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__need_positions(node, 0, 2));
    TUTTI_TRY(tutti__need_dense_shape(node, 1, 2, dims));
    bool agree =
        a->dtype == b->dtype && tutti_dtype_is_float(a->dtype) && a->rank == 2 && b->rank == 2;
    if (!agree || (a->dims[1] != b->dims[1] && a->dims[1] != TUTTI_ANY && b->dims[1] != TUTTI_ANY))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the matrices are %s and %s; need floats of one type and as many columns",
                         tutti_type_text(a, x), tutti_type_text(b, y));
    node->outputs[0] = tutti_type_make(a->dtype, 1, node->inputs[0].dims);
    return TUTTI_OK;
}

enum { BLOCK = 64, PIECE = 256 }; /* elements converted at once; positions of one piece */

typedef struct {
    const tutti_view *at, *a, *b, *y;
} job;

static void sample_piece(void *context, int64_t index)
{
    const job *all = context;
    double x[BLOCK], y[BLOCK], sums[PIECE];
    int64_t first = index * PIECE, columns = all->a->dims[1];
    int64_t count = all->at->dims[0] - first < PIECE ? all->at->dims[0] - first : PIECE;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = tutti_view_get_int(all->at, 2 * (first + i)) * columns;
        int64_t column = tutti_view_get_int(all->at, 2 * (first + i) + 1) * columns;
        double sum = 0;
        for (int64_t j = 0; j < columns; j += BLOCK) {
            int64_t n = columns - j < BLOCK ? columns - j : BLOCK;
            tutti__elements_to_doubles(all->a->dtype, tutti__element(all->a, row + j), n, x);
            tutti__elements_to_doubles(all->b->dtype, tutti__element(all->b, column + j), n, y);
            for (int64_t k = 0; k < n; k++)
                sum += x[k] * y[k];
        }
        sums[i] = sum;
    }
    tutti__elements_from_doubles(all->y->dtype, tutti__element(all->y, first), count, sums);
}

static tutti_status sampled_matmul_reference(const tutti_kernel_call *call)
{
    const tutti_view *at = &call->inputs[0], *a = &call->inputs[2], *b = &call->inputs[3];
    int64_t rows[] = {a->dims[0], b->dims[0]};
    for (int i = 0; i < 2; i++)
        if (tutti_view_get_int(&call->inputs[1], i) != rows[i])
            return RULE_FAIL(call, TUTTI_INVALID,
                             "matrix %d has %lld rows, dimension %d of the dense shape is %lld", i,
                             (long long)rows[i], i,
                             (long long)tutti_view_get_int(&call->inputs[1], i));
    TUTTI_TRY(tutti__check_positions(call, at, rows));
    job all = {at, a, b, &call->outputs[0]};
    tutti_parallel(call, (at->dims[0] + PIECE - 1) / PIECE, sample_piece, &all);
    return TUTTI_OK;
}

/* With S the sparse matrix of dy at the positions: dA = S B, dB = S^T A. */
static tutti_status sampled_matmul_gradient(tutti_gradient_call *node)
{
    tutti_sparse_sym s = {node->inputs[0], node->output_grads[0], node->inputs[1]};
    if (node->wanted[2])
        node->input_grads[2] = tutti_sparse_matmul(s, node->inputs[3]);
    if (node->wanted[3])
        node->input_grads[3] = tutti_sparse_matmul(s, node->inputs[2], .transpose = true);
    return TUTTI_OK;
}

static void sampled_matmul_cost(const tutti_infer *node, tutti_cost *ret)
{
    const tutti_type *at = &node->inputs[0], *a = &node->inputs[2];
    tutti__cost_move(node, ret);
    ret->flops = 2 * (at->dims[0] > 0 ? (double)at->dims[0] : 1) *
                 (a->rank == 2 && a->dims[1] > 0 ? (double)a->dims[1] : 1);
}

/* Positions; or columns, whose products add up. */
static int sampled_matmul_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] =
            (tutti_split){.inputs = {0, TUTTI_WHOLE, TUTTI_WHOLE, TUTTI_WHOLE}, .outputs = {0}};
    if (capacity > 1)
        ret[1] = (tutti_split){.inputs = {TUTTI_WHOLE, TUTTI_WHOLE, 1, 1},
                               .outputs = {TUTTI_PARTIAL_SUM}};
    return 2;
}

static const char *const samples[] = {
    "i64[4,2]{=0,1,2,0,1,3,2,2} i64[2]{=3,4} f32[3,5] f32[4,5]",
    "i64[2,2]{=1,1,0,1} i64[2]{=2,2} f64[2,3] f64[2,3]",
    "i64[0,2] i64[2]{=2,3} f32[2,2] f32[3,2]",
    NULL,
};

extern const tutti_op tutti_op_sampled_matmul;

tutti_sym(tutti_sampled_matmul)(tutti_sym indices, tutti_sym dense_shape, tutti_sym a, tutti_sym b)
{
    tutti_sym inputs[] = {indices, dense_shape, a, b};
    return tutti__nary(&tutti_op_sampled_matmul, 4, inputs, 0, NULL);
}

const tutti_op tutti_op_sampled_matmul = {
    .struct_size = sizeof(tutti_op),
    .name = "sampled_matmul",
    .version = 1,
    .doc =
        "sampled_matmul(indices, dense_shape, a, b): y[i] = sum over j of a[r,j] b[c,j], (r,c) = indices[i]",
    .category = "sparse",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = sampled_matmul_infer,
    .gradient = sampled_matmul_gradient,
    .cost = sampled_matmul_cost,
    .split = sampled_matmul_split,
    .reference = sampled_matmul_reference,
    .samples = samples,
};
