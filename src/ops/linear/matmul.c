/* matmul.c: products of matrices, batched, with transposes. */
#include "ops/shape/move.h"

#include "tensor/dtype.h"

/* Dimensions without the last two broadcast; the last two are rows and columns, exchanged by
 * transposing. */
static tutti_status matmul_infer(tutti_infer *node)
{
    char ta[TUTTI_TYPE_TEXT], tb[TUTTI_TYPE_TEXT];
    const tutti_type *a = &node->inputs[0], *b = &node->inputs[1];
    bool transpose_a = RULE_INT(node, "transpose_a") != 0,
         transpose_b = RULE_INT(node, "transpose_b") != 0;
    int64_t dims[TUTTI_MAX_RANK], inner;
    int rank;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__shape_same_dtype(node, 1));
    if (a->rank < 2 || b->rank < 2)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "inputs are %s and %s, both need at least 2 dimensions [.., rows, columns]; add "
            "one with tutti_expand_dims",
            tutti_type_text(a, ta), tutti_type_text(b, tb));
    int64_t k = a->dims[a->rank - 1 - transpose_a], other = b->dims[b->rank - 2 + transpose_b];
    if (!tutti__shape_merge(k, other, &inner))
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "inputs are %s%s and %s%s: columns of the first (%lld) must be rows of the second "
            "(%lld)",
            tutti_type_text(a, ta), transpose_a ? " transposed" : "", tutti_type_text(b, tb),
            transpose_b ? " transposed" : "", (long long)k, (long long)other);
    if (tutti_broadcast_dims(a->rank - 2, a->dims, b->rank - 2, b->dims, &rank, dims) != TUTTI_OK)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "inputs are %s and %s: dimensions before the last two do not broadcast",
                         tutti_type_text(a, ta), tutti_type_text(b, tb));
    dims[rank] = a->dims[a->rank - 2 + transpose_a];
    dims[rank + 1] = b->dims[b->rank - 1 - transpose_b];
    return tutti__shape_output(node, 0, a->dtype, rank + 2, dims);
}

static tutti_sym product(tutti_sym a, tutti_sym b, bool transpose_a, bool transpose_b)
{
    return tutti_matmul(a, b, .transpose_a = transpose_a, .transpose_b = transpose_b);
}

/* [.., n] as [rows, n]. */
static tutti_sym flat_rows(tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    return tutti_reshape(x, -1, type.dims[type.rank - 1]);
}

static bool columns_known(tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    return type.dims[type.rank - 1] > 0;
}

/* db for a matrix b shared by a batch: one product over all rows of the batch. */
static bool give_shared(tutti_gradient_call *node, tutti_sym grad, bool transpose_b)
{
    tutti_sym a = node->inputs[0];
    if (tutti_sym_type(node->inputs[1]).rank != 2 || tutti_sym_type(a).rank == 2 ||
        RULE_INT(node, "transpose_a") || !columns_known(a) || !columns_known(grad))
        return false;
    tutti_sym rows = flat_rows(a), grads = flat_rows(grad);
    node->input_grads[1] =
        transpose_b ? product(grads, rows, true, false) : product(rows, grads, true, false);
    return true;
}

/* y = a b:    da = dy bT,    db = aT dy
 * y = a bT:   da = dy b,     db = dyT a
 * y = aT b:   da = b dyT,    db = a dy
 * y = aT bT:  da = bT dyT,   db = dyT aT,   each summed over the batch that it was repeated for. */
static tutti_status matmul_gradient(tutti_gradient_call *node)
{
    tutti_sym a = node->inputs[0], b = node->inputs[1], dy = node->output_grads[0];
    bool ta = RULE_INT(node, "transpose_a") != 0, tb = RULE_INT(node, "transpose_b") != 0;
    bool plain = tutti_sym_type(a).rank == 2 && tutti_sym_type(b).rank == 2;
    if (node->wanted[0]) {
        tutti_sym da = ta ? product(b, dy, tb, true) : product(dy, b, false, !tb);
        node->input_grads[0] = plain ? da : tutti_unbroadcast(da, a);
    }
    if (node->wanted[1] && !give_shared(node, dy, tb)) {
        tutti_sym db = tb ? product(dy, a, true, ta) : product(a, dy, !ta, false);
        node->input_grads[1] = plain ? db : tutti_unbroadcast(db, b);
    }
    return TUTTI_OK;
}

/* One matrix of a batch: element (i, j) at start + i row + j column. */
typedef struct {
    const tutti_view *view;
    int64_t start, row, column;
} matrix;

static matrix matrix_of(const tutti_view *view, bool transposed)
{
    int64_t columns = view->dims[view->rank - 1];
    return (matrix){view, 0, transposed ? 1 : columns, transposed ? columns : 1};
}

/* Where matrix `flat` of the batch of y lies in an input that broadcasts to it. */
static int64_t batch_start(const tutti_view *view, const tutti_view *y, int64_t flat)
{
    int64_t stride = view->dims[view->rank - 1] * view->dims[view->rank - 2], start = 0;
    for (int back = 3; back <= y->rank; back++) {
        int64_t index = flat % y->dims[y->rank - back];
        int64_t dim = back <= view->rank ? view->dims[view->rank - back] : 1;
        flat /= y->dims[y->rank - back];
        start += dim == 1 ? 0 : index * stride;
        stride *= dim;
    }
    return start;
}

enum { TILE = 64 };

/* Columns [first, first + count) of one row of the product, summed in double in the order of k. */
static void row_tile(const matrix *a, const matrix *b, int64_t i, int64_t inner, int64_t first,
                     int count, double *sums)
{
    double row[TILE];
    for (int j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t k = 0; k < inner; k++) {
        double factor = tutti_view_get(a->view, a->start + i * a->row + k * a->column);
        int64_t at = b->start + k * b->row + first * b->column;
        if (b->column == 1)
            tutti__elements_to_doubles(b->view->dtype, tutti__element(b->view, at), count, row);
        else
            for (int j = 0; j < count; j++)
                row[j] = tutti_view_get(b->view, at + j * b->column);
        for (int j = 0; j < count; j++)
            sums[j] += factor * row[j];
    }
}

/* Integers wrap round. */
static int64_t element_int(const matrix *a, const matrix *b, int64_t i, int64_t j, int64_t inner)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < inner; k++)
        sum += (uint64_t)tutti_view_get_int(a->view, a->start + i * a->row + k * a->column) *
               (uint64_t)tutti_view_get_int(b->view, b->start + k * b->row + j * b->column);
    return (int64_t)sum;
}

static void matmul_multiply(const matrix *a, const matrix *b, int64_t inner, const tutti_view *y,
                            int64_t start)
{
    int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
    double sums[TILE];
    for (int64_t i = 0; i < rows; i++, start += columns) {
        for (int64_t j = 0; tutti_dtype_is_int(y->dtype) && j < columns; j++)
            tutti_view_set_int(y, start + j, element_int(a, b, i, j, inner));
        for (int64_t j = 0; !tutti_dtype_is_int(y->dtype) && j < columns; j += TILE) {
            int count = columns - j < TILE ? (int)(columns - j) : TILE;
            row_tile(a, b, i, inner, j, count, sums);
            tutti__elements_from_doubles(y->dtype, tutti__element(y, start + j), count, sums);
        }
    }
}

static tutti_status matmul_reference(const tutti_kernel_call *call)
{
    const tutti_view *y = &call->outputs[0];
    bool transpose_a = RULE_INT(call, "transpose_a") != 0,
         transpose_b = RULE_INT(call, "transpose_b") != 0;
    matrix a = matrix_of(&call->inputs[0], transpose_a),
           b = matrix_of(&call->inputs[1], transpose_b);
    int64_t inner = a.view->dims[a.view->rank - 1 - transpose_a], batch = 1;
    if (tutti_view_count(y) == 0)
        return TUTTI_OK;
    for (int i = 0; i < y->rank - 2; i++)
        batch *= y->dims[i];
    for (int64_t n = 0; n < batch; n++) {
        a.start = batch_start(a.view, y, n);
        b.start = batch_start(b.view, y, n);
        matmul_multiply(&a, &b, inner, y, n * y->dims[y->rank - 2] * y->dims[y->rank - 1]);
    }
    return TUTTI_OK;
}

/* A multiplication and an addition for each element of y and each k. */
static void matmul_cost(const tutti_infer *node, tutti_cost *ret)
{
    const tutti_type *a = &node->inputs[0];
    int64_t inner = a->dims[a->rank - 1 - (RULE_INT(node, "transpose_a") != 0)];
    tutti__cost_move(node, ret);
    ret->flops = 2 * tutti__shape_elements(&node->outputs[0]) * (inner < 0 ? 1.0 : (double)inner);
}

/* The axis of an input along axis `axis` of the batch, TUTTI_WHOLE where it is repeated,
 * TUTTI_PARTIAL_SUM where that is not known. */
static int batch_axis(const tutti_type *x, const tutti_type *y, int axis)
{
    int own = axis - (y->rank - x->rank);
    if (own < 0 || x->dims[own] == 1)
        return TUTTI_WHOLE;
    return x->dims[own] == TUTTI_ANY ? TUTTI_PARTIAL_SUM : own;
}

/* Rows of a, columns of b, what is summed over, and each axis of the batch. */
static int matmul_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *a = &node->inputs[0], *b = &node->inputs[1], *y = &node->outputs[0];
    bool transpose_a = RULE_INT(node, "transpose_a") != 0,
         transpose_b = RULE_INT(node, "transpose_b") != 0;
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    tutti__cut_pair(&cuts, a->rank - 2 + transpose_a, y->rank - 2);
    tutti_split *way = tutti__cut(&cuts);
    way->inputs[1] = (int8_t)(b->rank - 1 - transpose_b);
    way->outputs[0] = (int8_t)(y->rank - 1);
    way = tutti__cut(&cuts);
    way->inputs[0] = (int8_t)(a->rank - 1 - transpose_a);
    way->inputs[1] = (int8_t)(b->rank - 2 + transpose_b);
    way->outputs[0] = TUTTI_PARTIAL_SUM;
    for (int axis = 0; axis < y->rank - 2; axis++) {
        int own_a = batch_axis(a, y, axis), own_b = batch_axis(b, y, axis);
        if (own_a == TUTTI_PARTIAL_SUM || own_b == TUTTI_PARTIAL_SUM)
            continue;
        way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)own_a;
        way->inputs[1] = (int8_t)own_b;
        way->outputs[0] = (int8_t)axis;
    }
    return cuts.count;
}

extern const tutti_op tutti_op_matmul;
tutti_sym tutti_matmul_with(tutti_sym a, tutti_sym b, const tutti_matmul_options *options)
{
    RULE_OPTIONS(tutti_matmul_options, o, options);
    return TUTTI_NARY(&tutti_op_matmul, ((tutti_sym[]){a, b}),
                      TUTTI_INT("transpose_a", o.transpose_a),
                      TUTTI_INT("transpose_b", o.transpose_b));
}

static const tutti_attr_spec attrs[] = {
    {"transpose_a", TUTTI_ATTR_INT, "false"},
    {"transpose_b", TUTTI_ATTR_INT, "false"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] f32[4,5]",
    "f32[4,3] f32[5,4] | transpose_a=true transpose_b=true",
    "f32[2,3,4] f32[4,5]",
    "f32[2,1,3,4] f32[3,5,4] | transpose_b=true",
    "f64[2,4,3] f64[2,4,2] | transpose_a=true",
    "i32[3,2] i32[2,3]",
    "f32[3,0] f32[0,2]",
    "bf16[2,9] bf16[9,3]",
    "f32[3,70] f32[70,66]",
    NULL,
};

const tutti_op tutti_op_matmul = {
    .struct_size = sizeof(tutti_op),
    .name = "matmul",
    .version = 1,
    .doc =
        "matmul(a, b; transpose_a, transpose_b): y[.., i, j] = sum over k of a[.., i, k] b[.., k, j]; leading axes broadcast",
    .category = "linear algebra",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_LINEAR_EACH,
    .attrs = attrs,
    .infer = matmul_infer,
    .gradient = matmul_gradient,
    .cost = matmul_cost,
    .split = matmul_split,
    .reference = matmul_reference,
    .samples = samples,
};
