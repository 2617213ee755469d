/* matmul_f64.c: products of matrices of doubles, y[.., m, n] = a[.., m, k] b[.., k, n], in tiles
 * that stay in registers. Blocks of b along k are packed into panels of WIDTH columns; a stays
 * where it is. For few rows b is read where it stands, but for the last columns.
 *
 * Every element is the sum over k, in order, of multiply-adds (fused where the set has them) from
 * zero: it depends on its row and its column only. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/matmul_batch.h"
#include "device/cpu/vector_f64.h"

#if VEC_LANES == 16 || VEC_NEON /* sets with 32 registers */
enum { ROWS = 8 };
#else
enum { ROWS = 4 };
#endif
enum {
    LANES = VEC_BYTES / 8,
    WIDTH = 2 * LANES,
    DEPTH = 256,    /* of a block along k */
    ROW_PIECE = 64, /* rows and panels of a task */
    PANEL_PIECE = 8,
    FEW = 8, /* rows for which nothing but the last columns of b is packed */
};

typedef struct f64_plan {
    int64_t m, n, k, a_row, a_step;
    matmul_batch batch;
    bool trans_b, direct; /* direct: b is not packed, but for its last columns */
    int64_t panels;
} f64_plan;

typedef struct block {
    const f64_plan *plan;
    const double *a, *b;
    double *packed, *y;
    int64_t first, depth; /* along k */
} block;

/* c[rows, WIDTH] = or += a block's rows times one panel. */
VEC_INLINE void tile(int rows, const block *w, const double *a, const double *b, int64_t ldb,
                     double *c, int64_t ldc)
{
    const int64_t row = w->plan->a_row, along = w->plan->a_step, depth = w->depth;
    dvec sum[ROWS][2];
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < 2; j++) sum[i][j] =
        w->first > 0 ? dvec_load(c + i * ldc + j * LANES) : (dvec){0};
    for (int64_t p = 0; p < depth; p++, b += ldb, a += along) {
        dvec line[2];
        VEC_UNROLL for (int j = 0; j < 2; j++) line[j] = dvec_load(b + j * LANES);
        VEC_UNROLL for (int i = 0; i < rows; i++)
        {
            dvec scalar = a[i * row] - (dvec){0};
            VEC_UNROLL for (int j = 0; j < 2; j++) sum[i][j] = dvec_fma(line[j], scalar, sum[i][j]);
        }
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < 2; j++) *
        (dvec_unaligned *)(c + i * ldc + j * LANES) = sum[i][j];
}

/* The first rows of `left`; how many. */
static int64_t some_rows(int64_t left, const block *w, const double *a, const double *b,
                         int64_t ldb, double *c, int64_t ldc)
{
    if (left >= ROWS) {
        tile(ROWS, w, a, b, ldb, c, ldc);
        return ROWS;
    }
    if (left >= 4) {
        tile(4, w, a, b, ldb, c, ldc);
        return 4;
    }
    if (left >= 2) {
        tile(2, w, a, b, ldb, c, ldc);
        return 2;
    }
    tile(1, w, a, b, ldb, c, ldc);
    return 1;
}

/* The last columns: computed in a panel of their own, of which the part that exists is stored. */
static void edge_rows(int64_t rows, int64_t columns, const block *w, const double *a,
                      const double *b, double *y)
{
    const f64_plan *p = w->plan;
    double whole[ROW_PIECE * WIDTH] = {0};
    size_t bytes = (size_t)columns * sizeof(double);
    for (int64_t i = 0; w->first > 0 && i < rows; i++)
        memcpy(whole + i * WIDTH, y + i * p->n, bytes);
    for (int64_t i = 0; i < rows;)
        i += some_rows(rows - i, w, a + i * p->a_row, b, WIDTH, whole + i * WIDTH, WIDTH);
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + i * p->n, whole + i * WIDTH, bytes);
}

/* Some rows by some panels. */
static void multiply_piece(void *context, int64_t index)
{
    const block *w = context;
    const f64_plan *p = w->plan;
    int64_t groups = (p->panels + PANEL_PIECE - 1) / PANEL_PIECE;
    int64_t start = index / groups * ROW_PIECE, panel = index % groups * PANEL_PIECE;
    int64_t rows = p->m - start < ROW_PIECE ? p->m - start : ROW_PIECE;
    int64_t end = panel + PANEL_PIECE < p->panels ? panel + PANEL_PIECE : p->panels;
    const double *a = w->a + start * p->a_row + w->first * p->a_step;
    for (; panel < end; panel++) {
        int64_t column = panel * WIDTH, columns = p->n - column;
        const double *b = w->packed + column * w->depth;
        double *y = w->y + start * p->n + column;
        int64_t ldb = WIDTH;
        if (columns < WIDTH) {
            edge_rows(rows, columns, w, a, b, y);
            continue;
        }
        if (p->direct) {
            b = w->b + w->first * p->n + column;
            ldb = p->n;
        }
        for (int64_t i = 0; i < rows;)
            i += some_rows(rows - i, w, a + i * p->a_row, b, ldb, y + i * p->n, p->n);
    }
}

static void pack_panel(void *context, int64_t panel)
{
    const block *w = context;
    const f64_plan *p = w->plan;
    int64_t column = panel * WIDTH, columns = p->n - column < WIDTH ? p->n - column : WIDTH;
    double *to = w->packed + column * w->depth;
    if (p->direct && columns == WIDTH)
        return;
    for (int64_t q = 0; q < w->depth; q++, to += WIDTH) {
        const double *line = p->trans_b ? w->b + column * p->k + w->first + q
                                        : w->b + (w->first + q) * p->n + column;
        int64_t step = p->trans_b ? p->k : 1;
        for (int64_t j = 0; j < columns; j++)
            to[j] = line[j * step];
        for (int64_t j = columns; j < WIDTH; j++)
            to[j] = 0;
    }
}

static f64_plan matmul_f64_plan_of(const tutti_infer *node)
{
    const tutti_type *a = &node->inputs[0], *b = &node->inputs[1], *y = &node->outputs[0];
    bool trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    f64_plan p = {
        .m = y->dims[y->rank - 2], .n = y->dims[y->rank - 1], .batch = matmul_batch_of(node)};
    p.trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    p.k = a->dims[a->rank - 1 - trans_a];
    p.a_row = trans_a ? 1 : p.k;
    p.a_step = trans_a ? p.m : 1;
    if (b->rank == 2 && !trans_a) { /* the batch is more rows */
        p.m *= p.batch.count;
        p.batch.count = 1;
        p.batch.rank = 0;
    }
    p.direct = p.m <= FEW && !p.trans_b;
    p.panels = (p.n + WIDTH - 1) / WIDTH;
    return p;
}

/* Whatever the number of rows. */
static int matmul_f64_score(const tutti_kernel_query *query)
{
    if (query->node.outputs[0].dtype != TUTTI_F64)
        return 0;
    f64_plan p = matmul_f64_plan_of(&query->node);
    return p.n >= 4 && p.k >= 4 && p.n * p.k >= 64 ? 110 : 0;
}

static size_t matmul_f64_workspace(const tutti_kernel_query *query)
{
    f64_plan p = matmul_f64_plan_of(&query->node);
    return (size_t)(p.panels * WIDTH * (p.k < DEPTH ? p.k : DEPTH)) * sizeof(double);
}

static tutti_status matmul_f64_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    f64_plan plan = matmul_f64_plan_of(&query->node);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

static void matmul_f64_multiply(const tutti_kernel_call *call, block w)
{
    const f64_plan *p = w.plan;
    int64_t groups = (p->panels + PANEL_PIECE - 1) / PANEL_PIECE;
    int64_t pieces = (p->m + ROW_PIECE - 1) / ROW_PIECE * groups;
    for (; w.first < p->k; w.first += DEPTH) {
        w.depth = p->k - w.first < DEPTH ? p->k - w.first : DEPTH;
        tutti_parallel(call, p->panels, pack_panel, &w);
        tutti_parallel(call, pieces, multiply_piece, &w);
    }
}

static tutti_status matmul_f64_run(const tutti_kernel_call *call)
{
    const f64_plan *p = call->plan;
    for (int64_t i = 0; i < p->batch.count; i++) {
        block w = {p, call->inputs[0].data, call->inputs[1].data, call->workspace,
                   (double *)call->outputs[0].data + i * p->m * p->n};
        int64_t a, b;
        matmul_batch_at(&p->batch, i, &a, &b);
        w.a += a;
        w.b += b;
        matmul_f64_multiply(call, w);
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_f64) = {
    .name = "matmul.f64",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_f64_score,
    .workspace = matmul_f64_workspace,
    .prepare = matmul_f64_prepare,
    .discard = free,
    .run = matmul_f64_run,
};
