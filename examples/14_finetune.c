/* 14_finetune.c: a model from an ONNX file learns new classes from a few examples.
 *
 *     ./14_finetune                        at least 0.90 of the digits 5 to 9 are right, after 300
 *                                          examples of them
 *     ./14_finetune --data DIR             on MNIST's files in DIR: at least 0.90
 *     ./14_finetune --set from=FILE.onnx   a model of yours of images [batch, 28, 28, 1], as
 *                                          PyTorch, TensorFlow or Tutti export it
 *
 * Without a file the program makes one: it trains a network on the digits 0 to 4 and exports it to
 * digits.onnx. A new head on the model's first output then learns the new classes, and the model
 * with it. The program fails (exit 1) when it ends below that. */
#include <tutti/tutti.h>

enum { OLD = 5, NEW = 5, EXAMPLES = 300 };

static bool is_old(void *context, const tutti_element *element)
{
    (void)context;
    return tutti_tensor_get_int(element->tensors[1], 0) < OLD;
}

static bool is_new(void *context, const tutti_element *element)
{
    return !is_old(context, element);
}

/* The new classes count from 0. */
static tutti_status renumber(void *context, tutti_element *element)
{
    tutti_tensor *label;
    (void)context;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 0, NULL, &label));
    tutti_tensor_set_int(label, 0, tutti_tensor_get_int(element->tensors[1], 0) - OLD);
    return tutti_element_set(element, 1, label);
}

/* Trains on the old classes. The file has two outputs: what the last but one layer says, and the
 * scores. */
static void make_file(tutti_job *job, const char *path)
{
    tutti_dataset *digits = tutti_filter(tutti_mnist(job, "train"), is_old, NULL);
    tutti_model *m = tutti_functional(job, .name = "digits");
    tutti_sym x = tutti_input(m, "image", TUTTI_F32, 28, 28, 1);
    x = tutti_call(tutti_conv2d(16, 3, .activation = TUTTI_RELU), x);
    x = tutti_call(tutti_max_pool2d(2), x);
    x = tutti_call(tutti_conv2d(32, 3, .activation = TUTTI_RELU), x);
    x = tutti_call(tutti_max_pool2d(2), x);
    x = tutti_call(tutti_dense(64, .activation = TUTTI_RELU), tutti_call(tutti_flatten(), x));
    tutti_output(m, "features", x);
    tutti_output(m, "scores", tutti_call(tutti_dense(OLD), x));
    tutti_compile(m, .losses =
                         TUTTI_LOSSES({"scores", tutti_sparse_cross_entropy(.from_logits = true)}));
    int left = 300;
    TUTTI_EACH_BATCH(tutti_batch(tutti_shuffle(digits, 0), 64), images, labels) {
        tutti_job_fail(job, tutti_train_on_batch(m, 2, (tutti_tensor *[]){images, labels}, NULL));
        if (--left == 0 || !tutti_job_ok(job))
            break;
    }
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_export_onnx(m, path));
}

/* The new head's answer: the model's first output, and a layer upon it. */
static tutti_sym answer(tutti_model *base, tutti_model *head, tutti_sym x, bool training)
{
    return tutti_apply(head, tutti_apply(base, x, .training = training), .training = training);
}

static double evaluate(tutti_model *base, tutti_model *head, tutti_dataset *data)
{
    tutti_eager *e = tutti_model_eager(base);
    double right = 0, seen = 0;
    TUTTI_EACH_BATCH(data, x, y) {
        TUTTI_STEP(e) {
            tutti_sym guess = tutti_argmax(answer(base, head, tutti_use(e, x), false), 1);
            tutti_sym same = tutti_equal(guess, tutti_use(e, y));
            right += tutti_item(tutti_sum(tutti_cast(same, TUTTI_F32)));
            seen += (double)tutti_tensor_dims(x)[0];
        }
    }
    return right / seen;
}

/* Both learn; gives the share of the test digits that are right. */
static double adapt(tutti_model *base, tutti_dataset *few, tutti_dataset *test)
{
    tutti_job *job = tutti_model_job(base);
    tutti_eager *e = tutti_model_eager(base);
    tutti_model *head = tutti_sequential(job, tutti_dense(NEW, .name = "head"));
    tutti_optimizer adam = tutti_adam(.learning_rate = tutti_flag_number(job, "lr", 1e-3));
    double accuracy = 0;
    tutti_progress *progress = tutti_progress_open(job, 8, tutti_cardinality(few));
    while (tutti_progress_epoch(progress)) {
        TUTTI_EACH_BATCH(few, images, labels) {
            TUTTI_STEP(e) {
                tutti_sym x = tutti_use(e, images), y = tutti_use(e, labels), loss;
                TUTTI_TAPE(tape, e)
                    loss =
                        tutti_mean(tutti_sparse_cross_entropy_of(y, answer(base, head, x, true)));
                tutti_descend(base, adam, &tape, loss);
                tutti_progress_mean(progress, "loss", tutti_item(loss));
            }
            if (!tutti_progress_step(progress, tutti_tensor_dims(images)[0]))
                break;
        }
        accuracy = evaluate(base, head, test);
        tutti_progress_set(progress, "val_accuracy", accuracy);
        tutti_job_fail(job, tutti_eager_check(e));
    }
    return accuracy;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    const char *path = tutti_flag_text(job, "from", NULL);
    if (!path)
        make_file(job, path = "digits.onnx");
    int64_t batch = tutti_flag_int(job, "batch", 20);
    tutti_dataset *few = tutti_filter(tutti_mnist(job, "train"), is_new, NULL);
    few = tutti_cache(tutti_map(tutti_take(few, EXAMPLES), renumber));
    tutti_dataset *test = tutti_filter(tutti_mnist(job, "test"), is_new, NULL);
    test = tutti_batch(tutti_map(test, renumber), 500);
    tutti_model *base = tutti_import_onnx(job, path);
    if (tutti_job_ok(job))
        tutti_expect(job, "test accuracy",
                     adapt(base, tutti_batch(tutti_shuffle(few, 0), batch), test), 0.90);
    return tutti_close(job);
}
