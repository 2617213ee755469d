/* models.h: models and data as subcommands name them. */
#ifndef TUTTI_CLI_MODELS_H
#define TUTTI_CLI_MODELS_H

#include "tutti/tutti.h"

/* The flags that those who use models share, for their help. */
#define TUTTI_DATA_FLAGS                                                                           \
    "  --data DIR             the data's files; without it the data is drawn\n"                    \
    "  --set dataset=NAME     mnist (the default), cifar10, …: 'tutti data' lists them\n"        \
    "  --batch N              examples in a step\n"                                                \
    "  --threads N            CPU threads; default all that are granted\n"                         \
    "  --device NAME          where to compute: cpu:0\n"

/* A split of the dataset of --set dataset=NAME, in batches. */
tutti_dataset *tutti__cli_data(tutti_job *job, const char *split, int64_t batch);

/* One batch of zeros in the shapes of a compiled model: for a plan, of which shapes are all that
 * counts. NULL after an error. */
tutti_dataset *tutti__cli_imagined(tutti_model *model, int64_t rows);

/* A model from JSON text that came without compile's part gets Adam, cross entropy of class numbers
 * and accuracy. */
void tutti__cli_compile(tutti_model *model);

/* `tutti train --from PATH`; argv as main has it, without that. The exit code. */
int tutti__train_onnx(const char *path, int argc, char **argv);

#endif
