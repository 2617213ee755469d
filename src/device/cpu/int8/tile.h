/* tile.h: the inner part of products of bytes, one for each instruction set.
 *
 * A panel of `width` lines (rows of the left matrix, columns of the right one) holds element (p,
 * i), p along k, at [(p / depth * width + i) * depth + p % depth]; lines and elements past the end
 * are zero. Elements are bytes, or 16-bit integers where the CPU multiplies those. Those of the
 * right matrix are signed; those of the left one too, or unsigned.
 *
 * tables: tutti_int8_tile */
#ifndef TUTTI_DEVICE_CPU_INT8_TILE_H
#define TUTTI_DEVICE_CPU_INT8_TILE_H

#include <stdbool.h>
#include <stdint.h>

/* rows * columns is at most this. */
#define TUTTI_INT8_TILE_MOST 512

typedef struct tutti_int8_tile {
    const char *isa;
    int rows, columns, depth;
    int bytes; /* of an element */
    bool left_unsigned;
    /* c[rows, columns] = the product of two panels of `blocks` * depth elements a line */
    void (*run)(int64_t blocks, const void *left, const void *right, int32_t *c);
} tutti_int8_tile;

/* The best that this CPU has. */
const tutti_int8_tile *tutti__int8_tile(void);

#endif
