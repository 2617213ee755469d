/* forecast_test.c: what is predicted of a step before it is taken: memory to the last percents, and
 * the work of each rank. Times are measured by `tutti bench forecast`: they need a quiet machine.
 */
#include "nn/training/forecast_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/params.h"
#include "base/test.h"
#include "nn/callbacks/common.h"
#include "nn/model/model_strategy.h"
#include "nn/training/trainer.h"
#include "tutti/tutti.h"

enum { BATCH = 40, SIDE = 12, CLASSES = 10 };

typedef struct step {
    tutti_job *job;
    tutti_model *model;
    tutti_step_function *function;
    tutti_tensor *tensors[2];
} step;

static tutti_model *small_net(tutti_job *job)
{
    tutti_model *m =
        tutti_sequential(job, tutti_conv2d(8, 3, .activation = TUTTI_RELU), tutti_batch_norm(),
                         tutti_max_pool2d(2), tutti_flatten(), tutti_dropout(0.2),
                         tutti_dense(64, .activation = TUTTI_RELU), tutti_dense(CLASSES));
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 1e-3),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    return m;
}

static tutti_model *wide_net_by(tutti_job *job, tutti_optimizer optimizer)
{
    tutti_model *m =
        tutti_sequential(job, tutti_flatten(), tutti_dense(256, .activation = TUTTI_RELU),
                         tutti_dense(256, .activation = TUTTI_RELU), tutti_dense(CLASSES));
    tutti_compile(m, .optimizer = optimizer,
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    return m;
}

static tutti_model *wide_net(tutti_job *job)
{
    return wide_net_by(job, tutti_sgd(0.1));
}

static tutti_model *clipped_net(tutti_job *job)
{
    return wide_net_by(job, tutti_sgd(0.1, .global_clip_norm = 0.1));
}

static step make_step(tutti_model *(*net)(tutti_job *job))
{
    step s = {.job = tutti_open(NULL, NULL)};
    int64_t dims[] = {BATCH, SIDE, SIDE, 1};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, dims, &s.tensors[0]));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, dims, &s.tensors[1]));
    for (int64_t i = 0; i < tutti_tensor_count(s.tensors[0]); i++)
        tutti_tensor_set(s.tensors[0], i, sin((double)(i % 97)));
    for (int64_t i = 0; i < BATCH; i++)
        tutti_tensor_set(s.tensors[1], i, (double)(i % CLASSES));
    s.model = net(s.job);
    tutti_build(s.model, TUTTI_F32, SIDE, SIDE, 1);
    CHECK_OK(tutti__step_function_for(s.model, true, 2, s.tensors, &s.function));
    return s;
}

static void end_step(step *s)
{
    tutti_tensor_release(s->tensors[0]);
    tutti_tensor_release(s->tensors[1]);
    CHECK_INT(tutti_close(s->job), 0);
}

static double state_bytes(tutti_model *model)
{
    double bytes = 0;
    tutti_state *state = tutti__engine_state(model->engine);
    for (size_t i = 0; tutti__state_at(state, i); i++) {
        const tutti_state_variable *variable = tutti__state_at(state, i);
        for (size_t k = 0; k < variable->pieces.count; k++)
            if (variable->pieces.data[k]->value &&
                (k == 0 || variable->pieces.data[k]->value != variable->pieces.data[0]->value))
                bytes += (double)variable->pieces.data[k]->value->buffer->size;
    }
    return bytes;
}

/* Variables as they lie there, and what the steps take beside them by the allocators' own count. */
static void check_memory(tutti_model *(*net)(tutti_job *job), tutti_strategy *strategy)
{
    TUTTI_WITH_STRATEGY(strategy)
    {
        step s = make_step(net);
        tutti_forecast f;
        double fed = 0;
        CHECK_OK(tutti__step_function_run(s.model, s.function, 0, false, 2,
                                          s.tensors)); /* it has its variables now */
        tutti__step_function_drop(s.function);
        CHECK_OK(tutti__step_function_for(s.model, true, 2, s.tensors, &s.function));
        int64_t before = tutti__memory_now();
        CHECK_OK(tutti__forecast_step_function(s.model, s.function, 0, false, 2, s.tensors, &f));
        CHECK(f.timed && f.step > 0 && f.compute > 0 && f.weights > 0 && f.activations > 0);
        tutti__memory_mark();
        for (int i = 0; i < 3; i++)
            CHECK_OK(tutti__step_function_run(s.model, s.function, 0, false, 2, s.tensors));
        for (int i = 0; i < 2; i++)
            fed += (double)tutti_tensor_count(s.tensors[i]) * 4;
        double measured = (double)(tutti__memory_most() - before) + state_bytes(s.model) + fed;
        double predicted = f.total * tutti_strategy_local(strategy);
        CHECK_NEAR(predicted / measured, 1, 0.05);
        end_step(&s);
    }
}

TUTTI_TEST(forecast_of_memory_is_what_a_step_takes)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_model *(*const nets[])(tutti_job *) = {small_net, wide_net};
    for (size_t i = 0; i < TUTTI_COUNT(nets); i++) {
        tutti_strategy *one = tutti_strategy_one_device(.devices = "cpu:0");
        tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
        check_memory(nets[i], one);
        check_memory(nets[i], two);
        CHECK_OK(tutti_strategy_close(one));
        CHECK_OK(tutti_strategy_close(two));
    }
}

typedef struct work {
    double all, updates; /* FLOPs */
} work;

/* Of the program that replica `first` of `workers` has, by the operators' cost rules. */
static work work_of(const step *s, int workers, int first, bool deterministic)
{
    tutti_strategy_options options = {
        .struct_size = sizeof options, .deterministic = deterministic, .shards = 8};
    tutti_strategy *imagined =
        tutti__strategy_imagine("multi_worker_mirrored", workers, first, &options);
    tutti_rehearsal rehearsal = {0};
    work w = {0};
    CHECK_OK(tutti__forecast_imagined(s->model, s->function, 2, s->tensors, imagined, &rehearsal));
    for (size_t i = 0; rehearsal.count == 1 && i < rehearsal.devices[0].count; i++) {
        const tutti_node *node = rehearsal.devices[0].data[i].node;
        double flops = node ? tutti__node_flops(node) : 0;
        w.all += flops;
        w.updates += node && (node->op->flags & TUTTI_OP_UPDATES) ? flops : 0;
    }
    tutti__rehearsal_free(&rehearsal);
    CHECK_OK(tutti_strategy_close(imagined));
    return w;
}

/* Of W ranks and V shards, ceil(V / W) / V of the batch's work and a tenth more; every rank updates
 * all weights, which is a tenth of one worker's work at most. */
TUTTI_TEST(deterministic_ranks_do_their_share_of_the_work_and_no_more)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose programs are counted */
    enum { SHARDS = 8 };
    step s = make_step(small_net);
    work alone = work_of(&s, 1, 0, true), plain = work_of(&s, 1, 0, false);
    CHECK(alone.all > 1e6 && alone.updates > 0);
    CHECK_NEAR(alone.all / plain.all, 1, 0.1); /* shards cost nothing in FLOPs */
    for (int workers = 2; workers <= SHARDS; workers++) {
        int most = (SHARDS + workers - 1) / workers;
        double sum = 0;
        for (int rank = 0; rank < workers; rank++) {
            work w = work_of(&s, workers, rank, true);
            sum += w.all - w.updates;
            CHECK(w.all <= alone.all * most / SHARDS + 0.1 * alone.all);
            CHECK(w.all - w.updates <= 1.1 * (alone.all - alone.updates) * most / SHARDS);
        }
        CHECK(sum >= 0.9 * (alone.all - alone.updates)); /* sums over shards are collectives now */
    }
    end_step(&s);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

static void check_exchange(tutti_model *(*net)(tutti_job *job))
{
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    TUTTI_WITH_STRATEGY(two)
    {
        step s = make_step(net);
        tutti_forecast f;
        char *text;
        CHECK_OK(tutti__forecast_step_function(s.model, s.function, 0, false, 2, s.tensors, &f));
        CHECK(f.replicas == 2 && f.communication > 0 && f.exposed > 0);
        CHECK_NEAR(f.step, f.compute + f.exposed, 1e-9);
        /* of each gradient a replica gives and gets half */
        double weights = 4.0 * (145 * 256 + 257 * 256 + 257 * 10);
        CHECK_NEAR(f.sent / weights, 1, 0.01);
        CHECK_OK(tutti__forecast_text(s.model->name, two, &f, &text));
        CHECK_CONTAINS(text, "2 devices   strategy mirrored");
        CHECK_CONTAINS(text, "gradients in buckets");
        CHECK_CONTAINS(text, "per step: predicted");
        free(text);
        end_step(&s);
    }
    CHECK_OK(tutti_strategy_close(two));
}

/* Clipped together, gradients are added up once as well. */
TUTTI_TEST(forecast_prices_what_replicas_exchange)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    check_exchange(wide_net);
    check_exchange(clipped_net);
}

/* One row is worked on by all replicas, each of which is busy with what one device would do. */
TUTTI_TEST(forecast_of_one_row_is_no_more_efficient_than_one_replica)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    TUTTI_WITH_STRATEGY(two)
    {
        step s = make_step(small_net);
        tutti_tensor *one[2];
        tutti_forecast f;
        char *text;
        for (int i = 0; i < 2; i++)
            CHECK_OK(tutti_tensor_slice(s.tensors[i], 0, 0, 1, 1, &one[i]));
        CHECK_OK(tutti__forecast_step_function(s.model, s.function, 0, false, 2, one, &f));
        CHECK(f.efficiency > 0 && f.efficiency <= 0.5);
        CHECK_OK(tutti__forecast_text("it", two, &f, &text));
        CHECK_CONTAINS(text, "one row cannot be shared");
        free(text);
        tutti_tensor_release(one[0]);
        tutti_tensor_release(one[1]);
        end_step(&s);
    }
    CHECK_OK(tutti_strategy_close(two));
}

/* Bytes that a replica of two workers sends in a step, with gradients in some form on the wire. */
static double sent_by(const step *s, tutti_dtype wire, const char *compression)
{
    tutti_strategy_options options = {
        .struct_size = sizeof options, .wire = wire, .compression = compression};
    tutti_strategy *imagined = tutti__strategy_imagine("multi_worker_mirrored", 2, 0, &options);
    tutti_forecast_reach reach = {.processes = 2, .local = 1};
    tutti_rehearsal rehearsal = {0};
    tutti_forecast f;
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        reach.cost.link[link].alpha = 1e-5;
    CHECK_OK(tutti__forecast_imagined(s->model, s->function, 2, s->tensors, imagined, &rehearsal));
    CHECK_OK(tutti__forecast(&rehearsal, &reach, 1, &f));
    tutti__rehearsal_free(&rehearsal);
    CHECK_OK(tutti_strategy_close(imagined));
    return f.sent;
}

/* Of two workers each sends as many bytes as there are of gradients; half of these in 16 bits; a
 * place and a value for each number of topk; (n + m) r for n m of powersgd, where that is less. */
TUTTI_TEST(forecast_counts_gradients_in_the_form_in_which_they_travel)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    step s = make_step(wide_net);
    double whole = sent_by(&s, TUTTI_F32, NULL);
    double rest = whole - 4.0 * (144 * 256 + 256 * 256 + 256 * 10 + 256 + 256 + 10);
    CHECK(rest >= 0 && rest < 0.01 * whole); /* losses, metrics */
    CHECK_NEAR(sent_by(&s, TUTTI_BF16, NULL) / (whole / 2), 1, 0.01);
    CHECK_NEAR(sent_by(&s, TUTTI_F32, "topk:0.01") / (0.01 * 2 * whole), 1, 0.05);
    double thin = 4.0 * 2 * (144 + 256 + 256 + 256 + 256 + 10) + 4.0 * (256 + 256 + 10);
    CHECK_NEAR(sent_by(&s, TUTTI_F32, "powersgd:2") / (thin + rest), 1, 0.05);
    end_step(&s);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* What a rank of four holds and sends under a stage of ZeRO. */
static tutti_forecast sharded_by(const step *s, int zero)
{
    tutti_strategy_options options = {
        .struct_size = sizeof options, .zero = zero, .replicate_below = 1};
    tutti_strategy *imagined = tutti__strategy_imagine("fully_sharded", 4, 0, &options);
    tutti_forecast_reach reach = {.processes = 4, .local = 1};
    tutti_rehearsal rehearsal = {0};
    tutti_forecast f;
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        reach.cost.link[link].alpha = 1e-5;
    CHECK_OK(tutti__forecast_imagined(s->model, s->function, 2, s->tensors, imagined, &rehearsal));
    CHECK_OK(tutti__forecast(&rehearsal, &reach, 1, &f));
    tutti__rehearsal_free(&rehearsal);
    CHECK_OK(tutti_strategy_close(imagined));
    return f;
}

/* 2 (N-1)/N of the weights' bytes under stages 1 and 2, 3 (N-1)/N under 3 but for the region that
 * is last forward and first backward; a quarter of the weights on each. Layer 1 needs no gradient
 * of what goes in, so that its weights are not gathered a second time. (10 columns and 10 numbers
 * do not divide by 4: their sums are on all, which takes twice the bytes.) */
TUTTI_TEST(forecast_counts_what_fully_sharded_moves)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    step s = make_step(wide_net);
    double first = 144 * 256 + 256, second = 256 * 256 + 256, last = 256 * 10 + 10;
    double weights = 4 * (first + second + last), share = 3.0 / 4;
    for (int zero = 1; zero <= 3; zero++) {
        tutti_forecast f = sharded_by(&s, zero);
        double again = zero == 3 ? 4 * 256 * 256 : 0;
        CHECK_NEAR(f.sent / (share * (2 * weights + again)), 1, 0.01);
        CHECK_NEAR(f.weights / (weights / 4), 1, 0.02);
    }
    end_step(&s);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* ---- tensor parallelism ---- */

enum { WINDOWS = 4, CONTEXT = 8, KINDS = 32 };

static tutti_model *transformer(tutti_job *job, int blocks)
{
    tutti_model *m =
        tutti_sequential(job, tutti_embedding(KINDS, 16), tutti_position_embedding(CONTEXT));
    for (int i = 0; i < blocks; i++)
        tutti_model_add(
            m, tutti_transformer_block(4, .use_causal_mask = true, .normalize_first = true));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_dense(KINDS));
    tutti_compile(m, .optimizer = tutti_adamw(.learning_rate = 1e-3, .global_clip_norm = 1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    return m;
}

/* Those of a rank of two in a step that trains. */
static int count_collectives(int blocks)
{
    step s = {.job = tutti_open(NULL, NULL)};
    int count = 0;
    for (int i = 0; i < 2; i++)
        CHECK_OK(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){WINDOWS, CONTEXT}, &s.tensors[i]));
    for (int64_t i = 0; i < WINDOWS * CONTEXT; i++) {
        tutti_tensor_set(s.tensors[0], i, (double)(i % KINDS));
        tutti_tensor_set(s.tensors[1], i, (double)((i + 1) % KINDS));
    }
    s.model = transformer(s.job, blocks);
    tutti_build(s.model, TUTTI_I32, CONTEXT);
    CHECK_OK(tutti__step_function_for(s.model, true, 2, s.tensors, &s.function));
    tutti_strategy_options options = {.struct_size = sizeof options, .replicate_below = 1};
    tutti_strategy *imagined = tutti__strategy_imagine("tensor", 2, 0, &options);
    tutti_rehearsal rehearsal = {0};
    CHECK_OK(tutti__forecast_imagined(s.model, s.function, 2, s.tensors, imagined, &rehearsal));
    for (size_t i = 0; i < rehearsal.devices[0].count; i++) {
        const tutti_node *node = rehearsal.devices[0].data[i].node;
        count +=
            node && (node->op->flags & TUTTI_OP_COLLECTIVE) && !tutti__is(node, "all_reduce_wait");
    }
    tutti__rehearsal_free(&rehearsal);
    CHECK_OK(tutti_strategy_close(imagined));
    end_step(&s);
    return count;
}

/* A sum behind attention and one behind the dense layers, forward and backward. Beside them, for
 * any number of blocks: each row's greatest score, for the loss and for its gradient; the sum of
 * its exponentials, for the gradient; the gradient of what goes into the last layer; and, at the
 * end, all that nobody waits for: the loss's sums with that of the gradients' norm. */
TUTTI_TEST(forecast_counts_four_collectives_a_block_under_tensor)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    for (int blocks = 1; blocks <= 3; blocks++)
        CHECK_INT(count_collectives(blocks), 4 * blocks + 5);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* Rows that come from other replicas are made up, so that updating them is timed. */
TUTTI_TEST(a_rehearsal_updates_rows_of_other_replicas)
{
    enum { ROWS = 20, WORDS = 6, VOCABULARY = 20000, WIDTH = 32 };
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    TUTTI_WITH_STRATEGY(two)
    {
        step s = {.job = tutti_open(NULL, NULL)};
        tutti_rehearsal rehearsal = {0};
        int updates = 0;
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){ROWS, WORDS}, &s.tensors[0]));
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){ROWS}, &s.tensors[1]));
        for (int64_t i = 0; i < ROWS * WORDS; i++)
            tutti_tensor_set(s.tensors[0], i, (double)(i * 7919 % VOCABULARY));
        s.model = tutti_sequential(s.job, tutti_embedding(VOCABULARY, WIDTH), tutti_flatten(),
                                   tutti_dense(CLASSES));
        tutti_compile(s.model, .optimizer = tutti_adam(.learning_rate = 1e-3),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_build(s.model, TUTTI_I64, WORDS);
        CHECK_OK(tutti__step_function_for(s.model, true, 2, s.tensors, &s.function));
        CHECK_OK(tutti__step_function_rehearse(s.model, s.model->engine, s.function, 0, false, 2,
                                               s.tensors, &rehearsal));
        for (int d = 0; d < rehearsal.count; d++)
            for (size_t i = 0; i < rehearsal.devices[d].count; i++) {
                const tutti_timed *timed = &rehearsal.devices[d].data[i];
                bool rows = timed->node && strcmp(timed->node->op->name, "adam_update_rows") == 0;
                CHECK(!rows || (!timed->skipped && timed->seconds > 0));
                updates += rows;
            }
        CHECK_INT(updates, 2);
        tutti__rehearsal_free(&rehearsal);
        end_step(&s);
    }
    CHECK_OK(tutti_strategy_close(two));
}

/* A rehearsal changes no weight, no slot and no sum. */
TUTTI_TEST(a_rehearsal_changes_nothing)
{
    float lasts[2];
    for (int with = 0; with < 2; with++) {
        step s = make_step(small_net);
        tutti_forecast f;
        tutti_weight_info info;
        tutti_tensor *value;
        if (with)
            CHECK_OK(
                tutti__forecast_step_function(s.model, s.function, 0, false, 2, s.tensors, &f));
        for (int i = 0; i < 2; i++)
            CHECK_OK(tutti__step_function_run(s.model, s.function, 0, false, 2, s.tensors));
        CHECK_OK(tutti_weight_at(s.model, 0, &info));
        CHECK_OK(tutti_get_weight(s.model, info.name, &value));
        lasts[with] = (float)tutti_tensor_get(value, 3);
        tutti_tensor_release(value);
        end_step(&s);
    }
    CHECK(lasts[0] == lasts[1]);
}

/* `auto` with several devices: whatever it chooses, the losses are those of one device. */
TUTTI_TEST(auto_chooses_by_forecast_and_says_so)
{
    double losses[2];
    for (int i = 0; i < 2; i++) {
        const char *flags[] = {"test",
                               "--strategy",
                               i ? "auto" : "one_device",
                               "--devices",
                               i ? "cpu:0,cpu:1" : "cpu:0",
                               NULL};
        int argc = 5;
        char **argv = (char **)flags;
        tutti_text shown = {0};
        tutti_job *job = tutti_open(&argc, &argv);
        step s = make_step(small_net); /* for its tensors */
        tutti_model *m = small_net(job);
        tutti_dataset *data =
            tutti_batch(tutti_from_tensor_slices(job, s.tensors[0], s.tensors[1]), 20);
        tutti_callback *bar = tutti__progress_into(&shown, false, 0);
        const tutti_history *h = tutti_fit(m, data, .epochs = 3, .callbacks = TUTTI_LIST(bar));
        CHECK_OK(tutti_job_check(job));
        losses[i] = tutti_history_get(h, "loss", 2);
        if (i) {
            CHECK_CONTAINS(shown.data, "auto: ");
            CHECK_CONTAINS(shown.data, " a step is predicted on 2 devices, ");
        }
        CHECK_INT(tutti_close(job), 0);
        tutti__text_free(&shown);
        end_step(&s);
    }
    CHECK_NEAR(losses[1], losses[0], 1e-3 * fabs(losses[0]));
}

/* From two devices back to one: the variables come along. */
TUTTI_TEST(an_engine_gathers_what_it_has_spread)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    float lasts[2];
    for (int gathers = 0; gathers < 2; gathers++) {
        tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
        TUTTI_WITH_STRATEGY(two)
        {
            step s = make_step(wide_net);
            tutti_weight_info info;
            tutti_tensor *value;
            CHECK_OK(tutti__step_function_run(s.model, s.function, 0, false, 2, s.tensors));
            if (gathers) {
                CHECK_OK(tutti__engine_gather(s.model->engine));
                CHECK(!tutti__model_strategy(s.model));
            }
            CHECK_OK(tutti__step_function_run(s.model, s.function, 0, false, 2, s.tensors));
            CHECK_OK(tutti_weight_at(s.model, 0, &info));
            CHECK_OK(tutti_get_weight(s.model, info.name, &value));
            lasts[gathers] = (float)tutti_tensor_get(value, 100);
            tutti_tensor_release(value);
            end_step(&s);
        }
        CHECK_OK(tutti_strategy_close(two));
    }
    CHECK_NEAR(lasts[1], lasts[0], 1e-6);
}
