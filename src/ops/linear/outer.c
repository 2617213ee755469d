/* outer.c: all products of two vectors. */
#include "ops/shape/move.h"
#include "tensor/dtype.h"

static tutti_status outer_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__shape_same_dtype(node, 1));
    if (node->inputs[0].rank != 1 || node->inputs[1].rank != 1)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "inputs are %s and %s, both need 1 dimension; flatten them with tutti_reshape(x, -1)",
            tutti_type_text(&node->inputs[0], a), tutti_type_text(&node->inputs[1], b));
    return tutti__shape_output(node, 0, node->inputs[0].dtype, 2,
                               (int64_t[]){node->inputs[0].dims[0], node->inputs[1].dims[0]});
}

/* da = dy b, db = dyT a. */
static tutti_status outer_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0];
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_squeeze(tutti_matmul(dy, tutti_expand_dims(node->inputs[1], 1)), 1);
    if (node->wanted[1])
        node->input_grads[1] = tutti_squeeze(
            tutti_matmul(dy, tutti_expand_dims(node->inputs[0], 1), .transpose_a = true), 1);
    return TUTTI_OK;
}

enum { BLOCK = 256, PIECE = 16384 }; /* products made at once; of one piece, about */

typedef struct {
    const tutti_view *a, *b, *y;
    int64_t chunk; /* rows of one piece */
} job;

/* 16-bit floats, element i of a times all of b: exact in double, rounded once. */
static void short_row(const job *all, int64_t i)
{
    double row[BLOCK], factor = tutti_view_get(all->a, i);
    int64_t columns = all->b->dims[0];
    for (int64_t first = 0; first < columns; first += BLOCK) {
        int64_t count = columns - first < BLOCK ? columns - first : BLOCK;
        tutti__elements_to_doubles(all->b->dtype, tutti__element(all->b, first), count, row);
        for (int64_t j = 0; j < count; j++)
            row[j] *= factor;
        tutti__elements_from_doubles(all->y->dtype, tutti__element(all->y, i * columns + first),
                                     count, row);
    }
}

#define ROW(type, wide)                                                                            \
    {                                                                                              \
        const type *b = all->b->data;                                                              \
        type a = ((const type *)all->a->data)[i], *y = (type *)all->y->data + i * columns;         \
        for (int64_t j = 0; j < columns; j++)                                                      \
            y[j] = (type)((wide)a * (wide)b[j]);                                                   \
        break;                                                                                     \
    }

/* Integers wrap round. */
static void product_row(const job *all, int64_t i, int64_t columns)
{
    switch (all->y->dtype) {
    case TUTTI_F32:
        ROW(float, float)
    case TUTTI_F64:
        ROW(double, double)
    case TUTTI_I8:
        ROW(int8_t, uint32_t)
    case TUTTI_U8:
        ROW(uint8_t, uint32_t)
    case TUTTI_I32:
        ROW(int32_t, uint32_t)
    case TUTTI_I64:
        ROW(int64_t, uint64_t)
    default:
        short_row(all, i);
    }
}
#undef ROW

static void product_piece(void *context, int64_t index)
{
    const job *all = context;
    int64_t first = index * all->chunk, rows = all->a->dims[0];
    int64_t end = rows - first < all->chunk ? rows : first + all->chunk;
    for (int64_t i = first; i < end; i++)
        product_row(all, i, all->b->dims[0]);
}

static tutti_status outer_reference(const tutti_kernel_call *call)
{
    job all = {&call->inputs[0], &call->inputs[1], &call->outputs[0], 1};
    int64_t rows = all.a->dims[0], columns = all.b->dims[0];
    if (rows == 0 || columns == 0)
        return TUTTI_OK;
    all.chunk = PIECE / columns + 1;
    tutti_parallel(call, (rows + all.chunk - 1) / all.chunk, product_piece, &all);
    return TUTTI_OK;
}

static int outer_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    TUTTI_UNUSED(node);
    tutti__cut_pair(&cuts, 0, 0);
    tutti_split *way = tutti__cut(&cuts);
    way->inputs[1] = 0;
    way->outputs[0] = 1;
    return cuts.count;
}

extern const tutti_op tutti_op_outer;
tutti_sym(tutti_outer)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_outer, a, b);
}

static const char *const samples[] = {
    "f32[3] f32[4]", "f64[5] f64[1]", "i32[2] i32[3]", "f32[0] f32[3]", NULL,
};

const tutti_op tutti_op_outer = {
    .struct_size = sizeof(tutti_op),
    .name = "outer",
    .version = 1,
    .doc = "outer(a, b): y[i, j] = a[i] b[j]",
    .category = "linear algebra",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = outer_infer,
    .gradient = outer_gradient,
    .cost = tutti__cost_elementwise,
    .split = outer_split,
    .reference = outer_reference,
    .samples = samples,
};
