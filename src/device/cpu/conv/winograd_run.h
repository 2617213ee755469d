/* winograd_run.h: a convolution by transformed tiles, forward or turned round.
 *
 * The kernel is transformed once into panels of WIDTH filters, U [36][panel][channels][WIDTH].
 * Then strips of tiles go by, each on one thread with scratch that stays in its cache: input
 * transformed V [36][strip][channels], products M [36][strip][filters], output transformed. Where
 * the tiles are few and the panels larger than the cache, all tiles are one strip that goes through
 * each of the three on all threads, so that the panels are read once. */
#ifndef TUTTI_DEVICE_CPU_CONV_WINOGRAD_RUN_H
#define TUTTI_DEVICE_CPU_CONV_WINOGRAD_RUN_H

#include "base/isa.h"
#include "device/cpu/conv/finish.h"
#include "device/cpu/conv/winograd.h"

/* Tiles and registers of filters in a product that is held in registers. */
#if defined(__AVX512F__)
enum { ROWS = 12, VECS = 2 };
#elif defined(__AVX2__)
enum { ROWS = 6, VECS = 2 };
#elif defined(__aarch64__)
enum { ROWS = 8, VECS = 2 };
#else
enum { ROWS = 4, VECS = 2 };
#endif
enum { WIDTH = VECS * VEC_LANES, MOST_STRIP = 48, STRIPS = 32, LINE = 16 };
enum { MOST_WHOLE = 64, WHOLE_PANELS = 1 << 18 }; /* tiles; floats of the panels */

typedef struct winograd_plan {
    winograd_grid grid;
    int64_t channels, filters; /* as they are */
    int64_t depth, width;      /* filled up: to VEC_LANES, to WIDTH */
    int64_t strip;             /* tiles, a multiple of ROWS */
    int64_t point_v, point_m;  /* floats from one point to the next */
    bool whole;                /* all tiles are one strip, on all threads */
    int threads;
} winograd_plan;

static inline bool winograd_plan_make(const tutti_kernel_query *query, const tutti_convolution *c,
                                      bool turned, winograd_plan *ret)
{
    if (!winograd_grid_make(c, turned, &ret->grid))
        return false;
    ret->channels = turned ? c->cout : c->cin;
    ret->filters = turned ? c->cin : c->cout;
    ret->depth = round_to(ret->channels, VEC_LANES);
    ret->width = round_to(ret->filters, WIDTH);
    int64_t strip = round_to(ret->grid.count / STRIPS + 1, ROWS);
    ret->whole = ret->grid.count <= MOST_WHOLE && POINTS * ret->depth * ret->width >= WHOLE_PANELS;
    ret->strip = ret->whole           ? round_to(ret->grid.count, ROWS)
                 : strip > MOST_STRIP ? MOST_STRIP
                                      : strip;
    /* Points a power of two apart would fall on one place in the cache. */
    ret->point_v = ret->strip * ret->depth + LINE;
    ret->point_m = ret->strip * ret->width + LINE;
    ret->threads = query->threads;
    return true;
}

/* Whether the fewer multiplications outweigh the transforms. */
static inline bool winograd_pays(const winograd_plan *p)
{
    return p->channels >= 12 && p->filters >= 12 && winograd_filled(&p->grid) > 0.55;
}

static inline int64_t winograd_kernel_floats(const winograd_plan *p)
{
    return POINTS * p->depth * p->width;
}

static inline size_t winograd_slot_bytes(const winograd_plan *p)
{
    return tutti__slot_bytes((size_t)(POINTS * (p->point_v + p->point_m) + p->depth) *
                             sizeof(float));
}

/* Bytes of scratch beside the panels. */
static inline size_t winograd_scratch(const winograd_plan *p)
{
    return winograd_slot_bytes(p) * (size_t)(p->whole ? 1 : tutti__slot_count(p->threads));
}

static inline size_t winograd_workspace(const winograd_plan *p)
{
    return (size_t)winograd_kernel_floats(p) * sizeof(float) + winograd_scratch(p);
}

typedef struct winograd_work {
    const winograd_plan *plan;
    const float *x, *packed; /* packed: panels made before, or NULL */
    const char *kernel;      /* of any alignment */
    int64_t strides[4];      /* of the kernel, in floats: row, column, channel, filter */
    float *panels, *y;
    const conv_finish *finish;
    tutti_slots slots;
    float *v, *m, *zeros; /* of a strip that is whole */
} winograd_work;

/* Piece: one panel of the kernel, transformed into `panels`. */
#define winograd_kernel_piece TUTTI_ISA_NAME(tutti__winograd_kernel_piece)
void winograd_kernel_piece(void *context, int64_t panel);

/* `packed`: the panels, or NULL: they are made of the kernel, at the start of the workspace. */
#define winograd_run TUTTI_ISA_NAME(tutti__winograd_run)
void winograd_run(const tutti_kernel_call *call, const winograd_plan *p, bool turned,
                  const float *x, const float *kernel, const float *packed,
                  const conv_finish *finish);

/* A copy of a plan, for free(). */
#define winograd_plan_keep TUTTI_ISA_NAME(tutti__winograd_plan_keep)
tutti_status winograd_plan_keep(const winograd_plan *p, void **ret_plan);

#endif
