/* 4_loop.c: a model trained by a custom loop with the tape.
 *
 *     ./4_loop                 on drawn digits: at least 0.97 of the test digits are right after
 *                              one epoch
 *     ./4_loop --data DIR      on MNIST's files in DIR: at least 0.97
 *
 * The program fails (exit 1) when it ends below that. --save FILE writes the model, and where the
 * training stands, from where --resume goes on. */
#include <tutti/tutti.h>

static double evaluate(tutti_model *m, tutti_dataset *data)
{
    tutti_eager *e = tutti_model_eager(m);
    double right = 0, seen = 0;
    TUTTI_EACH_BATCH(data, x, y) {
        TUTTI_STEP(e) {
            tutti_sym guess = tutti_argmax(tutti_apply(m, tutti_eager_feed(e, x)), 1);
            tutti_sym same = tutti_equal(guess, tutti_eager_feed(e, y));
            right += tutti_scalar_value(tutti_sum(tutti_cast(same, TUTTI_F32)));
            seen += (double)tutti_tensor_dims(x)[0];
        }
    }
    return right / seen;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    int64_t batch = tutti_flag_int(job, "batch", 64);
    tutti_dataset *train = tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 0), batch);
    tutti_dataset *test = tutti_batch(tutti_mnist(job, "test"), 500);

    /* clang-format off */
    tutti_model *m = tutti_sequential(job,
        tutti_conv2d(32, 3, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_flatten(),
        tutti_dense(64, .activation = TUTTI_RELU),
        tutti_dense(10));
    /* clang-format on */
    tutti_build(m, TUTTI_F32, 28, 28, 1);

    tutti_optimizer adam = tutti_adam(.learning_rate = tutti_flag_number(job, "lr", 1e-3));
    tutti_loss cross_entropy = tutti_sparse_cross_entropy(.from_logits = true);
    tutti_eager *e = tutti_model_eager(m);

    tutti_progress *progress = tutti_progress_open(job, 1, tutti_cardinality(train), .model = m);
    while (tutti_progress_epoch(progress)) {
        TUTTI_EACH_BATCH(train, bx, by) {
            TUTTI_STEP(e) {
                tutti_sym x = tutti_eager_feed(e, bx), y = tutti_eager_feed(e, by), loss;
                TUTTI_TAPE(tape, e)
                    loss =
                        tutti_compute_loss(&cross_entropy, y, tutti_apply(m, x, .training = true));
                tutti_tape_minimize(&tape, adam, loss, m);
                tutti_progress_mean(progress, "loss", tutti_scalar_value(loss));
            }
            if (!tutti_progress_step(progress, tutti_tensor_dims(bx)[0]))
                break;
        }
        tutti_job_fail(job, tutti_eager_check(e));
        if (tutti_job_ok(job)) /* no Ctrl-C either */
            tutti_progress_set(progress, "val_accuracy", evaluate(m, test));
    }
    tutti_expect(job, "test accuracy", tutti_progress_get(progress, "val_accuracy"), 0.97);
    return tutti_close(job);
}
