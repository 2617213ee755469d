/* models.c: models and data as subcommands name them. */
#include "cli/models.h"

#include <math.h>

tutti_dataset *tutti__cli_data(tutti_job *job, const char *split, int64_t batch)
{
    tutti_dataset *data = tutti_load_dataset(job, tutti_flag_text(job, "dataset", "mnist"), split);
    return tutti_batch(data, tutti_flag_int(job, "batch", batch));
}

void tutti__cli_compile(tutti_model *model)
{
    if (model && isnan(tutti_get_learning_rate(model)))
        tutti_compile(model, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy");
}
