/* training.c: the library's side of tests/peers/training.py: trains a saved model on given batches.
 *
 *     training MODEL BATCHES.npz STEPS OUT
 *
 * MODEL.json and MODEL.safetensors say what is trained, how, and from where. BATCHES.npz holds the
 * arrays of one batch, or with a first axis more those of several: step i takes number i of them.
 * Prints the logs of each step, and writes the weights to OUT.safetensors. */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

/* Row `i` of an array, modulo their number. */
static tutti_tensor *row(tutti_tensor *array, int64_t i)
{
    const tutti_type *type = tutti_tensor_type(array);
    tutti_tensor *one, *shaped = NULL;
    int64_t which = i % type->dims[0];
    if (tutti_take_rows(array, 1, &which, &one) != TUTTI_OK)
        return NULL;
    if (tutti_tensor_reshape(one, type->rank - 1, type->dims + 1, &shaped) != TUTTI_OK)
        shaped = NULL;
    tutti_tensor_release(one);
    return shaped;
}

static tutti_status step(tutti_model *m, const tutti_named_tensors *arrays, int64_t i)
{
    tutti_tensor *batch[16];
    tutti_logs logs;
    for (size_t k = 0; k < arrays->count; k++)
        batch[k] = row(arrays->items[k].tensor, i);
    tutti_status status = tutti_train_on_batch(m, (int)arrays->count, batch, &logs);
    for (int k = 0; status == TUTTI_OK && k < logs.count; k++)
        printf("%s\"%s\": %.9g%s", k ? ", " : "{", logs.items[k].name, logs.items[k].value,
               k + 1 == logs.count ? "}\n" : "");
    for (size_t k = 0; k < arrays->count; k++)
        tutti_tensor_release(batch[k]);
    return status;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_named_tensors arrays = {0};
    if (argc != 5)
        return fprintf(stderr, "usage: training MODEL BATCHES.npz STEPS OUT\n"), 2;
    tutti_model *m = tutti_load_model(job, argv[1]);
    tutti_job_fail(job, tutti_npz_load(argv[2], &arrays));
    for (int64_t i = 0; i < atoi(argv[3]) && tutti_job_ok(job); i++)
        tutti_job_fail(job, step(m, &arrays, i));
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_save_weights(m, argv[4]));
    tutti_named_tensors_clear(&arrays);
    return tutti_close(job);
}
