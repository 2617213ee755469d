/* forecast_model.h: what a model's training step will take; see forecast/forecast.h. */
#ifndef TUTTI_NN_TRAINING_FORECAST_MODEL_H
#define TUTTI_NN_TRAINING_FORECAST_MODEL_H

#include "forecast/forecast.h"
#include "nn/training/trainer.h"

/* ---- planned.c ---- */
/* A training step as it is compiled for one device. */
typedef struct tutti_planned {
    double bytes, bound;      /* of activations and gradients: planned, in use at once */
    double kept;              /* planned when nothing is computed again */
    double flops, recomputed; /* of the step, and of it what is computed again; 0: nothing is */
} tutti_planned;
/* INVALID for a model that has nothing to train; TOO_LARGE above its limit of memory. */
tutti_status tutti__model_planned(tutti_model *model, int64_t batch, tutti_planned *ret);

/* ---- forecast_model.c ---- */
/* A step function on these tensors, as tutti__step_function_run would run it under the model's
 * strategy. All processes have to ask; the slowest one's compute counts. */
tutti_status tutti__forecast_step_function(tutti_model *model, tutti_step_function *function,
                                           int64_t batch, bool own, int count,
                                           tutti_tensor *const *tensors, tutti_forecast *ret);
/* tutti__forecast_table of the model's step for this data. */
tutti_status tutti__model_forecast_table(tutti_model *model, tutti_dataset *data, char **ret_text);
/* A step function as a replica of a strategy that is not there would have it. */
tutti_status tutti__forecast_imagined(tutti_model *model, tutti_step_function *function, int count,
                                      tutti_tensor *const *tensors, tutti_strategy *imagined,
                                      tutti_rehearsal *ret);

#endif
