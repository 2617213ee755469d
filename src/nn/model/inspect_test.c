/* inspect_test.c: values looked at by name: in fit, from layers and nested models, in loops by hand
 * and sessions; and nothing of it where nobody looks. */
#include <stdio.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/training/examples_test.h"
#include "tutti/tutti.h"

static struct {
    char text[4000];
    int lines;
} said;

static void keep(void *context, tutti_log_level level, const char *message)
{
    (void)context;
    (void)level;
    if (strncmp(message, "inspect ", 8) != 0)
        return;
    said.lines++;
    size_t used = strlen(said.text);
    snprintf(said.text + used, sizeof said.text - used, "%s\n", message);
}

static void listen(void)
{
    said.text[0] = 0;
    said.lines = 0;
    tutti_log_install(keep, NULL);
}

static tutti_sym twice(tutti_layer_call *call)
{
    tutti_sym twice = tutti_inspect(tutti_mul(call->inputs[0], 2), "twice");
    tutti_add_metric(tutti_inspect(tutti_mean(twice), "average"), "average");
    return tutti_mul(twice, 0.5);
}
static const tutti_layer_kind twice_kind = {.struct_size = sizeof(tutti_layer_kind),
                                            .name = "test.twice",
                                            .settings_size = sizeof(tutti_layer_settings),
                                            .call = twice};

enum { EXAMPLES = 20, WIDTH = 4, CLASSES = 3 };

static tutti_dataset *examples(tutti_job *job)
{
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 5, 4});
}

/* Under a strategy, too, values are those of the whole batch. */
static void check_average(tutti_model *m, const tutti_tensor *twice, int64_t rows)
{
    tutti_tensor *average;
    double sum = 0;
    for (int64_t i = 0; i < rows * WIDTH; i++)
        sum += tutti_tensor_get(twice, i);
    CHECK_OK(tutti_model_inspected(m, "average", &average));
    CHECK_NEAR(tutti_tensor_get(average, 0), sum / (double)(rows * WIDTH), 1e-6);
    tutti_tensor_release(average);
}

/* Ten steps with a layer that marks a value, inside a model inside another. */
static void train(tutti_strategy *strategy, bool asks, float kernel[WIDTH * CLASSES],
                  int64_t *ret_rows)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *weight, *value;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *body =
            tutti_sequential(job, tutti_input_shape(WIDTH), tutti_layer_custom(&twice_kind, NULL),
                             tutti_dense(CLASSES, .name = "inner"));
        tutti_layer *inside = tutti_model_layer(body);
        tutti_model *m = tutti_sequential(job, inside, tutti_softmax_layer());
        tutti_compile(m, .loss = tutti_sparse_cross_entropy(), .optimizer = tutti_sgd(0.1));
        CHECK(tutti_fit(m, examples(job), .epochs = 2, .validation = examples(job),
                        .quiet = true) != NULL);
        CHECK_OK(tutti_job_check(job));
        if (asks) {
            CHECK_OK(tutti_model_inspected(m, "twice", &value));
            CHECK_INT(tutti_tensor_rank(value), 2);
            *ret_rows = tutti_tensor_dims(value)[0];
            check_average(m, value, *ret_rows);
            tutti_tensor_release(value);
        } else
            CHECK(tutti_model_inspected(m, "twice", &value) == TUTTI_NOT_FOUND);
        tutti_weight_info info;
        CHECK_OK(tutti_weight_at(m, 0, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &weight));
        for (int i = 0; i < WIDTH * CLASSES; i++)
            kernel[i] = (float)tutti_tensor_get(weight, i);
        tutti_tensor_release(weight);
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(fit_prints_what_a_layer_marks_and_computes_the_same)
{
    float plain[WIDTH * CLASSES], seen[WIDTH * CLASSES];
    int64_t rows = 0;
    listen();
    train(NULL, false, plain, &rows);
    CHECK(!strstr(said.text, "inspect"));
    CHECK_OK(tutti_inspect_names("twi*, average, model/inner", 4));
    train(NULL, true, seen, &rows);
    CHECK_INT(rows, 4);
    CHECK_CONTAINS(said.text, "inspect twice, step 1: f32[4,4], min ");
    CHECK_CONTAINS(said.text, "inspect twice, step 4: ");
    CHECK_CONTAINS(said.text, "inspect twice, step 8: ");
    CHECK_CONTAINS(said.text, "inner, step 1: f32[4,3], min ");
    CHECK(!strstr(said.text, "step 2: "));
    CHECK(!strstr(said.text, "val_"));
    CHECK_INT(memcmp(plain, seen, sizeof plain), 0);
    tutti_log_install(NULL, NULL);
}

TUTTI_TEST(replicas_show_all_rows_of_a_batch)
{
    float plain[WIDTH * CLASSES], seen[WIDTH * CLASSES];
    int64_t rows = 0;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    listen();
    train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1"), false, plain, &rows);
    CHECK_OK(tutti_inspect_names("twice, average, val_t*", 1));
    train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1"), true, seen, &rows);
    CHECK_INT(rows, 4);
    CHECK_INT(memcmp(plain, seen, sizeof plain), 0);
    CHECK_CONTAINS(said.text, "inspect val_twice, step 1: f32[4,4]");
    tutti_log_install(NULL, NULL);
}

TUTTI_TEST(functional_models_mark_values_between_layers)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y, *value;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, WIDTH}, &x));
    tutti_model *m = tutti_functional(job);
    tutti_sym in = tutti_input(m, "in", TUTTI_F32, WIDTH);
    tutti_sym h = tutti_inspect(tutti_add(tutti_call(tutti_dense(5), in), 1), "between");
    tutti_output(m, "out", tutti_call(tutti_dense(1), h));
    listen();
    CHECK_OK(tutti_inspect_names("between", 1));
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &y));
    CHECK_OK(tutti_model_inspected(m, "between", &value));
    CHECK_NEAR(tutti_tensor_get(value, 9), 1, 0);
    CHECK_CONTAINS(said.text, "inspect between, step 1: f32[2,5], min 1, mean 1, max 1: 1 1");
    tutti_tensor_release(value);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
    tutti_log_install(NULL, NULL);
}

TUTTI_TEST(loops_by_hand_print_and_give_values)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m =
        tutti_sequential(job, tutti_dense(1, .kernel_initializer = "ones", .name = "flat"));
    tutti_eager *e = tutti_model_eager(m);
    tutti_tensor *x_, *value;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 1}, &x_));
    tutti_tensor_set(x_, 1, 3);
    listen();
    CHECK_OK(tutti_inspect_names("square*, flat", 2));
    for (int i = 0; i < 5; i++)
        TUTTI_STEP(e) {
            tutti_sym loss;
            TUTTI_TAPE(tape, e) {
                tutti_sym y = tutti_apply(m, tutti_eager_feed(e, x_));
                loss = tutti_sum(tutti_inspect(tutti_square(y), "square"));
                tutti_inspect(tutti_mul(loss, 2), "square");
            }
            tutti_tape_minimize(&tape, tutti_sgd(0.001), loss, m);
        }
    CHECK_OK(tutti_eager_check(e));
    CHECK_OK(tutti_model_inspected(m, "square", &value));
    double square = tutti_tensor_get(value, 1);
    CHECK(square > 0 && square < 9); /* of the fourth step */
    tutti_tensor_release(value);
    CHECK_OK(tutti_inspected(tutti_eager_graph(e), "square_1", &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 2 * square, 1e-2);
    tutti_tensor_release(value);
    CHECK_INT(said.lines, 3 * 3); /* steps 1, 2 and 4 */
    CHECK_CONTAINS(said.text, "inspect square, step 1: f32[2,1], min 0, mean 4.5, max 9: 0 9\n");
    CHECK_CONTAINS(said.text, "inspect flat, step 4: f32[2,1]");
    tutti_tensor_release(x_);
    CHECK_INT(tutti_close(job), 0);
    tutti_log_install(NULL, NULL);
}

TUTTI_TEST(sessions_look_at_what_they_compute)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *x_, *y_, *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3);
    size_t before = tutti_graph_node_count(g);
    CHECK(tutti_inspect(x, "fed").node == x.node);
    CHECK_INT(tutti_graph_node_count(g), before);
    tutti_sym y = tutti_log(tutti_inspect(tutti_sub(x, 1), "less"));
    tutti_inspect(tutti_exp(y), "not asked for");
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){3}, &x_));
    listen();
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, x_}), .fetch = TUTTI_FETCH({y, &y_})));
        tutti_tensor_release(y_);
        CHECK_INT(said.lines, i * 2);
        CHECK_OK(tutti_inspect_names("*", 0));
    }
    CHECK_OK(tutti_inspected(g, "less", &value));
    CHECK_NEAR(tutti_tensor_get(value, 2), -1, 0);
    tutti_tensor_release(value);
    CHECK_OK(tutti_inspected(g, "fed", &value));
    tutti_tensor_release(value);
    CHECK(tutti_inspected(g, "not asked for", &value) == TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "there are: fed, less");
    tutti_tensor_release(x_);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_log_install(NULL, NULL);
}
