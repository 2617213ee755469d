/* remat_test.c: steps that compute values again against the same steps that keep them: losses and
 * weights to the bit, and the memory that is planned. */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/model/model.h"
#include "nn/training/forecast_model.h"
#include "tutti/tutti.h"

enum { STEPS = 3, MOST = 96 };

typedef tutti_model *model_builder(tutti_job *job, bool remat);

typedef struct outcome {
    int count;
    tutti_tensor *weights[MOST]; /* after the steps, moving averages too */
    double losses[STEPS];
    size_t bytes, bound;
} outcome;

static tutti_tensor *inputs_of(int rank, const int64_t *dims)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &x));
    for (int64_t i = 0; i < tutti_tensor_count(x); i++)
        tutti_tensor_set(x, i, (double)(i * 7 % 23) / 11 - 1);
    return x;
}

static void collect(tutti_model *m, bool taped, outcome *ret)
{
    tutti_weight_info info;
    tutti_session_info session;
    ret->count = tutti_weight_count(m);
    CHECK(ret->count <= MOST);
    for (int i = 0; i < ret->count && i < MOST; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &ret->weights[i]));
    }
    if (taped)
        tutti_eager_describe(tutti_model_eager(m), &session);
    else
        tutti_session_describe(m->session, &session);
    ret->bytes = session.arena_bytes;
    ret->bound = session.arena_bound;
}

/* How a network is run. */
typedef struct way {
    model_builder *build;
    int rank;
    const int64_t *dims;
    const char *precision, *device;
    const char *devices; /* mirrored over these */
    bool deterministic;
    bool taped;  /* by a loop of its own */
    bool copied; /* through JSON */
} way;

static double taped_step(tutti_model *m, tutti_tensor *const *pair)
{
    tutti_eager *e = tutti_model_eager(m);
    double value = 0;
    TUTTI_STEP(e) {
        tutti_sym x = tutti_eager_feed(e, pair[0]), y = tutti_eager_feed(e, pair[1]),
                  loss = TUTTI_NO_SYM;
        TUTTI_TAPE(tape, e)
            loss = tutti_mean(tutti_nn_sparse_cross_entropy(
                y, tutti_softmax(tutti_apply(m, x, .training = true))));
        tutti_tape_minimize(&tape, tutti_adam(.learning_rate = 0.01), loss, m);
        value = tutti_scalar_value(loss);
    }
    CHECK_OK(tutti_eager_check(e));
    return value;
}

static void train(tutti_model *m, const way *w, outcome *ret)
{
    tutti_tensor *pair[2] = {inputs_of(w->rank, w->dims)};
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, w->dims, &pair[1]));
    for (int64_t i = 0; i < w->dims[0]; i++)
        tutti_tensor_set_int(pair[1], i, i * 3 % 5);
    *ret = (outcome){0};
    for (int step = 0; step < STEPS; step++) {
        tutti_logs logs = {0};
        if (w->taped) {
            ret->losses[step] = taped_step(m, pair);
            continue;
        }
        CHECK_OK(tutti_train_on_batch(m, 2, pair, &logs));
        ret->losses[step] = tutti_logs_get(&logs, "loss");
    }
    collect(m, w->taped, ret);
    tutti_tensor_release(pair[0]);
    tutti_tensor_release(pair[1]);
}

/* Written as JSON and read again. */
static tutti_model *copied(tutti_job *job, model_builder *build, bool remat)
{
    char *text;
    tutti_model *m = build(job, remat);
    CHECK_OK((tutti_build)(m, 0, NULL));
    CHECK_OK(tutti_model_to_json(m, &text));
    CHECK(!remat || strstr(text, "\"remat\"") != NULL);
    m = tutti_model_from_json(job, text);
    free(text);
    return m;
}

static outcome run(const way *w, bool remat)
{
    outcome result;
    char *flags[] = {(char *)"test",
                     (char *)"--precision",
                     (char *)(w->precision ? w->precision : "f32"),
                     (char *)"--device",
                     (char *)(w->device ? w->device : "cpu:0"),
                     NULL},
         **argv = flags;
    int argc = 5;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_strategy *strategy =
        w->devices
            ? tutti_strategy_mirrored(.devices = w->devices, .deterministic = w->deterministic)
            : NULL;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = w->copied ? copied(job, w->build, remat) : w->build(job, remat);
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.01),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        train(m, w, &result);
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return result;
}

/* Both ways give the same; planned bytes of the second against the first. */
static double compare(const way *w)
{
    CHECK_OK(tutti__param_set("THREADS", "1")); /* more of them need more workspace */
    outcome kept = run(w, false), again = run(w, true);
    CHECK_INT(kept.count, again.count);
    CHECK(memcmp(kept.losses, again.losses, sizeof kept.losses) == 0);
    CHECK(kept.losses[0] != kept.losses[STEPS - 1]);
    CHECK((double)again.bytes <= 1.1 * (double)again.bound);
    for (int i = 0; i < kept.count && i < again.count; i++) {
        CHECK(tutti_tensor_same(kept.weights[i], again.weights[i]));
        tutti_tensor_release(kept.weights[i]);
        tutti_tensor_release(again.weights[i]);
    }
    return (double)again.bytes / (double)kept.bytes;
}

/* ---- networks ---- */

typedef void inner_builder(tutti_model *model);

/* A part of a network, three times, each a model that is a layer of another. */
static tutti_model *around(tutti_job *job, tutti_layer *first, inner_builder *build, bool remat)
{
    static const char *const names[] = {"one", "two", "three"};
    tutti_model *m = tutti_sequential(job, first);
    for (int i = 0; i < 3; i++) {
        tutti_model *inner = (tutti_sequential)(job, 0, NULL);
        build(inner);
        tutti_layer *layer = tutti__model_layer_named(inner, names[i]);
        tutti_set_remat(layer, remat);
        tutti_model_add(m, layer);
    }
    tutti_model_add(m, tutti_flatten());
    tutti_model_add(m, tutti_dense(5));
    return m;
}

static void add_dense(tutti_model *m)
{
    tutti_model_add(m, tutti_dense(64, .activation = TUTTI_GELU));
    tutti_model_add(m, tutti_dense(64, .activation = TUTTI_TANH));
    tutti_model_add(m, tutti_dense(64, .activation = TUTTI_RELU));
    tutti_model_add(m, tutti_dense(16));
}

static tutti_model *dense_network(tutti_job *job, bool remat)
{
    return around(job, tutti_input_shape(24), add_dense, remat);
}

static void add_dropout(tutti_model *m)
{
    tutti_model_add(m, tutti_dense(64, .activation = TUTTI_RELU));
    tutti_model_add(m, tutti_dropout(0.4));
    tutti_model_add(m, tutti_dense(64, .activation = TUTTI_SIGMOID));
    tutti_model_add(m, tutti_gaussian_noise(0.3));
    tutti_model_add(m, tutti_dropout(0.2));
    tutti_model_add(m, tutti_dense(16));
}

static tutti_model *dropout_network(tutti_job *job, bool remat)
{
    return around(job, tutti_input_shape(24), add_dropout, remat);
}

static void add_conv(tutti_model *m)
{
    tutti_model_add(m, tutti_conv2d(16, 3, .padding = "same", .activation = TUTTI_RELU));
    tutti_model_add(m, tutti_max_pool2d(2, .strides = {1}, .padding = "same"));
    tutti_model_add(m, tutti_conv2d(24, 3, .padding = "same", .activation = TUTTI_GELU));
    tutti_model_add(m, tutti_depthwise_conv2d(3, .padding = "same"));
    tutti_model_add(m, tutti_conv2d(4, 1));
}

static tutti_model *conv_network(tutti_job *job, bool remat)
{
    return around(job, tutti_input_shape(12, 12, 2), add_conv, remat);
}

/* Batch norm is read by its moving averages' updates, which happen once. */
static tutti_model *residual_network(tutti_job *job, bool remat)
{
    tutti_model *m = tutti_functional(job, .name = "residual");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 12, 12, 2);
    x = tutti_call(tutti_conv2d(16, 3, .padding = "same"), x);
    for (int i = 0; i < 4; i++) {
        if (remat)
            tutti_remat_push(tutti_sym_graph(x));
        tutti_sym y = tutti_relu(tutti_call(tutti_batch_norm(.momentum = 0.9), x));
        y = tutti_call(tutti_conv2d(16, 3, .padding = "same"), y);
        y = tutti_relu(tutti_call(tutti_batch_norm(), y));
        y = tutti_call(tutti_conv2d(16, 3, .padding = "same"), y);
        x = tutti_add(x, y);
        if (remat)
            tutti_remat_pop(tutti_sym_graph(x));
    }
    x = tutti_call(tutti_global_average_pool2d(), x);
    tutti_output(m, "y", tutti_call(tutti_dense(5), x));
    return m;
}

static tutti_model *transformer(tutti_job *job, bool remat)
{
    return tutti_sequential(
        job, tutti_input_shape(12, 24), tutti_dense(32),
        tutti_transformer_block(4, .dropout = 0.1, .normalize_first = true, .remat = remat),
        tutti_transformer_block(4, .use_causal_mask = true, .remat = remat),
        tutti_transformer_block(4, .dropout = 0.2, .remat = remat),
        tutti_transformer_block(4, .remat = remat), tutti_global_average_pool1d(), tutti_dense(5));
}

static void add_recurrent(tutti_model *m)
{
    tutti_model_add(m, tutti_lstm(16, .return_sequences = true));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_gru(24, .return_sequences = true));
    tutti_model_add(m, tutti_dense(8));
}

static tutti_model *recurrent_network(tutti_job *job, bool remat)
{
    return around(job, tutti_input_shape(12, 24), add_recurrent, remat);
}

typedef struct two_blocks {
    tutti_layer *first, *second, *pool, *out;
} two_blocks;

static void call_blocks(tutti_model_call *call)
{
    const two_blocks *self = call->self;
    tutti_sym x = tutti_call(self->second, tutti_call(self->first, call->inputs[0]));
    call->outputs[0] = tutti_call(self->out, tutti_call(self->pool, x));
}

/* A model of one's own, with a layer that is called twice. */
static tutti_model *subclassed(tutti_job *job, bool remat)
{
    static const tutti_model_kind kind = {
        .struct_size = sizeof kind, .name = "blocks", .call = call_blocks, .destroy = free};
    two_blocks *self = calloc(1, sizeof *self);
    self->first = tutti_transformer_block(4, .remat = remat);
    self->second = self->first;
    self->pool = tutti_global_average_pool1d();
    self->out = tutti_dense(5);
    return tutti_subclass(job, &kind, self);
}

/* ---- the tests ---- */

static const int64_t rows[] = {40, 24}, images[] = {16, 12, 12, 2}, sequences[] = {16, 12, 24};

TUTTI_TEST(remat_of_dense_layers_gives_the_same_bits)
{
    CHECK(compare(&(way){dense_network, 2, rows}) < 1);
}

TUTTI_TEST(remat_draws_the_same_random_numbers)
{
    CHECK(compare(&(way){dropout_network, 2, rows}) < 1);
}

TUTTI_TEST(remat_of_convolutions_gives_the_same_bits)
{
    CHECK(compare(&(way){conv_network, 4, images}) < 1);
}

TUTTI_TEST(remat_of_residual_blocks_moves_averages_once)
{
    CHECK(compare(&(way){residual_network, 4, images}) < 0.7);
}

TUTTI_TEST(remat_of_transformer_blocks_gives_the_same_bits)
{
    CHECK(compare(&(way){transformer, 3, sequences}) < 0.6);
}

TUTTI_TEST(remat_in_bf16_gives_the_same_bits)
{
    CHECK(compare(&(way){transformer, 3, sequences, .precision = "bf16"}) < 0.8);
    CHECK(compare(&(way){residual_network, 4, images, .precision = "bf16"}) < 0.8);
}

TUTTI_TEST(remat_of_recurrent_layers_gives_the_same_bits)
{
    CHECK(compare(&(way){recurrent_network, 3, sequences}) < 1);
}

TUTTI_TEST(remat_of_a_model_of_ones_own_and_of_a_shared_layer)
{
    CHECK(compare(&(way){subclassed, 3, sequences}) < 0.8);
}

TUTTI_TEST(remat_on_a_tape_gives_the_same_bits)
{
    CHECK(compare(&(way){transformer, 3, sequences, .taped = true}) < 0.6);
}

TUTTI_TEST(remat_under_a_strategy_gives_the_same_bits)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    way w = {transformer, 3, sequences, .devices = "cpu:0,cpu:1"};
    CHECK(compare(&w) < 0.7);
    w.deterministic = true;
    CHECK(compare(&w) < 0.9);
    w = (way){residual_network, 4, images, .devices = "cpu:0,cpu:1"};
    CHECK(compare(&w) < 0.8);
    w.deterministic = true;
    CHECK(compare(&w) < 0.9);
    CHECK_OK(tutti__param_set("CPU_DEVICES", "1"));
}

/* Memory of streams is reused along tokens; the device refuses a plan that is wrong. */
TUTTI_TEST(remat_on_several_streams_gives_the_same_bits)
{
    CHECK(compare(&(way){residual_network, 4, images, .device = "far:0"}) < 1);
}

TUTTI_TEST(remat_is_kept_in_a_models_json)
{
    CHECK(compare(&(way){residual_network, 4, images, .copied = true}) < 0.7);
    CHECK(compare(&(way){transformer, 3, sequences, .copied = true}) < 0.6);
    CHECK(compare(&(way){dense_network, 2, rows, .copied = true}) < 1);
}

/* The summary compiles a step of its own, with another loss. */
TUTTI_TEST(a_summary_says_what_recomputing_saves)
{
    CHECK_OK(tutti__param_set("THREADS", "1"));
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose arena is planned */
    for (int remat = 0; remat < 2; remat++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = transformer(job, remat == 1);
        tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_planned planned;
        outcome real;
        char *text;
        CHECK_OK(tutti_summary(m, 16, &text));
        CHECK_CONTAINS(text, "planned for a training step at batch 16: activations and gradients");
        CHECK((strstr(text, "computed again for the gradients: saves") != NULL) == (remat == 1));
        free(text);
        CHECK_OK(tutti__model_planned(m, 16, &planned));
        CHECK((planned.recomputed > 0) == (remat == 1));
        CHECK(remat ? planned.bytes < 0.6 * planned.kept : planned.bytes == planned.kept);
        train(m, &(way){NULL, 3, sequences}, &real);
        CHECK_NEAR(planned.bytes, (double)real.bytes, 0.05 * planned.bytes);
        for (int i = 0; i < real.count; i++)
            tutti_tensor_release(real.weights[i]);
        CHECK_INT(tutti_close(job), 0);
    }
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}
