/* 8_autoencoder.c: digits squeezed through 32 numbers and drawn again.
 *
 *     ./8_autoencoder               on drawn digits: at least 0.90 of their variance is explained
 *     ./8_autoencoder --data DIR    on MNIST's files in DIR: at least 0.85
 *
 * The program fails (exit 1) when it ends below that. At the end it shows three digits above what
 * became of them. */
#include <stdio.h>

#include <tutti/tutti.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CODE = 32 };

/* The image is the target too. */
static tutti_status mirror(void *context, tutti_element *element)
{
    (void)context;
    return tutti_element_set(element, 1, tutti_tensor_retain(element->tensors[0]));
}

static void show(const tutti_tensor *images)
{
    for (int row = 0; row < SIDE; row += 2) { /* a character is about twice as high as wide */
        for (int which = 0; which < 3; which++)
            for (int column = 0; column < SIDE; column++) {
                double light = tutti_tensor_get(images, which * PIXELS + row * SIDE + column);
                putchar(" .:-=+*#%@"[(int)(9.99 * (light < 0 ? 0 : light > 1 ? 1 : light))]);
            }
        putchar('\n');
    }
}

static tutti_status show_some(tutti_model *m, tutti_dataset *test)
{
    tutti_tensor *digits, *drawn;
    TUTTI_TRY(tutti_next_batch(test, &digits, NULL));
    TUTTI_TRY(tutti_predict_on_batch(m, 1, &digits, 1, &drawn));
    show(digits);
    show(drawn);
    tutti_tensor_release(drawn);
    return TUTTI_OK;
}

/* 1 - mean squared error / variance of the pixels. */
static double explained(tutti_dataset *test, double error)
{
    double sum = 0, squares = 0, count = 0;
    TUTTI_EACH_BATCH(test, x) {
        const float *pixel = tutti_tensor_data(x);
        int64_t size = tutti_tensor_count(x);
        for (int64_t i = 0; i < size; i++) {
            sum += pixel[i];
            squares += pixel[i] * pixel[i];
        }
        count += (double)size;
    }
    return 1 - error / (squares / count - sum / count * (sum / count));
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 128);
    tutti_dataset *train = tutti_map(tutti_shuffle(tutti_mnist(job, "train"), 0), mirror);
    tutti_dataset *test = tutti_batch(tutti_map(tutti_mnist(job, "test"), mirror), 500);

    /* clang-format off */
    tutti_model *m = tutti_sequential(job,
        tutti_flatten(),
        tutti_dense(128, .activation = TUTTI_RELU),
        tutti_dense(CODE, .name = "code"),
        tutti_dense(128, .activation = TUTTI_RELU),
        tutti_dense(PIXELS, .activation = TUTTI_SIGMOID),
        tutti_reshape_layer(SIDE, SIDE, 1));
    /* clang-format on */
    tutti_compile(m, .optimizer = tutti_adam(), .loss = tutti_binary_cross_entropy(),
                  .metrics = "mse");
    const tutti_history *history =
        tutti_fit(m, tutti_batch(train, batch), .epochs = 5, .validation = test);

    if (tutti_job_ok(job) && !tutti_job_quiet(job))
        tutti_job_fail(job, show_some(m, test));
    tutti_expect(job, "explained variance",
                 explained(test, tutti_history_get(history, "val_mse", -1)),
                 tutti_flag_text(job, "data", NULL) ? 0.85 : 0.90);
    return tutti_close(job);
}
