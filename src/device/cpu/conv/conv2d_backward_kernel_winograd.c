/* conv2d_backward_kernel_winograd.c: the gradient of a 3 x 3 kernel by transformed tiles.
 *
 * dU[36][channels, filters] = sum over tiles of V' Z, V the transformed input and Z the transformed
 * gradient; then dg = G' dU G. Groups of tiles go by: all threads transform them, then all threads
 * multiply, each at some of the 36 points, so that every sum runs over the tiles in order. */
#include "base/isa.h"
#include "device/cpu/conv/winograd.h"

/* Channels and registers of filters in a product that is held in registers. */
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { ROWS = 6, VECS = 2 };
#elif defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 8, VECS = 2 };
#else
enum { ROWS = 4, VECS = 2 };
#endif
enum { WIDTH = VECS * VEC_LANES, LINE = 16, TRANSFORMED = 8, MOST_GROUP = 256 };
enum { GROUP_FLOATS = 1 << 19, BLOCK_FLOPS = 1 << 20 }; /* V and Z together; a piece's products */

typedef struct plan {
    winograd_grid grid;
    int64_t channels, filters;
    int64_t rows, width; /* of dU: filled up to ROWS, to WIDTH */
    int64_t depth;       /* floats of a tile in V */
    int64_t group;       /* tiles */
    int64_t point_v, point_z;
    int64_t blocks; /* of rows that one piece multiplies */
} plan;

static bool conv2d_backward_kernel_winograd_make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, 0, -1, 1, &c) || !winograd_grid_make(&c, false, &ret->grid))
        return false;
    ret->channels = c.cin;
    ret->filters = c.cout;
    ret->rows = round_to(c.cin, ROWS);
    ret->width = round_to(c.cout, WIDTH);
    ret->depth = round_to(ret->rows, VEC_LANES);
    int64_t group = GROUP_FLOATS / (POINTS * (ret->depth + ret->width));
    group = group > MOST_GROUP ? MOST_GROUP : group;
    group = group > ret->grid.count ? ret->grid.count : group;
    ret->group = round_to(group, TRANSFORMED);
    ret->point_v = ret->group * ret->depth + LINE;
    ret->point_z = ret->group * ret->width + LINE;
    int64_t blocks = BLOCK_FLOPS / (2 * ret->group * ROWS * ret->width) + 1;
    ret->blocks = blocks < ret->rows / ROWS ? blocks : ret->rows / ROWS;
    return c.cin >= 12 && c.cout >= 12 && winograd_filled(&ret->grid) > 0.55;
}

static int conv2d_backward_kernel_winograd_score(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_backward_kernel_winograd_make(query, &p) ? 120 : 0;
}

static int64_t sum_floats(const plan *p)
{
    return POINTS * p->rows * p->width;
}

static int64_t zero_floats(const plan *p)
{
    return round_to(p->depth > p->width ? p->depth : p->width, LINE);
}

static size_t conv2d_backward_kernel_winograd_workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!conv2d_backward_kernel_winograd_make(query, &p))
        return 0;
    return (size_t)(sum_floats(&p) + POINTS * (p.point_v + p.point_z) + zero_floats(&p)) *
           sizeof(float);
}

static tutti_status conv2d_backward_kernel_winograd_prepare(const tutti_kernel_query *query,
                                                            void **ret_plan)
{
    plan *p = malloc(sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    conv2d_backward_kernel_winograd_make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    const plan *plan;
    const float *x, *grad, *zeros;
    float *v, *z, *sums, *kernel_grad;
    int64_t first, tiles; /* of the group at hand */
} work;

/* VEC_LANES filters, or the `some` last ones, of A dy A'. */
VEC_INLINE void gradient_lanes(const float *at[CORE][CORE], int64_t f, int64_t some, float *to,
                               int64_t point)
{
    vec half[PATCH][CORE], y[CORE], z[PATCH];
    VEC_UNROLL for (int j = 0; j < CORE; j++)
    {
        VEC_UNROLL for (int i = 0; i < CORE; i++) y[i] =
            some ? load_some(at[i][j] + f, some) : vec_load(at[i][j] + f);
        transform_gradient(y, z);
        VEC_UNROLL for (int i = 0; i < PATCH; i++) half[i][j] = z[i];
    }
    VEC_UNROLL for (int i = 0; i < PATCH; i++)
    {
        transform_gradient(half[i], z);
        VEC_UNROLL for (int j = 0; j < PATCH; j++)
            vec_store(to + (i * PATCH + j) * point + f, z[j]);
    }
}

static void transform_tile(const work *w, int64_t t)
{
    const plan *p = w->plan;
    const winograd_grid *g = &p->grid;
    winograd_place place = winograd_place_of(g, w->first + t);
    const float *at[CORE][CORE];
    winograd_input(g, w->first + t, p->channels, w->x, w->zeros, w->v + t * p->depth, p->point_v);
    for (int64_t i = 0; i < CORE; i++)
        for (int64_t j = 0; j < CORE; j++) {
            int64_t row = place.row + i, column = place.column + j;
            at[i][j] =
                row < g->out[0] && column < g->out[1]
                    ? w->grad + ((place.image * g->out[0] + row) * g->out[1] + column) * p->filters
                    : w->zeros;
        }
    int64_t f = 0;
    for (; f + VEC_LANES <= p->filters; f += VEC_LANES)
        gradient_lanes(at, f, 0, w->z + t * p->width, p->point_z);
    if (f < p->filters)
        gradient_lanes(at, f, p->filters - f, w->z + t * p->width, p->point_z);
}

static void transform_piece(void *context, int64_t piece)
{
    const work *w = context;
    int64_t end = (piece + 1) * TRANSFORMED;
    end = end < w->tiles ? end : w->tiles;
    for (int64_t t = piece * TRANSFORMED; t < end; t++)
        transform_tile(w, t);
}

/* sum[ROWS][WIDTH] += over tiles v[tile][ROWS]' z[tile][WIDTH] */
static void conv2d_backward_kernel_winograd_multiply(int64_t tiles, const float *v, int64_t ldv,
                                                     const float *z, int64_t ldz, float *sums,
                                                     bool add)
{
    vec sum[ROWS][VECS];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < VECS; j++) sum[i][j] =
        add ? vec_load(sums + (i * VECS + j) * VEC_LANES) : vec_splat(0);
    for (int64_t t = 0; t < tiles; t++, v += ldv, z += ldz) {
        vec line[VECS];
        VEC_UNROLL for (int j = 0; j < VECS; j++) line[j] = vec_load(z + j * VEC_LANES);
#if defined(__aarch64__)
        vec low = vec_load(v), high = vec_load(v + 4);
#define LANE(i)                                                                                    \
    VEC_UNROLL for (int j = 0; j < VECS; j++)                                                      \
    {                                                                                              \
        sum[i][j] = vfmaq_laneq_f32(sum[i][j], line[j], low, i);                                   \
        sum[4 + (i)][j] = vfmaq_laneq_f32(sum[4 + (i)][j], line[j], high, i);                      \
    }
        LANE(0)
        LANE(1)
        LANE(2)
        LANE(3)
#undef LANE
#else
        VEC_UNROLL for (int i = 0; i < ROWS; i++)
        {
            vec scalar = vec_splat(v[i]);
            VEC_UNROLL for (int j = 0; j < VECS; j++) sum[i][j] =
                vec_fma(line[j], scalar, sum[i][j]);
        }
#endif
    }
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < VECS; j++)
        vec_store(sums + (i * VECS + j) * VEC_LANES, sum[i][j]);
}

/* Piece: some rows of dU at one point. dU lies in tiles [point][rows][width / WIDTH][ROWS][WIDTH].
 */
static void multiply_piece(void *context, int64_t piece)
{
    const work *w = context;
    const plan *p = w->plan;
    int64_t all = p->rows / ROWS, pieces = (all + p->blocks - 1) / p->blocks,
            point = piece / pieces, block = piece % pieces * p->blocks;
    int64_t end = block + p->blocks < all ? block + p->blocks : all;
    const float *v = w->v + point * p->point_v, *z = w->z + point * p->point_z;
    for (; block < end; block++)
        for (int64_t f = 0; f < p->width; f += WIDTH)
            conv2d_backward_kernel_winograd_multiply(
                w->tiles, v + block * ROWS, p->depth, z + f, p->width,
                w->sums + ((point * all + block) * p->width + f) * ROWS, w->first > 0);
}

/* Piece: G' dU G of one channel. */
static void back_piece(void *context, int64_t channel)
{
    const work *w = context;
    const plan *p = w->plan;
    int64_t point = p->rows * p->width;
    for (int64_t f = 0; f < p->filters; f += VEC_LANES) {
        const float *from = w->sums + (channel / ROWS * p->width + f / WIDTH * WIDTH) * ROWS +
                            channel % ROWS * WIDTH + f % WIDTH;
        int64_t some = p->filters - f < VEC_LANES ? p->filters - f : VEC_LANES;
        vec half[3][PATCH], u[PATCH], g[3];
        VEC_UNROLL for (int j = 0; j < PATCH; j++)
        {
            VEC_UNROLL for (int i = 0; i < PATCH; i++) u[i] =
                vec_load(from + (i * PATCH + j) * point);
            transform_back(u, g);
            VEC_UNROLL for (int i = 0; i < 3; i++) half[i][j] = g[i];
        }
        VEC_UNROLL for (int i = 0; i < 3; i++)
        {
            transform_back(half[i], g);
            VEC_UNROLL for (int j = 0; j < 3; j++)
                store_some(w->kernel_grad + ((i * 3 + j) * p->channels + channel) * p->filters + f,
                           g[j], some);
        }
    }
}

static tutti_status conv2d_backward_kernel_winograd_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    float *sums = call->workspace, *v = sums + sum_floats(p), *z = v + POINTS * p->point_v,
          *zeros = z + POINTS * p->point_z;
    work w = {.plan = p,
              .x = call->inputs[0].data,
              .grad = call->inputs[1].data,
              .zeros = zeros,
              .v = v,
              .z = z,
              .sums = sums,
              .kernel_grad = call->outputs[0].data};
    int64_t pieces = POINTS * ((p->rows / ROWS + p->blocks - 1) / p->blocks);
    memset(zeros, 0, (size_t)zero_floats(p) * sizeof *zeros);
    for (; w.first < p->grid.count; w.first += p->group) {
        int64_t left = p->grid.count - w.first;
        w.tiles = left < p->group ? left : p->group;
        tutti_parallel(call, (w.tiles + TRANSFORMED - 1) / TRANSFORMED, transform_piece, &w);
        tutti_parallel(call, pieces, multiply_piece, &w);
    }
    tutti_parallel(call, p->channels, back_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_winograd) = {
    .name = "conv2d_backward_kernel.winograd",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_kernel_winograd_score,
    .workspace = conv2d_backward_kernel_winograd_workspace,
    .prepare = conv2d_backward_kernel_winograd_prepare,
    .discard = free,
    .run = conv2d_backward_kernel_winograd_run,
};
