/* names.cpp: tutti.hpp, in which layers, losses, optimizers and operators take options by name in
 * C++ too. A model is trained by fit, on its tape, and operators take numbers on either side. */
#include <cmath>
#include <cstdio>
#include <cstring>

#include <tutti/tutti.hpp>

static int failures;

static void check(bool held, const char *what)
{
    if (held)
        return;
    failures++;
    std::fprintf(stderr, "names.cpp: %s\n    last message: %s\n", what, tutti_error_message());
}
#define CHECK(condition) check((condition), #condition)

static tutti_tensor *tensor(std::initializer_list<int64_t> dims, double step)
{
    tutti_tensor *made = nullptr;
    CHECK(tutti::tensor_create(TUTTI_F32, dims, &made) == TUTTI_OK);
    for (int64_t i = 0; i < tutti::tensor_count(made); i++)
        tutti::tensor_set(made, i, std::sin(step * static_cast<double>(i)));
    return made;
}

static tutti_dataset *data(tutti_job *job, tutti_tensor *x, tutti_tensor *y)
{
    return tutti::batch(tutti::shuffle(tutti::from_tensor_slices(job, {x, y}), 64, {.seed = 1}), 16,
                        {.drop_remainder = true});
}

/* y is 2 x - 1 of the first feature: few epochs of training show. */
static void trains_by_fit(tutti_job *job, tutti_tensor *x, tutti_tensor *y)
{
    tutti_model *m =
        tutti::sequential(job, {tutti::input_shape({4}),
                                tutti::dense(16, {.name = "hidden",
                                                  .activation = TUTTI_TANH,
                                                  .kernel_initializer = "glorot_normal"}),
                                tutti::dropout(0.01), tutti::dense(1)});
    CHECK(tutti::compile(
              m,
              {.optimizer = tutti::adam(
                   {.learning_rate = 0.02,
                    .groups = {{.pattern = "*bias", .learning_rate_factor = 0.5}},
                    .schedule = tutti::cosine_decay({.learning_rate = 0.02, .decay_steps = 1000})}),
               .loss = tutti::huber({.delta = 2}),
               .metric_list = {{.metric = tutti::mae_metric()}}}) == TUTTI_OK);
    const tutti_history *history = tutti::fit(
        m, data(job, x, y), {.epochs = 8, .callbacks = {tutti::terminate_on_nan()}, .quiet = true});
    CHECK(history &&
          tutti::history_get(history, "loss", -1) < tutti::history_get(history, "loss", 0) / 2);
}

static void trains_on_a_tape(tutti_job *job, tutti_tensor *x, tutti_tensor *y)
{
    tutti_model *m = tutti::functional(job, {.name = "by_hand"});
    tutti_sym in = tutti::input(m, "x", tutti::type(TUTTI_F32, {4}));
    tutti_sym a = tutti::call(tutti::dense(8, {.activation = TUTTI_RELU}), {in});
    tutti_sym both = tutti::call(tutti::concatenate_layer({.axis = 1}), {in, a});
    tutti::output(m, "y", tutti::call(tutti::dense(1), {both}));
    CHECK(tutti::build(m, {tutti::type(TUTTI_F32, {4})}) == TUTTI_OK);
    tutti_eager *e = tutti::model_eager(m);
    double first = 0, last = 0;
    for (int step = 0; step < 40; step++)
        TUTTI_STEP(e) {
            tutti_sym loss = {};
            TUTTI_TAPE(tape, e) {
                tutti_sym guess = tutti::apply(m, tutti::eager_feed(e, x), {.training = true});
                tutti_sym error = tutti::sub(guess, tutti::eager_feed(e, y));
                loss = tutti::mean(tutti::square(error), {.axes = {0, 1}});
            }
            tutti::tape_minimize(&tape, tutti::sgd({.learning_rate = 0.1, .momentum = 0.5}), loss,
                                 m);
            last = tutti::scalar_value(loss);
            first = step == 0 ? last : first;
        }
    CHECK(tutti::eager_check(e) == TUTTI_OK && tutti::job_check(job) == TUTTI_OK);
    CHECK(last < first / 2);
}

static void operators()
{
    tutti_eager *e = nullptr;
    CHECK(tutti::eager_open(&e) == TUTTI_OK);
    tutti_graph *g = tutti::eager_graph(e);
    tutti_sym w = tutti::variable(g, tutti::full(3, {2, 2}), {.name = "w"});
    tutti_sym image = tutti::variable(g, tutti::ones({1, 4, 4, 1}));
    tutti_sym kernel = tutti::variable(g, tutti::ones({3, 3, 1, 2}), {.name = "kernel"});
    tutti_sym y = tutti::sub(1, tutti::mul(w, 0.5)); /* -0.5 */
    CHECK(tutti::scalar_value(y) == -0.5);
    CHECK(tutti::scalar_value(tutti::where(tutti::greater(y, 0), y, 7)) == 7);
    CHECK(tutti::scalar_value(tutti::sum(tutti::reshape(w, {4}), {.axes = {0}})) == 12);
    CHECK(tutti::scalar_value(tutti::matmul(w, w, {.transpose_b = true})) == 18);
    tutti_sym conv = tutti::nn::conv2d(image, kernel, {.strides = {2, 2}, .padding = "same"});
    CHECK(tutti::scalar_value(conv) == 9);
    CHECK(tutti::scalar_value(tutti::concatenate({w, w}, {.axis = 1})) == 3);
    CHECK(!tutti::sym_ok(tutti::matmul(w, image)) &&
          std::strstr(tutti_error_message(), "names.cpp:"));
    tutti::eager_close(e);
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti::open(&argc, &argv);
    tutti_tensor *x = tensor({64, 4}, 0.7), *y = tensor({64, 1}, 2.8);
    trains_by_fit(job, x, y);
    trains_on_a_tape(job, x, y);
    operators();
    tutti::tensor_release(x);
    tutti::tensor_release(y);
    return tutti::close(job) != 0 || failures > 0;
}
