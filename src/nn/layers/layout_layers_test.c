/* layout_layers_test.c: layers whose weights and values layout rules cut by the names of their
 * dimensions, against one device on the same data. */
#include <math.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { EXAMPLES = 12, STEPS = 6, WORDS = 16, CLASSES = 4 };

typedef tutti_model *build_fn(tutti_job *job);

static tutti_model *transformer(tutti_job *job, bool fused)
{
    return tutti_sequential(job, tutti_embedding(WORDS, 8), tutti_position_embedding(STEPS),
                            tutti_transformer_block(4, .use_causal_mask = true,
                                                    .normalize_first = true, .fused_qkv = fused),
                            tutti_layer_norm(), tutti_dense(WORDS, .sharding = "embed,vocab"),
                            tutti_flatten(), tutti_dense(CLASSES));
}

static tutti_model *apart(tutti_job *job)
{
    return transformer(job, false);
}

static tutti_model *fused(tutti_job *job)
{
    return transformer(job, true);
}

static tutti_model *recurrent(tutti_job *job)
{
    return tutti_sequential(job, tutti_embedding(WORDS, 8), tutti_lstm(8, .return_sequences = true),
                            tutti_gru(6, .bidirectional = true), tutti_dense(CLASSES));
}

static tutti_model *convolution(tutti_job *job)
{
    return tutti_sequential(job, tutti_embedding(WORDS, 8), tutti_conv1d(8, 3, .padding = "same"),
                            tutti_batch_norm(), tutti_separable_conv1d(4, 3), tutti_group_norm(2),
                            tutti_rms_norm(), tutti_flatten(), tutti_dense(CLASSES));
}

static double train(build_fn *build, tutti_strategy *strategy)
{
    double loss = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){EXAMPLES, STEPS}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){EXAMPLES}, &y));
    for (int64_t i = 0; i < EXAMPLES * STEPS; i++)
        tutti_tensor_set(x, i, (double)(i * i * 7 % 31 % WORDS));
    for (int64_t i = 0; i < EXAMPLES; i++)
        tutti_tensor_set(y, i, (double)(i * 5 % 7 % CLASSES));
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = build(job);
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.01),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 6);
        const tutti_history *h = tutti_fit(m, data, .epochs = 3, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        loss = tutti_history_get(h, "loss", 2);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return loss;
}

static void compare(build_fn *build, const char *const *layouts)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    double one = train(build, NULL);
    for (; *layouts; layouts++) {
        double many =
            train(build, tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2,cpu:3",
                                                 .mesh = "data=2,model=2", .layout = *layouts));
        CHECK_NEAR(many, one, 1e-4 * fabs(one));
    }
}

TUTTI_TEST(transformers_are_cut_by_names)
{
    static const char *const layouts[] = {"batch:data; heads:model; hidden:model; vocab:model",
                                          "batch:data; embed:model",
                                          "batch:data; sequence:model",
                                          "heads:model; vocab:data",
                                          "hidden:data*model",
                                          NULL};
    compare(apart, layouts);
    compare(fused, layouts);
}

TUTTI_TEST(recurrent_layers_are_cut_by_names)
{
    static const char *const layouts[] = {"batch:data; hidden:model; vocab:model",
                                          "batch:data; embed:model", NULL};
    compare(recurrent, layouts);
}

TUTTI_TEST(convolutions_and_norms_are_cut_by_names)
{
    static const char *const layouts[] = {"batch:data; channels:model; hidden:model",
                                          "channels:data*model", NULL};
    compare(convolution, layouts);
}
