/* train.c: `tutti train`: trains an example by name, or a model from its JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trainable.h>

#include "base/job.h"
#include "base/nearest.h"
#include "base/world.h"
#include "cli/command.h"
#include "cli/models.h"
#include "nn/training/config.h"

static const char usage[] =
    "usage: tutti train NAME|MODEL.json|--from MODEL.onnx [FLAGS]\n\n"
    "Trains one of the examples (below), or a model whose architecture is in a JSON file, such as\n"
    "--save writes, from fresh weights. --from goes on training an ONNX model, with its weights, on\n"
    "examples in classes; --set onnx=OUT.onnx writes it again.\n\n"
    "  --epochs N             passes over the data\n"
    "  --steps-per-epoch N    ends an epoch after N steps\n" TUTTI_DATA_FLAGS
    "  --lr RATE              learning rate\n"
    "  --seed N               of weights, order and every random number; default 1\n"
    "  --precision P          f32, bf16 or f16; default f32\n"
    "  --strategy NAME        one_device, mirrored, multi_worker_mirrored, central_storage,\n"
    "                         pipeline, fully_sharded, tensor, parameter_server; by default by the devices and\n"
    "                         the job's workers; auto: by a forecast\n"
    "  --set stages=4 --set micro=8 --set schedule=1f1b\n"
    "                         of a pipeline: naive, gpipe, 1f1b, interleaved, zero_bubble\n"
    "  --devices LIST         the strategy's: cpu:0,cpu:1 or cpu:*\n"
    "  --mesh AXES            the devices in a grid with named axes: host=2,data=4\n"
    "  --layout RULES         which axes cut which dimensions: batch:host*data\n"
    "  --deterministic        the same bits for any number of workers\n"
    "  --inspect NAMES        prints values of a step and outputs of layers: 'body/*,h?'\n"
    "  --inspect-every N      at the first and each N-th step; default 100\n"
    "  --debug-nan            ends with the first operator that makes a NaN; slower\n"
    "  --set memory=64MiB     most that a step's values may take on a device: some are computed again\n"
    "  --save FILE            writes FILE.json and FILE.safetensors, meanwhile FILE.checkpoint\n"
    "                         (softmax, queues, gan: no FILE.json; mnist keeps checkpoints in ckpt/)\n"
    "  --logs DIR             writes event files for TensorBoard\n"
    "  --resume               goes on from the newest checkpoint, to the same bits\n"
    "  --set save_every=N     saves FILE.checkpoint every N steps, not only every epoch\n"
    "  --quiet                prints warnings and errors only\n"
    "  --json                 one JSON object an epoch, and a last one\n"
    "  --set KEY=VALUE        any other setting; expect=V: exit code 1 below this accuracy\n\n"
    "exit codes: 0 success, 1 the training failed or ended below what was expected, 2 wrong usage,\n"
    "75 it was asked to end by SIGTERM and has saved\n";

typedef int entry(int argc, char **argv);

/* The examples' main functions, and their list. */
#define DECLARE(name, line) entry tutti_example_##name;
TUTTI_EXAMPLES(DECLARE)
#undef DECLARE

static const struct example {
    const char *name, *line;
    entry *run;
} examples[] = {
#define LIST(name, line) {#name, line, tutti_example_##name},
    TUTTI_EXAMPLES(LIST)
#undef LIST
};

static void list(FILE *to)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        fprintf(to, "  %-12s %s\n", examples[i].name, examples[i].line);
}

static void print_names(void)
{
    printf("\nnames:\n");
    list(stdout);
}

static int train_file(const char *path, int argc, char **argv)
{
    const tutti_world *world = tutti__world();
    void *text = NULL;
    size_t size;
    tutti_job *job = tutti_open(&argc, &argv);
    if (tutti_job_ok(job))
        tutti_job_fail(job, world->read_file(world->self, path, (size_t)256 << 20, &text, &size));
    tutti_model *model = tutti_job_ok(job) ? tutti__model_from_file(job, path, text) : NULL;
    free(text);
    tutti__cli_compile(model);
    if (model) {
        const char *name = tutti_flag_text(job, "dataset", NULL);
        int64_t batch = tutti_flag_int(job, "batch", 64);
        bool plans = tutti_flag_text(job, "plan-ranks", NULL) && !name;
        tutti_dataset *data =
            plans ? tutti__cli_imagined(model, batch)
                  : tutti_batch(
                        tutti_shuffle(tutti_load_dataset(job, name ? name : "mnist", "train"), 0),
                        batch);
        tutti_dataset *test = plans ? NULL : tutti__cli_data(job, "test", 500);
        const tutti_history *history = tutti_fit(model, data, .epochs = 3, .validation = test);
        double accuracy = tutti_history_get(history, "val_accuracy", -1);
        if (tutti_flag_text(job, "expect", NULL))
            tutti_expect(job, "test accuracy", accuracy, 0);
    }
    return tutti_close(job);
}

static int train_run(int argc, char **argv)
{
    const char *from = NULL;
    tutti__flags_alone();
    if (tutti__option(&argc, argv, "--from", &from))
        return tutti__train_onnx(from, argc, argv);
    if (argc < 2 || argv[1][0] == '-') {
        tutti__complain("train takes the name of an example or a model's JSON file first:");
        list(stderr);
        return TUTTI_EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(examples[i].name, argv[1]) == 0)
            return examples[i].run(argc - 1, argv + 1);
    size_t length = strlen(argv[1]);
    if (length > 5 && strcmp(argv[1] + length - 5, ".json") == 0)
        return train_file(argv[1], argc - 1, argv + 1);
    tutti_nearest nearest = {.word = argv[1]};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        tutti__nearest_try(&nearest, examples[i].name);
    tutti__complain("there is no example '%s', and it is no .json file%s; these exist:", argv[1],
                    tutti__meant(nearest.found));
    list(stderr);
    return TUTTI_EXIT_USAGE;
}

const tutti_command tutti_command_train = {
    .name = "train",
    .summary = "train an example by name, or a model from its JSON or ONNX file",
    .usage = usage,
    .more = print_names,
    .run = train_run,
};
