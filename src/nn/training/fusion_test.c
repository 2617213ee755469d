/* fusion_test.c: training steps with fused kernels against the same steps without: losses and what
 * the gradients have made of every variable. */
#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { STEPS = 4, MOST = 24 };

typedef tutti_sym loss_builder(tutti_graph *graph);

typedef struct outcome {
    int count;
    tutti_tensor *values[MOST]; /* the variables, after the steps */
    double losses[STEPS];
} outcome;

static tutti_tensor *ramp(int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)(i * 7 % 23) / 11 - 1);
    return tensor;
}

static tutti_sym input(tutti_graph *graph, int64_t rows, int64_t columns)
{
    tutti_tensor *value = ramp(2, (int64_t[]){rows, columns});
    tutti_sym sym = tutti_constant(graph, value);
    tutti_tensor_release(value);
    return tutti_mul(sym, tutti_variable(graph, tutti_ones(), .name = "gain"));
}

static tutti_sym weight(tutti_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    return tutti_variable(graph, tutti_uniform_init(-0.3, 0.3, rows, columns), .name = name);
}

static tutti_sym row(tutti_graph *graph, const char *name, int64_t columns)
{
    return tutti_variable(graph, tutti_full(0.1, columns), .name = name);
}

static tutti_sym labels(tutti_graph *graph, int64_t count, int classes)
{
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, &count, &value));
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set_int(value, i, i * 5 % classes);
    tutti_sym sym = tutti_constant(graph, value);
    tutti_tensor_release(value);
    return sym;
}

/* Dense layers with relu, a residual with layer norm, cross entropy, and a penalty on the residual.
 */
static tutti_sym residual_network(tutti_graph *graph)
{
    tutti_sym x = input(graph, 40, 24);
    tutti_sym h =
        tutti_relu(tutti_add(tutti_matmul(x, weight(graph, "w1", 24, 32)), row(graph, "b1", 32)));
    tutti_sym r = tutti_add(h, tutti_tanh(tutti_add(tutti_matmul(h, weight(graph, "w2", 32, 32)),
                                                    row(graph, "b2", 32))));
    tutti_sym n = tutti_nn_layer_norm(r, row(graph, "scale", 32), row(graph, "offset", 32));
    tutti_sym logits = tutti_add(tutti_matmul(n, weight(graph, "w3", 32, 7)), row(graph, "b3", 7));
    tutti_sym loss =
        tutti_mean(tutti_apply_op(graph, "sparse_softmax_cross_entropy", 2,
                                  ((tutti_sym[]){logits, labels(graph, 40, 7)}), 0, NULL));
    return tutti_add(loss, tutti_mul(tutti_mean(tutti_square(r)), 0.01));
}

static tutti_sym kept(const char *op, tutti_sym x)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", 1, ((int64_t[]){-1})), TUTTI_INT("keepdims", 1)};
    return tutti_apply_op(tutti_sym_graph(x), op, 1, &x, 2, attrs);
}

/* Layer norm and softmax written out, and products whose gradients are summed. */
static tutti_sym written_out(tutti_graph *graph)
{
    tutti_sym x = tutti_matmul(input(graph, 30, 16), weight(graph, "w1", 16, 16));
    tutti_sym centred = tutti_sub(x, kept("mean", x));
    tutti_sym variance = kept("mean", tutti_square(centred));
    tutti_sym n =
        tutti_mul(centred, tutti_rsqrt(tutti_add(variance, tutti_scalar(graph, TUTTI_F32, 1e-3))));
    tutti_sym power = tutti_exp(tutti_mul(n, row(graph, "scale", 16)));
    tutti_sym p = tutti_div(power, kept("sum", power));
    tutti_sym a = tutti_matmul(p, weight(graph, "w2", 16, 16)),
              b = tutti_matmul(p, weight(graph, "w3", 16, 16));
    return tutti_mean(tutti_square(tutti_sub(tutti_softmax(a), tutti_sigmoid(b))));
}

static outcome train(loss_builder *build, tutti_optimizer optimizer, bool fused)
{
    outcome o = {0};
    tutti_graph *graph;
    tutti_session *session;
    CHECK_OK(tutti__param_set("FUSE", fused ? "1" : "0"));
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_session_open(&session, graph));
    tutti_sym loss = build(graph), step = tutti_minimize(optimizer, loss), variables[MOST];
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(graph)));
    for (int i = 0; i < STEPS; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_run(session, .fetch = TUTTI_FETCH({loss, &value}), .target = step));
        o.losses[i] = tutti_tensor_get(value, 0);
        tutti_tensor_release(value);
    }
    o.count = tutti_trainable_variables(graph, MOST, variables);
    CHECK(o.count > 1 && o.count <= MOST);
    for (int i = 0; i < o.count; i++)
        CHECK_OK(tutti_session_get(session, variables[i], &o.values[i]));
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    CHECK_OK(tutti__param_set("FUSE", NULL));
    return o;
}

static void compare(loss_builder *build, tutti_optimizer optimizer)
{
    outcome fused = train(build, optimizer, true), plain = train(build, optimizer, false);
    CHECK_INT(fused.count, plain.count);
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(fused.losses[i], plain.losses[i], 1e-5);
    CHECK(plain.losses[STEPS - 1] < plain.losses[0]);
    for (int i = 0; i < fused.count; i++) {
        for (int64_t k = 0; k < tutti_tensor_count(plain.values[i]); k++)
            CHECK_NEAR(tutti_tensor_get(fused.values[i], k), tutti_tensor_get(plain.values[i], k),
                       2e-5);
        tutti_tensor_release(fused.values[i]);
        tutti_tensor_release(plain.values[i]);
    }
}

TUTTI_TEST(fusion_changes_no_training)
{
    compare(residual_network, tutti_sgd(0.1));
    compare(written_out, tutti_sgd(0.1));
}

TUTTI_TEST(fusion_of_clipping_changes_no_training)
{
    compare(residual_network, tutti_sgd(0.1, .momentum = 0.9, .global_clip_norm = 0.05));
    compare(residual_network, tutti_sgd(0.1, .clip_norm = 0.01));
    compare(written_out, tutti_sgd(0.1, .clip_value = 1e-4));
    compare(written_out, tutti_sgd(0.1, .global_clip_norm = 1e-3));
}

static tutti_tensor *sums_of_rows(const char *fuse, int64_t columns)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *value, *x = ramp(2, (int64_t[]){5, columns});
    CHECK_OK(tutti__param_set("FUSE", fuse));
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_session_open(&session, graph, .device = "cpu:0", .deterministic = true));
    tutti_sym in = tutti_placeholder(graph, TUTTI_F32, 5, columns);
    tutti_sym y = tutti_mul(tutti_mul(in, 0.7), tutti_tanh(in));
    tutti_sym sums =
        tutti_add(tutti_sum(y, .axes = TUTTI_AXES(-1), .keepdims = true),
                  tutti_mean(tutti_square(y), .axes = TUTTI_AXES(-1), .keepdims = true));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({sums, &value})));
    CHECK_OK(tutti__param_set("FUSE", NULL));
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    tutti_tensor_release(x);
    return value;
}

/* Replicas may fuse differently; in deterministic mode their rows still have the same bits. */
TUTTI_TEST(fusion_changes_no_bit_of_sums_of_rows)
{
    for (int64_t columns = 2; columns < 200; columns += 9) {
        tutti_tensor *fused = sums_of_rows("1", columns), *apart = sums_of_rows("0", columns);
        CHECK(tutti_tensor_same(fused, apart));
        tutti_tensor_release(fused);
        tutti_tensor_release(apart);
    }
}
