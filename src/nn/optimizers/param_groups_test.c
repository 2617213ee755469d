/* param_groups_test.c: weights with settings of their own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/training/examples_test.h"
#include "tutti/tutti.h"

typedef struct rig {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym ids, loss;
    tutti_sym kernel, bias, table, scale;
} rig;

/* loss = sum of (kernel + bias + the table's row 1 + scale) of 2 columns: every gradient is 1,
 * kernel's two rows have 1 each; all weights are 1 at first. */
static rig begin(void)
{
    rig r;
    CHECK_OK(tutti_graph_create(&r.graph));
    CHECK_OK(tutti_session_open(&r.session, r.graph));
    r.ids = tutti_placeholder(r.graph, TUTTI_I64, 1);
    r.kernel = tutti_variable(r.graph, tutti_ones(2, 2), .name = "body/kernel");
    r.bias = tutti_variable(r.graph, tutti_ones(2), .name = "body/bias");
    r.table = tutti_variable(r.graph, tutti_ones(3, 2), .name = "words");
    r.scale = tutti_variable(r.graph, tutti_ones(2), .name = "norm/scale");
    tutti_sym sum = tutti_add(r.kernel, r.bias);
    sum = tutti_add(sum, tutti_mul(r.scale, 1));
    r.loss = tutti_add(tutti_sum(sum), tutti_sum(tutti_embedding_lookup(r.table, r.ids)));
    return r;
}

static void end(const rig *r)
{
    tutti_session_close(r->session);
    tutti_graph_destroy(r->graph);
}

static void run(const rig *r, tutti_sym step, int times)
{
    tutti_tensor *id;
    CHECK_OK(tutti_graph_check(r->graph));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){1}, (int64_t[]){1}, &id));
    CHECK_OK(tutti_run(r->session, .target = tutti_initialize_variables(r->graph)));
    for (int i = 0; i < times; i++)
        CHECK_OK(tutti_run(r->session, .feed = TUTTI_FEED({r->ids, id}), .target = step));
    tutti_tensor_release(id);
}

static double first(const rig *r, tutti_sym variable, int64_t at)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(r->session, variable, &value));
    double number = tutti_tensor_get(value, at);
    tutti_tensor_release(value);
    return number;
}

TUTTI_TEST(param_groups_have_rates_decay_and_clipping_of_their_own)
{
    rig r = begin();
    tutti_sym step =
        tutti_minimize(tutti_sgd(0.1, .weight_decay = 0.5,
                                 .groups = TUTTI_PARAM_GROUPS(
                                     {"*bias", .weight_decay = TUTTI_ZERO, .learning_rate = 0.2},
                                     {"norm/*", .learning_rate_factor = 3, .clip_value = 0.25})),
                       r.loss);
    run(&r, step, 1);
    CHECK_NEAR(first(&r, r.kernel, 0), 1 - 0.1 * 0.5 - 0.1, 1e-6);
    CHECK_NEAR(first(&r, r.bias, 0), 1 - 0.2 * 2, 1e-6); /* two rows: its gradient is 2 */
    CHECK_NEAR(first(&r, r.scale, 0), 1 - 0.3 * 0.5 - 0.3 * 0.25, 1e-6);
    CHECK_NEAR(first(&r, r.table, 0), 1 - 0.1 * 0.5, 1e-6); /* a row without a gradient decays */
    /* A rate that is set later moves the groups' rates with it. */
    tutti_tensor *value;
    float rate = 0.01f;
    double before = first(&r, r.bias, 0);
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &rate, &value));
    CHECK_OK(tutti_session_set(r.session, tutti_learning_rate(r.graph, tutti_sgd(0.1)), value));
    tutti_tensor_release(value);
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){1}, (int64_t[]){1}, &value));
    CHECK_OK(tutti_run(r.session, .feed = TUTTI_FEED({r.ids, value}), .target = step));
    tutti_tensor_release(value);
    CHECK_NEAR(first(&r, r.bias, 0), before - 0.02 * 2, 1e-6);
    end(&r);
}

TUTTI_TEST(param_groups_are_clipped_apart_and_frozen)
{
    rig r = begin();
    /* The optimizer's global norm is of kernel and table: sqrt(4 + 2). */
    tutti_sym step =
        tutti_minimize(tutti_sgd(1, .global_clip_norm = 0.5,
                                 .groups = TUTTI_PARAM_GROUPS({"norm/scale", .frozen = true},
                                                              {"*/bias", .clip_norm = TUTTI_ZERO})),
                       r.loss);
    CHECK(tutti_graph_find(r.graph, "norm/scale/sgd/momentum") == NULL);
    run(&r, step, 1);
    CHECK_NEAR(first(&r, r.scale, 0), 1, 0);
    CHECK_NEAR(first(&r, r.bias, 0), 1 - 2, 1e-6);
    CHECK_NEAR(first(&r, r.kernel, 0), 1 - 0.5 / sqrt(6), 1e-6);
    CHECK_NEAR(first(&r, r.table, 2), 1 - 0.5 / sqrt(6), 1e-6);
    end(&r);
}

TUTTI_TEST(only_matrices_decay_where_that_is_asked_for)
{
    rig r = begin();
    tutti_sym step = tutti_minimize(
        tutti_adamw(.learning_rate = 0.1, .weight_decay = 0.5, .decay = "matrices"), r.loss);
    run(&r, step, 1);
    CHECK_NEAR(first(&r, r.kernel, 0), 1 - 0.05 - 0.1, 1e-4);
    CHECK_NEAR(first(&r, r.bias, 0), 1 - 0.1, 1e-4);
    CHECK_NEAR(first(&r, r.scale, 0), 1 - 0.1, 1e-4);
    CHECK_NEAR(first(&r, r.table, 2), 1 - 0.1, 1e-4);
    CHECK_NEAR(first(&r, r.table, 0), 1, 0); /* without decay only rows that were used move */
    end(&r);
    /* A group's own decay wins. */
    r = begin();
    step =
        tutti_minimize(tutti_adamw(.learning_rate = 0.1, .weight_decay = 0.5, .decay = "matrices",
                                   .groups = TUTTI_PARAM_GROUPS({"*bias", .weight_decay = 0.2})),
                       r.loss);
    run(&r, step, 1);
    CHECK_NEAR(first(&r, r.bias, 0), 1 - 0.02 - 0.1, 1e-4);
    CHECK_NEAR(first(&r, r.kernel, 0), 1 - 0.05 - 0.1, 1e-4);
    end(&r);
}

static void refuse(tutti_optimizer optimizer, const char *text)
{
    rig r = begin();
    CHECK(!tutti_sym_ok(tutti_minimize(optimizer, r.loss)));
    CHECK(tutti_graph_check(r.graph) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), text);
    end(&r);
}

static bool is_norm(const char *name, void *context)
{
    (*(int *)context)++;
    return strncmp(name, "norm/", 5) == 0;
}

static bool is_none(const char *name, void *context)
{
    (void)context;
    return name[0] == '\0';
}

TUTTI_TEST(param_groups_that_mean_nothing_are_refused)
{
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"encoder/*", .weight_decay = 0.1})),
           "no weight belongs to parameter group 1 ('encoder/*'); there are body/kernel, "
           "body/bias, words, norm/scale");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"*", .weight_decay = 0.1},
                                                   {"*bias", .weight_decay = 0.2})),
           "every weight of parameter group 2 ('*bias') belongs to an earlier group");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"*bias", .weight_decay = 0})),
           "changes nothing: 0 means the optimizer's setting; write TUTTI_ZERO");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({NULL, .frozen = true})), "has no pattern");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS(
                          {"words", .learning_rate = 1, .learning_rate_factor = 1})),
           "both learning_rate and");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"words", .learning_rate = 1}),
                      .schedule = tutti_cosine_decay(.learning_rate = 1, .decay_steps = 9)),
           "which no schedule drives; give .learning_rate_factor");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"words", .clip_norm = 1, .clip_value = 1})),
           "only one of clip_value");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"*", .weight_decay = -1})), "negative");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({"*", .frozen = true})),
           "frozen parameter groups hold all 4 variables");
    refuse(tutti_adam(.groups = TUTTI_PARAM_GROUPS({.filter = is_none, .frozen = true})),
           "parameter group 1 (a function)");
    refuse(tutti_adamw(.decay = "kernels"), "decay is \"all\" or \"matrices\", not 'kernels'");
    refuse(tutti_adam(.groups = {40, (tutti_param_group[40]){{"*", .frozen = true}}}),
           "at most 32");
}

TUTTI_TEST(param_groups_by_a_function)
{
    int calls = 0;
    rig r = begin();
    tutti_sym step = tutti_minimize(
        tutti_sgd(0.1, .groups = TUTTI_PARAM_GROUPS(
                           {.filter = is_norm, .context = &calls, .learning_rate_factor = 2})),
        r.loss);
    run(&r, step, 1);
    CHECK(calls > 0);
    CHECK_NEAR(first(&r, r.scale, 0), 1 - 0.2 * 2, 1e-6);
    CHECK_NEAR(first(&r, r.kernel, 0), 1 - 0.1, 1e-6);
    end(&r);
}

/* ---- models ---- */

typedef struct result {
    float weights[512];
    int count;
} result;

static tutti_model *make_model(tutti_job *job)
{
    return tutti_sequential(job, tutti_dense(12, .activation = TUTTI_RELU, .name = "body"),
                            tutti_layer_norm(.name = "norm"), tutti_dense(3, .name = "head"));
}

static tutti_optimizer grouped(void)
{
    return tutti_adamw(.weight_decay = 0.1, .decay = "matrices", .global_clip_norm = 0.5,
                       .schedule = tutti_cosine_decay(.learning_rate = 0.02, .decay_steps = 40,
                                                      .warmup_steps = 4),
                       .groups = TUTTI_PARAM_GROUPS({"body/*", .learning_rate_factor = 0.5},
                                                    {"head/bias", .frozen = true},
                                                    {"norm/?*", .clip_norm = 0.1}));
}

static result read_weights(tutti_model *m)
{
    result r = {.count = 0};
    tutti_weight_info info;
    for (int i = 0; tutti_weight_at(m, i, &info) == TUTTI_OK; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_get_weight(m, info.name, &value));
        for (int64_t k = 0; k < tutti_tensor_count(value) && r.count < 512; k++)
            r.weights[r.count++] = (float)tutti_tensor_get(value, k);
        tutti_tensor_release(value);
    }
    return r;
}

static tutti_dataset *examples(tutti_job *job)
{
    return tutti__test_examples(job, (tutti_test_examples){48, 6, 3, 5, 8});
}

static result train(tutti_strategy *strategy)
{
    result r = {.count = 0};
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make_model(job);
        tutti_compile(m, .optimizer = grouped(),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job), .epochs = 2, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        r = read_weights(m);
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return r;
}

TUTTI_TEST(param_groups_are_the_same_on_several_devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    result one = train(NULL);
    result same = train(tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true));
    result two = train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .deterministic = true));
    result three = train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,far:0"));
    CHECK(one.count > 100 && one.count == two.count && one.count == three.count);
    CHECK(memcmp(same.weights, two.weights, (size_t)two.count * sizeof(float)) == 0);
    for (int i = 0; i < one.count; i++)
        CHECK_NEAR(three.weights[i], one.weights[i], 1e-4);
}

/* Half an epoch, a checkpoint, another process: the same bits. The model's JSON has the groups. */
TUTTI_TEST(param_groups_survive_checkpoints_and_files)
{
    char path[] = "/tmp/tutti_groups_XXXXXX", file[64];
    CHECK(mkdtemp(path) != NULL);
    snprintf(file, sizeof file, "%s/model", path);
    result whole = {0}, resumed = {0};
    for (int part = 0; part < 3; part++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = make_model(job);
        tutti_build(m, TUTTI_F32, 6);
        tutti_compile(m, .optimizer = grouped(),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        if (part == 2)
            CHECK_OK(tutti_restore_checkpoint(m, file));
        tutti_fit(m, examples(job), .epochs = part == 1 ? 1 : 2, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        if (part == 1)
            CHECK_OK(tutti_save_checkpoint(m, file));
        else
            *(part == 0 ? &whole : &resumed) = read_weights(m);
        if (part == 2)
            CHECK_OK(tutti_save_model(m, file));
        CHECK_INT(tutti_close(job), 0);
    }
    CHECK(whole.count > 100);
    CHECK(memcmp(&whole, &resumed, sizeof whole) == 0);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_load_model(job, file);
    CHECK_OK(tutti_job_check(job));
    tutti_tensor *before, *after, *other;
    CHECK_OK(tutti_get_weight(m, "head/bias", &before));
    tutti_fit(m, examples(job), .epochs = 1, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_get_weight(m, "head/bias", &after));
    CHECK(tutti_tensor_same(before, after)); /* frozen, as the JSON says */
    CHECK_OK(tutti_get_weight(m, "head/kernel", &other));
    CHECK(tutti_tensor_get(other, 0) != whole.weights[0]);
    tutti_tensor_release(before);
    tutti_tensor_release(after);
    tutti_tensor_release(other);
    CHECK_INT(tutti_close(job), 0);
    char remove[128];
    snprintf(remove, sizeof remove, "rm -r %s", path);
    CHECK_INT(system(remove), 0);
}
