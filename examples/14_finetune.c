/* 14_finetune.c: a model from an ONNX file learns new classes from a few examples.
 *
 *     ./14_finetune                        at least 0.78 of the digits 5 to 9 are right after 50
 *                                          examples of them
 *     ./14_finetune --data DIR             on MNIST's files in DIR: at least 0.65
 *     ./14_finetune --set from=FILE.onnx   a model of yours, of images [batch, 28, 28, 1] and five
 *                                          scores or more, as PyTorch or others export it
 *
 * Without a file the program makes one: it trains a network on the digits 0 to 4 and exports it as
 * digits.onnx. With so few examples what it has learnt of strokes helps (with hundreds a fresh
 * network does as well): the program shows
 * what a network of the same form reaches that has not seen any before. It fails (exit 1) when it
 * ends below that. */
#include <stdio.h>

#include <tutti/tutti.h>

enum { CLASSES = 5, EXAMPLES = 50 };

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

static void compile(tutti_model *m)
{
    tutti_compile(m, .optimizer = tutti_adam(),
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
    compile(m);
    train(m, tutti_batch(tutti_shuffle(old, 1000), 64), 300);
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_export_onnx(m, path));
}

/* A new head: the weights of the last layer, kernel and bias, begin anew from zero. */
static tutti_status forget_classes(tutti_model *m)
{
    int count = tutti_weight_count(m);
    for (int i = count > 2 ? count - 2 : 0; i < count; i++) {
        tutti_weight_info info;
        tutti_tensor *zeros;
        TUTTI_TRY(tutti_weight_at(m, i, &info));
        TUTTI_TRY(tutti_tensor_create(info.type.dtype, info.type.rank, info.type.dims, &zeros));
        tutti_status status = tutti_set_weight(m, info.name, zeros);
        tutti_tensor_release(zeros);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
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

    tutti_model *m = tutti_import_onnx(job, path), *fresh = make_model(job);
    if (tutti_job_ok(job))
        tutti_job_fail(job, forget_classes(m));
    compile(m);
    const tutti_history *history = tutti_fit(m, few, .epochs = 10, .validation = test);
    double accuracy = tutti_history_get(history, "val_accuracy", -1);
    if (tutti_job_ok(job) && !tutti_job_quiet(job)) {
        tutti_logs logs;
        compile(fresh);
        train(fresh, few, (int)tutti_model_steps(m));
        if (tutti_job_fail(job, tutti_evaluate(fresh, test, &logs, .quiet = true)) == TUTTI_OK)
            printf("%.3f of the new digits are right; a fresh network reaches %.3f\n", accuracy,
                   tutti_logs_get(&logs, "accuracy"));
    }
    tutti_expect(job, "test accuracy", accuracy, tutti_flag_text(job, "data", NULL) ? 0.65 : 0.78);
    return tutti_close(job);
}
