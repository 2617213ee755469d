/* elementwise_direct.c: an element-wise operator whose inputs and output have one type and shape:
 * one call of its loop, with nothing before it. This is the kernel of small nodes, whose cost is
 * the call. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/tile/tile.h"

enum { TILE_ELEMENTS = TUTTI_TILE_BYTES / 8, PIECE_ELEMENTS = 16384 };

typedef struct direct_plan {
    tutti_tile_loop *loop;
    int inputs;
    int64_t count;
    size_t element;
    double params[TUTTI_TILE_PARAMS];
} direct_plan;

static const tutti_tile_op *elementwise_direct_find(const tutti_infer *node)
{
    const tutti_type *out = &node->outputs[0];
    if ((out->dtype != TUTTI_F32 && out->dtype != TUTTI_F64) || node->input_count < 1 ||
        node->input_count > TUTTI_TILE_INPUTS || node->output_count != 1)
        return NULL;
    for (int i = 0; i < node->input_count; i++)
        if (!tutti_type_equal(&node->inputs[i], out))
            return NULL;
    const tutti_tile_op *row = tutti__tile_find(node->op->name, node->attrs, node->attr_count);
    return row != NULL && row->inputs == node->input_count ? row : NULL;
}

static bool covers(const tutti_op *op)
{
    return tutti__tile_find(op->name, NULL, 0) != NULL;
}

static int elementwise_direct_score(const tutti_kernel_query *query)
{
    return strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 &&
                   elementwise_direct_find(&query->node) != NULL
               ? 110
               : 0;
}

static tutti_status elementwise_direct_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_infer *node = &query->node;
    const tutti_tile_op *row = elementwise_direct_find(node);
    direct_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", node->name);
    plan->loop = node->outputs[0].dtype == TUTTI_F32 ? row->f32 : row->f64;
    plan->inputs = row->inputs;
    plan->count = tutti_type_count(&node->outputs[0]);
    plan->element = tutti_dtype_size(node->outputs[0].dtype);
    for (int i = 0; i < TUTTI_TILE_PARAMS && row->attrs[i] != NULL; i++)
        plan->params[i] = tutti_attr_float(node->attrs, node->attr_count, row->attrs[i]);
    *ret_plan = plan;
    return TUTTI_OK;
}

static void run_range(const tutti_kernel_call *call, int64_t first, int64_t end)
{
    const direct_plan *plan = call->plan;
    for (int64_t i = first; i < end; i += TILE_ELEMENTS) {
        size_t offset = (size_t)i * plan->element;
        tutti_tile_args args = {.count = end - i < TILE_ELEMENTS ? end - i : TILE_ELEMENTS,
                                .y = (char *)call->outputs[0].data + offset,
                                .params = plan->params};
        for (int k = 0; k < plan->inputs; k++)
            args.x[k] = (const char *)call->inputs[k].data + offset;
        plan->loop(&args);
    }
}

static void elementwise_direct_run_piece(void *context, int64_t index)
{
    const tutti_kernel_call *call = context;
    int64_t first = index * PIECE_ELEMENTS, count = ((const direct_plan *)call->plan)->count;
    run_range(call, first, count - first < PIECE_ELEMENTS ? count : first + PIECE_ELEMENTS);
}

static tutti_status elementwise_direct_run(const tutti_kernel_call *call)
{
    int64_t count = ((const direct_plan *)call->plan)->count;
    if (count <= PIECE_ELEMENTS)
        run_range(call, 0, count);
    else
        tutti_parallel(call, (count + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS,
                       elementwise_direct_run_piece, (void *)(uintptr_t)call);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_elementwise_direct) = {
    .name = "elementwise.direct",
    .version = 3,
    .op = TUTTI_KERNEL_ELEMENTWISE,
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = ~UINT32_C(0),
    .covers = covers,
    .score = elementwise_direct_score,
    .prepare = elementwise_direct_prepare,
    .discard = free,
    .run = elementwise_direct_run,
};
