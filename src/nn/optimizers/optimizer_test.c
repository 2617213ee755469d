/* optimizer_test.c: three steps of every optimizer against its formula. */
#include <math.h>

#include "base/test.h"
#include "tutti/tutti.h"

typedef struct bench {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym w, unused, loss;
} bench;

/* loss = sum((w - (1, 2, 3))^2), w = 0: g = 2 (w - t). */
static bench start(void)
{
    bench b;
    tutti_tensor *target;
    CHECK_OK(tutti_graph_create(&b.graph));
    CHECK_OK(tutti_session_open(&b.session, b.graph));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){3}, (float[]){1, 2, 3}, &target));
    b.w = tutti_variable(b.graph, tutti_zeros(3), .name = "w");
    b.unused = tutti_variable(b.graph, tutti_full(8, 2), .name = "unused");
    b.loss = tutti_sum(tutti_square(tutti_sub(b.w, tutti_constant(b.graph, target))));
    tutti_tensor_release(target);
    return b;
}

static void run(bench b, tutti_sym target)
{
    CHECK_OK(tutti_run(b.session, .target = target));
}

static void check_values(bench b, tutti_sym variable, int count, const double *expected)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(b.session, variable, &value));
    CHECK_INT(tutti_tensor_count(value), count);
    for (int i = 0; i < count; i++)
        CHECK_NEAR(tutti_tensor_get(value, i), expected[i], 1e-5);
    tutti_tensor_release(value);
}

static void end(bench b)
{
    check_values(b, b.unused, 2, (double[]){8, 8});
    tutti_session_close(b.session);
    tutti_graph_destroy(b.graph);
}

TUTTI_TEST(optimizer_sgd_follows_its_formula)
{
    bench b = start();
    tutti_optimizer sgd = tutti_sgd(0.1);
    tutti_sym step = tutti_minimize(sgd, b.loss), rate = tutti_learning_rate(b.graph, sgd);
    run(b, tutti_initialize_variables(b.graph));
    double w[3] = {0};
    for (int t = 0; t < 6; t++) {
        double lr = t < 3 ? 0.1 : 0.25;
        if (t == 3) {
            tutti_session_info before, after;
            tutti_tensor *value;
            float faster = 0.25f;
            tutti_session_describe(b.session, &before);
            CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &faster, &value));
            CHECK_OK(tutti_session_set(b.session, rate, value));
            tutti_tensor_release(value);
            run(b, step);
            tutti_session_describe(b.session, &after);
            CHECK_INT(after.compiles, before.compiles); /* the rate is no part of the program */
        } else {
            run(b, step);
        }
        for (int i = 0; i < 3; i++)
            w[i] -= lr * 2 * (w[i] - (i + 1));
        check_values(b, b.w, 3, w);
    }
    end(b);
}

static void check_adam(bool torch)
{
    bench b = start();
    double b1 = 0.8, b2 = 0.9, epsilon = 0.01, lr = 0.1, w[3] = {0}, m[3] = {0}, v[3] = {0};
    tutti_sym step = tutti_minimize(tutti_adam(.learning_rate = lr, .beta1 = b1, .beta2 = b2,
                                               .epsilon = epsilon, .torch_form = torch),
                                    b.loss);
    run(b, tutti_initialize_variables(b.graph));
    for (int t = 1; t < 5; t++) {
        run(b, step);
        for (int i = 0; i < 3; i++) {
            double g = 2 * (w[i] - (i + 1));
            m[i] = b1 * m[i] + (1 - b1) * g;
            v[i] = b2 * v[i] + (1 - b2) * g * g;
            double first = m[i] / (1 - pow(b1, t)), second = v[i] / (1 - pow(b2, t));
            if (torch)
                w[i] -= lr * first / (sqrt(second) + epsilon);
            else
                w[i] -=
                    lr * sqrt(1 - pow(b2, t)) / (1 - pow(b1, t)) * m[i] / (sqrt(v[i]) + epsilon);
        }
        check_values(b, b.w, 3, w);
    }
    end(b);
}

TUTTI_TEST(optimizer_adam_follows_its_formula)
{
    check_adam(false);
    check_adam(true);
}

/* Rows that no id names stay as they are, and so do their moments. */
static void check_rows(tutti_optimizer optimizer)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *id, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym ids = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY),
              table = tutti_variable(g, tutti_ones(5, 2), .name = "table");
    tutti_sym step =
        tutti_minimize(optimizer, tutti_sum(tutti_square(tutti_embedding_lookup(table, ids))));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){3}, (int64_t[]){1, 4, 1}, &id));
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({ids, id}), .target = step));
    CHECK_OK(tutti_session_get(s, table, &value));
    for (int row = 0; row < 5; row++)
        for (int k = 0; k < 2; k++)
            CHECK((tutti_tensor_get(value, 2 * row + k) != 1) == (row == 1 || row == 4));
    tutti_tensor_release(value);
    tutti_tensor_release(id);
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){1}, (int64_t[]){5}, &id));
    CHECK(tutti_run(s, .feed = TUTTI_FEED({ids, id}), .target = step) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "5");
    tutti_tensor_release(id);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(optimizers_touch_only_the_rows_that_were_looked_up)
{
    check_rows(tutti_sgd(0.1));
    check_rows(tutti_adam(.learning_rate = 0.1));
}

TUTTI_TEST(optimizers_say_when_there_is_nothing_to_move)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), loss = tutti_square(x);
    CHECK(!tutti_sym_ok(tutti_minimize(tutti_sgd(0.1), loss)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "optimizer_test.c");
    tutti_graph_destroy(g);
    CHECK_OK(tutti_graph_create(&g));
    tutti_variable(g, tutti_zeros(), .name = "far_away");
    loss = tutti_square(tutti_placeholder(g, TUTTI_F32));
    CHECK(!tutti_sym_ok(tutti_minimize(tutti_sgd(0.1), loss)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym w = tutti_variable(g, tutti_zeros());
    CHECK(!tutti_sym_ok(tutti_apply_gradients(tutti_sgd(0.1), 1, &w, NULL)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the list of 1 gradients is NULL (");
    tutti_graph_destroy(g);
}

/* Two optimizers of different names, slots beside the weights, and a scope around the second call.
 */
TUTTI_TEST(optimizers_keep_slots_beside_their_variables)
{
    bench b = start();
    tutti_sym first = tutti_minimize(tutti_adam(), b.loss), second = TUTTI_NO_SYM;
    TUTTI_WITH_NAME(b.graph, "again")
        second = tutti_minimize(tutti_adam(.name = "slow", .learning_rate = 1e-4), b.loss);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(tutti_graph_find(b.graph, "w/adam/m") != NULL);
    CHECK(tutti_graph_find(b.graph, "w/slow/m") != NULL); /* not of the scope it was made in */
    tutti_sym rate = tutti_learning_rate(b.graph, tutti_adam(.name = "slow"));
    CHECK(rate.node == tutti_graph_find(b.graph, "slow/learning_rate"));
    run(b, tutti_initialize_variables(b.graph));
    run(b, first);
    run(b, second);
    CHECK(tutti_graph_find(b.graph, "unused/adam/m") == NULL);
    end(b);
}

/* Moves both variables of a graph, each by an optimizer of its own. */
static tutti_status apply_two(tutti_optimizer first, tutti_optimizer second)
{
    bench b = start();
    tutti_sym other = tutti_variable(b.graph, tutti_ones(2), .name = "other");
    tutti_grad of_w, of_other;
    tutti_gradients(b.loss, 1, &b.w, &of_w);
    tutti_gradients(tutti_sum(tutti_square(other)), 1, &other, &of_other);
    CHECK(tutti_sym_ok(tutti_apply_gradients(first, 1, &b.w, &of_w)));
    tutti_sym step = tutti_apply_gradients(second, 1, &other, &of_other);
    tutti_status status = tutti_graph_check(b.graph);
    CHECK(tutti_sym_ok(step) == (status == TUTTI_OK));
    tutti_session_close(b.session);
    tutti_graph_destroy(b.graph);
    return status;
}

TUTTI_TEST(optimizers_of_one_name_must_have_the_same_settings)
{
    tutti_optimizer adam = tutti_adam(.learning_rate = 0.1);
    CHECK_OK(apply_two(adam, adam));
    CHECK_OK(apply_two(adam, tutti_adam(.learning_rate = 0.1)));
    CHECK_OK(apply_two(adam, tutti_adam(.name = "other")));
    CHECK_OK(apply_two(adam, tutti_sgd(0.2)));
    CHECK_STATUS(apply_two(adam, tutti_adam()), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "optimizer 'adam' was applied with learning_rate 0.1");
    CHECK_CONTAINS(tutti_error_message(), "give one of them a .name");
    CHECK_CONTAINS(tutti_error_message(), "optimizer_test.c");
    CHECK_STATUS(apply_two(adam, tutti_adam(.learning_rate = 0.1, .beta2 = 0.5)), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "with beta2 0.999 before, now it has 0.5");
    CHECK_STATUS(apply_two(adam, tutti_adam(.learning_rate = 0.1, .clip_norm = 1)), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "clip_norm");
    CHECK_STATUS(apply_two(adam, tutti_sgd(0.1, .name = "adam")), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "two optimizers, adam and sgd, are named 'adam'");
    /* The rate is the schedule's where there is one. */
    tutti_schedule falls = tutti_exponential_decay(.learning_rate = 0.1, .decay_steps = 10);
    CHECK_OK(apply_two(tutti_adam(.schedule = falls),
                       tutti_adam(.learning_rate = 7, .schedule = falls)));
    CHECK_STATUS(apply_two(adam, tutti_adam(.schedule = falls)), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "of a schedule");
    CHECK_STATUS(apply_two(adam, tutti_adam(.learning_rate = 0.1, .decay = "matrices")),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "of parameter groups or decay");
}

/* What a step made is gone in the next; which optimizers there are is not. */
TUTTI_TEST(optimizers_of_one_name_are_told_apart_on_tapes)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(1, 2), .name = "w");
    for (int i = 0; i < 4; i++) {
        char name[8] = "slow"; /* need not stay */
        tutti_sym loss;
        tutti_grad grad;
        TUTTI_TAPE(tape, e)
            loss = tutti_sum(tutti_square(w));
        tutti_tape_gradients(&tape, loss, 1, &w, &grad);
        tutti_apply_gradients(tutti_sgd(0.25), 1, &w, &grad);
        tutti_apply_gradients(tutti_sgd(i < 3 ? 0.125 : 0.5, .name = name), 1, &w, &grad);
        name[0] = 0;
        CHECK_STATUS(tutti_eager_step(e), i < 3 ? TUTTI_OK : TUTTI_INVALID);
    }
    CHECK_CONTAINS(tutti_error_message(), "optimizer 'slow' was applied with learning_rate 0.125");
    tutti_eager_close(e);
}
