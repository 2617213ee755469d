/* layers.c: TensorFlow's products, norms and reductions. */
#include "bridge/formulas.h"
#include "bridge/graphdef/rules.h"

#include <string.h>

/* ---- products ---- */

static void read_matmul(tutti_graphdef_import *m)
{
    bool batched = strncmp(m->node->op, "Batch", 5) == 0;
    const char *a = batched ? "adj_x" : "transpose_a", *b = batched ? "adj_y" : "transpose_b";
    tutti_sym x = IN(0), y = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_matmul(x, y, .transpose_a = attr_int(m, a, 0) != 0,
                             .transpose_b = attr_int(m, b, 0) != 0));
}

static void read_einsum(tutti_graphdef_import *m)
{
    tutti_sym inputs[8];
    int count = tutti__graphdef_inputs(m->node);
    if (count < 1 || count > 8)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d operands", count);
    for (int i = 0; m->status == TUTTI_OK && i < count; i++)
        inputs[i] = IN(i);
    if (m->status == TUTTI_OK)
        made(m, (tutti_einsum)(attr_string(m, "equation", ""), count, inputs));
}

/* ---- norms ---- */

static double attr_float(const tutti_graphdef_import *m, const char *name, double fallback)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? (double)attr->f : fallback;
}

/* Outputs 1 and 2: mean and variance, of a batch mixed with those of before; 3 and 4: those that
 * the gradient takes. */
static void give_moments(tutti_graphdef_import *m, const tutti_sym *in, const tutti_sym *moments,
                         const tutti_sym *kept)
{
    double part = attr_float(m, "exponential_avg_factor", 1);
    for (int i = 0; i < 2; i++) {
        tutti_sym given = moments[i];
        if (part != 1)
            given = tutti_add(tutti_mul(in[3 + i], 1 - part), tutti_mul(given, part));
        tutti__graphdef_give(m, 1 + i, &(tutti_graphdef_value){.sym = given});
        tutti__graphdef_give(m, 3 + i, &(tutti_graphdef_value){.sym = kept[i]});
    }
}

/* Mean and variance of the batch itself, over all axes but the last; the variance that is given
 * divides by one less. */
static tutti_sym normalized(tutti_graphdef_import *m, const tutti_sym *in, double epsilon)
{
    tutti_axes axes = {.count = tutti_sym_type(in[0]).rank - 1};
    for (int i = 0; i < axes.count; i++)
        axes.values[i] = i;
    tutti_sym mean = tutti_mean(in[0], .axes = axes), spread = tutti_sub(in[0], mean);
    tutti_sym variance = tutti_mean(tutti_square(spread), .axes = axes);
    tutti_sym count =
        tutti_cast((tutti_size)(in[0], axes.count, axes.values), tutti_sym_type(variance).dtype);
    tutti_sym less = tutti_maximum(tutti_add(count, -1), 1);
    tutti_sym whole = tutti_mul(variance, tutti_div(count, less));
    give_moments(m, in, (tutti_sym[]){mean, whole}, (tutti_sym[]){mean, variance});
    tutti_sym scale = tutti_mul(in[1], tutti_rsqrt(tutti_add(variance, epsilon)));
    return tutti_add(tutti_mul(spread, scale), in[2]);
}

static void read_batch_norm(tutti_graphdef_import *m)
{
    double epsilon = attr_float(m, "epsilon", 1e-4);
    bool trains = attr_int(m, "is_training", 1) != 0;
    bool alone = trains && attr_float(m, "exponential_avg_factor", 1) == 1;
    tutti_sym in[5];
    for (int i = 0; i < (alone ? 3 : 5); i++)
        in[i] = IN(i);
    if (m->status != TUTTI_OK)
        return;
    in[0] = tutti__graphdef_channels_last(m, in[0]);
    tutti_sym y = trains ? normalized(m, in, epsilon)
                         : tutti_nn_batch_norm_inference(in[0], in[1], in[2], in[3], in[4],
                                                         .epsilon = epsilon);
    if (!trains)
        for (int i = 0; i < 4; i++)
            tutti__graphdef_give(m, 1 + i, &(tutti_graphdef_value){.sym = in[3 + i % 2]});
    made(m, tutti__graphdef_channels_back(m, y));
}

/* Radius, bias, alpha, beta; ours divides alpha by the number of channels that count. */
static void read_local_norm(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *alpha = tutti__graphdef_attr(m->node, "alpha");
    const tutti_graphdef_attr *beta = tutti__graphdef_attr(m->node, "beta");
    const tutti_graphdef_attr *bias = tutti__graphdef_attr(m->node, "bias");
    int64_t size = 2 * attr_int(m, "depth_radius", 5) + 1;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m,
             tutti_lrn(x, size, .alpha = (alpha ? (double)alpha->f : 1) * (double)size,
                       .beta = beta ? (double)beta->f : 0.5, .bias = bias ? (double)bias->f : 1));
}

/* ---- one number of many ---- */

/* The mean of integers: their sum by their number, cut off towards 0. */
static tutti_sym whole_mean(tutti_sym x, const tutti_axes *axes, bool keep)
{
    tutti_sym count = (tutti_size)(x, axes->count, axes->values);
    tutti_sym sum = tutti_sum(tutti_cast(x, TUTTI_I64), .axes = *axes, .keepdims = keep);
    return tutti_cast(tutti__formula_quotient(sum, count), tutti_sym_type(x).dtype);
}

static void read_reduce(tutti_graphdef_import *m)
{
    static const char *const ops[][2] = {{"Mean", "mean"}, {"Sum", "sum"},          {"Max", "max"},
                                         {"Min", "min"},   {"Prod", "prod"},        {"All", "all"},
                                         {"Any", "any"},   {"EuclideanNorm", "sum"}};
    bool norm = strcmp(m->node->op, "EuclideanNorm") == 0;
    tutti_axes axes;
    tutti_sym x = IN(0);
    size_t i = 0;
    while (strcmp(ops[i][0], m->node->op) != 0)
        i++;
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axes))
        return;
    bool keep = attr_int(m, "keep_dims", 0) != 0;
    if (axes.count > 0 && strcmp(m->node->op, "Mean") == 0 &&
        tutti_dtype_is_int(tutti_sym_type(x).dtype)) {
        made(m, whole_mean(x, &axes, keep));
        return;
    }
    tutti_attr attrs[] = {TUTTI_INTS("axes", axes.count, axes.values), TUTTI_INT("keepdims", keep)};
    x = norm ? tutti_square(x) : x;
    x = axes.count == 0 ? x : tutti_apply_op(m->graph, ops[i][1], 1, &x, 2, attrs);
    made(m, norm ? tutti_sqrt(x) : x);
}

static void read_argmax(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    const tutti_graphdef_attr *type = tutti__graphdef_attr(m->node, "output_type");
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axis) || axis.count != 1)
        return;
    tutti_sym y = strcmp(m->node->op, "ArgMax") == 0 ? tutti_argmax(x, (int)axis.values[0])
                                                     : tutti_argmin(x, (int)axis.values[0]);
    made(m, type && type->type == 3 ? tutti_cast(y, TUTTI_I32) : y);
}

static void read_softmax(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, m->node->op[0] == 'L' ? tutti_log_softmax(x) : tutti_softmax(x));
}

static void read_alpha(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *alpha = tutti__graphdef_attr(m->node, "alpha");
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, m->node->op[0] == 'E' ? tutti_elu(x, 1)
                                      : tutti_leaky_relu(x, alpha ? (double)alpha->f : 0.2));
}

const tutti_graphdef_entry tutti__graphdef_layers[] = {
    {"MatMul", read_matmul},
    {"BatchMatMul", read_matmul},
    {"BatchMatMulV2", read_matmul},
    {"BatchMatMulV3", read_matmul},
    {"Einsum", read_einsum},
    {"FusedBatchNorm", read_batch_norm},
    {"FusedBatchNormV2", read_batch_norm},
    {"FusedBatchNormV3", read_batch_norm},
    {"Mean", read_reduce},
    {"Sum", read_reduce},
    {"Max", read_reduce},
    {"Min", read_reduce},
    {"Prod", read_reduce},
    {"All", read_reduce},
    {"Any", read_reduce},
    {"EuclideanNorm", read_reduce},
    {"LRN", read_local_norm},
    {"ArgMax", read_argmax},
    {"ArgMin", read_argmax},
    {"Softmax", read_softmax},
    {"LogSoftmax", read_softmax},
    {"Elu", read_alpha},
    {"LeakyRelu", read_alpha},
    {NULL, NULL},
};
