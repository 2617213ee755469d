/* grid_sample.c: images sampled at given places. */
#include "ops/network/grid_sample.h"

enum { X, GRID };

extern const tutti_op tutti_op_grid_sample;

static tutti_status grid_sample_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[X], *grid = &node->inputs[GRID];
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__grid_infer(node, x, grid, NULL));
    tutti_type y = *grid;
    y.dims[0] = tutti__known(grid->dims[0], x->dims[0]);
    y.dims[y.rank - 1] = x->dims[x->rank - 1];
    node->outputs[0] = y;
    return TUTTI_OK;
}

static tutti_status grid_sample_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[X], grid = node->inputs[GRID], grad = node->output_grads[0];
    if (!tutti_sym_ok(grad))
        return TUTTI_OK;
    tutti_type type = tutti_sym_type(x);
    bool known = true;
    for (int axis = 1; axis < type.rank - 1; axis++)
        known = known && type.dims[axis] != TUTTI_ANY;
    tutti_attr attrs[] = {SAME_GRID(node), TUTTI_INTS("dims", type.rank, type.dims)};
    int same = (int)TUTTI_COUNT(attrs) - 1;
    if (node->wanted[X])
        node->input_grads[X] =
            tutti_apply_op(node->graph, "grid_sample_backward_input", known ? 2 : 3,
                           ((tutti_sym[]){grid, grad, x}), known ? same + 1 : same, attrs);
    if (node->wanted[GRID])
        node->input_grads[GRID] = tutti_apply_op(node->graph, "grid_sample_backward_grid", 3,
                                                 ((tutti_sym[]){x, grid, grad}), same, attrs);
    return TUTTI_OK;
}

static void grid_sample_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__grid_cost(node, &node->outputs[0], ret);
}

/* By batch, by channels, by places. */
static int grid_sample_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int last = node->inputs[X].rank - 1;
    tutti__way_add(&ways, SLOTS(0, 0), SLOTS(0));
    tutti__way_add(&ways, SLOTS(last, TUTTI_WHOLE), SLOTS(last));
    for (int axis = 1; axis < last; axis++)
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, axis), SLOTS(axis));
    return ways.count;
}

typedef struct operands {
    const double *x;
    double *y;
} operands;

static void grid_sample_visit(const tutti_grid *g, void *context, const tutti_grid_axis *axes,
                              const int *taps, int64_t output, int64_t x, int64_t y)
{
    const operands *o = context;
    double weight = tutti__grid_weight(g, axes, taps);
    for (int64_t c = 0; c < g->channels; c++)
        o->y[y + c] += weight * o->x[x + c];
}

static tutti_status grid_sample_run(const tutti_kernel_call *call, const double *const *inputs,
                                    double *const *outputs, tutti_arena *scratch)
{
    tutti_grid g = tutti__grid(call, &call->inputs[X], &call->inputs[GRID]);
    operands o = {inputs[X], outputs[0]};
    tutti__grid_each(&g, inputs[GRID], grid_sample_visit, &o);
    return TUTTI_OK;
}

static tutti_status grid_sample_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, grid_sample_run);
}

tutti_sym tutti_grid_sample_with(tutti_sym x, tutti_sym grid,
                                 const tutti_grid_sample_options *given)
{
    TAKE_OPTIONS(tutti_grid_sample_options, o, given);
    tutti_sym inputs[] = {x, grid};
    return TUTTI_NARY(&tutti_op_grid_sample, inputs,
                      TUTTI_STR("mode", o.mode == NULL ? "linear" : o.mode),
                      TUTTI_STR("padding", o.padding == NULL ? "zeros" : o.padding),
                      TUTTI_INT("align_corners", o.align_corners));
}

static const tutti_attr_spec attrs[] = {GRID_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,4,5,3] f32[2,3,2,2]{-1.3:1.3}",
    "f32[1,4,3,2] f32[1,3,3,2]{-1.6:1.6} | padding=border align_corners=true",
    "f32[1,3,4,1] f32[1,2,5,2]{-1.9:1.9} | padding=reflection",
    "f32[1,4,4,2] f32[1,3,2,2]{-1.2:1.2} | mode=cubic",
    "f32[1,5,4,1] f32[1,2,2,2]{-2:2} | mode=cubic padding=reflection align_corners=true",
    "f32[1,4,4,1] f32[1,2,3,2]{-1.5:1.5} | mode=cubic padding=border",
    "f32[2,3,4,2] f32[2,2,3,2]{-1.2:1.2} | mode=nearest",
    "f32[1,3,2,4,2] f32[1,2,1,3,3]{-1.1:1.1} | padding=border",
    "f32[2,6,1] f32[2,4,1] | align_corners=true",
    NULL,
};

const tutti_op tutti_op_grid_sample = {
    .struct_size = sizeof(tutti_op),
    .name = "grid_sample",
    .version = 1,
    .doc = "grid_sample(x, grid): y[n,o…,c] = x[n,·,c] interpolated at the place grid[n,o…], whose "
           "coordinates (width first) reach from -1 to 1",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = grid_sample_infer,
    .gradient = grid_sample_gradient,
    .cost = grid_sample_cost,
    .split = grid_sample_split,
    .reference = grid_sample_reference,
    .samples = samples,
};
