/* update_test.c: optimizers' updates against numbers from their formulas. */
#include <math.h>
#include <stdio.h>

#include "ops/state/testing.h"
#include "ops/update/rule.h"
#include "tables/update_rule.h"

typedef struct adam_case {
    tutti_graph *g;
    tutti_sym v, m, s, grad, lr, step;
    tutti_tensor *state[3], *lr_value;
} adam_case;

static adam_case open_case(void)
{
    adam_case c = {.g = new_graph()};
    c.v = tutti_variable(c.g, tutti_zeros(3, 2), .name = "v", .dtype = TUTTI_F64);
    c.m = tutti_variable(c.g, tutti_zeros(3, 2), .name = "m", .dtype = TUTTI_F64, .slot_of = "v");
    c.s = tutti_variable(c.g, tutti_zeros(3, 2), .name = "s", .dtype = TUTTI_F64, .slot_of = "v");
    c.grad = tutti_placeholder(c.g, TUTTI_F64, 3, 2);
    c.lr = tutti_placeholder(c.g, TUTTI_F32);
    c.step = tutti_placeholder(c.g, TUTTI_I64);
    for (int i = 0; i < 3; i++)
        c.state[i] = MATRIX(TUTTI_F64, 3, 2, 1 - i % 2, 2 * (i == 0), 0, 0, 0, 0);
    for (int i = 0; i < 6; i++)
        for (int k = 1; k < 3; k++)
            tutti_tensor_set(c.state[k], i, 0);
    c.lr_value = SCALAR(TUTTI_F32, 0.125);
    return c;
}

static void close_case(adam_case *c)
{
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(c->state[i]);
    tutti_tensor_release(c->lr_value);
    tutti_graph_destroy(c->g);
}

static void run_step(adam_case *c, tutti_sym update, int step, double g0, double g1)
{
    tutti_tensor *grad = MATRIX(TUTTI_F64, 3, 2, g0, g1, 0, 0, 0, 0), *t = SCALAR(TUTTI_I64, step);
    tutti_tensor_release(fetch(update, FEEDS(FEED(c->v, c->state[0]), FEED(c->m, c->state[1]),
                                             FEED(c->s, c->state[2]), FEED(c->grad, grad),
                                             FEED(c->lr, c->lr_value), FEED(c->step, t))));
    tutti_tensor_release(grad);
    tutti_tensor_release(t);
}

/* One number through t steps with gradients g: Keras' form, then torch's. */
static double keras_adam(double v, int steps, const double *g)
{
    double m = 0, s = 0;
    for (int t = 1; t <= steps; t++) {
        m = 0.9 * m + 0.1 * g[t - 1];
        s = 0.999 * s + 0.001 * g[t - 1] * g[t - 1];
        double alpha = 0.125 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));
        v -= alpha * m / (sqrt(s) + 1e-7);
    }
    return v;
}

static double torch_adam(double v, int steps, const double *g)
{
    double m = 0, s = 0;
    for (int t = 1; t <= steps; t++) {
        m = 0.9 * m + 0.1 * g[t - 1];
        s = 0.999 * s + 0.001 * g[t - 1] * g[t - 1];
        v -= 0.125 * (m / (1 - pow(0.9, t))) / (sqrt(s / (1 - pow(0.999, t))) + 1e-8);
    }
    return v;
}

TUTTI_TEST(adam_update_follows_both_forms)
{
    const double first[] = {0.5, -0.25, 0.1}, second[] = {-1e-6, 2e-7, 3e-7};
    for (int torch_form = 0; torch_form < 2; torch_form++) {
        adam_case c = open_case();
        tutti_sym update =
            tutti_adam_update(c.v, c.m, c.s, c.grad, c.lr, c.step, .torch_form = torch_form);
        for (int t = 1; t <= 3; t++)
            run_step(&c, update, t, first[t - 1], second[t - 1]);
        double (*formula)(double, int, const double *) = torch_form ? torch_adam : keras_adam;
        CHECK_NEAR(tutti_tensor_get(c.state[0], 0), formula(1, 3, first), 1e-12);
        CHECK_NEAR(tutti_tensor_get(c.state[0], 1), formula(2, 3, second), 1e-12);
        CHECK(fabs(keras_adam(2, 3, second) - torch_adam(2, 3, second)) > 1e-3);
        close_case(&c);
    }
}

TUTTI_TEST(adam_update_rows_sums_equal_rows_and_leaves_others)
{
    adam_case c = open_case();
    tutti_sym at = tutti_placeholder(c.g, TUTTI_I64, 3),
              rows = tutti_placeholder(c.g, TUTTI_F64, 3, 2);
    tutti_sym update = tutti_adam_update_rows(c.v, c.m, c.s, at, rows, c.lr, c.step);
    tutti_tensor *indices = VECTOR(TUTTI_I64, 0, 2, 0), *t = SCALAR(TUTTI_I64, 1),
                 *values = MATRIX(TUTTI_F64, 3, 2, 0.2, 1, -3, -4, 0.3, 1);
    tutti_tensor_set(c.state[1], 2, 5); /* a moment of row 1, which rests */
    tutti_tensor_release(
        fetch(update, FEEDS(FEED(c.v, c.state[0]), FEED(c.m, c.state[1]), FEED(c.s, c.state[2]),
                            FEED(at, indices), FEED(rows, values), FEED(c.lr, c.lr_value),
                            FEED(c.step, t))));
    CHECK_NEAR(tutti_tensor_get(c.state[0], 0), keras_adam(1, 1, (double[]){0.5}), 1e-12);
    CHECK_NEAR(tutti_tensor_get(c.state[0], 1), keras_adam(2, 1, (double[]){2}), 1e-12);
    CHECK_NEAR(tutti_tensor_get(c.state[0], 2), 0, 0);
    CHECK_NEAR(tutti_tensor_get(c.state[1], 2), 5, 0);
    CHECK_NEAR(tutti_tensor_get(c.state[0], 4), keras_adam(0, 1, (double[]){-3}), 1e-12);
    tutti_tensor_release(indices);
    tutti_tensor_release(values);
    tutti_tensor_release(t);
    close_case(&c);
}

TUTTI_TEST(sgd_update_rows_checks_before_it_writes)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v");
    tutti_sym at = tutti_placeholder(g, TUTTI_I64, 3), rows = tutti_placeholder(g, TUTTI_F32, 3);
    tutti_sym update = tutti_sgd_update_rows(v, at, rows, tutti_scalar(g, TUTTI_F32, 0.5));
    tutti_tensor *state = VECTOR(TUTTI_F32, 1, 2, 3), *bad = VECTOR(TUTTI_I64, 0, -1, 2),
                 *good = VECTOR(TUTTI_I64, 2, 0, 2), *values = VECTOR(TUTTI_F32, 1, 2, 3),
                 *none = NULL;
    CHECK_STATUS(try_fetch(update, FEEDS(FEED(v, state), FEED(at, bad), FEED(rows, values)), &none),
                 TUTTI_OUT_OF_RANGE);
    CHECK_VALUES(state, 0, 1, 2, 3);
    tutti_tensor_release(fetch(update, FEEDS(FEED(v, state), FEED(at, good), FEED(rows, values))));
    CHECK_VALUES(state, 0, 0, 2, 1);
    tutti_tensor_release(state);
    tutti_tensor_release(bad);
    tutti_tensor_release(good);
    tutti_tensor_release(values);
    tutti_graph_destroy(g);
}

TUTTI_TEST(updates_read_handles_where_they_want_values)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v"),
              lr = tutti_variable(g, tutti_full(0.5), .name = "lr");
    tutti_sym update = tutti_sgd_update(v, tutti_placeholder(g, TUTTI_F32, 2), lr);
    CHECK_OK(tutti_graph_check(g));
    CHECK(tutti__is(update.node->inputs[2].node, "read"));
    CHECK(!tutti_sym_ok(
        tutti_sgd_update(v, tutti_placeholder(g, TUTTI_F32, 2), tutti_scalar(g, TUTTI_F64, 1))));
    check_mistake(g, TUTTI_INVALID, "input 2 (lr) is f64[], needs a scalar f32");
}

/* The functions that all update operators share find a rule for each. */
TUTTI_TEST(updates_have_rules)
{
    const tutti_op *ops[1000];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    int found = 0;
    CHECK(count <= TUTTI_COUNT(ops));
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->infer != tutti__update_infer)
            continue;
        bool rows = strstr(ops[i]->name, "_update_rows") != NULL;
        CHECK(rows == ((ops[i]->flags & TUTTI_OP_FALLIBLE) != 0));
        found++;
    }
    int rules = 0;
    for (const tutti_update_rule *const *rule = tutti__update_rule_table; *rule; rule++, rules++) {
        char name[64];
        snprintf(name, sizeof name, "%s_update", (*rule)->name);
        const tutti_op *op = tutti_op_find(name);
        CHECK(op != NULL && op->infer == tutti__update_infer);
        snprintf(name, sizeof name, "%s_update_rows", (*rule)->name);
        const tutti_op *other = tutti_op_find(name);
        found -= 1 + (other != NULL);
        for (int k = 0; other && op->attrs[k].name; k++) { /* both take the same attributes */
            CHECK_STR(other->attrs[k].name, op->attrs[k].name);
            CHECK_STR(other->attrs[k].fallback, op->attrs[k].fallback);
        }
    }
    CHECK_INT(found, 0);
    CHECK(rules >= 11);
}

TUTTI_TEST(updates_say_what_is_wrong_with_their_inputs)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v");
    tutti_sym inputs[] = {v, tutti_placeholder(g, TUTTI_F32, 2), tutti_placeholder(g, TUTTI_F32),
                          tutti_placeholder(g, TUTTI_F32)};
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "sgd_update", 4, inputs, 0, NULL)));
    check_mistake(g, TUTTI_INVALID, "input 3 (apply) is f32[], needs a scalar bool");
    g = new_graph();
    v = tutti_variable(g, tutti_zeros(2), .name = "v");
    tutti_sym few[] = {v, tutti_placeholder(g, TUTTI_F32, 2), tutti_placeholder(g, TUTTI_F32)};
    tutti_attr momentum = TUTTI_FLOAT("momentum", 0.5);
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "sgd_update", 3, few, 1, &momentum)));
    check_mistake(g, TUTTI_INVALID, "1 slots");
    g = new_graph();
    v = tutti_variable(g, tutti_zeros(2), .name = "v");
    tutti_sym good[] = {v, tutti_placeholder(g, TUTTI_F32, 2), tutti_placeholder(g, TUTTI_F32)};
    tutti_attr decay = TUTTI_FLOAT("weight_decay", -1);
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "sgd_update", 3, good, 1, &decay)));
    check_mistake(g, TUTTI_INVALID, "weight_decay is -1");
}

/* They say which memory is the session's own. */
TUTTI_TEST(attributes_of_shared_updates_are_not_for_users)
{
    static const char *const names[] = {"part", "parts", "bucket", "offset"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        for (int64_t value = -1; value <= 1; value++) {
            tutti_graph *g;
            CHECK_OK(tutti_graph_create(&g));
            tutti_sym v = tutti_variable(g, tutti_ones(100)),
                      in[] = {v, tutti_placeholder(g, TUTTI_F32, 100),
                              tutti_scalar(g, TUTTI_F32, 0.5)};
            tutti_apply_op_named(g, "sgd_update", "u", 3, in, 1, &TUTTI_INT(names[i], value));
            CHECK_STATUS(tutti_graph_check(g), value == 0 ? TUTTI_OK : TUTTI_INVALID);
            if (value != 0)
                CHECK_CONTAINS(tutti_error_message(), "sgd_update 'u' (");
            if (value != 0)
                CHECK_CONTAINS(tutti_error_message(), "only a session sets it");
            tutti_graph_destroy(g);
        }
}
