/* space.c: collapsing the axes of an element-wise node. */
#include "device/cpu/tile/space.h"

/* Steps of an input along the output's axes, 0 where it is repeated. */
static bool input_steps(const tutti_type *output, const tutti_type *input, int64_t *ret_steps)
{
    int lead = output->rank - input->rank;
    int64_t step = 1;
    if (lead < 0)
        return false;
    for (int axis = output->rank - 1; axis >= 0; axis--) {
        int64_t dim = axis < lead ? 1 : input->dims[axis - lead];
        if (dim != 1 && dim != output->dims[axis])
            return false;
        ret_steps[axis] = dim == 1 ? 0 : step;
        step *= dim;
    }
    return true;
}

typedef struct axes {
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    int64_t steps[TUTTI_SPACE_INPUTS][TUTTI_MAX_RANK];
} axes;

/* Whether axis `a` and the one after it step as one axis, in every input. */
static bool joins(const axes *all, int input_count, int a)
{
    for (int i = 0; i < input_count; i++)
        if (all->steps[i][a] != all->steps[i][a + 1] * all->dims[a + 1])
            return false;
    return true;
}

static void drop_axis(axes *all, int input_count, int axis)
{
    for (int a = axis; a + 1 < all->rank; a++) {
        all->dims[a] = all->dims[a + 1];
        for (int i = 0; i < input_count; i++)
            all->steps[i][a] = all->steps[i][a + 1];
    }
    all->rank--;
}

static void collapse(axes *all, int input_count)
{
    for (int a = all->rank - 1; a >= 0; a--)
        if (all->dims[a] == 1)
            drop_axis(all, input_count, a);
    for (int a = all->rank - 2; a >= 0; a--)
        if (joins(all, input_count, a)) {
            all->dims[a + 1] *= all->dims[a];
            drop_axis(all, input_count, a);
        }
}

static tutti_tile_reach reach_of(const tutti_tile_space *space, int64_t row_step,
                                 int64_t column_step, const int64_t *outer_steps)
{
    bool repeated = true, linear = column_step == 1 || space->columns == 1;
    linear = linear && (row_step == space->columns || space->rows == 1);
    int64_t step = space->rows * space->columns;
    for (int axis = space->outer_rank - 1; axis >= 0; axis--) {
        repeated = repeated && outer_steps[axis] == 0;
        linear = linear && outer_steps[axis] == step;
        step *= space->outer_dims[axis];
    }
    if (space->count > 1 && repeated && row_step == 0 && column_step == 0)
        return TUTTI_REACH_SCALAR;
    if (linear)
        return TUTTI_REACH_LINEAR;
    return column_step == 0                    ? TUTTI_REACH_COLUMN
           : row_step == 0 && column_step == 1 ? TUTTI_REACH_ROW
                                               : TUTTI_REACH_ANY;
}

static void cut_tiles(tutti_tile_space *space, int64_t tile_elements)
{
    bool wide = space->columns >= tile_elements;
    space->tile_elements = tile_elements;
    space->tile_columns = wide ? tile_elements : space->columns;
    space->tile_rows = wide ? 1 : tile_elements / (space->columns > 0 ? space->columns : 1);
    space->tile_columns = space->tile_columns > 0 ? space->tile_columns : 1;
    space->row_tiles = (space->rows + space->tile_rows - 1) / space->tile_rows;
    space->column_tiles = (space->columns + space->tile_columns - 1) / space->tile_columns;
}

bool tutti__space_make(const tutti_type *output, int input_count, const tutti_type *inputs,
                       int64_t tile_elements, tutti_tile_space *ret_space)
{
    axes all = {.rank = output->rank};
    if (input_count > TUTTI_SPACE_INPUTS)
        return false;
    for (int axis = 0; axis < output->rank; axis++)
        all.dims[axis] = output->dims[axis];
    for (int i = 0; i < input_count; i++)
        if (!input_steps(output, &inputs[i], all.steps[i]))
            return false;
    collapse(&all, input_count);
    tutti_tile_space space = {
        .count = tutti_type_count(output), .outer = 1, .rows = 1, .columns = 1};
    if (all.rank > 0)
        space.columns = all.dims[all.rank - 1];
    if (all.rank > 1)
        space.rows = all.dims[all.rank - 2];
    space.outer_rank = all.rank > 2 ? all.rank - 2 : 0;
    for (int axis = 0; axis < space.outer_rank; axis++)
        space.outer *= space.outer_dims[axis] = all.dims[axis];
    for (int i = 0; i < input_count; i++) {
        for (int axis = 0; axis < space.outer_rank; axis++)
            space.inputs[i].outer_steps[axis] = all.steps[i][axis];
        space.inputs[i].column_step = all.rank > 0 ? all.steps[i][all.rank - 1] : 0;
        space.inputs[i].row_step = all.rank > 1 ? all.steps[i][all.rank - 2] : 0;
        space.inputs[i].reach = reach_of(&space, space.inputs[i].row_step,
                                         space.inputs[i].column_step, space.inputs[i].outer_steps);
    }
    cut_tiles(&space, tile_elements);
    *ret_space = space;
    return true;
}
