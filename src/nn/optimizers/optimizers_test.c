/* optimizers_test.c: six steps of every optimizer against numbers that Keras and PyTorch give. */
#include <math.h>

#include "base/test.h"
#include "nn/optimizers/optimizer.h"
#include "tutti/tutti.h"

enum { STEPS = 6 };
static const double gradients[STEPS][3] = {{0.5, -0.25, 1}, {0.1, 0.3, -2},    {-0.4, 0.05, 0.5},
                                           {0.2, -0.6, 0},  {1e-4, 0.7, -0.1}, {0.3, -0.1, 0.25}};
static const double start[3] = {1, -2, 0.5};

typedef struct rig {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym w, gradient, step;
} rig;

static tutti_tensor *vector(tutti_dtype dtype, const double *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(dtype, 1, (int64_t[]){3}, &tensor));
    for (int i = 0; i < 3; i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tensor;
}

static rig open_rig(tutti_optimizer optimizer, tutti_dtype dtype)
{
    rig r;
    tutti_tensor *first = vector(dtype, start);
    CHECK_OK(tutti_graph_create(&r.graph));
    CHECK_OK(tutti_session_open(&r.session, r.graph));
    r.w = tutti_variable(r.graph, tutti_tensor_init(first), .name = "w", .dtype = dtype);
    r.gradient = tutti_placeholder(r.graph, dtype, 3);
    tutti_grad grad = {.value = r.gradient};
    r.step = tutti_apply_gradients(optimizer, 1, &r.w, &grad);
    CHECK_OK(tutti_run(r.session, .target = tutti_initialize_variables(r.graph)));
    tutti_tensor_release(first);
    return r;
}

static void close_rig(rig *r)
{
    tutti_session_close(r->session);
    tutti_graph_destroy(r->graph);
}

static void run_step(const rig *r, tutti_dtype dtype, int step)
{
    tutti_tensor *g = vector(dtype, gradients[step]);
    CHECK_OK(tutti_run(r->session, .feed = TUTTI_FEED({r->gradient, g}), .target = r->step));
    tutti_tensor_release(g);
}

static void check_value(const rig *r, tutti_sym variable, const double *expected, double tolerance)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(r->session, variable, &value));
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(tutti_tensor_get(value, i), expected[i], tolerance);
    tutti_tensor_release(value);
}

/* By the fast kernels (f32) and by the reference (f64); the rate is a f32 in both. */
static void follow(tutti_optimizer optimizer, double a, double b, double c)
{
    static const tutti_dtype dtypes[] = {TUTTI_F32, TUTTI_F64};
    for (int d = 0; d < 2; d++) {
        rig r = open_rig(optimizer, dtypes[d]);
        for (int i = 0; i < STEPS; i++)
            run_step(&r, dtypes[d], i);
        check_value(&r, r.w, (double[]){a, b, c}, d == 0 ? 3e-6 : 2e-7);
        close_rig(&r);
    }
}

/* keras.optimizers 3.15 in float64: learning rate 0.1 (Adadelta 1), other settings as named. */
TUTTI_TEST(optimizers_agree_with_keras)
{
    follow(tutti_sgd(0.1), 0.92999, -2.01, 0.535);
    follow(tutti_sgd(0.1, .momentum = 0.9), 0.7781105, -1.98330825, 0.672511);
    follow(tutti_sgd(0.1, .momentum = 0.9, .nesterov = true), 0.73028945, -1.99497742, 0.6902599);
    follow(tutti_sgd(0.1, .weight_decay = 0.1), 0.873524747, -1.89334892, 0.504145322);
    follow(tutti_adam(.learning_rate = 0.1), 0.727664161, -1.91395301, 0.47778582);
    follow(tutti_adam(.learning_rate = 0.1, .amsgrad = true), 0.727674516, -1.91395301,
           0.477779676);
    follow(tutti_adamw(.learning_rate = 0.1), 0.725633914, -1.90933837, 0.476698231);
    follow(tutti_adagrad(.learning_rate = 0.1), 0.890338034, -1.98819808, 0.465181747);
    follow(tutti_adadelta(.learning_rate = 1), 0.99767486, -2.00025173, 0.499596041);
    follow(tutti_rmsprop(.learning_rate = 0.1), 0.571359475, -1.89731551, 0.370048623);
    follow(tutti_rmsprop(.learning_rate = 0.1, .centered = true), 0.542966939, -1.87446575,
           0.356377531);
    follow(tutti_rmsprop(.learning_rate = 0.1, .momentum = 0.9), -0.46667118, -1.34438749,
           -0.0751370409);
    follow(tutti_rmsprop(.learning_rate = 0.1, .momentum = 0.9, .centered = true), -0.573849285,
           -1.24889474, -0.141141149);
    follow(tutti_adamax(.learning_rate = 0.1), 0.782970594, -1.91653064, 0.45261972);
    follow(tutti_nadam(.learning_rate = 0.1), 0.830131142, -1.95859086, 0.461163647);
    follow(tutti_lamb(.learning_rate = 0.1), 0.130418181, -2.01296096, 0.728709396);
    follow(tutti_lamb(.learning_rate = 0.1, .weight_decay = 0.1), 0.122786128, -1.89516279,
           0.686065431);
    follow(tutti_lion(.learning_rate = 0.1), 0.6, -2, 0.5);
    follow(tutti_sgd(0.1, .clip_value = 0.3), 0.93999, -2, 0.455);
    follow(tutti_sgd(0.1, .clip_norm = 0.5), 0.961030386, -1.99245288, 0.448889025);
    follow(tutti_sgd(0.1, .global_clip_norm = 0.5), 0.961030385, -1.99245288, 0.448889022);
}

/* torch.optim 2.15 in float64 with its own defaults: learning rate 0.1 (Adadelta 1). */
TUTTI_TEST(optimizers_agree_with_torch)
{
    follow(tutti_sgd(0.1, .momentum = 0.9, .torch_form = true), 0.7781105, -1.98330825, 0.672511);
    follow(tutti_sgd(0.1, .momentum = 0.9, .nesterov = true, .torch_form = true), 0.73028945,
           -1.99497742, 0.6902599);
    follow(tutti_adam(.learning_rate = 0.1, .torch_form = true), 0.72766262, -1.91395191,
           0.477785613);
    follow(tutti_adam(.learning_rate = 0.1, .amsgrad = true, .torch_form = true), 0.727672975,
           -1.91395191, 0.477779468);
    follow(tutti_adamw(.learning_rate = 0.1, .torch_form = true), 0.722595073, -1.90243274,
           0.475070696);
    follow(tutti_adagrad(.learning_rate = 0.1, .torch_form = true), 0.8721546, -1.965814,
           0.461144808);
    follow(tutti_adadelta(.learning_rate = 1, .rho = 0.9, .epsilon = 1e-6), 0.994652783,
           -2.00061583, 0.499057212);
    follow(tutti_rmsprop(.learning_rate = 0.1, .torch_form = true), -0.285506166, -1.65975242,
           0.109532716);
    follow(tutti_rmsprop(.learning_rate = 0.1, .centered = true, .torch_form = true), -0.293939766,
           -1.65292102, 0.105361648);
    follow(
        tutti_rmsprop(.learning_rate = 0.1, .momentum = 0.9, .centered = true, .torch_form = true),
        -3.60742564, 0.163383743, -1.32039059);
    follow(tutti_adamax(.learning_rate = 0.1, .torch_form = true), 0.782970555, -1.91653061,
           0.452619714);
    follow(tutti_nadam(.learning_rate = 0.1, .epsilon = 1e-8, .momentum_decay = 0.004), 0.826728045,
           -1.96213762, 0.459540731);
}

/* You, Gitman, Ginsburg 2017: r = trust |w| / (|g| + decay |w|), m = u m + lr r (g + decay w). */
static void follow_lars(bool nesterov)
{
    double w[3] = {start[0], start[1], start[2]}, m[3] = {0}, trust = 0.02, decay = 0.1, u = 0.8;
    for (int t = 0; t < STEPS; t++) {
        const double *g = gradients[t];
        double w_norm = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
        double g_norm = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
        double rate = 0.5 * trust * w_norm / (g_norm + decay * w_norm);
        for (int i = 0; i < 3; i++) {
            double d = g[i] + decay * w[i];
            m[i] = u * m[i] + rate * d;
            w[i] -= nesterov ? u * m[i] + rate * d : m[i];
        }
    }
    follow(tutti_lars(.learning_rate = 0.5, .momentum = u, .trust = trust, .weight_decay = decay,
                      .nesterov = nesterov),
           w[0], w[1], w[2]);
}

TUTTI_TEST(optimizer_lars_follows_its_formula)
{
    follow_lars(false);
    follow_lars(true);
}

/* The momentum of Keras has the rates of its steps in it, torch's that of the last. */
TUTTI_TEST(optimizer_momentum_differs_by_form_when_the_rate_changes)
{
    double m = 0, keras = start[0], torch = start[0], b = 0;
    rig r[2];
    for (int form = 0; form < 2; form++)
        r[form] = open_rig(tutti_sgd(0.1, .momentum = 0.9, .torch_form = form == 1), TUTTI_F32);
    for (int t = 0; t < STEPS; t++) {
        double g = gradients[t][0], lr = t < 3 ? 0.1 : 0.01;
        m = 0.9 * m - lr * g;
        keras += m;
        b = 0.9 * b + g;
        torch -= lr * b;
        for (int form = 0; form < 2; form++) {
            tutti_tensor *rate;
            CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){(float)lr}, &rate));
            CHECK_OK(tutti_session_set(r[form].session,
                                       tutti_learning_rate(r[form].graph, tutti_sgd(0.1)), rate));
            tutti_tensor_release(rate);
            run_step(&r[form], TUTTI_F32, t);
        }
    }
    for (int form = 0; form < 2; form++) {
        tutti_tensor *value;
        CHECK_OK(tutti_session_get(r[form].session, r[form].w, &value));
        CHECK_NEAR(tutti_tensor_get(value, 0), form ? torch : keras, 1e-6);
        tutti_tensor_release(value);
        close_rig(&r[form]);
    }
    CHECK(fabs(keras - torch) > 1e-3);
}

/* Keras' mean of the weights: 0.9 mean + 0.1 w after each step, at first w. */
TUTTI_TEST(optimizers_keep_means_of_weights)
{
    const double w[] = {0.92999, -2.01, 0.535}, mean[] = {0.951239, -1.9850448, 0.464107};
    tutti_optimizer sgd = tutti_sgd(0.1, .ema_decay = 0.9);
    rig r = open_rig(sgd, TUTTI_F32);
    tutti_sym swap = tutti__optimizer_swap_ema(r.graph, &sgd);
    tutti_sym slot = {.node = tutti_graph_find(r.graph, "w/sgd/ema")};
    CHECK(slot.node != NULL && tutti_sym_ok(swap));
    slot.generation = r.w.generation;
    for (int i = 0; i < STEPS; i++)
        run_step(&r, TUTTI_F32, i);
    check_value(&r, r.w, w, 1e-6);
    check_value(&r, slot, mean, 1e-6);
    CHECK_OK(tutti_run(r.session, .target = swap));
    check_value(&r, r.w, mean, 1e-6);
    check_value(&r, slot, w, 1e-6);
    CHECK_OK(tutti_run(r.session, .target = swap));
    check_value(&r, r.w, w, 1e-6);
    CHECK(!tutti_sym_ok(tutti__optimizer_swap_ema(r.graph, &(tutti_optimizer){.name = "other"})));
    close_rig(&r);
}

TUTTI_TEST(optimizers_refuse_settings_that_make_no_sense)
{
    static const struct {
        double value, norm;
        double beta;
        double steps;
        const char *part;
    } cases[] = {{1, 1, 0.9, 1, "only one"},
                 {-1, 0, 0.9, 1, "above 0"},
                 {0, 0, 1, 1, "beta1"},
                 {0, 0, 0.9, -1, "decay_steps"}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_graph *graph;
        CHECK_OK(tutti_graph_create(&graph));
        tutti_sym w = tutti_variable(graph, tutti_zeros(3), .name = "w");
        tutti_minimize(tutti_adam(.clip_value = cases[i].value, .clip_norm = cases[i].norm,
                                  .beta1 = cases[i].beta,
                                  .schedule = tutti_cosine_decay(.decay_steps = cases[i].steps)),
                       tutti_sum(tutti_square(w)));
        CHECK_STATUS(tutti_graph_check(graph), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), cases[i].part);
        tutti_graph_destroy(graph);
    }
}

TUTTI_TEST(optimizers_follow_their_schedule)
{
    tutti_optimizer sgd =
        tutti_sgd(7, .schedule = tutti_step_decay(.learning_rate = 0.1, .every = 2));
    CHECK_NEAR(tutti__optimizer_rate(&sgd, 0), 0.1, 0);
    CHECK_NEAR(tutti__optimizer_rate(&sgd, 2), 0.01, 1e-12);
    follow(sgd, 0.9416999, -2.0001, 0.59485); /* 0.1, 0.1, 0.01, 0.01, 0.001, 0.001 */
}
