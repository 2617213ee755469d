/* layout_test.c: layout rules, and jobs over meshes of several axes against one device. */
#include <math.h>
#include <stdlib.h>

#include "base/params.h"
#include "base/test.h"
#include "parallel/spmd/layout.h"
#include "tutti/tutti.h"

static tutti_mesh *mesh_of(const char *axes, const char *devices)
{
    tutti_mesh *mesh;
    CHECK_OK(tutti__mesh_create(axes, devices, &mesh));
    return mesh;
}

TUTTI_TEST(layout_rules_are_read)
{
    tutti_mesh *mesh = mesh_of("host=2,data=2,model=1", "cpu:0,cpu:1,cpu:2,cpu:3");
    tutti_layout l;
    CHECK_OK(tutti__layout_parse(" batch : host * data ; hidden:model;heads:model ", mesh, &l));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.axes[l.batch].name, "host*data");
    CHECK_INT(l.axes[l.batch].size, 4);
    CHECK_INT(tutti__layout_find(&l, "batch"), l.batch);
    CHECK_INT(tutti__layout_find(&l, "data"), l.batch);
    CHECK_INT(tutti__layout_find(&l, "heads"), tutti__layout_find(&l, "hidden"));
    CHECK_INT(tutti__layout_find(&l, "vocab"), -1);
    CHECK(tutti__layout_spans(&l, l.batch));
    for (int place = 0; place < 4; place++)
        CHECK_INT(tutti__layout_rank(&l, l.batch, place), place);
    CHECK_OK(tutti__layout_parse("batch:data*host", mesh, &l));
    static const int turned[] = {0, 2, 1, 3};
    for (int place = 0; place < 4; place++)
        CHECK_INT(tutti__layout_rank(&l, l.batch, place), turned[place]);
    CHECK(!tutti__layout_spans(&l, l.batch));
    CHECK_INT(l.count, 2); /* model has no rule, and can still be named */
    tutti__mesh_destroy(mesh);
}

static void refuse(const char *text, const char *part)
{
    tutti_mesh *mesh = mesh_of("data=2,model=2", "cpu:0,cpu:1,cpu:2,cpu:3");
    tutti_layout l;
    CHECK_INT(tutti__layout_parse(text, mesh, &l), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti__mesh_destroy(mesh);
}

TUTTI_TEST(layout_rules_that_cannot_be_are_refused)
{
    refuse("batch:pipe", "the mesh data=2,model=2 has no axis 'pipe'");
    refuse("rows:data", "no dimension is called 'rows'; there are: batch, sequence");
    refuse("batch:data; batch:model", "two rules for 'batch'");
    refuse("batch:data*data", "cuts one dimension along 'data' twice");
    refuse("batch:data*model; hidden:model", "along 'data*model' and along 'model'");
    refuse("batch", "needs a rule like batch:data");
    refuse("batch:", "needs a mesh axis");
    refuse("batch:data hidden:model", "needs ';'");
}

/* ---- training over meshes ---- */

enum { INPUTS = 6, HIDDEN = 8, CLASSES = 3, WEIGHTS = 4 };

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_strategy *strategy;
    tutti_sym x, y, loss, step, weights[WEIGHTS];
} net;

/* How hidden values and weights are to lie; NULL: nobody says. */
typedef struct wishes {
    const char *hidden, *kernel, *bias, *other;
    bool refused; /* its variables may not even begin */
} wishes;

static tutti_tensor *numbers(int64_t rows, int64_t columns, unsigned seed)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(0.7 * (double)(i + 1) * (seed + 1)) * 0.8);
    return t;
}

static tutti_sym weight(net *n, int i, const char *name, int64_t rows, int64_t columns,
                        const char *sharding)
{
    tutti_tensor *start = numbers(rows, columns, (unsigned)i + 3);
    n->weights[i] = tutti_variable(n->graph, tutti_tensor_init(start), .name = name);
    tutti_tensor_release(start);
    return sharding ? tutti_sharded(n->weights[i], sharding) : n->weights[i];
}

static net start(tutti_strategy *strategy, wishes wish)
{
    net n = {.strategy = strategy};
    if (strategy)
        CHECK_OK(tutti_strategy_check(strategy));
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    tutti_graph *g = n.graph;
    n.x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, INPUTS));
    n.y = tutti_split_batch(tutti_placeholder(g, TUTTI_I32, TUTTI_ANY));
    tutti_sym w0 = weight(&n, 0, "w0", INPUTS, HIDDEN, wish.kernel),
              b0 = weight(&n, 1, "b0", 1, HIDDEN, wish.bias);
    tutti_sym h = tutti_tanh(tutti_add(tutti_matmul(n.x, w0), b0));
    if (wish.hidden)
        h = tutti_sharded(h, wish.hidden);
    h = tutti_nn_dropout(h, 0.3);
    tutti_sym w1 = weight(&n, 2, "w1", HIDDEN, CLASSES, wish.other),
              b1 = weight(&n, 3, "b1", 1, CLASSES, NULL);
    n.loss = tutti_add(
        tutti_mean(tutti_nn_sparse_cross_entropy(n.y, tutti_add(tutti_matmul(h, w1), b1))),
        tutti_mul(tutti_sum(tutti_square(tutti_read(w0))), 0.01));
    tutti_grad grads[WEIGHTS];
    tutti_gradients(n.loss, WEIGHTS, n.weights, grads);
    tutti_sym updates[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++)
        updates[i] = tutti_assign_sub(n.weights[i], tutti_mul(grads[i].value, 0.5));
    n.step = (tutti_group)(g, NULL, WEIGHTS, updates);
    CHECK_OK(tutti_graph_check(g));
    if (!wish.refused)
        CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(g)));
    return n;
}

static double train(net *n, int64_t rows)
{
    tutti_tensor *x = numbers(rows, INPUTS, 0), *y, *loss;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, &rows, &y));
    for (int64_t i = 0; i < rows; i++)
        tutti_tensor_set(y, i, (double)(i * 7 % CLASSES));
    CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                       .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
    double value = tutti_tensor_get(loss, 0);
    tutti_tensor_release(loss);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return value;
}

static void finish(net *n)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
    CHECK_OK(tutti_strategy_close(n->strategy));
}

static void check_batches(tutti_strategy *strategy, wishes wish, size_t count,
                          const int64_t *batches)
{
    net one = start(NULL, (wishes){0}), many = start(strategy, wish);
    for (size_t i = 0; i < count; i++) {
        double a = train(&one, batches[i]), b = train(&many, batches[i]);
        CHECK_NEAR(a, b, 1e-12 * fabs(a));
        for (int w = 0; w < WEIGHTS; w++) {
            tutti_tensor *u, *v;
            CHECK_OK(tutti_session_get(one.session, one.weights[w], &u));
            CHECK_OK(tutti_session_get(many.session, many.weights[w], &v));
            for (int64_t k = 0; k < tutti_tensor_count(u); k++)
                CHECK_NEAR(tutti_tensor_get(u, k), tutti_tensor_get(v, k), 1e-12);
            tutti_tensor_release(u);
            tutti_tensor_release(v);
        }
    }
    finish(&one);
    finish(&many);
}

static void check(tutti_strategy *strategy, wishes wish)
{
    static const int64_t batches[] = {8, 12, 7, 1, 16};
    check_batches(strategy, wish, TUTTI_COUNT(batches), batches);
}

#define FOUR "cpu:0,cpu:1,cpu:2,cpu:3"

TUTTI_TEST(mesh_of_two_data_axes_equals_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    check(tutti_strategy_mirrored(.devices = FOUR, .mesh = "host=2,data=2",
                                  .layout = "batch:host*data"),
          (wishes){0});
    check(tutti_strategy_mirrored(.devices = FOUR, .mesh = "host=2,data=2"), (wishes){0});
    check(tutti_strategy_mirrored(.devices = FOUR, .mesh = "host=2,data=2", .deterministic = true),
          (wishes){0});
}

/* Along some axes of the mesh devices of one process meet by themselves: blocks of one size. */
static void check_even(tutti_strategy *strategy, wishes wish)
{
    static const int64_t batches[] = {8, 12, 1, 16};
    check_batches(strategy, wish, TUTTI_COUNT(batches), batches);
}

TUTTI_TEST(mesh_whose_batch_lies_along_some_axes_equals_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "8"));
    check_even(
        tutti_strategy_mirrored(.devices = FOUR, .mesh = "host=2,data=2", .layout = "batch:host"),
        (wishes){0});
    check_even(tutti_strategy_mirrored(.devices = FOUR, .mesh = "host=2,data=2",
                                       .layout = "batch:data*host"),
               (wishes){0});
    check_even(tutti_strategy_mirrored(.devices = FOUR ",cpu:4,cpu:5,cpu:6,cpu:7",
                                       .mesh = "host=2,spare=2,data=2",
                                       .layout = "batch:host*data"),
               (wishes){0});
}

TUTTI_TEST(mesh_constraints_cut_hidden_values_and_weights)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "8"));
    static const wishes some[] = {
        {.hidden = "batch,hidden"},
        {.hidden = "batch,hidden", .kernel = "-,hidden", .bias = "-,hidden", .other = "hidden,-"},
        {.kernel = "-,model"},
        {.hidden = "data,-", .other = "model,-"},
        {.kernel = "embed,hidden"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(some); i++)
        check_even(tutti_strategy_mirrored(.devices = FOUR, .mesh = "data=2,model=2",
                                           .layout = "batch:data; hidden:model"),
                   some[i]);
    check_even(tutti_strategy_mirrored(.devices = FOUR ",cpu:4,cpu:5,cpu:6,cpu:7",
                                       .mesh = "data=2,model=4",
                                       .layout = "batch:data; hidden:model"),
               some[1]);
    check_even(
        tutti_strategy_mirrored(.devices = FOUR, .mesh = "model=4", .layout = "hidden:model"),
        some[1]);
}

/* Of 4 rows three axes of two ranks cannot each cut a half of what the one before it leaves: the
 * third one cuts where there are 16. */
TUTTI_TEST(axes_that_cut_one_dimension_divide_it_together)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "8"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = FOUR ",cpu:4,cpu:5,cpu:6,cpu:7",
                                                .mesh = "data=2,model=2,more=2",
                                                .layout = "batch:data; hidden:model; heads:more");
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *in = numbers(4, 12, 0), *out;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, 12));
    tutti_sym rows = tutti_sharded(tutti_neg(x), "data*model,-");
    tutti_sym y = tutti_sharded(tutti_reshape(rows, 16, 3), "more,-");
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out})));
    for (int64_t i = 0; i < 48; i++)
        CHECK_NEAR(tutti_tensor_get(out, i), -tutti_tensor_get(in, i), 0);
    tutti_tensor_release(in);
    tutti_tensor_release(out);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_strategy_close(s));
}

/* ---- operators that look along a dimension that is split ---- */

enum { VOCABULARY = 24, ROWS = 4, ANSWERS = 8 };

/* Losses, shares and the best of rows whose last dimension lies along `model`. */
static tutti_status answer(tutti_strategy *strategy, int64_t bad_label, tutti_tensor *ret[ANSWERS],
                           char **ret_text)
{
    tutti_graph *g;
    tutti_session *session;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_tensor *in = numbers(ROWS, VOCABULARY, 0), *shares = numbers(ROWS, VOCABULARY, 2), *words;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){ROWS}, &words));
    for (int64_t i = 0; i < ROWS; i++)
        tutti_tensor_set(words, i, (double)(i == 2 ? bad_label : i * 7 % VOCABULARY));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, VOCABULARY));
    tutti_sym y = tutti_split_batch(tutti_placeholder(g, TUTTI_I32, TUTTI_ANY));
    tutti_sym p = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, VOCABULARY));
    tutti_sym logits = tutti_sharded(tutti_mul(x, 3), "-,vocab");
    tutti_sym loss = tutti_mean(tutti_nn_sparse_cross_entropy(y, logits));
    tutti_grad grad;
    tutti_gradients(loss, 1, &x, &grad);
    tutti_sym best = tutti_top_k(logits, 3);
    tutti_status status =
        tutti_run(session, .feed = TUTTI_FEED({x, in}, {y, words}, {p, shares}),
                  .fetch = TUTTI_FETCH(
                      {loss, &ret[0]}, {grad.value, &ret[1]}, {tutti_softmax(logits), &ret[2]},
                      {tutti_log_softmax(logits), &ret[3]},
                      {tutti_nn_softmax_cross_entropy(p, logits), &ret[4]},
                      {tutti_sym_output(best, 0), &ret[5]}, {tutti_sym_output(best, 1), &ret[6]},
                      {tutti_argmax(logits, -1), &ret[7]}));
    if (status == TUTTI_OK)
        CHECK_OK(tutti_session_print(session, ret_text));
    tutti_tensor_release(in);
    tutti_tensor_release(shares);
    tutti_tensor_release(words);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return status;
}

TUTTI_TEST(losses_shares_and_the_best_of_split_rows_are_those_of_one_device)
{
    static const char *const meshes[] = {"data=2,model=2", "data=1,model=4"};
    tutti_tensor *one[ANSWERS], *many[ANSWERS];
    char *text;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    CHECK_OK(answer(NULL, 5, one, &text));
    free(text);
    for (size_t m = 0; m < 2; m++) {
        tutti_strategy *s = tutti_strategy_mirrored(.devices = FOUR, .mesh = meshes[m],
                                                    .layout = "batch:data; vocab:model");
        CHECK_OK(answer(s, 5, many, &text));
        CHECK_CONTAINS(text, m == 0 ? "f64[2,1,12]" : "f64[4,1,6]"); /* a rank's block */
        for (int i = 0; i < ANSWERS; i++) {
            CHECK_INT(tutti_tensor_count(one[i]), tutti_tensor_count(many[i]));
            for (int64_t k = 0; k < tutti_tensor_count(one[i]); k++)
                CHECK_NEAR(tutti_tensor_get(one[i], k), tutti_tensor_get(many[i], k), 1e-12);
            tutti_tensor_release(many[i]);
        }
        free(text);
        CHECK(answer(s, VOCABULARY, many, &text) == TUTTI_OUT_OF_RANGE);
        CHECK_OK(tutti_strategy_close(s));
    }
    for (int i = 0; i < ANSWERS; i++)
        tutti_tensor_release(one[i]);
}

/* Causal attention whose queries are split: each rank knows where its first one stands. */
static tutti_tensor *attend(tutti_strategy *strategy)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *in = numbers(2, 6 * 8, 0), *out;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, 6 * 8));
    tutti_sym h = tutti_reshape(x, -1, 2, 6, 4);
    tutti_sym q = tutti_sharded(tutti_mul(h, 2), "-,-,sequence,-");
    tutti_sym y = tutti_nn_attention(q, tutti_mul(h, 0.5), tutti_neg(h), .causal = true);
    tutti_grad grad;
    tutti_gradients(tutti_sum(tutti_square(y)), 1, &x, &grad);
    CHECK_OK(
        tutti_run(session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({grad.value, &out})));
    tutti_tensor_release(in);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return out;
}

TUTTI_TEST(causal_attention_is_cut_along_its_queries)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = FOUR, .mesh = "data=2,model=2",
                                                .layout = "batch:data; sequence:model");
    tutti_tensor *one = attend(NULL), *many = attend(s);
    for (int64_t k = 0; k < tutti_tensor_count(one); k++)
        CHECK_NEAR(tutti_tensor_get(one, k), tutti_tensor_get(many, k), 1e-12);
    tutti_tensor_release(one);
    tutti_tensor_release(many);
    CHECK_OK(tutti_strategy_close(s));
}

/* ---- what cannot be ---- */

#define REFUSED(part, ...)                                                                         \
    refuse_strategy(tutti_strategy_mirrored(.devices = FOUR, __VA_ARGS__), part)

static void refuse_strategy(tutti_strategy *strategy, const char *part)
{
    CHECK(tutti_strategy_check(strategy) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(mesh_that_cannot_be_is_refused_with_the_numbers)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    REFUSED("the mesh 'data=2,model=3' has places for 6 devices, and 4 are named",
            .mesh = "data=2,model=3");
    REFUSED("the mesh data=2,model=2 has no axis 'host'", .mesh = "data=2,model=2",
            .layout = "batch:host");
    REFUSED("no dimension is called 'rows'", .mesh = "data=4", .layout = "rows:data");
    REFUSED("the mesh batch=4 has no axis 'data'; give it one: --mesh", .layout = "batch:data");
    REFUSED("an axis of the mesh batch=2,model=2 is called 'batch'", .mesh = "batch=2,model=2");
    REFUSED("deterministic mode cuts the batch along all axes", .mesh = "data=2,model=2",
            .layout = "batch:data", .deterministic = true);
}

static void refuse_constraint(wishes wish, const char *part)
{
    wish.refused = true;
    net n = start(tutti_strategy_mirrored(.devices = FOUR, .mesh = "data=2,model=2",
                                          .layout = "batch:data; hidden:model; embed:model"),
                  wish);
    tutti_tensor *x = numbers(4, INPUTS, 0), *y, *loss;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){4}, &y));
    CHECK(tutti_run(n.session, .feed = TUTTI_FEED({n.x, x}, {n.y, y}),
                    .fetch = TUTTI_FETCH({n.loss, &loss}), .target = n.step) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_CONTAINS(tutti_error_message(), "layout_test.c:");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    finish(&n);
}

TUTTI_TEST(constraint_that_cannot_be_is_refused_with_the_line)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    refuse_constraint((wishes){.kernel = "embed,hidden"},
                      "dimensions 0 and 1 both lie along 'model'");
    refuse_constraint((wishes){.bias = "model,-"}, "dimension 0 has 1 for the 2 ranks along");
    refuse_constraint((wishes){.kernel = "data,-"}, "which is no multiple of the batch of 4");
    refuse_constraint((wishes){.kernel = "-,pipe"}, "the mesh data=2,model=2 has no axis 'pipe'");
}
