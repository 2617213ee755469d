/* fit.c: what training through fit costs beyond its compiled steps, and what saving the state every
 * 50 steps costs beyond that. The lecture's network on drawn digits. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "nn/training/trainer.h"

#define BATCH 64

static tutti_model *make_model(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_conv2d(32, 3, .activation = TUTTI_RELU),
                                      tutti_max_pool2d(2), tutti_flatten(),
                                      tutti_dense(64, .activation = TUTTI_RELU), tutti_dense(10));
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    return m;
}

/* The compiled step alone, on one batch. */
static double bare_seconds(tutti_model *model, tutti_tensor *const *tensors, int steps)
{
    tutti_step_function *form;
    tutti__bench_must(tutti__step_function_for(model, true, 2, tensors, &form));
    double start = tutti__seconds();
    for (int i = 0; i < steps; i++)
        tutti__bench_must(tutti__step_function_run(model, form, 0, false, 2, tensors));
    return (tutti__seconds() - start) / steps;
}

static tutti_status save_every_50(void *self, tutti_event *event)
{
    return event->step % 50 == 0 ? tutti_save_checkpoint_async(event->model, self) : TUTTI_OK;
}
static const tutti_callback_kind saver = {
    .struct_size = sizeof(tutti_callback_kind), .name = "saver", .batch_end = save_every_50};

static double fit_seconds(tutti_model *model, tutti_dataset *data, int steps, char *path)
{
    tutti_callback *callback = path ? tutti_callback_make(&saver, path) : NULL;
    double start = tutti__seconds();
    if (callback)
        tutti_fit(model, data, .epochs = 1, .steps_per_epoch = steps, .quiet = true,
                  .callbacks = TUTTI_LIST(callback));
    else
        tutti_fit(model, data, .epochs = 1, .steps_per_epoch = steps, .quiet = true);
    double seconds = (tutti__seconds() - start) / steps;
    tutti__bench_must(tutti_checkpoint_wait(model));
    tutti__bench_must(tutti_model_check(model));
    return seconds;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int run(int argc, char **argv, bool json)
{
    int64_t rounds = 7, steps = 200;
    if (!tutti__option_int(&argc, argv, "--rounds", 1, 1000, &rounds) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 1 << 20, &steps) ||
        !tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 0), BATCH);
    tutti_model *model = make_model(job);
    tutti_element batch;
    char folder[] = "/tmp/tutti-bench-fit-XXXXXX", path[64], previous[80];
    if (!mkdtemp(folder)) {
        fprintf(stderr, "tutti bench: no folder %s for a checkpoint\n", folder);
        return TUTTI_EXIT_FAILED;
    }
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    snprintf(previous, sizeof previous, "%s.previous", path);
    double bare = 1e9, fit = 1e9, saving = 1e9;
    fit_seconds(model, data, 20, NULL);
    tutti__bench_must(tutti_dataset_peek(data, &batch));
    for (int64_t i = 0; i < rounds; i++) {
        bare = least(bare, bare_seconds(model, batch.tensors, (int)steps));
        fit = least(fit, fit_seconds(model, data, (int)steps, NULL));
        saving = least(saving, fit_seconds(model, data, (int)steps, path));
    }
    remove(path);
    remove(previous);
    remove(folder);
    tutti_element_release(&batch);
    tutti__report(json, &(tutti_result){"fit", "the compiled step alone", bare * 1e3, "ms"});
    tutti__report(json,
                  &(tutti_result){"fit", "fit, against the step alone", fit / bare, "x", 1.05});
    tutti__report(json, &(tutti_result){"fit", "saving the state every 50 steps, against fit",
                                        saving / fit, "x", 1.02});
    return tutti_close(job);
}

const tutti_bench tutti_bench_fit = {
    .name = "fit",
    .summary = "what fit and saving cost beyond the compiled step",
    .run = run,
};
