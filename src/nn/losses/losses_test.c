/* losses_test.c: every loss against numbers that Keras 3.15 gives (quantile: its formula), its
 * reductions, its gradient against differences and at extreme outputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "nn/losses/loss.h"
#include "tutti/tutti.h"

enum { ROWS = 4, COLUMNS = 3, COUNT = ROWS * COLUMNS };
typedef float matrix[COUNT];

static const matrix P = {.7f, .2f, .1f, .1f, .6f, .3f, .25f, .25f, .5f, .05f, .9f, .05f};
static const matrix Z = {2, -1, .5f, -3, .25f, 1, 0, 4, -2, 1.5f, 1.5f, -.5f};
static const matrix ABS_Z = {2, 1, .5f, 3, .25f, 1, 0, 4, 2, 1.5f, 1.5f, .5f};
static const matrix ONE = {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0};
static const matrix BITS = {1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0};
static const matrix SIGNS = {1, -1, 1, -1, 1, 1, -1, -1, 1, 1, 1, -1};
static const matrix SHARES = {.5f, 0, .5f, 0, .5f, .5f, 0, 0, 1, .5f, .5f, 0};
static const matrix R = {1, 2.5f, -3, .5f, -.25f, 4, .125f, 7, 2, -1, -2, 3};
static const matrix ABS_R = {1, 2.5f, 3, .5f, .25f, 4, .125f, 7, 2, 1, 2, 3};
static const float weights[ROWS] = {.5f, 2, 0, 1};

/* `mean` over all; then with `weights`: sum / 4, sum, sum / sum of weights. */
typedef struct example {
    const char *name;
    const float *truth, *guess;
    tutti_loss settings;
    double each[ROWS], mean, weighted, sum, by_weight;
} example;

/* clang-format off */
static const example examples[] = {
    {"cross_entropy", ONE, P, {0}, {0.356674969, 1.20397282, 0.693147182, 0.105360538},
     0.589788854, 0.672910929, 2.69164371, 0.769041061},
    {"cross_entropy", ONE, Z, {.from_logits = true},
     {0.241311327, 0.399233848, 6.02058125, 0.75862366}, 1.85493755, 0.419436753, 1.67774701,
     0.479356289},
    {"cross_entropy", ONE, Z, {.from_logits = true, .label_smoothing = 0.1},
     {0.391311347, 0.557567179, 5.75391483, 0.825290322}, 1.88202095, 0.534020066, 2.13608027,
     0.610308647},
    {"cross_entropy", ONE, P, {.label_smoothing = 0.1},
     {0.463297427, 1.21748841, 0.739356995, 0.298052013}, 0.67954874, 0.741169393, 2.96467757,
     0.847050726},
    {"binary_cross_entropy", BITS, P, {0}, {0.960801184, 0.606719673, 0.422837108, 1.05079544},
     0.760288358, 0.686158836, 2.74463534, 0.784181535},
    {"binary_cross_entropy", BITS, Z, {.from_logits = true, .label_smoothing = 0.2},
     {0.421422154, 0.454262823, 2.07940841, 0.408967823}, 0.841015279, 0.38205114, 1.52820456,
     0.436629862},
    {"binary_focal", BITS, P, {0}, {0.635373414, 0.224244103, 0.06974902, 0.901610076},
     0.457744151, 0.416946232, 1.66778493, 0.476509988},
    {"binary_focal", BITS, Z, {.from_logits = true, .gamma = 1.5, .alpha = 0.25},
     {0.0205227062, 0.017670529, 1.18534005, 0.0301093515}, 0.31341067, 0.0189279411, 0.0757117644,
     0.0216319319},
    {"mse", R, Z, {0}, {8.5, 7.16666651, 8.33854198, 10.25}, 8.56380272, 7.20833302, 28.8333321,
     8.23809528},
    {"mae", R, Z, {0}, {2.66666675, 2.33333325, 2.375, 3.16666675}, 2.63541675, 2.29166675,
     9.16666698, 2.61904764},
    {"mape", R, Z, {0}, {118.888893, 325, 114.285721, 180.555542}, 184.682526, 222.5, 890,
     254.285721},
    {"msle", ABS_R, Z, {0}, {0.898614347, 0.33466354, 0.480574995, 0.668281972}, 0.595533729,
     0.446729064, 1.78691626, 0.510547519},
    {"huber", R, Z, {0}, {2.16666675, 1.875, 2.00260425, 2.66666675}, 2.17773438, 1.875, 7.5,
     2.14285707},
    {"huber", R, Z, {.delta = 2.5}, {3.91666675, 3.375, 3.75260425, 4.79166651}, 3.95898438, 3.375,
     13.5, 3.85714293},
    {"log_cosh", R, Z, {0}, {2.01643658, 1.74573576, 1.87476981, 2.47636557}, 2.02832699,
     1.74401391, 6.97605562, 1.9931587},
    {"quantile", R, Z, {.quantile = 0.3}, {1.4, 0.7666667, 0.7125, 1.75}, 1.157291667, 0.995833333,
     3.98333333, 1.138095238},
    {"hinge", BITS, Z, {0}, {0.166666672, 0.25, 3, 0.166666672}, 0.895833373, 0.1875, 0.75,
     0.214285716},
    {"squared_hinge", SIGNS, Z, {0}, {0.0833333358, 0.1875, 11.666667, 0.0833333358}, 3.00520825,
     0.125, 0.5, 0.142857149},
    {"categorical_hinge", ONE, Z, {0}, {0, 0.25, 7, 1}, 2.0625, 0.375, 1.5, 0.428571433},
    {"kl_divergence", SHARES, P, {0}, {0.636481404, 0.164250642, 0.693144262, 0.857397914},
     0.587818503, 0.376034975, 1.5041399, 0.429754257},
    {"poisson", ABS_R, ABS_Z, {0}, {1.62876451, 1.34908903, -1.02519763, 1.45434844}, 0.851751089,
     1.24172723, 4.96690893, 1.41911685},
    {"cosine_similarity", R, Z, {0}, {0.216532812, -0.190252945, -0.737045527, 0.735767126},
     0.00625036657, 0.115881912, 0.46352765, 0.132436469},
};
/* clang-format on */
enum { EXAMPLES = sizeof examples / sizeof *examples };

static tutti_sym use(tutti_eager *eager, int rank, const int64_t *dims, const float *data)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, rank, dims, data, &tensor));
    tutti_sym sym = tutti_eager_feed(eager, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

static tutti_sym use_matrix(tutti_eager *eager, const float *data)
{
    return use(eager, 2, (int64_t[]){ROWS, COLUMNS}, data);
}

static void check_number(const char *name, const char *what, double actual, double expected)
{
    if (!(fabs(actual - expected) <= 2e-6 * (1 + fabs(expected))))
        tutti__test_fail(__FILE__, __LINE__, "%s: %s is %.9g, not %.9g", name, what, actual,
                         expected);
}

TUTTI_TEST(losses_equal_those_of_keras)
{
    tutti_eager *eager;
    CHECK_OK(tutti_eager_open(&eager));
    for (int i = 0; i < EXAMPLES; i++) {
        const example *e = &examples[i];
        tutti_loss loss = tutti_loss_by_name(e->name, &e->settings);
        CHECK(loss.def);
        tutti_sym truth = use_matrix(eager, e->truth), guess = use_matrix(eager, e->guess);
        tutti_tensor *each;
        CHECK_OK(tutti_value(tutti_loss_per_example(&loss, truth, guess), &each));
        CHECK_INT(tutti_tensor_rank(each), 1);
        for (int row = 0; row < ROWS; row++)
            check_number(e->name, "a loss", tutti_tensor_get(each, row), e->each[row]);
        tutti_tensor_release(each);
        tutti_sym w = use(eager, 1, (int64_t[]){ROWS}, weights);
        check_number(e->name, "the mean",
                     tutti_scalar_value(tutti_compute_loss(&loss, truth, guess)), e->mean);
        check_number(e->name, "the weighted mean",
                     tutti_scalar_value(tutti_compute_loss(&loss, truth, guess, .weights = w)),
                     e->weighted);
        loss.reduction = TUTTI_LOSS_SUM;
        check_number(e->name, "the sum",
                     tutti_scalar_value(tutti_compute_loss(&loss, truth, guess, .weights = w)),
                     e->sum);
        loss.reduction = TUTTI_LOSS_WEIGHTED_MEAN;
        check_number(e->name, "the mean by weight",
                     tutti_scalar_value(tutti_compute_loss(&loss, truth, guess, .weights = w)),
                     e->by_weight);
        CHECK_OK(tutti_eager_step(eager));
    }
    tutti_eager_close(eager);
}

static double loss_at(tutti_eager *eager, const tutti_loss *loss, const float *truth,
                      const float *guess)
{
    double value = tutti_scalar_value(
        tutti_compute_loss(loss, use_matrix(eager, truth), use_matrix(eager, guess)));
    CHECK_OK(tutti_eager_step(eager));
    return value;
}

static void gradient_at(tutti_eager *eager, const tutti_loss *loss, const float *truth,
                        const float *guess, double *ret)
{
    tutti_sym y = use_matrix(eager, truth), p = use_matrix(eager, guess), value;
    tutti_grad grad;
    tutti_tensor *dense;
    TUTTI_TAPE(tape, eager) {
        tutti_tape_watch(&tape, p);
        value = tutti_compute_loss(loss, y, p);
    }
    tutti_tape_gradients(&tape, value, 1, &p, &grad);
    CHECK_OK(tutti_value(tutti_grad_dense(grad, p), &dense));
    for (int i = 0; i < COUNT; i++)
        ret[i] = tutti_tensor_get(dense, i);
    tutti_tensor_release(dense);
    CHECK_OK(tutti_eager_step(eager));
}

TUTTI_TEST(losses_have_the_gradient_of_their_differences)
{
    tutti_eager *eager;
    CHECK_OK(tutti_eager_open(&eager));
    for (int i = 0; i < EXAMPLES; i++) {
        const example *e = &examples[i];
        tutti_loss loss = tutti_loss_by_name(e->name, &e->settings);
        double gradient[COUNT];
        matrix at;
        /* Away from kinks: msle below 0, poisson at 0, hinges and ties. */
        for (int k = 0; k < COUNT; k++)
            at[k] = e->guess[k] + (e->guess == P ? 0.f : 0.037f * (float)(k % 5 + 1));
        gradient_at(eager, &loss, e->truth, at, gradient);
        for (int k = 0; k < COUNT; k++) {
            float step = 4e-3f, here = at[k];
            at[k] = here + step;
            double above = loss_at(eager, &loss, e->truth, at);
            at[k] = here - step;
            double below = loss_at(eager, &loss, e->truth, at);
            at[k] = here;
            double slope = (above - below) / (2 * (double)step);
            if (fabs(slope - gradient[k]) > 4e-3 * (1 + fabs(slope)))
                tutti__test_fail(__FILE__, __LINE__, "%s (%d): gradient %d is %g, not %g", e->name,
                                 i, k, gradient[k], slope);
        }
    }
    tutti_eager_close(eager);
}

TUTTI_TEST(losses_say_which_of_their_values_is_missing)
{
    for (int i = 0; i < EXAMPLES; i++)
        for (int missing = 0; missing < 2; missing++) {
            char part[120];
            tutti_graph *g;
            tutti_loss loss = tutti_loss_by_name(examples[i].name, &examples[i].settings);
            CHECK_OK(tutti_graph_create(&g));
            tutti_sym x = tutti_placeholder(g, TUTTI_F32, 4, 3);
            tutti_sym truth = missing == 0 ? TUTTI_NO_SYM : x,
                      guess = missing == 1 ? TUTTI_NO_SYM : x;
            CHECK(!tutti_sym_ok(tutti_compute_loss(&loss, truth, guess)));
            CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
            snprintf(part, sizeof part, "loss %s: the %s is not a symbol", examples[i].name,
                     missing == 0 ? "target" : "output");
            CHECK_CONTAINS(tutti_error_message(), part);
            CHECK_CONTAINS(tutti_error_message(), "losses_test.c:");
            tutti_graph_destroy(g);
        }
}

/* Outputs far outside: the loss and its gradient stay finite. */
TUTTI_TEST(losses_are_finite_at_extreme_outputs)
{
    static const matrix logits = {1e4f, -1e4f, 0, -1e4f, 1e4f, 1e4f, 80, -80, -1e4f, -90, 90, 1e4f};
    static const matrix shares = {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1};
    tutti_eager *eager;
    CHECK_OK(tutti_eager_open(&eager));
    for (int i = 0; i < EXAMPLES; i++) {
        const example *e = &examples[i];
        tutti_loss loss = tutti_loss_by_name(e->name, &e->settings);
        bool likelihood = e->guess == P || e->guess == ABS_Z;
        const float *guess = likelihood ? shares : logits;
        double gradient[COUNT];
        if (!isfinite(loss_at(eager, &loss, e->truth, guess)))
            tutti__test_fail(__FILE__, __LINE__, "%s (%d) is not finite", e->name, i);
        gradient_at(eager, &loss, e->truth, guess, gradient);
        for (int k = 0; k < COUNT; k++)
            if (!isfinite(gradient[k]))
                tutti__test_fail(__FILE__, __LINE__, "%s (%d): gradient %d is %g", e->name, i, k,
                                 gradient[k]);
    }
    tutti_eager_close(eager);
}

TUTTI_TEST(losses_sparse_cross_entropy_takes_class_numbers)
{
    static const int64_t classes[ROWS] = {0, 2, 2, 1};
    static const double each[2][ROWS] = {{0.241311327, 0.399233818, 6.02058125, 0.75862366},
                                         {0.356674969, 1.20397282, 0.693147182, 0.10536056}};
    tutti_eager *eager;
    CHECK_OK(tutti_eager_open(&eager));
    for (int k = 0; k < 4; k++) {
        tutti_tensor *labels, *values;
        tutti_loss loss = tutti_sparse_cross_entropy(.from_logits = k % 2 == 0);
        /* [batch] and [batch, 1] */
        CHECK_OK(
            tutti_tensor_from(TUTTI_I64, k < 2 ? 1 : 2, (int64_t[]){ROWS, 1}, classes, &labels));
        tutti_sym truth = tutti_eager_feed(eager, labels);
        CHECK_OK(tutti_value(
            tutti_loss_per_example(&loss, truth, use_matrix(eager, k % 2 == 0 ? Z : P)), &values));
        for (int i = 0; i < ROWS; i++)
            CHECK_NEAR(tutti_tensor_get(values, i), each[k % 2][i], 1e-5);
        tutti_tensor_release(labels);
        tutti_tensor_release(values);
        CHECK_OK(tutti_eager_step(eager));
    }
    tutti_eager_close(eager);
}

static tutti_sym cubes(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    tutti_sym error = tutti_abs(tutti_sub(truth, guess));
    tutti_sym cube = tutti_mul(tutti_square(error), error);
    return tutti_mul(tutti_mean(cube, .axes = TUTTI_AXES(-1)), *(const double *)loss->context);
}

TUTTI_TEST(losses_of_the_user_and_names_that_are_none)
{
    double factor = 0.5;
    tutti_loss loss = tutti_custom_loss(cubes, &factor, "cubes");
    tutti_eager *eager;
    CHECK_OK(tutti_eager_open(&eager));
    tutti_sym truth = use_matrix(eager, R), guess = use_matrix(eager, Z);
    double expected = 0;
    for (int i = 0; i < COUNT; i++)
        expected += factor * pow(fabs((double)R[i] - (double)Z[i]), 3) / COUNT;
    CHECK_NEAR(tutti_scalar_value(tutti_compute_loss(&loss, truth, guess)), expected, 1e-4);
    CHECK_OK(tutti_eager_step(eager));
    tutti_loss none = tutti_loss_by_name("no_such_loss", NULL);
    CHECK(!none.def);
    tutti_loss_per_example(&none, use_matrix(eager, R), use_matrix(eager, Z));
    CHECK_STATUS(tutti_eager_step(eager), TUTTI_NOT_FOUND);
    tutti_eager_close(eager);
}

TUTTI_TEST(losses_refuse_targets_of_another_shape)
{
    static const float two[ROWS * 2] = {0};
    tutti_eager *eager;
    tutti_loss mse = tutti_mse();
    CHECK_OK(tutti_eager_open(&eager));
    tutti_loss_per_example(&mse, use(eager, 2, (int64_t[]){ROWS, 2}, two), use_matrix(eager, Z));
    CHECK_STATUS(tutti_eager_step(eager), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "f32[4,2]");
    CHECK_CONTAINS(tutti_error_message(), "f32[4,3]");
    /* A column would broadcast, and mean something else. */
    tutti_loss_per_example(&mse, use(eager, 2, (int64_t[]){ROWS, 1}, two), use_matrix(eager, Z));
    CHECK_STATUS(tutti_eager_step(eager), TUTTI_INVALID);
    tutti_eager_close(eager);
}
