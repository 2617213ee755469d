/* 2_mnist.c: the lecture's convolutional network as a sequential model, trained by fit.
 *
 *     ./2_mnist                    on drawn digits: at least 0.99 of the test digits are right
 *     ./2_mnist --data DIR         on MNIST's files in DIR: at least 0.984
 *     ./2_mnist --save mnist       writes the model, for 9_inference
 *     ./2_mnist --resume           goes on from the newest checkpoint in ckpt/
 *     tensorboard --logdir logs    curves; --logs DIR writes elsewhere
 *
 * The program fails (exit 1) when it ends below that. */
#include <stdio.h>

#include <tutti/tutti.h>

static double decay(int epoch)
{
    return epoch < 3 ? 1e-3 : epoch < 7 ? 1e-4 : 1e-5;
}

static void print_rate(void *job, tutti_event *event)
{
    if (!tutti_job_quiet(job))
        printf("learning rate %g\n", tutti_get_learning_rate(event->model));
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    int64_t batch = tutti_flag_int(job, "batch", 64);

    tutti_dataset *train = tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 10000), batch);
    tutti_dataset *test = tutti_batch(tutti_mnist(job, "test"), 1000);

    /* clang-format off */
    tutti_model *m = tutti_sequential(job,
        tutti_conv2d(32, 3, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_flatten(),
        tutti_dense(64, .activation = TUTTI_RELU),
        tutti_dense(10));
    /* clang-format on */

    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");

    const char *checkpoints = tutti_flag_text(job, "checkpoints", "ckpt/{epoch}");
    const tutti_history *history = tutti_fit(
        m, train, .epochs = 12, .validation = test,
        .callbacks = TUTTI_LIST(tutti_tensorboard(tutti_flag_text(job, "logs", "logs")),
                                tutti_checkpoint(checkpoints, .keep = 2),
                                tutti_learning_rate_scheduler(decay),
                                tutti_lambda_callback(.epoch_begin = print_rate, .context = job)));

    tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1),
                 tutti_flag_text(job, "data", NULL) ? 0.984 : 0.99);
    return tutti_close(job);
}
