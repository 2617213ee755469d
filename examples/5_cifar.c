/* 5_cifar.c: the network of PyTorch's tutorial on CIFAR-10.
 *
 *     ./5_cifar                on drawn images: at least 0.95 of the test images are right
 *     ./5_cifar --data DIR     on CIFAR-10's binary files in DIR: at least 0.50, which PyTorch's
 *                              tutorial reaches; measured here on drawn images only
 *
 * The program fails (exit 1) when it ends below that. */
#include <tutti/tutti.h>

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 32);

    tutti_dataset *train = tutti_batch(tutti_shuffle(tutti_cifar10(job, "train"), 0), batch);
    tutti_dataset *test = tutti_batch(tutti_cifar10(job, "test"), 500);

    /* clang-format off */
    tutti_model *m = tutti_sequential(job,
        tutti_rescaling(2, .offset = -1), /* [0, 1] to [-1, 1] */
        tutti_conv2d(6, 5, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_conv2d(16, 5, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_flatten(),
        tutti_dense(120, .activation = TUTTI_RELU),
        tutti_dense(84, .activation = TUTTI_RELU),
        tutti_dense(10));
    /* clang-format on */

    tutti_compile(m, .optimizer = tutti_sgd(0.01, .momentum = 0.9),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *history =
        tutti_fit(m, tutti_prefetch(train, 4), .epochs = 4, .validation = test);

    tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1),
                 tutti_flag_text(job, "data", NULL) ? 0.50 : 0.95);
    return tutti_close(job);
}
