/* run.c: running a tile program: pieces of tiles on the device's threads. */
#include <string.h>

#include "device/cpu/slots.h"
#include "device/cpu/tile/chaining.h"

enum { PIECE_ELEMENTS = 16384, PIECES_OF_THREAD = 64, COLUMN_GROUP = 64 };

/* One piece at work. `loaded`: where the slot of each load was filled from, so that what repeats is
 * loaded once. */
typedef struct worker {
    const tutti_tile_program *program;
    const tutti_kernel_call *call;
    char *slots, *totals; /* totals: of the chunk */
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

static void *place_pointer(void *context, tutti_tile_place place)
{
    const worker *w = context;
    int64_t offset = w->tile.offset;
    if (place.kind == TUTTI_PLACE_INPUT)
        return (char *)(uintptr_t)source_data(w, place.index) +
               (size_t)offset * w->program->element;
    if (place.kind == TUTTI_PLACE_OUTPUT) {
        if (w->program->output_by_row[place.index])
            offset /= w->program->space.columns;
        return (char *)w->call->outputs[place.index].data +
               (size_t)offset * w->program->output_elements[place.index];
    }
    if (place.kind == TUTTI_PLACE_TOTAL) {
        const tutti_tile_total *total = &w->program->totals[place.index];
        return w->totals + total->at + (total->whole ? 0 : (size_t)w->tile.column * sizeof(float));
    }
    return slot_at(w, place.index);
}

static void run_convert(const tutti_tile_load *load, const char *from, int64_t count, void *to)
{
    static const double none[TUTTI_TILE_PARAMS];
    load->convert(&(tutti_tile_args){.count = count, .x = {from}, .y = to, .params = none});
}

/* Repeats element 0 of `to`. */
static void run_fill(size_t element, void *to, int64_t count)
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
    const tutti_tile_space *space = &w->program->space;
    int64_t row_step = space->inputs[load->source].row_step;
    int64_t column_step = space->inputs[load->source].column_step;
    size_t element = w->program->element;
    for (int64_t r = 0; r < w->tile.rows; r++, to += (size_t)w->tile.columns * element) {
        const char *row = from + (size_t)(r * row_step) * load->element;
        if (column_step == 1) {
            run_convert(load, row, w->tile.columns, to);
            continue;
        }
        for (int64_t c = 0; c < (column_step == 0 ? 1 : w->tile.columns); c++)
            run_convert(load, row + (size_t)(c * column_step) * load->element, 1,
                        to + (size_t)c * element);
        if (column_step == 0)
            run_fill(element, to, w->tile.columns);
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
            run_convert(load, from + (size_t)r * load->element,
                        rest < COLUMN_GROUP ? rest : COLUMN_GROUP, group);
        }
        memcpy(to, (const char *)group + (size_t)(r % COLUMN_GROUP) * element, element);
        run_fill(element, to, w->tile.columns);
        to += (size_t)w->tile.columns * element;
    }
}

static void load_row(const worker *w, const tutti_tile_load *load, const char *from, char *to)
{
    size_t bytes = (size_t)w->tile.columns * w->program->element;
    run_convert(load, from, w->tile.columns, to);
    for (int64_t r = 1; r < w->tile.rows; r++)
        memcpy(to + (size_t)r * bytes, to, bytes);
}

/* How often a scalar stands in its slot: steps of their own read a tile of it, chains a block. */
static int64_t scalar_repeats(const tutti_tile_program *program)
{
    int64_t tile = program->space.tile_rows * program->space.tile_columns;
    int64_t slot = TUTTI_TILE_BYTES / (int64_t)program->element, block = program->chain->block;
    return tile > slot || tile < block ? block : tile;
}

static void load_tile(worker *w, int index)
{
    const tutti_tile_load *load = &w->program->loads[index];
    const tutti_tile_space *space = &w->program->space;
    tutti_tile_reach reach = space->inputs[load->source].reach;
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
        run_convert(load, from, w->tile.rows * w->tile.columns, to);
    } else if (reach == TUTTI_REACH_SCALAR) {
        run_convert(load, from, 1, to);
        run_fill(w->program->element, to, scalar_repeats(w->program));
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
        double params[TUTTI_TILE_PARAMS] = {(double)w->tile.columns, step->params[1]};
        tutti_tile_args args = {.count = step->kind == TUTTI_STEP_BY_ROW ? w->tile.rows : count,
                                .y = place_pointer(w, step->y),
                                .params = step->kind == TUTTI_STEP_ROWS ? params : step->params};
        for (int i = 0; i < step->inputs; i++)
            args.x[i] = place_pointer(w, step->x[i]);
        step->loop(&args);
    }
}

typedef struct job {
    const tutti_tile_program *program;
    const tutti_kernel_call *call;
    tutti_slots slots;
    int64_t tiles, tiles_per_piece;
    char *chunks; /* memory for totals */
} job;

static worker start_worker(job *j)
{
    worker w = {.program = j->program, .call = j->call};
    w.slots = j->program->slot_count > 0 ? tutti__slot_take(&j->slots) : NULL;
    for (int i = 0; i < j->program->load_count; i++)
        w.loaded[i].rows = -1;
    return w;
}

static void end_worker(job *j, worker *w)
{
    if (w->slots != NULL)
        tutti__slot_give(&j->slots, w->slots);
}

static void run_run_piece(void *context, int64_t index)
{
    job *j = context;
    worker w = start_worker(j);
    int64_t first = index * j->tiles_per_piece, end = first + j->tiles_per_piece;
    for (int64_t t = first; t < end && t < j->tiles; t++) {
        w.tile = tutti__space_tile(&j->program->space, t);
        run_tile(&w);
    }
    end_worker(j, &w);
}

/* A chunk of tiles, where totals have columns of one column of tiles; its totals begin at 0. */
static void run_chunk(void *context, int64_t index)
{
    job *j = context;
    const tutti_tile_program *program = j->program;
    const tutti_tile_space *space = &program->space;
    int64_t columns = program->chunk_rows ? space->column_tiles : 1, column = index % columns;
    int64_t tile = index / columns * program->chunk_tiles, end = tile + program->chunk_tiles;
    int64_t tiles = tutti__space_tiles(space) / columns;
    worker w = start_worker(j);
    w.totals = j->chunks + (size_t)(index / columns) * program->chunk_bytes;
    w.tile = tutti__space_tile(space, tile * columns + column);
    for (int i = 0; i < program->total_count; i++)
        memset(place_pointer(&w, (tutti_tile_place){TUTTI_PLACE_TOTAL, i}), 0,
               program->totals[i].whole ? sizeof(double) : (size_t)w.tile.columns * sizeof(float));
    for (; tile < end && tile < tiles; tile++) {
        w.tile = tutti__space_tile(space, tile * columns + column);
        run_tile(&w);
    }
    end_worker(j, &w);
}

/* The chunks' totals, added over a binary tree into the first one's. */
static void join_chunks(const job *j, const tutti_tile_total *total)
{
    size_t bytes = j->program->chunk_bytes;
    for (int64_t stride = 1; stride < j->program->chunks; stride *= 2)
        for (int64_t c = 0; c + stride < j->program->chunks; c += 2 * stride) {
            char *to = j->chunks + (size_t)c * bytes + total->at,
                 *from = to + (size_t)stride * bytes;
            if (total->whole)
                *(double *)(void *)to += *(double *)(void *)from;
            for (int64_t i = 0; !total->whole && i < total->width; i++)
                ((float *)(void *)to)[i] += ((float *)(void *)from)[i];
        }
}

static void finish_total(const job *j, const tutti_tile_total *total)
{
    char *sum = j->chunks + total->at;
    static const double none[TUTTI_TILE_PARAMS];
    join_chunks(j, total);
    float one = total->whole ? (float)(*(double *)(void *)sum / total->divisor) : 0;
    for (int64_t i = 0; !total->whole && total->divisor != 1 && i < total->width; i++)
        ((float *)(void *)sum)[i] /= (float)total->divisor;
    total->store(&(tutti_tile_args){.count = total->width,
                                    .x = {total->whole ? (char *)&one : sum},
                                    .y = j->call->outputs[total->output].data,
                                    .params = none});
}

static void run_chunks(job *j)
{
    const tutti_tile_program *program = j->program;
    j->chunks = (char *)j->call->workspace +
                (size_t)tutti__slot_count(program->threads) *
                    tutti__slot_bytes((size_t)program->slot_count * TUTTI_TILE_BYTES);
    int64_t columns = program->chunk_rows ? program->space.column_tiles : 1;
    tutti_parallel(j->call, program->chunks * columns, run_chunk, j);
    for (int i = 0; i < program->total_count; i++)
        finish_total(j, &program->totals[i]);
}

/* Enough pieces for threads to end together; longer ones where there is more to do, since what a
 * CPU fetches ahead has to begin anew with each. */
static int64_t tiles_of_piece(const tutti_tile_program *program, int64_t tiles)
{
    int64_t tile = program->space.tile_rows * program->space.tile_columns;
    int64_t least = tile >= PIECE_ELEMENTS ? 1 : PIECE_ELEMENTS / tile;
    int64_t pieces = (int64_t)(program->threads > 0 ? program->threads : 1) * PIECES_OF_THREAD;
    return tiles / pieces > least ? tiles / pieces : least;
}

tutti_status tutti__tile_run(const tutti_tile_program *program, const tutti_kernel_call *call)
{
    const tutti_tile_space *space = &program->space;
    job j = {.program = program, .call = call, .tiles = tutti__space_tiles(space)};
    if (space->count == 0)
        return TUTTI_OK;
    tutti__slots_start(&j.slots, call->workspace, (size_t)program->slot_count * TUTTI_TILE_BYTES,
                       program->threads);
    if (program->total_count > 0) {
        run_chunks(&j);
        return TUTTI_OK;
    }
    j.tiles_per_piece = tiles_of_piece(program, j.tiles);
    tutti_parallel(call, (j.tiles + j.tiles_per_piece - 1) / j.tiles_per_piece, run_run_piece, &j);
    return TUTTI_OK;
}

tutti_status tutti__tile_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_tile_program *program;
    TUTTI_TRY(tutti__tile_compile(query, &program));
    *ret_plan = program;
    return TUTTI_OK;
}

size_t tutti__tile_room(const void *plan)
{
    return tutti__tile_workspace(plan);
}

tutti_status tutti__tile_call(const tutti_kernel_call *call)
{
    return tutti__tile_run(call->plan, call);
}
