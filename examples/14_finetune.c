/* 14_finetune.c: transfer learning: a model from an ONNX file loses its head, gets a new one, and
 * learns new classes from a few examples.
 *
 *     ./14_finetune                        at least 0.78 of the digits 5 to 9 are right after 50
 *                                          examples of them
 *     ./14_finetune --data DIR             on MNIST's files in DIR: at least 0.65
 *     ./14_finetune --set from=FILE.onnx --set cut=NAME
 *                                          a model of yours, of images [batch, 28, 28, 1], as
 *                                          PyTorch or others export it; its head begins behind the
 *                                          tensor, or node, of that name (`tutti show` lists them)
 *     ./14_finetune --set unfreeze=5       then trains all weights, at a low rate, for 5 epochs
 *
 * The body of the model is frozen: only the head is trained. Without a file the program makes one:
 * it trains a network on the digits 0 to 4 and exports it as digits.onnx. With so few examples what
 * it has learnt of strokes helps (with hundreds a fresh network does as well): the program shows
 * what a network of the same form reaches that has not seen any before. It fails (exit 1) when it
 * ends below that. */
#include <stdio.h>

#include <tutti/tutti.h>

enum { CLASSES = 5, EXAMPLES = 50 };

#define HEAD "flatten/flatten/Flatten" /* what the head of digits.onnx reads */

static bool is_old(void *context, const tutti_element *element)
{
    (void)context;
    return tutti_tensor_get_int(element->tensors[1], 0) < CLASSES;
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
    tutti_tensor_set_int(label, 0, tutti_tensor_get_int(element->tensors[1], 0) - CLASSES);
    return tutti_element_set(element, 1, label);
}

static tutti_model *make_model(tutti_job *job)
{
    /* clang-format off */
    return tutti_sequential(job,
        tutti_input_shape(28, 28, 1),
        tutti_conv2d(16, 3, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_conv2d(32, 3, .activation = TUTTI_RELU),
        tutti_max_pool2d(2),
        tutti_flatten(),
        tutti_dense(64, .activation = TUTTI_RELU),
        tutti_dense(CLASSES));
    /* clang-format on */
}

static void compile(tutti_model *m, double rate)
{
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = rate),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
}

/* Up to `steps` steps without a word. */
static void train(tutti_model *m, tutti_dataset *data, int steps)
{
    tutti_job *job = tutti_dataset_job(data);
    while (tutti_job_ok(job) && steps > 0)
        TUTTI_EACH_BATCH(data, x, y) {
            tutti_job_fail(job, tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
            if (--steps == 0 || !tutti_job_ok(job))
                break;
        }
}

static void make_file(tutti_job *job, const char *path)
{
    tutti_dataset *old = tutti_filter(tutti_mnist(job, "train"), is_old, NULL);
    tutti_model *m = make_model(job);
    compile(m, 1e-3);
    train(m, tutti_batch(tutti_shuffle(old, 1000), 64), 300);
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_export_onnx(m, path));
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    const char *path = tutti_flag_text(job, "from", NULL);
    if (!path && tutti_job_ok(job))
        make_file(job, path = "digits.onnx");
    tutti_dataset *few = tutti_filter(tutti_mnist(job, "train"), is_new, NULL);
    few = tutti_cache(tutti_map(tutti_take(few, EXAMPLES), renumber));
    few = tutti_batch(tutti_shuffle(few, 0), tutti_flag_int(job, "batch", 10));
    tutti_dataset *test = tutti_filter(tutti_mnist(job, "test"), is_new, NULL);
    test = tutti_batch(tutti_map(test, renumber), 500);

    /* The body ends where the head began; the new head stands behind it. */
    tutti_model *body = tutti_cut(tutti_import_onnx(job, path), tutti_flag_text(job, "cut", HEAD));
    tutti_layer *frozen = tutti_model_layer(body);
    tutti_model *m = tutti_sequential(job, frozen, tutti_dense(CLASSES, .name = "head"));
    tutti_model *fresh = make_model(job);
    tutti_set_trainable(frozen, false);
    compile(m, 1e-2);
    const tutti_history *history = tutti_fit(m, few, .epochs = 10, .validation = test);
    int more = (int)tutti_flag_int(job, "unfreeze", 0);
    if (more > 0 && tutti_job_ok(job)) {
        tutti_unfreeze(m, "*");
        compile(m, 1e-4);
        history = tutti_fit(m, few, .epochs = more, .validation = test);
    }
    double accuracy = tutti_history_get(history, "val_accuracy", -1);
    if (tutti_job_ok(job) && !tutti_job_quiet(job)) {
        tutti_logs logs;
        compile(fresh, 1e-3);
        train(fresh, few, (int)tutti_model_steps(m));
        if (tutti_job_fail(job, tutti_evaluate(fresh, test, &logs, .quiet = true)) == TUTTI_OK)
            printf("%.3f of the new digits are right; a fresh network reaches %.3f\n", accuracy,
                   tutti_logs_get(&logs, "accuracy"));
    }
    tutti_expect(job, "test accuracy", accuracy, tutti_flag_text(job, "data", NULL) ? 0.65 : 0.78);
    return tutti_close(job);
}
