/* space.h: the elements of an element-wise node as tiles.
 *
 * The output's shape is collapsed: axes along which every input runs on, or is repeated, as if they
 * were one, become one. What is left is outer x rows x columns. A tile is a part of one row, or,
 * where rows are short, several whole rows. Cut by shape only. */
#ifndef TUTTI_DEVICE_CPU_TILE_SPACE_H
#define TUTTI_DEVICE_CPU_TILE_SPACE_H

#include "tutti/tensor.h"

#define TUTTI_SPACE_INPUTS 32

typedef enum tutti_tile_reach {
    TUTTI_REACH_LINEAR, /* element i of the output takes element i */
    TUTTI_REACH_SCALAR, /* every element takes element 0 */
    TUTTI_REACH_ROW,    /* one row, repeated */
    TUTTI_REACH_COLUMN, /* one element for each row */
    TUTTI_REACH_ANY
} tutti_tile_reach;

typedef struct tutti_tile_space {
    int64_t count;         /* of elements */
    int64_t tile_elements; /* in the largest tile */
    int64_t outer, rows, columns;
    int64_t tile_rows, tile_columns; /* one of them spans its axis or is 1 */
    int64_t row_tiles, column_tiles; /* of one outer index */
    int outer_rank;
    int64_t outer_dims[TUTTI_MAX_RANK];
    struct {
        tutti_tile_reach reach;
        int64_t row_step, column_step; /* elements */
        int64_t outer_steps[TUTTI_MAX_RANK];
    } inputs[TUTTI_SPACE_INPUTS];
} tutti_tile_space;

/* Inputs must broadcast to `output`; false when one does not or there are too many. */
bool tutti__space_make(const tutti_type *output, int input_count, const tutti_type *inputs,
                       int64_t tile_elements, tutti_tile_space *ret_space);

typedef struct tutti_space_tile {
    int64_t outer, row, column;    /* of its first element */
    int64_t rows, columns, offset; /* offset: of its first element in the output */
} tutti_space_tile;

static inline int64_t tutti__space_tiles(const tutti_tile_space *space)
{
    return space->outer * space->row_tiles * space->column_tiles;
}

static inline tutti_space_tile tutti__space_tile(const tutti_tile_space *space, int64_t index)
{
    int64_t of_outer = space->row_tiles * space->column_tiles, rest = index % of_outer;
    tutti_space_tile tile = {.outer = index / of_outer,
                             .row = rest / space->column_tiles * space->tile_rows,
                             .column = rest % space->column_tiles * space->tile_columns};
    tile.rows =
        space->rows - tile.row < space->tile_rows ? space->rows - tile.row : space->tile_rows;
    tile.columns = space->columns - tile.column < space->tile_columns ? space->columns - tile.column
                                                                      : space->tile_columns;
    tile.offset = (tile.outer * space->rows + tile.row) * space->columns + tile.column;
    return tile;
}

/* Where an input has the tile's first element. */
static inline int64_t tutti__space_offset(const tutti_tile_space *space, int input,
                                          const tutti_space_tile *tile)
{
    if (space->inputs[input].reach == TUTTI_REACH_LINEAR)
        return tile->offset;
    int64_t offset =
        tile->row * space->inputs[input].row_step + tile->column * space->inputs[input].column_step;
    int64_t outer = tile->outer;
    for (int axis = space->outer_rank - 1; axis >= 0 && outer > 0; axis--) {
        offset += outer % space->outer_dims[axis] * space->inputs[input].outer_steps[axis];
        outer /= space->outer_dims[axis];
    }
    return offset;
}

#endif
