/* plan.c: prints what the training would take, and ends it before it begins: `tutti plan NAME`. */
#include <stdio.h>
#include <stdlib.h>

#include "base/job.h"
#include "nn/callbacks/common.h"
#include "nn/training/forecast_model.h"

static tutti_status plan_train_begin(void *self, tutti_event *event)
{
    char *text;
    const tutti_fit *fit = (const tutti_fit *)(const void *)event;
    TUTTI_UNUSED(self);
    TUTTI_TRY(tutti__model_forecast_table(event->model, fit->data, &text));
    fputs(text, stdout);
    free(text);
    event->model->trainer->stop = true;
    tutti__job_stop(event->model->job);
    return TUTTI_OK;
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .writes = true,
    .name = "plan",
    .train_begin = plan_train_begin,
};

tutti_callback *tutti__plan_printer(void)
{
    return tutti_callback_make(&kind, NULL);
}
