/* pairwise_coupling.c: probabilities of classes from those of each pair of them, as support vector
 * machines need them (Wu, Lin and Weng 2004, the second method; libsvm's stopping rule). */
#include "ops/shape/rule.h"

#include <math.h>
#include <stdlib.h>

static tutti_status pairwise_coupling_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    int64_t classes = RULE_INT(node, "classes");
    TUTTI_TRY(tutti__shape_floats(node, 0));
    if (classes < 2 || classes > 4096)
        return RULE_FAIL(node, TUTTI_INVALID, "classes is %lld, needs 2 to 4096",
                         (long long)classes);
    if (x->rank != 2 || (x->dims[1] != TUTTI_ANY && x->dims[1] != classes * (classes - 1) / 2))
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s, needs [rows,%lld], the pairs of classes",
                         tutti_type_text(x, text), (long long)(classes * (classes - 1) / 2));
    return tutti__shape_output(node, 0, x->dtype, 2, (int64_t[]){x->dims[0], classes});
}

/* q[t][t] = sum over the others of r[j][t]^2, q[t][j] = - r[j][t] r[t][j]. */
static void pairwise_coupling_fill(int64_t k, const double *pairs, double *q)
{
    int64_t pair = 0;
    memset(q, 0, (size_t)(k * k) * sizeof *q);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, pair++) {
            double r = pairs[pair]; /* of i against j */
            q[i * k + i] += (1 - r) * (1 - r);
            q[j * k + j] += r * r;
            q[i * k + j] = q[j * k + i] = -r * (1 - r);
        }
}

/* Makes p q p small, one class after the other; p stays a distribution. */
static void improve(int64_t k, const double *q, double *p, double *qp, double pqp)
{
    for (int64_t t = 0; t < k; t++) {
        double step = (pqp - qp[t]) / q[t * k + t], whole = 1 + step;
        p[t] += step;
        pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / (whole * whole);
        for (int64_t j = 0; j < k; j++) {
            qp[j] = (qp[j] + step * q[t * k + j]) / whole;
            p[j] /= whole;
        }
    }
}

static void couple(int64_t k, const double *q, double *p, double *qp)
{
    for (int64_t t = 0; t < k; t++)
        p[t] = 1 / (double)k;
    for (int64_t round = 0; round < (k > 100 ? k : 100); round++) {
        double pqp = 0, error = 0;
        for (int64_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * p[j];
            pqp += p[t] * qp[t];
        }
        for (int64_t t = 0; t < k; t++)
            error = fmax(error, fabs(qp[t] - pqp));
        if (error < 0.005 / (double)k)
            return;
        improve(k, q, p, qp, pqp);
    }
}

static tutti_status pairwise_coupling_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t k = RULE_INT(call, "classes"), pairs = k * (k - 1) / 2;
    double *memory = malloc((size_t)(k * k + 2 * k + pairs) * sizeof *memory);
    if (!memory)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld classes", (long long)k);
    double *q = memory, *p = q + k * k, *qp = p + k, *row = qp + k;
    for (int64_t i = 0; i < x->dims[0]; i++) {
        for (int64_t j = 0; j < pairs; j++)
            row[j] = tutti_view_get(x, i * pairs + j);
        pairwise_coupling_fill(k, row, q);
        couple(k, q, p, qp);
        for (int64_t j = 0; j < k; j++)
            tutti_view_set(&call->outputs[0], i * k + j, p[j]);
    }
    free(memory);
    return TUTTI_OK;
}

static int pairwise_coupling_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    (void)node;
    tutti__cut_pair(&cuts, 0, 0);
    return cuts.count;
}

extern const tutti_op tutti_op_pairwise_coupling;
tutti_sym(tutti_pairwise_coupling)(tutti_sym x, int64_t classes)
{
    return TUTTI_NARY(&tutti_op_pairwise_coupling, ((tutti_sym[]){x}),
                      TUTTI_INT("classes", classes));
}

static const tutti_attr_spec attrs[] = {
    {"classes", TUTTI_ATTR_INT, NULL},
    {NULL},
};

static const char *const samples[] = {
    "f32[3,3]{0.1:0.9} | classes=3",
    "f64[2,6]{0.1:0.9} | classes=4",
    "f32[2,1]{0.1:0.9} | classes=2",
    NULL,
};

const tutti_op tutti_op_pairwise_coupling = {
    .struct_size = sizeof(tutti_op),
    .name = "pairwise_coupling",
    .version = 1,
    .doc =
        "pairwise_coupling(x; classes): y[row, class] from x[row, pair], the probabilities of the first of each pair of classes",
    .category = "linear",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = pairwise_coupling_infer,
    .cost = tutti__cost_elementwise,
    .split = pairwise_coupling_split,
    .reference = pairwise_coupling_reference,
    .samples = samples,
};
