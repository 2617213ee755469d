/* widened.c: operators on f16 and bf16 that have a fast kernel of f32 only: inputs are widened,
 * that kernel runs, its outputs are rounded once. Any kernel made for the type itself wins. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/conversion.h"
#include "device/cpu/isa.h"
#include "device/cpu/slots.h"

enum { MOST = 16 }; /* inputs and outputs */

typedef struct widened_plan {
    const tutti_kernel *kernel; /* of f32 */
    void *plan;                 /* and its plan */
    int input_count, output_count;
    tutti_dtype dtypes[2 * MOST]; /* of inputs, then outputs, where they are converted; else none */
    int64_t counts[2 * MOST];
    size_t offsets[2 * MOST], inner; /* in the workspace */
    size_t bytes;                    /* of all of it */
} widened_plan;

/* The query with f32 for every narrow type. */
typedef struct wide_query {
    tutti_kernel_query query;
    tutti_type inputs[MOST], outputs[MOST];
} wide_query;

static bool is_narrow(const tutti_type *type)
{
    return type->dtype == TUTTI_BF16 || type->dtype == TUTTI_F16;
}

static int widen_types(int count, const tutti_type *types, tutti_type *ret)
{
    int narrow = 0;
    for (int i = 0; i < count; i++) {
        ret[i] = types[i];
        if (is_narrow(&types[i])) {
            ret[i].dtype = TUTTI_F32;
            narrow++;
        }
    }
    return narrow;
}

/* Operators whose meaning is in their types or in memory that outlives the call stay as they are,
 * and so do those that only move elements. */
static bool covers(const tutti_op *op)
{
    const uint32_t other = TUTTI_OP_VIEW | TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES |
                           TUTTI_OP_BLOCKING | TUTTI_OP_DYNAMIC | TUTTI_OP_COLLECTIVE |
                           TUTTI_OP_CONTROL | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE |
                           TUTTI_OP_HOST;
    for (const tutti_attr_spec *attr = op->attrs; attr != NULL && attr->name != NULL; attr++)
        if (strcmp(attr->name, "dtype") == 0 || attr->kind == TUTTI_ATTR_GRAPH)
            return false;
    return !(op->flags & other) && op->max_inputs != 0;
}

static bool may_widen(const tutti_infer *node)
{
    if (!covers(node->op) || node->input_count < 1 || node->input_count > MOST ||
        node->output_count < 1 || node->output_count > MOST)
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].handle)
            return false;
    return true;
}

/* The kernel of f32, or NULL. */
static const tutti_kernel *widened_find(const tutti_kernel_query *query, wide_query *ret)
{
    const tutti_infer *node = &query->node;
    if (!may_widen(node))
        return NULL;
    int narrow = widen_types(node->input_count, node->inputs, ret->inputs) +
                 widen_types(node->output_count, node->outputs, ret->outputs);
    if (narrow == 0)
        return NULL;
    ret->query = *query;
    ret->query.node.inputs = ret->inputs;
    ret->query.node.outputs = ret->outputs;
    ret->query.node.values = NULL;
    return tutti__kernel_pick("cpu", &ret->query);
}

/* Above the reference, below every kernel of the type itself. */
static int widened_score(const tutti_kernel_query *query)
{
    wide_query wide;
    if (strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) != 0)
        return 0;
    return widened_find(query, &wide) != NULL ? 10 : 0;
}

/* Gives every converted value its place, and what the kernel works in the one behind them. */
static void lay_out(const tutti_infer *node, widened_plan *plan)
{
    size_t bytes = 0;
    plan->input_count = node->input_count;
    plan->output_count = node->output_count;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        const tutti_type *type =
            i < node->input_count ? &node->inputs[i] : &node->outputs[i - node->input_count];
        plan->offsets[i] = bytes;
        if (!is_narrow(type))
            continue;
        plan->dtypes[i] = type->dtype;
        plan->counts[i] = tutti_type_count(type);
        bytes += tutti__slot_bytes((size_t)plan->counts[i] * sizeof(float));
    }
    plan->inner = bytes;
}

static size_t room(const void *self)
{
    return ((const widened_plan *)self)->bytes;
}

static tutti_status widened_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    wide_query wide;
    widened_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    plan->kernel = widened_find(query, &wide);
    tutti_status status = TUTTI_OK;
    if (plan->kernel == NULL) /* it bid before, when there was memory to find out */
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    else if (plan->kernel->prepare != NULL)
        status = plan->kernel->prepare(&wide.query, &plan->plan);
    if (status != TUTTI_OK) {
        free(plan);
        return status;
    }
    lay_out(&query->node, plan);
    plan->bytes = plan->inner + tutti__kernel_workspace(plan->kernel, &wide.query, plan->plan);
    *ret_plan = plan;
    return TUTTI_OK;
}

static void widened_discard(void *self)
{
    widened_plan *plan = self;
    if (plan != NULL && plan->kernel->discard != NULL)
        plan->kernel->discard(plan->plan);
    free(plan);
}

static tutti_tile_loop *find_loop(const char *name)
{
    return tutti__tile_find(name, NULL, 0)->f32;
}

/* The views that the kernel of f32 sees; inputs are converted on the way. */
static void widen(const tutti_kernel_call *call, const widened_plan *plan, tutti_view *inputs,
                  tutti_view *outputs)
{
    for (int i = 0; i < plan->input_count + plan->output_count; i++) {
        int at = i - plan->input_count;
        tutti_view *view = at < 0 ? &inputs[i] : &outputs[at];
        *view = at < 0 ? call->inputs[i] : call->outputs[at];
        if (plan->dtypes[i] == TUTTI_NO_DTYPE)
            continue;
        char *memory = (char *)call->workspace + plan->offsets[i];
        if (at < 0)
            convert(call,
                    (conversion){.loop = find_loop(plan->dtypes[i] == TUTTI_F16 ? ".load_f16"
                                                                                : ".load_bf16"),
                                 .from = view->data,
                                 .to = memory,
                                 .from_element = sizeof(uint16_t),
                                 .to_element = sizeof(float),
                                 .count = plan->counts[i]});
        view->data = memory;
        view->dtype = TUTTI_F32;
    }
}

static tutti_status widened_run(const tutti_kernel_call *call)
{
    const widened_plan *plan = call->plan;
    tutti_view inputs[MOST], outputs[MOST];
    tutti_kernel_call inner = *call;
    widen(call, plan, inputs, outputs);
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.plan = plan->plan;
    inner.workspace = (char *)call->workspace + plan->inner;
    TUTTI_TRY(plan->kernel->run(&inner));
    for (int i = 0; i < plan->output_count; i++) {
        tutti_dtype dtype = plan->dtypes[plan->input_count + i];
        if (dtype != TUTTI_NO_DTYPE)
            convert(call, (conversion){
                              .loop = find_loop(dtype == TUTTI_F16 ? ".store_f16" : ".store_bf16"),
                              .from = outputs[i].data,
                              .to = call->outputs[i].data,
                              .from_element = sizeof(float),
                              .to_element = sizeof(uint16_t),
                              .count = plan->counts[plan->input_count + i]});
    }
    return TUTTI_OK;
}

/* Row-invariant when the kernel of f32 is, which deterministic mode sees to. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_widened) = {
    .name = "widened",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_WIDENS,
    .covers = covers,
    .score = widened_score,
    .prepare = widened_prepare,
    .room = room,
    .discard = widened_discard,
    .run = widened_run,
};
