/* conversion.h: elements of one type converted to another by a loop on tiles, in pieces. */
#ifndef TUTTI_DEVICE_CPU_CONVERSION_H
#define TUTTI_DEVICE_CPU_CONVERSION_H

#include "device/cpu/tile/tile.h"
#include "tutti/op.h"

enum { CONVERSION_PIECE = 8192 }; /* elements */

typedef struct conversion {
    tutti_tile_loop *loop;
    const char *from;
    char *to;
    size_t from_element, to_element;
    int64_t count;
} conversion;

static inline void convert_piece(void *context, int64_t index)
{
    static const double none[TUTTI_TILE_PARAMS];
    const conversion *c = context;
    int64_t first = index * CONVERSION_PIECE, rest = c->count - first;
    c->loop(&(tutti_tile_args){.count = rest < CONVERSION_PIECE ? rest : CONVERSION_PIECE,
                               .x = {c->from + (size_t)first * c->from_element},
                               .y = c->to + (size_t)first * c->to_element,
                               .params = none});
}

static inline void convert(const tutti_kernel_call *call, conversion c)
{
    tutti_parallel(call, (c.count + CONVERSION_PIECE - 1) / CONVERSION_PIECE, convert_piece, &c);
}

#endif
