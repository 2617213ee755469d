/* grid_sample_backward_input.c: the gradient of grid_sample's image. */
#include "ops/network/grid_sample.h"

/* Inputs grid, grad and, where the attribute "dims" does not say x's shape, x. Of dims only those
 * between batch and channels count. */
enum { GRID, GRAD, LIKE };

static tutti_status grid_sample_backward_input_infer(tutti_infer *node)
{
    const tutti_type *grid = &node->inputs[GRID], *grad = &node->inputs[GRAD];
    const int64_t *dims;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "dims", &dims);
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__grid_infer(node, NULL, grid, grad));
    if (node->input_count > LIKE) {
        TUTTI_TRY(tutti__need_rank(node, LIKE, "x", grid->rank, "as the grid"));
        dims = node->inputs[LIKE].dims;
    } else if (count != grid->rank) {
        return RULE_FAIL(node, TUTTI_INVALID, "dims has %d numbers, needs %d, those of x", count,
                         grid->rank);
    }
    tutti_type x = *grad;
    for (int axis = 1; axis < x.rank - 1; axis++) {
        if (dims[axis] < 1 && dims[axis] != TUTTI_ANY)
            return RULE_FAIL(node, TUTTI_INVALID, "dims has %lld", (long long)dims[axis]);
        x.dims[axis] = dims[axis];
    }
    TUTTI_TRY(tutti__grid_infer(node, &x, grid, grad));
    node->outputs[0] = x;
    return TUTTI_OK;
}

/* Linear in grad; along the grid it is grid_sample with u, the gradient of the output, as image. */
static tutti_status grid_sample_backward_input_gradient(tutti_gradient_call *node)
{
    tutti_sym u = node->output_grads[0], grid = node->inputs[GRID], grad = node->inputs[GRAD];
    tutti_attr attrs[] = {SAME_GRID(node)};
    int count = (int)TUTTI_COUNT(attrs);
    if (!tutti_sym_ok(u))
        return TUTTI_OK;
    if (node->wanted[GRAD])
        node->input_grads[GRAD] =
            tutti_apply_op(node->graph, "grid_sample", 2, ((tutti_sym[]){u, grid}), count, attrs);
    if (node->wanted[GRID])
        node->input_grads[GRID] = tutti_apply_op(node->graph, "grid_sample_backward_grid", 3,
                                                 ((tutti_sym[]){u, grid, grad}), count, attrs);
    return TUTTI_OK;
}

static void grid_sample_backward_input_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__grid_cost(node, &node->inputs[GRAD], ret);
}

static int grid_sample_backward_input_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int last = node->inputs[GRID].rank - 1;
    tutti__way_add(&ways, SLOTS(0, 0, 0), SLOTS(0));
    tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, last, last), SLOTS(last));
    for (int axis = 1; axis < last; axis++)
        tutti__way_add(&ways, SLOTS(axis, axis, TUTTI_WHOLE), SLOTS(TUTTI_PARTIAL_SUM));
    return ways.count;
}

typedef struct operands {
    const double *grad;
    double *x_grad;
} operands;

static void grid_sample_backward_input_visit(const tutti_grid *g, void *context,
                                             const tutti_grid_axis *axes, const int *taps,
                                             int64_t output, int64_t x, int64_t y)
{
    const operands *o = context;
    double weight = tutti__grid_weight(g, axes, taps);
    for (int64_t c = 0; c < g->channels; c++)
        o->x_grad[x + c] += weight * o->grad[y + c];
}

static tutti_status grid_sample_backward_input_run(const tutti_kernel_call *call,
                                                   const double *const *inputs,
                                                   double *const *outputs, tutti_arena *scratch)
{
    tutti_grid g = tutti__grid(call, &call->outputs[0], &call->inputs[GRID]);
    operands o = {inputs[GRAD], outputs[0]};
    tutti__grid_each(&g, inputs[GRID], grid_sample_backward_input_visit, &o);
    return TUTTI_OK;
}

static tutti_status grid_sample_backward_input_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, grid_sample_backward_input_run);
}

static const tutti_attr_spec attrs[] = {
    GRID_ATTRS, {"dims", TUTTI_ATTR_INTS, "[]"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,2,2]{-1.3:1.3} f32[2,3,2,3] | dims=[2,4,5,3]",
    "f32[1,3,3,2]{-1.6:1.6} f32[1,3,3,2] f32[1,4,3,2] | padding=border align_corners=true",
    "f32[1,2,5,2]{-1.9:1.9} f32[1,2,5,1] | padding=reflection dims=[-1,3,4,-1]",
    "f32[1,3,2,2]{-1.2:1.2} f32[1,3,2,2] | mode=cubic dims=[1,4,4,2]",
    "f32[2,2,3,2]{-1.2:1.2} f32[2,2,3,2] | mode=nearest dims=[2,3,4,2]",
    NULL,
};

const tutti_op tutti_op_grid_sample_backward_input = {
    .struct_size = sizeof(tutti_op),
    .name = "grid_sample_backward_input",
    .version = 1,
    .doc = "grid_sample_backward_input(grid, grad[, x]): dx, where dL/dy = grad and "
           "y = grid_sample(x, grid); x's shape is `dims` or that of x",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = grid_sample_backward_input_infer,
    .gradient = grid_sample_backward_input_gradient,
    .cost = grid_sample_backward_input_cost,
    .split = grid_sample_backward_input_split,
    .reference = grid_sample_backward_input_reference,
    .samples = samples,
};
