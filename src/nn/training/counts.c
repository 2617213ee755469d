/* counts.c: reading what a metric of a model has added up. */
#include <string.h>

#include "nn/training/trainer.h"

tutti_status tutti_metric_counts(tutti_model *model, const char *name, tutti_tensor **ret_counts)
{
    TUTTI_TRY(tutti__need_trainer(model));
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        bool validation = strcmp(name, item->val_name) == 0;
        if (!validation && strcmp(name, item->name) != 0)
            continue;
        if (!item->sums[validation][0].node)
            return tutti_fail(TUTTI_INVALID, "metric '%s' has not been computed yet", name);
        return tutti_session_get(model->session, item->sums[validation][0], ret_counts);
    }
    return tutti_fail(TUTTI_NOT_FOUND, "model '%s' has no metric '%s'", model->name, name);
}
