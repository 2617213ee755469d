/* grid_sample_backward_grid.c: the gradient of grid_sample's places. */
#include "ops/network/grid_sample.h"
#include "ops/pull_back.h"

enum { X, GRID, GRAD };

static tutti_status grid_sample_backward_grid_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_floats(node, 0, 3));
    TUTTI_TRY(tutti__grid_infer(node, &node->inputs[X], &node->inputs[GRID], &node->inputs[GRAD]));
    node->outputs[0] = node->inputs[GRID];
    return TUTTI_OK;
}

static tutti_status grid_sample_backward_grid_gradient(tutti_gradient_call *node)
{
    static const int of[] = {GRID};
    return strcmp(RULE_STRING(node, "mode"), "nearest") == 0
               ? TUTTI_OK
               : tutti__backward_gradient(node, tutti__grid_sample_nodes, 1, of);
}

static void grid_sample_backward_grid_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__grid_cost(node, &node->inputs[GRAD], ret);
    ret->flops *= node->inputs[GRID].rank - 2;
}

static int grid_sample_backward_grid_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int last = node->inputs[GRID].rank - 1;
    tutti__way_add(&ways, SLOTS(0, 0, 0), SLOTS(0));
    tutti__way_add(&ways, SLOTS(last, TUTTI_WHOLE, last), SLOTS(TUTTI_PARTIAL_SUM));
    for (int axis = 1; axis < last; axis++)
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, axis, axis), SLOTS(axis));
    return ways.count;
}

typedef struct operands {
    const double *x, *grad;
    double *grid_grad;
} operands;

/* Along an axis: the weights of the others times the slope of its own. */
static void grid_sample_backward_grid_visit(const tutti_grid *g, void *context,
                                            const tutti_grid_axis *axes, const int *taps,
                                            int64_t output, int64_t x, int64_t y)
{
    const operands *o = context;
    double value = tutti__dot(g->channels, o->x + x, o->grad + y);
    for (int along = 0; along < g->axes; along++) {
        double slope = axes[along].slope[taps[along]];
        for (int axis = 0; axis < g->axes; axis++)
            slope *= axis == along ? 1 : axes[axis].weight[taps[axis]];
        o->grid_grad[output * g->axes + g->axes - 1 - along] += slope * value;
    }
}

static tutti_status grid_sample_backward_grid_run(const tutti_kernel_call *call,
                                                  const double *const *inputs,
                                                  double *const *outputs, tutti_arena *scratch)
{
    tutti_grid g = tutti__grid(call, &call->inputs[X], &call->inputs[GRID]);
    operands o = {inputs[X], inputs[GRAD], outputs[0]};
    tutti__grid_each(&g, inputs[GRID], grid_sample_backward_grid_visit, &o);
    return TUTTI_OK;
}

static tutti_status grid_sample_backward_grid_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, grid_sample_backward_grid_run);
}

static const tutti_attr_spec attrs[] = {GRID_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,4,5,3] f32[2,3,2,2]{-1.3:1.3} f32[2,3,2,3]",
    "f32[1,3,4,1] f32[1,2,5,2]{-1.9:1.9} f32[1,2,5,1] | padding=reflection mode=cubic",
    "f32[1,3,2,4,2] f32[1,2,1,3,3]{-1.1:1.1} f32[1,2,1,3,2] | padding=border",
    NULL,
};

const tutti_op tutti_op_grid_sample_backward_grid = {
    .struct_size = sizeof(tutti_op),
    .name = "grid_sample_backward_grid",
    .version = 1,
    .doc = "grid_sample_backward_grid(x, grid, grad): dgrid, where dL/dy = grad and "
           "y = grid_sample(x, grid)",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = grid_sample_backward_grid_infer,
    .gradient = grid_sample_backward_grid_gradient,
    .cost = grid_sample_backward_grid_cost,
    .split = grid_sample_backward_grid_split,
    .reference = grid_sample_backward_grid_reference,
    .samples = samples,
};
