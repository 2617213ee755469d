/* epoch.c: an epoch of the lecture's network through fit, progress bar on, on 60,000 images in
 * memory. The faster of two epochs. */
#include "cli/bench.h"
#include "nn/callbacks/common.h"

#define COUNT 60000
#define BATCH 64

static double seconds_of(tutti_model *model, tutti_dataset *data)
{
    tutti_text bar = {0}; /* as on a terminal */
    double start = tutti__seconds();
    tutti_fit(model, data, .epochs = 1, .quiet = true,
              .callbacks = TUTTI_LIST(tutti__progress_into(&bar, true, 100)));
    double seconds = tutti__seconds() - start;
    tutti__bench_must(tutti_model_check(model));
    tutti__text_free(&bar);
    return seconds;
}

static int run(int argc, char **argv, bool json)
{
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    int64_t dims[] = {COUNT, 28, 28, 1};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *images = tutti__bench_tensor(TUTTI_F32, 4, dims, 1);
    tutti_tensor *labels = tutti__bench_tensor(TUTTI_I64, 1, dims, 2);
    tutti_dataset *data =
        tutti_batch(tutti_shuffle(tutti_from_tensor_slices(job, images, labels), 0), BATCH);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    tutti_model *model = tutti_sequential(
        job, tutti_conv2d(32, 3, .activation = TUTTI_RELU), tutti_max_pool2d(2), tutti_flatten(),
        tutti_dense(64, .activation = TUTTI_RELU), tutti_dense(10));
    tutti_compile(model, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    double first = seconds_of(model, data), second = seconds_of(model, data);
    tutti__report(json, &(tutti_result){"epoch", "MNIST epoch through fit, batch 64",
                                        first < second ? first : second, "s"});
    return tutti_close(job);
}

const tutti_bench tutti_bench_epoch = {
    .name = "epoch",
    .summary = "an epoch of MNIST's size through fit, progress bar on",
    .run = run,
};
