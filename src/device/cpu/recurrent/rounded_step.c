/* rounded_step.c: see rounded_step.h. */
#include "device/cpu/recurrent/rounded_step.h"

#include "device/cpu/count.h"

tutti_rounded_step tutti__rounded_step(int64_t m, int64_t n, int64_t k)
{
    const tutti_gemm_tile *tile = tutti__gemm_bf16_tile();
    return (tutti_rounded_step){.tile = tile,
                                .n = n,
                                .k = k,
                                .columns = tutti__gemm_panels(tile, n).padded,
                                .depth = round_up(k, tile->pad),
                                .rows = round_up(m, tile->rows)};
}

size_t tutti__rounded_step_matrix_floats(const tutti_rounded_step *s)
{
    return (size_t)(s->depth * s->columns + 1) / 2;
}

size_t tutti__rounded_step_panel_floats(const tutti_rounded_step *s)
{
    return (size_t)(s->depth * s->rows + 1) / 2;
}

size_t tutti__rounded_step_sum_floats(const tutti_rounded_step *s)
{
    return (size_t)(s->rows * s->columns);
}

size_t tutti__rounded_step_group_floats(const tutti_rounded_step *s)
{
    _Static_assert(sizeof(int32_t) == sizeof(float), "groups are counted as floats");
    return (size_t)(s->depth / s->tile->pad);
}

/* Width of the panel of columns that begins at `start`. */
static int64_t width_at(const tutti_rounded_step *s, const tutti_gemm_panels *panels, int64_t start)
{
    return start < panels->wides * s->tile->wide ? s->tile->wide : s->tile->narrow;
}

void tutti__rounded_step_pack(const tutti_rounded_step *s, const float *from, int64_t step,
                              int64_t stride, uint16_t *matrix)
{
    tutti_gemm_panels panels = tutti__gemm_panels(s->tile, s->n);
    for (int64_t start = 0, width; start < s->columns; start += width) {
        width = width_at(s, &panels, start);
        int64_t count = s->n - start < width ? s->n - start : width;
        tutti_gemm_lines lines = {.width = width,
                                  .count = count < 0 ? 0 : count,
                                  .k = s->k,
                                  .source = from + start * stride,
                                  .step = step,
                                  .stride = stride,
                                  .columns = true};
        s->tile->pack_lines(&lines, matrix + start * s->depth);
    }
}

void tutti__rounded_step_groups(const tutti_rounded_step *s, int32_t *groups)
{
    int64_t pad = s->tile->pad;
    for (int64_t q = 0; q < s->depth / pad; q++)
        groups[q] = (int32_t)(q * s->rows * pad);
}

void tutti__rounded_step_lay(const tutti_rounded_step *s, int64_t m, const float *rows,
                             int64_t stride, uint16_t *panel)
{
    s->tile->pack_pixels(m, s->k, rows, stride, s->rows, panel);
}

void tutti__rounded_step_multiply(const tutti_rounded_step *s, int64_t m, const uint16_t *panel,
                                  const int32_t *groups, const uint16_t *matrix, float *sums)
{
    tutti_gemm_panels panels = tutti__gemm_panels(s->tile, s->n);
    for (int64_t start = 0, width; start < s->columns; start += width) {
        width = width_at(s, &panels, start);
        s->tile->multiply_at(m, s->depth, panel, groups, matrix + start * s->depth, width,
                             sums + start, s->columns, false);
    }
}
