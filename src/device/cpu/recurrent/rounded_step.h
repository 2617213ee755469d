/* rounded_step.h: the product of bf16, summed in f32, that a group of rows takes at every step:
 * rows [m, k] by a matrix [k, n] that is rounded and packed once for all steps. Rows are rounded
 * when they are laid out for the tile (gemm/tile.h), in a panel of their own. A row's sums depend
 * on that row and the matrix only. */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_ROUNDED_STEP_H
#define TUTTI_DEVICE_CPU_RECURRENT_ROUNDED_STEP_H

#include "device/cpu/gemm/tile.h"

typedef struct tutti_rounded_step {
    const tutti_gemm_tile *tile;
    int64_t n, k;
    int64_t columns, depth; /* n and k, filled up to whole panels and groups */
    int64_t rows;           /* m, filled up to whole tiles: of the panel and of the sums */
} tutti_rounded_step;

/* For at most m rows. The CPU must have a tile for bf16. */
tutti_rounded_step tutti__rounded_step(int64_t m, int64_t n, int64_t k);

/* Floats that hold the matrix, a panel of rows, the sums, and where groups of k begin in a panel.
 */
size_t tutti__rounded_step_matrix_floats(const tutti_rounded_step *s);
size_t tutti__rounded_step_panel_floats(const tutti_rounded_step *s);
size_t tutti__rounded_step_sum_floats(const tutti_rounded_step *s);
size_t tutti__rounded_step_group_floats(const tutti_rounded_step *s);

/* Element (p, j) of the matrix is read at from[p * step + j * stride], step or stride being 1. */
void tutti__rounded_step_pack(const tutti_rounded_step *s, const float *from, int64_t step,
                              int64_t stride, uint16_t *matrix);
void tutti__rounded_step_groups(const tutti_rounded_step *s, int32_t *groups);

/* Rows `stride` apart into a panel. */
void tutti__rounded_step_lay(const tutti_rounded_step *s, int64_t m, const float *rows,
                             int64_t stride, uint16_t *panel);
/* sums[m, n], rows `columns` apart. */
void tutti__rounded_step_multiply(const tutti_rounded_step *s, int64_t m, const uint16_t *panel,
                                  const int32_t *groups, const uint16_t *matrix, float *sums);

#endif
