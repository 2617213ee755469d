/* predict.c: a model's outputs. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "nn/model/model_strategy.h"
#include "nn/training/trainer.h"

/* Whether the weights are what they were at the last answer: then the program has them packed. Who
 * changes them before each answer would have it compiled each time. */
static bool has_settled(tutti_model *model)
{
    if (model->settled == 0 || model->trainer || model->deterministic)
        return false;
    uint64_t constants = tutti__engine_constants(model->engine);
    return atomic_exchange(&model->settled, constants) == constants;
}

static tutti_status predict_one(tutti_model *model, int input_count, tutti_tensor *const *inputs,
                                int output_count, tutti_tensor **ret_outputs)
{
    tutti_type types[64];
    tutti_feed feeds[64];
    tutti_fetch fetches[64];
    if (input_count < 1 || input_count > 64)
        return tutti_fail(TUTTI_INVALID, "a model has 1 to 64 inputs, not %d", input_count);
    for (int i = 0; i < input_count; i++)
        types[i] = *tutti_tensor_type(inputs[i]);
    TUTTI_TRY(tutti__model_build_batched(model, input_count, types));
    if ((size_t)input_count != model->inputs.count || output_count < 1 ||
        (size_t)output_count > model->outputs.count)
        return tutti_fail(
            TUTTI_INVALID, "model '%s' has %zu inputs and %zu outputs, asked for are %d and %d",
            model->name, model->inputs.count, model->outputs.count, input_count, output_count);
    TUTTI_TRY(tutti__model_widen(model, input_count, inputs));
    tutti_rows rows;
    TUTTI_TRY(tutti__rows_take(model, 0, input_count, inputs, &rows));
    for (int i = 0; i < input_count; i++)
        feeds[i] = (tutti_feed){model->fed.data[i], rows.tensors[i]};
    for (int i = 0; i < output_count; i++)
        fetches[i] = (tutti_fetch){model->answers.data[i], &ret_outputs[i]};
    tutti_status status =
        tutti_run(model->session, .feed = {input_count, feeds}, .fetch = {output_count, fetches},
                  .batch = rows.batch, .constants = has_settled(model));
    tutti__rows_release(&rows);
    return status;
}

/* A server goes on with its next request; processes that one of them has left cannot. */
tutti_status tutti_predict_on_batch(tutti_model *model, int input_count,
                                    tutti_tensor *const *inputs, int output_count,
                                    tutti_tensor **ret_outputs)
{
    for (int i = 0; i < output_count; i++)
        ret_outputs[i] = NULL; /* also where it fails: callers release them */
    TUTTI_TRY(tutti_model_check(model));
    tutti_status status = predict_one(model, input_count, inputs, output_count, ret_outputs);
    return tutti__model_shares(model) ? tutti__model_fail(model, status) : status;
}

/* Batches of one output, to be joined. */
typedef TUTTI_VEC(tutti_tensor *) pieces;

static void release(pieces *list)
{
    for (size_t i = 0; i < list->count; i++)
        tutti_tensor_release(list->data[i]);
    TUTTI_VEC_FREE(list);
}

static tutti_status predict_join(const pieces *list, tutti_tensor **ret)
{
    const tutti_type *first = tutti_tensor_type(list->data[0]);
    int64_t dims[TUTTI_MAX_RANK], rows = 0, at = 0;
    memcpy(dims, first->dims, sizeof dims);
    for (size_t i = 0; i < list->count; i++)
        rows += tutti_tensor_dims(list->data[i])[0];
    dims[0] = rows;
    tutti_tensor *all;
    TUTTI_TRY(tutti_tensor_create(first->dtype, first->rank, dims, &all));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < list->count; i++) {
        tutti_tensor *view;
        int64_t count = tutti_tensor_dims(list->data[i])[0];
        const tutti_type *type = tutti_tensor_type(list->data[i]);
        char one[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
        if (type->rank != first->rank ||
            memcmp(type->dims + 1, first->dims + 1,
                   (size_t)(first->rank - 1) * sizeof *first->dims) != 0) {
            status = tutti_fail(TUTTI_INVALID,
                                "tutti_predict: the outputs of batches 0 and %zu are %s and %s, "
                                "which cannot be joined; give all batches one length, or predict "
                                "them one by one",
                                i, tutti_type_text(first, one), tutti_type_text(type, other));
            break;
        }
        status = tutti_tensor_slice(all, 0, at, count, 1, &view);
        if (status != TUTTI_OK)
            break;
        status = tutti_tensor_copy(view, list->data[i]);
        tutti_tensor_release(view);
        at += count;
    }
    if (status == TUTTI_OK)
        *ret = all;
    else
        tutti_tensor_release(all);
    return status;
}

static tutti_status predict_all(tutti_model *model, tutti_iterator *iterator,
                                const tutti_wiring *wiring, int count, pieces *outputs)
{
    for (;;) {
        tutti_element element;
        tutti_tensor *inputs[TUTTI_MAX_COMPONENTS], *made[64] = {0};
        TUTTI_TRY(tutti_next_element(iterator, &element));
        if (element.count == 0)
            return TUTTI_OK;
        for (int i = 0; i < wiring->inputs; i++)
            inputs[i] = element.tensors[wiring->order[i]];
        tutti_status status = tutti_predict_on_batch(model, wiring->inputs, inputs, count, made);
        tutti_element_release(&element);
        for (int i = 0; i < count; i++)
            if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&outputs[i], made[i])) {
                tutti_tensor_release(made[i]);
                status = tutti_fail(TUTTI_NO_MEMORY, "no memory for predictions");
            }
        TUTTI_TRY(status);
    }
}

tutti_status tutti_predict(tutti_model *model, tutti_dataset *data, int count,
                           tutti_tensor **ret_outputs)
{
    tutti_wiring wiring;
    pieces outputs[64] = {0};
    tutti_tensor *joined[64] = {0};
    for (int i = 0; i < count; i++)
        ret_outputs[i] = NULL;
    TUTTI_TRY(tutti__model_meet(model, data, false, &wiring));
    if (count < 1 || (size_t)count > model->outputs.count)
        return tutti__model_fail(model,
                                 tutti_fail(TUTTI_INVALID, "model '%s' has %zu outputs, not %d",
                                            model->name, model->outputs.count, count));
    tutti_iterator *iterator = tutti__iterate(data, 0);
    tutti_status status = iterator ? predict_all(model, iterator, &wiring, count, outputs)
                                   : tutti_job_check(model->job);
    tutti_iterator_close(iterator);
    if (status == TUTTI_OK && outputs[0].count == 0)
        status = tutti_fail(TUTTI_INVALID, "there is nothing to predict: the data is empty");
    for (int i = 0; status == TUTTI_OK && i < count; i++)
        status = predict_join(&outputs[i], &joined[i]);
    for (int i = 0; i < count; i++) {
        release(&outputs[i]);
        if (status == TUTTI_OK)
            ret_outputs[i] = joined[i];
        else
            tutti_tensor_release(joined[i]);
    }
    return tutti__model_fail(model, status);
}
