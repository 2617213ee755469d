/* imagined.c: data of the shapes that a model takes, where only these matter: zeros. */
#include <stdlib.h>

#include "cli/models.h"
#include "nn/losses/loss.h"
#include "nn/training/trainer.h"

typedef struct imagined {
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    const char *names[TUTTI_MAX_COMPONENTS];
    int count;
} imagined;

static tutti_status imagined_add(imagined *data, const char *name, tutti_type type, int64_t rows)
{
    type.dims[0] = rows;
    for (int i = 1; i < type.rank; i++)
        if (type.dims[i] < 0)
            return tutti_fail(TUTTI_INVALID,
                              "dimension %d of '%s' is not known; name data that shows it: --set "
                              "dataset=NAME",
                              i, name);
    if (data->count == TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_UNSUPPORTED, "data has at most %d components",
                          TUTTI_MAX_COMPONENTS);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &data->tensors[data->count]));
    data->names[data->count++] = name;
    return TUTTI_OK;
}

/* Targets as the losses want them, from what the model gives for the inputs. */
static tutti_status add_targets(imagined *data, tutti_model *model, int64_t rows)
{
    int inputs = data->count, outputs = (int)model->outputs.count;
    tutti_tensor *given[TUTTI_MAX_COMPONENTS] = {0};
    if (outputs > TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_UNSUPPORTED, "data has at most %d components",
                          TUTTI_MAX_COMPONENTS);
    TUTTI_TRY(tutti_predict_on_batch(model, inputs, data->tensors, outputs, given));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < model->trainer->goals.count; i++) {
        const tutti_goal *goal = &model->trainer->goals.data[i];
        tutti_type type = *tutti_tensor_type(given[goal->output]);
        if (goal->loss.def->classes) {
            type.dtype = TUTTI_I64;
            type.rank--;
        }
        const char *name = model->outputs.data[goal->output].name;
        status = imagined_add(data, outputs > 1 ? name : "y", type, rows);
    }
    for (int i = 0; i < outputs; i++)
        tutti_tensor_release(given[i]);
    return status;
}

tutti_dataset *tutti__cli_imagined(tutti_model *model, int64_t rows)
{
    imagined data = {0};
    tutti_job *job = tutti_model_job(model);
    tutti_status status = (tutti_build)(model, 0, NULL);
    for (size_t i = 0; status == TUTTI_OK && i < model->inputs.count; i++)
        status = imagined_add(&data, model->inputs.data[i].name, model->inputs.data[i].type, rows);
    if (status == TUTTI_OK)
        status = add_targets(&data, model, rows);
    tutti_dataset *all = NULL;
    if (tutti_job_fail(job, status) == TUTTI_OK)
        all = (tutti_name_components)((tutti_from_tensor_slices)(job, data.count, data.tensors),
                                      data.count, data.names);
    for (int i = 0; i < data.count; i++)
        tutti_tensor_release(data.tensors[i]);
    return all ? tutti_batch(all, rows) : NULL;
}
