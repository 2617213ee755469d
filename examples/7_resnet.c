/* 7_resnet.c: a residual network, with batch normalisation, shifted images and a cosine decay.
 *
 *     ./7_resnet                on drawn digits: at least 0.99 of the test digits are right
 *     ./7_resnet --data DIR     on MNIST's files in DIR: at least 0.993
 *     ./7_resnet --set remat=1  takes less memory and more time
 *     ./7_resnet --set deep=50 --set enlarge=8 --set classes=1000
 *                               ResNet-50 on images of 224 x 224, three channels: for a GPU
 *
 * The program fails (exit 1) when it ends below that. */
#include <tutti/tutti.h>

enum { SIDE = 28, REACH = 2 };

/* Shifts an image by up to REACH pixels each way; what comes in is black. */
static tutti_status shift(void *context, tutti_element *element)
{
    tutti_tensor *image;
    const float *from = tutti_tensor_data(element->tensors[0]);
    int span = 2 * REACH + 1, down = (int)(element->random % (unsigned)span) - REACH,
        right = (int)(element->random / 1000 % (unsigned)span) - REACH;
    (void)context;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){SIDE, SIDE, 1}, &image));
    float *to = tutti_tensor_data(image);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int j = y - down, i = x - right;
            if (j >= 0 && j < SIDE && i >= 0 && i < SIDE)
                to[y * SIDE + x] = from[j * SIDE + i];
        }
    return tutti_element_set(element, 0, image);
}

static tutti_sym normalised(tutti_sym x, int64_t filters, int64_t size, int64_t stride)
{
    x = tutti_call(tutti_conv2d(filters, size, .strides = {stride}, .padding = "same",
                                .no_bias = true, .kernel_initializer = "he_normal"),
                   x);
    return tutti_call(tutti_batch_norm(.momentum = 0.9, .epsilon = 1e-5), x);
}

/* relu(x + f(x)); where f changes the shape, x goes through a convolution of size 1. */
static tutti_sym block(tutti_sym x, int64_t filters, int64_t stride)
{
    tutti_sym y = tutti_relu(normalised(x, filters, 3, stride));
    y = normalised(y, filters, 3, 1);
    tutti_sym way = stride == 1 ? x : normalised(x, filters, 1, stride);
    return tutti_relu(tutti_add(way, y));
}

/* Step `i` of the network. With --set remat=1 its values are computed again for the gradients. */
static tutti_sym step(tutti_job *job, tutti_sym x, int i)
{
    bool remat = tutti_flag_on(job, "remat");
    tutti_graph *graph = tutti_sym_graph(x);
    if (remat)
        tutti_remat_push(graph);
    x = i == 0 ? tutti_relu(normalised(x, 16, 3, 1)) : block(x, 8 << i, 2);
    if (remat)
        tutti_remat_pop(graph);
    return x;
}

/* What begins a stage has a stride: zeros on both sides, as in the paper's own code. */
static tutti_sym widened(tutti_sym x, int64_t filters, int64_t size, int64_t stride)
{
    if (stride == 1)
        return normalised(x, filters, size, 1);
    x = tutti_call(tutti_zero_padding2d(size / 2), x);
    x = tutti_call(tutti_conv2d(filters, size, .strides = {stride}, .no_bias = true,
                                .kernel_initializer = "he_normal"),
                   x);
    return tutti_call(tutti_batch_norm(.momentum = 0.9, .epsilon = 1e-5), x);
}

/* 1 x 1 to fewer channels, 3 x 3, 1 x 1 to four times as many. */
static tutti_sym bottleneck(tutti_sym x, int64_t filters, int64_t stride, bool first)
{
    tutti_sym y = tutti_relu(normalised(x, filters, 1, 1));
    y = tutti_relu(widened(y, filters, 3, stride));
    y = normalised(y, 4 * filters, 1, 1);
    return tutti_relu(tutti_add(first ? normalised(x, 4 * filters, 1, stride) : x, y));
}

/* ResNet-50 up to its last pool, on images that are `enlarge` times as large, in three channels. */
static tutti_sym deep(tutti_sym x, int64_t enlarge)
{
    static const int blocks[] = {3, 4, 6, 3};
    x = tutti_call(tutti_up_sampling2d(enlarge), tutti_call(tutti_concatenate_layer(), x, x, x));
    x = tutti_relu(widened(x, 64, 7, 2));
    x = tutti_call(tutti_max_pool2d(3, .strides = {2}), tutti_call(tutti_zero_padding2d(1), x));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[stage]; i++)
            x = bottleneck(x, 64 << stage, stage > 0 && i == 0 ? 2 : 1, i == 0);
    return x;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 128), epochs = tutti_flag_int(job, "epochs", 10);

    tutti_dataset *train = tutti_map(tutti_shuffle(tutti_mnist(job, "train"), 0), shift);
    train = tutti_prefetch(tutti_batch(train, batch, .drop_remainder = true), 4);
    int64_t steps = tutti_flag_int(job, "steps-per-epoch", tutti_cardinality(train));
    tutti_dataset *test = tutti_batch(tutti_mnist(job, "test"), 500);

    tutti_model *m = tutti_functional(job, .name = "resnet");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, SIDE, SIDE, 1);
    if (tutti_flag_int(job, "deep", 0) == 50)
        x = deep(x, tutti_flag_int(job, "enlarge", 1));
    else
        for (int i = 0; i < 4; i++)
            x = step(job, x, i); /* [28, 28, 16], [14, 14, 16], [7, 7, 32], [4, 4, 64] */
    x = tutti_call(tutti_global_average_pool2d(), x);
    tutti_output(m, "y", tutti_call(tutti_dense(tutti_flag_int(job, "classes", 10)), x));

    tutti_schedule cosine = tutti_cosine_decay(.learning_rate = tutti_flag_number(job, "lr", 4e-3),
                                               .decay_steps = (double)(epochs * steps),
                                               .warmup_steps = (double)steps / 4);
    tutti_compile(m, .optimizer = tutti_adamw(.schedule = cosine, .weight_decay = 0.01),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *history = tutti_fit(m, train, .epochs = (int)epochs, .validation = test);

    tutti_expect(job, "test accuracy", tutti_history_get(history, "val_accuracy", -1),
                 tutti_flag_text(job, "data", NULL) ? 0.993 : 0.99);
    return tutti_close(job);
}
