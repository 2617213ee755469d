/* winograd_run.c: a convolution by transformed tiles, see winograd_run.h. */
#include "device/cpu/conv/winograd_run.h"

#include "tensor/tensor.h"

/* The kernel as a forward convolution has it: element (i, j, channel, filter) stands at
 * strides[0] i + strides[1] j + … floats from `bytes`. */
static void winograd_kernel_forward(winograd_work *w, const float *kernel)
{
    const winograd_plan *p = w->plan;
    int64_t cell = p->channels * p->filters;
    w->kernel = (const char *)kernel;
    memcpy(w->strides, (int64_t[4]){3 * cell, cell, p->filters, 1}, sizeof w->strides);
}

/* Turned round, kernel[2-i][2-j][filter][channel]. */
static void winograd_kernel_turned(winograd_work *w, const float *kernel)
{
    const winograd_plan *p = w->plan;
    int64_t cell = p->channels * p->filters;
    w->kernel = (const char *)(kernel + 8 * cell);
    memcpy(w->strides, (int64_t[4]){-3 * cell, -cell, 1, p->channels}, sizeof w->strides);
}

enum { DEEP = 16 }; /* channels that are transformed before their lines are written */

/* Taps [3][3][DEEP][WIDTH] of channels from c on and one panel; what is beyond the kernel is 0. */
static void winograd_taps(const winograd_work *w, int64_t panel, int64_t c, float *to)
{
    const winograd_plan *p = w->plan;
    int64_t deep = p->channels - c < DEEP ? p->channels - c : DEEP, f = panel * WIDTH;
    int64_t wide = p->filters - f < WIDTH ? p->filters - f : WIDTH;
    const int64_t dims[4] = {3, 3, deep, wide},
                  strides[4] = {3 * DEEP * WIDTH, DEEP * WIDTH, WIDTH, 1};
    const int64_t from = (c * w->strides[2] + f * w->strides[3]) * (int64_t)sizeof *to;
    if (deep < DEEP || wide < WIDTH)
        memset(to, 0, 9 * DEEP * WIDTH * sizeof *to);
    if (deep > 0)
        tutti__copy_strided(4, dims, sizeof *to, to, strides, w->kernel + from, w->strides);
}

/* G g G' of WIDTH filters of one channel: `cell` floats from tap to tap, `point` from point to
 * point. */
VEC_INLINE void winograd_kernel_lines(const float *taps, int64_t cell, float *to, int64_t point)
{
    for (int v = 0; v < VECS; v++) {
        vec half[PATCH][3], g[3], u[PATCH];
        VEC_UNROLL for (int j = 0; j < 3; j++)
        {
            VEC_UNROLL for (int i = 0; i < 3; i++) g[i] =
                vec_load(taps + (i * 3 + j) * cell + v * VEC_LANES);
            transform_kernel(g, u);
            VEC_UNROLL for (int i = 0; i < PATCH; i++) half[i][j] = u[i];
        }
        VEC_UNROLL for (int i = 0; i < PATCH; i++)
        {
            transform_kernel(half[i], u);
            VEC_UNROLL for (int j = 0; j < PATCH; j++)
                vec_store(to + (i * PATCH + j) * point + v * VEC_LANES, u[j]);
        }
    }
}

/* Piece: G g G' of one panel. The points of a channel lie far apart, often by a power of two: so
 * DEEP channels are made side by side, and written in lines that are long. */
void winograd_kernel_piece(void *context, int64_t panel)
{
    const winograd_work *w = context;
    int64_t depth = w->plan->depth, point = depth * w->plan->width;
    float taps[9 * DEEP * WIDTH], made[POINTS * DEEP * WIDTH];
    for (int64_t c = 0; c < depth; c += DEEP) {
        int64_t deep = depth - c < DEEP ? depth - c : DEEP;
        float *to = w->panels + (panel * depth + c) * WIDTH;
        winograd_taps(w, panel, c, taps);
        for (int64_t k = 0; k < deep; k++)
            winograd_kernel_lines(taps + k * WIDTH, DEEP * WIDTH, made + k * WIDTH, DEEP * WIDTH);
        for (int64_t i = 0; i < POINTS; i++)
            memcpy(to + i * point, made + i * DEEP * WIDTH, (size_t)(deep * WIDTH) * sizeof *to);
    }
}

/* m[ROWS][WIDTH] = v[ROWS][depth] u[depth][WIDTH] */
static void winograd_tile(int64_t depth, const float *v, const float *u, float *m, int64_t ldm)
{
    vec sum[ROWS][VECS];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < VECS; j++) sum[i][j] =
        vec_splat(0);
#if defined(__aarch64__)
    for (int64_t p = 0; p < depth; p += 4, u += 4 * WIDTH) {
        vec four[ROWS];
        VEC_UNROLL for (int i = 0; i < ROWS; i++) four[i] = vec_load(v + i * depth + p);
#define WINOGRAD_STEP(lane)                                                                        \
    do {                                                                                           \
        vec line[VECS];                                                                            \
        VEC_UNROLL for (int j = 0; j < VECS; j++) line[j] =                                        \
            vec_load(u + (lane)*WIDTH + j * VEC_LANES);                                            \
        VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < VECS; j++)        \
            sum[i][j] = vfmaq_laneq_f32(sum[i][j], line[j], four[i], lane);                        \
    } while (0)
        WINOGRAD_STEP(0);
        WINOGRAD_STEP(1);
        WINOGRAD_STEP(2);
        WINOGRAD_STEP(3);
#undef WINOGRAD_STEP
    }
#else
    for (int64_t p = 0; p < depth; p++, u += WIDTH) {
        vec line[VECS];
        VEC_UNROLL for (int j = 0; j < VECS; j++) line[j] = vec_load(u + j * VEC_LANES);
        VEC_UNROLL for (int i = 0; i < ROWS; i++)
        {
            vec scalar = vec_splat(v[i * depth + p]);
            VEC_UNROLL for (int j = 0; j < VECS; j++) sum[i][j] =
                vec_fma(line[j], scalar, sum[i][j]);
        }
    }
#endif
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < VECS; j++)
        vec_store(m + i * ldm + j * VEC_LANES, sum[i][j]);
}

/* M = V U at one point. */
static void winograd_product(const winograd_work *w, const float *v, int64_t rows, int64_t point,
                             float *m)
{
    const winograd_plan *p = w->plan;
    const float *panels = w->packed != NULL ? w->packed : w->panels;
    for (int64_t f = 0; f < p->width; f += WIDTH) {
        const float *u = panels + (point * p->width + f) * p->depth;
        for (int64_t row = 0; row < rows; row += ROWS)
            winograd_tile(p->depth, v + point * p->point_v + row * p->depth, u,
                          m + point * p->point_m + row * p->width + f, p->width);
    }
}

/* M = V U for a strip of `rows` tiles, a multiple of ROWS. */
static void winograd_products(const winograd_work *w, const float *v, int64_t rows, float *m)
{
    for (int64_t point = 0; point < POINTS; point++)
        winograd_product(w, v, rows, point, m);
}

/* With bounds and residual, of VEC_LANES filters of a pixel, or the `some` last ones. */
VEC_INLINE vec winograd_finished(const winograd_work *w, vec sum, const float *pixel, int64_t some)
{
    float rest[VEC_LANES] = {0};
    const float *residual =
        w->finish->residual == NULL ? NULL : w->finish->residual + (pixel - w->y);
    if (some && residual != NULL)
        residual = memcpy(rest, residual, (size_t)some * sizeof *rest);
    return conv_finished(w->finish, sum, residual, VEC_LANES);
}

/* VEC_LANES filters, or the `some` last ones, of A' m A + bias. */
VEC_INLINE void winograd_output_lanes(const winograd_work *w, winograd_place place, const float *m,
                                      int64_t f, int64_t some, bool plain)
{
    const winograd_plan *p = w->plan;
    vec half[CORE][PATCH], column[PATCH], y[CORE];
    const float *added = w->finish->bias;
    vec bias = added == NULL ? vec_splat(0)
               : some        ? load_some(added + f, some)
                             : vec_load(added + f);
    VEC_UNROLL for (int j = 0; j < PATCH; j++)
    {
        VEC_UNROLL for (int i = 0; i < PATCH; i++) column[i] =
            vec_load(m + (i * PATCH + j) * p->point_m + f);
        transform_output(column, y);
        VEC_UNROLL for (int i = 0; i < CORE; i++) half[i][j] = y[i];
    }
    int64_t rows = p->grid.out[0] - place.row, columns = p->grid.out[1] - place.column;
    float *to =
        w->y +
        ((place.image * p->grid.out[0] + place.row) * p->grid.out[1] + place.column) * p->filters +
        f;
    VEC_UNROLL for (int i = 0; i < CORE; i++)
    {
        if (i == rows)
            return;
        transform_output(half[i], y);
        VEC_UNROLL for (int j = 0; j < CORE; j++)
        {
            if (j >= columns)
                break;
            float *pixel = to + (i * p->grid.out[1] + j) * p->filters;
            vec value = plain ? vec_not_below(y[j] + bias, w->finish->low[0])
                              : winograd_finished(w, y[j] + bias, pixel, some);
            if (some)
                store_some(pixel, value, some);
            else
                vec_store(pixel, value);
        }
    }
}

static void winograd_output(const winograd_work *w, int64_t tile, const float *m)
{
    winograd_place place = winograd_place_of(&w->plan->grid, tile);
    int64_t f = 0, filters = w->plan->filters;
    bool plain = conv_finish_is_plain(w->finish);
    for (; plain && f + VEC_LANES <= filters; f += VEC_LANES)
        winograd_output_lanes(w, place, m, f, 0, true);
    for (; f + VEC_LANES <= filters; f += VEC_LANES)
        winograd_output_lanes(w, place, m, f, 0, false);
    if (f < filters)
        winograd_output_lanes(w, place, m, f, filters - f, false);
    const int64_t *out = w->plan->grid.out;
    for (int64_t i = place.row; w->finish->loop != NULL && i < place.row + CORE && i < out[0];
         i++) {
        int64_t columns = out[1] - place.column < CORE ? out[1] - place.column : CORE;
        conv_activate(w->finish,
                      w->y + ((place.image * out[0] + i) * out[1] + place.column) * filters,
                      columns * filters);
    }
}

/* Piece: one strip. */
static void winograd_strip_piece(void *context, int64_t piece)
{
    winograd_work *w = context;
    const winograd_plan *p = w->plan;
    int64_t first = piece * p->strip, left = p->grid.count - first;
    int64_t tiles = left < p->strip ? left : p->strip, rows = round_to(tiles, ROWS);
    float *v = tutti__slot_take(&w->slots), *m = v + POINTS * p->point_v,
          *zeros = m + POINTS * p->point_m;
    memset(zeros, 0, (size_t)p->depth * sizeof *zeros);
    for (int64_t t = 0; t < tiles; t++)
        winograd_input(&p->grid, first + t, p->channels, w->x, zeros, v + t * p->depth, p->point_v);
    for (int64_t point = 0; point < POINTS && rows > tiles; point++)
        memset(v + point * p->point_v + tiles * p->depth, 0,
               (size_t)((rows - tiles) * p->depth) * sizeof *v);
    winograd_products(w, v, rows, m);
    for (int64_t t = 0; t < tiles; t++)
        winograd_output(w, first + t, m + t * p->width);
    tutti__slot_give(&w->slots, v);
}

/* Pieces of a whole strip: one tile's input, the products at one point, one tile's output. */
static void winograd_input_piece(void *context, int64_t tile)
{
    const winograd_work *w = context;
    const winograd_plan *p = w->plan;
    winograd_input(&p->grid, tile, p->channels, w->x, w->zeros, w->v + tile * p->depth, p->point_v);
}

static void winograd_point_piece(void *context, int64_t point)
{
    const winograd_work *w = context;
    const winograd_plan *p = w->plan;
    int64_t tiles = p->grid.count;
    memset(w->v + point * p->point_v + tiles * p->depth, 0,
           (size_t)((p->strip - tiles) * p->depth) * sizeof *w->v);
    winograd_product(w, w->v, p->strip, point, w->m);
}

static void winograd_output_piece(void *context, int64_t tile)
{
    const winograd_work *w = context;
    winograd_output(w, tile, w->m + tile * w->plan->width);
}

static void winograd_run_whole(const tutti_kernel_call *call, winograd_work *w, float *scratch)
{
    const winograd_plan *p = w->plan;
    w->v = scratch;
    w->m = w->v + POINTS * p->point_v;
    w->zeros = w->m + POINTS * p->point_m;
    memset(w->zeros, 0, (size_t)p->depth * sizeof *w->zeros);
    tutti_parallel(call, p->grid.count, winograd_input_piece, w);
    tutti_parallel(call, POINTS, winograd_point_piece, w);
    tutti_parallel(call, p->grid.count, winograd_output_piece, w);
}

void winograd_run(const tutti_kernel_call *call, const winograd_plan *p, bool turned,
                  const float *x, const float *kernel, const float *packed,
                  const conv_finish *finish)
{
    winograd_work w = {.plan = p,
                       .x = x,
                       .packed = packed,
                       .panels = call->workspace,
                       .y = call->outputs[0].data,
                       .finish = finish};
    float *scratch = w.panels + (packed == NULL ? winograd_kernel_floats(p) : 0);
    if (packed == NULL) {
        (turned ? winograd_kernel_turned : winograd_kernel_forward)(&w, kernel);
        tutti_parallel(call, p->width / WIDTH, winograd_kernel_piece, &w);
    }
    if (p->whole) {
        winograd_run_whole(call, &w, scratch);
        return;
    }
    tutti__slots_start(&w.slots, scratch, winograd_slot_bytes(p), p->threads);
    tutti_parallel(call, (p->grid.count + p->strip - 1) / p->strip, winograd_strip_piece, &w);
}

tutti_status winograd_plan_keep(const winograd_plan *p, void **ret_plan)
{
    winograd_plan *kept = malloc(sizeof *kept);
    if (!kept)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    *kept = *p;
    *ret_plan = kept;
    return TUTTI_OK;
}
