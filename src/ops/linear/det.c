/* det.c: determinants of square matrices, by elimination with partial pivoting. */
#include "ops/shape/rule.h"

#include <math.h>
#include <stdlib.h>

static tutti_status infer(tutti_infer *node)
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
            for (int64_t k = c; k < n; k++)
                a[r * n + k] -= factor * a[c * n + k];
        }
    }
    return det;
}

static tutti_status reference(const tutti_call *call)
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
        for (int64_t k = 0; k < all; k++)
            a[k] = tutti_view_get(x, i * all + k);
        tutti_view_set(&call->outputs[0], i, determinant(a, n));
    }
    free(a);
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
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
    .infer = infer,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
