/* int_matmul.c: the rules of products of matrices of bytes; see quantized.h. */
#include "ops/quantized/quantized.h"

const tutti_int_matmul *tutti__matmul_integer_inputs(void)
{
    static const tutti_int_matmul inputs = {.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
    return &inputs;
}

const tutti_int_matmul *tutti__qlinear_matmul_inputs(void)
{
    static const tutti_requantize finish = {.a_scale = 1, .b_scale = 4, .y_scale = 6, .y_zero = 7};
    static const tutti_int_matmul inputs = {
        .a = 0, .a_zero = 2, .b = 3, .b_zero = 5, .finish = &finish};
    return &inputs;
}

static tutti_status need_parameters(const tutti_infer *node, const tutti_int_matmul *m,
                                    int64_t rows, int64_t columns)
{
    if (node->input_count > m->a_zero)
        TUTTI_TRY(
            tutti__need_parameter(node, m->a_zero, "a's zero", node->inputs[m->a].dtype, rows));
    if (node->input_count > m->b_zero)
        TUTTI_TRY(
            tutti__need_parameter(node, m->b_zero, "b's zero", node->inputs[m->b].dtype, columns));
    if (!m->finish)
        return TUTTI_OK;
    TUTTI_TRY(tutti__need_parameter(node, m->finish->a_scale, "a's scale", TUTTI_F32, rows));
    TUTTI_TRY(tutti__need_parameter(node, m->finish->b_scale, "b's scale", TUTTI_F32, columns));
    TUTTI_TRY(tutti__need_parameter(node, m->finish->y_scale, "y's scale", TUTTI_F32, 1));
    TUTTI_TRY(tutti__need_bytes(node, m->finish->y_zero, "y's zero"));
    return tutti__need_parameter(node, m->finish->y_zero, "y's zero", TUTTI_NO_DTYPE, 1);
}

tutti_status tutti__int_matmul_infer(tutti_infer *node, const tutti_int_matmul *m,
                                     tutti_dtype dtype)
{
    char ta[TUTTI_TYPE_TEXT], tb[TUTTI_TYPE_TEXT];
    const tutti_type *a = &node->inputs[m->a], *b = &node->inputs[m->b];
    int64_t dims[TUTTI_MAX_RANK], inner;
    int rank;
    TUTTI_TRY(tutti__need_bytes(node, m->a, "a"));
    TUTTI_TRY(tutti__need_bytes(node, m->b, "b"));
    tutti_type_text(a, ta);
    tutti_type_text(b, tb);
    if (a->rank < 2 || b->rank < 2 ||
        !tutti__shape_merge(a->dims[a->rank - 1], b->dims[b->rank - 2], &inner))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "a is %s and b %s, need [.., rows, k] and [.., k, columns]", ta, tb);
    if (tutti_broadcast_dims(a->rank - 2, a->dims, b->rank - 2, b->dims, &rank, dims) != TUTTI_OK)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "a is %s and b %s: dimensions before the last two do not broadcast", ta,
                         tb);
    dims[rank] = a->dims[a->rank - 2];
    dims[rank + 1] = b->dims[b->rank - 1];
    TUTTI_TRY(need_parameters(node, m, dims[rank], dims[rank + 1]));
    return tutti__shape_output(node, 0, dtype, rank + 2, dims);
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

static int32_t int_matmul_element(const tutti_kernel_call *call, const tutti_int_matmul *m,
                                  int64_t a_start, int64_t b_start, int64_t i, int64_t j)
{
    const tutti_view *a = &call->inputs[m->a], *b = &call->inputs[m->b];
    int64_t k = a->dims[a->rank - 1], n = b->dims[b->rank - 1];
    int32_t a_zero = tutti__zero_of(call, m->a_zero, i),
            b_zero = tutti__zero_of(call, m->b_zero, j);
    uint32_t sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += (uint32_t)((tutti__byte_at(a, a_start + i * k + p) - a_zero) *
                          (tutti__byte_at(b, b_start + p * n + j) - b_zero));
    return (int32_t)sum;
}

tutti_status tutti__int_matmul_reference(const tutti_kernel_call *call, const tutti_int_matmul *m)
{
    const tutti_view *a = &call->inputs[m->a], *b = &call->inputs[m->b], *y = &call->outputs[0];
    int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
    int64_t batch = tutti__dims_product(y->rank - 2, y->dims), at = 0;
    if (tutti_view_count(y) == 0)
        return TUTTI_OK;
    for (int64_t n = 0; n < batch; n++) {
        int64_t a_start = batch_start(a, y, n), b_start = batch_start(b, y, n);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++, at++) {
                int32_t sum = int_matmul_element(call, m, a_start, b_start, i, j);
                tutti_view_set_int(y, at,
                                   m->finish ? tutti__requantize(call, m->finish, i, j, sum) : sum);
            }
    }
    return TUTTI_OK;
}

void tutti__int_matmul_cost(const tutti_infer *node, const tutti_int_matmul *m, tutti_cost *ret)
{
    const tutti_type *a = &node->inputs[m->a];
    int64_t k = a->dims[a->rank - 1];
    tutti__cost_elementwise(node, ret);
    ret->flops = 2 * tutti__shape_elements(&node->outputs[0]) * (double)(k > 0 ? k : 1);
}

static bool is_vector(const tutti_infer *node, int input)
{
    return input < node->input_count && node->inputs[input].rank == 1 &&
           node->inputs[input].dims[0] != 1;
}

int tutti__int_matmul_split(const tutti_infer *node, const tutti_int_matmul *m, int capacity,
                            tutti_split *ret)
{
    const tutti_type *a = &node->inputs[m->a], *b = &node->inputs[m->b];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    if (a->rank != 2 || b->rank != 2)
        return 0;
    for (int axis = 0; axis < 2; axis++) {
        const int of_rows[] = {m->a_zero, m->finish ? m->finish->a_scale : m->a_zero};
        const int of_columns[] = {m->b_zero, m->finish ? m->finish->b_scale : m->b_zero};
        tutti_split *way = tutti__cut(&cuts);
        way->outputs[0] = (int8_t)axis;
        way->inputs[axis == 0 ? m->a : m->b] = (int8_t)axis;
        for (int i = 0; i < 2; i++) {
            int input = axis == 0 ? of_rows[i] : of_columns[i];
            if (is_vector(node, input))
                way->inputs[input] = 0;
        }
    }
    return cuts.count;
}
