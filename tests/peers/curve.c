/* curve.c: the library's side of tests/peers/curve.py: the lecture's network, its first weights, a
 * hundred batches, and the loss of each step.
 *
 *     curve FOLDER [--data DIR] [--steps N]
 *
 * Writes FOLDER/start.safetensors, FOLDER/batches.npz (x, y) and FOLDER/losses.npy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/tutti.h>

#define BATCH 64
#define MOST 1000

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t steps = tutti_flag_int(job, "steps", 100);
    char path[4096];
    if (argc != 2 || steps > MOST)
        return fprintf(stderr, "usage: curve FOLDER [--data DIR] [--set steps=N]\n"), 2;
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 0), BATCH);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(28, 28, 1),
                                      tutti_conv2d(32, 3, .activation = TUTTI_RELU, .name = "conv"),
                                      tutti_max_pool2d(2), tutti_flatten(),
                                      tutti_dense(64, .activation = TUTTI_RELU, .name = "hidden"),
                                      tutti_dense(10, .name = "out"));
    tutti_compile(m, .optimizer = tutti_adam(.torch_form = tutti_flag_on(job, "torch")),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    snprintf(path, sizeof path, "%s/start", argv[1]);
    tutti_job_fail(job, tutti_save_weights(m, path));

    tutti_tensor *losses, *x = NULL, *y = NULL;
    int64_t count[] = {steps}, xs[] = {steps, BATCH, 28, 28, 1}, ys[] = {steps, BATCH};
    tutti_job_fail(job, tutti_tensor_create(TUTTI_F64, 1, count, &losses));
    tutti_job_fail(job, tutti_tensor_create(TUTTI_F32, 5, xs, &x));
    tutti_job_fail(job, tutti_tensor_create(TUTTI_I64, 2, ys, &y));
    for (int64_t i = 0; i < steps && tutti_job_ok(job); i++) {
        tutti_tensor *batch[2];
        tutti_logs logs;
        if (tutti_next_batch(data, &batch[0], &batch[1]) != TUTTI_OK)
            break;
        memcpy((float *)tutti_tensor_data(x) + i * BATCH * 784, tutti_tensor_data(batch[0]),
               BATCH * 784 * sizeof(float));
        memcpy((int64_t *)tutti_tensor_data(y) + i * BATCH, tutti_tensor_data(batch[1]),
               BATCH * sizeof(int64_t));
        if (tutti_train_on_batch(m, 2, batch, &logs) == TUTTI_OK)
            tutti_tensor_set(losses, i, tutti_logs_get(&logs, "loss"));
    }
    tutti_named_tensor arrays[] = {{"x", x}, {"y", y}};
    snprintf(path, sizeof path, "%s/batches.npz", argv[1]);
    tutti_job_fail(job, tutti_npz_save(path, 2, arrays, false));
    snprintf(path, sizeof path, "%s/losses.npy", argv[1]);
    tutti_job_fail(job, tutti_npy_save(path, losses));
    tutti_tensor_release(losses);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return tutti_close(job);
}
