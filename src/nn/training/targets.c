/* targets.c: whether the data's targets are what the losses take, said with the component of the
 * data, the line of tutti_compile, and how to get what is wanted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/training/trainer.h"

static const char *compile_place(const tutti_model *model, char ret[300])
{
    const tutti_trainer *trainer = model->trainer;
    snprintf(ret, 300, trainer->file ? " (tutti_compile, %s:%d)" : " (tutti_compile)",
             trainer->file, trainer->line);
    return ret;
}

static bool dims_agree(const tutti_type *a, const tutti_type *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a->dims[i] != b->dims[i] && a->dims[i] != TUTTI_ANY && b->dims[i] != TUTTI_ANY)
            return false;
    return true;
}

static bool has_one(const tutti_type *type)
{
    return type->rank > 0 && type->dims[type->rank - 1] == 1;
}

/* As tutti__targets_for brings them together. */
static bool fits(const tutti_type *have, const tutti_type *output, bool classes)
{
    int lead = output->rank - 1;
    if (classes)
        return (have->rank == lead || (have->rank == lead + 1 && has_one(have))) &&
               dims_agree(have, output, lead);
    if (have->rank == lead && has_one(output))
        return dims_agree(have, output, lead);
    return have->rank == output->rank && dims_agree(have, output, output->rank);
}

/* What to do instead, by what the targets look like. */
static const char *advice(const tutti_goal *goal, const tutti_type *have, const tutti_type *output)
{
    const char *name = goal->loss.def->name;
    bool one_hot = strcmp(name, "cross_entropy") == 0 || strcmp(name, "categorical_hinge") == 0;
    if (have->dtype == TUTTI_STRING)
        return goal->loss.def->classes
                   ? "give classes numbers, as tutti_map of the data can, or train on the output of "
                     "tutti_string_lookup"
                   : "turn strings into numbers, as tutti_map of the data can";
    if (goal->loss.def->classes && fits(have, output, false))
        return "these look one-hot: use tutti_cross_entropy, which takes them, or leave out "
               "tutti_one_hot_labels";
    if (one_hot && fits(have, output, true))
        return "these look like class numbers: use tutti_sparse_cross_entropy, which takes them, "
               "or tutti_one_hot_labels(data, component, classes)";
    return goal->loss.def->classes ? "one class number is needed for each row of the outputs"
                                   : "targets need the outputs' shape";
}

static tutti_status check_target(const tutti_model *model, const tutti_goal *goal,
                                 const tutti_dataset_info *info, int component)
{
    const tutti_type *have = &info->types[component];
    const tutti_port *output = &model->outputs.data[goal->output];
    char place[300], given[TUTTI_TYPE_TEXT], shape[TUTTI_TYPE_TEXT];
    bool string = have->dtype == TUTTI_STRING;
    bool known = have->dtype != TUTTI_NO_DTYPE && have->rank >= 0;
    if (!known || !goal->loss.def || goal->loss.fn || output->type.rank < 1 ||
        (!string && fits(have, &output->type, goal->loss.def->classes)))
        return TUTTI_OK;
    const char *name = info->names[component];
    return tutti_fail(
        TUTTI_INVALID,
        "the targets, component %d%s%s%s of the data, are %s; loss %s%s takes %s for output '%s' "
        "%s; %s",
        component, name ? " '" : "", name ? name : "", name ? "'" : "",
        tutti_type_text(have, given), goal->loss.def->name, compile_place(model, place),
        goal->loss.def->classes ? "class numbers, i32 or i64," : "numbers", output->name,
        tutti_type_text(&output->type, shape), advice(goal, have, &output->type));
}

tutti_status tutti__check_targets(const tutti_model *model, const tutti_dataset_info *info,
                                  const tutti_wiring *wiring)
{
    for (size_t i = 0; i < model->trainer->goals.count; i++) {
        const tutti_goal *goal = &model->trainer->goals.data[i];
        int at = wiring->inputs + (int)i;
        if (at < wiring->count && goal->output < (int)model->outputs.count)
            TUTTI_TRY(check_target(model, goal, info, wiring->order[at]));
    }
    return TUTTI_OK;
}

/* Floats serve as class numbers where they are whole: a file of numbers has them so. */
static tutti_status check_whole(const tutti_model *model, const tutti_goal *goal,
                                const tutti_tensor *target)
{
    char place[300], type[TUTTI_TYPE_TEXT];
    int64_t count = tutti_tensor_count(target);
    for (int64_t i = 0; i < count; i++) {
        double each = tutti_tensor_get(target, i);
        int64_t row = i / (count / tutti_tensor_dims(target)[0]);
        if (each != floor(each) || isinf(each)) /* NaN too */
            return tutti_fail(TUTTI_INVALID,
                              "row %lld of the targets, %s, is %g: loss %s%s takes whole class "
                              "numbers; have the labels as integers (tutti_cast_components with "
                              "TUTTI_I64, where they are classes), or use a loss of numbers, as "
                              "tutti_mse or tutti_binary_cross_entropy",
                              (long long)row, tutti_type_text(tutti_tensor_type(target), type),
                              each, goal->loss.def->name, compile_place(model, place));
    }
    return TUTTI_OK;
}

tutti_status tutti__check_class_numbers(const tutti_model *model, int inputs, int count,
                                        tutti_tensor *const *tensors)
{
    for (size_t i = 0; i < model->trainer->goals.count && inputs + (int)i < count; i++) {
        const tutti_goal *goal = &model->trainer->goals.data[i];
        const tutti_tensor *target = tensors[inputs + (int)i];
        if (goal->loss.def && goal->loss.def->classes && tutti_tensor_rank(target) > 0 &&
            tutti_dtype_is_float(tutti_tensor_dtype(target)))
            TUTTI_TRY(check_whole(model, goal, target));
    }
    return TUTTI_OK;
}
