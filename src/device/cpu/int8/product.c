/* product.c: products of matrices of bytes; see product.h. */
#include "device/cpu/int8/product.h"

#include <string.h>

#include "device/cpu/slots.h"
#include "tables/int8_tile.h"

enum {
    PANELS = 4,     /* panels of rows that one piece packs */
    CHUNK = 256,    /* columns of a piece where there are few rows */
    MANY_ROWS = 512 /* from here on a piece has all columns */
};

const tutti_int8_tile *tutti__int8_tile(void)
{
    const tutti_int8_tile *best = NULL;
    for (const tutti_int8_tile *const *at = tutti__int8_tile_table; *at != NULL; at++) {
        const tutti_int8_tile *tile = *at;
        if (tutti__isa_present(tile->isa) &&
            (best == NULL || tutti__isa_better(tile->isa, best->isa)))
            best = tile;
    }
    return best;
}

static int64_t up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static size_t panel_bytes(const tutti_int8_tile *tile, int64_t k, int width)
{
    return (size_t)(up(k, tile->depth) * width) * (size_t)tile->bytes;
}

static size_t sums_bytes(const tutti_int8_shape *shape, const tutti_int8_tile *tile)
{
    return tutti__slot_bytes((size_t)(shape->groups * up(shape->n, tile->columns)) *
                             sizeof(int32_t));
}

size_t tutti__int8_right_bytes(const tutti_int8_shape *shape)
{
    const tutti_int8_tile *tile = tutti__int8_tile();
    size_t panels = (size_t)(shape->groups * (up(shape->n, tile->columns) / tile->columns));
    return sums_bytes(shape, tile) + panels * panel_bytes(tile, shape->k, tile->columns);
}

static void product_put(const tutti_int8_tile *tile, void *panel, int64_t at, int32_t value)
{
    if (tile->bytes == 1)
        ((uint8_t *)panel)[at] = (uint8_t)value;
    else
        ((int16_t *)panel)[at] = (int16_t)value;
}

typedef struct packing {
    const tutti_int8_tile *tile;
    const tutti_int8_shape *shape;
    const uint8_t *b;
    int flip; /* xored to bytes: 128 makes unsigned ones signed */
    char *packed;
} packing;

/* Panel `index` of all groups' panels. */
static void pack_columns(void *context, int64_t index)
{
    const packing *p = context;
    const tutti_int8_tile *tile = p->tile;
    int64_t k = p->shape->k, columns = tile->columns,
            per_group = up(p->shape->n, columns) / columns;
    int64_t group = index / per_group, first = index % per_group * columns;
    int64_t left = p->shape->n - first, count = left < columns ? left : columns;
    int64_t line = p->shape->groups * p->shape->n;
    size_t bytes = panel_bytes(tile, k, tile->columns);
    char *panel = p->packed + sums_bytes(p->shape, tile) + (size_t)index * bytes;
    int32_t *sums = (int32_t *)(void *)p->packed + index * columns;
    memset(panel, 0, bytes);
    memset(sums, 0, (size_t)columns * sizeof *sums);
    for (int64_t i = 0; i < k; i++) {
        const uint8_t *from = p->b + i * line + group * p->shape->n + first;
        int64_t at = i / tile->depth * columns * tile->depth + i % tile->depth;
        for (int64_t j = 0; j < count; j++, at += tile->depth) {
            int8_t value = (int8_t)(from[j] ^ p->flip);
            product_put(tile, panel, at, value);
            sums[j] += value;
        }
    }
}

void tutti__int8_pack_right(const tutti_kernel_call *call, const tutti_int8_shape *shape,
                            const tutti_view *b, void *packed)
{
    packing p = {.tile = tutti__int8_tile(),
                 .shape = shape,
                 .b = b->data,
                 .flip = b->dtype == TUTTI_U8 ? 128 : 0,
                 .packed = packed};
    int64_t panels = shape->groups * (up(shape->n, p.tile->columns) / p.tile->columns);
    if (call != NULL)
        tutti_parallel(call, panels, pack_columns, &p);
    else
        for (int64_t i = 0; i < panels; i++)
            pack_columns(&p, i);
}

/* One thread's: a row, packed panels of rows, their sums. */
static size_t slot_bytes(const tutti_int8_shape *shape, const tutti_int8_tile *tile)
{
    return tutti__slot_bytes((size_t)up(shape->k, 64)) +
           tutti__slot_bytes(PANELS * panel_bytes(tile, shape->k, tile->rows)) +
           tutti__slot_bytes((size_t)(PANELS * tile->rows) * sizeof(int32_t));
}

size_t tutti__int8_scratch_bytes(const tutti_int8_shape *shape, int threads)
{
    return slot_bytes(shape, tutti__int8_tile()) * (size_t)tutti__slot_count(threads);
}

typedef struct work {
    const tutti_int8_product *p;
    const tutti_int8_tile *tile;
    tutti_slots slots;
    int64_t blocks, chunks, chunk; /* of rows; of columns, and columns in one */
    int left_move;                 /* what packing adds to a byte's value, 0 or +-128 */
    bool left_sums;                /* some column has a zero */
} work;

typedef struct room {
    uint8_t *row;
    char *panels;
    int32_t *sums;
} room;

/* Whole groups of `depth` bytes, 4 or 8, go as they are; returns how many bytes. */
static int64_t pack_bytes(const work *w, const uint8_t *from, uint8_t *to)
{
    int64_t k = w->p->shape.k, step = (int64_t)w->tile->rows * w->tile->depth, i = 0;
    uint64_t flip = w->left_move ? UINT64_C(0x8080808080808080) : 0, eight;
    uint32_t four;
    if (w->tile->depth == 8)
        for (; i + 8 <= k; i += 8, to += step) {
            memcpy(&eight, from + i, 8);
            eight ^= flip;
            memcpy(to, &eight, 8);
        }
    else
        for (; i + 4 <= k; i += 4, to += step) {
            memcpy(&four, from + i, 4);
            four ^= (uint32_t)flip;
            memcpy(to, &four, 4);
        }
    return i;
}

/* Row `from` as line `r` of a panel; its sum where that is needed. */
static int32_t pack_row(const work *w, const uint8_t *from, int64_t r, void *panel)
{
    const tutti_int8_tile *tile = w->tile;
    int64_t k = w->p->shape.k, depth = tile->depth, step = (int64_t)tile->rows * depth;
    int64_t i = tile->bytes == 1 ? pack_bytes(w, from, (uint8_t *)panel + r * depth) : 0;
    bool is_signed = w->p->left_dtype == TUTTI_I8;
    int32_t sum = 0;
    for (int64_t at = i / depth * step + r * depth; i < k; at += step)
        for (int64_t d = 0; d < depth && i < k; d++, i++)
            product_put(tile, panel, at + d,
                        (is_signed ? (int8_t)from[i] : from[i]) + w->left_move);
    for (i = 0; w->left_sums && i < k; i++)
        sum += (is_signed ? (int8_t)from[i] : from[i]) + w->left_move;
    return sum;
}

static room take_room(work *w, void **ret_slot)
{
    const tutti_int8_shape *shape = &w->p->shape;
    char *slot = tutti__slot_take(&w->slots);
    size_t row = tutti__slot_bytes((size_t)up(shape->k, 64));
    size_t panels = tutti__slot_bytes(PANELS * panel_bytes(w->tile, shape->k, w->tile->rows));
    *ret_slot = slot;
    return (room){.row = (uint8_t *)slot,
                  .panels = slot + row,
                  .sums = (int32_t *)(void *)(slot + row + panels)};
}

/* Rows [first, first + count) of a group into panels. */
static void pack_rows(const work *w, const room *r, int64_t group, int64_t first, int64_t count)
{
    size_t bytes = panel_bytes(w->tile, w->p->shape.k, w->tile->rows);
    int64_t used = up(count, w->tile->rows);
    memset(r->panels, 0, (size_t)(used / w->tile->rows) * bytes);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *from = w->p->row(w->p->context, group, first + i, r->row);
        r->sums[i] =
            pack_row(w, from, i % w->tile->rows, r->panels + (size_t)(i / w->tile->rows) * bytes);
    }
}

static int32_t zero_at(const tutti_view *zero, int64_t i)
{
    if (zero == NULL)
        return 0;
    i = tutti_view_count(zero) == 1 ? 0 : i;
    return zero->dtype == TUTTI_U8 ? ((const uint8_t *)zero->data)[i]
                                   : ((const int8_t *)zero->data)[i];
}

/* One row of a tile, corrected for the zeros, to its place. */
static void finish_row(const work *w, int64_t row, int64_t column, int64_t count, int32_t row_sum,
                       const int32_t *column_sums, const int32_t *from)
{
    const tutti_int8_product *p = w->p;
    int32_t right_move = p->right_dtype == TUTTI_U8 ? -128 : 0, kept[TUTTI_INT8_TILE_MOST];
    int32_t *out = p->direct != NULL ? p->direct + row * p->line + column : kept;
    uint32_t za = (uint32_t)(zero_at(p->left_zero, row) + w->left_move);
    if (!w->left_sums) {
        for (int64_t j = 0; j < count; j++)
            out[j] = (int32_t)((uint32_t)from[j] - za * (uint32_t)column_sums[j]);
    } else {
        for (int64_t j = 0; j < count; j++) {
            uint32_t zb = (uint32_t)(zero_at(p->right_zero, column + j) + right_move);
            out[j] = (int32_t)((uint32_t)from[j] - zb * (uint32_t)row_sum -
                               za * (uint32_t)column_sums[j] + (uint32_t)p->shape.k * za * zb);
        }
    }
    if (p->direct == NULL)
        p->finish(p->context, row, column, count, out);
}

/* A tile of sums to its place, less `fix` of each column. */
static void store(const int32_t *restrict c, int64_t columns, const int32_t *restrict fix,
                  int64_t rows, int64_t count, int32_t *restrict to, int64_t line)
{
    for (int64_t i = 0; i < rows; i++, c += columns, to += line) {
        int64_t j = 0;
        for (; j + 8 <= count; j += 8)
            for (int64_t e = 0; e < 8; e++)
                to[j + e] = (int32_t)((uint32_t)c[j + e] - (uint32_t)fix[j + e]);
        for (; j < count; j++)
            to[j] = (int32_t)((uint32_t)c[j] - (uint32_t)fix[j]);
    }
}

/* One tile: rows [row, row + rows), columns [column, column + count). */
static void finish_tile(const work *w, const int32_t *c, int64_t row, int64_t rows, int64_t column,
                        int64_t count, const int32_t *row_sums, const int32_t *column_sums)
{
    const tutti_int8_product *p = w->p;
    bool one = p->left_zero == NULL || tutti_view_count(p->left_zero) == 1;
    if (p->direct == NULL || w->left_sums || !one) {
        for (int64_t i = 0; i < rows; i++)
            finish_row(w, row + i, column, count, row_sums[i], column_sums,
                       c + i * w->tile->columns);
        return;
    }
    int32_t fix[TUTTI_INT8_TILE_MOST];
    uint32_t za = (uint32_t)(zero_at(p->left_zero, 0) + w->left_move);
    for (int64_t j = 0; j < count; j++)
        fix[j] = (int32_t)(za * (uint32_t)column_sums[j]);
    store(c, w->tile->columns, fix, rows, count, p->direct + row * p->line + column, p->line);
}

/* Panel `panel` of a group's columns against all packed rows. */
static void product_multiply(const work *w, const room *r, int64_t group, int64_t panel,
                             int64_t first, int64_t rows)
{
    const tutti_int8_tile *tile = w->tile;
    const tutti_int8_shape *shape = &w->p->shape;
    int64_t per_group = up(shape->n, tile->columns) / tile->columns;
    int64_t index = group * per_group + panel, column = panel * tile->columns;
    int64_t left = shape->n - column, count = left < tile->columns ? left : tile->columns;
    int64_t blocks = up(shape->k, tile->depth) / tile->depth;
    size_t step = panel_bytes(tile, shape->k, tile->rows);
    const char *right = (const char *)w->p->right + sums_bytes(shape, tile) +
                        (size_t)index * panel_bytes(tile, shape->k, tile->columns);
    const int32_t *sums = (const int32_t *)w->p->right + index * tile->columns;
    const char *lines = r->panels;
    int32_t c[TUTTI_INT8_TILE_MOST];
    for (int64_t i = 0; i < rows; i += tile->rows, lines += step) {
        tile->run(blocks, lines, right, c);
        finish_tile(w, c, first + i, rows - i < tile->rows ? rows - i : tile->rows,
                    group * shape->n + column, count, r->sums + i, sums);
    }
}

static void product_piece(void *context, int64_t index)
{
    work *w = context;
    const tutti_int8_shape *shape = &w->p->shape;
    int64_t chunk = index % w->chunks, block = index / w->chunks % w->blocks;
    int64_t group = index / w->chunks / w->blocks, block_rows = PANELS * w->tile->rows;
    int64_t first = block * block_rows, left = shape->m - first;
    int64_t rows = left < block_rows ? left : block_rows;
    int64_t end = (chunk + 1) * w->chunk < shape->n ? (chunk + 1) * w->chunk : shape->n;
    void *slot;
    room r = take_room(w, &slot);
    pack_rows(w, &r, group, first, rows);
    for (int64_t column = chunk * w->chunk; column < end; column += w->tile->columns)
        product_multiply(w, &r, group, column / w->tile->columns, first, rows);
    tutti__slot_give(&w->slots, slot);
}

static bool all_zero(const tutti_view *zero)
{
    int64_t count = zero != NULL ? tutti_view_count(zero) : 0;
    for (int64_t i = 0; i < count; i++)
        if (zero_at(zero, i) != 0)
            return false;
    return true;
}

void tutti__int8_product(const tutti_kernel_call *call, tutti_int8_product *product)
{
    const tutti_int8_tile *tile = tutti__int8_tile();
    const tutti_int8_shape *shape = &product->shape;
    bool is_signed = product->left_dtype == TUTTI_I8;
    work w = {.p = product,
              .tile = tile,
              .left_move = tile->left_unsigned ? (is_signed ? 128 : 0) : (is_signed ? 0 : -128),
              .left_sums = product->right_dtype == TUTTI_U8 || !all_zero(product->right_zero),
              .blocks = up(shape->m, PANELS * tile->rows) / (PANELS * tile->rows)};
    w.chunk = up(shape->m < MANY_ROWS ? CHUNK : shape->n, tile->columns);
    w.chunks = up(shape->n, w.chunk) / w.chunk;
    tutti__slots_start(&w.slots, product->scratch, slot_bytes(shape, tile), product->threads);
    tutti_parallel(call, shape->groups * w.blocks * w.chunks, product_piece, &w);
}
