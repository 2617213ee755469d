/* optimizer_rows_test.c: gradients that are rows against the same gradients dense, and steps that
 * are skipped. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "nn/optimizers/optimizer.h"
#include "tables/optimizer_def.h"
#include "tutti/tutti.h"

enum { ROWS = 5, COLUMNS = 6, GIVEN = 7, STEPS = 5 };

typedef struct rig {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym table, ids, rows, dense, apply, step;
} rig;

/* The same number at the same place, whatever the gradient's form. */
static double number(int i, int k, int step)
{
    return ((i * 31 + k * 17 + step * 7) % 23 - 11) / 16.0;
}

static rig open_rig(const tutti_optimizer *optimizer, bool sparse, bool flagged)
{
    rig r = {0};
    CHECK_OK(tutti_graph_create(&r.graph));
    CHECK_OK(tutti_session_open(&r.session, r.graph));
    r.table = tutti_variable(r.graph, tutti_full(0.75, ROWS, COLUMNS), .name = "table");
    r.ids = tutti_placeholder(r.graph, TUTTI_I64, GIVEN);
    r.rows = tutti_placeholder(r.graph, TUTTI_F32, GIVEN, COLUMNS);
    r.apply = tutti_placeholder(r.graph, TUTTI_BOOL);
    tutti_grad grad = {.value = r.rows, .rows = r.ids};
    if (!sparse)
        grad = (tutti_grad){.value = tutti_grad_dense(grad, r.table)};
    r.step = tutti__optimizer_apply(&(tutti_updates){.optimizer = optimizer,
                                                     .count = 1,
                                                     .variables = &r.table,
                                                     .grads = &grad,
                                                     .apply = flagged ? r.apply : TUTTI_NO_SYM});
    CHECK_OK(tutti_run(r.session, .target = tutti_initialize_variables(r.graph)));
    return r;
}

static void close_rig(rig *r)
{
    tutti_session_close(r->session);
    tutti_graph_destroy(r->graph);
}

static void run_step(const rig *r, int step, const int64_t *ids, int apply)
{
    tutti_tensor *id, *rows, *flag;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){GIVEN}, ids, &id));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){GIVEN, COLUMNS}, &rows));
    for (int i = 0; i < GIVEN * COLUMNS; i++)
        tutti_tensor_set(rows, i, number(i / COLUMNS, i % COLUMNS, step));
    if (apply < 0) {
        CHECK_OK(tutti_run(r->session, .feed = TUTTI_FEED({r->ids, id}, {r->rows, rows}),
                           .target = r->step));
    } else {
        CHECK_OK(tutti_tensor_from(TUTTI_BOOL, 0, NULL, &(bool){apply}, &flag));
        CHECK_OK(tutti_run(r->session,
                           .feed = TUTTI_FEED({r->ids, id}, {r->rows, rows}, {r->apply, flag}),
                           .target = r->step));
        tutti_tensor_release(flag);
    }
    tutti_tensor_release(id);
    tutti_tensor_release(rows);
}

static void check_equal(const rig *a, const rig *b, const char *name, double tolerance)
{
    tutti_tensor *x, *y;
    CHECK_OK(tutti_session_get(a->session, a->table, &x));
    CHECK_OK(tutti_session_get(b->session, b->table, &y));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (!(tutti_tensor_get(x, i) - tutti_tensor_get(y, i) <= tolerance &&
              tutti_tensor_get(y, i) - tutti_tensor_get(x, i) <= tolerance))
            tutti__test_fail(__FILE__, __LINE__, "%s: element %d is %.9g and %.9g", name, i,
                             tutti_tensor_get(x, i), tutti_tensor_get(y, i));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

static void compare(tutti_optimizer optimizer, const int64_t *ids)
{
    rig sparse = open_rig(&optimizer, true, false), dense = open_rig(&optimizer, false, false);
    for (int i = 0; i < STEPS; i++) {
        run_step(&sparse, i, ids, -1);
        run_step(&dense, i, ids, -1);
        check_equal(&sparse, &dense, optimizer.def->name, 2e-6);
    }
    close_rig(&sparse);
    close_rig(&dense);
}

static const int64_t every[GIVEN] = {3, 0, 4, 1, 3, 2, 0}, some[GIVEN] = {3, 0, 0, 4, 3, 4, 0};

TUTTI_TEST(optimizers_take_rows_as_dense_gradients)
{
    tutti_optimizer optimizer;
    for (const tutti_optimizer_def *const *def = tutti__optimizer_def_table; *def; def++) {
        CHECK_OK(tutti_optimizer_by_name((*def)->name, 0.1, &optimizer));
        compare(optimizer, every);
    }
    compare(tutti_sgd(0.1, .momentum = 0.9, .nesterov = true), every);
    compare(tutti_adam(.learning_rate = 0.1, .amsgrad = true), every);
    compare(tutti_rmsprop(.learning_rate = 0.1, .centered = true, .momentum = 0.9), every);
}

/* Where rows without a gradient rest in the dense rule too, or rows are taken as dense. */
TUTTI_TEST(optimizers_take_some_rows_as_dense_gradients_where_their_rule_allows)
{
    compare(tutti_sgd(0.1), some);
    compare(tutti_adagrad(.learning_rate = 0.1), some);
    compare(tutti_adadelta(.learning_rate = 1), some);
    compare(tutti_lamb(.learning_rate = 0.1), some);
    compare(tutti_lars(.learning_rate = 0.1), some);
    compare(tutti_lion(.learning_rate = 0.1), some);
    compare(tutti_adamw(.learning_rate = 0.1), some); /* decay moves all */
    compare(tutti_sgd(0.1, .clip_value = 0.2), some);
    compare(tutti_sgd(0.1, .clip_norm = 0.5), some);
    compare(tutti_sgd(0.1, .global_clip_norm = 0.5), some);
    compare(tutti_adagrad(.learning_rate = 0.1, .ema_decay = 0.5), some);
}

/* All state of the graph, by its variables' names. */
static int read_state(const rig *r, double *ret)
{
    static const char *const names[] = {
        "table",      "ema",      "m",    "v",           "u",
        "v_largest",  "momentum", "mean", "accumulator", "gradient_square",
        "move_square"};
    int count = 0;
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        char full[80];
        snprintf(full, sizeof full, "%s%s", i == 0 ? "" : "table/x/", names[i]);
        tutti_sym variable = {.node = tutti_graph_find(r->graph, full),
                              .generation = r->table.generation};
        tutti_tensor *value;
        if (!variable.node)
            continue;
        CHECK_OK(tutti_session_get(r->session, variable, &value));
        for (int k = 0; k < ROWS * COLUMNS; k++)
            ret[count++] = tutti_tensor_get(value, k);
        tutti_tensor_release(value);
    }
    return count;
}

static void check_skips(tutti_optimizer optimizer, bool sparse)
{
    double before[5 * ROWS * COLUMNS], after[5 * ROWS * COLUMNS];
    optimizer.name = "x";
    rig flagged = open_rig(&optimizer, sparse, true), plain = open_rig(&optimizer, sparse, false);
    for (int i = 0; i < STEPS; i++) {
        int count = read_state(&flagged, before);
        CHECK(count <= (int)TUTTI_COUNT(before));
        run_step(&flagged, i + 9, some, 0);
        run_step(&flagged, i + 17, every, 0);
        CHECK_INT(read_state(&flagged, after), count);
        CHECK(memcmp(before, after, (size_t)count * sizeof *before) == 0);
        run_step(&flagged, i, some, 1);
        run_step(&plain, i, some, -1);
        check_equal(&flagged, &plain, optimizer.def->name, 0);
    }
    close_rig(&flagged);
    close_rig(&plain);
}

TUTTI_TEST(optimizers_skip_steps_that_are_not_to_be_applied)
{
    tutti_optimizer optimizer;
    for (const tutti_optimizer_def *const *def = tutti__optimizer_def_table; *def; def++)
        for (int sparse = 0; sparse < 2; sparse++) {
            CHECK_OK(tutti_optimizer_by_name((*def)->name, 0.1, &optimizer));
            check_skips(optimizer, sparse);
            optimizer.ema_decay = 0.9;
            optimizer.weight_decay = 0;
            check_skips(optimizer, sparse);
        }
    check_skips(tutti_sgd(0.1, .momentum = 0.9), true);
    check_skips(tutti_rmsprop(.learning_rate = 0.1, .centered = true, .momentum = 0.9), true);
}

TUTTI_TEST(optimizers_come_back_from_their_numbers)
{
    tutti_optimizer given[] = {
        tutti_sgd(0.3, .momentum = 0.5, .nesterov = true, .clip_norm = 2),
        tutti_adamw(.learning_rate = 0.2, .beta1 = TUTTI_ZERO, .weight_decay = TUTTI_ZERO,
                    .torch_form = true),
        tutti_lars(.trust = 0.5, .ema_decay = 0.99),
        tutti_adagrad(.initial_accumulator = TUTTI_ZERO, .global_clip_norm = 1),
    };
    CHECK_NEAR(tutti__optimizer_number(&given[1], "beta1"), 0, 0);
    CHECK_NEAR(tutti__optimizer_number(&given[1], "epsilon"), 1e-8, 0);
    CHECK_NEAR(given[1].weight_decay, 0, 0);
    CHECK_NEAR(tutti__optimizer_number(&given[3], "initial_accumulator"), 0, 0);
    for (size_t i = 0; i < TUTTI_COUNT(given); i++) {
        tutti_setting settings[TUTTI_OPTIMIZER_KEYS];
        tutti_optimizer again;
        int count = tutti__optimizer_settings(&given[i], TUTTI_OPTIMIZER_KEYS, settings);
        CHECK(count <= TUTTI_OPTIMIZER_KEYS);
        CHECK_OK(tutti__optimizer_from(given[i].def->name, count, settings, &again));
        CHECK(again.def == given[i].def);
        CHECK_NEAR(again.learning_rate, given[i].learning_rate, 0);
        CHECK_NEAR(again.weight_decay, given[i].weight_decay, 0);
        CHECK_NEAR(again.clip_norm, given[i].clip_norm, 0);
        CHECK_NEAR(again.global_clip_norm, given[i].global_clip_norm, 0);
        CHECK_NEAR(again.ema_decay, given[i].ema_decay, 0);
        for (int k = 0; k < TUTTI_OPTIMIZER_NUMBERS; k++)
            CHECK_NEAR(again.numbers[k], given[i].numbers[k], 0);
    }
    tutti_optimizer none;
    tutti_setting odd = {.key = "colour", .count = 1, .values = (double[]){1}};
    CHECK_STATUS(tutti__optimizer_from("adam", 1, &odd, &none), TUTTI_INVALID);
    CHECK_STATUS(tutti_optimizer_by_name("adan", 0, &none), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "adam, adamax");
}

/* Every number of a table fits, and is an attribute of the operator or an initial value. */
TUTTI_TEST(optimizers_have_tables_that_their_operators_know)
{
    for (const tutti_optimizer_def *const *def = tutti__optimizer_def_table; *def; def++) {
        const tutti_op *op = tutti_op_find((*def)->op);
        CHECK(op != NULL);
        int count = 0;
        for (const tutti_optimizer_field *field = (*def)->fields; field->key; field++, count++) {
            const tutti_attr_spec *spec = op->attrs;
            while (spec->name && strcmp(spec->name, field->key) != 0)
                spec++;
            CHECK(spec->name != NULL || strcmp(field->key, "initial_accumulator") == 0);
            CHECK(!spec->name || (spec->kind == TUTTI_ATTR_INT) == field->flag);
        }
        CHECK(count <= TUTTI_OPTIMIZER_NUMBERS);
    }
}
