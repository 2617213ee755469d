/* pad_grad.c: sums what padding made of each element: the adjoint of pad by reflection or edge. */
#include "ops/shape/pad.h"
#include "tensor/dtype.h"

/* Whether `size` elements come of `inside` ones. */
static bool is_padded(int64_t size, int64_t inside, const int64_t *paddings)
{
    return tutti__add_size(inside, paddings[0], &inside) &&
           tutti__add_size(inside, paddings[1], &inside) && size == inside;
}

static tutti_status pad_grad_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_type like;
    const int64_t *paddings;
    TUTTI_TRY(tutti__shape_floats(node, 0));
    TUTTI_TRY(tutti__shape_like(node, 1, &like));
    TUTTI_TRY(tutti__pad_check(node, &like));
    RULE_INTS(node, "paddings", &paddings);
    bool agree = x->rank == like.rank;
    for (int i = 0; agree && i < x->rank; i++)
        agree = x->dims[i] == TUTTI_ANY || like.dims[i] == TUTTI_ANY ||
                is_padded(x->dims[i], like.dims[i], &paddings[2 * i]);
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID, "input %s is not %s with these paddings",
                         tutti_type_text(x, a), tutti_type_text(&like, b));
    return tutti__shape_output(node, 0, x->dtype, like.rank, like.dims);
}

static tutti_status pad_grad_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_pad;
    if (node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_pad, ((tutti_sym[]){node->output_grads[0]}),
                                          RULE_ATTR(node, "paddings"), RULE_ATTR(node, "mode"));
    return TUTTI_OK;
}

enum { BLOCK = 256, PIECE = 16384 }; /* elements summed at once; of one piece, about */

typedef struct {
    const tutti_view *x, *y;
    const int64_t *paddings;
    tutti_pad_mode mode;
    int64_t strides[TUTTI_MAX_RANK];     /* of x */
    int64_t length, blocks, rows, chunk; /* of a row of y; rows, and those of one piece */
} job;

/* Part of a row of y, along the last axis. */
typedef struct {
    int64_t index[TUTTI_MAX_RANK]; /* along the other axes */
    int64_t first, count;
} part;

/* Places along an axis that hold its element i, in the order of their sum: by reflection its own,
 * then one before and one behind; at an edge all the padding there too. */
typedef struct {
    int64_t start[3], end[3]; /* from start up to end */
    int count;
} places;

static places places_of(const job *all, int axis, int64_t i)
{
    int64_t size = all->y->dims[axis], padded = all->x->dims[axis];
    int64_t own = all->paddings[2 * axis] + i, behind = own + 2 * (size - 1 - i);
    if (all->mode == TUTTI_PAD_EDGE)
        return (places){{i == 0 ? 0 : own}, {i == size - 1 ? padded : own + 1}, 1};
    places found = {{own}, {own + 1}, 1};
    if (all->mode == TUTTI_PAD_REFLECT && i > 0 && own - 2 * i >= 0) {
        found.start[found.count] = own - 2 * i;
        found.end[found.count++] = own - 2 * i + 1;
    }
    if (all->mode == TUTTI_PAD_REFLECT && i < size - 1 && behind < padded) {
        found.start[found.count] = behind;
        found.end[found.count++] = behind + 1;
    }
    return found;
}

/* An element that padding repeats along the last axis. */
static double sum_repeated(const job *all, int axis, int64_t offset, int64_t i)
{
    places found = places_of(all, axis, i);
    double sum = 0;
    for (int k = 0; k < found.count; k++)
        for (int64_t at = found.start[k]; at < found.end[k]; at++)
            sum += tutti_view_get(all->x, offset + at);
    return sum;
}

static void sum_row(const job *all, int axis, const part *row, int64_t offset, double *ret_sums)
{
    int64_t before = all->paddings[2 * axis], after = all->paddings[2 * axis + 1];
    int64_t end = row->first + row->count;
    /* elements up to `low` and from `high` on are repeated */
    int64_t low = before > 0 ? (all->mode == TUTTI_PAD_EDGE ? 1 : before + 1) : 0;
    int64_t high = all->length - (after > 0 ? (all->mode == TUTTI_PAD_EDGE ? 1 : after + 1) : 0);
    low = low < end ? low : end;
    high = high > low ? high : low;
    tutti__elements_to_doubles(all->x->dtype, tutti__element(all->x, offset + before + row->first),
                               row->count, ret_sums);
    for (int64_t i = 0; i < row->count; i++)
        ret_sums[i] += 0; /* which makes 0 of -0, as every sum does */
    for (int64_t i = row->first; i < low; i++)
        ret_sums[i - row->first] = sum_repeated(all, axis, offset, i);
    for (int64_t i = high > row->first ? high : row->first; i < end; i++)
        ret_sums[i - row->first] = sum_repeated(all, axis, offset, i);
}

/* All places of x from `axis` on that hold the elements of the part. */
static void sum_from(const job *all, int axis, const part *row, int64_t offset, double *ret_sums)
{
    if (axis == all->y->rank - 1) {
        sum_row(all, axis, row, offset, ret_sums);
        return;
    }
    places found = places_of(all, axis, row->index[axis]);
    bool first = true;
    for (int k = 0; k < found.count; k++)
        for (int64_t at = found.start[k]; at < found.end[k]; at++, first = false) {
            double more[BLOCK];
            int64_t there = offset + at * all->strides[axis];
            sum_from(all, axis + 1, row, there, first ? ret_sums : more);
            for (int64_t i = 0; !first && i < row->count; i++)
                ret_sums[i] += more[i];
        }
    for (int64_t i = 0; first && i < row->count; i++)
        ret_sums[i] = 0;
}

static void pad_grad_sum_piece(void *context, int64_t index)
{
    const job *all = context;
    double sums[BLOCK];
    part row = {.first = index % all->blocks * BLOCK};
    int64_t at = index / all->blocks * all->chunk;
    int64_t end = all->rows - at < all->chunk ? all->rows : at + all->chunk;
    row.count = all->length - row.first < BLOCK ? all->length - row.first : BLOCK;
    for (; at < end; at++) {
        int64_t rest = at;
        for (int axis = all->y->rank - 2; axis >= 0; axis--) {
            row.index[axis] = rest % all->y->dims[axis];
            rest /= all->y->dims[axis];
        }
        sum_from(all, 0, &row, 0, sums);
        tutti__elements_from_doubles(
            all->y->dtype, tutti__element(all->y, at * all->length + row.first), row.count, sums);
    }
}

static tutti_status pad_grad_reference(const tutti_kernel_call *call)
{
    job all = {.x = &call->inputs[0], .y = &call->outputs[0]};
    int64_t count = tutti_view_count(all.y);
    all.mode = tutti__pad_mode(call->attrs, call->attr_count);
    RULE_INTS(call, "paddings", &all.paddings);
    if (count == 0)
        return TUTTI_OK;
    if (all.y->rank == 0) {
        memcpy(all.y->data, all.x->data, tutti_dtype_size(all.y->dtype));
        return TUTTI_OK;
    }
    tutti__strides_of(all.x->rank, all.x->dims, all.strides);
    all.length = all.y->dims[all.y->rank - 1];
    all.blocks = (all.length + BLOCK - 1) / BLOCK;
    all.rows = count / all.length;
    all.chunk = all.blocks == 1 ? PIECE / all.length + 1 : 1;
    tutti_parallel(call, (all.rows + all.chunk - 1) / all.chunk * all.blocks, pad_grad_sum_piece,
                   &all);
    return TUTTI_OK;
}

static int pad_grad_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *paddings;
    RULE_INTS(node, "paddings", &paddings);
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (paddings[2 * i] != 0 || paddings[2 * i + 1] != 0)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 1, i);
    }
    return cuts.count;
}

static const tutti_attr_spec attrs[] = {
    {"paddings", TUTTI_ATTR_INTS, NULL},
    {"mode", TUTTI_ATTR_STRING, "constant"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,9] f32[3,4] | paddings=[0,0,2,3] mode=reflect",
    "f32[4,5,2] f32[2,3,2] | paddings=[1,1,2,0,0,0] mode=edge",
    "f32[4] f32[1] | paddings=[1,2] mode=edge",
    "f32[3,9] | paddings=[0,0,2,3] mode=reflect dims=[3,4]",
    NULL,
};

const tutti_op tutti_op_pad_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "pad_grad",
    .version = 1,
    .doc =
        "pad_grad(x, like; paddings, mode, dims): y[i] = sum of all x[j] that padding makes of element i of a tensor of the shape of like, or dims without it",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = pad_grad_infer,
    .gradient = pad_grad_gradient,
    .cost = tutti__cost_elementwise,
    .split = pad_grad_split,
    .reference = pad_grad_reference,
    .samples = samples,
};
