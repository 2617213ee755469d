/* svm.c: support vector machines of ai.onnx.ml. Attributes: the kernel with its gamma, coef0 and
 * degree; without support vectors the coefficients are those of a linear model. */
#include "bridge/onnx/learned.h"
#include "ops/build.h"

#include <string.h>

/* k(a, b) of x [rows, features] and the machine's vectors [vectors, features]: [rows, vectors]. */
static tutti_sym kernel_of(tutti_onnx_import *m, tutti_sym x, tutti_sym vectors)
{
    const char *type = tutti__onnx_attr_string(m, "kernel_type", "LINEAR");
    const tutti_onnx_attr *given = tutti__onnx_attr(m->node, "kernel_params", ONNX_FLOATS);
    double p[3] = {0, 0, 3}; /* gamma, coef0, degree */
    for (size_t i = 0; given && i < 3 && i < given->floats.count; i++)
        p[i] = (double)given->floats.items[i];
    tutti_sym dot = tutti_matmul(x, vectors, .transpose_b = true);
    if (strcmp(type, "LINEAR") == 0)
        return dot;
    if (strcmp(type, "RBF") == 0) { /* exp(-gamma |a - b|^2) */
        tutti_sym apart = tutti_sub(tutti_expand_dims(x, 1), tutti_expand_dims(vectors, 0));
        tutti_sym far = tutti_sum(tutti_square(apart), .axes = TUTTI_AXES(2));
        return tutti_exp(tutti_mul(far, -p[0]));
    }
    tutti_sym t = tutti_add(tutti_mul(dot, p[0]), p[1]);
    if (strcmp(type, "POLY") == 0)
        return tutti_pow(t, p[2]);
    if (strcmp(type, "SIGMOID") == 0)
        return tutti_tanh(t);
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "kernel_type %s is not known", type);
    return TUTTI_NO_SYM;
}

/* The kernel of x and `count` support vectors; x itself without. */
static tutti_sym spread_of(tutti_onnx_import *m, int64_t count)
{
    tutti_sym x = tutti__onnx_features(m, 0);
    int64_t all = (int64_t)tutti__onnx_float_count(m, "support_vectors");
    if (!x.node || count == 0)
        return x;
    if (count < 0 || all % count != 0) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%lld numbers make no %lld support vectors",
                              (long long)all, (long long)count);
        return TUTTI_NO_SYM;
    }
    tutti_sym vectors =
        tutti__onnx_floats(m, "support_vectors", 2, (int64_t[]){count, all / count});
    return vectors.node ? kernel_of(m, x, vectors) : TUTTI_NO_SYM;
}

static void read_regressor(tutti_onnx_import *m)
{
    int64_t count = tutti__onnx_attr_int(m, "n_supports", 0), one[1] = {1};
    tutti_sym x = spread_of(m, count);
    int64_t dims[2] = {1, (int64_t)tutti__onnx_float_count(m, "coefficients")};
    tutti_sym w = tutti__onnx_floats(m, "coefficients", 2, dims);
    tutti_sym rho = tutti__onnx_floats(m, "rho", 1, one);
    if (m->status != TUTTI_OK || !x.node || !w.node)
        return;
    tutti_sym y = tutti_matmul(x, w, .transpose_b = true);
    y = rho.node ? tutti_add(y, rho) : y;
    if (tutti__onnx_attr_int(m, "one_class", 0)) {
        tutti_sym inside = tutti_greater(y, 0);
        y = tutti_where(inside, tutti__scalar_like(y, 1), tutti__scalar_like(y, -1));
    }
    tutti__onnx_made(m, 0, tutti__onnx_transformed(m, y));
}

/* ---- classifiers: one machine for each pair of classes ---- */

typedef struct machine {
    int64_t classes, pairs, vectors;
    const int64_t *per_class;
} machine;

static tutti_sym matrix(tutti_onnx_import *m, int64_t rows, int64_t columns, const float *data)
{
    tutti_tensor *tensor;
    if (!data || tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){rows, columns}, data, &tensor)) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* The weight of each vector in each pair's machine: [pairs, vectors]. Vectors stand by class; row r
 * of the coefficients belongs to the class's machine with the r-th of the other classes. */
static tutti_sym pair_weights(tutti_onnx_import *m, const machine *s)
{
    const tutti_onnx_attr *given = tutti__onnx_attr(m->node, "coefficients", ONNX_FLOATS);
    float *all =
        tutti__arena_array(&m->root->arena, (size_t)(s->pairs * s->vectors) + 1, sizeof *all);
    int64_t pair = 0, begins = 0;
    if (!given || (int64_t)given->floats.count != (s->classes - 1) * s->vectors) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "the number of its coefficients does not fit");
        return TUTTI_NO_SYM;
    }
    for (int64_t i = 0; all && i < s->classes; begins += s->per_class[i++]) {
        int64_t other = begins + s->per_class[i];
        for (int64_t j = i + 1; j < s->classes; other += s->per_class[j++], pair++) {
            float *row = all + pair * s->vectors;
            const float *of_i = given->floats.items + (j - 1) * s->vectors;
            const float *of_j = given->floats.items + i * s->vectors;
            memcpy(row + begins, of_i + begins, (size_t)s->per_class[i] * sizeof *row);
            memcpy(row + other, of_j + other, (size_t)s->per_class[j] * sizeof *row);
        }
    }
    return matrix(m, s->pairs, s->vectors, all);
}

/* How many machines chose each class: a score above 0 is a vote for the first of the pair. */
static tutti_sym votes_of(tutti_onnx_import *m, const machine *s, tutti_sym scores)
{
    size_t size = (size_t)(s->pairs * s->classes) + 1;
    float *first = tutti__arena_array(&m->root->arena, size, sizeof *first);
    float *second = tutti__arena_array(&m->root->arena, size, sizeof *second);
    int64_t pair = 0;
    for (int64_t i = 0; first && second && i < s->classes; i++)
        for (int64_t j = i + 1; j < s->classes; j++, pair++) {
            first[pair * s->classes + i] = 1;
            second[pair * s->classes + j] = 1;
        }
    tutti_sym won = tutti_cast(tutti_greater(scores, 0), TUTTI_F32);
    tutti_sym lost = tutti_add(tutti_neg(won), 1);
    return tutti_add(tutti_matmul(won, matrix(m, s->pairs, s->classes, first)),
                     tutti_matmul(lost, matrix(m, s->pairs, s->classes, second)));
}

/* Platt's probabilities of each pair, coupled to those of the classes. */
static tutti_sym probabilities(tutti_onnx_import *m, const machine *s, tutti_sym scores)
{
    tutti_sym a = tutti__onnx_floats(m, "prob_a", 1, &s->pairs);
    tutti_sym b = tutti__onnx_floats(m, "prob_b", 1, &s->pairs);
    if (!a.node || !b.node)
        return TUTTI_NO_SYM;
    tutti_sym each = tutti_sigmoid(tutti_neg(tutti_add(tutti_mul(scores, a), b)));
    return tutti_pairwise_coupling(tutti_clip(each, 1e-7, 1 - 1e-7), s->classes);
}

static bool read_machine(tutti_onnx_import *m, machine *s)
{
    int classes = tutti__onnx_attr_ints(m, "vectors_per_class", &s->per_class);
    s->classes = classes;
    s->pairs = s->classes * (s->classes - 1) / 2;
    for (int i = 0; i < classes; i++) {
        if (s->per_class[i] < 0 || s->per_class[i] > 1 << 24)
            classes = 0;
        s->vectors += classes ? s->per_class[i] : 0;
    }
    if (classes >= 2 && classes <= 4096 && s->vectors > 0)
        return true;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its classes have no support vectors");
    return false;
}

/* Without support vectors: one row of coefficients for each class. */
static void read_linear(tutti_onnx_import *m)
{
    size_t classes;
    tutti_sym x = tutti__onnx_features(m, 0), rho;
    int64_t count = (int64_t)tutti__onnx_float_count(m, "coefficients"), one[1] = {1};
    tutti__onnx_labels(m, &classes);
    if (m->status != TUTTI_OK || !x.node || classes == 0)
        return;
    tutti_sym w = tutti__onnx_floats(m, "coefficients", 2,
                                     (int64_t[]){(int64_t)classes, count / (int64_t)classes});
    if (!w.node || !(rho = tutti__onnx_floats(m, "rho", 1, one)).node)
        return;
    tutti__onnx_classified(m, tutti_add(tutti_matmul(x, w, .transpose_b = true), rho));
}

static void read_classifier(tutti_onnx_import *m)
{
    machine s = {0};
    size_t classes;
    const int64_t *unused;
    if (tutti__onnx_attr_ints(m, "vectors_per_class", &unused) == 0) {
        read_linear(m);
        return;
    }
    if (!read_machine(m, &s))
        return;
    tutti_sym spread = spread_of(m, s.vectors), w = pair_weights(m, &s);
    tutti_sym rho = tutti__onnx_floats(m, "rho", 1, &s.pairs);
    tutti_sym labels = tutti__onnx_labels(m, &classes);
    if (m->status != TUTTI_OK || !spread.node || !rho.node)
        return;
    tutti_sym scores = tutti_add(tutti_matmul(spread, w, .transpose_b = true), rho);
    tutti_sym each = probabilities(m, &s, scores);
    tutti_sym best = each.node ? each : votes_of(m, &s, scores);
    if (!each.node && s.classes == 2) /* of two classes both have a score */
        scores = tutti_concatenate(TUTTI_SYMS(scores, tutti_neg(scores)), .axis = 1);
    tutti__onnx_made(m, 0, tutti_gather(labels, tutti_argmax(best, 1), 0));
    tutti__onnx_made(m, 1, tutti__onnx_transformed(m, each.node ? each : scores));
}

/* A list of maps from labels to scores: the table itself, whose columns are the labels. */
static void read_zip_map(tutti_onnx_import *m)
{
    tutti__onnx_made_known(m, 0, tutti__onnx_input(m, 0));
}

const tutti_onnx_op tutti_onnx_svm_regressor = {
    .type = "SVMRegressor",
    .domain = "ai.onnx.ml",
    .read = read_regressor,
};

const tutti_onnx_op tutti_onnx_svm_classifier = {
    .type = "SVMClassifier",
    .domain = "ai.onnx.ml",
    .read = read_classifier,
};

const tutti_onnx_op tutti_onnx_zip_map = {
    .type = "ZipMap",
    .domain = "ai.onnx.ml",
    .read = read_zip_map,
    .note = "gives the table of scores, a column for each label, in the place of a list of maps",
};
