/* 16_alexnet.c: AlexNet (2012) as it was built: two columns on two devices, which meet after the
 * second convolution and in the dense layers.
 *
 *     ./16_alexnet                        small, on drawn images; both columns on cpu:0
 *     TUTTI_CPU_DEVICES=2 ./16_alexnet --set columns=cpu:0,cpu:1
 *     tutti run -n 2 ./16_alexnet --strategy pipeline --set micro=1 \
 *         --set columns=/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0
 *     ./16_alexnet --set real=1           the widths of the paper (48, 128, 192, 192, 128; 2048)
 *     ./16_alexnet --data DIR             on CIFAR-10's binary files in DIR
 *
 * What one column needs of the other travels by itself, and so do the gradients. The program fails
 * (exit 1) when fewer than 0.85 of the test images (0.45 of CIFAR-10's) are right. */
#include <stdio.h>

#include <tutti/tutti.h>

static const char *devices[2]; /* of the columns; NULL: wherever the program stands */

static tutti_sym conv(int column, tutti_sym x, int filters, int size)
{
    return tutti_call(tutti_conv2d(filters, size, .padding = "same", .activation = TUTTI_RELU,
                                   .device = devices[column]),
                      x);
}

static tutti_sym pool(int column, tutti_sym x)
{
    return tutti_call(tutti_max_pool2d(2, .device = devices[column]), x);
}

static tutti_sym dense(int column, tutti_sym x, int units)
{
    return tutti_call(tutti_dense(units, .activation = TUTTI_RELU, .device = devices[column]), x);
}

/* "cpu:0,cpu:1" */
static void read_columns(tutti_job *job)
{
    static char text[2][96];
    const char *given = tutti_flag_text(job, "columns", NULL);
    if (given && sscanf(given, "%95[^,],%95s", text[0], text[1]) == 2) {
        devices[0] = text[0];
        devices[1] = text[1];
    }
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 32);
    int part = tutti_flag_on(job, "real") ? 1 : 8; /* of the paper's widths */
    read_columns(job);

    tutti_dataset *train = tutti_batch(tutti_shuffle(tutti_cifar10(job, "train"), 0), batch);
    tutti_dataset *test = tutti_batch(tutti_cifar10(job, "test"), 500);

    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "images", TUTTI_F32, 32, 32, 3), c[2], both;
    x = tutti_call(tutti_rescaling(2, .offset = -1), x); /* [0, 1] to [-1, 1] */
    for (int i = 0; i < 2; i++)
        c[i] = pool(i, conv(i, pool(i, conv(i, x, 48 / part, 5)), 128 / part, 5));
    both = tutti_call(tutti_concatenate_layer(), c[0],
                      c[1]); /* the third convolution sees both columns */
    for (int i = 0; i < 2; i++) {
        c[i] = conv(i, conv(i, both, 192 / part, 3), 192 / part, 3);
        c[i] = pool(i, conv(i, c[i], 128 / part, 3));
        c[i] = tutti_call(tutti_flatten(.device = devices[i]), c[i]);
    }
    for (int layer = 0; layer < 2; layer++) {
        both = tutti_call(tutti_concatenate_layer(), c[0], c[1]);
        for (int i = 0; i < 2; i++)
            c[i] = dense(i, both, 2048 / (part * 2));
    }
    tutti_output(m, "classes",
                 tutti_call(tutti_dense(10, .device = devices[1]),
                            tutti_call(tutti_concatenate_layer(), c[0], c[1])));

    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *history =
        tutti_fit(m, tutti_prefetch(train, 4), .epochs = 4, .validation = test);

    tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1),
                 tutti_flag_text(job, "data", NULL) ? 0.45 : 0.85);
    return tutti_close(job);
}
