/* run.c: running a tile program: pieces of tiles on the device's threads. */
#include <string.h>

#include "device/cpu/slots.h"
#include "device/cpu/tile/chaining.h"

enum { PIECE_ELEMENTS = 16384, COLUMN_GROUP = 64 };

/* One piece at work. `loaded`: where the slot of each load was filled from, so that what repeats is
 * loaded once. */
typedef struct worker {
    const tutti_tile_program *program;
    const tutti_call *call;
    char *slots;
    tutti_space_tile tile;
    struct {
        int64_t offset, rows, columns;
    } loaded[TUTTI_SPACE_INPUTS];
} worker;

static char *slot_at(const worker *w, int slot)
{
    return w->slots + (size_t)slot * TUTTI_TILE_BYTES;
}

static const char *source_data(const worker *w, int source)
{
    const void *constant = w->program->body->constants[source];
    return constant != NULL ? constant : w->call->inputs[source].data;
}

static void *place_pointer(void *context, tutti_place place)
{
    const worker *w = context;
    int64_t offset = w->tile.offset;
    if (place.kind == TUTTI_PLACE_INPUT)
        return (char *)(uintptr_t)source_data(w, place.index) +
               (size_t)offset * w->program->element;
    if (place.kind == TUTTI_PLACE_OUTPUT)
        return (char *)w->call->outputs[place.index].data +
               (size_t)offset * w->program->output_elements[place.index];
    return slot_at(w, place.index);
}

static void convert(const tutti_tile_load *load, const char *from, int64_t count, void *to)
{
    static const double none[TUTTI_TILE_PARAMS];
    load->convert(&(tutti_tile_args){.count = count, .x = {from}, .y = to, .params = none});
}

/* Repeats element 0 of `to`. */
static void fill(size_t element, void *to, int64_t count)
{
    if (element == sizeof(float)) {
        float *x = to, value = x[0];
        for (int64_t i = 1; i < count; i++)
            x[i] = value;
        return;
    }
    double *x = to, value = x[0];
    for (int64_t i = 1; i < count; i++)
        x[i] = value;
}

/* Row r of the tile goes to to[r * columns]. */
static void load_rows(const worker *w, const tutti_tile_load *load, const char *from, char *to)
{
    const tutti_space *space = &w->program->space;
    int64_t row_step = space->inputs[load->source].row_step;
    int64_t column_step = space->inputs[load->source].column_step;
    size_t element = w->program->element;
    for (int64_t r = 0; r < w->tile.rows; r++, to += (size_t)w->tile.columns * element) {
        const char *row = from + (size_t)(r * row_step) * load->element;
        if (column_step == 1) {
            convert(load, row, w->tile.columns, to);
            continue;
        }
        for (int64_t c = 0; c < (column_step == 0 ? 1 : w->tile.columns); c++)
            convert(load, row + (size_t)(c * column_step) * load->element, 1,
                    to + (size_t)c * element);
        if (column_step == 0)
            fill(element, to, w->tile.columns);
    }
}

/* One element for each row, next to each other in memory. */
static void load_column(const worker *w, const tutti_tile_load *load, const char *from, char *to)
{
    double group[COLUMN_GROUP]; /* floats too */
    size_t element = w->program->element;
    for (int64_t r = 0; r < w->tile.rows; r++) {
        if (r % COLUMN_GROUP == 0) {
            int64_t rest = w->tile.rows - r;
            convert(load, from + (size_t)r * load->element,
                    rest < COLUMN_GROUP ? rest : COLUMN_GROUP, group);
        }
        memcpy(to, (const char *)group + (size_t)(r % COLUMN_GROUP) * element, element);
        fill(element, to, w->tile.columns);
        to += (size_t)w->tile.columns * element;
    }
}

static void load_row(const worker *w, const tutti_tile_load *load, const char *from, char *to)
{
    size_t bytes = (size_t)w->tile.columns * w->program->element;
    convert(load, from, w->tile.columns, to);
    for (int64_t r = 1; r < w->tile.rows; r++)
        memcpy(to + (size_t)r * bytes, to, bytes);
}

static void load_tile(worker *w, int index)
{
    const tutti_tile_load *load = &w->program->loads[index];
    const tutti_space *space = &w->program->space;
    tutti_reach reach = space->inputs[load->source].reach;
    int64_t offset = tutti__space_offset(space, load->source, &w->tile);
    bool same = w->loaded[index].offset == offset && w->loaded[index].rows >= w->tile.rows &&
                w->loaded[index].columns == w->tile.columns;
    if (reach != TUTTI_REACH_LINEAR &&
        (same || (reach == TUTTI_REACH_SCALAR && w->loaded[index].rows >= 0)))
        return;
    w->loaded[index].offset = offset;
    w->loaded[index].rows = w->tile.rows;
    w->loaded[index].columns = w->tile.columns;
    const char *from = source_data(w, load->source) + (size_t)offset * load->element;
    char *to = slot_at(w, load->slot);
    if (reach == TUTTI_REACH_LINEAR) {
        convert(load, from, w->tile.rows * w->tile.columns, to);
    } else if (reach == TUTTI_REACH_SCALAR) {
        convert(load, from, 1, to);
        fill(w->program->element, to, TUTTI_TILE_BYTES / (int64_t)w->program->element);
    } else if (reach == TUTTI_REACH_ROW) {
        load_row(w, load, from, to);
    } else if (reach == TUTTI_REACH_COLUMN && space->inputs[load->source].row_step == 1) {
        load_column(w, load, from, to);
    } else {
        load_rows(w, load, from, to);
    }
}

static void run_tile(worker *w)
{
    const tutti_tile_program *program = w->program;
    int64_t count = w->tile.rows * w->tile.columns;
    for (int i = 0; i < program->load_count; i++)
        load_tile(w, i);
    for (int s = 0; s < program->step_count; s++) {
        const tutti_tile_step *step = &program->steps[s];
        if (step->chain > 1) {
            tutti__tile_run_chain(program, step, count, place_pointer, w);
            s += step->chain - 1;
            continue;
        }
        tutti_tile_args args = {
            .count = count, .y = place_pointer(w, step->y), .params = step->params};
        for (int i = 0; i < step->inputs; i++)
            args.x[i] = place_pointer(w, step->x[i]);
        step->loop(&args);
    }
}

typedef struct job {
    const tutti_tile_program *program;
    const tutti_call *call;
    tutti_slots slots;
    int64_t tiles, tiles_per_piece;
} job;

static void run_piece(void *context, int64_t index)
{
    job *j = context;
    worker w = {.program = j->program, .call = j->call};
    w.slots = j->program->slot_count > 0 ? tutti__slot_take(&j->slots) : NULL;
    for (int i = 0; i < j->program->load_count; i++)
        w.loaded[i].rows = -1;
    int64_t first = index * j->tiles_per_piece, end = first + j->tiles_per_piece;
    for (int64_t t = first; t < end && t < j->tiles; t++) {
        w.tile = tutti__space_tile(&j->program->space, t);
        run_tile(&w);
    }
    if (w.slots != NULL)
        tutti__slot_give(&j->slots, w.slots);
}

tutti_status tutti__tile_run(const tutti_tile_program *program, const tutti_call *call)
{
    const tutti_space *space = &program->space;
    job j = {.program = program, .call = call, .tiles = tutti__space_tiles(space)};
    if (space->count == 0)
        return TUTTI_OK;
    tutti__slots_start(&j.slots, call->workspace, (size_t)program->slot_count * TUTTI_TILE_BYTES,
                       program->threads);
    int64_t tile = space->tile_rows * space->tile_columns;
    j.tiles_per_piece = tile >= PIECE_ELEMENTS ? 1 : PIECE_ELEMENTS / tile;
    tutti_parallel(call, (j.tiles + j.tiles_per_piece - 1) / j.tiles_per_piece, run_piece, &j);
    return TUTTI_OK;
}
