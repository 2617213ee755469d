/* batch.c: which component of the data is which input, target or weight; single batches. */
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "nn/model/model_strategy.h"
#include "nn/training/trainer.h"

static int find_name(const tutti_dataset_info *info, const char *name)
{
    for (int i = 0; i < info->components; i++)
        if (info->names[i] && strcmp(info->names[i], name) == 0)
            return i;
    return -1;
}

/* As many components as there are goals that no input or target took are their weights, in order;
 * returns how many there are: all or none. */
static int take_unused(const tutti_dataset_info *info, tutti_wiring *wiring, int goals)
{
    int unused = 0;
    for (int i = 0; i < info->components; i++) {
        bool taken = false;
        for (int k = 0; k < wiring->count; k++)
            taken = taken || wiring->order[k] == i;
        if (!taken && unused < goals)
            wiring->order[wiring->count + unused] = i;
        unused += !taken;
    }
    return unused == goals ? goals : 0;
}

/* By name, when every input has a component of its name. */
static bool wire_by_name(const tutti_model *model, const tutti_dataset_info *info, bool targets,
                         tutti_wiring *ret)
{
    tutti_wiring wiring = {0};
    size_t goals = targets ? model->trainer->goals.count : 0;
    if (model->inputs.count + 2 * goals > TUTTI_MAX_COMPONENTS)
        return false;
    for (size_t i = 0; i < model->inputs.count; i++)
        if ((wiring.order[wiring.count++] = find_name(info, model->inputs.data[i].name)) < 0)
            return false;
    wiring.inputs = wiring.count;
    for (size_t i = 0; i < goals; i++)
        if ((wiring.order[wiring.count++] = find_name(
                 info, model->outputs.data[model->trainer->goals.data[i].output].name)) < 0)
            return false;
    int weighted = 0;
    for (size_t i = 0; i < goals; i++) {
        char name[300];
        snprintf(name, sizeof name, "%s_weight",
                 model->outputs.data[model->trainer->goals.data[i].output].name);
        int at = find_name(info, name);
        if (at >= 0)
            wiring.order[wiring.count + weighted++] = at;
    }
    if (weighted < (int)goals)
        weighted = take_unused(info, &wiring, (int)goals);
    wiring.count += weighted;
    *ret = wiring;
    return true;
}

/* By place: inputs, then a target for each loss, then a weight for each loss. */
static tutti_status wire_by_place(const tutti_model *model, const tutti_dataset_info *info,
                                  bool targets, tutti_wiring *ret)
{
    int inputs = (int)model->inputs.count;
    int goals = targets ? (int)model->trainer->goals.count : 0;
    if (info->components < inputs + goals)
        return tutti_fail(
            TUTTI_INVALID,
            "model '%s' takes %d inputs and %d targets, an element of the data has "
            "%d components; name them with tutti_name_components, or check the pipeline",
            model->name, inputs, goals, info->components);
    bool weighted = targets && info->components >= inputs + 2 * goals;
    ret->count = inputs + goals * (weighted ? 2 : 1);
    ret->inputs = inputs;
    for (int i = 0; i < ret->count; i++)
        ret->order[i] = i;
    return TUTTI_OK;
}

/* Weights by name are of every output that has a loss, or of none. */
static tutti_status check_weights(const tutti_model *model, const tutti_dataset_info *info)
{
    int with = -1, without = -1;
    for (size_t i = 0; i < model->trainer->goals.count; i++) {
        char name[300];
        int output = model->trainer->goals.data[i].output;
        snprintf(name, sizeof name, "%s_weight", model->outputs.data[output].name);
        *(find_name(info, name) >= 0 ? &with : &without) = output;
    }
    if (with < 0 || without < 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "the data has '%s_weight' and no '%s_weight'; give weights of all outputs "
                      "that have a loss, or of none",
                      model->outputs.data[with].name, model->outputs.data[without].name);
}

tutti_status tutti__wire(tutti_model *model, const tutti_dataset_info *info, bool targets,
                         tutti_wiring *ret)
{
    if (targets)
        TUTTI_TRY(check_weights(model, info));
    if (wire_by_name(model, info, targets, ret))
        return TUTTI_OK;
    return wire_by_place(model, info, targets, ret);
}

static bool are_known(const tutti_dataset_info *info)
{
    bool known = info->components > 0;
    for (int i = 0; known && i < info->components; i++) {
        known = info->types[i].dtype != TUTTI_NO_DTYPE && info->types[i].rank >= 0;
        for (int k = 1; known && k < info->types[i].rank; k++)
            known = info->types[i].dims[k] >= 0 || info->types[i].dtype != TUTTI_F32;
    }
    return known;
}

/* Of data that is each process's own one may have nothing: it learns from the first that has
 * something. All processes come here. */
static tutti_status learn_from_others(const tutti_model *model, bool known,
                                      tutti_dataset_info *info)
{
    const tutti_strategy *strategy = tutti__model_strategy(model);
    int32_t workers = tutti__strategy_processes(strategy);
    int32_t said[] = {known ? tutti_strategy_rank(strategy) : workers, known ? 0 : -1};
    static const char label[] = "what the data looks like";
    TUTTI_TRY(tutti__processes_reduce(strategy, label, TUTTI_I32, 2, said, TUTTI_MIN));
    if (said[0] == workers)
        return tutti_fail(TUTTI_INVALID, "the data has no elements in any of %d processes",
                          workers);
    if (said[1] == 0) /* all know */
        return TUTTI_OK;
    tutti_likeness like = {.count = info->components};
    if (known)
        memcpy(like.types, info->types, sizeof info->types);
    TUTTI_TRY(tutti__processes_take(strategy, label, said[0], sizeof like, &like));
    if (known)
        return TUTTI_OK;
    info->components = (int)like.count;
    memcpy(info->types, like.types, sizeof info->types);
    return TUTTI_OK;
}

tutti_status tutti__no_elements(const tutti_dataset *data, const char *what)
{
    while (data->input_count > 0 && data->inputs[0]->info.cardinality == 0)
        data = data->inputs[0];
    int64_t all = data->input_count > 0 ? data->inputs[0]->info.cardinality : 0;
    if (data->info.cardinality != 0 || all <= 0)
        return tutti_fail(TUTTI_INVALID, "%s has no elements", what);
    char who[160];
    snprintf(who, sizeof who, "%s%s%s%s", data->def->name, data->place[0] ? " (" : "", data->place,
             data->place[0] ? ")" : "");
    if (data->info.batch > all && data->inputs[0]->info.batch == 0)
        return tutti_fail(TUTTI_INVALID,
                          "%s has no elements: %s drops what fills no batch of %lld, and is given "
                          "%lld; make batches smaller, or keep the remainder",
                          what, who, (long long)data->info.batch, (long long)all);
    return tutti_fail(TUTTI_INVALID, "%s has no elements: %s leaves none of %lld", what, who,
                      (long long)all);
}

/* As the first element has them; false: there is none. */
static tutti_status peek_types(tutti_dataset *data, tutti_dataset_info *ret, bool *ret_known)
{
    tutti_element first;
    TUTTI_TRY(tutti_dataset_peek(data, &first));
    *ret_known = first.count > 0;
    ret->components = first.count > 0 ? first.count : ret->components;
    for (int i = 0; i < first.count; i++)
        ret->types[i] = *tutti_tensor_type(first.tensors[i]);
    tutti_element_release(&first);
    return TUTTI_OK;
}

/* Types of the components; where the pipeline cannot tell, its first element does. */
static tutti_status learn_types(const tutti_model *model, tutti_dataset *data,
                                tutti_dataset_info *ret)
{
    TUTTI_TRY(tutti_dataset_describe(data, ret));
    bool known = are_known(ret), own = tutti__model_shares(model) && tutti__dataset_is_own(data);
    if (!known) {
        TUTTI_TRY(peek_types(data, ret, &known));
        if (!known && !own)
            return tutti__no_elements(data, "the data");
    }
    return own ? learn_from_others(model, known, ret) : TUTTI_OK;
}

static tutti_status build_for(tutti_model *model, const tutti_dataset_info *info)
{
    tutti_type types[TUTTI_MAX_COMPONENTS];
    int inputs = model->inputs.count > 0 ? (int)model->inputs.count : 1;
    tutti_wiring wiring = {.count = inputs};
    for (int i = 0; i < inputs && i < TUTTI_MAX_COMPONENTS; i++)
        wiring.order[i] = i;
    if (model->inputs.count > 0 && !model->kind)
        TUTTI_TRY(tutti__wire(model, info, false, &wiring));
    for (int i = 0; i < inputs && i < info->components; i++)
        types[i] = info->types[wiring.order[i]];
    return tutti__model_build_batched(model, inputs < info->components ? inputs : info->components,
                                      types);
}

/* A pipeline that was not batched may still give batches, as a generator's own: only a missing
 * dimension says that they are single examples. */
static tutti_status check_batched(const tutti_model *model, const tutti_dataset_info *info,
                                  const tutti_wiring *wiring)
{
    char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT] = "a batch";
    for (int i = 0; info->batch == 0 && i < wiring->count; i++) {
        const tutti_type *type = &info->types[wiring->order[i]];
        const tutti_type *input =
            i < wiring->inputs && i < (int)model->inputs.count ? &model->inputs.data[i].type : NULL;
        if (type->rank != 0 && !(input && input->rank > 0 && type->rank == input->rank - 1))
            continue;
        if (input)
            tutti_type_text(input, want);
        return tutti_fail(TUTTI_INVALID,
                          "the data has single examples: its component %d is %s, model '%s' takes "
                          "%s; join them with tutti_batch",
                          wiring->order[i], tutti_type_text(type, have), model->name, want);
    }
    return TUTTI_OK;
}

static tutti_status meet(tutti_model *model, tutti_dataset *data, bool targets, tutti_wiring *ret)
{
    tutti_dataset_info info;
    tutti_wiring wiring;
    if (!data)
        return tutti_fail(TUTTI_INVALID, "there is no data; the call that should make it failed");
    TUTTI_TRY(learn_types(model, data, &info));
    int needed = (model->inputs.count > 0 ? (int)model->inputs.count : 1) +
                 (targets ? (int)model->trainer->goals.count : 0);
    for (int i = 0; info.batch == 0 && i < info.components && i < needed; i++)
        if (info.types[i].rank == 0) /* said before the model is built for it in vain */
            return tutti_fail(TUTTI_INVALID,
                              "the data has single examples: its component %d is a scalar; join "
                              "them with tutti_batch",
                              i);
    tutti_status status = model->built ? TUTTI_OK : build_for(model, &info);
    if (status != TUTTI_OK)
        return info.batch > 0 ? status
                              : tutti__error_prefix(status, "the data is not batched, which "
                                                            "tutti_batch would do");
    TUTTI_TRY(tutti__wire(model, &info, targets, &wiring));
    TUTTI_TRY(check_batched(model, &info, &wiring));
    *ret = wiring;
    return TUTTI_OK;
}

tutti_status tutti__model_meet(tutti_model *model, tutti_dataset *data, bool targets,
                               tutti_wiring *ret)
{
    TUTTI_TRY(tutti_model_check(model));
    TUTTI_TRY(tutti__model_fail(model, tutti__model_engine(model)));
    return tutti__model_fail(model, meet(model, data, targets, ret));
}

tutti_status tutti__model_meet_targets(tutti_model *model, tutti_dataset *data,
                                       const tutti_wiring *wiring)
{
    tutti_dataset_info info;
    TUTTI_TRY(tutti_dataset_describe(data, &info));
    bool known = are_known(&info);
    if (!known && info.cardinality != 0)
        TUTTI_TRY(peek_types(data, &info, &known));
    return known && info.cardinality != 0 ? tutti__check_targets(model, &info, wiring) : TUTTI_OK;
}

/* ---- single batches ---- */

static tutti_status run_one(tutti_model *model, bool training, int count,
                            tutti_tensor *const *tensors, tutti_logs *ret_logs)
{
    tutti_step_function *function;
    tutti_type types[TUTTI_MAX_COMPONENTS];
    if (count < 1 || count > TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_INVALID, "a batch has 1 to %d tensors", TUTTI_MAX_COMPONENTS);
    int inputs = model->inputs.count > 0 ? (int)model->inputs.count : 1;
    for (int i = 0; i < inputs && i < count; i++)
        types[i] = *tutti_tensor_type(tensors[i]);
    TUTTI_TRY(tutti__model_build_batched(model, inputs < count ? inputs : count, types));
    TUTTI_TRY(tutti__step_function_for(model, training, count, tensors, &function));
    if (ret_logs)
        TUTTI_TRY(tutti__track_reset(model, training));
    TUTTI_TRY(tutti__step_function_run(model, function, 0, false, count, tensors));
    if (training)
        model->trainer->steps++;
    return ret_logs ? tutti__track_read(model, training, false, ret_logs) : TUTTI_OK;
}

static tutti_status one_batch(tutti_model *model, bool training, int count,
                              tutti_tensor *const *tensors, tutti_logs *ret_logs)
{
    if (ret_logs)
        *ret_logs = (tutti_logs){0}; /* whoever looks into it after a failure finds nothing */
    TUTTI_TRY(tutti__need_trainer(model));
    return tutti__model_fail(model, run_one(model, training, count, tensors, ret_logs));
}

tutti_status tutti_train_on_batch(tutti_model *model, int count, tutti_tensor *const *tensors,
                                  tutti_logs *ret_logs)
{
    return one_batch(model, true, count, tensors, ret_logs);
}

tutti_status tutti_test_on_batch(tutti_model *model, int count, tutti_tensor *const *tensors,
                                 tutti_logs *ret_logs)
{
    return one_batch(model, false, count, tensors, ret_logs);
}
