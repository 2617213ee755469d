/* compile.c: optimizer, losses and metrics of a model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model/model_strategy.h"
#include "nn/optimizers/optimizer.h"
#include "nn/training/trainer.h"

void tutti__trainer_destroy(tutti_trainer *trainer)
{
    if (!trainer)
        return;
    for (int i = 0; i < TUTTI_STEP_FUNCTIONS; i++)
        tutti__step_function_drop(&trainer->functions[i]);
    TUTTI_VEC_FREE(&trainer->goals);
    TUTTI_VEC_FREE(&trainer->tracked);
    tutti_tensor_release(trainer->class_weights);
    tutti__history_destroy(trainer->history);
    free(trainer->memory);
    free(trainer);
}

void tutti__trainer_drop_step(tutti_trainer *trainer)
{
    for (int i = 0; trainer && i < TUTTI_STEP_FUNCTIONS / 2; i++)
        tutti__step_function_drop(&trainer->functions[i]);
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to compile the model");
}

/* The output's index by name; of a sequential or subclassed model that is not built yet there is
 * one output, 0. */
static tutti_status find_output(const tutti_model *model, const char *name, int *ret)
{
    int index = name ? tutti__port_find(&model->outputs, name) : 0;
    if (index >= 0 || (model->outputs.count == 0 && !name)) {
        *ret = index < 0 ? 0 : index;
        return TUTTI_OK;
    }
    char list[400] = "";
    for (size_t i = 0, used = 0; i < model->outputs.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 model->outputs.data[i].name);
    return tutti_fail(TUTTI_NOT_FOUND, "model '%s' has no output '%s'; it has: %s", model->name,
                      name, list[0] ? list : "none yet");
}

static tutti_status add_goal(tutti_model *model, const char *output, const tutti_loss *loss,
                             double weight)
{
    tutti_goal goal = {.loss = *loss, .weight = weight};
    TUTTI_TRY(find_output(model, output, &goal.output));
    if (!loss->def)
        return tutti_fail(TUTTI_NOT_FOUND, "output '%s': there is no such loss",
                          output ? output : "");
    for (size_t i = 0; i < model->trainer->goals.count; i++)
        if (model->trainer->goals.data[i].output == goal.output)
            return tutti_fail(TUTTI_EXISTS, "output '%s' has two losses", output ? output : "");
    return TUTTI_VEC_PUSH(&model->trainer->goals, goal) ? TUTTI_OK : no_memory();
}

static tutti_status add_goals(tutti_model *model, const tutti_compile_options *options)
{
    for (int i = 0; i < options->losses.count; i++) {
        const tutti_output_loss *entry = &options->losses.list[i];
        TUTTI_TRY(
            add_goal(model, entry->output, &entry->loss, entry->weight != 0 ? entry->weight : 1));
    }
    if (options->losses.count > 0 || !options->loss.def)
        return options->losses.count > 0
                   ? TUTTI_OK
                   : tutti_fail(TUTTI_INVALID, "the model needs a loss, one that exists");
    for (size_t i = 0; i < model->outputs.count; i++)
        TUTTI_TRY(add_goal(model, model->outputs.data[i].name, &options->loss, 1));
    model->trainer->same_for_all = model->outputs.count == 0;
    return model->outputs.count > 0 ? TUTTI_OK : add_goal(model, NULL, &options->loss, 1);
}

/* The losses among what is shown: "loss", and one for each output when there are several. */
static tutti_status track_losses(tutti_model *model)
{
    tutti_trainer *trainer = model->trainer;
    TUTTI_TRY(tutti__track(model, "loss", -1, NULL));
    for (size_t i = 0; trainer->goals.count > 1 && i < trainer->goals.count; i++) {
        char name[300];
        snprintf(name, sizeof name, "%s_loss",
                 model->outputs.data[trainer->goals.data[i].output].name);
        TUTTI_TRY(tutti__track(model, name, trainer->goals.data[i].output, NULL));
    }
    return TUTTI_OK;
}

static bool output_from_logits(const tutti_trainer *trainer, int output)
{
    for (size_t i = 0; i < trainer->goals.count; i++)
        if (trainer->goals.data[i].output == output)
            return trainer->goals.data[i].loss.from_logits;
    return false;
}

static tutti_status track_metric(tutti_model *model, const char *output, tutti_metric metric)
{
    int index;
    char name[300];
    TUTTI_TRY(find_output(model, output, &index));
    metric.from_logits = metric.from_logits || output_from_logits(model->trainer, index);
    if (model->trainer->goals.count > 1)
        snprintf(name, sizeof name, "%s_%s", model->outputs.data[index].name, metric.name);
    else
        snprintf(name, sizeof name, "%s", metric.name);
    return tutti__track(model, name, index, &metric);
}

/* The metric of every output that the model has by now. */
static tutti_status track_everywhere(tutti_model *model, tutti_metric metric)
{
    size_t count = model->outputs.count > 1 ? model->outputs.count : 1;
    for (size_t i = 0; i < count; i++) {
        TUTTI_TRY(track_metric(model, count > 1 ? model->outputs.data[i].name : NULL, metric));
        model->trainer->tracked.data[model->trainer->tracked.count - 1].of_every = true;
    }
    return TUTTI_OK;
}

/* "accuracy, department:auc": names with an output before a colon, or of every output. */
static tutti_status track_named(tutti_model *model, const char *text)
{
    while (text && *text) {
        char entry[200];
        size_t size = strcspn(text, ","), from = strspn(text, " ");
        if (size - from >= sizeof entry)
            return tutti_fail(TUTTI_INVALID, "a metric's name is too long: '%s'", text);
        memcpy(entry, text + from, size - from);
        entry[size - from] = 0;
        for (size_t end = size - from; end > 0 && entry[end - 1] == ' ';)
            entry[--end] = 0;
        text += size + (text[size] == ',');
        char *colon = strchr(entry, ':');
        if (colon)
            *colon = 0;
        tutti_metric metric = tutti_metric_by_name(colon ? colon + 1 : entry, NULL);
        if (!metric.def)
            return tutti__metric_missing(colon ? colon + 1 : entry);
        TUTTI_TRY(colon ? track_metric(model, entry, metric) : track_everywhere(model, metric));
    }
    return TUTTI_OK;
}

static tutti_status compile(tutti_model *model, const tutti_compile_options *options)
{
    tutti_trainer *trainer = model->trainer;
    trainer->optimizer = options->optimizer.def ? options->optimizer : tutti_adam();
    trainer->optimizer.learning_rate =
        tutti_flag_number(model->job, "lr", trainer->optimizer.learning_rate);
    trainer->rate = tutti__optimizer_rate(&trainer->optimizer, 0);
    TUTTI_TRY(tutti__param_groups_keep(&trainer->optimizer, &model->arena));
    if (options->accumulate < 0)
        return tutti_fail(TUTTI_INVALID, "accumulate is %d batches, it cannot be negative",
                          options->accumulate);
    trainer->accumulate = options->accumulate > 1 ? options->accumulate : 1;
    TUTTI_TRY(add_goals(model, options));
    TUTTI_TRY(track_losses(model));
    TUTTI_TRY(track_named(model, options->metrics));
    for (int i = 0; i < options->metric_list.count; i++) {
        const tutti_output_metric *entry = &options->metric_list.list[i];
        if (!entry->metric.def)
            return tutti_fail(TUTTI_NOT_FOUND, "metric %d of the list does not exist", i);
        TUTTI_TRY(track_metric(model, entry->output, entry->metric));
    }
    return TUTTI_OK;
}

tutti_status tutti__goals_of_outputs(tutti_model *model)
{
    tutti_trainer *trainer = model->trainer;
    if (!trainer || !trainer->same_for_all)
        return TUTTI_OK;
    trainer->same_for_all = false;
    for (size_t i = 1; i < model->outputs.count; i++)
        TUTTI_TRY(add_goal(model, model->outputs.data[i].name, &trainer->goals.data[0].loss, 1));
    if (model->outputs.count == 1)
        return TUTTI_OK;
    tutti_tracked *first = trainer->tracked.data; /* again, by the names of several outputs */
    size_t count = trainer->tracked.count;
    memset(&trainer->tracked, 0, sizeof trainer->tracked);
    tutti_status status = track_losses(model);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++)
        if (first[i].metric.def)
            status = first[i].of_every ? track_everywhere(model, first[i].metric)
                                       : track_metric(model, NULL, first[i].metric);
    tutti__vec_free((void **)&first);
    return status;
}

static tutti_status limit_memory(tutti_model *model, int64_t bytes)
{
    if (bytes < 0)
        return tutti_fail(TUTTI_INVALID, "a memory limit of %lld bytes", (long long)bytes);
    model->memory_limit = bytes;
    if (model->engine)
        tutti__engine_limit(model->engine, (size_t)bytes);
    return TUTTI_OK;
}

tutti_status tutti_compile_with(tutti_model *model, const tutti_compile_options *options)
{
    TUTTI_TRY(tutti_model_check(model));
    if (options->deterministic && model->engine && !model->deterministic)
        return tutti__model_fail(model,
                                 tutti_fail(TUTTI_INVALID,
                                            "model '%s' has been built already: give "
                                            "--deterministic, or compile it before it has a shape",
                                            model->name));
    TUTTI_TRY(tutti__model_fail(model, tutti__model_meet_strategy(model)));
    int64_t steps = model->trainer ? model->trainer->steps : 0;
    tutti__trainer_destroy(model->trainer);
    model->trainer = calloc(1, sizeof *model->trainer);
    if (!model->trainer)
        return tutti__model_fail(model, no_memory());
    model->trainer->steps = steps;
    model->deterministic = model->deterministic || options->deterministic;
    if (options->memory_limit != 0)
        TUTTI_TRY(tutti__model_fail(model, limit_memory(model, options->memory_limit)));
    const char *file;
    int line;
    tutti__here_get(&file, &line);
    model->trainer->file = file;
    model->trainer->line = line;
    tutti_status status = compile(model, options);
    if (status != TUTTI_OK && file)
        tutti__error_prefix(status, "tutti_compile (%s:%d)", file, line);
    if (status == TUTTI_OK)
        status = tutti__rate_begin(model);
    return tutti__model_fail(model, status);
}

tutti_status tutti__need_trainer(tutti_model *model)
{
    TUTTI_TRY(tutti_model_check(model));
    if (!model->trainer)
        return tutti__model_fail(
            model, tutti_fail(TUTTI_INVALID, "model '%s' needs tutti_compile first", model->name));
    return TUTTI_OK;
}

tutti_status tutti_swap_ema_weights(tutti_model *model)
{
    TUTTI_TRY(tutti__need_trainer(model));
    tutti_sym swap = TUTTI_NO_SYM;
    if (model->built && !model->trainer->swap.node) {
        tutti__optimizer_expect_ema(model->graph, &model->trainer->optimizer,
                                    tutti__engine_state(model->engine));
        TUTTI_TRY(tutti__model_fail(model, tutti__model_initialize(model)));
        model->trainer->swap = tutti__optimizer_swap_ema(model->graph, &model->trainer->optimizer);
    }
    swap = model->trainer->swap;
    if (!swap.node)
        return tutti__model_fail(
            model,
            tutti_fail(TUTTI_INVALID,
                       "model '%s' keeps no running means: give its optimizer .ema_decay and "
                       "train it",
                       model->name));
    return tutti__model_fail(model, tutti_run(model->session, .target = swap));
}

int64_t tutti_model_steps(const tutti_model *model)
{
    return model && model->trainer ? model->trainer->steps : 0;
}

void tutti_stop_training(tutti_model *model)
{
    if (!model || !model->trainer)
        return;
    if (tutti__model_shares(model))
        model->trainer->asks_stop = true;
    else
        model->trainer->stop = true;
}
