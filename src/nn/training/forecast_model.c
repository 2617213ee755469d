/* forecast_model.c: forecasts of a model's training step, under its own strategy and others. */
#include <string.h>

#include "nn/model/model_strategy.h"
#include "nn/training/forecast_model.h"

tutti_status tutti__step_function_rehearse(tutti_model *model, tutti_engine *engine,
                                           const tutti_step_function *function, int64_t batch,
                                           bool own, int count, tutti_tensor *const *tensors,
                                           tutti_rehearsal *ret)
{
    tutti_edge feeds[3 * 64];
    tutti_node *target = function->target.node;
    tutti_rows rows = {0};
    bool here = engine == model->engine; /* another one cuts the rows itself */
    if (here)
        TUTTI_TRY(tutti__rows_take(model, batch, count, tensors, &rows));
    for (int i = 0; i < count; i++)
        feeds[i] = tutti__edge(function->feeds.data[i]);
    tutti_run_request ask = {.feed_count = count,
                             .feeds = feeds,
                             .values = here ? rows.tensors : tensors,
                             .target_count = 1,
                             .targets = &target,
                             .batch = here ? rows.batch : 0};
    if (here && own)
        tutti__engine_own_rows(engine, &ask);
    tutti_status status = tutti__engine_rehearse(engine, model->graph, &ask, ret);
    tutti__rows_release(&rows);
    return status;
}

tutti_status tutti__forecast_step_function(tutti_model *model, tutti_step_function *function,
                                           int64_t batch, bool own, int count,
                                           tutti_tensor *const *tensors, tutti_forecast *ret)
{
    tutti_rehearsal rehearsal = {0};
    TUTTI_TRY(tutti__step_function_rehearse(model, model->engine, function, batch, own, count,
                                            tensors, &rehearsal));
    TUTTI_TRY(tutti__forecast_here(tutti__model_strategy(model), &rehearsal, ret));
    ret->batch = batch > 0                                        ? batch
                 : count > 0 && tutti_tensor_rank(tensors[0]) > 0 ? tutti_tensor_dims(tensors[0])[0]
                                                                  : 0;
    /* Of fewer rows than replicas some have none; of one row all do the whole work. */
    if (ret->batch > 0 && ret->batch < ret->replicas)
        ret->efficiency *= (double)ret->batch / ret->replicas;
    return TUTTI_OK;
}

/* What a step function asks for, of the whole batch. */
typedef struct model_step {
    tutti_edge feeds[TUTTI_MAX_COMPONENTS];
    tutti_node *target;
    tutti_run_request request;
    tutti_forecast_step step;
} model_step;

static void open_step(tutti_model *model, const tutti_step_function *function, int count,
                      tutti_tensor *const *tensors, model_step *ret)
{
    for (int i = 0; i < count; i++)
        ret->feeds[i] = tutti__edge(function->feeds.data[i]);
    ret->target = function->target.node;
    ret->request = (tutti_run_request){.feed_count = count,
                                       .feeds = ret->feeds,
                                       .values = tensors,
                                       .target_count = 1,
                                       .targets = &ret->target};
    ret->step = (tutti_forecast_step){.job = model->job,
                                      .name = model->name,
                                      .deterministic = model->deterministic,
                                      .graph = model->graph,
                                      .request = &ret->request};
}

tutti_status tutti__forecast_imagined(tutti_model *model, tutti_step_function *function, int count,
                                      tutti_tensor *const *tensors, tutti_strategy *imagined,
                                      tutti_rehearsal *ret)
{
    model_step step;
    open_step(model, function, count, tensors, &step);
    return tutti__forecast_rehearse(&step.step, imagined, ret);
}

tutti_status tutti__model_forecast_table(tutti_model *model, tutti_dataset *data, char **ret_text)
{
    tutti_wiring wiring;
    tutti_element element;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    tutti_step_function *function;
    model_step step;
    TUTTI_TRY(tutti__model_meet(model, data, true, &wiring));
    TUTTI_TRY(tutti_dataset_peek(data, &element));
    if (element.count == 0)
        return tutti_fail(TUTTI_INVALID, "the data to plan for is empty");
    for (int i = 0; i < wiring.count; i++)
        tensors[i] = element.tensors[wiring.order[i]];
    tutti_status status = tutti__step_function_for(model, true, wiring.count, tensors, &function);
    if (status == TUTTI_OK) {
        open_step(model, function, wiring.count, tensors, &step);
        status = tutti__forecast_table(&step.step, tutti_tensor_dims(tensors[0])[0], ret_text);
    }
    tutti_element_release(&element);
    return status;
}
