/* direct.h: direct convolution in tiles of pixels and filters, for files compiled once for each
 * instruction set.
 *
 * A tile is PIXELS outputs, wherever they stand, times PANEL filters, held in registers while the
 * window is walked. Weights lie in panels [taps][PANEL] for each phase, the last filled up with
 * zeros. Input is padded beforehand where the window reaches outside, so that the inner loop has no
 * bounds. Every output is one sum in the same order whatever stands beside it: rows are invariant.
 */
#ifndef TUTTI_DEVICE_CPU_CONV_DIRECT_H
#define TUTTI_DEVICE_CPU_CONV_DIRECT_H

#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/finish.h"
#include "device/cpu/conv/windows.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { PIXELS = 8, VECTORS = 2 };
#elif defined(__AVX2__)
enum { PIXELS = 6, VECTORS = 2 };
#else
enum { PIXELS = 4, VECTORS = 2 };
#endif
enum { PANEL = VECTORS * VEC_LANES, BLOCK = 8 * PIXELS };

typedef struct direct_work {
    const tutti_conv_windows *walk;
    const float *x, *kernel;
    const float *packed; /* panels made before; NULL: packed from the kernel into `panels` */
    float *panels, *y;
    bool backward;
    conv_finish finish;
    const tutti_conv_phase *phase; /* at hand */
    int64_t blocks;                /* of BLOCK outputs, in one piece */
    int64_t group, groups;         /* panels in one piece; pieces beside each other */
} direct_work;

static inline int64_t panel_count(int64_t filters)
{
    return (filters + PANEL - 1) / PANEL;
}

/* Room for all panels, in floats. */
static inline int64_t direct_panel_floats(const tutti_conv_windows *w)
{
    return panel_count(w->filters) * PANEL * w->cells * w->channels;
}

static inline size_t direct_workspace(const tutti_conv_windows *w)
{
    return (size_t)(w->padded + direct_panel_floats(w)) * sizeof(float);
}

/* Piece: one panel of every phase is packed, from `kernel` into `panels`. */
#define direct_pack_piece TUTTI_ISA_NAME(tutti__direct_pack_piece)
void direct_pack_piece(void *context, int64_t panel);

/* The same of a forward kernel whose elements stand elsewhere: [height, width, channels, filters]
 * at `strides`, in floats, from `kernel`. Of its one phase every cell is used, in order. */
typedef struct direct_standing {
    const tutti_conv_windows *walk;
    const int64_t *size; /* height and width */
    const char *kernel;
    const int64_t *strides;
    float *panels;
} direct_standing;
#define direct_pack_standing TUTTI_ISA_NAME(tutti__direct_pack_standing)
void direct_pack_standing(void *context, int64_t panel);

/* `count` outputs of all filters: `x` their inputs and `y` their places, both filled up to a
 * multiple of PIXELS with any of them. */
#define direct_convolve_block TUTTI_ISA_NAME(tutti__direct_convolve_block)
void direct_convolve_block(const direct_work *w, const float *const *x, float *const *y,
                           int64_t count);

/* Pads x, packs the kernel, convolves. The workspace holds padded input, then panels. */
#define direct_run TUTTI_ISA_NAME(tutti__direct_run)
void direct_run(const tutti_kernel_call *call, const tutti_conv_windows *walk, direct_work *w);

#endif
