/* train_onnx.c: `tutti train --from MODEL.onnx`: goes on training a model that somebody exported.
 */
#include <stdio.h>
#include <string.h>

#include "bridge/onnx.h"
#include "cli/command.h"
#include "cli/models.h"
#include "nn/model/model.h"

/* How an example of the data becomes the model's input: as it is, channels first, or reshaped. */
typedef struct fitting {
    tutti_type wanted; /* without the batch */
    bool turn;
} fitting;

static tutti_status fit_element(void *context, tutti_element *element)
{
    const fitting *f = context;
    tutti_tensor *x = element->tensors[0], *y = NULL, *turned = NULL;
    static const int first[] = {2, 0, 1};
    if (f->turn)
        TUTTI_TRY(tutti_tensor_permute(x, first, &turned));
    tutti_status status =
        tutti_tensor_reshape(turned ? turned : x, f->wanted.rank, f->wanted.dims, &y);
    tutti_tensor_release(turned);
    TUTTI_TRY(status);
    if (tutti_tensor_dtype(y) != f->wanted.dtype) {
        tutti_tensor *cast = NULL;
        status = tutti_tensor_cast(y, f->wanted.dtype, &cast);
        tutti_tensor_release(y);
        TUTTI_TRY(status);
        y = cast;
    }
    return tutti_element_set(element, 0, y);
}

/* The data as the model takes it; fails the job when sizes differ. */
static tutti_dataset *fitted(tutti_job *job, tutti_model *model, tutti_dataset *data, fitting *f)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_element element = {0};
    if (!data || tutti_job_fail(job, tutti_dataset_peek(data, &element)) != TUTTI_OK)
        return NULL;
    tutti_type have = *tutti_tensor_type(element.tensors[0]), want = model->inputs.data[0].type;
    tutti_element_release(&element);
    memmove(want.dims, want.dims + 1, sizeof want.dims - sizeof *want.dims);
    want.rank--; /* the batch */
    f->wanted = want;
    f->turn = have.rank == 3 && want.rank == 3 && have.dims[2] == want.dims[0] &&
              have.dims[0] == want.dims[1] && have.dims[1] == want.dims[2] &&
              have.dims[0] != have.dims[2];
    if (tutti_type_equal(&have, &want))
        return data;
    if (tutti_type_count(&have) != tutti_type_count(&want)) {
        tutti_job_fail(job, tutti_fail(TUTTI_INVALID,
                                       "the model takes %s, an example of the data is %s: choose "
                                       "other data with --set dataset=NAME",
                                       tutti_type_text(&want, a), tutti_type_text(&have, b)));
        return NULL;
    }
    return tutti_map(data, fit_element, .context = f);
}

/* Whether an output of the file has been through a softmax. */
static bool gives_chances(const char *path, const char *output)
{
    tutti_onnx *onnx;
    bool chances = false;
    if (tutti__onnx_load(path, &onnx) != TUTTI_OK)
        return false;
    for (size_t i = onnx->graph.nodes.count; i-- > 0;) { /* makers stand before users */
        const tutti_onnx_node *node = &onnx->graph.nodes.items[i];
        if (node->outputs.count == 0 || strcmp(node->outputs.items[0], output) != 0)
            continue;
        chances = strcmp(node->type, "Softmax") == 0;
        if (strcmp(node->type, "Identity") != 0 || node->inputs.count == 0)
            break;
        output = node->inputs.items[0];
    }
    tutti__onnx_free(onnx);
    return chances;
}

/* A classifier that gives labels beside scores (scikit-learn's) is trained by its scores: the only
 * output of floats stays. */
static void keep_scores(tutti_model *model)
{
    size_t count = 0, scores = 0;
    for (size_t i = 0; i < model->outputs.count; i++)
        if (tutti_dtype_is_float(model->outputs.data[i].type.dtype)) {
            count++;
            scores = i;
        }
    if (model->outputs.count < 2 || count != 1)
        return;
    model->outputs.data[0] = model->outputs.data[scores];
    model->outputs.count = 1;
    if (scores < model->answers.count) { /* the inference form is built already */
        model->answers.data[0] = model->answers.data[scores];
        model->answers.count = 1;
    }
}

int tutti__train_onnx(const char *path, int argc, char **argv)
{
    static fitting train, test;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_model *model = tutti_job_ok(job) ? tutti_import_onnx(job, path) : NULL;
    if (model)
        keep_scores(model);
    if (model && (model->inputs.count != 1 || model->outputs.count != 1))
        tutti_job_fail(job, tutti_fail(TUTTI_UNSUPPORTED,
                                       "%s has %zu inputs and %zu outputs; --from trains models of "
                                       "one each; others from C with tutti_import_onnx",
                                       path, model->inputs.count, model->outputs.count));
    if (model && tutti_job_ok(job))
        tutti_compile(model, .optimizer = tutti_adam(),
                      .loss = tutti_sparse_cross_entropy(.from_logits = !gives_chances(
                                                             path, model->outputs.data[0].name)),
                      .metrics = "accuracy");
    if (model && tutti_job_ok(job)) {
        const char *name = tutti_flag_text(job, "dataset", "mnist");
        tutti_dataset *data = fitted(job, model, tutti_load_dataset(job, name, "train"), &train);
        tutti_dataset *held = fitted(job, model, tutti_load_dataset(job, name, "test"), &test);
        data = tutti_batch(tutti_shuffle(data, 0), tutti_flag_int(job, "batch", 64));
        held = tutti_batch(held, 500);
        const tutti_history *history = tutti_fit(model, data, .epochs = 1, .validation = held);
        if (tutti_flag_text(job, "expect", NULL))
            tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1), 0);
        const char *out = tutti_flag_text(job, "onnx", NULL);
        if (out && tutti_job_ok(job))
            tutti_job_fail(job, tutti_export_onnx(model, out));
    }
    return tutti_close(job);
}
