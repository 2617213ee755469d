/* reducing.c: the values of a body that work along rows, and sums over all of a tile.
 *
 * In the space outer x rows x columns a reduction is one of two kinds. One along the columns gives
 * one element for each row; the tile holds whole rows, so the element is there at once, and what
 * follows in the body may use it. A sum over rows, or over everything, is a total: every chunk of
 * rows adds its tiles into memory of its own, and the chunks are added over one binary tree. */
#include <stdio.h>
#include <string.h>

#include "device/cpu/tile/compiler.h"

enum { CHUNKS = 64, CHUNK_ELEMENTS = 16384 };

static bool same_dims(const tutti_type *a, const tutti_type *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

const tutti_tile_op *tutti__tile_row_loop(const tutti_tile_compiler *c, int v)
{
    const tutti_body_value *value = &c->body->values[v];
    char name[48];
    if (c->states[v].total >= 0)
        snprintf(name, sizeof name, "%s",
                 c->program->totals[c->states[v].total].whole ? ".total" : ".total_columns");
    else
        snprintf(name, sizeof name, ".rows_%s", value->op->name);
    return tutti__tile_find(name, NULL, 0);
}

/* Whether an input of the space has one element for each row, in order. */
static bool is_column(const tutti_tile_space *space, int input)
{
    int64_t step = space->rows;
    if (space->inputs[input].column_step != 0 || space->inputs[input].row_step != 1 ||
        space->columns < 2 || space->tile_columns != space->columns)
        return false;
    for (int axis = space->outer_rank - 1; axis >= 0; axis--) {
        if (space->inputs[input].outer_steps[axis] != step)
            return false;
        step *= space->outer_dims[axis];
    }
    return true;
}

/* Whether it has one element for each column, or one in all. */
static bool is_total(const tutti_tile_space *space, int input, bool *ret_whole)
{
    *ret_whole = space->inputs[input].reach == TUTTI_REACH_SCALAR;
    if (*ret_whole)
        return true;
    for (int axis = 0; axis < space->outer_rank; axis++)
        if (space->inputs[input].outer_steps[axis] != 0)
            return false;
    return space->inputs[input].row_step == 0 && space->inputs[input].column_step == 1 &&
           space->inputs[input].reach != TUTTI_REACH_LINEAR;
}

static tutti_status add_total(tutti_tile_compiler *c, int v, bool whole)
{
    const tutti_body_value *value = &c->body->values[v];
    tutti_tile_program *program = c->program;
    bool mean = strcmp(value->op->name, "mean") == 0;
    if (program->total_count == TUTTI_TILE_TOTALS || c->states[v].last_use != -1 ||
        value->output < 0 || (!mean && strcmp(value->op->name, "sum") != 0))
        return tutti__tile_refuse("this sum over rows");
    int64_t width = whole ? 1 : program->space.columns, height = program->space.count / width;
    c->states[v].total = program->total_count;
    program->totals[program->total_count++] =
        (tutti_tile_total){.output = value->output,
                           .whole = whole,
                           .width = width,
                           .divisor = mean ? (double)height : 1};
    return TUTTI_OK;
}

/* Sums over the batch are for kernels that cut it at the shards. */
static bool reduces_batch(const tutti_body_value *value, const tutti_type *full)
{
    return full->rank > 0 && value->kept.dims[0] == 1 && full->dims[0] != 1;
}

/* With one row of the batch every sum along a row is one of everything, and one over a middle axis,
 * which nobody fuses, looks like one over all rows. Which kernel runs may not depend on that. */
static bool has_one_row(const tutti_tile_compiler *c)
{
    return c->body->full.rank > 0 && c->body->full.dims[0] == 1;
}

/* Whether an input is the one element of the only row. */
static bool is_one_row(const tutti_tile_compiler *c, int input)
{
    const tutti_tile_space *space = &c->program->space;
    return has_one_row(c) && space->inputs[input].reach == TUTTI_REACH_SCALAR &&
           space->columns >= 2 && space->columns == space->count &&
           space->tile_columns == space->columns;
}

static tutti_status classify_row_value(const tutti_kernel_query *query, tutti_tile_compiler *c,
                                       int v, int input)
{
    const tutti_body_value *value = &c->body->values[v];
    bool whole;
    if (!same_dims(&c->body->values[value->inputs[0]].type, &c->body->full) ||
        c->type != TUTTI_F32 || !tutti_dtype_is_float(value->type.dtype))
        return tutti__tile_refuse(value->op->name);
    if (query->deterministic && reduces_batch(value, &c->body->full))
        return tutti__tile_refuse("sums over the batch");
    if (is_column(&c->program->space, input) || is_one_row(c, input)) {
        c->states[v].by_row = value->kind == TUTTI_BODY_REDUCES;
        return TUTTI_OK;
    }
    if (value->kind == TUTTI_BODY_REDUCES && is_total(&c->program->space, input, &whole) &&
        !(query->deterministic && has_one_row(c)))
        return add_total(c, v, whole);
    return tutti__tile_refuse(value->op->name);
}

/* What an element-wise value takes: it is there for each row when all it takes is. */
static tutti_status classify_elements(tutti_tile_compiler *c, int v)
{
    const tutti_body_value *value = &c->body->values[v];
    bool full = same_dims(&value->type, &c->body->full);
    for (int i = 0; i < value->op->max_inputs; i++) {
        int input = value->inputs[i];
        const tutti_body_value *operand = &c->body->values[input];
        bool by_row = c->states[input].by_row;
        if (c->states[input].total >= 0 || (by_row && operand->type.rank != c->body->full.rank))
            return tutti__tile_refuse("a sum that is used at once");
        bool scalar = operand->op == NULL && operand->type.rank == 0;
        if (!full && !by_row && !scalar)
            return tutti__tile_refuse("small operands");
    }
    c->states[v].by_row = !full;
    return TUTTI_OK;
}

tutti_status tutti__tile_classify(const tutti_kernel_query *query, tutti_tile_compiler *c)
{
    int input = c->body->source_count;
    for (int v = 0; v < c->body->value_count; v++)
        c->states[v].total = -1;
    for (int v = c->body->source_count; c->body->row_count > 0 && v < c->body->value_count; v++) {
        if (c->body->values[v].kind == TUTTI_BODY_ELEMENTS)
            TUTTI_TRY(classify_elements(c, v));
        else
            TUTTI_TRY(classify_row_value(query, c, v, input++));
    }
    return TUTTI_OK;
}

tutti_tile_place tutti__tile_widened(tutti_tile_compiler *c, int v)
{
    tutti_tile_state *s = &c->states[v];
    if (!s->widened) {
        s->widened = true;
        s->wide = (tutti_tile_place){TUTTI_PLACE_SLOT, tutti__tile_take_slot(c)};
        tutti__tile_add_step(c, (tutti_tile_step){.loop = tutti__tile_find(".widen", NULL, 0)->f32,
                                                  .name = ".widen",
                                                  .kind = TUTTI_STEP_ROWS,
                                                  .inputs = 1,
                                                  .x = {s->place},
                                                  .y = s->wide});
    }
    return s->wide;
}

/* Totals of everything beside columns that are cut would be gathered by several threads. */
bool tutti__tile_plan_totals(tutti_tile_program *program)
{
    const tutti_tile_space *space = &program->space;
    bool rows = false, whole = false;
    for (int i = 0; i < program->total_count; i++) {
        tutti_tile_total *total = &program->totals[i];
        total->at = program->chunk_bytes;
        size_t bytes = total->whole ? sizeof(double) : (size_t)total->width * sizeof(float);
        program->chunk_bytes += (bytes + 63) / 64 * 64;
        rows = rows || !total->whole;
        whole = whole || total->whole;
    }
    if (rows && whole && space->column_tiles > 1)
        return false;
    int64_t tiles = space->outer * space->row_tiles * (rows ? 1 : space->column_tiles);
    int64_t most = rows ? CHUNKS / space->column_tiles : CHUNKS;
    int64_t chunks = space->count / CHUNK_ELEMENTS;
    chunks = chunks > most ? most : chunks;
    chunks = chunks < 1 ? 1 : chunks;
    program->chunk_rows = rows;
    program->chunk_tiles = (tiles + chunks - 1) / chunks;
    program->chunk_tiles = program->chunk_tiles > 0 ? program->chunk_tiles : 1;
    program->chunks = (tiles + program->chunk_tiles - 1) / program->chunk_tiles;
    return true;
}
