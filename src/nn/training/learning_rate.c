/* learning_rate.c: the learning rate of what trains a model: the optimizer that it was compiled
 * with, or those that a loop of the user's applied on the model's tape. */
#include <math.h>
#include <stdio.h>

#include "nn/model/model_strategy.h"
#include "nn/optimizers/optimizer.h"
#include "nn/training/trainer.h"

enum { NAME = 300, MOST = 8 };

/* compile's first, then those of the tape, the last one first; each name once. */
static int find_optimizers(const tutti_model *model, const tutti_optimizer *ret[MOST])
{
    int count = 0;
    const tutti_optimizer *applied;
    if (model->trainer)
        ret[count++] = &model->trainer->optimizer;
    for (int i = 0; model->eager && count < MOST &&
                    (applied = tutti__optimizer_applied_at(tutti_eager_graph(model->eager), i));
         i++)
        if (count == 0 || strcmp(ret[0]->name, applied->name) != 0)
            ret[count++] = applied;
    return count;
}

static const char *rate_name(const tutti_optimizer *optimizer, char ret[NAME])
{
    snprintf(ret, NAME, "%s/learning_rate", optimizer->name);
    return ret;
}

/* The variable's value, or `fallback` before it has one. */
static double read_rate(const tutti_model *model, const tutti_optimizer *optimizer, double fallback)
{
    char name[NAME];
    tutti_state *state = model->engine ? tutti__engine_state(model->engine) : NULL;
    tutti_tensor *value = NULL;
    tutti_state_variable *found =
        state ? tutti__state_find(state, rate_name(optimizer, name)) : NULL;
    if (!found || !tutti__state_has_value(state, name) ||
        tutti__variable_get(state, found, &value) != TUTTI_OK)
        return fallback;
    double rate = tutti_tensor_count(value) > 0 ? tutti_tensor_get(value, 0) : fallback;
    tutti_tensor_release(value);
    return rate;
}

double tutti_get_learning_rate(tutti_model *model)
{
    const tutti_optimizer *all[MOST];
    if (!model || find_optimizers(model, all) == 0)
        return NAN;
    const tutti_trainer *trainer = model->trainer;
    if (!trainer)
        return read_rate(model, all[0], tutti__optimizer_rate(all[0], 0));
    /* A step that is not applied does not count in the schedule: only the device knows. */
    bool may_skip = trainer->optimizer.schedule.def && model->compute == TUTTI_F16;
    return may_skip ? read_rate(model, all[0], trainer->rate) : trainer->rate;
}

static tutti_status write_compiled(tutti_model *model, tutti_tensor *value)
{
    tutti_trainer *trainer = model->trainer;
    if (!trainer->rate_variable.node) {
        trainer->rate_variable = tutti_learning_rate(model->graph, trainer->optimizer);
        TUTTI_TRY(tutti__model_initialize(model));
    }
    return tutti_session_set(model->session, trainer->rate_variable, value);
}

static tutti_status write_rate(tutti_model *model, const tutti_optimizer *optimizer, double rate)
{
    tutti_tensor *value;
    float f = (float)rate;
    bool compiled = model->trainer && optimizer == &model->trainer->optimizer;
    tutti_graph *tape = model->eager ? tutti_eager_graph(model->eager) : NULL;
    TUTTI_TRY(tutti_tensor_from(TUTTI_F32, 0, NULL, &f, &value));
    tutti_status status = TUTTI_OK;
    if (tape && tutti__optimizer_applied(tape, optimizer->name))
        status = tutti_eager_set(model->eager, tutti_learning_rate(tape, *optimizer), value);
    else if (compiled && model->built)
        status = write_compiled(model, value);
    tutti_tensor_release(value);
    return status;
}

static tutti_status several(const tutti_model *model, int count, const tutti_optimizer *const *all)
{
    char names[200] = "";
    for (int i = 0, used = 0; i < count && used < (int)sizeof names; i++)
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i ? ", " : "",
                         all[i]->name);
    return tutti_fail(TUTTI_INVALID,
                      "tutti_set_learning_rate: several optimizers train model '%s': %s; set the "
                      "variable tutti_learning_rate(graph, optimizer) of the one that is meant",
                      model->name, names);
}

static tutti_status set_rate(tutti_model *model, double rate)
{
    const tutti_optimizer *all[MOST];
    int count = find_optimizers(model, all);
    if (!(rate >= 0 && isfinite(rate)))
        return tutti_fail(TUTTI_INVALID, "tutti_set_learning_rate: %g is no learning rate", rate);
    if (count == 0)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_set_learning_rate: no optimizer trains model '%s' yet; give the "
                          "optimizer .learning_rate, or set it after tutti_compile or the loop's "
                          "first step",
                          model->name);
    if (count > 1)
        return several(model, count, all);
    if (all[0]->schedule.def)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_set_learning_rate: the rate of optimizer '%s' follows its "
                          "schedule, which writes it in every step; leave .schedule out to set "
                          "rates by hand",
                          all[0]->name);
    TUTTI_TRY(write_rate(model, all[0], rate));
    if (model->trainer)
        model->trainer->rate = model->trainer->optimizer.learning_rate = rate;
    return TUTTI_OK;
}

void tutti_set_learning_rate(tutti_model *model, double rate)
{
    if (!model || !tutti__job_able(model->job))
        return;
    tutti__model_fail(model, set_rate(model, rate));
}

/* A number of the optimizer that is in the state already. */
static tutti_status renew(const tutti_model *model, const char *which, tutti_dtype dtype,
                          double number)
{
    char name[NAME];
    tutti_state *state = tutti__engine_state(model->engine);
    tutti_tensor *value;
    snprintf(name, sizeof name, "%s/%s", model->trainer->optimizer.name, which);
    if (!tutti__state_has_value(state, name))
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(dtype, 0, NULL, &value));
    tutti_tensor_set(value, 0, number);
    tutti_status status = tutti__state_expect(state, name, value);
    tutti_tensor_release(value);
    return status;
}

tutti_status tutti__rate_begin(const tutti_model *model)
{
    if (!model->engine)
        return TUTTI_OK;
    TUTTI_TRY(renew(model, "learning_rate", TUTTI_F32, model->trainer->rate));
    return renew(model, "schedule_step", TUTTI_I64, 0);
}
