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
    tutti_compile(
        m, .losses = TUTTI_LOSSES({"scores", tutti_sparse_cross_entropy(.from_logits = true)}),
        .metrics = "scores:accuracy");
    tutti_fit(m, tutti_batch(tutti_shuffle(digits, 0), 64), .epochs = 1, .steps_per_epoch = 300);
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_export_onnx(m, path));
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    const char *path = tutti_flag_text(job, "from", NULL);
    if (!path)
        make_file(job, path = "digits.onnx");
    tutti_dataset *few =
        tutti_take(tutti_filter(tutti_mnist(job, "train"), is_new, NULL), EXAMPLES);
    tutti_dataset *test = tutti_filter(tutti_mnist(job, "test"), is_new, NULL);
    few = tutti_batch(tutti_shuffle(tutti_cache(tutti_map(few, renumber)), 0),
                      tutti_flag_int(job, "batch", 20));
    test = tutti_batch(tutti_map(test, renumber), 500);

    tutti_model *base = tutti_import_onnx(job, path);
    tutti_model *m = tutti_sequential(job, tutti_model_layer(base), tutti_dense(NEW));
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *history = tutti_fit(m, few, .epochs = 10, .validation = test);
    tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1), 0.90);
    return tutti_close(job);
}
