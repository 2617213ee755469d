/* product.h: C = (A - za)(B - zb) for matrices of bytes, in i32.
 *
 * Both sides are packed into panels (tile.h), moved by 128 where their type is not the tile's; with
 * the packed a, b and the zeros moved alike,
 *   C[i, j] = sum of a b - zb[j] sum of a[i, :] - za[i] sum of b[:, j] + k za[i] zb[j]
 * modulo 2^32. `groups` independent products stand side by side: columns of C and of B. */
#ifndef TUTTI_DEVICE_CPU_INT8_PRODUCT_H
#define TUTTI_DEVICE_CPU_INT8_PRODUCT_H

#include "device/cpu/int8/tile.h"
#include "program/kernel.h"

typedef struct tutti_int8_shape {
    int64_t m, n, k, groups; /* n and k of one group */
} tutti_int8_shape;

/* The right side, packed: column sums, then panels. */
size_t tutti__int8_right_bytes(const tutti_int8_shape *shape);
/* b [k, groups * n]; `call` (optional) for its threads. */
void tutti__int8_pack_right(const tutti_kernel_call *call, const tutti_int8_shape *shape,
                            const tutti_view *b, void *packed);

/* Scratch for a run with so many threads. */
size_t tutti__int8_scratch_bytes(const tutti_int8_shape *shape, int threads);

typedef struct tutti_int8_product {
    tutti_int8_shape shape;
    const void *right; /* packed */
    void *scratch;
    int threads;
    tutti_dtype left_dtype, right_dtype;
    /* The k bytes of row i of the left side of a group: in place, or written to `room`. */
    const uint8_t *(*row)(const void *context, int64_t group, int64_t i, uint8_t *room);
    const tutti_view *left_zero, *right_zero; /* NULL: 0; one, or one for each row or column */
    /* Where the sums go, rows of `line`; or NULL, and they are handed to `finish`: those of row i,
     * columns [first, first + count) of all groups' n side by side. */
    int32_t *direct;
    int64_t line;
    void (*finish)(const void *context, int64_t i, int64_t first, int64_t count,
                   const int32_t *sums);
    const void *context;
} tutti_int8_product;
void tutti__int8_product(const tutti_kernel_call *call, tutti_int8_product *product);

#endif
