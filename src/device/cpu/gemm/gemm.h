/* gemm.h: matrix products on the device's threads.
 *
 * A plan is made once from the shape; running it cuts the product into tiles by shape, so the bits
 * do not depend on the number of threads. The plain tiles' results do not depend on the plan
 * either. */
#ifndef TUTTI_DEVICE_CPU_GEMM_GEMM_H
#define TUTTI_DEVICE_CPU_GEMM_GEMM_H

#include "device/cpu/gemm/engine.h"
#include "device/cpu/gemm/tile.h"
#include "tutti/op.h"

typedef struct tutti_gemm_plan {
    const tutti_gemm_engine *engine; /* NULL: the plain tiles */
    const tutti_gemm_tile *tile;
    int64_t m, n, k;
    int64_t chunk_m, chunk_n, chunk_k; /* packed at once */
    int64_t piece_m, piece_n; /* of C, computed by one call of one thread; piece_n in panels */
    bool parallel, split_k;
    bool packed; /* B comes packed */
    bool apart;  /* every thread may pack for itself */
} tutti_gemm_plan;

enum { TUTTI_GEMM_PIECE_ROWS = 128 }; /* rows of a piece before they are rounded up to tiles */

enum {
    TUTTI_GEMM_ONE_THREAD = 1 << 0, /* small buffers, for products that run side by side */
    TUTTI_GEMM_PLAIN = 1 << 1,      /* no library */
    TUTTI_GEMM_ROUNDED = 1 << 2,    /* operands or C may be bf16; no library */
    TUTTI_GEMM_BF16 = 1 << 3,       /* rounded, and multiplied in bf16 where the CPU can */
    TUTTI_GEMM_PACKED = 1 << 4,     /* B comes packed, of f32; no library */
    TUTTI_GEMM_RIVALS = 1 << 5      /* the tiles compete for it, so "auto" may give a library */
};
/* Never fails: with a library that cannot be loaded the plain tiles are planned. Kernels call
 * tutti__gemm_engine in their prepare, to report that. */
tutti_gemm_plan tutti__gemm_plan(int64_t m, int64_t n, int64_t k, uint32_t flags);

/* Bytes that a run needs, 64-byte aligned. */
size_t tutti__gemm_workspace(const tutti_gemm_plan *plan);
/* Of which A, then B, packed, take. */
size_t tutti__gemm_packed_a(const tutti_gemm_plan *plan);
size_t tutti__gemm_packed_b(const tutti_gemm_plan *plan);

/* pool NULL runs on the calling thread. Shapes are the plan's. */
void tutti__gemm_run(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                     void *workspace);

/* One matrix b for many products: packed once, then shared by threads. The gemm's trans_b, n, k, b
 * and ldb count. The tile is tutti__gemm_tile(), which kernels look up once: finding it takes as
 * long as a small product. */
int64_t tutti__gemm_packed_floats(int64_t n, int64_t k);
void tutti__gemm_pack(const tutti_gemm_tile *tile, const tutti_gemm *gemm, float *packed);
/* The same for products of one row: [columns / width][k][width], and that width. */
int64_t tutti__gemm_row_columns(const tutti_gemm_tile *tile, int64_t n);
int64_t tutti__gemm_row_floats(int64_t n, int64_t k);
void tutti__gemm_pack_row(const tutti_gemm *gemm, float *packed);
/* One of those panels, of b [k, n] whose elements stand anywhere: strides in floats. `packed` is
 * where the first panel begins. */
void tutti__gemm_pack_row_panel(int64_t n, int64_t k, const char *b, const int64_t strides[2],
                                int64_t panel, float *packed);
/* A product with it, on the calling thread, by the plain tiles. `scratch`: as many floats as
 * tutti__gemm_scratch_floats(m) says. */
int64_t tutti__gemm_scratch_floats(int64_t m);
void tutti__gemm_with(const tutti_gemm_tile *tile, const tutti_gemm *gemm, const float *packed,
                      float *scratch);

#endif
