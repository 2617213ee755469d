/* products.h: whether a node allows products of bf16 (attribute `products`), and where. */
#ifndef TUTTI_DEVICE_CPU_GEMM_PRODUCTS_H
#define TUTTI_DEVICE_CPU_GEMM_PRODUCTS_H

#include <string.h>

#include "device/cpu/gemm/tile.h"
#include "tutti/op.h"

/* Whether a node with these attributes may be computed so by the set of instructions `isa`: it
 * allows products of bf16, and that set has the best tiles of this CPU for them. */
static inline bool tutti__bf16_products(const tutti_attr *attrs, int attr_count, const char *isa)
{
    const tutti_gemm_tile *tile = tutti__gemm_bf16_tile();
    return tile != NULL && strcmp(tile->isa, isa) == 0 &&
           strcmp(tutti_attr_string(attrs, attr_count, "products"), "bf16") == 0;
}

#endif
