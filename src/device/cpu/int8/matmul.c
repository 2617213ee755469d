/* matmul.c: products of matrices of bytes, a [.., m, k] flat to rows and one matrix b [k, n]. */
#include "device/cpu/int8/finish.h"
#include "device/cpu/int8/kernels.h"

static tutti_int8_shape shape_of(const tutti_type *a, const tutti_type *b)
{
    int64_t rows = 1;
    for (int i = 0; i < a->rank - 1; i++)
        rows *= a->dims[i];
    return (tutti_int8_shape){.m = rows, .n = b->dims[1], .k = b->dims[0], .groups = 1};
}

static bool is_vector(const tutti_infer *node, int input)
{
    return input < node->input_count && node->inputs[input].rank == 1 &&
           node->inputs[input].dims[0] != 1;
}

int tutti__int8_matmul_score(const tutti_kernel_query *query, const tutti_int_matmul *m)
{
    const tutti_infer *node = &query->node;
    const tutti_type *a = &node->inputs[m->a], *b = &node->inputs[m->b];
    bool by_rows = is_vector(node, m->a_zero) || (m->finish && is_vector(node, m->finish->a_scale));
    if (b->rank != 2 || (by_rows && a->rank != 2) || tutti_type_count(&node->outputs[0]) < 1 ||
        b->dims[0] < 1 || b->dims[0] > INT32_MAX / 512 || b->dims[1] > INT32_MAX / 512)
        return 0;
    return 100;
}

size_t tutti__int8_matmul_workspace(const tutti_kernel_query *query, const tutti_int_matmul *m)
{
    tutti_int8_shape shape = shape_of(&query->node.inputs[m->a], &query->node.inputs[m->b]);
    bool packed = query->node.values != NULL && query->node.values[m->b] != NULL;
    return tutti__int8_scratch_bytes(&shape, query->threads) +
           (packed ? 0 : tutti__int8_right_bytes(&shape));
}

tutti_status tutti__int8_matmul_prepare(const tutti_kernel_query *query, const tutti_int_matmul *m,
                                        void **ret_plan)
{
    tutti_int8_shape shape = shape_of(&query->node.inputs[m->a], &query->node.inputs[m->b]);
    return tutti__int8_plan(query, &shape, m->b, ret_plan);
}

typedef struct operands {
    const uint8_t *a;
    int64_t k;
    tutti_int8_finish finish;
} operands;

static const uint8_t *row(const void *context, int64_t group, int64_t i, uint8_t *room)
{
    const operands *o = context;
    TUTTI_UNUSED(group);
    TUTTI_UNUSED(room);
    return o->a + i * o->k;
}

static void matmul_finish(const void *context, int64_t i, int64_t first, int64_t count,
                          const int32_t *sums)
{
    tutti__int8_finish(&((const operands *)context)->finish, i, first, count, sums);
}

tutti_status tutti__int8_matmul_run(const tutti_kernel_call *call, const tutti_int_matmul *m)
{
    const tutti_view *a = &call->inputs[m->a], *b = &call->inputs[m->b];
    const tutti_int8_plan *plan = call->plan;
    tutti_type left = tutti_type_make(a->dtype, a->rank, a->dims);
    tutti_type right = tutti_type_make(b->dtype, b->rank, b->dims);
    tutti_int8_shape shape = shape_of(&left, &right);
    operands o = {
        .a = a->data, .k = shape.k, .finish = tutti__int8_finish_of(call, m->finish, 0, shape.n)};
    tutti_int8_product product = {
        .shape = shape,
        .right = tutti__int8_right(call, &shape, b),
        .scratch = call->workspace,
        .threads = plan->threads,
        .left_dtype = a->dtype,
        .right_dtype = b->dtype,
        .row = row,
        .left_zero = m->a_zero < call->input_count ? &call->inputs[m->a_zero] : NULL,
        .right_zero = m->b_zero < call->input_count ? &call->inputs[m->b_zero] : NULL,
        .direct = m->finish ? NULL : call->outputs[0].data,
        .line = shape.n,
        .finish = matmul_finish,
        .context = &o,
    };
    tutti__int8_product(call, &product);
    return TUTTI_OK;
}
