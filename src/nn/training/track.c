/* track.c: losses and metrics as sums in variables: added to in the step, read when shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/training/trainer.h"
#include "ops/state/state.h"

tutti_status tutti__track(tutti_model *model, const char *name, int output,
                          const tutti_metric *metric)
{
    tutti_trainer *trainer = model->trainer;
    tutti_tracked item = {.output = output, .sum_count = 2};
    if (trainer->tracked.count >= TUTTI_LOGS / 2 - 2)
        return tutti_fail(TUTTI_TOO_LARGE, "a model has at most %d losses and metrics",
                          TUTTI_LOGS / 2 - 2);
    for (size_t i = 0; i < trainer->tracked.count; i++)
        if (strcmp(trainer->tracked.data[i].name, name) == 0)
            return tutti_fail(TUTTI_EXISTS, "two metrics are called '%s'; give one a name", name);
    item.name = tutti__arena_string(&model->arena, name);
    item.val_name = tutti__arena_format(&model->arena, "val_%s", name);
    if (metric) {
        item.metric = *metric;
        item.metric.name = item.name;
        item.sum_count = tutti__metric_sums(metric->def);
    }
    if (!item.name || !item.val_name || !TUTTI_VEC_PUSH(&trainer->tracked, item))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a metric");
    return TUTTI_OK;
}

/* Losses stand before metrics. */
static bool is_loss(const tutti_tracked *item)
{
    return !item->metric.def && (!item->added || item->loss);
}

static bool is_tracked(const tutti_trainer *trainer, const char *name)
{
    for (size_t i = 0; i < trainer->tracked.count; i++)
        if (strcmp(trainer->tracked.data[i].name, name) == 0)
            return true;
    return false;
}

tutti_status tutti__track_added(tutti_model *model, const char *name, int before, bool loss,
                                int *ret_index)
{
    tutti_trainer *trainer = model->trainer;
    char shown[300];
    size_t count = trainer->tracked.count, at = loss ? 0 : count;
    for (size_t i = 0; i < count; i++) {
        const tutti_tracked *item = &trainer->tracked.data[i];
        if (item->added && item->before == before && strcmp(item->added, name) == 0) {
            *ret_index = (int)i;
            return TUTTI_OK;
        }
    }
    for (int number = before; is_tracked(trainer, tutti__added_name(name, number, shown));)
        number++;
    TUTTI_TRY(tutti__track(model, shown, -1, NULL));
    tutti_tracked item = trainer->tracked.data[count];
    item.before = before;
    item.loss = loss;
    item.added = tutti__arena_string(&model->arena, name);
    if (!item.added)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a metric");
    while (loss && at < count && is_loss(&trainer->tracked.data[at]))
        at++;
    memmove(&trainer->tracked.data[at + 1], &trainer->tracked.data[at], (count - at) * sizeof item);
    trainer->tracked.data[at] = item;
    *ret_index = (int)at;
    return TUTTI_OK;
}

static void name_sum(char ret_name[400], const tutti_tracked *item, bool training, int k)
{
    snprintf(ret_name, 400, "training/%s/%d", training ? item->name : item->val_name, k);
}

static tutti_sym sum_variable(tutti_graph *graph, const tutti_tracked *item, bool training, int k,
                              tutti_type type)
{
    char name[400];
    name_sum(name, item, training, k);
    tutti_init zeros = tutti_init_make(TUTTI_INIT_FULL, 0, 0, type.rank, type.dims);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_sym variable =
        tutti_get_variable(graph, name, zeros, .not_trainable = true, .dtype = type.dtype);
    tutti__scopes_show(graph, hidden);
    return variable;
}

void tutti__track_build(tutti_model *model, tutti_step_function *function, int index,
                        tutti_sym const *adds)
{
    tutti_tracked *item = &model->trainer->tracked.data[index];
    tutti_graph *graph = model->graph;
    for (int k = 0; k < item->sum_count; k++) {
        if (!adds[k].node) {
            tutti__poison(graph, TUTTI_INTERNAL, "metric '%s' has no sum %d", item->name, k);
            return;
        }
        tutti_sym variable =
            sum_variable(graph, item, function->training, k, tutti_sym_type(adds[k]));
        item->sums[!function->training][k] = variable;
        tutti_sym add = tutti_assign_add(variable, tutti_stop_gradient(adds[k]));
        if (add.node && !TUTTI_VEC_PUSH(&function->building.updates, add))
            tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a metric");
    }
}

tutti_status tutti__track_reset(tutti_model *model, bool training)
{
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        for (int k = 0; k < item->sum_count; k++) {
            tutti_sym variable = item->sums[!training][k];
            if (!variable.node) {
                model->trainer->reset_later[!training] = true;
                continue;
            }
            tutti_type type = variable.node->types[0];
            tutti_tensor *zeros;
            TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &zeros));
            tutti_status status = tutti_session_set(model->session, variable, zeros);
            tutti_tensor_release(zeros);
            TUTTI_TRY(status);
        }
    }
    return TUTTI_OK;
}

/* A sum that waits for its variable, of an epoch that was restored at its end; or NULL. */
static tutti_tensor *waiting_sum(const tutti_model *model, const tutti_tracked *item, bool training,
                                 int k)
{
    char name[400];
    if (model->trainer->reset_later[!training] || !model->engine)
        return NULL;
    name_sum(name, item, training, k);
    return tutti__state_expected(tutti__engine_state(model->engine), name);
}

static tutti_status read_item(tutti_model *model, const tutti_tracked *item, bool training,
                              double *ret)
{
    tutti_tensor *sums[TUTTI_METRIC_SUMS] = {0};
    tutti_status status = TUTTI_OK;
    for (int k = 0; status == TUTTI_OK && k < item->sum_count; k++) {
        tutti_tensor *waits = waiting_sum(model, item, training, k);
        if (item->sums[!training][k].node)
            status = tutti_session_get(model->session, item->sums[!training][k], &sums[k]);
        else if (!waits || !(sums[k] = tutti_tensor_retain(waits)))
            status =
                tutti_fail(TUTTI_CORRUPT, "the checkpoint has not all sums of '%s'", item->name);
    }
    if (status == TUTTI_OK && item->metric.def)
        *ret = tutti__metric_value(&item->metric, sums);
    else if (status == TUTTI_OK) {
        double weight = tutti_tensor_get(sums[1], 0);
        *ret = weight != 0 ? tutti_tensor_get(sums[0], 0) / weight : NAN;
    }
    for (int k = 0; k < item->sum_count; k++)
        tutti_tensor_release(sums[k]);
    return status;
}

tutti_status tutti__track_read(tutti_model *model, bool training, bool val, tutti_logs *logs)
{
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        double value = NAN;
        if (!item->sums[!training][0].node && !waiting_sum(model, item, training, 0))
            continue;
        TUTTI_TRY(read_item(model, item, training, &value));
        tutti_logs_set(logs, val ? item->val_name : item->name, value);
    }
    return TUTTI_OK;
}

tutti_status tutti__track_loss(const tutti_model *model, double *ret)
{
    *ret = 0;
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        tutti_tensor *sum;
        if (strcmp(item->name, "loss") != 0 || !item->sums[0][0].node)
            continue;
        TUTTI_TRY(tutti_session_get(model->session, item->sums[0][0], &sum));
        *ret = tutti_tensor_get(sum, 0);
        tutti_tensor_release(sum);
    }
    return TUTTI_OK;
}
