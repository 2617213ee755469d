/* model_strategy.c: a model and its strategy: which one it has, and the rows of a batch that are
 * this process's. */
#include "nn/model/model_strategy.h"

#include "base/job.h"
#include "nn/training/trainer.h"

tutti_status tutti__model_meet_strategy(tutti_model *model)
{
    tutti_strategy *strategy = tutti_strategy_current();
    if (!strategy)
        return TUTTI_OK;
    TUTTI_TRY(tutti_strategy_check(strategy));
    if (model->engine)
        return tutti__engine_set_strategy(model->engine, strategy);
    if (strategy == model->strategy)
        return TUTTI_OK;
    if (tutti__strategy_rewrites(model->strategy))
        return tutti_fail(TUTTI_INVALID,
                          "model '%s' was made or compiled within strategy %s and keeps it; it "
                          "cannot take another one (%s)",
                          model->name, tutti_strategy_name(model->strategy),
                          tutti_strategy_name(strategy));
    tutti_strategy_close(model->strategy);
    model->strategy = tutti__strategy_retain(strategy);
    return TUTTI_OK;
}

tutti_status tutti__model_engine(tutti_model *model)
{
    tutti_engine_options options;
    TUTTI_TRY(tutti__model_meet_strategy(model));
    if (model->engine) /* the job's own strategy was there at the start */
        return tutti_job_check(model->job);
    tutti_strategy *strategy = model->strategy ? model->strategy : tutti_job_strategy(model->job);
    TUTTI_TRY(tutti_job_check(model->job));
    if (strategy)
        TUTTI_TRY(tutti_strategy_check(strategy));
    bool deterministic = model->deterministic || (strategy && strategy->options.deterministic);
    TUTTI_TRY(tutti__engine_options_of(TUTTI_OPTIONS(tutti_session_options,
                                                     .deterministic = deterministic,
                                                     .memory_limit = model->memory_limit),
                                       &options));
    if (strategy && strategy->local > 0)
        options.device = tutti_strategy_device(strategy, 0);
    options.strategy = strategy;
    TUTTI_TRY(tutti__engine_create(&options, &model->engine));
    tutti_strategy_close(model->strategy); /* the engine has it */
    model->strategy = NULL;
    return TUTTI_OK;
}

tutti_strategy *tutti__model_strategy(const tutti_model *model)
{
    return model->engine ? tutti__engine_strategy(model->engine) : NULL;
}

bool tutti__model_speaks(const tutti_model *model)
{
    return tutti_strategy_rank(tutti__model_strategy(model)) == 0;
}

bool tutti__model_shares(const tutti_model *model)
{
    return tutti__strategy_processes(tutti__model_strategy(model)) > 1;
}

void tutti__rows_release(tutti_rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        tutti_tensor_release(rows->tensors[i]);
    rows->count = 0;
}

tutti_status tutti__rows_begin(const tutti_model *model, tutti_dataset *data, bool evaluates)
{
    tutti_shard_policy policy;
    tutti_strategy *strategy = tutti__model_strategy(model);
    bool served = strategy && strategy->servers; /* each worker evaluates on everything */
    if (!tutti__model_shares(model) && !(served && !evaluates))
        return TUTTI_OK;
    TUTTI_TRY(tutti__strategy_shard(strategy, data, evaluates, &policy));
    tutti__share_begin(data, tutti__strategy_share(strategy, policy));
    return TUTTI_OK;
}

bool tutti__rows_counted(const tutti_model *model, const tutti_dataset *data, bool evaluates)
{
    tutti_shard_policy policy;
    return !tutti__model_shares(model) || (tutti__strategy_shard(tutti__model_strategy(model), data,
                                                                 evaluates, &policy) == TUTTI_OK &&
                                           policy == TUTTI_SHARD_ELEMENT);
}

void tutti__rows_end(tutti_dataset *data)
{
    tutti__share_end(data);
}

tutti_status tutti__rows_take(const tutti_model *model, int64_t batch, int count,
                              tutti_tensor *const *tensors, tutti_rows *ret)
{
    tutti_strategy *strategy = tutti__model_strategy(model);
    *ret = (tutti_rows){.batch = batch > 0 ? batch
                                 : count > 0 && tutti_tensor_rank(tensors[0]) > 0
                                     ? tutti_tensor_dims(tensors[0])[0]
                                     : 0};
    int workers = batch > 0 ? 1 : tutti__strategy_processes(strategy);
    if (batch == 0 && strategy && strategy->servers)
        ret->batch = 0; /* whole: a run that trains takes its rows */
    int64_t first = 0, end = ret->batch;
    if (workers > 1) {
        tutti_strategy_own_rows(strategy, ret->batch, &first, &end);
        end += first;
    }
    for (int i = 0; i < count; i++) {
        tutti_tensor *part = NULL;
        tutti_status status = TUTTI_OK;
        if (workers == 1 || tutti_tensor_rank(tensors[i]) == 0)
            part = tutti_tensor_retain(tensors[i]);
        else
            status = tutti_tensor_slice(tensors[i], 0, first, end - first, 1, &part);
        if (status != TUTTI_OK) {
            tutti__rows_release(ret);
            return status;
        }
        ret->tensors[ret->count++] = part;
    }
    return TUTTI_OK;
}

tutti_status tutti__model_agree(const tutti_model *model, int mine, int *ret_most)
{
    int32_t number = mine;
    TUTTI_TRY(tutti__processes_reduce(tutti__model_strategy(model), "agree on a number", TUTTI_I32,
                                      1, &number, TUTTI_MAX));
    *ret_most = number;
    return TUTTI_OK;
}

tutti_status tutti__model_saved(const tutti_model *model, tutti_status status)
{
    int failed = status != TUTTI_OK;
    tutti_error error;
    if (!tutti__model_shares(model) || (model->trainer && model->trainer->fit))
        return status;
    if (failed)
        tutti__error_capture(status, &error);
    TUTTI_TRY(tutti__model_agree(model, failed, &failed));
    if (status != TUTTI_OK)
        return tutti__error_restore(&error);
    return failed ? tutti_fail(TUTTI_IO, "the first process of the job could not save") : TUTTI_OK;
}

tutti_status tutti__model_join(const tutti_model *model)
{
    bool gathering = model->trainer && model->trainer->gathered > 0; /* else these slots are 0 */
    return model->engine ? tutti__engine_join(model->engine, gathering) : TUTTI_OK;
}

tutti_status tutti__model_gather(const tutti_model *model)
{
    return model->engine ? tutti__engine_gather_all(model->engine) : TUTTI_OK;
}

tutti_status tutti__model_join_to_save(const tutti_model *model)
{
    if (model->trainer && model->trainer->fit)
        return TUTTI_OK;
    TUTTI_TRY(tutti__model_join(model));
    return tutti__model_gather(model);
}

tutti_status tutti__model_same(const tutti_model *model, int count, const char *const *texts)
{
    return tutti__processes_same(tutti__model_strategy(model), count, texts);
}
