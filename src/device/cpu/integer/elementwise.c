/* elementwise.c: an element-wise operator on integers and bools: its loop over tiles of contiguous
 * elements. Operands that are repeated along axes are spread into a tile on the stack first. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/integer/integer.h"
#include "device/cpu/isa.h"
#include "device/cpu/tile/space.h"

/* Elements: of what a thread does at once, and of a tile where an operand is spread. */
enum { PIECE = 32768, SPREAD = 512, LONGEST = 8 /* bytes of an element */ };

typedef struct integer_plan {
    tutti_tile_loop *loop, *refuses; /* refuses: of the last operand, or NULL */
    int inputs;
    size_t in_elements[TUTTI_TILE_INPUTS], out_element; /* bytes */
    double params[TUTTI_TILE_PARAMS];
    tutti_tile_space space;
    int64_t tiles, tiles_of_piece;
} integer_plan;

/* A tile of an operand that is repeated, and what stands in it. */
typedef struct spread_tile {
    char *data;
    int64_t offset, rows, columns; /* rows 0: nothing */
} spread_tile;

/* Only the best set bids: the loops are looked up for it. */
static int elementwise_score(const tutti_kernel_query *query)
{
    return strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 &&
                   tutti__integer_find(&query->node) != NULL
               ? 105
               : 0;
}

static bool all_linear(const integer_plan *plan)
{
    for (int i = 0; i < plan->inputs; i++)
        if (plan->space.inputs[i].reach != TUTTI_REACH_LINEAR)
            return false;
    return true;
}

static tutti_status elementwise_cut(const tutti_infer *node, integer_plan *plan)
{
    const tutti_type *out = &node->outputs[0];
    bool fits = tutti__space_make(out, plan->inputs, node->inputs, PIECE, &plan->space);
    if (fits && !all_linear(plan))
        fits = tutti__space_make(out, plan->inputs, node->inputs, SPREAD, &plan->space);
    if (!fits)
        return tutti_fail(TUTTI_INTERNAL, "'%s': shapes do not broadcast", node->name);
    int64_t tile = plan->space.tile_rows * plan->space.tile_columns;
    plan->tiles = plan->space.count > 0 ? tutti__space_tiles(&plan->space) : 0;
    plan->tiles_of_piece = tile < PIECE ? PIECE / tile : 1;
    return TUTTI_OK;
}

static tutti_status elementwise_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_infer *node = &query->node;
    const tutti_integer_op *row = tutti__integer_find(node);
    tutti_dtype dtype = node->inputs[row->inputs - 1].dtype;
    integer_plan plan = {.loop = row->loops[dtype],
                         .refuses = row->refuses[dtype],
                         .inputs = row->inputs,
                         .out_element = tutti_dtype_size(node->outputs[0].dtype)};
    for (int i = 0; i < row->inputs; i++)
        plan.in_elements[i] = tutti_dtype_size(node->inputs[i].dtype);
    for (int i = 0; i < TUTTI_TILE_PARAMS && row->attrs[i] != NULL; i++)
        plan.params[i] = tutti_attr_float(node->attrs, node->attr_count, row->attrs[i]);
    TUTTI_TRY(elementwise_cut(node, &plan));
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

/* The first `bytes` of `to` once more and once more, until all is full. */
static void repeat(char *to, size_t bytes, size_t all)
{
    for (size_t done = bytes; done < all; done *= 2)
        memcpy(to + done, to, done < all - done ? done : all - done);
}

/* Elements of a row lie side by side in memory, or are one element. */
static void spread(const integer_plan *plan, int input, const char *from, spread_tile *ret)
{
    size_t element = plan->in_elements[input], row = (size_t)ret->columns * element;
    int64_t row_step = plan->space.inputs[input].row_step;
    bool one = plan->space.inputs[input].column_step == 0;
    for (int64_t r = 0; r < (row_step == 0 ? 1 : ret->rows); r++) {
        char *to = ret->data + (size_t)r * row;
        memcpy(to, from + (size_t)(r * row_step) * element, one ? element : row);
        if (one)
            repeat(to, element, row);
    }
    if (row_step == 0)
        repeat(ret->data, row, (size_t)ret->rows * row);
}

static const void *operand(const tutti_kernel_call *call, int input, const tutti_space_tile *tile,
                           spread_tile *held)
{
    const integer_plan *plan = call->plan;
    int64_t offset = tutti__space_offset(&plan->space, input, tile);
    const char *from =
        (const char *)call->inputs[input].data + (size_t)offset * plan->in_elements[input];
    if (plan->space.inputs[input].reach == TUTTI_REACH_LINEAR)
        return from;
    if (held->offset != offset || held->rows < tile->rows || held->columns != tile->columns) {
        held->offset = offset;
        held->rows = tile->rows;
        held->columns = tile->columns;
        spread(plan, input, from, held);
    }
    return held->data;
}

static void elementwise_run_piece(void *context, int64_t index)
{
    const tutti_kernel_call *call = context;
    const integer_plan *plan = call->plan;
    int64_t first = index * plan->tiles_of_piece, end = first + plan->tiles_of_piece;
    _Alignas(64) char memory[TUTTI_TILE_INPUTS][SPREAD * LONGEST];
    spread_tile held[TUTTI_TILE_INPUTS] = {0};
    for (int i = 0; i < plan->inputs; i++)
        held[i].data = memory[i];
    for (int64_t t = first; t < end && t < plan->tiles; t++) {
        tutti_space_tile tile = tutti__space_tile(&plan->space, t);
        tutti_tile_args args = {.count = tile.rows * tile.columns,
                                .y = (char *)call->outputs[0].data +
                                     (size_t)tile.offset * plan->out_element,
                                .params = plan->params};
        for (int i = 0; i < plan->inputs; i++)
            args.x[i] = operand(call, i, &tile, &held[i]);
        plan->loop(&args);
    }
}

typedef struct search {
    const tutti_kernel_call *call;
    int64_t count;
    atomic_bool found;
} search;

static void search_piece(void *context, int64_t index)
{
    search *s = context;
    const integer_plan *plan = s->call->plan;
    int last = plan->inputs - 1;
    int64_t first = index * PIECE, rest = s->count - first;
    bool found = false;
    plan->refuses(&(tutti_tile_args){
        .count = rest < PIECE ? rest : PIECE,
        .x = {(const char *)s->call->inputs[last].data + (size_t)first * plan->in_elements[last]},
        .y = &found});
    if (found)
        atomic_store(&s->found, true);
}

/* Whether the operator refuses an element; the reference then says which, before it writes any. */
static bool is_refused(const tutti_kernel_call *call)
{
    const integer_plan *plan = call->plan;
    if (plan->refuses == NULL)
        return false;
    search s = {.call = call, .count = tutti_view_count(&call->inputs[plan->inputs - 1])};
    tutti_parallel(call, (s.count + PIECE - 1) / PIECE, search_piece, &s);
    return atomic_load(&s.found);
}

static tutti_status elementwise_run(const tutti_kernel_call *call)
{
    const integer_plan *plan = call->plan;
    if (is_refused(call))
        return call->op->reference(call);
    int64_t pieces = (plan->tiles + plan->tiles_of_piece - 1) / plan->tiles_of_piece;
    tutti_parallel(call, pieces, elementwise_run_piece, (void *)(uintptr_t)call);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_elementwise_integer) = {
    .name = "elementwise.integer",
    .version = 1,
    .op = TUTTI_KERNEL_ELEMENTWISE,
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = ~UINT32_C(0),
    .covers = tutti__integer_covers,
    .score = elementwise_score,
    .prepare = elementwise_prepare,
    .discard = free,
    .run = elementwise_run,
};
