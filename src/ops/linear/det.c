/* det.c: determinants of square matrices, by elimination with partial pivoting. */
#include <math.h>
#include <stdlib.h>

#include "ops/shape/move.h"
#include "tensor/dtype.h"

static tutti_status det_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t same;
    const tutti_type *x = &node->inputs[0];
    TUTTI_TRY(tutti__shape_floats(node, 0));
    if (x->rank < 2 || !tutti__shape_merge(x->dims[x->rank - 1], x->dims[x->rank - 2], &same))
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s, needs square matrices [..,n,n]",
                         tutti_type_text(x, text));
    return tutti__shape_output(node, 0, x->dtype, x->rank - 2, x->dims);
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* row -= factor * pivot */
static void subtract(double *row, const double *pivot, double factor, int64_t count)
{
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
        pair low = *(const pair *)(pivot + k), high = *(const pair *)(pivot + k + 2);
        *(pair *)(row + k) -= factor * low;
        *(pair *)(row + k + 2) -= factor * high;
    }
    for (; k < count; k++)
        row[k] -= factor * pivot[k];
}

static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++)
            best = fabs(a[r * n + c]) > fabs(a[best * n + c]) ? r : best;
        det *= best == c ? a[c * n + c] : -a[best * n + c];
        if (a[best * n + c] == 0)
            return det;
        for (int64_t k = 0; best != c && k < n; k++) {
            double swap = a[c * n + k];
            a[c * n + k] = a[best * n + k];
            a[best * n + k] = swap;
        }
        for (int64_t r = c + 1; r < n; r++) {
            double factor = a[r * n + c] / a[c * n + c];
            subtract(a + r * n + c, a + c * n + c, factor, n - c);
        }
    }
    return det;
}

static tutti_status det_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t n = x->dims[x->rank - 1], count = tutti_view_count(&call->outputs[0]), all;
    double *a = tutti__mul_size(n, n, &all) && all < INT64_MAX / 8 - 1
                    ? calloc((size_t)all + 1, sizeof *a)
                    : NULL;
    if (!a)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for a matrix of %lld rows",
                         (long long)n);
    for (int64_t i = 0; i < count; i++) {
        tutti__elements_to_doubles(x->dtype, tutti__element(x, i * all), all, a);
        tutti_view_set(&call->outputs[0], i, determinant(a, n));
    }
    free(a);
    return TUTTI_OK;
}

static int det_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank - 2; i++)
        tutti__cut_pair(&cuts, i, i);
    return cuts.count;
}

extern const tutti_op tutti_op_det;
tutti_sym(tutti_det)(tutti_sym x)
{
    return tutti__nary(&tutti_op_det, 1, (tutti_sym[]){x}, 0, NULL);
}

static const char *const samples[] = {
    "f32[3,3]", "f64[2,3,4,4]", "f32[2,2]{=0,1,1,0}", "f32[2,0,0]", NULL,
};

const tutti_op tutti_op_det = {
    .struct_size = sizeof(tutti_op),
    .name = "det",
    .version = 1,
    .doc = "det(x): the determinant of each matrix x[..,n,n]",
    .category = "linear",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = det_infer,
    .cost = tutti__cost_elementwise,
    .split = det_split,
    .reference = det_reference,
    .samples = samples,
};
