/* consistency.c: see consistency.h. */
#include "nn/training/consistency.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/log.h"
#include "exec/engine.h"
#include "nn/optimizers/optimizer.h"
#include "nn/optimizers/schedule.h"
#include "nn/training/callback.h"
#include "nn/training/config.h"
#include "ops/state/state.h"

/* ---- what is trained ---- */

static uint64_t hash_numbers(uint64_t hash, int count, const double *numbers)
{
    return tutti__hash_bytes(hash, numbers, (size_t)count * sizeof *numbers);
}

/* As it is printed. */
static unsigned shortened(uint64_t hash)
{
    return (unsigned)(hash ^ hash >> 32);
}

static void describe_optimizer(const tutti_optimizer *o, size_t size, char *ret_text)
{
    double common[] = {o->weight_decay, o->clip_value, o->clip_norm, o->global_clip_norm,
                       o->ema_decay};
    uint64_t hash = hash_numbers(0, 5, common);
    hash = hash_numbers(hash, TUTTI_OPTIMIZER_NUMBERS, o->numbers);
    hash = hash_numbers(hash, TUTTI_SCHEDULE_NUMBERS, o->schedule.numbers);
    hash = tutti__hash_string(hash, o->decay ? o->decay : "all");
    for (int i = 0; i < o->group_count; i++) {
        const tutti_param_group *g = &o->groups[i];
        double numbers[] = {g->learning_rate_factor, g->weight_decay, g->clip_value, g->clip_norm,
                            g->global_clip_norm,     g->frozen};
        hash = tutti__hash_string(hash, g->pattern ? g->pattern : "");
        hash = hash_numbers(hash, 6, numbers);
    }
    snprintf(ret_text, size, "optimizer %s, learning rate %.9g, %s, settings %08x", o->def->name,
             o->learning_rate, o->schedule.def ? o->schedule.def->name : "no schedule",
             shortened(hash));
}

static const char *loss_name(const tutti_loss *loss)
{
    return loss->name ? loss->name : loss->def ? loss->def->name : "none";
}

/* "loss mse, settings 1a2b3c4d", of all outputs. */
static void describe_losses(const tutti_trainer *trainer, size_t size, char *ret_text)
{
    uint64_t hash = 0;
    size_t used = 0;
    ret_text[0] = 0;
    for (size_t i = 0; i < trainer->goals.count; i++) {
        const tutti_goal *goal = &trainer->goals.data[i];
        const tutti_loss *loss = &goal->loss;
        double numbers[] = {goal->weight,          loss->reduction, loss->from_logits,
                            loss->label_smoothing, loss->delta,     loss->gamma,
                            loss->alpha,           goal->output,    loss->quantile};
        hash =
            hash_numbers(tutti__hash_string(hash, loss_name(loss)), TUTTI_COUNT(numbers), numbers);
        if (used < size)
            used += (size_t)snprintf(ret_text + used, size - used, "%s %s", i ? "," : "loss",
                                     loss_name(loss));
    }
    if (trainer->class_weights)
        hash =
            tutti__hash_bytes(hash, tutti_tensor_data(trainer->class_weights),
                              (size_t)tutti_tensor_count(trainer->class_weights) * sizeof(float));
    if (used < size)
        snprintf(ret_text + used, size - used, ", settings %08x", shortened(hash));
}

/* Layers by their settings: shapes may differ while processes have read batches of other lengths.
 * What somebody's own layer does not tell is left out. */
static uint64_t hash_layers(const tutti_model *model)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < model->layers.count; i++) {
        tutti_text text = {0};
        tutti_json_writer writer = {.text = &text};
        (void)tutti__config_write_layer(model->layers.data[i], NULL, &writer);
        hash = tutti__hash_bytes(hash, text.data, text.size);
        tutti__text_free(&text);
    }
    for (size_t i = 0; i < model->frozen.count; i++) /* what was asked of weights by name */
        hash = tutti__hash_string(hash + (uint64_t)(uintptr_t)model->frozen.entries[i].value,
                                  model->frozen.entries[i].key);
    return hash;
}

tutti_status tutti__training_consistent(const tutti_model *model, const tutti_training *training)
{
    enum { LINES = 7, LENGTH = 160 };
    char lines[LINES][LENGTH];
    const char *texts[LINES];
    tutti_shard_policy policy;
    if (!tutti__model_shares(model))
        return TUTTI_OK;
    const tutti_trainer *trainer = model->trainer;
    tutti_dataset *data = training->data;
    bool own = tutti__dataset_is_own(data);
    TUTTI_TRY(tutti__strategy_shard(tutti__model_strategy(model), data, false, &policy));
    snprintf(lines[0], LENGTH, "version %s", tutti_version());
    snprintf(lines[1], LENGTH, "seed %llu, %s --resume",
             (unsigned long long)tutti_job_seed(model->job),
             tutti_flag_on(model->job, "resume") ? "with" : "without");
    snprintf(lines[2], LENGTH, "model '%s' of %zu nodes, %zu layers, settings %08x", model->name,
             model->graph->nodes.count, model->layers.count, shortened(hash_layers(model)));
    describe_losses(trainer, LENGTH, lines[3]);
    snprintf(lines[4], LENGTH, "data of %lld batches of %lld, shared by %s",
             (long long)tutti__count_batches(model, data, false, 0),
             own ? -1 : (long long)training->batch, own ? "function" : tutti__share_name(policy));
    snprintf(lines[5], LENGTH,
             "epochs %d to %d of %lld steps, accumulate %d, after step %lld, checkpoint %08x",
             training->first, training->last, (long long)training->steps, trainer->accumulate,
             (long long)trainer->steps, shortened(trainer->identity));
    describe_optimizer(&trainer->optimizer, LENGTH, lines[6]);
    for (int i = 0; i < LINES; i++)
        texts[i] = lines[i];
    return tutti__model_same(model, LINES, texts);
}

/* ---- the weights it begins with ---- */

typedef struct weights {
    tutti_model *model;
    const tutti_strategy *strategy;
    int count;
    const char **names;
    uint64_t *hashes;
    int32_t *unlike; /* the first rank that has it otherwise than rank 0, or INT32_MAX */
} weights;

/* Copies that differ by design are left alone. */
static bool is_mirrored(const weights *w, const char *name)
{
    const tutti_node *node = tutti_graph_find(w->model->graph, name);
    const tutti_state_variable *v =
        tutti__state_find(tutti__engine_state(w->model->engine), tutti__state_name(node));
    return v && !v->partial && !v->averaged && v->type.dtype != TUTTI_STRING;
}

static size_t bytes_of(const tutti_tensor *value)
{
    return (size_t)tutti_tensor_count(value) * tutti_dtype_size(tutti_tensor_dtype(value));
}

static tutti_status hash_weights(weights *w)
{
    tutti_weight_info info;
    int count = tutti_weight_count(w->model);
    for (int i = 0; i < count && tutti_weight_at(w->model, i, &info) == TUTTI_OK; i++) {
        tutti_tensor *value;
        if (!is_mirrored(w, info.name))
            continue;
        TUTTI_TRY(tutti_get_weight(w->model, info.name, &value));
        w->names[w->count] = info.name;
        w->hashes[w->count++] = tutti__hash_bytes(0, tutti_tensor_data(value), bytes_of(value));
        tutti_tensor_release(value);
    }
    return TUTTI_OK;
}

/* Whose weights are unlike rank 0's: the same answer on all ranks. */
static tutti_status find_unlike(weights *w)
{
    int32_t rank = tutti_strategy_rank(w->strategy);
    uint64_t *first = malloc((size_t)w->count * sizeof *first);
    if (!first)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compare %d weights", w->count);
    memcpy(first, w->hashes, (size_t)w->count * sizeof *first);
    static const char label[] = "weights of the first process";
    tutti_status status =
        tutti__processes_take(w->strategy, label, 0, w->count * (int64_t)sizeof *first, first);
    for (int i = 0; i < w->count; i++)
        w->unlike[i] = first[i] == w->hashes[i] ? INT32_MAX : rank;
    free(first);
    TUTTI_TRY(status);
    return tutti__processes_reduce(w->strategy, label, TUTTI_I32, w->count, w->unlike, TUTTI_MIN);
}

static tutti_status take_first(const weights *w, const char *name)
{
    tutti_tensor *now, *next = NULL;
    TUTTI_TRY(tutti_get_weight(w->model, name, &now));
    tutti_status status = tutti_tensor_create(tutti_tensor_dtype(now), tutti_tensor_rank(now),
                                              tutti_tensor_dims(now), &next);
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(next, now);
    if (status == TUTTI_OK)
        status = tutti__processes_take(w->strategy, name, 0, (int64_t)bytes_of(next),
                                       tutti_tensor_data(next));
    if (status == TUTTI_OK && tutti_strategy_rank(w->strategy) != 0)
        status = tutti_set_weight(w->model, name, next);
    tutti_tensor_release(next);
    tutti_tensor_release(now);
    return status;
}

static tutti_status make_alike(weights *w)
{
    int count = 0, shown = -1;
    TUTTI_TRY(hash_weights(w));
    if (w->count == 0)
        return TUTTI_OK;
    TUTTI_TRY(find_unlike(w));
    for (int i = 0; i < w->count; i++) {
        if (w->unlike[i] == INT32_MAX)
            continue;
        shown = shown < 0 ? i : shown;
        count++;
        TUTTI_TRY(take_first(w, w->names[i]));
    }
    if (count > 0 && tutti__model_speaks(w->model))
        tutti__log(TUTTI_LOG_WARNING,
                   "%d of %d weights, '%s' the first of them, were not the same on rank %d as on "
                   "rank 0; all ranks begin with those of rank 0",
                   count, w->count, w->names[shown], (int)w->unlike[shown]);
    return TUTTI_OK;
}

tutti_status tutti__weights_consistent(tutti_model *model)
{
    if (!tutti__model_shares(model) || tutti__strategy_spans(tutti__model_strategy(model)))
        return TUTTI_OK; /* there is one of each, where its stage is */
    size_t most = (size_t)tutti_weight_count(model) + 1;
    weights w = {.model = model,
                 .strategy = tutti__model_strategy(model),
                 .names = calloc(most, sizeof *w.names),
                 .hashes = calloc(most, sizeof *w.hashes),
                 .unlike = calloc(most, sizeof *w.unlike)};
    tutti_status status = w.names && w.hashes && w.unlike
                              ? make_alike(&w)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to compare weights");
    free(w.names);
    free(w.hashes);
    free(w.unlike);
    return status;
}
