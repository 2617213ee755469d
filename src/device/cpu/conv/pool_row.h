/* pool_row.h: maxima of windows that stand side by side over a map, for files compiled once for
 * each instruction set. */
#ifndef TUTTI_DEVICE_CPU_CONV_POOL_ROW_H
#define TUTTI_DEVICE_CPU_CONV_POOL_ROW_H

#include "device/cpu/vector.h"
#include "ops/network/window.h"

/* The maximum of one window, `lanes` channels. */
VEC_INLINE vec window_maximum(int64_t rows, int64_t columns, int64_t row, int64_t channels,
                              const float *map, int64_t lanes)
{
    vec most = vec_load_lanes(map, lanes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i == 0; j < columns; j++)
            most = vec_maximum(most, vec_load_lanes(map + i * row + j * channels, lanes));
    return most;
}

/* One pooled row over rows of the map. */
static inline void pool_row(const tutti_windows *w, int64_t channels, const float *map, float *to)
{
    int64_t row = w->in[1] * channels;
    for (int64_t column = 0; column < w->out[1]; column++, map += w->size[1] * channels) {
        int64_t c = 0;
        for (; c + VEC_LANES <= channels; c += VEC_LANES) {
            bool pairs = w->size[0] == 2 && w->size[1] == 2;
            vec_store(to + c, pairs ? window_maximum(2, 2, row, channels, map + c, VEC_LANES)
                                    : window_maximum(w->size[0], w->size[1], row, channels, map + c,
                                                     VEC_LANES));
        }
#if VEC_MASKED
        if (c < channels)
            vec_store_part(
                to + c,
                window_maximum(w->size[0], w->size[1], row, channels, map + c, channels - c),
                channels - c);
        c = channels;
#endif
        for (; c < channels; c++) {
            float best = map[c];
            for (int64_t i = 0; i < w->size[0]; i++)
                for (int64_t j = 0; j < w->size[1]; j++) {
                    float value = map[i * row + j * channels + c];
                    best = value > best || value != value ? value : best;
                }
            to[c] = best;
        }
        to += channels;
    }
}

#endif
