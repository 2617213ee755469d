/* tile_grad.c: sums over the repetitions of a tile: the adjoint of tile. */
#include "ops/shape/move.h"
#include "tensor/dtype.h"

static tutti_status tile_grad_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_type like;
    const int64_t *multiples;
    TUTTI_TRY(tutti__shape_floats(node, 0));
    TUTTI_TRY(tutti__shape_like(node, 1, &like));
    bool agree = RULE_INTS(node, "multiples", &multiples) == x->rank && x->rank == like.rank;
    for (int i = 0; agree && i < x->rank; i++)
        agree =
            multiples[i] >= 0 && (x->dims[i] == TUTTI_ANY || like.dims[i] == TUTTI_ANY ||
                                  (multiples[i] == 0 ? x->dims[i] == 0
                                                     : x->dims[i] / multiples[i] == like.dims[i] &&
                                                           x->dims[i] % multiples[i] == 0));
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID, "input %s is not %s repeated by these multiples",
                         tutti_type_text(x, a), tutti_type_text(&like, b));
    return tutti__shape_output(node, 0, x->dtype, like.rank, like.dims);
}

static tutti_status tile_grad_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_tile;
    if (node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_tile, ((tutti_sym[]){node->output_grads[0]}),
                                          RULE_ATTR(node, "multiples"));
    return TUTTI_OK;
}

/* Offset in x of element `flat` of a grid with the given steps along each axis. */
static int64_t offset_of(int rank, const int64_t *sizes, const int64_t *steps, int64_t flat)
{
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; i--) {
        offset += flat % sizes[i] * steps[i];
        flat /= sizes[i];
    }
    return offset;
}

enum { BLOCK = 512, PIECE = 16384 }; /* elements summed at once; read by one piece, about */

/* Rows of y and x are along the last axis, in which a row of x is `repeats` rows of y. Pieces are
 * rows, or blocks of a row. */
typedef struct {
    const tutti_view *x, *y;
    const int64_t *multiples;
    int outer;                                              /* axes but the last */
    int64_t length, repeats, tiles, rows, chunk, blocks;    /* tiles: over the outer axes */
    int64_t strides[TUTTI_MAX_RANK], jumps[TUTTI_MAX_RANK]; /* in x: of elements, of tiles */
} job;

/* The repeats along a row of x that begin at `from`, in their order. Short ones are converted
 * together. */
static void add_repeats(const job *all, int64_t from, int64_t count, double *sums)
{
    double row[BLOCK];
    int64_t together = count == all->length ? BLOCK / count : 1;
    for (int64_t r = 0; r < all->repeats; r += together) {
        int64_t here = all->repeats - r < together ? all->repeats - r : together;
        tutti__elements_to_doubles(all->x->dtype, tutti__element(all->x, from + r * all->length),
                                   here * count, row);
        for (int64_t k = 0; k < here; k++)
            for (int64_t j = 0; j < count; j++)
                sums[j] += row[k * count + j];
    }
}

static void sum_block(const job *all, int64_t row, int64_t first, int64_t count)
{
    double sums[BLOCK];
    int64_t tile[TUTTI_MAX_RANK] = {0};
    int64_t from = offset_of(all->outer, all->y->dims, all->strides, row) + first;
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t t = 0; t < all->tiles; t++) {
        add_repeats(all, from, count, sums);
        for (int i = all->outer - 1; i >= 0; i--) {
            from += all->jumps[i];
            if (++tile[i] < all->multiples[i])
                break;
            from -= all->jumps[i] * tile[i];
            tile[i] = 0;
        }
    }
    tutti__elements_from_doubles(all->y->dtype, tutti__element(all->y, row * all->length + first),
                                 count, sums);
}

static void tile_grad_sum_piece(void *context, int64_t index)
{
    const job *all = context;
    int64_t row = index / all->blocks * all->chunk, first = index % all->blocks * BLOCK;
    int64_t end = all->rows - row < all->chunk ? all->rows : row + all->chunk;
    for (; row < end; row++)
        sum_block(all, row, first, all->length - first < BLOCK ? all->length - first : BLOCK);
}

static tutti_status tile_grad_reference(const tutti_kernel_call *call)
{
    job all = {.x = &call->inputs[0], .y = &call->outputs[0], .length = 1, .repeats = 1};
    int64_t count = tutti__dims_product(all.y->rank, all.y->dims);
    RULE_INTS(call, "multiples", &all.multiples);
    if (count == 0)
        return TUTTI_OK;
    if (all.y->rank > 0) {
        all.outer = all.y->rank - 1;
        all.length = all.y->dims[all.outer];
        all.repeats = all.multiples[all.outer];
    }
    all.tiles = tutti__dims_product(all.outer, all.multiples);
    all.rows = count / all.length;
    all.blocks = (all.length + BLOCK - 1) / BLOCK;
    int64_t read = tutti_view_count(all.x) / all.rows;
    all.chunk = all.blocks == 1 ? PIECE / (read + all.length) + 1 : 1;
    tutti__strides_of(all.x->rank, all.x->dims, all.strides);
    for (int i = 0; i < all.x->rank; i++)
        all.jumps[i] = all.strides[i] * all.y->dims[i];
    tutti_parallel(call, (all.rows + all.chunk - 1) / all.chunk * all.blocks, tile_grad_sum_piece,
                   &all);
    return TUTTI_OK;
}

static void tile_grad_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[0]);
}

static int tile_grad_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *multiples;
    RULE_INTS(node, "multiples", &multiples);
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (multiples[i] != 1)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 1, i);
    }
    return cuts.count;
}

static const tutti_attr_spec attrs[] = {
    {"multiples", TUTTI_ATTR_INTS, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[4,3] f32[2,3] | multiples=[2,1]",
    "f32[4,2,4] f32[2,1,2] | multiples=[2,2,2]",
    "f32[0] f32[2] | multiples=[0]",
    "f32[6,3] | multiples=[2,1] dims=[3,3]",
    NULL,
};

const tutti_op tutti_op_tile_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "tile_grad",
    .version = 1,
    .doc =
        "tile_grad(x, like; multiples, dims): y[i] = sum of all x[j] that tiling makes of element i of a tensor of the shape of like, or dims without it",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = tile_grad_infer,
    .gradient = tile_grad_gradient,
    .cost = tile_grad_cost,
    .split = tile_grad_split,
    .reference = tile_grad_reference,
    .samples = samples,
};
